//! The load generator as people run it: verdict, exit codes, and that nothing stays behind, however it ends.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const LOADGEN: &str = env!("CARGO_BIN_EXE_tackboard-loadgen");

/// Only one load at a time: these tests share few cores.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A folder on the disk of the build folder, for the broker's temporary folder to be made in.
fn parent() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn loadgen(parent: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(LOADGEN);
    command
        .args(arguments)
        .arg("--data")
        .arg(parent)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{error}\nstdout {text}\nstderr {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "waited too long until {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: no pointers; the child was not waited for yet, so its id is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

#[test]
fn three_stages_hold_and_leave_nothing() {
    let _alone = alone();
    let parent = parent();
    let out = parent.path().join("out");
    let output = loadgen(
        parent.path(),
        &["--stage-duration", "500ms", "--steady-rate", "2000"],
    )
    .arg("--json")
    .arg("--out")
    .arg(&out)
    .output()
    .unwrap();
    let object = json(&output);
    assert!(output.status.success(), "{object:#}");
    let verified = &object["verified"];
    for field in ["lost", "duplicated", "out_of_order", "corrupted"] {
        assert_eq!(verified[field], 0, "{verified:#}");
    }
    assert_eq!(verified["acknowledged"], verified["read_back"]);
    assert!(
        verified["acknowledged"].as_u64().unwrap() > 21_000,
        "{verified:#}"
    );
    assert_eq!(object["real"]["verified"]["acknowledged"], 20_000);
    assert!(object["produce"]["events_per_second"].as_f64().unwrap() > 0.0);
    assert!(object["steady"]["kept_schedule"].is_boolean());
    assert!(object["end_to_end"]["p50_us"].as_f64().unwrap() > 0.0);

    let saved = std::fs::read_dir(&out)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert!(saved.join("run.json").is_file() && saved.join("timeline.svg").is_file());
    assert_eq!(
        entries(parent.path()),
        1,
        "nothing but what was asked for is left"
    );
}

/// Through the door for clients of Kafka: the same load, and the same verdict.
#[test]
fn a_run_through_kafkas_protocol_holds() {
    let _alone = alone();
    let parent = parent();
    let kafka = [
        "run",
        "--protocol",
        "kafka",
        "--count",
        "200000",
        "--keys",
        "zipf:1000",
        "--producers",
        "2",
        "--consumers",
        "2",
        "--out",
        "none",
        "--json",
    ];
    for more in [
        &["--acks", "all", "--compression", "lz4"][..],
        &["--acks", "1", "--durability", "written", "--rate", "50k"],
    ] {
        let output = loadgen(parent.path(), &kafka).args(more).output().unwrap();
        let object = json(&output);
        let verified = &object["verified"];
        for field in ["lost", "duplicated", "out_of_order", "corrupted"] {
            assert_eq!(verified[field], 0, "{verified:#}");
        }
        assert_eq!(verified["acknowledged"], 200_000, "{object:#}");
        assert_eq!(verified["read_back"], 200_000, "{object:#}");
        let stage = &object["stages"][0];
        assert_eq!(stage["plan"]["protocol"], "kafka");
        let settings = stage["settings"].to_string();
        assert!(settings.contains("tackboard.durability="), "{settings}");
    }
    assert_eq!(entries(parent.path()), 0, "nothing is left");
}

/// Nothing is acknowledged, so nothing is verified; what was sent is there.
#[test]
fn kafkas_protocol_without_acks() {
    let _alone = alone();
    let parent = parent();
    let arguments = "run --protocol kafka --mode produce --acks 0 --count 50000 --out none --json";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = loadgen(parent.path(), &arguments).output().unwrap();
    let object = json(&output);
    assert!(output.status.success(), "{object:#}");
    assert_eq!(object["produce"]["events"], 50_000, "{object:#}");
}

#[test]
fn what_kafkas_protocol_cannot_ask_for_is_refused() {
    for acks in ["2", "topic"] {
        let mut command = Command::new(LOADGEN);
        command.args(["run", "--protocol", "kafka", "--acks", acks]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("--acks") && text.contains("0, 1 or all"),
            "{text}"
        );
    }
}

#[test]
fn results_are_compared_as_they_were_saved() {
    let _alone = alone();
    let parent = parent();
    let out = parent.path().join("before");
    let output = loadgen(
        parent.path(),
        &["run", "--count", "5000", "--rate", "5k", "--json"],
    )
    .arg("--out")
    .arg(&out)
    .output()
    .unwrap();
    let object = json(&output);
    let printed = parent.path().join("printed.json");
    std::fs::write(&printed, &output.stdout).unwrap();
    let mut slower = object.clone();
    let stage = &mut slower["stages"][0];
    let rate = stage["produce"]["events_per_second"].as_f64().unwrap();
    stage["produce"]["events_per_second"] = (rate * 0.9).into();
    stage["plan"]["linger"] = "1 s".into();
    // Whether this machine kept the schedule is not what is tried.
    stage["schedule"]["kept_schedule"] = true.into();
    let slower_path = parent.path().join("slower.json");
    std::fs::write(&slower_path, slower.to_string()).unwrap();

    let compare = |a: &Path, b: &Path, more: &[&str]| {
        let mut command = Command::new(LOADGEN);
        command.arg("compare").arg(a).arg(b).args(more);
        command.output().unwrap()
    };
    // The folder that it was saved in and what it printed are the same result.
    let same = compare(&out, &printed, &["--json"]);
    assert_eq!(same.status.code(), Some(0), "{:#}", json(&same));
    assert_eq!(json(&same)["verdict"], "same");
    assert_eq!(json(&same)["comparable"], true, "{:#}", json(&same));

    stage_kept(&printed, object);
    let worse = compare(&printed, &slower_path, &[]);
    let text = String::from_utf8_lossy(&worse.stdout);
    assert_eq!(worse.status.code(), Some(1), "{text}");
    assert!(text.contains("B is worse beyond 5 %"), "{text}");
    assert!(
        text.contains("open loop: linger: A 0.0005 s, B 1 s"),
        "{text}"
    );
    let lenient = compare(&printed, &slower_path, &["--threshold", "20%"]);
    assert_eq!(lenient.status.code(), Some(0));

    let unusable = compare(&printed, &parent.path().join("none.json"), &[]);
    assert_eq!(unusable.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unusable.stderr).contains("none.json"));
}

#[test]
fn a_search_says_what_it_tried_and_found() {
    let _alone = alone();
    let parent = parent();
    let search = |p99: &str, more: &[&str]| {
        loadgen(parent.path(), &["search", "--p99", p99, "--rate", "500"])
            .args(["--duration", "300ms", "--warmup", "0", "--probes", "3"])
            .args(more)
            .output()
            .unwrap()
    };
    let output = search("60s", &["--json"]);
    let object = json(&output);
    let found = &object["search"];
    let probes = found["probes"].as_array().unwrap();
    assert!(!probes.is_empty() && probes.len() <= 3, "{found:#}");
    let passed = probes.iter().filter(|probe| probe["passed"] == true);
    let highest = passed
        .filter_map(|probe| probe["rate"].as_f64())
        .fold(0.0, f64::max);
    assert_eq!(found["rate_passed"].as_f64().unwrap_or(0.0), highest);
    // Whether this machine keeps such a schedule is its own affair; the exit code says what was found.
    assert_eq!(output.status.code(), Some(i32::from(highest == 0.0)));
    assert!(object["host"]["cores"].is_array());

    let output = search("10us", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("found   no rate that was tried keeps"),
        "{text}"
    );
    let told = String::from_utf8_lossy(&output.stderr);
    // The heading, and a line for each probe.
    assert_eq!(told.lines().count(), 4, "{told}");
    assert_eq!(entries(parent.path()), 0);
}

/// Writes the result as of a run that kept its schedule.
fn stage_kept(path: &Path, mut object: Value) {
    object["stages"][0]["schedule"]["kept_schedule"] = true.into();
    std::fs::write(path, object.to_string()).unwrap();
}

#[test]
fn text_ends_with_the_verdict() {
    let _alone = alone();
    let parent = parent();
    let output = loadgen(
        parent.path(),
        &[
            "run", "--count", "5000", "--keys", "zipf:100", "--out", "none",
        ],
    )
    .args(["--compression", "lz4", "--event-size", "40..400"])
    .output()
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let verdict =
        "verified: 5,000 acknowledged, 5,000 read back, 0 lost, 0 duplicated, 0 out of order";
    assert!(text.lines().any(|line| line == verdict), "{text}");
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "no progress when nobody looks");
    assert_eq!(entries(parent.path()), 0);
}

#[test]
fn all_flights_of_a_year_come_back_unchanged_and_in_order() {
    let _alone = alone();
    let parent = parent();
    let input = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../perf/data/flights.ndjson.gz"
    );
    let output = loadgen(parent.path(), &["run", "--input", input, "--json"])
        .args(["--key-field", "tailnum", "--out", "none"])
        .args(["--timestamp-field", "sched_dep"])
        .output()
        .unwrap();
    let object = json(&output);
    assert!(output.status.success(), "{object:#}");
    assert_eq!(object["verified"]["read_back"], 336_776);
    assert_eq!(object["verified"]["holds"], true);
}

#[test]
fn an_interrupted_run_cleans_up() {
    let _alone = alone();
    let parent = parent();
    let child = loadgen(parent.path(), &["--stage-duration", "60s", "--out", "none"])
        .spawn()
        .unwrap();
    wait_until("the folder is there", || entries(parent.path()) == 1);
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(entries(parent.path()), 0);
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next() {
    let _alone = alone();
    let parent = parent();
    let mut child = loadgen(parent.path(), &["--stage-duration", "60s", "--out", "none"])
        .spawn()
        .unwrap();
    wait_until("the folder is there", || entries(parent.path()) == 1);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert_eq!(entries(parent.path()), 1);
    let output = loadgen(parent.path(), &["run", "--count", "10", "--out", "none"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(entries(parent.path()), 0);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let _alone = alone();
    let parent = parent();
    let mut child = loadgen(parent.path(), &["run", "--count", "10", "--out", "none"])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn settings_that_can_not_be_used_start_nothing() {
    let run = |arguments: &[&str]| {
        let output = Command::new(LOADGEN).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
        text
    };
    let text = run(&["run", "--rate", "fast", "--event-size", "5"]);
    for expected in [
        "2 settings are not usable, nothing was started",
        "--rate = \"fast\"",
        "100k",
        "--event-size = \"5\"",
        "32 to 1,000,000",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(run(&["run", "--no-such-flag"]).contains("--no-such-flag"));
    assert!(run(&["run", "--input", "/no/such/file"]).contains("/no/such/file"));
    assert!(run(&["run", "--cores", "4000"]).contains("--cores"));
    assert!(run(&["run", "--scenario", "/no/such.toml"]).contains("/no/such.toml"));
}

#[test]
fn acks_that_no_replicas_can_give_are_refused_at_once() {
    let _alone = alone();
    let folder = parent();
    let output = loadgen(folder.path(), &["run", "--acks", "2", "--count", "10"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("--acks 2"), "{told}");
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_broker_that_is_not_there_is_named() {
    let output = Command::new(LOADGEN)
        .args([
            "run",
            "--broker",
            "127.0.0.1:1",
            "--give-up",
            "1s",
            "--out",
            "none",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("127.0.0.1:1"), "{text}");
}

#[test]
fn the_data_files_are_what_their_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("perf/data/README.md")).unwrap();
    for file in [
        "perf/data/flights.ndjson.gz",
        "loadgen/data/flights-20000.ndjson.gz",
    ] {
        let output = Command::new("sha256sum")
            .arg(root.join(file))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let checksum = text.split(' ').next().unwrap();
        assert!(
            checksum.len() == 64 && page.contains(checksum),
            "{file}: {checksum}"
        );
    }
}
