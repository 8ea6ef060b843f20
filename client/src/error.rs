//! What a client says when something fails: which broker, which API, which partition, what the broker
//! answered, and what to do about it.
//!
//! Invariant: an error of a produced record says whether the record may be in the log. Only
//! [`Error::UnknownOutcome`] leaves it open; every other error means that the record was not appended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tackboard_schema::{DecodeError, ErrorCode, Offset, PartitionIndex};

/// The result of everything a client does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. Cheap to clone: all records of a failed batch share one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Nothing listens at the address, or the name does not resolve.
    #[error("no broker answers at {address}; is `tackboard serve` running? ({detail})")]
    Unreachable {
        /// `host:port` as it was dialled.
        address: Arc<str>,
        /// What the operating system said.
        detail: Arc<str>,
    },
    /// The connection ended while something was asked for.
    #[error("lost the connection to the broker at {address}: {detail}")]
    Disconnected {
        /// `host:port` as it was dialled.
        address: Arc<str>,
        /// What ended it.
        detail: Arc<str>,
    },
    /// The broker sent something that the protocol does not allow. The connection was closed.
    #[error(
        "the broker at {address} sent {what}: not something this client understands; does that port speak the protocol that was asked for, and do the versions match?"
    )]
    Protocol {
        /// `host:port` as it was dialled.
        address: Arc<str>,
        /// What was wrong with it.
        what: Arc<str>,
    },
    /// The broker refused the request; nothing was changed by it.
    #[error("{0}")]
    Refused(Refusal),
    /// The topic does not exist.
    #[error("there is no topic {topic} on the broker at {address} (UNKNOWN_TOPIC_OR_PARTITION)")]
    UnknownTopic {
        /// Its name.
        topic: Arc<str>,
        /// The broker that was asked.
        address: Arc<str>,
    },
    /// The topic exists, the partition does not.
    #[error(
        "topic {topic} has {partition_count} partitions, numbered from 0; there is no partition {partition}"
    )]
    UnknownPartition {
        /// The topic.
        topic: Arc<str>,
        /// What was asked for.
        partition: PartitionIndex,
        /// How many partitions the topic has.
        partition_count: usize,
    },
    /// No answer in time. For produced records see [`Error::NotSent`] and [`Error::UnknownOutcome`].
    #[error("{what} got no answer within {} ms{}", waited.as_millis(), because(last))]
    TimedOut {
        /// What was waited for.
        what: Arc<str>,
        /// How long.
        waited: Duration,
        /// The last fault met on the way, if there was one.
        last: Option<Box<Error>>,
    },
    /// The records were not appended in time, and certainly won't be.
    #[error(
        "{record_count} records for {topic}-{partition} could not be delivered within {} ms and were not \
         appended{}", waited.as_millis(), because(last)
    )]
    NotSent {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// How many records share this fate.
        record_count: u32,
        /// The delivery time-out, or how long it was until the producer was closed.
        waited: Duration,
        /// The last fault met on the way, if there was one.
        last: Option<Box<Error>>,
    },
    /// The records were sent, and no answer tells whether they were appended.
    #[error(
        "unknown outcome: {record_count} records for {topic}-{partition} were sent, but no answer came; they may \
         or may not be in the log{}",
        because(last)
    )]
    UnknownOutcome {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// How many records share this fate.
        record_count: u32,
        /// The last fault met on the way, if there was one.
        last: Option<Box<Error>>,
    },
    /// An earlier batch of the same partition failed in a way that broke the sequence; these records were
    /// not appended, so that nothing follows a hole unnoticed. Send them again if they are still wanted.
    #[error(
        "{record_count} records for {topic}-{partition} were not appended because an earlier batch failed: {cause}"
    )]
    SequenceBroken {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// How many records share this fate.
        record_count: u32,
        /// The failure of the earlier batch.
        cause: Box<Error>,
    },
    /// A record that no batch can hold.
    #[error(
        "record of {record_bytes} bytes for topic {topic} is larger than the {bytes_max} the broker takes (message.max.bytes)"
    )]
    RecordTooLarge {
        /// The topic.
        topic: Arc<str>,
        /// Its size as a batch of its own.
        record_bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A fetched batch is damaged.
    #[error(
        "damaged record batch in {topic}-{partition} at offset {offset}: {cause}; seek past it to go on"
    )]
    CorruptBatch {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// The position of the consumer, which is in the damaged batch or before it.
        offset: Offset,
        /// What is wrong with it.
        cause: DecodeError,
    },
    /// The position is outside the log, and the policy is to say so.
    #[error(
        "offset {offset} of {topic}-{partition} is outside the log (starts at {log_start_offset}, ends before \
         {high_watermark}); seek, or choose a reset policy (OFFSET_OUT_OF_RANGE)"
    )]
    OffsetOutOfRange {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
        /// The position that was asked for.
        offset: Offset,
        /// The first offset there is.
        log_start_offset: Offset,
        /// The end of what may be read, exclusive.
        high_watermark: Offset,
    },
    /// The group has committed nothing for the partition, and the policy is to say so.
    #[error(
        "group {group} has committed no offset for {topic}-{partition}; seek, or choose a reset policy"
    )]
    NothingCommitted {
        /// The group.
        group: Arc<str>,
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
    },
    /// The pattern that a subscription names is none.
    #[error("{pattern} is no pattern of topic names: {detail}")]
    Pattern {
        /// As it was given.
        pattern: Arc<str>,
        /// What is wrong with it.
        detail: Arc<str>,
    },
    /// The member has left its group, or was put out of it, before an offset could be committed. Whoever has the
    /// partition now reads on from what was committed before.
    #[error(
        "not a member of group {group} any more, so nothing was committed{}",
        because(last)
    )]
    NotMember {
        /// The group.
        group: Arc<str>,
        /// The last fault met on the way, if there was one.
        last: Option<Box<Error>>,
    },
    /// The partition is not among those the consumer was assigned.
    #[error("{topic}-{partition} is not assigned to this consumer; call assign first")]
    NotAssigned {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
    },
    /// A setting of the client is not allowed.
    #[error("{key} = {value}: {allowed}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// What it was set to.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
    /// The operating system refused something that the client itself needs.
    #[error("{what}: {detail}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        detail: Arc<str>,
    },
}

/// A broker's answer to a request that it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The API by its name in `docs/protocol.md`.
    pub api: &'static str,
    /// `host:port` of the broker that answered.
    pub address: Arc<str>,
    /// The topic, where one is meant.
    pub topic: Option<Arc<str>>,
    /// The partition, where one is meant.
    pub partition: Option<PartitionIndex>,
    /// The code; one that this client does not know reads as `UNKNOWN_SERVER_ERROR`.
    pub code: ErrorCode,
    /// The broker's own words, perhaps empty.
    pub message: Arc<str>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused by the broker at {}", self.api, self.address)?;
        match (&self.topic, self.partition) {
            (Some(topic), Some(partition)) => write!(f, " for {topic}-{partition}")?,
            (Some(topic), None) => write!(f, " for topic {topic}")?,
            _ => {}
        }
        let text = if self.message.is_empty() {
            self.code.text()
        } else {
            &self.message
        };
        write!(f, ": {} ({})", text.trim_end_matches('.'), self.code.name())?;
        match remedy(self.code) {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl Error {
    /// The broker's code, where a broker refused something.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Refused(refusal) => Some(refusal.code),
            Error::UnknownTopic { .. } | Error::UnknownPartition { .. } => {
                Some(ErrorCode::UnknownTopicOrPartition)
            }
            Error::OffsetOutOfRange { .. } => Some(ErrorCode::OffsetOutOfRange),
            Error::TimedOut { last, .. }
            | Error::NotSent { last, .. }
            | Error::UnknownOutcome { last, .. }
            | Error::NotMember { last, .. } => last.as_ref().and_then(|last| last.code()),
            Error::SequenceBroken { cause, .. } => cause.code(),
            _ => None,
        }
    }

    /// Whether the same call may succeed later without anything else being changed.
    pub fn retriable(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. } => true,
            Error::Refused(refusal) => refusal.code.retriable(),
            _ => false,
        }
    }

    /// Whether the records that this error is about may be in the log all the same.
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Error::UnknownOutcome { .. })
    }
}

fn because(last: &Option<Box<Error>>) -> String {
    last.as_ref()
        .map_or_else(String::new, |last| format!("; the last fault was: {last}"))
}

/// What a person can do about a refusal, where it is not said by the code's own text.
fn remedy(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::NotEnoughReplicas => Some("lower acks, or add replicas"),
        ErrorCode::StorageFull | ErrorCode::StorageFullAfterAppend => {
            Some("free space on the broker's disk, or lower the topic's retention")
        }
        ErrorCode::OverBudget | ErrorCode::ThrottlingQuotaExceeded => {
            Some("send less at a time, or try again later")
        }
        ErrorCode::MessageTooLarge => {
            Some("lower batch_bytes, or raise max.message.bytes of the topic")
        }
        ErrorCode::UnsupportedVersion => Some("use a client and a broker of the same release"),
        ErrorCode::ShuttingDown => Some("try again when the broker is back"),
        ErrorCode::NonEmptyGroup => Some("stop its members first"),
        ErrorCode::InconsistentGroupProtocol => {
            Some("give all members of the group an assignor in common")
        }
        ErrorCode::FencedInstanceId => Some("give each member an instance name of its own"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_who_what_where_and_why() {
        let refusal = Refusal {
            api: "Produce",
            address: "127.0.0.1:7401".into(),
            topic: Some("flights".into()),
            partition: Some(PartitionIndex(3)),
            code: ErrorCode::StorageFull,
            message: "".into(),
        };
        assert_eq!(
            Error::Refused(refusal).to_string(),
            "Produce refused by the broker at 127.0.0.1:7401 for flights-3: Free space is below the broker's reserve \
             (STORAGE_FULL); free space on the broker's disk, or lower the topic's retention"
        );
    }

    #[test]
    fn nobody_there() {
        let error = Error::Unreachable {
            address: "localhost:7400".into(),
            detail: "connection refused".into(),
        };
        assert!(
            error
                .to_string()
                .starts_with("no broker answers at localhost:7400; is `tackboard serve` running?")
        );
        assert!(error.retriable());
    }
}
