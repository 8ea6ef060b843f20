//! What is known of the cluster: topics, and where each partition's leader listens.
//!
//! Owns: the latest answer about each topic that was asked about, and the brokers.
//! Not here: when to ask (`cluster`).

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use tackboard_schema::{BrokerId, ErrorCode, PartitionIndex, TopicId};

use crate::admin::{BrokerDescription, ClusterDescription, TopicSummary};

/// The addresses of a partition's leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaderAddress {
    /// The listener of the core that owns the partition, if it has one.
    pub(crate) core: Option<Arc<str>>,
    /// The listener that any core of that broker serves.
    pub(crate) any_core: Arc<str>,
}

/// Why a partition's leader cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLeader {
    /// The topic was not asked about, or there is no answer yet.
    NotKnownYet,
    /// The broker refuses to speak of the topic.
    Topic(ErrorCode),
    /// The topic has only so many partitions.
    Partition(usize),
    /// The partition has no leader at the moment.
    Leader,
}

#[derive(Debug, Default)]
pub(crate) struct Metadata {
    brokers: BTreeMap<BrokerId, BrokerDescription>,
    topics: AHashMap<Arc<str>, TopicSummary>,
}

impl Metadata {
    /// Takes in the answer to a request about `asked`. A topic that was asked about and is not in the answer does not
    /// exist.
    pub(crate) fn update(&mut self, answer: ClusterDescription, asked: &[Arc<str>]) {
        self.brokers = answer
            .brokers
            .into_iter()
            .map(|broker| (broker.broker_id, broker))
            .collect();
        for name in asked {
            self.topics.insert(name.clone(), missing_topic(name));
        }
        for topic in answer.topics {
            self.topics.insert(topic.name.clone(), topic);
        }
    }

    /// Every broker's listener that any core serves.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        self.brokers.values().map(|broker| &broker.address)
    }

    pub(crate) fn topic(&self, name: &str) -> Option<&TopicSummary> {
        self.topics.get(name)
    }

    /// Forgets a topic, so that the next answer about it is waited for.
    pub(crate) fn forget(&mut self, name: &str) {
        self.topics.remove(name);
    }

    /// Forgets all topics: what comes next tells of all there are.
    pub(crate) fn forget_all(&mut self) {
        self.topics.clear();
    }

    /// The names of all topics that exist.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        let existing = self.topics.values().filter(|topic| topic.error.is_none());
        existing.map(|topic| &topic.name)
    }

    pub(crate) fn leader(
        &self,
        topic: &str,
        partition: PartitionIndex,
    ) -> Result<LeaderAddress, NoLeader> {
        let topic = self.topics.get(topic).ok_or(NoLeader::NotKnownYet)?;
        if let Some(code) = topic.error {
            return Err(NoLeader::Topic(code));
        }
        let found = usize::try_from(partition.0)
            .ok()
            .and_then(|index| topic.partitions.get(index));
        let partition = found.ok_or(NoLeader::Partition(topic.partitions.len()))?;
        let leader = partition
            .leader
            .and_then(|leader| self.brokers.get(&leader))
            .ok_or(NoLeader::Leader)?;
        let core = leader.core_addresses.get(usize::from(partition.core.0));
        Ok(LeaderAddress {
            core: core.cloned().flatten(),
            any_core: leader.address.clone(),
        })
    }
}

fn missing_topic(name: &Arc<str>) -> TopicSummary {
    TopicSummary {
        name: name.clone(),
        error: Some(ErrorCode::UnknownTopicOrPartition),
        topic_id: TopicId([0; 16]),
        acks: tackboard_schema::Acks::All,
        durability: tackboard_schema::Durability::Fsync,
        partitions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::PartitionSummary;
    use tackboard_schema::{Acks, CoreId, Durability, LeaderEpoch};

    fn partition(index: i32, leader: Option<i32>, core: u16) -> PartitionSummary {
        PartitionSummary {
            partition: PartitionIndex(index),
            error: None,
            leader: leader.map(BrokerId),
            leader_epoch: LeaderEpoch(0),
            core: CoreId(core),
            replicas: vec![],
            in_sync_replicas: vec![],
        }
    }

    #[test]
    fn leaders_by_core() {
        let broker = BrokerDescription {
            broker_id: BrokerId(1),
            address: "b:7400".into(),
            core_addresses: vec![Some("b:7401".into()), None],
        };
        let topic = TopicSummary {
            name: "t".into(),
            error: None,
            topic_id: TopicId([1; 16]),
            acks: Acks::All,
            durability: Durability::Fsync,
            partitions: vec![
                partition(0, Some(1), 0),
                partition(1, Some(1), 1),
                partition(2, None, 0),
            ],
        };
        let mut metadata = Metadata::default();
        assert_eq!(
            metadata.leader("t", PartitionIndex(0)),
            Err(NoLeader::NotKnownYet)
        );
        let answer = ClusterDescription {
            brokers: vec![broker],
            topics: vec![topic],
        };
        metadata.update(answer, &["t".into(), "gone".into()]);
        let leader = |index| metadata.leader("t", PartitionIndex(index));
        assert_eq!(leader(0).unwrap().core.as_deref(), Some("b:7401"));
        assert_eq!(
            leader(1),
            Ok(LeaderAddress {
                core: None,
                any_core: "b:7400".into()
            })
        );
        assert_eq!(leader(2), Err(NoLeader::Leader));
        assert_eq!(leader(3), Err(NoLeader::Partition(3)));
        assert_eq!(leader(-1), Err(NoLeader::Partition(3)));
        let gone = metadata.leader("gone", PartitionIndex(0));
        assert_eq!(
            gone,
            Err(NoLeader::Topic(ErrorCode::UnknownTopicOrPartition))
        );
    }
}
