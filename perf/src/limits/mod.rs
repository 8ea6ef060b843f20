//! This machine's raw limits, measured with the runtime that the broker runs on.
//!
//! A broker's figure means little without them: the round of a durable write bounds its latency, the loopback stream
//! its consumers, the reference servers of [`crate::subject`] its rate.

pub mod beside;
mod cpu;
mod disk;
mod executor;
mod network;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use serde::Serialize;
use tackboard_report::plot::{self, Curve};
use tackboard_runtime::allowed_cpus;

use crate::{
    data_folder::DataFolder,
    figure::{Figure, Percentiles},
    origin::Origin,
    results::{Results, ResultsArguments},
};
use cpu::Mailbox;
use disk::{DiskLimit, Operation, Single, SyncLimit, SyncPlan};
use network::PingPong;

/// Bytes of each single read and write.
const BLOCK_SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 128 << 10, 1 << 20];
/// How many of them are in flight.
const DEPTHS: [usize; 3] = [1, 4, 16];
/// Files of each round of syncs.
const FILES_A_ROUND: [usize; 4] = [1, 10, 100, 1000];

/// What to measure, and for how long.
#[derive(clap::Args)]
pub struct LimitsArguments {
    /// Folder on the disk to measure; a temporary folder is made in it and removed.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,
    /// How often each row is measured.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// How long one round of a row lasts, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    round_ms: u32,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    results: ResultsArguments,
}

/// All limits.
#[derive(Serialize)]
struct Limits {
    #[serde(flatten)]
    origin: Origin,
    disk: Vec<DiskLimit>,
    sync_rounds: Vec<SyncLimit>,
    ping_pong: Vec<PingPong>,
    loopback_bytes_per_second: Figure,
    crc32c_bytes_per_second: Figure,
    mailbox: Mailbox,
}

/// Measures and prints.
///
/// # Errors
/// When the folder can't be written or an executor does not start.
pub fn run(arguments: &LimitsArguments) -> Result<()> {
    let folder = DataFolder::create(&arguments.data)?;
    let limits = measure(arguments, folder.path())?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&limits)?);
    } else {
        print(&limits);
    }
    let results = Results::new(&arguments.results);
    results.text("limits-latency.svg", &latency_picture(&limits))?;
    results.figures("limits", &limits)
}

fn measure(arguments: &LimitsArguments, folder: &std::path::Path) -> Result<Limits> {
    let rounds = usize::from(arguments.rounds);
    let each = Duration::from_millis(arguments.round_ms.into());
    let together = each * u32::from(arguments.rounds);
    let cpus = two_cpus(&allowed_cpus()).context("no CPU to measure on")?;
    let mut disk = Vec::new();
    for operation in [Operation::Write, Operation::WriteDsync, Operation::Read] {
        eprintln!("disk: {}", operation.name());
        for block_bytes in BLOCK_SIZES {
            for depth in DEPTHS {
                let measure = Single {
                    operation,
                    block_bytes,
                    depth,
                    rounds,
                    each,
                };
                let row = disk::single(cpus.0, folder, measure);
                disk.push(row.with_context(|| format!("{} on the disk", operation.name()))?);
            }
        }
    }
    let mut sync_rounds = Vec::new();
    for plan in [SyncPlan::Dsync, SyncPlan::Fdatasync] {
        eprintln!("rounds of {}", plan.name());
        for files in FILES_A_ROUND {
            let row = disk::sync_rounds(cpus.0, folder, plan, files, together);
            sync_rounds.push(row.with_context(|| format!("{} to {files} files", plan.name()))?);
        }
    }
    eprintln!("network");
    let ping_pong = vec![
        network::ping_pong_blocking(cpus, together)?,
        network::ping_pong_runtime(cpus, together)?,
    ];
    let streams = (0..rounds).map(|_| network::stream(cpus, each));
    let streams = streams.collect::<std::io::Result<Vec<_>>>()?;
    eprintln!("CPUs");
    let checksums = (0..rounds).map(|_| cpu::crc32c_bytes_per_second(each));
    let at_least_one = "there is at least one round";
    Ok(Limits {
        origin: Origin::of(folder),
        disk,
        sync_rounds,
        ping_pong,
        loopback_bytes_per_second: Figure::of(streams).context(at_least_one)?,
        crc32c_bytes_per_second: Figure::of(checksums).context(at_least_one)?,
        mailbox: cpu::mailbox(cpus, together)?,
    })
}

/// A curve for each round trip and each round of syncs.
fn latency_picture(limits: &Limits) -> String {
    let ping_pong = limits.ping_pong.iter();
    let ping_pong = ping_pong.map(|row| row.all.curve(format!("round trip, {}", row.ends)));
    let mailbox = limits.mailbox.all.curve("core / core".to_owned());
    let rounds = limits.sync_rounds.iter();
    let rounds = rounds.map(|row| {
        let name = format!(
            "a block to each of {} files, {}",
            row.files,
            row.plan.name()
        );
        row.all.curve(name)
    });
    let curves: Vec<Curve> = ping_pong.chain([mailbox]).chain(rounds).collect();
    plot::by_percentile(&curves)
}

/// Both ends of what is measured between two CPUs, of those that are allowed; where that is one they share it.
fn two_cpus(allowed: &[usize]) -> Option<(usize, usize)> {
    let first = *allowed.first()?;
    Some((first, allowed.get(1).copied().unwrap_or(first)))
}

fn print(limits: &Limits) {
    let machine = &limits.origin.machine;
    println!(
        "{}, {} CPUs, kernel {}, {}",
        machine.cpu, machine.cpus, machine.kernel, machine.storage
    );
    println!(
        "\n{:<16} {:>8} {:>5}  {:<28} p50 / p99 / p99.9 µs",
        "disk", "bytes", "depth", "MB/s"
    );
    for row in &limits.disk {
        println!(
            "{:<16} {:>8} {:>5}  {:<28} {}",
            row.operation.name(),
            row.block_bytes,
            row.depth,
            row.bytes_per_second.show(megabytes),
            micros(&row.latency)
        );
    }
    println!(
        "\n{:<28} {:>5} {:>8}  p50 / p99 / p99.9 µs of a round",
        "one block to each file", "files", "rounds"
    );
    for row in &limits.sync_rounds {
        println!(
            "{:<28} {:>5} {:>8}  {}",
            row.plan.name(),
            row.files,
            row.count,
            micros(&row.latency)
        );
    }
    println!("\nround trip of 100 bytes, p50 / p99 / p99.9 µs");
    for row in &limits.ping_pong {
        println!("  {:<34} {}", row.ends, micros(&row.latency));
    }
    println!(
        "  {:<34} {}",
        "core / core, through inboxes",
        micros(&limits.mailbox.latency)
    );
    println!(
        "\nloopback stream  {} MB/s",
        limits.loopback_bytes_per_second.show(megabytes)
    );
    println!(
        "CRC-32C          {} MB/s",
        limits.crc32c_bytes_per_second.show(megabytes)
    );
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0}", bytes / 1e6)
}

fn micros(latency: &Percentiles) -> String {
    format!(
        "{:.0} / {:.0} / {:.0}",
        latency.p50_us, latency.p99_us, latency.p999_us
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_cpus_are_used() {
        assert_eq!(two_cpus(&[1, 3, 5]), Some((1, 3)));
        assert_eq!(two_cpus(&[2]), Some((2, 2)));
        assert_eq!(two_cpus(&[]), None);
    }
}
