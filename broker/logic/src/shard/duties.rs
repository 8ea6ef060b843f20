//! What follows an input at the end of a step: syncs start, the tail cache shrinks, the ledger is written, the core
//! reports that it is drained.

use super::Shard;
use super::interface::{Effect, Effects, LogId, Now, SyncScope, Unwritten};
use super::step::FENCED_LOGS_MAX;
use crate::log::Log;

/// Durable ends reach the ledger at most so late, in microseconds.
pub const LEDGER_INTERVAL_US: u64 = 100_000;

/// Or when a log's durable end is so far ahead of the ledger, in bytes.
pub const LEDGER_LAG_BYTES_MAX: u64 = 16 << 20;

impl Shard {
    /// Takes the consequences of what happened to a log.
    pub(super) fn settle(&mut self, now: Now, id: LogId, out: &mut Effects) {
        let checkpoint_bytes = self.checkpoint_bytes();
        let moved = self.with_log(now, out, id, |log, cx| {
            let moved = log.settle(cx);
            let durable = log.sync.durable();
            let lag = durable.at.since(log.ledger_durable.at);
            let queue = lag > 0 && !std::mem::replace(&mut log.ledger_queued, true);
            let urgent = lag >= LEDGER_LAG_BYTES_MAX;
            let quiet = log.is_deleting() && !log.has_io_in_flight();
            let checkpoint = log.is_checkpoint_due(checkpoint_bytes)
                && !std::mem::replace(&mut log.checkpoint_queued, true);
            let waits = (log.awaits_ledger(), checkpoint);
            (moved, queue, urgent, waits, quiet)
        });
        let Some((moved, queue, urgent, (awaits_ledger, checkpoint), quiet)) = moved else {
            return;
        };
        if queue {
            self.unrecorded.push_back(id);
        }
        if urgent {
            self.ledger_due_us = 0;
        }
        if checkpoint {
            self.uncheckpointed.push_back(id);
        }
        if awaits_ledger && !self.await_ledger.contains(&id) {
            self.await_ledger.push(id);
        }
        if moved > 0 {
            self.wake_parked(id, moved, out);
        }
        if quiet {
            self.finish_delete(now, id, out);
        }
    }

    fn finish_delete(&mut self, now: Now, id: LogId, out: &mut Effects) {
        self.with_log(now, out, id, |log, cx| log.release(cx));
        self.slots[id.slot as usize].log = None;
        self.stats.open_logs -= 1;
        self.free_slot(id);
    }

    /// At the end of every step but an append's.
    pub(super) fn finish_step(&mut self, now: Now, out: &mut Effects) {
        self.begin_checkpoint(now, out);
        self.start_syncs(now, out);
        self.evict(now, out);
        self.keep_ledger(now, out);
        if self.stats.fenced_logs >= FENCED_LOGS_MAX {
            self.abort("storage failed under several logs", out);
        }
        self.report_drained(out);
    }

    fn start_syncs(&mut self, now: Now, out: &mut Effects) {
        while let Some(scope) = self.plan.scope() {
            while let Some(id) = self.plan.next_waiting() {
                self.with_log(now, out, id, |log, cx| {
                    if cx.plan.take(&mut log.sync) && log.is_open() {
                        log.start_sync(scope, cx);
                    }
                });
                if scope == SyncScope::File {
                    break;
                }
            }
        }
    }

    fn evict(&mut self, now: Now, out: &mut Effects) {
        let mut gone = 0;
        while let Some(id) = self.memory.next_to_evict(gone) {
            gone += 1;
            self.with_log(now, out, id, |log, cx| log.evict_oldest(cx));
        }
    }

    /// Halves indexes while they take more than their share, oldest logs first by slot.
    pub(super) fn thin_indexes(&mut self, now: Now, out: &mut Effects) {
        if self.index_bytes <= self.config.index_bytes as i64 {
            return;
        }
        for id in self.log_ids() {
            self.with_log(now, out, id, |log, cx| log.thin_oldest_index(cx));
            if self.index_bytes <= self.config.index_bytes as i64 {
                return;
            }
        }
    }

    fn keep_ledger(&mut self, now: Now, out: &mut Effects) {
        if !self.ledger.is_idle() || !self.ledger.is_started() {
            return;
        }
        let due = now.monotonic_us >= self.ledger_due_us || self.admission.shutting_down;
        if due && !self.unrecorded.is_empty() {
            self.ledger_due_us = now.monotonic_us.saturating_add(LEDGER_INTERVAL_US);
            while let Some(id) = self.unrecorded.pop_front() {
                self.with_log(now, out, id, |log, cx| {
                    log.ledger_queued = false;
                    if log.ledger_durable < log.sync.durable() {
                        log.record_durable(cx);
                    }
                });
            }
            self.flush_ledger(out);
        } else if self.ledger_urgent || (self.admission.shutting_down && self.ledger.has_pending())
        {
            self.flush_ledger(out);
        }
    }

    pub(super) fn flush_ledger(&mut self, out: &mut Effects) {
        if self.ledger.flush(out) {
            self.stats.ledger_writes += 1;
            self.ledger_urgent = false;
        }
    }

    fn report_drained(&mut self, out: &mut Effects) {
        let stopping = self.admission.shutting_down && !self.drained && !self.aborted;
        if !stopping || !self.unrecorded.is_empty() || !self.ledger.is_settled() {
            return;
        }
        if self.logs().all(|log| log.is_drained()) {
            self.drained = true;
            let mut unwritten = Unwritten::default();
            for bytes in self.logs().filter_map(Log::unwritten_for_space) {
                unwritten.logs += 1;
                unwritten.bytes += bytes;
            }
            out.push(Effect::Drained { unwritten });
        }
    }
}
