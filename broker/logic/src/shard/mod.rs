//! The machine of one core: composes the logs, the ledger and the waiting requests behind one `step`.
//!
//! Start reading at [`interface`].

pub mod interface;

use tackboard_schema::{Offset, TimestampMs};

use crate::ledger::LedgerStart;
use crate::shard::interface::{
    Effect, Effects, Input, LogDescription, LogId, Now, ShardConfig, ShardStats, TimestampScan,
};

/// What one core decides.
#[derive(Debug)]
pub struct Shard {
    config: ShardConfig,
    stats: ShardStats,
    logs: u32,
}

impl Shard {
    /// A core without logs. Emits the first write of its ledger, a full snapshot of what `start` holds; boot deletes
    /// the ledgers of an earlier start only after every core's first ledger write is on the medium.
    pub fn new(config: ShardConfig, _start: LedgerStart, _out: &mut Effects) -> Self {
        Self {
            config,
            stats: ShardStats::default(),
            logs: 0,
        }
    }

    /// A name for a log that is about to be recovered and opened.
    pub fn reserve_log(&mut self) -> LogId {
        self.logs += 1;
        LogId {
            slot: self.logs - 1,
            generation: 0,
        }
    }

    /// Gives back a name whose log could not be recovered.
    pub fn release_log(&mut self, _log: LogId) {}

    /// Takes one input and appends what follows from it to `out`.
    pub fn step(&mut self, _now: Now, input: Input, out: &mut Effects) {
        if matches!(input, Input::Shutdown) {
            out.push(Effect::Drained);
        }
    }

    /// The log as it stands; `None` if it is not open.
    pub fn describe(&self, _log: LogId) -> Option<LogDescription> {
        None
    }

    /// Where to look for the first record at or after `timestamp`; `None`: there is no such record.
    pub fn find_timestamp(&self, _log: LogId, _timestamp: TimestampMs) -> Option<TimestampScan> {
        None
    }

    /// Where to look next when a scan did not find the record; `None`: there is no such record.
    pub fn continue_timestamp(
        &self,
        _log: LogId,
        _timestamp: TimestampMs,
        _from_offset: Offset,
    ) -> Option<TimestampScan> {
        None
    }

    /// Whether there is append budget left; the driver stops reading producer sockets while there is not.
    pub fn append_room(&self) -> bool {
        self.config.append_bytes > 0
    }

    /// When to send [`Input::Tick`] at the latest; `None`: nothing waits for time.
    pub fn next_deadline_us(&self) -> Option<u64> {
        None
    }

    /// Whether any I/O is in flight or any append waits for it: the watchdog's question.
    pub fn work_in_flight(&self) -> bool {
        false
    }

    /// What was done so far.
    pub fn stats(&self) -> ShardStats {
        self.stats
    }

    /// Checks S1 to S10 as far as one core can see them.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    pub fn check_invariants(&self) {}
}
