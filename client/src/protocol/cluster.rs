//! All connections of one client: dialling, greeting, metadata, routes to partitions, requests that time out.
//!
//! Owns: the connections by address, what is known of the cluster, and when to ask again.
//! Not here: what is produced or fetched; the machines above send their requests through here, tagged with a `T` of
//! theirs that comes back with the answer, or among the lost when there will be none.
//!
//! Invariants:
//! 1. At most one connection per address, and at most one metadata request in flight.
//! 2. Every tag comes back exactly once: with its answer, or from [`Cluster::take_lost`].
//! 3. A failing address is dialled with growing pauses.
//!
//! A partition is reached through the listener of its own core; where that does not answer, through the listener that
//! any core serves.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use bytes::Bytes;
use tackboard_schema::frame::{ApiKey, Kind};
use tackboard_schema::native::HeadBuilder;
use tackboard_schema::{ErrorCode, PartitionIndex};

use super::backoff::Backoff;
use super::connection::{Connection, ConnectionId, ConnectionState, Overdue, Request};
use super::frames::InFrame;
use super::messages::{self, Context, Welcome};
use super::metadata::{Metadata, NoLeader};
use super::random::Random;
use super::time::{Now, earliest};
use crate::admin::TopicSummary;
use crate::config::ClientConfig;
use crate::error::{Error, Result};

/// A transport that times its dialling itself has so much longer, and then knows better what went wrong.
const DIAL_GRACE: Duration = Duration::from_secs(1);

/// What the transport has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Dial; then report `opened` or `closed`.
    Open {
        /// The name of the connection from now on.
        connection: ConnectionId,
        /// `host:port`.
        address: Arc<str>,
    },
    /// There is something to send: take it with `take_output`.
    Write {
        /// Where.
        connection: ConnectionId,
    },
    /// End the connection. Nothing that it still yields is listened to.
    Close {
        /// Which.
        connection: ConnectionId,
    },
}

/// The way to a partition.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// Its leader is connected.
    Ready(ConnectionId),
    /// Something has to happen first; ask again when `Cluster::revision` has changed or time has passed.
    Wait,
    /// There is no such topic or partition, or the broker refuses to speak of it.
    Refused(Error),
}

/// An answer to a request of the machine above.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) tag: T,
    pub(crate) context: Context,
    pub(crate) frame: InFrame,
}

#[derive(Debug)]
enum Tag<T> {
    Hello,
    Metadata { serial: u64, asked: Vec<Arc<str>> },
    Owner(T),
}

/// What is known of one address.
#[derive(Debug, Default)]
struct Node {
    connection: Option<ConnectionId>,
    /// Failures in a row.
    failures: u32,
    retry_at: Now,
}

/// Metadata requests are numbered; one that was sent after an event tells what came of the event.
#[derive(Debug, Default)]
struct Refresh {
    wanted: bool,
    not_before: Now,
    failures: u32,
    serial_sent: u64,
    serial_done: u64,
    in_flight: bool,
    done_at: Now,
}

pub(crate) struct Cluster<T> {
    config: ClientConfig,
    bootstrap: Vec<Arc<str>>,
    nodes: AHashMap<Arc<str>, Node>,
    connections: AHashMap<ConnectionId, Connection<Tag<T>>>,
    next_connection: u64,
    metadata: Metadata,
    topics_wanted: BTreeSet<Arc<str>>,
    refresh: Refresh,
    rotation: usize,
    actions: VecDeque<Action>,
    lost: Vec<(ConnectionId, T)>,
    last_fault: Option<Error>,
    welcome: Option<Welcome>,
    /// When the first request in flight may run out of time, or earlier.
    sweep_at: Option<Now>,
    revision: u64,
    heads: HeadBuilder,
    random: Random,
}

impl<T> Cluster<T> {
    pub(crate) fn new(
        brokers: &[impl AsRef<str>],
        config: ClientConfig,
        seed: u64,
    ) -> Result<Self> {
        let bootstrap: Vec<Arc<str>> = brokers
            .iter()
            .map(|broker| broker.as_ref().into())
            .collect();
        if bootstrap.is_empty() {
            return crate::config::setting("brokers", "(none)", "at least one HOST:PORT");
        }
        if let Some(broker) = bootstrap.iter().find(|broker| !is_host_and_port(broker)) {
            return crate::config::setting(
                "brokers",
                broker,
                "expected HOST:PORT, e.g. 127.0.0.1:7400",
            );
        }
        let refresh = Refresh {
            wanted: true,
            ..Refresh::default()
        };
        Ok(Self {
            config,
            bootstrap,
            nodes: AHashMap::new(),
            connections: AHashMap::new(),
            next_connection: 1,
            metadata: Metadata::default(),
            topics_wanted: BTreeSet::new(),
            refresh,
            rotation: 0,
            actions: VecDeque::new(),
            lost: Vec::new(),
            last_fault: None,
            welcome: None,
            sweep_at: None,
            revision: 0,
            heads: HeadBuilder::new(),
            random: Random::new(seed),
        })
    }

    /// Changes whenever a route may have changed: a connection became ready or ended, metadata arrived.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The bounds that the last broker told.
    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        self.welcome.as_ref()
    }

    /// What went wrong last, for errors that have no cause of their own.
    pub(crate) fn last_fault(&self) -> Option<&Error> {
        self.last_fault.as_ref()
    }

    /// A fault that the machine above met, for errors that have no cause of their own.
    pub(crate) fn set_fault(&mut self, fault: Error) {
        self.last_fault = Some(fault);
    }

    /// Whether metadata has ever arrived.
    pub(crate) fn is_up(&self) -> bool {
        self.refresh.serial_done > 0
    }

    /// Why no broker can be reached, when each of those named at the start has been tried in vain.
    pub(crate) fn unreachable(&self) -> Option<&Error> {
        let tried = |address| {
            self.nodes
                .get(address)
                .is_some_and(|node: &Node| node.failures > 0)
        };
        if self.is_up() || !self.bootstrap.iter().all(tried) {
            return None;
        }
        self.last_fault()
    }

    // Metadata.

    /// What is known of a topic; asks about it if nothing is. `None` until there is an answer.
    pub(crate) fn topic(&mut self, name: &str) -> Option<&TopicSummary> {
        if !self.topics_wanted.contains(name) {
            self.topics_wanted.insert(name.into());
            self.metadata.forget(name);
            self.want_refresh_at_once();
        }
        self.metadata.topic(name)
    }

    /// Nobody asks about this topic any longer.
    pub(crate) fn forget_topic(&mut self, name: &str) {
        self.topics_wanted.remove(name);
        self.metadata.forget(name);
    }

    /// Asks for metadata; the answer will be at least as new as now once [`Self::refreshed`] says so of the number
    /// returned.
    pub(crate) fn want_refresh(&mut self) -> u64 {
        self.refresh.wanted = true;
        self.refresh.serial_sent + 1
    }

    /// Whether metadata request `serial`, or a later one, was answered.
    pub(crate) fn refreshed(&self, serial: u64) -> bool {
        self.refresh.serial_done >= serial
    }

    fn want_refresh_at_once(&mut self) {
        self.refresh.wanted = true;
        if self.refresh.failures == 0 {
            self.refresh.not_before = Now::default();
        }
    }

    // Routes and requests.

    /// The way to the leader of a partition; dials it where needed.
    pub(crate) fn route(&mut self, topic: &str, partition: PartitionIndex, now: Now) -> Route {
        let leader = match self.metadata.leader(topic, partition) {
            Ok(leader) => leader,
            Err(why) => return self.no_route(topic, partition, why),
        };
        if let (Some(core), false) = (&leader.core, self.config.any_core_only) {
            let reach = self.reach(core, now);
            let failed_before = self.nodes.get(core).is_some_and(|node| node.failures > 0);
            match reach {
                Some(ready) => return Route::Ready(ready),
                None if !failed_before => return Route::Wait,
                // Its own listener does not answer, so the partition goes the long way meanwhile.
                None => {}
            }
        }
        self.reach(&leader.any_core, now)
            .map_or(Route::Wait, Route::Ready)
    }

    fn no_route(&mut self, topic: &str, partition: PartitionIndex, why: NoLeader) -> Route {
        match why {
            NoLeader::NotKnownYet => {
                self.topic(topic);
                Route::Wait
            }
            NoLeader::Leader => {
                self.want_refresh();
                Route::Wait
            }
            NoLeader::Topic(code)
                if code.retriable() && code != ErrorCode::UnknownTopicOrPartition =>
            {
                self.want_refresh();
                Route::Wait
            }
            NoLeader::Topic(code) => Route::Refused(self.topic_fault(topic, code)),
            NoLeader::Partition(partition_count) => Route::Refused(Error::UnknownPartition {
                topic: topic.into(),
                partition,
                partition_count,
            }),
        }
    }

    /// What to say of a topic that the broker refuses to speak of.
    pub(crate) fn topic_fault(&self, topic: &str, code: ErrorCode) -> Error {
        let address = self.bootstrap[0].clone();
        if code == ErrorCode::UnknownTopicOrPartition {
            return Error::UnknownTopic {
                topic: topic.into(),
                address,
            };
        }
        let context = Context::new(ApiKey::Metadata, &address).topic(topic);
        Error::Refused(context.refusal(None, code, None))
    }

    /// A ready connection to this address; dials if there is none and its pause is over.
    fn reach(&mut self, address: &Arc<str>, now: Now) -> Option<ConnectionId> {
        let node = self.nodes.entry(address.clone()).or_default();
        match node.connection {
            Some(id) => self
                .connections
                .get(&id)
                .and_then(Connection::welcome)
                .map(|_| id),
            None => {
                if node.retry_at <= now {
                    self.dial(address.clone(), now);
                }
                None
            }
        }
    }

    fn dial(&mut self, address: Arc<str>, now: Now) {
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let dial_deadline = now.after(self.config.connect_timeout).after(DIAL_GRACE);
        self.sweep_at = earliest(self.sweep_at, Some(dial_deadline));
        self.connections
            .insert(connection, Connection::new(address.clone(), dial_deadline));
        self.nodes.entry(address.clone()).or_default().connection = Some(connection);
        self.actions.push_back(Action::Open {
            connection,
            address,
        });
    }

    /// Any connection that requests can be sent on, in turn.
    pub(crate) fn any_ready(&self) -> Option<ConnectionId> {
        let is_ready = |(id, connection): (&ConnectionId, &Connection<Tag<T>>)| {
            connection.welcome().map(|_| *id)
        };
        self.connections.iter().filter_map(is_ready).min()
    }

    /// Whether there is any connection that requests can be sent on.
    pub(crate) fn has_ready(&self) -> bool {
        self.connections
            .values()
            .any(|connection| connection.welcome().is_some())
    }

    /// Whether a request with a body of so many bytes may be sent there now.
    pub(crate) fn has_room(&self, connection: ConnectionId, body_bytes: usize) -> bool {
        self.connections
            .get(&connection)
            .is_some_and(|connection| connection.has_room(body_bytes))
    }

    /// Sends a request on a ready connection. With a tag its answer is due at `deadline`, else none is expected.
    pub(crate) fn send(
        &mut self,
        connection: ConnectionId,
        request: Request<'_>,
        tag: Option<T>,
        deadline: Now,
    ) {
        self.send_tagged(connection, request, tag.map(Tag::Owner), deadline);
    }

    fn send_tagged(
        &mut self,
        id: ConnectionId,
        request: Request<'_>,
        tag: Option<Tag<T>>,
        deadline: Now,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if tag.is_some() {
            self.sweep_at = earliest(self.sweep_at, Some(deadline));
        }
        if !connection.has_output() {
            self.actions.push_back(Action::Write { connection: id });
        }
        connection.send(request, tag, deadline);
    }

    // What the transport reports.

    /// The connection stands.
    pub(crate) fn opened(&mut self, id: ConnectionId, now: Now) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.state = ConnectionState::Greeting;
        let mut heads = std::mem::take(&mut self.heads);
        let head = messages::hello_request(&mut heads, &self.config.client_id);
        let request = Request {
            api: ApiKey::Hello,
            head,
            body: &[],
        };
        let deadline = now.after(self.config.request_timeout.min(self.config.connect_timeout));
        self.send_tagged(id, request, Some(Tag::Hello), deadline);
        self.heads = heads;
    }

    /// The connection could not be made, or has ended.
    pub(crate) fn closed(&mut self, id: ConnectionId, fault: Error, now: Now) {
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        for tag in connection.lose() {
            match tag {
                Tag::Hello => {}
                Tag::Metadata { .. } => self.metadata_failed(now),
                Tag::Owner(tag) => self.lost.push((id, tag)),
            }
        }
        let backoff = self.backoff();
        if let Some(node) = self.nodes.get_mut(&connection.address) {
            node.connection = None;
            node.failures = node.failures.saturating_add(1);
            node.retry_at = now.after(backoff.pause(node.failures, &mut self.random));
        }
        tracing::debug!(address = %connection.address, %fault, "connection ended");
        self.last_fault = Some(fault);
        self.revision += 1;
        self.want_refresh();
    }

    /// Ends a connection from this side.
    fn fail(&mut self, id: ConnectionId, fault: Error, now: Now) {
        if self.connections.contains_key(&id) {
            self.actions.push_back(Action::Close { connection: id });
            self.closed(id, fault, now);
        }
    }

    /// A frame arrived. Returns the answer if it is one to a request of the machine above.
    pub(crate) fn received(
        &mut self,
        id: ConnectionId,
        frame: InFrame,
        now: Now,
    ) -> Option<Answer<T>> {
        let connection = self.connections.get_mut(&id)?;
        let address = connection.address.clone();
        if frame.prefix.kind != Kind::Response {
            let what = "a request".into();
            self.fail(id, Error::Protocol { address, what }, now);
            return None;
        }
        // An answer that nobody waits for is no harm: a broker may answer a produce that asked for none.
        let request = connection.answered(frame.prefix.correlation_id)?;
        let context = Context::new(request.api, &address);
        match request.tag {
            Tag::Hello => self.greeted(id, messages::read_hello(&context, &frame), now),
            Tag::Metadata { serial, asked } => {
                self.refresh.in_flight = false;
                match messages::read_metadata(&context, &frame) {
                    Ok(answer) => self.metadata_arrived(serial, answer, &asked, now),
                    Err(fault) => {
                        self.last_fault = Some(fault);
                        self.metadata_failed(now);
                    }
                }
            }
            Tag::Owner(tag) => {
                return Some(Answer {
                    tag,
                    context,
                    frame,
                });
            }
        }
        None
    }

    fn greeted(&mut self, id: ConnectionId, welcome: Result<Welcome>, now: Now) {
        match welcome {
            Ok(welcome) => {
                self.welcome = Some(welcome.clone());
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.state = ConnectionState::Ready(welcome);
                    if let Some(node) = self.nodes.get_mut(&connection.address) {
                        node.failures = 0;
                    }
                }
                self.revision += 1;
            }
            Err(fault) => self.fail(id, fault, now),
        }
    }

    fn metadata_arrived(
        &mut self,
        serial: u64,
        answer: crate::admin::ClusterDescription,
        asked: &[Arc<str>],
        now: Now,
    ) {
        self.metadata.update(answer, asked);
        self.refresh.serial_done = serial;
        self.refresh.failures = 0;
        self.refresh.done_at = now;
        // Whoever wants news again right away (a partition without a leader) gets it after a pause.
        self.refresh.not_before = now.after(self.config.backoff);
        // A topic that came to be wanted while the request was under way was not asked about.
        let is_missing = |name: &Arc<str>| self.metadata.topic(name).is_none();
        if self.topics_wanted.iter().any(is_missing) {
            self.want_refresh_at_once();
        }
        self.revision += 1;
    }

    fn metadata_failed(&mut self, now: Now) {
        self.refresh.in_flight = false;
        self.refresh.wanted = true;
        self.refresh.failures = self.refresh.failures.saturating_add(1);
        let pause = self
            .backoff()
            .pause(self.refresh.failures, &mut self.random);
        self.refresh.not_before = now.after(pause);
    }

    /// Requests that will get no answer, and the connection that they were sent on.
    pub(crate) fn take_lost(&mut self) -> Vec<(ConnectionId, T)> {
        std::mem::take(&mut self.lost)
    }

    /// What the transport has to do next.
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Moves what is to be sent on a connection to the end of `out`.
    pub(crate) fn take_output(&mut self, id: ConnectionId, out: &mut VecDeque<Bytes>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.take_output(out);
        }
    }

    // Time.

    /// Does what is due: time-outs, metadata, dialling.
    pub(crate) fn advance(&mut self, now: Now) {
        if self.sweep_at.is_some_and(|sweep_at| sweep_at <= now) {
            self.sweep(now);
        }
        let is_old =
            self.is_up() && now.since(self.refresh.done_at) >= self.config.metadata_age_max;
        let is_due = (self.refresh.wanted && now >= self.refresh.not_before) || is_old;
        if is_due && !self.refresh.in_flight {
            match self.any_ready() {
                Some(connection) => self.ask_for_metadata(connection, now),
                None => self.dial_any(now),
            }
        }
    }

    /// When [`Self::advance`] has something to do next, unless something happens before.
    pub(crate) fn next_deadline(&self) -> Option<Now> {
        earliest(self.sweep_at, self.refresh_at())
    }

    /// When metadata can be asked for next; `None` while that waits for something else to happen.
    fn refresh_at(&self) -> Option<Now> {
        if self.refresh.in_flight {
            return None;
        }
        if !self.refresh.wanted {
            return Some(self.refresh.done_at.after(self.config.metadata_age_max));
        }
        let possible_at = if self.has_ready() {
            Some(Now::default())
        } else {
            self.dial_at()
        };
        possible_at.map(|at| at.max(self.refresh.not_before))
    }

    fn sweep(&mut self, now: Now) {
        let overdue = self.connections.iter().filter_map(|(id, connection)| {
            Some((*id, connection.address.clone(), connection.overdue(now)?))
        });
        for (id, address, overdue) in overdue.collect::<Vec<_>>() {
            let fault = match overdue {
                Overdue::Dial => Error::Unreachable {
                    address,
                    detail: "timed out".into(),
                },
                Overdue::Request(api) => {
                    let detail = format!("no answer to {} in time", messages::api_name(api)).into();
                    Error::Disconnected { address, detail }
                }
            };
            self.fail(id, fault, now);
        }
        self.sweep_at = self
            .connections
            .values()
            .filter_map(Connection::deadline)
            .min();
    }

    fn ask_for_metadata(&mut self, connection: ConnectionId, now: Now) {
        let asked: Vec<Arc<str>> = self.topics_wanted.iter().cloned().collect();
        let names: Vec<&str> = asked.iter().map(|name| &**name).collect();
        let mut heads = std::mem::take(&mut self.heads);
        let head = messages::metadata_request(&mut heads, Some(&names));
        self.refresh.serial_sent += 1;
        self.refresh.wanted = false;
        self.refresh.in_flight = true;
        let tag = Tag::Metadata {
            serial: self.refresh.serial_sent,
            asked,
        };
        let request = Request {
            api: ApiKey::Metadata,
            head,
            body: &[],
        };
        self.send_tagged(
            connection,
            request,
            Some(tag),
            now.after(self.config.request_timeout),
        );
        self.heads = heads;
    }

    /// Addresses at which any broker may be found.
    fn candidates(&self) -> Vec<Arc<str>> {
        let known = self
            .metadata
            .addresses()
            .filter(|address| !self.bootstrap.contains(address));
        self.bootstrap.iter().chain(known).cloned().collect()
    }

    /// When the first of the candidates may be dialled; `None` while one is being dialled.
    fn dial_at(&self) -> Option<Now> {
        let candidates = self.candidates();
        let nodes: Vec<_> = candidates
            .iter()
            .map(|address| self.nodes.get(address))
            .collect();
        if nodes.iter().flatten().any(|node| node.connection.is_some()) {
            return None;
        }
        nodes
            .iter()
            .map(|node| node.map_or(Now::default(), |node| node.retry_at))
            .min()
    }

    fn dial_any(&mut self, now: Now) {
        if self.dial_at().is_none_or(|at| at > now) {
            return;
        }
        let candidates = self.candidates();
        for step in 0..candidates.len() {
            let address = &candidates[(self.rotation + step) % candidates.len()];
            if self
                .nodes
                .get(address)
                .is_none_or(|node| node.retry_at <= now)
            {
                self.rotation = self.rotation.wrapping_add(step + 1);
                return self.dial(address.clone(), now);
            }
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            first: self.config.backoff,
            max: self.config.backoff_max,
        }
    }
}

fn is_host_and_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
