//! Error codes as Kafka's clients know them.

use tackboard_schema::ErrorCode;

/// The code that a client of Kafka is told. Codes of our own become the ones that make clients do the right thing.
pub fn kafka_code(code: ErrorCode) -> i16 {
    let told = match code {
        // Nothing was appended: to be tried again.
        ErrorCode::StorageFull => ErrorCode::KafkaStorageError,
        // It may be kept: producers with sequence numbers try again.
        ErrorCode::StorageFullAfterAppend => ErrorCode::NotEnoughReplicasAfterAppend,
        ErrorCode::WrongShard | ErrorCode::ShuttingDown => ErrorCode::NotLeaderOrFollower,
        ErrorCode::OverBudget => ErrorCode::RequestTimedOut,
        other => other,
    };
    told.code()
}

/// The code of one fetched partition. Consumers give up at codes that they don't expect there, so what is to be tried
/// again is told by one that they do.
pub fn fetch_code(code: ErrorCode) -> i16 {
    match code {
        ErrorCode::OverBudget | ErrorCode::NetworkException | ErrorCode::RequestTimedOut => {
            ErrorCode::OffsetNotAvailable.code()
        }
        other => kafka_code(other),
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
