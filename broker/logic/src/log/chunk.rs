//! The append buffers of one log: where batches are placed, what may be written from them, what stays as cache.
//!
//! A chunk covers consecutive bytes of one segment, from a block boundary on. While it is open, batches are placed in
//! it; once frozen it never changes, so it can be written from and sent from. A batch lies in one chunk. The partial
//! block at the end of a frozen chunk is copied to the front of the next one (the tail rewrite), which therefore
//! begins with bytes that are not its own.
//!
//! ```text
//!            file_at                                        file_at
//! frozen     |xxxx|own batches ......|tail|     open        |tail|own batches ....|        |
//!            0    own_at        whole()   filled             0    own_at        filled   capacity
//! ```
//!
//! Where little arrives at a time, most of a chunk is room that was never filled. So a cached chunk with no more than
//! [`TRIMMED_BYTES_MAX`] of its own is trimmed to these once its successor has taken the tail: its buffer goes back at
//! once, and the tail cache holds a dozen times as much.
//!
//! Invariants: chunks are in order of the stream and contiguous; only the last may be open; the first `cached` are
//! wholly written and counted in the tail cache; unwritten bytes are never dropped; the last chunk is never trimmed.

use std::collections::VecDeque;

use super::limits::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use super::position::StreamByte;
use super::recent::{BatchSequence, ENTRY_BYTES};
use crate::shard::interface::{BLOCK_BYTES, ChunkId, SegmentBase};

/// A chunk is trimmed if it has at most so many bytes of its own, a quarter of the smallest chunk: they are copied.
pub const TRIMMED_BYTES_MAX: u32 = CHUNK_BYTES_MIN / 4;

/// One append buffer.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// Its name.
    pub id: ChunkId,
    /// The segment it belongs to.
    pub segment: SegmentBase,
    /// The stream at position 0.
    pub origin: StreamByte,
    /// The segment's file at position 0.
    pub file_at: u64,
    /// Its length.
    pub capacity: u32,
    /// Where its own batches begin; a copied tail lies before.
    pub own_at: u32,
    /// Where its own batches end.
    pub filled: u32,
    /// Up to where writes were issued.
    pub issued: u32,
    /// No byte of it changes any more.
    pub frozen: bool,
    /// The first of its own batches.
    pub first_batch: BatchSequence,
    /// How many batches are its own.
    pub batch_count: u32,
    /// It holds nothing but the log's partial tail block, and stays until that block is copied.
    pub pinned: bool,
    /// Only its own batches are held any more.
    pub trimmed: bool,
}

impl Chunk {
    /// End of the whole blocks.
    pub fn whole(&self) -> u32 {
        block_floor(self.filled)
    }

    /// The stream where its own batches begin.
    pub fn own_start(&self) -> StreamByte {
        self.origin.plus(u64::from(self.own_at))
    }

    /// The stream where its own batches end.
    pub fn own_end(&self) -> StreamByte {
        self.origin.plus(u64::from(self.filled))
    }

    /// What it costs the tail cache.
    pub fn cache_cost(&self) -> u64 {
        let held = if self.trimmed {
            self.own_length()
        } else {
            self.capacity
        };
        u64::from(held) + u64::from(self.batch_count) * ENTRY_BYTES
    }

    /// Bytes of its own batches.
    pub fn own_length(&self) -> u32 {
        self.filled - self.own_at
    }
}

/// All chunks of one log.
#[derive(Clone, Debug)]
pub struct Chunks {
    list: VecDeque<Chunk>,
    /// The first so many are in the tail cache.
    cached: usize,
    /// The first so many are trimmed, or are to stay as they are.
    considered: usize,
    /// The first so many have nothing left to issue.
    issued: usize,
    capacity_next: u32,
}

impl Chunks {
    /// No chunks.
    pub(crate) fn new() -> Self {
        Self {
            list: VecDeque::new(),
            cached: 0,
            considered: 0,
            issued: 0,
            capacity_next: CHUNK_BYTES_MIN,
        }
    }

    /// The chunks, in order.
    pub fn list(&self) -> &VecDeque<Chunk> {
        &self.list
    }

    /// The last chunk.
    pub fn last(&self) -> Option<&Chunk> {
        self.list.back()
    }

    /// The last chunk, to place a batch in or to freeze.
    pub fn last_mut(&mut self) -> Option<&mut Chunk> {
        self.list.back_mut()
    }

    /// Puts a new chunk behind the others.
    pub fn push(&mut self, chunk: Chunk) {
        self.list.push_back(chunk);
    }

    /// Capacity for the next chunk, given the bytes that must fit.
    pub fn capacity_for(&self, bytes: u32, tight: bool) -> u32 {
        let adaptive = if tight {
            CHUNK_BYTES_MIN
        } else {
            self.capacity_next
        };
        // Halving what was learnt may leave half a block.
        block_ceil(adaptive.max(bytes))
    }

    /// Learns from a chunk that is frozen because it is full.
    pub fn learn_full(&mut self, capacity: u32) {
        self.capacity_next = (capacity.max(CHUNK_BYTES_MIN) * 2).min(CHUNK_BYTES_MAX);
    }

    /// Learns from a chunk that is frozen to be written.
    pub fn learn_written(&mut self, filled: u32, capacity: u32) {
        if filled < capacity / 4 {
            self.capacity_next = block_floor(self.capacity_next / 2).max(CHUNK_BYTES_MIN);
        }
    }

    /// How many chunks are in the tail cache.
    pub fn cached(&self) -> usize {
        self.cached
    }

    /// The next chunk becomes part of the tail cache if it is wholly written.
    pub fn cache_next(&mut self, written: StreamByte) -> Option<Chunk> {
        let chunk = *self.list.get(self.cached)?;
        let complete = chunk.frozen && chunk.own_end() <= written;
        complete.then(|| {
            self.cached += 1;
            chunk
        })
    }

    /// Trims the next cached chunk that is worth it, and says which.
    pub fn trim_next(&mut self) -> Option<Chunk> {
        // The last one's partial block is still to be copied.
        let end = self.cached.min(self.list.len().saturating_sub(1));
        while self.considered < end {
            let chunk = &mut self.list[self.considered];
            self.considered += 1;
            if !chunk.pinned && chunk.own_length() <= TRIMMED_BYTES_MAX {
                chunk.trimmed = true;
                return Some(*chunk);
            }
        }
        None
    }

    /// Takes the oldest chunk out.
    pub fn pop_front(&mut self) -> Option<Chunk> {
        let chunk = self.list.pop_front()?;
        self.cached = self.cached.saturating_sub(1);
        self.considered = self.considered.saturating_sub(1);
        self.issued = self.issued.saturating_sub(1);
        if self.list.is_empty() {
            self.list.shrink_to(4);
        }
        Some(chunk)
    }

    /// Puts the chunk of a partial tail block behind the others; nothing of it is to be written.
    pub fn push_pinned(&mut self, chunk: Chunk) {
        self.list.push_back(chunk);
        self.cached = self.list.len();
        self.issued = self.list.len();
    }

    /// Takes the chunk before the last out, if it is pinned: its tail was copied.
    pub fn take_pinned_before_last(&mut self) -> Option<Chunk> {
        let index = self.list.len().checked_sub(2)?;
        if !self.list[index].pinned {
            return None;
        }
        self.cached -= 1;
        self.considered = self.considered.min(index);
        self.issued = self.issued.min(index);
        self.list.remove(index)
    }

    /// Index of the first chunk that has bytes left to issue.
    pub fn first_pending(&mut self) -> Option<usize> {
        while self.issued < self.list.len() {
            if self.list[self.issued].issued < self.issuable_end(self.issued) {
                return Some(self.issued);
            }
            self.issued += 1;
        }
        // The last chunk may be appended to, or its tail is still to be written.
        self.issued = self.list.len().saturating_sub(1);
        None
    }

    /// Up to where bytes of a chunk are its to write: the partial block goes to its successor in the same segment.
    pub fn issuable_end(&self, index: usize) -> u32 {
        let chunk = &self.list[index];
        match self.list.get(index + 1) {
            Some(next) if next.segment == chunk.segment => chunk.whole(),
            _ => chunk.filled,
        }
    }

    /// Whether a chunk is the log's last one, and so may still get a successor that takes its tail.
    pub fn is_last(&self, index: usize) -> bool {
        index + 1 == self.list.len()
    }

    /// A chunk by index.
    pub fn get_mut(&mut self, index: usize) -> &mut Chunk {
        &mut self.list[index]
    }

    /// Whole blocks that are not issued yet, in bytes.
    pub fn pending_whole_bytes(&self) -> u64 {
        let pending = self.list.iter().skip(self.issued);
        pending
            .map(|chunk| u64::from(chunk.whole().saturating_sub(block_floor(chunk.issued))))
            .sum()
    }

    /// Forgets which writes behind `written` were issued, so that they are issued again.
    pub fn rewind(&mut self, written: StreamByte) {
        for chunk in self.list.iter_mut().skip(self.cached) {
            let done = written.0.saturating_sub(chunk.origin.0);
            chunk.issued = chunk.issued.min(done.min(u64::from(chunk.filled)) as u32);
        }
        self.issued = self.cached;
    }

    /// Index of the chunk whose own batches include the byte at `at`.
    pub fn holding(&self, at: StreamByte) -> Option<usize> {
        let behind = self.list.partition_point(|chunk| chunk.own_start() <= at);
        let index = behind.checked_sub(1)?;
        (at < self.list[index].own_end()).then_some(index)
    }
}

/// Rounds down to a block boundary.
pub fn block_floor(bytes: u32) -> u32 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

/// Rounds up to a block boundary.
pub fn block_ceil(bytes: u32) -> u32 {
    bytes.next_multiple_of(BLOCK_BYTES)
}
