//! Recovery of one log before it opens: a machine that asks for what it needs and is told how it went.

use tackboard_schema::{LeaderEpoch, Offset, TopicPartition};

use crate::ledger::LedgerLog;
use crate::shard::interface::{LogConfig, SegmentBase, StorageFault};

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
    /// Read a part of the `.log` file; past its end, provide what there is.
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
    /// Remove a segment's files.
    Remove {
        /// Which segment.
        segment: SegmentBase,
    },
    /// Create a segment's file and sync the directory.
    CreateSegment {
        /// Which segment.
        segment: SegmentBase,
        /// Bytes to preallocate.
        preallocate: u64,
    },
    /// Sync the `.log` file.
    Sync {
        /// Which segment.
        segment: SegmentBase,
    },
    /// Recovery is complete: open the log.
    Done(Box<RecoveredLog>),
    /// The log cannot be opened.
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

/// What recovery found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredLog {
    /// First offset that can be read.
    pub log_start_offset: Offset,
    /// The next offset to assign.
    pub log_end_offset: Offset,
    /// Where each leader epoch begins, in order.
    pub epochs: Vec<(LeaderEpoch, Offset)>,
    /// Ranges that are kept out of reach and reported.
    pub damaged: Vec<DamagedRange>,
    /// Bytes that were read and checked.
    pub scanned_bytes: u64,
    /// The offset at which a torn tail was cut off.
    pub torn_tail_at: Option<Offset>,
}

/// Recovers one log.
#[derive(Debug)]
pub struct Recovery {
    log_start_offset: Offset,
}

impl Recovery {
    /// Recovers the log of `topic_partition` from its files and what the ledger proves of it.
    pub fn new(
        _topic_partition: TopicPartition,
        _restart: RestartClass,
        ledger: Option<&LedgerLog>,
        _files: Vec<SegmentFile>,
        _config: &LogConfig,
    ) -> Self {
        Self {
            log_start_offset: ledger.map_or(Offset(0), |log| log.log_start_offset),
        }
    }

    /// What to do next. After [`RecoveryStep::Done`] or [`RecoveryStep::Failed`] it is not asked again.
    #[allow(clippy::should_implement_trait)] // This is no iterator: every step waits for its outcome.
    pub fn next(&mut self) -> RecoveryStep {
        RecoveryStep::Done(Box::new(RecoveredLog {
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_start_offset,
            epochs: Vec::new(),
            damaged: Vec::new(),
            scanned_bytes: 0,
            torn_tail_at: None,
        }))
    }

    /// The bytes of the read that [`Self::next`] asked for.
    pub fn provide(&mut self, _bytes: Result<&[u8], StorageFault>) {}

    /// The outcome of another step that [`Self::next`] asked for.
    pub fn done(&mut self, _result: Result<(), StorageFault>) {}
}
