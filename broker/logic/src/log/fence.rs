//! What follows a storage fault.
//!
//! After a failed write or sync nobody knows what of the unproven bytes is on the medium, and asking again proves
//! nothing: file systems mark failed pages clean. So the log takes no more appends, its durable end never rises again
//! (S3), those who wait learn that the outcome is unknown, and reads below the high watermark go on. Only a new open
//! after recovery ends it.

use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{ErrorCode, Offset};

use super::{Log, LogState};
use crate::shard::context::Context;
use crate::shard::interface::{Effect, Refusal, RefusalDetail, StorageFault};

impl Log {
    pub(crate) fn fence(&mut self, why: StorageFault, cx: &mut Context<'_>) {
        let over = !matches!(self.state, LogState::Open | LogState::Truncating);
        if over || self.is_cut() {
            return;
        }
        self.give_up_truncation(RefusalDetail::CutFailed(why), cx);
        // What was proven before stays proven; the next record of this kind comes after recovery and ends the fence.
        self.record_durable(cx);
        self.enter_fence(why, self.sync.durable().offset, cx);
    }

    /// Without a word on what is durable: where a truncation could not be carried out, the ledger's record of it must
    /// stand, so that the next recovery makes it good.
    pub(super) fn enter_fence(
        &mut self,
        why: StorageFault,
        durable_offset: Offset,
        cx: &mut Context<'_>,
    ) {
        self.state = LogState::Fenced(why);
        self.sync.fail();
        cx.plan.refresh(self.id, &mut self.sync);
        cx.ledger.record(LedgerRecord::Fenced {
            partition: self.partition,
            durable_offset,
        });
        *cx.ledger_urgent = true;
        cx.stats.fenced_logs += 1;
        cx.out.push(Effect::Fenced { log: self.id, why });
        let code = ErrorCode::KafkaStorageError;
        let detail = RefusalDetail::OutcomeUnknown(why);
        self.refuse_waiters(Refusal { code, detail }, cx);
    }
}
