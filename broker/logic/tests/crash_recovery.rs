//! What is left after a crash, and what recovery makes of it.

mod support;

use support::{World, batch, partition};
use tackboard_logic::ledger::{LedgerLog, ProvenEnd};
use tackboard_logic::log::recovery::{
    DamagedRange, Recovery, RecoveryStep, RestartClass, SegmentFile,
};
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Durability, ErrorCode, Offset, TimestampMs};

/// Segments small enough to roll often.
fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 64 << 10,
        index_interval_bytes: 4096,
        ..LogConfig::default()
    }
}

fn settled(config: &LogConfig, batches: usize) -> (World, LogId) {
    let mut world = World::new(ShardConfig::default(), 11);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    world.complete_all();
    for index in 0..batches {
        let producer = Some((5, 0, index as i32));
        world.append(log, batch(&[&[index as u8; 3000]], producer, index as i64));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
    world.advance(200_000);
    world.complete_all();
    (world, log)
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

#[test]
fn acknowledged_batches_survive_any_crash() {
    for seed in 0..80 {
        let config = ShardConfig {
            tail_cache_bytes: 64 << 10,
            ..ShardConfig::default()
        };
        let mut world = World::new(config, seed);
        let mut next = [0_i32; 3];
        let mut acknowledged = [0_i64; 3];
        for round in 0..4 {
            let restart = if round == 0 {
                RestartClass::Clean
            } else {
                RestartClass::HostCrash
            };
            let mut logs = Vec::new();
            for index in 0..3 {
                let recovered = world.recover(partition(index), &small_segments(), restart);
                assert!(
                    recovered.damaged.is_empty(),
                    "seed {seed}: {:?}",
                    recovered.damaged
                );
                let end = recovered.log_end_offset.0;
                let kept = acknowledged[index as usize];
                assert!(end >= kept, "seed {seed}: {kept} acknowledged, {end} kept");
                next[index as usize] = end as i32;
                let log = world.open_recovered(partition(index), small_segments(), recovered);
                let bytes = world.read_all(log, 0);
                assert_eq!(offsets(&bytes), (0..end).collect::<Vec<_>>(), "seed {seed}");
                logs.push(log);
            }
            let mut tickets = Vec::new();
            for _ in 0..world.random.below(400) {
                match world.random.below(10) {
                    0..5 => {
                        let index = world.random.below(3) as usize;
                        let length = 1 + world.random.below(9000) as usize;
                        let value = vec![index as u8; length];
                        let bytes = batch(&[&value], Some((5, 0, next[index])), 3);
                        tickets.push((index, world.append(logs[index], bytes)));
                        next[index] += 1;
                    }
                    5..7 => world.step(Input::TurnEnd),
                    7 => world.advance(30_000),
                    _ if !world.pending.is_empty() => world.complete_one(),
                    _ => {}
                }
            }
            for (index, ticket) in tickets {
                if let Some(Ok(produced)) = world.produced.get(&ticket) {
                    let end = produced.base_offset.0 + 1;
                    acknowledged[index] = acknowledged[index].max(end);
                }
            }
            world.crash();
        }
    }
}

#[test]
fn a_torn_tail_is_cut_and_the_log_goes_on() {
    let config = small_segments();
    let (mut world, log) = settled(&config, 5);
    world.append(log, batch(&[&[9; 5000]], Some((5, 0, 5)), 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    // The last batch was written and acknowledged, but the ledger does not know yet; its end gets lost.
    let file = &mut world
        .folders
        .get_mut(&partition(0))
        .unwrap()
        .get_mut(&0)
        .unwrap()
        .log;
    let end = file.seen.iter().rposition(|byte| *byte != 0).unwrap();
    file.seen[end - 100..=end].fill(0);
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert_eq!(recovered.log_end_offset, Offset(5));
    assert_eq!(recovered.torn_tail_at, Some(Offset(5)));
    assert!(recovered.damaged.is_empty());
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    let ticket = world.append(log, batch(&[&[8; 10]], Some((5, 0, 5)), 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert_eq!(world.produced[&ticket].unwrap().base_offset, Offset(5));
    assert_eq!(offsets(&world.read_all(log, 0)), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn damage_below_the_proof_is_kept_out_of_reach_and_never_cut() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 12);
    let file = &mut world
        .folders
        .get_mut(&partition(0))
        .unwrap()
        .get_mut(&0)
        .unwrap()
        .log;
    // In the middle of the batch of offset 4.
    file.seen[4 * 3100 + 1000] ^= 1;
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
    assert_eq!(
        recovered.damaged,
        [DamagedRange {
            from: Offset(4),
            to: Offset(5)
        }]
    );
    assert_eq!(recovered.log_end_offset, Offset(12));
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    assert_eq!(
        offsets(&world.read_all(log, 5)),
        (5..12).collect::<Vec<_>>()
    );
    let before = world.fetch(log, 0, 1 << 20, 0);
    assert_eq!(offsets(&world.fetched[&before][0].1), [0, 1, 2, 3]);
    let within = world.fetch(log, 4, 1 << 20, 0);
    assert_eq!(
        world.fetched[&within][0].0.error,
        ErrorCode::KafkaStorageError
    );
    let ticket = world.append(log, batch(&[&[8; 10]], Some((5, 0, 12)), 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert_eq!(world.produced[&ticket].unwrap().base_offset, Offset(12));
}

#[test]
fn behind_a_header_that_is_gone_the_next_batch_that_holds_is_found() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 12);
    let file = &mut world
        .folders
        .get_mut(&partition(0))
        .unwrap()
        .get_mut(&0)
        .unwrap()
        .log;
    file.seen[8192..12288].fill(0);
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
    assert_eq!(recovered.damaged.len(), 1);
    assert_eq!(
        (recovered.damaged[0].from, recovered.damaged[0].to),
        (Offset(2), Offset(5))
    );
    assert_eq!(recovered.log_end_offset, Offset(12));
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    world.append(log, batch(&[&[8; 10]], Some((5, 0, 12)), 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    let left: Vec<i64> = (5..13).collect();
    assert_eq!(offsets(&world.read_all(log, 5)), left);
    // Another start finds the same, not more.
    world.advance(200_000);
    world.complete_all();
    world.crash();
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert_eq!(recovered.damaged.len(), 1);
    assert_eq!(recovered.damaged[0].to, Offset(5));
    assert_eq!(recovered.log_end_offset, Offset(13));
}

#[test]
fn a_retry_is_known_though_the_records_of_a_batch_rotted() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 12);
    let file = &mut world
        .folders
        .get_mut(&partition(0))
        .unwrap()
        .get_mut(&0)
        .unwrap()
        .log;
    // In the records of the last batch.
    let end = file.seen.iter().rposition(|byte| *byte != 0).unwrap();
    file.seen[end - 50] ^= 1;
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
    assert_eq!(
        recovered.damaged,
        [DamagedRange {
            from: Offset(11),
            to: Offset(12)
        }]
    );
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    let retry = world.append(log, batch(&[&[11; 3000]], Some((5, 0, 11)), 11));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert!(world.produced[&retry].unwrap().duplicate);
}

#[test]
fn a_producer_goes_on_behind_a_batch_whose_header_took_its_name_with_it() {
    let config = small_segments();
    // In the producer's id, its epoch, its sequence number.
    for field in [50, 52, 56] {
        let (mut world, _) = settled(&config, 12);
        let files = world.folders.get_mut(&partition(0)).unwrap();
        let file = &mut files.get_mut(&0).unwrap().log;
        let begins_here = |at: &usize| {
            file.seen[*at..].starts_with(&11_i64.to_be_bytes()) && file.seen[at + 16] == 2
        };
        let last = (0..file.seen.len() - 61).find(begins_here).unwrap();
        file.seen[last + field] ^= 1;
        world.restart();
        let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
        assert_eq!(
            recovered.damaged,
            [DamagedRange {
                from: Offset(11),
                to: Offset(12)
            }]
        );
        let log = world.open_recovered(partition(0), config.clone(), recovered);
        let next = world.append(log, batch(&[&[8; 10]], Some((5, 0, 12)), 0));
        world.step(Input::TurnEnd);
        world.complete_all();
        assert_eq!(
            world.produced[&next].unwrap().base_offset,
            Offset(12),
            "field {field}"
        );
    }
}

#[test]
fn a_lost_active_segment_is_damage_and_its_offsets_are_not_given_again() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 30);
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    let last = *folder.keys().last().unwrap();
    assert!(last > 0);
    folder.remove(&last);
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert_eq!(
        recovered.damaged,
        [DamagedRange {
            from: Offset(last),
            to: Offset(30)
        }]
    );
    assert_eq!(recovered.log_end_offset, Offset(30));
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    let ticket = world.append(log, batch(&[&[8; 10]], None, 0));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert_eq!(world.produced[&ticket].unwrap().base_offset, Offset(30));
}

#[test]
fn an_active_segment_that_lost_its_end_is_damage_and_appends_go_on_behind_the_proof() {
    let config = small_segments();
    for missing in [1, 100, 3100, 3101] {
        let (mut world, _) = settled(&config, 12);
        let folder = world.folders.get_mut(&partition(0)).unwrap();
        let last = *folder.keys().last().unwrap();
        let file = &mut folder.get_mut(&last).unwrap().log;
        // The last record ends with its count of headers, a zero; reserved space follows.
        let end = file.seen.iter().rposition(|byte| *byte != 0).unwrap() + 2;
        file.truncate((end - missing) as u64);
        world.restart();
        let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
        assert!(!recovered.damaged.is_empty(), "{missing} bytes");
        assert_eq!(recovered.log_end_offset, Offset(12), "{missing} bytes");
        let log = world.open_recovered(partition(0), config.clone(), recovered);
        let ticket = world.append(log, batch(&[&[8; 10]], None, 0));
        world.step(Input::TurnEnd);
        world.complete_all();
        assert_eq!(world.produced[&ticket].unwrap().base_offset, Offset(12));
    }
}

#[test]
fn producers_are_rebuilt_from_snapshots_and_batches() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 50);
    assert!(world.folders[&partition(0)].len() > 2);
    world.crash();
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert!(
        recovered.scanned_bytes < 70_000,
        "sealed segments are not read: {}",
        recovered.scanned_bytes
    );
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    let retry = world.append(log, batch(&[&[49; 3000]], Some((5, 0, 49)), 49));
    let gap = world.append(log, batch(&[b"x"], Some((5, 0, 51)), 49));
    let next = world.append(log, batch(&[b"x"], Some((5, 0, 50)), 49));
    world.step(Input::TurnEnd);
    world.complete_all();
    let produced = world.produced[&retry].unwrap();
    assert!(produced.duplicate);
    assert_eq!(produced.base_offset, Offset(49));
    assert_eq!(
        world.produced[&gap].unwrap_err().code,
        ErrorCode::OutOfOrderSequenceNumber
    );
    assert_eq!(world.produced[&next].unwrap().base_offset, Offset(50));
}

#[test]
fn without_a_ledger_whatever_holds_is_taken() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 30);
    world.ledger = Default::default();
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::DirReplaced);
    assert_eq!(recovered.log_end_offset, Offset(30));
    assert!(recovered.damaged.is_empty());
}

#[test]
fn a_foreign_file_named_like_a_segment_hides_nothing() {
    let config = small_segments();
    for restart in [
        RestartClass::Clean,
        RestartClass::ProcessCrash,
        RestartClass::DirReplaced,
    ] {
        // In the first segment, in the last one, empty or with the batches of another segment.
        for (base, with_batches) in [(5, false), (5, true), (48, false), (48, true)] {
            let (mut world, _) = settled(&config, 50);
            if restart == RestartClass::DirReplaced {
                world.ledger = Default::default();
            }
            world.restart();
            let folder = world.folders.get_mut(&partition(0)).unwrap();
            let mut stranger = folder[&0].clone();
            if !with_batches {
                stranger.log.truncate(0);
            }
            folder.insert(base, stranger);
            let what = format!("{base} {with_batches} {restart:?}");
            let recovered = world.recover(partition(0), &config, restart);
            assert_eq!(recovered.damaged, [], "{what}");
            assert_eq!(recovered.set_aside, [SegmentBase(Offset(base))], "{what}");
            assert_eq!(recovered.log_end_offset, Offset(50), "{what}");
            assert!(!world.folders[&partition(0)].contains_key(&base), "{what}");
            let log = world.open_recovered(partition(0), config.clone(), recovered);
            let served = offsets(&world.read_all(log, 0));
            assert_eq!(served, (0..50).collect::<Vec<_>>(), "{what}");
        }
    }
}

#[test]
fn a_foreign_file_behind_the_end_of_a_clean_log_is_set_aside() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 50);
    world.restart();
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    folder.insert(70, folder[&0].clone());
    let recovered = world.recover(partition(0), &config, RestartClass::Clean);
    assert_eq!(recovered.set_aside, [SegmentBase(Offset(70))]);
    assert_eq!((recovered.torn_tail_at, recovered.damaged.len()), (None, 0));
    assert_eq!(recovered.log_end_offset, Offset(50));
}

#[test]
fn what_lies_behind_the_end_after_a_crash_is_removed_and_told() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 50);
    world.restart();
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    folder.insert(70, folder[&0].clone());
    let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
    assert_eq!(recovered.removed, [SegmentBase(Offset(70))]);
    assert_eq!(recovered.torn_tail_at, Some(Offset(50)));
    assert_eq!(recovered.log_end_offset, Offset(50));
}

#[test]
fn old_segments_go_by_time_after_the_ledger_knows() {
    let config = LogConfig {
        retention_ms: Some(60_000),
        ..small_segments()
    };
    let (mut world, log) = settled(&config, 50);
    world.now.wall = TimestampMs(world.now.wall.0 + 61_000);
    world.wait_seconds(2);
    let description = world.shard.describe(log).unwrap();
    assert!(description.log_start_offset.0 > 0);
    let is_delete = |effect: &Effect| matches!(effect, Effect::DeleteSegment { .. });
    assert!(
        !world.pending.iter().any(is_delete),
        "the ledger comes first"
    );
    world.complete_all();
    for _ in 0..3 {
        world.wait_seconds(2);
        world.complete_all();
    }
    let description = world.shard.describe(log).unwrap();
    assert_eq!(
        description.log_start_offset,
        Offset(50),
        "the active segment was rolled and went too"
    );
    assert_eq!(world.folders[&partition(0)].len(), 1);
    let gone = world.fetch(log, 3, 1000, 0);
    assert_eq!(world.fetched[&gone][0].0.error, ErrorCode::OffsetOutOfRange);

    world.crash();
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert_eq!(
        (recovered.log_start_offset, recovered.log_end_offset),
        (Offset(50), Offset(50))
    );
}

#[test]
fn old_segments_go_by_size() {
    let config = LogConfig {
        retention_bytes: Some(100_000),
        ..small_segments()
    };
    let (mut world, log) = settled(&config, 100);
    world.wait_seconds(2);
    world.complete_all();
    let description = world.shard.describe(log).unwrap();
    assert!(description.size_bytes < 100_000 + (64 << 10));
    assert!(description.size_bytes >= 100_000);
    let start = description.log_start_offset.0;
    assert_eq!(
        offsets(&world.read_all(log, start)),
        (start..100).collect::<Vec<_>>()
    );
}

#[test]
fn a_failed_write_fences_and_three_stop_the_process() {
    let mut world = World::new(ShardConfig::default(), 4);
    for index in 0..3 {
        let log = world.open(partition(index), LogConfig::default(), RestartClass::Clean);
        world.complete_all();
        let ticket = world.append(log, batch(&[b"a"], None, 0));
        world.step(Input::TurnEnd);
        world.complete(0, Err(StorageFault::Io { os_error: 5 }));
        assert_eq!(
            world.produced[&ticket].unwrap_err().code,
            ErrorCode::KafkaStorageError
        );
        assert_eq!(world.fenced.last(), Some(&log));
        if index < 2 {
            let refused = world.append(log, batch(&[b"a"], None, 0));
            assert_eq!(
                world.produced[&refused].unwrap_err().code,
                ErrorCode::KafkaStorageError
            );
            assert_eq!(world.shard.describe(log).unwrap().high_watermark, Offset(0));
        }
        if index == 2 {
            assert!(world.aborted.is_some());
        } else {
            world.complete_all();
        }
    }
}

#[test]
fn a_stuck_write_is_a_failed_one() {
    let mut world = World::new(ShardConfig::default(), 6);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    world.complete_all();
    world.append(log, batch(&[b"a"], None, 0));
    world.step(Input::TurnEnd);
    world.wait_seconds(29);
    assert!(world.fenced.is_empty());
    world.wait_seconds(2);
    assert_eq!(world.fenced, [log]);
    world.complete_all();
    assert_eq!(world.shard.describe(log).unwrap().high_watermark, Offset(0));
}

#[test]
fn a_stuck_creation_or_seal_is_a_failed_one() {
    for stuck in ["CreateSegment", "SealSegment"] {
        let mut world = World::new(ShardConfig::default(), 6);
        let log = world.open(partition(0), small_segments(), RestartClass::Clean);
        world.complete_all();
        for _ in 0..40 {
            world.append(log, batch(&[&[1; 3000]], None, 0));
        }
        world.step(Input::TurnEnd);
        let hangs = |effect: &Effect| format!("{effect:?}").starts_with(stuck);
        while let Some(index) = world.pending.iter().position(|effect| !hangs(effect)) {
            world.complete(index, Ok(()));
        }
        assert!(!world.pending.is_empty(), "{stuck}");
        world.wait_seconds(29);
        assert!(world.fenced.is_empty(), "{stuck}");
        world.wait_seconds(2);
        assert_eq!(world.fenced, [log], "{stuck}");
        assert_eq!(world.aborted, None, "{stuck}");
    }
}

#[test]
fn a_stuck_ledger_stops_the_process() {
    let mut world = World::new(ShardConfig::default(), 6);
    let log = world.open(partition(0), LogConfig::default(), RestartClass::Clean);
    world.complete_all();
    world.append(log, batch(&[b"a"], None, 0));
    world.step(Input::TurnEnd);
    let hangs = |effect: &Effect| matches!(effect, Effect::WriteLedger { .. });
    while let Some(index) = world.pending.iter().position(|effect| !hangs(effect)) {
        world.complete(index, Ok(()));
    }
    world.advance(200_000);
    assert!(world.pending.iter().any(hangs));
    world.wait_seconds(29);
    assert_eq!(world.aborted, None);
    world.wait_seconds(2);
    assert!(world.aborted.is_some());
}

#[test]
fn many_dirty_logs_share_syncs() {
    let mut world = World::new(ShardConfig::default(), 7);
    let logs: Vec<LogId> = (0..40)
        .map(|index| world.open(partition(index), LogConfig::default(), RestartClass::Clean))
        .collect();
    world.complete_all();
    let mut tickets = Vec::new();
    for _ in 0..20 {
        for log in &logs {
            tickets.push(world.append(*log, batch(&[&[3; 500]], None, 0)));
        }
        world.step(Input::TurnEnd);
        for _ in 0..30 {
            world.complete_one();
        }
    }
    world.complete_all();
    assert!(tickets.iter().all(|ticket| world.produced[ticket].is_ok()));
    let stats = world.shard.stats();
    assert!(stats.syncs > 0 && stats.synced_writes < stats.writes);
}

#[test]
fn weaker_durabilities_survive_a_process_crash() {
    for durability in [Durability::Written, Durability::Interval] {
        let config = LogConfig {
            durability,
            ..small_segments()
        };
        let (mut world, _) = settled(&config, 40);
        world.restart();
        let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
        assert_eq!(recovered.log_end_offset, Offset(40));
        assert!(recovered.damaged.is_empty());
    }
}

#[test]
fn a_truncation_that_the_ledger_recorded_is_finished() {
    let config = small_segments();
    let (mut world, log) = settled(&config, 60);
    let bases: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    assert!(bases.len() > 2);
    // In the middle of the second segment.
    let cut = bases[1] + 5;
    let batch_bytes = world.read_all(log, 0).len() as u64 / 60;
    let truncate = ProvenEnd {
        offset: Offset(cut),
        segment: SegmentBase(Offset(bases[1])),
        file_at: 5 * batch_bytes,
        last_append: TimestampMs(1),
    };
    let ledger = LedgerLog {
        durable: Some(truncate),
        truncate: Some(truncate),
        ..LedgerLog::default()
    };
    let recovered = world.recover_with(
        partition(0),
        &config,
        RestartClass::ProcessCrash,
        Some(&ledger),
    );
    assert_eq!(recovered.log_end_offset, Offset(cut));
    assert!(recovered.damaged.is_empty());
    let left: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    assert_eq!(left, bases[..2]);
    assert_eq!(
        world.folders[&partition(0)][&bases[1]].log.seen.len() as u64,
        5 * batch_bytes
    );
    // Producers are as of the cut.
    world.restart();
    let log = world.open_recovered(partition(0), config, recovered);
    let next = world.append(log, batch(&[b"x"], Some((5, 0, cut as i32)), 1));
    world.step(Input::TurnEnd);
    world.complete_all();
    assert_eq!(world.produced[&next].unwrap().base_offset, Offset(cut));
    assert_eq!(
        offsets(&world.read_all(log, 0)),
        (0..=cut).collect::<Vec<_>>()
    );
}

#[test]
fn an_old_segment_that_comes_back_is_not_taken_for_the_logs() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 60);
    let bases: Vec<i64> = world.folders[&partition(0)].keys().copied().collect();
    let mut stale = world.folders[&partition(0)][&bases[2]].clone();
    (stale.index, stale.producers) = (None, None);
    // The log was cut at the second segment in an earlier life, and written anew under a later epoch up to where the
    // third began.
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    folder.retain(|base, _| *base < bases[1]);
    world.ledger = Default::default();
    world.restart();
    let log = world.open(partition(0), config.clone(), RestartClass::DirReplaced);
    for index in bases[1]..bases[2] {
        world.append(log, batch(&[&[7; 100]], Some((5, 0, index as i32)), 1));
    }
    world.step(Input::TurnEnd);
    world.complete_all();
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    folder.insert(bases[2], stale);
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
    assert_eq!(recovered.log_end_offset, Offset(bases[2]));
}

#[test]
fn the_search_behind_damage_goes_over_several_reads() {
    let config = LogConfig::default();
    let mut world = World::new(ShardConfig::default(), 12);
    let log = world.open(partition(0), config.clone(), RestartClass::Clean);
    for index in 0..4 {
        world.append(log, batch(&[&vec![index; 1_000_000]], None, 1));
    }
    world.step(Input::TurnEnd);
    world.complete_all();
    world.advance(200_000);
    world.complete_all();
    let file = &mut world
        .folders
        .get_mut(&partition(0))
        .unwrap()
        .get_mut(&0)
        .unwrap()
        .log;
    // The header and the magic of the second batch.
    file.seen[1_000_080..1_000_200].fill(0xff);
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::ProcessCrash);
    assert_eq!(
        recovered.damaged,
        [DamagedRange {
            from: Offset(1),
            to: Offset(2)
        }]
    );
    assert_eq!(recovered.log_end_offset, Offset(4));
    let log = world.open_recovered(partition(0), config, recovered);
    assert_eq!(offsets(&world.read_all(log, 2)), [2, 3]);
}

#[test]
fn a_rotten_index_costs_a_scan_and_nothing_else() {
    let config = small_segments();
    let (mut world, _) = settled(&config, 50);
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    for files in folder.values_mut() {
        if let Some(index) = &mut files.index {
            index[60] ^= 1;
        }
    }
    world.restart();
    let recovered = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert_eq!(recovered.log_end_offset, Offset(50));
    assert!(recovered.damaged.is_empty() && recovered.scanned_bytes > 140_000);
    // The segments are sealed anew.
    let log = world.open_recovered(partition(0), config.clone(), recovered);
    world.complete_all();
    assert_eq!(
        offsets(&world.read_all(log, 0)),
        (0..50).collect::<Vec<_>>()
    );
    world.restart();
    let again = world.recover(partition(0), &config, RestartClass::HostCrash);
    assert!(again.scanned_bytes < 70_000);
}

#[test]
fn a_file_that_cannot_be_read_keeps_the_log_closed() {
    let config = small_segments();
    let file = SegmentFile {
        base: SegmentBase(Offset(0)),
        size: 8192,
        has_index: false,
        has_producers: false,
        has_checkpoint: false,
    };
    let restart = RestartClass::ProcessCrash;
    let mut recovery = Recovery::new(partition(0), restart, None, vec![file], &config);
    let fault = StorageFault::Io { os_error: 5 };
    for _ in 0..2 {
        assert!(matches!(recovery.next(), RecoveryStep::Read { .. }));
        recovery.provide(Err(fault));
    }
    assert!(matches!(recovery.next(), RecoveryStep::Failed(why) if why == fault));
}
