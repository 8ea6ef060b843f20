//! The records of one batch, not compressed or no longer so.

use super::BatchHeader;
use super::varint::{VARINT_LENGTH_MAX, VARLONG_LENGTH_MAX, fault, read_varint, read_varlong};
use crate::{DecodeError, Offset, TimestampMs};

/// One record, borrowed from its batch.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Its offset in the partition.
    pub offset: Offset,
    /// Its time: the batch's greatest if the batch was stamped at append, else what the producer set.
    pub timestamp: TimestampMs,
    /// Its key; absent is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// Its value; absent marks the key's deletion in a compacted topic.
    pub value: Option<&'a [u8]>,
    headers: HeaderIterator<'a>,
}

impl<'a> Record<'a> {
    /// Its headers, in order; a name may occur more than once.
    pub fn headers(&self) -> HeaderIterator<'a> {
        self.headers.clone()
    }
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// Its name; producers mean UTF-8, but nothing enforces it.
    pub key: &'a [u8],
    /// Its value, if any.
    pub value: Option<&'a [u8]>,
}

/// Reads records one by one; bounded by the record count and by the bytes, and it ends after the first error.
#[derive(Clone, Debug)]
pub struct RecordIterator<'a> {
    fields: Fields<'a>,
    base_offset: Offset,
    base_timestamp: TimestampMs,
    append_time: Option<TimestampMs>,
    last_offset_delta: i32,
    /// The next record's delta may not be less: offsets rise.
    offset_delta_min: i32,
    records_left: i32,
    error: Option<DecodeError>,
}

impl<'a> RecordIterator<'a> {
    /// `bytes_at`: where `bytes` begins in what the errors count from.
    pub(super) fn new(header: &BatchHeader, bytes: &'a [u8], bytes_at: usize) -> Self {
        Self {
            fields: Fields {
                bytes,
                position: 0,
                bytes_at,
            },
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: header
                .attributes
                .is_log_append_time()
                .then_some(header.max_timestamp),
            last_offset_delta: header.last_offset_delta,
            offset_delta_min: 0,
            records_left: header.record_count.max(0),
            error: None,
        }
    }

    pub(super) fn failed(error: DecodeError) -> Self {
        Self {
            fields: Fields {
                bytes: &[],
                position: 0,
                bytes_at: 0,
            },
            base_offset: Offset(0),
            base_timestamp: TimestampMs(0),
            append_time: None,
            last_offset_delta: 0,
            offset_delta_min: 0,
            records_left: 0,
            error: Some(error),
        }
    }

    fn record(&mut self) -> Result<Record<'a>, DecodeError> {
        let start = self.fields.at();
        let mut body = self.fields.sized("record")?;
        body.byte("attributes of a record")?;
        let timestamp_delta = body.varlong("timestamp delta of a record")?;
        let offset_delta = body.varint("offset delta of a record")?;
        if offset_delta < self.offset_delta_min || offset_delta > self.last_offset_delta {
            let (least, most) = (self.offset_delta_min, self.last_offset_delta);
            let error = DecodeError::invalid("offset delta of a record is out of order", start);
            return Err(error.with_detail(format_args!(
                "{offset_delta} found, {least} to {most} possible"
            )));
        }
        self.offset_delta_min = offset_delta.saturating_add(1);
        let key = body.nullable("key of a record")?;
        let value = body.nullable("value of a record")?;
        let headers = HeaderIterator::read(&mut body)?;
        body.finish("record is longer than its fields")?;
        Ok(Record {
            offset: self.base_offset.plus(i64::from(offset_delta)),
            timestamp: match self.append_time {
                Some(time) => time,
                None => TimestampMs(self.base_timestamp.0.saturating_add(timestamp_delta)),
            },
            key,
            value,
            headers,
        })
    }
}

impl<'a> Iterator for RecordIterator<'a> {
    type Item = Result<Record<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        if self.records_left == 0 {
            // What follows the last record was counted by nobody.
            let rest = std::mem::replace(&mut self.fields.position, self.fields.bytes.len());
            let is_end = rest == self.fields.bytes.len();
            let at_byte = self.fields.bytes_at + rest;
            return (!is_end).then(|| {
                Err(DecodeError::invalid(
                    "bytes after the last record of a batch",
                    at_byte,
                ))
            });
        }
        self.records_left -= 1;
        let record = self.record();
        if record.is_err() {
            self.records_left = 0;
            self.fields.position = self.fields.bytes.len();
        }
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.records_left as usize + 1))
    }
}

/// The headers of one record. Their structure was checked when the record was read.
#[derive(Clone, Debug)]
pub struct HeaderIterator<'a> {
    fields: Fields<'a>,
    headers_left: i32,
}

impl<'a> HeaderIterator<'a> {
    /// Walks over all headers once, so that iterating cannot fail later.
    fn read(body: &mut Fields<'a>) -> Result<Self, DecodeError> {
        let at = body.at();
        let count = body.varint("header count of a record")?;
        if count < 0 {
            let error = DecodeError::invalid("header count of a record is negative", at);
            return Err(error.with_detail(format_args!("found {count}")));
        }
        let headers = Self {
            fields: body.clone(),
            headers_left: count,
        };
        for _ in 0..count {
            Self::header(body)?;
        }
        Ok(headers)
    }

    fn header(fields: &mut Fields<'a>) -> Result<RecordHeader<'a>, DecodeError> {
        let at = fields.at();
        let Some(key) = fields.nullable("name of a record's header")? else {
            return Err(DecodeError::invalid(
                "name of a record's header is null",
                at,
            ));
        };
        Ok(RecordHeader {
            key,
            value: fields.nullable("value of a record's header")?,
        })
    }
}

impl<'a> Iterator for HeaderIterator<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.headers_left == 0 {
            return None;
        }
        self.headers_left -= 1;
        Self::header(&mut self.fields).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.headers_left as usize;
        (left, Some(left))
    }
}

/// Reads the fields of records off a slice.
#[derive(Clone, Debug)]
struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Where `bytes` begins in what the errors count from.
    bytes_at: usize,
}

impl<'a> Fields<'a> {
    fn at(&self) -> usize {
        self.bytes_at + self.position
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    #[inline]
    fn varint(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        let rest = self.rest();
        match read_varint(rest) {
            Some((value, length)) => {
                self.position += length;
                Ok(value)
            }
            None => Err(fault(rest, VARINT_LENGTH_MAX, what, self.at())),
        }
    }

    #[inline]
    fn varlong(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        let rest = self.rest();
        match read_varlong(rest) {
            Some((value, length)) => {
                self.position += length;
                Ok(value)
            }
            None => Err(fault(rest, VARLONG_LENGTH_MAX, what, self.at())),
        }
    }

    #[inline]
    fn byte(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        let byte = self
            .rest()
            .first()
            .copied()
            .ok_or_else(|| DecodeError::truncated(what, self.at()))?;
        self.position += 1;
        Ok(byte)
    }

    /// A length and so many bytes; -1 is null.
    #[inline]
    fn nullable(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, DecodeError> {
        let at = self.at();
        let length = self.varint(what)?;
        match usize::try_from(length) {
            Ok(length) => self.slice(length, what, at).map(Some),
            Err(_) if length == -1 => Ok(None),
            Err(_) => {
                Err(DecodeError::invalid(what, at).with_detail(format_args!("length {length}")))
            }
        }
    }

    /// A length and so many bytes, to be read as fields of their own.
    fn sized(&mut self, what: &'static str) -> Result<Fields<'a>, DecodeError> {
        let at = self.at();
        let length = self.varint(what)?;
        let Ok(length) = usize::try_from(length) else {
            return Err(DecodeError::invalid(what, at).with_detail(format_args!("length {length}")));
        };
        let bytes_at = self.at();
        Ok(Fields {
            bytes: self.slice(length, what, at)?,
            position: 0,
            bytes_at,
        })
    }

    fn slice(
        &mut self,
        length: usize,
        what: &'static str,
        at: usize,
    ) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let slice = rest.get(..length).ok_or_else(|| {
            let error = DecodeError::truncated(what, at);
            error.with_detail(format_args!("{length} bytes wanted, {} left", rest.len()))
        })?;
        self.position += length;
        Ok(slice)
    }

    fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        match self.rest() {
            [] => Ok(()),
            rest => Err(DecodeError::invalid(what, self.at())
                .with_detail(format_args!("{} bytes left", rest.len()))),
        }
    }
}
