//! What a log may touch beside itself while it handles an input.

use super::interface::{Effect, Effects, Now, Refusal, ShardStats, Ticket, WriteId};
use super::memory::ChunkMemory;
use super::queries::SPACE_BYTES_MIN;
use crate::ledger::writer::LedgerWriter;
use crate::log::sync_plan::SyncPlan;

/// Whether the broker takes appends at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Admission {
    /// The process is stopping.
    pub shutting_down: bool,
    /// Free and reserved bytes, while the file system is too full.
    pub full: Option<(u64, u64)>,
    /// Free bytes when last asked; everything until then.
    pub free_bytes: u64,
    /// Free bytes to keep.
    pub reserve_bytes: u64,
    /// With a budget of all logs: below so many free bytes producers wait until the oldest segments have gone.
    pub room_bytes: u64,
    /// Segments go, or will, so that there is room again: nobody is refused meanwhile.
    pub makes_room: bool,
    /// Most bytes of a segment whose log gives up its oldest ones for the budget; `None` without a budget.
    pub segment_bytes_max: Option<u64>,
    /// Cores that append to the same file system.
    pub cores: u64,
    /// What this core had appended when the free bytes were asked for.
    pub appended_bytes: u64,
    /// What it had reserved for segments by then.
    pub reserved_bytes: u64,
    /// What deletions had given back by then.
    pub freed_bytes: u64,
    /// Logs that were open by then.
    pub open_logs: u64,
    /// Which measurement that was.
    pub measurement: u64,
}

impl Admission {
    /// Free bytes below which appends are refused. While room is being made, what was under way when producers were
    /// stopped may use the reserve.
    pub fn refused_below(&self) -> u64 {
        if self.makes_room {
            self.reserve_bytes.min(SPACE_BYTES_MIN)
        } else {
            self.reserve_bytes
        }
    }

    /// Whether producers are to wait until the oldest segments have gone. What was reserved counts as taken, since it is
    /// not known who will use it: a measurement tells.
    pub fn awaits_room(&self, stats: &ShardStats) -> bool {
        self.makes_room && self.free_after_reservations(stats) < self.room_bytes
    }

    /// Free bytes now. Between two measurements this core counts what it appends, and takes it that the others append
    /// as much; and what it has deleted.
    pub fn free_after_appends(&self, stats: &ShardStats) -> u64 {
        let since = stats.appended_bytes - self.appended_bytes;
        let freed = stats.freed_bytes - self.freed_bytes;
        self.free_bytes
            .saturating_add(freed)
            .saturating_sub(since.saturating_mul(self.cores))
    }

    /// The same, without what was reserved for segments meanwhile. Appends go to reserved space, so some of it is
    /// counted twice, which errs on the side of the disk.
    fn free_after_reservations(&self, stats: &ShardStats) -> u64 {
        let since = stats.reserved_bytes - self.reserved_bytes;
        self.free_after_appends(stats)
            .saturating_sub(since.saturating_mul(self.cores))
    }
}

/// The rest of the core, as one log sees it.
pub(crate) struct Context<'a> {
    pub now: Now,
    /// Since when the core has not stood still: I/O is not late for longer than that.
    pub awake_since_us: u64,
    pub out: &'a mut Effects,
    pub memory: &'a mut ChunkMemory,
    pub plan: &'a mut SyncPlan,
    pub ledger: &'a mut LedgerWriter,
    pub stats: &'a mut ShardStats,
    pub admission: Admission,
    pub last_write: &'a mut u64,
    /// Operations that were started and have not completed.
    pub io_in_flight: &'a mut u64,
    /// The earliest time at which any log has something to do.
    pub due_us: &'a mut u64,
    /// The earliest time at which somebody or something is given up.
    pub patience_us: &'a mut u64,
    /// Something recorded must reach the ledger now.
    pub ledger_urgent: &'a mut bool,
    /// Index memory changed by so many bytes.
    pub index_bytes: &'a mut i64,
}

impl Context<'_> {
    /// Starts an operation whose completion comes back as an input.
    pub fn start(&mut self, effect: Effect) {
        *self.io_in_flight += 1;
        self.out.push(effect);
    }

    /// Whether a log may reserve so many bytes ahead of its need: no more than half of its share of the free space, of
    /// which what producers would wait for is nobody's.
    pub fn may_reserve(&self, bytes: u64) -> bool {
        let free = self.admission.free_after_reservations(self.stats);
        let free = free.saturating_sub(self.admission.room_bytes);
        free / self.admission.open_logs.max(1) / 2 >= bytes
    }

    pub fn next_write(&mut self) -> WriteId {
        *self.last_write += 1;
        WriteId(*self.last_write)
    }

    /// Something is to be done at `at_us` at the latest.
    pub fn wake_at(&mut self, at_us: u64) {
        *self.due_us = (*self.due_us).min(at_us);
    }

    /// Whoever or whatever is in flight now is given up at `at_us`.
    pub fn give_up_at(&mut self, at_us: u64) {
        *self.patience_us = (*self.patience_us).min(at_us);
    }

    pub fn refuse(&mut self, ticket: Ticket, respond: bool, refusal: Refusal) {
        self.out.push(Effect::AnswerProduce {
            ticket,
            respond,
            outcome: Err(refusal),
        });
    }
}
