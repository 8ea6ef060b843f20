//! Kafka's rules for idempotent producers, written down a second time.

use super::batch::Stamp;

/// How many batches of a producer a retry may go back.
const WINDOW_BATCHES: usize = 5;

/// The sequence that follows `count` records from `sequence`; it wraps from 2³¹−1 to 0.
pub fn next_sequence(sequence: i32, count: i64) -> i32 {
    ((i64::from(sequence) + count) % (1 << 31)) as i32
}

/// What must become of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is appended.
    Append,
    /// It was appended before, at this offset.
    Duplicate(i64),
    /// It doesn't follow the producer's last batch.
    OutOfOrder,
    /// A newer epoch was seen.
    StaleEpoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Appended {
    epoch: i16,
    first: i32,
    next: i32,
    base: i64,
}

/// All batches that a producer ever had in a log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerTruth {
    appended: Vec<Appended>,
    /// The wall clock at the last batch.
    pub last_append_ms: i64,
}

impl ProducerTruth {
    /// What must become of this batch for a log that knows of all batches from offset `known_from` on.
    pub fn expect(&self, stamp: Stamp, count: i64, known_from: i64) -> Expected {
        let below = self
            .appended
            .partition_point(|batch| batch.base < known_from);
        let known = &self.appended[below..];
        let Some(last) = known.last() else {
            return Expected::Append;
        };
        if stamp.epoch < last.epoch {
            return Expected::StaleEpoch;
        }
        if stamp.epoch > last.epoch {
            return if stamp.sequence == 0 {
                Expected::Append
            } else {
                Expected::OutOfOrder
            };
        }
        let next = next_sequence(stamp.sequence, count);
        let window = known
            .iter()
            .rev()
            .take(WINDOW_BATCHES)
            .take_while(|batch| batch.epoch == last.epoch);
        let mut same = window.filter(|batch| batch.first == stamp.sequence && batch.next == next);
        match same.next() {
            Some(batch) => Expected::Duplicate(batch.base),
            None if last.next == stamp.sequence => Expected::Append,
            None => Expected::OutOfOrder,
        }
    }

    /// The batch was appended at `base`.
    pub fn record(&mut self, stamp: Stamp, count: i64, base: i64, wall_ms: i64) {
        self.appended.push(Appended {
            epoch: stamp.epoch,
            first: stamp.sequence,
            next: next_sequence(stamp.sequence, count),
            base,
        });
        self.last_append_ms = wall_ms;
    }

    /// What was appended at or behind `end` is lost.
    pub fn lose_from(&mut self, end: i64) {
        let kept = self.appended.partition_point(|batch| batch.base < end);
        self.appended.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(epoch: i16, sequence: i32) -> Stamp {
        Stamp {
            id: 1,
            epoch,
            sequence,
        }
    }

    #[test]
    fn kafkas_rules() {
        let mut producer = ProducerTruth::default();
        for batch in 0..6 {
            producer.record(stamp(0, batch * 2), 2, i64::from(batch) * 2, 0);
        }
        let expect = |epoch, sequence| producer.expect(stamp(epoch, sequence), 2, 0);
        assert_eq!(expect(0, 12), Expected::Append);
        assert_eq!(expect(0, 2), Expected::Duplicate(2));
        assert_eq!(expect(0, 0), Expected::OutOfOrder, "beyond the window");
        assert_eq!(expect(0, 14), Expected::OutOfOrder);
        assert_eq!(expect(1, 0), Expected::Append);
        assert_eq!(expect(1, 12), Expected::OutOfOrder);
        assert_eq!(expect(-1, 12), Expected::StaleEpoch);
        assert_eq!(
            producer.expect(stamp(0, 2), 2, 11),
            Expected::Append,
            "not known any more"
        );
        assert_eq!(next_sequence(i32::MAX, 1), 0);
    }

    #[test]
    fn what_is_lost_may_be_sent_again() {
        let mut producer = ProducerTruth::default();
        producer.record(stamp(0, 0), 1, 0, 0);
        producer.record(stamp(0, 1), 1, 1, 0);
        producer.lose_from(1);
        assert_eq!(producer.expect(stamp(0, 1), 1, 0), Expected::Append);
        assert_eq!(producer.expect(stamp(0, 0), 1, 0), Expected::Duplicate(0));
    }
}
