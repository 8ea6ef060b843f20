//! All logs together keep within their budget: the oldest segments go, wherever they are.

mod support;

use support::{World, batch, free_space, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;
use tackboard_schema::{ErrorCode, Offset};

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

fn large_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 128 << 20,
        ..config()
    }
}

#[test]
fn where_nothing_else_is_left_active_segments_are_ended_if_they_are_worth_it() {
    let mut world = world(budget(1 << 20));
    let logs: Vec<_> = (0..7)
        .map(|index| world.open(partition(index), large_segments(), RestartClass::Clean))
        .collect();
    let (crumb, worth_it) = logs.split_first().expect("seven");
    append(&mut world, *crumb);
    for log in worth_it {
        (0..10).for_each(|_| append(&mut world, *log));
    }
    look(&mut world);
    look(&mut world);
    assert!(world.shard.log_space().bytes <= 1 << 20);
    assert_eq!(start(&world, worth_it[0]), 10);
    assert_eq!(start(&world, worth_it[5]), 0);
    assert_eq!(start(&world, *crumb), 0);
    assert_eq!(world.shard.describe(*crumb).unwrap().segment_count, 1);
    // It goes on where it was.
    append(&mut world, worth_it[0]);
    let end = world.shard.describe(worth_it[0]).unwrap().log_end_offset;
    assert_eq!(end, Offset(11));
}

#[test]
fn several_segments_fit_the_budget_whatever_a_topic_says_of_their_size() {
    let mut world = world(budget(64 << 20));
    let yields = world.open(partition(0), large_segments(), RestartClass::Clean);
    let kept = LogConfig {
        yields_to_budget: false,
        ..large_segments()
    };
    let kept = world.open(partition(1), kept, RestartClass::Clean);
    for log in [yields, kept] {
        (0..600).for_each(|_| append(&mut world, log));
    }
    assert_eq!(world.shard.describe(yields).unwrap().segment_count, 2);
    assert_eq!(world.shard.describe(kept).unwrap().segment_count, 1);
}

#[test]
fn many_active_segments_together_have_a_part_of_the_budget() {
    let mut world = world(budget(8 << 20));
    let logs: Vec<_> = (0..30)
        .map(|index| world.open(partition(index), large_segments(), RestartClass::Clean))
        .collect();
    for log in &logs {
        (0..5).for_each(|_| append(&mut world, *log));
    }
    look(&mut world);
    let segments = logs.iter().map(|log| world.shard.describe(*log).unwrap());
    let ended = segments.filter(|log| log.segment_count == 2).count() as u64;
    // 3 MB; 2 MiB of it may stay active.
    let active = (30 - ended) * 5 * BATCH_BYTES;
    assert!(active <= 2 << 20, "{active}");
    assert!(
        active > (2 << 20) - 5 * BATCH_BYTES,
        "no more than has to be: {active}"
    );
    logs.iter()
        .for_each(|log| assert_eq!(start(&world, *log), 0));
}

const RESERVE: u64 = 2 << 20;
/// A sixteenth of the budget.
const ROOM: u64 = 4 << 20;

/// A core whose log has four times what is free above the reserve.
fn short_of_room(log: LogConfig) -> (World, LogId) {
    let mut world = world(ShardConfig {
        reserve_bytes: RESERVE,
        ..budget(64 << 20)
    });
    let log = world.open(partition(0), log, RestartClass::Clean);
    (0..600).for_each(|_| append(&mut world, log));
    (world, log)
}

#[test]
fn producers_wait_until_segments_have_gone_and_what_is_under_way_is_taken() {
    let (mut world, log) = short_of_room(config());
    // All that will be missing is on its way already; it is not there yet.
    world.step(free_space(ROOM + (1 << 20)));
    let begins = start(&world, log);
    assert!(begins > 0);
    let mut taken = 0;
    while world.shard.append_room() {
        append(&mut world, log);
        taken += BATCH_BYTES;
        assert!(taken < PLENTY, "they wait before the space is used up");
    }
    assert!(world.shard.awaits_room());
    assert!(!world.shard.is_short_of_space(), "topics can be created");
    // It was read from the sockets before: more than there is down to the reserve.
    while taken < ROOM {
        append(&mut world, log);
        taken += BATCH_BYTES;
    }
    assert!(world.produced.values().all(Result::is_ok));
    world.step(free_space(ROOM - (1 << 20)));
    assert!(!world.shard.append_room());
    world.complete_all();
    world.step(free_space(2 * ROOM));
    assert!(world.shard.append_room());
    append(&mut world, log);
    assert!(world.produced.values().all(Result::is_ok));
}

/// Measures again and again; for how long producers wait, in microseconds.
fn waits_for(world: &mut World, free: u64) -> u64 {
    let begin = world.now.monotonic_us;
    world.step(free_space(free));
    while world.shard.awaits_room() {
        world.advance(100_000);
        world.complete_all();
        world.step(free_space(free));
        assert!(world.now.monotonic_us - begin < 60_000_000, "for ever");
    }
    world.now.monotonic_us - begin
}

#[test]
fn nobody_waits_where_nothing_can_go_or_nothing_more() {
    let exempt = LogConfig {
        yields_to_budget: false,
        ..config()
    };
    for (config, longest_us) in [(exempt, 0), (config(), 10_000_000)] {
        let (mut world, log) = short_of_room(config);
        let free = RESERVE - 1;
        let waited = waits_for(&mut world, free);
        assert!(waited <= longest_us, "{waited}");
        let ticket = world.append(log, batch(&[b"refused"], None, 0));
        let refusal = world.produced[&ticket].unwrap_err();
        assert_eq!(refusal.code, ErrorCode::StorageFull);
        // There is room again.
        world.step(free_space(PLENTY));
        append(&mut world, log);
        assert!(world.shard.append_room());
    }
}

#[test]
fn what_waits_for_space_is_written_below_the_reserve_so_that_it_can_go() {
    let (mut world, log) = short_of_room(large_segments());
    let ticket = world.append(log, batch(&[&vec![7; 2000]], None, 0));
    world.step(Input::TurnEnd);
    let is_write = |effect: &Effect| matches!(effect, Effect::Write { .. });
    let write = world.pending.iter().position(is_write).expect("a write");
    world.complete(write, Err(StorageFault::NoSpace));
    let refusal = world.produced[&ticket].unwrap_err();
    assert_eq!(refusal.code, ErrorCode::StorageFullAfterAppend);
    let before = start(&world, log);
    look_with(&mut world, free_space(RESERVE / 2));
    look_with(&mut world, free_space(RESERVE / 2));
    assert!(start(&world, log) > before);
    let end = world.shard.describe(log).unwrap().high_watermark;
    assert_eq!(end, Offset(601));
}
