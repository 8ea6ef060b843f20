//! The segments of one log: consecutive pieces of its stream, a file each.
//!
//! ```text
//! active, not created ──SegmentCreated──▶ active ──roll──▶ rolled ──everything durable──▶ sealing ──SegmentSealed──▶ sealed
//! ```
//!
//! A segment may be rolled before its file exists; its bytes wait in chunks. Only the last segment is active. Nothing
//! is written to a segment before its directory entry is synced (S10).

use std::collections::VecDeque;

use tackboard_schema::storage::index::SegmentSummary;
use tackboard_schema::{Offset, TimestampMs, TopicPartition};

use super::index::SparseIndex;
use super::limits::{PREALLOCATE_STEP_BYTES_MAX, PREALLOCATE_STEP_BYTES_MIN};
use super::position::{Position, StreamByte};
use crate::shard::interface::SegmentBase;

/// How far a rolled segment is on its way to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Active, or rolled and not wholly durable.
    Open,
    /// Index and snapshot are being written.
    Sealing,
    /// At rest: nothing is in flight for it any more, and nothing ever will be but its deletion.
    Sealed,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its name: the offset of its first record.
    pub base: SegmentBase,
    /// The stream at its first byte.
    pub start: StreamByte,
    /// Where it ends; `None` while it is active.
    pub end: Option<Position>,
    /// Its file exists and its directory entry is synced.
    pub created: bool,
    /// See [`Seal`].
    pub seal: Seal,
    /// Where its batches begin.
    pub index: SparseIndex,
    /// The greatest timestamp of its records; the least number while there is none.
    pub max_timestamp: TimestampMs,
    /// The broker's wall clock at its first append.
    pub first_append: Option<TimestampMs>,
    /// The broker's wall clock at its last append.
    pub last_append: Option<TimestampMs>,
    /// The producer snapshot as of its end, kept from the roll to the seal.
    pub producers: Option<Box<[u8]>>,
    /// Length of the file that the seal in flight leaves.
    pub sealing_bytes: u64,
    /// The index and snapshot on disk are true of it as it is now, though it is active.
    pub indexed: bool,
    /// How many of its bytes the checkpoint on disk covers, or the last one that was tried.
    pub checkpoint_bytes: u64,
    /// A checkpoint is being written.
    pub writing_checkpoint: bool,
    /// How far its file is known to be allocated.
    pub preallocated: u64,
    /// Its creation is in flight.
    pub creating: bool,
    /// When its creation, or else its seal, was started; of use only while one is in flight.
    pub work_started_us: u64,
    /// A preallocation is in flight.
    pub preallocating: bool,
    /// A preallocation failed: none is tried for a while.
    pub preallocate_paused: bool,
    /// The next step of preallocation.
    pub preallocate_step: u64,
}

impl Segment {
    /// A segment that begins where the log ends now and whose file does not exist yet.
    pub fn new(at: Position, preallocated: u64) -> Self {
        Self {
            base: SegmentBase(at.offset),
            start: at.at,
            end: None,
            created: false,
            seal: Seal::Open,
            index: SparseIndex::default(),
            max_timestamp: TimestampMs(i64::MIN),
            first_append: None,
            last_append: None,
            producers: None,
            sealing_bytes: 0,
            indexed: false,
            checkpoint_bytes: 0,
            writing_checkpoint: false,
            preallocated,
            creating: false,
            work_started_us: 0,
            preallocating: false,
            preallocate_paused: false,
            preallocate_step: PREALLOCATE_STEP_BYTES_MIN,
        }
    }

    /// Its file exists and nothing of it is in flight but writes; its index on disk, if any, is out of date.
    pub fn is_idle(&self) -> bool {
        self.is_free() && !self.indexed
    }

    /// Its file exists and nothing of it is in flight but writes.
    pub fn is_free(&self) -> bool {
        let working = self.preallocating || self.writing_checkpoint;
        self.created && self.seal == Seal::Open && !working
    }

    /// Bytes of the segment up to `at`, which is its end or lies in it.
    pub fn bytes_to(&self, at: StreamByte) -> u64 {
        at.since(self.start)
    }

    /// What is known of it up to `end`, which is its end or that of the log.
    pub fn summary(
        &self,
        partition: TopicPartition,
        end: Position,
        wall: TimestampMs,
    ) -> SegmentSummary {
        SegmentSummary {
            partition,
            base_offset: self.base.0,
            next_offset: end.offset,
            size_bytes: self.bytes_to(end.at),
            max_timestamp: self.max_timestamp,
            first_append: self.first_append.unwrap_or(wall),
            last_append: self.last_append.unwrap_or(wall),
        }
    }

    /// Takes note of a batch placed at `at`.
    pub fn note_batch(
        &mut self,
        at: Position,
        max_timestamp: TimestampMs,
        wall: TimestampMs,
        index_interval_bytes: u32,
    ) {
        let relative = (at.offset.0 - self.base.0.0) as u32;
        let file_at = self.bytes_to(at.at) as u32;
        self.index
            .note(relative, file_at, self.max_timestamp, index_interval_bytes);
        self.max_timestamp = self.max_timestamp.max(max_timestamp);
        self.first_append.get_or_insert(wall);
        self.last_append = Some(self.last_append.map_or(wall, |last| last.max(wall)));
        self.indexed = false;
    }

    /// The size to preallocate to, if the file should grow now: before appends reach its allocated end.
    pub fn preallocate_due(&mut self, appended: u64, segment_bytes: u64) -> Option<u64> {
        let room = self.preallocated.saturating_sub(appended);
        let wanted = !self.preallocating
            && !self.preallocate_paused
            && self.created
            && self.end.is_none()
            && self.seal == Seal::Open
            // As long as the index is true nothing was appended, and the file has its real length.
            && !self.indexed;
        if !wanted || room >= self.preallocate_step / 2 || self.preallocated >= segment_bytes {
            return None;
        }
        let size = (appended.max(self.preallocated) + self.preallocate_step).min(segment_bytes);
        self.preallocating = true;
        self.preallocate_step = (self.preallocate_step * 2).min(PREALLOCATE_STEP_BYTES_MAX);
        Some(size)
    }
}

/// All segments of one log, oldest first; never empty, and only the last is active.
#[derive(Clone, Debug)]
pub struct Segments {
    list: VecDeque<Segment>,
    /// The first so many are sealed.
    sealed: usize,
}

impl Segments {
    /// From what recovery found: at least one.
    pub fn new(list: VecDeque<Segment>) -> Self {
        assert!(!list.is_empty(), "a log has an active segment");
        let mut segments = Self { list, sealed: 0 };
        segments.skip_sealed();
        segments
    }

    /// The segment that is appended to.
    pub fn active(&self) -> &Segment {
        &self.list[self.list.len() - 1]
    }

    /// The segment that is appended to.
    pub fn active_mut(&mut self) -> &mut Segment {
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// The oldest segment.
    pub fn oldest(&self) -> &Segment {
        &self.list[0]
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> + '_ {
        self.list.iter()
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Segment> + '_ {
        self.list.iter_mut()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Ends the active segment at `at` and begins the next one there.
    pub fn roll(&mut self, at: Position, producers: Box<[u8]>) {
        let active = self.active_mut();
        assert!(at.at > active.start, "an empty segment is not rolled");
        active.end = Some(at);
        active.producers = Some(producers);
        self.list.push_back(Segment::new(at, 0));
    }

    /// The segment of this name.
    pub fn find(&self, base: SegmentBase) -> Option<&Segment> {
        let index = self.list.partition_point(|segment| segment.base < base);
        self.list.get(index).filter(|segment| segment.base == base)
    }

    /// The segment of this name.
    pub fn find_mut(&mut self, base: SegmentBase) -> Option<&mut Segment> {
        let index = self.list.partition_point(|segment| segment.base < base);
        self.list
            .get_mut(index)
            .filter(|segment| segment.base == base)
    }

    /// Index of the segment that holds `offset`, or would.
    pub fn holding(&self, offset: Offset) -> Option<usize> {
        let behind = self
            .list
            .partition_point(|segment| segment.base.0 <= offset);
        behind.checked_sub(1)
    }

    /// Index of the segment that holds the byte behind `at`: at a segment's end, the one that follows.
    pub fn behind(&self, at: StreamByte) -> usize {
        let behind = self.list.partition_point(|segment| segment.start <= at);
        behind.saturating_sub(1)
    }

    /// A segment by index.
    pub fn get(&self, index: usize) -> Option<&Segment> {
        self.list.get(index)
    }

    /// The segment that ends at `at`; the oldest one if none ends there or behind.
    pub fn holding_end(&self, at: StreamByte) -> &Segment {
        let behind = self.list.partition_point(|segment| segment.start < at);
        &self.list[behind.saturating_sub(1)]
    }

    /// When the oldest creation or seal in flight was started.
    pub fn oldest_work_us(&self) -> Option<u64> {
        let unsealed = self.list.iter().skip(self.sealed);
        let working = unsealed.filter(|segment| segment.creating || segment.seal == Seal::Sealing);
        working.map(|segment| segment.work_started_us).min()
    }

    /// Takes the oldest out; never the active one.
    pub fn pop_oldest(&mut self) -> Option<Segment> {
        if self.list.len() < 2 {
            return None;
        }
        self.sealed = self.sealed.saturating_sub(1);
        self.list.pop_front()
    }

    /// The oldest closed segment that is not at rest.
    pub fn oldest_unsealed(&self) -> Option<&Segment> {
        self.list
            .get(self.sealed)
            .filter(|segment| segment.end.is_some())
    }

    /// A segment is at rest.
    pub fn note_sealed(&mut self, base: SegmentBase) {
        if let Some(segment) = self.find_mut(base) {
            segment.seal = Seal::Sealed;
        }
        self.skip_sealed();
    }

    fn skip_sealed(&mut self) {
        let rest = self.list.iter().skip(self.sealed);
        self.sealed += rest
            .take_while(|segment| segment.seal == Seal::Sealed)
            .count();
    }
}
