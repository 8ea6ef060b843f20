//! What follows when positions move: chunks join the tail cache, readers see more, appends are answered.

use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{Durability, ErrorCode, TimestampMs};

use super::limits::IO_TIMEOUT_US;
use super::position::Position;
use super::sync_plan::Reach;
use super::{Log, LogState};
use crate::ledger::writer::RecordNumber;
use crate::request::acks::AckWaiter;
use crate::shard::context::Context;
use crate::shard::interface::{
    Effect, LogConfig, Refusal, RefusalDetail, StorageFault, SyncId, SyncScope,
};

/// The answer to a batch that a full disk keeps in memory.
pub(super) const UNWRITTEN: Refusal = Refusal {
    code: ErrorCode::StorageFullAfterAppend,
    detail: RefusalDetail::UnwrittenForSpace,
};

impl Log {
    /// Takes the consequences of whatever just happened. Returns the bytes by which the high watermark moved.
    pub(crate) fn settle(&mut self, cx: &mut Context<'_>) -> u64 {
        while let Some(chunk) = self.chunks.cache_next(self.positions.written_byte()) {
            cx.memory.cache(self.id, &chunk);
        }
        while let Some(chunk) = self.chunks.trim_next() {
            cx.memory.trimmed(&chunk, cx.out);
        }
        self.sync_in_background(cx);
        cx.plan.refresh(self.id, &mut self.sync);
        self.advance_truncation(cx);
        self.advance_log_start(cx);
        let moved = self.advance_high_watermark();
        self.answer_ready(cx);
        self.refuse_unwritten(cx);
        self.seal_if_due(cx);
        self.write_checkpoint_if_durable(cx);
        moved
    }

    /// The position that counts, on one broker: with replicas, the least of those in sync.
    fn counted(&self) -> Position {
        match self.config.durability {
            Durability::Fsync => self.sync.durable(),
            Durability::Interval | Durability::Written => self.positions.written(),
        }
    }

    fn advance_high_watermark(&mut self) -> u64 {
        let counted = self.counted();
        // What lies above a cut, or behind a fault, is not shown to anybody any more.
        if counted <= self.high_watermark || self.is_truncating() || !self.is_open() {
            return 0;
        }
        let bytes = counted.at.since(self.high_watermark.at);
        self.high_watermark = counted;
        bytes
    }

    fn answer_ready(&mut self, cx: &mut Context<'_>) {
        let written = self.positions.written().offset;
        while let Some(waiter) = self.written_waiters.release(written) {
            self.answer(waiter, cx);
        }
        let durable = self.sync.durable().offset;
        while let Some(waiter) = self.durable_waiters.release(durable) {
            self.answer(waiter, cx);
        }
    }

    /// On a full disk those whose batches are not written learn it at once, not when their time is up. The batches stay
    /// and are written when there is space: a retry with the same sequence finds them.
    fn refuse_unwritten(&mut self, cx: &mut Context<'_>) {
        if !self.waits_for_space || self.has_writes_flying() {
            return;
        }
        let written = self.positions.written().offset;
        for queue in [&mut self.written_waiters, &mut self.durable_waiters] {
            queue.refuse_beyond(written, |waiter| {
                cx.refuse(waiter.ticket, true, UNWRITTEN);
            });
        }
    }

    fn answer(&self, waiter: AckWaiter, cx: &mut Context<'_>) {
        cx.out.push(Effect::AnswerProduce {
            ticket: waiter.ticket,
            respond: true,
            outcome: Ok(self.produced(waiter.base_offset, waiter.duplicate)),
        });
    }

    /// Answers everybody who waits for an append or a new start with a refusal.
    pub(super) fn refuse_waiters(&mut self, refusal: Refusal, cx: &mut Context<'_>) {
        let queues = [&mut self.written_waiters, &mut self.durable_waiters];
        for queue in queues {
            while let Some(waiter) = queue.pop() {
                cx.refuse(waiter.ticket, true, refusal);
            }
        }
        self.refuse_advances(refusal, cx);
    }

    /// `interval`: what is written becomes wanted durable after a time or an amount.
    fn sync_in_background(&mut self, cx: &mut Context<'_>) {
        let written = self.positions.written();
        let by_topic = self.config.durability == Durability::Interval;
        let applies = by_topic || self.interval_until > self.sync.durable().offset;
        if !applies || written.offset <= self.sync.durable().offset {
            return;
        }
        let now_us = cx.now.monotonic_us;
        self.sync
            .note_unsynced(self.positions.written_byte(), now_us);
        let Some(since_us) = self.sync.unsynced_since_us() else {
            return;
        };
        let due_us = since_us.saturating_add(self.config.durability_interval_us);
        let bytes = self.positions.written_byte().since(self.sync.proven_byte());
        if now_us >= due_us || bytes >= self.config.durability_interval_bytes {
            self.sync.want(written.offset);
        } else {
            cx.wake_at(due_us);
        }
    }

    /// Starts the sync that the plan allows: for the segment in which the durable end lies.
    pub(crate) fn start_sync(&mut self, scope: SyncScope, cx: &mut Context<'_>) {
        let index = self.segments.behind(self.sync.proven_byte());
        let segment = self
            .segments
            .get(index)
            .expect("the durable end lies in a segment");
        let written = Reach {
            byte: self.positions.written_byte(),
            end: self.positions.written(),
        };
        // A sync proves one file: what is written behind this segment's end waits for the next one.
        let target = match segment.end {
            Some(end) if end.at < written.byte => Reach { byte: end.at, end },
            _ => written,
        };
        let base = segment.base;
        let (sync, started) = cx.plan.started(scope, cx.now.monotonic_us);
        self.sync.start(sync, target, started);
        cx.give_up_at(cx.now.monotonic_us.saturating_add(IO_TIMEOUT_US));
        cx.stats.syncs += 1;
        cx.start(Effect::Sync {
            log: self.id,
            segment: base,
            sync,
            scope,
        });
    }

    /// A sync completed. One that is not known any more is ignored.
    pub(crate) fn synced(
        &mut self,
        sync: SyncId,
        result: Result<(), StorageFault>,
        cx: &mut Context<'_>,
    ) {
        match result {
            Ok(()) => {
                let written = Reach {
                    byte: self.positions.written_byte(),
                    end: self.positions.written(),
                };
                if let Some(started) = self.sync.finish(sync, written) {
                    cx.plan.ended(started, cx.now.monotonic_us);
                }
            }
            Err(fault) => {
                if let Some(started) = self.sync.abandon(sync) {
                    cx.plan.ended(started, cx.now.monotonic_us);
                    self.fence(fault, cx);
                }
            }
        }
    }

    /// The topic's settings changed.
    pub(crate) fn configure(&mut self, config: LogConfig, cx: &mut Context<'_>) {
        let stronger = config.durability > self.config.durability;
        self.config = config;
        if stronger {
            // What was promised weakly becomes durable as well, so that the watermark follows the new rule soon.
            self.sync.want(self.positions.appended().offset);
            cx.plan.refresh(self.id, &mut self.sync);
        }
    }

    /// Time passed: gives up on waiters and on I/O that takes too long.
    pub(crate) fn on_time(&mut self, cx: &mut Context<'_>) {
        let now_us = cx.now.monotonic_us;
        let refusal = Refusal {
            code: ErrorCode::RequestTimedOut,
            detail: RefusalDetail::TimedOut,
        };
        for queue in [&mut self.written_waiters, &mut self.durable_waiters] {
            queue.expire(now_us, |waiter| cx.refuse(waiter.ticket, true, refusal));
            if let Some(deadline_us) = queue.next_deadline_us() {
                cx.give_up_at(deadline_us);
            }
        }
        let started = [
            self.oldest_write_us(),
            self.sync.started_us(),
            self.segments.oldest_work_us(),
        ];
        if let Some(started_us) = started.into_iter().flatten().min()
            && matches!(self.state, LogState::Open | LogState::Truncating)
        {
            let due_us = started_us
                .max(cx.awake_since_us)
                .saturating_add(IO_TIMEOUT_US);
            if now_us >= due_us {
                self.fence(StorageFault::TimedOut, cx);
            } else {
                cx.give_up_at(due_us);
            }
        }
    }

    /// Records the durable end in the ledger, which ends a fence and a truncation.
    pub(crate) fn record_durable(&mut self, cx: &mut Context<'_>) -> RecordNumber {
        let durable = self.sync.durable();
        let segment = self.segments.holding_end(durable.at);
        self.ledger_durable = durable;
        cx.ledger.record(LedgerRecord::Durable {
            partition: self.partition,
            next_offset: durable.offset,
            segment_base: segment.base.0,
            position: segment.bytes_to(durable.at),
            last_append: self.last_append.unwrap_or(TimestampMs(0)),
        })
    }
}
