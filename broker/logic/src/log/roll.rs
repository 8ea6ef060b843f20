//! Segments begin, are closed and come to rest.
//!
//! A roll happens in the middle of an append: the old segment ends where the log ends, the new one's bytes wait in
//! chunks until its file exists. Everything of the old segment becomes wanted durable, whatever the topic's
//! durability: only then is it sealed, so an index on disk never speaks of bytes that are not.

use tackboard_schema::TimestampMs;
use tackboard_schema::storage::index;
use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::storage::producer_snapshot::ProducerSnapshot;

use super::limits::{IO_TIMEOUT_US, PREALLOCATE_STEP_BYTES_MIN};
use super::segment::{Seal, Segment};
use super::{Log, LogState};
use crate::shard::context::Context;
use crate::shard::interface::{Effect, SegmentBase, StorageFault};

/// Part of a segment's age that differs from segment to segment, so that they do not all roll at once: a tenth.
const AGE_JITTER_DIVISOR: i64 = 10;

impl Log {
    /// Rolls if the active segment cannot or should not take a batch of `length` bytes and `records` records.
    pub(super) fn roll_if_due(&mut self, length: u64, records: i64, cx: &mut Context<'_>) {
        let end = self.positions.appended();
        let active = self.segments.active();
        let size = active.bytes_to(end.at);
        if size == 0 {
            return;
        }
        let too_long = size + length > self.segment_bytes_max(cx);
        let offsets = end.offset.0 - active.base.0.0 + records;
        let too_wide = offsets > i64::from(i32::MAX);
        if too_long || too_wide || self.is_too_old(active, cx.now.wall) {
            self.roll(cx);
        }
    }

    /// How large a segment grows: by the log's own setting, and so that there are several within the budget of all logs.
    fn segment_bytes_max(&self, cx: &Context<'_>) -> u64 {
        let of_budget = cx.admission.segment_bytes_max;
        let of_budget = of_budget.filter(|_| self.config.yields_to_budget);
        of_budget.map_or(self.config.segment_bytes, |most| {
            most.min(self.config.segment_bytes)
        })
    }

    fn is_too_old(&self, active: &Segment, wall: TimestampMs) -> bool {
        let Some(first) = active.first_append else {
            return false;
        };
        let spread = (self.config.segment_age_ms / AGE_JITTER_DIVISOR).max(1);
        let jitter = active.base.0.0.wrapping_mul(0x9E37_79B9).rem_euclid(spread);
        wall.0.saturating_sub(first.0) >= self.config.segment_age_ms.saturating_sub(jitter)
    }

    /// Ends the active segment, which is not empty, and begins the next.
    pub(super) fn roll(&mut self, cx: &mut Context<'_>) {
        self.freeze_last(false, cx);
        self.drop_checkpoint();
        let end = self.positions.appended();
        self.sync.want(end.offset);
        cx.plan.refresh(self.id, &mut self.sync);
        let producers = self.producer_snapshot();
        let active = self.segments.active_mut();
        let before = active.index.memory_bytes();
        active.index.shrink();
        *cx.index_bytes += active.index.memory_bytes() as i64 - before as i64;
        self.segments.roll(end, producers);
        self.create_segments(cx);
    }

    /// What replaying the log up to its end would give.
    pub(super) fn producer_snapshot(&self) -> Box<[u8]> {
        let snapshot = ProducerSnapshot {
            partition: self.partition,
            next_offset: self.positions.appended().offset,
            producers: self.producers.entries(),
        };
        snapshot.encode().into_boxed_slice()
    }

    /// Asks for the files that do not exist and are not being created. On a full disk one may have failed and the next
    /// succeeded, so all that is not at rest is looked at.
    pub(super) fn create_segments(&mut self, cx: &mut Context<'_>) {
        let wanted = PREALLOCATE_STEP_BYTES_MIN.min(self.config.segment_bytes);
        let preallocate = if cx.may_reserve(wanted) { wanted } else { 0 };
        let unsealed = self.segments.iter_mut().rev();
        let unsealed = unsealed.take_while(|segment| segment.seal != Seal::Sealed);
        for segment in unsealed.filter(|segment| !segment.created) {
            if !std::mem::replace(&mut segment.creating, true) {
                self.segment_work += 1;
                segment.preallocated = preallocate;
                segment.work_started_us = cx.now.monotonic_us;
                cx.give_up_at(cx.now.monotonic_us.saturating_add(IO_TIMEOUT_US));
                cx.stats.reserved_bytes += preallocate;
                cx.stats.segments_created += 1;
                cx.start(Effect::CreateSegment {
                    log: self.id,
                    segment: segment.base,
                    preallocate,
                });
            }
        }
    }

    /// A segment's file was created, or not.
    pub(crate) fn segment_created(
        &mut self,
        base: SegmentBase,
        result: Result<(), StorageFault>,
        cx: &mut Context<'_>,
    ) {
        let Some(segment) = self
            .segments
            .find_mut(base)
            .filter(|segment| segment.creating)
        else {
            return;
        };
        segment.creating = false;
        segment.created = result.is_ok();
        self.segment_work -= 1;
        match result {
            Ok(()) => {
                let first_append = segment.first_append.unwrap_or(cx.now.wall);
                cx.ledger.record(LedgerRecord::SegmentOpened {
                    partition: self.partition,
                    base_offset: base.0,
                    first_append,
                });
            }
            Err(StorageFault::NoSpace) => self.waits_for_space = true,
            Err(fault) => self.fence(fault, cx),
        }
    }

    /// Extends the active segment's file before appends reach its allocated end.
    pub(super) fn preallocate_if_due(&mut self, cx: &mut Context<'_>) {
        let end = self.positions.appended();
        let segment_bytes = self.segment_bytes_max(cx);
        let active = self.segments.active_mut();
        let appended = active.bytes_to(end.at);
        if !cx.may_reserve(active.preallocate_step) {
            return;
        }
        if let Some(size) = active.preallocate_due(appended, segment_bytes) {
            self.segment_work += 1;
            cx.stats.reserved_bytes += size.saturating_sub(active.preallocated);
            cx.start(Effect::Preallocate {
                log: self.id,
                segment: active.base,
                size,
            });
        }
    }

    /// A preallocation completed. Without it, writes extend the file themselves, which is slower.
    pub(crate) fn preallocated(
        &mut self,
        base: SegmentBase,
        size: u64,
        result: Result<(), StorageFault>,
    ) {
        let segment = self.segments.find_mut(base);
        let Some(segment) = segment.filter(|segment| segment.preallocating) else {
            return;
        };
        segment.preallocating = false;
        self.segment_work -= 1;
        match result {
            Ok(()) => segment.preallocated = segment.preallocated.max(size),
            Err(_) => segment.preallocate_paused = true,
        }
    }

    /// Lets a preallocation that failed be tried again.
    pub(super) fn resume_preallocation(&mut self) {
        self.segments.active_mut().preallocate_paused = false;
    }

    /// Brings the oldest closed segment to rest, once everything of it is durable and nothing else of it is in
    /// flight. Also writes the active segment's
    /// index and snapshot, while the process stops or when they are all that is left.
    pub(super) fn seal_if_due(&mut self, cx: &mut Context<'_>) {
        if self.state != LogState::Open || self.waits_for_space || self.is_truncating() {
            return;
        }
        let durable = self.sync.durable();
        let closed = self.segments.oldest_unsealed();
        let due = closed.map(|segment| {
            let complete = segment.end.is_some_and(|end| end.at <= durable.at);
            (complete && segment.is_free()).then_some(segment.base)
        });
        match due {
            Some(Some(base)) => self.seal(base, cx),
            Some(None) => {}
            None if durable == self.positions.appended() && self.wants_index() => {
                self.seal(self.segments.active().base, cx);
            }
            None => {}
        }
    }

    fn wants_index(&self) -> bool {
        let active = self.segments.active();
        let is_empty = active.start == self.positions.appended().at;
        let stops = self.draining && !is_empty && active.is_idle();
        stops || self.wants_empty_index()
    }

    fn seal(&mut self, base: SegmentBase, cx: &mut Context<'_>) {
        let appended = self.positions.appended();
        let snapshot = self
            .segments
            .find_mut(base)
            .and_then(|segment| segment.producers.take());
        let producers = snapshot.unwrap_or_else(|| self.producer_snapshot());
        let segment = self
            .segments
            .find_mut(base)
            .expect("the segment was just found");
        segment.seal = Seal::Sealing;
        segment.work_started_us = cx.now.monotonic_us;
        cx.give_up_at(cx.now.monotonic_us.saturating_add(IO_TIMEOUT_US));
        self.segment_work += 1;
        let end = segment.end.unwrap_or(appended);
        let summary = segment.summary(self.partition, end, cx.now.wall);
        segment.sealing_bytes = summary.size_bytes;
        let entries: Vec<_> = segment.index.stored_entries(base.0).collect();
        let index =
            index::encode(&summary, &entries).expect("a segment spans fewer than 2^31 offsets");
        cx.start(Effect::SealSegment {
            log: self.id,
            segment: base,
            size: summary.size_bytes,
            index: index.into_boxed_slice(),
            producers,
        });
    }

    /// A segment's index is on the medium, or not.
    pub(crate) fn segment_sealed(
        &mut self,
        base: SegmentBase,
        result: Result<(), StorageFault>,
        cx: &mut Context<'_>,
    ) {
        let segment = self.segments.find_mut(base);
        let Some(segment) = segment.filter(|segment| segment.seal == Seal::Sealing) else {
            return;
        };
        segment.seal = Seal::Open;
        self.segment_work -= 1;
        match result {
            Ok(()) => self.note_seal(base, cx),
            Err(StorageFault::NoSpace) => self.waits_for_space = true,
            Err(fault) => self.fence(fault, cx),
        }
    }

    /// What was sealed may have been the active segment, and may have grown since.
    fn note_seal(&mut self, base: SegmentBase, cx: &mut Context<'_>) {
        let appended = self.positions.appended();
        let segment = self.segments.find_mut(base).expect("it was just found");
        let is_current =
            segment.bytes_to(segment.end.unwrap_or(appended).at) == segment.sealing_bytes;
        segment.preallocated = segment.sealing_bytes;
        if segment.end.is_none() {
            segment.indexed = is_current;
            *cx.ledger_urgent = true;
        } else if is_current {
            self.note_sealed(base, cx);
        }
    }

    fn note_sealed(&mut self, base: SegmentBase, cx: &mut Context<'_>) {
        self.segments.note_sealed(base);
        let segment = self.segments.find(base).expect("it was just found");
        let end = segment.end.expect("it is closed");
        let (max_timestamp, size_bytes) = (segment.max_timestamp, segment.bytes_to(end.at));
        let first_append = segment.first_append.unwrap_or(cx.now.wall);
        let last_append = segment.last_append.unwrap_or(cx.now.wall);
        cx.ledger.record(LedgerRecord::SegmentSealed {
            partition: self.partition,
            base_offset: base.0,
            next_offset: end.offset,
            size_bytes,
            max_timestamp,
            first_append,
            last_append,
        });
        *cx.ledger_urgent = true;
    }

    /// The process stops: everything is wanted durable.
    pub(crate) fn begin_drain(&mut self, cx: &mut Context<'_>) {
        self.draining = true;
        // The last attempt, if the disk was full: what is not written now is given up.
        self.resume_writes(cx);
        self.sync.want(self.positions.appended().offset);
        cx.plan.refresh(self.id, &mut self.sync);
    }

    /// Bytes that a full disk keeps in memory; `None`: the disk is not known to be full. None of them was acknowledged.
    pub(crate) fn unwritten_for_space(&self) -> Option<u64> {
        let written = self.positions.written_byte();
        (self.waits_for_space && self.state == LogState::Open)
            .then(|| self.positions.appended().at.since(written))
    }

    /// Nothing of this log is left to do before the process stops.
    pub(crate) fn is_drained(&self) -> bool {
        if self.has_io_in_flight() || self.is_truncating() {
            return false;
        }
        if self.state != LogState::Open {
            return true;
        }
        if self.waits_for_space {
            // There is no waiting for space: its index and the tail that nobody was promised are left.
            return self.sync.durable() == self.positions.written();
        }
        let appended = self.positions.appended();
        let at_rest = self
            .segments
            .iter()
            .rev()
            .skip(1)
            .all(|s| s.seal == Seal::Sealed);
        self.sync.durable() == appended && at_rest && !self.wants_index()
    }
}
