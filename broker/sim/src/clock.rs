//! Virtual time: one clock that never goes back, and a wall clock that jumps.

use tackboard_logic::shard::interface::Now;
use tackboard_schema::TimestampMs;

/// Both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now_us: u64,
    wall_ahead_ms: i64,
    jumped_back_ms: i64,
}

impl Clock {
    /// Some time in 2027.
    pub fn new() -> Self {
        Self {
            now_us: 0,
            wall_ahead_ms: 1_800_000_000_000,
            jumped_back_ms: 0,
        }
    }

    /// Microseconds since the run began.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// What the wall clock shows.
    pub fn wall_ms(&self) -> i64 {
        self.wall_ahead_ms + (self.now_us / 1_000) as i64
    }

    /// What the wall clock would show if it had never jumped back: a bound for every age that somebody may have found.
    pub fn wall_latest_ms(&self) -> i64 {
        self.wall_ms() + self.jumped_back_ms
    }

    /// Both, as a driver reads them once a turn.
    pub fn now(&self) -> Now {
        Now {
            // A process doesn't start at zero.
            monotonic_us: 1_000_000 + self.now_us,
            wall: TimestampMs(self.wall_ms()),
        }
    }

    /// The virtual time of a monotonic reading.
    pub fn of_monotonic(monotonic_us: u64) -> u64 {
        monotonic_us.saturating_sub(1_000_000)
    }

    /// Time passes.
    pub fn advance_to(&mut self, now_us: u64) {
        self.now_us = self.now_us.max(now_us);
    }

    /// The wall clock jumps, either way.
    pub fn jump_wall(&mut self, by_ms: i64) {
        self.jumped_back_ms += (-by_ms).max(0);
        self.wall_ahead_ms += by_ms;
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
