//! The producer: topics, partitions, the buffer, and everything a transport needs of it.
//!
//! Owns: the queues of all partitions, and the records in them.
//! Not here: sending and answers (`dispatch`), the order within a partition (`queue`), connections (`cluster`).
//!
//! Invariants:
//! 1. `buffered_bytes` is the sum over all batches that are not reported yet, and stays at or below the configured
//!    bound but for one record.
//! 2. Every record that was appended is reported once, with its batch.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use tackboard_schema::record_batch::BatchBuilder;
use tackboard_schema::{Acks, PartitionIndex, TimestampMs};

use super::batch::{BatchId, Identity};
use super::dispatch::Tag;
use super::partitioner::KeylessPlace;
use super::queue::{OpenBatch, PartitionQueue};
use crate::config::ProducerConfig;
use crate::error::{Error, Result};
use crate::protocol::cluster::{Action, Cluster, TopicState};
use crate::protocol::connection::ConnectionId;
use crate::protocol::frames::InFrame;
use crate::protocol::machine::Machine;
use crate::protocol::random::Random;
use crate::protocol::time::{Now, earliest};
use crate::protocol::wire::Pipelining;
use crate::record::{BatchReport, ProducerRecord};

/// Room left in a frame for its prefix and head when batches are measured against the broker's bound.
const FRAME_OVERHEAD_BYTES: usize = 64 << 10;

/// Bound on a batch before a broker has told its own: `message.max.bytes` by default.
const BATCH_BYTES_MAX_DEFAULT: usize = 1_048_588;

/// Empty builders kept for the next batches.
const SPARE_BUILDERS_MAX: usize = 64;

/// About what a record takes beside its key, value and headers; only the spreading of keyless records counts with it.
const RECORD_OVERHEAD_BYTES: usize = 8;

/// The most that it takes: five lengths and two deltas as variable-length integers, and a byte of attributes.
const RECORD_OVERHEAD_BYTES_MAX: usize = 36;

/// The most that each header takes beside its name and value: two lengths.
const HEADER_OVERHEAD_BYTES_MAX: usize = 10;

/// Names a topic within one producer; see [`ProducerMachine::topic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicSlot(pub(super) u32);

/// What is known of a topic.
#[derive(Debug)]
pub enum TopicLookup {
    /// Records may be appended.
    Ready(TopicSlot),
    /// A broker was asked; look again when something has happened.
    Pending,
    /// There is no such topic, or the broker refuses it.
    Failed(Error),
}

/// Where a record was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its batch.
    pub batch: BatchId,
    /// Its place in the batch, from 0.
    pub index: u32,
    /// Whether there is something new to do: the transport has to call [`Machine::advance`] soon.
    pub wakes: bool,
}

/// Why a record was not taken.
#[derive(Debug)]
pub enum AppendError {
    /// The buffer is full; try again when a batch has been reported.
    BufferFull,
    /// It never will be.
    Failed(Error),
}

/// One partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) topic: u32,
    pub(super) partition: u32,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) queue: PartitionQueue,
    /// It is in `ready` or one of the lists of those that wait.
    pub(super) is_listed: bool,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: Arc<str>,
    /// What each of its requests asks for.
    pub(super) acks: Acks,
    pub(super) lanes: Vec<Lane>,
    keyless: KeylessPlace,
}

/// The producer's own identity, and how it comes by one.
#[derive(Debug, Default)]
pub(super) struct IdentityState {
    pub(super) current: Option<Identity>,
    pub(super) is_wanted: bool,
    pub(super) is_asked: bool,
    pub(super) failures: u32,
    pub(super) not_before: Now,
}

/// Partitions with something to do.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// To be looked at.
    pub(super) ready: VecDeque<Slot>,
    /// Waiting for a route, an identity, or for `stalled_until`.
    pub(super) stalled: Vec<Slot>,
    pub(super) stalled_until: Option<Now>,
    /// Waiting until a connection takes more requests.
    pub(super) crowded: Vec<Slot>,
}

/// A producer without its sockets. See [`Machine`] for how it is driven.
pub struct ProducerMachine {
    pub(super) config: ProducerConfig,
    pub(super) cluster: Cluster<Tag>,
    pub(super) topics: Vec<Topic>,
    topic_slots: AHashMap<Arc<str>, TopicSlot>,
    pub(super) agenda: Agenda,
    pub(super) seen_revision: u64,
    /// Open batches by the time at which they need not wait any longer.
    lingering: VecDeque<(Now, Slot, BatchId)>,
    pub(super) identity: IdentityState,
    next_batch: u64,
    pub(super) outstanding: BTreeSet<BatchId>,
    pub(super) reports: VecDeque<(BatchId, BatchReport)>,
    pub(super) buffered_bytes: usize,
    pub(super) spare_builders: Vec<BatchBuilder>,
    /// At which a batch is sealed: the configured size, or what the broker takes if that is less.
    batch_bytes: usize,
    sweep_at: Now,
    pub(super) random: Random,
}

impl ProducerMachine {
    /// A producer that will find its cluster through any of `brokers` (`host:port`). The seed decides the order in
    /// which keyless records visit partitions, and the spread of pauses.
    pub fn new(brokers: &[impl AsRef<str>], config: ProducerConfig, seed: u64) -> Result<Self> {
        config.validate()?;
        let batch_bytes = config.batch_bytes.min(BATCH_BYTES_MAX_DEFAULT);
        Ok(Self {
            cluster: Cluster::new(brokers, config.client.clone(), Pipelining::Several, seed)?,
            config,
            topics: Vec::new(),
            topic_slots: AHashMap::new(),
            agenda: Agenda::default(),
            seen_revision: 0,
            lingering: VecDeque::new(),
            identity: IdentityState::default(),
            next_batch: 0,
            outstanding: BTreeSet::new(),
            reports: VecDeque::new(),
            buffered_bytes: 0,
            spare_builders: Vec::new(),
            batch_bytes,
            sweep_at: Now::default(),
            random: Random::new(seed.wrapping_add(1)),
        })
    }

    /// The settings.
    pub fn config(&self) -> &ProducerConfig {
        &self.config
    }

    /// Looks a topic up, and asks about it if nothing is known.
    pub fn topic(&mut self, name: &str) -> TopicLookup {
        if let Some(slot) = self.topic_slots.get(name) {
            return TopicLookup::Ready(*slot);
        }
        if let Err(reason) = tackboard_schema::validate_topic_name(name) {
            let allowed = "1 to 249 of a-z A-Z 0-9 . _ -, but neither . nor ..";
            tracing::debug!(%reason, "topic name refused");
            return TopicLookup::Failed(Error::Setting {
                key: "topic",
                value: name.into(),
                allowed,
            });
        }
        match self.cluster.look_up(name) {
            TopicState::Pending => TopicLookup::Pending,
            TopicState::Known {
                partition_count,
                acks,
            } => TopicLookup::Ready(self.add_topic(name, partition_count, acks)),
            TopicState::Failed(fault) => TopicLookup::Failed(fault),
        }
    }

    fn add_topic(&mut self, name: &str, partition_count: usize, default_acks: Acks) -> TopicSlot {
        let slot = TopicSlot(self.topics.len() as u32);
        let name: Arc<str> = name.into();
        // The level is named in every request: were it left to the topic, and the topic set to 0 meanwhile, answers
        // would be awaited that never come.
        let acks = self.config.acks.unwrap_or(default_acks);
        let mut topic = Topic {
            name: name.clone(),
            acks,
            lanes: Vec::new(),
            keyless: KeylessPlace::new(partition_count as u32, &mut self.random),
        };
        topic.grow(partition_count, self.config.idempotent, &mut self.random);
        self.topics.push(topic);
        self.topic_slots.insert(name, slot);
        slot
    }

    /// How many partitions a topic has.
    pub fn partition_count(&self, topic: TopicSlot) -> usize {
        self.topics[topic.0 as usize].lanes.len()
    }

    /// Copies a record into the batch of its partition. `wall` is its timestamp if it has none of its own.
    pub fn append(
        &mut self,
        topic: TopicSlot,
        record: &ProducerRecord<'_>,
        now: Now,
        wall: TimestampMs,
    ) -> Result<Appended, AppendError> {
        if self.buffered_bytes >= self.config.buffer_bytes_max {
            return Err(AppendError::BufferFull);
        }
        let partition = self.choose_partition(topic, record)?;
        let slot = Slot {
            topic: topic.0,
            partition,
        };
        let timestamp = record.timestamp.unwrap_or(wall);
        let open = &self.topics[topic.0 as usize].lanes[partition as usize]
            .queue
            .open;
        let is_full = |batch: &OpenBatch| !self.fits(&batch.builder, record, timestamp);
        let mut wakes = false;
        if open.as_ref().is_some_and(is_full) {
            self.seal(slot);
            self.list(slot);
            wakes = true;
        }
        let lane = &mut self.topics[topic.0 as usize].lanes[partition as usize];
        if lane.queue.open.is_none() {
            self.begin_batch(slot, record, timestamp, now)?;
            wakes = true;
        }
        let lane = &mut self.topics[topic.0 as usize].lanes[partition as usize];
        let batch = lane.queue.open.as_mut().expect("a batch is open by now");
        let size_before = batch.builder.size();
        let index = batch.builder.record_count() as u32;
        // The bound of the format is far above every bound that the batch is held to.
        let appended = batch
            .builder
            .append(timestamp, record.key, record.value, record.headers);
        appended.map_err(|fault| {
            AppendError::Failed(Error::System {
                what: "record",
                detail: fault.to_string().into(),
            })
        })?;
        let (id, size) = (batch.id, batch.builder.size());
        self.buffered_bytes += size - if index == 0 { 0 } else { size_before };
        Ok(Appended {
            batch: id,
            index,
            wakes,
        })
    }

    /// Whether the batch stays within its bound with this record.
    fn fits(
        &self,
        builder: &BatchBuilder,
        record: &ProducerRecord<'_>,
        timestamp: TimestampMs,
    ) -> bool {
        // The exact size costs more than it tells while there is plenty of room.
        let overhead = RECORD_OVERHEAD_BYTES_MAX + HEADER_OVERHEAD_BYTES_MAX * record.headers.len();
        builder.size() + payload_bytes(record) + overhead <= self.batch_bytes
            || builder.size_after(timestamp, record.key, record.value, record.headers)
                <= self.batch_bytes
    }

    fn choose_partition(
        &mut self,
        topic: TopicSlot,
        record: &ProducerRecord<'_>,
    ) -> Result<u32, AppendError> {
        let topic = &mut self.topics[topic.0 as usize];
        let Some(partition) = record.partition else {
            let record_bytes = payload_bytes(record) + RECORD_OVERHEAD_BYTES;
            let (rule, place) = (&self.config.partitioner, &mut topic.keyless);
            return Ok(rule.choose(
                place,
                record.key,
                record.value,
                record_bytes,
                &mut self.random,
            ));
        };
        match u32::try_from(partition.0) {
            Ok(index) if (index as usize) < topic.lanes.len() => Ok(index),
            _ => Err(AppendError::Failed(Error::UnknownPartition {
                topic: topic.name.clone(),
                partition,
                partition_count: topic.lanes.len(),
            })),
        }
    }

    fn begin_batch(
        &mut self,
        slot: Slot,
        record: &ProducerRecord<'_>,
        timestamp: TimestampMs,
        now: Now,
    ) -> Result<(), AppendError> {
        let mut builder = self
            .spare_builders
            .pop()
            .unwrap_or_else(|| BatchBuilder::new(timestamp));
        builder.reset(timestamp);
        let record_bytes = builder.size_after(timestamp, record.key, record.value, record.headers);
        if record_bytes > self.batch_bytes {
            let bytes_max = self.batch_bytes_max();
            if record_bytes > bytes_max {
                self.spare_builders.push(builder);
                let topic = self.topics[slot.topic as usize].name.clone();
                return Err(AppendError::Failed(Error::RecordTooLarge {
                    topic,
                    record_bytes,
                    bytes_max,
                }));
            }
        }
        let id = BatchId(self.next_batch);
        self.next_batch += 1;
        self.outstanding.insert(id);
        let is_due = self.config.linger.is_zero();
        let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
        lane.queue.open = Some(OpenBatch {
            id,
            builder,
            created: now,
            is_due,
        });
        if is_due {
            self.list(slot);
        } else {
            self.lingering
                .push_back((now.after(self.config.linger), slot, id));
        }
        Ok(())
    }

    /// The longest batch that the broker takes.
    fn batch_bytes_max(&self) -> usize {
        let welcome = self.cluster.welcome();
        welcome.map_or(BATCH_BYTES_MAX_DEFAULT, |welcome| {
            let in_frame = (welcome.frame_bytes_max as usize).saturating_sub(FRAME_OVERHEAD_BYTES);
            in_frame.min(welcome.batch_bytes_max as usize)
        })
    }

    pub(super) fn seal(&mut self, slot: Slot) {
        let compression = self.config.compression;
        let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
        if let Some(builder) = lane.queue.seal(compression)
            && self.spare_builders.len() < SPARE_BUILDERS_MAX
        {
            self.spare_builders.push(builder);
        }
    }

    /// Puts a partition on the agenda, once.
    pub(super) fn list(&mut self, slot: Slot) {
        let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
        if !lane.is_listed {
            lane.is_listed = true;
            self.agenda.ready.push_back(slot);
        }
    }

    /// No open batch waits any longer. Returns a mark for [`Self::is_flushed`].
    pub fn flush(&mut self) -> BatchId {
        for slot in self.slots() {
            let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
            if let Some(open) = &mut lane.queue.open {
                open.is_due = true;
                self.list(slot);
            }
        }
        BatchId(self.next_batch)
    }

    /// Whether every batch begun before the flush that returned this mark has been reported.
    pub fn is_flushed(&self, mark: BatchId) -> bool {
        self.outstanding
            .first()
            .is_none_or(|oldest| *oldest >= mark)
    }

    /// Bytes of records that are not reported yet.
    pub fn buffered_bytes(&self) -> usize {
        self.buffered_bytes
    }

    /// What became of the next batch. Reports of one partition come in the order of its batches.
    pub fn next_report(&mut self) -> Option<(BatchId, BatchReport)> {
        self.reports.pop_front()
    }

    /// Gives up on everything: what is in flight is reported as unknown, the rest as not sent.
    pub fn abandon(&mut self, now: Now) {
        for slot in self.slots() {
            let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
            lane.queue.abandon(now, self.cluster.last_fault());
            self.report(slot);
        }
    }

    pub(super) fn slots(&self) -> Vec<Slot> {
        let topics = self.topics.iter().zip(0..);
        let lanes = topics.flat_map(|(topic, index)| {
            (0..topic.lanes.len() as u32).map(move |partition| Slot {
                topic: index,
                partition,
            })
        });
        lanes.collect()
    }

    fn end_linger(&mut self, now: Now) {
        while let Some((due, slot, id)) = self.lingering.front().copied()
            && due <= now
        {
            self.lingering.pop_front();
            let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
            if let Some(open) = lane.queue.open.as_mut().filter(|open| open.id == id) {
                open.is_due = true;
                self.list(slot);
            }
        }
    }

    /// Gives up on what has waited too long.
    fn sweep(&mut self, now: Now) {
        self.sweep_at = now.after(sweep_interval(&self.config));
        for slot in self.slots() {
            let lane = &mut self.topics[slot.topic as usize].lanes[slot.partition as usize];
            let timeout = self.config.delivery_timeout;
            let is_overdue = lane
                .queue
                .oldest()
                .is_some_and(|oldest| now.since(oldest) >= timeout);
            if is_overdue {
                if let Some(fault) = self.cluster.last_fault() {
                    lane.queue.note_fault(fault);
                }
                lane.queue.expire(now, timeout);
                self.report(slot);
                self.list(slot);
            }
        }
    }

    /// Bounds may have changed, and topics may have got more partitions.
    pub(super) fn take_in_metadata(&mut self) {
        self.batch_bytes = self.config.batch_bytes.min(self.batch_bytes_max());
        for topic in &mut self.topics {
            let found = self
                .cluster
                .topic(&topic.name)
                .map_or(0, |summary| summary.partitions.len());
            if found > topic.lanes.len() {
                topic.grow(found, self.config.idempotent, &mut self.random);
            }
        }
    }
}

/// Bytes of a record's key, value and headers.
fn payload_bytes(record: &ProducerRecord<'_>) -> usize {
    let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers = record.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.len() + length(*value))
        .sum();
    length(record.key) + length(record.value) + headers
}

fn sweep_interval(config: &ProducerConfig) -> std::time::Duration {
    use std::time::Duration;
    (config.delivery_timeout / 10).clamp(Duration::from_millis(10), Duration::from_millis(500))
}

impl Topic {
    fn grow(&mut self, partition_count: usize, is_idempotent: bool, random: &mut Random) {
        let is_idempotent = is_idempotent && self.acks != Acks::Count(0);
        for partition in self.lanes.len()..partition_count {
            let partition = PartitionIndex(partition as i32);
            let queue = PartitionQueue::new(self.name.clone(), partition, is_idempotent);
            self.lanes.push(Lane {
                queue,
                is_listed: false,
            });
        }
        self.keyless = KeylessPlace::new(partition_count as u32, random);
    }
}

impl Machine for ProducerMachine {
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
        self.end_linger(now);
        if now >= self.sweep_at && !self.outstanding.is_empty() {
            self.sweep(now);
        }
        self.dispatch(now);
        // Dispatching may have asked for metadata or found a new address to dial.
        self.cluster.advance(now);
        self.handle_lost(now);
    }

    fn next_deadline(&self) -> Option<Now> {
        let linger = self.lingering.front().map(|(due, ..)| *due);
        let sweep = (!self.outstanding.is_empty()).then_some(self.sweep_at);
        let own = earliest(
            earliest(linger, sweep),
            earliest(self.agenda.stalled_until, self.identity_deadline()),
        );
        earliest(own, self.cluster.next_deadline())
    }

    fn next_action(&mut self) -> Option<Action> {
        self.cluster.next_action()
    }

    fn take_output(&mut self, connection: ConnectionId, out: &mut VecDeque<Bytes>) {
        self.cluster.take_output(connection, out);
        // Where no answers are expected, this is what makes room.
        self.agenda.ready.extend(self.agenda.crowded.drain(..));
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
