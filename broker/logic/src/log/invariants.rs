//! What must hold of one log at any time; the numbers are explained in [`crate::shard::invariants`].

use super::Log;
use super::write::WriteInFlight;
use crate::shard::interface::BLOCK_BYTES;
use crate::shard::memory::ChunkMemory;

impl Log {
    /// # Panics
    ///
    /// If one does not hold.
    pub(crate) fn check_invariants(&self, memory: &ChunkMemory) {
        self.check_positions();
        self.check_segments();
        self.check_chunks(memory);
        self.check_writes();
    }

    fn check_positions(&self) {
        let (appended, written) = (self.positions.appended(), self.positions.written());
        let durable = self.sync.durable();
        let id = self.partition;
        assert!(
            self.log_start <= self.high_watermark.offset,
            "S1: {id}: start above the high watermark"
        );
        assert!(
            self.high_watermark <= appended,
            "S1: {id}: high watermark above the end"
        );
        assert!(
            durable <= written && written <= appended,
            "S1: {id}: positions out of order"
        );
        assert!(
            self.sync.proven_byte() <= self.positions.written_byte(),
            "S2: {id}: unwritten bytes proven"
        );
        assert!(
            self.positions.written_byte() <= self.issued.byte,
            "{id}: written what was never issued"
        );
        assert!(
            self.issued.byte <= appended.at,
            "S9: {id}: issued what has no offset"
        );
        assert!(
            self.ledger_durable <= durable,
            "{id}: the ledger says more than was proven"
        );
    }

    fn check_segments(&self) {
        let id = self.partition;
        let mut segments = self.segments.iter().peekable();
        while let Some(segment) = segments.next() {
            match (segment.end, segments.peek()) {
                (Some(end), Some(next)) => {
                    assert!(
                        end.offset == next.base.0 && end.at == next.start,
                        "{id}: segments do not join"
                    );
                }
                (None, None) => {}
                _ => panic!("{id}: exactly the last segment is active"),
            }
            let durable_here = self.sync.proven_byte() > segment.start;
            assert!(
                segment.created || !durable_here,
                "S10: {id}: bytes durable before their file is"
            );
        }
    }

    fn check_chunks(&self, memory: &ChunkMemory) {
        let id = self.partition;
        let list = self.chunks.list();
        for (index, chunk) in list.iter().enumerate() {
            assert!(
                memory.is_live(chunk.id),
                "{id}: a chunk of the log was released"
            );
            assert!(
                chunk.frozen || index + 1 == list.len(),
                "{id}: an open chunk that is not the last"
            );
            assert!(chunk.own_at <= chunk.filled && chunk.filled <= chunk.capacity);
            assert!(chunk.issued <= chunk.filled && (chunk.frozen || chunk.issued == 0));
            let is_cached = index < self.chunks.cached() && index + 1 < list.len();
            assert!(
                !chunk.trimmed || is_cached && !chunk.pinned,
                "{id}: a trimmed chunk that is to be written or continued"
            );
            assert!(chunk.file_at % u64::from(BLOCK_BYTES) == 0);
            if let Some(next) = list.get(index + 1) {
                assert!(
                    chunk.own_end() == next.own_start(),
                    "{id}: chunks do not join"
                );
            }
        }
        let unwritten = list
            .front()
            .is_none_or(|c| c.own_start() <= self.positions.written_byte());
        assert!(unwritten, "{id}: unwritten bytes were dropped");
        if let Some(last) = self.chunks.last() {
            assert!(
                last.own_end() == self.positions.appended().at,
                "S9: {id}: a batch without a place"
            );
        }
    }

    fn check_writes(&self) {
        let id = self.partition;
        let flying: Vec<&WriteInFlight> = self.writes().filter(|write| write.is_flying()).collect();
        for (index, write) in flying.iter().enumerate() {
            let others = &flying[index + 1..];
            let apart = others.iter().all(|other| !write.shares_block_with(other));
            assert!(apart, "{id}: two writes in flight over one block");
        }
        let mut byte = self.writes().next().map(WriteInFlight::from);
        for write in self.writes() {
            assert!(byte == Some(write.from()), "{id}: writes do not join");
            byte = Some(write.reach().byte);
        }
    }
}
