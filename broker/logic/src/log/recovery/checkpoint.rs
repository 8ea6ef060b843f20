//! Whether a checkpoint can be believed, and where the scan goes on if so.

use tackboard_schema::storage::checkpoint;
use tackboard_schema::storage::index::SegmentSummary;
use tackboard_schema::storage::producer_snapshot::ProducerSnapshot;
use tackboard_schema::{LeaderEpoch, Offset, TimestampMs};

use super::scan::{Boundary, SegmentScan, Sink};
use super::stages::Stage;
use super::{Recovery, SegmentFile, Sidecar};
use crate::log::index::SparseIndex;
use crate::log::producers::ProducerTable;
use crate::shard::interface::{SegmentBase, StorageFault};

/// A checkpoint whose last batches are being looked at: they must hold, and end where it says.
#[derive(Debug)]
pub(super) struct Trial {
    /// Of which candidate.
    pub at: usize,
    /// Over these batches, and no further.
    pub scan: SegmentScan,
    end: Boundary,
    summary: SegmentSummary,
    producers: ProducerSnapshot,
}

/// What is known of the beginning of a segment, up to where the scan goes on.
#[derive(Debug)]
pub(super) struct Resumed {
    pub segment: SegmentBase,
    pub from: Boundary,
    pub index: SparseIndex,
    pub max_timestamp: TimestampMs,
    pub last_epoch: LeaderEpoch,
    pub first_append: TimestampMs,
}

impl Recovery {
    /// The candidate whose checkpoint is to be read, from `below` downwards: a closed segment ends the search, since a
    /// checkpoint in or before it tells nothing new.
    pub(super) fn next_checkpoint(&self, below: usize) -> Option<usize> {
        let newer = (0..below).rev();
        let mut open = newer.take_while(|at| self.candidates[*at].summary.is_none());
        open.find(|at| self.candidates[*at].file.has_checkpoint)
    }

    /// The checkpoint of candidate `at` was read.
    pub(super) fn try_checkpoint(&mut self, at: usize, bytes: Result<&[u8], StorageFault>) {
        let trial = bytes.ok().and_then(|bytes| self.trial(at, bytes));
        self.stage = match trial {
            Some(trial) => Stage::Trial(Box::new(trial)),
            None => self.reject_checkpoint(at),
        };
    }

    /// What a checkpoint says, if it may speak of this segment.
    fn trial(&self, at: usize, bytes: &[u8]) -> Option<Trial> {
        let found = checkpoint::decode(bytes).ok()?;
        let summary = found.summary;
        let file: &SegmentFile = &self.candidates[at].file;
        let may_be = summary.partition == self.partition
            && summary.base_offset == file.base.0
            && summary.size_bytes <= file.size
            && summary.next_offset <= self.limit(at);
        if !may_be {
            return None;
        }
        let index = SparseIndex::from_stored(summary.base_offset, found.entries.iter());
        let end = Boundary {
            offset: summary.next_offset,
            file_at: summary.size_bytes,
        };
        let mut scan = SegmentScan::new(
            file.base,
            end.file_at,
            end.offset,
            // Whatever is wrong with these batches is judged without the checkpoint.
            Offset(0),
            None,
            self.config.index_interval_bytes,
            LeaderEpoch(i32::MIN),
        );
        if let Some(last) = index.last().copied() {
            let from = Boundary {
                offset: summary.base_offset.plus(i64::from(last.relative_offset)),
                file_at: u64::from(last.file_at),
            };
            scan.resume_at(from, index, last.max_timestamp_before);
        }
        Some(Trial {
            at,
            scan,
            end,
            summary,
            producers: found.producers,
        })
    }

    /// More of the last batches before a checkpoint was read.
    pub(super) fn feed_trial(&mut self, bytes: &[u8]) {
        let Stage::Trial(trial) = &mut self.stage else {
            return;
        };
        let before = trial.scan.file_at;
        // What they tell is told by the checkpoint, or by a scan of the whole segment.
        let (mut producers, mut epochs, mut damaged) =
            (ProducerTable::new(), Vec::new(), Vec::new());
        trial.scan.feed(
            bytes,
            &mut Sink {
                producers: &mut producers,
                producers_from: Offset(i64::MAX),
                epochs: &mut epochs,
                damaged: &mut damaged,
            },
        );
        self.scanned_bytes += trial.scan.file_at.saturating_sub(before);
    }

    /// The last batches before a checkpoint are through.
    pub(super) fn end_trial(&mut self) {
        let below = self.candidates.len();
        let Stage::Trial(trial) = std::mem::replace(&mut self.stage, Stage::Producers { below })
        else {
            return;
        };
        let Trial {
            at,
            scan,
            end,
            summary,
            producers,
        } = *trial;
        let reached = Boundary {
            offset: scan.expected,
            file_at: scan.file_at,
        };
        if reached != end || scan.max_timestamp != summary.max_timestamp {
            self.stage = self.reject_checkpoint(at);
            return;
        }
        self.sealed_end = self.sealed_end.max(end.offset);
        self.producers_from = end.offset;
        self.producers = ProducerTable::from_entries(producers.producers);
        self.checkpoint = Some(Box::new(Resumed {
            segment: scan.base,
            from: end,
            last_epoch: scan.last_epoch,
            index: scan.index,
            max_timestamp: scan.max_timestamp,
            first_append: summary.first_append,
        }));
    }

    /// One that is not believed now must not be later, when other batches lie where it ends.
    fn reject_checkpoint(&mut self, at: usize) -> Stage {
        self.remove_sidecar(self.candidates[at].file.base, Sidecar::Checkpoint);
        Stage::Checkpoint { below: at }
    }
}
