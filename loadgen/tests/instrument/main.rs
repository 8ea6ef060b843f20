//! Whether the instrument is right: what it reports is held against what a proxy between it and the broker did.
//!
//! Nothing here asks how fast this machine is: what the road costs, and how late events are sent, the proxy sees too. Only
//! the last step, from the proxy to whoever notes the time, is not in what the reports are held against.

mod broker;
mod damage;
mod delays;
mod proxy;

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tackboard_client::Protocol;

use broker::Broker;
use damage::{Damage, Damaged, Damaging, KafkaDamaged};
use delays::{Schedule, Seen, Stall};
use proxy::{Proxy, Road};

/// The most that a reported percentile may differ from the true one, as a share of it.
const ERROR_MAX: f64 = 0.02;

/// Only one load at a time: these tests share few cores.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the load generator over the road; its exit code and its JSON object.
fn run(broker: &Broker, road: Arc<dyn Road>, arguments: &str) -> (Option<i32>, Value) {
    let _proxy = Proxy::start(broker.roads(), broker.protocol(), road);
    let output = Command::new(env!("CARGO_BIN_EXE_tackboard-loadgen"))
        .args(arguments.split_whitespace())
        .args(["--json", "--out", "none", "--broker", &broker.address()])
        .output()
        .unwrap();
    let object = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), object)
}

/// A reported percentile of the produce latency.
fn reported(object: &Value, name: &str) -> Duration {
    let microseconds = object["produce"][name].as_f64().unwrap();
    Duration::from_secs_f64(microseconds / 1e6)
}

/// The time that this share of the events did not exceed.
fn percentile(seen: &[Seen], percent: f64) -> Duration {
    let mut seen = seen.to_vec();
    seen.sort();
    let all: u64 = seen.iter().map(|&(_, events)| events).sum();
    let wanted = (all as f64 * percent / 100.0).ceil() as u64;
    let mut counted = 0;
    let found = seen.iter().find(|&&(_, events)| {
        counted += events;
        counted >= wanted
    });
    found.expect("there are events").0
}

fn assert_near(what: &str, reported: Duration, expected: Duration) {
    let error = reported.as_secs_f64() / expected.as_secs_f64() - 1.0;
    println!(
        "{what}: reported {reported:?}, expected {expected:?}, {:+.2} %",
        error * 100.0
    );
    assert!(
        error.abs() <= ERROR_MAX,
        "{what}: reported {reported:?}, expected {expected:?}"
    );
}

/// Each answer is held back by a time that is known: so is the distribution of all of them.
#[test]
fn percentiles_are_those_of_a_known_schedule_of_delays() {
    let _alone = alone();
    let broker = Broker::start(Protocol::Native);
    // Every producer has one event on its way at a time: the next falls due when the longest delay is over.
    let arguments = "run --mode produce --partitions 1 --producers 48 --rate 96 --duration 8s --linger 0 --durability written";
    let [from, to, period] = [50, 400, 500].map(Duration::from_millis);
    let road = Arc::new(Schedule::between(from, to, period));
    let (_, object) = run(&broker, road.clone(), arguments);
    let waited = road.waited();
    assert_all(&object, &waited);
    for (name, percent) in [("p50_us", 50.0), ("p90_us", 90.0), ("p99_us", 99.0)] {
        let expected = percentile(&waited, percent);
        // What an event waited is its delay and what the road costs.
        assert!(expected >= percentile(&road.delays(), percent) - (to - from) / 100);
        assert_near(name, reported(&object, name), expected);
    }
    broker.stop();
}

/// A stall holds up few requests and many events: all that fell due while it lasted.
#[test]
fn a_stall_is_charged_to_every_event_that_fell_due_in_it() {
    let _alone = alone();
    let broker = Broker::start(Protocol::Native);
    let rate = 500.0;
    let arguments = "run --mode produce --partitions 1 --producers 2 --rate 500 --duration 8s --durability written";
    let (length, period) = (Duration::from_secs(3), Duration::from_millis(4));
    let road = Arc::new(Stall::at_request(100, length, period));
    let (_, object) = run(&broker, road.clone(), arguments);
    let (lasted, waited) = (road.lasted(), road.waited());
    assert_all(&object, &waited);
    for (name, percent) in [("p90_us", 90.0), ("p99_us", 99.0)] {
        let expected = percentile(&waited, percent);
        // The events of the stall are the slowest, and each of them waits for as long as the stall still lasts.
        let slower = waited.len() as f64 * (1.0 - percent / 100.0) / rate;
        let least = lasted - Duration::from_secs_f64(slower) - period;
        assert!(
            expected >= least,
            "{name}: {expected:?}, at least {least:?}"
        );
        assert_near(name, reported(&object, name), expected);
    }
    // Whoever looks at requests from when they were sent sees next to nothing of it.
    let omitted = percentile(&road.by_request(), 90.0);
    assert!(omitted < lasted / 2, "{omitted:?} of {lasted:?}");
    broker.stop();
}

/// The proxy has seen every event that is reported, and no other.
fn assert_all(object: &Value, waited: &[Seen]) {
    let reported = object["produce"]["events"].as_u64().unwrap();
    assert_eq!(waited.len() as u64, reported);
}

/// Events are damaged on their way to the consumer, under checksums that hold.
#[test]
fn damage_on_a_real_road_is_found_and_named() {
    find_damage(Protocol::Native, Arc::new(Damaged::default()), "");
}

/// The same through the door for clients of Kafka.
#[test]
fn damage_on_the_road_of_kafkas_protocol_is_found_and_named() {
    let road = Arc::new(KafkaDamaged::default());
    find_damage(Protocol::Kafka, road, "--protocol kafka");
}

fn find_damage(protocol: Protocol, road: Arc<impl Damaging>, more: &str) {
    let _alone = alone();
    let broker = Broker::start(protocol);
    let arguments = "verify --partitions 3 --producers 1 --rate 2k --duration 1500ms --linger 10ms --event-size 100";
    let arguments = format!("{arguments} {more}");
    let (code, object) = run(&broker, road.clone(), &arguments);
    let verified = &object["verified"];
    assert_eq!(code, Some(1), "{verified:#}");

    let mut expected = BTreeSet::new();
    for (partition, first, kind) in road.done() {
        let mut expect = |fault: &str, offset: i64| {
            expected.insert((fault.to_owned(), partition, offset));
        };
        match kind {
            // An event that is not what was sent is also one that did not come back.
            Damage::Corrupt => {
                expect("corrupted", first);
                expect("lost", first);
            }
            Damage::Swap => expect("out of order", first + 1),
            Damage::Repeat => {
                expect("duplicated", first + 1);
                expect("lost", first + 1);
            }
        }
    }
    assert!(
        expected.len() > 60,
        "{} faults were planted",
        expected.len()
    );
    let named = verified["faults"].as_array().unwrap();
    let found = named.iter().map(|fault| {
        let offset = fault["offset"].as_i64().unwrap();
        let partition = fault["partition"].as_i64().unwrap() as i32;
        (
            fault["fault"].as_str().unwrap().to_owned(),
            partition,
            offset,
        )
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
    assert_eq!(named.len(), expected.len(), "each is named once");
    broker.stop();
}
