//! One assigned partition: where it is read, what was fetched ahead, what went wrong.
//!
//! Owns: the position, the fetched batches that were not handed out yet.
//! Not here: requests (`machine`), reading of answers (`answers`).
//!
//! Invariants:
//! 1. `position` is the first offset that was not handed out, `fetch_offset` the first that was not fetched; what lies
//!    between them is in `chunks`, without a hole.
//! 2. An answer to a request of an earlier generation changes nothing: a seek made it meaningless.

use std::collections::VecDeque;
use std::sync::Arc;

use tackboard_schema::{Offset, PartitionIndex};

use crate::admin::OffsetQuery;
use crate::consumed::{Chunk, Start};
use crate::error::Error;
use crate::protocol::time::Now;

/// Where the next fetch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A broker has to be asked.
    Unknown(OffsetQuery),
    /// At this offset.
    At(Offset),
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) topic: Arc<str>,
    pub(super) partition: PartitionIndex,
    pub(super) generation: u64,
    pub(super) place: Place,
    /// A request for it is in flight.
    pub(super) is_asked: bool,
    pub(super) is_paused: bool,
    chunks: VecDeque<Chunk>,
    buffered_bytes: usize,
    position: Option<Offset>,
    pub(super) high_watermark: Option<Offset>,
    /// To be told once everything before it was handed out. Nothing is fetched until then.
    pub(super) fault: Option<Error>,
    pub(super) failures: u32,
    pub(super) blocked_until: Now,
    pub(super) metadata_needed: u64,
}

impl Lane {
    pub(super) fn new(
        topic: Arc<str>,
        partition: PartitionIndex,
        start: Start,
        generation: u64,
    ) -> Self {
        let mut lane = Self {
            topic,
            partition,
            generation,
            place: Place::Unknown(OffsetQuery::Latest),
            is_asked: false,
            is_paused: false,
            chunks: VecDeque::new(),
            buffered_bytes: 0,
            position: None,
            high_watermark: None,
            fault: None,
            failures: 0,
            blocked_until: Now::default(),
            metadata_needed: 0,
        };
        lane.seek(start, generation);
        lane
    }

    /// Drops what was fetched and begins elsewhere.
    pub(super) fn seek(&mut self, start: Start, generation: u64) {
        self.generation = generation;
        self.chunks.clear();
        self.buffered_bytes = 0;
        self.is_asked = false;
        self.fault = None;
        self.blocked_until = Now::default();
        (self.place, self.position) = match start {
            Start::Offset(offset) => (Place::At(offset), Some(offset)),
            Start::Earliest => (Place::Unknown(OffsetQuery::Earliest), None),
            Start::Latest => (Place::Unknown(OffsetQuery::Latest), None),
            Start::Timestamp(timestamp) => (Place::Unknown(OffsetQuery::At(timestamp)), None),
        };
    }

    /// Nobody reads it any longer.
    pub(super) fn vacate(&mut self, generation: u64) {
        self.seek(Start::Latest, generation);
        self.is_paused = true;
    }

    /// A broker has told where to begin.
    pub(super) fn found(&mut self, offset: Offset) {
        self.place = Place::At(offset);
        self.position.get_or_insert(offset);
        self.failures = 0;
    }

    /// The position is outside the log: begins where the broker says.
    pub(super) fn reset(&mut self, query: OffsetQuery) {
        self.place = Place::Unknown(query);
        if self.chunks.is_empty() {
            self.position = None;
        }
    }

    /// Whether a request for it may be sent now, as far as it is concerned.
    pub(super) fn may_ask(&self, now: Now, buffer_bytes_max: usize) -> bool {
        !self.is_asked
            && !self.is_paused
            && self.fault.is_none()
            && self.blocked_until <= now
            && !self.is_full(buffer_bytes_max)
    }

    /// Whether as much was fetched ahead as may be.
    pub(super) fn is_full(&self, buffer_bytes_max: usize) -> bool {
        self.buffered_bytes >= buffer_bytes_max
    }

    pub(super) fn position(&self) -> Option<Offset> {
        self.position
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffered_bytes
    }

    /// Keeps what was fetched.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.place = Place::At(chunk.next_offset);
        self.buffered_bytes += chunk.batches.len();
        self.failures = 0;
        self.chunks.push_back(chunk);
    }

    /// Whether [`Self::pop`] has something.
    pub(super) fn has_chunks(&self) -> bool {
        !self.is_paused && !self.chunks.is_empty()
    }

    /// Hands out the next stretch of batches.
    pub(super) fn pop(&mut self) -> Option<Chunk> {
        if self.is_paused {
            return None;
        }
        let chunk = self.chunks.pop_front()?;
        self.buffered_bytes -= chunk.batches.len();
        self.position = Some(chunk.next_offset);
        Some(chunk)
    }

    /// Takes back what was handed out last, or the end of it.
    pub(super) fn give_back(&mut self, chunk: Chunk) {
        self.buffered_bytes += chunk.batches.len();
        self.position = Some(chunk.first_offset);
        self.chunks.push_front(chunk);
    }

    /// The fault that is next in order, if everything before it was handed out.
    pub(super) fn take_fault(&mut self) -> Option<Error> {
        match self.chunks.is_empty() {
            true => self.fault.take(),
            false => None,
        }
    }
}
