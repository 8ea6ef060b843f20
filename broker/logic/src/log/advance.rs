//! The log's start moves up because a client asks for it, as DeleteRecords does; retention moves it by itself.
//!
//! 1. What lies below the new start becomes durable, whatever the topic's durability: the ledger's start counts as
//!    proven, so a recovery must find everything up to it.
//! 2. The start moves, and nothing below is served any more. The ledger is told.
//! 3. Whoever asked is answered when the ledger has it on the medium: from then on no crash brings the records back.
//!
//! An offset within a batch is taken as it is: the batch stays, and consumers skip what lies below in it. Whole segments
//! below the start go as those of retention do (`retention.rs`); an active one that lies below it is ended for that.

use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{ErrorCode, Offset};

use super::Log;
use super::limits::ADVANCES_WAITING_MAX;
use crate::shard::context::Context;
use crate::shard::interface::{AdvanceLogStart, Effect, Refusal, RefusalDetail, Ticket};

/// Somebody waits until the log begins at an offset, or behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    ticket: Ticket,
    offset: Offset,
}

impl Log {
    /// Takes the request in; the rest happens as the log settles.
    pub(crate) fn begin_advance(
        &mut self,
        advance: &AdvanceLogStart,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let offset = advance.offset.unwrap_or(self.high_watermark.offset);
        self.admit_advance(offset, cx)?;
        self.advances.push_back(Advance {
            ticket: advance.ticket,
            offset,
        });
        self.sync.want(offset);
        Ok(())
    }

    fn admit_advance(&self, offset: Offset, cx: &Context<'_>) -> Result<(), Refusal> {
        let refuse = |code, detail| Err(Refusal { code, detail });
        self.admit_change()?;
        if cx.admission.shutting_down {
            return refuse(ErrorCode::ShuttingDown, RefusalDetail::ShuttingDown);
        }
        if self.is_truncating() {
            return refuse(ErrorCode::NotLeaderOrFollower, RefusalDetail::Truncating);
        }
        let high_watermark = self.high_watermark.offset;
        if offset < Offset(0) || offset > high_watermark {
            let detail = RefusalDetail::StartOutOfRange {
                offset,
                high_watermark,
            };
            return refuse(ErrorCode::OffsetOutOfRange, detail);
        }
        if self.advances.len() >= ADVANCES_WAITING_MAX {
            return refuse(ErrorCode::OverBudget, RefusalDetail::TooManyAdvances);
        }
        Ok(())
    }

    /// Goes as far as it can.
    pub(super) fn advance_log_start(&mut self, cx: &mut Context<'_>) {
        if self.advances.is_empty() {
            return;
        }
        let durable = self.sync.durable().offset;
        let offsets = self.advances.iter().map(|advance| advance.offset);
        let reached = offsets.filter(|offset| *offset <= durable).max();
        if let Some(offset) = reached.filter(|offset| *offset > self.log_start) {
            // A ledger that knows the start knows that the log reaches so far.
            if self.ledger_durable.offset < offset {
                self.record_durable(cx);
            }
            self.log_start = offset;
            self.record_log_start(cx);
            self.forget_below_start();
            self.drop_passed(cx);
        }
        self.answer_advances(cx);
    }

    /// Tells the ledger where the log begins.
    pub(super) fn record_log_start(&mut self, cx: &mut Context<'_>) {
        self.start_record = cx.ledger.record(LedgerRecord::LogStart {
            partition: self.partition,
            offset: self.log_start,
        });
        *cx.ledger_urgent = true;
    }

    /// Answers whoever asked for what the ledger has on the medium.
    pub(crate) fn answer_advances(&mut self, cx: &mut Context<'_>) {
        if self.start_record > cx.ledger.durable() {
            return;
        }
        let (log, log_start) = (self.id, self.log_start);
        self.advances.retain(|advance| {
            let waits = advance.offset > log_start;
            if !waits {
                cx.out.push(Effect::AnswerAdvanceLogStart {
                    log,
                    ticket: advance.ticket,
                    outcome: Ok(log_start),
                });
            }
            waits
        });
    }

    /// Tells everybody who waits that it is not known whether the start has moved.
    pub(super) fn refuse_advances(&mut self, refusal: Refusal, cx: &mut Context<'_>) {
        for advance in self.advances.drain(..) {
            cx.out.push(Effect::AnswerAdvanceLogStart {
                log: self.id,
                ticket: advance.ticket,
                outcome: Err(refusal),
            });
        }
    }
}
