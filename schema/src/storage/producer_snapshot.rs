//! The idempotent producers of one partition, as of an offset: what replaying the log up to there would give.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 16 bytes | `TKBPRODS`, version 1, CRC-32C over the whole file |
//! | 16 | 16 bytes | topic id |
//! | 32 | i32 | partition |
//! | 36 | u32 | number of producers |
//! | 40 | i64 | next offset: batches below it are accounted for |
//! | 48 | … | producers, in rising order of producer id |
//!
//! A producer:
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | i64 | producer id |
//! | 8 | i16 | producer epoch |
//! | 10 | u16 | number of batches, 1 to 5 |
//! | 12 | u32 | zero |
//! | 16 | i64 | the broker's clock at its last append (ms) |
//! | 24 | 16 bytes each | its last batches, oldest first |
//!
//! A batch:
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | i32 | sequence number of its first record |
//! | 4 | i32 | sequence number of its last record |
//! | 8 | i64 | base offset |

use super::envelope::{ENVELOPE_LENGTH, open, seal};
use crate::cursor::Cursor;
use crate::{
    DecodeError, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicId,
    TopicPartition,
};

const LETTERS: &[u8; 8] = b"TKBPRODS";
const VERSION: u32 = 1;
const HEADER_LENGTH: usize = 48;
const PRODUCER_LENGTH: usize = 24;

/// How many of a producer's last batches are kept: as many as it may have in flight.
pub const WINDOW_BATCHES_MAX: usize = 5;

/// What a snapshot takes for one producer at most, in bytes.
pub const PRODUCER_LENGTH_MAX: usize = PRODUCER_LENGTH + WINDOW_BATCHES_MAX * 16;

/// A batch that a producer may send again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowBatch {
    /// Sequence number of its first record.
    pub first_sequence: i32,
    /// Sequence number of its last record.
    pub last_sequence: i32,
    /// Offset of its first record.
    pub base_offset: Offset,
}

/// What is kept of one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its incarnation.
    pub producer_epoch: ProducerEpoch,
    /// The broker's clock at its last append.
    pub last_append: TimestampMs,
    window: [WindowBatch; WINDOW_BATCHES_MAX],
    window_length: u8,
}

impl ProducerEntry {
    /// An entry with these last batches, oldest first.
    ///
    /// # Panics
    ///
    /// If there is no batch, or more than [`WINDOW_BATCHES_MAX`].
    pub fn new(
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        last_append: TimestampMs,
        batches: &[WindowBatch],
    ) -> Self {
        assert!(
            (1..=WINDOW_BATCHES_MAX).contains(&batches.len()),
            "a producer has 1 to 5 last batches"
        );
        let mut window = [WindowBatch::default(); WINDOW_BATCHES_MAX];
        window[..batches.len()].copy_from_slice(batches);
        Self {
            producer_id,
            producer_epoch,
            last_append,
            window,
            window_length: batches.len() as u8,
        }
    }

    /// Its last batches, oldest first.
    pub fn batches(&self) -> &[WindowBatch] {
        &self.window[..usize::from(self.window_length)]
    }
}

/// A snapshot, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerSnapshot {
    /// Whose producers.
    pub partition: TopicPartition,
    /// Batches below it are accounted for.
    pub next_offset: Offset,
    /// In rising order of producer id.
    pub producers: Vec<ProducerEntry>,
}

impl ProducerSnapshot {
    /// The whole file.
    ///
    /// # Panics
    ///
    /// If the producers are not in rising order of their id.
    pub fn encode(&self) -> Vec<u8> {
        let rising = self
            .producers
            .windows(2)
            .all(|pair| pair[0].producer_id < pair[1].producer_id);
        assert!(
            rising,
            "producers of a snapshot are in rising order of their id"
        );
        let mut bytes = vec![0; ENVELOPE_LENGTH];
        bytes.extend_from_slice(&self.partition.topic.0);
        bytes.extend_from_slice(&self.partition.partition.0.to_le_bytes());
        bytes.extend_from_slice(&(self.producers.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.next_offset.0.to_le_bytes());
        for producer in &self.producers {
            encode_producer(producer, &mut bytes);
        }
        seal(&mut bytes, LETTERS, VERSION);
        bytes
    }

    /// Reads a whole file, which ends where the snapshot does.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < HEADER_LENGTH {
            let error = DecodeError::truncated("header of a producer snapshot", 0);
            return Err(error.with_detail(format_args!(
                "{HEADER_LENGTH} bytes wanted, {} left",
                bytes.len()
            )));
        }
        let mut cursor = open(bytes, LETTERS, VERSION)?;
        let topic = TopicId(cursor.array("topic id of a producer snapshot")?);
        let partition = PartitionIndex(cursor.i32_le("partition of a producer snapshot")?);
        let count = cursor.u32_le("producer count of a producer snapshot")?;
        let next_offset = Offset(cursor.i64_le("next offset of a producer snapshot")?);
        let mut producers: Vec<ProducerEntry> = Vec::new();
        for _ in 0..count {
            let at_byte = cursor.position();
            let producer = decode_producer(&mut cursor)?;
            if producers
                .last()
                .is_some_and(|last| last.producer_id >= producer.producer_id)
            {
                return Err(DecodeError::invalid(
                    "producers of a snapshot are out of order",
                    at_byte,
                ));
            }
            producers.push(producer);
        }
        if !cursor.is_empty() {
            let error = DecodeError::invalid(
                "bytes after the last producer of a snapshot",
                cursor.position(),
            );
            return Err(error.with_detail(format_args!("{} bytes left", cursor.remaining())));
        }
        Ok(Self {
            partition: TopicPartition { topic, partition },
            next_offset,
            producers,
        })
    }
}

fn encode_producer(producer: &ProducerEntry, bytes: &mut Vec<u8>) {
    bytes.reserve(PRODUCER_LENGTH + producer.batches().len() * 16);
    bytes.extend_from_slice(&producer.producer_id.0.to_le_bytes());
    bytes.extend_from_slice(&producer.producer_epoch.0.to_le_bytes());
    bytes.extend_from_slice(&u16::from(producer.window_length).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&producer.last_append.0.to_le_bytes());
    for batch in producer.batches() {
        bytes.extend_from_slice(&batch.first_sequence.to_le_bytes());
        bytes.extend_from_slice(&batch.last_sequence.to_le_bytes());
        bytes.extend_from_slice(&batch.base_offset.0.to_le_bytes());
    }
}

fn decode_producer(cursor: &mut Cursor<'_>) -> Result<ProducerEntry, DecodeError> {
    let producer_id = ProducerId(cursor.i64_le("producer id of a snapshot")?);
    let producer_epoch = ProducerEpoch(cursor.i16_le("producer epoch of a snapshot")?);
    let count_at = cursor.position();
    let count = usize::from(cursor.u16_le("batch count of a producer")?);
    if !(1..=WINDOW_BATCHES_MAX).contains(&count) {
        let error = DecodeError::invalid("batch count of a producer", count_at);
        return Err(error.with_detail(format_args!(
            "{count} found, 1 to {WINDOW_BATCHES_MAX} allowed"
        )));
    }
    if cursor.u32_le("reserved bytes of a producer")? != 0 {
        return Err(DecodeError::invalid(
            "reserved bytes of a producer are not zero",
            count_at + 2,
        ));
    }
    let last_append = TimestampMs(cursor.i64_le("last append of a producer")?);
    let mut window = [WindowBatch::default(); WINDOW_BATCHES_MAX];
    for batch in &mut window[..count] {
        *batch = WindowBatch {
            first_sequence: cursor.i32_le("first sequence of a batch")?,
            last_sequence: cursor.i32_le("last sequence of a batch")?,
            base_offset: Offset(cursor.i64_le("base offset of a batch")?),
        };
    }
    Ok(ProducerEntry {
        producer_id,
        producer_epoch,
        last_append,
        window,
        window_length: count as u8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> ProducerSnapshot {
        let batch = |first: i32, base| WindowBatch {
            first_sequence: first,
            last_sequence: first + 9,
            base_offset: Offset(base),
        };
        let (epoch, time) = (ProducerEpoch(1), TimestampMs(1_700_000_000_000));
        ProducerSnapshot {
            partition: TopicPartition {
                topic: TopicId([5; 16]),
                partition: PartitionIndex(2),
            },
            next_offset: Offset(500),
            producers: vec![
                ProducerEntry::new(ProducerId(7), epoch, time, &[batch(0, 100)]),
                ProducerEntry::new(
                    ProducerId(9),
                    epoch,
                    time,
                    &[batch(10, 110); WINDOW_BATCHES_MAX],
                ),
            ],
        }
    }

    #[test]
    fn reads_what_it_writes() {
        let none = ProducerSnapshot {
            producers: vec![],
            ..snapshot()
        };
        for snapshot in [snapshot(), none] {
            assert_eq!(ProducerSnapshot::decode(&snapshot.encode()), Ok(snapshot));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let good = snapshot().encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(ProducerSnapshot::decode(&bad).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(
                ProducerSnapshot::decode(&good[..cut]).is_err(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn counts_that_lie_are_refused_although_the_checksum_is_right() {
        let good = snapshot().encode();
        for (at, value) in [
            (36, 0xff),
            (36, 1),
            (HEADER_LENGTH + 10, 6),
            (HEADER_LENGTH + 10, 0),
            (HEADER_LENGTH, 9),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            seal(&mut bad, LETTERS, VERSION);
            assert!(ProducerSnapshot::decode(&bad).is_err(), "{value} at {at}");
        }
    }
}
