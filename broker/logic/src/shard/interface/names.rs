//! Names of what logic and driver talk about: logs, chunks, waiting requests, operations, segments; and the time.
//!
//! A name with a generation, or one that is never used twice, lets a late completion be recognised and dropped.

use tackboard_schema::{Offset, TimestampMs};

/// Length of a disk block as direct I/O sees it: every write, chunk and tail block is a multiple of it, in bytes.
pub const BLOCK_BYTES: u32 = 4096;

/// Time, read once per turn by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Microseconds of a clock that never goes back.
    pub monotonic_us: u64,
    /// The wall clock. It may jump; retention and rolling by age follow it.
    pub wall: TimestampMs,
}

/// One open log of this core, allocated by [`Shard::reserve_log`](super::Shard::reserve_log).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId {
    /// Dense index.
    pub slot: u32,
    /// Rises each time the slot is used again.
    pub generation: u32,
}

/// One aligned append buffer: allocated by logic, bytes held by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    /// Dense index, so that the driver keeps a `Vec`.
    pub slot: u32,
    /// Rises each time the slot is used again.
    pub generation: u32,
}

/// The bytes of one received batch, held by the driver until [`Effect::Place`] or [`Effect::Discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadId(pub u32);

/// One waiting entry of a request, named by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One write, named by logic; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// One sync, named by logic; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncId(pub u64);

/// A segment, named by the offset of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentBase(pub Offset);
