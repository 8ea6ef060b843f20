//! A driver in memory: carries out the effects of one shard, completes I/O in an order that a seed decides, crashes.
#![allow(dead_code)] // Each test uses its part.

pub mod disk;

use std::collections::{BTreeMap, HashMap};

use disk::{File, Folder, listing};
use tackboard_logic::ledger::{LedgerFiles, LedgerLog, LedgerStart, replay};
use tackboard_logic::log::recovery::{RecoveredLog, Recovery, RecoveryStep, RestartClass, Sidecar};
use tackboard_logic::log::{StretchCut, trim_read};
use tackboard_logic::shard::Shard;
use tackboard_logic::shard::interface::*;
use tackboard_schema::record_batch::{BatchBuilder, BatchHeader, Compression, stamp};
use tackboard_schema::{
    Acks, Durability, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs,
    TopicId, TopicPartition,
};

/// Small, seeded, good enough to choose orders.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub fn partition(index: i32) -> TopicPartition {
    TopicPartition {
        topic: TopicId([7; 16]),
        partition: PartitionIndex(index),
    }
}

/// A batch with one record per value.
pub fn batch(values: &[&[u8]], producer: Option<(i64, i16, i32)>, timestamp: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(TimestampMs(timestamp));
    for value in values {
        builder
            .append(TimestampMs(timestamp), None, Some(value), &[])
            .unwrap();
    }
    let producer =
        producer.map(|(id, epoch, sequence)| (ProducerId(id), ProducerEpoch(epoch), sequence));
    builder.finish(producer, Compression::None)
}

/// A measurement of one who is alone on the disk.
pub fn free_space(bytes: u64) -> Input {
    let others = LogSpace::default();
    Input::FreeSpace { bytes, others }
}

#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    frozen: bool,
}

#[derive(Debug)]
pub struct World {
    pub shard: Shard,
    pub now: Now,
    pub random: Random,
    pub folders: BTreeMap<TopicPartition, Folder>,
    pub ledger: [File; 2],
    pub pending: Vec<Effect>,
    pub produced: BTreeMap<u64, Result<Produced, Refusal>>,
    pub fetched: BTreeMap<u64, Vec<(FetchAnswer, Vec<u8>)>>,
    pub truncated: BTreeMap<u64, Result<Truncated, Refusal>>,
    pub advanced: BTreeMap<u64, Result<Offset, Refusal>>,
    pub fenced: Vec<LogId>,
    pub deleted: Vec<LogId>,
    pub aborted: Option<&'static str>,
    pub drained: Option<Unwritten>,
    /// Written bytes captured when the write was issued.
    writes: HashMap<u64, Vec<u8>>,
    pub logs: HashMap<LogId, TopicPartition>,
    chunks: HashMap<ChunkId, Chunk>,
    payloads: HashMap<u32, Vec<u8>>,
    out: Effects,
    next_ticket: u64,
    pub epoch: i32,
    pub run: u64,
    config: ShardConfig,
}

impl World {
    pub fn new(config: ShardConfig, seed: u64) -> Self {
        let mut out = Effects::new();
        let start = LedgerStart {
            generation: 1,
            file: LedgerFile::A,
            logs: Vec::new(),
        };
        let shard = Shard::new(config.clone(), start, &mut out);
        let mut world = Self {
            shard,
            now: Now {
                monotonic_us: 1_000_000,
                wall: TimestampMs(1_000_000_000_000),
            },
            random: Random::new(seed),
            folders: BTreeMap::new(),
            ledger: Default::default(),
            pending: Vec::new(),
            produced: BTreeMap::new(),
            fetched: BTreeMap::new(),
            truncated: BTreeMap::new(),
            advanced: BTreeMap::new(),
            fenced: Vec::new(),
            deleted: Vec::new(),
            aborted: None,
            drained: None,
            writes: HashMap::new(),
            logs: HashMap::new(),
            chunks: HashMap::new(),
            payloads: HashMap::new(),
            out,
            next_ticket: 0,
            epoch: 0,
            run: 1,
            config,
        };
        world.carry_out();
        world.complete_all();
        world
    }

    pub fn step(&mut self, input: Input) {
        self.out.clear();
        self.shard.step(self.now, input, &mut self.out);
        self.shard.check_invariants();
        self.carry_out();
    }

    /// Time passes, and the core is told so every second.
    pub fn wait_seconds(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.advance(1_000_000);
        }
    }

    /// Time passes unseen; then the core is told.
    pub fn advance(&mut self, us: u64) {
        self.now.monotonic_us += us;
        self.now.wall.0 += (us / 1000) as i64;
        self.step(Input::Tick);
    }

    // ---- logs -----------------------------------------------------------------------------------------------------

    /// Recovers and opens a log.
    pub fn open(
        &mut self,
        partition: TopicPartition,
        config: LogConfig,
        restart: RestartClass,
    ) -> LogId {
        let recovered = self.recover(partition, &config, restart);
        self.open_recovered(partition, config, recovered)
    }

    pub fn open_recovered(
        &mut self,
        partition: TopicPartition,
        config: LogConfig,
        recovered: RecoveredLog,
    ) -> LogId {
        let log = self.shard.reserve_log();
        self.logs.insert(log, partition);
        self.epoch += 1;
        let leader_epoch = LeaderEpoch(self.epoch);
        let open = OpenLog {
            log,
            topic_partition: partition,
            config,
            leader_epoch,
            recovered,
        };
        self.step(Input::Open(Box::new(open)));
        log
    }

    pub fn recover(
        &mut self,
        partition: TopicPartition,
        config: &LogConfig,
        restart: RestartClass,
    ) -> RecoveredLog {
        let [a, b] = &self.ledger;
        let image = replay(&[LedgerFiles {
            a: &a.seen,
            b: &b.seen,
        }])
        .unwrap();
        self.recover_with(partition, config, restart, image.logs.get(&partition))
    }

    pub fn recover_with(
        &mut self,
        partition: TopicPartition,
        config: &LogConfig,
        restart: RestartClass,
        ledger: Option<&LedgerLog>,
    ) -> RecoveredLog {
        let folder = self.folders.entry(partition).or_default();
        let mut recovery = Recovery::new(partition, restart, ledger, listing(folder), config);
        for _ in 0..100_000 {
            match recovery.next() {
                RecoveryStep::ReadIndex { segment } => {
                    let bytes = folder[&segment.0.0].index.as_deref();
                    recovery.provide(bytes.ok_or(StorageFault::Io { os_error: 2 }));
                }
                RecoveryStep::ReadProducers { segment } => {
                    let bytes = folder[&segment.0.0].producers.as_deref();
                    recovery.provide(bytes.ok_or(StorageFault::Io { os_error: 2 }));
                }
                RecoveryStep::ReadCheckpoint { segment } => {
                    let bytes = folder[&segment.0.0].checkpoint.as_deref();
                    recovery.provide(bytes.ok_or(StorageFault::Io { os_error: 2 }));
                }
                RecoveryStep::Read {
                    segment,
                    file_at,
                    length,
                } => {
                    assert!(file_at % 4096 == 0 && length % 4096 == 0 && length > 0);
                    let bytes = &folder[&segment.0.0].log.seen;
                    let from = (file_at as usize).min(bytes.len());
                    let to = (from + length as usize).min(bytes.len());
                    recovery.provide(Ok(&bytes[from..to]));
                }
                RecoveryStep::Truncate { segment, size } => {
                    folder.get_mut(&segment.0.0).unwrap().log.truncate(size);
                    recovery.done(Ok(()));
                }
                RecoveryStep::Remove { segment } | RecoveryStep::SetAside { segment } => {
                    folder.remove(&segment.0.0);
                    recovery.done(Ok(()));
                }
                RecoveryStep::RemoveSidecar { segment, sidecar } => {
                    let files = folder.get_mut(&segment.0.0).unwrap();
                    match sidecar {
                        Sidecar::Index => files.index = None,
                        Sidecar::Producers => files.producers = None,
                        Sidecar::Checkpoint => files.checkpoint = None,
                    }
                    recovery.done(Ok(()));
                }
                RecoveryStep::CreateSegment {
                    segment,
                    preallocate,
                } => {
                    folder
                        .entry(segment.0.0)
                        .or_default()
                        .log
                        .truncate(preallocate);
                    recovery.done(Ok(()));
                }
                RecoveryStep::Sync { segment } => {
                    folder.get_mut(&segment.0.0).unwrap().log.sync();
                    recovery.done(Ok(()));
                }
                RecoveryStep::Done(recovered) => return *recovered,
                RecoveryStep::Failed(fault) => panic!("recovery failed: {fault}"),
            }
        }
        panic!("recovery does not end");
    }

    // ---- requests -------------------------------------------------------------------------------------------------

    pub fn append(&mut self, log: LogId, bytes: Vec<u8>) -> u64 {
        self.append_with(log, bytes, None, None)
    }

    pub fn append_with(
        &mut self,
        log: LogId,
        bytes: Vec<u8>,
        acks: Option<Acks>,
        durability: Option<Durability>,
    ) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        let payload = PayloadId(ticket as u32);
        let header = BatchHeader::read(&bytes).unwrap();
        self.payloads.insert(payload.0, bytes);
        self.step(Input::Append(Append {
            log,
            ticket: Ticket(ticket),
            header,
            payload,
            acks,
            durability,
            deadline_us: self.now.monotonic_us + 30_000_000,
        }));
        ticket
    }

    /// Cuts a log's end off; it goes on in the next epoch.
    pub fn truncate(&mut self, log: LogId, offset: i64, below_high_watermark: bool) -> u64 {
        self.next_ticket += 1;
        self.epoch += 1;
        self.step(Input::Truncate(Truncate {
            log,
            ticket: Ticket(self.next_ticket),
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(self.epoch),
            below_high_watermark,
        }));
        self.next_ticket
    }

    /// Deletes a log's records below `offset`, or below its high watermark.
    pub fn advance_start(&mut self, log: LogId, offset: Option<i64>) -> u64 {
        self.next_ticket += 1;
        self.step(Input::AdvanceLogStart(AdvanceLogStart {
            log,
            ticket: Ticket(self.next_ticket),
            offset: offset.map(Offset),
        }));
        self.next_ticket
    }

    pub fn fetch(&mut self, log: LogId, offset: i64, bytes_max: u32, wait_us: u64) -> u64 {
        let entry = FetchEntry {
            log,
            offset: Offset(offset),
            bytes_max,
        };
        self.fetch_many(vec![entry], 1, bytes_max, wait_us)
    }

    pub fn fetch_many(
        &mut self,
        entries: Vec<FetchEntry>,
        bytes_min: u32,
        bytes_max: u32,
        wait_us: u64,
    ) -> u64 {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        let deadline_us = self.now.monotonic_us + wait_us;
        self.step(Input::Fetch {
            ticket,
            entries,
            bytes_min,
            bytes_max,
            deadline_us,
        });
        ticket.0
    }

    /// Everything that is visible from `offset` on, read to the high watermark.
    pub fn read_all(&mut self, log: LogId, offset: i64) -> Vec<u8> {
        let mut all = Vec::new();
        let mut offset = offset;
        loop {
            let ticket = self.fetch(log, offset, 50_000, 0);
            let (answer, bytes) = self.fetched.remove(&ticket).unwrap().remove(0);
            assert_eq!(
                answer.error,
                tackboard_schema::ErrorCode::None,
                "at {offset}"
            );
            if bytes.is_empty() {
                assert!(answer.high_watermark.0 <= offset);
                return all;
            }
            let mut at = 0;
            while at < bytes.len() {
                let header = BatchHeader::read(&bytes[at..]).unwrap();
                assert!(header.base_offset.0 <= offset || header.base_offset.0 >= offset);
                offset = header.next_offset().0;
                at += header.total_length();
            }
            all.extend_from_slice(&bytes);
        }
    }

    // ---- effects --------------------------------------------------------------------------------------------------

    fn carry_out(&mut self) {
        let effects = std::mem::take(&mut self.out.list);
        for effect in effects {
            self.carry_out_one(effect);
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::AllocateChunk { chunk, capacity } => {
                assert!(capacity % 4096 == 0);
                let bytes = vec![0xEE; capacity as usize];
                assert!(
                    self.chunks
                        .insert(
                            chunk,
                            Chunk {
                                bytes,
                                frozen: false
                            }
                        )
                        .is_none()
                );
            }
            Effect::Fill { chunk, at, bytes } => {
                let chunk = self.chunks.get_mut(&chunk).unwrap();
                chunk.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
            }
            Effect::CopyTail {
                from,
                from_at,
                length,
                to,
            } => {
                let from = &self.chunks[&from];
                assert!(from.frozen && length < 4096);
                let tail = from.bytes[from_at as usize..(from_at + length) as usize].to_vec();
                self.chunks.get_mut(&to).unwrap().bytes[..tail.len()].copy_from_slice(&tail);
            }
            Effect::Place {
                payload,
                chunk,
                at,
                base_offset,
                leader_epoch,
            } => {
                let mut bytes = self.payloads.remove(&payload.0).unwrap();
                stamp(&mut bytes, base_offset, leader_epoch);
                let chunk = self.chunks.get_mut(&chunk).unwrap();
                assert!(!chunk.frozen);
                chunk.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
            }
            Effect::Discard { payload } => {
                self.payloads.remove(&payload.0).unwrap();
            }
            Effect::Freeze { chunk, length } => {
                let chunk = self.chunks.get_mut(&chunk).unwrap();
                assert!(!chunk.frozen);
                chunk.frozen = true;
                let end = (length as usize).next_multiple_of(4096);
                chunk.bytes[length as usize..end].fill(0);
            }
            Effect::TrimChunk { chunk, at, length } => {
                let chunk = self.chunks.get_mut(&chunk).unwrap();
                assert!(chunk.frozen);
                let kept = at as usize..(at + length) as usize;
                chunk.bytes[..kept.start].fill(0xEE);
                chunk.bytes[kept.end..].fill(0xEE);
            }
            Effect::ReleaseChunk { chunk } => {
                self.chunks.remove(&chunk).unwrap();
            }
            Effect::Write {
                write,
                chunk,
                at,
                length,
                file_at,
                ..
            } => {
                let chunk = &self.chunks[&chunk];
                assert!(
                    chunk.frozen && at % 4096 == 0 && length % 4096 == 0 && file_at % 4096 == 0
                );
                assert!(length <= 1 << 20 && length > 0);
                let bytes = chunk.bytes[at as usize..(at + length) as usize].to_vec();
                self.writes.insert(write.0, bytes);
                self.pending.push(effect);
            }
            Effect::AnswerProduce {
                ticket,
                respond,
                outcome,
            } => {
                if respond {
                    assert!(self.produced.insert(ticket.0, outcome).is_none());
                }
            }
            Effect::AnswerFetch { ticket, answers } => self.answer_fetch(ticket, answers),
            Effect::AnswerTruncate {
                ticket, outcome, ..
            } => {
                assert!(self.truncated.insert(ticket.0, outcome).is_none());
            }
            Effect::AnswerAdvanceLogStart {
                ticket, outcome, ..
            } => {
                assert!(self.advanced.insert(ticket.0, outcome).is_none());
            }
            Effect::LogDeleted { log } => self.deleted.push(log),
            Effect::Fenced { log, .. } => self.fenced.push(log),
            Effect::Abort { why } => self.aborted = Some(why),
            Effect::Drained { unwritten } => self.drained = Some(unwritten),
            Effect::Sync { .. }
            | Effect::Preallocate { .. }
            | Effect::CreateSegment { .. }
            | Effect::SealSegment { .. }
            | Effect::WriteCheckpoint { .. }
            | Effect::DeleteSegment { .. }
            | Effect::ReadSegment { .. }
            | Effect::Reopen { .. }
            | Effect::WriteLedger { .. } => self.pending.push(effect),
        }
    }

    fn answer_fetch(&mut self, ticket: Ticket, answers: Vec<FetchAnswer>) {
        let mut with_bytes = Vec::new();
        for answer in answers {
            let bytes = match &answer.data {
                FetchData::Empty => Vec::new(),
                FetchData::Cached { slices, bytes } => {
                    let slices = &self.out.slices[slices.start as usize..slices.end as usize];
                    let mut got = Vec::new();
                    for slice in slices {
                        let chunk = &self.chunks[&slice.chunk];
                        assert!(chunk.frozen);
                        let end = (slice.at + slice.length) as usize;
                        got.extend_from_slice(&chunk.bytes[slice.at as usize..end]);
                    }
                    assert_eq!(got.len(), *bytes as usize);
                    got
                }
                FetchData::Disk(read) => {
                    let folder = &self.folders[&self.logs[&answer.log]];
                    let file = &folder[&read.segment.0.0].log.seen;
                    let bytes =
                        &file[read.file_at as usize..read.file_at as usize + read.length as usize];
                    let range = trim_read(bytes, read).unwrap();
                    let bytes = &bytes[range];
                    let shared = self.cut_from_stretches(answer.log, read, file);
                    let is_same = bytes.starts_with(&shared) || shared.starts_with(bytes);
                    assert!(is_same, "readers that share get the same");
                    bytes.to_vec()
                }
            };
            with_bytes.push((answer, bytes));
        }
        self.fetched.insert(ticket.0, with_bytes);
    }

    /// What a read brings when it is done in stretches, as far as these are whole.
    fn cut_from_stretches(&self, log: LogId, read: &DiskRead, file: &[u8]) -> Vec<u8> {
        let mut cut = StretchCut::new(read);
        let mut got = Vec::new();
        let mut file_at = None;
        for stretch in self.shard.stretches(log, read) {
            assert!(file_at.is_none_or(|file_at| file_at == stretch.file_at));
            file_at = Some(stretch.file_at + u64::from(stretch.length));
            if cut.is_done() {
                break;
            }
            let bytes = &file[stretch.file_at as usize..][..stretch.length as usize];
            let range = cut.cut(bytes, stretch.file_at).unwrap();
            got.extend_from_slice(&bytes[range]);
        }
        got
    }

    // ---- completions ----------------------------------------------------------------------------------------------

    pub fn complete_all(&mut self) {
        while !self.pending.is_empty() {
            self.complete_one();
        }
    }

    /// Completes one operation, whichever the seed says.
    pub fn complete_one(&mut self) {
        let index = self.random.below(self.pending.len() as u64) as usize;
        self.complete(index, Ok(()));
    }

    pub fn complete(&mut self, index: usize, result: Result<(), StorageFault>) {
        let effect = self.pending.remove(index);
        if result.is_ok() {
            self.perform(&effect);
        }
        let input = match effect {
            Effect::Write { log, write, .. } => Input::Written { log, write, result },
            Effect::Sync { log, sync, .. } => Input::Synced { log, sync, result },
            Effect::Preallocate { log, segment, size } => Input::Preallocated {
                log,
                segment,
                size,
                result,
            },
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
            Effect::DeleteSegment { log, segment } => Input::SegmentDeleted { log, segment },
            Effect::WriteLedger { sequence, .. } => Input::LedgerWritten { sequence, result },
            Effect::ReadSegment {
                log,
                segment,
                file_at,
                length,
            } => {
                let bytes = &self.file(log, segment).seen;
                let from = (file_at as usize).min(bytes.len());
                let to = (from + length as usize).min(bytes.len());
                let result = result.map(|()| bytes[from..to].into());
                Input::SegmentRead { log, result }
            }
            Effect::Reopen(reopen) => Input::Reopened {
                log: reopen.log,
                result: result.map(|()| Box::new(self.reopen(&reopen))),
            },
            other => panic!("not an operation: {other:?}"),
        };
        self.step(input);
    }

    fn reopen(&mut self, reopen: &Reopen) -> RecoveredLog {
        let Reopen {
            topic_partition,
            config,
            restart,
            ledger,
            ..
        } = reopen;
        self.recover_with(*topic_partition, config, *restart, Some(ledger))
    }

    fn perform(&mut self, effect: &Effect) {
        match effect {
            Effect::ReadSegment { .. } | Effect::Reopen(_) => {}
            Effect::Write {
                log,
                segment,
                write,
                file_at,
                synced,
                ..
            } => {
                let bytes = self.writes.remove(&write.0).unwrap();
                let file = self.file(*log, *segment);
                file.write(*file_at, &bytes);
                if *synced {
                    file.keep_range(*file_at, bytes.len());
                }
            }
            Effect::Sync { log, segment, .. } => self.file(*log, *segment).sync(),
            Effect::Preallocate { log, segment, size } => {
                let file = self.file(*log, *segment);
                let size = (*size).max(file.seen.len() as u64);
                file.truncate(size);
            }
            Effect::CreateSegment {
                log,
                segment,
                preallocate,
            } => {
                let folder = self.folders.get_mut(&self.logs[log]).unwrap();
                assert!(!folder.contains_key(&segment.0.0));
                folder
                    .entry(segment.0.0)
                    .or_default()
                    .log
                    .truncate(*preallocate);
            }
            Effect::SealSegment {
                log,
                segment,
                size,
                index,
                producers,
            } => {
                let folder = self.folders.get_mut(&self.logs[log]).unwrap();
                let files = folder.get_mut(&segment.0.0).unwrap();
                let durable = &files.log.kept[..*size as usize];
                assert_eq!(
                    durable,
                    &files.log.seen[..*size as usize],
                    "sealed before it was durable"
                );
                files.index = Some(index.to_vec());
                files.producers = Some(producers.to_vec());
                files.checkpoint = None;
                files.log.truncate(*size);
                files.log.sync();
            }
            Effect::WriteCheckpoint {
                log,
                segment,
                bytes,
            } => {
                let folder = self.folders.get_mut(&self.logs[log]).unwrap();
                let files = folder.get_mut(&segment.0.0).unwrap();
                files.checkpoint = Some(bytes.to_vec());
            }
            Effect::DeleteSegment { log, segment } => {
                let folder = self.folders.get_mut(&self.logs[log]).unwrap();
                folder.remove(&segment.0.0).unwrap();
            }
            Effect::WriteLedger {
                file,
                at,
                bytes,
                cut_to,
                ..
            } => {
                let file = &mut self.ledger[usize::from(*file == LedgerFile::B)];
                file.write(*at, bytes);
                if let Some(size) = cut_to {
                    file.truncate((file.seen.len() as u64).min(*size));
                }
                file.sync();
            }
            other => panic!("not an operation: {other:?}"),
        }
    }

    fn file(&mut self, log: LogId, segment: SegmentBase) -> &mut File {
        let folder = self.folders.get_mut(&self.logs[&log]).unwrap();
        &mut folder
            .get_mut(&segment.0.0)
            .expect("the segment exists")
            .log
    }

    /// The machine loses power: what is in flight may be half done, what is not synced may be gone. A new process
    /// starts, without logs yet.
    pub fn crash(&mut self) {
        for effect in std::mem::take(&mut self.pending) {
            if self.random.chance(50) {
                self.perform_unsynced(&effect);
            }
        }
        let mut random = self.random.clone();
        for folder in self.folders.values_mut() {
            for files in folder.values_mut() {
                files.log.crash(|| random.chance(50));
            }
        }
        self.ledger
            .iter_mut()
            .for_each(|file| file.crash(|| random.chance(50)));
        self.random = random;
        self.restart();
    }

    fn perform_unsynced(&mut self, effect: &Effect) {
        match effect {
            Effect::Write {
                log,
                segment,
                write,
                file_at,
                ..
            } => {
                let bytes = self.writes.remove(&write.0).unwrap();
                self.file(*log, *segment).write(*file_at, &bytes);
            }
            Effect::WriteLedger {
                file, at, bytes, ..
            } => {
                self.ledger[usize::from(*file == LedgerFile::B)].write(*at, bytes);
            }
            Effect::Sync { .. } => {}
            Effect::Reopen(reopen) => {
                self.reopen(reopen);
            }
            other => self.perform(other),
        }
    }

    /// A new process on the folders as they are.
    pub fn restart(&mut self) {
        self.run += 1;
        self.pending.clear();
        self.writes.clear();
        self.chunks.clear();
        self.payloads.clear();
        self.logs.clear();
        self.produced.clear();
        self.fetched.clear();
        self.truncated.clear();
        self.advanced.clear();
        self.drained = None;
        let image = replay(&[LedgerFiles {
            a: &self.ledger[0].seen,
            b: &self.ledger[1].seen,
        }])
        .unwrap();
        let start = LedgerStart::from_image(&image, 0, |_| true);
        let config = ShardConfig {
            broker_epoch: self.run,
            ..self.config.clone()
        };
        self.out.clear();
        self.shard = Shard::new(config, start, &mut self.out);
        self.carry_out();
        self.complete_all();
        assert!(self.shard.ledger_started());
    }
}
