//! What a batch and a fetch cost in a core's logic, from the request to its answer.

use std::hint::black_box;

use tackboard_logic::shard::interface::FetchData;
use tackboard_schema::Durability;

#[path = "../../../schema/benches/counted/mod.rs"]
mod counted;
mod one_log;

use counted::Counter;
use one_log::OneLog;

/// Batches of one turn where there are many connections.
const TURN_BATCHES: u32 = 16;

fn produce(counter: &mut Counter, durability: Durability, batches: u32) {
    let mut log = OneLog::new(durability);
    while counter.goes_on() {
        counter.count(batches, || log.turn(batches));
    }
}

fn produce_fsync(counter: &mut Counter) {
    produce(counter, Durability::Fsync, 1);
}

fn produce_fsync_many(counter: &mut Counter) {
    produce(counter, Durability::Fsync, TURN_BATCHES);
}

fn produce_written(counter: &mut Counter) {
    produce(counter, Durability::Written, 1);
}

fn fetch_cached(counter: &mut Counter) {
    let mut log = OneLog::new(Durability::Written);
    while counter.goes_on() {
        log.turn(1);
        counter.count(1, || {
            let answer = log.fetch(false).expect("there is something to read");
            assert!(matches!(answer.data, FetchData::Cached { .. }));
            black_box(answer);
        });
    }
}

fn fetch_waits(counter: &mut Counter) {
    let mut log = OneLog::new(Durability::Written);
    log.turn(1);
    while counter.goes_on() {
        counter.count(1, || {
            assert!(log.fetch(true).is_none(), "it waits");
            log.turn(1);
            black_box(log.fetched().expect("the batch has woken it"));
        });
    }
}

fn main() {
    counted::main(&[
        ("logic: produce a batch, fsync", produce_fsync),
        (
            "logic: produce a batch of 16 a turn, fsync",
            produce_fsync_many,
        ),
        ("logic: produce a batch, written", produce_written),
        ("logic: fetch a cached batch", fetch_cached),
        ("logic: wait for a batch and get it", fetch_waits),
    ]);
}
