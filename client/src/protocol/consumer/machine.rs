//! The consumer: assignment, positions, and which partitions to ask for when.
//!
//! Owns: the assigned partitions, the bound on what is fetched ahead.
//! Not here: reading of answers (`answers`), connections (`cluster`).
//!
//! Invariants:
//! 1. At most one request per partition and generation is in flight.
//! 2. What is buffered, and what was asked for, stays at or below the configured bound, but for answers that are longer
//!    than was asked for because a single batch is.
//! 3. Every batch that is handed out had its checksum verified, and follows what was handed out before without a hole
//!    other than one that is in the log.

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use tackboard_schema::native::{FetchEntryHead, FetchRequestHead};
use tackboard_schema::{Offset, PartitionIndex};

use super::lane::{Lane, Place};
use crate::admin::OffsetQuery;
use crate::config::ConsumerConfig;
use crate::consumed::{Chunk, Start};
use crate::error::{Error, Result};
use crate::protocol::backoff::Backoff;
use crate::protocol::cluster::{Action, Cluster, Route, TopicState};
use crate::protocol::connection::ConnectionId;
use crate::protocol::frames::InFrame;
use crate::protocol::group::GroupAsk;
use crate::protocol::machine::Machine;
use crate::protocol::messages::Context;
use crate::protocol::random::Random;
use crate::protocol::time::{Now, earliest};
use crate::protocol::wire::{Pipelining, Question};

/// What a request of the consumer was for.
#[derive(Debug)]
pub(crate) enum Tag {
    ListOffsets(Vec<Asked>),
    Fetch(Vec<Asked>),
    /// A request of the group that the consumer is a member of.
    Group(GroupAsk),
}

/// What came of a request of the group: its answer, or nothing.
pub(crate) type GroupOutcome = (GroupAsk, Option<(Context, InFrame)>);

/// A partition that a request asks about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(super) lane: usize,
    pub(super) generation: u64,
    /// From where.
    pub(super) place: Place,
    /// How much at most.
    pub(super) bytes: usize,
}

/// A consumer without its sockets. See [`Machine`] for how it is driven.
pub struct ConsumerMachine {
    pub(super) config: ConsumerConfig,
    pub(crate) cluster: Cluster<Tag>,
    pub(super) lanes: Vec<Lane>,
    slots: AHashMap<(Arc<str>, PartitionIndex), usize>,
    /// Lanes of partitions that are assigned no longer, to be used again.
    vacant: Vec<usize>,
    next_generation: u64,
    /// Of the group's requests, one or none of each kind in flight.
    pub(crate) group_outcomes: Vec<GroupOutcome>,
    /// Bytes that requests in flight may yield.
    pub(super) requested_bytes: usize,
    /// Where the next round over the partitions begins, so that none starves.
    rotation: usize,
    pub(super) random: Random,
    /// Since when no broker has been connected.
    down_since: Option<Now>,
    wake_at: Option<Now>,
}

impl ConsumerMachine {
    /// A consumer that will find its cluster through any of `brokers` (`host:port`). The seed decides the spread of
    /// pauses.
    pub fn new(brokers: &[impl AsRef<str>], config: ConsumerConfig, seed: u64) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            cluster: Cluster::new(brokers, config.client.clone(), Pipelining::One, seed)?,
            config,
            lanes: Vec::new(),
            slots: AHashMap::new(),
            vacant: Vec::new(),
            next_generation: 0,
            group_outcomes: Vec::new(),
            requested_bytes: 0,
            rotation: 0,
            random: Random::new(seed.wrapping_add(1)),
            down_since: None,
            wake_at: None,
        })
    }

    /// The settings.
    pub fn config(&self) -> &ConsumerConfig {
        &self.config
    }

    /// How many partitions a topic has; asks a broker if that is not known, and is `None` until there is an answer.
    pub fn partition_count(&mut self, topic: &str) -> Option<Result<usize>> {
        match self.cluster.look_up(topic) {
            TopicState::Pending => None,
            TopicState::Known {
                partition_count, ..
            } => Some(Ok(partition_count)),
            TopicState::Failed(fault) => Some(Err(fault)),
        }
    }

    /// Reads exactly these partitions from now on. What was fetched of others, or of these before, is dropped. Named
    /// twice, the last one counts.
    pub fn assign(&mut self, partitions: &[(&str, PartitionIndex, Start)]) {
        self.lanes.clear();
        self.slots.clear();
        self.vacant.clear();
        for (topic, partition, start) in partitions {
            self.assign_also((*topic).into(), *partition, *start);
        }
    }

    /// Reads this partition too, or this one from elsewhere.
    pub(crate) fn assign_also(&mut self, topic: Arc<str>, partition: PartitionIndex, start: Start) {
        self.next_generation += 1;
        let lane = Lane::new(topic.clone(), partition, start, self.next_generation);
        let key = (topic, partition);
        let slot = self.slots.get(&key).copied().or_else(|| self.vacant.pop());
        match slot {
            Some(slot) => {
                self.lanes[slot] = lane;
                self.slots.insert(key, slot);
            }
            None => {
                self.slots.insert(key, self.lanes.len());
                self.lanes.push(lane);
            }
        }
    }

    /// Reads this partition no longer. What was fetched of it is dropped, as is what is still under way: its lane keeps
    /// its place, which requests in flight name, until another partition takes it.
    pub(crate) fn unassign(&mut self, topic: &Arc<str>, partition: PartitionIndex) {
        if let Some(slot) = self.slots.remove(&(topic.clone(), partition)) {
            self.next_generation += 1;
            self.lanes[slot].vacate(self.next_generation);
            self.vacant.push(slot);
        }
    }

    fn lane(&self, topic: &str, partition: PartitionIndex) -> Result<&Lane> {
        let not_assigned = || Error::NotAssigned {
            topic: topic.into(),
            partition,
        };
        self.slots
            .get(&(topic.into(), partition))
            .map(|slot| &self.lanes[*slot])
            .ok_or_else(not_assigned)
    }

    fn lane_mut(&mut self, topic: &str, partition: PartitionIndex) -> Result<&mut Lane> {
        let not_assigned = || Error::NotAssigned {
            topic: topic.into(),
            partition,
        };
        self.slots
            .get(&(topic.into(), partition))
            .map(|slot| &mut self.lanes[*slot])
            .ok_or_else(not_assigned)
    }

    /// Goes on from another place.
    pub fn seek(&mut self, topic: &str, partition: PartitionIndex, start: Start) -> Result<()> {
        self.next_generation += 1;
        let generation = self.next_generation;
        self.lane_mut(topic, partition)?.seek(start, generation);
        Ok(())
    }

    /// Hands out and fetches nothing of a partition, or does so again. What was fetched ahead of a paused one is
    /// dropped, so that it takes nothing of what the others share.
    pub fn set_paused(
        &mut self,
        topic: &str,
        partition: PartitionIndex,
        is_paused: bool,
    ) -> Result<()> {
        self.next_generation += 1;
        let generation = self.next_generation;
        let lane = self.lane_mut(topic, partition)?;
        lane.is_paused = is_paused;
        if let Some(position) = lane.position() {
            lane.seek(Start::Offset(position), generation);
        }
        Ok(())
    }

    /// The offset of the next record to be handed out; `None` until a broker has told where that is.
    pub fn position(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        Ok(self.lane(topic, partition)?.position())
    }

    /// The end of what may be read, as of the last answer.
    pub fn high_watermark(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        Ok(self.lane(topic, partition)?.high_watermark)
    }

    /// Whether [`Self::poll`] has something.
    pub fn has_news(&self) -> bool {
        self.lanes
            .iter()
            .any(|lane| lane.has_chunks() || lane.fault.is_some())
    }

    /// Hands out what was fetched, up to the configured bound and to the next whole stretch. The caller has to call
    /// [`Machine::advance`] afterwards, since there may be room for more.
    ///
    /// A fault of a partition is told once everything before it was handed out; the next call goes on, and tries again.
    pub fn poll(&mut self, now: Now) -> Result<Vec<Chunk>> {
        if let Some(fault) = self.lanes.iter_mut().find_map(Lane::take_fault) {
            return Err(fault);
        }
        let mut chunks = Vec::new();
        let mut bytes = 0;
        let count = self.lanes.len();
        for step in 0..count {
            let lane = &mut self.lanes[(self.rotation + step) % count];
            while bytes < self.config.poll_bytes_max
                && let Some(chunk) = lane.pop()
            {
                bytes += chunk.batches.len();
                chunks.push(chunk);
            }
        }
        self.rotation = self.rotation.wrapping_add(1) % count.max(1);
        let is_down = |since: Now| now.since(since) >= self.config.client.call_timeout;
        if chunks.is_empty() && self.down_since.is_some_and(is_down) {
            self.down_since = Some(now);
            return Err(self.cluster.last_fault().cloned().unwrap_or(Error::Closed));
        }
        Ok(chunks)
    }

    /// Takes back what a poll handed out and the caller did not get to: the ends of its chunks, in their order. The next
    /// poll hands it out again.
    pub fn give_back(&mut self, chunks: Vec<Chunk>) {
        for chunk in chunks.into_iter().rev() {
            if let Some(slot) = self.slots.get(&(chunk.topic.clone(), chunk.partition)) {
                self.lanes[*slot].give_back(chunk);
            }
        }
    }

    // Requests.

    fn dispatch(&mut self, now: Now) {
        let mut drafts: Vec<(ConnectionId, Vec<Asked>)> = Vec::new();
        self.wake_at = None;
        let buffered_bytes: usize = self.lanes.iter().map(Lane::buffered_bytes).sum();
        let count = self.lanes.len();
        // Where an answer holds back the next, one that is long in coming would starve whoever is full now and has room
        // before it comes. Taking something out of a full one is what ends the wait.
        let fetch_bytes = self.config.partition_fetch_bytes_max as usize;
        let must_wait = self.cluster.answers_in_order()
            && self.lanes.iter().any(|lane| lane.is_full(fetch_bytes));
        for step in 0..count {
            let index = (self.rotation + step) % count;
            if !(must_wait && matches!(self.lanes[index].place, Place::At(_))) {
                self.look(index, buffered_bytes, &mut drafts, now);
            }
        }
        for (connection, asked) in drafts {
            let (fetches, queries): (Vec<_>, Vec<_>) = asked
                .into_iter()
                .partition(|asked| matches!(asked.place, Place::At(_)));
            if !queries.is_empty() {
                self.send_list_offsets(connection, queries, now);
            }
            if !fetches.is_empty() {
                self.send_fetch(connection, fetches, now);
            }
        }
    }

    /// Adds a partition to the draft for its connection, if it is to be asked for.
    fn look(
        &mut self,
        index: usize,
        buffered_bytes: usize,
        drafts: &mut Vec<(ConnectionId, Vec<Asked>)>,
        now: Now,
    ) {
        let fetch_bytes = self.config.partition_fetch_bytes_max as usize;
        let lane = &mut self.lanes[index];
        if lane.blocked_until > now {
            self.wake_at = earliest(self.wake_at, Some(lane.blocked_until));
        }
        let is_known = self.cluster.refreshed(lane.metadata_needed);
        if !lane.may_ask(now, fetch_bytes) || !is_known {
            return;
        }
        let bytes = if matches!(lane.place, Place::At(_)) {
            fetch_bytes
        } else {
            0
        };
        if self.requested_bytes + buffered_bytes + bytes > self.config.prefetch_bytes_max {
            return;
        }
        match self.cluster.route(&lane.topic, lane.partition, now) {
            Route::Ready(connection) if self.cluster.has_room(connection, 0) => {
                lane.is_asked = true;
                self.requested_bytes += bytes;
                let asked = Asked {
                    lane: index,
                    generation: lane.generation,
                    place: lane.place,
                    bytes,
                };
                match drafts.iter_mut().find(|(id, _)| *id == connection) {
                    Some((_, draft)) => draft.push(asked),
                    None => drafts.push((connection, vec![asked])),
                }
            }
            Route::Ready(_) | Route::Wait => {
                self.wake_at = earliest(self.wake_at, Some(now.after(self.config.client.backoff)));
            }
            Route::Refused(fault) => lane.fault = Some(fault),
        }
    }

    fn send_list_offsets(&mut self, connection: ConnectionId, asked: Vec<Asked>, now: Now) {
        let entries = asked.iter().filter_map(|asked| {
            let lane = &self.lanes[asked.lane];
            let Place::Unknown(query) = asked.place else {
                return None;
            };
            Some((&*lane.topic, lane.partition, query))
        });
        let entries: Vec<(&str, PartitionIndex, OffsetQuery)> = entries.collect();
        let question = Question::ListOffsets { entries: &entries };
        let deadline = now.after(self.config.client.request_timeout);
        let tag = Some(Tag::ListOffsets(asked));
        self.cluster.send(connection, &question, tag, deadline, now);
    }

    fn send_fetch(&mut self, connection: ConnectionId, asked: Vec<Asked>, now: Now) {
        let entries = asked.iter().filter_map(|asked| {
            let lane = &self.lanes[asked.lane];
            let Place::At(fetch_offset) = asked.place else {
                return None;
            };
            let bytes_max = asked.bytes as u32;
            Some(FetchEntryHead {
                topic: &lane.topic,
                partition: lane.partition,
                fetch_offset,
                bytes_max,
            })
        });
        let entries: Vec<_> = entries.collect();
        // One answer has to fit into a frame; what does not comes with the next.
        let frame_bytes_max = self
            .cluster
            .welcome()
            .map_or(u32::MAX, |welcome| welcome.frame_bytes_max);
        let bytes_max: usize = asked.iter().map(|asked| asked.bytes).sum();
        let bytes_max = bytes_max.min(frame_bytes_max as usize);
        let wait = self.config.fetch_wait_max;
        let request = FetchRequestHead {
            wait_ms_max: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
            bytes_min: self.config.fetch_bytes_min,
            bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX),
        };
        let question = Question::Fetch {
            request: &request,
            entries: &entries,
        };
        // The wait is the broker's to spend, the rest is for the way.
        let deadline = now.after(self.config.client.request_timeout).after(wait);
        let tag = Some(Tag::Fetch(asked));
        self.cluster.send(connection, &question, tag, deadline, now);
    }

    /// The partition pauses after a failure, and waits for news of where it is.
    pub(super) fn hold_off(&mut self, lane: usize, now: Now) {
        let client = &self.config.client;
        let backoff = Backoff {
            first: client.backoff,
            max: client.backoff_max,
        };
        let lane = &mut self.lanes[lane];
        lane.failures = lane.failures.saturating_add(1);
        lane.blocked_until = now.after(backoff.pause(lane.failures, &mut self.random));
        lane.metadata_needed = self.cluster.want_refresh();
    }

    fn handle_lost(&mut self, now: Now) {
        for (_, tag) in self.cluster.take_lost() {
            let asked = match tag {
                Tag::ListOffsets(asked) | Tag::Fetch(asked) => asked,
                Tag::Group(ask) => {
                    self.group_outcomes.push((ask, None));
                    continue;
                }
            };
            for asked in asked {
                if self.landed(&asked) {
                    self.hold_off(asked.lane, now);
                }
            }
        }
    }

    /// A request for a partition is in flight no longer; whether its answer still means something.
    pub(super) fn landed(&mut self, asked: &Asked) -> bool {
        self.requested_bytes -= asked.bytes;
        match self.lanes.get_mut(asked.lane) {
            Some(lane) if lane.generation == asked.generation => {
                lane.is_asked = false;
                true
            }
            _ => false,
        }
    }
}

impl Machine for ConsumerMachine {
    fn opened(&mut self, connection: ConnectionId, now: Now) {
        self.cluster.opened(connection, now);
    }

    fn closed(&mut self, connection: ConnectionId, fault: Error, now: Now) {
        self.cluster.closed(connection, fault, now);
        self.handle_lost(now);
    }

    fn received(&mut self, connection: ConnectionId, frame: InFrame, now: Now) {
        if let Some(answer) = self.cluster.received(connection, frame, now) {
            self.handle_answer(answer, now);
        }
        self.handle_lost(now);
    }

    fn advance(&mut self, now: Now) {
        self.cluster.advance(now);
        self.handle_lost(now);
        self.dispatch(now);
        self.cluster.advance(now);
        self.handle_lost(now);
        self.down_since = match self.cluster.has_ready() {
            true => None,
            false => self.down_since.or(Some(now)),
        };
    }

    fn next_deadline(&self) -> Option<Now> {
        earliest(self.wake_at, self.cluster.next_deadline())
    }

    fn next_action(&mut self) -> Option<Action> {
        self.cluster.next_action()
    }

    fn take_output(&mut self, connection: ConnectionId, out: &mut VecDeque<Bytes>) {
        self.cluster.take_output(connection, out);
    }

    fn revision(&self) -> u64 {
        self.cluster.revision()
    }

    fn is_up(&self) -> bool {
        self.cluster.is_up()
    }

    fn unreachable(&self) -> Option<Error> {
        self.cluster.unreachable().cloned()
    }
}
