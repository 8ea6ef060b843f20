//! How a log and a core stand, for whoever asks.

use tackboard_schema::{LeaderEpoch, Offset, TimestampMs};

/// A log as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDescription {
    /// First offset that can be read.
    pub log_start_offset: Offset,
    /// Consumers see offsets below it.
    pub high_watermark: Offset,
    /// The next offset to assign.
    pub log_end_offset: Offset,
    /// Bytes of all segments.
    pub size_bytes: u64,
    /// Number of segments.
    pub segment_count: u32,
    /// The broker's wall clock at the last append.
    pub last_append: Option<TimestampMs>,
    /// The epoch in which this broker leads it.
    pub leader_epoch: LeaderEpoch,
    /// It takes no appends after a storage fault.
    pub fenced: bool,
}

/// What logs take of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSpace {
    /// Bytes of all logs.
    pub bytes: u64,
    /// Bytes of those that give up their oldest segments for the budget.
    pub yielding_bytes: u64,
}

impl std::iter::Sum for LogSpace {
    fn sum<I: Iterator<Item = Self>>(spaces: I) -> Self {
        spaces.fold(Self::default(), |all, more| Self {
            bytes: all.bytes.saturating_add(more.bytes),
            yielding_bytes: all.yielding_bytes.saturating_add(more.yielding_bytes),
        })
    }
}

/// What a core that stops leaves behind because the disk is full. None of it was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Logs that wait for space.
    pub logs: u64,
    /// Bytes of batches that they hold in memory.
    pub bytes: u64,
}

/// What a core did so far. Counters rise only; gauges say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Batches appended.
    pub appended_batches: u64,
    /// Records appended.
    pub appended_records: u64,
    /// Bytes appended.
    pub appended_bytes: u64,
    /// Bytes of segment files that were asked to be reserved ahead of need.
    pub reserved_bytes: u64,
    /// Appends refused.
    pub refused_appends: u64,
    /// Retries that were answered from the producer window.
    pub duplicate_batches: u64,
    /// Writes issued.
    pub writes: u64,
    /// Bytes of writes issued, padding and rewritten tail blocks included.
    pub written_bytes: u64,
    /// Writes that prove durability on completion.
    pub synced_writes: u64,
    /// Syncs issued.
    pub syncs: u64,
    /// Ledger writes issued.
    pub ledger_writes: u64,
    /// Fetches answered.
    pub fetches: u64,
    /// Fetch entries answered from frozen chunks.
    pub fetched_cached: u64,
    /// Fetch entries answered by a disk read.
    pub fetched_disk: u64,
    /// Segments created.
    pub segments_created: u64,
    /// Segments deleted.
    pub segments_deleted: u64,
    /// Bytes of deleted segments, as far as no measurement of free space can have seen them gone.
    pub freed_bytes: u64,
    /// Bytes of segments that went for the budget of all logs.
    pub budget_dropped_bytes: u64,
    /// Logs fenced.
    pub fenced_logs: u64,
    /// Gauge: logs open.
    pub open_logs: u64,
    /// Gauge: fetches parked.
    pub parked_fetches: u64,
    /// Gauge: appends that wait for their acks condition.
    pub waiting_appends: u64,
    /// Gauge: bytes of chunks not wholly written.
    pub append_bytes: u64,
    /// Gauge: bytes of written chunks kept.
    pub tail_cache_bytes: u64,
    /// Gauge: bytes of sparse index in memory.
    pub index_bytes: u64,
}
