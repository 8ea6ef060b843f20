//! One arm per input.

use tackboard_schema::{Acks, ErrorCode};

use super::Shard;
use super::context::Context;
use super::interface::{
    AdvanceLogStart, Append, Effect, Effects, Input, LogId, Now, OpenLog, Refusal, RefusalDetail,
    StorageFault, Truncate,
};
use crate::log::Log;
use crate::request::produce::EffectiveAcks;

/// So many fenced logs, and the process stops: it is not the one file that is broken.
pub const FENCED_LOGS_MAX: u64 = 3;

const UNKNOWN_LOG: Refusal = Refusal {
    code: ErrorCode::UnknownTopicOrPartition,
    detail: RefusalDetail::UnknownLog,
};

impl Shard {
    /// Takes one input and appends what follows from it to `out`.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Effects) {
        if self.aborted {
            return;
        }
        self.notice_standstill(now);
        self.io_in_flight = self
            .io_in_flight
            .saturating_sub(u64::from(is_completion(&input)));
        match input {
            Input::Append(append) => return self.append(now, &append, out),
            Input::TurnEnd => self.end_turn(now, out),
            Input::Written { log, write, result } => self.on_log(now, log, out, |log, cx| {
                log.written(write, result, cx);
                // The disk works on while the answers are sent.
                log.issue_due(cx);
            }),
            Input::Synced { log, sync, result } => {
                self.on_log(now, log, out, |log, cx| log.synced(sync, result, cx))
            }
            Input::Fetch {
                ticket,
                entries,
                bytes_min,
                bytes_max,
                deadline_us,
            } => {
                self.fetch(
                    now,
                    ticket,
                    entries,
                    (bytes_min, bytes_max),
                    deadline_us,
                    out,
                );
            }
            Input::Truncate(truncate) => self.truncate(now, &truncate, out),
            Input::AdvanceLogStart(advance) => self.advance_log_start(now, &advance, out),
            Input::HurryFetch { ticket } => self.hurry_fetch(ticket, out),
            Input::DropFetch { ticket } => self.drop_fetch(ticket),
            Input::Preallocated {
                log,
                segment,
                size,
                result,
            } => self.on_log(now, log, out, |log, _| {
                log.preallocated(segment, size, result)
            }),
            Input::SegmentCreated {
                log,
                segment,
                result,
            } => self.on_log(now, log, out, |log, cx| {
                log.segment_created(segment, result, cx);
                log.issue_due(cx);
            }),
            Input::SegmentSealed {
                log,
                segment,
                result,
            } => self.on_log(now, log, out, |log, cx| {
                log.segment_sealed(segment, result, cx);
                log.issue_due(cx);
                log.unlink_due(cx);
            }),
            Input::CheckpointWritten { log, segment } => {
                self.on_log(now, log, out, |log, _| log.checkpoint_written(segment));
            }
            Input::SegmentDeleted { log, segment } => {
                self.on_log(now, log, out, |log, cx| log.segment_deleted(segment, cx))
            }
            Input::SegmentRead { log, result } => {
                let result = result.as_deref().map_err(|fault| *fault);
                self.on_log(now, log, out, |log, cx| log.segment_read(result, cx));
            }
            Input::Reopened { log, result } => {
                let result = result.map(|recovered| *recovered);
                self.on_log(now, log, out, |log, cx| log.reopened(result, cx));
            }
            Input::LedgerWritten { sequence, result } => {
                self.ledger_written(now, sequence, result, out);
            }
            Input::Open(open) => self.open(now, *open, out),
            Input::Configure { log, config } => {
                self.on_log(now, log, out, |log, cx| log.configure(*config, cx))
            }
            Input::Delete { log } => self.delete(now, log, out),
            Input::FreeSpace { bytes, others } => {
                self.measured(bytes);
                self.keep_budget(now, others, out);
                self.resume_in_space(now, out);
            }
            Input::Tick => self.tick(now, out),
            Input::Shutdown => self.shutdown(now, out),
        }
        self.finish_step(now, out);
    }

    /// Something happened to a log: it takes note, and the core takes the consequences.
    fn on_log(
        &mut self,
        now: Now,
        log: LogId,
        out: &mut Effects,
        note: impl FnOnce(&mut Log, &mut Context<'_>),
    ) {
        self.with_log(now, out, log, note);
        self.settle(now, log, out);
    }

    /// The hot path: nothing else of the core is looked at.
    fn append(&mut self, now: Now, append: &Append, out: &mut Effects) {
        self.appended_us = now.monotonic_us;
        let first = self.with_log(now, out, append.log, |log, cx| {
            log.append(append, cx) && !std::mem::replace(&mut log.in_turn, true)
        });
        match first {
            Some(true) => self.turn.push(append.log),
            Some(false) => {}
            None => {
                // The log's settings went with it: what the request says is all there is.
                let acks = EffectiveAcks::new(append.acks, Acks::All, Acks::Count(0));
                self.stats.refused_appends += 1;
                out.push(Effect::Discard {
                    payload: append.payload,
                });
                out.push(Effect::AnswerProduce {
                    ticket: append.ticket,
                    respond: acks.is_answered(),
                    outcome: Err(UNKNOWN_LOG),
                });
            }
        }
    }

    fn end_turn(&mut self, now: Now, out: &mut Effects) {
        let mut turn = std::mem::take(&mut self.turn);
        for log in turn.drain(..) {
            self.with_log(now, out, log, |log, cx| {
                log.in_turn = false;
                log.issue_due(cx);
            });
        }
        self.turn = turn;
    }

    fn open(&mut self, now: Now, open: OpenLog, out: &mut Effects) {
        let id = open.log;
        let (slots, mut cx) = self.split(now, out);
        let place = slots
            .get_mut(id.slot as usize)
            .filter(|place| place.reserved && place.generation == id.generation)
            .filter(|place| place.log.is_none())
            .expect("a log is opened once, under a reserved name");
        place.log = Some(Box::new(Log::open(open, &mut cx)));
        self.stats.open_logs += 1;
        self.settle(now, id, out);
    }

    fn truncate(&mut self, now: Now, truncate: &Truncate, out: &mut Effects) {
        let begun = self.with_log(now, out, truncate.log, |log, cx| {
            log.begin_truncation(truncate, cx)
        });
        match begun.unwrap_or(Err(UNKNOWN_LOG)) {
            Ok(()) => {
                // Whoever waits for more is told that this is not the place any more.
                let log = self.log_mut(truncate.log);
                for parked in log
                    .map(|log| std::mem::take(&mut log.parked))
                    .unwrap_or_default()
                {
                    self.answer_parked(parked, out);
                }
                self.settle(now, truncate.log, out);
            }
            Err(refusal) => out.push(Effect::AnswerTruncate {
                log: truncate.log,
                ticket: truncate.ticket,
                outcome: Err(refusal),
            }),
        }
    }

    fn advance_log_start(&mut self, now: Now, advance: &AdvanceLogStart, out: &mut Effects) {
        let begun = self.with_log(now, out, advance.log, |log, cx| {
            log.begin_advance(advance, cx)
        });
        match begun.unwrap_or(Err(UNKNOWN_LOG)) {
            Ok(()) => self.settle(now, advance.log, out),
            Err(refusal) => out.push(Effect::AnswerAdvanceLogStart {
                log: advance.log,
                ticket: advance.ticket,
                outcome: Err(refusal),
            }),
        }
    }

    fn delete(&mut self, now: Now, id: LogId, out: &mut Effects) {
        // Nothing is begun behind the last word; the next start finds the tombstone.
        if self.drained {
            return;
        }
        let parked = self.with_log(now, out, id, |log, cx| {
            log.begin_delete(cx);
            std::mem::take(&mut log.parked)
        });
        for parked in parked.unwrap_or_default() {
            self.answer_parked(parked, out);
        }
        self.settle(now, id, out);
    }

    fn ledger_written(
        &mut self,
        now: Now,
        sequence: u64,
        result: Result<(), StorageFault>,
        out: &mut Effects,
    ) {
        if self.ledger.written(sequence, result, out).is_err() {
            self.abort("the ledger cannot be written", out);
            return;
        }
        let mut waiting = std::mem::take(&mut self.await_ledger);
        let mut truncating = Vec::new();
        waiting.retain(|id| {
            let waits = self.with_log(now, out, *id, |log, cx| {
                log.unlink_due(cx);
                log.answer_advances(cx);
                if log.is_truncating() {
                    truncating.push(*id);
                }
                log.awaits_ledger() && !log.is_truncating()
            });
            waits.unwrap_or(false)
        });
        self.await_ledger = waiting;
        // Those that go on waiting come back.
        for id in truncating {
            self.settle(now, id, out);
        }
    }

    fn measured(&mut self, bytes: u64) {
        self.admission.free_bytes = bytes;
        self.admission.appended_bytes = self.stats.appended_bytes;
        self.admission.reserved_bytes = self.stats.reserved_bytes;
        self.admission.freed_bytes = self.stats.freed_bytes;
        self.admission.open_logs = self.stats.open_logs;
        self.admission.measurement += 1;
    }

    /// Says whether the disk is full, and has logs go on whose writes have met its end.
    fn resume_in_space(&mut self, now: Now, out: &mut Effects) {
        let bytes = self.admission.free_bytes;
        let least = self.admission.refused_below();
        // Hysteresis: an eighth above it before appends are taken again.
        let enough = match self.admission.full {
            Some(_) => least.saturating_add(least / 8),
            None => least,
        };
        self.admission.full = (bytes < enough).then_some((bytes, self.config.reserve_bytes));
        // The reserve is kept from new appends. What waits was appended before, and until it is written no segment of
        // its log can end and go.
        if bytes > 0 {
            for log in self.log_ids() {
                let resumed = self.with_log(now, out, log, |log, cx| log.resume_writes(cx));
                if resumed == Some(true) {
                    self.settle(now, log, out);
                }
            }
        }
    }

    fn shutdown(&mut self, now: Now, out: &mut Effects) {
        if self.admission.shutting_down {
            return;
        }
        self.admission.shutting_down = true;
        while let Some(parked) = self.parked.any() {
            self.answer_parked(parked, out);
        }
        for id in self.log_ids() {
            self.with_log(now, out, id, |log, cx| {
                log.begin_drain(cx);
                log.issue_due(cx);
            });
            self.settle(now, id, out);
        }
    }

    pub(super) fn abort(&mut self, why: &'static str, out: &mut Effects) {
        if !self.aborted {
            self.aborted = true;
            out.push(Effect::Abort { why });
        }
    }
}

/// Whether an operation that [`Context::start`] counted is over.
fn is_completion(input: &Input) -> bool {
    matches!(
        input,
        Input::Written { .. }
            | Input::Synced { .. }
            | Input::Preallocated { .. }
            | Input::SegmentCreated { .. }
            | Input::SegmentSealed { .. }
            | Input::CheckpointWritten { .. }
            | Input::SegmentDeleted { .. }
            | Input::SegmentRead { .. }
            | Input::Reopened { .. }
    )
}
