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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::HeadBuilder;
use tackboard_schema::{Acks, ErrorCode, PartitionIndex};

use super::addresses::Addresses;
use super::backoff::Backoff;
use super::connection::{Connection, ConnectionId, ConnectionState, Overdue};
use super::frames::InFrame;
use super::messages::{self, Context, Welcome};
use super::metadata::{Metadata, NoLeader};
use super::random::Random;
use super::refresh::Refresh;
use super::time::{Now, earliest};
use super::wire::{self, Pipelining, Question, Wire};
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

/// See [`Cluster::look_up`].
#[derive(Clone, Debug)]
pub(crate) enum TopicState {
    /// A broker has yet to tell; ask again when `Cluster::revision` has changed.
    Pending,
    /// It exists.
    Known {
        partition_count: usize,
        /// The level of requests that name none.
        acks: Acks,
    },
    /// It does not, or the broker refuses to speak of it.
    Failed(Error),
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
    Metadata {
        serial: u64,
        asked: Vec<Arc<str>>,
        is_about_all: bool,
    },
    Owner(T),
}

pub(crate) struct Cluster<T> {
    config: ClientConfig,
    /// What every connection begins with.
    wire: Wire,
    addresses: Addresses,
    /// In the order in which they were dialled.
    connections: BTreeMap<ConnectionId, Connection<Tag<T>>>,
    next_connection: u64,
    metadata: Metadata,
    topics_wanted: BTreeSet<Arc<str>>,
    /// All topics are asked about, whether wanted by name or not.
    wants_all: bool,
    refresh: Refresh,
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
        pipelining: Pipelining,
        seed: u64,
    ) -> Result<Self> {
        let backoff = Backoff {
            first: config.backoff,
            max: config.backoff_max,
        };
        Ok(Self {
            addresses: Addresses::new(brokers, backoff)?,
            refresh: Refresh::new(backoff, config.metadata_age_max),
            wire: Wire::new(&config, pipelining),
            config,
            connections: BTreeMap::new(),
            next_connection: 1,
            metadata: Metadata::default(),
            topics_wanted: BTreeSet::new(),
            wants_all: false,
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

    /// Whether an answer holds back those to later requests on its connection.
    pub(crate) fn answers_in_order(&self) -> bool {
        self.wire.answers_in_order()
    }

    /// Whether metadata has ever arrived.
    pub(crate) fn is_up(&self) -> bool {
        self.refresh.has_arrived()
    }

    /// Why no broker can be reached, when each of those named at the start has been tried in vain.
    pub(crate) fn unreachable(&self) -> Option<&Error> {
        if self.is_up() || !self.addresses.have_all_failed() {
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
            self.refresh.want_at_once();
        }
        self.metadata.topic(name)
    }

    /// What is known of a topic. What stands in the way by itself is asked about again; what the broker refuses is told
    /// once, and asked again with the next call.
    pub(crate) fn look_up(&mut self, name: &str) -> TopicState {
        let Some(summary) = self.topic(name) else {
            return TopicState::Pending;
        };
        let (error, partition_count, acks) =
            (summary.error, summary.partitions.len(), summary.acks);
        match error {
            None if partition_count > 0 => TopicState::Known {
                partition_count,
                acks,
            },
            Some(code) if code.retriable() && code != ErrorCode::UnknownTopicOrPartition => {
                self.want_refresh();
                TopicState::Pending
            }
            code => {
                let fault = self.topic_fault(name, code.unwrap_or(ErrorCode::UnknownServerError));
                self.forget_topic(name);
                TopicState::Failed(fault)
            }
        }
    }

    /// Nobody asks about this topic any longer.
    fn forget_topic(&mut self, name: &str) {
        self.topics_wanted.remove(name);
        self.metadata.forget(name);
    }

    /// Asks about all topics from now on, or only about those that are wanted by name.
    pub(crate) fn set_wants_all(&mut self, wants_all: bool) {
        if wants_all && !self.wants_all {
            self.refresh.want_at_once();
        }
        self.wants_all = wants_all;
    }

    /// Asks about this topic too from now on; what is known of it stays.
    pub(crate) fn want_topic(&mut self, name: &Arc<str>) {
        if self.topics_wanted.insert(name.clone()) && self.metadata.topic(name).is_none() {
            self.refresh.want_at_once();
        }
    }

    /// Stops asking by name about topics for which `is_wanted` says no.
    pub(crate) fn retain_topics(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.topics_wanted.retain(|name| is_wanted(name));
    }

    /// How many partitions a topic has, as far as is known without asking.
    pub(crate) fn known_size(&self, name: &str) -> Option<usize> {
        let topic = self.metadata.topic(name)?;
        (topic.error.is_none() && !topic.partitions.is_empty()).then_some(topic.partitions.len())
    }

    /// Every topic that is known to exist.
    pub(crate) fn known_topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.metadata.topics()
    }

    /// Asks for metadata; the answer will be at least as new as now once [`Self::refreshed`] says so of the number
    /// returned.
    pub(crate) fn want_refresh(&mut self) -> u64 {
        self.refresh.want()
    }

    /// Whether metadata request `serial`, or a later one, was answered.
    pub(crate) fn refreshed(&self, serial: u64) -> bool {
        self.refresh.is_done(serial)
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
            let failed_before = self.addresses.has_failed(core);
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

    /// A ready connection to an address that a broker has told, or to any broker while that one does not answer.
    pub(crate) fn route_to(&mut self, address: &Arc<str>, now: Now) -> Option<ConnectionId> {
        let failed_before = self.addresses.has_failed(address);
        let ready = self.reach(address, now);
        match failed_before {
            true => ready.or_else(|| self.any_ready()),
            false => ready,
        }
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
    fn topic_fault(&self, topic: &str, code: ErrorCode) -> Error {
        let address = self.addresses.first().clone();
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
        match self.addresses.connection(address) {
            Some(id) => self.connections.get(&id)?.welcome().map(|_| id),
            None => {
                if self.addresses.may_dial(address, now) {
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
        self.connections.insert(
            connection,
            Connection::new(address.clone(), self.wire.clone(), dial_deadline),
        );
        self.addresses.dialled(&address, connection);
        self.actions.push_back(Action::Open {
            connection,
            address,
        });
    }

    /// Any connection that requests can be sent on: the oldest.
    pub(crate) fn any_ready(&self) -> Option<ConnectionId> {
        let mut ready = self.connections.iter();
        ready.find_map(|(id, connection)| connection.welcome().map(|_| *id))
    }

    /// Whether there is any connection that requests can be sent on.
    pub(crate) fn has_ready(&self) -> bool {
        self.any_ready().is_some()
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
        question: &Question<'_>,
        tag: Option<T>,
        deadline: Now,
        now: Now,
    ) {
        self.send_tagged(connection, question, tag.map(Tag::Owner), deadline, now);
    }

    fn send_tagged(
        &mut self,
        id: ConnectionId,
        question: &Question<'_>,
        tag: Option<Tag<T>>,
        deadline: Now,
        now: Now,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if tag.is_some() {
            self.sweep_at = earliest(self.sweep_at, Some(deadline));
        }
        let had_output = connection.has_output();
        match connection.send(question, &mut self.heads, tag, deadline) {
            Ok(()) if had_output => {}
            Ok(()) => self.actions.push_back(Action::Write { connection: id }),
            Err((refused, tag)) => {
                let context = Context::new(question.api(), &connection.address);
                let refusal = context.refusal(None, refused.code, Some(&refused.message));
                self.last_fault = Some(Error::Refused(refusal));
                if let Some(tag) = tag {
                    self.lose(id, tag, now);
                }
            }
        }
    }

    /// There will be no answer.
    fn lose(&mut self, id: ConnectionId, tag: Tag<T>, now: Now) {
        match tag {
            Tag::Hello => {}
            Tag::Metadata { .. } => self.refresh.failed(now, &mut self.random),
            Tag::Owner(tag) => self.lost.push((id, tag)),
        }
    }

    // What the transport reports.

    /// The connection stands.
    pub(crate) fn opened(&mut self, id: ConnectionId, now: Now) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.state = ConnectionState::Greeting;
        let client_id = self.config.client_id.clone();
        let question = Question::Hello {
            client_id: &client_id,
        };
        let deadline = now.after(self.config.request_timeout.min(self.config.connect_timeout));
        self.send_tagged(id, &question, Some(Tag::Hello), deadline, now);
    }

    /// The connection could not be made, or has ended.
    pub(crate) fn closed(&mut self, id: ConnectionId, fault: Error, now: Now) {
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        for tag in connection.lose() {
            self.lose(id, tag, now);
        }
        self.addresses
            .ended(&connection.address, now, &mut self.random);
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
        let Some(answered) = frame.answers() else {
            let what = "a request".into();
            self.fail(id, Error::Protocol { address, what }, now);
            return None;
        };
        // An answer that nobody waits for is no harm: a broker may answer a produce that asked for none.
        let request = connection.answered(answered)?;
        let context = request.context(&address);
        match request.tag {
            Tag::Hello => {
                let welcome = connection.greeted(&context, &frame);
                self.greeted(id, welcome, now);
            }
            Tag::Metadata {
                serial,
                asked,
                is_about_all,
            } => match wire::read_metadata(&context, &frame) {
                Ok(answer) => {
                    if is_about_all {
                        self.metadata.forget_all();
                    }
                    self.metadata_arrived(serial, answer, &asked, now);
                }
                Err(fault) => {
                    self.last_fault = Some(fault);
                    self.refresh.failed(now, &mut self.random);
                }
            },
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
                    self.addresses.greeted(&connection.address);
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
        self.refresh.arrived(serial, now);
        // A topic that came to be wanted while the request was under way was not asked about.
        let is_missing = |name: &Arc<str>| self.metadata.topic(name).is_none();
        if self.topics_wanted.iter().any(is_missing) {
            self.refresh.want_at_once();
        }
        self.revision += 1;
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
        if self.refresh.due_at().is_some_and(|due_at| due_at <= now) {
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
        let due_at = self.refresh.due_at()?;
        if self.has_ready() {
            return Some(due_at);
        }
        let dial_at = self.addresses.dial_at(self.metadata.addresses())?;
        Some(due_at.max(dial_at))
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
        let is_about_all = self.wants_all;
        let question = Question::Metadata {
            topics: (!is_about_all).then_some(&names[..]),
        };
        let serial = self.refresh.sent();
        let deadline = now.after(self.config.request_timeout);
        // The names are in the question as long as it is asked.
        let tag = Tag::Metadata {
            serial,
            asked: asked.clone(),
            is_about_all,
        };
        self.send_tagged(connection, &question, Some(tag), deadline, now);
    }

    fn dial_any(&mut self, now: Now) {
        let known = self.metadata.addresses();
        if let Some(address) = self.addresses.next_candidate(known, now) {
            self.dial(address, now);
        }
    }
}
