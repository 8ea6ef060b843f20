//! The aligned append buffers of one core, by the ids that logic gave them.
//!
//! A chunk is open (bytes are placed into it), then frozen (immutable: written, and served from as the tail cache), then
//! released. Readers that hold a frozen chunk keep its memory alive past the release.
//!
//! The kernel is only ever given whole buffers, and the write of a frozen chunk often ends at its last whole block: the
//! partial block behind it goes out with the next chunk. So the first write decides where the buffer is cut, and what
//! lies behind the cut, less than a block, is kept beside it.

use std::{ops::Range, rc::Rc};

use bytes::{Bytes, BytesMut};
use glommio::{allocate_dma_buffer, io::DmaBuffer};
use tackboard_logic::shard::interface::ChunkId;
use tackboard_schema::{LeaderEpoch, Offset, record_batch::stamp};

use super::BLOCK;

enum State {
    Open(DmaBuffer),
    /// Frozen, and not written yet. The second is where its bytes end.
    Cooling(DmaBuffer, usize),
    Frozen(Frozen),
    /// Wholly written, and cut to the bytes that are still asked for. The first is where they begin.
    Trimmed(usize, Bytes),
    /// While a state is replaced.
    Moving,
}

/// An immutable chunk.
struct Frozen {
    buffer: Rc<DmaBuffer>,
    /// What lies behind the buffer's end; empty unless the buffer was cut.
    rest: Bytes,
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

/// Part of a frozen chunk, to be sent from where it lies.
pub enum Part {
    /// In its buffer.
    Buffer(Rc<DmaBuffer>, Range<usize>),
    /// Behind the cut, or in a chunk that was trimmed.
    Rest(Bytes),
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
            _ => panic!("bytes placed into a frozen chunk"),
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
        self.chunk(from).copy(range, &mut block[..length]);
        self.open(to)[..length].copy_from_slice(&block[..length]);
    }

    /// Makes a chunk immutable at `length` bytes: zeroes the padding of its last block.
    pub fn freeze(&mut self, id: ChunkId, length: u32) {
        let chunk = self.chunk(id);
        let State::Open(mut buffer) = std::mem::replace(&mut chunk.state, State::Moving) else {
            panic!("a chunk is frozen once");
        };
        let length = length as usize;
        let padded = length.next_multiple_of(BLOCK as usize);
        buffer.as_bytes_mut()[length..padded].fill(0);
        buffer.trim_to_size(padded);
        chunk.state = State::Cooling(buffer, length);
    }

    /// The buffer to write for `length` bytes at `at`. Only the first write of a chunk costs nothing; one that starts
    /// behind it is copied (the tail of a segment that ended, or a batch beyond the size of one write).
    pub fn to_write(&mut self, id: ChunkId, at: u32, length: u32) -> Rc<DmaBuffer> {
        let (at, length) = (at as usize, length as usize);
        let chunk = self.chunk(id);
        let frozen = chunk.frozen(if at == 0 { length } else { usize::MAX });
        if at == 0 && length == frozen.buffer.len() {
            return frozen.buffer.clone();
        }
        let mut buffer = allocate_dma_buffer(length);
        buffer.as_bytes_mut().fill(0);
        chunk.copy(at..at + length, buffer.as_bytes_mut());
        Rc::new(buffer)
    }

    /// Bytes of a frozen chunk, in one part or two.
    pub fn parts(&mut self, id: ChunkId, range: Range<usize>, mut give: impl FnMut(Part)) {
        let chunk = self.chunk(id);
        if let State::Trimmed(from, bytes) = &chunk.state {
            give(Part::Rest(
                bytes.slice(range.start - from..range.end - from),
            ));
            return;
        }
        let frozen = chunk.frozen(usize::MAX);
        let cut = frozen.buffer.len();
        if range.start < cut {
            let inside = range.start..range.end.min(cut);
            give(Part::Buffer(frozen.buffer.clone(), inside));
        }
        if range.end > cut {
            let behind = range.start.max(cut) - cut..range.end - cut;
            give(Part::Rest(frozen.rest.slice(behind)));
        }
    }

    /// Keeps only `range` of a frozen chunk, in memory of that length. Readers that hold its buffer go on with it.
    pub fn trim(&mut self, id: ChunkId, range: Range<usize>) {
        let chunk = self.chunk(id);
        let mut kept = BytesMut::zeroed(range.len());
        chunk.copy(range.clone(), &mut kept);
        chunk.state = State::Trimmed(range.start, kept.freeze());
        let before = std::mem::replace(&mut chunk.capacity, range.len() as u32);
        self.bytes -= u64::from(before) - range.len() as u64;
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

impl Chunk {
    /// The chunk as frozen; if it is not written yet, its buffer is cut at `cut` bytes.
    fn frozen(&mut self, cut: usize) -> &Frozen {
        if let State::Cooling(..) = self.state {
            let State::Cooling(mut buffer, length) =
                std::mem::replace(&mut self.state, State::Moving)
            else {
                unreachable!("just seen");
            };
            let mut rest = Bytes::new();
            if cut < length {
                rest = Bytes::copy_from_slice(&buffer.as_bytes()[cut..length]);
                buffer.trim_to_size(cut);
            }
            self.state = State::Frozen(Frozen {
                buffer: Rc::new(buffer),
                rest,
            });
        }
        match &self.state {
            State::Frozen(frozen) => frozen,
            _ => panic!("an open chunk is neither written nor served"),
        }
    }

    /// Copies what it holds of `range`; `into` keeps its bytes where it holds none.
    fn copy(&self, range: Range<usize>, into: &mut [u8]) {
        let (buffer, rest) = match &self.state {
            State::Open(buffer) | State::Cooling(buffer, _) => (buffer, &[][..]),
            State::Frozen(frozen) => (&*frozen.buffer, &frozen.rest[..]),
            State::Trimmed(..) => panic!("a trimmed chunk is only served from"),
            State::Moving => unreachable!("states are replaced within one call"),
        };
        let bytes = buffer.as_bytes();
        let cut = bytes.len();
        let inside = range.start.min(cut)..range.end.min(cut);
        let split = inside.len();
        into[..split].copy_from_slice(&bytes[inside]);
        let behind = range.start.max(cut) - cut..(range.end.max(cut) - cut).min(rest.len());
        into[split..split + behind.len()].copy_from_slice(&rest[behind]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ChunkId = ChunkId {
        slot: 0,
        generation: 0,
    };

    fn on_executor(test: impl FnOnce() + Send + 'static) {
        let executor = glommio::LocalExecutorBuilder::default();
        executor.spawn(|| async { test() }).unwrap().join().unwrap();
    }

    fn numbered(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8 + 1).collect()
    }

    fn all_parts(chunks: &mut Chunks, range: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        chunks.parts(ID, range, |part| match part {
            Part::Buffer(buffer, range) => bytes.extend_from_slice(&buffer.as_bytes()[range]),
            Part::Rest(rest) => bytes.extend_from_slice(&rest),
        });
        bytes
    }

    #[test]
    fn a_write_of_whole_blocks_cuts_the_buffer_and_keeps_the_rest() {
        on_executor(|| {
            let mut chunks = Chunks::default();
            let content = numbered(5000);
            chunks.allocate(ID, 16384);
            chunks.fill(ID, 0, &content);
            chunks.freeze(ID, 5000);
            let written = chunks.to_write(ID, 0, 4096);
            assert_eq!(written.as_bytes(), &content[..4096]);
            assert_eq!(all_parts(&mut chunks, 10..5000), &content[10..]);
            assert_eq!(all_parts(&mut chunks, 4100..4200), &content[4100..4200]);
            let tail = chunks.to_write(ID, 4096, 4096);
            assert_eq!(&tail.as_bytes()[..904], &content[4096..]);
            assert!(tail.as_bytes()[904..].iter().all(|byte| *byte == 0));
            let next = ChunkId {
                slot: 1,
                generation: 0,
            };
            chunks.allocate(next, 4096);
            chunks.copy_tail(ID, 4096..5000, next);
            chunks.freeze(next, 904);
            assert_eq!(
                &chunks.to_write(next, 0, 4096).as_bytes()[..904],
                &content[4096..]
            );
            assert_eq!(chunks.bytes(), 16384 + 4096);
            chunks.release(ID);
            chunks.release(next);
            assert_eq!(chunks.bytes(), 0);
        });
    }

    #[test]
    fn a_trimmed_chunk_keeps_its_own_bytes_where_they_were_and_gives_back_the_rest() {
        on_executor(|| {
            let mut chunks = Chunks::default();
            let content = numbered(5000);
            chunks.allocate(ID, 16384);
            chunks.fill(ID, 0, &content);
            chunks.freeze(ID, 5000);
            let _written = chunks.to_write(ID, 0, 4096);
            let mut held = Vec::new();
            chunks.parts(ID, 3000..5000, |part| held.push(part));
            chunks.trim(ID, 3000..5000);
            assert_eq!(chunks.bytes(), 2000);
            assert_eq!(all_parts(&mut chunks, 3000..5000), &content[3000..]);
            assert_eq!(all_parts(&mut chunks, 4000..4200), &content[4000..4200]);
            match &held[0] {
                Part::Buffer(buffer, range) => {
                    assert_eq!(&buffer.as_bytes()[range.clone()], &content[3000..4096]);
                }
                Part::Rest(_) => panic!("before it was trimmed it was served from its buffer"),
            }
            chunks.release(ID);
            assert_eq!(chunks.bytes(), 0);
        });
    }

    #[test]
    fn a_padded_write_goes_out_as_it_lies_with_zeros_behind() {
        on_executor(|| {
            let mut chunks = Chunks::default();
            chunks.allocate(ID, 16384);
            chunks.fill(ID, 0, &[0xff; 16384]);
            chunks.freeze(ID, 5000);
            let written = chunks.to_write(ID, 0, 8192);
            assert_eq!(written.as_bytes()[..5000], [0xff; 5000]);
            assert!(written.as_bytes()[5000..].iter().all(|byte| *byte == 0));
        });
    }
}
