//! When what was written becomes durable: the only producer of durable ends.
//!
//! [`LogSync`] keeps one log's proofs, [`SyncPlan`] a core's choice between three ways to get them:
//!
//! - While at most [`SYNCED_LOGS_MAX`] logs of the core are dirty, writes carry their own proof (O_DSYNC): each is
//!   durable on completion, and the durable end follows the contiguous prefix of proven writes.
//! - Above that, writes are plain and each log has at most one sync in flight, oldest waiter first, at most
//!   [`SYNCS_IN_FLIGHT_MAX`] per core; what arrives meanwhile rides the next one.
//! - Where the file system can be synced as a whole, and that costs less than syncing each of the dirty logs, one such
//!   sync proves all that wait. One is in flight; what arrives meanwhile rides the next one.
//!
//! What either costs is measured as it goes ([`SyncCosts`]): it differs between devices by a factor of a hundred, and a
//! sync of the file system pays for whatever else is written there.
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
use crate::shard::interface::{LogId, SyncCosts, SyncId, SyncScope};

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

/// A measured cost moves by one part in so many towards each new measurement.
const COST_WEIGHT: u64 = 8;

/// While logs are synced in one way, what the other is believed to cost moves by one part in so many, for each log,
/// towards what was believed at first: one that was slow for reasons of its own, or while few logs were dirty, is tried
/// again.
const COST_FADE: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct SyncInFlight {
    id: SyncId,
    target: Reach,
    started: Started,
}

/// How and when a sync was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// What it covers.
    pub scope: SyncScope,
    /// When, in microseconds of the clock that never jumps.
    pub at_us: u64,
    /// Syncs of single files that were in flight then, this one included if it is of a file.
    pub files_in_flight: u32,
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
        self.in_flight.map(|sync| sync.started.at_us)
    }

    /// A sync starts; every write below `target` has completed.
    pub fn start(&mut self, id: SyncId, target: Reach, started: Started) {
        assert!(self.in_flight.is_none() && !self.failed);
        self.in_flight = Some(SyncInFlight {
            id,
            target,
            started,
        });
        self.unsynced_since_us = Some(started.at_us);
    }

    /// A sync succeeded; `written` is the contiguous prefix of completed writes now. `None`: it is not the one in
    /// flight, and proves nothing.
    pub fn finish(&mut self, id: SyncId, written: Reach) -> Option<Started> {
        let sync = self.in_flight.take_if(|sync| sync.id == id)?;
        if !self.failed {
            // Behind the last plain write every write brought its own proof.
            let all_proven = self.plain_byte <= sync.target.byte;
            self.prove(if all_proven { written } else { sync.target });
            if self.proven.byte >= written.byte {
                self.unsynced_since_us = None;
            }
        }
        Some(sync.started)
    }

    /// A sync failed: it proves nothing. `None`: it is not the one in flight.
    pub fn abandon(&mut self, id: SyncId) -> Option<Started> {
        let sync = self.in_flight.take_if(|sync| sync.id == id)?;
        Some(sync.started)
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
    /// Syncs in flight of single files.
    files_in_flight: u32,
    /// Logs that wait for the sync of the file system in flight.
    riders_in_flight: u32,
    /// Logs that need a sync, oldest waiter first.
    queue: VecDeque<LogId>,
    last_sync: u64,
    /// `None`: the file system can't be synced as a whole.
    costs: Option<Costs>,
}

#[derive(Clone, Copy, Debug)]
struct Costs {
    /// What was believed at first.
    first: SyncCosts,
    /// What was measured since.
    now: SyncCosts,
}

impl SyncPlan {
    /// With what syncs are believed to cost; `None` where the file system can't be synced as a whole.
    pub fn new(costs: Option<SyncCosts>) -> Self {
        Self {
            costs: costs.map(|first| Costs { first, now: first }),
            ..Self::default()
        }
    }

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

    /// How the logs that wait are to be synced now. `None`: when what is in flight has come back.
    pub fn scope(&mut self) -> Option<SyncScope> {
        if self.queue.is_empty() {
            return None;
        }
        let dirty = u64::from(self.dirty_logs);
        match &mut self.costs {
            Some(costs) if dirty * costs.now.file_us > costs.now.file_system_us => {
                (self.riders_in_flight == 0).then_some(SyncScope::FileSystem)
            }
            _ => (self.files_in_flight < SYNCS_IN_FLIGHT_MAX).then_some(SyncScope::File),
        }
    }

    /// The next log that waits. It may have gone, or not need a sync any more.
    pub fn next_waiting(&mut self) -> Option<LogId> {
        self.queue.pop_front()
    }

    /// The log that [`Self::next_waiting`] named was found; true if it still needs a sync.
    pub fn take(&mut self, sync: &mut LogSync) -> bool {
        sync.queued = false;
        sync.needs_sync()
    }

    /// A sync starts: its name, and what is to be known of it when it ends.
    pub fn started(&mut self, scope: SyncScope, at_us: u64) -> (SyncId, Started) {
        match scope {
            SyncScope::File => self.files_in_flight += 1,
            SyncScope::FileSystem => self.riders_in_flight += 1,
        }
        if let Some(costs) = &mut self.costs {
            let (believed, first) = match scope {
                SyncScope::File => (&mut costs.now.file_system_us, costs.first.file_system_us),
                SyncScope::FileSystem => (&mut costs.now.file_us, costs.first.file_us),
            };
            *believed = towards(*believed, first, COST_FADE);
        }
        self.last_sync += 1;
        let started = Started {
            scope,
            at_us,
            files_in_flight: self.files_in_flight,
        };
        (SyncId(self.last_sync), started)
    }

    /// A sync completed, however it went.
    pub fn ended(&mut self, started: Started, now_us: u64) {
        let took_us = now_us.saturating_sub(started.at_us);
        match started.scope {
            SyncScope::File => {
                // The device works on all of them at once: each costs its share of the time. Of many that start and
                // end together the first is alone when it starts and the last is when it ends.
                let beside = started.files_in_flight.max(self.files_in_flight);
                let share_us = took_us / u64::from(beside.max(1));
                self.files_in_flight = self.files_in_flight.saturating_sub(1);
                if let Some(costs) = &mut self.costs {
                    costs.now.file_us = towards(costs.now.file_us, share_us, COST_WEIGHT).max(1);
                }
            }
            SyncScope::FileSystem => {
                self.riders_in_flight = self.riders_in_flight.saturating_sub(1);
                if let Some(costs) = &mut self.costs
                    && self.riders_in_flight == 0
                {
                    let believed = &mut costs.now.file_system_us;
                    *believed = towards(*believed, took_us, COST_WEIGHT).max(1);
                }
            }
        }
    }

    /// Logs of this core that are dirty.
    pub fn dirty_logs(&self) -> u32 {
        self.dirty_logs
    }
}

/// `value` moved by one part of `parts` towards `target`, and at least by one.
fn towards(value: u64, target: u64, parts: u64) -> u64 {
    let step = value.abs_diff(target).div_ceil(parts);
    if target > value {
        value + step
    } else {
        value - step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Started = Started {
        scope: SyncScope::File,
        at_us: 0,
        files_in_flight: 1,
    };

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
        sync.start(SyncId(1), reach(2), FILE);
        assert!(!sync.needs_sync(), "one at a time");
        // Completed while the sync is in flight, proven by itself once the gap is closed.
        sync.note_write(reach(2).byte, reach(3), true);
        assert_eq!(sync.finish(SyncId(1), reach(3)), Some(FILE));
        assert_eq!(sync.durable().offset, Offset(3));
    }

    #[test]
    fn a_sync_proves_only_what_was_written_before_it_began() {
        let mut sync = log();
        sync.want(Offset(9));
        sync.note_write(reach(0).byte, reach(1), false);
        sync.start(SyncId(1), reach(1), FILE);
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
        sync.start(SyncId(1), reach(1), FILE);
        sync.fail();
        assert_eq!(sync.finish(SyncId(1), reach(1)), Some(FILE));
        sync.note_write(reach(1).byte, reach(2), true);
        assert_eq!(sync.durable().offset, Offset(0));
        assert!(!sync.is_dirty() && !sync.needs_sync());
        assert_eq!(sync.finish(SyncId(7), reach(2)), None, "never started");
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

    const COSTS: SyncCosts = SyncCosts {
        file_us: 100,
        file_system_us: 1000,
    };

    /// A plan with so many dirty logs, all of which wait for a sync.
    fn waiting(count: u32, costs: Option<SyncCosts>) -> (SyncPlan, Vec<LogSync>) {
        let mut plan = SyncPlan::new(costs);
        let mut logs: Vec<LogSync> = (0..count).map(|_| log()).collect();
        for (slot, sync) in (0..).zip(&mut logs) {
            sync.want(Offset(1));
            sync.note_write(reach(0).byte, reach(1), false);
            plan.refresh(
                LogId {
                    slot,
                    generation: 0,
                },
                sync,
            );
        }
        (plan, logs)
    }

    /// Starts what waits, as [`SyncPlan::scope`] says; how many, and of which scope the last was.
    fn start_all(plan: &mut SyncPlan) -> (usize, Option<SyncScope>) {
        let (mut count, mut last) = (0, None);
        while let Some(scope) = plan.scope() {
            last = Some(scope);
            let whole = scope == SyncScope::FileSystem;
            for _ in 0..if whole { usize::MAX } else { 1 } {
                if plan.next_waiting().is_none() {
                    break;
                }
                plan.started(scope, 0);
                count += 1;
            }
        }
        (count, last)
    }

    #[test]
    fn files_are_synced_one_by_one_while_that_costs_less_than_the_file_system() {
        let (mut plan, _) = waiting(10, Some(COSTS));
        assert_eq!(start_all(&mut plan), (10, Some(SyncScope::File)));
        let (mut plan, _) = waiting(11, Some(COSTS));
        assert_eq!(start_all(&mut plan), (11, Some(SyncScope::FileSystem)));
        let (mut plan, _) = waiting(1000, None);
        let most = SYNCS_IN_FLIGHT_MAX as usize;
        assert_eq!(start_all(&mut plan), (most, Some(SyncScope::File)));
    }

    #[test]
    fn what_arrives_during_a_sync_of_the_file_system_rides_the_next_one() {
        let (mut plan, mut logs) = waiting(20, Some(COSTS));
        for _ in 0..10 {
            let log = plan.next_waiting().expect("twenty wait");
            assert!(plan.take(&mut logs[log.slot as usize]));
            plan.started(SyncScope::FileSystem, 0);
        }
        assert_eq!(plan.scope(), None);
        let started = Started {
            scope: SyncScope::FileSystem,
            at_us: 0,
            files_in_flight: 0,
        };
        for _ in 0..9 {
            plan.ended(started, 900);
            assert_eq!(plan.scope(), None, "all riders get off first");
        }
        plan.ended(started, 900);
        assert_eq!(plan.scope(), Some(SyncScope::FileSystem));
    }

    #[test]
    fn files_that_were_slow_while_few_were_dirty_are_tried_again_with_many() {
        let (mut plan, _) = waiting(20, Some(COSTS));
        for _ in 0..20 {
            let (_, alone) = plan.started(SyncScope::File, 0);
            plan.ended(alone, 10_000);
        }
        let mut riders = 0;
        while plan.scope() == Some(SyncScope::FileSystem) {
            let (_, rider) = plan.started(SyncScope::FileSystem, 0);
            plan.ended(rider, 3_000);
            riders += 1;
            assert!(riders < 10_000, "files are tried again some time");
        }
        assert!(riders > 100, "but not soon");
    }

    #[test]
    fn costs_follow_what_is_measured_and_a_bad_experience_fades() {
        let (mut plan, _) = waiting(20, Some(COSTS));
        let slow = Started {
            scope: SyncScope::FileSystem,
            at_us: 0,
            files_in_flight: 0,
        };
        for _ in 0..5 {
            plan.started(SyncScope::FileSystem, 0);
            plan.ended(slow, 1_000_000);
        }
        assert_eq!(plan.scope(), Some(SyncScope::File));
        let mut files = 0;
        while plan.scope() == Some(SyncScope::File) {
            plan.started(SyncScope::File, 0);
            plan.ended(FILE, COSTS.file_us);
            files += 1;
            assert!(files < 10_000, "it is tried again some time");
        }
        assert!(files > 100, "but not soon");
    }
    /// On a disk whose every sync takes 10 ms, however many are in flight, fifty files take 10 ms, and the file system
    /// takes its own time and that of the file which empties the cache.
    #[test]
    fn syncs_that_start_and_end_together_share_their_time() {
        const LOGS: u32 = 50;
        let (mut plan, _) = waiting(
            LOGS,
            Some(SyncCosts {
                file_us: 80,
                file_system_us: 20_000,
            }),
        );
        for round in 0..10 {
            let begun_us = round * 10_000;
            let together: Vec<Started> = (0..LOGS)
                .map(|_| plan.started(SyncScope::File, begun_us).1)
                .collect();
            for started in together {
                plan.ended(started, begun_us + 10_000);
            }
            assert_eq!(plan.scope(), Some(SyncScope::File), "round {round}");
        }
    }
}
