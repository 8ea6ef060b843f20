//! A thousand faults of every kind, planted by a seed: all of them are found and named by partition and offset, and
//! nothing else is.
//!
//! `PLANTED_SEEDS` says how many seeds are tried.

use std::collections::BTreeSet;

use super::acked::AckedLog;
use super::checker::{Content, Expected, PartitionChecker, Seen};
use super::faults::{Fault, NamedFault};
use super::judge::Verdict;
use crate::workload::event::Stamp;
use crate::workload::rng::Rng;

const RUN: u32 = 7;
const PARTITIONS: i32 = 4;
const PRODUCERS: u16 = 3;
const EVENT_BYTES: u32 = 64;

/// Planted in each partition.
const PLANTED: usize = 250;

/// Most events of a batch; a fault lies in the middle of one that has so many.
const BATCH_MAX: u64 = 12;

/// How the names of faults are compared: what it is, partition, offset, and the event where it is known.
type Name = (&'static str, i32, i64, Option<(u16, u64)>);

/// An event as it lies in the partition.
#[derive(Clone)]
struct Stored {
    producer: u16,
    sequence: u64,
    value: Vec<u8>,
}

/// A partition as producers were told that it is, and as it is read.
struct Planted {
    acked: Vec<AckedLog>,
    stored: Vec<Stored>,
    expected: Vec<Name>,
}

fn event(producer: u16, sequence: u64) -> Stored {
    let stamp = Stamp {
        run: RUN,
        length: EVENT_BYTES,
        producer,
        sequence,
        due_ns: 5,
        subject: 0,
    };
    let mut value = vec![0; EVENT_BYTES as usize];
    stamp.write_event(&mut value);
    Stored {
        producer,
        sequence,
        value,
    }
}

/// Batches of three producers in turn, some of them whole, some with one fault in their middle.
fn plant(partition: i32, rng: &mut Rng) -> Planted {
    let mut planted = Planted {
        acked: vec![AckedLog::new(); PRODUCERS.into()],
        stored: Vec::new(),
        expected: Vec::new(),
    };
    let mut next = [0; PRODUCERS as usize];
    let mut acked_offset = 0;
    for fault in 0..PLANTED {
        for _ in 0..rng.below(4) {
            let count = 1 + rng.below(BATCH_MAX);
            planted.batch(rng, &mut next, &mut acked_offset, count);
        }
        let at = planted.batch(rng, &mut next, &mut acked_offset, BATCH_MAX);
        planted.damage(partition, fault % 4, at, rng);
    }
    // What follows the last fault, so that one at the end is not told by the end alone.
    planted.batch(rng, &mut next, &mut acked_offset, BATCH_MAX);
    planted
}

impl Planted {
    /// Appends a batch of somebody, and has it acknowledged. Returns where in the partition it begins, and the offset that
    /// its producer was told.
    fn batch(
        &mut self,
        rng: &mut Rng,
        next: &mut [u64; PRODUCERS as usize],
        acked_offset: &mut i64,
        count: u64,
    ) -> (usize, i64) {
        let producer = rng.below(PRODUCERS.into()) as u16;
        let first = next[usize::from(producer)];
        next[usize::from(producer)] += count;
        let acked = &mut self.acked[usize::from(producer)];
        acked.acknowledge(first..first + count, Some(*acked_offset));
        acked.sent = first + count;
        let at = (self.stored.len(), *acked_offset);
        *acked_offset += count as i64;
        let events = (first..first + count).map(|sequence| event(producer, sequence));
        self.stored.extend(events);
        at
    }

    /// Damages the batch that begins there, which is the last one, and notes what must be said of it.
    fn damage(
        &mut self,
        partition: i32,
        kind: usize,
        (start, offset): (usize, i64),
        rng: &mut Rng,
    ) {
        // One to spare at both ends: neighbouring losses would be one fault.
        let within = 1 + rng.below(BATCH_MAX - 4) as usize;
        let at = start + within;
        let (producer, sequence) = (self.stored[at].producer, self.stored[at].sequence);
        let this = Some((producer, sequence));
        let told = offset + within as i64;
        let mut expect = |fault, offset, event| {
            self.expected.push((fault, partition, offset, event));
        };
        match kind {
            0 => {
                self.stored.remove(at);
                expect("lost", told, this);
            }
            1 => {
                self.stored.swap(at, at + 1);
                expect("out of order", (at + 1) as i64, this);
            }
            2 => {
                let again = at + 1 + rng.below(3) as usize;
                self.stored.insert(again, self.stored[at].clone());
                expect("duplicated", again as i64, this);
            }
            _ => {
                let bit = rng.below(u64::from(EVENT_BYTES) * 8) as usize;
                self.stored[at].value[bit / 8] ^= 1 << (bit % 8);
                expect("corrupted", at as i64, None);
                // What is not what was sent did not come back either.
                expect("lost", told, this);
            }
        }
    }

    /// Reads it and judges.
    fn verdict(&self, partition: i32) -> Verdict {
        let expected = Expected {
            run: RUN,
            producers: PRODUCERS.into(),
            others_allowed: false,
            content: Content::Synthetic { keys: 0 },
            partitions: PARTITIONS,
        };
        let mut checker = PartitionChecker::new(partition, expected, |_, _| 0);
        for (offset, stored) in self.stored.iter().enumerate() {
            checker.check(Seen {
                offset: offset as i64,
                key: None,
                value: Some(&stored.value),
                stamp_header: None,
            });
        }
        let mut verdict = Verdict {
            faults: checker.faults().clone(),
            ..Verdict::default()
        };
        for (producer, acked) in self.acked.iter().enumerate() {
            verdict.add(partition, producer as u16, acked, &checker.logs()[producer]);
        }
        verdict
    }
}

fn name(named: &NamedFault) -> Name {
    assert!(
        !matches!(named.fault, Fault::Lost { count } if count != 1),
        "no two losses are neighbours: {named}"
    );
    let offset = named.offset.expect("every offset is known");
    (
        named.fault.name(),
        named.partition,
        offset,
        named.producer.zip(named.sequence),
    )
}

fn try_seed(seed: u64) {
    let mut rng = Rng::new(seed, 0x706c_616e_7465_6421);
    let (mut verdict, mut expected) = (Verdict::default(), Vec::new());
    for partition in 0..PARTITIONS {
        let planted = plant(partition, &mut rng);
        verdict.merge(planted.verdict(partition));
        expected.extend(planted.expected);
    }
    let found = verdict.faults.named.iter().map(name).collect::<Vec<_>>();
    let missed = expected.iter().filter(|name| !found.contains(name));
    let invented = found.iter().filter(|name| !expected.contains(name));
    assert_eq!(
        (missed.collect::<Vec<_>>(), invented.collect::<Vec<_>>()),
        (vec![], vec![]),
        "seed {seed}: missed, and invented"
    );
    assert_eq!(found.len(), expected.len(), "seed {seed}: each once");
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
    let planted = PLANTED as u64 * PARTITIONS as u64;
    // A quarter of each kind, as they are planted in turn.
    let faults = &verdict.faults;
    assert_eq!(
        faults.corrupted + faults.duplicated + faults.out_of_order + faults.lost,
        planted + faults.corrupted
    );
    assert!(!verdict.holds() && faults.misplaced == 0 && faults.foreign == 0);
}

#[test]
fn a_thousand_planted_faults_are_found_and_named_and_none_too_many() {
    let seeds = std::env::var("PLANTED_SEEDS").map_or(10, |text| text.parse().unwrap());
    (0..seeds).for_each(try_seed);
}

#[test]
fn without_a_planted_fault_none_is_found() {
    let mut rng = Rng::new(1, 2);
    let mut planted = Planted {
        acked: vec![AckedLog::new(); PRODUCERS.into()],
        stored: Vec::new(),
        expected: Vec::new(),
    };
    let (mut next, mut offset) = ([0; PRODUCERS as usize], 0);
    for _ in 0..1000 {
        planted.batch(&mut rng, &mut next, &mut offset, BATCH_MAX);
    }
    assert!(planted.verdict(0).holds());
}
