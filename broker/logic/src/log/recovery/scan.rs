//! Walks over the batches of one segment, window by window.

use std::ops::RangeInclusive;

use tackboard_schema::record_batch::{BatchHeader, HEADER_LENGTH, check_stored_batch};
use tackboard_schema::{LeaderEpoch, Offset, ProducerId, TimestampMs};

use super::{DamagedRange, SCAN_FIRST_READ_BYTES, SCAN_READ_BYTES};
use crate::ledger::note_epoch;
use crate::log::index::{SparseIndex, relative};
use crate::log::limits::STORED_BATCH_BYTES_MAX;
use crate::log::producers::{ProducerTable, Sequencing};
use crate::shard::interface::{BLOCK_BYTES, Now, SegmentBase};

/// A batch boundary that something other than the file itself proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Boundary {
    pub offset: Offset,
    pub file_at: u64,
}

/// What the batches of a scan add to.
pub(super) struct Sink<'a> {
    pub producers: &'a mut ProducerTable,
    /// Batches below it are in the snapshot that the producers were read from.
    pub producers_from: Offset,
    pub epochs: &'a mut Vec<(LeaderEpoch, Offset)>,
    pub damaged: &'a mut Vec<DamagedRange>,
}

/// One segment's scan.
#[derive(Debug)]
pub(super) struct SegmentScan {
    pub base: SegmentBase,
    file_bytes: u64,
    /// No batch of this segment reaches beyond.
    limit: Offset,
    /// That is said by nothing but the name of the next file.
    limit_is_name: bool,
    /// Below it everything was on the medium.
    proven: Offset,
    /// Where in this segment that ends, if it does.
    proven_boundary: Option<Boundary>,
    index_interval_bytes: u32,

    /// Everything before it was walked over.
    pub file_at: u64,
    /// The offset that must come next.
    pub expected: Offset,
    pub index: SparseIndex,
    pub max_timestamp: TimestampMs,
    /// Of the last batch, in this segment or before it.
    pub last_epoch: LeaderEpoch,
    /// Bytes that the next window must hold from `file_at` on.
    wanted: u64,
    /// Length of the next window, if no more is wanted.
    window_bytes: u32,
    /// The bytes of the block that `file_at` lies in, before it.
    pub tail: Vec<u8>,
    /// Where damage began, while what follows it is searched for; `file_at` is how far the search got.
    lost: Option<Boundary>,
    /// A batch that holds, and follows on the one before, reaches beyond the limit: the next file is none of the log's.
    pub contradicts_limit: bool,
    /// The scan ended at bytes that were not zero.
    pub torn: bool,
    finished: bool,
}

/// How the batch at some place turned out.
enum Outcome {
    Batch(BatchHeader),
    /// It holds, and contradicts the limit.
    Beyond,
    /// Whether it is good cannot be told from the bytes at hand.
    NeedsMore(u64),
    Bad,
}

impl SegmentScan {
    pub fn new(
        base: SegmentBase,
        file_bytes: u64,
        limit: Offset,
        proven: Offset,
        proven_boundary: Option<Boundary>,
        index_interval_bytes: u32,
        last_epoch: LeaderEpoch,
    ) -> Self {
        Self {
            base,
            file_bytes,
            limit,
            limit_is_name: false,
            proven,
            proven_boundary,
            index_interval_bytes,
            file_at: 0,
            expected: base.0,
            index: SparseIndex::default(),
            max_timestamp: TimestampMs(i64::MIN),
            last_epoch,
            wanted: 0,
            window_bytes: SCAN_FIRST_READ_BYTES,
            tail: Vec::new(),
            lost: None,
            contradicts_limit: false,
            torn: false,
            finished: false,
        }
    }

    /// Begins not at the segment's start but at `from`, of which `index` and `max_timestamp` say what lies before.
    pub fn resume_at(&mut self, from: Boundary, index: SparseIndex, max_timestamp: TimestampMs) {
        self.expected = from.offset;
        self.file_at = from.file_at;
        self.index = index;
        self.max_timestamp = max_timestamp;
    }

    /// Sets the limit: `is_name` if only the name of the next file speaks for it. The scan goes on where it stands.
    pub fn set_limit(&mut self, limit: Offset, is_name: bool) {
        self.limit = limit;
        self.limit_is_name = is_name;
        self.contradicts_limit = false;
    }

    /// The part of the file to read next; `None`: the scan has ended.
    pub fn next_window(&self) -> Option<(u64, u32)> {
        if self.finished {
            return None;
        }
        let block = u64::from(BLOCK_BYTES);
        let start = self.file_at / block * block;
        let wanted = (self.file_at - start + self.wanted).next_multiple_of(block);
        let length = wanted.max(u64::from(self.window_bytes));
        let rest = self
            .file_bytes
            .saturating_sub(start)
            .next_multiple_of(block);
        Some((start, length.min(rest.max(block)) as u32))
    }

    /// Takes the window that was asked for. Fewer bytes than asked for: the file ends there.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let Some((start, asked)) = self.next_window() else {
            return;
        };
        let is_last = start + bytes.len() as u64 >= self.file_bytes || bytes.len() < asked as usize;
        self.wanted = 0;
        self.window_bytes = (self.window_bytes * 2).min(SCAN_READ_BYTES);
        while !self.finished && self.wanted == 0 && !self.contradicts_limit {
            let at = (self.file_at - start).min(bytes.len() as u64) as usize;
            let rest = &bytes[at..];
            if let Some(lost) = self.lost {
                self.search(lost, rest, is_last, sink);
                continue;
            }
            match self.look(rest, 0, is_last, self.expected..=self.expected) {
                Outcome::Batch(header) => self.take(&header, sink),
                Outcome::Beyond => self.contradicts_limit = true,
                Outcome::NeedsMore(wanted) => self.wanted = wanted,
                Outcome::Bad => self.meet_bad(rest, is_last, sink),
            }
        }
        if self.finished {
            let block = u64::from(BLOCK_BYTES);
            let from = (self.file_at / block * block).saturating_sub(start) as usize;
            let to = (self.file_at.saturating_sub(start) as usize).min(bytes.len());
            self.tail = bytes.get(from..to).unwrap_or_default().to_vec();
        }
    }

    /// Looks at the batch that begins `skip` bytes behind `file_at`, where `bytes` begin, if one does whose base offset
    /// lies in `bases`.
    fn look(
        &self,
        bytes: &[u8],
        skip: usize,
        is_last: bool,
        bases: RangeInclusive<Offset>,
    ) -> Outcome {
        let bytes = bytes.get(skip..).unwrap_or_default();
        let left = self.file_bytes.saturating_sub(self.file_at + skip as u64);
        if bytes.len() < HEADER_LENGTH {
            return self.short(HEADER_LENGTH as u64, bytes, left, is_last);
        }
        let Ok(header) = BatchHeader::read(bytes) else {
            return Outcome::Bad;
        };
        let is_beyond = header.next_offset() > self.limit;
        if !self.is_plausible(&header, &bases) || (is_beyond && !self.limit_is_name) {
            return Outcome::Bad;
        }
        let length = header.total_length();
        if bytes.len() < length {
            return self.short(length as u64, bytes, left, is_last);
        }
        match check_stored_batch(bytes, STORED_BATCH_BYTES_MAX) {
            Ok(_) if is_beyond => Outcome::Beyond,
            Ok(_) => Outcome::Batch(header),
            Err(_) => Outcome::Bad,
        }
    }

    fn is_plausible(&self, header: &BatchHeader, bases: &RangeInclusive<Offset>) -> bool {
        bases.contains(&header.base_offset)
            && header.total_length() <= STORED_BATCH_BYTES_MAX as usize
            && header.last_offset_delta >= 0
            && header.partition_leader_epoch >= self.last_epoch
    }

    fn short(&self, wanted: u64, bytes: &[u8], left: u64, is_last: bool) -> Outcome {
        if is_last || wanted > left || bytes.len() as u64 >= wanted {
            Outcome::Bad
        } else {
            Outcome::NeedsMore(wanted)
        }
    }

    fn take(&mut self, header: &BatchHeader, sink: &mut Sink<'_>) {
        if let Some(relative) = relative(self.base.0, header.base_offset) {
            let at = self.file_at as u32;
            self.index
                .note(relative, at, self.max_timestamp, self.index_interval_bytes);
        }
        sink.note_producer(header);
        note_epoch(
            sink.epochs,
            header.partition_leader_epoch,
            header.base_offset,
        );
        self.last_epoch = header.partition_leader_epoch;
        self.max_timestamp = self.max_timestamp.max(header.max_timestamp);
        self.expected = header.next_offset();
        self.file_at += header.total_length() as u64;
    }

    /// A batch does not hold: the end of the log, or damage.
    fn meet_bad(&mut self, bytes: &[u8], is_last: bool, sink: &mut Sink<'_>) {
        if self.expected >= self.proven || self.expected == self.limit {
            self.torn = bytes.iter().any(|byte| *byte != 0);
            self.finished = true;
            return;
        }
        let lost = Boundary {
            offset: self.expected,
            file_at: self.file_at,
        };
        match self.behind_bad_batch(bytes, is_last) {
            Believed::Batch(header) => {
                let next = Boundary {
                    offset: header.next_offset(),
                    file_at: self.file_at + header.total_length() as u64,
                };
                // Its records are lost. Where it goes on from what is known of a producer, which no rotten bit makes
                // up, its header still tells which sequences are in the log.
                if sink.goes_on(&header) {
                    sink.note_producer(&header);
                    self.resume(lost, next, sink);
                } else {
                    self.resume_unread(lost, next, sink);
                }
            }
            Believed::NeedsMore(wanted) => self.wanted = wanted,
            Believed::Nothing => {
                self.lost = Some(lost);
                self.file_at += 1;
            }
        }
    }

    /// If the header of the bad batch can be believed, the log goes on behind the batch.
    fn behind_bad_batch(&self, bytes: &[u8], is_last: bool) -> Believed {
        let Ok(header) = BatchHeader::read(bytes) else {
            return Believed::Nothing;
        };
        let expected = self.expected..=self.expected;
        if !self.is_plausible(&header, &expected) || header.next_offset() > self.limit {
            return Believed::Nothing;
        }
        let length = header.total_length();
        let next = Boundary {
            offset: header.next_offset(),
            file_at: self.file_at + length as u64,
        };
        if self.proven_boundary == Some(next) || next.offset == self.limit {
            return Believed::Batch(header);
        }
        let following = bytes.get(length..length + HEADER_LENGTH);
        match following.map(BatchHeader::read) {
            Some(Ok(following)) if following.base_offset == next.offset => Believed::Batch(header),
            None if !is_last && next.file_at < self.file_bytes => {
                Believed::NeedsMore((length + HEADER_LENGTH) as u64)
            }
            _ => Believed::Nothing,
        }
    }

    /// Looks byte by byte for the next batch that holds, up to the place that is proven to be a boundary.
    fn search(&mut self, lost: Boundary, bytes: &[u8], is_last: bool, sink: &mut Sink<'_>) {
        let bases = lost.offset.plus(1)..=self.proven.plus(-1);
        let mut skip = 0;
        while bytes.len() >= skip + HEADER_LENGTH {
            let file_at = self.file_at + skip as u64;
            if let Some(proven) = self.proven_boundary.filter(|end| end.file_at == file_at) {
                return self.resume_unread(lost, proven, sink);
            }
            match self.look(bytes, skip, is_last, bases.clone()) {
                Outcome::Batch(header) => {
                    let offset = header.base_offset;
                    return self.resume_unread(lost, Boundary { offset, file_at }, sink);
                }
                Outcome::NeedsMore(wanted) => {
                    self.file_at = file_at;
                    self.wanted = wanted;
                    return;
                }
                // Behind damage nothing is believed against the name of a file.
                Outcome::Bad | Outcome::Beyond => skip += 1,
            }
        }
        self.file_at += skip as u64;
        if !is_last {
            self.wanted = HEADER_LENGTH as u64;
            return;
        }
        match self.proven_boundary {
            Some(end) if lost.file_at < end.file_at && end.file_at <= self.file_bytes => {
                self.resume_unread(lost, end, sink);
            }
            _ => {
                self.file_at = lost.file_at;
                self.finished = true;
            }
        }
    }

    /// The log goes on at `next`; whose batches lie between cannot be told.
    fn resume_unread(&mut self, lost: Boundary, next: Boundary, sink: &mut Sink<'_>) {
        if next.offset > sink.producers_from {
            // Whoever had batches in there goes on behind them: nobody is remembered.
            *sink.producers = ProducerTable::new();
        }
        self.resume(lost, next, sink);
    }

    /// The log goes on at `next`; what lies between is damaged.
    fn resume(&mut self, lost: Boundary, next: Boundary, sink: &mut Sink<'_>) {
        sink.damaged.push(DamagedRange {
            from: lost.offset,
            to: next.offset,
        });
        self.lost = None;
        self.expected = next.offset;
        self.file_at = next.file_at;
        if let Some(relative) = relative(self.base.0, next.offset) {
            // Readers behind the damage must not begin before it.
            let file_at = next.file_at as u32;
            self.index.note(relative, file_at, self.max_timestamp, 1);
        }
    }
}

impl Sink<'_> {
    /// Whether a batch that does not hold is the next one of its producer, or of no producer: a place that its length
    /// and offsets prove says nothing of who wrote it.
    fn goes_on(&self, header: &BatchHeader) -> bool {
        let is_next = self.producers.check(header) == Ok(Sequencing::Next);
        let is_plain = header.producer_id == ProducerId::NONE;
        is_plain || (is_next && self.producers.knows(header.producer_id))
    }

    fn note_producer(&mut self, header: &BatchHeader) {
        if header.base_offset >= self.producers_from {
            // When it was appended is not known; opening the log sets the time.
            let unknown = Now {
                monotonic_us: 0,
                wall: TimestampMs(i64::MIN),
            };
            self.producers.note(header, header.base_offset, unknown);
        }
    }
}

/// What the header of a batch that does not hold is worth.
enum Believed {
    /// It says truly how long the batch is.
    Batch(BatchHeader),
    /// That cannot be told from the bytes at hand.
    NeedsMore(u64),
    Nothing,
}
