//! What a core looks after while it serves and that is not urgent: free space, retention, counters, the trash.

use std::{rc::Rc, time::Duration};

use glommio::timer::sleep;
use tackboard_logic::shard::interface::{Input, ShardStats};

use super::{Shard, state::State};

/// How often a core looks after what is not urgent: retention, free space, counters, the trash.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Runs until the core has drained.
pub(super) async fn keep_house(shard: Rc<Shard>) {
    let mut known = ShardStats::default();
    while !shard.state.borrow().drained {
        // First, so that what it frees counts at once.
        shard.empty_trash().await;
        let root = shard.paths.root().to_owned();
        let free = glommio::executor()
            .spawn_blocking(move || crate::disk::free_bytes(&root))
            .await;
        shard.enter(|state| {
            if let Ok(bytes) = free {
                state.step(Input::FreeSpace { bytes }, &[]);
            }
            state.step(Input::Tick, &[]);
            known = state.publish(known);
        });
        sleep(HOUSEKEEPING).await;
    }
}

impl State {
    /// Adds what logic counted since `known` to the core's counters.
    fn publish(&mut self, known: ShardStats) -> ShardStats {
        let stats = self.machine.stats();
        let metrics = self.metrics.core(usize::from(self.core.0));
        metrics
            .produce_batches
            .add(stats.appended_batches - known.appended_batches);
        metrics
            .produce_records
            .add(stats.appended_records - known.appended_records);
        metrics
            .produce_bytes
            .add(stats.appended_bytes - known.appended_bytes);
        metrics.fetches_parked.set(stats.parked_fetches);
        metrics.memory_append_bytes.set(stats.append_bytes);
        metrics.memory_tail_cache_bytes.set(stats.tail_cache_bytes);
        metrics.partitions_fenced.set(stats.fenced_logs);
        let (mut bytes, mut segments) = (0, 0);
        for (_, log) in self.topics.logs() {
            if let Some(log) = self.machine.describe(log) {
                bytes += log.size_bytes;
                segments += u64::from(log.segment_count);
            }
        }
        metrics.log_bytes.set(bytes);
        metrics.log_segments.set(segments);
        stats
    }
}
