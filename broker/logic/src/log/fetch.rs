//! Where the bytes are that a reader asks for: in frozen chunks, or in a segment's file.
//!
//! Nothing at or above the high watermark is ever named. What lies below is written, and a chunk is written from only
//! when it is frozen, so bytes named here never change.

use tackboard_schema::{ErrorCode, Offset};

use super::Log;
use super::index::relative;
use super::position::StreamByte;
use crate::shard::interface::{CachedSlice, DiskRead, Effects, FetchAnswer, FetchData};

/// Longest disk read for one entry, in bytes, unless a single batch needs more.
pub(crate) const DISK_READ_BYTES_MAX: u64 = 16 << 20;

/// What there is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// Nothing yet: the offset is at the end, or above the high watermark.
    Nothing,
    /// Consecutive bytes of frozen chunks.
    Cached { from: StreamByte, to: StreamByte },
    /// Bytes of a file.
    Disk(DiskRead),
    /// No such offset, or one that cannot be read.
    Refused(ErrorCode),
}

impl Located {
    /// Bytes that will be sent, as far as is known.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Cached { from, to } => to.since(*from),
            Self::Disk(read) => u64::from(read.length.min(read.bytes_max)),
            Self::Nothing | Self::Refused(_) => 0,
        }
    }
}

impl Log {
    /// Finds about `bytes_max` bytes from the batch that holds `offset`, at least one batch.
    pub(crate) fn locate(&self, offset: Offset, bytes_max: u32) -> Located {
        let end = self.positions.appended().offset;
        if self.is_deleting() {
            return Located::Refused(ErrorCode::UnknownTopicOrPartition);
        }
        if self.is_truncating() {
            return Located::Refused(ErrorCode::NotLeaderOrFollower);
        }
        if offset < self.log_start || offset > end {
            return Located::Refused(ErrorCode::OffsetOutOfRange);
        }
        if offset >= self.high_watermark.offset {
            return Located::Nothing;
        }
        match self.locate_cached(offset, bytes_max) {
            Some(located) => located,
            None => self.locate_on_disk(offset, bytes_max),
        }
    }

    fn locate_cached(&self, offset: Offset, bytes_max: u32) -> Option<Located> {
        if self.recent.first()?.offset > offset {
            return None;
        }
        let from = self.recent.holding(offset)?.at;
        let appended = self.positions.appended();
        let wanted = from.plus(u64::from(bytes_max));
        let fitting = self.recent.boundary_at_or_before(wanted, appended)?.at;
        let one = self.recent.boundary_behind(from, appended).at;
        let to = fitting.max(one).min(self.high_watermark.at);
        self.chunks.holding(from)?;
        Some(Located::Cached { from, to })
    }

    fn locate_on_disk(&self, offset: Offset, bytes_max: u32) -> Located {
        if self
            .damaged
            .iter()
            .any(|range| range.from <= offset && offset < range.to)
        {
            return Located::Refused(ErrorCode::KafkaStorageError);
        }
        let Some(segment) = self
            .segments
            .holding(offset)
            .and_then(|i| self.segments.get(i))
        else {
            return Located::Refused(ErrorCode::OffsetOutOfRange);
        };
        let Some(relative_offset) = relative(segment.base.0, offset) else {
            return Located::Refused(ErrorCode::OffsetOutOfRange);
        };
        let readable = segment.end.map_or(self.high_watermark.at, |end| end.at);
        let readable = segment.bytes_to(readable.min(self.high_watermark.at));
        let hit = segment.index.find_offset(relative_offset);
        let file_at = u64::from(hit.file_at);
        // The batch ends at or before the next indexed one, so the first part always holds it.
        let one = hit.next_file_at.map_or(readable, u64::from);
        let more = file_at + u64::from(bytes_max).min(DISK_READ_BYTES_MAX);
        let to = one.max(more).min(readable);
        let damage = self
            .damaged
            .iter()
            .map(|range| range.from)
            .filter(|from| *from > offset);
        let limit_offset = damage.min().map_or(self.high_watermark.offset, |from| {
            from.min(self.high_watermark.offset)
        });
        Located::Disk(DiskRead {
            segment: segment.base,
            file_at,
            length: to.saturating_sub(file_at).min(u64::from(u32::MAX)) as u32,
            fetch_offset: offset,
            limit_offset,
            bytes_max,
            leader_epoch: self.leader_epoch,
        })
    }

    /// How deep in the cache `from` lies, in bytes: of the `cache_bytes` of all logs the share that it is of this log's,
    /// counted from its end.
    pub(crate) fn depth_in_cache(&self, from: StreamByte, cache_bytes: u64) -> u64 {
        let oldest = self.chunks.list().iter().find(|chunk| !chunk.pinned);
        let end = self.positions.appended().at;
        let all = oldest.map_or(0, |chunk| end.since(chunk.own_start()));
        let (behind, all) = (end.since(from).min(all), all.max(1));
        match cache_bytes.checked_mul(behind) {
            Some(product) => product / all,
            // A division of 128 bits is slow: only where it must be.
            None => (u128::from(cache_bytes) * u128::from(behind) / u128::from(all)) as u64,
        }
    }

    /// Bytes from where `read` begins to the end of the log.
    pub(crate) fn distance_to_end(&self, read: &DiskRead) -> u64 {
        let end = self.positions.appended().at;
        let segment = self.segments.find(read.segment);
        segment.map_or(u64::MAX, |segment| {
            segment.bytes_to(end).saturating_sub(read.file_at)
        })
    }

    /// The answer for one entry of a fetch; slices of chunks go to `out.slices`.
    pub(crate) fn fetch_answer(&self, located: Located, out: &mut Effects) -> FetchAnswer {
        let data = match located {
            Located::Nothing | Located::Refused(_) => FetchData::Empty,
            Located::Disk(read) => FetchData::Disk(read),
            Located::Cached { from, to } => self.slices(from, to, out),
        };
        let known = !self.is_deleting();
        FetchAnswer {
            log: self.id,
            error: match located {
                Located::Refused(code) => code,
                _ => ErrorCode::None,
            },
            high_watermark: if known {
                self.high_watermark.offset
            } else {
                Offset(-1)
            },
            log_start_offset: if known { self.log_start } else { Offset(-1) },
            data,
        }
    }

    fn slices(&self, from: StreamByte, to: StreamByte, out: &mut Effects) -> FetchData {
        let first_slice = out.slices.len() as u32;
        let first = self
            .chunks
            .holding(from)
            .expect("the first byte was found in a chunk");
        for chunk in self.chunks.list().iter().skip(first) {
            let (start, end) = (chunk.own_start().max(from), chunk.own_end().min(to));
            if start >= end {
                break;
            }
            assert!(chunk.frozen, "what is below the high watermark is frozen");
            out.slices.push(CachedSlice {
                chunk: chunk.id,
                at: start.since(chunk.origin) as u32,
                length: end.since(start) as u32,
            });
        }
        FetchData::Cached {
            slices: first_slice..out.slices.len() as u32,
            bytes: to.since(from) as u32,
        }
    }
}
