//! Finds where in a segment's file a log is to be cut: the boundary at an offset, or before the batch that holds it.
//!
//! Only headers are looked at, one behind the other from an entry of the sparse index, each held against the one before:
//! a log has no gaps. Whether the batches hold is for the recovery that follows a cut.

use tackboard_schema::record_batch::{BatchHeader, HEADER_LENGTH};
use tackboard_schema::{DecodeError, DecodeErrorKind, Offset};

use crate::shard::interface::SegmentBase;

/// Bytes of a segment that are read at a time. One read shows at least one header.
pub const LOCATE_READ_BYTES: u32 = 32 << 10;

/// A search that goes over several reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundarySearch {
    /// In which segment.
    pub segment: SegmentBase,
    /// What is looked for.
    pub offset: Offset,
    /// Where the next header lies in the file.
    pub file_at: u64,
    /// The offset that it must have; `None` before the first one.
    expected: Option<Offset>,
}

/// A boundary between two batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBoundary {
    /// The offset of the batch that begins there.
    pub offset: Offset,
    /// Where in the segment's file.
    pub file_at: u64,
}

impl BoundarySearch {
    /// Begins at `file_at`, the start of a batch at or before `offset`, which lies in `segment`.
    pub fn new(segment: SegmentBase, offset: Offset, file_at: u64) -> Self {
        Self {
            segment,
            offset,
            file_at,
            expected: None,
        }
    }

    /// Takes the bytes from `file_at` on, as many as the file has up to [`LOCATE_READ_BYTES`]. `None`: read again, from
    /// where `file_at` lies now.
    ///
    /// # Errors
    ///
    /// If a header on the way is damaged, or the file ends before the boundary.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<FileBoundary>, DecodeError> {
        let mut rest = bytes;
        if rest.len() < HEADER_LENGTH {
            let kind = DecodeErrorKind::Truncated;
            return Err(DecodeError::new(kind, "segment before the offset", 0));
        }
        while rest.len() >= HEADER_LENGTH {
            let header = BatchHeader::read(rest)?;
            let (base, next) = (header.base_offset, header.next_offset());
            let follows = self.expected.is_none_or(|expected| expected == base);
            if !follows || base > self.offset || next <= base {
                let kind = DecodeErrorKind::Corrupt;
                return Err(DecodeError::new(kind, "base offset", 0));
            }
            let here = FileBoundary {
                offset: base,
                file_at: self.file_at,
            };
            let length = header.total_length();
            if base == self.offset || next > self.offset {
                return Ok(Some(here));
            }
            self.file_at += length as u64;
            self.expected = Some(next);
            if next == self.offset {
                return Ok(Some(FileBoundary {
                    offset: next,
                    file_at: self.file_at,
                }));
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use tackboard_schema::record_batch::{BatchBuilder, Compression, stamp};
    use tackboard_schema::{LeaderEpoch, TimestampMs};

    use super::*;

    /// Batches of two records each, from offset 10 on.
    fn segment(batches: i64, value_bytes: usize) -> (Vec<u8>, usize) {
        let mut bytes = Vec::new();
        let mut length = 0;
        for index in 0..batches {
            let mut builder = BatchBuilder::new(TimestampMs(0));
            for _ in 0..2 {
                let value = vec![7; value_bytes];
                let appended = builder.append(TimestampMs(0), None, Some(&value), &[]);
                appended.expect("the batch is short");
            }
            let mut batch = builder.finish(None, Compression::None);
            stamp(&mut batch, Offset(10 + 2 * index), LeaderEpoch(0));
            length = batch.len();
            bytes.extend_from_slice(&batch);
        }
        (bytes, length)
    }

    fn search(bytes: &[u8], offset: i64, reads_max: u32) -> Result<FileBoundary, DecodeError> {
        let mut search = BoundarySearch::new(SegmentBase(Offset(10)), Offset(offset), 0);
        for _ in 0..reads_max {
            let from = (search.file_at as usize).min(bytes.len());
            let to = (from + LOCATE_READ_BYTES as usize).min(bytes.len());
            if let Some(found) = search.feed(&bytes[from..to])? {
                return Ok(found);
            }
        }
        panic!("not found in {reads_max} reads");
    }

    #[test]
    fn an_offset_within_a_batch_is_cut_before_it() {
        let (bytes, length) = segment(5, 100);
        for (asked, offset, batches) in [(10, 10, 0), (11, 10, 0), (14, 14, 2), (17, 16, 3)] {
            let file_at = (batches * length) as u64;
            let offset = Offset(offset);
            assert_eq!(
                search(&bytes, asked, 1),
                Ok(FileBoundary { offset, file_at })
            );
        }
    }

    #[test]
    fn batches_longer_than_a_read_are_stepped_over() {
        let (bytes, length) = segment(4, LOCATE_READ_BYTES as usize);
        let found = search(&bytes, 17, 4).unwrap();
        assert_eq!(
            (found.offset, found.file_at),
            (Offset(16), 3 * length as u64)
        );
        // The end of the last batch is found in its header.
        let found = search(&bytes, 18, 4).unwrap();
        assert_eq!(
            (found.offset, found.file_at),
            (Offset(18), 4 * length as u64)
        );
    }

    #[test]
    fn a_gap_or_the_end_of_the_file_is_damage() {
        let (mut bytes, length) = segment(5, 100);
        assert!(search(&bytes, 30, 9).is_err(), "nothing holds it");
        stamp(&mut bytes[length..], Offset(13), LeaderEpoch(0));
        assert!(search(&bytes, 16, 9).is_err(), "12 should follow");
        assert!(search(&bytes, 12, 9).is_ok(), "which lies behind");
    }
}
