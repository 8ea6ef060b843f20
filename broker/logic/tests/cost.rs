//! What the logic itself costs: an append with its share of a write and its completion allocates nothing, and takes
//! far less than a microsecond in a release build.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

use tackboard_logic::ledger::LedgerStart;
use tackboard_logic::log::recovery::{Recovery, RecoveryStep, RestartClass};
use tackboard_logic::shard::Shard;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::{Attributes, BatchHeader};
use tackboard_schema::{
    Durability, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs,
    TopicId, TopicPartition,
};

/// Counts the allocations of the thread that asks.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Records of one batch.
const RECORDS: i32 = 160;

struct Bench {
    shard: Shard,
    out: Effects,
    log: LogId,
    now: Now,
    header: BatchHeader,
    sequence: i32,
    completions: Vec<Input>,
}

impl Bench {
    fn new(durability: Durability) -> Self {
        let config = ShardConfig {
            tail_cache_bytes: 1 << 20,
            ..ShardConfig::default()
        };
        let mut out = Effects::new();
        let start = LedgerStart {
            generation: 1,
            file: LedgerFile::A,
            logs: Vec::new(),
        };
        let mut shard = Shard::new(config, start, &mut out);
        let topic_partition = TopicPartition {
            topic: TopicId([1; 16]),
            partition: PartitionIndex(0),
        };
        let config = LogConfig {
            durability,
            ..LogConfig::default()
        };
        let mut recovery = Recovery::new(
            topic_partition,
            RestartClass::Clean,
            None,
            Vec::new(),
            &config,
        );
        let recovered = loop {
            match recovery.next() {
                RecoveryStep::Done(recovered) => break *recovered,
                _ => recovery.done(Ok(())),
            }
        };
        let log = shard.reserve_log();
        let leader_epoch = LeaderEpoch(1);
        let open = OpenLog {
            log,
            topic_partition,
            config,
            leader_epoch,
            recovered,
        };
        let now = Now {
            monotonic_us: 1,
            wall: TimestampMs(1),
        };
        let mut bench = Self {
            shard,
            out,
            log,
            now,
            header: header(),
            sequence: 0,
            completions: Vec::with_capacity(64),
        };
        bench.collect();
        bench.step(Input::Open(Box::new(open)));
        bench.complete();
        bench
    }

    fn step(&mut self, input: Input) {
        self.shard.step(self.now, input, &mut self.out);
        self.collect();
    }

    /// Turns operations into their completions.
    fn collect(&mut self) {
        for effect in self.out.list.drain(..) {
            let result = Ok(());
            let completion = match effect {
                Effect::Write { log, write, .. } => Input::Written { log, write, result },
                Effect::Sync { log, sync, .. } => Input::Synced { log, sync, result },
                Effect::Preallocate { log, segment, size } => Input::Preallocated {
                    log,
                    segment,
                    size,
                    result,
                },
                Effect::WriteLedger { sequence, .. } => Input::LedgerWritten { sequence, result },
                Effect::CreateSegment { log, segment, .. } => Input::SegmentCreated {
                    log,
                    segment,
                    result,
                },
                Effect::SealSegment { log, segment, .. } => Input::SegmentSealed {
                    log,
                    segment,
                    result,
                },
                _ => continue,
            };
            self.completions.push(completion);
        }
        self.out.clear();
    }

    fn complete(&mut self) {
        while let Some(completion) = self.completions.pop() {
            self.step(completion);
        }
    }

    /// A turn with `batches` appends, its writes, and their completions.
    fn turn(&mut self, batches: u32) {
        for _ in 0..batches {
            self.header.base_sequence = self.sequence;
            self.sequence += RECORDS;
            self.step(Input::Append(Append {
                log: self.log,
                ticket: Ticket(1),
                header: self.header,
                payload: PayloadId(1),
                acks: None,
                durability: None,
                deadline_us: 30_000_000,
            }));
        }
        self.step(Input::TurnEnd);
        self.complete();
    }
}

/// 16 KiB.
fn header() -> BatchHeader {
    BatchHeader {
        base_offset: Offset(0),
        batch_length: (16 << 10) - 12,
        partition_leader_epoch: LeaderEpoch(-1),
        crc: 0,
        attributes: Attributes(0),
        last_offset_delta: RECORDS - 1,
        base_timestamp: TimestampMs(1),
        max_timestamp: TimestampMs(1),
        producer_id: ProducerId(3),
        producer_epoch: ProducerEpoch(0),
        base_sequence: 0,
        record_count: RECORDS,
    }
}

#[test]
fn appends_and_completions_allocate_nothing() {
    for durability in [Durability::Fsync, Durability::Written] {
        let mut bench = Bench::new(durability);
        for _ in 0..150 {
            bench.turn(3);
        }
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..10 {
            bench.turn(1);
            bench.turn(3);
        }
        let allocations = ALLOCATIONS.with(Cell::get) - before;
        assert_eq!(allocations, 0, "{durability}");
    }
}

#[test]
fn an_append_costs_far_less_than_a_microsecond() {
    let mut bench = Bench::new(Durability::Fsync);
    bench.turn(1);
    for batches in [1, 4, 16] {
        let turns = 20_000 / batches;
        let start = Instant::now();
        for _ in 0..turns {
            bench.now.monotonic_us += 10;
            bench.turn(batches);
        }
        let nanoseconds = start.elapsed().as_nanos() as u64 / u64::from(turns * batches);
        println!("{batches} batches a turn: {nanoseconds} ns a batch");
        if !cfg!(debug_assertions) {
            assert!(nanoseconds < 1000, "{nanoseconds} ns");
        }
    }
}
