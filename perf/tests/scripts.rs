//! The scripts beside this crate, with stand-ins for what they build and start: what they keep, where, and with which
//! exit code they end.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Set where a test that can't run on this machine is to fail.
const MUST_RUN: &str = "TACKBOARD_TESTS_MUST_RUN";

/// No step here takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that cargo seems to have built into.
struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    /// Nothing, by a cargo that builds nothing; or `None`, and says so, where scripts can't be run.
    fn new() -> Option<Self> {
        if Command::new("python3").arg("--version").output().is_err() {
            assert!(std::env::var_os(MUST_RUN).is_none(), "there is no python3");
            // Past what cargo keeps of a test's output.
            let _ = writeln!(std::io::stderr(), "passed over: there is no python3");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let built = Built { folder };
        built.program("cargo", "exit 0");
        Some(built)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a program that is this shell script.
    fn program(&self, name: &str, script: &str) {
        let release = self.path().join("release");
        fs::create_dir_all(&release).expect("a folder");
        let path = release.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }

    /// A script beside this crate, with what is built here.
    fn script(&self, script: &str, arguments: &[&str]) -> Command {
        let programs = std::env::var("PATH").expect("a path");
        let programs = format!("{}/release:{programs}", self.path().display());
        let mut command = Command::new(root().join("perf").join(script));
        command
            .args(arguments)
            .arg("--data")
            .arg(self.path())
            .env("PATH", programs)
            .env("CARGO_TARGET_DIR", self.path());
        command
    }

    /// Runs a script to its end.
    fn run(&self, script: &str, arguments: &[&str]) -> Output {
        let mut command = self.script(script, arguments);
        command.output().expect("it starts")
    }

    /// Interrupts a script as soon as a stand-in has put pids into the file `started`; all of them have ended then, or
    /// end soon.
    fn interrupt(&self, script: &str, arguments: &[&str]) {
        let mut command = self.script(script, arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Where the tests run in the background, they were told to ignore it, and so would the script.
        let heeds_interrupts = || {
            // SAFETY: sets a disposition to its default.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            Ok(())
        };
        // SAFETY: nothing but a system call happens between fork and exec.
        unsafe { command.pre_exec(heeds_interrupts) };
        let mut running = command.spawn().expect("it starts");
        let started = self.path().join("started");
        until("something was started", || started.exists());
        // SAFETY: sends a signal to our own child, which has not been waited for.
        unsafe { libc::kill(running.id() as libc::pid_t, libc::SIGINT) };
        let mut ended = None;
        until("the script ends", || {
            ended = running.try_wait().expect("it is a child");
            ended.is_some()
        });
        assert_eq!(ended.and_then(|status| status.code()), Some(130));
        let pids = fs::read_to_string(started).expect("pids");
        for pid in pids.split_whitespace() {
            until("what was started ends", || {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
                stat.map_or(true, |stat| stat.contains(") Z "))
            });
        }
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} never");
        thread::sleep(Duration::from_millis(10));
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The folder of results is named after the day and the commit, and either may change before the last is measured.
#[test]
fn all_measurements_of_a_run_are_kept_in_one_folder() {
    let Some(built) = Built::new() else {
        return;
    };
    // Decides on another folder whenever it is asked, and notes where it is to keep what it measures.
    let here = built.path().display();
    built.program(
        "tackboard-perf",
        &format!(
            r#"echo "$@" >> {here}/asked
               case $1 in table) wc -l < {here}/asked;; esac"#
        ),
    );
    let output = built.run("all", &["limits", "produce", "read-hot"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let asked = fs::read_to_string(built.path().join("asked")).expect("it was asked");
    let measured: Vec<&str> = asked.lines().filter(|line| *line != "table").collect();
    assert_eq!(measured.len(), 3, "{asked}");
    for line in measured {
        assert!(line.ends_with("--out 1"), "{asked}");
    }
}

#[test]
fn a_run_that_keeps_nothing_has_no_measurement_keep_anything() {
    let Some(built) = Built::new() else {
        return;
    };
    let here = built.path().display();
    let real = env!("CARGO_BIN_EXE_tackboard-perf");
    built.program(
        "tackboard-perf",
        &format!(r#"case $1 in table) exec {real} "$@";; *) echo "$@" >> {here}/asked;; esac"#),
    );
    let output = built.run("all", &["limits", "--out", "none"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let asked = fs::read_to_string(built.path().join("asked")).expect("it was asked");
    assert!(asked.ends_with("--out none\n"), "{asked}");
}

#[test]
fn a_measurement_that_fails_is_named_and_the_next_one_goes_on() {
    let Some(built) = Built::new() else {
        return;
    };
    let here = built.path().display();
    built.program(
        "tackboard-perf",
        &format!(r#"case $1 in table) echo {here}/out;; limits) exit 3;; esac"#),
    );
    let output = built.run("all", &["limits", "produce"]);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("failed: limits: exit code 3"), "{told}");
    assert!(told.contains("produce: done"), "{told}");
    assert!(told.contains("\n1 of 2 in "), "{told}");
}

#[test]
fn a_case_is_kept_with_machine_commit_and_table_and_one_that_fails_is_named() {
    let Some(built) = Built::new() else {
        return;
    };
    let real = env!("CARGO_BIN_EXE_tackboard-perf");
    built.program(
        "tackboard",
        "echo native 127.0.0.1:1\necho kafka 127.0.0.1:2\necho http 127.0.0.1:3\necho ready\nexec sleep 60",
    );
    built.program(
        "tackboard-perf",
        &format!(r#"case $1 in groups) echo "{{\"asked_$2\": $$}}";; *) exec {real} "$@";; esac"#),
    );
    // There is no load generator.
    let results = built.path().join("results");
    let arguments = ["producers", "group-rebalance", "--rounds", "2", "--out"];
    let arguments = [&arguments[..], &[results.to_str().expect("a name")]].concat();
    let output = built.run("cases", &arguments);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("producers FAILED"), "{told}");
    assert!(!told.contains("group-rebalance FAILED"), "{told}");
    assert!(!results.join("case-producers.json").exists(), "{told}");
    let kept = fs::read_to_string(results.join("case-group-rebalance.json")).expect("a file");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let values = kept["values"]["asked_127.0.0.1:2"].as_array();
    assert_eq!(values.map(Vec::len), Some(2), "a value for each round");
    let origin = Command::new(real)
        .arg("origin")
        .arg("--data")
        .arg(built.path())
        .current_dir(root())
        .output()
        .expect("it starts");
    let origin: Value = serde_json::from_slice(&origin.stdout).expect("JSON");
    assert_eq!(kept["machine"], origin["machine"]);
    assert_eq!(kept["commit"], origin["commit"]);
    let table = fs::read_to_string(results.join("README.md")).expect("a table");
    assert!(table.contains("From case-group-rebalance.json"), "{table}");
}

/// What takes the signal as a reason to end, and what only a kill of the whole group reaches.
#[test]
fn an_interrupted_run_ends_all_that_its_measurement_has_started() {
    let Some(built) = Built::new() else {
        return;
    };
    let here = built.path().display();
    built.program(
        "tackboard-perf",
        &format!(
            r#"case $1 in
               table) echo none;;
               limits) sleep 600 & echo $$ $! > {here}/part; mv {here}/part {here}/started; wait;;
               esac"#
        ),
    );
    built.interrupt("all", &["limits"]);
}

#[test]
fn an_interrupted_case_takes_its_broker_and_its_data_with_it() {
    let Some(built) = Built::new() else {
        return;
    };
    let here = built.path().display();
    built.program("tackboard-perf", r#"case $1 in origin) echo "{}";; esac"#);
    built.program(
        "tackboard",
        &format!("echo $$ > {here}/part; mv {here}/part {here}/started; exec sleep 600"),
    );
    built.interrupt("cases", &["start-empty"]);
    let left = fs::read_dir(built.path()).expect("a folder");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    let is_data = |name: &&OsString| name.to_string_lossy().starts_with("tackboard-cases-");
    assert_eq!(left.iter().find(is_data), None);
}

#[test]
fn what_there_is_not_to_measure_exits_2_before_anything_is_built() {
    let Some(built) = Built::new() else {
        return;
    };
    let here = built.path().display();
    built.program("cargo", &format!("touch {here}/built"));
    for script in ["all", "cases"] {
        let output = built.run(script, &["none-such"]);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("none-such; there are "), "{told}");
        assert!(!built.path().join("built").exists(), "{script}");
    }
}
