//! The first record at or after a time.

mod support;

use support::{World, batch, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::log::{RecordSearch, find_record};
use tackboard_logic::shard::interface::*;
use tackboard_schema::TimestampMs;

/// What the driver does: reads the named stretch, looks, goes on behind it.
fn first_at(world: &World, log: LogId, timestamp: i64) -> Option<(i64, i64)> {
    let timestamp = TimestampMs(timestamp);
    let mut scan = world.shard.find_timestamp(log, timestamp);
    for _ in 0..1000 {
        let stretch = scan?;
        let file = &world.folders[&world.logs[&log]][&stretch.segment.0.0]
            .log
            .seen;
        let from = stretch.file_at as usize;
        let bytes = &file[from..from + stretch.length as usize];
        match find_record(bytes, &stretch, timestamp).unwrap() {
            RecordSearch::Found(found) => return Some((found.offset.0, found.timestamp.0)),
            RecordSearch::Continue { from_offset } => {
                scan = world.shard.continue_timestamp(log, timestamp, from_offset);
            }
        }
    }
    panic!("the search does not end");
}

#[test]
fn the_first_record_at_or_after_a_time_is_found_whatever_the_order_of_times() {
    let config = LogConfig {
        segment_bytes: 32 << 10,
        index_interval_bytes: 4096,
        ..LogConfig::default()
    };
    let mut world = World::new(ShardConfig::default(), 21);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    let mut times = Vec::new();
    for _ in 0..300 {
        let time = world.random.below(1000) as i64;
        times.push(time);
        world.append(log, batch(&[&[1; 500]], None, time));
        if world.random.chance(20) {
            world.step(Input::TurnEnd);
            world.complete_all();
        }
    }
    world.step(Input::TurnEnd);
    world.complete_all();
    let check = |world: &World, log: LogId| {
        for timestamp in 0..1010 {
            let expected = times.iter().position(|time| *time >= timestamp);
            let expected = expected.map(|offset| (offset as i64, times[offset]));
            assert_eq!(first_at(world, log, timestamp), expected, "at {timestamp}");
        }
    };
    check(&world, log);
    world.advance(200_000);
    world.complete_all();
    world.crash();
    let log = world.open(partition(0), config, RestartClass::HostCrash);
    check(&world, log);
}

#[test]
fn what_is_not_visible_is_not_found() {
    let mut world = World::new(ShardConfig::default(), 22);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    world.complete_all();
    assert_eq!(first_at(&world, log, 0), None);
    world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::TurnEnd);
    world.complete_all();
    world.append(log, batch(&[b"b"], None, 9));
    world.step(Input::TurnEnd);
    assert_eq!(first_at(&world, log, 5), Some((0, 5)));
    assert_eq!(first_at(&world, log, 6), None);
    world.complete_all();
    assert_eq!(first_at(&world, log, 6), Some((1, 9)));
}
