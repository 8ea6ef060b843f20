//! What one producer sent to one partition and what of it was acknowledged.

use std::ops::Range;

/// Most runs that are kept with their offsets. Several producers on one partition make one run per batch, so a long run
/// would grow without bound; beyond this, runs with adjacent sequences merge and forget their offsets.
pub const RUNS_WITH_OFFSETS_MAX: usize = 200_000;

/// Events with adjacent sequences that were acknowledged at adjacent offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Sequences, the end exclusive.
    pub sequences: Range<u64>,
    /// Offset of the first one, if the broker said it and it was kept.
    pub first_offset: Option<i64>,
}

/// The acknowledgements of one producer's events in one partition.
#[derive(Clone, Debug, Default)]
pub struct AckedLog {
    /// In order of their sequences.
    runs: Vec<Run>,
    count: u64,
    /// Sequences below this were handed out, acknowledged or not.
    pub sent: u64,
    /// Proof of where events lie, see [`proof_of`]; void once an offset was not told.
    pub proof: u64,
    /// Whether every acknowledgement named an offset.
    pub offsets_known: bool,
    /// Batches whose acknowledgement said that they were there already.
    pub repeated_batches: u64,
}

/// What one event adds to the proof that acknowledged offsets are the offsets that are read. Two events that swap their
/// offsets change the sum, and so does any single event that moved.
pub fn proof_of(sequence: u64, offset: i64) -> u64 {
    (offset as u64).wrapping_mul(sequence.wrapping_mul(2).wrapping_add(1))
}

impl AckedLog {
    /// Nothing sent yet.
    pub fn new() -> Self {
        Self {
            offsets_known: true,
            ..Self::default()
        }
    }

    /// How many events were acknowledged.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The acknowledged runs, in order of their sequences.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Notes a batch as acknowledged, at this offset if the broker named one.
    pub fn acknowledge(&mut self, sequences: Range<u64>, first_offset: Option<i64>) {
        let count = sequences.end - sequences.start;
        self.count += count;
        match first_offset {
            Some(offset) => {
                for n in 0..count {
                    self.proof = self
                        .proof
                        .wrapping_add(proof_of(sequences.start + n, offset + n as i64));
                }
            }
            None => self.offsets_known = false,
        }
        let run = Run {
            sequences,
            first_offset,
        };
        // Answers to one partition come in order, so this is nearly always the end of the list.
        let at = self
            .runs
            .partition_point(|known| known.sequences.start < run.sequences.start);
        if let Some(before) = at.checked_sub(1).map(|before| &mut self.runs[before])
            && before.sequences.end == run.sequences.start
            && continues(before, &run)
        {
            before.sequences.end = run.sequences.end;
            return;
        }
        self.runs.insert(at, run);
        if self.runs.len() > RUNS_WITH_OFFSETS_MAX {
            self.forget_offsets();
        }
    }

    /// Merges runs by their sequences alone.
    fn forget_offsets(&mut self) {
        self.runs.dedup_by(|run, before| {
            let adjacent = before.sequences.end == run.sequences.start;
            if adjacent {
                before.sequences.end = run.sequences.end;
                before.first_offset = None;
            }
            adjacent
        });
    }
}

/// Whether `run` lies right behind `before` in the partition. A run without offsets takes in what follows it: it forgot
/// its offsets because there were too many.
fn continues(before: &Run, run: &Run) -> bool {
    match (before.first_offset, run.first_offset) {
        (Some(first), Some(next)) => {
            first + (before.sequences.end - before.sequences.start) as i64 == next
        }
        (None, _) => true,
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_in_a_row_are_one_run() {
        let mut log = AckedLog::new();
        log.acknowledge(0..10, Some(100));
        log.acknowledge(10..15, Some(110));
        log.acknowledge(15..20, Some(200));
        assert_eq!(
            log.runs(),
            [
                Run {
                    sequences: 0..15,
                    first_offset: Some(100)
                },
                Run {
                    sequences: 15..20,
                    first_offset: Some(200)
                }
            ]
        );
        assert_eq!((log.count(), log.offsets_known), (20, true));
    }

    #[test]
    fn an_answer_out_of_turn_is_sorted_in() {
        let mut log = AckedLog::new();
        log.acknowledge(10..20, Some(10));
        log.acknowledge(0..5, Some(0));
        assert_eq!(
            log.runs()
                .iter()
                .map(|run| run.sequences.clone())
                .collect::<Vec<_>>(),
            [0..5, 10..20]
        );
    }

    #[test]
    fn memory_is_bounded_and_sequences_stay_exact() {
        let mut log = AckedLog::new();
        let batches = RUNS_WITH_OFFSETS_MAX as u64 + 10;
        for n in 0..batches {
            log.acknowledge(n * 2..n * 2 + 2, Some(n as i64 * 100));
        }
        assert!(log.runs().len() < 20, "{}", log.runs().len());
        assert_eq!(log.count(), batches * 2);
        let covered: u64 = log
            .runs()
            .iter()
            .map(|run| run.sequences.end - run.sequences.start)
            .sum();
        assert_eq!(covered, batches * 2);
    }
}
