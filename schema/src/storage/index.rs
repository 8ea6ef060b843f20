//! The index of a sealed segment: a summary, and a sparse table from offsets and times to file positions.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 16 bytes | `TKBINDEX`, version 1, CRC-32C over these 112 bytes |
//! | 16 | 16 bytes | topic id |
//! | 32 | i32 | partition |
//! | 36 | u32 | number of entries |
//! | 40 | i64 | base offset of the segment |
//! | 48 | i64 | next offset: the following segment's base offset |
//! | 56 | u64 | length of the `.log` file in bytes |
//! | 64 | i64 | greatest timestamp of its records (ms) |
//! | 72 | i64 | the broker's clock at the first append (ms) |
//! | 80 | i64 | the broker's clock at the last append (ms) |
//! | 88 | u32 | CRC-32C of the entries |
//! | 92 | 20 bytes | zero |
//! | 112 | 16 bytes each | entries |
//!
//! An entry:
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | u32 | base offset of a batch, less the segment's |
//! | 4 | u32 | where that batch begins in the `.log` file |
//! | 8 | i64 | greatest timestamp of all batches before it in the segment; the least i64 if there is none (ms) |
//!
//! Entries rise in offset and position, and their timestamps never fall, so one table serves both searches.
//! The summary has a checksum of its own, so that a start reads the first block of each index only.

use super::envelope::{ENVELOPE_LENGTH, open, seal};
use crate::cursor::Cursor;
use crate::{DecodeError, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition};

const LETTERS: &[u8; 8] = b"TKBINDEX";
const VERSION: u32 = 1;

/// Length of the summary; the entries begin here.
pub const SUMMARY_LENGTH: usize = 112;

/// Length of one entry.
pub const ENTRY_LENGTH: usize = 16;

/// What is known of a sealed segment without its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Whose segment.
    pub partition: TopicPartition,
    /// Its first offset.
    pub base_offset: Offset,
    /// The offset after its last.
    pub next_offset: Offset,
    /// Length of its `.log` file.
    pub size_bytes: u64,
    /// The greatest timestamp of its records.
    pub max_timestamp: TimestampMs,
    /// The broker's clock at its first append.
    pub first_append: TimestampMs,
    /// The broker's clock at its last append.
    pub last_append: TimestampMs,
}

/// One batch that the index knows the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The batch's base offset.
    pub offset: Offset,
    /// Where it begins in the `.log` file.
    pub position: u32,
    /// The greatest timestamp of all batches before it in the segment, [`NO_TIMESTAMP`] if there is none.
    pub max_timestamp_before: TimestampMs,
}

/// Less than any timestamp.
pub const NO_TIMESTAMP: TimestampMs = TimestampMs(i64::MIN);

/// The index cannot be written: an entry lies outside of what the format can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset} is not within 2^32 of the segment's base offset {base_offset}")]
pub struct IndexRange {
    /// The entry's offset.
    pub offset: Offset,
    /// The segment's.
    pub base_offset: Offset,
}

/// The whole file. A segment is rolled before its offsets span 2³², so its entries always fit.
pub fn encode(summary: &SegmentSummary, entries: &[IndexEntry]) -> Result<Vec<u8>, IndexRange> {
    let mut bytes = vec![0; SUMMARY_LENGTH];
    bytes.reserve(entries.len() * ENTRY_LENGTH);
    for entry in entries {
        let delta = entry.offset.0.wrapping_sub(summary.base_offset.0);
        let range = IndexRange {
            offset: entry.offset,
            base_offset: summary.base_offset,
        };
        let delta = u32::try_from(delta).map_err(|_| range)?;
        bytes.extend_from_slice(&delta.to_le_bytes());
        bytes.extend_from_slice(&entry.position.to_le_bytes());
        bytes.extend_from_slice(&entry.max_timestamp_before.0.to_le_bytes());
    }
    let entries_crc = crc32c::crc32c(&bytes[SUMMARY_LENGTH..]);
    let mut at = ENVELOPE_LENGTH;
    let mut put = |field: &[u8]| {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(&summary.partition.topic.0);
    put(&summary.partition.partition.0.to_le_bytes());
    put(&(entries.len() as u32).to_le_bytes());
    put(&summary.base_offset.0.to_le_bytes());
    put(&summary.next_offset.0.to_le_bytes());
    put(&summary.size_bytes.to_le_bytes());
    put(&summary.max_timestamp.0.to_le_bytes());
    put(&summary.first_append.0.to_le_bytes());
    put(&summary.last_append.0.to_le_bytes());
    put(&entries_crc.to_le_bytes());
    seal(&mut bytes[..SUMMARY_LENGTH], LETTERS, VERSION);
    Ok(bytes)
}

/// Reads the summary at the start of an index, and how long the whole file is. What follows is not looked at.
pub fn decode_summary(bytes: &[u8]) -> Result<(SegmentSummary, usize), DecodeError> {
    let (summary, tail) = read_summary(bytes)?;
    Ok((summary, SUMMARY_LENGTH + tail.entries_length()))
}

/// Reads a whole index. Bytes behind it (padding for direct I/O) are not looked at.
pub fn decode(bytes: &[u8]) -> Result<(SegmentSummary, IndexEntries<'_>), DecodeError> {
    let (summary, tail) = read_summary(bytes)?;
    let rest = &bytes[SUMMARY_LENGTH..];
    let Some(entries) = rest.get(..tail.entries_length()) else {
        let error = DecodeError::truncated("entries of an index", SUMMARY_LENGTH);
        let detail = format_args!(
            "{} bytes wanted, {} left",
            tail.entries_length(),
            rest.len()
        );
        return Err(error.with_detail(detail));
    };
    let computed = crc32c::crc32c(entries);
    if computed != tail.entries_crc {
        let error = DecodeError::corrupt("checksum of an index's entries does not match", 88);
        let found = tail.entries_crc;
        return Err(error.with_detail(format_args!(
            "{found:#010x} found, {computed:#010x} computed"
        )));
    }
    let entries = IndexEntries {
        bytes: entries,
        base_offset: summary.base_offset,
    };
    entries.check(&summary)?;
    Ok((summary, entries))
}

/// What the summary says of the entries.
struct Tail {
    entry_count: u32,
    entries_crc: u32,
}

impl Tail {
    fn entries_length(&self) -> usize {
        self.entry_count as usize * ENTRY_LENGTH
    }
}

fn read_summary(bytes: &[u8]) -> Result<(SegmentSummary, Tail), DecodeError> {
    let Some(covered) = bytes.get(..SUMMARY_LENGTH) else {
        let error = DecodeError::truncated("summary of an index", 0);
        return Err(error.with_detail(format_args!(
            "{SUMMARY_LENGTH} bytes wanted, {} left",
            bytes.len()
        )));
    };
    let mut cursor = open(covered, LETTERS, VERSION)?;
    let topic = TopicId(cursor.array("topic id of an index")?);
    let partition = PartitionIndex(cursor.i32_le("partition of an index")?);
    let entry_count = cursor.u32_le("entry count of an index")?;
    let summary = SegmentSummary {
        partition: TopicPartition { topic, partition },
        base_offset: Offset(cursor.i64_le("base offset of an index")?),
        next_offset: Offset(cursor.i64_le("next offset of an index")?),
        size_bytes: cursor.u64_le("size in an index")?,
        max_timestamp: TimestampMs(cursor.i64_le("max timestamp of an index")?),
        first_append: TimestampMs(cursor.i64_le("first append of an index")?),
        last_append: TimestampMs(cursor.i64_le("last append of an index")?),
    };
    let entries_crc = cursor.u32_le("checksum of an index's entries")?;
    if summary.base_offset.0 < 0 || summary.next_offset < summary.base_offset {
        let error = DecodeError::invalid("offsets of an index", 40);
        let detail = format_args!("base {}, next {}", summary.base_offset, summary.next_offset);
        return Err(error.with_detail(detail));
    }
    Ok((
        summary,
        Tail {
            entry_count,
            entries_crc,
        },
    ))
}

/// The entries of an index that was read, in order.
#[derive(Clone, Copy, Debug)]
pub struct IndexEntries<'a> {
    bytes: &'a [u8],
    base_offset: Offset,
}

impl<'a> IndexEntries<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / ENTRY_LENGTH
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The entry at `index`, if there are so many.
    pub fn get(&self, index: usize) -> Option<IndexEntry> {
        let bytes = self.bytes.chunks_exact(ENTRY_LENGTH).nth(index)?;
        let mut cursor = Cursor::new(bytes);
        let delta = cursor.u32_le("offset").ok()?;
        Some(IndexEntry {
            offset: self.base_offset.plus(i64::from(delta)),
            position: cursor.u32_le("position").ok()?,
            max_timestamp_before: TimestampMs(cursor.i64_le("timestamp").ok()?),
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = IndexEntry> + use<'a> {
        let entries = *self;
        (0..entries.len()).map_while(move |index| entries.get(index))
    }

    /// The last entry at or below `offset`: from there on the batch that holds it is found by walking.
    pub fn at_or_below(&self, offset: Offset) -> Option<IndexEntry> {
        self.last_where(|entry| entry.offset <= offset)
    }

    /// The last entry before which every record is older than `timestamp`: from there on the first record at
    /// or after `timestamp` is found by walking.
    pub fn before_time(&self, timestamp: TimestampMs) -> Option<IndexEntry> {
        self.last_where(|entry| entry.max_timestamp_before < timestamp)
    }

    /// The last entry for which `holds` is true, given that it is true for a beginning of the table only.
    fn last_where(&self, holds: impl Fn(&IndexEntry) -> bool) -> Option<IndexEntry> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|entry| holds(&entry)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.get(low.checked_sub(1)?)
    }

    fn check(&self, summary: &SegmentSummary) -> Result<(), DecodeError> {
        let mut previous: Option<IndexEntry> = None;
        for (index, entry) in self.iter().enumerate() {
            let rises = previous.is_none_or(|previous| {
                entry.offset > previous.offset
                    && entry.position > previous.position
                    && entry.max_timestamp_before >= previous.max_timestamp_before
            });
            let within = entry.offset < summary.next_offset
                && u64::from(entry.position) < summary.size_bytes;
            if !rises || !within {
                let at_byte = SUMMARY_LENGTH + index * ENTRY_LENGTH;
                let error = DecodeError::invalid(
                    "entry of an index is out of order or outside its segment",
                    at_byte,
                );
                return Err(error.with_detail(format_args!(
                    "offset {}, position {}",
                    entry.offset, entry.position
                )));
            }
            previous = Some(entry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> SegmentSummary {
        SegmentSummary {
            partition: TopicPartition {
                topic: TopicId([5; 16]),
                partition: PartitionIndex(2),
            },
            base_offset: Offset(1000),
            next_offset: Offset(2000),
            size_bytes: 100_000,
            max_timestamp: TimestampMs(77),
            first_append: TimestampMs(5),
            last_append: TimestampMs(9),
        }
    }

    fn entry(offset: i64, position: u32, time: i64) -> IndexEntry {
        IndexEntry {
            offset: Offset(offset),
            position,
            max_timestamp_before: TimestampMs(time),
        }
    }

    fn entries() -> [IndexEntry; 3] {
        [
            entry(1000, 0, i64::MIN),
            entry(1400, 33_000, 50),
            entry(1800, 66_000, 50),
        ]
    }

    #[test]
    fn reads_what_it_writes() {
        for count in 0..=3 {
            let mut bytes = encode(&summary(), &entries()[..count]).unwrap();
            assert_eq!(decode_summary(&bytes), Ok((summary(), bytes.len())));
            bytes.extend_from_slice(&[0; 500]);
            let (found, table) = decode(&bytes).unwrap();
            assert_eq!(found, summary());
            assert_eq!(table.iter().collect::<Vec<_>>(), entries()[..count]);
        }
    }

    #[test]
    fn searches_by_offset_and_by_time() {
        let bytes = encode(&summary(), &entries()).unwrap();
        let (_, table) = decode(&bytes).unwrap();
        let [first, second, third] = entries();
        assert_eq!(table.at_or_below(Offset(999)), None);
        assert_eq!(table.at_or_below(Offset(1000)), Some(first));
        assert_eq!(table.at_or_below(Offset(1399)), Some(first));
        assert_eq!(table.at_or_below(Offset(1400)), Some(second));
        assert_eq!(table.at_or_below(Offset(5000)), Some(third));
        assert_eq!(
            table.before_time(TimestampMs(50)),
            Some(first),
            "a record of time 50 may lie before the second"
        );
        assert_eq!(table.before_time(TimestampMs(51)), Some(third));
        assert_eq!(table.before_time(TimestampMs(i64::MIN)), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = encode(&summary(), &entries()).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(decode(&good[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn entries_out_of_order_or_outside_are_refused() {
        for wrong in [
            [entry(1000, 0, 0), entry(1000, 5, 0)],
            [entry(1000, 0, 0), entry(1001, 0, 0)],
            [entry(1000, 0, 0), entry(1001, 5, -1)],
            [entry(1000, 0, 0), entry(2000, 5, 0)],
            [entry(1000, 0, 0), entry(1001, 100_000, 0)],
        ] {
            let error = decode(&encode(&summary(), &wrong).unwrap()).unwrap_err();
            assert_eq!(error.at_byte, SUMMARY_LENGTH + ENTRY_LENGTH);
        }
    }

    #[test]
    fn offsets_beyond_the_format_are_an_error_of_the_writer() {
        let far = entry(1000 + (1 << 32), 5, 0);
        let error = encode(&summary(), &[far]).unwrap_err();
        assert_eq!(error.offset, far.offset);
        assert!(encode(&summary(), &[entry(999, 5, 0)]).is_err());
    }
}
