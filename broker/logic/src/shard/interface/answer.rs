//! What requests are answered with, and where the driver finds the bytes of it.

use std::ops::Range;

use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, TimestampMs};

use super::{ChunkId, LogId, SegmentBase};

/// A batch that was appended, or had been before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Time the log gave it; `None` where records keep their own.
    pub log_append_time: Option<TimestampMs>,
    /// Where the log begins.
    pub log_start_offset: Offset,
    /// A retry of a batch that is in the log; `base_offset` is the first one's.
    pub duplicate: bool,
}

/// A log whose end was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Where it ends now: at the offset asked for, or at the start of the batch that held it.
    pub log_end_offset: Offset,
}

/// What a fetch found in one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchAnswer {
    /// Which log.
    pub log: LogId,
    /// `ErrorCode::None` unless nothing could be read.
    pub error: ErrorCode,
    /// Consumers see offsets below it; -1 with an unknown log.
    pub high_watermark: Offset,
    /// Where the log begins; -1 with an unknown log.
    pub log_start_offset: Offset,
    /// Where the bytes are.
    pub data: FetchData,
}

/// Where fetched bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchData {
    /// Nothing to read.
    Empty,
    /// In frozen chunks; whole batches, the first of which may begin before the offset asked for.
    Cached {
        /// Range of [`Effects::slices`].
        slices: Range<u32>,
        /// Their total length.
        bytes: u32,
    },
    /// On disk.
    Disk(DiskRead),
}

/// A piece of a frozen chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedSlice {
    /// Which chunk.
    pub chunk: ChunkId,
    /// From where in it.
    pub at: u32,
    /// Bytes.
    pub length: u32,
}

/// Bytes to read for a fetch. [`crate::log::trim_read`] then finds the part to send.
///
/// The driver may split it into aligned reads of at most 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRead {
    /// From which segment.
    pub segment: SegmentBase,
    /// The start of a batch; not aligned.
    pub file_at: u64,
    /// Bytes.
    pub length: u32,
    /// The offset asked for.
    pub fetch_offset: Offset,
    /// Serve only batches that end at or below it.
    pub limit_offset: Offset,
    /// Most bytes to send, though at least one whole batch.
    pub bytes_max: u32,
    /// The epoch in which the log is led: what was read counts unless
    /// [`Shard::was_cut_since`](crate::shard::Shard::was_cut_since) says otherwise.
    pub leader_epoch: LeaderEpoch,
}

/// Bytes to read to find the first record at or after a time. [`crate::log::find_record`] then looks in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampScan {
    /// From which segment.
    pub segment: SegmentBase,
    /// The start of a batch; not aligned.
    pub file_at: u64,
    /// Bytes.
    pub length: u32,
    /// Records below it do not count.
    pub from_offset: Offset,
    /// Neither do records at or above it.
    pub limit_offset: Offset,
    /// As in [`DiskRead`].
    pub leader_epoch: LeaderEpoch,
}
