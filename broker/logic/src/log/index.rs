//! The sparse index of one segment: where, about every so many bytes, a batch begins.
//!
//! One entry serves both lookups. By offset: the last entry at or before it. By time: the last entry before which no
//! record is as late as the time asked for, found through the running maximum of timestamps.
//!
//! Invariants: entries rise in offset and in position, and never fall in `max_timestamp_before`; an entry's position
//! is the start of a batch; the first batch of a segment needs no entry.

use tackboard_schema::storage::index;
use tackboard_schema::{Offset, TimestampMs};

/// The start of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The batch's base offset, less the segment's.
    pub relative_offset: u32,
    /// Where it begins in the segment's file.
    pub file_at: u32,
    /// The greatest timestamp of all batches before it in the segment; the least number if there is none.
    pub max_timestamp_before: TimestampMs,
}

/// Where to start reading, and where the next known batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHit {
    /// Position in the segment's file.
    pub file_at: u32,
    /// The next entry's position: the batch looked for lies before it. `None` behind the last entry.
    pub next_file_at: Option<u32>,
}

/// The entries of one segment, in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseIndex {
    entries: Vec<IndexEntry>,
    last_entry_at: u32,
}

impl SparseIndex {
    fn from_entries(entries: Vec<IndexEntry>) -> Self {
        let last_entry_at = entries.last().map_or(0, |entry| entry.file_at);
        Self {
            entries,
            last_entry_at,
        }
    }

    /// From the entries of an `.idx` file, which its reader has checked.
    pub fn from_stored(base: Offset, stored: impl Iterator<Item = index::IndexEntry>) -> Self {
        let entries = stored.filter_map(|entry| {
            Some(IndexEntry {
                relative_offset: relative(base, entry.offset)?,
                file_at: entry.position,
                max_timestamp_before: entry.max_timestamp_before,
            })
        });
        Self::from_entries(entries.collect())
    }

    /// All entries, for the `.idx` file of the segment that begins at `base`.
    pub fn stored_entries(&self, base: Offset) -> impl Iterator<Item = index::IndexEntry> + '_ {
        self.entries.iter().map(move |entry| index::IndexEntry {
            offset: base.plus(i64::from(entry.relative_offset)),
            position: entry.file_at,
            max_timestamp_before: entry.max_timestamp_before,
        })
    }

    /// The last entry, if there is one.
    pub fn last(&self) -> Option<&IndexEntry> {
        self.entries.last()
    }

    /// Memory that the entries take, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<IndexEntry>()) as u64
    }

    /// A batch begins at `file_at`: an entry is due if the last one lies `interval_bytes` back.
    pub fn note(
        &mut self,
        relative_offset: u32,
        file_at: u32,
        max_timestamp_before: TimestampMs,
        interval_bytes: u32,
    ) {
        if file_at - self.last_entry_at < interval_bytes {
            return;
        }
        self.last_entry_at = file_at;
        self.entries.push(IndexEntry {
            relative_offset,
            file_at,
            max_timestamp_before,
        });
    }

    /// Where to read for the batch that holds `relative_offset`.
    pub fn find_offset(&self, relative_offset: u32) -> IndexHit {
        self.hit(
            self.entries
                .partition_point(|entry| entry.relative_offset <= relative_offset),
        )
    }

    /// Where to read for the first record at or after `timestamp`.
    pub fn find_timestamp(&self, timestamp: TimestampMs) -> IndexHit {
        self.hit(
            self.entries
                .partition_point(|entry| entry.max_timestamp_before < timestamp),
        )
    }

    /// The last batch start that is known at or before `file_at`.
    pub fn at_or_before(&self, file_at: u32) -> u32 {
        let behind = (self.entries).partition_point(|entry| entry.file_at <= file_at);
        self.hit(behind).file_at
    }

    /// The first batch start that is known at or behind `file_at`; `None` behind the last one. The segment's own start
    /// counts for none.
    pub fn at_or_behind(&self, file_at: u64) -> Option<u32> {
        let before = (self.entries).partition_point(|entry| u64::from(entry.file_at) < file_at);
        self.entries.get(before).map(|entry| entry.file_at)
    }

    /// Drops every entry at or behind `file_at`.
    pub fn truncate(&mut self, file_at: u32) {
        let keep = self
            .entries
            .partition_point(|entry| entry.file_at < file_at);
        self.entries.truncate(keep);
        self.last_entry_at = self.entries.last().map_or(0, |entry| entry.file_at);
    }

    /// Drops every other entry: half the memory for reads that begin twice as far ahead.
    pub fn thin_out(&mut self) {
        let mut index = 0;
        self.entries.retain(|_| {
            index += 1;
            index % 2 == 0
        });
        self.entries.shrink_to_fit();
    }

    /// Gives back memory that a segment which is not appended to any more does not need.
    pub fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// The hit between entry `behind - 1` and entry `behind`.
    fn hit(&self, behind: usize) -> IndexHit {
        let before = behind
            .checked_sub(1)
            .and_then(|index| self.entries.get(index));
        IndexHit {
            file_at: before.map_or(0, |entry| entry.file_at),
            next_file_at: self.entries.get(behind).map(|entry| entry.file_at),
        }
    }
}

/// The relative offset of `offset` in a segment that begins at `base`, if it can be expressed.
pub fn relative(base: Offset, offset: Offset) -> Option<u32> {
    u32::try_from(offset.0.checked_sub(base.0)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> SparseIndex {
        let mut index = SparseIndex::default();
        let mut latest = i64::MIN;
        for batch in 0..100_u32 {
            index.note(batch * 10, batch * 300, TimestampMs(latest), 1000);
            latest = latest.max(i64::from(batch) * 7 % 50);
        }
        index
    }

    #[test]
    fn an_entry_comes_every_so_many_bytes_and_none_for_the_first_batch() {
        let index = index();
        let starts: Vec<u32> = index
            .entries
            .iter()
            .map(|entry| entry.file_at)
            .take(3)
            .collect();
        assert_eq!(starts, [1200, 2400, 3600]);
    }

    #[test]
    fn offsets_are_found_between_the_entries_around_them() {
        let index = index();
        assert_eq!(
            index.find_offset(0),
            IndexHit {
                file_at: 0,
                next_file_at: Some(1200)
            }
        );
        assert_eq!(
            index.find_offset(39),
            IndexHit {
                file_at: 0,
                next_file_at: Some(1200)
            }
        );
        assert_eq!(
            index.find_offset(40),
            IndexHit {
                file_at: 1200,
                next_file_at: Some(2400)
            }
        );
        let last = index.find_offset(u32::MAX);
        assert_eq!((last.file_at, last.next_file_at), (28_800, None));
    }

    #[test]
    fn no_record_before_the_entry_of_a_time_is_as_late() {
        let index = index();
        for timestamp in 0..60 {
            let hit = index.find_timestamp(TimestampMs(timestamp));
            let before = (0..100_i64).filter(|batch| batch * 300 < i64::from(hit.file_at));
            assert!(
                before
                    .map(|batch| batch * 7 % 50)
                    .all(|time| time < timestamp)
            );
        }
    }

    #[test]
    fn thinning_keeps_what_it_keeps() {
        let mut thin = index();
        thin.thin_out();
        assert!(thin.entries.len() <= index().entries.len() / 2);
        let hit = thin.find_offset(500);
        assert!(hit.file_at <= 15_000 && hit.next_file_at.unwrap() > 15_000);
    }

    #[test]
    fn reads_back_what_it_stores() {
        let index = index();
        let base = Offset(7_000);
        let again = SparseIndex::from_stored(base, index.stored_entries(base));
        assert_eq!(again.entries, index.entries);
    }
}
