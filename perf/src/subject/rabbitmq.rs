//! RabbitMQ streams, through the stream protocol: one stream and one publisher a connection.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Setup,
    acknowledged::Acknowledged,
    process::{ServerProcess, free_port},
};
use crate::{
    drive::{Lane, Replies},
    workload::{Workload, event_values},
};

const DECLARE_PUBLISHER: u16 = 1;
const PUBLISH: u16 = 2;
const PUBLISH_CONFIRM: u16 = 3;
const PUBLISH_ERROR: u16 = 4;
const CREATE: u16 = 13;
const PEER_PROPERTIES: u16 = 17;
const SASL_HANDSHAKE: u16 = 18;
const SASL_AUTHENTICATE: u16 = 19;
const TUNE: u16 = 20;
const OPEN: u16 = 21;
/// Set in the key of an answer.
const ANSWER: u16 = 0x8000;
/// The code of success.
const OK: u16 = 1;
/// Longest frame that is believed: what the server proposes by default.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// What goes before the bytes of a message: an AMQP 1.0 data section of up to 4 GiB.
const DATA_SECTION: [u8; 4] = [0x00, 0x53, 0x75, 0xb0];

/// Starts a server with the streams plugin, its data in `folder`. Streams are never synced: a confirmation comes from
/// the page cache.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(setup: &Setup, folder: &Path) -> Result<(ServerProcess, SocketAddr)> {
    let (address, amqp, distribution) = (free_port()?, free_port()?, free_port()?);
    let names = free_port()?;
    let settings = folder.join("rabbitmq.conf");
    std::fs::write(
        &settings,
        format!("listeners.tcp.1 = {amqp}\nstream.listeners.tcp.1 = {address}\n"),
    )?;
    let plugins = folder.join("enabled_plugins");
    std::fs::write(&plugins, "[rabbitmq_stream].\n")?;
    // The start script of the distribution's package changes to a user of its own; the one it wraps does not.
    let mut command = Command::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
    command
        .env("HOME", folder)
        .env(
            "RABBITMQ_NODENAME",
            format!("perf{}@localhost", std::process::id()),
        )
        .env("ERL_EPMD_PORT", names.port().to_string())
        .env("RABBITMQ_DIST_PORT", distribution.port().to_string())
        .env("RABBITMQ_CONFIG_FILE", &settings)
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", &plugins)
        .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
        .env("RABBITMQ_LOG_BASE", folder.join("log"));
    // Erlang's name server is started here, as a child that can be ended by its pid: the one that a node starts where
    // it finds none leaves its parents, and outlives them.
    let mut name_server = Command::new("epmd");
    name_server.args(["-address", "127.0.0.1", "-port", &names.port().to_string()]);
    // So much debugging that it says when it listens.
    name_server.args(["-d", "-d"]);
    let listens = |line: &str| {
        line.contains("entering the main select() loop")
            .then_some(())
    };
    let cpus = setup.server_cpus.as_deref();
    let (name_server, ()) = ServerProcess::start(name_server, cpus, listens)?;
    let process = ServerProcess::start_silent(command, cpus, address)?;
    Ok((process.with_beside(name_server), address))
}

/// A connection, a stream and a publisher for each lane.
///
/// # Errors
/// When the server refuses.
pub fn lanes(address: SocketAddr, workload: &Workload) -> Result<Vec<Lane>> {
    (0..workload.connections)
        .map(|index| lane(address, index, workload))
        .collect()
}

fn lane(address: SocketAddr, index: usize, workload: &Workload) -> Result<Lane> {
    let mut connection = Opening {
        stream: TcpStream::connect(address).context("no connection to RabbitMQ")?,
    };
    connection.ask(PEER_PROPERTIES, &0u32.to_be_bytes())?;
    connection.ask(SASL_HANDSHAKE, &[])?;
    let mut login = Vec::new();
    string(&mut login, "PLAIN");
    bytes(&mut login, b"\0guest\0guest");
    connection.ask(SASL_AUTHENTICATE, &login)?;
    let proposed = connection.next(TUNE)?;
    // No heartbeat: a run is over before one would matter.
    let mut tuned = proposed
        .get(..4)
        .context("RabbitMQ's tune is cut short")?
        .to_vec();
    tuned.extend_from_slice(&0u32.to_be_bytes());
    connection.stream.write_all(&frame(TUNE, &tuned))?;
    let mut host = Vec::new();
    string(&mut host, "/");
    connection.ask(OPEN, &host)?;
    let name = format!("log{index}");
    let mut stream = Vec::new();
    string(&mut stream, &name);
    stream.extend_from_slice(&0u32.to_be_bytes());
    connection.ask(CREATE, &stream)?;
    // Publisher 0, without a reference: no deduplication by publishing ids.
    let mut publisher = vec![0];
    string(&mut publisher, "");
    string(&mut publisher, &name);
    connection.ask(DECLARE_PUBLISHER, &publisher)?;
    let replies = Confirmations(Acknowledged::new(workload));
    Ok(Lane {
        stream: connection.stream,
        request: request(workload),
        replies: Box::new(replies),
        reading: None,
    })
}

fn request(workload: &Workload) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&(workload.events_a_batch as u32).to_be_bytes());
    for (id, value) in (0u64..).zip(event_values(workload)) {
        body.extend_from_slice(&id.to_be_bytes());
        let length = DATA_SECTION.len() + 4 + value.len();
        body.extend_from_slice(&(length as u32).to_be_bytes());
        body.extend_from_slice(&DATA_SECTION);
        bytes(&mut body, &value);
    }
    frame(PUBLISH, &body)
}

/// A connection that is being opened, a question at a time.
struct Opening {
    stream: TcpStream,
}

impl Opening {
    /// Asks, and waits for the answer.
    fn ask(&mut self, key: u16, body: &[u8]) -> Result<()> {
        let mut correlated = 1u32.to_be_bytes().to_vec();
        correlated.extend_from_slice(body);
        self.stream.write_all(&frame(key, &correlated))?;
        let answer = self.next(key | ANSWER)?;
        let code = answer
            .get(4..6)
            .context("an answer of RabbitMQ's is cut short")?;
        let code = u16::from_be_bytes([code[0], code[1]]);
        ensure!(
            code == OK,
            "RabbitMQ refused request {key} with code {code}"
        );
        Ok(())
    }

    /// The next frame, which has to be this one, without key and version.
    fn next(&mut self, key: u16) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        ensure!(
            (4..=FRAME_BYTES_MAX).contains(&length),
            "a frame of {length} bytes"
        );
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame)?;
        let got = u16::from_be_bytes([frame[0], frame[1]]);
        ensure!(got == key, "RabbitMQ sent {got} where {key} was due");
        Ok(frame.split_off(4))
    }
}

/// Length, key, version 1, body.
fn frame(key: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + body.len());
    out.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&1u16.to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Frames of confirmed publishing ids: publisher, count, ids.
struct Confirmations(Acknowledged);

impl Replies for Confirmations {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)> {
        let mut used = 0;
        while let Some(length) = bytes[used..].first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            ensure!(
                (4..=FRAME_BYTES_MAX).contains(&length),
                "a frame of {length} bytes"
            );
            let Some(frame) = bytes.get(used + 4..used + 4 + length) else {
                break;
            };
            match u16::from_be_bytes([frame[0], frame[1]]) {
                PUBLISH_CONFIRM => {
                    let count = frame.get(5..9).context("a confirmation is cut short")?;
                    let count = u32::from_be_bytes([count[0], count[1], count[2], count[3]]);
                    self.0.add(u64::from(count));
                }
                PUBLISH_ERROR => bail!("RabbitMQ refused an event"),
                other => bail!("RabbitMQ sent {other} to a publisher"),
            }
            used += 4 + length;
        }
        Ok((used, self.0.whole_batches()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmations_are_counted_by_batches() {
        let mut body = vec![0];
        body.extend_from_slice(&3u32.to_be_bytes());
        body.extend_from_slice(&[0; 24]);
        let confirm = frame(PUBLISH_CONFIRM, &body);
        let mut confirmations = Confirmations(Acknowledged::in_batches_of(2));
        assert_eq!(confirmations.take(&confirm).unwrap(), (confirm.len(), 1));
        assert_eq!(confirmations.take(&confirm).unwrap(), (confirm.len(), 2));
        assert_eq!(confirmations.take(&confirm[..9]).unwrap(), (0, 0));
        assert!(confirmations.take(&frame(PUBLISH_ERROR, &body)).is_err());
        assert!(confirmations.take(&u32::MAX.to_be_bytes()).is_err());
    }
}
