//! A broker inside the test, whose clients are told to come by another road.

use std::net::{SocketAddr, TcpListener};

use tackboard_broker::config::{self, Sources};
use tackboard_broker::embedded::{self, Handle};
use tackboard_client::Protocol;

/// Where clients are sent: another address of this machine, so that a proxy can have the same ports there.
pub const PROXY_HOST: &str = "127.0.0.2";

/// Where the broker is.
const BROKER_HOST: &str = "127.0.0.1";

/// A broker with one core, and the addresses at which it is and at which its clients look for it.
pub struct Broker {
    handle: Handle,
    protocol: Protocol,
    port: u16,
    /// Its data; goes after the broker.
    _folder: tempfile::TempDir,
}

impl Broker {
    /// Starts it, to be spoken to in this protocol.
    pub fn start(protocol: Protocol) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let port = free_ports();
        let cpu = tackboard_runtime::allowed_cpus()[0];
        let mut sets = vec![format!("cores=[{cpu}]"), "http.bind=off".to_owned()];
        sets.extend(match protocol {
            Protocol::Native => [
                format!("native.bind={BROKER_HOST}:{port}"),
                format!("native.core_bind={BROKER_HOST}:{}", port + 1),
                format!("native.advertised={PROXY_HOST}:{port}"),
                "kafka.bind=off".to_owned(),
            ],
            Protocol::Kafka => [
                format!("native.bind={BROKER_HOST}:0"),
                format!("native.core_bind={BROKER_HOST}:0"),
                format!("kafka.advertised={PROXY_HOST}:{port}"),
                format!("kafka.bind={BROKER_HOST}:{port}"),
            ],
        });
        let config = config::load(&Sources {
            file: None,
            data_dir: Some(folder.path().join("data")),
            sets,
        })
        .unwrap();
        Self {
            handle: embedded::start(config).unwrap(),
            protocol,
            port,
            _folder: folder,
        }
    }

    /// What it is to be spoken to in.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Where clients begin.
    pub fn address(&self) -> String {
        format!("{PROXY_HOST}:{}", self.port)
    }

    /// Each address at which clients look for it, and the one at which it is.
    pub fn roads(&self) -> Vec<(SocketAddr, SocketAddr)> {
        let road = |port: u16| {
            let at = |host: &str| format!("{host}:{port}").parse().unwrap();
            (at(PROXY_HOST), at(BROKER_HOST))
        };
        match self.protocol {
            Protocol::Native => vec![road(self.port), road(self.port + 1)],
            Protocol::Kafka => vec![road(self.port)],
        }
    }

    /// Ends it.
    pub fn stop(self) {
        assert!(self.handle.shutdown());
    }
}

/// The first of two neighbouring ports that are free on both addresses, below those that the system hands out.
fn free_ports() -> u16 {
    let first = 12_000 + (std::process::id() % 4_000) as u16 * 2;
    let is_free = |port: u16| {
        [BROKER_HOST, PROXY_HOST]
            .iter()
            .all(|host| TcpListener::bind((*host, port)).is_ok())
    };
    (first..first + 200)
        .step_by(2)
        .find(|&port| is_free(port) && is_free(port + 1))
        .expect("two of two hundred ports are free")
}
