//! What both transports need of the system: its errors in words that a person can use, its clock, its randomness.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tackboard_schema::TimestampMs;

use crate::error::{Error, Result};

/// Nothing answers there.
pub(crate) fn unreachable(address: &Arc<str>, error: &io::Error) -> Error {
    Error::Unreachable {
        address: address.clone(),
        detail: plain(error).into(),
    }
}

/// The connection ended.
pub(crate) fn disconnected(address: &Arc<str>, error: &io::Error) -> Error {
    Error::Disconnected {
        address: address.clone(),
        detail: plain(error).into(),
    }
}

/// What a read of 0 bytes means.
pub(crate) fn end_of_stream() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the broker closed it")
}

/// The system's words without their number.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".into(),
        ErrorKind::ConnectionReset => "connection reset".into(),
        ErrorKind::BrokenPipe => "broken pipe".into(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "timed out".into(),
        _ => error.to_string(),
    }
}

/// A seed that differs from client to client.
pub(crate) fn seed() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::System {
        what: "no random numbers",
        detail: error.to_string().into(),
    })
}

/// The timestamp of a record that has none of its own.
pub(crate) fn wall_clock() -> TimestampMs {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    TimestampMs(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
