//! What goes into a core's logic and what comes out of it.
//!
//! [`Shard::step`](super::Shard::step) is total and synchronous. The driver carries out effects strictly in the
//! order given: memory effects at once; I/O is started in that order and may complete in any. It brings each
//! completion back as an [`Input`]. Completions carry ids that are never used twice, and logs and chunks carry
//! generations, so a late completion is recognised and dropped.
//!
//! Not here: bytes. Logic owns positions and ids; the driver owns payloads and chunks.
//!
//! Conventions: offsets that end something are exclusive; `_us` is microseconds of a monotonic clock; `file_at`
//! is a byte position in a segment's file, `at` one in a chunk.

use std::fmt;
use std::ops::Range;

use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{
    Acks, CoreId, Durability, ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId,
    TimestampMs, TopicPartition,
};

use crate::log::recovery::RecoveredLog;

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
    /// Bytes of sparse index kept in memory; above it the indexes of the oldest segments are thinned out.
    pub index_bytes: u64,
    /// Free space of the data folder's file system below which appends are refused with `STORAGE_FULL`.
    pub reserve_bytes: u64,
    /// Cores that append to the same file system, this one included.
    pub cores: u64,
    /// The data folder's id, for the header of the ledger.
    pub directory_id: [u8; 16],
    /// This run's number, for the header of the ledger: greater than that of every earlier run.
    pub broker_epoch: u64,
}

impl Default for ShardConfig {
    fn default() -> Self {
        Self {
            core: CoreId(0),
            append_bytes: 32 << 20,
            tail_cache_bytes: 64 << 20,
            index_bytes: 16 << 20,
            reserve_bytes: 0,
            cores: 1,
            directory_id: [0; 16],
            broker_epoch: 0,
        }
    }
}

/// Opens a log that was recovered.
#[derive(Debug)]
pub struct OpenLog {
    /// The name reserved for it.
    pub log: LogId,
    /// Whose log it is.
    pub topic_partition: TopicPartition,
    /// What governs it.
    pub config: LogConfig,
    /// The epoch in which this broker leads it; every process start grants a new one.
    pub leader_epoch: LeaderEpoch,
    /// What recovery found.
    pub recovered: RecoveredLog,
}

/// Appends one batch, whose bytes were checked by the receiving core.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    /// Where to.
    pub log: LogId,
    /// Whom to answer.
    pub ticket: Ticket,
    /// The batch's header as the client sent it.
    pub header: BatchHeader,
    /// The batch's bytes.
    pub payload: PayloadId,
    /// The level the request named; `None` takes the log's.
    pub acks: Option<Acks>,
    /// The durability the request named; only a higher one than the log's has an effect.
    pub durability: Option<Durability>,
    /// When to give up waiting and answer `REQUEST_TIMED_OUT`.
    pub deadline_us: u64,
}

/// One log that a fetch reads.
#[derive(Clone, Copy, Debug)]
pub struct FetchEntry {
    /// Which log.
    pub log: LogId,
    /// From which offset.
    pub offset: Offset,
    /// Most bytes from this log, though at least one whole batch.
    pub bytes_max: u32,
}

/// Why storage did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFault {
    /// The system call failed.
    Io {
        /// `errno`.
        os_error: i32,
    },
    /// Fewer bytes were moved than asked for.
    Short {
        /// Bytes asked for.
        wanted: u32,
        /// Bytes moved.
        got: u32,
    },
    /// The file system is full. Never fences a log.
    NoSpace,
    /// It took longer than the bound.
    TimedOut,
}

impl fmt::Display for StorageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { os_error } => write!(f, "I/O error (errno {os_error})"),
            Self::Short { wanted, got } => write!(f, "short transfer: {got} of {wanted} bytes"),
            Self::NoSpace => f.write_str("no space left on the device"),
            Self::TimedOut => f.write_str("no completion within the bound"),
        }
    }
}

/// What a core's logic is told.
#[derive(Debug)]
pub enum Input {
    /// A log was recovered: serve it.
    Open(Box<OpenLog>),
    /// A topic's settings changed.
    Configure {
        /// Which log.
        log: LogId,
        /// Its settings from now on.
        config: Box<LogConfig>,
    },
    /// The topic's deletion is committed: waiting requests get `UNKNOWN_TOPIC_OR_PARTITION`, I/O in flight is
    /// awaited, then [`Effect::LogDeleted`]. Behind [`Effect::Drained`] it is left to the next start.
    Delete {
        /// Which log.
        log: LogId,
    },
    /// One batch. A produce entry of several batches is several appends with a ticket each.
    Append(Append),
    /// One fetch over logs of this core.
    Fetch {
        /// Whom to answer.
        ticket: Ticket,
        /// What to read, in the order in which the byte budget is spent.
        entries: Vec<FetchEntry>,
        /// Park until so many bytes are there.
        bytes_min: u32,
        /// Most bytes over all entries, though at least one whole batch.
        bytes_max: u32,
        /// When to answer with what there is.
        deadline_us: u64,
    },
    /// Answer a parked fetch now with what there is.
    HurryFetch {
        /// Which.
        ticket: Ticket,
    },
    /// The connection of a parked fetch is gone: no answer.
    DropFetch {
        /// Which.
        ticket: Ticket,
    },
    /// Everything that had arrived was handed over: issue the writes that are due.
    TurnEnd,
    /// A write completed.
    Written {
        /// Whose.
        log: LogId,
        /// Which.
        write: WriteId,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// A sync completed.
    Synced {
        /// Whose.
        log: LogId,
        /// Which.
        sync: SyncId,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// A preallocation completed. Its failure never fences.
    Preallocated {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// The size asked for.
        size: u64,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// A segment's file exists and its directory entry is synced (S10).
    SegmentCreated {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// A segment's index and producer snapshot are on the medium and its file has its real length.
    SegmentSealed {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// A segment's files are unlinked.
    SegmentDeleted {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
    },
    /// A ledger write is on the medium.
    LedgerWritten {
        /// Which.
        sequence: u64,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// Free space of the data folder's file system, once a second.
    FreeSpace {
        /// In bytes.
        bytes: u64,
    },
    /// Time passed: about every 10 ms while anything waits for time, else every second.
    Tick,
    /// Refuse new appends, answer parked fetches, flush and sync everything, write the ledger, then
    /// [`Effect::Drained`].
    Shutdown,
}

/// Which of a core's two ledger files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerFile {
    /// `ledger/<n>.a`
    A,
    /// `ledger/<n>.b`
    B,
}

/// What a core's logic wants done.
#[derive(Debug)]
pub enum Effect {
    /// Allocate an aligned buffer; its contents may be anything.
    AllocateChunk {
        /// Its name from now on.
        chunk: ChunkId,
        /// Bytes, a multiple of [`BLOCK_BYTES`].
        capacity: u32,
    },
    /// Put bytes into a chunk: the partial tail block of a log that opens.
    Fill {
        /// Which chunk.
        chunk: ChunkId,
        /// Where in it.
        at: u32,
        /// What.
        bytes: Box<[u8]>,
    },
    /// Copy the partial tail block of a frozen chunk to position 0 of its successor.
    CopyTail {
        /// The frozen chunk.
        from: ChunkId,
        /// Where the partial block begins in it.
        from_at: u32,
        /// Bytes, fewer than [`BLOCK_BYTES`].
        length: u32,
        /// The successor.
        to: ChunkId,
    },
    /// Copy a payload into a chunk, stamp the copy, and free the payload.
    Place {
        /// The batch.
        payload: PayloadId,
        /// Where to.
        chunk: ChunkId,
        /// Where in it.
        at: u32,
        /// To stamp.
        base_offset: Offset,
        /// To stamp.
        leader_epoch: LeaderEpoch,
    },
    /// Free a payload that is not appended.
    Discard {
        /// The batch.
        payload: PayloadId,
    },
    /// The chunk is immutable from here. Zero its bytes from `length` to the end of that block.
    Freeze {
        /// Which chunk.
        chunk: ChunkId,
        /// Bytes that are filled.
        length: u32,
    },
    /// Write blocks of a frozen chunk.
    Write {
        /// Whose.
        log: LogId,
        /// Into which segment.
        segment: SegmentBase,
        /// Its name in [`Input::Written`].
        write: WriteId,
        /// From which chunk.
        chunk: ChunkId,
        /// From where in it, a multiple of [`BLOCK_BYTES`].
        at: u32,
        /// Bytes, a multiple of [`BLOCK_BYTES`].
        length: u32,
        /// To where in the file, a multiple of [`BLOCK_BYTES`].
        file_at: u64,
        /// Completion must prove durability (O_DSYNC).
        synced: bool,
    },
    /// `fdatasync` a segment.
    Sync {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// Its name in [`Input::Synced`].
        sync: SyncId,
    },
    /// Extend a segment's file to `size` with size extension. A failure gives back what it took, but never cuts
    /// below the end of a write that was started.
    Preallocate {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// The size to reach.
        size: u64,
    },
    /// Create a segment's file, preallocate it, sync the directory.
    CreateSegment {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// Bytes to preallocate.
        preallocate: u64,
    },
    /// Write index and producer snapshot (temporary name, sync, rename), cut the log file to `size`, sync it and the
    /// directory. Every byte below `size` is durable already. Also used on the active segment at shutdown.
    SealSegment {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// The real length of the log file.
        size: u64,
        /// Contents of the `.idx` file.
        index: Box<[u8]>,
        /// Contents of the `.pst` file.
        producers: Box<[u8]>,
    },
    /// Unlink a segment's files.
    DeleteSegment {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
    },
    /// The chunk left the tail cache; readers that hold it keep it alive.
    ReleaseChunk {
        /// Which chunk.
        chunk: ChunkId,
    },
    /// Write and `fdatasync` blocks of this core's ledger. One is in flight at a time.
    WriteLedger {
        /// Its name in [`Input::LedgerWritten`].
        sequence: u64,
        /// Which file.
        file: LedgerFile,
        /// Where to, a multiple of [`BLOCK_BYTES`].
        at: u64,
        /// A multiple of [`BLOCK_BYTES`].
        bytes: Box<[u8]>,
        /// Cut the file behind these bytes before the sync.
        truncate_after: bool,
    },
    /// The outcome of an append.
    AnswerProduce {
        /// Whom to answer.
        ticket: Ticket,
        /// False: the effective acks level is 0, nobody waits.
        respond: bool,
        /// What became of it.
        outcome: Result<Produced, Refusal>,
    },
    /// The outcome of a fetch.
    AnswerFetch {
        /// Whom to answer.
        ticket: Ticket,
        /// One per entry, in the request's order.
        answers: Vec<FetchAnswer>,
    },
    /// Nothing of this log is in flight any more: its folder may go to `trash/`.
    LogDeleted {
        /// Which.
        log: LogId,
    },
    /// The log takes no more appends until it is opened again after recovery.
    Fenced {
        /// Which.
        log: LogId,
        /// What went wrong.
        why: StorageFault,
    },
    /// The process must stop.
    Abort {
        /// Why.
        why: &'static str,
    },
    /// Shutdown is complete: everything is synced and the ledger says so.
    Drained,
}

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

/// A request that was not carried out, or whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kafka's number for it.
    pub code: ErrorCode,
    /// The numbers for a good message.
    pub detail: RefusalDetail,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detail.fmt(f)
    }
}

/// Why a request was refused, with the values that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalDetail {
    /// The log is not open on this core.
    UnknownLog,
    /// The topic is being deleted.
    Deleted,
    /// The broker is stopping.
    ShuttingDown,
    /// The log is fenced after a storage fault; nothing was appended.
    Fenced(StorageFault),
    /// A storage fault came between append and proof: the batch may or may not be kept.
    OutcomeUnknown(StorageFault),
    /// A write met a full disk; what was appended before waits for space.
    WritesWaitForSpace,
    /// The data folder's file system is below its reserve.
    StorageFull {
        /// Free bytes when last asked.
        free_bytes: u64,
        /// The reserve.
        reserve_bytes: u64,
    },
    /// Appended batches that wait for the disk fill their memory.
    OverBudget {
        /// Bytes held.
        held_bytes: u64,
        /// Bytes allowed.
        bytes_max: u64,
    },
    /// Acks that no setting allows.
    InvalidAcks {
        /// What was asked for.
        acks: i16,
    },
    /// Fewer replicas than acks asks for.
    NotEnoughReplicas {
        /// Replicas that count.
        replicas: i16,
        /// Replicas asked for.
        acks: i16,
    },
    /// The batch is longer than the topic allows.
    BatchTooLarge {
        /// Its length.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// The batch's counts or offsets cannot be.
    InvalidBatch {
        /// What is wrong.
        what: &'static str,
    },
    /// The log has no offsets left for the batch.
    OffsetsExhausted,
    /// The sequence does not follow on the producer's last one.
    OutOfOrderSequence {
        /// Who.
        producer_id: ProducerId,
        /// What should have come.
        expected: i32,
        /// What came.
        got: i32,
    },
    /// A later epoch of this producer was seen.
    StaleProducerEpoch {
        /// Who.
        producer_id: ProducerId,
        /// The epoch in the log.
        current: ProducerEpoch,
        /// The epoch that came.
        got: ProducerEpoch,
    },
    /// The acks condition did not hold in time; the batch is appended and stays.
    TimedOut,
}

impl fmt::Display for RefusalDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLog => f.write_str("this core does not serve the partition"),
            Self::Deleted => f.write_str("the topic was deleted"),
            Self::ShuttingDown => f.write_str("the broker is shutting down"),
            Self::Fenced(why) => write!(
                f,
                "the partition is fenced after a storage fault ({why}); nothing was appended"
            ),
            Self::OutcomeUnknown(why) => {
                write!(
                    f,
                    "storage failed before the batch was proven ({why}); it may or may not be kept"
                )
            }
            Self::WritesWaitForSpace => f.write_str(
                "a write met a full disk; nothing more is appended until there is space",
            ),
            Self::StorageFull {
                free_bytes,
                reserve_bytes,
            } => write!(
                f,
                "the data folder's file system has {free_bytes} bytes free, fewer than its reserve of {reserve_bytes}"
            ),
            Self::OverBudget {
                held_bytes,
                bytes_max,
            } => {
                write!(
                    f,
                    "appends waiting for the disk hold {held_bytes} of {bytes_max} bytes; retry later"
                )
            }
            Self::InvalidAcks { acks } => write!(
                f,
                "acks {acks} is not allowed; allowed are 0 to 1000 and all"
            ),
            Self::NotEnoughReplicas { replicas, acks } => {
                write!(
                    f,
                    "acks {acks} was asked for, but only {replicas} replicas are in sync; nothing was appended"
                )
            }
            Self::BatchTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "the batch has {bytes} bytes; at most {bytes_max} are allowed"
                )
            }
            Self::InvalidBatch { what } => write!(f, "the batch is not valid: {what}"),
            Self::OffsetsExhausted => f.write_str("the partition has no offsets left"),
            Self::OutOfOrderSequence {
                producer_id,
                expected,
                got,
            } => {
                write!(
                    f,
                    "producer {} sent sequence {got}; {expected} should have come",
                    producer_id.0
                )
            }
            Self::StaleProducerEpoch {
                producer_id,
                current,
                got,
            } => {
                write!(
                    f,
                    "producer {} sent epoch {}; epoch {} has replaced it",
                    producer_id.0, got.0, current.0
                )
            }
            Self::TimedOut => {
                f.write_str("the acks condition did not hold in time; the batch was appended")
            }
        }
    }
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
}

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

/// What a core did so far. Counters rise only; gauges say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    /// Batches appended.
    pub appended_batches: u64,
    /// Records appended.
    pub appended_records: u64,
    /// Bytes appended.
    pub appended_bytes: u64,
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
}

/// The effects of one step, or of several: the driver clears and reuses it.
#[derive(Debug, Default)]
pub struct Effects {
    /// In the order in which they are to be carried out.
    pub list: Vec<Effect>,
    /// What [`FetchData::Cached`] refers to.
    pub slices: Vec<CachedSlice>,
}

impl Effects {
    /// Empty, without memory of its own yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the effects and keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.slices.clear();
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }
}
