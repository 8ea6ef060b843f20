//! All logs together keep within their budget: the oldest segments go, wherever they are.

mod support;

use support::{World, batch, free_space, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;
use tackboard_schema::Offset;

const BATCH_BYTES: u64 = 20 << 10;
const SEGMENT_BYTES: u64 = 64 << 10;
/// Batches of one segment.
const BATCHES: i64 = 3;
const LOOK_US: u64 = 1_000_000;
const PLENTY: u64 = 1 << 40;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: SEGMENT_BYTES,
        retention_ms: None,
        ..LogConfig::default()
    }
}

fn world(shard: ShardConfig) -> World {
    World::new(shard, 3)
}

fn budget(bytes: u64) -> ShardConfig {
    ShardConfig {
        log_budget_bytes: Some(bytes),
        ..ShardConfig::default()
    }
}

/// Appends a batch of 20 KiB; time passes.
fn append(world: &mut World, log: LogId) {
    world.append(log, batch(&[&vec![7; BATCH_BYTES as usize - 80]], None, 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    world.now.monotonic_us += 1000;
    world.now.wall.0 += 1;
}

/// One measurement, one look, and what comes of it.
fn look_with(world: &mut World, space: Input) {
    world.step(space);
    world.advance(LOOK_US);
    world.complete_all();
    world.advance(200_000);
    world.complete_all();
}

fn look(world: &mut World) {
    look_with(world, free_space(PLENTY));
}

fn start(world: &World, log: LogId) -> i64 {
    world.shard.describe(log).unwrap().log_start_offset.0
}

#[test]
fn the_oldest_segments_of_a_core_go_first() {
    let mut world = world(budget(7 * SEGMENT_BYTES));
    let logs: Vec<_> = (0..3)
        .map(|index| world.open(partition(index), config(), RestartClass::Clean))
        .collect();
    // The second log is older than the others.
    for log in [logs[1], logs[0], logs[2]] {
        (0..4 * BATCHES).for_each(|_| append(&mut world, log));
    }
    let before = world.shard.log_space().bytes;
    look(&mut world);
    let after = world.shard.log_space().bytes;
    assert!(after <= 7 * SEGMENT_BYTES, "{after} of {before}");
    assert!(after > 6 * SEGMENT_BYTES, "no more than is needed: {after}");
    let starts: Vec<i64> = logs.iter().map(|log| start(&world, *log)).collect();
    assert_eq!(starts, [2 * BATCHES, 3 * BATCHES, 0]);
    let dropped = world.shard.stats().budget_dropped_bytes;
    assert_eq!(dropped, before - after);
    // What is left can be read, and the files are gone.
    assert!(!world.read_all(logs[1], 3 * BATCHES).is_empty());
    assert_eq!(world.folders[&partition(0)].len(), 2);
}

#[test]
fn the_start_of_a_log_is_in_the_ledger_before_its_files_go() {
    let mut world = world(budget(2 * SEGMENT_BYTES));
    let log = world.open(partition(0), config(), RestartClass::Clean);
    (0..5 * BATCHES).for_each(|_| append(&mut world, log));
    world.step(free_space(PLENTY));
    world.advance(LOOK_US);
    assert!(start(&world, log) > 0);
    let is_deletion = |effect: &&Effect| matches!(effect, Effect::DeleteSegment { .. });
    assert_eq!(world.pending.iter().filter(is_deletion).count(), 0);
    world.crash();
    let log = world.open(partition(0), config(), RestartClass::HostCrash);
    world.complete_all();
    let begins = start(&world, log);
    assert!(!world.read_all(log, begins).is_empty());
    look(&mut world);
    assert!(world.shard.log_space().bytes <= 2 * SEGMENT_BYTES);
}

#[test]
fn a_topic_that_does_not_yield_counts_and_keeps_what_it_has() {
    let mut world = world(budget(4 * SEGMENT_BYTES));
    let kept = LogConfig {
        yields_to_budget: false,
        ..config()
    };
    let kept = world.open(partition(0), kept, RestartClass::Clean);
    let yields = world.open(partition(1), config(), RestartClass::Clean);
    for log in [kept, yields] {
        (0..4 * BATCHES).for_each(|_| append(&mut world, log));
    }
    look(&mut world);
    assert_eq!(start(&world, kept), 0);
    // All that can go has gone.
    assert_eq!(start(&world, yields), 3 * BATCHES);
    assert_eq!(world.shard.describe(yields).unwrap().segment_count, 1);
}

#[test]
fn a_core_gives_its_share_of_what_is_too_much() {
    let mut world = world(budget(8 * SEGMENT_BYTES));
    let log = world.open(partition(0), config(), RestartClass::Clean);
    (0..6 * BATCHES).for_each(|_| append(&mut world, log));
    let own = world.shard.log_space();
    // The other one holds three times as much, so that it gives three quarters of the excess.
    let others = LogSpace {
        bytes: 3 * own.bytes,
        yielding_bytes: 3 * own.bytes,
    };
    let measured = Input::FreeSpace {
        bytes: PLENTY,
        others,
    };
    look_with(&mut world, measured);
    let given = own.bytes - world.shard.log_space().bytes;
    let wanted = (4 * own.bytes - 8 * SEGMENT_BYTES) / 4;
    assert!(given >= wanted, "{given} of {wanted}");
    assert!(given < wanted + SEGMENT_BYTES, "{given} of {wanted}");
}

#[test]
fn space_that_is_short_counts_as_budget_exceeded_and_nobody_is_refused() {
    let reserve = 2 << 20;
    let mut world = world(ShardConfig {
        reserve_bytes: reserve,
        ..budget(64 << 20)
    });
    let log = world.open(partition(0), config(), RestartClass::Clean);
    (0..12 * BATCHES).for_each(|_| append(&mut world, log));
    // Far below the budget, but the disk has little more than the reserve.
    look(&mut world);
    assert_eq!(start(&world, log), 0);
    look_with(
        &mut world,
        free_space(reserve + reserve / 8 - SEGMENT_BYTES),
    );
    assert!(start(&world, log) > 0);
    let ticket = world.append(log, batch(&[b"taken"], None, 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&ticket].is_ok());
    // What was given counts before it is measured: more than an eighth of the reserve can come.
    for _ in 0..20 {
        append(&mut world, log);
    }
    assert!(world.produced.values().all(Result::is_ok));
    // What went shows in the next measurement only: nothing more goes for the same one.
    let begins = start(&world, log);
    world.advance(LOOK_US);
    world.advance(LOOK_US);
    assert_eq!(start(&world, log), begins);
}

#[test]
fn without_a_budget_nothing_goes_for_space() {
    let mut world = world(ShardConfig {
        reserve_bytes: 2 << 20,
        ..ShardConfig::default()
    });
    let log = world.open(partition(0), config(), RestartClass::Clean);
    (0..6 * BATCHES).for_each(|_| append(&mut world, log));
    look_with(&mut world, free_space(1000));
    assert_eq!(start(&world, log), 0);
}

#[test]
fn where_nothing_else_is_left_active_segments_are_ended_if_they_are_worth_it() {
    let large = LogConfig {
        segment_bytes: 64 << 20,
        ..config()
    };
    let mut world = world(budget(1 << 20));
    let worth_it = world.open(partition(0), large.clone(), RestartClass::Clean);
    let crumb = world.open(partition(1), large, RestartClass::Clean);
    (0..60).for_each(|_| append(&mut world, worth_it));
    append(&mut world, crumb);
    look(&mut world);
    look(&mut world);
    assert_eq!(start(&world, worth_it), 60);
    assert_eq!(start(&world, crumb), 0);
    assert_eq!(world.shard.describe(crumb).unwrap().segment_count, 1);
    // It goes on where it was.
    append(&mut world, worth_it);
    let end = world.shard.describe(worth_it).unwrap().log_end_offset;
    assert_eq!(end, Offset(61));
}
