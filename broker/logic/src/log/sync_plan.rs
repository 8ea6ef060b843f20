//! When what was written becomes durable: the only producer of durable ends.
//!
//! [`LogSync`] keeps one log's proofs, [`SyncPlan`] a core's choice between two ways to get them:
//!
//! - While at most [`SYNCED_LOGS_MAX`] logs of the core are dirty, writes carry their own proof (O_DSYNC): each is
//!   durable on completion, and the durable end follows the contiguous prefix of proven writes.
//! - Above that, writes are plain and each log has at most one sync in flight, oldest waiter first, at most
//!   [`SYNCS_IN_FLIGHT_MAX`] per core; what arrives meanwhile rides the next one.
//!
//! Not here: the writes themselves (`super::write`), and what is acknowledged ([`crate::request::acks`]).
//!
//! Invariants (numbers of S as in [`crate::shard::invariants`]):
//! - S2: the durable end moves to X only by a synced write of the contiguous prefix, or by a sync that began after
//!   every write below X had completed.
//! - S3: after a failure nothing is proven any more until the log is opened again.
//!
//! Where a proof should come from a replica's acknowledgement or a journal, it enters here.

use std::collections::VecDeque;

use tackboard_schema::Offset;

use super::position::{Position, StreamByte};
use crate::shard::interface::{LogId, SyncId};

/// Up to so many dirty logs on a core, each write proves itself. Measured: 1.3 to 1.6 times the rate of a group
/// commit by fdatasync at half the CPU while few files are dirty.
pub const SYNCED_LOGS_MAX: u32 = 8;

/// Syncs of a core that are in flight. Measured: the device saturates at about this depth.
pub const SYNCS_IN_FLIGHT_MAX: u32 = 64;

/// A place up to which something holds: the exact byte, and the last batch boundary at or before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Perhaps in the middle of a batch.
    pub byte: StreamByte,
    /// Not behind `byte`.
    pub end: Position,
}

#[derive(Clone, Copy, Debug)]
struct SyncInFlight {
    id: SyncId,
    target: Reach,
    started_us: u64,
}

/// What is proven of one log, and what is wanted.
#[derive(Clone, Debug)]
pub struct LogSync {
    proven: Reach,
    /// End of the last plain write in the contiguous prefix: up to here only a sync can prove.
    plain_byte: StreamByte,
    /// Somebody wants everything below it durable.
    wanted: Offset,
    in_flight: Option<SyncInFlight>,
    failed: bool,
    /// Since when there may be written bytes that no sync covers, for logs that are synced in the background.
    unsynced_since_us: Option<u64>,
    counted_dirty: bool,
    queued: bool,
}

impl LogSync {
    /// A log that recovery read back and then synced up to `end` (S4).
    pub fn recovered(end: Position) -> Self {
        Self {
            proven: Reach { byte: end.at, end },
            plain_byte: end.at,
            wanted: end.offset,
            in_flight: None,
            failed: false,
            unsynced_since_us: None,
            counted_dirty: false,
            queued: false,
        }
    }

    /// End of what is durable.
    pub fn durable(&self) -> Position {
        self.proven.end
    }

    /// The exact byte up to which everything is durable.
    pub fn proven_byte(&self) -> StreamByte {
        self.proven.byte
    }

    /// Everything below `offset` shall become durable.
    pub fn want(&mut self, offset: Offset) {
        self.wanted = self.wanted.max(offset);
    }

    /// Whether something is wanted durable that is not.
    pub fn is_dirty(&self) -> bool {
        !self.failed && self.wanted > self.proven.end.offset
    }

    /// Whether a write that begins at `start` carries bytes that are wanted durable.
    pub fn is_wanted_behind(&self, start: Position) -> bool {
        self.wanted > start.offset
    }

    /// The contiguous prefix of completed writes grew from `before` to `reach` by one write.
    pub fn note_write(&mut self, before: StreamByte, reach: Reach, synced: bool) {
        if self.failed {
            return;
        }
        if !synced {
            self.plain_byte = reach.byte;
        } else if self.proven.byte >= before {
            self.prove(reach);
        }
    }

    /// Whether a sync would prove something that is wanted.
    pub fn needs_sync(&self) -> bool {
        self.is_dirty() && self.in_flight.is_none() && self.plain_byte > self.proven.byte
    }

    /// Whether a sync is in flight.
    pub fn is_syncing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// When the sync in flight was started.
    pub fn started_us(&self) -> Option<u64> {
        self.in_flight.map(|sync| sync.started_us)
    }

    /// A sync starts; every write below `target` has completed.
    pub fn start(&mut self, id: SyncId, target: Reach, now_us: u64) {
        assert!(self.in_flight.is_none() && !self.failed);
        self.in_flight = Some(SyncInFlight {
            id,
            target,
            started_us: now_us,
        });
        self.unsynced_since_us = Some(now_us);
    }

    /// A sync succeeded; `written` is the contiguous prefix of completed writes now. False: it is not the one in
    /// flight, and proves nothing.
    pub fn finish(&mut self, id: SyncId, written: Reach) -> bool {
        let Some(sync) = self.in_flight.take_if(|sync| sync.id == id) else {
            return false;
        };
        if !self.failed {
            // Behind the last plain write every write brought its own proof.
            let all_proven = self.plain_byte <= sync.target.byte;
            self.prove(if all_proven { written } else { sync.target });
            if self.proven.byte >= written.byte {
                self.unsynced_since_us = None;
            }
        }
        true
    }

    /// Whether this sync is the one in flight.
    pub fn is_flying(&self, id: SyncId) -> bool {
        self.in_flight.is_some_and(|sync| sync.id == id)
    }

    /// A sync failed: it proves nothing.
    pub fn abandon(&mut self, id: SyncId) {
        self.in_flight.take_if(|sync| sync.id == id);
    }

    /// A write or sync failed: nothing is proven from here on (S3).
    pub fn fail(&mut self) {
        self.failed = true;
        self.unsynced_since_us = None;
    }

    /// Under background syncing: bytes up to `written` are written and uncovered since at least `now_us`.
    pub fn note_unsynced(&mut self, written: StreamByte, now_us: u64) {
        if written > self.proven.byte && !self.failed {
            self.unsynced_since_us.get_or_insert(now_us);
        }
    }

    /// Since when written bytes may be uncovered.
    pub fn unsynced_since_us(&self) -> Option<u64> {
        self.unsynced_since_us
    }

    fn prove(&mut self, reach: Reach) {
        assert!(!self.failed, "S3: nothing is proven after a failure");
        if reach.byte > self.proven.byte {
            assert!(reach.end >= self.proven.end && reach.end.at <= reach.byte);
            self.proven = reach;
        }
    }
}

/// A core's choice, over all of its logs.
#[derive(Debug, Default)]
pub struct SyncPlan {
    dirty_logs: u32,
    syncs_in_flight: u32,
    /// Logs that need a sync, oldest waiter first.
    queue: VecDeque<LogId>,
    last_sync: u64,
}

impl SyncPlan {
    /// Whether a write that is wanted durable should prove itself.
    pub fn writes_prove_themselves(&self) -> bool {
        self.dirty_logs <= SYNCED_LOGS_MAX
    }

    /// Takes note of what changed for one log, and queues it if it needs a sync.
    pub fn refresh(&mut self, log: LogId, sync: &mut LogSync) {
        let dirty = sync.is_dirty();
        if dirty != sync.counted_dirty {
            sync.counted_dirty = dirty;
            if dirty {
                self.dirty_logs += 1;
            } else {
                self.dirty_logs -= 1;
            }
        }
        if !sync.queued && sync.needs_sync() {
            sync.queued = true;
            self.queue.push_back(log);
        }
    }

    /// A log leaves the core.
    pub fn forget(&mut self, sync: &mut LogSync) {
        if std::mem::take(&mut sync.counted_dirty) {
            self.dirty_logs -= 1;
        }
    }

    /// The next log whose sync may start now. It may have gone, or not need one any more.
    pub fn next_due(&mut self) -> Option<LogId> {
        if self.syncs_in_flight >= SYNCS_IN_FLIGHT_MAX {
            return None;
        }
        self.queue.pop_front()
    }

    /// The log that [`Self::next_due`] named was found; true if it still needs a sync.
    pub fn take(&mut self, sync: &mut LogSync) -> bool {
        sync.queued = false;
        sync.needs_sync()
    }

    /// A name for a sync that starts.
    pub fn started(&mut self) -> SyncId {
        self.syncs_in_flight += 1;
        self.last_sync += 1;
        SyncId(self.last_sync)
    }

    /// A sync completed, however it went.
    pub fn ended(&mut self) {
        self.syncs_in_flight = self.syncs_in_flight.saturating_sub(1);
    }

    /// Syncs of this core in flight.
    pub fn syncs_in_flight(&self) -> u32 {
        self.syncs_in_flight
    }

    /// Logs of this core that are dirty.
    pub fn dirty_logs(&self) -> u32 {
        self.dirty_logs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten bytes an offset.
    fn reach(offset: i64) -> Reach {
        let byte = StreamByte(offset as u64 * 10);
        Reach {
            byte,
            end: Position {
                offset: Offset(offset),
                at: byte,
            },
        }
    }

    fn log() -> LogSync {
        LogSync::recovered(reach(0).end)
    }

    #[test]
    fn synced_writes_of_the_prefix_prove_themselves() {
        let mut sync = log();
        sync.want(Offset(2));
        sync.note_write(reach(0).byte, reach(1), true);
        assert_eq!(sync.durable().offset, Offset(1));
        assert!(sync.is_dirty() && !sync.needs_sync());
        sync.note_write(reach(1).byte, reach(2), true);
        assert!(!sync.is_dirty());
    }

    #[test]
    fn a_plain_write_holds_everything_behind_it_back_until_a_sync() {
        let mut sync = log();
        sync.want(Offset(9));
        sync.note_write(reach(0).byte, reach(1), false);
        sync.note_write(reach(1).byte, reach(2), true);
        assert_eq!(sync.durable().offset, Offset(0));
        assert!(sync.needs_sync());
        sync.start(SyncId(1), reach(2), 0);
        assert!(!sync.needs_sync(), "one at a time");
        // Completed while the sync is in flight, proven by itself once the gap is closed.
        sync.note_write(reach(2).byte, reach(3), true);
        assert!(sync.finish(SyncId(1), reach(3)));
        assert_eq!(sync.durable().offset, Offset(3));
    }

    #[test]
    fn a_sync_proves_only_what_was_written_before_it_began() {
        let mut sync = log();
        sync.want(Offset(9));
        sync.note_write(reach(0).byte, reach(1), false);
        sync.start(SyncId(1), reach(1), 0);
        sync.note_write(reach(1).byte, reach(2), false);
        sync.finish(SyncId(1), reach(2));
        assert_eq!(sync.durable().offset, Offset(1));
        assert!(sync.needs_sync(), "what arrived meanwhile rides the next");
    }

    #[test]
    fn nothing_is_proven_after_a_failure() {
        let mut sync = log();
        sync.want(Offset(9));
        sync.note_write(reach(0).byte, reach(1), false);
        sync.start(SyncId(1), reach(1), 0);
        sync.fail();
        assert!(sync.finish(SyncId(1), reach(1)));
        sync.note_write(reach(1).byte, reach(2), true);
        assert_eq!(sync.durable().offset, Offset(0));
        assert!(!sync.is_dirty() && !sync.needs_sync());
        assert!(!sync.finish(SyncId(7), reach(2)), "never started");
    }

    #[test]
    fn many_dirty_logs_stop_writes_from_proving_themselves() {
        let mut plan = SyncPlan::default();
        let mut logs: Vec<LogSync> = (0..=SYNCED_LOGS_MAX).map(|_| log()).collect();
        for (slot, sync) in logs.iter_mut().enumerate() {
            assert!(plan.writes_prove_themselves());
            sync.want(Offset(1));
            plan.refresh(
                LogId {
                    slot: slot as u32,
                    generation: 0,
                },
                sync,
            );
        }
        assert!(!plan.writes_prove_themselves());
        logs[0].note_write(reach(0).byte, reach(1), true);
        plan.refresh(
            LogId {
                slot: 0,
                generation: 0,
            },
            &mut logs[0],
        );
        assert!(plan.writes_prove_themselves());
        plan.forget(&mut logs[1]);
        assert_eq!(plan.dirty_logs(), SYNCED_LOGS_MAX - 1);
    }
}
