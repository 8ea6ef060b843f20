//! The end of a log whose topic was deleted (S7: only a committed command leads here).

use tackboard_schema::ErrorCode;
use tackboard_schema::storage::ledger::LedgerRecord;

use super::chunk::Chunk;
use super::{Log, LogState};
use crate::shard::context::Context;
use crate::shard::interface::{BLOCK_BYTES, ChunkId, Effect, Refusal, RefusalDetail};

impl Log {
    /// Stops serving. What is in flight is awaited before [`Self::release`].
    pub(crate) fn begin_delete(&mut self, cx: &mut Context<'_>) {
        if self.is_deleting() {
            return;
        }
        self.state = LogState::Deleting;
        self.give_up_truncation(RefusalDetail::Deleted, cx);
        let code = ErrorCode::UnknownTopicOrPartition;
        self.refuse_waiters(
            Refusal {
                code,
                detail: RefusalDetail::Deleted,
            },
            cx,
        );
    }

    /// Nothing is in flight any more: the log goes.
    pub(crate) fn release(&mut self, cx: &mut Context<'_>) {
        self.give_back(cx);
        cx.ledger.record(LedgerRecord::Removed {
            partition: self.partition,
        });
        *cx.ledger_urgent = true;
        cx.out.push(Effect::LogDeleted { log: self.id });
    }

    /// Gives back the memory that the log holds, and its place among the dirty ones.
    pub(super) fn give_back(&mut self, cx: &mut Context<'_>) {
        cx.plan.forget(&mut self.sync);
        cx.memory.forget(self.id);
        *cx.index_bytes -= self.index_bytes() as i64;
        let cached = self.chunks.cached();
        for (index, chunk) in self.chunks.list().iter().enumerate() {
            match chunk {
                chunk if chunk.pinned => cx.memory.release_pinned(chunk, cx.out),
                chunk if index < cached => cx.memory.release_cached(chunk, cx.out),
                chunk => cx.memory.release_unwritten(chunk, cx.out),
            }
        }
    }

    /// The tail cache is over its budget: lets the oldest cached chunk go.
    pub(crate) fn evict_oldest(&mut self, cx: &mut Context<'_>) {
        let oldest = self
            .chunks
            .list()
            .iter()
            .take(self.chunks.cached())
            .find(|c| !c.pinned);
        let Some(chunk) = oldest.copied() else {
            return;
        };
        let is_last = self.chunks.last().is_some_and(|last| last.id == chunk.id);
        let tail_length = chunk.filled - chunk.whole();
        let holds_tail = is_last && tail_length > 0 && chunk.segment == self.segments.active().base;
        self.chunks.pop_front();
        if holds_tail {
            self.pin_tail(&chunk, cx);
        }
        cx.memory.release_cached(&chunk, cx.out);
        let next = self.chunks.list().front().map(|next| next.first_batch);
        self.recent
            .drop_before(next.unwrap_or(self.recent.next_sequence()));
    }

    /// Copies the partial tail block out of a chunk that goes, so that the next append can begin with it.
    fn pin_tail(&mut self, chunk: &Chunk, cx: &mut Context<'_>) {
        let length = chunk.filled - chunk.whole();
        let to = cx.memory.allocate_pinned(BLOCK_BYTES, cx.out);
        cx.out.push(Effect::CopyTail {
            from: chunk.id,
            from_at: chunk.whole(),
            length,
            to,
        });
        self.push_pinned(to, length, cx);
    }

    /// `chunk` holds nothing but the log's partial tail block, `length` bytes, and is not to be written.
    pub(super) fn push_pinned(&mut self, chunk: ChunkId, length: u32, cx: &mut Context<'_>) {
        cx.out.push(Effect::Freeze { chunk, length });
        let active = self.segments.active();
        let file_at = active.bytes_to(self.positions.appended().at) - u64::from(length);
        self.chunks.push_pinned(Chunk {
            id: chunk,
            segment: active.base,
            origin: active.start.plus(file_at),
            file_at,
            capacity: BLOCK_BYTES,
            own_at: length,
            filled: length,
            issued: length,
            frozen: true,
            first_batch: self.recent.next_sequence(),
            batch_count: 0,
            pinned: true,
            trimmed: false,
        });
    }
}
