//! Which partition an event without a key goes to: all of them once in shuffled order before any comes again, moving on
//! after so many bytes, so that batches fill and no partition is preferred.

use super::rng::Rng;

/// Bytes after which the next partition takes its turn.
pub const STICKY_BYTES: u32 = 16 << 10;

/// The place of one producer's keyless events.
#[derive(Debug)]
pub struct Spread {
    rng: Rng,
    /// All partitions in the order of this round.
    order: Vec<u16>,
    at: usize,
    bytes: u32,
}

impl Spread {
    /// Over so many partitions; at least one.
    pub fn new(partitions: u16, rng: Rng) -> Self {
        let mut spread = Self {
            rng,
            order: (0..partitions).collect(),
            at: 0,
            bytes: 0,
        };
        spread.shuffle();
        spread
    }

    /// The partition of the next event.
    pub fn partition(&self) -> u16 {
        self.order[self.at]
    }

    /// An event of so many bytes went there.
    pub fn took(&mut self, bytes: u32) {
        self.bytes += bytes;
        if self.bytes < STICKY_BYTES {
            return;
        }
        self.bytes = 0;
        self.at += 1;
        if self.at == self.order.len() {
            self.at = 0;
            self.shuffle();
        }
    }

    fn shuffle(&mut self) {
        for last in (1..self.order.len()).rev() {
            self.order
                .swap(last, self.rng.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_visits_every_partition_once() {
        let mut spread = Spread::new(6, Rng::new(1, 0));
        for _ in 0..100 {
            let mut round = Vec::new();
            for _ in 0..6 {
                round.push(spread.partition());
                for _ in 0..STICKY_BYTES / 128 {
                    assert_eq!(spread.partition(), *round.last().unwrap());
                    spread.took(128);
                }
            }
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4, 5]);
        }
    }
}
