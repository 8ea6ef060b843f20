//! `tackboard group` and `tackboard consume --group`, as a user has them.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
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

/// A member that reads to the end, and prints into a pipe that is read once it is opened.
struct Reader {
    child: Child,
    opened: Sender<()>,
    lines: Arc<Mutex<Vec<String>>>,
    drain: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(broker: &Broker) -> Self {
        let mut command = broker.command("consume t --group g");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (opened, is_opened) = channel();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (out, found) = (child.stdout.take().unwrap(), lines.clone());
        let drain = std::thread::spawn(move || {
            let _ = is_opened.recv();
            for line in BufReader::new(out).lines() {
                found.lock().unwrap().push(line.unwrap());
            }
        });
        Self {
            child,
            opened,
            lines,
            drain: Some(drain),
        }
    }

    fn open(&self) {
        self.opened.send(()).unwrap();
    }

    fn count(&self) -> usize {
        self.lines.lock().unwrap().len()
    }

    /// What it printed, once it has ended well.
    fn end(mut self) -> Vec<String> {
        assert!(self.child.wait().unwrap().success());
        self.drain.take().unwrap().join().unwrap();
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many partitions each member has, or why the group can't be told of.
fn shares(broker: &Broker) -> (String, Vec<usize>) {
    let output = broker.run("group describe g --json", "");
    if !output.status.success() {
        return (text(&output.stderr), Vec::new());
    }
    let group = json(&text(&output.stdout));
    let members = group["members"].as_array().unwrap();
    let share = |member: &serde_json::Value| member["assignment"].as_array().map_or(0, Vec::len);
    let state = group["state"].as_str().unwrap().to_owned();
    (state, members.iter().map(share).collect())
}

#[test]
fn who_reads_to_the_end_does_not_end_when_a_third_member_comes_and_nothing_is_lost_or_read_twice() {
    /// Together several times what a member takes at once, so that none is done before the third has come.
    const EVENTS: usize = 6_000;
    const EVENT_BYTES: usize = 4_000;
    /// Twice the interval at which a member hears that the group rebalances.
    const HEARD: Duration = Duration::from_secs(7);
    let data = folder();
    // Both of the first two are in the first generation.
    let delay = ["--set", "group.initial.rebalance.delay.ms=3 s"];
    let broker = Broker::spawn(serve(data.path(), &delay));
    broker.ok("topic create t --partitions 4", "");
    for partition in 0..4 {
        let input: String = (0..EVENTS / 4)
            .map(|number| format!("{partition}-{number:0>EVENT_BYTES$}\n"))
            .collect();
        broker.ok(&format!("produce t --partition {partition}"), &input);
    }
    let members = [Reader::start(&broker), Reader::start(&broker)];
    eventually("two have half of it each", || {
        shares(&broker) == ("Stable".to_owned(), vec![2, 2])
    });
    // Both stand still amid their first events.
    let third = Reader::start(&broker);
    eventually("a third waits for them", || {
        shares(&broker).0 == "PreparingRebalance"
    });
    std::thread::sleep(HEARD);
    let [mut first, second] = members;
    first.open();
    eventually("the first has printed what it had begun", || {
        let before = first.count();
        std::thread::sleep(Duration::from_secs(1));
        before > 0 && before == first.count()
    });
    // It has given up what it had, and waits for the second.
    let has_ended = first.child.try_wait().unwrap().is_some();
    assert!(
        !has_ended || first.count() == EVENTS / 2,
        "it ended after {} events of {}",
        first.count(),
        EVENTS / 2
    );
    second.open();
    third.open();
    let mut found = [first.end(), second.end(), third.end()].concat();
    assert_eq!(found.len(), EVENTS, "each once");
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), EVENTS);
    let group = json(&broker.ok("group describe g --json", ""));
    assert_eq!(group["lag"], 0, "{group}");
}

/// What a topic holds, by partition.
fn contents(broker: &Broker, topic: &str) -> BTreeMap<i64, Vec<(String, String)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in broker.ok(&format!("consume {topic} --json"), "").lines() {
        let event = json(line);
        let field = |name: &str| event[name].as_str().unwrap().to_owned();
        let partition = event["partition"].as_i64().unwrap();
        let events = found.entry(partition).or_default();
        events.push((field("key"), field("value")));
    }
    found
}

#[test]
fn a_topic_that_a_group_replays_into_another_while_it_is_ingested_is_equal_to_it() {
    const EVENTS: usize = 40_000;
    let packed = std::fs::File::open(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../perf/data/flights.ndjson.gz"
    ));
    let lines = BufReader::new(flate2::read::GzDecoder::new(packed.unwrap())).lines();
    let flights: Vec<String> = lines.take(EVENTS).map(|line| line.unwrap()).collect();
    assert_eq!(flights.len(), EVENTS);
    let data = folder();
    let broker = start(data.path());
    for topic in ["flights", "copy"] {
        broker.ok(&format!("topic create {topic} --partitions 4"), "");
    }
    let ingest = |flights: &[String]| {
        broker.ok(
            "produce flights --key-field carrier",
            &(flights.join("\n") + "\n"),
        );
    };
    let mut parts = flights.chunks(EVENTS / 8);
    ingest(parts.next().unwrap());
    let mut replay = broker.command(&format!("consume flights --group replay --count {EVENTS}"));
    let mut replay = replay.stdout(Stdio::piped()).spawn().unwrap();
    let mut copy = broker.command("produce copy --key-field carrier");
    let replayed = replay.stdout.take().unwrap();
    let copy = copy.stdin(replayed).stdout(Stdio::null()).spawn();
    parts.for_each(ingest);
    assert!(replay.wait().unwrap().success());
    assert!(copy.unwrap().wait().unwrap().success());
    let (original, copied) = (contents(&broker, "flights"), contents(&broker, "copy"));
    assert!(original == copied, "the contents differ");
    let values = original.into_values().flatten().map(|(_, value)| value);
    let mut values: Vec<String> = values.collect();
    values.sort_unstable();
    let mut flights = flights;
    flights.sort_unstable();
    assert!(values == flights, "not what was ingested");
    let group = json(&broker.ok("group describe replay --json", ""));
    assert_eq!(group["lag"], 0, "{group}");
}
