//! The oldest segments go: after a time, or when the log is too large.
//!
//! Whole segments only, never one that reaches the high watermark, never the active one; an active segment that is
//! past its time is rolled first. The log's new start is durable in the ledger before any file is unlinked (S6).

use tackboard_schema::TimestampMs;
use tackboard_schema::storage::ledger::LedgerRecord;

use super::segment::{Seal, Segment};
use super::{Log, LogState};
use crate::ledger::writer::RecordNumber;
use crate::shard::context::Context;
use crate::shard::interface::{Effect, RetentionClock, SegmentBase};

/// A segment that is the log's no more, and whose files still are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoomedSegment {
    base: SegmentBase,
    /// Its files may go when this record is durable.
    record: RecordNumber,
    unlinking: bool,
}

impl DoomedSegment {
    pub(crate) fn is_flying(&self) -> bool {
        self.unlinking
    }
}

impl Log {
    /// About once a second.
    pub(crate) fn keep_house(&mut self, cx: &mut Context<'_>) {
        self.producers.expire(cx.now.monotonic_us);
        self.resume_preallocation();
        if self.state == LogState::Open && !self.is_truncating() {
            self.roll_expired(cx);
            self.drop_expired(cx);
        }
    }

    fn roll_expired(&mut self, cx: &mut Context<'_>) {
        let active = self.segments.active();
        let is_empty = active.start == self.positions.appended().at;
        let settled = self.positions.appended() == self.high_watermark;
        if !is_empty && settled && active.created && self.is_expired(active, cx.now.wall) {
            self.roll(cx);
        }
    }

    fn drop_expired(&mut self, cx: &mut Context<'_>) {
        let from = self.doomed.len();
        let mut by_size = false;
        loop {
            let oldest = self.segments.oldest();
            let Some(end) = oldest.end.filter(|_| oldest.seal == Seal::Sealed) else {
                break;
            };
            // Only what is durable counts: the rest may be gone after a crash, and room made for it too early.
            let left = self.sync.durable().at.max(end.at).since(end.at);
            let too_large = self.config.retention_bytes.is_some_and(|max| left >= max);
            let below = end.offset <= self.high_watermark.offset;
            // First by time, then by size, as Kafka does; what comes to the front by size is due by time the next time.
            let expired = !by_size && self.is_expired(oldest, cx.now.wall);
            by_size |= !expired;
            if !below || !(expired || too_large) {
                break;
            }
            self.log_start = self.log_start.max(end.offset);
            let gone = self
                .segments
                .pop_oldest()
                .expect("a sealed segment is not the active one");
            *cx.index_bytes -= gone.index.memory_bytes() as i64;
            let record = RecordNumber::default();
            self.doomed.push_back(DoomedSegment {
                base: gone.base,
                record,
                unlinking: false,
            });
        }
        if self.doomed.len() == from {
            return;
        }
        self.forget_below_start();
        let offset = self.log_start;
        let record = cx.ledger.record(LedgerRecord::LogStart {
            partition: self.partition,
            offset,
        });
        self.doomed
            .iter_mut()
            .skip(from)
            .for_each(|doomed| doomed.record = record);
        *cx.ledger_urgent = true;
    }

    fn is_expired(&self, segment: &Segment, wall: TimestampMs) -> bool {
        let Some(retention_ms) = self.config.retention_ms else {
            return false;
        };
        let Some(last_append) = segment.last_append else {
            return false;
        };
        let last = match self.config.retention_clock {
            RetentionClock::Append => last_append,
            RetentionClock::Record => last_append.min(segment.max_timestamp),
        };
        wall.0.saturating_sub(last.0) > retention_ms
    }

    /// Damage and epochs that lie wholly below the log's start are nobody's concern any more.
    fn forget_below_start(&mut self) {
        let start = self.log_start;
        self.damaged.retain(|range| range.to > start);
        let superseded = self
            .epochs
            .iter()
            .filter(|(_, begin)| *begin <= start)
            .count();
        self.epochs.drain(..superseded.saturating_sub(1));
    }

    /// Unlinks what the ledger allows. The newest one stays until a later snapshot is on the medium: the producers
    /// would be rebuilt from its own.
    pub(crate) fn unlink_due(&mut self, cx: &mut Context<'_>) {
        // The recovery that follows a cut takes the files of whatever is below the log's start.
        if self.is_truncating() {
            return;
        }
        let durable = cx.ledger.durable();
        let oldest = self.segments.oldest();
        let newest_may_go = oldest.seal == Seal::Sealed || oldest.checkpointed;
        let count = self.doomed.len();
        for (index, doomed) in self.doomed.iter_mut().enumerate() {
            let is_free = index + 1 < count || newest_may_go;
            if is_free
                && doomed.record <= durable
                && !std::mem::replace(&mut doomed.unlinking, true)
            {
                cx.stats.segments_deleted += 1;
                cx.start(Effect::DeleteSegment {
                    log: self.id,
                    segment: doomed.base,
                });
            }
        }
    }

    /// A segment that recovery found below the log's start, kept for its snapshot.
    pub(super) fn linger(&mut self, base: SegmentBase) {
        self.doomed.push_back(DoomedSegment {
            base,
            record: RecordNumber::default(),
            unlinking: false,
        });
    }

    /// A segment's files are unlinked.
    pub(crate) fn segment_deleted(&mut self, base: SegmentBase) {
        self.doomed.retain(|doomed| doomed.base != base);
    }

    /// Whether the active segment, still empty, shall get a snapshot of its own: nothing else keeps what expired.
    pub(super) fn wants_empty_checkpoint(&self) -> bool {
        let active = self.segments.active();
        let is_alone = self.segments.count() == 1 && !self.doomed.is_empty();
        is_alone && active.start == self.positions.appended().at && active.is_idle()
    }

    /// Whether files or a truncation wait for the ledger, or files for the next snapshot.
    pub(crate) fn awaits_ledger(&self) -> bool {
        !self.doomed.is_empty() || self.truncation_awaits_ledger()
    }

    /// Halves the index of the oldest segment that has one worth it. True: memory was given back.
    pub(crate) fn thin_oldest_index(&mut self, cx: &mut Context<'_>) -> bool {
        let count = self.segments.count().saturating_sub(1);
        let closed = self.segments.iter_mut().take(count);
        let Some(segment) = closed.max_by_key(|segment| segment.index.memory_bytes()) else {
            return false;
        };
        let before = segment.index.memory_bytes();
        segment.index.thin_out();
        let after = segment.index.memory_bytes();
        *cx.index_bytes += after as i64 - before as i64;
        after < before
    }
}
