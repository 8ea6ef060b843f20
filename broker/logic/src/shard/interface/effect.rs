//! What a core's logic wants done: moves in memory, I/O to start, answers to give.

use tackboard_schema::{LeaderEpoch, Offset, TopicPartition};

use super::{
    CachedSlice, ChunkId, FetchAnswer, LogConfig, LogId, PayloadId, Produced, Refusal, SegmentBase,
    StorageFault, SyncId, SyncScope, Ticket, Truncated, Unwritten, WriteId,
};
use crate::ledger::LedgerLog;
use crate::log::recovery::RestartClass;

/// Which of a core's two ledger files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerFile {
    /// `ledger/<n>.a`
    A,
    /// `ledger/<n>.b`
    B,
}

/// How a log is to be recovered whose end the ledger has cut off.
#[derive(Debug)]
pub struct Reopen {
    /// Which log.
    pub log: LogId,
    /// Its name.
    pub topic_partition: TopicPartition,
    /// What governs it.
    pub config: LogConfig,
    /// For the recovery.
    pub restart: RestartClass,
    /// What the ledger says of it.
    pub ledger: LedgerLog,
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
    /// Of a frozen chunk that is wholly written, only these bytes are asked for from here on, by the positions that they
    /// have. The rest of its buffer may go.
    TrimChunk {
        /// Which chunk.
        chunk: ChunkId,
        /// Where its own batches begin.
        at: u32,
        /// Their bytes; there may be none.
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
    /// Put what was written of a segment before this effect on the medium.
    Sync {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// Its name in [`Input::Synced`].
        sync: SyncId,
        /// How. Syncs of the whole file system that come out of one step are one.
        scope: SyncScope,
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
    /// directory; a checkpoint goes. Every byte below `size` is durable already. Also used on the active segment at
    /// shutdown.
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
    /// Write the checkpoint of the active segment: under a temporary name, renamed over the one that may be there, never
    /// synced. Every byte that it speaks of is durable already.
    WriteCheckpoint {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// Contents of the `.ckp` file.
        bytes: Box<[u8]>,
    },
    /// Unlink a segment's files.
    DeleteSegment {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
    },
    /// Read a part of a segment, at any position.
    ReadSegment {
        /// Whose.
        log: LogId,
        /// Which segment.
        segment: SegmentBase,
        /// From where in the file.
        file_at: u64,
        /// Bytes.
        length: u32,
    },
    /// Close the files of a log, run its [`Recovery`](crate::log::recovery::Recovery), and open them again. Nothing of
    /// the log is in flight but reads for requests, which may fail or bring anything.
    Reopen(Box<Reopen>),
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
        /// If the file is longer than this, cut it before the sync: what it grew by is given back. Never less than
        /// [`LEDGER_RESERVED_BYTES`](crate::ledger::LEDGER_RESERVED_BYTES), which stay allocated.
        cut_to: Option<u64>,
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
    /// The outcome of a truncation.
    AnswerTruncate {
        /// Which log.
        log: LogId,
        /// Whom to answer.
        ticket: Ticket,
        /// What became of it. Refused with [`RefusalDetail::CutUnfinished`](super::RefusalDetail::CutUnfinished) it is
        /// carried out by the next recovery, with any other refusal the log is as it was.
        outcome: Result<Truncated, Refusal>,
    },
    /// The outcome of [`Input::AdvanceLogStart`](super::Input::AdvanceLogStart).
    AnswerAdvanceLogStart {
        /// Which log.
        log: LogId,
        /// Whom to answer.
        ticket: Ticket,
        /// Where the log begins now.
        outcome: Result<Offset, Refusal>,
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
    /// Shutdown is complete: everything is synced and the ledger says so, but for what a full disk left.
    Drained {
        /// What it left. The folder is clean only if that is nothing.
        unwritten: Unwritten,
    },
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
