//! The stages of a recovery, and what each concludes.

use tackboard_schema::storage::index::{self, SegmentSummary};
use tackboard_schema::storage::producer_snapshot::ProducerSnapshot;
use tackboard_schema::{Offset, TimestampMs};

use super::checkpoint::Trial;
use super::scan::{Boundary, SegmentScan, Sink};
use super::{
    DamagedRange, FileWork, RecoveredLog, RecoveredSegment, Recovery, RecoveryStep, RestartClass,
    SegmentFile, Sidecar,
};
use crate::log::index::SparseIndex;
use crate::log::producers::ProducerTable;
use crate::shard::interface::{BLOCK_BYTES, SegmentBase, StorageFault};

/// A segment that recovery looks at.
#[derive(Debug)]
pub(super) struct Candidate {
    pub file: SegmentFile,
    /// What its `.idx` says, if that can be believed.
    pub summary: Option<(SegmentSummary, SparseIndex)>,
}

/// Where a recovery stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// Reading the index of candidate `at`.
    Indexes { at: usize },
    /// Reading the checkpoint of the newest candidate below that has one.
    Checkpoint { below: usize },
    /// Looking at the last batches before a checkpoint.
    Trial(Box<Trial>),
    /// Reading the producer snapshot of candidate `below - 1`.
    Producers { below: usize },
    /// Taking or scanning candidate `at`.
    Segments {
        at: usize,
        scan: Option<Box<SegmentScan>>,
    },
    /// Reading the partial last block of the active segment, whose batches end at `size`.
    Tail { size: u64 },
    /// Everything is known.
    Finished,
    /// A file cannot be read or changed.
    Failed(StorageFault),
}

impl Recovery {
    /// Sorts the files out: what a truncation or the log's start has passed goes.
    pub(super) fn choose_files(&mut self, mut files: Vec<SegmentFile>) {
        files.sort_by_key(|file| file.base);
        if let Some(cut) = self.ledger.truncate {
            let is_gone = |file: &SegmentFile| file.base > cut.segment;
            for file in files.extract_if(.., |file| is_gone(file)) {
                self.work.push_back(FileWork::Remove { segment: file.base });
            }
        }
        let start = self.ledger.log_start_offset;
        let passed = files
            .windows(2)
            .take_while(|pair| pair[1].base.0 <= start)
            .count();
        // The newest of them may hold the only snapshot of the producers.
        for file in files.drain(..passed.saturating_sub(1)) {
            self.work.push_back(FileWork::Remove { segment: file.base });
        }
        if let Some(last) = files.last_mut().filter(|file| self.is_cut(file)) {
            // It may speak of what was cut off; if not, the scan tells as much.
            let (segment, index) = (last.base, std::mem::take(&mut last.has_index));
            let checkpoint = std::mem::take(&mut last.has_checkpoint);
            if index {
                self.remove_sidecar(segment, Sidecar::Index);
            }
            if checkpoint {
                self.remove_sidecar(segment, Sidecar::Checkpoint);
            }
        }
        let candidate = |file| Candidate {
            file,
            summary: None,
        };
        self.candidates = files.into_iter().map(candidate).collect();
    }

    /// Whether the log is cut within this segment, or at its start.
    fn is_cut(&self, file: &SegmentFile) -> bool {
        self.ledger
            .truncate
            .is_some_and(|cut| cut.segment == file.base)
    }

    pub(super) fn remove_sidecar(&mut self, segment: SegmentBase, sidecar: Sidecar) {
        self.work
            .push_back(FileWork::RemoveSidecar { segment, sidecar });
    }

    /// The next read, or the end.
    pub(super) fn next_read(&mut self) -> RecoveryStep {
        loop {
            let snapshots_from = self.snapshots_from();
            match &mut self.stage {
                Stage::Indexes { at } => match self.candidates.get(*at) {
                    Some(candidate) => {
                        let is_last = *at + 1 == self.candidates.len();
                        let trusted = !is_last || self.restart == RestartClass::Clean;
                        if candidate.file.has_index && trusted {
                            return RecoveryStep::ReadIndex {
                                segment: candidate.file.base,
                            };
                        }
                        *at += 1;
                    }
                    None => {
                        let below = self.candidates.len();
                        self.stage = Stage::Checkpoint { below };
                    }
                },
                Stage::Checkpoint { below } => {
                    let below = *below;
                    if let Some(at) = self.next_checkpoint(below) {
                        self.stage = Stage::Checkpoint { below: at + 1 };
                        let segment = self.candidates[at].file.base;
                        return RecoveryStep::ReadCheckpoint { segment };
                    }
                    self.stage = Stage::Producers {
                        below: self.candidates.len(),
                    };
                }
                Stage::Trial(trial) => match trial.scan.next_window() {
                    Some((file_at, length)) => {
                        return RecoveryStep::Read {
                            segment: trial.scan.base,
                            file_at,
                            length,
                        };
                    }
                    None => self.end_trial(),
                },
                Stage::Producers { below } if *below == snapshots_from => {
                    self.stage = Stage::Segments { at: 0, scan: None };
                }
                Stage::Producers { below } => {
                    let candidate = &self.candidates[*below - 1];
                    if candidate.file.has_producers {
                        return RecoveryStep::ReadProducers {
                            segment: candidate.file.base,
                        };
                    }
                    *below -= 1;
                }
                Stage::Segments {
                    scan: Some(scan), ..
                } => match scan.next_window() {
                    Some((file_at, length)) => {
                        return RecoveryStep::Read {
                            segment: scan.base,
                            file_at,
                            length,
                        };
                    }
                    None => self.end_scan(),
                },
                Stage::Segments { at, .. } if *at >= self.candidates.len() => self.conclude(),
                Stage::Segments { at, scan: None } => {
                    let at = *at;
                    self.begin_segment(at);
                }
                Stage::Tail { size } => {
                    let block = u64::from(BLOCK_BYTES);
                    let file_at = *size / block * block;
                    let segment = self.segments.last().map(|segment| segment.base);
                    let segment = segment.expect("a log has an active segment");
                    return RecoveryStep::Read {
                        segment,
                        file_at,
                        length: BLOCK_BYTES,
                    };
                }
                Stage::Failed(fault) => return RecoveryStep::Failed(*fault),
                Stage::Finished => return RecoveryStep::Done(Box::new(self.recovered())),
            }
            // What was concluded may ask for changes to files, which come first.
            if !self.work.is_empty() {
                return self.next();
            }
        }
    }

    /// The outcome of a read.
    pub fn provide(&mut self, bytes: Result<&[u8], StorageFault>) {
        match &self.stage {
            Stage::Indexes { at } => {
                let at = *at;
                let summary = bytes.ok().and_then(|bytes| self.believe(at, bytes));
                if let Some((summary, _)) = &summary {
                    self.sealed_end = self.sealed_end.max(summary.next_offset);
                }
                self.candidates[at].summary = summary;
                self.stage = Stage::Indexes { at: at + 1 };
            }
            Stage::Checkpoint { below } => self.try_checkpoint(*below - 1, bytes),
            Stage::Producers { below } => {
                let below = *below;
                let snapshot = bytes
                    .ok()
                    .and_then(|bytes| self.believe_producers(below - 1, bytes));
                self.stage = match snapshot {
                    Some(snapshot) => {
                        self.producers_from = snapshot.next_offset;
                        self.sealed_end = self.sealed_end.max(snapshot.next_offset);
                        self.producers = ProducerTable::from_entries(snapshot.producers);
                        Stage::Segments { at: 0, scan: None }
                    }
                    None => {
                        // One that lies below the cut is kept: it may be the only one.
                        let file = self.candidates[below - 1].file;
                        if self.is_cut(&file) {
                            self.remove_sidecar(file.base, Sidecar::Producers);
                        }
                        Stage::Producers { below: below - 1 }
                    }
                };
            }
            Stage::Trial(_) | Stage::Segments { .. } | Stage::Tail { .. } => match bytes {
                Ok(bytes) => {
                    self.read_failed = false;
                    self.take_bytes(bytes);
                }
                // Once more, then the log stays closed: what cannot be read is not judged.
                Err(fault) => {
                    if std::mem::replace(&mut self.read_failed, true) {
                        self.stage = Stage::Failed(fault);
                    }
                }
            },
            Stage::Finished | Stage::Failed(_) => {}
        }
    }

    fn take_bytes(&mut self, bytes: &[u8]) {
        match &mut self.stage {
            Stage::Trial(_) => self.feed_trial(bytes),
            Stage::Segments {
                scan: Some(scan), ..
            } => {
                let before = scan.file_at;
                let mut sink = Sink {
                    producers: &mut self.producers,
                    producers_from: self.producers_from,
                    epochs: &mut self.epochs,
                    damaged: &mut self.damaged,
                };
                scan.feed(bytes, &mut sink);
                self.scanned_bytes += scan.file_at.saturating_sub(before);
                if scan.contradicts_limit {
                    self.judge_next();
                }
            }
            Stage::Tail { size } => {
                let length = (*size % u64::from(BLOCK_BYTES)) as usize;
                match bytes.get(..length) {
                    Some(tail) => {
                        self.tail = tail.to_vec();
                        self.stage = Stage::Finished;
                    }
                    None => {
                        let (wanted, got) = (length as u32, bytes.len() as u32);
                        self.stage = Stage::Failed(StorageFault::Short { wanted, got });
                    }
                }
            }
            _ => {}
        }
    }

    /// The oldest candidate whose producer snapshot may be newer than the checkpoint.
    fn snapshots_from(&self) -> usize {
        let Some(resumed) = &self.checkpoint else {
            return 0;
        };
        (self.candidates).partition_point(|candidate| candidate.file.base <= resumed.segment)
    }

    /// What an index says, if it speaks of this segment as it is: its end is where the next one begins, and for the
    /// active one (after a clean stop) where the file ends.
    fn believe(&self, at: usize, bytes: &[u8]) -> Option<(SegmentSummary, SparseIndex)> {
        let (summary, entries) = index::decode(bytes).ok()?;
        let file = &self.candidates[at].file;
        let ends = match self.candidates.get(at + 1) {
            Some(next) => summary.next_offset == next.file.base.0,
            None => summary.size_bytes == file.size && summary.next_offset >= self.proven(),
        };
        let believed = summary.partition == self.partition
            && summary.base_offset == file.base.0
            && summary.size_bytes <= file.size
            && summary.next_offset <= self.ceiling()
            && ends;
        believed.then(|| {
            let index = SparseIndex::from_stored(summary.base_offset, entries.iter());
            (summary, index)
        })
    }

    /// What a snapshot says, if it was taken within this segment or at its end: at the seal, at a clean stop, or while
    /// the segment was still empty.
    fn believe_producers(&self, at: usize, bytes: &[u8]) -> Option<ProducerSnapshot> {
        let snapshot = ProducerSnapshot::decode(bytes).ok()?;
        let base = self.candidates[at].file.base.0;
        let next_base = self.candidates.get(at + 1).map(|next| next.file.base.0);
        let limit = next_base.unwrap_or(Offset(i64::MAX)).min(self.ceiling());
        let within = base <= snapshot.next_offset && snapshot.next_offset <= limit;
        (snapshot.partition == self.partition && within).then_some(snapshot)
    }

    /// Below it, everything was on the medium.
    fn proven(&self) -> Offset {
        let durable = self.ledger.durable.map_or(Offset(0), |end| end.offset);
        durable
            .max(self.ledger.log_start_offset)
            .max(self.sealed_end)
    }

    /// Nothing at or behind it is the log's.
    fn ceiling(&self) -> Offset {
        self.ledger
            .truncate
            .map_or(Offset(i64::MAX), |end| end.offset)
    }

    /// Takes a segment on the word of its index, or begins to scan it.
    fn begin_segment(&mut self, at: usize) {
        let file = self.candidates[at].file;
        let summary = self.candidates[at].summary.take();
        // What the snapshot does not cover is read for the producers' sake, whatever the index says.
        let covered = summary.filter(|(summary, _)| summary.next_offset <= self.producers_from);
        if let Some((summary, index)) = covered {
            self.trust(&file, &summary, index);
            self.stage = Stage::Segments {
                at: at + 1,
                scan: None,
            };
            return;
        }
        let limit = self.limit(at);
        let boundary = self.ledger.durable.filter(|end| end.segment == file.base);
        let mut scan = SegmentScan::new(
            file.base,
            file.size,
            limit,
            self.proven(),
            boundary.map(|end| Boundary {
                offset: end.offset,
                file_at: end.file_at,
            }),
            self.config.index_interval_bytes,
            self.last_epoch,
        );
        scan.set_limit(limit, self.limit_is_name(at));
        let resumed = self.checkpoint.as_mut();
        if let Some(resumed) = resumed.filter(|resumed| resumed.segment == file.base) {
            let index = std::mem::take(&mut resumed.index);
            scan.resume_at(resumed.from, index, resumed.max_timestamp);
            scan.last_epoch = scan.last_epoch.max(resumed.last_epoch);
        }
        self.stage = Stage::Segments {
            at,
            scan: Some(Box::new(scan)),
        };
    }

    /// Where segment `at` ends at the latest.
    pub(super) fn limit(&self, at: usize) -> Offset {
        let next = self.candidates.get(at + 1);
        let next_base = next.map_or(Offset(i64::MAX), |next| next.file.base.0);
        next_base.min(self.ceiling())
    }

    /// Whether only the name of the next file says so: no index that can be believed, and not the ledger.
    fn limit_is_name(&self, at: usize) -> bool {
        let Some(next) = self.candidates.get(at + 1) else {
            return false;
        };
        let base = next.file.base;
        let opened = self.ledger.opened.map(|(base, _)| base);
        let durable = self.ledger.durable.map(|end| end.segment);
        let cut = self.ledger.truncate.map(|end| end.segment);
        let is_known = next.summary.is_some() || [opened, durable, cut].contains(&Some(base));
        base.0 < self.ceiling() && !is_known
    }

    /// A batch of the segment that is scanned lies where, by its name, the next file begins: the name is wrong.
    fn judge_next(&mut self) {
        let Stage::Segments { at, .. } = self.stage else {
            return;
        };
        let stranger = self.candidates.remove(at + 1).file.base;
        self.work
            .push_back(FileWork::SetAside { segment: stranger });
        self.set_aside.push(stranger);
        let (limit, is_name) = (self.limit(at), self.limit_is_name(at));
        if let Stage::Segments {
            scan: Some(scan), ..
        } = &mut self.stage
        {
            scan.set_limit(limit, is_name);
        }
    }

    fn trust(&mut self, file: &SegmentFile, summary: &SegmentSummary, index: SparseIndex) {
        if file.size > summary.size_bytes {
            let (segment, size) = (file.base, summary.size_bytes);
            self.work.push_back(FileWork::Truncate { segment, size });
            self.work.push_back(FileWork::Sync { segment });
        }
        self.segments.push(RecoveredSegment {
            base: file.base,
            next_offset: summary.next_offset,
            size_bytes: summary.size_bytes,
            file_bytes: summary.size_bytes,
            index,
            max_timestamp: summary.max_timestamp,
            first_append: Some(summary.first_append),
            last_append: Some(summary.last_append),
            indexed: true,
            checkpoint_bytes: 0,
            producers: None,
        });
    }

    /// A scan is over: is this the end of the segment, a torn tail, or damage?
    fn end_scan(&mut self) {
        let Stage::Segments { at, scan } = &mut self.stage else {
            return;
        };
        let at = *at;
        let scan = scan.take().expect("a scan is over");
        let segment = scan.base;
        self.last_epoch = scan.last_epoch;
        let next_base = self.candidates.get(at + 1).map(|next| next.file.base.0);
        let complete = next_base == Some(scan.expected);
        let damaged = !complete && scan.expected < self.proven();
        let mut found = self.scanned(&scan);
        // The scan has jumped to the proven end, and the file ends before it: there is no tail block to go on from.
        let file_size = self.candidates[at].file.size;
        let cut_short = !complete && !damaged && scan.file_at > file_size;
        if complete {
            found.producers =
                (scan.expected >= self.producers_from).then(|| self.snapshot(scan.expected));
        } else if damaged {
            // Whatever follows is out of reach; the file stays as it is. Producers had batches in there.
            let to = next_base.unwrap_or(self.proven());
            if to > self.producers_from {
                self.producers = ProducerTable::new();
            }
            self.damaged.push(DamagedRange {
                from: scan.expected,
                to,
            });
            found.next_offset = to;
            found.indexed = true;
        } else if cut_short {
            self.cut_tail(at, &scan);
            found.size_bytes = file_size;
            found.file_bytes = file_size;
            found.indexed = true;
        } else {
            self.cut_tail(at, &scan);
            self.tail.clone_from(&scan.tail);
            found.file_bytes = scan.file_at;
        }
        self.work.push_back(FileWork::Sync { segment });
        let goes_on = found.next_offset;
        self.segments.push(found);
        if cut_short || (damaged && next_base.is_none()) {
            self.work.push_back(FileWork::Create {
                segment: SegmentBase(goes_on),
            });
            self.segments.push(self.empty_segment(goes_on));
        }
        self.stage = Stage::Segments {
            at: at + 1,
            scan: None,
        };
    }

    /// Cuts a torn tail off, with every segment behind it: nothing there was ever proven.
    fn cut_tail(&mut self, at: usize, scan: &SegmentScan) {
        let is_last = at + 1 == self.candidates.len();
        // After a clean stop nothing is torn: what lies behind the end came from elsewhere. Nor is what lies behind a cut.
        let was_clean = self.restart == RestartClass::Clean;
        let is_cut = scan.expected == self.ceiling();
        if (scan.torn || !(is_last || was_clean)) && !is_cut {
            self.torn_tail_at = Some(scan.expected);
        }
        for later in self.candidates.drain(at + 1..).rev() {
            let segment = later.file.base;
            if was_clean {
                self.work.push_back(FileWork::SetAside { segment });
                self.set_aside.push(segment);
            } else {
                self.work.push_back(FileWork::Remove { segment });
                self.removed.push(segment);
            }
        }
        if self.candidates[at].file.size > scan.file_at {
            let (segment, size) = (scan.base, scan.file_at);
            self.work.push_back(FileWork::Truncate { segment, size });
        }
    }

    fn scanned(&self, scan: &SegmentScan) -> RecoveredSegment {
        let resumed = self.checkpoint.as_ref();
        let resumed = resumed.filter(|resumed| resumed.segment == scan.base);
        let opened = self.ledger.opened.filter(|(base, _)| *base == scan.base);
        // The ledger's time is that of the last append below the durable end; what was appended behind it may be
        // as young as this start.
        let timed = self
            .ledger
            .durable
            .filter(|end| scan.expected <= end.offset);
        let last_append = timed.map(|end| end.last_append).filter(|time| time.0 > 0);
        RecoveredSegment {
            base: scan.base,
            next_offset: scan.expected,
            size_bytes: scan.file_at,
            file_bytes: scan.file_at,
            index: scan.index.clone(),
            max_timestamp: scan.max_timestamp,
            first_append: (opened.map(|(_, first_append)| first_append))
                .or(resumed.map(|resumed| resumed.first_append)),
            last_append,
            indexed: false,
            checkpoint_bytes: resumed.map_or(0, |resumed| resumed.from.file_at),
            producers: None,
        }
    }

    fn snapshot(&self, next_offset: Offset) -> Box<[u8]> {
        let snapshot = ProducerSnapshot {
            partition: self.partition,
            next_offset,
            producers: self.producers.entries(),
        };
        snapshot.encode().into_boxed_slice()
    }

    /// All candidates are through: what is missing at either end, and whether the tail block is still to be read.
    fn conclude(&mut self) {
        let start = self.ledger.log_start_offset;
        if self.segments.is_empty() {
            let base = self.proven();
            if base > start {
                self.damaged.push(DamagedRange {
                    from: start,
                    to: base,
                });
            }
            self.work.push_back(FileWork::Create {
                segment: SegmentBase(base),
            });
            self.segments.push(self.empty_segment(base));
        }
        if self.segments.len() > 1 && self.segments[1].base.0 <= start {
            self.lingering = Some(self.segments.remove(0).base);
            self.damaged.retain(|range| range.to > start);
        }
        let first = self.segments[0].base.0;
        if first > start && self.ledger.durable.is_some() && self.damaged.is_empty() {
            self.damaged.push(DamagedRange {
                from: start,
                to: first,
            });
        }
        let active = &self.segments[self.segments.len() - 1];
        if self.ledger.truncate.is_some() {
            // What was removed stays removed, also where nothing was scanned.
            let segment = active.base;
            self.work.push_back(FileWork::Sync { segment });
        }
        let size = active.size_bytes;
        let missing_tail = active.indexed && !size.is_multiple_of(u64::from(BLOCK_BYTES));
        self.stage = if missing_tail {
            Stage::Tail { size }
        } else {
            Stage::Finished
        };
    }

    fn recovered(&mut self) -> RecoveredLog {
        let segments = std::mem::take(&mut self.segments);
        let first = segments.first().map_or(Offset(0), |segment| segment.base.0);
        let end = segments
            .last()
            .map_or(Offset(0), |segment| segment.next_offset);
        let start = self.ledger.log_start_offset;
        let damaged_from = self.damaged.iter().map(|range| range.from).min();
        let covered = damaged_from.is_some_and(|from| from <= start);
        let mut epochs = std::mem::take(&mut self.epochs);
        epochs.retain(|(_, begin)| *begin <= end);
        self.damaged.sort_by_key(|range| range.from);
        RecoveredLog {
            log_start_offset: if covered { start } else { start.max(first) },
            log_end_offset: end,
            epochs,
            damaged: std::mem::take(&mut self.damaged),
            scanned_bytes: self.scanned_bytes,
            torn_tail_at: self.torn_tail_at,
            removed: std::mem::take(&mut self.removed),
            set_aside: std::mem::take(&mut self.set_aside),
            tail: std::mem::take(&mut self.tail).into_boxed_slice(),
            producers: std::mem::take(&mut self.producers),
            lingering: self.lingering,
            segments,
        }
    }

    /// A segment that is to be created: preallocated as [`RecoveryStep::CreateSegment`] says.
    fn empty_segment(&self, base: Offset) -> RecoveredSegment {
        RecoveredSegment {
            base: SegmentBase(base),
            next_offset: base,
            size_bytes: 0,
            file_bytes: self.first_preallocation(),
            index: SparseIndex::default(),
            max_timestamp: TimestampMs(i64::MIN),
            first_append: None,
            last_append: None,
            indexed: false,
            checkpoint_bytes: 0,
            producers: None,
        }
    }
}
