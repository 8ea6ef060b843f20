//! The stretches in which history is read, so that readers can share what was read once.
//!
//! A grid of equal parts would cut batches in two. So a stretch begins at the first entry of the sparse index at or
//! behind a multiple of [`STRETCH_BYTES`], and ends where the next one begins: always between two batches, and the same
//! for every reader. When an index is thinned out stretches grow, and those read before are not found any more.
//!
//! Only whole stretches below the high watermark count: what they hold never changes. The rest at the end of a log is
//! read as it is asked for.

use tackboard_schema::LeaderEpoch;

use super::Log;
use super::index::SparseIndex;
use super::position::StreamByte;
use crate::shard::interface::{BLOCK_BYTES, DiskRead, LogId, SegmentBase};

/// About what a stretch holds, in bytes: more where no batch begins for a while. Longer reads are hardly faster.
pub const STRETCH_BYTES: u64 = 1 << 20;

/// Most stretches that one entry of a fetch is answered from.
pub const STRETCHES_PER_READ_MAX: usize = 16;

/// Whole batches of one segment that are read, and kept, together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    /// Of which log.
    pub log: LogId,
    /// The epoch in which it was named: it rises when the log is cut.
    pub leader_epoch: LeaderEpoch,
    /// Where it begins in the log's stream.
    pub start: StreamByte,
    /// Bytes.
    pub length: u32,
    /// In which segment it lies.
    pub segment: SegmentBase,
    /// Where it begins in that segment's file.
    pub file_at: u64,
}

impl Stretch {
    /// Where it ends in the log's stream.
    pub fn end(&self) -> StreamByte {
        self.start.plus(u64::from(self.length))
    }

    /// Bytes that reading it takes: whole blocks of the file.
    pub fn block_bytes(&self) -> u64 {
        block_bytes(self.file_at, self.length)
    }
}

/// Bytes of the whole blocks that hold `length` bytes from `file_at` on.
pub fn block_bytes(file_at: u64, length: u32) -> u64 {
    let block = u64::from(BLOCK_BYTES);
    (file_at % block + u64::from(length)).next_multiple_of(block)
}

impl Log {
    /// The stretch that holds the byte behind `at`, or begins there; `None` if it is not whole yet, or not on disk.
    pub(crate) fn stretch_at(&self, at: StreamByte) -> Option<Stretch> {
        if self.is_deleting() || self.is_truncating() || at < self.segments.oldest().start {
            return None;
        }
        let segment = self.segments.get(self.segments.behind(at))?;
        let file_at = u32::try_from(segment.bytes_to(at)).ok()?;
        let (from, to) = around(&segment.index, file_at);
        let to = match to {
            Some(to) => u64::from(to),
            None => segment.bytes_to(segment.end?.at),
        };
        let start = segment.start.plus(u64::from(from));
        let end = segment.start.plus(to);
        (end <= self.high_watermark.at && at < end).then(|| Stretch {
            log: self.id,
            leader_epoch: self.leader_epoch,
            start,
            length: (to - u64::from(from)) as u32,
            segment: segment.base,
            file_at: u64::from(from),
        })
    }

    /// The stretches that hold what `read` names, in order and without a gap, as far as they are whole.
    pub(crate) fn stretches(&self, read: &DiskRead) -> Vec<Stretch> {
        let Some(segment) = self.segments.find(read.segment) else {
            return Vec::new();
        };
        let mut at = segment.start.plus(read.file_at);
        let end = at.plus(u64::from(read.length));
        let mut stretches = Vec::new();
        while at < end && stretches.len() < STRETCHES_PER_READ_MAX {
            let Some(stretch) = self.stretch_at(at) else {
                break;
            };
            at = stretch.end();
            stretches.push(stretch);
        }
        stretches
    }

    /// The stretch behind `at`, unless whoever reads on from there finds it in memory.
    pub(crate) fn stretch_ahead(&self, at: StreamByte) -> Option<Stretch> {
        let cached = self.recent.first().map(|first| first.at);
        let stretch = self.stretch_at(at)?;
        cached
            .is_none_or(|cached| stretch.start < cached)
            .then_some(stretch)
    }
}

/// Where the stretch that holds `file_at` begins, and where the next one does, if the index knows.
fn around(index: &SparseIndex, file_at: u32) -> (u32, Option<u32>) {
    let before = index.at_or_before(file_at);
    let multiple = u64::from(before) / STRETCH_BYTES * STRETCH_BYTES;
    // The segment's start has no entry.
    let from = match multiple {
        0 => 0,
        _ => index.at_or_behind(multiple).unwrap_or(before),
    };
    (from, index.at_or_behind(multiple + STRETCH_BYTES))
}

#[cfg(test)]
mod tests {
    use tackboard_schema::TimestampMs;

    use super::*;

    fn index(entries: &[u32]) -> SparseIndex {
        let mut index = SparseIndex::default();
        for (number, entry) in entries.iter().enumerate() {
            index.note(number as u32 + 1, *entry, TimestampMs(0), 0);
        }
        index
    }

    #[test]
    fn stretches_lie_one_behind_the_other_between_entries_of_the_index() {
        const MIB: u32 = 1 << 20;
        // One batch reaches over two whole multiples.
        let entries = [
            100,
            MIB - 1,
            MIB + 5,
            MIB + 50,
            2 * MIB,
            5 * MIB + 1,
            5 * MIB + 9,
        ];
        let index = index(&entries);
        let borders = [0, MIB + 5, 2 * MIB, 5 * MIB + 1];
        for (at, (from, to)) in [
            (0, (0, Some(borders[1]))),
            (99, (0, Some(borders[1]))),
            (MIB + 4, (0, Some(borders[1]))),
            (MIB + 5, (borders[1], Some(borders[2]))),
            (2 * MIB - 1, (borders[1], Some(borders[2]))),
            (2 * MIB, (borders[2], Some(borders[3]))),
            (5 * MIB, (borders[2], Some(borders[3]))),
            (5 * MIB + 1, (borders[3], None)),
            (9 * MIB, (borders[3], None)),
        ] {
            assert_eq!(around(&index, at), (from, to), "at {at}");
        }
    }

    #[test]
    fn whole_blocks_are_what_a_read_takes() {
        assert_eq!(block_bytes(0, 1), 4096);
        assert_eq!(block_bytes(4095, 2), 8192);
        assert_eq!(block_bytes(8192, 4096), 4096);
    }
}
