//! A broker process: its shards and the memory that their driver holds for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use tackboard_logic::shard::Shard;
use tackboard_logic::shard::interface::{ChunkId, Effects, Input, LogId, PayloadId};

use super::coordinating::Coordinating;
use super::history::History;
use super::io::Operation;
use crate::check::SpaceView;
use crate::model::Batch;

/// One run of the broker.
pub(super) struct Process {
    pub(super) hosts: Vec<Host>,
    /// Open logs by partition: on which core, under which name.
    pub(super) open: BTreeMap<u32, (usize, LogId)>,
    /// Partitions that were fenced or couldn't be opened.
    pub(super) out_of_service: BTreeSet<u32>,
    /// Coordinators of groups by partition.
    pub(super) coordinators: BTreeMap<u32, Coordinating>,
    pub(super) operations: BTreeMap<u64, Operation>,
    pub(super) next_operation: u64,
    /// The generation of the ledgers that it writes.
    pub(super) generation: u64,
    pub(super) shutting_down: bool,
    pub(super) drained: usize,
    /// A full disk left nothing unwritten on any of them.
    pub(super) drained_clean: bool,
    /// A shard asked for the process to stop.
    pub(super) aborted: Option<&'static str>,
}

/// What one core runs.
pub(super) struct Host {
    pub(super) shard: Shard,
    pub(super) effects: Effects,
    pub(super) inbox: VecDeque<Input>,
    pub(super) turn_scheduled: bool,
    /// When the next tick that counts is due.
    pub(super) next_tick_us: u64,
    pub(super) chunks: Vec<Option<Chunk>>,
    pub(super) payloads: Vec<Option<Payload>>,
    pub(super) partitions: BTreeMap<LogId, u32>,
    pub(super) history: History,
    /// When it last placed a batch.
    pub(super) appended_us: Option<u64>,
}

/// A batch that was received and is not yet placed.
pub(super) struct Payload {
    pub(super) partition: u32,
    pub(super) batch: Rc<Batch>,
}

/// An aligned append buffer.
pub(super) struct Chunk {
    generation: u32,
    bytes: Rc<Vec<u8>>,
    /// Filled so far; the rest may be anything.
    frozen: bool,
}

impl Process {
    pub(super) fn writes_ledger(&self) -> bool {
        self.operations.values().any(Operation::is_of_ledger)
    }
}

impl Host {
    pub(super) fn new(shard: Shard, effects: Effects) -> Self {
        Self {
            shard,
            effects,
            inbox: VecDeque::new(),
            turn_scheduled: false,
            next_tick_us: u64::MAX,
            chunks: Vec::new(),
            payloads: Vec::new(),
            partitions: BTreeMap::new(),
            history: History::default(),
            appended_us: None,
        }
    }

    /// How it stands with its budget.
    pub(super) fn space_view(&self) -> SpaceView {
        SpaceView {
            own: self.shard.log_space(),
            dropped: self.shard.stats().budget_dropped_bytes,
        }
    }

    pub(super) fn receive(&mut self, payload: Payload) -> PayloadId {
        let free = self.payloads.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.payloads.push(None);
            self.payloads.len() - 1
        });
        self.payloads[slot] = Some(payload);
        PayloadId(slot as u32)
    }

    pub(super) fn take_payload(&mut self, id: PayloadId) -> Payload {
        let slot = self.payloads.get_mut(id.0 as usize).and_then(Option::take);
        slot.expect("a payload is placed or discarded once")
    }

    pub(super) fn allocate(&mut self, id: ChunkId, capacity: u32, mut bytes: Vec<u8>) {
        assert!(
            capacity > 0 && capacity.is_multiple_of(4_096),
            "chunk of {capacity} bytes"
        );
        let slot = id.slot as usize;
        assert!(slot < 100_000, "chunk slots are dense");
        if self.chunks.len() <= slot {
            self.chunks.resize_with(slot + 1, || None);
        }
        assert!(
            self.chunks[slot].is_none(),
            "{id:?} is allocated while its slot is in use"
        );
        bytes.resize(capacity as usize, 0xa5);
        self.chunks[slot] = Some(Chunk {
            generation: id.generation,
            bytes: Rc::new(bytes),
            frozen: false,
        });
    }

    /// Gives the buffer back if nobody reads it any more.
    pub(super) fn release(&mut self, id: ChunkId) -> Option<Vec<u8>> {
        self.chunk(id);
        let chunk = self.chunks[id.slot as usize].take()?;
        Rc::try_unwrap(chunk.bytes).ok()
    }

    pub(super) fn chunk(&mut self, id: ChunkId) -> &mut Chunk {
        let chunk = self
            .chunks
            .get_mut(id.slot as usize)
            .and_then(Option::as_mut);
        let chunk = chunk.filter(|chunk| chunk.generation == id.generation);
        chunk.unwrap_or_else(|| panic!("{id:?} is not allocated"))
    }

    /// Copies the beginning of a chunk's successor out of it.
    pub(super) fn copy_tail(&mut self, from: ChunkId, from_at: u32, length: u32, to: ChunkId) {
        assert!(length < 4_096, "a tail of {length} bytes");
        let tail = self.chunk(from).frozen_slice(from_at, length).to_vec();
        self.chunk(to).fill(0, &tail);
    }
}

impl Chunk {
    pub(super) fn fill(&mut self, at: u32, bytes: &[u8]) {
        assert!(!self.frozen, "a frozen chunk is changed");
        let own = Rc::get_mut(&mut self.bytes).expect("nobody reads a chunk before it is frozen");
        own[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn freeze(&mut self, length: u32) {
        let end = length.next_multiple_of(4_096) as usize;
        let own = Rc::get_mut(&mut self.bytes).expect("nobody reads a chunk before it is frozen");
        own[length as usize..end].fill(0);
        self.frozen = true;
    }

    /// Whoever asks for anything else from here on finds what was never written.
    pub(super) fn trim(&mut self, at: u32, length: u32) {
        let kept = self.frozen_slice(at, length);
        let mut bytes = vec![0xa5; self.bytes.len()];
        bytes[at as usize..(at + length) as usize].copy_from_slice(kept);
        self.bytes = Rc::new(bytes);
    }

    pub(super) fn frozen_slice(&self, at: u32, length: u32) -> &[u8] {
        assert!(self.frozen, "a chunk is read before it is frozen");
        &self.bytes[at as usize..(at + length) as usize]
    }

    /// The buffer itself, for a write.
    pub(super) fn frozen_buffer(&self) -> Rc<Vec<u8>> {
        assert!(self.frozen, "a chunk is written before it is frozen");
        self.bytes.clone()
    }
}
