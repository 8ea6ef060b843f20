//! The limits that a workload is held against, measured in the same round as the servers.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use serde::Serialize;
use tackboard_runtime::allowed_cpus;

use super::{
    disk::{self, Operation, ReadFiles, Single},
    network, two_cpus,
};
use crate::{
    figure::Percentiles,
    workload::{Pace, Workload},
};

/// A raw write is one block, as the broker's writes of a few events are.
const BLOCK: usize = 4096;
/// The ways in which a server's files are read back: bytes of a read, and reads in flight in each file. The fastest is
/// the limit.
const READ_WAYS: [(usize, usize); 3] = [(1 << 20, 1), (1 << 20, 4), (128 << 10, 4)];

/// What the machine gave in one round, as far as the workload is bounded by it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RoundLimits {
    /// A message to an executor and back, from a blocking thread.
    pub ping_pong: Option<Percentiles>,
    /// A direct write of a block.
    pub write: Option<Percentiles>,
    /// The same, on the medium when it completes.
    pub write_dsync: Option<Percentiles>,
    /// One stream over loopback between two CPUs, or as many at once as the workload has connections: the faster.
    pub loopback_bytes_per_second: Option<f64>,
    /// Direct reads of the files that a server has just been read from, the fastest of several ways.
    pub direct_read_bytes_per_second: Option<f64>,
}

/// Measures what bounds the workload, each for about `lasting`, with files in `folder` that stay for the next round.
///
/// # Errors
/// What the kernel said.
pub fn measure(workload: &Workload, folder: &Path, lasting: Duration) -> Result<RoundLimits> {
    let cpus = two_cpus(&allowed_cpus()).context("no CPU to measure on")?;
    let mut limits = RoundLimits::default();
    match workload.pace {
        Pace::InFlight(_) => {}
        Pace::EventsPerSecond(_) => {
            let write = |operation| {
                let single = Single {
                    operation,
                    block_bytes: BLOCK,
                    depth: 1,
                    rounds: 1,
                    each: lasting,
                };
                disk::single(cpus.0, folder, single).map(|row| row.latency)
            };
            limits.write = Some(write(Operation::Write)?);
            limits.write_dsync = Some(write(Operation::WriteDsync)?);
            limits.ping_pong = Some(network::ping_pong_runtime(cpus, lasting)?.latency);
        }
        Pace::Read { .. } => {
            let one = network::stream(cpus, lasting)?;
            let many = network::streams(workload.connections, lasting)?;
            limits.loopback_bytes_per_second = Some(one.max(many));
        }
    }
    Ok(limits)
}

/// Bytes per second of direct reads over the first `bytes` of each log in `folder`, which nobody uses any more: an
/// executor on each CPU, as the broker has one.
///
/// # Errors
/// What the kernel said.
pub fn read_back(folder: &Path, bytes: u64, lasting: Duration) -> Result<f64> {
    let mut files = Vec::new();
    find_logs(folder, bytes, &mut files)?;
    let cpus = allowed_cpus();
    let mut fastest = 0f64;
    for (block_bytes, depth) in READ_WAYS {
        let read = ReadFiles {
            bytes,
            block_bytes,
            depth,
            lasting: lasting / READ_WAYS.len() as u32,
        };
        let readers: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(index, &cpu)| {
                let mine = files.iter().skip(index).step_by(cpus.len());
                let mine: Vec<PathBuf> = mine.cloned().collect();
                thread::spawn(move || disk::read_files(cpu, mine, read))
            })
            .collect();
        let rates = readers
            .into_iter()
            .map(|reader| reader.join().expect("a reader does not panic"));
        fastest = fastest.max(rates.sum::<std::io::Result<f64>>()?);
    }
    Ok(fastest)
}

/// The segment files under `folder` that hold the first `bytes` of each log. Other files lie there that were reserved and
/// never written: the kernel answers a read of those from nothing.
fn find_logs(folder: &Path, bytes: u64, logs: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    // Segments are named by their first offset.
    paths.sort();
    let mut found = 0;
    for path in paths {
        if path.is_dir() {
            find_logs(&path, bytes, logs)?;
        } else if found < bytes && path.extension().is_some_and(|name| name == "log") {
            found += fs::metadata(&path)?.len();
            logs.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_is_the_beginning_of_the_logs_and_nothing_else() {
        // Beside the test's binary, which is on a disk: direct I/O does not work on every /tmp.
        let binary = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(binary.parent().unwrap()).unwrap();
        let deep = folder.path().join("topic/0");
        fs::create_dir_all(&deep).unwrap();
        for name in ["00.log", "01.log", "02.log", "00.index"] {
            fs::write(deep.join(name), vec![7; 2 << 20]).unwrap();
        }
        let mut logs = Vec::new();
        find_logs(folder.path(), 3 << 20, &mut logs).unwrap();
        assert_eq!(logs, [deep.join("00.log"), deep.join("01.log")]);
        let rate = read_back(folder.path(), 1 << 20, Duration::from_millis(30)).unwrap();
        assert!(rate > 0.0);
    }
}
