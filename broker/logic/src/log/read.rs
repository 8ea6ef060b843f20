//! What is done with bytes that were read for a request: whole batches are cut out, the record of a time is found.
//!
//! Pure functions over what the disk gave. Checksums are checked here, so bad bytes never reach a consumer.

use std::ops::Range;

use tackboard_schema::{Offset, TimestampMs};

use crate::shard::interface::{DiskRead, TimestampScan};

/// Bytes that should hold a batch and do not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {file_at} of the segment: {what}")]
pub struct Damage {
    /// Position in the segment's file.
    pub file_at: u64,
    /// What is wrong.
    pub what: &'static str,
}

/// The part of `bytes`, read as `read` says, to send: whole batches from the one that holds the offset asked for,
/// as many as fit, at least one. An empty range: nothing below the limit.
pub fn trim_read(_bytes: &[u8], _read: &DiskRead) -> Result<Range<usize>, Damage> {
    Ok(0..0)
}

/// A record and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: TimestampMs,
}

/// Outcome of looking for a record in the bytes of one scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSearch {
    /// The first record at or after the time.
    Found(FoundRecord),
    /// Not in these bytes: ask [`Shard::continue_timestamp`](crate::shard::Shard::continue_timestamp) where to look
    /// next.
    Continue {
        /// No record below this offset counts.
        from_offset: Offset,
    },
}

/// Looks for the first record at or after `timestamp` in `bytes`, read as `scan` says.
pub fn find_record(
    _bytes: &[u8],
    scan: &TimestampScan,
    _timestamp: TimestampMs,
) -> Result<RecordSearch, Damage> {
    Ok(RecordSearch::Continue {
        from_offset: scan.limit_offset,
    })
}
