//! A set of numbers kept as disjoint ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers in ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Start to end, exclusive.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl RangeSet {
    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many separate ranges it takes to say so.
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges, in order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Whether the number is in the set.
    #[cfg(test)]
    pub fn contains(&self, number: u64) -> bool {
        self.ranges
            .range(..=number)
            .next_back()
            .is_some_and(|(_, &end)| number < end)
    }

    /// Adds a range of numbers of which none is in the set yet.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.count += range.end - range.start;
        let mut merged = range;
        if let Some((&start, &end)) = self.ranges.range(..=merged.start).next_back() {
            debug_assert!(end <= merged.start, "{merged:?} overlaps {start}..{end}");
            if end == merged.start {
                self.ranges.remove(&start);
                merged.start = start;
            }
        }
        if let Some(end) = self.ranges.remove(&merged.end) {
            merged.end = end;
        }
        self.ranges.insert(merged.start, merged.end);
    }

    /// Takes one number out; false if it was not in.
    pub fn remove(&mut self, number: u64) -> bool {
        let Some((&start, &end)) = self.ranges.range(..=number).next_back() else {
            return false;
        };
        if number >= end {
            return false;
        }
        self.ranges.remove(&start);
        if start < number {
            self.ranges.insert(start, number);
        }
        if number + 1 < end {
            self.ranges.insert(number + 1, end);
        }
        self.count -= 1;
        true
    }

    /// The parts of `range` that are in the set.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self
            .ranges
            .range(..=range.start)
            .next_back()
            .map_or(range.start, |(&start, _)| start);
        self.ranges
            .range(first..)
            .take_while({
                let end = range.end;
                move |&(&start, _)| start < end
            })
            .map(move |(&start, &end)| start.max(range.start)..end.min(range.end))
            .filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn ranges(set: &RangeSet) -> Vec<Range<u64>> {
        set.iter().collect()
    }

    #[test]
    fn neighbours_merge_and_removal_splits() {
        let mut set = RangeSet::default();
        set.insert(0..3);
        set.insert(6..9);
        assert_eq!((set.range_count(), set.count()), (2, 6));
        set.insert(3..6);
        assert_eq!(ranges(&set), [0..9]);
        assert!(set.remove(4));
        assert!(!set.remove(4));
        assert_eq!(ranges(&set), [0..4, 5..9]);
        assert!(set.remove(0) && set.remove(8));
        assert_eq!(ranges(&set), [1..4, 5..8]);
        assert!(!set.remove(0) && !set.remove(8) && !set.remove(100));
        assert_eq!(set.count(), 6);
        assert!(set.contains(1) && !set.contains(4) && !set.contains(8));
    }

    #[test]
    fn intersections_are_cut_to_the_range() {
        let mut set = RangeSet::default();
        for start in [0, 10, 20] {
            set.insert(start..start + 5);
        }
        assert_eq!(
            set.within(3..21).collect::<Vec<_>>(),
            [3..5, 10..15, 20..21]
        );
        assert_eq!(set.within(5..10).count(), 0);
        assert_eq!(set.within(11..12).collect::<Vec<_>>(), [11..12]);
    }

    #[test]
    fn agrees_with_a_plain_set() {
        let mut rng = crate::workload::rng::Rng::new(5, 0);
        let mut set = RangeSet::default();
        let mut plain = std::collections::BTreeSet::new();
        for _ in 0..5000 {
            let number = rng.below(200);
            if plain.contains(&number) {
                assert_eq!(set.remove(number), plain.remove(&number));
            } else if rng.below(2) == 0 {
                set.insert(number..number + 1);
                plain.insert(number);
            } else {
                assert!(!set.remove(number));
            }
            assert_eq!(set.count(), plain.len() as u64);
        }
        assert_eq!(
            set.iter().flatten().collect::<Vec<_>>(),
            plain.into_iter().collect::<Vec<_>>()
        );
    }
}
