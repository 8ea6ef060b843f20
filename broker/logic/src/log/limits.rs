//! The bounds of one log's machine, each with its reason.

/// Writes of one log that are in flight or completed out of order. More adds nothing on one file: direct writes into
/// one inode serialise soon after (measured).
pub const WRITES_IN_FLIGHT_MAX: usize = 4;

/// Longest single write, in bytes: the ring serves longer ones badly.
pub const WRITE_BYTES_MAX: u32 = 1 << 20;

/// While other writes are in flight, whole blocks go out only when so many bytes of them are pending: early small
/// writes cost a quarter to two fifths of the rate (measured).
pub const BACKLOG_WRITE_BYTES_MIN: u64 = 64 << 10;

/// Smallest append buffer, in bytes.
pub const CHUNK_BYTES_MIN: u32 = 16 << 10;

/// Largest append buffer, in bytes, unless a single batch needs more.
pub const CHUNK_BYTES_MAX: u32 = 256 << 10;

/// First and smallest step of preallocation, in bytes: what a cold log holds in advance.
pub const PREALLOCATE_STEP_BYTES_MIN: u64 = 1 << 20;

/// Largest step of preallocation, in bytes.
pub const PREALLOCATE_STEP_BYTES_MAX: u64 = 32 << 20;

/// A write or sync that takes longer than this has failed, in microseconds.
pub const IO_TIMEOUT_US: u64 = 30_000_000;

/// A core that heard nothing, not even the time, for longer than this stood still itself (stopped, suspended, its
/// machine paused), in microseconds. What was in flight then gets [`IO_TIMEOUT_US`] anew: it may long be done, and the
/// completion wait to be read.
pub const STANDSTILL_US: u64 = 5_000_000;

/// Idempotent producers that one log remembers; the one that was silent for longest goes first.
pub const PRODUCERS_PER_LOG_MAX: usize = 10_000;

/// A producer that was silent for so long is forgotten, in microseconds of the clock that never jumps.
pub const PRODUCER_EXPIRY_US: u64 = 24 * 3_600_000_000;

/// Batches of one producer that are remembered to recognise retries: Kafka's number.
pub const PRODUCER_WINDOW_BATCHES: usize = 5;

/// Requests that wait until one log begins further up. They are few, and each is a walk over all of them.
pub const ADVANCES_WAITING_MAX: usize = 64;

/// Longest record batch that recovery and reads believe, in bytes. No setting allows longer ones.
pub const STORED_BATCH_BYTES_MAX: u32 = 64 << 20;

/// An active segment with fewer bytes is not ended for the budget of all logs: many small logs would be cut into crumbs.
pub const BUDGET_ROLL_BYTES_MIN: u64 = 64 << 10;

/// However small the budget of all logs is, a segment that grows may have so many bytes.
pub const BUDGET_SEGMENT_BYTES_MIN: u64 = 1 << 20;
