//! What follows a storage fault.
//!
//! After a failed write or sync nobody knows what of the unproven bytes is on the medium, and asking again proves
//! nothing: file systems mark failed pages clean. So the log takes no more appends, its durable end never rises again
//! (S3), those who wait learn that the outcome is unknown, and reads below the high watermark go on. Only a new open
//! after recovery ends it.

use tackboard_schema::ErrorCode;
use tackboard_schema::storage::ledger::LedgerRecord;

use super::{Log, LogState};
use crate::shard::context::Context;
use crate::shard::interface::{Effect, Refusal, RefusalDetail, StorageFault};

impl Log {
    pub(crate) fn fence(&mut self, why: StorageFault, cx: &mut Context<'_>) {
        if self.state != LogState::Open {
            return;
        }
        self.state = LogState::Fenced(why);
        self.sync.fail();
        cx.plan.refresh(self.id, &mut self.sync);
        // What was proven before stays proven; the next record of this kind comes after recovery and ends the fence.
        self.record_durable(cx);
        cx.ledger.record(LedgerRecord::Fenced {
            partition: self.partition,
            durable_offset: self.sync.durable().offset,
        });
        *cx.ledger_urgent = true;
        cx.stats.fenced_logs += 1;
        cx.out.push(Effect::Fenced { log: self.id, why });
        let code = ErrorCode::KafkaStorageError;
        let detail = RefusalDetail::OutcomeUnknown(why);
        self.refuse_waiters(Refusal { code, detail }, cx);
    }
}
