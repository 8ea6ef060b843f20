//! The configuration as the rest of the broker reads it: typed, checked, complete.
//!
//! Made only by `config::resolve`; whoever holds a [`Config`] need not check it again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tackboard_schema::{Acks, BrokerId, Durability};

use super::settings::Setting;

/// Everything a broker is told at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// This broker's id in the cluster.
    pub broker_id: BrokerId,
    /// Folder of superblock, ledgers, metadata and logs.
    pub data_dir: PathBuf,
    /// CPU ids, one executor pinned to each; index = core. Never empty.
    pub cores: Vec<usize>,
    /// How long an idle core looks for work before it sleeps.
    pub core_spin: Duration,
    /// Native listener that any core serves.
    pub native_bind: SocketAddr,
    /// What clients are told instead of `native_bind`.
    pub native_advertised: Option<(String, u16)>,
    /// Listener for clients of Kafka that any core serves; None: off.
    pub kafka_bind: Option<SocketAddr>,
    /// What they are told instead of `kafka_bind`.
    pub kafka_advertised: Option<(String, u16)>,
    /// Whether a client of Kafka gets a topic by asking for it.
    pub auto_create_topics: bool,
    /// Consumer groups.
    pub groups: GroupConfig,
    /// Core i listens on this address, port + i; port 0: the system picks one for each.
    pub native_core_bind: SocketAddr,
    /// The host that clients are told for the cores' own listeners.
    pub native_core_advertised_host: Option<String>,
    /// Admin HTTP listener; None: off.
    pub http_bind: Option<SocketAddr>,
    /// Level of a produce request that names none, on a topic that names none.
    pub acks_default: Acks,
    /// Floor under every produce request, whatever it names.
    pub acks_min: Acks,
    /// Durability of topics that name none.
    pub durability_default: Durability,
    /// Under `interval`: the longest time between a write and its sync.
    pub durability_interval: Duration,
    /// Under `interval`: the most bytes of one partition between a write and its sync.
    pub durability_interval_bytes: u64,
    /// A segment is rolled before it grows past this.
    pub segment_bytes: u64,
    /// A segment is rolled when its first append is this long ago.
    pub segment_age: Duration,
    /// One offset index entry for so many bytes.
    pub index_interval_bytes: u32,
    /// Age at which a segment is deleted; None: never.
    pub retention: Option<Duration>,
    /// Bytes of a partition above which its oldest segments are deleted; None: no bound.
    pub retention_bytes: Option<u64>,
    /// Bytes of all logs together above which the oldest segments are deleted; None: no bound.
    pub log_budget_bytes: Option<u64>,
    /// What to do where the file system refuses direct I/O.
    pub direct_io: DirectIo,
    /// How very many dirty logs are put on the medium.
    pub syncfs: SyncFs,
    /// What to do where the ledgers are gone.
    pub missing_ledger: MissingLedger,
    /// Below this much free space produce requests are refused.
    pub reserve_bytes: u64,
    /// Largest record batch.
    pub batch_bytes_max: u32,
    /// Largest frame, in either direction; also bounds fetch answers.
    pub frame_bytes_max: u32,
    /// Connections per core.
    pub connections_max: u32,
    /// Connections per core and address; None: no bound of its own.
    pub connections_per_address_max: Option<u32>,
    /// Unanswered requests per connection.
    pub requests_in_flight_max: u32,
    /// Bytes of unanswered requests per connection.
    pub request_bytes_in_flight_max: u64,
    /// Partitions that one core may own.
    pub partitions_max_per_core: u32,
    /// Partitions of a topic whose creator names no number.
    pub default_partitions: i32,
    /// Replicas of a topic whose creator names no number.
    pub default_replication_factor: i16,
    /// Replicas in sync that `acks = all` needs.
    pub min_insync_replicas: i16,
    /// How much memory goes where.
    pub memory: MemoryBudget,
    /// A shutdown that takes longer is ended by force (and the next start recovers).
    pub shutdown_deadline: Duration,
    /// Structured log of the process.
    pub logging: Logging,
    /// Every setting as it was given, in the order of the table, for whoever asks.
    pub stated: Vec<Stated>,
}

/// A setting as it was given. Values are plain: sizes are numbers of bytes, durations of milliseconds, and -1 is no limit.
#[derive(Clone, Debug)]
pub struct Stated {
    /// Which.
    pub setting: &'static Setting,
    /// What holds.
    pub value: String,
    /// What holds unless another value is given.
    pub default: String,
}

/// What to do where the file system refuses direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// Refuse to start.
    Require,
    /// Go on with buffered I/O and say so.
    Prefer,
}

/// Whether the file system may be synced as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncFs {
    /// Where that costs less than syncing each log, and the device is seen to obey.
    Auto,
    /// Never.
    Never,
}

/// What to do when nothing tells what was durable of the logs in the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingLedger {
    /// Refuse to start.
    Refuse,
    /// Keep what holds, cut off what does not, and say so.
    Scan,
}

/// The log of what the broker does, on stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: &'static str,
    /// Text for people or JSON lines for collectors.
    pub format: LogFormat,
}

/// Form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One line for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// How much memory goes where, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// All cores together.
    pub total_bytes: u64,
    /// The part of each core.
    pub per_core: CoreMemory,
}

/// The memory of one core, in bytes. A twentieth of the core's part is left for compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreMemory {
    /// Append buffers not yet written (15 %).
    pub append: u64,
    /// Written buffers kept for consumers that keep up (35 %).
    pub tail_cache: u64,
    /// Reads of history (15 %).
    pub cold_reads: u64,
    /// Receive and send buffers of connections (20 %).
    pub sockets: u64,
    /// Offset and time indexes, producer state (10 %).
    pub indexes: u64,
}

impl MemoryBudget {
    /// Splits `total_bytes` evenly over `core_count` cores and then by the fixed shares.
    pub fn split(total_bytes: u64, core_count: usize) -> Self {
        let core_bytes = total_bytes / core_count.max(1) as u64;
        let share = |percent: u64| core_bytes / 100 * percent;
        Self {
            total_bytes,
            per_core: CoreMemory {
                append: share(15),
                tail_cache: share(35),
                cold_reads: share(15),
                sockets: share(20),
                indexes: share(10),
            },
        }
    }

    /// What one core may use in all.
    pub fn core_bytes(&self, core_count: usize) -> u64 {
        self.total_bytes / core_count.max(1) as u64
    }
}

/// What holds for consumer groups.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Partitions of their internal topic.
    pub offsets_partitions: i32,
    /// How long the first rebalance of an empty group waits for more members.
    pub initial_rebalance_delay: Duration,
    /// The shortest session time-out that a member may ask for.
    pub session_timeout_min: Duration,
    /// The longest.
    pub session_timeout_max: Duration,
    /// Members of one group.
    pub members_max: usize,
    /// Groups of one partition of the internal topic.
    pub groups_max: usize,
    /// Bytes of all of these.
    pub state_bytes_max: usize,
    /// Metadata of one committed offset.
    pub offset_metadata_bytes_max: usize,
    /// How long offsets are kept that nobody uses.
    pub offsets_retention: Duration,
    /// How often it is looked for them.
    pub offsets_retention_check_interval: Duration,
}
