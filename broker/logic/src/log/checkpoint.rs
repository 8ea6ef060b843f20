//! Checkpoints of the active segment: index and producers up to some place, in a file beside it, so that a start after a
//! crash reads on from there instead of from the segment's beginning.
//!
//! One is made where the log ends, and written once everything below is durable: like an index it never speaks of bytes
//! that are not. The file itself is not synced. What a loss of power leaves of it is an earlier checkpoint, which is as
//! true, or does not parse; then the segment is read from its beginning.
//!
//! A file that stays is true as long as its segment is only appended to. Whatever cuts the segment removes it first (see
//! [`super::recovery`]), and it goes when the segment is sealed.
//!
//! Not here: which log is next, and when. That is for the core ([`crate::shard`]), which spreads them over time.

use tackboard_schema::storage::checkpoint;
use tackboard_schema::storage::producer_snapshot::PRODUCER_LENGTH_MAX;

use super::position::Position;
use super::{Log, LogState};
use crate::shard::context::Context;
use crate::shard::interface::{Effect, SegmentBase};

/// A checkpoint saves a start at least so many times its own length.
pub const CHECKPOINT_SAVING_MIN: u64 = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct PendingCheckpoint {
    segment: SegmentBase,
    /// Where it was made.
    end: Position,
    bytes: Box<[u8]>,
}

impl Log {
    /// Whether a start after a crash would have to read so much of the active segment that a checkpoint is due: `share`,
    /// and [`CHECKPOINT_SAVING_MIN`] times the checkpoint's own length.
    pub(crate) fn is_checkpoint_due(&self, share: u64) -> bool {
        let active = self.segments.active();
        let appended = active.bytes_to(self.positions.appended().at);
        let to_recover = appended.saturating_sub(active.checkpoint_bytes);
        let producers = self.producers.len() * PRODUCER_LENGTH_MAX;
        let length = active.index.memory_bytes() + producers as u64;
        to_recover >= share.max(CHECKPOINT_SAVING_MIN * length)
    }

    /// Whether a checkpoint is made or being written.
    pub(crate) fn has_checkpoint_under_way(&self) -> bool {
        self.checkpoint.is_some() || self.segments.active().writing_checkpoint
    }

    /// Makes a checkpoint and wants what it speaks of durable. Returns its length; `None`: this is not the time.
    pub(crate) fn begin_checkpoint(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        let end = self.positions.appended();
        let active = self.segments.active();
        // Each start is to find the damage again.
        let is_damaged = (self.damaged.iter()).any(|range| range.to > active.base.0);
        let is_full = cx.admission.full.is_some() || self.waits_for_space;
        let takes_one = active.is_free() && !is_damaged && !is_full && self.may_checkpoint();
        if !takes_one || self.checkpoint.is_some() {
            return None;
        }
        let summary = active.summary(self.partition, end, cx.now.wall);
        let entries: Vec<_> = active.index.stored_entries(active.base.0).collect();
        let bytes = checkpoint::encode(&summary, &entries, &self.producer_snapshot());
        let bytes = bytes.expect("a segment spans fewer than 2^31 offsets");
        let length = bytes.len() as u64;
        self.checkpoint = Some(PendingCheckpoint {
            segment: active.base,
            end,
            bytes: bytes.into_boxed_slice(),
        });
        self.sync.want(end.offset);
        cx.plan.refresh(self.id, &mut self.sync);
        Some(length)
    }

    fn may_checkpoint(&self) -> bool {
        self.state == LogState::Open && !self.is_truncating() && !self.draining
    }

    /// Writes the checkpoint that waits, if everything it speaks of is durable, or forgets it if its time is over.
    pub(super) fn write_checkpoint_if_durable(&mut self, cx: &mut Context<'_>) {
        let durable = self.sync.durable().at;
        let may = self.may_checkpoint();
        let is_due = |pending: &mut PendingCheckpoint| !may || pending.end.at <= durable;
        let Some(pending) = self.checkpoint.take_if(is_due).filter(|_| may) else {
            return;
        };
        let active = self.segments.active_mut();
        active.checkpoint_bytes = active.bytes_to(pending.end.at);
        active.writing_checkpoint = true;
        self.segment_work += 1;
        cx.start(Effect::WriteCheckpoint {
            log: self.id,
            segment: pending.segment,
            bytes: pending.bytes,
        });
    }

    /// Forgets the checkpoint that waits.
    pub(super) fn drop_checkpoint(&mut self) {
        self.checkpoint = None;
    }

    /// A checkpoint was written, or not: then the next one is due after as many bytes as if it had been.
    pub(crate) fn checkpoint_written(&mut self, base: SegmentBase) {
        let segment = self.segments.find_mut(base);
        if let Some(segment) = segment.filter(|segment| segment.writing_checkpoint) {
            segment.writing_checkpoint = false;
            self.segment_work -= 1;
        }
    }
}
