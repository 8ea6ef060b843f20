//! From `host:port` to a socket.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ambient::deadline_after;
use crate::error::Result;
use crate::system::unreachable;

/// Connects to the first of the name's addresses that answers, with Nagle's delay off.
pub(super) fn dial(address: &Arc<str>, timeout: Duration) -> Result<TcpStream> {
    let deadline = deadline_after(timeout);
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
