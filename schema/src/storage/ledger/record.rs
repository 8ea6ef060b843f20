//! The records of a ledger.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | u8 | type |
//! | 1 | u8 | zero |
//! | 2 | u16 | length of what follows this field |
//! | 4 | 16 bytes | topic id |
//! | 20 | i32 | partition |
//! | 24 | … | by type |

use crate::cursor::Cursor;
use crate::{
    DecodeError, LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition,
};

const HEADER_LENGTH: usize = 4;
const PARTITION_LENGTH: usize = 20;

/// The longest record: a sealed segment.
pub const RECORD_LENGTH_MAX: usize = HEADER_LENGTH + PARTITION_LENGTH + 6 * 8;

mod kind {
    pub const DURABLE: u8 = 1;
    pub const LOG_START: u8 = 2;
    pub const HIGH_WATERMARK: u8 = 3;
    pub const EPOCH_START: u8 = 4;
    pub const TRUNCATE: u8 = 5;
    pub const FENCED: u8 = 6;
    pub const SEGMENT_OPENED: u8 = 7;
    pub const SEGMENT_SEALED: u8 = 8;
    pub const REMOVED: u8 = 9;
}

/// One thing that is proven of one partition's log. Offsets that are ends are exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRecord {
    /// Everything below is on the medium.
    Durable {
        /// Whose log.
        partition: TopicPartition,
        /// The next offset.
        next_offset: Offset,
        /// The segment that the end lies in.
        segment_base: Offset,
        /// The end within that segment's file, in bytes.
        position: u64,
        /// The broker's clock at the last append below the end.
        last_append: TimestampMs,
    },
    /// Nothing below is served any more, and its segments may be unlinked.
    LogStart {
        /// Whose log.
        partition: TopicPartition,
        /// The first offset that is kept.
        offset: Offset,
    },
    /// Readers were shown what lies below.
    HighWatermark {
        /// Whose log.
        partition: TopicPartition,
        /// The high watermark.
        offset: Offset,
    },
    /// A leader's epoch began.
    EpochStart {
        /// Whose log.
        partition: TopicPartition,
        /// The epoch.
        epoch: LeaderEpoch,
        /// The log's end when it began.
        start_offset: Offset,
    },
    /// The log is to be cut here; written before it is done.
    Truncate {
        /// Whose log.
        partition: TopicPartition,
        /// The new next offset.
        next_offset: Offset,
        /// The segment that the new end lies in; later ones go.
        segment_base: Offset,
        /// The new end within that segment's file, in bytes.
        position: u64,
    },
    /// The log's storage failed in this run; nothing was appended after.
    Fenced {
        /// Whose log.
        partition: TopicPartition,
        /// What was durable then.
        durable_offset: Offset,
    },
    /// A segment was created and its directory entry synced.
    SegmentOpened {
        /// Whose log.
        partition: TopicPartition,
        /// Its base offset.
        base_offset: Offset,
        /// The broker's clock at its first append.
        first_append: TimestampMs,
    },
    /// A segment is complete: synced, cut to its length, its index written.
    SegmentSealed {
        /// Whose log.
        partition: TopicPartition,
        /// Its base offset.
        base_offset: Offset,
        /// The next segment's base offset.
        next_offset: Offset,
        /// Length of its file in bytes.
        size_bytes: u64,
        /// The greatest timestamp of its records.
        max_timestamp: TimestampMs,
        /// The broker's clock at its first append.
        first_append: TimestampMs,
        /// The broker's clock at its last append.
        last_append: TimestampMs,
    },
    /// The partition was deleted by a committed command; what the ledger said of it is void.
    Removed {
        /// Whose log.
        partition: TopicPartition,
    },
}

impl LedgerRecord {
    /// The partition it speaks of.
    pub fn partition(&self) -> TopicPartition {
        match *self {
            Self::Durable { partition, .. }
            | Self::LogStart { partition, .. }
            | Self::HighWatermark { partition, .. }
            | Self::EpochStart { partition, .. }
            | Self::Truncate { partition, .. }
            | Self::Fenced { partition, .. }
            | Self::SegmentOpened { partition, .. }
            | Self::SegmentSealed { partition, .. }
            | Self::Removed { partition } => partition,
        }
    }

    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind(), 0, 0, 0]);
        let partition = self.partition();
        out.extend_from_slice(&partition.topic.0);
        out.extend_from_slice(&partition.partition.0.to_le_bytes());
        self.encode_fields(out);
        let length = (out.len() - start - HEADER_LENGTH) as u16;
        out[start + 2..start + HEADER_LENGTH].copy_from_slice(&length.to_le_bytes());
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Durable { .. } => kind::DURABLE,
            Self::LogStart { .. } => kind::LOG_START,
            Self::HighWatermark { .. } => kind::HIGH_WATERMARK,
            Self::EpochStart { .. } => kind::EPOCH_START,
            Self::Truncate { .. } => kind::TRUNCATE,
            Self::Fenced { .. } => kind::FENCED,
            Self::SegmentOpened { .. } => kind::SEGMENT_OPENED,
            Self::SegmentSealed { .. } => kind::SEGMENT_SEALED,
            Self::Removed { .. } => kind::REMOVED,
        }
    }

    fn encode_fields(&self, out: &mut Vec<u8>) {
        let mut put = |number: i64| out.extend_from_slice(&number.to_le_bytes());
        match *self {
            Self::Durable {
                next_offset,
                segment_base,
                position,
                last_append,
                ..
            } => {
                put(next_offset.0);
                put(segment_base.0);
                put(position as i64);
                put(last_append.0);
            }
            Self::LogStart { offset, .. } | Self::HighWatermark { offset, .. } => put(offset.0),
            Self::EpochStart {
                epoch,
                start_offset,
                ..
            } => {
                put(i64::from(epoch.0));
                put(start_offset.0);
            }
            Self::Truncate {
                next_offset,
                segment_base,
                position,
                ..
            } => {
                put(next_offset.0);
                put(segment_base.0);
                put(position as i64);
            }
            Self::Fenced { durable_offset, .. } => put(durable_offset.0),
            Self::SegmentOpened {
                base_offset,
                first_append,
                ..
            } => {
                put(base_offset.0);
                put(first_append.0);
            }
            Self::SegmentSealed {
                base_offset,
                next_offset,
                size_bytes,
                max_timestamp,
                first_append,
                last_append,
                ..
            } => {
                put(base_offset.0);
                put(next_offset.0);
                put(size_bytes as i64);
                put(max_timestamp.0);
                put(first_append.0);
                put(last_append.0);
            }
            Self::Removed { .. } => {}
        }
    }

    /// Reads one record off the cursor.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let start = cursor.position();
        let kind = cursor.u8("type of a ledger record")?;
        if cursor.u8("second byte of a ledger record")? != 0 {
            return Err(DecodeError::invalid(
                "second byte of a ledger record is not zero",
                start + 1,
            ));
        }
        let length = usize::from(cursor.u16_le("length of a ledger record")?);
        let body = cursor.slice(length, "ledger record")?;
        Self::decode_body(kind, body).map_err(|error| error.shifted(start + HEADER_LENGTH))
    }

    fn decode_body(kind: u8, body: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let topic = TopicId(cursor.array("topic id of a ledger record")?);
        let partition = PartitionIndex(cursor.i32_le("partition of a ledger record")?);
        let record = Self::decode_fields(kind, TopicPartition { topic, partition }, &mut cursor)?;
        if !cursor.is_empty() {
            let error =
                DecodeError::invalid("ledger record is longer than its fields", cursor.position());
            return Err(error.with_detail(format_args!("{} bytes left", cursor.remaining())));
        }
        Ok(record)
    }

    fn decode_fields(
        kind: u8,
        partition: TopicPartition,
        cursor: &mut Cursor<'_>,
    ) -> Result<Self, DecodeError> {
        Ok(match kind {
            kind::DURABLE => Self::Durable {
                partition,
                next_offset: offset(cursor, "next offset of a durable record")?,
                segment_base: offset(cursor, "segment base of a durable record")?,
                position: cursor.u64_le("position of a durable record")?,
                last_append: TimestampMs(cursor.i64_le("last append of a durable record")?),
            },
            kind::LOG_START => Self::LogStart {
                partition,
                offset: offset(cursor, "offset of a log start record")?,
            },
            kind::HIGH_WATERMARK => Self::HighWatermark {
                partition,
                offset: offset(cursor, "offset of a high watermark record")?,
            },
            kind::EPOCH_START => Self::EpochStart {
                partition,
                epoch: epoch(cursor, "epoch of an epoch start record")?,
                start_offset: offset(cursor, "start offset of an epoch start record")?,
            },
            kind::TRUNCATE => Self::Truncate {
                partition,
                next_offset: offset(cursor, "next offset of a truncate record")?,
                segment_base: offset(cursor, "segment base of a truncate record")?,
                position: cursor.u64_le("position of a truncate record")?,
            },
            kind::FENCED => Self::Fenced {
                partition,
                durable_offset: offset(cursor, "durable offset of a fenced record")?,
            },
            kind::SEGMENT_OPENED => Self::SegmentOpened {
                partition,
                base_offset: offset(cursor, "base offset of a segment opened record")?,
                first_append: TimestampMs(
                    cursor.i64_le("first append of a segment opened record")?,
                ),
            },
            kind::SEGMENT_SEALED => Self::SegmentSealed {
                partition,
                base_offset: offset(cursor, "base offset of a segment sealed record")?,
                next_offset: offset(cursor, "next offset of a segment sealed record")?,
                size_bytes: cursor.u64_le("size of a segment sealed record")?,
                max_timestamp: TimestampMs(
                    cursor.i64_le("max timestamp of a segment sealed record")?,
                ),
                first_append: TimestampMs(
                    cursor.i64_le("first append of a segment sealed record")?,
                ),
                last_append: TimestampMs(cursor.i64_le("last append of a segment sealed record")?),
            },
            kind::REMOVED => Self::Removed { partition },
            unknown => {
                let error = DecodeError::invalid("type of a ledger record is not known", 0);
                return Err(error.with_detail(format_args!("found {unknown}")));
            }
        })
    }
}

/// No offset on disk is negative.
fn offset(cursor: &mut Cursor<'_>, what: &'static str) -> Result<Offset, DecodeError> {
    let at = cursor.position();
    let number = cursor.i64_le(what)?;
    if number < 0 {
        return Err(DecodeError::invalid(what, at).with_detail(format_args!("found {number}")));
    }
    Ok(Offset(number))
}

fn epoch(cursor: &mut Cursor<'_>, what: &'static str) -> Result<LeaderEpoch, DecodeError> {
    let at = cursor.position();
    let number = cursor.i64_le(what)?;
    match i32::try_from(number) {
        Ok(epoch) => Ok(LeaderEpoch(epoch)),
        Err(_) => Err(DecodeError::invalid(what, at).with_detail(format_args!("found {number}"))),
    }
}
