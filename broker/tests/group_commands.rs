//! `tackboard group` and `tackboard consume --group`, as a user has them.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;

use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use process::{Broker, folder, serve, text};

/// Longest that something may take before it is taken for never.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(data: &std::path::Path) -> Broker {
    let fast = ["--set", "group.initial.rebalance.delay.ms=0"];
    Broker::spawn(serve(data, &fast))
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

fn told(output: &Output) -> (i32, String) {
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// A topic of four partitions with so many events.
fn topic(broker: &Broker, events: usize) {
    broker.ok("topic create t --partitions 4", "");
    produce(broker, events);
}

fn produce(broker: &Broker, events: usize) {
    let input: String = (0..events)
        .map(|number| format!("{{\"n\":\"{number}\"}}\n"))
        .collect();
    broker.ok("produce t --key-field n", &input);
}

#[test]
fn a_group_reads_on_where_it_was_and_lag_says_how_far_that_is() {
    let data = folder();
    let broker = start(data.path());
    assert!(broker.ok("group list", "").starts_with("no groups"));
    topic(&broker, 12);
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 12);
    let described = broker.ok("group describe g", "");
    assert!(
        described.starts_with("g   empty, generation"),
        "{described}"
    );
    let group = json(&broker.ok("group describe g --json", ""));
    assert_eq!(group["lag"], 0, "{group}");
    produce(&broker, 5);
    let group = json(&broker.ok("group describe g --json", ""));
    assert_eq!(group["lag"], 5, "{group}");
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 5);
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 0);
    let listed = json(&broker.ok("group list --json", ""));
    assert_eq!(listed["groups"][0]["group"], "g");
}

#[test]
fn only_what_was_printed_is_committed() {
    let data = folder();
    let broker = start(data.path());
    topic(&broker, 30);
    assert_eq!(lines(&broker.ok("consume t --group g --count 7", "")), 7);
    let group = json(&broker.ok("group describe g --json", ""));
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 23, "{group}");
}

#[test]
fn offsets_are_reset_only_when_told_to_and_within_what_there_is() {
    let data = folder();
    let broker = start(data.path());
    topic(&broker, 20);
    broker.ok("consume t --group g", "");
    let shown = broker.ok("group reset-offsets g --topic t --to-earliest", "");
    assert!(shown.contains("nothing was changed") && shown.contains("--execute"));
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 0);
    broker.ok(
        "group reset-offsets g --all-topics --to-earliest --execute",
        "",
    );
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 20);
    broker.ok(
        "group reset-offsets g --topic t:1 --to-offset 0 --execute",
        "",
    );
    let of_one = lines(&broker.ok("consume t --group g", ""));
    assert_eq!(of_one, lines(&broker.ok("consume t --partition 1", "")));
    let done = broker.ok(
        "group reset-offsets g --topic t --shift-by -1 --execute --json",
        "",
    );
    let partitions = json(&done)["partitions"].clone();
    let back = |one: &serde_json::Value| one["committed"].as_i64() > one["new"].as_i64();
    let moved = partitions
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| back(one));
    assert_eq!(lines(&broker.ok("consume t --group g", "")), moved.count());
    broker.ok(
        "group reset-offsets g --topic t --to-time 2000-01-01T00:00:00Z --execute",
        "",
    );
    assert_eq!(lines(&broker.ok("consume t --group g", "")), 20);
    broker.ok(
        "group reset-offsets new --topic t --to-latest --execute",
        "",
    );
    assert_eq!(lines(&broker.ok("consume t --group new", "")), 0);
}

/// A member that follows, until it is ended.
struct Follower(Child);

impl Follower {
    fn start(broker: &Broker) -> Self {
        let mut command = broker.command("consume t --group g --follow");
        let child = command.stdout(Stdio::null()).stdin(Stdio::null()).spawn();
        Self(child.unwrap())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_group_with_members_is_shown_and_not_changed_and_who_is_interrupted_leaves() {
    let data = folder();
    let broker = start(data.path());
    topic(&broker, 8);
    let mut follower = Follower::start(&broker);
    let members = |broker: &Broker| {
        let output = broker.run("group describe g --json", "");
        let group = json(&text(&output.stdout));
        group["members"][0]["assignment"].as_array().map(Vec::len)
    };
    eventually("it has everything", || {
        let output = broker.run("group describe g --json", "");
        output.status.success() && members(&broker) == Some(4)
    });
    let described = broker.ok("group describe g", "");
    assert!(described.contains("stable, generation") && described.contains("tackboard-cli"));
    for command in [
        "group reset-offsets g --topic t --to-latest --execute",
        "group delete g",
    ] {
        let (code, error) = told(&broker.run(command, ""));
        assert_eq!(code, 1, "{command}: {error}");
        assert!(
            error.contains("group g has 1 member, nothing was changed"),
            "{error}"
        );
    }
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(follower.0.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(follower.0.wait().unwrap().code(), Some(130));
    let group = json(&broker.ok("group describe g --json", ""));
    assert_eq!(
        (&group["state"], &group["lag"]),
        (&"Empty".into(), &0.into())
    );
    broker.ok("group delete g", "");
    let (code, error) = told(&broker.run("group describe g", ""));
    assert_eq!(code, 1);
    assert!(
        error.contains("there is no group g (GROUP_ID_NOT_FOUND)"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let data = folder();
    let broker = start(data.path());
    topic(&broker, 4);
    broker.ok("consume t --group planner", "");
    for (command, code, words) in [
        ("group describe planer", 1, "did you mean planner?"),
        ("group delete x", 1, "tackboard group list"),
        (
            "group reset-offsets x --all-topics --to-latest",
            1,
            "name the topics: --topic TOPIC",
        ),
        (
            "group reset-offsets x --topic t --shift-by 1",
            1,
            "set it first: --to-earliest",
        ),
        (
            "group reset-offsets x --topic t:9 --to-latest",
            2,
            "there is no partition 9",
        ),
        (
            "group reset-offsets x --topic T --to-latest",
            1,
            "did you mean t?",
        ),
        (
            "consume t --group g --from 3",
            2,
            "tackboard group reset-offsets g --topic t",
        ),
        (
            "consume t --group g --partition 1",
            2,
            "cannot be used with",
        ),
        (
            "consume nothing-like-it --group g",
            1,
            "there is no topic nothing-like-it",
        ),
    ] {
        let (found, error) = told(&broker.run(command, ""));
        assert_eq!(found, code, "{command}: {error}");
        assert!(error.contains(words), "{command}: {error}");
    }
}
