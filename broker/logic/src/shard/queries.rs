//! Questions that change nothing.

use tackboard_schema::{Offset, TimestampMs};

use super::Shard;
use super::interface::{LogDescription, LogId, ShardStats, TimestampScan};

impl Shard {
    /// The log as it stands; `None` if it is not open.
    pub fn describe(&self, log: LogId) -> Option<LogDescription> {
        self.log(log).map(|log| log.describe())
    }

    /// Where to look for the first record at or after `timestamp` from `from_offset` on; `None`: there is no such
    /// record, or the log is not open.
    pub(crate) fn timestamp_scan(
        &self,
        log: LogId,
        timestamp: TimestampMs,
        from_offset: Offset,
    ) -> Option<TimestampScan> {
        self.log(log)?.timestamp_scan(timestamp, from_offset)
    }

    /// Whether there is append budget left; the driver stops reading producer sockets while there is not.
    pub fn append_room(&self) -> bool {
        self.memory.has_append_room()
    }

    /// The new ledger counts: ledgers of earlier runs that are not written again may go.
    pub fn ledger_started(&self) -> bool {
        self.ledger.is_started()
    }

    /// What was done so far.
    pub fn stats(&self) -> ShardStats {
        ShardStats {
            parked_fetches: self.parked.len() as u64,
            waiting_appends: self.logs().map(|log| log.waiting_appends() as u64).sum(),
            append_bytes: self.memory.append_bytes(),
            tail_cache_bytes: self.memory.cache_bytes(),
            ..self.stats
        }
    }
}
