//! The truth about one partition.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tackboard_logic::shard::interface::LogConfig;
use tackboard_schema::TopicPartition;

use super::batch::Batch;
use super::producer::{Expected, ProducerTruth};

/// A batch at its place.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Offset of its first record.
    pub base: i64,
    /// Bytes of all batches before it, from the partition's beginning.
    pub bytes_before: u64,
    /// As it must lie on disk: stamped.
    pub bytes: Rc<Vec<u8>>,
    /// As it was sent.
    pub batch: Rc<Batch>,
    /// The wall clock when it was placed.
    pub appended_ms: i64,
    /// The disk was seen to hold it whatever happens.
    pub seen_durable: bool,
    /// A bit of it rotted: it can't be read any more.
    pub rotten: bool,
}

impl Placed {
    /// The offset that follows it.
    pub fn next(&self) -> i64 {
        self.base + self.batch.count()
    }
}

/// A truncation that was begun and not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutting {
    /// Who waits for it.
    pub ticket: u64,
    /// Where the log ends then.
    pub at: i64,
}

/// One partition of one topic; a topic that is created anew is a new partition.
#[derive(Debug)]
pub struct Partition {
    /// Its number in this run.
    pub number: u32,
    /// Its name.
    pub id: TopicPartition,
    /// Its core modulo the number of cores.
    pub shard_key: u64,
    /// Its settings.
    pub config: LogConfig,
    /// Settings that it had before; retention by them may still be noticed.
    pub former_configs: Vec<LogConfig>,
    /// The epoch of the leader, bumped at each start and each truncation.
    pub leader_epoch: i32,
    /// The greatest epoch that was ever named.
    pub granted_epoch: i32,
    /// Its end is being cut off: a recovery may find the log as it was, or cut.
    pub cutting: Option<Cutting>,
    /// It was cut at some time, so that it may ask to look for the leader anew.
    pub was_cut: bool,
    /// Of the topic that coordinators of groups alone write to.
    pub internal: bool,
    /// The topic was deleted.
    pub deleted: bool,
    /// Every batch that may still be in the log, in order and without gaps.
    pub sequence: VecDeque<Placed>,
    /// The next offset.
    pub end: i64,
    /// Bytes of all batches ever in the log.
    pub bytes_ever: u64,
    /// Everything below must survive a kill.
    pub survives_kill: i64,
    /// Everything below must survive a power loss.
    pub survives_power_loss: i64,
    /// The machine lost power since the log was last recovered.
    pub lost_power: bool,
    /// The highest high watermark seen in this process.
    pub high_watermark: i64,
    /// When the high watermark was first seen to be where it is, in microseconds; the past few times.
    pub seen_at: VecDeque<(u64, i64)>,
    /// The highest log start seen in this process.
    pub log_start: i64,
    /// The highest start that somebody asked for: retention is not to blame for what goes below it.
    pub start_asked: i64,
    /// The highest start that somebody was told of: no crash brings back what lies below it.
    pub start_promised: i64,
    /// Idempotent producers.
    pub producers: BTreeMap<i64, ProducerTruth>,
    /// What the log may know of producers: everything, or what was appended at or behind one of these places.
    pub known_from: Vec<i64>,
    /// Offsets that recovery put out of reach, having said so.
    pub damaged: Vec<(i64, i64)>,
}

impl Partition {
    /// A partition without a batch.
    pub fn new(number: u32, id: TopicPartition, shard_key: u64, config: LogConfig) -> Self {
        Self {
            number,
            id,
            shard_key,
            config,
            former_configs: Vec::new(),
            leader_epoch: 0,
            granted_epoch: 0,
            cutting: None,
            was_cut: false,
            internal: false,
            deleted: false,
            sequence: VecDeque::new(),
            end: 0,
            bytes_ever: 0,
            survives_kill: 0,
            survives_power_loss: 0,
            lost_power: false,
            high_watermark: 0,
            seen_at: VecDeque::new(),
            log_start: 0,
            start_asked: 0,
            start_promised: 0,
            producers: BTreeMap::new(),
            known_from: vec![i64::MIN],
            damaged: Vec::new(),
        }
    }

    /// The next epoch.
    pub fn grant_epoch(&mut self) -> i32 {
        self.granted_epoch += 1;
        self.granted_epoch
    }

    /// Where the log ends if it is cut at `offset`.
    pub fn cut_at(&self, offset: i64) -> i64 {
        self.holding(offset).map_or(offset, |placed| placed.base)
    }

    /// The log was cut at `at`, and all that is left is durable. Returns how many batches went.
    pub fn cut(&mut self, at: i64) -> usize {
        let gone = self.lose_from(at);
        self.survives_kill = at;
        self.survives_power_loss = at;
        self.high_watermark = self.high_watermark.min(at);
        self.seen_at.clear();
        self.damaged.retain(|(from, _)| *from < at);
        gone
    }

    /// The settings change.
    pub fn configure(&mut self, config: LogConfig) {
        let former = std::mem::replace(&mut self.config, config);
        self.former_configs.push(former);
    }

    /// The longest batch that it takes: no longer than a segment.
    pub fn batch_bytes_max(&self) -> u64 {
        u64::from(self.config.batch_bytes_max).min(self.config.segment_bytes)
    }

    /// Offset of the first batch whose file wasn't deleted.
    pub fn first(&self) -> i64 {
        self.sequence.front().map_or(self.end, |placed| placed.base)
    }

    /// The batch that holds `offset`.
    pub fn holding(&self, offset: i64) -> Option<&Placed> {
        let index = self
            .sequence
            .partition_point(|placed| placed.next() <= offset);
        self.sequence
            .get(index)
            .filter(|placed| placed.base <= offset)
    }

    /// Index of the first batch that ends above `offset`.
    pub fn index_from(&self, offset: i64) -> usize {
        self.sequence
            .partition_point(|placed| placed.next() <= offset)
    }

    /// Whether recovery may start out of this state with batches ending at `offset`.
    pub fn is_boundary(&self, offset: i64) -> bool {
        offset == self.end || self.sequence.iter().any(|placed| placed.base == offset)
    }

    /// Adds a batch at the end.
    pub fn place(&mut self, batch: &Rc<Batch>, bytes: Vec<u8>, wall_ms: i64) {
        let length = bytes.len() as u64;
        let placed = Placed {
            base: self.end,
            bytes_before: self.bytes_ever,
            bytes: Rc::new(bytes),
            batch: batch.clone(),
            appended_ms: wall_ms,
            seen_durable: false,
            rotten: false,
        };
        self.remember(&placed);
        self.end = placed.next();
        self.bytes_ever += length;
        self.sequence.push_back(placed);
    }

    /// Everything from `end` on is gone. Returns how many batches that were.
    pub fn lose_from(&mut self, end: i64) -> usize {
        let kept = self.index_from(end);
        let lost = self.sequence.len() - kept;
        if let Some(first) = self.sequence.get(kept) {
            self.bytes_ever = first.bytes_before;
        }
        self.sequence.truncate(kept);
        self.end = end;
        self.survives_kill = self.survives_kill.min(end);
        self.survives_power_loss = self.survives_power_loss.min(end);
        for producer in self.producers.values_mut() {
            producer.lose_from(end);
        }
        lost
    }

    /// Files with everything below `start` were deleted.
    pub fn forget_below(&mut self, start: i64) {
        let gone = self.index_from(start);
        self.sequence.drain(..gone);
    }

    /// The log may know of producers only what was appended at or behind `start`: it was recovered from there, or had
    /// forgotten a producer that began anew there.
    pub fn note_known_from(&mut self, start: i64) {
        if !self.known_from.contains(&start) {
            self.known_from.push(start);
        }
    }

    /// What may become of a batch, given all that the log may know.
    pub fn expect(&self, batch: &Batch) -> Vec<Expected> {
        let known = batch
            .stamp
            .and_then(|stamp| Some((stamp, self.producers.get(&stamp.id)?)));
        let Some((stamp, producer)) = known else {
            return vec![Expected::Append];
        };
        let views = self.known_from.iter();
        views
            .map(|from| producer.expect(stamp, batch.count(), *from))
            .collect()
    }

    fn remember(&mut self, placed: &Placed) {
        let Some(stamp) = placed.batch.stamp else {
            return;
        };
        let (count, base) = (placed.batch.count(), placed.base);
        let producer = self.producers.entry(stamp.id).or_default();
        producer.record(stamp, count, base, placed.appended_ms);
    }
}
