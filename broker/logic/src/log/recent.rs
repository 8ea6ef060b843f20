//! The exact table of the batches that are in memory, pending or cached.
//!
//! It answers where a batch lies without a look at its bytes. Batches are contiguous in offset and in stream, so each
//! entry's end is the next one's start, and the last one's the appended end.
//!
//! Bounded by the chunks that hold the batches: a chunk's share leaves with it, and the tail cache counts it.

use std::collections::VecDeque;

use tackboard_schema::Offset;

use super::position::{Position, StreamByte};

/// Names a batch by its place in the count of all batches since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchSequence(pub u64);

/// Memory one entry takes, in bytes.
pub const ENTRY_BYTES: u64 = size_of::<Position>() as u64;

/// Starts of the batches in memory.
#[derive(Clone, Debug, Default)]
pub struct RecentBatches {
    starts: VecDeque<Position>,
    dropped: u64,
}

impl RecentBatches {
    /// The sequence that the next batch gets.
    pub fn next_sequence(&self) -> BatchSequence {
        BatchSequence(self.dropped + self.starts.len() as u64)
    }

    /// A batch begins at `start`.
    pub fn push(&mut self, start: Position) {
        self.starts.push_back(start);
    }

    /// Start of the oldest batch in memory.
    pub fn first(&self) -> Option<Position> {
        self.starts.front().copied()
    }

    /// Start of the batch that holds `offset`, which is not below [`Self::first`].
    pub fn holding(&self, offset: Offset) -> Option<Position> {
        let behind = self.starts.partition_point(|start| start.offset <= offset);
        self.starts.get(behind.checked_sub(1)?).copied()
    }

    /// The last boundary at or before `at`, given that `end` is the boundary behind the last batch.
    pub fn boundary_at_or_before(&self, at: StreamByte, end: Position) -> Option<Position> {
        if end.at <= at {
            return Some(end);
        }
        let behind = self.starts.partition_point(|start| start.at <= at);
        self.starts.get(behind.checked_sub(1)?).copied()
    }

    /// The first boundary behind `at`, given that `end` is the boundary behind the last batch.
    pub fn boundary_behind(&self, at: StreamByte, end: Position) -> Position {
        let behind = self.starts.partition_point(|start| start.at <= at);
        self.starts.get(behind).copied().unwrap_or(end)
    }

    /// Forgets the batches before `sequence`.
    pub fn drop_before(&mut self, sequence: BatchSequence) {
        let count = sequence
            .0
            .saturating_sub(self.dropped)
            .min(self.starts.len() as u64);
        self.starts.drain(..count as usize);
        self.dropped += count;
        if self.starts.is_empty() && self.starts.capacity() > IDLE_ENTRIES_MAX {
            self.starts = VecDeque::new();
        }
    }
}

/// Entries whose memory an idle log may keep.
const IDLE_ENTRIES_MAX: usize = 64;
