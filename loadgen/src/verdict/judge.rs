//! Compares what was acknowledged with what came back.

use std::ops::Range;

use super::acked::{AckedLog, Run};
use super::faults::{Fault, Faults, NamedFault};
use super::read::ReadLog;

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Events that the broker said it holds.
    pub acknowledged: u64,
    /// Of those, how many came back.
    pub read_back: u64,
    /// Events that were sent, never acknowledged, and came back all the same: allowed, and shown.
    pub unacknowledged_read: u64,
    /// Events that were sent and never acknowledged, found or not.
    pub unacknowledged: u64,
    /// Batches that were sent again and were there already.
    pub repeated_batches: u64,
    /// Everything that must not be.
    pub faults: Faults,
    /// There were more gaps than are kept apart: the counts of faults are lower bounds.
    pub counts_are_bounds: bool,
}

impl Verdict {
    /// Whether the run shows what it must show: no fault at all, and something to say it about.
    pub fn holds(&self) -> bool {
        self.faults.count() == 0
            && self.acknowledged > 0
            && self.acknowledged == self.read_back
            && !self.counts_are_bounds
    }

    /// Adds the outcome of another stage.
    pub fn merge(&mut self, other: Verdict) {
        self.acknowledged += other.acknowledged;
        self.read_back += other.read_back;
        self.unacknowledged_read += other.unacknowledged_read;
        self.unacknowledged += other.unacknowledged;
        self.repeated_batches += other.repeated_batches;
        self.counts_are_bounds |= other.counts_are_bounds;
        self.faults.merge(other.faults);
    }

    /// Adds what one producer sent to one partition and what came back of it.
    pub fn add(&mut self, partition: i32, producer: u16, acked: &AckedLog, read: &ReadLog) {
        let faults_before = self.faults.count();
        let mut read_back = 0;
        for run in acked.runs() {
            let count = run.sequences.end - run.sequences.start;
            let mut lost = 0;
            for gap in unread(read, run.sequences.clone()) {
                lost += gap.end - gap.start;
                self.faults.add(lost_at(partition, producer, run, gap));
            }
            read_back += count - lost;
        }
        self.acknowledged += acked.count();
        self.read_back += read_back;
        self.unacknowledged += acked.sent - acked.count();
        self.unacknowledged_read += read.count().saturating_sub(read_back);
        self.repeated_batches += acked.repeated_batches;
        self.counts_are_bounds |= read.overflowed();
        if read.next() > acked.sent {
            let fault = Fault::NeverSent {
                count: read.next() - acked.sent,
            };
            self.fault(fault, partition, producer, acked.sent);
        }
        let comparable = acked.offsets_known && read.count() == acked.count() && !read.overflowed();
        if self.faults.count() == faults_before && comparable && read.proof() != acked.proof {
            self.fault(Fault::Misplaced, partition, producer, 0);
        }
    }

    /// Adds what was read at one time and is gone at a later reading.
    pub fn add_vanished(
        &mut self,
        partition: i32,
        producer: u16,
        earlier: &ReadLog,
        later: &ReadLog,
    ) {
        for gap in unread(later, 0..earlier.next()) {
            let mut at = gap.start;
            // What the earlier reading missed as well has not vanished.
            for missed in earlier
                .missing()
                .within(gap.clone())
                .chain(std::iter::once(gap.end..gap.end))
            {
                if at < missed.start {
                    self.fault(
                        Fault::Vanished {
                            count: missed.start - at,
                        },
                        partition,
                        producer,
                        at,
                    );
                }
                at = missed.end;
            }
        }
    }

    fn fault(&mut self, fault: Fault, partition: i32, producer: u16, sequence: u64) {
        let (producer, sequence) = (Some(producer), Some(sequence));
        self.faults.add(NamedFault {
            fault,
            partition,
            offset: None,
            producer,
            sequence,
        });
    }
}

/// The parts of `sequences` that were not read.
fn unread(read: &ReadLog, sequences: Range<u64>) -> Vec<Range<u64>> {
    let mut gaps = read.missing().within(sequences.clone()).collect::<Vec<_>>();
    if read.next() < sequences.end {
        gaps.push(read.next().max(sequences.start)..sequences.end);
    }
    gaps
}

fn lost_at(partition: i32, producer: u16, run: &Run, gap: Range<u64>) -> NamedFault {
    NamedFault {
        fault: Fault::Lost {
            count: gap.end - gap.start,
        },
        partition,
        offset: run
            .first_offset
            .map(|first| first + (gap.start - run.sequences.start) as i64),
        producer: Some(producer),
        sequence: Some(gap.start),
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::report::number::grouped;
        write!(
            f,
            "verified: {} acknowledged, {} read back, {} lost, {} duplicated, {} out of order",
            grouped(self.acknowledged),
            grouped(self.read_back),
            grouped(self.faults.lost + self.faults.vanished),
            grouped(self.faults.duplicated),
            grouped(self.faults.out_of_order),
        )?;
        if self.faults.corrupted > 0 {
            write!(f, ", {} corrupted", grouped(self.faults.corrupted))?;
        }
        if self.faults.misplaced > 0 {
            write!(f, ", {} misplaced", grouped(self.faults.misplaced))?;
        }
        if self.faults.foreign > 0 {
            write!(f, ", {} foreign", grouped(self.faults.foreign))?;
        }
        if self.counts_are_bounds {
            write!(f, " (at least: there were more gaps than are kept apart)")?;
        }
        Ok(())
    }
}
