//! The first record at or after a time.

mod support;

use support::{World, batch, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::log::{RecordSearch, find_record};
use tackboard_logic::request::lookup::{ListedOffset, Lookup, LookupStep, Wanted};
use tackboard_logic::shard::interface::*;
use tackboard_schema::{Offset, TimestampMs};

fn begin(world: &World, log: LogId, timestamp: i64) -> LookupStep {
    Lookup::begin(&world.shard, log, Wanted::At(TimestampMs(timestamp)))
}

/// What the driver does: reads the named stretch, looks, reports.
fn read(world: &World, lookup: Lookup) -> LookupStep {
    let Lookup { log, scan, .. } = lookup;
    let file = &world.folders[&world.logs[&log]][&scan.segment.0.0].log.seen;
    let from = scan.file_at as usize;
    let bytes = &file[from..from + scan.length as usize];
    let search = find_record(bytes, &scan, lookup.timestamp).unwrap();
    lookup.searched(&world.shard, search)
}

fn finish(world: &World, mut step: LookupStep) -> Option<(i64, i64)> {
    for _ in 0..1000 {
        match step {
            LookupStep::Read(lookup) => step = read(world, lookup),
            LookupStep::Listed(listed) if listed.offset.0 == -1 => return None,
            LookupStep::Listed(listed) => return Some((listed.offset.0, listed.timestamp.0)),
            LookupStep::Deleted | LookupStep::Truncating | LookupStep::Fault(_) => {
                panic!("{step:?}")
            }
        }
    }
    panic!("the search does not end");
}

fn first_at(world: &World, log: LogId, timestamp: i64) -> Option<(i64, i64)> {
    finish(world, begin(world, log, timestamp))
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

const GONE: StorageFault = StorageFault::Io { os_error: 2 };

/// A log of several segments whose records have their offsets as timestamps.
fn several_segments(retention_bytes: Option<u64>) -> (World, LogId, LogConfig) {
    let config = LogConfig {
        segment_bytes: 32 << 10,
        retention_bytes,
        ..LogConfig::default()
    };
    let mut world = World::new(ShardConfig::default(), 23);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    for time in 0..200 {
        world.append(log, batch(&[&[1; 1_000]], None, time));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
    (world, log, config)
}

#[test]
fn the_ends_of_a_log_have_names() {
    let (world, log, _) = several_segments(None);
    let listed = |wanted| match Lookup::begin(&world.shard, log, wanted) {
        LookupStep::Listed(ListedOffset { offset, timestamp }) => (offset.0, timestamp.0),
        step => panic!("{step:?}"),
    };
    assert_eq!(listed(Wanted::Latest), (200, -1));
    assert_eq!(listed(Wanted::Earliest), (0, -1));
}

#[test]
fn a_search_whose_segment_retention_took_goes_on_at_the_new_start() {
    let (mut world, log, config) = several_segments(None);
    let LookupStep::Read(lookup) = begin(&world, log, 5) else {
        panic!("the record is on the disk");
    };
    let shorter = Box::new(LogConfig {
        retention_bytes: Some(70_000),
        ..config
    });
    world.step(Input::Configure {
        log,
        config: shorter,
    });
    world.advance(2_000_000);
    world.complete_all();
    let start = world.shard.describe(log).unwrap().log_start_offset.0;
    assert!(start > 5, "the record is gone");
    let step = lookup.unreadable(&world.shard, GONE);
    assert_eq!(finish(&world, step), Some((start, start)));
}

#[test]
fn a_search_in_a_log_that_is_deleted_says_so_and_a_fault_stays_one() {
    let (mut world, log, _) = several_segments(None);
    let LookupStep::Read(lookup) = begin(&world, log, 5) else {
        panic!("the record is on the disk");
    };
    let fault = StorageFault::Io { os_error: 5 };
    let step = lookup.unreadable(&world.shard, fault);
    assert_eq!(step, LookupStep::Fault(fault));
    world.step(Input::Delete { log });
    world.complete_all();
    assert_eq!(world.deleted, [log]);
    let step = lookup.unreadable(&world.shard, GONE);
    assert_eq!(step, LookupStep::Deleted);
    assert_eq!(begin(&world, log, 5), LookupStep::Deleted);
    let behind = RecordSearch::Continue {
        from_offset: Offset(9),
    };
    assert_eq!(lookup.searched(&world.shard, behind), LookupStep::Deleted);
}
