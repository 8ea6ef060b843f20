//! Recovery of one log before it opens: a machine that asks for what it needs and is told how it went.
//!
//! The driver calls [`Recovery::next`], does what it says, answers with [`Recovery::provide`] (reads) or
//! [`Recovery::done`] (the rest), and asks again. The stages:
//!
//! 1. Files that a truncation or the log's start has passed go, and what is beside the `.log` file and speaks of
//!    batches that were cut off.
//! 2. Closed segments are trusted through their `.idx`; after a clean stop the active one as well.
//! 3. The newest segment that is not closed may have a checkpoint (`.ckp`): index and producers up to a place that was
//!    durable when it was written. It is believed if the batches behind its last entry hold and end exactly there, and
//!    the scan goes on from there. Otherwise it is removed, and the segment is scanned from its beginning.
//! 4. The newest `.pst` is taken, unless a checkpoint was; batches behind its offset rebuild the producers from there.
//! 5. Scan: length, magic, checksum, contiguity, epochs that never fall. The first batch that does not hold is a torn
//!    tail if it lies at or above what the ledger proves, and is cut off; below that it is damage, which is kept out
//!    of reach and reported, and never truncated (S5). The log goes on behind it: behind the batch if its header can
//!    be believed, else at the next batch that holds, at the latest where the ledger knows a boundary.
//!    A file whose name says that it is a segment in the midst of another one, and of which nothing else knows, is set
//!    aside: its name must not hide what holds.
//! 6. What was read is synced before it counts as durable (S4).
//!
//! Not here: the epoch in which the log will be led, and anything about other logs.

mod checkpoint;
mod scan;
mod stages;

use std::collections::VecDeque;
use std::fmt;

use tackboard_schema::{LeaderEpoch, Offset, TimestampMs, TopicPartition};

use super::index::SparseIndex;
use super::limits::PREALLOCATE_STEP_BYTES_MIN;
use super::producers::ProducerTable;
use crate::ledger::LedgerLog;
use crate::shard::interface::{LogConfig, SegmentBase, StorageFault};
use checkpoint::Resumed;
use stages::{Candidate, Stage};

/// How the last process on this data folder ended, found from the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartClass {
    /// It shut down and said so.
    Clean,
    /// The process died, the machine did not.
    ProcessCrash,
    /// The machine restarted.
    HostCrash,
    /// The ledger cannot vouch for this folder.
    DirReplaced,
}

/// One segment as the folder shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// From the file's name.
    pub base: SegmentBase,
    /// Length of the `.log` file, in bytes.
    pub size: u64,
    /// There is an `.idx` file.
    pub has_index: bool,
    /// There is a `.pst` file.
    pub has_producers: bool,
    /// There is a `.ckp` file.
    pub has_checkpoint: bool,
}

/// A file that belongs to a segment's `.log` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sidecar {
    /// `.idx`
    Index,
    /// `.pst`
    Producers,
    /// `.ckp`
    Checkpoint,
}

/// What recovery wants done next. Reads are answered with [`Recovery::provide`], the rest with [`Recovery::done`].
#[derive(Debug)]
pub enum RecoveryStep {
    /// Read the whole `.idx` file.
    ReadIndex {
        /// Whose.
        segment: SegmentBase,
    },
    /// Read the whole `.pst` file.
    ReadProducers {
        /// Whose.
        segment: SegmentBase,
    },
    /// Read the whole `.ckp` file.
    ReadCheckpoint {
        /// Whose.
        segment: SegmentBase,
    },
    /// Read a part of the `.log` file; past its end, provide what there is. The bytes must come from the medium or
    /// the page cache, whichever a later read would see.
    Read {
        /// Of which segment.
        segment: SegmentBase,
        /// A multiple of the block length.
        file_at: u64,
        /// A multiple of the block length.
        length: u32,
    },
    /// Cut the `.log` file to `size`; zeros follow when it grows again.
    Truncate {
        /// Which segment.
        segment: SegmentBase,
        /// Its new length.
        size: u64,
    },
    /// Remove a segment's files: those beside the `.log` file first, and for good (the directory is synced) before it
    /// goes. Should its name be used again, they would speak of what is gone.
    Remove {
        /// Which segment.
        segment: SegmentBase,
    },
    /// Give a segment's files other names, under which they are never looked at again, and sync the directory: they are
    /// none of the log's, whatever their names say.
    SetAside {
        /// Which segment.
        segment: SegmentBase,
    },
    /// Remove one of a segment's files beside the `.log` file.
    RemoveSidecar {
        /// Which segment.
        segment: SegmentBase,
        /// Which file.
        sidecar: Sidecar,
    },
    /// Create a segment's file and sync the directory.
    CreateSegment {
        /// Which segment.
        segment: SegmentBase,
        /// Bytes to preallocate.
        preallocate: u64,
    },
    /// Sync the `.log` file and then the directory: the process that died may not have synced the file's entry (S10),
    /// and what was removed must not come back.
    Sync {
        /// Which segment.
        segment: SegmentBase,
    },
    /// Recovery is complete: open the log.
    Done(Box<RecoveredLog>),
    /// The log cannot be opened: its files cannot be read or changed.
    Failed(StorageFault),
}

/// Offsets of a log that should be there and cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// First offset.
    pub from: Offset,
    /// The offset after the last.
    pub to: Offset,
}

/// One segment as it was found.
#[derive(Clone, Debug)]
pub struct RecoveredSegment {
    /// Its name.
    pub base: SegmentBase,
    /// The offset after its last.
    pub next_offset: Offset,
    /// Bytes of its batches.
    pub size_bytes: u64,
    /// Length of its file.
    pub file_bytes: u64,
    /// Its sparse index.
    pub index: SparseIndex,
    /// The greatest timestamp of its records; the least number if there is none.
    pub max_timestamp: TimestampMs,
    /// The broker's wall clock at its first append, if known.
    pub first_append: Option<TimestampMs>,
    /// The broker's wall clock at its last append, if known.
    pub last_append: Option<TimestampMs>,
    /// It is at rest: its index on disk is true, or it is damaged and left as it is.
    pub indexed: bool,
    /// How many bytes of it a checkpoint covers.
    pub checkpoint_bytes: u64,
    /// The producers as of its end, for the snapshot of a closed segment that is not at rest.
    pub producers: Option<Box<[u8]>>,
}

/// What recovery found and did.
#[derive(Clone)]
pub struct RecoveredLog {
    /// First offset that can be read.
    pub log_start_offset: Offset,
    /// The next offset to assign.
    pub log_end_offset: Offset,
    /// Where each leader epoch begins, in order.
    pub epochs: Vec<(LeaderEpoch, Offset)>,
    /// Ranges that are kept out of reach. Each is worth an ERROR in the log.
    pub damaged: Vec<DamagedRange>,
    /// Bytes that were read and checked.
    pub scanned_bytes: u64,
    /// The offset at which a torn tail was cut off.
    pub torn_tail_at: Option<Offset>,
    /// Segments behind a torn tail, which went with it.
    pub removed: Vec<SegmentBase>,
    /// Files of these names do not continue the log and were set aside. Each is worth an ERROR in the log.
    pub set_aside: Vec<SegmentBase>,
    /// Oldest first; the last one is appended to.
    pub segments: Vec<RecoveredSegment>,
    /// A segment below the log's start whose files stay until a newer snapshot of the producers is on the medium.
    pub lingering: Option<SegmentBase>,
    /// The partial last block of the last segment.
    pub tail: Box<[u8]>,
    /// The idempotent producers as of the end.
    pub producers: ProducerTable,
}

/// Without the bytes and tables, for people.
impl fmt::Debug for RecoveredLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<_> = self
            .segments
            .iter()
            .map(|segment| {
                (
                    segment.base.0,
                    segment.next_offset,
                    segment.size_bytes,
                    segment.indexed,
                )
            })
            .collect();
        f.debug_struct("RecoveredLog")
            .field("log_start_offset", &self.log_start_offset)
            .field("log_end_offset", &self.log_end_offset)
            .field("epochs", &self.epochs)
            .field("damaged", &self.damaged)
            .field("scanned_bytes", &self.scanned_bytes)
            .field("torn_tail_at", &self.torn_tail_at)
            .field("removed", &self.removed)
            .field("set_aside", &self.set_aside)
            .field("segments", &segments)
            .field("producers", &self.producers.len())
            .finish_non_exhaustive()
    }
}

/// Recovers one log.
#[derive(Debug)]
pub struct Recovery {
    partition: TopicPartition,
    restart: RestartClass,
    ledger: LedgerLog,
    config: LogConfig,
    candidates: Vec<Candidate>,
    stage: Stage,
    /// The greatest end of an index, snapshot or checkpoint that is believed: each is written only when all below is
    /// durable.
    sealed_end: Offset,
    /// What the checkpoint tells that is believed.
    checkpoint: Option<Box<Resumed>>,
    /// The offset as of which the snapshot was taken: batches below it are in it.
    producers_from: Offset,
    /// What is to be done to files, in order.
    work: VecDeque<FileWork>,
    /// The read that was asked for last has failed once.
    read_failed: bool,

    segments: Vec<RecoveredSegment>,
    /// Of the batch that was scanned last: epochs never fall, so what a truncation left behind never parses (S8).
    last_epoch: LeaderEpoch,
    epochs: Vec<(LeaderEpoch, Offset)>,
    damaged: Vec<DamagedRange>,
    scanned_bytes: u64,
    torn_tail_at: Option<Offset>,
    removed: Vec<SegmentBase>,
    set_aside: Vec<SegmentBase>,
    lingering: Option<SegmentBase>,
    tail: Vec<u8>,
    producers: ProducerTable,
}

/// A change to the files of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileWork {
    Truncate {
        segment: SegmentBase,
        size: u64,
    },
    Remove {
        segment: SegmentBase,
    },
    SetAside {
        segment: SegmentBase,
    },
    RemoveSidecar {
        segment: SegmentBase,
        sidecar: Sidecar,
    },
    Create {
        segment: SegmentBase,
    },
    Sync {
        segment: SegmentBase,
    },
}

/// How much of a file the scan asks for at a time, in bytes.
pub const SCAN_READ_BYTES: u32 = 1 << 20;

/// How much it asks for at first: behind a checkpoint there is often little, and each read asks for twice as much.
pub const SCAN_FIRST_READ_BYTES: u32 = 64 << 10;

impl Recovery {
    /// Recovers the log of `topic_partition` from its files and what the ledger proves of it. Without a ledger
    /// nothing is proven, and everything that holds is taken.
    pub fn new(
        topic_partition: TopicPartition,
        restart: RestartClass,
        ledger: Option<&LedgerLog>,
        files: Vec<SegmentFile>,
        config: &LogConfig,
    ) -> Self {
        let ledger = ledger.cloned().unwrap_or_default();
        let mut recovery = Self {
            partition: topic_partition,
            restart,
            epochs: ledger.epochs.clone(),
            ledger,
            config: config.clone(),
            candidates: Vec::new(),
            stage: Stage::Indexes { at: 0 },
            sealed_end: Offset(0),
            checkpoint: None,
            producers_from: Offset(0),
            work: VecDeque::new(),
            read_failed: false,
            segments: Vec::new(),
            last_epoch: LeaderEpoch(i32::MIN),
            damaged: Vec::new(),
            scanned_bytes: 0,
            torn_tail_at: None,
            removed: Vec::new(),
            set_aside: Vec::new(),
            lingering: None,
            tail: Vec::new(),
            producers: ProducerTable::new(),
        };
        recovery.choose_files(files);
        recovery
    }

    /// What to do next. The same step is named until its outcome is told.
    #[allow(clippy::should_implement_trait)] // This is no iterator: every step waits for its outcome.
    pub fn next(&mut self) -> RecoveryStep {
        match self.work.front() {
            Some(FileWork::Truncate { segment, size }) => RecoveryStep::Truncate {
                segment: *segment,
                size: *size,
            },
            Some(FileWork::Remove { segment }) => RecoveryStep::Remove { segment: *segment },
            Some(FileWork::SetAside { segment }) => RecoveryStep::SetAside { segment: *segment },
            Some(FileWork::RemoveSidecar { segment, sidecar }) => RecoveryStep::RemoveSidecar {
                segment: *segment,
                sidecar: *sidecar,
            },
            Some(FileWork::Create { segment }) => RecoveryStep::CreateSegment {
                segment: *segment,
                preallocate: self.first_preallocation(),
            },
            Some(FileWork::Sync { segment }) => RecoveryStep::Sync { segment: *segment },
            None => self.next_read(),
        }
    }

    fn first_preallocation(&self) -> u64 {
        PREALLOCATE_STEP_BYTES_MIN.min(self.config.segment_bytes)
    }

    /// The outcome of a step that is no read.
    pub fn done(&mut self, result: Result<(), StorageFault>) {
        match result {
            Ok(()) => {
                self.work.pop_front();
            }
            Err(fault) => self.stage = Stage::Failed(fault),
        }
        if matches!(self.stage, Stage::Failed(_)) {
            self.work.clear();
        }
    }
}
