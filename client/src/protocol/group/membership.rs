//! The phases of a member: finding the coordinator, joining, syncing, heartbeats, leaving.
//!
//! ```text
//!   Outside ──► Seeking ──► Joining ──► (leader: Assigning) ──► Syncing ──► Member ──► Leaving ──► Outside
//!                  ▲                                                           │
//!                  └───────────── a rebalance, or the member was put out ──────┘
//! ```
//!
//! A member reads on in every phase as long as it holds partitions. Before it joins again one that is not cooperative has
//! given everything up, and each has told its caller of all that happened and has committed what it was to commit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tackboard_schema::consumer_protocol::{Assignment, Subscription as Told};

use super::assignor::{NamedPartition, Sizes};
use super::leader::{by_topic, candidate};
use super::machine::{GroupEvent, GroupMachine};
use super::subscription::Subscription;
use super::{AskKind, GroupAsk};
use crate::config::GroupConfig;
use crate::error::Error;
use crate::protocol::connection::ConnectionId;
use crate::protocol::consumer::Tag;
use crate::protocol::time::Now;
use crate::protocol::wire::Question;
use crate::protocol::wire::groups::{GroupQuestion, Identity, JoinTerms, Joined};

/// A join answered later than the rebalance may take is given this much more for its way.
const JOIN_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum Phase {
    /// No member.
    Outside,
    /// About to join, or to join again, as soon as nothing stands in the way.
    Seeking,
    /// A join is under way; the coordinator answers it when everybody has joined.
    Joining,
    /// The leader waits for what is known of topics to be as new as the join.
    Assigning { joined: Joined, serial: u64 },
    /// Waits for the leader's assignment.
    Syncing,
    /// Has its share.
    Member,
    /// The coordinator is being told.
    Leaving,
}

/// A member's place in its group.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) phase: Phase,
    /// Given by the coordinator; empty: not yet.
    pub(super) member_id: String,
    /// -1: none.
    pub(super) generation: i32,
    /// Requests that belong together; each join begins anew.
    pub(super) attempt: u64,
    is_cooperative: bool,
    /// The group is to rebalance, or something has changed that makes it.
    pub(super) must_rejoin: bool,
    pub(super) coordinator: Option<Arc<str>>,
    pub(super) is_finding: bool,
    pub(super) failures: u32,
    pub(super) blocked_until: Now,
    /// When the next heartbeat is due; one at a time is under way.
    pub(super) heartbeat_at: Now,
    pub(super) is_heartbeat_asked: bool,
    /// The coordinator's last sign of life.
    pub(super) heard_at: Now,
    polled_at: Now,
    /// The caller did not come back in time; it joins again when it does.
    is_stalled: bool,
    /// The topics that the group was told of.
    told: BTreeSet<Arc<str>>,
    /// As the leader: the topics of all members, and their sizes as they were shared out.
    pub(super) led: Option<(BTreeSet<Arc<str>>, Sizes)>,
    seen_revision: Option<u64>,
    pub(super) auto_commit_at: Now,
    pub(super) offsets_blocked_until: Now,
    pub(super) offsets_asked: Option<Vec<NamedPartition>>,
}

impl Seat {
    pub(super) fn new(config: &GroupConfig) -> Self {
        Self {
            phase: Phase::Outside,
            member_id: String::new(),
            generation: -1,
            attempt: 0,
            is_cooperative: config.assignors.iter().all(|one| one.is_cooperative()),
            must_rejoin: false,
            coordinator: None,
            is_finding: false,
            failures: 0,
            blocked_until: Now::default(),
            heartbeat_at: Now::default(),
            is_heartbeat_asked: false,
            heard_at: Now::default(),
            polled_at: Now::default(),
            is_stalled: false,
            told: BTreeSet::new(),
            led: None,
            seen_revision: None,
            auto_commit_at: Now::default(),
            offsets_blocked_until: Now::default(),
            offsets_asked: None,
        }
    }

    pub(super) fn polled(&mut self, now: Now) {
        self.polled_at = now;
        self.is_stalled = false;
    }

    /// Whether the subscription still is what the group was told has to be looked at.
    pub(super) fn look_again(&mut self) {
        self.seen_revision = None;
    }

    /// The caller knows that partitions are gone. One that reads on through rebalances joins again, so that others get
    /// them.
    pub(super) fn gave_up(&mut self) {
        self.must_rejoin = true;
    }

    pub(super) fn is_outside(&self) -> bool {
        matches!(self.phase, Phase::Outside)
    }

    pub(super) fn generation(&self) -> Option<i32> {
        (self.generation >= 0).then_some(self.generation)
    }

    pub(super) fn is_member(&self) -> bool {
        matches!(self.phase, Phase::Member)
    }

    /// Begins to join anew; whatever is under way means nothing any more.
    pub(super) fn seek(&mut self) {
        self.phase = Phase::Seeking;
        self.attempt += 1;
        self.is_heartbeat_asked = false;
        self.led = None;
    }

    /// Takes what was asked about offsets, in whichever attempt; whether the answer still says something is the caller's
    /// to know.
    pub(super) fn take_offsets_asked(&mut self) -> Vec<NamedPartition> {
        self.offsets_asked.take().unwrap_or_default()
    }

    pub(super) fn hold_offsets_off(&mut self, until: Now) {
        self.offsets_blocked_until = until;
    }
}

/// Names a member in a request, apart from the machine that sends it.
pub(super) struct MemberName {
    group: String,
    member_id: String,
    instance: Option<String>,
    generation: i32,
}

impl MemberName {
    pub(super) fn who(&self) -> Identity<'_> {
        Identity {
            group: &self.group,
            member_id: &self.member_id,
            instance: self.instance.as_deref(),
            generation: self.generation,
        }
    }
}

impl GroupMachine {
    // What changes without an answer.

    /// The topics that are wanted, by what is known of the cluster; `None` until all of them are known.
    fn wanted_topics(&self) -> Option<BTreeSet<Arc<str>>> {
        let cluster = &self.consumer.cluster;
        match self.subscription.as_ref()? {
            Subscription::Topics(topics) => Some(topics.clone()),
            Subscription::Pattern { serial, .. } if !cluster.refreshed(*serial) => None,
            Subscription::Pattern { pattern, .. } => {
                let matching = cluster.known_topics().filter(|name| pattern.matches(name));
                Some(matching.cloned().collect())
            }
        }
    }

    /// Topics came, went or grew: the group is told by joining again.
    pub(super) fn notice_metadata(&mut self) {
        let revision = Some(self.consumer.cluster.revision());
        if self.seat.seen_revision == revision || !self.seat.is_member() {
            return;
        }
        self.seat.seen_revision = revision;
        let is_changed = (self.wanted_topics()).is_some_and(|wanted| wanted != self.seat.told);
        let has_grown = self.seat.led.as_ref().is_some_and(|(topics, sizes)| {
            let known = self.known_sizes(topics);
            known != *sizes
        });
        if is_changed || has_grown {
            self.seat.must_rejoin = true;
        }
    }

    /// Time-outs of the caller and of the coordinator.
    pub(super) fn notice_silence(&mut self, now: Now) {
        if self.seat.is_outside() || matches!(self.seat.phase, Phase::Leaving) {
            return;
        }
        let poll_deadline = self.seat.polled_at.after(self.config.poll_interval_max);
        if poll_deadline <= now && self.subscription.is_some() {
            tracing::warn!(
                group = self.config.group,
                "no poll within poll_interval_max; leaving the group until the next one"
            );
            self.seat.is_stalled = true;
            self.lose();
            return self.depart(now);
        }
        self.wake(poll_deadline);
        // A join waits as long as the coordinator does.
        let is_bound = self.seat.generation >= 0 && !matches!(self.seat.phase, Phase::Joining);
        if is_bound {
            let session_end = self.seat.heard_at.after(self.config.session_timeout);
            if session_end > now {
                return self.wake(session_end);
            }
            tracing::warn!(
                group = self.config.group,
                "no sign of the coordinator within session_timeout"
            );
            self.seat.coordinator = None;
            self.lose();
            self.seat.seek();
        }
    }

    /// The group has gone on without the member, or may have. Whatever it holds, others may read.
    pub(super) fn lose(&mut self) {
        let lost: Vec<NamedPartition> = self.holdings.announced().into_iter().collect();
        let new: Vec<NamedPartition> = (self.holdings.0.keys())
            .filter(|held| !lost.contains(held))
            .cloned()
            .collect();
        new.iter()
            .for_each(|partition| self.drop_partition(partition));
        self.events
            .retain(|(_, event)| matches!(event, GroupEvent::CommitFailed(_)));
        if !lost.is_empty() {
            self.tell(GroupEvent::Lost(lost));
        }
        let fault = self.not_a_member();
        if let Some(refused) = self.commits.give_up(&fault) {
            self.tell(GroupEvent::CommitFailed(refused));
        }
        self.seat.generation = -1;
        self.seat.must_rejoin = false;
    }

    /// What is said of a commit that comes too late.
    pub(super) fn not_a_member(&self) -> Error {
        Error::NotMember {
            group: self.config.group.as_str().into(),
            last: self.consumer.cluster.last_fault().cloned().map(Box::new),
        }
    }

    // What is to be done next.

    /// A connection to the coordinator on which a request may be sent now; finds it first where needed.
    pub(super) fn coordinator(&mut self, now: Now) -> Option<ConnectionId> {
        let soon = now.after(self.config.consumer.client.backoff);
        let Some(address) = self.seat.coordinator.clone() else {
            self.find_coordinator(now);
            return None;
        };
        let connection = self.consumer.cluster.route_to(&address, now);
        let connection = connection.filter(|id| self.consumer.cluster.has_room(*id, 0));
        if connection.is_none() {
            self.wake(soon);
        }
        connection
    }

    fn find_coordinator(&mut self, now: Now) {
        if self.seat.is_finding {
            return;
        }
        if self.seat.blocked_until > now {
            return self.wake(self.seat.blocked_until);
        }
        let any = self.consumer.cluster.any_ready();
        let Some(connection) = any.filter(|id| self.consumer.cluster.has_room(*id, 0)) else {
            // A connection comes with metadata, which the cluster asks for until it has it.
            self.consumer.cluster.want_refresh();
            return self.wake(now.after(self.config.consumer.client.backoff));
        };
        let group = self.config.group.clone();
        let question = GroupQuestion::Find { group: &group };
        self.send(connection, AskKind::Find, question, now);
        self.seat.is_finding = true;
    }

    /// Sends a request whose answer is due as that of any other.
    pub(super) fn send(
        &mut self,
        to: ConnectionId,
        kind: AskKind,
        question: GroupQuestion<'_>,
        now: Now,
    ) {
        let deadline = now.after(self.config.consumer.client.request_timeout);
        self.send_until(to, kind, question, deadline, now);
    }

    fn send_until(
        &mut self,
        to: ConnectionId,
        kind: AskKind,
        question: GroupQuestion<'_>,
        deadline: Now,
        now: Now,
    ) {
        let attempt = self.seat.attempt;
        let tag = Tag::Group(GroupAsk { kind, attempt });
        let question = Question::Group(question);
        let cluster = &mut self.consumer.cluster;
        cluster.send(to, &question, Some(tag), deadline, now);
    }

    /// Who asks.
    pub(super) fn identity(&self) -> MemberName {
        MemberName {
            group: self.config.group.clone(),
            member_id: self.seat.member_id.clone(),
            instance: self.config.instance.clone(),
            generation: self.seat.generation,
        }
    }

    /// Moves the membership on as far as it goes without an answer.
    pub(super) fn proceed(&mut self, now: Now) {
        if self.subscription.is_none() {
            return self.wind_up(now);
        }
        match &self.seat.phase {
            Phase::Outside if !self.seat.is_stalled => {
                self.seat.seek();
                self.join(now);
            }
            Phase::Seeking => self.join(now),
            Phase::Assigning { serial, .. } if self.consumer.cluster.refreshed(*serial) => {
                self.assign(now);
            }
            Phase::Member if self.seat.must_rejoin && self.events.is_empty() => {
                if !self.seat.is_cooperative && !self.holdings.is_empty() {
                    let all = self.holdings.announced().into_iter().collect();
                    self.tell(GroupEvent::Revoked(all));
                } else if self.commits.is_idle() {
                    self.seat.must_rejoin = false;
                    self.seat.seek();
                    return self.join(now);
                }
                self.beat(now);
            }
            Phase::Assigning { .. } | Phase::Syncing | Phase::Member => self.beat(now),
            Phase::Outside | Phase::Joining | Phase::Leaving => {}
        }
    }

    /// Gives everything up, commits, leaves. In the middle of a rebalance nothing can be committed, so one that has
    /// something to commit sees it through first.
    fn wind_up(&mut self, now: Now) {
        let has_something = !self.holdings.is_empty() || !self.commits.is_idle();
        let may_commit = has_something && self.seat.generation >= 0;
        match &self.seat.phase {
            Phase::Outside | Phase::Leaving => {}
            Phase::Member => self.give_all_up(now),
            // It would have joined again, and still is of the generation before.
            Phase::Seeking if may_commit => {
                self.seat.phase = Phase::Member;
                self.give_all_up(now);
            }
            Phase::Joining if may_commit => {}
            Phase::Assigning { serial, .. } if may_commit => {
                match self.consumer.cluster.refreshed(*serial) {
                    true => self.assign(now),
                    false => self.beat(now),
                }
            }
            Phase::Syncing if may_commit => self.beat(now),
            _ => {
                self.lose();
                self.depart(now);
            }
        }
    }

    fn give_all_up(&mut self, now: Now) {
        if self.events.is_empty() && !self.holdings.is_empty() {
            let all = self.holdings.announced().into_iter().collect();
            self.tell(GroupEvent::Revoked(all));
        }
        match self.events.is_empty() && self.commits.is_idle() {
            true => self.depart(now),
            false => self.beat(now),
        }
    }

    /// Tells the coordinator that the member is gone. A static one keeps its place until its session ends.
    fn depart(&mut self, now: Now) {
        let is_known = !self.seat.member_id.is_empty() && self.config.instance.is_none();
        // Where the coordinator is not at hand the session's end does it.
        let connection = match is_known {
            true => self.coordinator(now),
            false => None,
        };
        self.seat.seek();
        self.seat.phase = Phase::Outside;
        if let Some(connection) = connection {
            let name = self.identity();
            let question = GroupQuestion::Leave { who: name.who() };
            self.send(connection, AskKind::Leave, question, now);
            self.seat.phase = Phase::Leaving;
        }
        self.seat.generation = -1;
        if self.config.instance.is_none() {
            self.seat.member_id.clear();
        }
    }

    fn join(&mut self, now: Now) {
        // The caller knows of everything, and what it may have done since is committed.
        if !self.events.is_empty() {
            return;
        }
        if self.seat.blocked_until > now {
            return self.wake(self.seat.blocked_until);
        }
        let (Some(topics), Some(connection)) = (self.wanted_topics(), self.coordinator(now)) else {
            return;
        };
        // Asked about from the start, so that whoever becomes the leader knows them.
        for topic in &topics {
            self.consumer.cluster.want_topic(topic);
        }
        let told = self.told(&topics);
        self.seat.told = topics;
        let protocols: Vec<_> = (self.config.assignors.iter())
            .map(|assignor| (assignor.name(), told.clone()))
            .collect();
        let milliseconds =
            |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        let client_id = self.config.consumer.client.client_id.clone();
        let terms = JoinTerms {
            client_id: &client_id,
            session_timeout_ms: milliseconds(self.config.session_timeout),
            rebalance_timeout_ms: milliseconds(self.config.poll_interval_max),
            protocols: &protocols,
        };
        let deadline = (now.after(self.config.poll_interval_max))
            .after(self.config.consumer.client.request_timeout)
            .after(JOIN_GRACE);
        self.seat.attempt += 1;
        let name = self.identity();
        let who = name.who();
        let question = GroupQuestion::Join { who, terms };
        self.send_until(connection, AskKind::Join, question, deadline, now);
        self.seat.phase = Phase::Joining;
    }

    /// What the assignors are told. One that gives everything up before it joins has nothing.
    fn told(&self, topics: &BTreeSet<Arc<str>>) -> Vec<u8> {
        let owned = by_topic(&self.holdings.announced());
        let generation = match owned.is_empty() {
            true => -1,
            false => self.seat.generation,
        };
        let topics = topics.iter().map(|topic| topic.to_string()).collect();
        Told {
            topics,
            owned,
            generation,
        }
        .encode()
    }

    /// The coordinator has made a new generation with the member in it.
    pub(super) fn joined(&mut self, joined: Joined, now: Now) {
        self.seat.member_id.clone_from(&joined.member_id);
        self.seat.generation = joined.generation;
        self.seat.heard_at = now;
        self.seat.heartbeat_at = now.after(self.config.heartbeat_interval);
        self.seat.failures = 0;
        if joined.leader == joined.member_id {
            let told: BTreeSet<Arc<str>> = (joined.members.iter())
                .flat_map(|member| candidate(member).topics)
                .collect();
            // Of topics that nobody wants any more nobody needs to know.
            let holdings = &self.holdings;
            let is_held = |topic: &str| holdings.0.keys().any(|held| *held.topic == *topic);
            self.consumer
                .cluster
                .retain_topics(|topic| told.contains(topic) || is_held(topic));
            for topic in &told {
                self.consumer.cluster.want_topic(topic);
            }
            let serial = self.consumer.cluster.want_refresh();
            self.seat.phase = Phase::Assigning { joined, serial };
        } else {
            self.sync(&joined.protocol, &[], now);
        }
    }

    pub(super) fn sync(&mut self, protocol: &str, assignments: &[(Arc<str>, Vec<u8>)], now: Now) {
        let Some(connection) = self.coordinator(now) else {
            // Whoever can't tell its coordinator joins again when it can.
            return self.seat.seek();
        };
        // It waits for the leader, who has as long as anybody to join.
        let deadline = (now.after(self.config.poll_interval_max))
            .after(self.config.consumer.client.request_timeout);
        let name = self.identity();
        let question = GroupQuestion::Sync {
            who: name.who(),
            protocol,
            assignments,
        };
        self.send_until(connection, AskKind::Sync, question, deadline, now);
        self.seat.phase = Phase::Syncing;
    }

    /// The member knows its share.
    pub(super) fn synced(&mut self, assignment: Assignment, now: Now) {
        let assigned: BTreeSet<NamedPartition> = (assignment.partitions.into_iter())
            .flat_map(|(topic, indices)| {
                let topic: Arc<str> = topic.into();
                indices.into_iter().map(move |partition| NamedPartition {
                    topic: topic.clone(),
                    partition,
                })
            })
            .collect();
        let (given_up, new) = self.holdings.difference(&assigned);
        self.seat.phase = Phase::Member;
        self.seat.heard_at = now;
        self.seat.seen_revision = None;
        if let Some(interval) = self.config.auto_commit {
            self.seat.auto_commit_at = now.after(interval);
        }
        if !given_up.is_empty() {
            self.tell(GroupEvent::Revoked(given_up));
        }
        for partition in &new {
            self.holdings.0.entry(partition.clone()).or_default();
        }
        // Whoever has nothing is told so: it waits for nothing more.
        if !new.is_empty() || !self.seat.is_cooperative || self.holdings.0.is_empty() {
            self.tell(GroupEvent::Assigned(new));
        }
    }

    fn beat(&mut self, now: Now) {
        if self.seat.is_heartbeat_asked {
            return;
        }
        if self.seat.heartbeat_at > now {
            return self.wake(self.seat.heartbeat_at);
        }
        let Some(connection) = self.coordinator(now) else {
            return;
        };
        let name = self.identity();
        let question = GroupQuestion::Heartbeat { who: name.who() };
        self.send(connection, AskKind::Heartbeat, question, now);
        self.seat.is_heartbeat_asked = true;
        self.seat.heartbeat_at = now.after(self.config.heartbeat_interval);
    }
}
