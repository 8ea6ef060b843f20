//! When a partition of the topic is written anew.

use crate::shard::interface::Now;

/// It is not written anew before it has so many bytes.
pub const REWRITE_BYTES_MIN: u64 = 16 << 20;

/// Nor before it is so many times as long as what lived in it when it was last written anew.
pub const REWRITE_GROWTH: u64 = 4;

/// After one failure it is not tried again for so long, in microseconds; after each further one for twice as long. What a
/// failed attempt has appended stays on the disk, which may be what it failed at.
pub const REWRITE_PAUSE_US_MIN: u64 = 10_000_000;

/// The pauses get no longer than this, in microseconds.
pub const REWRITE_PAUSE_US_MAX: u64 = 600_000_000;

/// What is known of earlier attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RewritePlan {
    /// What lived when it was last written anew.
    living_bytes: u64,
    /// The last pause, if attempts have failed since.
    pause_us: u64,
    /// When that ends.
    rests_until_us: u64,
}

impl RewritePlan {
    /// Whether it is worth it for a topic partition that is so long.
    pub fn is_due(&self, now: Now, size_bytes: u64) -> bool {
        let grown = self.living_bytes.saturating_mul(REWRITE_GROWTH);
        size_bytes >= REWRITE_BYTES_MIN.max(grown) && now.monotonic_us >= self.rests_until_us
    }

    /// It was written anew, and what is old has gone.
    pub fn succeeded(&mut self, living_bytes: u64) {
        *self = Self {
            living_bytes,
            ..Self::default()
        };
    }

    /// It could not be.
    pub fn failed(&mut self, now: Now) {
        let pause_us = self.pause_us.saturating_mul(2);
        self.pause_us = pause_us.clamp(REWRITE_PAUSE_US_MIN, REWRITE_PAUSE_US_MAX);
        self.rests_until_us = now.monotonic_us.saturating_add(self.pause_us);
    }
}

#[cfg(test)]
mod tests {
    use tackboard_schema::TimestampMs;

    use super::*;

    fn at(monotonic_us: u64) -> Now {
        Now {
            monotonic_us,
            wall: TimestampMs(0),
        }
    }

    #[test]
    fn it_is_written_anew_when_it_has_grown_enough() {
        let mut plan = RewritePlan::default();
        assert!(!plan.is_due(at(0), REWRITE_BYTES_MIN - 1));
        assert!(plan.is_due(at(0), REWRITE_BYTES_MIN));
        plan.succeeded(REWRITE_BYTES_MIN);
        assert!(!plan.is_due(at(0), REWRITE_GROWTH * REWRITE_BYTES_MIN - 1));
        assert!(plan.is_due(at(0), REWRITE_GROWTH * REWRITE_BYTES_MIN));
        plan.succeeded(1);
        assert!(!plan.is_due(at(0), REWRITE_BYTES_MIN - 1));
    }

    #[test]
    fn failures_are_further_and_further_apart_within_a_bound() {
        let mut plan = RewritePlan::default();
        let mut now_us = 0;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            plan.failed(at(now_us));
            let pause_us = (0..)
                .map(|seconds| seconds * 1_000_000)
                .find(|pause_us| plan.is_due(at(now_us + pause_us), REWRITE_BYTES_MIN));
            pauses.push(pause_us.expect("it is tried again"));
            now_us += pauses[pauses.len() - 1];
        }
        assert_eq!(pauses[..3], [10_000_000, 20_000_000, 40_000_000]);
        assert_eq!(pauses[8..], [REWRITE_PAUSE_US_MAX; 2]);
        plan.succeeded(0);
        plan.failed(at(now_us));
        assert!(plan.is_due(at(now_us + REWRITE_PAUSE_US_MIN), REWRITE_BYTES_MIN));
    }
}
