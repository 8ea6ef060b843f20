//! Carries out the effects of one step of logic: memory at once, answers into requests, I/O into launches.

use tackboard_logic::{
    request::produce::Appended,
    shard::interface::{
        CachedSlice, Effect, Effects, FetchAnswer, FetchData, LogId, Produced, Refusal,
        StorageFault, Ticket, Truncated,
    },
};
use tackboard_schema::{ErrorCode, Offset};

use super::{
    launch::Launch,
    request::{Failure, Fetched, LogBounds, Part, Piece, TicketTarget},
    slab::Key,
    state::State,
};
use crate::{bridge::ToControl, disk::chunks::Part as ChunkPart};

impl State {
    /// Carries out `effects` in their order.
    pub(super) fn carry_out(&mut self, effects: &mut Effects, payload: &[u8]) {
        let Effects { list, slices } = effects;
        for effect in list.drain(..) {
            match effect {
                Effect::AllocateChunk { chunk, capacity } => self.chunks.allocate(chunk, capacity),
                Effect::Fill { chunk, at, bytes } => self.chunks.fill(chunk, at, &bytes),
                Effect::CopyTail {
                    from,
                    from_at,
                    length,
                    to,
                } => {
                    let from_at = from_at as usize;
                    self.chunks
                        .copy_tail(from, from_at..from_at + length as usize, to);
                }
                Effect::Place {
                    payload: _,
                    chunk,
                    at,
                    base_offset,
                    leader_epoch,
                } => self
                    .chunks
                    .place(chunk, at, payload, base_offset, leader_epoch),
                // The payload is the socket's buffer: it is free when the step returns.
                Effect::Discard { payload: _ } => {}
                Effect::Freeze { chunk, length } => self.chunks.freeze(chunk, length),
                Effect::TrimChunk { chunk, at, length } => {
                    let at = at as usize;
                    self.chunks.trim(chunk, at..at + length as usize);
                }
                Effect::ReleaseChunk { chunk } => self.chunks.release(chunk),
                Effect::Write {
                    log,
                    segment,
                    write,
                    chunk,
                    at,
                    length,
                    file_at,
                    synced,
                } => self.launches.push(Launch::Write {
                    log,
                    segment,
                    write,
                    bytes: self.chunks.to_write(chunk, at, length),
                    file_at,
                    synced,
                }),
                storage @ (Effect::Sync { .. }
                | Effect::Preallocate { .. }
                | Effect::CreateSegment { .. }
                | Effect::SealSegment { .. }
                | Effect::WriteCheckpoint { .. }
                | Effect::DeleteSegment { .. }
                | Effect::ReadSegment { .. }
                | Effect::Reopen(_)
                | Effect::WriteLedger { .. }) => self.launches.push(Launch::Storage(storage)),
                Effect::AnswerProduce {
                    ticket,
                    respond,
                    outcome,
                } => self.produced(ticket, respond, outcome),
                Effect::AnswerFetch { ticket, answers } => self.fetched(ticket, answers, slices),
                // Nobody waits for it yet: replication will.
                Effect::AnswerTruncate {
                    log,
                    ticket: _,
                    outcome,
                } => self.truncated(log, outcome),
                Effect::AnswerAdvanceLogStart {
                    ticket, outcome, ..
                } => self.log_start_advanced(ticket, outcome),
                Effect::LogDeleted { log } => self.log_deleted(log),
                Effect::Fenced { log, why } => self.fenced(log, why),
                Effect::Abort { why } => self.abort(why),
                Effect::Drained { unwritten } => {
                    self.drained = true;
                    self.unwritten = unwritten;
                }
            }
        }
    }

    /// An open log by id, if the id is current.
    pub(super) fn opened(&self, log: LogId) -> Option<&super::state::OpenedLog> {
        let opened = self.logs.get(log.slot as usize)?.as_ref()?;
        (opened.id == log).then_some(opened)
    }

    fn produced(&mut self, ticket: Ticket, respond: bool, outcome: Result<Produced, Refusal>) {
        let Some(TicketTarget::Append { request, entry }) = self.tickets.remove(ticket.0) else {
            return;
        };
        let metrics = self.metrics();
        let outcome = match outcome {
            Ok(produced) => {
                if produced.duplicate {
                    metrics.produce_batches_duplicate.increment();
                }
                Ok(Appended {
                    base_offset: produced.base_offset,
                    log_append_time: produced.log_append_time,
                    log_start_offset: produced.log_start_offset,
                })
            }
            Err(refusal) => {
                metrics.produce_batches_refused.increment();
                Err(Failure::new(refusal.code, refusal.to_string()))
            }
        };
        self.entry_appended(request, entry, respond, outcome);
        self.outcome_arrived(request);
    }

    fn fetched(&mut self, ticket: Ticket, answers: Vec<FetchAnswer>, slices: &[CachedSlice]) {
        let Some(TicketTarget::Fetch { request, entries }) = self.tickets.remove(ticket.0) else {
            return;
        };
        let bytes = |answer: &FetchAnswer| match &answer.data {
            FetchData::Empty => 0,
            FetchData::Cached { bytes, .. } => u64::from(*bytes),
            FetchData::Disk(read) => u64::from(read.length.min(read.bytes_max)),
        };
        let total = answers.iter().map(bytes).sum();
        let is_error = answers.iter().any(|answer| answer.error != ErrorCode::None);
        self.part_answered(request, Part::Here(ticket), total, is_error);
        for (entry, answer) in entries.into_iter().zip(answers) {
            self.fetch_answered(request, entry, answer, slices);
            self.outcome_arrived(request);
        }
    }

    fn fetch_answered(
        &mut self,
        request: Key,
        entry: u32,
        answer: FetchAnswer,
        slices: &[CachedSlice],
    ) {
        if answer.error != ErrorCode::None {
            let failure = match answer.error {
                ErrorCode::OffsetOutOfRange => Failure::out_of_range(LogBounds {
                    log_start_offset: answer.log_start_offset,
                    high_watermark: answer.high_watermark,
                }),
                code => Failure::plain(code),
            };
            return self.entry_fetched(request, entry, Err(failure));
        }
        let mut fetched = Fetched {
            high_watermark: answer.high_watermark,
            log_start_offset: answer.log_start_offset,
            pieces: Vec::new(),
        };
        match answer.data {
            FetchData::Empty => {}
            FetchData::Cached { slices: range, .. } => {
                self.metrics().cache_hits.increment();
                let chosen = &slices[range.start as usize..range.end as usize];
                fetched.pieces.reserve_exact(chosen.len());
                for slice in chosen {
                    let at = slice.at as usize;
                    let range = at..at + slice.length as usize;
                    let pieces = &mut fetched.pieces;
                    self.chunks.parts(slice.chunk, range, |part| {
                        pieces.push(match part {
                            ChunkPart::Buffer(buffer, range) => Piece::Chunk(buffer, range),
                            ChunkPart::Rest(bytes) => Piece::Owned(bytes),
                        });
                    });
                }
            }
            FetchData::Disk(read) => {
                self.metrics().cache_misses.increment();
                self.expect(request);
                self.launches.push(Launch::Read {
                    request,
                    entry,
                    log: answer.log,
                    read,
                    fetched,
                });
                return;
            }
        }
        self.entry_fetched(request, entry, Ok(fetched));
    }

    fn fenced(&mut self, log: LogId, why: StorageFault) {
        self.metrics().partitions_fenced.add(1);
        let partition = self.opened(log).map(|log| log.partition);
        let name = partition.map(|partition| partition.to_string());
        tracing::error!(partition = name, %why, "a storage fault fenced the partition: it refuses appends until a restart");
        if let Some(partition) = partition {
            self.coordinator_fenced(partition);
        }
    }

    /// Logic has given up. The process must end: the control thread sees to it, or, where it can't be told, this one. A
    /// control thread that has gone means that the broker is ending already.
    fn abort(&mut self, why: &'static str) {
        self.aborted = true;
        let fatal = ToControl::Fatal {
            core: self.core,
            reason: why.to_owned(),
        };
        match self.control.try_send(fatal) {
            Ok(()) => {}
            Err(flume::TrySendError::Full(_)) => panic!("{why}"),
            Err(flume::TrySendError::Disconnected(_)) => {
                tracing::error!(core = self.core.0, why, "the core has given up");
            }
        }
    }

    fn truncated(&self, log: LogId, outcome: Result<Truncated, Refusal>) {
        let partition = self.opened(log).map(|opened| opened.partition.to_string());
        match outcome {
            Ok(truncated) => {
                tracing::info!(
                    partition,
                    offset = truncated.log_end_offset.0,
                    "the end of the log was cut off"
                );
            }
            Err(refusal) => tracing::warn!(partition, %refusal, "the log could not be cut"),
        }
    }

    fn log_start_advanced(&mut self, ticket: Ticket, outcome: Result<Offset, Refusal>) {
        match self.tickets.remove(ticket.0) {
            Some(TicketTarget::DeleteRecords { request, entry }) => {
                self.records_deleted(request, entry, outcome);
            }
            Some(TicketTarget::Rewritten { partition }) => {
                self.group_log_advanced(partition, outcome);
            }
            _ => {}
        }
    }

    fn log_deleted(&mut self, log: LogId) {
        let slot = self.logs.get_mut(log.slot as usize);
        if let Some(opened) = slot.and_then(|slot| slot.take_if(|opened| opened.id == log)) {
            self.launches.push(Launch::Trash {
                log,
                files: opened.files,
            });
        }
    }
}
