//! From `host:port` to a socket, and from what the system says to what a person can use.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Connects to the first of the name's addresses that answers, with Nagle's delay off.
pub(super) fn dial(address: &Arc<str>, timeout: Duration) -> Result<TcpStream> {
    let deadline = Instant::now() + timeout;
    let candidates: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| unreachable(address, &error))?
        .collect();
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for candidate in candidates {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&candidate, left) {
            Ok(stream) => {
                stream
                    .set_nodelay(true)
                    .map_err(|error| unreachable(address, &error))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(unreachable(address, &last))
}

fn unreachable(address: &Arc<str>, error: &io::Error) -> Error {
    Error::Unreachable {
        address: address.clone(),
        detail: plain(error).into(),
    }
}

/// The connection ended.
pub(super) fn disconnected(address: &Arc<str>, error: &io::Error) -> Error {
    Error::Disconnected {
        address: address.clone(),
        detail: plain(error).into(),
    }
}

/// What a read of 0 bytes means.
pub(super) fn end_of_stream() -> io::Error {
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
