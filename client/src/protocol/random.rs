//! A small generator for choices that need no secrecy: the order of partitions, the spread of pauses.
//!
//! Seeded from outside, so that a test replays from its seed.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose whole sequence follows from the seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of a plain multiplication is below 2^-32 for every bound used here.
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts the items into an order in which every permutation is as likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_keep_every_item_and_reach_every_place() {
        let mut random = Random::new(7);
        let mut seen = [[false; 5]; 5];
        for _ in 0..500 {
            let mut items = [0, 1, 2, 3, 4];
            random.shuffle(&mut items);
            items
                .iter()
                .enumerate()
                .for_each(|(place, item)| seen[place][*item] = true);
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3, 4]);
        }
        assert!(seen.iter().flatten().all(|seen| *seen));
    }
}
