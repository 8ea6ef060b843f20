//! Questions that change nothing.

use std::time::Duration;

use tackboard_schema::{LeaderEpoch, Offset, TimestampMs};

use super::Shard;
use super::cold::APPENDS_LINGER_US;
use super::interface::{DiskRead, LogDescription, LogId, Now, ShardStats, TimestampScan};
use crate::log::EpochEnd;
use crate::log::limits::PREALLOCATE_STEP_BYTES_MIN;
use crate::log::position::StreamByte;
use crate::log::stretch::Stretch;

/// How long a deleted log stays in the trash while there is space.
pub const TRASH_DELAY: Duration = Duration::from_secs(60);

/// Below this the disk counts as full whatever its reserve: not even the first step of a segment fits.
pub(super) const SPACE_BYTES_MIN: u64 = PREALLOCATE_STEP_BYTES_MIN;

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

    /// Whether the log is gone, or its topic was deleted: nothing is read from it any more.
    pub fn is_deleted(&self, log: LogId) -> bool {
        self.log(log).is_none_or(|log| log.is_deleting())
    }

    /// The end of a leader epoch; `None`: the log is not open, or the epoch later than its own.
    pub fn epoch_end(&self, log: LogId, asked: LeaderEpoch) -> Option<EpochEnd> {
        self.log(log)?.epoch_end(asked)
    }

    /// Whether the log's end is being cut off: nothing is read from it meanwhile.
    pub fn is_truncating(&self, log: LogId) -> bool {
        self.log(log).is_some_and(|log| log.is_truncating())
    }

    /// Whether the log was cut, or is being cut, since a read of its files was named in that epoch. What such a read
    /// brings is nobody's, and `NOT_LEADER_OR_FOLLOWER` is the answer.
    pub fn was_cut_since(&self, log: LogId, leader_epoch: LeaderEpoch) -> bool {
        self.log(log)
            .is_some_and(|log| log.leader_epoch != leader_epoch || log.is_truncating())
    }

    /// The stretches that hold what a read names, in order and without a gap, as far as they are whole: those that readers
    /// may share.
    pub fn stretches(&self, log: LogId, read: &DiskRead) -> Vec<Stretch> {
        self.log(log).map_or(Vec::new(), |log| log.stretches(read))
    }

    /// The stretch behind `at`, if it is whole and whoever comes to it has to read it from disk.
    pub fn stretch_ahead(&self, log: LogId, at: StreamByte) -> Option<Stretch> {
        self.log(log)?.stretch_ahead(at)
    }

    /// Whether producers use the disk: history then waits for them, and nothing is read that nobody waits for.
    pub fn is_appended_to(&self, now: Now) -> bool {
        let since_us = now.monotonic_us.saturating_sub(self.appended_us);
        since_us <= APPENDS_LINGER_US || self.memory.is_tight()
    }

    /// Whether there is append budget left; the driver stops reading producer sockets while there is not.
    pub fn append_room(&self) -> bool {
        self.memory.has_append_room() && !self.awaits_room()
    }

    /// Whether producers wait until the oldest segments have gone for the budget of all logs. The driver measures free
    /// space anew then, without waiting for the next second.
    pub fn awaits_room(&self) -> bool {
        self.admission.awaits_room(&self.stats)
    }

    /// There is less free space than there should be, or a write has met a full disk since it was measured: nothing that
    /// takes space is begun.
    pub fn is_short_of_space(&self) -> bool {
        let free = self.admission.free_after_appends(&self.stats);
        self.admission.full.is_some()
            || free < self.admission.refused_below().max(SPACE_BYTES_MIN)
            || self.logs().any(|log| log.unwritten_for_space().is_some())
    }

    /// How long a deleted log stays in the trash.
    pub fn trash_delay(&self) -> Duration {
        if self.is_short_of_space() || self.room.is_missing {
            Duration::ZERO
        } else {
            TRASH_DELAY
        }
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
            index_bytes: u64::try_from(self.index_bytes).unwrap_or(0),
            ..self.stats
        }
    }
}
