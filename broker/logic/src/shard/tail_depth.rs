//! How far back from the ends of its logs a core keeps what was written in memory.
//!
//! As far as readers look, and no further: memory that goes around in a small cache was touched before, while a cache
//! that grows to its budget takes a fresh page for every 4 KiB of log, which costs more than all the rest that is done
//! with them. So the cache begins small. It doubles when a reader had to go to the disk for what a cache of the whole
//! budget would have held, and is halved when nobody has read its older half for a while.
//!
//! Time is counted in bytes that joined the cache: nothing changes while nothing is written.

/// The cache is halved when nobody has read its older half while so many times its size joined it.
const SHRINK_AFTER: u64 = 4;

/// The size that the tail cache of one core has at most for now.
#[derive(Clone, Debug)]
pub struct TailDepth {
    least: u64,
    most: u64,
    now: u64,
    /// Bytes that ever joined the cache.
    clock: u64,
    /// When the size was changed, or somebody read the older half.
    settled_at: u64,
    /// Until then what is missed is what has not had time to gather since the cache grew.
    grown_until: u64,
}

impl TailDepth {
    /// Between `least` and `most` bytes; at most `most` if they contradict each other.
    pub fn new(least: u64, most: u64) -> Self {
        Self {
            least: least.min(most),
            most,
            now: least.min(most),
            clock: 0,
            settled_at: 0,
            grown_until: 0,
        }
    }

    /// Bytes that may be cached now.
    pub fn bytes(&self) -> u64 {
        self.now
    }

    /// Bytes that may ever be cached.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// So many bytes joined the cache.
    pub fn joined(&mut self, bytes: u64) {
        self.clock += bytes;
        let unread = self.clock.saturating_sub(self.settled_at);
        if self.now > self.least && unread >= self.now.saturating_mul(SHRINK_AFTER) {
            self.now = (self.now / 2).max(self.least);
            self.settled_at = self.clock;
        }
    }

    /// Of what joined, so many bytes were let go at once.
    pub fn shed(&mut self, bytes: u64) {
        self.clock = self.clock.saturating_sub(bytes);
    }

    /// A reader found what it asked for in the cache, so many bytes from its young end.
    pub fn hit(&mut self, depth: u64) {
        if depth > self.now / 2 {
            self.settled_at = self.clock;
        }
    }

    /// A reader did not; what it asked for lies so many bytes before the end of its log.
    pub fn missed(&mut self, distance: u64) {
        if distance > self.most {
            return;
        }
        self.settled_at = self.clock;
        if self.clock >= self.grown_until && self.now < self.most {
            let before = self.now;
            self.now = self.now.saturating_mul(2).clamp(1, self.most);
            self.grown_until = self.clock + (self.now - before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_what_readers_miss_once_what_it_gained_has_filled() {
        let mut depth = TailDepth::new(100, 1000);
        depth.missed(500);
        depth.missed(500);
        assert_eq!(depth.bytes(), 200, "the second miss tells nothing new");
        depth.joined(100);
        depth.missed(500);
        assert_eq!(depth.bytes(), 400);
        for _ in 0..4 {
            depth.joined(1000);
            depth.missed(500);
        }
        assert_eq!(depth.bytes(), 1000);
    }

    #[test]
    fn a_reader_of_all_history_changes_nothing() {
        let mut depth = TailDepth::new(100, 1000);
        depth.missed(1001);
        assert_eq!(depth.bytes(), 100);
    }

    #[test]
    fn it_shrinks_when_nobody_reads_its_older_half() {
        let mut depth = TailDepth::new(100, 1000);
        depth.missed(500);
        for _ in 0..10 {
            depth.joined(700);
            depth.hit(101);
        }
        assert_eq!(depth.bytes(), 200, "the older half is in use");
        depth.joined(700);
        depth.hit(100);
        assert_eq!(depth.bytes(), 200);
        depth.joined(100);
        assert_eq!(depth.bytes(), 100);
        depth.joined(10_000);
        assert_eq!(depth.bytes(), 100);
    }

    #[test]
    fn without_a_budget_nothing_is_kept() {
        let mut depth = TailDepth::new(100, 0);
        depth.missed(0);
        depth.joined(50);
        assert_eq!(depth.bytes(), 0);
    }
}
