//! What must hold after every step, numbered S1 to S10.
//!
//! - **S1** log start ≤ high watermark ≤ end; durable ≤ written ≤ appended. Within a process ends fall only through a
//!   truncation, after which the log begins anew: [`Positions`](crate::log::position::Positions) and
//!   [`LogSync`](crate::log::sync_plan::LogSync) assert that they never do.
//! - **S2** The durable end moves to X only after a sync, or a write that proves itself, which covers every byte below
//!   X: only `LogSync` can move it.
//! - **S3** After a failed write or sync the durable end never rises: `LogSync` asserts it; nothing is retried.
//! - **S4** Recovered bytes count as durable only after a sync issued after they were read:
//!   [`Recovery`](crate::log::recovery::Recovery) asks for it before it is done.
//! - **S5** Recovery truncates only at or above what the ledger proves; damage below it is kept out of reach.
//! - **S6** The log's start is durable in the ledger before a file goes; nothing at or above the high watermark goes.
//! - **S7** A log is deleted only by a committed command: [`Input::Delete`](super::interface::Input::Delete).
//! - **S8** Old bytes past a new end never parse as valid: files are cut, indexes and snapshots that speak of them go,
//!   and epochs never fall within a log. The ledger has the new end before a file is cut, and the log takes appends
//!   again only when it has also that it was.
//! - **S9** Between an offset and the place of its bytes nothing is awaited: one step assigns both.
//! - **S10** A segment's directory entry is synced before any byte in it counts as durable: nothing is written to a
//!   segment that is not created.
//!
//! S4, S5, S7 and S8 span a restart or a file and are checked by the simulator; the rest is checked here.

use super::Shard;

impl Shard {
    /// Checks the invariants as far as one core can see them. Expensive: for tests and the simulator.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    pub fn check_invariants(&self) {
        let mut chunks = 0;
        let mut cached = 0;
        let mut append_bytes = 0;
        let mut cache_bytes = 0;
        for log in self.logs() {
            log.check_invariants(&self.memory);
            let list = log.chunks.list();
            chunks += list.len();
            let in_cache = list.iter().take(log.chunks.cached());
            cached += in_cache.clone().filter(|chunk| !chunk.pinned).count();
            cache_bytes += in_cache
                .map(|chunk| match chunk.pinned {
                    true => u64::from(chunk.capacity),
                    false => chunk.cache_cost(),
                })
                .sum::<u64>();
            let unwritten = list.iter().skip(log.chunks.cached());
            append_bytes += unwritten
                .map(|chunk| u64::from(chunk.capacity))
                .sum::<u64>();
            for parked in &log.parked {
                assert!(
                    self.parked.is_live(*parked),
                    "a log remembers a fetch that was answered"
                );
            }
        }
        assert_eq!(
            chunks,
            self.memory.live_chunks(),
            "every chunk belongs to a log"
        );
        assert_eq!(
            cached,
            self.memory.cached_chunks(),
            "every cached chunk has its turn to go"
        );
        assert_eq!(
            append_bytes,
            self.memory.append_bytes(),
            "the append budget adds up"
        );
        assert_eq!(
            cache_bytes,
            self.memory.cache_bytes(),
            "the tail cache adds up"
        );
    }
}
