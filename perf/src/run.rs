//! Runs workloads against several servers in turn, round by round, and prints figures, ratios and their spread.
//!
//! Within a round every server meets the same workload, one after the other; the order turns from round to round. A
//! ratio is taken within a round, since a shared machine drifts more between rounds than most servers differ.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use tackboard_report::plot::{self, Course, Moment};
use tackboard_runtime::allowed_cpus;

use crate::{
    Usage,
    data_folder::DataFolder,
    drive::{RoundLength, RoundResult, drive},
    figure::{Figure, Latencies},
    limits::beside::{self, RoundLimits},
    origin::Origin,
    results::{Results, ResultsArguments},
    subject::{self, Setup, Subject},
    workload::{Pace, Workload, events_that_fit},
};

/// What to run.
#[derive(clap::Args)]
pub struct RunArguments {
    /// Workloads to run, by name; all unless named.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    workload: Vec<String>,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Seconds that are measured of each server in each round.
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: u16,
    /// CPUs of the servers, the rest being the driver's; both share all unless named.
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    server_cpus: Option<Vec<usize>>,
    /// Folder on the disk to use; a temporary folder is made in it and removed.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,
    /// The broker's binary; the one beside this program unless named.
    #[arg(long, value_name = "FILE")]
    tackboard: Option<PathBuf>,
    /// Our broker also takes part through its door for clients of Kafka; --peers brings that too.
    #[arg(long)]
    doors: bool,
    /// Other brokers take part: those of this machine's packages, and Kafka if --kafka is there.
    #[arg(long)]
    peers: bool,
    /// Servers to run, by a part of their name; all unless named.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    server: Vec<String>,
    /// The folder with Kafka's archives (`perf/peers` fetches them).
    #[arg(long, value_name = "DIR")]
    kafka: Option<PathBuf>,
    /// What the names of the kept files begin with; `peers` with --peers and `run` without, unless named.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    #[command(flatten)]
    results: ResultsArguments,
}

/// Not counted, at the start of each run of a server.
const WARM_UP: Duration = Duration::from_secs(1);

/// Bytes of each log that is read hot: all logs together fit the tail cache that a run's broker has many times.
const HOT_LOG_BYTES: u64 = 8 << 20;
/// Bytes of each log that is read cold: together several times what that tail cache keeps.
const COLD_LOG_BYTES: u64 = 512 << 20;
/// How far each of these is read, so that no tail cache ever has it.
const COLD_READ_BYTES: u64 = 256 << 20;

/// How long a limit is measured in each round at most: 0.1 % of a second's writes and round trips are still several.
const LIMIT_TIME_MAX: Duration = Duration::from_secs(1);

/// Share of requests that a driver may send late before the table says so.
const LATE_SHARE_MAX: f64 = 0.01;

/// All rounds of one workload against one server.
#[derive(Serialize)]
struct Row {
    subject: Subject,
    name: String,
    events_per_second: Figure,
    /// Against the first server, round by round.
    ratio: Figure,
    cpu_seconds_per_million: Figure,
    p50_us: Figure,
    p99_us: Figure,
    p999_us: Figure,
    resident_bytes_max: Figure,
    /// Of the driver itself: see [`RoundResult::late_share`].
    late_share: Figure,
    rounds: Vec<RoundResult>,
}

#[derive(Serialize)]
struct Table {
    workload: Workload,
    /// What the machine gave, round by round.
    limits: Vec<RoundLimits>,
    rows: Vec<Row>,
}

/// What is kept of one workload.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    origin: &'a Origin,
    server_cpus: Option<&'a [usize]>,
    seconds: u16,
    #[serde(flatten)]
    table: &'a Table,
}

/// The workloads, by the names of the performance page.
pub fn workloads() -> Vec<Workload> {
    let closed = |name, event_bytes, batch_bytes, connections, in_flight| Workload {
        name,
        event_bytes,
        events_a_batch: events_that_fit(event_bytes, batch_bytes),
        connections,
        pace: Pace::InFlight(in_flight),
    };
    let open = |name, event_bytes, connections, rate| Workload {
        name,
        event_bytes,
        events_a_batch: 10,
        connections,
        pace: Pace::EventsPerSecond(rate),
    };
    let read = |name, event_bytes, batch_bytes, log_bytes, read_bytes| Workload {
        name,
        event_bytes,
        events_a_batch: events_that_fit(event_bytes, batch_bytes),
        connections: 8,
        pace: Pace::Read {
            log_bytes,
            read_bytes,
        },
    };
    vec![
        closed("small", 100, 16 << 10, 8, 5),
        closed("large", 1024, 128 << 10, 8, 8),
        closed("small-one", 100, 16 << 10, 1, 5),
        closed("large-16k", 1024, 16 << 10, 8, 5),
        read("read-small", 100, 16 << 10, HOT_LOG_BYTES, HOT_LOG_BYTES),
        read("read-large", 1024, 128 << 10, HOT_LOG_BYTES, HOT_LOG_BYTES),
        read(
            "read-cold",
            1024,
            128 << 10,
            COLD_LOG_BYTES,
            COLD_READ_BYTES,
        ),
        open("open-20k", 100, 1, 20_000),
        open("open-100k", 100, 1, 100_000),
    ]
}

/// Runs, prints, and leaves the figures behind.
///
/// # Errors
/// When a server does not come up, refuses or stops answering.
pub fn run(arguments: &RunArguments) -> Result<()> {
    let wanted = wanted(&arguments.workload)?;
    let setup = Setup {
        tackboard: broker_binary(arguments.tackboard.as_deref())?,
        kafka: arguments.kafka.clone(),
        server_cpus: arguments.server_cpus.clone(),
        driver_cpus: arguments.server_cpus.as_deref().map(all_but).transpose()?,
    };
    let subjects = subjects(arguments)?;
    let folder = DataFolder::create(&arguments.data)?;
    let origin = Origin::of(folder.path());
    let results = Results::new(&arguments.results);
    for workload in wanted {
        let taking = taking(&workload, &subjects);
        if taking.is_empty() {
            continue;
        }
        let name = format!("{}-{}", label(arguments), workload.name);
        let table = compare(workload, &taking, arguments, &setup, folder.path())?;
        print(&table);
        let report = Report {
            origin: &origin,
            server_cpus: arguments.server_cpus.as_deref(),
            seconds: arguments.seconds,
            table: &table,
        };
        results.text(&format!("{name}-latency.svg"), &latency_picture(&table))?;
        results.text(&format!("{name}-timeline.svg"), &timeline(&table))?;
        results.figures(&name, &report)?;
    }
    if let Some(folder) = results.shown() {
        eprintln!("kept in {folder}");
    }
    Ok(())
}

fn label(arguments: &RunArguments) -> &str {
    let of_servers = match arguments.peers {
        true => "peers",
        false => "run",
    };
    arguments.label.as_deref().unwrap_or(of_servers)
}

/// The CPUs that the servers leave to the driver.
fn all_but(servers: &[usize]) -> Result<Vec<usize>> {
    let rest: Vec<usize> = allowed_cpus()
        .into_iter()
        .filter(|cpu| !servers.contains(cpu))
        .collect();
    ensure!(
        !rest.is_empty(),
        Usage("--server-cpus leaves no CPU to the driver".into())
    );
    Ok(rest)
}

/// A curve for each server, over all rounds.
fn latency_picture(table: &Table) -> String {
    let curves = table.rows.iter().map(|row| {
        let mut all = Latencies::new();
        for round in &row.rounds {
            all.add(&round.latencies);
        }
        all.curve(row.name.clone())
    });
    plot::by_percentile(&curves.collect::<Vec<_>>())
}

/// The rounds of each server one after the other, as if nothing had been between them.
fn timeline(table: &Table) -> String {
    let mut ends = Vec::new();
    let courses = table.rows.iter().map(|row| {
        let (mut moments, mut begin) = (Vec::new(), 0.0);
        ends.clear();
        for round in &row.rounds {
            moments.extend(round.moments.iter().map(|moment| Moment {
                seconds: begin + moment.seconds,
                ..*moment
            }));
            begin = moments.last().map_or(begin, |moment| moment.seconds);
            ends.push(begin);
        }
        Course {
            name: row.name.clone(),
            moments,
        }
    });
    let courses: Vec<Course> = courses.collect();
    plot::over_time(&courses, &ends)
}

fn wanted(names: &[String]) -> Result<Vec<Workload>> {
    let all = workloads();
    if let Some(unknown) = names
        .iter()
        .find(|name| all.iter().all(|one| one.name != **name))
    {
        let known: Vec<&str> = all.iter().map(|one| one.name).collect();
        let known = known.join(", ");
        bail!(Usage(format!("--workload {unknown} is not one of {known}")));
    }
    Ok(all
        .into_iter()
        .filter(|one| names.is_empty() || names.iter().any(|name| name == one.name))
        .collect())
}

fn subjects(arguments: &RunArguments) -> Result<Vec<Subject>> {
    let peers: &[Subject] = match arguments.peers {
        true => &subject::PEERS,
        false => &[],
    };
    let doors: &[Subject] = match arguments.doors || arguments.peers {
        true => &subject::DOORS,
        false => &[],
    };
    let takes_part = |subject: &Subject| {
        let is_there = !matches!(subject, Subject::Kafka(_)) || arguments.kafka.is_some();
        let name = subject.name();
        let parts = &arguments.server;
        is_there && (parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str())))
    };
    let all = subject::OURS.iter().chain(doors).chain(peers).copied();
    let taken: Vec<Subject> = all.filter(takes_part).collect();
    if taken.is_empty() {
        bail!(Usage("--server names none of the servers".into()));
    }
    Ok(taken)
}

/// The servers that the workload can be run against; says which are left out.
fn taking(workload: &Workload, subjects: &[Subject]) -> Vec<Subject> {
    let (taking, left_out): (Vec<Subject>, Vec<Subject>) = subjects
        .iter()
        .partition(|subject| subject.takes(workload.pace));
    for subject in left_out {
        eprintln!(
            "{}: without {}, which is not read back here",
            workload.name,
            subject.name()
        );
    }
    taking
}

fn broker_binary(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("tackboard"),
    };
    if !path.is_file() {
        bail!(Usage(format!(
            "{} is not there; build it with `cargo build --release -p tackboard-broker`, or name it with --tackboard",
            path.display()
        )));
    }
    Ok(path)
}

fn compare(
    workload: Workload,
    subjects: &[Subject],
    arguments: &RunArguments,
    setup: &Setup,
    folder: &Path,
) -> Result<Table> {
    let length = RoundLength {
        warm_up: WARM_UP,
        measured: Duration::from_secs(arguments.seconds.into()),
    };
    let mut rounds: Vec<Vec<RoundResult>> = subjects.iter().map(|_| Vec::new()).collect();
    let mut limits = Vec::new();
    for round in 0..usize::from(arguments.rounds) {
        let for_limits = length.measured.min(LIMIT_TIME_MAX);
        let mut of_round = beside::measure(&workload, folder, for_limits)?;
        for turn in 0..subjects.len() {
            let index = (round + turn) % subjects.len();
            let subject = subjects[index];
            eprintln!("{} round {}: {}", workload.name, round + 1, subject.name());
            let result = one_run(subject, &workload, length, setup, folder, &mut of_round);
            rounds[index].push(result.with_context(|| subject.name())?);
        }
        limits.push(of_round);
    }
    let base: Vec<f64> = rounds[0]
        .iter()
        .map(|result| result.events_per_second)
        .collect();
    let rows = subjects.iter().zip(rounds);
    let rows = rows.map(|(subject, rounds)| row(*subject, rounds, &base));
    Ok(Table {
        workload,
        limits,
        rows: rows
            .collect::<Option<_>>()
            .context("there is at least one round")?,
    })
}

fn one_run(
    subject: Subject,
    workload: &Workload,
    length: RoundLength,
    setup: &Setup,
    folder: &Path,
    limits: &mut RoundLimits,
) -> Result<RoundResult> {
    let data = folder.join("run");
    fs::create_dir_all(&data)?;
    let server = subject.start(setup, &data)?;
    let result = drive(
        server.lanes(workload)?,
        workload,
        length,
        server.pid(),
        setup.driver_cpus.as_deref(),
    )?;
    server.stop()?;
    if let (Pace::Read { read_bytes, .. }, Subject::Tackboard(_)) = (workload.pace, subject)
        && read_bytes == COLD_READ_BYTES
    {
        let rate = beside::read_back(&data, read_bytes, length.measured.min(LIMIT_TIME_MAX) * 2)?;
        let fastest = limits.direct_read_bytes_per_second.get_or_insert(rate);
        *fastest = fastest.max(rate);
    }
    // What one server left in the page cache and the device's queue is not the next one's burden.
    fs::remove_dir_all(&data)?;
    sync_all();
    Ok(result)
}

fn sync_all() {
    // SAFETY: no pointers.
    unsafe { libc::sync() };
}

fn row(subject: Subject, rounds: Vec<RoundResult>, base: &[f64]) -> Option<Row> {
    let of = |pick: fn(&RoundResult) -> f64| Figure::of(rounds.iter().map(pick));
    let ratios = rounds.iter().zip(base);
    Some(Row {
        subject,
        name: subject.name(),
        events_per_second: of(|result| result.events_per_second)?,
        ratio: Figure::of(ratios.map(|(result, base)| result.events_per_second / base))?,
        cpu_seconds_per_million: of(|result| result.cpu_seconds_per_million)?,
        p50_us: of(|result| result.latency.p50_us)?,
        p99_us: of(|result| result.latency.p99_us)?,
        p999_us: of(|result| result.latency.p999_us)?,
        resident_bytes_max: of(|result| result.resident_bytes_max as f64)?,
        late_share: of(|result| result.late_share)?,
        rounds,
    })
}

fn print(table: &Table) {
    let workload = &table.workload;
    println!(
        "\n{}: {} B events, {} a batch, {} connections, {}",
        workload.name,
        workload.event_bytes,
        workload.events_a_batch,
        workload.connections,
        workload.pace
    );
    let first = table.rows.first().map(|row| row.subject.name());
    println!("ratio: to {}", first.unwrap_or_default());
    println!(
        "{:<34} {:<22} {:<18} {:<22} {:<24} {:<24} p99.9 µs",
        "", "k ev/s", "ratio", "CPU s/M ev", "p50 µs", "p99 µs"
    );
    for row in &table.rows {
        println!(
            "{:<34} {:<22} {:<18} {:<22} {:<24} {:<24} {}",
            row.subject.name(),
            row.events_per_second
                .show(|rate| format!("{:.0}", rate / 1000.0)),
            row.ratio.show(|ratio| format!("{ratio:.2}")),
            row.cpu_seconds_per_million
                .show(|seconds| format!("{seconds:.3}")),
            row.p50_us.show(|micros| format!("{micros:.0}")),
            row.p99_us.show(|micros| format!("{micros:.0}")),
            row.p999_us.show(|micros| format!("{micros:.0}")),
        );
    }
    for row in table.rows.iter().filter(|row| missed_its_schedule(row)) {
        println!(
            "{}: the driver itself was late with {} % of the requests",
            row.subject.name(),
            row.late_share.show(|share| format!("{:.0}", share * 100.0)),
        );
    }
}

/// Whether the driver was late so often in any round that the row says as much of it as of the server.
fn missed_its_schedule(row: &Row) -> bool {
    row.late_share.greatest > LATE_SHARE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_brokers_are_left_out_of_what_can_not_be_run_against_them() {
        let others = subject::DOORS.into_iter().chain(subject::PEERS);
        let all: Vec<Subject> = subject::OURS.into_iter().chain(others).collect();
        for workload in workloads() {
            let taking = taking(&workload, &all);
            assert!(taking.starts_with(&subject::OURS), "{}", workload.name);
            let with_peers = taking.len() == all.len();
            let reads = matches!(workload.pace, Pace::Read { .. });
            assert_eq!(with_peers, !reads, "{}", workload.name);
        }
    }

    #[test]
    fn the_performance_page_knows_every_workload() {
        let page = include_str!("../../docs/performance.md");
        for workload in workloads() {
            let name = format!("`{}`", workload.name);
            assert!(page.contains(&name), "{name} is not on docs/performance.md");
        }
    }
}
