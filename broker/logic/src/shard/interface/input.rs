//! What a core's logic is told: requests, completions, time.

use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Acks, Durability, LeaderEpoch, Offset, TopicPartition};

use super::{
    LogConfig, LogId, LogSpace, PayloadId, SegmentBase, StorageFault, SyncId, Ticket, WriteId,
};
use crate::log::recovery::RecoveredLog;

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

/// Cuts the end off a log.
#[derive(Clone, Copy, Debug)]
pub struct Truncate {
    /// Which log.
    pub log: LogId,
    /// Whom to answer.
    pub ticket: Ticket,
    /// Where it is to end: not below its start, not above its end. Of a batch that holds this offset nothing stays.
    pub offset: Offset,
    /// The epoch in which the log goes on. It is greater than the one in which it is led now, so that what is written
    /// next is told from what was cut off (R2).
    pub leader_epoch: LeaderEpoch,
    /// Cut below the high watermark, too, which loses what consumers may have read: allowed only when the metadata
    /// records an unclean election (R9).
    pub below_high_watermark: bool,
}

/// Deletes the oldest records of a log.
#[derive(Clone, Copy, Debug)]
pub struct AdvanceLogStart {
    /// Which log.
    pub log: LogId,
    /// Whom to answer.
    pub ticket: Ticket,
    /// Where it is to begin, not above the high watermark; `None`: there. A log that begins behind it stays as it is.
    pub offset: Option<Offset>,
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
    /// A log's end is to go. Until [`Effect::AnswerTruncate`](super::Effect::AnswerTruncate) appends and fetches are
    /// refused with `NOT_LEADER_OR_FOLLOWER`, and so is whoever waits for what will be gone.
    Truncate(Truncate),
    /// A log's oldest records are to go. [`Effect::AnswerAdvanceLogStart`](super::Effect::AnswerAdvanceLogStart) comes
    /// when no crash brings them back.
    AdvanceLogStart(AdvanceLogStart),
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
    /// A checkpoint was written, or not: its failure never fences.
    CheckpointWritten {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
    },
    /// A segment's files are unlinked.
    SegmentDeleted {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
    },
    /// What [`Effect::ReadSegment`](super::Effect::ReadSegment) asked for.
    SegmentRead {
        /// Whose.
        log: LogId,
        /// The bytes, fewer than asked for at the end of the file.
        result: Result<Box<[u8]>, StorageFault>,
    },
    /// What [`Effect::Reopen`](super::Effect::Reopen) asked for.
    Reopened {
        /// Whose.
        log: LogId,
        /// What recovery found.
        result: Result<Box<RecoveredLog>, StorageFault>,
    },
    /// A ledger write is on the medium.
    LedgerWritten {
        /// Which.
        sequence: u64,
        /// How it went.
        result: Result<(), StorageFault>,
    },
    /// Space on the data folder's file system, once a second.
    FreeSpace {
        /// What is free, in bytes.
        bytes: u64,
        /// What the logs of the other cores took a moment ago.
        others: LogSpace,
    },
    /// Time passed: about every 10 ms while anything waits for time, else every second.
    Tick,
    /// Refuse new appends, answer parked fetches, flush and sync everything, write the ledger, then
    /// [`Effect::Drained`].
    Shutdown,
}
