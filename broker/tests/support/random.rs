//! Numbers from a seed that is printed.

#![allow(dead_code, reason = "each test uses a part")]

/// A generator of numbers.
pub struct Random(u64);

impl Random {
    /// From `ENDURE_SEED`, or a seed that is always the same.
    pub fn new() -> Random {
        Random::numbered(0)
    }

    /// One of several that come from the same seed.
    pub fn numbered(number: u64) -> Random {
        let seed = std::env::var("ENDURE_SEED").ok();
        let seed = seed.map_or(0x9e37_79b9_7f4a_7c15, |text| {
            text.parse().expect("a number")
        });
        if number == 0 {
            eprintln!("ENDURE_SEED={seed}");
        }
        let mut random = Random((seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d)) | 1);
        // Seeds that are alike part ways.
        for _ in 0..8 {
            random.next();
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
