//! Where new partitions go: which brokers hold them, and on which core.
//!
//! Both choices are "least loaded", counted in partitions. Shard keys count upwards, skipping ahead only to even out the
//! cores: so a broker that restarts with another number of cores finds its partitions spread over all of them.

use std::collections::BTreeMap;

use tackboard_schema::{BrokerId, LeaderEpoch};

use super::image::{Image, Partition};

/// The load of one broker.
struct Load {
    leaders: usize,
    replicas: usize,
    /// Partitions on each core.
    cores: Vec<u32>,
}

/// Running totals over an image and the partitions placed since.
pub(super) struct Assignment {
    loads: BTreeMap<BrokerId, Load>,
    next_shard_key: u32,
}

impl Assignment {
    pub(super) fn new(image: &Image, next_shard_key: u32) -> Self {
        let loads = image.brokers.values().map(|broker| {
            let load = Load {
                leaders: 0,
                replicas: 0,
                cores: vec![0; broker.cores.len()],
            };
            (broker.id, load)
        });
        let mut assignment = Self {
            loads: loads.collect(),
            next_shard_key,
        };
        for partition in image.topics().flat_map(|topic| &topic.partitions) {
            assignment.count(partition);
        }
        assignment
    }

    /// Places one partition on `replication_factor` brokers. There must be that many.
    pub(super) fn place(&mut self, replication_factor: usize) -> Partition {
        let mut by_load: Vec<(usize, usize, BrokerId)> = self
            .loads
            .iter()
            .map(|(id, load)| (load.replicas, load.leaders, *id))
            .collect();
        by_load.sort_unstable();
        let mut replicas: Vec<BrokerId> = by_load
            .iter()
            .take(replication_factor)
            .map(|(_, _, id)| *id)
            .collect();
        assert_eq!(
            replicas.len(),
            replication_factor,
            "fewer brokers than replicas"
        );
        replicas.sort_unstable_by_key(|id| (self.loads[id].leaders, *id));
        let shard_key = self.least_loaded_key(&replicas);
        self.next_shard_key = shard_key.wrapping_add(1);
        let partition = Partition {
            leader: replicas[0],
            leader_epoch: LeaderEpoch(0),
            shard_key,
            isr: replicas.clone(),
            replicas,
        };
        self.count(&partition);
        partition
    }

    /// Where the next shard key is looked for; part of the state.
    pub(super) fn next_shard_key(&self) -> u32 {
        self.next_shard_key
    }

    /// Replicas of all partitions, on all brokers.
    pub(super) fn replicas(&self) -> usize {
        self.loads.values().map(|load| load.replicas).sum()
    }

    /// The most partitions on one core of each broker.
    pub(super) fn fullest_cores(&self) -> impl Iterator<Item = (BrokerId, u32)> {
        self.loads
            .iter()
            .map(|(id, load)| (*id, load.cores.iter().copied().max().unwrap_or(0)))
    }

    /// Of the next keys, one for each core, the first whose core is the least loaded on its busiest replica.
    fn least_loaded_key(&self, replicas: &[BrokerId]) -> u32 {
        let cores = replicas.iter().map(|id| self.loads[id].cores.len());
        let candidates = cores.max().unwrap_or(1) as u32;
        (0..candidates)
            .map(|ahead| self.next_shard_key.wrapping_add(ahead))
            .min_by_key(|key| {
                let on_core = |id| {
                    let cores = &self.loads[id].cores;
                    cores[*key as usize % cores.len()]
                };
                replicas.iter().map(on_core).max()
            })
            .unwrap_or(self.next_shard_key)
    }

    fn count(&mut self, partition: &Partition) {
        for replica in &partition.replicas {
            let Some(load) = self.loads.get_mut(replica) else {
                continue;
            };
            load.replicas += 1;
            load.leaders += usize::from(partition.leader == *replica);
            let core = partition.shard_key as usize % load.cores.len();
            load.cores[core] += 1;
        }
    }
}
