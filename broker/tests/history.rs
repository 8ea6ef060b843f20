//! Consumers that read history: what one of them read serves the others, and costs nobody the tail.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;
#[path = "support/mod.rs"]
mod wire;

use process::{Broker, folder, serve};
use wire::{Raw, batch, eventually, fetched};

/// So that history has 9.6 MiB, and the tail cache twice as much.
const SETTINGS: [&str; 4] = [
    "--set",
    "memory.total=64 MiB",
    "--set",
    "log.segment.bytes=8 MiB",
];
const OLD: &str = "old";
const BATCHES: i64 = 90;
const VALUE_BYTES: usize = 400_000;
const OLD_BYTES: u64 = BATCHES as u64 * VALUE_BYTES as u64;
const COLD_BUDGET_BYTES: u64 = (64 << 20) * 15 / 100;

fn value(offset: i64) -> Vec<u8> {
    let mut value = format!("event {offset} ").into_bytes();
    value.resize(VALUE_BYTES, b'.');
    value
}

/// A broker that has just started on a folder with history in it: none of it is in memory.
fn start(data: &tempfile::TempDir) -> (Broker, Raw) {
    let data = data.path().join("data");
    let mut broker = Broker::spawn(serve(&data, &SETTINGS));
    let mut wire = connect(&broker);
    assert_eq!(wire.create_topic(OLD, 1), 0);
    for offset in 0..BATCHES {
        let appended = wire.produce(OLD, 0, &batch(1, &[&value(offset)]));
        assert_eq!(appended, Ok(offset));
    }
    broker.signal(libc::SIGTERM);
    assert!(broker.child.wait().expect("ends").success());
    let broker = Broker::spawn(serve(&data, &SETTINGS));
    let wire = connect(&broker);
    (broker, wire)
}

fn connect(broker: &Broker) -> Raw {
    Raw::connect(broker.address.parse().expect("an address"))
}

/// Every reader asks for what comes next before any of them takes its answer, until all have read everything.
fn read_side_by_side(readers: &mut [Raw]) {
    let mut places = vec![0; readers.len()];
    while places.iter().any(|place| *place < BATCHES) {
        for (reader, place) in readers.iter_mut().zip(&places) {
            reader.send_fetch(0, &[(OLD, 0, *place)]);
        }
        for (reader, place) in readers.iter_mut().zip(&mut places) {
            let answer = reader.receive().expect("an answer");
            let records = fetched(&answer).remove(0).expect("it is served");
            for (offset, bytes) in records {
                assert_eq!(offset, *place, "none is left out and none comes twice");
                assert!(bytes == value(offset), "event {offset} is another");
                *place += 1;
            }
        }
    }
}

#[test]
fn readers_of_the_same_history_share_what_was_read_for_one_of_them() {
    let data = folder();
    let (broker, _) = start(&data);
    let mut readers: Vec<Raw> = (0..5).map(|_| connect(&broker)).collect();
    read_side_by_side(&mut readers);
    eventually("it is counted", || {
        broker.metric("cold_read_hits_total") > 0 && broker.metric("read_ahead_bytes_total") > 0
    });
    // Only what is no whole stretch yet, at the end of the log, is read for each.
    let read = broker.metric("disk_read_bytes_total");
    let most = OLD_BYTES + OLD_BYTES / 10 + 5 * (2 << 20);
    assert!(
        (OLD_BYTES..most).contains(&read),
        "{read} bytes were read for {OLD_BYTES}"
    );
    assert!(broker.metric("read_ahead_wasted_bytes_total") <= OLD_BYTES / 10);
}

#[test]
fn who_reads_history_takes_no_memory_from_the_tail_and_stays_within_its_own() {
    const TAIL: i64 = 20;
    let data = folder();
    let (broker, mut wire) = start(&data);
    assert_eq!(wire.create_topic("hot", 1), 0);
    for offset in 0..TAIL {
        let appended = wire.produce("hot", 0, &batch(1, &[&value(offset)]));
        assert_eq!(appended, Ok(offset));
    }
    // More than both budgets together.
    let mut readers = [connect(&broker), connect(&broker)];
    read_side_by_side(&mut readers);
    read_side_by_side(&mut readers);
    let missed = broker.metric("cache_misses_total");
    for offset in 0..TAIL {
        let records = wire.fetch("hot", 0, offset).expect("it is served");
        assert!(records[0] == (offset, value(offset)));
    }
    assert_eq!(broker.metric("cache_misses_total"), missed);
    eventually(
        "some of it is kept, and nothing on its way any more",
        || {
            let kept = broker.metric("memory_cold_kept_bytes");
            assert!(kept <= COLD_BUDGET_BYTES, "{kept} bytes are kept");
            kept > 0 && broker.metric("memory_cold_read_bytes") == 0
        },
    );
}
