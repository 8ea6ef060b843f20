//! Consumers: they follow the tail or read from the middle, from memory or from disk, and look offsets up by time.

use std::collections::BTreeMap;
use std::ops::Range;

use tackboard_logic::log::stretch::Stretch;
use tackboard_logic::log::{self, Damage, StretchCut};
use tackboard_logic::request::lookup::{Lookup, LookupStep, Wanted};
use tackboard_logic::shard::interface::{
    DiskRead, FetchAnswer, FetchData, FetchEntry, Input, LogId, StorageFault, Ticket, TimestampScan,
};
use tackboard_schema::{ErrorCode, Offset, TimestampMs};

use super::io::{Action, Completion};
use super::producing::Waiting;
use super::{Event, World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::{FileName, FolderName};

/// Where a read that was started belongs.
#[derive(Debug)]
pub(super) struct ReadFor {
    consumer: usize,
    /// Counts the fetches of the consumer: what an earlier one read is dropped.
    fetch: u64,
    partition: u32,
    read: DiskRead,
    /// Those that readers share, and which it is answered from if there are any.
    stretches: Vec<Stretch>,
    high_watermark: i64,
}

impl ReadFor {
    /// The bytes of the segment that are read: those it names, and the stretches that hold them.
    fn range(&self) -> Range<u64> {
        let Self {
            read, stretches, ..
        } = self;
        let end = read.file_at + u64::from(read.length);
        let first = stretches.first().map(|stretch| stretch.file_at);
        let last = stretches.last();
        let last = last.map(|stretch| stretch.file_at + u64::from(stretch.length));
        first.unwrap_or(read.file_at).min(read.file_at)..last.unwrap_or(end).max(end)
    }

    /// That range, stretch by stretch.
    pub(super) fn parts(&self) -> Vec<Range<u64>> {
        let whole = self.range();
        let ends = self
            .stretches
            .iter()
            .map(|stretch| stretch.file_at + u64::from(stretch.length));
        let mut parts = Vec::new();
        let mut at = whole.start;
        for end in ends.chain([whole.end]) {
            if end > at {
                parts.push(at..end);
                at = end;
            }
        }
        parts
    }

    /// What its reader gets of `bytes`, which lie in that range: the same whether it shares or reads alone, but that one
    /// of them may end earlier.
    fn cut(&self, bytes: &[u8]) -> Result<Vec<u8>, Damage> {
        let read = &self.read;
        let from = self.range().start;
        let part = |at: u64, length: u32| {
            let at = (at - from) as usize;
            let end = (at + length as usize).min(bytes.len());
            &bytes[at.min(end)..end]
        };
        let alone = part(read.file_at, read.length);
        let alone = log::trim_read(alone, read).map(|range| alone[range].to_vec());
        let mut cut = StretchCut::new(read);
        let mut shared = Vec::new();
        for stretch in &self.stretches {
            let part = part(stretch.file_at, stretch.length);
            let Ok(range) = cut.cut(part, stretch.file_at) else {
                break;
            };
            shared.extend_from_slice(&part[range]);
            if cut.is_done() {
                break;
            }
        }
        if shared.is_empty() {
            return alone;
        }
        let alone = alone.unwrap_or_else(|damage| panic!("{read:?} is not damaged: {damage:?}"));
        assert!(
            alone.starts_with(&shared) || shared.starts_with(&alone),
            "{read:?} brings other bytes alone than from {:?}",
            self.stretches
        );
        Ok(shared)
    }
}

/// A client that reads some partitions of one core.
pub(super) struct Consumer {
    positions: BTreeMap<u32, i64>,
    ticket: Option<u64>,
    fetch: u64,
    /// Reads that the answer asked for and that haven't arrived.
    reads: usize,
    /// Reads everything from the beginning and never turns back.
    auditor: bool,
    /// Reads for the coordinator of this partition.
    coordinator: Option<u32>,
    /// What the fetch under way asked for, in its order.
    asked: Vec<(u32, i64, u32)>,
}

impl World {
    pub(super) fn add_consumer(&mut self) {
        let count = self.rng.between(1, 3);
        let positions = (0..count)
            .filter_map(|_| Some((self.pick_partition()?, 0)))
            .collect();
        self.push_consumer(positions, false);
    }

    /// A consumer that reads a partition from beginning to end.
    pub(super) fn add_auditor(&mut self, number: u32) -> usize {
        let start = self.partition(number).log_start;
        self.push_consumer([(number, start)].into(), true);
        self.consumers.len() - 1
    }

    /// Reads a partition of the internal topic whenever its coordinator comes into being.
    pub(super) fn add_coordinators_reader(&mut self, number: u32) {
        self.push_consumer([(number, 0)].into(), true);
        let consumer = self.consumers.last_mut().expect("it was just added");
        consumer.coordinator = Some(number);
    }

    /// A coordinator's log is to be read from here on.
    pub(super) fn read_from(&mut self, number: u32, offset: i64) {
        let mut consumers = self.consumers.iter();
        let index = consumers.position(|consumer| consumer.coordinator == Some(number));
        let index = index.expect("each of these partitions has a reader");
        self.consumers[index].positions = [(number, offset)].into();
    }

    fn push_consumer(&mut self, positions: BTreeMap<u32, i64>, auditor: bool) {
        let consumer = Consumer {
            positions,
            ticket: None,
            fetch: 0,
            reads: 0,
            auditor,
            coordinator: None,
            asked: Vec::new(),
        };
        self.consumers.push(consumer);
        let index = self.consumers.len() - 1;
        self.schedule(0, Event::Consumer(index));
    }

    /// A consumer acts.
    pub(super) fn consume(&mut self, index: usize) {
        let pause = self.pause_us();
        self.schedule(pause, Event::Consumer(index));
        let coordinator = self.consumers[index].coordinator;
        if coordinator.is_some_and(|number| !self.reads_for_coordinator(number)) {
            return;
        }
        if self.rests() {
            return;
        }
        if self.rng.one_in(16) {
            self.look_up_a_time(index);
        }
        let consumer = &self.consumers[index];
        if let Some(ticket) = consumer.ticket {
            self.hurry_or_drop(index, ticket);
            return;
        }
        if consumer.reads > 0 {
            return;
        }
        if !consumer.auditor && self.rng.one_in(32) {
            self.turn_back(index);
        }
        self.fetch(index);
    }

    fn fetch(&mut self, index: usize) {
        let bytes_max = self.rng.pick(&[1, 1_000, 64 << 10, 1 << 20]);
        let wanted: Vec<(u32, i64)> = self.consumers[index]
            .positions
            .iter()
            .map(|(number, at)| (*number, *at))
            .collect();
        let mut target = None;
        let (mut entries, mut asked) = (Vec::new(), Vec::new());
        for (number, offset) in wanted {
            let Some((core, log)) = self.serving(number) else {
                continue;
            };
            if *target.get_or_insert(core) != core {
                continue;
            }
            let bytes_max = self.rng.pick(&[bytes_max, 1, 4_096, 1 << 20]);
            entries.push(FetchEntry {
                log,
                offset: Offset(offset),
                bytes_max,
            });
            asked.push((number, offset, bytes_max));
        }
        let Some(core) = target else {
            return;
        };
        let patience_us = self.rng.pick(&[0, 10_000, 500_000, 5_000_000]);
        let ticket = self.next_ticket();
        self.waiting
            .insert(ticket, Waiting::Fetch { consumer: index });
        let consumer = &mut self.consumers[index];
        consumer.ticket = Some(ticket);
        consumer.fetch += 1;
        consumer.asked = asked;
        let input = Input::Fetch {
            ticket: Ticket(ticket),
            entries,
            bytes_min: self.rng.pick(&[0, 1, 1, 10_000]),
            bytes_max,
            deadline_us: self.clock.now().monotonic_us + patience_us,
        };
        self.post(core, input);
    }

    /// A fetch is under way; it may be hurried, or its connection may go.
    fn hurry_or_drop(&mut self, index: usize, ticket: u64) {
        let Some((number, _, _)) = self.consumers[index].asked.first().copied() else {
            return;
        };
        let Some((core, _)) = self.serving(number) else {
            return;
        };
        let ticket = Ticket(ticket);
        match self.rng.below(200) {
            0..10 => self.post(core, Input::HurryFetch { ticket }),
            10 => {
                self.waiting
                    .insert(ticket.0, Waiting::Nobody { request: None });
                self.consumers[index].ticket = None;
                self.post(core, Input::DropFetch { ticket });
            }
            _ => self.see(Seen::Parked),
        }
    }

    /// An answer arrives from a shard; cached bytes come with it.
    pub(super) fn fetched(
        &mut self,
        core: usize,
        ticket: u64,
        answers: Vec<(FetchAnswer, Vec<u8>)>,
    ) {
        let index = match self.waiting.remove(&ticket) {
            Some(Waiting::Fetch { consumer }) => consumer,
            Some(Waiting::Nobody { request: None }) => return,
            _ => panic!("a fetch is answered once"),
        };
        self.consumers[index].ticket = None;
        let asked = std::mem::take(&mut self.consumers[index].asked);
        assert_eq!(asked.len(), answers.len(), "one answer for each entry");
        for ((number, offset, bytes_max), (answer, cached)) in asked.into_iter().zip(answers) {
            self.take_answer(core, index, (number, offset, bytes_max), answer, cached);
        }
    }

    fn take_answer(
        &mut self,
        core: usize,
        index: usize,
        (number, offset, bytes_max): (u32, i64, u32),
        answer: FetchAnswer,
        cached: Vec<u8>,
    ) {
        if answer.error == ErrorCode::OffsetOutOfRange {
            let partition = &self.partitions[number as usize];
            check::out_of_range(partition, offset, &answer);
            let start = answer.log_start_offset.0;
            self.move_to(index, number, start);
            return;
        }
        if answer.error != ErrorCode::None {
            let faulty = self.faults_were_injected();
            check::fetch_error(&self.partitions[number as usize], answer.error, faulty);
            return;
        }
        let (high_watermark, log_start) = (answer.high_watermark.0, answer.log_start_offset.0);
        let latest_ms = self.clock.wall_latest_ms();
        let partition = &mut self.partitions[number as usize];
        check::watermarks(partition, high_watermark, log_start, latest_ms);
        match answer.data {
            FetchData::Empty => {}
            FetchData::Cached { .. } => {
                self.see(Seen::ReadCached);
                self.take_bytes(index, number, offset, high_watermark, bytes_max, &cached);
            }
            FetchData::Disk(read) => self.start_read(core, index, number, read, high_watermark),
        }
    }

    fn start_read(
        &mut self,
        core: usize,
        index: usize,
        number: u32,
        read: DiskRead,
        high_watermark: i64,
    ) {
        let name = FileName::Log(read.segment.0.0);
        let file = self.disk.file(FolderName::Log(number), name);
        let file = file.expect("a read names a segment that is there");
        let (_, log) = self.serving(number).expect("it has just answered");
        let stretches = self.host(core).shard.stretches(log, &read);
        let consumer = &mut self.consumers[index];
        consumer.reads += 1;
        let read_for = ReadFor {
            consumer: index,
            fetch: consumer.fetch,
            partition: number,
            read,
            stretches,
            high_watermark,
        };
        if !read_for.stretches.is_empty() {
            return self.wait_for_turn(core, read_for, file);
        }
        let range = read_for.range();
        let action = Action::Read {
            file,
            at: range.start,
            length: (range.end - range.start) as usize,
        };
        self.start(core, vec![action], Completion::Read(read_for));
    }

    /// Bytes that a fetch asked for arrive from disk.
    pub(super) fn read_arrived(
        &mut self,
        _core: usize,
        read_for: ReadFor,
        bytes: Result<Vec<u8>, StorageFault>,
    ) {
        let ReadFor {
            consumer: index,
            fetch,
            partition: number,
            read,
            high_watermark,
            ..
        } = read_for;
        let consumer = &mut self.consumers[index];
        if consumer.fetch != fetch || consumer.reads == 0 {
            return;
        }
        consumer.reads -= 1;
        // What was read while the log was cut is nobody's.
        let was_cut = self.serving(number).is_some_and(|(core, log)| {
            let shard = &self.host(core).shard;
            shard.was_cut_since(log, read.leader_epoch)
        });
        if was_cut {
            return;
        }
        // The files of a deleted topic may be gone by now.
        let Some(bytes) = bytes.ok().filter(|_| !self.partition(number).deleted) else {
            return;
        };
        match read_for.cut(&bytes) {
            Ok(served) => {
                self.see(Seen::ReadCold);
                if !read_for.stretches.is_empty() {
                    self.see(Seen::ReadShared);
                }
                let offset = read.fetch_offset.0;
                assert!(
                    !served.is_empty(),
                    "a read brings at least one batch: {read:?}"
                );
                self.take_bytes(
                    index,
                    number,
                    offset,
                    high_watermark,
                    read.bytes_max,
                    &served,
                );
            }
            Err(damage) => self.read_damage(index, number, &read, &damage),
        }
    }

    fn read_damage(&mut self, index: usize, number: u32, read: &DiskRead, damage: &Damage) {
        self.see(Seen::ReadDamage);
        trace!(self, "partition {number}: {damage:?}");
        let next = check::damage(&self.partitions[number as usize], read, damage);
        self.move_to(index, number, next);
    }

    fn take_bytes(
        &mut self,
        index: usize,
        number: u32,
        offset: i64,
        high_watermark: i64,
        bytes_max: u32,
        bytes: &[u8],
    ) {
        self.see(Seen::Read);
        let partition = &mut self.partitions[number as usize];
        let next = check::served(
            partition,
            offset,
            high_watermark,
            bytes_max,
            bytes,
            &mut self.disk,
        );
        if self.consumers[index].coordinator.is_some() {
            self.take_loaded(number, bytes);
        }
        self.move_to(index, number, next);
    }

    fn move_to(&mut self, index: usize, number: u32, offset: i64) {
        let consumer = &mut self.consumers[index];
        if let Some(position) = consumer.positions.get_mut(&number) {
            *position = offset;
        }
    }

    /// The consumer goes to the beginning, somewhere in between, or beyond the end.
    fn turn_back(&mut self, index: usize) {
        let numbers: Vec<u32> = self.consumers[index].positions.keys().copied().collect();
        for number in numbers {
            let partition = &self.partitions[number as usize];
            let (start, end) = (partition.log_start, partition.high_watermark);
            let offset = match self.rng.below(8) {
                0 => start,
                1 => end + self.rng.below(3) as i64,
                2 => start - 1,
                _ => start + self.rng.below((end - start).max(0) as u64 + 1) as i64,
            };
            self.move_to(index, number, offset);
        }
        if self.rng.one_in(4)
            && let Some(number) = self.pick_partition()
        {
            let position = self.partition(number).log_start;
            let positions = &mut self.consumers[index].positions;
            positions.pop_first();
            positions.insert(number, position);
        }
    }

    /// The process is gone, and with it every fetch under way.
    pub(super) fn forget_fetches(&mut self) {
        for consumer in &mut self.consumers {
            consumer.ticket = None;
            consumer.reads = 0;
            consumer.fetch += 1;
        }
    }

    /// Asks for the first record at or after some time, and compares.
    fn look_up_a_time(&mut self, index: usize) {
        let numbers: Vec<u32> = self.consumers[index].positions.keys().copied().collect();
        if numbers.is_empty() {
            return;
        }
        let number = self.rng.pick(&numbers);
        let Some((core, log)) = self.serving(number) else {
            return;
        };
        let partition = &self.partitions[number as usize];
        let known = partition
            .sequence
            .iter()
            .map(|placed| placed.batch.timestamps[0]);
        let known: Vec<i64> = known.collect();
        let near = if known.is_empty() {
            self.clock.wall_ms()
        } else {
            self.rng.pick(&known)
        };
        let timestamp = near + self.rng.below(2_000) as i64 - 1_000;
        let Some(found) = self.find_time(core, log, number, timestamp) else {
            return;
        };
        self.see(if found.is_some() {
            Seen::TimeFound
        } else {
            Seen::TimeNotFound
        });
        let host = self.host(core);
        let description = host.shard.describe(log).expect("the log is open");
        let partition = &self.partitions[number as usize];
        check::time_lookup(partition, timestamp, found, &description);
    }

    /// The answer of the broker; `None` if bytes on the way were damaged, which is no answer.
    fn find_time(
        &mut self,
        core: usize,
        log: LogId,
        number: u32,
        timestamp: i64,
    ) -> Option<Option<(i64, i64)>> {
        let time = TimestampMs(timestamp);
        let mut step = Lookup::begin(&self.host(core).shard, log, Wanted::At(time));
        for _ in 0..10_000 {
            let lookup = match step {
                LookupStep::Read(lookup) => lookup,
                LookupStep::Listed(listed) if listed.offset == Offset(-1) => return Some(None),
                LookupStep::Listed(listed) => {
                    return Some(Some((listed.offset.0, listed.timestamp.0)));
                }
                LookupStep::Truncating => return None,
                LookupStep::Deleted if self.partition(number).deleted => return None,
                LookupStep::Deleted | LookupStep::Fault(_) => {
                    panic!("the log is open and its reads do not fail: {step:?}")
                }
            };
            let bytes = self.read_for_scan(number, &lookup.scan);
            match log::find_record(&bytes, &lookup.scan, time) {
                Ok(search) => step = lookup.searched(&self.host(core).shard, search),
                Err(damage) => {
                    let partition = &self.partitions[number as usize];
                    let rotten = partition.sequence.iter().any(|placed| placed.rotten);
                    assert!(rotten, "a time look-up met {damage:?} where nothing rots");
                    return None;
                }
            }
        }
        panic!("a time look-up doesn't end");
    }

    fn read_for_scan(&mut self, number: u32, scan: &TimestampScan) -> Vec<u8> {
        let name = FileName::Log(scan.segment.0.0);
        let file = self.disk.file(FolderName::Log(number), name);
        let file = file.expect("a scan names a segment that is there");
        let bytes = file.borrow().read(scan.file_at, scan.length as usize);
        assert_eq!(
            bytes.len(),
            scan.length as usize,
            "all that a scan reads is on disk"
        );
        bytes
    }

    /// Whether this auditor has read everything.
    pub(super) fn auditor_is_done(&self, index: usize) -> bool {
        let consumer = &self.consumers[index];
        consumer.positions.iter().all(|(number, position)| {
            *position >= self.partitions[*number as usize].end || self.is_excused(*number)
        })
    }

    /// Core and name of an open log.
    pub(super) fn serving(&self, number: u32) -> Option<(usize, LogId)> {
        self.process.as_ref()?.open.get(&number).copied()
    }
}
