//! The oldest records are deleted on request, and a crash may come at any step of it.

mod support;

use support::{World, batch, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Durability, ErrorCode, Offset};

/// Segments of a few batches.
fn small_segments(durability: Durability) -> LogConfig {
    LogConfig {
        segment_bytes: 16 << 10,
        index_interval_bytes: 4096,
        durability,
        ..LogConfig::default()
    }
}

/// Batches of two records, one after the other.
fn fill(world: &mut World, log: LogId, batches: std::ops::Range<i32>) {
    for index in batches {
        let value = vec![1; 1500];
        world.append(log, batch(&[&value, &value], Some((5, 0, 2 * index)), 1));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
}

/// A second passes: segments are sealed, dropped and unlinked.
fn settle(world: &mut World) {
    for _ in 0..3 {
        world.advance(1_100_000);
        world.complete_all();
    }
}

fn base_offsets(world: &mut World, log: LogId, from: i64) -> Vec<i64> {
    let bytes = world.read_all(log, from);
    let mut at = 0;
    let mut found = Vec::new();
    while at < bytes.len() {
        let header = BatchHeader::read(&bytes[at..]).unwrap();
        found.push(header.base_offset.0);
        at += header.total_length();
    }
    found
}

fn filled(durability: Durability, batches: i32) -> (World, LogId) {
    let mut world = World::new(ShardConfig::default(), 11);
    let config = small_segments(durability);
    let log = world.open(partition(0), config, RestartClass::Clean);
    world.complete_all();
    fill(&mut world, log, 0..batches);
    settle(&mut world);
    (world, log)
}

fn start_of(world: &World, log: LogId) -> i64 {
    world.shard.describe(log).unwrap().log_start_offset.0
}

#[test]
fn records_below_the_new_start_are_gone_for_readers_and_from_the_disk() {
    let (mut world, log) = filled(Durability::Fsync, 20);
    let before = world.folders[&partition(0)].len();
    assert!(before > 3);
    // Within a batch: 22 and 23 are one.
    let ticket = world.advance_start(log, Some(23));
    world.complete_all();
    assert_eq!(world.advanced[&ticket], Ok(Offset(23)));
    let refused = world.fetch(log, 22, 1 << 20, 0);
    let (answer, _) = &world.fetched[&refused][0];
    assert_eq!(answer.error, ErrorCode::OffsetOutOfRange);
    assert_eq!(answer.log_start_offset, Offset(23));
    let left: Vec<i64> = (22..40).step_by(2).collect();
    assert_eq!(base_offsets(&mut world, log, 23), left);
    settle(&mut world);
    let bases: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    assert!(bases.len() < before, "{bases:?}");
    assert!(bases[1] > 23, "whole segments below it are gone: {bases:?}");
    for restart in [RestartClass::ProcessCrash, RestartClass::HostCrash] {
        world.crash();
        let log = world.open(partition(0), small_segments(Durability::Fsync), restart);
        world.complete_all();
        assert_eq!(start_of(&world, log), 23);
        assert_eq!(base_offsets(&mut world, log, 23), left);
    }
}

#[test]
fn everything_can_go_and_the_log_goes_on_behind_it() {
    let (mut world, log) = filled(Durability::Fsync, 20);
    let ticket = world.advance_start(log, None);
    world.complete_all();
    assert_eq!(world.advanced[&ticket], Ok(Offset(40)));
    settle(&mut world);
    let described = world.shard.describe(log).unwrap();
    assert_eq!((described.size_bytes, described.segment_count), (0, 1));
    let bases: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    assert_eq!(bases, [40], "the segment that was appended to went, too");
    // The producer is remembered.
    let again = world.append(log, batch(&[&[1; 1500], &[1; 1500]], Some((5, 0, 38)), 1));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&again].unwrap().duplicate);
    fill(&mut world, log, 20..22);
    assert_eq!(base_offsets(&mut world, log, 40), [40, 42]);
    world.crash();
    let config = small_segments(Durability::Fsync);
    let log = world.open(partition(0), config, RestartClass::HostCrash);
    world.complete_all();
    assert_eq!(base_offsets(&mut world, log, 40), [40, 42]);
}

#[test]
fn a_start_that_is_passed_already_is_answered_with_where_the_log_begins() {
    let (mut world, log) = filled(Durability::Fsync, 5);
    world.advance_start(log, Some(7));
    // The ledger does not have it yet: nobody is told anything.
    let lower = world.advance_start(log, Some(3));
    assert!(world.advanced.is_empty());
    world.complete_all();
    assert_eq!(world.advanced[&lower], Ok(Offset(7)));
    let again = world.advance_start(log, Some(7));
    assert_eq!(world.advanced[&again], Ok(Offset(7)));
    assert!(world.pending.is_empty());
}

#[test]
fn it_is_refused_with_the_reason() {
    let (mut world, log) = filled(Durability::Fsync, 5);
    for offset in [11, -1] {
        let beyond = world.advance_start(log, Some(offset));
        let refused = world.advanced[&beyond].unwrap_err();
        assert_eq!(refused.code, ErrorCode::OffsetOutOfRange);
        assert!(refused.to_string().contains("10"), "{refused}");
    }
    world.truncate(log, 4, true);
    let meanwhile = world.advance_start(log, Some(1));
    let refused = world.advanced[&meanwhile].unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotLeaderOrFollower);
    world.complete_all();
    assert_eq!(start_of(&world, log), 0);
    world.step(Input::Shutdown);
    let late = world.advance_start(log, Some(1));
    let refused = world.advanced[&late].unwrap_err();
    assert_eq!(refused.code, ErrorCode::ShuttingDown);
}

#[test]
fn no_more_wait_than_may() {
    let (mut world, log) = filled(Durability::Fsync, 5);
    let most = tackboard_logic::log::limits::ADVANCES_WAITING_MAX;
    let tickets: Vec<u64> = (0..=most)
        .map(|_| world.advance_start(log, Some(3)))
        .collect();
    let refused = world.advanced[&tickets[most]].unwrap_err();
    assert_eq!(refused.code, ErrorCode::OverBudget);
    world.complete_all();
    for ticket in &tickets[..most] {
        assert_eq!(world.advanced[ticket], Ok(Offset(3)));
    }
}

/// The watermark of a log that is not synced runs ahead of what is durable.
#[test]
fn what_lies_below_it_is_made_durable_first() {
    let (mut world, log) = filled(Durability::Written, 0);
    for index in 0..3 {
        world.append(log, batch(&[&[1; 1500]], Some((5, 0, index)), 1));
        world.step(Input::TurnEnd);
        while let Some(at) = world.pending.iter().position(is_write) {
            world.complete(at, Ok(()));
        }
    }
    let ticket = world.advance_start(log, Some(3));
    assert_eq!(start_of(&world, log), 0, "nothing of it is on the medium");
    let sync = |effect: &Effect| matches!(effect, Effect::Sync { .. });
    let at = world.pending.iter().position(sync).unwrap();
    world.complete(at, Ok(()));
    assert_eq!(start_of(&world, log), 3);
    assert!(!world.advanced.contains_key(&ticket));
    world.complete_all();
    assert_eq!(world.advanced[&ticket], Ok(Offset(3)));
    world.crash();
    let config = small_segments(Durability::Written);
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert_eq!(recovered.log_start_offset, Offset(3));
    assert!(recovered.damaged.is_empty());
}

fn is_write(effect: &Effect) -> bool {
    matches!(effect, Effect::Write { .. })
}

#[test]
fn whoever_waits_is_told_of_a_fault_a_cut_and_a_deletion() {
    let (mut world, log) = filled(Durability::Fsync, 5);
    let cut = world.advance_start(log, Some(3));
    world.truncate(log, 8, true);
    let refused = world.advanced[&cut].unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotLeaderOrFollower);
    world.complete_all();
    let deleted = world.advance_start(log, Some(5));
    world.step(Input::Delete { log });
    let refused = world.advanced[&deleted].unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnknownTopicOrPartition);

    let (mut world, log) = filled(Durability::Written, 0);
    world.append(log, batch(&[&[1; 1500]], None, 1));
    world.step(Input::TurnEnd);
    while let Some(at) = world.pending.iter().position(is_write) {
        world.complete(at, Ok(()));
    }
    let unsynced = world.advance_start(log, Some(1));
    let sync = |effect: &Effect| matches!(effect, Effect::Sync { .. });
    let at = world.pending.iter().position(sync).unwrap();
    world.complete(at, Err(StorageFault::Io { os_error: 5 }));
    let refused = world.advanced[&unsynced].unwrap_err();
    assert_eq!(refused.code, ErrorCode::KafkaStorageError);
    assert_eq!(start_of(&world, log), 0);
}

#[test]
fn the_batch_in_which_a_log_begins_is_not_cut_away() {
    for tail_cache_bytes in [0, 64 << 20] {
        let config = ShardConfig {
            tail_cache_bytes,
            ..ShardConfig::default()
        };
        let mut world = World::new(config, 3);
        let config = small_segments(Durability::Fsync);
        let log = world.open(partition(0), config.clone(), RestartClass::Clean);
        world.complete_all();
        fill(&mut world, log, 0..20);
        settle(&mut world);
        world.advance_start(log, Some(33));
        world.complete_all();
        let within = world.truncate(log, 33, true);
        world.complete_all();
        let refused = world.truncated[&within].unwrap_err();
        assert_eq!(refused.code, ErrorCode::OffsetOutOfRange);
        assert!(matches!(
            refused.detail,
            RefusalDetail::CutBelowStart { .. }
        ));
        let behind = world.truncate(log, 34, true);
        world.complete_all();
        let truncated = world.truncated[&behind].unwrap();
        assert_eq!(truncated.log_end_offset, Offset(34));
        assert_eq!(start_of(&world, log), 33);
        assert_eq!(base_offsets(&mut world, log, 33), [32]);
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_start_where_it_was_or_where_it_was_asked_for() {
    let mut outcomes = [0_u32; 2];
    for seed in 0..400 {
        let mut world = World::new(ShardConfig::default(), seed);
        let durability = match seed % 2 {
            0 => Durability::Fsync,
            _ => Durability::Written,
        };
        let config = small_segments(durability);
        let log = world.open(partition(0), config.clone(), RestartClass::Clean);
        world.complete_all();
        fill(&mut world, log, 0..12);
        let offset = 1 + world.random.below(24) as i64;
        let ticket = world.advance_start(log, Some(offset));
        for _ in 0..world.random.below(6) {
            match world.pending.is_empty() {
                true => world.advance(300_000),
                false => world.complete_one(),
            }
        }
        let answered = world.advanced.get(&ticket).copied();
        world.crash();
        let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
        assert!(recovered.damaged.is_empty(), "seed {seed}: {recovered:?}");
        let start = recovered.log_start_offset.0;
        match answered {
            Some(answered) => assert_eq!(answered, Ok(Offset(start)), "seed {seed}"),
            None => {
                assert!(start == 0 || start == offset, "seed {seed}: {start}");
                outcomes[usize::from(start == offset)] += 1;
            }
        }
        let end = recovered.log_end_offset.0;
        assert!(start <= end, "seed {seed}: from {start} to {end}");
        let log = world.open_recovered(partition(0), config, recovered);
        world.complete_all();
        let found = base_offsets(&mut world, log, start);
        let expected: Vec<i64> = (start / 2 * 2..end).step_by(2).collect();
        assert_eq!(found, expected, "seed {seed}");
    }
    assert!(outcomes.iter().all(|count| *count > 5), "{outcomes:?}");
}
