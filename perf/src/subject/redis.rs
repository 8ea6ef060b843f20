//! Redis streams: XADD through a pipeline, one stream a connection.

use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::{
    Setup,
    acknowledged::Acknowledged,
    lines::whole_lines,
    process::{ServerProcess, free_port},
};
use crate::{
    drive::{Lane, Replies},
    workload::{Workload, event_values},
};

/// When Redis syncs its append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AppendFsync {
    /// Every second, in the background: an answer comes from the page cache.
    EverySecond,
    /// Before it answers, once for all commands of a turn of its event loop.
    Always,
}

impl AppendFsync {
    /// As its configuration spells it.
    pub fn text(self) -> &'static str {
        match self {
            AppendFsync::EverySecond => "everysec",
            AppendFsync::Always => "always",
        }
    }
}

/// Starts a server that keeps its append-only file in `folder`.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(
    fsync: AppendFsync,
    setup: &Setup,
    folder: &Path,
) -> Result<(ServerProcess, SocketAddr)> {
    let address = free_port()?;
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args([
            "--appendonly",
            "yes",
            "--appendfsync",
            fsync.text(),
            "--save",
            "",
            // A rewriting of its log forks a process amid the measurement, which would pay for it now and then.
            "--auto-aof-rewrite-percentage",
            "0",
        ])
        .arg("--dir")
        .arg(folder);
    ServerProcess::start(command, setup.server_cpus.as_deref(), |line| {
        line.contains("Ready to accept connections").then_some(())
    })
    .map(|(process, ())| (process, address))
}

/// A connection and a stream for each lane.
///
/// # Errors
/// When it can't be reached.
pub fn lanes(address: SocketAddr, workload: &Workload) -> Result<Vec<Lane>> {
    let lanes = (0..workload.connections).map(|index| {
        let stream = TcpStream::connect(address).context("no connection to Redis")?;
        Ok(Lane {
            stream,
            request: request(index, workload),
            replies: Box::new(StreamIds(Acknowledged::new(workload))),
            reading: None,
        })
    });
    lanes.collect()
}

/// The commands of one batch: `XADD log<i> * v <value>` each.
fn request(index: usize, workload: &Workload) -> Vec<u8> {
    let log = format!("log{index}");
    let mut bytes = Vec::new();
    for value in event_values(workload) {
        bytes.extend_from_slice(b"*5\r\n");
        for part in [b"XADD".as_slice(), log.as_bytes(), b"*", b"v", &value] {
            bytes.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            bytes.extend_from_slice(part);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

/// Answers `$<length>` and the id of the entry, a line each.
struct StreamIds(Acknowledged);

impl Replies for StreamIds {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)> {
        let mut used = 0;
        let mut lines = whole_lines(bytes);
        while let Some(head) = lines.next() {
            if !head.starts_with(b"$") {
                bail!("Redis refused: {}", String::from_utf8_lossy(head));
            }
            if lines.next().is_none() {
                break;
            }
            used = lines.position();
            self.0.add(1);
        }
        Ok((used, self.0.whole_batches()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_by_batches() {
        let mut ids = StreamIds(Acknowledged::in_batches_of(2));
        let bytes = b"$3\r\n1-0\r\n$3\r\n1-1\r\n$3\r\n1-2\r\n$3\r\n1-";
        assert_eq!(ids.take(bytes).unwrap(), (27, 1));
        assert_eq!(ids.take(b"$3\r\n1-3\r\n").unwrap(), (9, 1));
        assert!(ids.take(b"-ERR full\r\n").is_err());
    }
}
