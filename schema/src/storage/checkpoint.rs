//! A checkpoint: what replaying an active segment up to some place would give, so that a start after a crash reads on
//! from there.
//!
//! | at | what |
//! |---|---|
//! | 0 | an [index](super::index), as if the segment ended at that place |
//! | behind its entries | a [producer snapshot](super::producer_snapshot) as of the same offset, to the end of the file |
//!
//! The file is written without a sync, over that of an earlier place: a loss of power may leave any mixture. Each part has
//! its own checksums, and both name the partition and the offset.

use super::index::{self, IndexEntries, IndexEntry, IndexRange, SegmentSummary};
use super::producer_snapshot::ProducerSnapshot;
use crate::DecodeError;

/// A checkpoint, read.
#[derive(Clone, Debug)]
pub struct Checkpoint<'a> {
    /// The segment up to the place.
    pub summary: SegmentSummary,
    /// Where its batches begin.
    pub entries: IndexEntries<'a>,
    /// The producers as of the place.
    pub producers: ProducerSnapshot,
}

/// The whole file. `producers` is a whole snapshot as of `summary.next_offset`.
///
/// # Errors
///
/// If an entry lies outside of what the format can say.
pub fn encode(
    summary: &SegmentSummary,
    entries: &[IndexEntry],
    producers: &[u8],
) -> Result<Vec<u8>, IndexRange> {
    let mut bytes = index::encode(summary, entries)?;
    bytes.extend_from_slice(producers);
    Ok(bytes)
}

/// Reads a whole file, which ends where the checkpoint does.
///
/// # Errors
///
/// If a part is damaged, or the parts do not speak of the same place.
pub fn decode(bytes: &[u8]) -> Result<Checkpoint<'_>, DecodeError> {
    let (_, index_length) = index::decode_summary(bytes)?;
    let (summary, entries) = index::decode(bytes)?;
    let producers = ProducerSnapshot::decode(bytes.get(index_length..).unwrap_or_default())?;
    let (partition, next_offset) = (producers.partition, producers.next_offset);
    if (partition, next_offset) != (summary.partition, summary.next_offset) {
        let error = DecodeError::invalid(
            "index and producers of a checkpoint differ in their place",
            index_length,
        );
        return Err(error.with_detail(format_args!(
            "index to {}, producers to {next_offset}",
            summary.next_offset
        )));
    }
    Ok(Checkpoint {
        summary,
        entries,
        producers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition};

    const PARTITION: TopicPartition = TopicPartition {
        topic: TopicId([5; 16]),
        partition: PartitionIndex(2),
    };

    fn summary(next_offset: i64) -> SegmentSummary {
        SegmentSummary {
            partition: PARTITION,
            base_offset: Offset(100),
            next_offset: Offset(next_offset),
            size_bytes: 9_000,
            max_timestamp: TimestampMs(7),
            first_append: TimestampMs(1),
            last_append: TimestampMs(2),
        }
    }

    fn producers(next_offset: i64) -> Vec<u8> {
        let snapshot = ProducerSnapshot {
            partition: PARTITION,
            next_offset: Offset(next_offset),
            producers: Vec::new(),
        };
        snapshot.encode()
    }

    fn entries() -> [IndexEntry; 2] {
        [(101, 4_000), (120, 8_000)].map(|(offset, position)| IndexEntry {
            offset: Offset(offset),
            position,
            max_timestamp_before: TimestampMs(5),
        })
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let bytes = encode(&summary(130), &entries(), &producers(130)).unwrap();
        let read = decode(&bytes).unwrap();
        assert_eq!(read.summary, summary(130));
        assert_eq!(read.entries.iter().collect::<Vec<_>>(), entries());
        assert_eq!(read.producers.next_offset, Offset(130));
    }

    #[test]
    fn any_cut_and_any_changed_byte_is_noticed() {
        let bytes = encode(&summary(130), &entries(), &producers(130)).unwrap();
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "cut to {length}");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(decode(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn parts_of_two_checkpoints_make_none() {
        let bytes = encode(&summary(130), &entries(), &producers(129)).unwrap();
        assert!(decode(&bytes).is_err());
    }
}
