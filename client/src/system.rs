//! The system's errors in words that a person can use, as both transports tell them.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::error::Error;

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
