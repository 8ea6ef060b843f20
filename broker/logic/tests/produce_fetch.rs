//! A batch goes in, is written, made durable, answered, and read back from memory and from disk.

mod support;

use support::{World, batch, partition};
use tackboard_logic::log::position::StreamByte;
use tackboard_logic::log::recovery::RestartClass;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Acks, Durability, ErrorCode, Offset};

fn world() -> (World, LogId) {
    let mut world = World::new(ShardConfig::default(), 1);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    world.complete_all();
    (world, log)
}

#[test]
fn a_batch_is_answered_only_when_it_is_durable() {
    let (mut world, log) = world();
    let ticket = world.append(log, batch(&[b"a", b"b"], None, 5));
    assert!(
        world.pending.is_empty(),
        "writes wait for the end of the turn"
    );
    world.step(Input::TurnEnd);
    assert!(matches!(
        world.pending[..],
        [Effect::Write { synced: true, .. }]
    ));
    assert!(world.produced.is_empty());
    world.complete(0, Ok(()));
    let produced = world.produced[&ticket].unwrap();
    assert_eq!(produced.base_offset, Offset(0));
    assert!(!produced.duplicate);
    let description = world.shard.describe(log).unwrap();
    assert_eq!(description.high_watermark, Offset(2));
    assert_eq!(description.log_end_offset, Offset(2));
}

#[test]
fn what_was_appended_is_read_back_from_frozen_chunks() {
    let (mut world, log) = world();
    for index in 0..100_u32 {
        world.append(log, batch(&[&index.to_be_bytes()], None, 5));
        if index % 7 == 0 {
            world.step(Input::TurnEnd);
        }
        if index % 13 == 0 {
            world.complete_all();
        }
    }
    world.step(Input::TurnEnd);
    world.complete_all();
    let bytes = world.read_all(log, 0);
    let mut at = 0;
    for index in 0..100 {
        let header = BatchHeader::read(&bytes[at..]).unwrap();
        assert_eq!(header.base_offset, Offset(index));
        at += header.total_length();
    }
    assert_eq!(at, bytes.len());
    assert_eq!(world.shard.stats().fetched_disk, 0);
}

#[test]
fn what_arrives_little_by_little_takes_little_more_than_its_bytes_in_the_tail_cache() {
    let (mut world, log) = world();
    for index in 0..1_000_u32 {
        world.append(log, batch(&[&index.to_be_bytes()], None, 5));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
    let bytes = world.read_all(log, 0);
    assert_eq!(world.shard.stats().fetched_disk, 0);
    assert_eq!(
        BatchHeader::read(&bytes).unwrap().base_offset,
        Offset(0),
        "everything is in the cache"
    );
    // The last chunk is whole: the log's partial block is still to be copied from it.
    let entries = 1_000 * 16;
    let held = world.shard.stats().tail_cache_bytes;
    assert!(
        held <= bytes.len() as u64 + entries + (16 << 10),
        "{held} bytes for {}",
        bytes.len()
    );
}

#[test]
fn without_a_tail_cache_the_same_bytes_come_from_disk() {
    let config = ShardConfig {
        tail_cache_bytes: 0,
        ..ShardConfig::default()
    };
    let mut world = World::new(config, 2);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    world.complete_all();
    for index in 0..200_u32 {
        world.append(log, batch(&[&[index as u8; 700]], None, 5));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
    let bytes = world.read_all(log, 17);
    assert_eq!(BatchHeader::read(&bytes).unwrap().base_offset, Offset(17));
    assert_eq!(bytes.len() % (200 - 17), 0);
    assert_eq!(world.shard.stats().fetched_cached, 0);
}

#[test]
fn written_topics_are_answered_after_the_write_and_never_synced() {
    let mut world = World::new(ShardConfig::default(), 3);
    let config = LogConfig {
        durability: Durability::Written,
        ..LogConfig::default()
    };
    let log = world.open(partition(0), config, RestartClass::Clean);
    world.complete_all();
    let ticket = world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::TurnEnd);
    assert!(matches!(
        world.pending[..],
        [Effect::Write { synced: false, .. }]
    ));
    world.complete(0, Ok(()));
    assert!(world.produced[&ticket].is_ok());
    world.advance(10_000_000);
    assert!(world.pending.is_empty());
}

#[test]
fn a_request_may_raise_durability_above_the_topics() {
    let mut world = World::new(ShardConfig::default(), 3);
    let config = LogConfig {
        durability: Durability::Written,
        ..LogConfig::default()
    };
    let log = world.open(partition(0), config, RestartClass::Clean);
    world.complete_all();
    let weak = world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::TurnEnd);
    let strong = world.append_with(log, batch(&[b"b"], None, 5), None, Some(Durability::Fsync));
    world.complete(0, Ok(()));
    assert!(world.produced[&weak].is_ok());
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&strong].is_ok());
    assert!(world.shard.stats().syncs + world.shard.stats().synced_writes >= 1);
}

#[test]
fn interval_topics_are_synced_in_the_background() {
    let mut world = World::new(ShardConfig::default(), 3);
    let config = LogConfig {
        durability: Durability::Interval,
        ..LogConfig::default()
    };
    let log = world.open(partition(0), config, RestartClass::Clean);
    world.complete_all();
    let ticket = world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::TurnEnd);
    world.complete(0, Ok(()));
    assert!(world.produced[&ticket].is_ok());
    assert!(world.pending.is_empty());
    world.advance(50_000);
    assert!(
        !world
            .pending
            .iter()
            .any(|effect| matches!(effect, Effect::Sync { .. }))
    );
    world.advance(60_000);
    assert!(
        world
            .pending
            .iter()
            .any(|effect| matches!(effect, Effect::Sync { .. }))
    );
    world.complete_all();
    assert!(world.pending.is_empty());
}

#[test]
fn acks_levels_and_their_floor() {
    let (mut world, log) = world();
    let silent = world.append_with(log, batch(&[b"a"], None, 5), Some(Acks::Count(0)), None);
    let many = world.append_with(log, batch(&[b"a"], None, 5), Some(Acks::Count(2)), None);
    let wrong = world.append_with(log, batch(&[b"a"], None, 5), Some(Acks::Count(-5)), None);
    assert_eq!(
        world.produced[&many].unwrap_err().code,
        ErrorCode::NotEnoughReplicas
    );
    assert_eq!(
        world.produced[&wrong].unwrap_err().code,
        ErrorCode::InvalidRequiredAcks
    );
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(!world.produced.contains_key(&silent));
    assert_eq!(world.shard.describe(log).unwrap().log_end_offset, Offset(1));

    let config = LogConfig {
        acks_min: Acks::Count(1),
        ..LogConfig::default()
    };
    world.step(Input::Configure {
        log,
        config: Box::new(config),
    });
    let loud = world.append_with(log, batch(&[b"a"], None, 5), Some(Acks::Count(0)), None);
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&loud].is_ok());
}

#[test]
fn retries_get_the_first_offset_and_gaps_are_refused() {
    let (mut world, log) = world();
    let first = world.append(log, batch(&[b"a", b"b"], Some((9, 0, 0)), 5));
    let retry = world.append(log, batch(&[b"a", b"b"], Some((9, 0, 0)), 5));
    let gap = world.append(log, batch(&[b"d"], Some((9, 0, 3)), 5));
    let next = world.append(log, batch(&[b"c"], Some((9, 0, 2)), 5));
    assert_eq!(
        world.produced[&gap].unwrap_err().code,
        ErrorCode::OutOfOrderSequenceNumber
    );
    assert!(
        !world.produced.contains_key(&retry),
        "a retry waits like the original"
    );
    world.step(Input::TurnEnd);
    world.complete_all();
    assert_eq!(world.produced[&first].unwrap().base_offset, Offset(0));
    assert_eq!(world.produced[&retry].unwrap().base_offset, Offset(0));
    assert!(world.produced[&retry].unwrap().duplicate);
    assert_eq!(world.produced[&next].unwrap().base_offset, Offset(2));
    let later = world.append(log, batch(&[b"x"], Some((9, 1, 0)), 5));
    let stale = world.append(log, batch(&[b"y"], Some((9, 0, 3)), 5));
    let new_epoch_midway = world.append(log, batch(&[b"z"], Some((9, 2, 7)), 5));
    assert_eq!(
        world.produced[&stale].unwrap_err().code,
        ErrorCode::InvalidProducerEpoch
    );
    assert_eq!(
        world.produced[&new_epoch_midway].unwrap_err().code,
        ErrorCode::OutOfOrderSequenceNumber
    );
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&later].is_ok());
}

#[test]
fn fetches_park_until_there_is_enough() {
    let (mut world, log) = world();
    let ticket = world.fetch(log, 0, 1 << 20, 500_000);
    assert!(!world.fetched.contains_key(&ticket));
    world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::TurnEnd);
    assert!(!world.fetched.contains_key(&ticket));
    world.complete_all();
    assert_eq!(world.fetched[&ticket].len(), 1);
    assert!(!world.fetched[&ticket][0].1.is_empty());

    let late = world.fetch(log, 1, 1 << 20, 500_000);
    world.advance(499_000);
    assert!(!world.fetched.contains_key(&late));
    world.advance(2_000);
    assert_eq!(world.fetched[&late][0].0.data, FetchData::Empty);

    let hurried = world.fetch(log, 1, 1 << 20, 500_000);
    world.step(Input::HurryFetch {
        ticket: Ticket(hurried),
    });
    assert!(world.fetched.contains_key(&hurried));
    let dropped = world.fetch(log, 1, 1 << 20, 500_000);
    world.step(Input::DropFetch {
        ticket: Ticket(dropped),
    });
    world.advance(1_000_000);
    assert!(!world.fetched.contains_key(&dropped));
    let beyond = world.fetch(log, 2, 1 << 20, 500_000);
    assert_eq!(
        world.fetched[&beyond][0].0.error,
        ErrorCode::OffsetOutOfRange
    );
}

#[test]
fn a_deleted_log_answers_everybody_and_waits_for_its_disk() {
    let (mut world, log) = world();
    let parked = world.fetch(log, 0, 1000, 10_000_000);
    let waiting = world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::TurnEnd);
    world.step(Input::Delete { log });
    assert_eq!(
        world.produced[&waiting].unwrap_err().code,
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(
        world.fetched[&parked][0].0.error,
        ErrorCode::UnknownTopicOrPartition
    );
    assert!(world.deleted.is_empty());
    world.complete_all();
    assert_eq!(world.deleted, [log]);
    let gone = world.append(log, batch(&[b"a"], None, 5));
    assert_eq!(
        world.produced[&gone].unwrap_err().code,
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(world.shard.stats().tail_cache_bytes, 0);
}

#[test]
fn a_shutdown_leaves_everything_durable_and_indexed() {
    let (mut world, log) = world();
    let ticket = world.append(log, batch(&[b"a"], None, 5));
    world.step(Input::Shutdown);
    let refused = world.append(log, batch(&[b"b"], None, 5));
    assert_eq!(
        world.produced[&refused].unwrap_err().code,
        ErrorCode::ShuttingDown
    );
    assert_eq!(world.drained, None);
    world.complete_all();
    assert_eq!(world.drained, Some(Unwritten::default()));
    assert!(world.produced[&ticket].is_ok());
    let files = &world.folders[&partition(0)][&0];
    assert!(files.index.is_some() && files.producers.is_some());

    world.restart();
    let recovered = world.recover(partition(0), &LogConfig::default(), RestartClass::Clean);
    assert_eq!(
        (recovered.scanned_bytes, recovered.log_end_offset),
        (0, Offset(1))
    );
    let log = world.open_recovered(partition(0), LogConfig::default(), recovered);
    world.append(log, batch(&[b"c"], None, 5));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(!world.read_all(log, 0).is_empty());
}

#[test]
fn history_is_read_in_stretches_that_end_between_batches_and_below_the_high_watermark() {
    let config = ShardConfig {
        tail_cache_bytes: 0,
        ..ShardConfig::default()
    };
    let mut world = World::new(config, 4);
    let settings = LogConfig {
        segment_bytes: 5 << 20,
        ..LogConfig::default()
    };
    let log = world.open(partition(0), settings, RestartClass::Clean);
    world.complete_all();
    for index in 0..90_u8 {
        world.append(log, batch(&[&[index; 99_999]], None, 5));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
    let description = world.shard.describe(log).unwrap();
    assert_eq!(description.segment_count, 2);
    let batch_bytes = (description.size_bytes / 90) as u32;

    let mut stretches = Vec::new();
    let mut at = StreamByte(0);
    while let Some(stretch) = world.shard.stretch_ahead(log, at) {
        assert_eq!(stretch.start, at, "none is left out");
        assert_eq!(world.shard.stretch_ahead(log, at.plus(1)), Some(stretch));
        at = stretch.end();
        stretches.push(stretch);
    }
    // The first batch at or behind each MiB of the file begins one; the rolled segment's last one ends with it.
    let lengths = stretches.iter().map(|stretch| stretch.length / batch_bytes);
    assert_eq!(
        lengths.collect::<Vec<_>>(),
        [11, 10, 11, 10, 10, 11, 10, 11]
    );
    assert_eq!(stretches[5].segment, SegmentBase(Offset(52)));
    assert_eq!(stretches[5].file_at, 0);
    let end = StreamByte(description.size_bytes);
    assert!(end.since(at) < 2 << 20, "the rest is not whole yet");
    // They are cut to the same bytes: the support of these tests compares.
    let bytes = world.read_all(log, 7);
    assert_eq!(BatchHeader::read(&bytes).unwrap().base_offset, Offset(7));
}
