//! What is due by the clock.

use super::Shard;
use super::interface::{Effects, Now};
use crate::log::limits::STANDSTILL_US;

/// How often retention, producers' expiry and the like are looked at, in microseconds.
pub const HOUSEKEEPING_INTERVAL_US: u64 = 1_000_000;

impl Shard {
    /// Time that passed while the core could not look is not held against its disk.
    pub(super) fn notice_standstill(&mut self, now: Now) {
        if now.monotonic_us > self.heard_us.saturating_add(STANDSTILL_US) {
            self.awake_since_us = now.monotonic_us;
        }
        self.heard_us = now.monotonic_us;
    }

    pub(super) fn tick(&mut self, now: Now, out: &mut Effects) {
        if self.ledger.is_stuck(now.monotonic_us, self.awake_since_us) {
            self.abort(
                "the ledger takes no writes: one has not completed within the bound",
                out,
            );
            return;
        }
        while let Some(parked) = self.parked.next_expired(now.monotonic_us) {
            self.answer_parked(parked, out);
        }
        if now.monotonic_us >= self.due_us.min(self.patience_us) {
            self.due_us = u64::MAX;
            self.patience_us = u64::MAX;
            for log in self.log_ids() {
                self.with_log(now, out, log, |log, cx| log.on_time(cx));
                self.settle(now, log, out);
            }
        }
        // A core that stops begins nothing that is not needed to stop.
        if now.monotonic_us >= self.house_due_us && !self.admission.shutting_down {
            self.house_due_us = now.monotonic_us.saturating_add(HOUSEKEEPING_INTERVAL_US);
            for log in self.log_ids() {
                self.with_log(now, out, log, |log, cx| log.keep_house(cx));
                self.settle(now, log, out);
            }
            self.thin_indexes(now, out);
        }
    }

    /// When to send [`Input::Tick`](super::interface::Input::Tick) at the latest; `None`: nothing waits for time but
    /// the housekeeping of once a second.
    pub fn next_deadline_us(&self) -> Option<u64> {
        let ledger = (!self.unrecorded.is_empty()).then_some(self.ledger_due_us);
        let logs = (self.due_us != u64::MAX).then_some(self.due_us);
        // While nothing is in flight, the tick of once a second is soon enough to give up.
        let patience = (self.io_in_flight > 0).then_some(self.patience_us);
        let checkpoint = self.next_checkpoint_us();
        [
            self.parked.next_deadline_us(),
            ledger,
            logs,
            patience,
            checkpoint,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
