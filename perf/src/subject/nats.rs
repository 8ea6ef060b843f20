//! NATS JetStream: one file stream a connection, published with an acknowledgement for each message.

use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    Setup,
    acknowledged::Acknowledged,
    lines::whole_lines,
    process::{ServerProcess, free_port},
};
use crate::{
    drive::{Answers, Lane, Replies},
    workload::{Workload, event_values},
};

/// Where acknowledgements go to.
const INBOX: &str = "_INBOX.perf";

/// Starts a server whose streams lie in `folder`. Its store syncs every two minutes: an acknowledgement comes from the
/// page cache.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(setup: &Setup, folder: &Path) -> Result<(ServerProcess, SocketAddr)> {
    let address = free_port()?;
    let mut command = Command::new("nats-server");
    command
        .args([
            "--jetstream",
            "--addr",
            "127.0.0.1",
            "--port",
            &address.port().to_string(),
        ])
        .arg("--store_dir")
        .arg(folder);
    ServerProcess::start(command, setup.server_cpus.as_deref(), |line| {
        line.contains("Server is ready").then_some(())
    })
    .map(|(process, ())| (process, address))
}

/// A connection and a stream for each lane.
///
/// # Errors
/// When the server refuses.
pub fn lanes(address: SocketAddr, workload: &Workload) -> Result<Vec<Lane>> {
    (0..workload.connections)
        .map(|index| lane(address, index, workload))
        .collect()
}

fn lane(address: SocketAddr, index: usize, workload: &Workload) -> Result<Lane> {
    let mut stream = TcpStream::connect(address).context("no connection to NATS")?;
    let config = format!(r#"{{"name":"log{index}","subjects":["log.{index}"],"storage":"file"}}"#);
    write!(
        stream,
        "CONNECT {{\"verbose\":false}}\r\nSUB {INBOX}.{index} 1\r\n\
         PUB $JS.API.STREAM.CREATE.log{index} {INBOX}.{index} {}\r\n{config}\r\n",
        config.len()
    )?;
    let created = Acknowledgements(Acknowledged::in_batches_of(1));
    Answers::new(Box::new(created))
        .next(&mut stream)
        .with_context(|| format!("stream log{index}"))?;
    let mut request = Vec::new();
    for value in event_values(workload) {
        write!(
            request,
            "PUB log.{index} {INBOX}.{index} {}\r\n",
            value.len()
        )?;
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
    }
    let replies = Acknowledgements(Acknowledged::new(workload));
    Ok(Lane {
        stream,
        request,
        replies: Box::new(replies),
        reading: None,
    })
}

/// A message for each event: `MSG <inbox> <sid> <length>`, and JSON with a sequence or an error.
struct Acknowledgements(Acknowledged);

impl Replies for Acknowledgements {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)> {
        let mut used = 0;
        let mut lines = whole_lines(bytes);
        while let Some(line) = lines.next() {
            if line.starts_with(b"MSG ") {
                let length = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                let length = std::str::from_utf8(length)?.parse()?;
                let Some(json) = lines.block(length) else {
                    break;
                };
                if json.windows(7).any(|part| part == b"\"error\"") {
                    bail!("NATS refused: {}", String::from_utf8_lossy(json));
                }
                self.0.add(1);
            } else if line.starts_with(b"-ERR") {
                bail!("NATS refused: {}", String::from_utf8_lossy(line));
            }
            // INFO and PING may come at any time; a run is over before an unanswered PING matters.
            used = lines.position();
        }
        Ok((used, self.0.whole_batches()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_counted_and_refusals_seen() {
        let mut acks = Acknowledgements(Acknowledged::in_batches_of(2));
        let bytes = b"PING\r\nMSG _INBOX.perf.0 1 9\r\n{\"seq\":1}\r\nMSG _INBOX.perf.0 1 9\r\n{\"seq\":2}\r\nMSG a 1 9\r\n{";
        assert_eq!(acks.take(bytes).unwrap(), (bytes.len() - 12, 1));
        assert!(acks.take(b"MSG a 1 11\r\n{\"error\":1}\r\n").is_err());
    }
}
