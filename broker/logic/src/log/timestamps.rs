//! Where to look for the first record at or after a time.
//!
//! The index names a stretch of a segment that must hold it, if its timestamps are as the batch headers say; the
//! driver reads the stretch, [`super::find_record`] looks at the records. Should it not be there (it lies below the
//! log's start, or at or above the high watermark), the search goes on behind the stretch, so it ends.

use tackboard_schema::{Offset, TimestampMs};

use super::Log;
use super::fetch::DISK_READ_BYTES_MAX;
use super::index::relative;
use super::segment::Segment;
use crate::shard::interface::TimestampScan;

impl Log {
    /// Where to look from `from_offset` on; `None`: no record at or after the time is visible.
    pub(crate) fn timestamp_scan(
        &self,
        timestamp: TimestampMs,
        from_offset: Offset,
    ) -> Option<TimestampScan> {
        if self.is_truncating() {
            return None;
        }
        let mut from = from_offset.max(self.log_start);
        // Damage is passed over: its records cannot be read.
        while let Some(range) = self.damaged.iter().find(|r| r.from <= from && from < r.to) {
            from = range.to;
        }
        let first = self.segments.holding(from)?;
        let candidates =
            (first..self.segments.count()).filter_map(|index| self.segments.get(index));
        let late_enough = |segment: &&Segment| segment.max_timestamp >= timestamp;
        candidates
            .filter(late_enough)
            .find_map(|segment| self.scan_segment(segment, timestamp, from))
    }

    fn scan_segment(
        &self,
        segment: &Segment,
        timestamp: TimestampMs,
        from: Offset,
    ) -> Option<TimestampScan> {
        let limit = self.high_watermark;
        if segment.base.0 >= limit.offset {
            return None;
        }
        let end = segment.end.map_or(limit.at, |end| end.at.min(limit.at));
        let readable = segment.bytes_to(end);
        let by_time = segment.index.find_timestamp(timestamp);
        let by_offset = match relative(segment.base.0, from) {
            Some(offset) => segment.index.find_offset(offset),
            None => segment.index.find_offset(0),
        };
        let hit = if by_time.file_at >= by_offset.file_at {
            by_time
        } else {
            by_offset
        };
        let file_at = u64::from(hit.file_at);
        let to = hit
            .next_file_at
            .map_or(readable, |next| u64::from(next).min(readable));
        let to = to.min(file_at + DISK_READ_BYTES_MAX);
        let next_damage = self
            .damaged
            .iter()
            .map(|r| r.from)
            .filter(|start| *start > from)
            .min();
        let limit_offset = next_damage.map_or(limit.offset, |start| start.min(limit.offset));
        let is_empty = to <= file_at || from >= limit_offset;
        (!is_empty).then(|| TimestampScan {
            segment: segment.base,
            file_at,
            length: (to - file_at) as u32,
            from_offset: from,
            limit_offset,
            leader_epoch: self.leader_epoch,
        })
    }
}
