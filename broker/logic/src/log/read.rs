//! What is done with bytes that were read for a request: whole batches are cut out, the record of a time is found.
//!
//! Pure functions over what the disk gave. Checksums are checked here, so bad bytes never reach a consumer.

use std::ops::Range;

use tackboard_schema::record_batch::{BatchHeader, BatchView, RecordIterator, check_stored_batch};
use tackboard_schema::{DecodeError, DecodeErrorKind, Offset, TimestampMs};

use super::limits::STORED_BATCH_BYTES_MAX;
use crate::shard::interface::{DiskRead, TimestampScan};

/// Most bytes that are decompressed in one stretch when a record is looked for in it. What a core spends on it is taken
/// from everybody it serves, so a batch that swells beyond is answered by its header.
pub const LOOK_UP_BYTES_MAX: usize = 8 << 20;

/// Bytes that should hold a batch and do not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged batch at byte {file_at} of the segment: {error}")]
pub struct Damage {
    /// Position in the segment's file.
    pub file_at: u64,
    /// What is wrong.
    pub error: DecodeError,
}

/// The part of `bytes`, read as `read` says, to send: whole batches from the one that holds the offset asked for,
/// as many as fit, at least one. An empty range: the first one ends above the limit.
///
/// # Errors
///
/// If the first batch to send, or one before it, is damaged or not there. Damage behind it ends the answer before it.
pub fn trim_read(bytes: &[u8], read: &DiskRead) -> Result<Range<usize>, Damage> {
    trim(bytes, read, None).map(|(range, _)| range)
}

/// Cuts what answers a read out of consecutive stretches of a segment, one call each.
#[derive(Clone, Copy, Debug)]
pub struct StretchCut {
    /// What is still to be found.
    read: DiskRead,
    /// Where the stretch before ended.
    expected: Option<Offset>,
    is_done: bool,
}

impl StretchCut {
    /// For the answer to `read`.
    pub fn new(read: &DiskRead) -> Self {
        Self {
            read: *read,
            expected: None,
            is_done: false,
        }
    }

    /// The part to send of the next stretch, which lies from `file_at` on in the segment; empty: nothing of it is sent.
    ///
    /// # Errors
    ///
    /// As of [`trim_read`]. What was cut before stands.
    pub fn cut(&mut self, bytes: &[u8], file_at: u64) -> Result<Range<usize>, Damage> {
        let is_first = self.expected.is_none();
        let skipped = match is_first {
            true => self.read.file_at.saturating_sub(file_at) as usize,
            false => 0,
        };
        self.read.file_at = file_at + skipped as u64;
        let bytes = bytes.get(skipped..).unwrap_or_default();
        let (range, next_offset) = trim(bytes, &self.read, self.expected)?;
        let is_too_long = !is_first && range.len() > self.read.bytes_max as usize;
        if range.is_empty() || is_too_long {
            self.is_done = true;
            return Ok(0..0);
        }
        self.expected = Some(next_offset);
        self.read.fetch_offset = next_offset;
        self.read.bytes_max = (self.read.bytes_max).saturating_sub(range.len() as u32);
        // A batch that was left out did not fit, is damaged, or ends above the limit.
        self.is_done = range.end < bytes.len() || self.read.bytes_max == 0;
        Ok(range.start + skipped..range.end + skipped)
    }

    /// Stretches behind have nothing to add.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The offset behind what was found.
    pub fn next_offset(&self) -> Offset {
        self.read.fetch_offset
    }
}

/// What [`trim_read`] finds, and the offset behind it.
///
/// The base offset of a batch lies outside its checksum, so it is held against the batch before: a log has no gaps.
/// `expected` is the offset behind the bytes before these, if any were read.
fn trim(
    bytes: &[u8],
    read: &DiskRead,
    mut expected: Option<Offset>,
) -> Result<(Range<usize>, Offset), Damage> {
    let mut at = 0;
    let mut passed = 0;
    // Batches before the one asked for are passed over by their lengths alone.
    loop {
        if at >= bytes.len() {
            // A read holds the batch asked for, so what was passed over last named a wrong end, or the file is cut.
            let error = DecodeError::new(DecodeErrorKind::Corrupt, "end of a record batch", 0);
            return Err(damage(read.file_at, passed, error));
        }
        let header =
            BatchHeader::read(&bytes[at..]).map_err(|error| damage(read.file_at, at, error))?;
        if header.base_offset > read.fetch_offset {
            // Nothing is missing in a log, so a header that was passed over named a wrong end.
            let what = "record batch before this one is damaged";
            let error = DecodeError::new(DecodeErrorKind::Corrupt, what, 0);
            return Err(damage(read.file_at, at, error));
        }
        if header.next_offset() > read.fetch_offset {
            break;
        }
        if expected.is_some_and(|expected| expected != header.base_offset) {
            return Err(damage(read.file_at, at, misplaced(&header)));
        }
        expected = Some(header.next_offset());
        passed = at;
        at = at.saturating_add(header.total_length());
    }
    let start = at;
    let mut end = start;
    let mut next_offset = read.fetch_offset;
    while end < bytes.len() {
        let checked = check_stored_batch(&bytes[end..], STORED_BATCH_BYTES_MAX);
        let placed = checked.and_then(|batch| {
            let header = *batch.header();
            match expected {
                Some(expected) if expected != header.base_offset => Err(misplaced(&header)),
                None if header.base_offset > read.fetch_offset => Err(misplaced(&header)),
                _ => Ok(header),
            }
        });
        let header = match placed {
            Ok(header) => header,
            Err(error) if end == start => return Err(damage(read.file_at, end, error)),
            Err(_) => break,
        };
        expected = Some(header.next_offset());
        let next = end + header.total_length();
        let fits = end == start || next - start <= read.bytes_max as usize;
        if header.next_offset() > read.limit_offset || !fits {
            break;
        }
        end = next;
        next_offset = header.next_offset();
    }
    Ok((start..end, next_offset))
}

/// A record and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: TimestampMs,
}

/// Outcome of looking for a record in the bytes of one scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSearch {
    /// The first record at or after the time.
    Found(FoundRecord),
    /// Not in these bytes: [`Lookup::searched`](crate::request::lookup::Lookup::searched) says where to look next.
    Continue {
        /// No record below this offset counts.
        from_offset: Offset,
    },
}

/// Looks for the first record at or after `timestamp` in `bytes`, read as `scan` says.
///
/// # Errors
///
/// If a batch that may hold it is damaged. A batch that is intact and whose records cannot be read is not: the broker
/// takes batches without looking at their records, so that is what a producer sent. Such a batch is found as a whole,
/// by its first offset and greatest timestamp.
pub fn find_record(
    bytes: &[u8],
    scan: &TimestampScan,
    timestamp: TimestampMs,
) -> Result<RecordSearch, Damage> {
    let mut at = 0;
    let mut from_offset = scan.from_offset;
    let mut budget = LOOK_UP_BYTES_MAX;
    while at < bytes.len() {
        let header = match BatchHeader::read(&bytes[at..]) {
            Ok(header) if header.total_length() <= bytes.len() - at => header,
            // A stretch may be cut off by its bound; what was walked over is behind us.
            _ if from_offset > scan.from_offset => break,
            Ok(header) => return Err(damage(scan.file_at, at, cut_short(&header))),
            Err(error) => return Err(damage(scan.file_at, at, error)),
        };
        if header.base_offset >= scan.limit_offset {
            from_offset = scan.limit_offset;
            break;
        }
        let may_hold = header.max_timestamp >= timestamp && header.next_offset() > scan.from_offset;
        if may_hold {
            let found = find_in_batch(&bytes[at..], scan, timestamp, &mut budget);
            if let Some(found) = found.map_err(|error| damage(scan.file_at, at, error))? {
                return Ok(RecordSearch::Found(found));
            }
        }
        from_offset = from_offset.max(header.next_offset());
        at += header.total_length();
    }
    if from_offset <= scan.from_offset {
        // The stretch holds the batch of the offset to start from, so fewer bytes were given than named.
        let kind = DecodeErrorKind::Truncated;
        return Err(damage(
            scan.file_at,
            at,
            DecodeError::new(kind, "stretch of a segment", 0),
        ));
    }
    Ok(RecordSearch::Continue { from_offset })
}

fn find_in_batch(
    bytes: &[u8],
    scan: &TimestampScan,
    timestamp: TimestampMs,
    budget: &mut usize,
) -> Result<Option<FoundRecord>, DecodeError> {
    let batch: BatchView<'_> = check_stored_batch(bytes, STORED_BATCH_BYTES_MAX)?.view();
    let header = batch.header();
    let whole = FoundRecord {
        offset: header.base_offset.max(scan.from_offset),
        timestamp: header.max_timestamp,
    };
    let mut buffer = Vec::new();
    let Ok(mut records) = batch.records_decompressed(&mut buffer, *budget) else {
        return Ok(Some(whole));
    };
    let found = first_record(&mut records, scan, timestamp, whole);
    // Nothing was decompressed of a batch that is not compressed.
    *budget = budget.saturating_sub(buffer.len());
    Ok(found)
}

/// The first record that counts; the batch as a whole when a record cannot be read.
fn first_record(
    records: &mut RecordIterator<'_>,
    scan: &TimestampScan,
    timestamp: TimestampMs,
    whole: FoundRecord,
) -> Option<FoundRecord> {
    for record in records {
        let Ok(record) = record else {
            return Some(whole);
        };
        let counts = scan.from_offset <= record.offset && record.offset < scan.limit_offset;
        if counts && record.timestamp >= timestamp {
            return Some(FoundRecord {
                offset: record.offset,
                timestamp: record.timestamp,
            });
        }
    }
    None
}

fn damage(file_at: u64, at: usize, error: DecodeError) -> Damage {
    Damage {
        file_at: file_at + at as u64,
        error,
    }
}

fn misplaced(header: &BatchHeader) -> DecodeError {
    DecodeError::new(DecodeErrorKind::Corrupt, "base offset", 0).with_detail(format_args!(
        "{} does not follow the batch before",
        header.base_offset
    ))
}

fn cut_short(header: &BatchHeader) -> DecodeError {
    DecodeError::new(DecodeErrorKind::Truncated, "record batch", 0)
        .with_detail(format_args!("{} bytes wanted", header.total_length()))
}

#[cfg(test)]
mod tests {
    use tackboard_schema::LeaderEpoch;
    use tackboard_schema::record_batch::{BatchBuilder, Compression, stamp};

    use super::*;
    use crate::shard::interface::SegmentBase;

    /// Batches of two records each, from offset 10 on; and the length of one.
    fn segment(batches: i64) -> (Vec<u8>, usize) {
        let mut bytes = Vec::new();
        for index in 0..batches {
            let mut builder = BatchBuilder::new(TimestampMs(0));
            for value in [b"a", b"b"] {
                let appended = builder.append(TimestampMs(0), None, Some(value), &[]);
                appended.expect("the batch is short");
            }
            let mut batch = builder.finish(None, Compression::None);
            stamp(&mut batch, Offset(10 + 2 * index), LeaderEpoch(0));
            bytes.extend_from_slice(&batch);
        }
        let length = bytes.len() / batches as usize;
        (bytes, length)
    }

    fn read(fetch_offset: i64, length: usize) -> DiskRead {
        DiskRead {
            segment: SegmentBase(Offset(10)),
            file_at: 4096,
            length: length as u32,
            fetch_offset: Offset(fetch_offset),
            limit_offset: Offset(16),
            bytes_max: 1,
            leader_epoch: LeaderEpoch(0),
        }
    }

    /// The low byte of a batch's `last_offset_delta`, and that of its length.
    const DELTA_AT: usize = 26;
    const LENGTH_AT: usize = 11;

    #[test]
    fn a_header_that_names_a_wrong_end_is_damage_never_an_empty_answer() {
        let (bytes, length) = segment(3);
        assert_eq!(
            trim_read(&bytes, &read(15, bytes.len())),
            Ok(2 * length..3 * length)
        );
        for (batch, at, value) in [(2, DELTA_AT, 0), (2, LENGTH_AT, 0xff), (1, LENGTH_AT, 0xff)] {
            let mut bytes = bytes.clone();
            bytes[batch * length + at] = value;
            let damage = trim_read(&bytes, &read(15, bytes.len())).expect_err("damage");
            assert_eq!(damage.file_at, 4096 + (batch * length) as u64, "{damage}");
        }
        assert!(trim_read(&[], &read(15, 0)).is_err(), "the file was cut");
    }
}
