//! The broker's ports: all are reserved before anything is started.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use tackboard_runtime::net;

use super::StartError;
use crate::config::Config;

/// How long a port that is in use is tried again, and how often.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// Reserved ports, each with the address that it got.
pub(super) struct Sockets {
    /// The native listener that any core answers.
    pub native: (OwnedFd, SocketAddr),
    /// That for clients of Kafka; `None` when it is off.
    pub kafka: Option<(OwnedFd, SocketAddr)>,
    /// Each core's own.
    pub cores: Vec<(OwnedFd, SocketAddr)>,
    /// The admin HTTP server's; `None` when it is off.
    pub http: Option<TcpListener>,
}

/// Reserves an address; one that is in use is tried again for [`IN_USE_PATIENCE`]. A broker that was killed holds its
/// ports a little longer than its process lasts: until the kernel has torn its rings down.
fn reserve(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let begun = Instant::now();
    loop {
        match net::reserve(address) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && begun.elapsed() < IN_USE_PATIENCE =>
            {
                std::thread::sleep(IN_USE_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Reserves every port that the configuration names.
///
/// # Errors
/// [`StartError::Bind`]: which setting names the port, and what to do.
pub(super) fn bind(config: &Config) -> Result<Sockets, StartError> {
    let refuse = |listener, address| {
        move |source: io::Error| StartError::Bind {
            listener,
            address,
            hint: match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "; another process listens there: stop it, or set another port"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "; no interface of this machine has that address"
                }
                io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
                _ => "",
            },
            source,
        }
    };
    let native = reserve(config.native_bind).map_err(refuse("native.bind", config.native_bind))?;
    let kafka = (config.kafka_bind)
        .map(|address| reserve(address).map_err(refuse("kafka.bind", address)))
        .transpose()?;
    let mut cores = Vec::new();
    for index in 0..config.cores.len() as u16 {
        let mut address = config.native_core_bind;
        if address.port() != 0 {
            address.set_port(address.port().saturating_add(index));
        }
        cores.push(reserve(address).map_err(refuse("native.core_bind", address))?);
    }
    let http = (config.http_bind)
        .map(|address| {
            let listener = TcpListener::bind(address).map_err(refuse("http.bind", address))?;
            listener
                .set_nonblocking(true)
                .map_err(refuse("http.bind", address))?;
            Ok::<_, StartError>(listener)
        })
        .transpose()?;
    Ok(Sockets {
        native,
        kafka,
        cores,
        http,
    })
}
