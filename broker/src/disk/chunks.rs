//! The aligned append buffers of one core, by the ids that logic gave them.
//!
//! A chunk is open (bytes are placed into it), then frozen (immutable: written, and served from as the tail cache), then
//! released. Readers that hold a frozen chunk keep its memory alive past the release.

use std::{ops::Range, rc::Rc};

use glommio::{allocate_dma_buffer, io::DmaBuffer};
use tackboard_logic::shard::interface::ChunkId;
use tackboard_schema::{LeaderEpoch, Offset, record_batch::stamp};

use super::BLOCK;

enum State {
    Open(DmaBuffer),
    Frozen(Rc<DmaBuffer>),
}

struct Chunk {
    generation: u32,
    capacity: u32,
    state: State,
}

/// All chunks of a core.
#[derive(Default)]
pub struct Chunks {
    slots: Vec<Option<Chunk>>,
    bytes: u64,
}

impl Chunks {
    /// Bytes held by chunks that were not released.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes an open chunk of `capacity` bytes.
    pub fn allocate(&mut self, id: ChunkId, capacity: u32) {
        let slot = id.slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        assert!(
            self.slots[slot].is_none(),
            "logic reuses a slot only after its release"
        );
        self.bytes += u64::from(capacity);
        self.slots[slot] = Some(Chunk {
            generation: id.generation,
            capacity,
            state: State::Open(allocate_dma_buffer(capacity as usize)),
        });
    }

    fn chunk(&mut self, id: ChunkId) -> &mut Chunk {
        let chunk = self.slots[id.slot as usize]
            .as_mut()
            .expect("logic names chunks it allocated");
        assert_eq!(
            chunk.generation, id.generation,
            "a chunk id of an earlier generation"
        );
        chunk
    }

    fn open(&mut self, id: ChunkId) -> &mut [u8] {
        match &mut self.chunk(id).state {
            State::Open(buffer) => buffer.as_bytes_mut(),
            State::Frozen(_) => panic!("bytes placed into a frozen chunk"),
        }
    }

    /// Copies bytes that recovery read into an open chunk.
    pub fn fill(&mut self, id: ChunkId, at: u32, bytes: &[u8]) {
        self.open(id)[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Copies one received batch into an open chunk and stamps what the broker owns of it.
    pub fn place(
        &mut self,
        id: ChunkId,
        at: u32,
        payload: &[u8],
        base_offset: Offset,
        epoch: LeaderEpoch,
    ) {
        let target = &mut self.open(id)[at as usize..][..payload.len()];
        target.copy_from_slice(payload);
        stamp(target, base_offset, epoch);
    }

    /// Starts `to` with the partial tail block of `from`.
    pub fn copy_tail(&mut self, from: ChunkId, range: Range<usize>, to: ChunkId) {
        let length = range.len();
        let mut block = [0; BLOCK as usize];
        match &self.chunk(from).state {
            State::Open(buffer) => block[..length].copy_from_slice(&buffer.as_bytes()[range]),
            State::Frozen(buffer) => block[..length].copy_from_slice(&buffer.as_bytes()[range]),
        }
        self.open(to)[..length].copy_from_slice(&block[..length]);
    }

    /// Makes a chunk immutable: zeroes the padding of its last block and cuts what was never used.
    pub fn freeze(&mut self, id: ChunkId, length: u32) {
        let chunk = self.chunk(id);
        let placeholder =
            State::Frozen(Rc::new(DmaBuffer::from(glommio::io::ReadResult::default())));
        let State::Open(mut buffer) = std::mem::replace(&mut chunk.state, placeholder) else {
            panic!("a chunk is frozen once");
        };
        let length = length as usize;
        let padded = length.next_multiple_of(BLOCK as usize);
        buffer.as_bytes_mut()[length..padded].fill(0);
        buffer.trim_to_size(padded);
        chunk.state = State::Frozen(Rc::new(buffer));
    }

    /// A frozen chunk's bytes.
    pub fn frozen(&mut self, id: ChunkId) -> Rc<DmaBuffer> {
        match &self.chunk(id).state {
            State::Frozen(buffer) => buffer.clone(),
            State::Open(_) => panic!("an open chunk is neither written nor served"),
        }
    }

    /// Forgets a chunk. Its bytes leave the account even while readers still hold it.
    pub fn release(&mut self, id: ChunkId) {
        let chunk = self.slots[id.slot as usize].take().expect("released once");
        assert_eq!(
            chunk.generation, id.generation,
            "released under its own generation"
        );
        self.bytes -= u64::from(chunk.capacity);
    }
}
