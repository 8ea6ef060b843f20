//! Which log takes its checkpoint next, and when: one at a time, in the order in which they became due, no faster than
//! the bounds below. Under a load that appends faster than that a start after a crash has more to read.
//!
//! Not here: what a checkpoint is ([`crate::log`]).

use super::Shard;
use super::interface::{Effects, LogId, Now};

/// Least time between the beginnings of two checkpoints, in microseconds.
pub const CHECKPOINT_INTERVAL_US: u64 = 2_000;

/// Bytes of checkpoints that a core writes in a second.
pub const CHECKPOINT_BYTES_PER_SECOND: u64 = 8 << 20;

impl Shard {
    /// A log takes a checkpoint when it would have so many bytes to recover, or more.
    pub(super) fn checkpoint_bytes(&self) -> u64 {
        let share = self.config.recovery_bytes / self.stats.open_logs.max(1);
        share.max(self.config.checkpoint_bytes_min)
    }

    /// Begins the next one, if it is time.
    pub(super) fn begin_checkpoint(&mut self, now: Now, out: &mut Effects) {
        if self
            .next_checkpoint_us()
            .is_none_or(|due_us| now.monotonic_us < due_us)
        {
            return;
        }
        self.checkpointing = None;
        let Some(id) = self.uncheckpointed.pop_front() else {
            return;
        };
        let checkpoint_bytes = self.checkpoint_bytes();
        let begun = self.with_log(now, out, id, |log, cx| {
            log.checkpoint_queued = false;
            let is_due = log.is_checkpoint_due(checkpoint_bytes);
            is_due.then(|| log.begin_checkpoint(cx)).flatten()
        });
        let Some(bytes) = begun.flatten() else {
            return;
        };
        self.checkpointing = Some(id);
        let pause_us = bytes * 1_000_000 / CHECKPOINT_BYTES_PER_SECOND;
        let pause_us = pause_us.max(CHECKPOINT_INTERVAL_US);
        self.checkpoint_due_us = now.monotonic_us.saturating_add(pause_us);
        self.settle(now, id, out);
    }

    /// When the next one is to be begun; `None`: none is due, or one is under way.
    pub(super) fn next_checkpoint_us(&self) -> Option<u64> {
        let is_under_way = |id: LogId| {
            let log = self.log(id);
            log.is_some_and(|log| log.has_checkpoint_under_way())
        };
        let waits = !self.uncheckpointed.is_empty() && !self.admission.shutting_down;
        (waits && !self.checkpointing.is_some_and(is_under_way)).then_some(self.checkpoint_due_us)
    }
}
