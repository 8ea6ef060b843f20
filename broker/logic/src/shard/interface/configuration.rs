//! What governs a log and a core. The driver has resolved it: topic over broker, every value within its bounds.

use tackboard_schema::{Acks, CoreId, Durability};

/// Which clock retention by time reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RetentionClock {
    /// The broker's wall clock when the segment was last appended to.
    #[default]
    Append,
    /// Kafka's rule: the greatest record timestamp, but never later than the last append.
    Record,
}

/// What governs one log: the topic's settings over the broker's defaults, already resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// For appends that name no level.
    pub acks_default: Acks,
    /// Floor that holds whatever an append says.
    pub acks_min: Acks,
    /// How many replicas the partition has, the leader included.
    pub replicas: i16,
    /// When a copy counts; an append may raise it, never lower it.
    pub durability: Durability,
    /// Under [`Durability::Interval`]: longest time between a write and the sync that covers it.
    pub durability_interval_us: u64,
    /// Under [`Durability::Interval`]: most bytes between two syncs.
    pub durability_interval_bytes: u64,
    /// A segment that would grow past this is rolled first.
    pub segment_bytes: u64,
    /// A segment whose first append is older than this is rolled.
    pub segment_age_ms: i64,
    /// One entry of the sparse index for so many bytes of log.
    pub index_interval_bytes: u32,
    /// Segments are kept for so long; `None` keeps them for good.
    pub retention_ms: Option<i64>,
    /// The oldest segments go while the log is larger than this; `None` sets no bound.
    pub retention_bytes: Option<u64>,
    /// Which clock `retention_ms` is measured by.
    pub retention_clock: RetentionClock,
    /// Its oldest segments may go while all logs of the broker exceed [`ShardConfig::log_budget_bytes`].
    pub yields_to_budget: bool,
    /// The longest batch that is taken, in bytes, its 12-byte prefix included.
    pub batch_bytes_max: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            acks_default: Acks::All,
            acks_min: Acks::Count(0),
            replicas: 1,
            durability: Durability::Fsync,
            durability_interval_us: 100_000,
            durability_interval_bytes: 1 << 20,
            segment_bytes: 128 << 20,
            segment_age_ms: 12 * 3_600_000,
            index_interval_bytes: 32 << 10,
            retention_ms: Some(7 * 24 * 3_600_000),
            retention_bytes: None,
            retention_clock: RetentionClock::Append,
            yields_to_budget: true,
            batch_bytes_max: 1_048_588,
        }
    }
}

/// What governs one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardConfig {
    /// This core, for the header of its ledger.
    pub core: CoreId,
    /// Bytes of chunks that are not wholly written: above it [`Shard::append_room`](super::Shard::append_room) is
    /// false; above twice as many, appends are refused with `OVER_BUDGET`.
    pub append_bytes: u64,
    /// Bytes of written chunks that are kept to answer fetches.
    pub tail_cache_bytes: u64,
    /// Of these, what is used even when nobody reads so far back.
    pub tail_cache_least_bytes: u64,
    /// Bytes of sparse index kept in memory; above it the indexes of the oldest segments are thinned out.
    pub index_bytes: u64,
    /// Bytes of active segments that a start after a crash should have to read at most: each log takes a checkpoint when
    /// it has appended its share.
    pub recovery_bytes: u64,
    /// But not for less than so many bytes.
    pub checkpoint_bytes_min: u64,
    /// Free space of the data folder's file system below which appends are refused with `STORAGE_FULL`.
    pub reserve_bytes: u64,
    /// Bytes that the logs of all cores together may have; above it, or when the disk is short of space, the oldest
    /// segments go. `None` sets no bound.
    pub log_budget_bytes: Option<u64>,
    /// Cores that append to the same file system, this one included.
    pub cores: u64,
    /// What syncs are believed to cost before any was measured; `None` where the file system can't be synced as a whole.
    pub sync_costs: Option<SyncCosts>,
    /// The data folder's id, for the header of the ledger.
    pub directory_id: [u8; 16],
    /// This run's number, for the header of the ledger: greater than that of every earlier run.
    pub broker_epoch: u64,
}

/// What it costs to put writes on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncCosts {
    /// One file among many, in microseconds.
    pub file_us: u64,
    /// The whole file system at once, in microseconds.
    pub file_system_us: u64,
}

/// What a sync covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncScope {
    /// One file (`fdatasync`).
    File,
    /// Every file of the file system (`syncfs`, and what makes it reach the medium).
    FileSystem,
}

impl Default for ShardConfig {
    fn default() -> Self {
        Self {
            core: CoreId(0),
            append_bytes: 32 << 20,
            tail_cache_bytes: 64 << 20,
            tail_cache_least_bytes: 64 << 20,
            index_bytes: 16 << 20,
            recovery_bytes: 256 << 20,
            checkpoint_bytes_min: 1 << 20,
            reserve_bytes: 0,
            log_budget_bytes: None,
            cores: 1,
            sync_costs: None,
            directory_id: [0; 16],
            broker_epoch: 0,
        }
    }
}
