//! Kafka's error codes as this client's: those that it shares with Kafka are what they are, the others that a broker may
//! answer with become the one that makes a client do the same.

use tackboard_schema::ErrorCode;

/// Codes of Kafka's that have no place of their own in [`ErrorCode`], by number and name.
const OTHERS: &[(i16, &str, ErrorCode)] = &[
    (8, "BROKER_NOT_AVAILABLE", ErrorCode::LeaderNotAvailable),
    (9, "REPLICA_NOT_AVAILABLE", ErrorCode::LeaderNotAvailable),
    (11, "STALE_CONTROLLER_EPOCH", ErrorCode::NotController),
    (18, "RECORD_LIST_TOO_LARGE", ErrorCode::MessageTooLarge),
    (
        33,
        "UNSUPPORTED_SASL_MECHANISM",
        ErrorCode::ClusterAuthorizationFailed,
    ),
    (
        34,
        "ILLEGAL_SASL_STATE",
        ErrorCode::ClusterAuthorizationFailed,
    ),
    (57, "LOG_DIR_NOT_FOUND", ErrorCode::KafkaStorageError),
    (
        58,
        "SASL_AUTHENTICATION_FAILED",
        ErrorCode::ClusterAuthorizationFailed,
    ),
    (72, "LISTENER_NOT_FOUND", ErrorCode::LeaderNotAvailable),
    (73, "TOPIC_DELETION_DISABLED", ErrorCode::PolicyViolation),
    (77, "STALE_BROKER_EPOCH", ErrorCode::NotLeaderOrFollower),
    (
        80,
        "PREFERRED_LEADER_NOT_AVAILABLE",
        ErrorCode::LeaderNotAvailable,
    ),
    (
        83,
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        ErrorCode::LeaderNotAvailable,
    ),
];

/// A code of Kafka's, with words for one that is only translated, or not known at all.
pub(super) fn error_code(number: i16) -> (ErrorCode, Option<String>) {
    // Codes from 1000 on are ours; no broker of Kafka's sends them.
    if let Some(code) = ErrorCode::from_code(number).filter(|_| number < 1000) {
        return (code, None);
    }
    match OTHERS.iter().find(|(other, ..)| *other == number) {
        Some((_, name, code)) => (*code, Some(format!("{name} (Kafka's code {number})"))),
        None => (
            ErrorCode::UnknownServerError,
            Some(format!("Kafka's code {number}, which is not known here")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_codes_are_what_they_are_and_others_say_what_they_were() {
        for code in ErrorCode::ALL.iter().filter(|code| code.code() < 1000) {
            assert_eq!(error_code(code.code()), (*code, None));
        }
        for (number, name, code) in OTHERS {
            assert_eq!(ErrorCode::from_code(*number), None, "{name} is shared");
            let (found, words) = error_code(*number);
            assert!(found == *code && words.is_some_and(|words| words.contains(name)));
        }
        for unknown in [1000, 1004, 999, -2, i16::MAX, i16::MIN] {
            let (code, words) = error_code(unknown);
            assert_eq!(
                code,
                ErrorCode::UnknownServerError,
                "never taken for one of ours"
            );
            assert!(words.is_some_and(|words| words.contains(&unknown.to_string())));
        }
    }
}
