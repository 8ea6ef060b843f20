//! Plants every kind of fault and expects each to be found and named.

use std::sync::Arc;

use super::acked::AckedLog;
use super::checker::{Content, Expected, PartitionChecker, Seen};
use super::faults::Fault;
use super::judge::Verdict;
use crate::workload::event::{Corruption, STAMP_BYTES, Stamp};
use crate::workload::input::Input;
use crate::workload::keys::key_bytes;

const RUN: u32 = 99;
const PARTITION: i32 = 4;
const EVENT_BYTES: u32 = 100;
const KEYS: u32 = 1000;

/// Puts every key into partition 4, except those that end in `f`.
fn home(key: &[u8], _partitions: i32) -> i32 {
    if key.last() == Some(&b'f') {
        5
    } else {
        PARTITION
    }
}

/// A record of the pretended partition.
#[derive(Clone)]
struct Stored {
    key: Option<Vec<u8>>,
    value: Vec<u8>,
}

fn event(producer: u16, sequence: u64) -> Stored {
    keyed_event(producer, sequence, None)
}

fn keyed_event(producer: u16, sequence: u64, key: Option<u32>) -> Stored {
    let stamp = Stamp {
        run: RUN,
        length: EVENT_BYTES,
        producer,
        sequence,
        due_ns: 5,
        subject: key.map_or(0, |key| key + 1),
    };
    let mut value = vec![0; EVENT_BYTES as usize];
    stamp.write_event(&mut value);
    Stored {
        key: key.map(|key| key_bytes(key).to_vec()),
        value,
    }
}

fn checker(others_allowed: bool) -> PartitionChecker {
    let content = Content::Synthetic { keys: KEYS };
    PartitionChecker::new(
        PARTITION,
        Expected {
            run: RUN,
            producers: 2,
            others_allowed,
            content,
            partitions: 6,
        },
        home,
    )
}

/// Reads the stored events at offsets from 0 and judges them against `acked` events of producer 0 at the same offsets.
fn verdict(stored: &[Stored], acked: u64) -> Verdict {
    let mut checker = checker(false);
    for (offset, stored) in stored.iter().enumerate() {
        checker.check(Seen {
            offset: offset as i64,
            key: stored.key.as_deref(),
            value: Some(&stored.value),
            stamp_header: None,
        });
    }
    let mut log = AckedLog::new();
    log.acknowledge(0..acked, Some(0));
    log.sent = acked;
    let mut verdict = Verdict {
        faults: checker.faults().clone(),
        ..Verdict::default()
    };
    verdict.add(PARTITION, 0, &log, &checker.logs()[0]);
    verdict
}

fn events(count: u64) -> Vec<Stored> {
    (0..count).map(|sequence| event(0, sequence)).collect()
}

#[test]
fn a_clean_run_holds() {
    let verdict = verdict(&events(1000), 1000);
    assert!(verdict.holds());
    assert_eq!(
        verdict.to_string(),
        "verified: 1,000 acknowledged, 1,000 read back, 0 lost, 0 duplicated, 0 out of order"
    );
}

#[test]
fn losses_are_named_by_partition_and_offset() {
    let mut stored = events(20);
    stored.drain(7..10);
    stored.truncate(15);
    let verdict = verdict(&stored, 20);
    assert!(!verdict.holds());
    assert_eq!(
        (verdict.acknowledged, verdict.read_back, verdict.faults.lost),
        (20, 15, 5)
    );
    let named = verdict
        .faults
        .named
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    assert_eq!(
        named,
        [
            "partition 4 offset 7  lost: event 7 of producer 0 and 2 after it were acknowledged and did not come back",
            "partition 4 offset 18  lost: event 18 of producer 0 and 1 after it were acknowledged and did not come back",
        ]
    );
}

#[test]
fn a_partition_that_gives_nothing_back_lost_everything() {
    let verdict = verdict(&[], 10);
    assert_eq!((verdict.read_back, verdict.faults.lost), (0, 10));
}

#[test]
fn duplicates_are_named() {
    let mut stored = events(10);
    stored.insert(6, event(0, 3));
    let verdict = verdict(&stored, 10);
    assert_eq!(
        (
            verdict.read_back,
            verdict.faults.duplicated,
            verdict.faults.lost
        ),
        (10, 1, 0)
    );
    assert_eq!(
        verdict.faults.named[0].to_string(),
        "partition 4 offset 6  duplicated: event 3 of producer 0 came once more"
    );
    assert!(!verdict.holds());
}

#[test]
fn swaps_are_named_and_are_no_loss() {
    let mut stored = events(10);
    stored.swap(4, 5);
    let verdict = verdict(&stored, 10);
    assert_eq!(
        (
            verdict.faults.out_of_order,
            verdict.faults.lost,
            verdict.read_back
        ),
        (1, 0, 10)
    );
    assert_eq!(
        verdict.faults.named[0].to_string(),
        "partition 4 offset 5  out of order: event 4 of producer 0 came after event 5"
    );
}

#[test]
fn every_corrupted_byte_counts_and_the_event_is_also_missing() {
    for at in [0, 9, STAMP_BYTES, EVENT_BYTES as usize - 1] {
        let mut stored = events(10);
        stored[5].value[at] ^= 1;
        let verdict = verdict(&stored, 10);
        assert_eq!(
            (verdict.faults.corrupted, verdict.faults.lost),
            (1, 1),
            "byte {at}"
        );
        let named = &verdict.faults.named[0];
        assert_eq!((named.partition, named.offset), (PARTITION, Some(5)));
    }
}

#[test]
fn keys_are_compared_and_must_be_at_home() {
    let stored = vec![keyed_event(0, 0, Some(7))];
    assert!(verdict(&stored, 1).holds());

    let mut other_key = stored.clone();
    other_key[0].key = Some(key_bytes(8).to_vec());
    assert_eq!(
        verdict(&other_key, 1).faults.named[0].fault,
        Fault::Corrupted(Corruption::Key)
    );

    let mut no_key = stored.clone();
    no_key[0].key = None;
    assert_eq!(
        verdict(&no_key, 1).faults.named[0].fault,
        Fault::Corrupted(Corruption::Key)
    );

    let strayed = vec![keyed_event(0, 0, Some(15))];
    assert_eq!(
        verdict(&strayed, 1).faults.named[0].fault,
        Fault::Corrupted(Corruption::Partition)
    );

    let unknown = vec![keyed_event(0, 0, Some(KEYS))];
    assert_eq!(
        verdict(&unknown, 1).faults.named[0].fault,
        Fault::Corrupted(Corruption::Subject)
    );
}

#[test]
fn strangers_are_faults_in_a_topic_of_our_own_and_passed_over_elsewhere() {
    let mut stranger = event(0, 0);
    let stamp = Stamp {
        run: RUN + 1,
        ..Stamp::decode(&stranger.value).unwrap()
    };
    stamp.write_event(&mut stranger.value);
    assert_eq!(verdict(&[stranger.clone()], 0).faults.foreign, 1);

    let mut tolerant = checker(true);
    for (offset, value) in [
        (0, &stranger.value[..]),
        (1, b"not ours at all"),
        (2, &event(0, 0).value),
    ] {
        tolerant.check(Seen {
            offset,
            key: None,
            value: Some(value),
            stamp_header: None,
        });
    }
    assert_eq!(
        (tolerant.faults().count(), tolerant.logs()[0].count()),
        (0, 1)
    );
}

#[test]
fn events_of_unknown_producers_or_never_sent_are_found() {
    let stored = vec![event(2, 0)];
    assert_eq!(
        verdict(&stored, 0).faults.named[0].fault,
        Fault::Corrupted(Corruption::Subject)
    );
    let stored = events(3);
    let verdict = verdict(&stored, 2);
    assert_eq!(verdict.faults.foreign, 1);
    assert!(!verdict.holds());
}

#[test]
fn unacknowledged_events_may_come_back_or_not() {
    let mut log = AckedLog::new();
    log.acknowledge(0..5, Some(0));
    log.sent = 10;
    let mut checker = checker(false);
    for (offset, stored) in events(7).iter().enumerate() {
        let value = Some(&stored.value[..]);
        checker.check(Seen {
            offset: offset as i64,
            key: None,
            value,
            stamp_header: None,
        });
    }
    let mut verdict = Verdict::default();
    verdict.add(PARTITION, 0, &log, &checker.logs()[0]);
    assert!(verdict.holds());
    assert_eq!((verdict.acknowledged, verdict.read_back), (5, 5));
    assert_eq!(
        (verdict.unacknowledged, verdict.unacknowledged_read),
        (5, 2)
    );
}

#[test]
fn a_jump_in_offsets_is_found() {
    let mut checker = checker(false);
    for (offset, sequence) in [(0, 0), (1, 1), (5, 2)] {
        let stored = event(0, sequence);
        checker.check(Seen {
            offset,
            key: None,
            value: Some(&stored.value),
            stamp_header: None,
        });
    }
    assert_eq!(
        checker.faults().named[0].fault,
        Fault::OffsetGap { expected: 2 }
    );
}

#[test]
fn an_acknowledged_offset_that_is_not_the_real_one_is_found() {
    let mut log = AckedLog::new();
    log.acknowledge(0..5, Some(1));
    log.sent = 5;
    let mut checker = checker(false);
    for (offset, stored) in events(5).iter().enumerate() {
        let value = Some(&stored.value[..]);
        checker.check(Seen {
            offset: offset as i64,
            key: None,
            value,
            stamp_header: None,
        });
    }
    let mut verdict = Verdict::default();
    verdict.add(PARTITION, 0, &log, &checker.logs()[0]);
    assert_eq!(verdict.faults.misplaced, 1);
}

#[test]
fn what_was_read_once_must_still_be_there() {
    let read = |sequences: &[u64]| {
        let mut log = super::read::ReadLog::default();
        for (offset, &sequence) in sequences.iter().enumerate() {
            log.arrive(sequence, offset as i64);
        }
        log
    };
    let mut verdict = Verdict::default();
    // The first reading missed 3; the second one lacks 3 as well, and 5 and 6, which the first had.
    verdict.add_vanished(0, 0, &read(&[0, 1, 2, 4, 5, 6]), &read(&[0, 1, 2, 4]));
    assert_eq!(verdict.faults.vanished, 2);
    let mut verdict = Verdict::default();
    verdict.add_vanished(0, 0, &read(&[0, 1, 2]), &read(&[0, 1, 2, 3, 4]));
    assert_eq!(verdict.faults.count(), 0);
}

#[test]
fn replayed_lines_are_compared_with_the_input() {
    let input = Arc::new(Input::sample().unwrap());
    let expected = |content| Expected {
        run: RUN,
        producers: 1,
        others_allowed: false,
        content,
        partitions: 1,
    };
    let check = |lines: &[u32], damage: Option<usize>| {
        let mut checker =
            PartitionChecker::new(0, expected(Content::Replay(input.clone())), |_, _| 0);
        for (at, &line) in lines.iter().enumerate() {
            let mut value = input.value(line).unwrap().to_vec();
            if damage == Some(at) {
                value[3] ^= 1;
            }
            let length = value.len() as u32;
            let stamp = Stamp {
                run: RUN,
                length,
                producer: 0,
                sequence: at as u64,
                due_ns: 0,
                subject: line,
            };
            checker.check(Seen {
                offset: at as i64,
                key: input.key(line),
                value: Some(&value),
                stamp_header: Some(&stamp.encode()),
            });
        }
        checker
            .faults()
            .named
            .first()
            .map(|named| named.fault.clone())
    };
    assert_eq!(check(&[0, 1, 2, 19_999], None), None);
    assert_eq!(
        check(&[0, 1, 2], Some(1)),
        Some(Fault::Corrupted(Corruption::Value(3)))
    );

    let key = input.key(0).unwrap();
    let again = (1..input.count())
        .find(|&line| input.key(line) == Some(key))
        .unwrap();
    assert_eq!(
        check(&[again, 0], None),
        Some(Fault::KeyOutOfOrder {
            line: 0,
            after: again
        })
    );
}
