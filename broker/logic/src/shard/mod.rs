//! The machine of one core: composes the logs, the ledger and the waiting requests behind one `step`.
//!
//! - [`interface`]: what goes in and what comes out; start there.
//! - [`Shard::step`] (`step.rs`): one arm per input.
//! - `fetches.rs`: fetches over several logs, answered or parked.
//! - `duties.rs`: what follows an input at the end of a step: syncs, evictions, the ledger.
//! - `checkpoints.rs`: which log takes its checkpoint next, and when.
//! - `time.rs`: what is due by the clock.
//! - `budget.rs`: what goes when all logs together are too large.
//! - [`cold`]: what of the history is in memory, and what is read ahead; a machine of its own, since it is asked while reads
//!   are under way.
//! - [`invariants`]: what must hold after every step.
//!
//! Not here: bytes, files, sockets, clocks.

mod budget;
mod checkpoints;
pub mod cold;
pub(crate) mod context;
mod duties;
mod fetches;
pub mod interface;
pub mod invariants;
pub mod memory;
mod queries;
mod step;
mod tail_depth;
mod time;

use std::collections::VecDeque;

use budget::Room;
use context::{Admission, Context};
use interface::{Effects, LogId, Now, ShardConfig, ShardStats};
use memory::ChunkMemory;

use crate::ledger::LedgerStart;
use crate::ledger::writer::LedgerWriter;
use crate::log::Log;
use crate::log::sync_plan::SyncPlan;
use crate::request::parked::ParkedFetches;

/// A place for a log.
#[derive(Debug)]
struct Slot {
    generation: u32,
    reserved: bool,
    log: Option<Box<Log>>,
}

/// What one core decides.
#[derive(Debug)]
pub struct Shard {
    config: ShardConfig,
    slots: Vec<Slot>,
    free: Vec<u32>,
    memory: ChunkMemory,
    plan: SyncPlan,
    ledger: LedgerWriter,
    parked: ParkedFetches,
    admission: Admission,
    room: Room,
    stats: ShardStats,

    /// Logs that were appended to in this turn.
    turn: Vec<LogId>,
    /// Logs whose durable end the ledger does not know yet.
    unrecorded: VecDeque<LogId>,
    /// Logs of which something waits for the ledger: segments to be unlinked, a truncation.
    await_ledger: Vec<LogId>,
    /// Logs whose checkpoint is due.
    uncheckpointed: VecDeque<LogId>,
    /// The log whose checkpoint was begun last.
    checkpointing: Option<LogId>,
    /// When the next one may be begun.
    checkpoint_due_us: u64,
    last_write: u64,
    /// Operations in flight, the ledger's not counted.
    io_in_flight: u64,
    index_bytes: i64,

    /// When somebody last appended.
    appended_us: u64,
    /// The time of the last input.
    heard_us: u64,
    /// The end of the last standstill.
    awake_since_us: u64,
    /// The earliest time at which any log has something to do.
    due_us: u64,
    /// The earliest time at which a waiter or an operation is given up. It may be long gone already.
    patience_us: u64,
    /// When the durable ends are to be recorded next.
    ledger_due_us: u64,
    /// Something that was recorded must not wait for that.
    ledger_urgent: bool,
    /// When retention is to be looked at next.
    house_due_us: u64,
    drained: bool,
    aborted: bool,
}

impl Shard {
    /// A core without logs. Emits the first write of its ledger, with what `start` holds. Boot deletes the ledgers of
    /// earlier runs that are not written again only when [`Shard::ledger_started`] is true on every core.
    pub fn new(config: ShardConfig, start: LedgerStart, out: &mut Effects) -> Self {
        let ledger =
            LedgerWriter::new(config.core, config.directory_id, config.broker_epoch, start);
        let mut shard = Self {
            memory: ChunkMemory::new(&config),
            slots: Vec::new(),
            free: Vec::new(),
            plan: SyncPlan::new(config.sync_costs),
            ledger,
            parked: ParkedFetches::default(),
            admission: Admission {
                free_bytes: u64::MAX,
                reserve_bytes: config.reserve_bytes,
                cores: config.cores,
                room_bytes: config
                    .log_budget_bytes
                    .map_or(0, |budget| budget::room_bytes(budget, config.reserve_bytes)),
                segment_bytes_max: (config.log_budget_bytes)
                    .map(|budget| budget::segment_bytes_max(budget, config.cores)),
                ..Admission::default()
            },
            room: Room::default(),
            config,
            stats: ShardStats::default(),
            turn: Vec::new(),
            unrecorded: VecDeque::new(),
            await_ledger: Vec::new(),
            uncheckpointed: VecDeque::new(),
            checkpointing: None,
            checkpoint_due_us: 0,
            last_write: 0,
            io_in_flight: 0,
            index_bytes: 0,
            appended_us: 0,
            heard_us: 0,
            awake_since_us: 0,
            due_us: u64::MAX,
            patience_us: u64::MAX,
            ledger_due_us: 0,
            ledger_urgent: false,
            house_due_us: 0,
            drained: false,
            aborted: false,
        };
        shard.flush_ledger(out);
        shard
    }

    /// A name for a log that is about to be recovered and opened.
    pub fn reserve_log(&mut self) -> LogId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                reserved: false,
                log: None,
            });
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.reserved = true;
        LogId {
            slot,
            generation: place.generation,
        }
    }

    fn free_slot(&mut self, log: LogId) {
        let place = &mut self.slots[log.slot as usize];
        place.reserved = false;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(log.slot);
    }

    fn log(&self, id: LogId) -> Option<&Log> {
        let place = self.slots.get(id.slot as usize)?;
        if place.generation == id.generation {
            place.log.as_deref()
        } else {
            None
        }
    }

    fn logs(&self) -> impl Iterator<Item = &Log> + '_ {
        self.slots.iter().filter_map(|place| place.log.as_deref())
    }

    /// Names of the open logs; the caller may change them while it goes through.
    fn log_ids(&self) -> impl Iterator<Item = LogId> + use<> {
        let ids: Vec<_> = self.logs().map(|log| log.id).collect();
        ids.into_iter()
    }

    /// The logs, and beside them the rest of the core as a log sees it.
    fn split<'a>(&'a mut self, now: Now, out: &'a mut Effects) -> (&'a mut [Slot], Context<'a>) {
        let cx = Context {
            now,
            awake_since_us: self.awake_since_us,
            out,
            memory: &mut self.memory,
            plan: &mut self.plan,
            ledger: &mut self.ledger,
            stats: &mut self.stats,
            admission: self.admission,
            last_write: &mut self.last_write,
            io_in_flight: &mut self.io_in_flight,
            due_us: &mut self.due_us,
            patience_us: &mut self.patience_us,
            ledger_urgent: &mut self.ledger_urgent,
            index_bytes: &mut self.index_bytes,
        };
        (&mut self.slots, cx)
    }

    /// Runs `work` on a log with the rest of the core at hand; `None` if the log is not open.
    fn with_log<R>(
        &mut self,
        now: Now,
        out: &mut Effects,
        id: LogId,
        work: impl FnOnce(&mut Log, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let (slots, mut cx) = self.split(now, out);
        let place = slots.get_mut(id.slot as usize)?;
        if place.generation != id.generation {
            return None;
        }
        let log = place.log.as_deref_mut()?;
        Some(work(log, &mut cx))
    }
}
