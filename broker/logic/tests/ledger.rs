//! What the ledger keeps over growth, moves and torn ends.

use tackboard_logic::ledger::writer::{LEDGER_BLOCKS_MIN, LedgerWriter};
use tackboard_logic::ledger::{LedgerFiles, LedgerImage, LedgerStart, replay};
use tackboard_logic::shard::interface::{Effect, Effects, LedgerFile, SegmentBase, StorageFault};
use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{
    CoreId, LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition,
};

fn partition(index: i32) -> TopicPartition {
    TopicPartition {
        topic: TopicId([1; 16]),
        partition: PartitionIndex(index),
    }
}

fn durable(index: i32, offset: i64) -> LedgerRecord {
    LedgerRecord::Durable {
        partition: partition(index),
        next_offset: Offset(offset),
        segment_base: Offset(0),
        position: offset as u64 * 100,
        last_append: TimestampMs(offset),
    }
}

struct Bench {
    writer: LedgerWriter,
    files: [Vec<u8>; 2],
    out: Effects,
    moves: u32,
}

impl Bench {
    fn new(core: u16, run: u64, start: LedgerStart, files: [Vec<u8>; 2]) -> Self {
        let writer = LedgerWriter::new(CoreId(core), [9; 16], run, start);
        let mut bench = Self {
            writer,
            files,
            out: Effects::new(),
            moves: 0,
        };
        bench.flush();
        assert!(bench.writer.is_started());
        bench
    }

    fn flush(&mut self) {
        self.writer.flush(&mut self.out);
        while !self.out.list.is_empty() {
            self.complete();
        }
    }

    fn complete(&mut self) {
        let Effect::WriteLedger {
            sequence,
            file,
            at,
            bytes,
            cut_to,
        } = self.out.list.remove(0)
        else {
            panic!("only ledger writes")
        };
        let file = &mut self.files[usize::from(file == LedgerFile::B)];
        let end = at as usize + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[at as usize..end].copy_from_slice(&bytes);
        if let Some(size) = cut_to {
            file.truncate(size as usize);
            self.moves += 1;
        }
        self.writer
            .written(sequence, Ok(()), &mut self.out)
            .unwrap();
    }

    fn image(&self) -> LedgerImage {
        replay(&[LedgerFiles {
            a: &self.files[0],
            b: &self.files[1],
        }])
        .unwrap()
    }
}

fn empty_start() -> LedgerStart {
    LedgerStart {
        generation: 5,
        file: LedgerFile::A,
        logs: Vec::new(),
    }
}

#[test]
fn what_is_recorded_is_replayed() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    for offset in 1..500 {
        bench.writer.record(durable(0, offset));
        bench.writer.record(durable(1, offset * 2));
        bench.flush();
    }
    bench.writer.record(LedgerRecord::LogStart {
        partition: partition(1),
        offset: Offset(40),
    });
    bench.writer.record(LedgerRecord::EpochStart {
        partition: partition(1),
        epoch: LeaderEpoch(3),
        start_offset: Offset(50),
    });
    bench.flush();
    let image = bench.image();
    assert_eq!(
        image.logs[&partition(0)].durable.unwrap().offset,
        Offset(499)
    );
    let log = &image.logs[&partition(1)];
    assert_eq!(
        (log.durable.unwrap().offset, log.log_start_offset),
        (Offset(998), Offset(40))
    );
    assert_eq!(log.epochs, [(LeaderEpoch(3), Offset(50))]);
    assert_eq!(
        (image.generation, image.current),
        (5, vec![Some(LedgerFile::A)])
    );
}

#[test]
fn a_ledger_that_has_grown_moves_and_stays_short() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    for offset in 1..3 * LEDGER_BLOCKS_MIN as i64 {
        bench.writer.record(durable(0, offset));
        bench.flush();
        if offset % 500 == 0 {
            assert_eq!(
                bench.image().logs[&partition(0)].durable.unwrap().offset,
                Offset(offset)
            );
        }
    }
    assert!(bench.moves >= 3);
    let blocks_max = (LEDGER_BLOCKS_MIN as usize + 3) * 4096;
    assert!(bench.files.iter().all(|file| file.len() <= blocks_max));
}

#[test]
fn a_crash_in_a_move_leaves_the_old_file_counting() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    bench.writer.record(durable(0, 7));
    bench.flush();
    let image = bench.image();
    let start = LedgerStart::from_image(&image, 0, |_| true);
    assert_eq!((start.file, start.generation), (LedgerFile::B, 6));
    let mut out = Effects::new();
    let mut next = LedgerWriter::new(CoreId(0), [9; 16], 2, start);
    next.flush(&mut out);
    // The snapshot is written, its header is not.
    let Effect::WriteLedger {
        file, at, bytes, ..
    } = &out.list[0]
    else {
        panic!()
    };
    assert_eq!(*file, LedgerFile::B);
    let mut b = vec![0; *at as usize];
    b.extend_from_slice(bytes);
    let torn = replay(&[LedgerFiles {
        a: &bench.files[0],
        b: &b,
    }])
    .unwrap();
    assert_eq!(torn.logs[&partition(0)].durable.unwrap().offset, Offset(7));
    assert_eq!(torn.current, [Some(LedgerFile::A)]);
}

#[test]
fn the_latest_run_has_the_word_when_the_number_of_cores_changed() {
    let mut old = Bench::new(1, 1, empty_start(), Default::default());
    old.writer.record(durable(3, 100));
    old.writer.record(durable(4, 100));
    old.flush();
    let start = LedgerStart::from_image(&old.image(), 7, |log| *log == partition(3));
    let mut new = Bench::new(0, 2, start, Default::default());
    new.writer.record(durable(3, 50));
    new.flush();
    let pairs = [
        LedgerFiles {
            a: &new.files[0],
            b: &new.files[1],
        },
        LedgerFiles {
            a: &old.files[0],
            b: &old.files[1],
        },
    ];
    for pairs in [pairs, [pairs[1], pairs[0]]] {
        let image = replay(&pairs).unwrap();
        assert_eq!(
            image.logs[&partition(3)].durable.unwrap().offset,
            Offset(50)
        );
        assert_eq!(
            image.logs[&partition(4)].durable.unwrap().offset,
            Offset(100)
        );
    }
}

#[test]
fn a_damaged_block_that_was_durable_makes_the_ledger_unreadable() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    for offset in 1..10 {
        bench.writer.record(durable(0, offset));
        bench.flush();
    }
    let mut a = bench.files[0].clone();
    a[3 * 4096 + 50] ^= 1;
    let fault = replay(&[LedgerFiles { a: &a, b: &[] }]).unwrap_err();
    assert_eq!(fault.ledger, 0);
    let last = bench.files[0].len() - 4096;
    let mut torn = bench.files[0].clone();
    torn[last + 50] ^= 1;
    let image = replay(&[LedgerFiles { a: &torn, b: &[] }]).unwrap();
    assert_eq!(image.logs[&partition(0)].durable.unwrap().offset, Offset(8));
}

#[test]
fn a_truncation_takes_the_proof_back_until_the_next_one() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    bench.writer.record(durable(0, 100));
    bench.writer.record(LedgerRecord::Truncate {
        partition: partition(0),
        next_offset: Offset(60),
        segment_base: Offset(0),
        position: 6000,
    });
    bench.flush();
    let log = bench.image().logs[&partition(0)].clone();
    assert_eq!(log.durable.unwrap().offset, Offset(60));
    assert_eq!(log.truncate.unwrap().segment, SegmentBase(Offset(0)));
    // Both survive the move to a new ledger.
    let start = LedgerStart::from_image(&bench.image(), 0, |_| true);
    let mut next = Bench::new(0, 2, start, bench.files.clone());
    assert_eq!(next.image().logs[&partition(0)], log);
    next.writer.record(durable(0, 61));
    next.flush();
    assert_eq!(next.image().logs[&partition(0)].truncate, None);
}

#[test]
fn a_ledger_that_cannot_be_written_says_so() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    bench.writer.record(durable(0, 100));
    bench.writer.flush(&mut bench.out);
    let Effect::WriteLedger { sequence, .. } = bench.out.list[0] else {
        panic!()
    };
    let fault = StorageFault::Io { os_error: 5 };
    assert_eq!(
        bench.writer.written(sequence, Err(fault), &mut bench.out),
        Err(fault)
    );
    bench.writer.record(durable(0, 101));
    assert!(!bench.writer.flush(&mut bench.out));
}

#[test]
fn a_header_that_a_crash_tore_does_not_count_until_a_block_followed_it() {
    let mut bench = Bench::new(0, 1, empty_start(), Default::default());
    bench.writer.record(durable(0, 7));
    bench.flush();
    let start = LedgerStart::from_image(&bench.image(), 0, |_| true);
    let mut next = Bench::new(0, 2, start, bench.files.clone());
    let tear = |files: &[Vec<u8>; 2]| {
        let mut b = files[1].clone();
        b[..40].fill(0x5a);
        let pair = [LedgerFiles {
            a: &files[0],
            b: &b,
        }];
        replay(&pair).map(|image| image.logs[&partition(0)].durable.unwrap().offset)
    };
    assert_eq!(tear(&next.files), Ok(Offset(7)));
    next.writer.record(durable(0, 9));
    next.flush();
    assert!(tear(&next.files).is_err());
}
