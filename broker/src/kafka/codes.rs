//! Error codes as Kafka's clients know them.

use tackboard_schema::ErrorCode;

/// The code that a client of Kafka is told. Codes of our own become the ones that make clients do the right thing.
pub fn kafka_code(code: ErrorCode) -> i16 {
    told(code).anywhere.code()
}

/// The code of one fetched partition. Consumers give up at codes that they don't expect there, so what is to be tried
/// again is told by one that they do.
pub fn fetch_code(code: ErrorCode) -> i16 {
    told(code).fetching.code()
}

/// How a code is told.
struct Told {
    anywhere: ErrorCode,
    /// Of a fetched partition.
    fetching: ErrorCode,
}

/// Names every code, so that a new one is thought about.
fn told(code: ErrorCode) -> Told {
    use ErrorCode as E;
    let as_code = |code| Told {
        anywhere: code,
        fetching: code,
    };
    let when_fetching = |anywhere, fetching| Told { anywhere, fetching };
    match code {
        // Nothing was appended: to be tried again.
        E::StorageFull => as_code(E::KafkaStorageError),
        // It may be kept: producers with sequence numbers try again.
        E::StorageFullAfterAppend => as_code(E::NotEnoughReplicasAfterAppend),
        E::WrongShard | E::ShuttingDown => as_code(E::NotLeaderOrFollower),
        E::OverBudget => when_fetching(E::RequestTimedOut, E::OffsetNotAvailable),
        E::NetworkException | E::RequestTimedOut => when_fetching(code, E::OffsetNotAvailable),
        E::UnknownServerError
        | E::None
        | E::OffsetOutOfRange
        | E::CorruptMessage
        | E::UnknownTopicOrPartition
        | E::InvalidFetchSize
        | E::LeaderNotAvailable
        | E::NotLeaderOrFollower
        | E::MessageTooLarge
        | E::OffsetMetadataTooLarge
        | E::CoordinatorLoadInProgress
        | E::CoordinatorNotAvailable
        | E::NotCoordinator
        | E::InvalidTopicException
        | E::NotEnoughReplicas
        | E::NotEnoughReplicasAfterAppend
        | E::InvalidRequiredAcks
        | E::IllegalGeneration
        | E::InconsistentGroupProtocol
        | E::InvalidGroupId
        | E::UnknownMemberId
        | E::InvalidSessionTimeout
        | E::RebalanceInProgress
        | E::InvalidCommitOffsetSize
        | E::TopicAuthorizationFailed
        | E::GroupAuthorizationFailed
        | E::ClusterAuthorizationFailed
        | E::InvalidTimestamp
        | E::UnsupportedVersion
        | E::TopicAlreadyExists
        | E::InvalidPartitions
        | E::InvalidReplicationFactor
        | E::InvalidReplicaAssignment
        | E::InvalidConfig
        | E::NotController
        | E::InvalidRequest
        | E::UnsupportedForMessageFormat
        | E::PolicyViolation
        | E::OutOfOrderSequenceNumber
        | E::DuplicateSequenceNumber
        | E::InvalidProducerEpoch
        | E::InvalidTxnState
        | E::InvalidProducerIdMapping
        | E::InvalidTransactionTimeout
        | E::ConcurrentTransactions
        | E::TransactionalIdAuthorizationFailed
        | E::SecurityDisabled
        | E::OperationNotAttempted
        | E::KafkaStorageError
        | E::UnknownProducerId
        | E::NonEmptyGroup
        | E::GroupIdNotFound
        | E::FetchSessionIdNotFound
        | E::InvalidFetchSessionEpoch
        | E::FencedLeaderEpoch
        | E::UnknownLeaderEpoch
        | E::UnsupportedCompressionType
        | E::OffsetNotAvailable
        | E::MemberIdRequired
        | E::GroupMaxSizeReached
        | E::FencedInstanceId
        | E::GroupSubscribedToTopic
        | E::InvalidRecord
        | E::UnstableOffsetCommit
        | E::ThrottlingQuotaExceeded
        | E::ProducerFenced
        | E::UnknownTopicId
        | E::InconsistentTopicId
        | E::FetchSessionTopicIdError => as_code(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_of_ours_is_told_and_none_is_told_as_success() {
        for code in ErrorCode::ALL {
            let told = kafka_code(*code);
            assert!(told < 1000, "{code}");
            assert_eq!(told == 0, *code == ErrorCode::None);
            if code.code() >= 1000 {
                let known = ErrorCode::from_code(told).expect("a code of Kafka's");
                assert_eq!(known.retriable(), code.retriable(), "{code} as {known}");
            }
            let fetched = ErrorCode::from_code(fetch_code(*code)).expect("a code of Kafka's");
            assert_eq!(fetched.retriable(), code.retriable(), "{code} as {fetched}");
        }
    }
}
