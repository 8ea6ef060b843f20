//! One core with one log and a disk that completes everything at once: what costs are taken of.
//!
//! Not here: bytes. The machine never sees any.
#![allow(dead_code, reason = "each user needs a part")]

use tackboard_logic::ledger::LedgerStart;
use tackboard_logic::log::recovery::{Recovery, RecoveryStep, RestartClass};
use tackboard_logic::shard::Shard;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::{Attributes, BatchHeader};
use tackboard_schema::{
    Durability, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs,
    TopicId, TopicPartition,
};

/// Records of one batch of 16 KiB.
const RECORDS: i32 = 160;

/// A core, its log, and what the disk owes it.
pub struct OneLog {
    shard: Shard,
    out: Effects,
    log: LogId,
    now: Now,
    header: BatchHeader,
    sequence: i32,
    completions: Vec<Input>,
    fetched: Option<FetchAnswer>,
}

impl OneLog {
    pub fn new(durability: Durability) -> Self {
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
        let mut this = Self {
            shard,
            out,
            log,
            now,
            header: header(),
            sequence: 0,
            completions: Vec::with_capacity(64),
            fetched: None,
        };
        this.collect();
        this.step(Input::Open(Box::new(open)));
        this.complete();
        this
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
                Effect::WriteCheckpoint { log, segment, .. } => {
                    Input::CheckpointWritten { log, segment }
                }
                Effect::AnswerFetch { answers, .. } => {
                    self.fetched = answers.into_iter().next();
                    continue;
                }
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
    pub fn turn(&mut self, batches: u32) {
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

    /// Fetches the newest batch, or waits for the next one if `ahead` says so; what has come of the fetch so far.
    pub fn fetch(&mut self, ahead: bool) -> Option<FetchAnswer> {
        self.fetched = None;
        let end = i64::from(self.sequence);
        let offset = end - i64::from(if ahead { 0 } else { RECORDS });
        let entry = FetchEntry {
            log: self.log,
            offset: Offset(offset),
            bytes_max: 1 << 20,
        };
        self.step(Input::Fetch {
            ticket: Ticket(2),
            entries: vec![entry],
            bytes_min: 1,
            bytes_max: 1 << 20,
            deadline_us: 30_000_000,
        });
        self.fetched.take()
    }

    /// The answer to the fetch that waited.
    pub fn fetched(&mut self) -> Option<FetchAnswer> {
        self.fetched.take()
    }
}

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
