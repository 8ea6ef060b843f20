//! The end of an open log is cut off, and a crash may come at any step of it.

mod support;

use support::{World, batch, partition};
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Durability, ErrorCode, LeaderEpoch, Offset};

/// Segments of a few batches, an index entry for each second one.
fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 16 << 10,
        index_interval_bytes: 4096,
        ..LogConfig::default()
    }
}

/// Without a tail cache batches are looked for on disk.
fn world(seed: u64, tail_cache_bytes: u64) -> World {
    let config = ShardConfig {
        tail_cache_bytes,
        ..ShardConfig::default()
    };
    World::new(config, seed)
}

/// Batches of two records, one after the other.
fn fill(world: &mut World, log: LogId, batches: std::ops::Range<i32>, fill: u8) {
    for index in batches {
        let value = vec![fill; 1500];
        world.append(log, batch(&[&value, &value], Some((5, 0, 2 * index)), 1));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
}

fn settle(world: &mut World) {
    world.advance(200_000);
    world.complete_all();
}

/// Base offset and leader epoch of every batch.
fn contents(world: &mut World, log: LogId) -> Vec<(i64, i32)> {
    let bytes = world.read_all(log, 0);
    let mut at = 0;
    let mut found = Vec::new();
    while at < bytes.len() {
        let header = BatchHeader::read(&bytes[at..]).unwrap();
        found.push((header.base_offset.0, header.partition_leader_epoch.0));
        at += header.total_length();
    }
    found
}

fn batches(offsets: std::ops::Range<i64>, epoch: i32) -> impl Iterator<Item = (i64, i32)> {
    offsets.step_by(2).map(move |offset| (offset, epoch))
}

fn refusal(world: &World, ticket: u64) -> ErrorCode {
    world.truncated[&ticket].unwrap_err().code
}

#[test]
fn a_log_is_cut_wherever_the_offset_lies() {
    for tail_cache_bytes in [0, 64 << 20] {
        for cut in 0..=40 {
            let mut world = world(7, tail_cache_bytes);
            let log = world.open(partition(0), small_segments(), RestartClass::Clean);
            world.complete_all();
            fill(&mut world, log, 0..20, 1);
            settle(&mut world);
            assert!(world.folders[&partition(0)].len() > 3);
            let ticket = world.truncate(log, cut, true);
            world.complete_all();
            // A batch of two goes as a whole.
            let end = cut / 2 * 2;
            let truncated = world.truncated[&ticket].unwrap();
            assert_eq!(truncated.log_end_offset, Offset(end));
            let described = world.shard.describe(log).unwrap();
            assert_eq!(
                (described.log_end_offset, described.high_watermark),
                (Offset(end), Offset(end))
            );
            // The producer goes on where its last batch that is left ends.
            fill(&mut world, log, (end / 2) as i32..25, 2);
            let expected: Vec<_> = batches(0..end, 1).chain(batches(end..50, 2)).collect();
            assert_eq!(contents(&mut world, log), expected, "cut at {cut}");
            settle(&mut world);
            for restart in [RestartClass::ProcessCrash, RestartClass::HostCrash] {
                world.crash();
                let log = world.open(partition(0), small_segments(), restart);
                world.complete_all();
                assert_eq!(contents(&mut world, log), expected, "cut at {cut}");
            }
        }
    }
}

#[test]
fn what_an_index_or_a_snapshot_says_of_a_cut_segment_is_gone_with_it() {
    let config = small_segments();
    let mut world = world(3, 0);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    world.complete_all();
    fill(&mut world, log, 0..20, 1);
    settle(&mut world);
    let bases: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    let second = &world.folders[&partition(0)][&bases[1]];
    assert!(second.index.is_some() && second.producers.is_some());
    world.truncate(log, bases[1] + 2, true);
    world.complete_all();
    let second = &world.folders[&partition(0)][&bases[1]];
    assert!(second.index.is_none() && second.producers.is_none());
    let left: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    assert_eq!(left, bases[..2]);
    let first = &world.folders[&partition(0)][&bases[0]];
    assert!(first.index.is_some() && first.producers.is_some());
}

#[test]
fn a_cut_is_refused_with_the_reason() {
    let mut world = world(1, 64 << 20);
    let config = LogConfig {
        durability: Durability::Written,
        ..small_segments()
    };
    let log = world.open(partition(0), config, RestartClass::Clean);
    world.complete_all();
    fill(&mut world, log, 0..5, 1);
    let below = world.truncate(log, 8, false);
    assert_eq!(refusal(&world, below), ErrorCode::InvalidRequest);
    let text = world.truncated[&below].unwrap_err().to_string();
    assert!(text.contains('8') && text.contains("10"), "{text}");
    let beyond = world.truncate(log, 11, true);
    assert_eq!(refusal(&world, beyond), ErrorCode::OffsetOutOfRange);
    world.step(Input::Truncate(Truncate {
        log,
        ticket: Ticket(900),
        offset: Offset(8),
        leader_epoch: LeaderEpoch(1),
        below_high_watermark: true,
    }));
    assert_eq!(refusal(&world, 900), ErrorCode::FencedLeaderEpoch);
    // Nothing happened to the log.
    assert_eq!(
        contents(&mut world, log),
        batches(0..10, 1).collect::<Vec<_>>()
    );
    assert!(world.pending.is_empty());
}

#[test]
fn nothing_to_cut_begins_the_epoch_all_the_same() {
    let mut world = world(1, 64 << 20);
    let log = world.open(partition(0), small_segments(), RestartClass::Clean);
    world.complete_all();
    fill(&mut world, log, 0..5, 1);
    let ticket = world.truncate(log, 10, false);
    let truncated = world.truncated[&ticket].unwrap();
    assert_eq!(truncated.log_end_offset, Offset(10));
    fill(&mut world, log, 5..6, 1);
    let expected: Vec<_> = batches(0..10, 1).chain([(10, 2)]).collect();
    assert_eq!(contents(&mut world, log), expected);
}

#[test]
fn whoever_waits_is_told() {
    let mut world = world(5, 64 << 20);
    let log = world.open(partition(0), small_segments(), RestartClass::Clean);
    world.complete_all();
    let send = |world: &mut World, index: i32| {
        let ticket = world.append(log, batch(&[&[1; 500]], Some((5, 0, index)), 1));
        world.step(Input::TurnEnd);
        ticket
    };
    // Nothing is written yet.
    let [first, second, third] = [0, 1, 2].map(|index| send(&mut world, index));
    let parked = world.fetch(log, 0, 1 << 20, 60_000_000);
    assert!(!world.fetched.contains_key(&parked));
    let cut = world.truncate(log, 2, false);
    assert_eq!(
        world.fetched[&parked][0].0.error,
        ErrorCode::NotLeaderOrFollower
    );
    assert_eq!(
        world.produced[&third].unwrap_err().code,
        ErrorCode::NotLeaderOrFollower
    );
    assert!(!world.produced.contains_key(&second), "it stays");
    let meanwhile = send(&mut world, 3);
    let read = world.fetch(log, 0, 1 << 20, 0);
    let again = world.truncate(log, 1, false);
    for code in [
        world.produced[&meanwhile].unwrap_err().code,
        world.fetched[&read][0].0.error,
        refusal(&world, again),
    ] {
        assert_eq!(code, ErrorCode::NotLeaderOrFollower);
    }
    world.complete_all();
    assert!(world.produced[&first].is_ok() && world.produced[&second].is_ok());
    assert_eq!(world.truncated[&cut].unwrap().log_end_offset, Offset(2));
    // The third is sent again, and is new.
    let third = send(&mut world, 2);
    world.complete_all();
    let produced = world.produced[&third].unwrap();
    assert_eq!(
        (produced.base_offset, produced.duplicate),
        (Offset(2), false)
    );
}

#[test]
fn a_crash_at_any_step_leaves_the_log_as_it_was_or_cut() {
    let mut outcomes = [0_u32; 2];
    for seed in 0..400 {
        let mut world = world(seed, if seed % 2 == 0 { 0 } else { 64 << 20 });
        let log = world.open(partition(0), small_segments(), RestartClass::Clean);
        world.complete_all();
        fill(&mut world, log, 0..12, 1);
        let cut = world.random.below(24) as i64;
        // Some of it is in flight when it begins.
        for index in 12..14 {
            let value = vec![1; 1500];
            world.append(log, batch(&[&value, &value], Some((5, 0, 2 * index)), 1));
        }
        world.step(Input::TurnEnd);
        let ticket = world.truncate(log, cut, true);
        for _ in 0..world.random.below(30) {
            match world.pending.is_empty() {
                true => world.advance(1_000),
                false => world.complete_one(),
            }
        }
        let answered = world.truncated.get(&ticket).is_some_and(Result::is_ok);
        // What is acknowledged behind the cut stays.
        let mut kept = 0;
        if answered {
            fill(&mut world, log, (cut / 2) as i32..8, 2);
            kept = (8 - cut / 2).max(0) * 2;
        }
        world.crash();
        let recovered = world.recover(partition(0), &small_segments(), RestartClass::HostCrash);
        let end = recovered.log_end_offset.0;
        let cut_end = cut / 2 * 2;
        if answered {
            assert_eq!(end, cut_end + kept, "seed {seed}, cut at {cut}");
        } else {
            let as_it_was = end >= 24;
            assert!(
                as_it_was || end == cut_end,
                "seed {seed}: {end}, cut at {cut}"
            );
            outcomes[usize::from(as_it_was)] += 1;
        }
        let log = world.open_recovered(partition(0), small_segments(), recovered);
        world.complete_all();
        let found = contents(&mut world, log);
        let offsets: Vec<i64> = found.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(
            offsets,
            (0..end).step_by(2).collect::<Vec<_>>(),
            "seed {seed}"
        );
    }
    assert!(outcomes.iter().all(|count| *count > 20), "{outcomes:?}");
}

#[test]
fn a_fault_before_the_cut_changes_nothing_and_one_in_it_is_made_good() {
    let config = small_segments();
    let io = Err(StorageFault::Io { os_error: 5 });
    let mut world = world(9, 0);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    world.complete_all();
    fill(&mut world, log, 0..12, 1);
    settle(&mut world);
    // The place of the cut cannot be read.
    let ticket = world.truncate(log, 3, true);
    world.complete(0, io);
    assert_eq!(refusal(&world, ticket), ErrorCode::KafkaStorageError);
    fill(&mut world, log, 12..13, 1);
    assert_eq!(
        contents(&mut world, log),
        batches(0..26, 1).collect::<Vec<_>>()
    );
    // The files cannot be cut.
    settle(&mut world);
    let ticket = world.truncate(log, 3, true);
    let is_reopening = |effect: &Effect| matches!(effect, Effect::Reopen(_));
    while !world.pending.iter().any(is_reopening) {
        world.complete_one();
    }
    let at = world.pending.iter().position(is_reopening).unwrap();
    world.complete(at, io);
    let refused = world.truncated[&ticket].unwrap_err();
    assert!(matches!(refused.detail, RefusalDetail::CutUnfinished(_)));
    assert_eq!(world.fenced, [log]);
    let described = world.shard.describe(log).unwrap();
    assert!(described.fenced && described.high_watermark == Offset(2));
    settle(&mut world);
    world.crash();
    let log = world.open(partition(0), config, RestartClass::ProcessCrash);
    world.complete_all();
    assert_eq!(contents(&mut world, log), [(0, 1)]);
}
