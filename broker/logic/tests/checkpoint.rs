//! What a start after a crash reads of an active segment that has a checkpoint, and what it makes of one that lies.

mod support;

use support::{World, batch, partition};
use tackboard_logic::ledger::{LedgerLog, ProvenEnd};
use tackboard_logic::log::index::SparseIndex;
use tackboard_logic::log::recovery::{RecoveredLog, RestartClass};
use tackboard_logic::shard::interface::*;
use tackboard_schema::storage::checkpoint;
use tackboard_schema::storage::index::{IndexEntry, SegmentSummary};
use tackboard_schema::{LeaderEpoch, Offset, TimestampMs};

const INTERVAL: u32 = 4096;
const SHARE: u64 = 32 << 10;

fn shard_config() -> ShardConfig {
    ShardConfig {
        recovery_bytes: 0,
        checkpoint_bytes_min: SHARE,
        ..ShardConfig::default()
    }
}

fn log_config() -> LogConfig {
    LogConfig {
        segment_bytes: 1 << 20,
        index_interval_bytes: INTERVAL,
        ..LogConfig::default()
    }
}

fn append(world: &mut World, log: LogId, offsets: std::ops::Range<i64>) {
    for offset in offsets {
        let value = [offset as u8; 3000];
        let producer = Some((5 + offset % 3, 0, (offset / 3) as i32));
        world.append(log, batch(&[&value], producer, offset * 7 % 50));
        world.step(Input::TurnEnd);
        world.complete_all();
        // The next checkpoint may begin.
        world.advance(30_000);
        world.complete_all();
    }
}

/// An active segment of 100 batches, a bit more than 300 KB, with a checkpoint not far from its end.
fn half_full() -> World {
    let mut world = World::new(shard_config(), 3);
    let log = world.open(partition(0), log_config(), RestartClass::Clean);
    world.complete_all();
    append(&mut world, log, 0..100);
    // The ledger follows.
    world.advance(200_000);
    world.complete_all();
    world.restart();
    world
}

fn checkpoint_file(world: &mut World) -> &mut Option<Vec<u8>> {
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    &mut folder.get_mut(&0).unwrap().checkpoint
}

fn recover(world: &mut World) -> RecoveredLog {
    world.recover(partition(0), &log_config(), RestartClass::ProcessCrash)
}

/// All that a log is opened with, but for the time of the first append, which the checkpoint alone may know. What is long
/// is compared, not shown.
#[derive(PartialEq)]
struct Found {
    shown: String,
    indexes: Vec<SparseIndex>,
    tail: Box<[u8]>,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries = self.indexes.iter().map(|index| index.memory_bytes());
        let entries: Vec<_> = entries.collect();
        write!(f, "{} {entries:?} {}", self.shown, self.tail.len())
    }
}

fn found(recovered: &RecoveredLog) -> Found {
    let segments: Vec<_> = (recovered.segments.iter())
        .map(|it| {
            (
                (it.base, it.next_offset, it.size_bytes, it.file_bytes),
                (it.max_timestamp, it.last_append),
            )
        })
        .collect();
    let windows: Vec<_> = (recovered.producers.entries().iter())
        .map(|it| (it.producer_id, it.producer_epoch, it.batches().to_vec()))
        .collect();
    let shown = format!(
        "{:?} {:?} {:?} {:?} {segments:?} {windows:?}",
        (recovered.log_start_offset, recovered.log_end_offset),
        recovered.epochs,
        recovered.damaged,
        recovered.torn_tail_at,
    );
    Found {
        shown,
        indexes: (recovered.segments.iter().map(|it| it.index.clone())).collect(),
        tail: recovered.tail.clone(),
    }
}

/// What recovery finds without the checkpoint.
fn found_by_scan(world: &World) -> RecoveredLog {
    let mut without = World::new(shard_config(), 3);
    without.folders.clone_from(&world.folders);
    without.ledger.clone_from(&world.ledger);
    *checkpoint_file(&mut without) = None;
    recover(&mut without)
}

#[test]
fn what_lies_before_the_checkpoint_is_not_read() {
    let mut world = half_full();
    let scanned = found_by_scan(&world);
    assert!(scanned.scanned_bytes > 300_000, "{scanned:?}");
    let recovered = recover(&mut world);
    // One share, what was appended until the checkpoint could begin, and the batches behind the index's last entry.
    let bound = SHARE + 2 * 3100 + u64::from(INTERVAL);
    assert!(recovered.scanned_bytes < bound, "{recovered:?}");
    assert_eq!(found(&recovered), found(&scanned));
    let first_append = recovered.segments[0].first_append;
    assert_eq!(first_append, Some(TimestampMs(1_000_000_000_000)));
    assert!(checkpoint_file(&mut world).is_some());
}

#[test]
fn retries_are_known_on_both_sides_of_the_checkpoint() {
    let mut world = half_full();
    let recovered = recover(&mut world);
    let log = world.open_recovered(partition(0), log_config(), recovered);
    world.complete_all();
    for offset in 85..100 {
        let producer = Some((5 + offset % 3, 0, (offset / 3) as i32));
        let retry = world.append(log, batch(&[&[offset as u8; 3000]], producer, 1));
        world.step(Input::TurnEnd);
        world.complete_all();
        let produced = world.produced[&retry].unwrap();
        assert_eq!((produced.base_offset.0, produced.duplicate), (offset, true));
    }
}

#[test]
fn a_second_start_goes_on_from_the_same_checkpoint_or_a_later_one() {
    let mut world = half_full();
    for end in [110, 120] {
        let recovered = recover(&mut world);
        assert!(recovered.scanned_bytes < 3 * SHARE, "{recovered:?}");
        let log = world.open_recovered(partition(0), log_config(), recovered);
        world.complete_all();
        append(&mut world, log, end - 10..end);
        world.crash();
        assert_eq!(found(&recover(&mut world)), found(&found_by_scan(&world)));
    }
}

#[test]
fn a_checkpoint_that_does_not_parse_is_removed_and_the_segment_read_from_its_beginning() {
    let world = half_full();
    let whole = found(&found_by_scan(&world));
    let mut good = half_full();
    let bytes = checkpoint_file(&mut good).take().unwrap();
    let mut bad = vec![Vec::new(), vec![0; bytes.len()], vec![0xA5; 5000]];
    bad.extend(
        (1..bytes.len())
            .step_by(37)
            .map(|length| bytes[..length].to_vec()),
    );
    bad.extend((0..bytes.len()).step_by(37).map(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        bytes
    }));
    for bytes in bad {
        *checkpoint_file(&mut good) = Some(bytes);
        let recovered = recover(&mut good);
        assert!(recovered.scanned_bytes > 300_000);
        assert_eq!(found(&recovered), whole);
        assert_eq!(*checkpoint_file(&mut good), None);
    }
}

#[test]
fn a_checkpoint_that_lies_is_removed_and_the_segment_read_from_its_beginning() {
    let mut world = half_full();
    let whole = found(&found_by_scan(&world));
    let bytes = checkpoint_file(&mut world).take().unwrap();
    let true_one = checkpoint::decode(&bytes).unwrap();
    let (summary, entries) = (
        true_one.summary,
        true_one.entries.iter().collect::<Vec<_>>(),
    );
    let batch_bytes = (summary.size_bytes / summary.next_offset.0 as u64) as i64;
    type Lie = fn(&mut SegmentSummary, &mut Vec<IndexEntry>, i64);
    let lies: [Lie; 9] = [
        |summary, _, _| summary.partition = partition(1),
        |summary, _, _| summary.base_offset = Offset(-1),
        |summary, _, _| summary.next_offset = summary.next_offset.plus(1),
        |summary, _, _| summary.size_bytes += 1,
        |summary, _, _| summary.size_bytes = 1 << 30,
        |summary, _, batch_bytes| {
            // A batch too far, by offset and place.
            summary.next_offset = summary.next_offset.plus(40);
            summary.size_bytes += 40 * batch_bytes as u64;
        },
        |summary, _, _| summary.max_timestamp = TimestampMs(1 << 40),
        |_, entries, _| entries.last_mut().unwrap().position += 1,
        |_, entries, _| {
            let last = entries.last_mut().unwrap();
            last.offset = last.offset.plus(1);
        },
    ];
    for (index, lie) in lies.iter().enumerate() {
        let (mut summary, mut entries) = (summary, entries.clone());
        lie(&mut summary, &mut entries, batch_bytes);
        let mut producers = true_one.producers.clone();
        producers.next_offset = summary.next_offset;
        producers.partition = summary.partition;
        let lying = checkpoint::encode(&summary, &entries, &producers.encode());
        *checkpoint_file(&mut world) = Some(lying.unwrap_or_default());
        let recovered = recover(&mut world);
        assert!(recovered.scanned_bytes > 300_000, "lie {index}");
        assert_eq!(found(&recovered), whole, "lie {index}");
        assert_eq!(*checkpoint_file(&mut world), None, "lie {index}");
    }
}

#[test]
fn rot_right_before_the_checkpoint_is_found_and_kept_out_of_reach() {
    let mut world = half_full();
    let bytes = checkpoint_file(&mut world).clone().unwrap();
    let end = checkpoint::decode(&bytes).unwrap().summary.size_bytes;
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    folder.get_mut(&0).unwrap().log.seen[end as usize - 500] ^= 1;
    let scanned = found_by_scan(&world);
    assert_eq!(scanned.damaged.len(), 1);
    assert_eq!(found(&recover(&mut world)), found(&scanned));
}

#[test]
fn a_segment_with_damage_takes_no_checkpoint() {
    let mut world = half_full();
    *checkpoint_file(&mut world) = None;
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    folder.get_mut(&0).unwrap().log.seen[5000] ^= 1;
    let recovered = recover(&mut world);
    assert_eq!(recovered.damaged.len(), 1);
    let log = world.open_recovered(partition(0), log_config(), recovered);
    world.complete_all();
    append(&mut world, log, 100..120);
    assert_eq!(*checkpoint_file(&mut world), None);
    world.restart();
    assert_eq!(recover(&mut world).damaged.len(), 1);
}

#[test]
fn a_tail_that_tore_behind_the_checkpoint_is_cut() {
    let mut world = half_full();
    let recovered = recover(&mut world);
    let log = world.open_recovered(partition(0), log_config(), recovered);
    world.complete_all();
    world.append(log, batch(&[&[9; 3000]], None, 0));
    world.step(Input::TurnEnd);
    // Written, but the ledger does not say so.
    let is_write = |effect: &Effect| matches!(effect, Effect::Write { .. });
    while let Some(index) = world.pending.iter().position(is_write) {
        world.complete(index, Ok(()));
    }
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    let seen = &mut folder.get_mut(&0).unwrap().log.seen;
    let end = seen.iter().rposition(|byte| *byte != 0).unwrap();
    seen[end - 100..=end].fill(0);
    world.restart();
    let scanned = found_by_scan(&world);
    assert_eq!(scanned.torn_tail_at, Some(Offset(100)), "{scanned:?}");
    let recovered = recover(&mut world);
    assert!(recovered.scanned_bytes < 3 * SHARE);
    assert_eq!(found(&recovered), found(&scanned));
}

#[test]
fn what_is_cut_below_a_checkpoint_takes_it_along() {
    let mut world = half_full();
    let recovered = recover(&mut world);
    let log = world.open_recovered(partition(0), log_config(), recovered);
    world.complete_all();
    world.epoch += 1;
    world.step(Input::Truncate(Truncate {
        log,
        ticket: Ticket(999),
        offset: Offset(50),
        leader_epoch: LeaderEpoch(world.epoch),
        below_high_watermark: true,
    }));
    world.complete_all();
    assert_eq!(world.truncated[&999].unwrap().log_end_offset, Offset(50));
    let bytes = checkpoint_file(&mut world).clone().unwrap();
    let anew = checkpoint::decode(&bytes).unwrap().summary;
    assert_eq!(anew.next_offset, Offset(50));
    // Others in their place, of the same length.
    for offset in 50..54 {
        world.append(log, batch(&[&[0xEE; 3000]], None, offset));
        world.step(Input::TurnEnd);
        world.complete_all();
    }
    world.crash();
    assert_eq!(found(&recover(&mut world)), found(&found_by_scan(&world)));
}

#[test]
fn the_next_start_after_a_cut_that_a_crash_cut_short_removes_the_checkpoint() {
    let mut world = half_full();
    let scanned = found_by_scan(&world);
    let batch_bytes = scanned.segments[0].size_bytes / 100;
    let cut = ProvenEnd {
        offset: Offset(50),
        segment: SegmentBase(Offset(0)),
        file_at: 50 * batch_bytes,
        last_append: TimestampMs(7),
    };
    let ledger = LedgerLog {
        durable: Some(cut),
        truncate: Some(cut),
        ..LedgerLog::default()
    };
    let restart = RestartClass::ProcessCrash;
    let recovered = world.recover_with(partition(0), &log_config(), restart, Some(&ledger));
    assert_eq!(recovered.log_end_offset, Offset(50));
    assert_eq!(*checkpoint_file(&mut world), None);
}

#[test]
fn a_segment_that_is_closed_has_no_checkpoint() {
    let mut world = half_full();
    let recovered = recover(&mut world);
    let log = world.open_recovered(partition(0), log_config(), recovered);
    world.complete_all();
    append(&mut world, log, 100..400);
    let folder = &world.folders[&partition(0)];
    assert_eq!(folder.len(), 2);
    assert!(folder[&0].index.is_some() && folder[&0].checkpoint.is_none());
}

#[test]
fn a_roll_whose_seal_a_crash_cut_short_reads_on_from_the_checkpoint() {
    let mut world = half_full();
    let recovered = recover(&mut world);
    let log = world.open_recovered(partition(0), log_config(), recovered);
    world.complete_all();
    let mut end = 100;
    let mut before_seal = None;
    while world.folders[&partition(0)].len() == 1 {
        before_seal.clone_from(checkpoint_file(&mut world));
        append(&mut world, log, end..end + 1);
        end += 1;
    }
    world.restart();
    let folder = world.folders.get_mut(&partition(0)).unwrap();
    let files = folder.get_mut(&0).unwrap();
    assert!(files.index.take().is_some());
    files.producers = None;
    files.checkpoint = before_seal;
    let recovered = recover(&mut world);
    assert!(recovered.scanned_bytes < 3 * SHARE, "{recovered:?}");
    assert_eq!(found(&recovered), found(&found_by_scan(&world)));
}
