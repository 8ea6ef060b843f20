//! `ListOffsets`: what the special values stand for, and the search for the first record at or after a time.
//!
//! A search reads from the disk what the time index names, piece after piece. Between two pieces the log goes on: its
//! topic may be deleted, and retention may take the segment that was to be read. Neither is a fault of the disk: the
//! first is answered as an unknown topic, after the second the search goes on at the new log start.
//!
//! Not here: reading. The driver reads what [`LookupStep::Read`] names and reports what it found there.

use tackboard_schema::{Offset, TimestampMs};

use crate::log::RecordSearch;
use crate::shard::Shard;
use crate::shard::interface::{LogId, StorageFault, TimestampScan};

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// −1: the high watermark.
    Latest,
    /// −2: the log start offset.
    Earliest,
    /// The first record at or after this time.
    At(TimestampMs),
}

/// A negative number that stands for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("timestamp {0} is not a time; −1 asks for the latest offset, −2 for the earliest")]
pub struct NotATime(TimestampMs);

impl Wanted {
    /// What the timestamp of a request asks for.
    ///
    /// # Errors
    ///
    /// [`NotATime`].
    pub fn parse(timestamp: TimestampMs) -> Result<Self, NotATime> {
        match timestamp.0 {
            -1 => Ok(Self::Latest),
            -2 => Ok(Self::Earliest),
            0.. => Ok(Self::At(timestamp)),
            _ => Err(NotATime(timestamp)),
        }
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// −1 when no record is that late.
    pub offset: Offset,
    /// The record's timestamp, −1 when there is none.
    pub timestamp: TimestampMs,
}

impl ListedOffset {
    fn special(offset: Offset) -> Self {
        let timestamp = TimestampMs(-1);
        Self { offset, timestamp }
    }
}

/// Why bytes that logic had named could not be read when their turn came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The log has been deleted meanwhile.
    Deleted,
    /// Retention has removed them meanwhile.
    Retired {
        /// Where the log starts now.
        log_start_offset: Offset,
        /// Consumers see offsets below it.
        high_watermark: Offset,
    },
    /// The device refused.
    Fault(StorageFault),
}

impl Unreadable {
    /// Why the bytes of `log` from `offset` on could not be read, the read itself having failed with `fault`.
    pub fn why(shard: &Shard, log: LogId, offset: Offset, fault: StorageFault) -> Self {
        match shard.describe(log) {
            None => Self::Deleted,
            Some(log) if offset < log.log_start_offset => Self::Retired {
                log_start_offset: log.log_start_offset,
                high_watermark: log.high_watermark,
            },
            Some(_) => Self::Fault(fault),
        }
    }
}

/// What a look-up does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupStep {
    /// Read this, look for the record, and report.
    Read(Lookup),
    /// That is the answer.
    Listed(ListedOffset),
    /// The log has been deleted.
    Deleted,
    /// The log's end is being cut off.
    Truncating,
    /// The device refused.
    Fault(StorageFault),
}

/// A search for the first record at or after a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// In which log.
    pub log: LogId,
    /// The time.
    pub timestamp: TimestampMs,
    /// What is read next.
    pub scan: TimestampScan,
}

impl Lookup {
    /// Starts looking an offset up.
    pub fn begin(shard: &Shard, log: LogId, wanted: Wanted) -> LookupStep {
        let Some(described) = shard.describe(log).filter(|_| !shard.is_deleted(log)) else {
            return LookupStep::Deleted;
        };
        if shard.is_truncating(log) {
            return LookupStep::Truncating;
        }
        match wanted {
            Wanted::Latest => LookupStep::Listed(ListedOffset::special(described.high_watermark)),
            Wanted::Earliest => {
                LookupStep::Listed(ListedOffset::special(described.log_start_offset))
            }
            Wanted::At(timestamp) => Self::look_from(shard, log, timestamp, Offset(0)),
        }
    }

    /// The bytes were read and searched.
    pub fn searched(self, shard: &Shard, search: RecordSearch) -> LookupStep {
        match search {
            RecordSearch::Found(record) => LookupStep::Listed(ListedOffset {
                offset: record.offset,
                timestamp: record.timestamp,
            }),
            RecordSearch::Continue { from_offset } => {
                Self::look_from(shard, self.log, self.timestamp, from_offset)
            }
        }
    }

    /// The bytes could not be read. Ends: every turn that goes on from here begins at a higher log start.
    pub fn unreadable(self, shard: &Shard, fault: StorageFault) -> LookupStep {
        match Unreadable::why(shard, self.log, self.scan.from_offset, fault) {
            Unreadable::Deleted => LookupStep::Deleted,
            Unreadable::Retired {
                log_start_offset, ..
            } => Self::look_from(shard, self.log, self.timestamp, log_start_offset),
            Unreadable::Fault(fault) => LookupStep::Fault(fault),
        }
    }

    fn look_from(shard: &Shard, log: LogId, timestamp: TimestampMs, from: Offset) -> LookupStep {
        if shard.is_deleted(log) {
            return LookupStep::Deleted;
        }
        match shard.timestamp_scan(log, timestamp, from) {
            Some(scan) => LookupStep::Read(Self {
                log,
                timestamp,
                scan,
            }),
            None if shard.is_truncating(log) => LookupStep::Truncating,
            None => LookupStep::Listed(ListedOffset::special(Offset(-1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_negative_numbers_stand_for_something_and_the_others_for_nothing() {
        let parse = |ms| Wanted::parse(TimestampMs(ms));
        assert_eq!(parse(-1), Ok(Wanted::Latest));
        assert_eq!(parse(-2), Ok(Wanted::Earliest));
        assert_eq!(parse(0), Ok(Wanted::At(TimestampMs(0))));
        assert_eq!(parse(i64::MAX), Ok(Wanted::At(TimestampMs(i64::MAX))));
        for ms in [-3, i64::MIN] {
            assert_eq!(parse(ms), Err(NotATime(TimestampMs(ms))));
        }
    }
}
