//! What came back of one producer's events from one partition.

use super::acked::proof_of;
use super::ranges::RangeSet;

/// Most separate gaps that are kept apart for one producer and partition (16 to 24 MB). A partition with more is so
/// broken that its further gaps are only counted.
pub const GAPS_MAX: usize = 500_000;

/// How an event fits what came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one.
    Next,
    /// It is further on: what lies between has not been seen (yet).
    Ahead {
        /// The first sequence that was skipped.
        expected: u64,
    },
    /// It was skipped before and came now: out of order.
    Late {
        /// One past the highest sequence that had come before it.
        after: u64,
    },
    /// It came before.
    Again,
}

/// The events of one producer that were read from one partition.
#[derive(Clone, Debug, Default)]
pub struct ReadLog {
    /// One past the highest sequence read.
    next: u64,
    /// Sequences below `next` that were not read.
    missing: RangeSet,
    /// Skipped sequences beyond the bound on gaps; a late one of these is taken for a repeated one.
    unkept: u64,
    proof: u64,
}

impl ReadLog {
    /// Notes an event.
    pub fn arrive(&mut self, sequence: u64, offset: i64) -> Arrival {
        let arrival = if sequence == self.next {
            self.next += 1;
            Arrival::Next
        } else if sequence > self.next {
            self.skip_to(sequence)
        } else if self.missing.remove(sequence) {
            Arrival::Late { after: self.next }
        } else {
            return Arrival::Again;
        };
        self.proof = self.proof.wrapping_add(proof_of(sequence, offset));
        arrival
    }

    fn skip_to(&mut self, sequence: u64) -> Arrival {
        let expected = self.next;
        if self.missing.range_count() < GAPS_MAX {
            self.missing.insert(expected..sequence);
        } else {
            self.unkept += sequence - expected;
        }
        self.next = sequence + 1;
        Arrival::Ahead { expected }
    }

    /// One past the highest sequence read.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Sequences below [`ReadLog::next`] that were not read.
    pub fn missing(&self) -> &RangeSet {
        &self.missing
    }

    /// Whether there were more gaps than are kept: counts of lost and repeated events are then bounds.
    pub fn overflowed(&self) -> bool {
        self.unkept > 0
    }

    /// How many different events were read.
    pub fn count(&self) -> u64 {
        self.next - self.missing.count() - self.unkept
    }

    /// The sum of [`proof_of`] over all events read, each once.
    pub fn proof(&self) -> u64 {
        self.proof
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn arrivals(sequences: &[u64]) -> (ReadLog, Vec<Arrival>) {
        let mut log = ReadLog::default();
        let arrivals = sequences
            .iter()
            .enumerate()
            .map(|(at, &s)| log.arrive(s, at as i64))
            .collect();
        (log, arrivals)
    }

    #[test]
    fn in_order_costs_no_memory() {
        let (log, arrivals) = arrivals(&(0..1000).collect::<Vec<_>>());
        assert!(arrivals.iter().all(|&a| a == Arrival::Next));
        assert_eq!((log.count(), log.missing().range_count()), (1000, 0));
    }

    #[test]
    fn a_swap_is_one_event_out_of_order() {
        let (log, arrivals) = arrivals(&[0, 2, 1, 3]);
        assert_eq!(
            arrivals,
            [
                Arrival::Next,
                Arrival::Ahead { expected: 1 },
                Arrival::Late { after: 3 },
                Arrival::Next
            ]
        );
        assert_eq!((log.count(), log.missing().count()), (4, 0));
    }

    #[test]
    fn repeats_are_told_from_late_ones() {
        let (log, arrivals) = arrivals(&[0, 1, 1, 4, 0, 2, 2]);
        assert_eq!(arrivals[2], Arrival::Again);
        assert_eq!(arrivals[3], Arrival::Ahead { expected: 2 });
        assert_eq!(arrivals[4], Arrival::Again);
        assert_eq!(arrivals[5], Arrival::Late { after: 5 });
        assert_eq!(arrivals[6], Arrival::Again);
        assert_eq!(log.missing().iter().collect::<Vec<_>>(), [3..4]);
        assert_eq!(log.count(), 4);
    }

    #[test]
    fn the_proof_sees_swapped_offsets() {
        let mut straight = ReadLog::default();
        let mut swapped = ReadLog::default();
        for (sequence, offset) in [(0, 10), (1, 11), (2, 12)] {
            straight.arrive(sequence, offset);
        }
        for (sequence, offset) in [(0, 10), (1, 12), (2, 11)] {
            swapped.arrive(sequence, offset);
        }
        assert_ne!(straight.proof(), swapped.proof());
        let mut acked = super::super::acked::AckedLog::new();
        acked.acknowledge(0..3, Some(10));
        assert_eq!(acked.proof, straight.proof());
    }
}
