//! What a core looks after while it serves and that is not urgent: free space, retention, counters, the trash.

use std::{
    rc::{Rc, Weak},
    sync::Arc,
    time::Duration,
};

use glommio::timer::sleep;
use tackboard_logic::{
    ledger::LedgerImage,
    log::recovery::RestartClass,
    shard::{
        cold::ColdStats,
        interface::{Input, LogSpace, ShardStats},
    },
};

use super::{Shard, state::State};

/// How often a core looks after what is not urgent: retention, free space, counters, the trash.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// How often free space is measured while producers wait for it: about what it takes to unlink a segment.
const ROOM_LOOKS: Duration = Duration::from_millis(10);

/// Runs until the core has drained. Does not keep the shard while it rests: the core may end meanwhile.
pub(super) async fn keep_house(
    house: Weak<Shard>,
    (restart, ledger): (RestartClass, Arc<LedgerImage>),
) {
    let mut known = ShardStats::default();
    let mut known_cold = ColdStats::default();
    while let Some(shard) = house.upgrade()
        && !shard.state.borrow().drained
    {
        // First, so that what it frees counts at once.
        shard.empty_trash().await;
        shard.look_at_space().await;
        shard.enter(|state| {
            state.step(Input::Tick, &[]);
            state.tick_groups();
            known = state.publish(known);
        });
        shard.open_what_waits(restart, &ledger).await;
        known_cold = shard.publish_held(known_cold);
        drop(shard);
        sleep(HOUSEKEEPING).await;
    }
}

/// Looks at free space again and again while producers wait for it.
pub(super) async fn make_room(shard: Rc<Shard>) {
    while !shard.ended.get() {
        shard.room_wanted.wait().await;
        shard.progress.work_started();
        while shard.state.borrow().machine.awaits_room() && !shard.ended.get() {
            shard.look_at_space().await;
            sleep(ROOM_LOOKS).await;
        }
        shard.progress.work_done();
    }
}

impl Shard {
    /// Measures free space, and has logic do what follows.
    async fn look_at_space(self: &Rc<Self>) {
        let root = self.paths.root().to_owned();
        let free = glommio::executor()
            .spawn_blocking(move || crate::disk::free_space(&root))
            .await;
        self.enter(|state| {
            if let Ok(free) = free {
                let (bytes, others) = (free.bytes, state.logs_of_others());
                state.file_room.measured(free.files);
                state.step(Input::FreeSpace { bytes, others }, &[]);
            }
            state.publish_space();
        });
    }

    /// What connections and reads hold, and what reads of history did since `known`.
    fn publish_held(&self, known: ColdStats) -> ColdStats {
        let metrics = self.metrics();
        let (bytes_in_use, kept_bytes, cold) = self.history.report();
        metrics.memory_cold_read_bytes.set(bytes_in_use);
        metrics.memory_cold_kept_bytes.set(kept_bytes);
        metrics.cold_read_hits.add(cold.hits - known.hits);
        metrics.cold_reads_joined.add(cold.joined - known.joined);
        metrics
            .read_ahead_bytes
            .add(cold.ahead_bytes - known.ahead_bytes);
        metrics
            .read_ahead_wasted_bytes
            .add(cold.wasted_bytes - known.wasted_bytes);
        metrics
            .memory_socket_bytes
            .set(self.read_bytes.get() as u64);
        let connections = self.connections.borrow();
        let (mut requests, mut bytes) = (0, 0);
        for connection in connections.values() {
            requests += u64::from(connection.requests_in_flight());
            bytes += connection.request_bytes_in_flight();
        }
        metrics.requests_in_flight.set(requests);
        metrics.request_bytes_in_flight.set(bytes);
        cold
    }
}

impl State {
    /// What the logs of the other cores take, as these said a moment ago.
    fn logs_of_others(&self) -> LogSpace {
        let own = usize::from(self.core.0);
        let cores = self.metrics.cores().iter().enumerate();
        let others = cores.filter(|(core, _)| *core != own);
        let spaces = others.map(|(_, metrics)| LogSpace {
            bytes: metrics.log_bytes.get(),
            yielding_bytes: metrics.log_yielding_bytes.get(),
        });
        spaces.sum()
    }

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
        metrics.memory_index_bytes.set(stats.index_bytes);
        metrics.partitions_fenced.set(stats.fenced_logs);
        metrics
            .log_budget_dropped_bytes
            .add(stats.budget_dropped_bytes - known.budget_dropped_bytes);
        let logs = self.topics.logs();
        let logs = logs.filter_map(|(_, log)| self.machine.describe(log));
        let segments = logs.map(|log| u64::from(log.segment_count)).sum();
        metrics.log_segments.set(segments);
        self.publish_groups();
        stats
    }

    /// Tells the other cores what the logs of this one take.
    fn publish_space(&self) {
        let space = self.machine.log_space();
        let metrics = self.metrics();
        metrics.log_bytes.set(space.bytes);
        metrics.log_yielding_bytes.set(space.yielding_bytes);
    }
}
