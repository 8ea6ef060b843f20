//! One turn of a core: inputs in, effects carried out in their order.

use tackboard_logic::shard::interface::{
    Append, CachedSlice, ChunkId, Effect, FetchData, Input, LogId, LogSpace, PayloadId,
    StorageFault, Unwritten,
};
use tackboard_schema::record_batch::stamp;
use tackboard_schema::{ErrorCode, LeaderEpoch, Offset};

use super::process::Host;
use super::{Event, World, trace};
use crate::check::{self, SpaceView};
use crate::clock::Clock;
use crate::coverage::Event as Seen;
use crate::model::Expected;

/// A core is told the time at most so often.
const TICK_US: u64 = 10_000;

/// A core whose shard has nothing to wait for is told the time once a second.
const IDLE_TICK_US: u64 = 1_000_000;

/// What may become of the batch that a step takes.
pub(super) struct Decision {
    pub(super) ticket: u64,
    pub(super) expected: Vec<Expected>,
    /// Of the producer the log may know nothing from before.
    may_be_forgotten: bool,
}

impl World {
    /// Puts an input into a core's inbox and sees to it that there is a turn.
    pub(super) fn post(&mut self, core: usize, input: Input) {
        let incarnation = self.incarnation;
        let host = self.host(core);
        host.inbox.push_back(input);
        if !host.turn_scheduled {
            host.turn_scheduled = true;
            let delay = self.rng.below(50);
            self.schedule(delay, Event::Turn { incarnation, core });
        }
    }

    pub(super) fn turn(&mut self, core: usize) {
        self.host(core).turn_scheduled = false;
        while let Some(input) = self.next_input(core) {
            self.give(core, input);
        }
        if self.process_mut().aborted.is_none() {
            self.give(core, Input::TurnEnd);
            self.look_at_a_log(core);
        }
        self.end_turn();
        self.schedule_tick(core);
    }

    pub(super) fn tick(&mut self, core: usize) {
        // An earlier one took its place.
        if self.host(core).next_tick_us != self.clock.now_us() {
            return;
        }
        self.host(core).next_tick_us = u64::MAX;
        self.give(core, Input::Tick);
        self.end_turn();
        self.schedule_tick(core);
    }

    /// A core is told the time when its shard waits for it, about every 10 ms at most, and else once a second.
    pub(super) fn schedule_tick(&mut self, core: usize) {
        if self.process.is_none() {
            return;
        }
        let now_us = self.clock.now_us();
        let due = self.host(core).shard.next_deadline_us();
        let due = due.map_or(u64::MAX, Clock::of_monotonic);
        let wait_us = due.saturating_sub(now_us).clamp(TICK_US, IDLE_TICK_US);
        if now_us + wait_us + TICK_US >= self.host(core).next_tick_us {
            return;
        }
        let wait_us = wait_us + self.rng.below(1_000);
        self.host(core).next_tick_us = now_us + wait_us;
        let incarnation = self.incarnation;
        self.schedule(wait_us, Event::Tick { incarnation, core });
    }

    pub(super) fn tell_free_space(&mut self, core: usize) {
        let bytes = self.disk.free_bytes();
        let hosts = self.process_mut().hosts.iter().enumerate();
        let others = hosts.filter(|(index, _)| *index != core);
        let others = others.map(|(_, host)| host.shard.log_space()).sum();
        self.post(core, Input::FreeSpace { bytes, others });
        let incarnation = self.incarnation;
        self.schedule(1_000_000, Event::FreeSpace { incarnation, core });
    }

    fn next_input(&mut self, core: usize) -> Option<Input> {
        let process = self.process.as_mut()?;
        if process.aborted.is_some() {
            None
        } else {
            process.hosts[core].inbox.pop_front()
        }
    }

    pub(super) fn host(&mut self, core: usize) -> &mut Host {
        let process = self.process.as_mut().expect("only a process has cores");
        &mut process.hosts[core]
    }

    /// One step of a shard, its invariants, and what it wants done.
    pub(super) fn give(&mut self, core: usize, input: Input) {
        trace!(self, "core {core} <- {input:?}");
        let append = match &input {
            Input::Append(append) => Some(*append),
            _ => None,
        };
        self.note_cut(core, &input);
        self.note_deletion(core, &input);
        let now = self.clock.now();
        let host = self.host(core);
        let told = match &input {
            Input::FreeSpace { bytes, others } => Some((*bytes, *others, host.space_view())),
            _ => None,
        };
        host.shard.step(now, input, &mut host.effects);
        host.shard.check_invariants();
        if let Some((free, others, before)) = told {
            self.check_budget(core, (free, others), &before);
        }
        self.steps += 1;
        self.see(Seen::Step);
        let decision = append.map(|append| self.expect(core, append));
        self.carry_out_all(core, decision.as_ref());
    }

    fn check_budget(&mut self, core: usize, told: (u64, LogSpace), before: &SpaceView) {
        let host = self.host(core);
        let after = host.space_view();
        let numbers: Vec<u32> = host.partitions.values().copied().collect();
        let partitions = numbers
            .iter()
            .map(|number| &self.partitions[*number as usize]);
        let segment_bytes = partitions.flat_map(|partition| {
            let configs = partition.former_configs.iter().chain([&partition.config]);
            configs.map(|config| config.segment_bytes).max()
        });
        let segment_bytes_max = segment_bytes.max().unwrap_or(0);
        if check::budget(&self.options, told, before, &after, segment_bytes_max) {
            self.see(Seen::BudgetDrop);
        }
    }

    /// Carries out what piled up in the effects of a core.
    pub(super) fn carry_out_all(&mut self, core: usize, decision: Option<&Decision>) {
        let mut effects = std::mem::take(&mut self.host(core).effects);
        for effect in effects.list.drain(..) {
            trace!(self, "core {core} -> {effect:?}");
            self.carry_out(core, effect, &effects.slices, decision);
        }
        effects.clear();
        self.host(core).effects = effects;
    }

    /// What may become of a batch, asked before anything is placed.
    fn expect(&mut self, core: usize, append: Append) -> Decision {
        let host = self.host(core);
        let payload = host
            .payloads
            .get(append.payload.0 as usize)
            .and_then(Option::as_ref);
        let payload = payload.expect("the payload is placed by an effect, not by the step");
        let (partition, batch) = (payload.partition, payload.batch.clone());
        let wall_ms = self.clock.wall_ms();
        let partition = self.partition(partition);
        let mut expected = partition.expect(&batch);
        let may_be_forgotten = check::producer_may_be_forgotten(partition, &batch, wall_ms);
        if may_be_forgotten {
            expected.push(Expected::Append);
        }
        Decision {
            ticket: append.ticket.0,
            expected,
            may_be_forgotten,
        }
    }

    fn carry_out(
        &mut self,
        core: usize,
        effect: Effect,
        slices: &[CachedSlice],
        decision: Option<&Decision>,
    ) {
        match effect {
            Effect::AllocateChunk { chunk, capacity } => {
                let spare = self.spare_buffer();
                self.host(core).allocate(chunk, capacity, spare);
            }
            Effect::Fill { chunk, at, bytes } => self.host(core).chunk(chunk).fill(at, &bytes),
            Effect::CopyTail {
                from,
                from_at,
                length,
                to,
            } => {
                self.host(core).copy_tail(from, from_at, length, to);
            }
            Effect::Place {
                payload,
                chunk,
                at,
                base_offset,
                leader_epoch,
            } => {
                self.place(
                    core,
                    payload,
                    (chunk, at),
                    base_offset,
                    leader_epoch,
                    decision,
                );
            }
            Effect::Discard { payload } => {
                self.host(core).take_payload(payload);
            }
            Effect::Freeze { chunk, length } => self.host(core).chunk(chunk).freeze(length),
            Effect::TrimChunk { chunk, at, length } => {
                self.host(core).chunk(chunk).trim(at, length);
            }
            Effect::ReleaseChunk { chunk } => {
                if let Some(buffer) = self.host(core).release(chunk) {
                    self.keep_buffer(buffer);
                }
            }
            Effect::AnswerProduce {
                ticket,
                respond,
                outcome,
            } => {
                self.produced(ticket.0, respond, outcome, decision);
            }
            Effect::AnswerFetch { ticket, answers } => {
                let answers = answers
                    .into_iter()
                    .map(|answer| {
                        let cached = self.copy_cached(core, &answer.data, slices);
                        (answer, cached)
                    })
                    .collect();
                self.fetched(core, ticket.0, answers);
            }
            Effect::AnswerTruncate {
                ticket, outcome, ..
            } => self.truncated(ticket.0, outcome),
            Effect::AnswerAdvanceLogStart {
                ticket, outcome, ..
            } => self.records_deleted(ticket.0, outcome),
            Effect::Reopen(reopen) => self.start_reopening(core, *reopen),
            Effect::LogDeleted { log } => self.log_deleted(core, log),
            Effect::Fenced { log, why } => self.log_fenced(core, log, why),
            Effect::Abort { why } => self.process_mut().aborted = Some(why),
            Effect::Drained { unwritten } => {
                let process = self.process_mut();
                process.drained += 1;
                process.drained_clean &= unwritten == Unwritten::default();
            }
            Effect::Write { .. }
            | Effect::Sync { .. }
            | Effect::Preallocate { .. }
            | Effect::CreateSegment { .. }
            | Effect::SealSegment { .. }
            | Effect::WriteCheckpoint { .. }
            | Effect::DeleteSegment { .. }
            | Effect::ReadSegment { .. }
            | Effect::WriteLedger { .. } => self.start_io(core, effect),
        }
    }

    fn place(
        &mut self,
        core: usize,
        payload: PayloadId,
        (chunk, at): (ChunkId, u32),
        base_offset: Offset,
        leader_epoch: LeaderEpoch,
        decision: Option<&Decision>,
    ) {
        let wall_ms = self.clock.wall_ms();
        let payload = self.host(core).take_payload(payload);
        let mut bytes = payload.batch.bytes.clone();
        stamp(&mut bytes, base_offset, leader_epoch);
        self.host(core).chunk(chunk).fill(at, &bytes);
        let expected = decision.map(|decision| decision.expected.as_slice());
        let partition = &mut self.partitions[payload.partition as usize];
        check::placement(
            partition,
            &payload.batch,
            base_offset,
            leader_epoch,
            expected,
        );
        if decision.is_some_and(|decision| decision.may_be_forgotten) {
            partition.note_known_from(base_offset.0);
        }
        partition.place(&payload.batch, bytes, wall_ms);
        self.note_append(core);
    }

    fn copy_cached(&mut self, core: usize, data: &FetchData, slices: &[CachedSlice]) -> Vec<u8> {
        let FetchData::Cached {
            slices: range,
            bytes,
        } = data
        else {
            return Vec::new();
        };
        let mut copy = Vec::with_capacity(*bytes as usize);
        for slice in &slices[range.start as usize..range.end as usize] {
            let chunk = self.host(core).chunk(slice.chunk);
            copy.extend_from_slice(chunk.frozen_slice(slice.at, slice.length));
        }
        assert_eq!(
            copy.len(),
            *bytes as usize,
            "slices add up to what the answer says"
        );
        copy
    }

    fn log_deleted(&mut self, core: usize, log: LogId) {
        let host = self.host(core);
        let number = host.partitions.remove(&log).expect("the log was open");
        self.process_mut().open.remove(&number);
        self.see(Seen::TopicDeleted);
        self.move_to_trash(number);
    }

    fn log_fenced(&mut self, core: usize, log: LogId, why: StorageFault) {
        assert!(why != StorageFault::NoSpace, "a full disk never fences");
        assert!(self.faults_were_injected(), "fenced without a fault");
        let number = self.host(core).partitions[&log];
        self.process_mut().out_of_service.insert(number);
        if self.partition(number).internal {
            self.end_coordinator(number);
        }
        self.see(Seen::Fenced);
    }

    /// What a look at one log shows must be covered by the disk, whether or not a client asked.
    fn look_at_a_log(&mut self, core: usize) {
        let draw = self.rng.next_u64();
        let host = self.host(core);
        let count = host.partitions.len() as u64;
        if count == 0 {
            return;
        }
        let Some(log) = host.partitions.keys().nth((draw % count) as usize) else {
            return;
        };
        let log = *log;
        self.look_at(core, log);
    }

    /// The same for one log.
    pub(super) fn look_at(&mut self, core: usize, log: LogId) {
        let host = self.host(core);
        let number = host.partitions[&log];
        let description = host.shard.describe(log).expect("the log is open");
        let latest_ms = self.clock.wall_latest_ms();
        let partition = &mut self.partitions[number as usize];
        check::watermarks(
            partition,
            description.high_watermark.0,
            description.log_start_offset.0,
            latest_ms,
        );
        check::log_end(partition, description.log_end_offset.0);
        if partition.cutting.is_none() {
            check::high_watermark_is_kept(partition, &mut self.disk);
        }
        check::note_high_watermark(partition, self.clock.now_us());
    }

    /// Acts on what the shards asked for as a whole.
    pub(super) fn end_turn(&mut self) {
        let Some(process) = &self.process else {
            return;
        };
        if let Some(why) = process.aborted {
            assert!(
                self.faults_were_injected(),
                "aborted without a fault: {why}"
            );
            self.see(Seen::Abort);
            self.kill();
        } else if process.shutting_down && process.drained == process.hosts.len() {
            self.finish_shutdown();
        }
    }

    /// The code of an answer, for traces and counters.
    pub(super) fn count_refusal(&mut self, code: ErrorCode) {
        self.see(Seen::Refused);
        match code {
            ErrorCode::StorageFull => self.see(Seen::StorageFull),
            ErrorCode::StorageFullAfterAppend => self.see(Seen::StorageFullAfterAppend),
            ErrorCode::OverBudget => self.see(Seen::OverBudget),
            ErrorCode::OutOfOrderSequenceNumber => self.see(Seen::OutOfOrder),
            ErrorCode::InvalidProducerEpoch => self.see(Seen::StaleEpoch),
            ErrorCode::RequestTimedOut => self.see(Seen::TimedOut),
            _ => {}
        }
    }
}
