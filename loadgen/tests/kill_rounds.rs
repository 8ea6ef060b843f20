//! A broker that is killed again and again while numbered events are written: nothing acknowledged may be lost, nothing
//! duplicated.
//!
//! `TACKBOARD_KILL_ROUNDS` says how often (3 unless set).

use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use serde_json::Value;

const LOADGEN: &str = env!("CARGO_BIN_EXE_tackboard-loadgen");

/// Time that a broker serves before it is killed.
const ROUND: Duration = Duration::from_millis(1500);

/// Longest time that a broker takes to start.
const START_MAX: Duration = Duration::from_secs(20);

/// Only one load at a time: these tests share few cores, and look for a free port from the same one on.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rounds() -> u32 {
    std::env::var("TACKBOARD_KILL_ROUNDS").map_or(3, |text| {
        text.parse()
            .expect("TACKBOARD_KILL_ROUNDS is a whole number")
    })
}

/// The broker's binary lies beside the load generator's. Testing one package does not build another's, so it is built
/// here; that takes a moment when it is there already.
fn broker_binary() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    let path = Path::new(LOADGEN).with_file_name("tackboard");
    BUILT.call_once(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            "tackboard-broker",
            "--bin",
            "tackboard",
        ]);
        if path
            .parent()
            .is_some_and(|folder| folder.ends_with("release"))
        {
            build.arg("--release");
        }
        assert!(
            build.status().unwrap().success(),
            "the broker does not build"
        );
    });
    path
}

/// A port below those that the system hands out by itself: while the broker is down nobody gets it by chance, and a client
/// that dials it can't be connected to itself.
fn free_port() -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..first + 100)
        .find(is_free)
        .expect("one of a hundred ports is free")
}

/// A broker that is killed when this is dropped.
struct Broker(Child);

impl Broker {
    /// Starts it, with this durability as its default, and waits until it serves.
    fn start(data: &Path, port: u16, durability: &str) -> Self {
        let mut child = Command::new(broker_binary())
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--set", &format!("native.bind=127.0.0.1:{port}")])
            .args(["--set", "native.core_bind=127.0.0.1:0"])
            .args(["--set", "kafka.bind=off"])
            .args(["--set", "http.bind=off"])
            .args(["--set", &format!("durability.default={durability}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let broker = Self(child);
        let (ready, is_ready) = mpsc::channel();
        std::thread::spawn(move || {
            let is_it = |line: io::Result<String>| {
                line.is_ok_and(|line| line.trim_start().starts_with("ready"))
            };
            let _ = ready.send(lines.any(is_it));
            // Whatever it still prints is read, so that it never waits for a reader.
            lines.for_each(drop);
        });
        let served = is_ready.recv_timeout(START_MAX);
        assert_eq!(served, Ok(true), "the broker did not start");
        broker
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kill_rounds(durability: &str) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = folder.path().join("data");
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let broker = Broker::start(&data, port, durability);

    let sending = ROUND * (rounds() + 1);
    let verify = Command::new(LOADGEN)
        .args(["verify", "--json", "--out", "none", "--broker", &address])
        .args(["--duration", &format!("{}ms", sending.as_millis())])
        .args(["--durability", "topic", "--rate", "20k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut broker = broker;
    for _ in 0..rounds() {
        std::thread::sleep(ROUND);
        drop(broker);
        broker = Broker::start(&data, port, durability);
    }
    let output = verify.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let object: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let verified = &object["verified"];
    assert!(output.status.success(), "{verified:#}");
    assert_eq!(verified["holds"], true, "{verified:#}");
    assert!(
        verified["acknowledged"].as_u64().unwrap() > 1000,
        "{verified:#}"
    );
    // What is not acknowledged is sent again until it is.
    assert_eq!(verified["unacknowledged"], 0, "{object:#}");
    // A producer at least is connected whenever the broker is killed.
    assert!(
        object["reconnects"].as_u64().unwrap() >= u64::from(rounds()),
        "{} reconnects",
        object["reconnects"]
    );
    drop(broker);
}

#[test]
fn nothing_acknowledged_is_lost_or_duplicated_under_any_durability() {
    let _alone = alone();
    kill_rounds("fsync");
    kill_rounds("interval");
    kill_rounds("written");
}

#[test]
fn an_interrupted_verification_takes_nothing_for_lost_that_it_did_not_wait_for() {
    let _alone = alone();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let port = free_port();
    let _broker = Broker::start(&folder.path().join("data"), port, "fsync");
    let verify = Command::new(LOADGEN)
        .args(["verify", "--json", "--out", "none"])
        .args(["--broker", &format!("127.0.0.1:{port}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(ROUND);
    // SAFETY: sends a signal to our own child, which has not been waited for.
    unsafe { libc::kill(verify.id() as i32, libc::SIGINT) };
    let output = verify.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    let object: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    // What it read while it sent is all there is to judge by, and nothing at all if even that took too long.
    let verified = &object["verified"];
    assert!(
        verified.is_null() || verified["holds"] == true,
        "{verified:#}"
    );
    assert_eq!(object["interrupted"], true);
}
