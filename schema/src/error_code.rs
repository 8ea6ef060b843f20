//! The error codes of all answers: one table of code, name, whether to try again, and text.
//!
//! Codes below 1000 are Kafka's, with Kafka's numbers, names and retriability, so that both doors speak of
//! a fault in the same words. Codes from 1000 are ours. A retired code is never used again.

macro_rules! error_codes {
    ($($variant:ident = $code:literal, $name:literal, $retriable:ident, $text:literal;)*) => {
        /// Why a request, or a part of it, was refused. `None` is success.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = $text] $variant = $code,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// The code with this number, if there is one.
            pub fn from_code(code: i16) -> Option<Self> {
                match code {
                    $($code => Some(ErrorCode::$variant),)*
                    _ => None,
                }
            }

            /// Its name in capitals, as Kafka writes it.
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }

            /// Whether the same request may succeed later, perhaps at another broker or core.
            pub fn retriable(self) -> bool {
                match self {
                    $(ErrorCode::$variant => error_codes!(@$retriable),)*
                }
            }

            /// What it means, in a sentence.
            pub fn text(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $text,)*
                }
            }
        }
    };
    (@retry) => { true };
    (@fatal) => { false };
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", fatal, "The broker met a fault that it has no code for.";
    None = 0, "NONE", fatal, "No error.";
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", fatal, "The offset is below the log start offset or above the log end offset.";
    CorruptMessage = 2, "CORRUPT_MESSAGE", retry, "A record batch is cut short, contradicts its lengths or fails its checksum.";
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", retry, "The broker has no such topic or partition.";
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", fatal, "A fetch asks for a size that is not allowed.";
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", retry, "The partition has no leader at the moment.";
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", retry, "The broker does not lead the partition.";
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", retry, "The time given for the request ran out; whether it took effect is unknown.";
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", fatal, "A record batch is larger than the topic allows.";
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", fatal, "The metadata of a committed offset is longer than the broker allows.";
    NetworkException = 13, "NETWORK_EXCEPTION", retry, "The connection was lost before an answer arrived; whether the request took effect is unknown.";
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", retry, "The group's coordinator is still reading what it knew before.";
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", retry, "The group's coordinator can't serve the group at the moment.";
    NotCoordinator = 16, "NOT_COORDINATOR", retry, "The group is coordinated elsewhere.";
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", fatal, "The topic name is not allowed.";
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", retry, "Fewer replicas are in sync than the topic asks for; nothing was appended.";
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", retry, "The batch was appended, but fewer replicas than asked for are in sync.";
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", fatal, "The acks level is not one that can be asked for.";
    IllegalGeneration = 22, "ILLEGAL_GENERATION", fatal, "The group has moved on to another generation.";
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", fatal, "The member's type or protocols have nothing in common with the group's.";
    InvalidGroupId = 24, "INVALID_GROUP_ID", fatal, "The group id is empty or too long.";
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", fatal, "The group has no such member.";
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", fatal, "The session time-out is outside the range that the broker allows.";
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", fatal, "The group rebalances: join again.";
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", fatal, "The offsets of one commit are together larger than a batch may be.";
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", fatal, "The client may not do this with the topic.";
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", fatal, "The client may not do this with the group.";
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", fatal, "The client may not do this with the cluster.";
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", fatal, "A record's timestamp is outside the allowed range.";
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", fatal, "The version of the protocol or of the API is not served.";
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", fatal, "A topic of this name exists.";
    InvalidPartitions = 37, "INVALID_PARTITIONS", fatal, "The number of partitions is not allowed.";
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", fatal, "The replication factor is below 1 or above the number of brokers.";
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", fatal, "Replicas are assigned to partitions or brokers that they can't be on.";
    InvalidConfig = 40, "INVALID_CONFIG", fatal, "A topic setting is unknown or its value is not allowed.";
    NotController = 41, "NOT_CONTROLLER", retry, "The broker does not take changes of topics.";
    InvalidRequest = 42, "INVALID_REQUEST", fatal, "The request contradicts itself or the protocol.";
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", fatal, "The format of the stored records does not allow it.";
    PolicyViolation = 44, "POLICY_VIOLATION", fatal, "The request exceeds a limit that the operator set.";
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", fatal, "The batch's sequence does not follow the producer's last one; one in between is missing.";
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", fatal, "The batch was appended before, too long ago to name its offset.";
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", fatal, "A newer incarnation of the producer has taken over.";
    InvalidTxnState = 48, "INVALID_TXN_STATE", fatal, "The producer's transaction is in a state that does not allow it.";
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", fatal, "The producer id is not that of the transaction.";
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", fatal, "The transaction timeout is longer than allowed.";
    ConcurrentTransactions = 51, "CONCURRENT_TRANSACTIONS", retry, "The producer's last transaction is still being ended.";
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", fatal, "The client may not use the transaction's name.";
    SecurityDisabled = 54, "SECURITY_DISABLED", fatal, "The broker has no access control.";
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED", fatal, "Another part of the request failed, and this one was not tried.";
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", retry, "The partition's storage failed; what was not acknowledged may or may not be kept.";
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", fatal, "The broker has no state for the producer id.";
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", fatal, "The group has members.";
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", fatal, "There is no such group.";
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", retry, "The broker has no fetch session with this id.";
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", retry, "The fetch is not the session's next one.";
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", retry, "The request names a leader epoch that has ended.";
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", retry, "The request names a leader epoch that the broker has not heard of yet.";
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", fatal, "The batch names a compression codec that is not known.";
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", retry, "A new leader has not yet found its high watermark.";
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", fatal, "Join again with the member id of this answer.";
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", fatal, "The group has as many members as the broker allows.";
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", fatal, "Another member has taken over this static name.";
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", fatal, "The group's members read this topic.";
    InvalidRecord = 87, "INVALID_RECORD", fatal, "A record batch is intact but breaks a rule of the format.";
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", retry, "An open transaction may still change the offset.";
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", retry, "The client exceeds its quota.";
    ProducerFenced = 90, "PRODUCER_FENCED", fatal, "Another client has taken over the producer's transactions.";
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", retry, "The broker has no topic with this id.";
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", retry, "The topic of this name has another id than the request says.";
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", retry, "A fetch session began with topic names and goes on with ids, or the other way round.";
    StorageFull = 1000, "STORAGE_FULL", retry, "Free space is below the broker's reserve.";
    WrongShard = 1001, "WRONG_SHARD", retry, "The partition belongs to another core of this broker.";
    ShuttingDown = 1002, "SHUTTING_DOWN", retry, "The broker is shutting down and takes nothing on.";
    OverBudget = 1003, "OVER_BUDGET", retry, "A budget of the broker is used up for the moment.";
    StorageFullAfterAppend = 1004, "STORAGE_FULL_AFTER_APPEND", retry, "The batch was appended, but the disk was full before it was written.";
}

impl ErrorCode {
    /// Its number on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }
}

/// `NAME (code)`.
impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique_and_found_again() {
        for (index, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(ErrorCode::from_code(code.code()), Some(*code));
            assert!(code.text().ends_with('.'));
            for other in &ErrorCode::ALL[index + 1..] {
                assert_ne!(code.name(), other.name());
                assert!(code.code() < other.code(), "the table is in order of code");
            }
        }
        assert_eq!(ErrorCode::from_code(999), None);
    }
}
