//! What a full disk does to a core, and what a core does about it.

mod support;

use support::{World, batch, free_space, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Durability, ErrorCode, Offset};

/// Segments small enough to roll often.
fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 64 << 10,
        index_interval_bytes: 4096,
        ..LogConfig::default()
    }
}

fn offsets(bytes: &[u8]) -> Vec<i64> {
    let mut at = 0;
    let mut found = Vec::new();
    while at < bytes.len() {
        let header = BatchHeader::read(&bytes[at..]).unwrap();
        found.push(header.base_offset.0);
        at += header.total_length();
    }
    found
}

fn opened(config: &LogConfig) -> (World, LogId) {
    let mut world = World::new(ShardConfig::default(), 5);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    world.complete_all();
    (world, log)
}

/// Completes what is in flight; whatever needs space fails.
fn complete_on_a_full_disk(world: &mut World) {
    while !world.pending.is_empty() {
        let fails = matches!(
            world.pending[0],
            Effect::Write { .. }
                | Effect::CreateSegment { .. }
                | Effect::SealSegment { .. }
                | Effect::Preallocate { .. }
        );
        let result = if fails {
            Err(StorageFault::NoSpace)
        } else {
            Ok(())
        };
        world.complete(0, result);
    }
}

fn append_until_full(world: &mut World, log: LogId, batches: i32) -> Vec<u64> {
    let tickets = (0..batches)
        .map(|index| world.append(log, batch(&[&[1; 3000]], Some((7, 0, index)), 0)))
        .collect();
    world.step(Input::TurnEnd);
    complete_on_a_full_disk(world);
    tickets
}

#[test]
fn those_who_wait_for_a_full_disk_are_told_at_once_and_nothing_is_lost() {
    for durability in [Durability::Written, Durability::Fsync] {
        let (mut world, log) = opened(&LogConfig {
            durability,
            ..small_segments()
        });
        let tickets = append_until_full(&mut world, log, 40);
        assert!(world.fenced.is_empty());
        for ticket in &tickets {
            let refusal = world.produced[ticket].unwrap_err();
            assert_eq!(refusal.code, ErrorCode::StorageFullAfterAppend);
            assert_eq!(refusal.detail, RefusalDetail::UnwrittenForSpace);
        }
        let retry = batch(&[&[1; 3000]], Some((7, 0, 39)), 0);
        let refused = world.append(log, retry.clone());
        let refusal = world.produced[&refused].unwrap_err();
        assert_eq!(refusal.detail, RefusalDetail::UnwrittenForSpace, "a retry");
        let refused = world.append(log, batch(&[b"a"], Some((7, 0, 40)), 0));
        let refusal = world.produced[&refused].unwrap_err();
        assert_eq!(refusal.code, ErrorCode::StorageFull);
        assert_eq!(refusal.detail, RefusalDetail::WritesWaitForSpace);

        world.step(free_space(1 << 30));
        world.complete_all();
        let repeated = world.append(log, retry);
        let produced = world.produced[&repeated].unwrap();
        assert_eq!(
            (produced.base_offset, produced.duplicate),
            (Offset(39), true)
        );
        assert_eq!(
            offsets(&world.read_all(log, 0)),
            (0..40).collect::<Vec<_>>()
        );
    }
}

#[test]
fn what_was_deleted_frees_its_space_at_once_while_there_is_too_little() {
    let (mut world, log) = opened(&small_segments());
    world.step(free_space(1 << 30));
    assert!(!world.shard.trash_delay().is_zero());
    append_until_full(&mut world, log, 3);
    assert!(world.shard.trash_delay().is_zero());
    world.step(free_space(1 << 30));
    world.complete_all();
    assert!(!world.shard.trash_delay().is_zero());
    world.step(free_space(1000));
    assert!(world.shard.trash_delay().is_zero());
}

#[test]
fn what_was_written_before_the_disk_was_full_is_acknowledged() {
    let (mut world, log) = opened(&LogConfig::default());
    let first = world.append(log, batch(&[b"a"], None, 0));
    world.step(Input::TurnEnd);
    let second = world.append(log, batch(&[b"b"], None, 0));
    let write = |effect: &Effect| matches!(effect, Effect::Write { .. });
    let index = world.pending.iter().position(write).unwrap();
    world.complete(index, Ok(()));
    complete_on_a_full_disk(&mut world);
    assert!(world.produced[&first].is_ok());
    let refusal = world.produced[&second].unwrap_err();
    assert_eq!(refusal.code, ErrorCode::StorageFullAfterAppend);
}

#[test]
fn a_core_stops_on_a_full_disk_and_says_what_it_leaves() {
    let (mut world, log) = opened(&small_segments());
    let written = world.append(log, batch(&[b"kept"], None, 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&written].is_ok());
    append_until_full(&mut world, log, 3);
    world.step(Input::Shutdown);
    complete_on_a_full_disk(&mut world);
    let unwritten = world.drained.expect("it does not wait for space");
    assert_eq!(unwritten.logs, 1);
    assert!(unwritten.bytes > 3 * 3000, "{unwritten:?}");
}

#[test]
fn a_stop_with_space_again_leaves_nothing() {
    let (mut world, log) = opened(&small_segments());
    append_until_full(&mut world, log, 3);
    world.step(Input::Shutdown);
    world.complete_all();
    assert_eq!(world.drained, Some(Unwritten::default()));
}

#[test]
fn nothing_is_reserved_ahead_beyond_half_of_a_logs_share_of_the_free_space() {
    let reserved = |free: u64| {
        let mut world = World::new(ShardConfig::default(), 5);
        world.step(free_space(free));
        let config = LogConfig {
            segment_bytes: 8 << 20,
            ..LogConfig::default()
        };
        let log = world.open(partition(0), config, RestartClass::Clean);
        world.complete_all();
        world.append(log, batch(&[&[1; 900_000]], None, 0));
        world.step(Input::TurnEnd);
        let is = |effect: &Effect| matches!(effect, Effect::Preallocate { .. });
        world.pending.iter().any(is)
    };
    assert!(reserved(64 << 20));
    assert!(!reserved(2 << 20));
}

#[test]
fn below_the_reserve_appends_are_refused_until_there_is_clearly_more() {
    let config = ShardConfig {
        reserve_bytes: 800,
        ..ShardConfig::default()
    };
    let mut world = World::new(config, 5);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    let mut code_at = |bytes: u64| {
        world.step(free_space(bytes));
        let ticket = world.append(log, batch(&[b"a"], None, 0));
        world
            .produced
            .get(&ticket)
            .map(|outcome| outcome.unwrap_err().code)
    };
    assert_eq!(code_at(800), None);
    assert_eq!(code_at(799), Some(ErrorCode::StorageFull));
    assert_eq!(code_at(850), Some(ErrorCode::StorageFull));
    assert_eq!(code_at(900), None);
}
