//! Which partition a record goes to.
//!
//! Owns: the rules, and per topic the place that keyless records have reached.
//! Not here: an explicit partition, which goes before every rule.
//!
//! Invariant: every rule names a partition below the topic's count, whatever the key.

use std::fmt;
use std::sync::Arc;

use super::murmur2::partition_of_key;
use crate::config::setting;
use crate::error::Result;
use crate::protocol::random::Random;

/// Keyless records move on to the next partition after so many bytes, whatever the batch size.
pub const STICKY_BYTES: usize = 16 << 10;

/// How a record without an explicit partition finds its own.
#[derive(Clone, Debug)]
pub enum Partitioner {
    /// By key, and by another rule when there is none.
    ByKey {
        /// For records with a key.
        keyed: Keyed,
        /// For records without.
        keyless: Keyless,
    },
    /// All records by the rule for those without a key, so that one key may be anywhere.
    Spread(Keyless),
    /// The caller's own rule.
    Custom(CustomPartitioner),
}

/// Rule for records with a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keyed {
    /// As Kafka's Java client does by default: `(murmur2(key) & 0x7fffffff) % partitions`.
    #[default]
    Murmur2,
    /// By ranges of keys, compared as bytes. Each split point is the first key of the next partition: `["N"]` puts
    /// A–M into partition 0 and N–Z into partition 1. Ascending; where a topic has fewer partitions than ranges, the
    /// last one takes the rest.
    Ranges(Vec<Vec<u8>>),
}

/// Rule for records without a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keyless {
    /// Every partition once, in shuffled order, before any repeats; moves on every 16 KiB.
    #[default]
    Sticky,
    /// The next partition with every record.
    RoundRobin,
}

/// A caller's rule: given the key, the value and the number of partitions, names a partition. One that does not exist
/// is taken modulo the number.
#[derive(Clone)]
pub struct CustomPartitioner(Arc<CustomRule>);

type CustomRule = dyn Fn(Option<&[u8]>, Option<&[u8]>, u32) -> u32 + Send + Sync;

impl CustomPartitioner {
    /// The rule, called once for every record, with (key, value, number of partitions).
    pub fn new(
        rule: impl Fn(Option<&[u8]>, Option<&[u8]>, u32) -> u32 + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(rule))
    }
}

impl fmt::Debug for CustomPartitioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomPartitioner")
    }
}

impl Default for Partitioner {
    fn default() -> Self {
        Partitioner::ByKey {
            keyed: Keyed::Murmur2,
            keyless: Keyless::Sticky,
        }
    }
}

impl Partitioner {
    /// Key ranges by their split points; keyless records are spread.
    pub fn ranges<K: Into<Vec<u8>>>(split_points: impl IntoIterator<Item = K>) -> Self {
        let keyed = Keyed::Ranges(split_points.into_iter().map(Into::into).collect());
        Partitioner::ByKey {
            keyed,
            keyless: Keyless::Sticky,
        }
    }

    /// The caller's own rule; see [`CustomPartitioner::new`].
    pub fn custom(
        rule: impl Fn(Option<&[u8]>, Option<&[u8]>, u32) -> u32 + Send + Sync + 'static,
    ) -> Self {
        Partitioner::Custom(CustomPartitioner::new(rule))
    }

    /// Refuses split points that are not in strictly ascending order.
    pub fn validate(&self) -> Result<()> {
        if let Partitioner::ByKey {
            keyed: Keyed::Ranges(points),
            ..
        } = self
            && !points.is_sorted_by(|one, next| one < next)
        {
            return setting(
                "partitioner",
                format!("{points:?}"),
                "split points must be in strictly ascending order",
            );
        }
        Ok(())
    }

    /// The partition, below `partition_count`, of a record that takes about `record_bytes` in its batch.
    pub(crate) fn choose(
        &self,
        place: &mut KeylessPlace,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        record_bytes: usize,
        random: &mut Random,
    ) -> u32 {
        match (self, key) {
            (Partitioner::ByKey { keyed, .. }, Some(key)) => {
                keyed.choose(key, place.partition_count())
            }
            (Partitioner::ByKey { keyless, .. }, None) | (Partitioner::Spread(keyless), _) => {
                place.next(*keyless, record_bytes, random)
            }
            (Partitioner::Custom(rule), _) => {
                let count = place.partition_count();
                (rule.0)(key, value, count) % count
            }
        }
    }
}

impl Keyed {
    fn choose(&self, key: &[u8], partition_count: u32) -> u32 {
        match self {
            Keyed::Murmur2 => partition_of_key(key, partition_count),
            Keyed::Ranges(points) => {
                let range = points.partition_point(|point| point.as_slice() <= key);
                (range as u32).min(partition_count - 1)
            }
        }
    }
}

/// The place that keyless records of one topic have reached.
#[derive(Clone, Debug)]
pub(crate) struct KeylessPlace {
    /// All partitions, in the order of this round.
    order: Vec<u32>,
    /// The place in `order`.
    at: usize,
    /// Bytes that went to the partition at `at` since it was moved to.
    bytes: usize,
}

impl KeylessPlace {
    /// Starts a round over `partition_count` partitions, at least one.
    pub(crate) fn new(partition_count: u32, random: &mut Random) -> Self {
        assert!(partition_count > 0, "a topic has at least one partition");
        let mut order: Vec<u32> = (0..partition_count).collect();
        random.shuffle(&mut order);
        Self {
            order,
            at: 0,
            bytes: 0,
        }
    }

    pub(crate) fn partition_count(&self) -> u32 {
        self.order.len() as u32
    }

    fn next(&mut self, rule: Keyless, record_bytes: usize, random: &mut Random) -> u32 {
        let partition = self.order[self.at];
        self.bytes = self.bytes.saturating_add(record_bytes);
        if rule == Keyless::RoundRobin || self.bytes >= STICKY_BYTES {
            self.move_on(rule, random);
        }
        partition
    }

    fn move_on(&mut self, rule: Keyless, random: &mut Random) {
        self.bytes = 0;
        self.at += 1;
        if self.at == self.order.len() {
            self.at = 0;
            // Round robin keeps its order, so that equal records are spread evenly over any stretch of time.
            if rule == Keyless::Sticky {
                random.shuffle(&mut self.order);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(
        partitioner: &Partitioner,
        partition_count: u32,
        records: usize,
        record_bytes: usize,
    ) -> Vec<u32> {
        let mut random = Random::new(11);
        let mut place = KeylessPlace::new(partition_count, &mut random);
        (0..records)
            .map(|_| partitioner.choose(&mut place, None, None, record_bytes, &mut random))
            .collect()
    }

    #[test]
    fn sticky_visits_all_before_repeating() {
        // 16 records of 1 KiB fill a visit.
        let chosen = spread(&Partitioner::default(), 6, 6 * 16 * 10, 1024);
        for round in chosen.chunks(6 * 16) {
            let mut visited: Vec<u32> = round.chunks(16).map(|visit| visit[0]).collect();
            assert!(
                round
                    .chunks(16)
                    .all(|visit| visit.iter().all(|partition| *partition == visit[0]))
            );
            visited.sort_unstable();
            assert_eq!(visited, [0, 1, 2, 3, 4, 5]);
        }
        assert_ne!(
            chosen[..96],
            chosen[96..192],
            "each round has an order of its own"
        );
    }

    #[test]
    fn round_robin_moves_on_with_every_record() {
        let chosen = spread(&Partitioner::Spread(Keyless::RoundRobin), 4, 40, 1);
        for round in chosen.chunks(4) {
            assert_eq!(round, &chosen[..4]);
        }
        let mut first = chosen[..4].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
    }

    #[test]
    fn ranges_of_keys() {
        let ranges = Partitioner::ranges(["N"]);
        let mut random = Random::new(1);
        let mut place = KeylessPlace::new(2, &mut random);
        for (key, partition) in [("A", 0), ("M9", 0), ("", 0), ("N", 1), ("N1", 1), ("Z", 1)] {
            assert_eq!(
                ranges.choose(&mut place, Some(key.as_bytes()), None, 1, &mut random),
                partition,
                "{key}"
            );
        }
        // Fewer partitions than ranges.
        let many = Partitioner::ranges(["b", "c", "d"]);
        assert_eq!(many.choose(&mut place, Some(b"z"), None, 1, &mut random), 1);
        assert!(Partitioner::ranges(["b", "a"]).validate().is_err());
        assert!(Partitioner::ranges(["a", "a"]).validate().is_err());
        assert!(many.validate().is_ok());
    }

    #[test]
    fn a_callers_rule_is_kept_in_range() {
        let custom = Partitioner::custom(|key, _, _| key.map_or(9, |key| key.len() as u32));
        let mut random = Random::new(1);
        let mut place = KeylessPlace::new(4, &mut random);
        assert_eq!(
            custom.choose(&mut place, Some(b"abc"), None, 1, &mut random),
            3
        );
        assert_eq!(custom.choose(&mut place, None, None, 1, &mut random), 1);
    }
}
