//! The oldest segments go: after a time, when the log is too large, when all logs together are (`shard/budget.rs` says
//! which), or when a client moved the log's start behind them (`advance.rs`).
//!
//! Whole segments only, never one that reaches the high watermark, never the active one; an active segment that is
//! past its time is rolled first. The log's new start is durable in the ledger before any file is unlinked (S6).

use tackboard_schema::TimestampMs;

use super::limits::BUDGET_ROLL_BYTES_MIN;
use super::position::Position;
use super::segment::{Seal, Segment};
use super::{Log, LogState};
use crate::ledger::writer::RecordNumber;
use crate::shard::context::Context;
use crate::shard::interface::{Effect, RetentionClock, SegmentBase};

/// A segment that is the log's no more, and whose files still are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoomedSegment {
    base: SegmentBase,
    /// Of its log file, as far as known.
    bytes: u64,
    /// Its files may go when this record is durable.
    record: RecordNumber,
    /// They are being unlinked, begun after this measurement of free space.
    unlinking: Option<u64>,
}

/// An active segment that can be ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endable {
    /// When it was begun.
    pub first_append: Option<TimestampMs>,
    pub bytes: u64,
    /// Bytes of a segment before it that can't go until there is a snapshot behind it.
    pub lingering_bytes: u64,
}

impl DoomedSegment {
    pub(crate) fn is_flying(&self) -> bool {
        self.unlinking.is_some()
    }
}

impl Log {
    /// About once a second.
    pub(crate) fn keep_house(&mut self, cx: &mut Context<'_>) {
        self.producers.expire(cx.now.monotonic_us);
        self.resume_preallocation();
        if self.state == LogState::Open && !self.is_truncating() {
            self.roll_finished(cx);
            self.drop_passed(cx);
            self.drop_expired(cx);
        }
    }

    /// Ends an active segment that has nothing but what may go.
    fn roll_finished(&mut self, cx: &mut Context<'_>) {
        let active = self.segments.active();
        let is_passed = self.log_start == self.positions.appended().offset;
        let is_empty = active.start == self.positions.appended().at;
        let settled = self.positions.appended() == self.high_watermark;
        if !is_empty
            && settled
            && active.created
            && (is_passed || self.is_expired(active, cx.now.wall))
        {
            self.roll(cx);
        }
    }

    fn drop_expired(&mut self, cx: &mut Context<'_>) {
        let mut by_size = false;
        let mut count = 0;
        while let Some((segment, end)) = self.droppable(count) {
            // Only what is durable counts: the rest may be gone after a crash, and room made for it too early.
            let left = self.sync.durable().at.max(end.at).since(end.at);
            let too_large = self.config.retention_bytes.is_some_and(|max| left >= max);
            // First by time, then by size, as Kafka does; what comes to the front by size is due by time the next time.
            let expired = !by_size && self.is_expired(segment, cx.now.wall);
            by_size |= !expired;
            if !(expired || too_large) {
                break;
            }
            count += 1;
        }
        self.drop_oldest(count, cx);
    }

    /// A segment by its age, the oldest first, and its end, if it may go: it is at rest and wholly below the high
    /// watermark. None behind one that may not go may.
    fn droppable(&self, index: usize) -> Option<(&Segment, Position)> {
        let segment = self.segments.get(index)?;
        let end = segment.end.filter(|_| segment.seal == Seal::Sealed)?;
        (end.offset <= self.high_watermark.offset).then_some((segment, end))
    }

    /// The log begins behind its oldest `count` segments. Their files go once the ledger says so on the medium.
    fn drop_oldest(&mut self, count: usize, cx: &mut Context<'_>) {
        if count == 0 {
            return;
        }
        let offset = self.droppable(count - 1).map(|(_, end)| end.offset);
        self.log_start = self.log_start.max(offset.expect("each of them may go"));
        self.record_log_start(cx);
        for _ in 0..count {
            let gone = self.segments.pop_oldest();
            let gone = gone.expect("a sealed segment is not the active one");
            *cx.index_bytes -= gone.index.memory_bytes() as i64;
            self.doomed.push_back(DoomedSegment {
                base: gone.base,
                bytes: gone.end.map_or(0, |end| gone.bytes_to(end.at)),
                record: self.start_record,
                unlinking: None,
            });
        }
        self.forget_below_start();
    }

    /// Segments that lie wholly below the log's start go.
    pub(super) fn drop_passed(&mut self, cx: &mut Context<'_>) {
        let mut count = 0;
        while let Some((_, end)) = self.droppable(count) {
            if end.offset > self.log_start {
                break;
            }
            count += 1;
        }
        self.drop_oldest(count, cx);
    }

    // ---- the budget of all logs ----------------------------------------------------------------------------------

    /// Whether its oldest segments may go for the budget of all logs.
    pub(crate) fn yields(&self) -> bool {
        self.config.yields_to_budget && self.is_open() && !self.is_truncating()
    }

    /// When a segment was last appended to and how large it is, the oldest first, if it may go now.
    pub(crate) fn yielding(&self, index: usize) -> Option<(Option<TimestampMs>, u64)> {
        let (segment, end) = self.droppable(index)?;
        Some((segment.last_append, segment.bytes_to(end.at)))
    }

    /// The oldest `count` segments go; each of them may.
    pub(crate) fn give(&mut self, count: usize, cx: &mut Context<'_>) {
        self.drop_oldest(count, cx);
    }

    /// The active segment, if it is worth to be ended for what can go then.
    pub(crate) fn endable(&self) -> Option<Endable> {
        let active = self.segments.active();
        let bytes = active.bytes_to(self.positions.appended().at);
        let lingering_bytes = self.lingering().map_or(0, |doomed| doomed.bytes);
        let is_worth_it = bytes.max(lingering_bytes) >= BUDGET_ROLL_BYTES_MIN;
        // One that was ended before is still on its way: it goes first.
        let is_next = self.segments.oldest_unsealed().is_none();
        (is_worth_it && is_next && bytes > 0 && active.created).then_some(Endable {
            first_append: active.first_append,
            bytes,
            lingering_bytes,
        })
    }

    /// Ends the active segment; [`Log::endable`] says whether it may be.
    pub(crate) fn end_active(&mut self, cx: &mut Context<'_>) {
        self.roll(cx);
    }

    /// Bytes of files that go and are not gone yet; without one that stays for its snapshot.
    pub(crate) fn going_bytes(&self) -> u64 {
        let all: u64 = self.doomed.iter().map(|doomed| doomed.bytes).sum();
        all - self.lingering().map_or(0, |doomed| doomed.bytes)
    }

    /// The newest of the segments that go, if it stays until there is a later snapshot.
    fn lingering(&self) -> Option<&DoomedSegment> {
        let newest = self.doomed.back()?;
        (newest.unlinking.is_none() && !self.newest_doomed_may_go()).then_some(newest)
    }

    fn newest_doomed_may_go(&self) -> bool {
        let oldest = self.segments.oldest();
        oldest.seal == Seal::Sealed || oldest.indexed
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
    pub(super) fn forget_below_start(&mut self) {
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
        let newest_may_go = self.newest_doomed_may_go();
        let count = self.doomed.len();
        for (index, doomed) in self.doomed.iter_mut().enumerate() {
            let is_free = index + 1 < count || newest_may_go;
            if is_free && doomed.record <= durable && doomed.unlinking.is_none() {
                doomed.unlinking = Some(cx.admission.measurement);
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
            bytes: 0,
            record: RecordNumber::default(),
            unlinking: None,
        });
    }

    /// A segment's files are unlinked.
    pub(crate) fn segment_deleted(&mut self, base: SegmentBase, cx: &mut Context<'_>) {
        let gone = self.doomed.iter().position(|doomed| doomed.base == base);
        let Some(doomed) = gone.and_then(|index| self.doomed.remove(index)) else {
            return;
        };
        // A measurement since then may have counted it.
        if doomed.unlinking == Some(cx.admission.measurement) {
            cx.stats.freed_bytes += doomed.bytes;
        }
    }

    /// Whether the active segment, still empty, shall get a snapshot of its own: nothing else keeps what expired.
    pub(super) fn wants_empty_index(&self) -> bool {
        let active = self.segments.active();
        let is_alone = self.segments.count() == 1 && !self.doomed.is_empty();
        is_alone && active.start == self.positions.appended().at && active.is_idle()
    }

    /// Whether files, a truncation or a new start wait for the ledger, or files for the next snapshot.
    pub(crate) fn awaits_ledger(&self) -> bool {
        !self.doomed.is_empty() || self.truncation_awaits_ledger() || !self.advances.is_empty()
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
