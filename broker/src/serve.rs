//! `tackboard serve`: a broker as a process. Checks, start-up lines, log, signals, exit code.
//!
//! Owns: everything that a process has once and a library must not touch: the signal mask, the log's
//! subscriber, stdout, the end of the process.
//!
//! Not here: the broker itself ([`crate::embedded`]).
//!
//! Where things go: start-up lines to stdout, warnings and faults about this start and the log to stderr.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tackboard_logic::log::recovery::RestartClass;

use crate::check::{self, Finding, Level, StorageVerdict};
use crate::cli::{Failure, ServeArguments};
use crate::config::host::file_system_space;
use crate::config::quantity::{approximate_size, separated};
use crate::config::{self, Config, LogFormat, Logging};
use crate::control::{ControlEvent, RecoverySummary};
use crate::disk::FAULTS_VARIABLE;
#[cfg(feature = "inject-faults")]
use crate::disk::inject;
use crate::embedded::{self, Handle};
use crate::shard::run::Recovered;
use crate::signals::Signals;

/// What is granted to a shutdown beyond its deadline before the process is ended from outside of it.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// A signal that comes this soon after the first one belongs to it: who stops a process by name and by its group sends
/// two, `timeout` for one.
const SIGNAL_ECHO: Duration = Duration::from_millis(500);

/// Writes a line to stderr. Where that can't be done, as on a full disk, it is no reason to end: `eprintln!` would panic.
macro_rules! complain {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Reasons to stop that wait to be acted on.
const STOPS_MAX: usize = 4;

/// Why the broker stops.
enum Stop {
    /// SIGINT or SIGTERM.
    Signal(&'static str),
    /// It cannot go on.
    Fatal(String),
}

/// Runs a broker until it is told to stop.
///
/// # Errors
/// When it could not start, or had to stop by itself.
pub fn run(arguments: &ServeArguments, signals: Signals) -> Result<ExitCode, Failure> {
    let started_at = Instant::now();
    let config = config::load(&arguments.sources())?;
    arm_faults()?;
    let warnings = check_machine(&config)?;
    log_to_stderr(&config.logging);
    if let Err(error) = check::raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    // A signal, or the broker's own fault: the first is enough.
    let (stop, stopped) = flume::bounded(STOPS_MAX);
    let serving = Arc::new(AtomicBool::new(false));
    wait_for_signals(signals, stop.clone(), serving.clone());
    say(&before_start(&config));
    // Before anybody is told that it is ready: a signal from then on is a stop in order.
    let ready = || serving.store(true, Ordering::Release);
    let handle = embedded::start_then(config, ready).map_err(|error| {
        // What to do next stands behind the first semicolon.
        Failure::failed(error.to_string().replacen("; ", "\n", 1))
    })?;
    for warning in &warnings {
        warn(
            &format!("{} {}", warning.name, warning.text),
            warning.remedy.as_deref(),
        );
    }
    for fault in &handle.faults {
        warn(
            &format!("partition {}: {}", fault.partition, fault.reason),
            None,
        );
    }
    let strangers = &handle.strangers;
    if strangers.count > 0 {
        warn(
            &format!(
                "{} among the logs of the data folder belong to no topic and are left alone: {}{}",
                counted(strangers.count, "entry", "entries"),
                strangers.names.join(", "),
                if strangers.names.len() as u64 == strangers.count {
                    ""
                } else {
                    ", …"
                }
            ),
            Some(
                "if they were served before, metadata is missing: restore meta/ from a copy; else move them away",
            ),
        );
    }
    say(&after_start(&handle, started_at.elapsed()));
    watch(&handle, stop);
    let why = stopped
        .recv()
        .expect("the watcher or the signals hold the sender");
    Ok(shut_down(handle, why, &stopped))
}

/// The storage faults that a test asks for. A build without them refuses: a test that met none would prove nothing, and
/// elsewhere nobody wants them.
fn arm_faults() -> Result<(), Failure> {
    let Some(rules) = std::env::var_os(FAULTS_VARIABLE) else {
        return Ok(());
    };
    #[cfg(feature = "inject-faults")]
    let armed = inject::arm(&rules.to_string_lossy());
    #[cfg(not(feature = "inject-faults"))]
    let armed: Result<(), _> = Err(format!(
        "{} asks for storage faults, and this build makes none; unset it",
        rules.display()
    ));
    armed.map_err(|what| Failure::Usage(format!("{FAULTS_VARIABLE}: {what}")))
}

/// Refuses a machine that cannot run the broker before anything is started; returns what is worth a warning.
fn check_machine(config: &Config) -> Result<Vec<Finding>, Failure> {
    let findings = check::run(config);
    let faults: Vec<&Finding> = of_level(&findings, Level::Fault).collect();
    if faults.is_empty() {
        return Ok(of_level(&findings, Level::Warn).cloned().collect());
    }
    let mut text = String::from(
        "this machine cannot run the broker as it is configured, nothing was started:",
    );
    for fault in faults {
        let _ = write!(text, "\n{}: {}", fault.name, fault.text);
        if let Some(remedy) = &fault.remedy {
            let _ = write!(text, "\n  {remedy}");
        }
    }
    Err(Failure::Usage(text))
}

fn of_level(findings: &[Finding], level: Level) -> impl Iterator<Item = &Finding> {
    findings
        .iter()
        .filter(move |finding| finding.level == level)
}

fn log_to_stderr(logging: &Logging) {
    let level = match logging.level {
        "error" => tracing::Level::ERROR,
        "warn" => tracing::Level::WARN,
        "debug" => tracing::Level::DEBUG,
        "trace" => tracing::Level::TRACE,
        _ => tracing::Level::INFO,
    };
    // What the runtime warns of at start-up `check` says in words that tell what to do.
    let filter = tracing_subscriber::EnvFilter::new(format!("{level},glommio_ng=error"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Told with `eprintln!`, on the stream that failed.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    // Fails only if a subscriber is set already, which the binary does nowhere else.
    let _ = match logging.format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => builder
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
    };
}

/// The first signal stops the broker, or, while it starts, the process: recovery may be interrupted
/// anywhere. The second one, unless it is an echo, ends the process at once.
fn wait_for_signals(signals: Signals, stop: flume::Sender<Stop>, serving: Arc<AtomicBool>) {
    let wait = move || {
        let first = signals.wait();
        if !serving.load(Ordering::Acquire) {
            complain!("{first} while starting: the next start begins again");
            std::process::exit(1);
        }
        let _ = stop.try_send(Stop::Signal(first));
        let first_at = Instant::now();
        let mut second = signals.wait();
        while first_at.elapsed() < SIGNAL_ECHO {
            second = signals.wait();
        }
        complain!("{second} again: ending at once, the next start recovers as after a crash");
        std::process::exit(1);
    };
    let spawned = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait);
    if let Err(error) = spawned {
        tracing::error!(%error, "no thread for signals; only SIGKILL will stop this process");
    }
}

/// Passes on what the control thread reports.
fn watch(handle: &Handle, stop: flume::Sender<Stop>) {
    let events = handle.events();
    let forward = move || {
        while let Ok(event) = events.recv() {
            match event {
                ControlEvent::Fatal { reason } => {
                    let _ = stop.try_send(Stop::Fatal(reason));
                }
                ControlEvent::MetadataFailed { reason } => {
                    tracing::error!(%reason, "topics can be neither created nor deleted until a restart");
                }
                ControlEvent::Ready { .. } => {}
            }
        }
    };
    let spawned = thread::Builder::new()
        .name("events".to_owned())
        .spawn(forward);
    if let Err(error) = spawned {
        tracing::error!(%error, "no thread for events of the broker");
    }
}

/// Ends the broker within its deadline, and says how.
fn shut_down(handle: Handle, why: Stop, stopped: &flume::Receiver<Stop>) -> ExitCode {
    let deadline = handle.config().shutdown_deadline;
    let began = Instant::now();
    let forced = match &why {
        Stop::Signal(name) => {
            say(&format!(
                "stopping on {name}, within {} s\n",
                deadline.as_secs()
            ));
            false
        }
        Stop::Fatal(reason) => {
            tracing::error!(%reason, "the broker cannot go on and stops");
            true
        }
    };
    end_by_force_after(deadline + SHUTDOWN_GRACE);
    let clean = handle.shutdown();
    if let Ok(Stop::Fatal(reason)) = stopped.try_recv() {
        tracing::error!(%reason, "reported while stopping");
    }
    let took_ms = began.elapsed().as_millis();
    match (clean, forced) {
        (true, false) => {
            say(&format!("stopped cleanly in {took_ms} ms\n"));
            ExitCode::SUCCESS
        }
        (true, true) => ExitCode::FAILURE,
        (false, _) => {
            complain!(
                "error  not everything was written and synced in {took_ms} ms\n       the next start recovers as after a crash; what was acknowledged under fsync is safe"
            );
            ExitCode::FAILURE
        }
    }
}

/// A core that hangs in the kernel cannot be joined. Its acknowledged events are safe without it.
fn end_by_force_after(patience: Duration) {
    let end = move || {
        thread::sleep(patience);
        complain!(
            "error  a thread does not end; the process is ended, the next start recovers as after a crash"
        );
        std::process::exit(1);
    };
    // Without this thread a hanging core only hangs; SIGKILL is left.
    let _ = thread::Builder::new()
        .name("deadline".to_owned())
        .spawn(end);
}

/// What is known before anything runs.
fn before_start(config: &Config) -> String {
    let version = match option_env!("TACKBOARD_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    let folder = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    let mut line = format!("tackboard {version}   broker {}\n", config.broker_id);
    let _ = write!(line, "data     {}", folder.display());
    let above = config::host::existing_ancestor(&config.data_dir);
    if let Some(Ok(space)) = above.map(|folder| file_system_space(&folder)) {
        let free = approximate_size(space.free_bytes);
        let _ = write!(
            line,
            "   {free} free (reserve {})",
            approximate_size(config.reserve_bytes)
        );
    }
    let cores: Vec<String> = config.cores.iter().map(usize::to_string).collect();
    let budget = approximate_size(config.memory.core_bytes(config.cores.len()));
    let _ = write!(
        line,
        "\ncores    {}   {budget} memory budget each\n",
        cores.join(" ")
    );
    line
}

fn after_start(handle: &Handle, took: Duration) -> String {
    let mut text = format!(
        "storage  {}\nrecovery {}\n",
        storage(handle.storage()),
        recovery(handle)
    );
    let native = handle.native_address();
    let cores: Vec<String> = handle
        .core_addresses()
        .iter()
        .enumerate()
        .map(|(core, address)| {
            // The port alone says enough where the address is the same.
            if address.ip() == native.ip() {
                format!("core {core} :{}", address.port())
            } else {
                format!("core {core} {address}")
            }
        })
        .collect();
    let _ = writeln!(text, "native   {native}   {}", cores.join(", "));
    if let Some(kafka) = handle.kafka_address() {
        let _ = writeln!(text, "kafka    {kafka}");
    }
    if let Some(http) = handle.http_address() {
        let _ = writeln!(text, "http     {http}   /metrics, /healthz, /readyz");
    }
    let _ = writeln!(text, "cluster  {}", handle.image.cluster_id);
    let _ = writeln!(text, "ready in {} ms", took.as_millis());
    text
}

/// How the data folder is written, and why not as it should be.
fn storage(verdict: &StorageVerdict) -> String {
    match verdict.reason() {
        None => format!("direct, {}", verdict.file_system),
        Some(reason) => format!("buffered ({reason})"),
    }
}

fn recovery(handle: &Handle) -> String {
    let topics = handle.image.topics().len() as u64;
    if topics == 0 && handle.image.version <= 1 {
        return "new data folder".to_owned();
    }
    recovery_line(
        handle.restart(),
        [topics, handle.faults.len() as u64],
        &handle.recovered,
        handle.metadata_recovery(),
    )
}

/// Everything that recovery counted, on one line; what did not happen is left out.
fn recovery_line(
    restart: RestartClass,
    [topics, unopened]: [u64; 2],
    logs: &Recovered,
    metadata: &RecoverySummary,
) -> String {
    let before = match restart {
        RestartClass::Clean => "clean shutdown",
        RestartClass::ProcessCrash => "after a crash of the process",
        RestartClass::HostCrash => "after a crash of the machine",
        RestartClass::DirReplaced => "ledgers are lost",
    };
    let mut parts = vec![
        before.to_owned(),
        counted(topics, "topic", "topics"),
        counted(logs.logs, "partition", "partitions"),
    ];
    parts.push(match logs.scanned_bytes {
        0 => "nothing to scan".to_owned(),
        bytes => format!("{} scanned", approximate_size(bytes)),
    });
    let skipped = metadata.snapshots_skipped.len() as u64;
    let counts = [
        (logs.torn_tails, "torn tail", "torn tails", " cut"),
        (logs.damaged, "damaged range", "damaged ranges", ""),
        (logs.unproven, "partition", "partitions", " without proof"),
        (unopened, "partition", "partitions", " not opened"),
        (
            metadata.commands_replayed,
            "metadata change",
            "metadata changes",
            " replayed",
        ),
        (
            skipped,
            "metadata snapshot",
            "metadata snapshots",
            " skipped",
        ),
    ];
    parts.extend(
        counts
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many, what)| format!("{}{what}", counted(count, one, many))),
    );
    if metadata.torn_bytes > 0 {
        let torn = approximate_size(metadata.torn_bytes);
        parts.push(format!("{torn} of a torn metadata write cut"));
    }
    parts.join(", ")
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        separated(count),
        if count == 1 { one } else { many }
    )
}

fn warn(text: &str, remedy: Option<&str>) {
    complain!("warning  {text}");
    if let Some(remedy) = remedy {
        complain!("         {remedy}");
    }
}

/// Whoever started us may have closed stdout; the broker serves all the same.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_about_recovery_tells_all_that_was_counted_and_nothing_else() {
        let quiet = Recovered {
            logs: 1,
            ..Recovered::default()
        };
        let nothing = RecoverySummary::default();
        assert_eq!(
            recovery_line(RestartClass::Clean, [1, 0], &quiet, &nothing),
            "clean shutdown, 1 topic, 1 partition, nothing to scan"
        );
        let logs = Recovered {
            logs: 12,
            scanned_bytes: 4_000,
            torn_tails: 2,
            damaged: 1,
            unproven: 3,
        };
        let metadata = RecoverySummary {
            commands_replayed: 5,
            torn_bytes: 120,
            snapshots_skipped: vec!["snapshot-7".to_owned()],
        };
        assert_eq!(
            recovery_line(RestartClass::ProcessCrash, [4, 1], &logs, &metadata),
            "after a crash of the process, 4 topics, 12 partitions, 4 kB scanned, 2 torn tails cut, \
             1 damaged range, 3 partitions without proof, 1 partition not opened, \
             5 metadata changes replayed, 1 metadata snapshot skipped, 120 B of a torn metadata write cut"
        );
    }
}
