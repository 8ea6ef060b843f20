//! The 61 bytes in front of the records, all integers big-endian.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | i64 | base offset |
//! | 8 | i32 | batch length: bytes after this field |
//! | 12 | i32 | partition leader epoch |
//! | 16 | i8 | magic: 2 |
//! | 17 | u32 | CRC-32C of everything from byte 21 to the end of the batch |
//! | 21 | i16 | attributes |
//! | 23 | i32 | last offset delta: the last record's offset less the base offset |
//! | 27 | i64 | base timestamp (ms) |
//! | 35 | i64 | greatest timestamp (ms) |
//! | 43 | i64 | producer id, -1 for none |
//! | 51 | i16 | producer epoch, -1 for none |
//! | 53 | i32 | base sequence, -1 for none |
//! | 57 | i32 | number of records |
//! | 61 | … | records, or one compressed block of them |

use super::Compression;
use crate::{DecodeError, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

/// Length of a batch's header; the records begin here.
pub const HEADER_LENGTH: usize = 61;

/// Length of the first two fields, which the batch length does not count.
pub const LENGTH_AND_OFFSET_LENGTH: usize = 12;

/// The version of the format.
pub const MAGIC: u8 = 2;

/// Where the fields lie.
pub(super) mod at {
    pub const BASE_OFFSET: usize = 0;
    pub const BATCH_LENGTH: usize = 8;
    pub const LEADER_EPOCH: usize = 12;
    pub const MAGIC: usize = 16;
    pub const CRC: usize = 17;
    /// The checksum covers everything from here to the batch's end.
    pub const ATTRIBUTES: usize = 21;
    pub const LAST_OFFSET_DELTA: usize = 23;
    pub const BASE_TIMESTAMP: usize = 27;
    pub const MAX_TIMESTAMP: usize = 35;
    pub const PRODUCER_ID: usize = 43;
    pub const PRODUCER_EPOCH: usize = 51;
    pub const BASE_SEQUENCE: usize = 53;
    pub const RECORD_COUNT: usize = 57;
}

/// The flags of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub u16);

impl Attributes {
    pub(super) const COMPRESSION_MASK: u16 = 0b111;
    const LOG_APPEND_TIME: u16 = 1 << 3;
    const TRANSACTIONAL: u16 = 1 << 4;
    const CONTROL: u16 = 1 << 5;
    const DELETE_HORIZON: u16 = 1 << 6;

    /// The number of the compression codec, 0 to 7; not every number has a codec.
    pub fn compression_id(self) -> u8 {
        (self.0 & Self::COMPRESSION_MASK) as u8
    }

    /// Timestamps are the time of append (else what the producer set).
    pub fn is_log_append_time(self) -> bool {
        self.0 & Self::LOG_APPEND_TIME != 0
    }

    /// Part of a transaction.
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// A marker that brokers write, not data.
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// The base timestamp is the time at which compaction may drop tombstones.
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// Bits that have no meaning (yet).
    pub fn unknown_bits(self) -> u16 {
        self.0 & !0b111_1111
    }
}

/// A batch's header, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record. Not covered by the checksum.
    pub base_offset: Offset,
    /// Length of the batch after this field.
    pub batch_length: u32,
    /// Epoch of the leader that appended it. Not covered by the checksum.
    pub partition_leader_epoch: LeaderEpoch,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Compression and flags.
    pub attributes: Attributes,
    /// Offset of the last record, less the base offset.
    pub last_offset_delta: i32,
    /// What the records' timestamps count from.
    pub base_timestamp: TimestampMs,
    /// The greatest timestamp of its records, as the producer states it.
    pub max_timestamp: TimestampMs,
    /// `ProducerId::NONE` if the producer is not idempotent.
    pub producer_id: ProducerId,
    /// `ProducerEpoch::NONE` if the producer is not idempotent.
    pub producer_epoch: ProducerEpoch,
    /// Sequence number of the first record, -1 if the producer is not idempotent.
    pub base_sequence: i32,
    /// How many records there are.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`: 61 bytes must be there, the magic must be 2 and the batch
    /// length at least that of a header. Whether the whole batch is there is not looked at.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some(header) = bytes.first_chunk::<HEADER_LENGTH>() else {
            let error = DecodeError::truncated("record batch header", 0);
            return Err(error.with_detail(format_args!(
                "{HEADER_LENGTH} bytes wanted, {} left",
                bytes.len()
            )));
        };
        if header[at::MAGIC] != MAGIC {
            let error = DecodeError::invalid("magic of a record batch is not 2", at::MAGIC);
            return Err(error.with_detail(format_args!("found {}", header[at::MAGIC])));
        }
        let batch_length = i32::from_be_bytes(field(header, at::BATCH_LENGTH));
        if batch_length < (HEADER_LENGTH - LENGTH_AND_OFFSET_LENGTH) as i32 {
            let error = DecodeError::corrupt(
                "length of a record batch is shorter than its header",
                at::BATCH_LENGTH,
            );
            return Err(error.with_detail(format_args!("found {batch_length}")));
        }
        Ok(Self {
            base_offset: Offset(i64::from_be_bytes(field(header, at::BASE_OFFSET))),
            batch_length: batch_length as u32,
            partition_leader_epoch: LeaderEpoch(i32::from_be_bytes(field(
                header,
                at::LEADER_EPOCH,
            ))),
            crc: u32::from_be_bytes(field(header, at::CRC)),
            attributes: Attributes(u16::from_be_bytes(field(header, at::ATTRIBUTES))),
            last_offset_delta: i32::from_be_bytes(field(header, at::LAST_OFFSET_DELTA)),
            base_timestamp: TimestampMs(i64::from_be_bytes(field(header, at::BASE_TIMESTAMP))),
            max_timestamp: TimestampMs(i64::from_be_bytes(field(header, at::MAX_TIMESTAMP))),
            producer_id: ProducerId(i64::from_be_bytes(field(header, at::PRODUCER_ID))),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(field(header, at::PRODUCER_EPOCH))),
            base_sequence: i32::from_be_bytes(field(header, at::BASE_SEQUENCE)),
            record_count: i32::from_be_bytes(field(header, at::RECORD_COUNT)),
        })
    }

    /// The header's 61 bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(at::BASE_OFFSET, &self.base_offset.0.to_be_bytes());
        put(at::BATCH_LENGTH, &self.batch_length.to_be_bytes());
        put(
            at::LEADER_EPOCH,
            &self.partition_leader_epoch.0.to_be_bytes(),
        );
        put(at::MAGIC, &[MAGIC]);
        put(at::CRC, &self.crc.to_be_bytes());
        put(at::ATTRIBUTES, &self.attributes.0.to_be_bytes());
        put(at::LAST_OFFSET_DELTA, &self.last_offset_delta.to_be_bytes());
        put(at::BASE_TIMESTAMP, &self.base_timestamp.0.to_be_bytes());
        put(at::MAX_TIMESTAMP, &self.max_timestamp.0.to_be_bytes());
        put(at::PRODUCER_ID, &self.producer_id.0.to_be_bytes());
        put(at::PRODUCER_EPOCH, &self.producer_epoch.0.to_be_bytes());
        put(at::BASE_SEQUENCE, &self.base_sequence.to_be_bytes());
        put(at::RECORD_COUNT, &self.record_count.to_be_bytes());
        bytes
    }

    /// Length of the whole batch in bytes.
    pub fn total_length(&self) -> usize {
        LENGTH_AND_OFFSET_LENGTH + self.batch_length as usize
    }

    /// Offset of the last record, inclusive.
    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(i64::from(self.last_offset_delta))
    }

    /// Offset of the record that follows this batch.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    /// Sequence number of the last record; it wraps from 2³¹−1 to 0. -1 if the producer is not idempotent.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last & i64::from(i32::MAX)) as i32
    }

    /// The codec that compressed the records.
    pub fn compression(&self) -> Result<Compression, DecodeError> {
        Compression::from_id(self.attributes.compression_id())
    }

    /// Whether the batch comes from an idempotent producer.
    pub fn is_idempotent(&self) -> bool {
        self.producer_id.0 >= 0
    }
}

fn field<const N: usize>(header: &[u8; HEADER_LENGTH], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

/// Writes base offset and leader epoch into a batch: the only bytes that a broker changes, and none that the
/// checksum covers.
///
/// # Panics
///
/// If `batch` is shorter than a header; it was checked before.
pub fn stamp(batch: &mut [u8], base_offset: Offset, leader_epoch: LeaderEpoch) {
    assert!(
        batch.len() >= HEADER_LENGTH,
        "only a checked batch is stamped"
    );
    batch[at::BASE_OFFSET..at::BATCH_LENGTH].copy_from_slice(&base_offset.0.to_be_bytes());
    batch[at::LEADER_EPOCH..at::MAGIC].copy_from_slice(&leader_epoch.0.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            base_offset: Offset(0x0102_0304_0506_0708),
            batch_length: 60,
            partition_leader_epoch: LeaderEpoch(9),
            crc: 0xdead_beef,
            attributes: Attributes(4),
            last_offset_delta: 2,
            base_timestamp: TimestampMs(1_700_000_000_000),
            max_timestamp: TimestampMs(1_700_000_000_005),
            producer_id: ProducerId(77),
            producer_epoch: ProducerEpoch(1),
            base_sequence: i32::MAX - 1,
            record_count: 3,
        }
    }

    #[test]
    fn reads_what_it_writes_and_counts_ends() {
        let header = header();
        assert_eq!(BatchHeader::read(&header.to_bytes()), Ok(header));
        assert_eq!(header.total_length(), 72);
        assert_eq!(header.next_offset(), Offset(0x0102_0304_0506_070b));
        assert_eq!(header.last_sequence(), 0, "2^31 - 2, 2^31 - 1, 0");
        assert_eq!(header.compression(), Ok(Compression::Zstd));
    }

    #[test]
    fn stamping_changes_two_fields_only() {
        let mut bytes = header().to_bytes();
        stamp(&mut bytes, Offset(5), LeaderEpoch(6));
        let expected = BatchHeader {
            base_offset: Offset(5),
            partition_leader_epoch: LeaderEpoch(6),
            ..header()
        };
        assert_eq!(BatchHeader::read(&bytes), Ok(expected));
    }

    #[test]
    fn short_headers_wrong_magic_and_short_lengths_are_refused() {
        let bytes = header().to_bytes();
        assert_eq!(BatchHeader::read(&bytes[..60]).unwrap_err().at_byte, 0);
        let mut wrong_magic = bytes;
        wrong_magic[16] = 1;
        assert_eq!(BatchHeader::read(&wrong_magic).unwrap_err().at_byte, 16);
        for length in [0, 48, -1, i32::MIN] {
            let mut short = bytes;
            short[8..12].copy_from_slice(&length.to_be_bytes());
            assert_eq!(BatchHeader::read(&short).unwrap_err().at_byte, 8);
        }
    }
}
