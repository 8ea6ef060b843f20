//! Grows one batch record by record.

use super::header::at;
use super::varint::{VARINT_LENGTH_MAX, varlong_length, write_varlong};
use super::{
    Attributes, BatchHeader, Compression, HEADER_LENGTH, LENGTH_AND_OFFSET_LENGTH, compression,
};
use crate::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

/// The longest batch that the format can express.
pub const BATCH_LENGTH_MAX: usize = i32::MAX as usize;

/// The attributes of a record have no meaning yet.
const RECORD_ATTRIBUTES: u8 = 0;

/// Who produces a batch, and the sequence number of its first record.
pub type ProducerStamp = (ProducerId, ProducerEpoch, i32);

/// The record would bring the batch beyond [`BATCH_LENGTH_MAX`]. Nothing was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record batch cannot be longer than {BATCH_LENGTH_MAX} bytes")]
pub struct BatchFull;

/// Collects records into one batch.
///
/// Records are encoded as they come; [`finish_into`](Self::finish_into) adds the header, compresses if asked
/// to, and leaves the builder empty with its memory kept, ready for the next batch.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    /// Room for the header, then the records, then what earlier batches left: memory that was written once
    /// is written again without being cleared.
    bytes: Vec<u8>,
    /// Where the records end.
    end: usize,
    compressed: Vec<u8>,
    base_timestamp: TimestampMs,
    max_timestamp: TimestampMs,
    record_count: i32,
}

impl BatchBuilder {
    /// An empty batch. Timestamps are stored as differences from `base_timestamp`: usually that of the first
    /// record.
    pub fn new(base_timestamp: TimestampMs) -> Self {
        Self {
            bytes: vec![0; HEADER_LENGTH],
            end: HEADER_LENGTH,
            compressed: Vec::new(),
            base_timestamp,
            max_timestamp: TimestampMs(i64::MIN),
            record_count: 0,
        }
    }

    /// Drops all records and begins anew, keeping the memory.
    pub fn reset(&mut self, base_timestamp: TimestampMs) {
        self.end = HEADER_LENGTH;
        self.base_timestamp = base_timestamp;
        self.max_timestamp = TimestampMs(i64::MIN);
        self.record_count = 0;
    }

    /// Length of the batch so far, uncompressed, header included.
    pub fn size(&self) -> usize {
        self.end
    }

    /// How many records there are.
    pub fn record_count(&self) -> usize {
        self.record_count as usize
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// What [`size`](Self::size) would be after appending this record, exactly.
    pub fn size_after(
        &self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) -> usize {
        let body = body_length(
            self.timestamp_delta(timestamp),
            self.record_count,
            key,
            value,
            headers,
        );
        self.size() + varlong_length(body as i64) + body
    }

    /// Adds a record.
    #[inline]
    pub fn append(
        &mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) -> Result<(), BatchFull> {
        let timestamp_delta = self.timestamp_delta(timestamp);
        let body = body_length(timestamp_delta, self.record_count, key, value, headers);
        if body > BATCH_LENGTH_MAX - VARINT_LENGTH_MAX - self.end {
            return Err(BatchFull);
        }
        self.make_room(body + VARINT_LENGTH_MAX);
        let mut out = Writer {
            bytes: &mut self.bytes,
            at: self.end,
        };
        out.varlong(body as i64);
        out.byte(RECORD_ATTRIBUTES);
        out.varlong(timestamp_delta);
        out.varlong(i64::from(self.record_count));
        out.nullable(key);
        out.nullable(value);
        out.varlong(headers.len() as i64);
        for (name, value) in headers {
            out.nullable(Some(name.as_bytes()));
            out.nullable(*value);
        }
        self.end = out.at;
        self.record_count += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        Ok(())
    }

    /// The finished batch in a vector of its own; see [`finish_into`](Self::finish_into).
    pub fn finish(&mut self, producer: Option<ProducerStamp>, compression: Compression) -> Vec<u8> {
        let mut out = Vec::new();
        self.finish_into(producer, compression, &mut out);
        out
    }

    /// Appends the finished batch to `out` and empties the builder, which keeps the base timestamp.
    ///
    /// Base offset is 0 and leader epoch -1, the broker's to set. Without a producer the batch is not
    /// idempotent. A block that compression would make longer stays uncompressed.
    ///
    /// # Panics
    ///
    /// If the builder is empty: a batch has at least one record.
    pub fn finish_into(
        &mut self,
        producer: Option<ProducerStamp>,
        compression: Compression,
        out: &mut Vec<u8>,
    ) {
        assert!(self.record_count > 0, "a batch has at least one record");
        let is_smaller = compression != Compression::None && self.compress(compression);
        let (codec, payload_length) = match is_smaller {
            true => (compression, self.compressed.len()),
            false => (Compression::None, self.end - HEADER_LENGTH),
        };
        let header = self.header(producer, codec, payload_length);
        self.bytes[..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
        let start = out.len();
        if is_smaller {
            out.reserve(HEADER_LENGTH + payload_length);
            out.extend_from_slice(&self.bytes[..HEADER_LENGTH]);
            out.extend_from_slice(&self.compressed);
        } else {
            out.extend_from_slice(&self.bytes[..self.end]);
        }
        let crc = crc32c::crc32c(&out[start + at::ATTRIBUTES..]);
        out[start + at::CRC..start + at::ATTRIBUTES].copy_from_slice(&crc.to_be_bytes());
        self.reset(self.base_timestamp);
    }

    /// Compresses the records; whether that made them smaller.
    fn compress(&mut self, codec: Compression) -> bool {
        self.compressed.clear();
        let records = &self.bytes[HEADER_LENGTH..self.end];
        compression::compress(codec, records, &mut self.compressed);
        self.compressed.len() < records.len()
    }

    fn header(
        &self,
        producer: Option<ProducerStamp>,
        codec: Compression,
        payload_length: usize,
    ) -> BatchHeader {
        let (producer_id, producer_epoch, base_sequence) =
            producer.unwrap_or((ProducerId::NONE, ProducerEpoch::NONE, -1));
        BatchHeader {
            base_offset: Offset(0),
            batch_length: (HEADER_LENGTH - LENGTH_AND_OFFSET_LENGTH + payload_length) as u32,
            partition_leader_epoch: LeaderEpoch(-1),
            crc: 0,
            attributes: Attributes(u16::from(codec.id())),
            last_offset_delta: self.record_count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count: self.record_count,
        }
    }

    /// Sees to it that so many bytes can be written behind the records.
    #[inline]
    fn make_room(&mut self, length: usize) {
        if self.bytes.len() - self.end < length {
            self.grow(length);
        }
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        let doubled = self.bytes.len() * 2;
        self.bytes.resize(doubled.max(self.end + length), 0);
    }

    fn timestamp_delta(&self, timestamp: TimestampMs) -> i64 {
        timestamp.0.wrapping_sub(self.base_timestamp.0)
    }
}

/// Length of a record after its own length field.
#[inline]
fn body_length(
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&str, Option<&[u8]>)],
) -> usize {
    let nullable = |bytes: Option<&[u8]>| {
        varlong_length(nullable_length(bytes)) + bytes.map_or(0, <[u8]>::len)
    };
    let fixed = 1 + varlong_length(timestamp_delta) + varlong_length(i64::from(offset_delta));
    let mut length = fixed + nullable(key) + nullable(value) + varlong_length(headers.len() as i64);
    for (name, value) in headers {
        length += nullable(Some(name.as_bytes())) + nullable(*value);
    }
    length
}

/// What stands in front of a key or a value: its length, or -1 for null.
#[inline]
fn nullable_length(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| bytes.len() as i64)
}

/// Writes the fields of a record into memory that has room for them.
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    fn varlong(&mut self, value: i64) {
        self.at += write_varlong(&mut self.bytes[self.at..], value);
    }

    #[inline]
    fn nullable(&mut self, bytes: Option<&[u8]>) {
        self.varlong(nullable_length(bytes));
        if let Some(bytes) = bytes {
            self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }
}
