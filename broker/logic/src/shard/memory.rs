//! Names of chunks, and what chunks may cost: the append budget and the tail cache.
//!
//! A chunk counts against the append budget until it is wholly written, then against the tail cache, whose oldest
//! chunk leaves first; how much of its budget it uses says [`super::tail_depth`]. Chunks that hold nothing but a log's
//! partial tail block are pinned: one block a log.

use std::collections::VecDeque;

use super::tail_depth::TailDepth;
use crate::log::chunk::Chunk;
use crate::shard::interface::{ChunkId, Effect, Effects, LogId, ShardConfig};

/// Appends are refused once so many times the append budget is held: what was read from sockets before the driver
/// stopped reading still fits.
pub const APPEND_BUDGET_HARD_FACTOR: u64 = 2;

/// Chunks that leave the tail cache in one step while it is within its budget but larger than readers need.
const SHRINK_CHUNKS_PER_STEP_MAX: u32 = 16;

/// All chunks of one core.
#[derive(Debug)]
pub struct ChunkMemory {
    append_bytes_max: u64,
    /// How much of the tail cache's budget is used.
    pub depth: TailDepth,
    append_bytes: u64,
    cache_bytes: u64,
    pinned_bytes: u64,
    /// One entry per chunk in the tail cache, in the order in which they were written.
    order: VecDeque<LogId>,
    /// Generation of each slot, and whether it is taken.
    slots: Vec<(u32, bool)>,
    free: Vec<u32>,
}

impl ChunkMemory {
    /// With the budgets of `config`.
    pub fn new(config: &ShardConfig) -> Self {
        Self {
            append_bytes_max: config.append_bytes,
            depth: TailDepth::new(config.tail_cache_least_bytes, config.tail_cache_bytes),
            append_bytes: 0,
            cache_bytes: 0,
            pinned_bytes: 0,
            order: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A chunk to append to.
    pub fn allocate(&mut self, capacity: u32, out: &mut Effects) -> ChunkId {
        self.append_bytes += u64::from(capacity);
        self.take_slot(capacity, out)
    }

    /// A chunk for a partial tail block.
    pub fn allocate_pinned(&mut self, capacity: u32, out: &mut Effects) -> ChunkId {
        self.pinned_bytes += u64::from(capacity);
        self.take_slot(capacity, out)
    }

    /// A chunk of `log` is wholly written and joins the tail cache.
    pub fn cache(&mut self, log: LogId, chunk: &Chunk) {
        self.append_bytes -= u64::from(chunk.capacity);
        self.cache_bytes += chunk.cache_cost();
        self.depth.joined(chunk.cache_cost());
        self.order.push_back(log);
    }

    /// A chunk in the tail cache was trimmed.
    pub fn trimmed(&mut self, chunk: &Chunk, out: &mut Effects) {
        let saved = u64::from(chunk.capacity - chunk.own_length());
        self.cache_bytes -= saved;
        self.depth.shed(saved);
        out.push(Effect::TrimChunk {
            chunk: chunk.id,
            at: chunk.own_at,
            length: chunk.own_length(),
        });
    }

    /// A chunk that had joined the tail cache goes.
    pub fn release_cached(&mut self, chunk: &Chunk, out: &mut Effects) {
        self.cache_bytes -= chunk.cache_cost();
        self.free_slot(chunk.id, out);
    }

    /// A chunk that was never wholly written goes, with its log.
    pub fn release_unwritten(&mut self, chunk: &Chunk, out: &mut Effects) {
        self.append_bytes -= u64::from(chunk.capacity);
        self.free_slot(chunk.id, out);
    }

    /// A pinned chunk goes.
    pub fn release_pinned(&mut self, chunk: &Chunk, out: &mut Effects) {
        self.pinned_bytes -= u64::from(chunk.capacity);
        self.free_slot(chunk.id, out);
    }

    /// The log whose oldest cached chunk is to go next, while the tail cache is over its budget, or larger than it is to
    /// be now and no more than so many chunks have gone in this step.
    pub fn next_to_evict(&mut self, gone: u32) -> Option<LogId> {
        let is_over = self.cache_bytes > self.depth.most();
        let is_deep = self.cache_bytes > self.depth.bytes() && gone < SHRINK_CHUNKS_PER_STEP_MAX;
        if is_over || is_deep {
            self.order.pop_front()
        } else {
            None
        }
    }

    /// Forgets the order of a log whose chunks are gone.
    pub fn forget(&mut self, log: LogId) {
        self.order.retain(|entry| *entry != log);
    }

    /// Whether the append budget has room.
    pub fn has_append_room(&self) -> bool {
        self.append_bytes < self.append_bytes_max
    }

    /// Whether chunks should be small.
    pub fn is_tight(&self) -> bool {
        self.append_bytes >= self.append_bytes_max / 2
    }

    /// Bytes held and allowed, if no more may be appended.
    pub fn over_hard_cap(&self) -> Option<(u64, u64)> {
        let cap = self.append_bytes_max * APPEND_BUDGET_HARD_FACTOR;
        (self.append_bytes >= cap).then_some((self.append_bytes, cap))
    }

    /// Bytes of chunks not wholly written.
    pub fn append_bytes(&self) -> u64 {
        self.append_bytes
    }

    /// Bytes of chunks kept for reading.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_bytes + self.pinned_bytes
    }

    /// Chunks in the tail cache.
    pub fn cached_chunks(&self) -> usize {
        self.order.len()
    }

    /// Whether this name is taken by a chunk.
    pub fn is_live(&self, chunk: ChunkId) -> bool {
        self.slots.get(chunk.slot as usize) == Some(&(chunk.generation, true))
    }

    /// Chunks that exist.
    pub fn live_chunks(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn take_slot(&mut self, capacity: u32, out: &mut Effects) -> ChunkId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, false));
            (self.slots.len() - 1) as u32
        });
        let (generation, taken) = &mut self.slots[slot as usize];
        *taken = true;
        let chunk = ChunkId {
            slot,
            generation: *generation,
        };
        out.push(Effect::AllocateChunk { chunk, capacity });
        chunk
    }

    fn free_slot(&mut self, chunk: ChunkId, out: &mut Effects) {
        let (generation, taken) = &mut self.slots[chunk.slot as usize];
        assert!(
            *taken && *generation == chunk.generation,
            "a chunk is released once"
        );
        *taken = false;
        *generation = generation.wrapping_add(1);
        self.free.push(chunk.slot);
        out.push(Effect::ReleaseChunk { chunk });
    }
}
