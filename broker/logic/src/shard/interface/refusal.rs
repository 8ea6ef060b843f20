//! Why something was not done: faults of the storage below, refusals to those who ask.

use std::fmt;

use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId};

use crate::log::limits::ADVANCES_WAITING_MAX;

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
    /// A write met a full disk; what was appended before waits for space. Nothing was appended.
    WritesWaitForSpace,
    /// The batch is appended, but the disk was full when it was to be written. It waits in memory for space.
    UnwrittenForSpace,
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
    /// The log's end is being cut off.
    Truncating,
    /// A truncation names a leader epoch that is not greater than the log's.
    StaleLeaderEpoch {
        /// The log's.
        current: LeaderEpoch,
        /// What was named.
        got: LeaderEpoch,
    },
    /// A log cannot be cut where it does not reach.
    CutOutOfRange {
        /// What was asked for.
        offset: Offset,
        /// Where it begins.
        log_start_offset: Offset,
        /// Where it ends.
        log_end_offset: Offset,
    },
    /// Consumers may have read what would go.
    CutBelowHighWatermark {
        /// What was asked for.
        offset: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// The log begins within the batch that would have to go.
    CutBelowStart {
        /// Where the batch begins.
        boundary: Offset,
        /// Where the log does.
        log_start_offset: Offset,
    },
    /// Records can be deleted only below the high watermark.
    StartOutOfRange {
        /// What was asked for.
        offset: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// As many requests wait for a new start of the log as may.
    TooManyAdvances,
    /// Damage hides where the batch at the offset begins.
    NoBoundary,
    /// A storage fault came before anything was cut.
    CutFailed(StorageFault),
    /// The ledger has the cut, and a storage fault came before it was done: the next start makes it good.
    CutUnfinished(StorageFault),
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
            Self::UnwrittenForSpace => f.write_str(
                "the disk was full when the batch was to be written: it waits in memory, and is written when there is space, unless the broker stops before that",
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
            Self::Truncating => {
                f.write_str("the partition's log is being cut to what its leader has")
            }
            Self::StaleLeaderEpoch { current, got } => write!(
                f,
                "leader epoch {} was named, but the log is led in epoch {}",
                got.0, current.0
            ),
            Self::CutOutOfRange {
                offset,
                log_start_offset,
                log_end_offset,
            } => write!(
                f,
                "offset {offset} was named, but the log reaches from {log_start_offset} to {log_end_offset}"
            ),
            Self::CutBelowHighWatermark {
                offset,
                high_watermark,
            } => write!(
                f,
                "offset {offset} lies below the high watermark {high_watermark}: consumers may have read what would go"
            ),
            Self::CutBelowStart {
                boundary,
                log_start_offset,
            } => write!(
                f,
                "the log begins at {log_start_offset}, within the batch at {boundary}, which can't be cut away"
            ),
            Self::StartOutOfRange {
                offset,
                high_watermark,
            } => write!(
                f,
                "records below {offset} can't be deleted: the high watermark is {high_watermark}"
            ),
            Self::TooManyAdvances => write!(
                f,
                "{ADVANCES_WAITING_MAX} requests to delete records of the partition wait; retry later"
            ),
            Self::NoBoundary => {
                f.write_str("damage hides where the batch at the offset begins; nothing was cut")
            }
            Self::CutFailed(why) => {
                write!(f, "a storage fault came before anything was cut ({why})")
            }
            Self::CutUnfinished(why) => {
                write!(
                    f,
                    "a storage fault came in the middle of the cut ({why}); the next start makes it good"
                )
            }
            Self::TimedOut => {
                f.write_str("the acks condition did not hold in time; the batch was appended")
            }
        }
    }
}
