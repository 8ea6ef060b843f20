//! The state of the metadata at one version, as every core sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use tackboard_schema::{
    BrokerId, CoreId, ErrorCode, LeaderEpoch, PartitionIndex, TimestampMs, TopicId, TopicPartition,
};

use super::command::{Endpoint, IncarnationId};
use super::topic_settings::TopicConfig;

/// So many deleted topics are remembered. The folder of a topic that was forgotten is reported as unknown and stays.
pub const TOMBSTONES_MAX: usize = 10_000;

/// Names a cluster; drawn at random when the first broker starts on an empty folder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

/// Immutable metadata. Share it as `Arc<Image>`; a clone copies maps of references, not topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The position in the metadata log of the last command that was applied; 0 before the first.
    pub version: u64,
    /// The cluster that this describes.
    pub cluster_id: ClusterId,
    /// Every registered broker.
    pub brokers: BTreeMap<BrokerId, Arc<Broker>>,
    pub(super) topics_by_name: BTreeMap<Arc<str>, Arc<Topic>>,
    pub(super) topics_by_id: BTreeMap<TopicId, Arc<Topic>>,
    pub(super) tombstones: BTreeMap<TopicId, Tombstone>,
}

/// A registered broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its id.
    pub id: BrokerId,
    /// The process that registered last.
    pub incarnation: IncarnationId,
    /// The version at which that process registered.
    pub epoch: u64,
    /// The native listener that any core answers.
    pub any_core: Endpoint,
    /// The native listener of each core, in core order.
    pub cores: Vec<Endpoint>,
    /// How many partitions each core takes at most.
    pub partitions_per_core_max: u32,
}

impl Broker {
    /// The core of this broker that owns `partition`.
    pub fn core_of(&self, partition: &Partition) -> CoreId {
        // The number of cores is bounded by CORES_MAX, so the remainder fits.
        CoreId((partition.shard_key as usize % self.cores.len()) as u16)
    }
}

/// A topic and its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its id, which its folders are named by.
    pub id: TopicId,
    /// Its name.
    pub name: Arc<str>,
    /// The proposer's clock when it was created.
    pub created_at: TimestampMs,
    /// The settings as they were given, sorted by key.
    pub configs: Vec<(String, String)>,
    /// The same settings, understood.
    pub config: TopicConfig,
    /// Its partitions; the index in this list is the partition index.
    pub partitions: Vec<Partition>,
}

/// Where one partition lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Who leads it.
    pub leader: BrokerId,
    /// Rises each time leadership is granted anew.
    pub leader_epoch: LeaderEpoch,
    /// Its core on every replica is this number modulo that broker's number of cores.
    pub shard_key: u32,
    /// Who holds a copy; the first is the preferred leader.
    pub replicas: Vec<BrokerId>,
    /// Which of them are in sync.
    pub isr: Vec<BrokerId>,
}

/// A deleted topic: the permission to delete its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The name it had.
    pub name: Arc<str>,
    /// How many partitions it had.
    pub partitions: i32,
    /// The version at which it was deleted.
    pub version: u64,
}

impl Image {
    pub(super) fn empty(cluster_id: ClusterId) -> Self {
        Self {
            version: 0,
            cluster_id,
            brokers: BTreeMap::new(),
            topics_by_name: BTreeMap::new(),
            topics_by_id: BTreeMap::new(),
            tombstones: BTreeMap::new(),
        }
    }

    /// The topic of that name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics_by_name.get(name)
    }

    /// The topic of that id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics_by_id.get(&id)
    }

    /// Every topic, by name.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &Arc<Topic>> {
        self.topics_by_name.values()
    }

    /// One partition.
    pub fn partition(&self, partition: TopicPartition) -> Option<&Partition> {
        let index = usize::try_from(partition.partition.0).ok()?;
        self.topic_by_id(partition.topic)?.partitions.get(index)
    }

    /// The tombstone of a deleted topic. A folder may be deleted only if there is one: a topic that is merely unknown
    /// may be known to a newer image.
    pub fn tombstone(&self, id: TopicId) -> Option<&Tombstone> {
        self.tombstones.get(&id)
    }

    /// The topics of an earlier image that are gone, also those whose names others bear now.
    pub fn gone_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = &'a Arc<Topic>> {
        let is_gone = |topic: &&Arc<Topic>| self.topic_by_id(topic.id).is_none();
        earlier.topics().filter(is_gone)
    }

    /// Of names that were written down at some time, those that then meant topics that are gone; with the time since which
    /// another one bears the name, if one does.
    ///
    /// That time is the proposer's clock. It decides only about names that a tombstone bears too: a clock that was set back
    /// does no harm to the others.
    pub fn orphaned(
        &self,
        names: impl IntoIterator<Item = Arc<str>>,
    ) -> Vec<(Arc<str>, Option<TimestampMs>)> {
        let tombstones = self.tombstones.values();
        let deleted: BTreeSet<_> = tombstones.map(|tombstone| &*tombstone.name).collect();
        let orphaned = names
            .into_iter()
            .filter_map(|name| match self.topic(&name) {
                None => Some((name, None)),
                Some(topic) => deleted
                    .contains(&*name)
                    .then(|| (name, Some(topic.created_at))),
            });
        orphaned.collect()
    }

    /// Whether groups may commit for a partition that somebody knows from the image of version `known_in`.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION` if it is gone; `COORDINATOR_LOAD_IN_PROGRESS` if it may be too new for this image.
    pub fn admits_commits(
        &self,
        topic: &str,
        partition: i32,
        known_in: u64,
    ) -> Result<(), ErrorCode> {
        let index = usize::try_from(partition).ok();
        let topic = self.topic(topic);
        let is_there = topic
            .zip(index)
            .is_some_and(|(topic, index)| index < topic.partitions.len());
        if known_in > self.version {
            // Even if the name is known: another topic may bear it there.
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
        match is_there {
            true => Ok(()),
            false => Err(ErrorCode::UnknownTopicOrPartition),
        }
    }

    /// Every partition that `broker` leads, with its topic, in the order of topic ids.
    pub fn led_by(
        &self,
        broker: BrokerId,
    ) -> impl Iterator<Item = (&Arc<Topic>, PartitionIndex, &Partition)> {
        self.topics_by_id.values().flat_map(move |topic| {
            (0..)
                .zip(&topic.partitions)
                .filter(move |(_, partition)| partition.leader == broker)
                .map(move |(index, partition)| (topic, PartitionIndex(index), partition))
        })
    }

    pub(super) fn insert_topic(&mut self, topic: Arc<Topic>) {
        self.topics_by_name
            .insert(topic.name.clone(), topic.clone());
        self.topics_by_id.insert(topic.id, topic);
    }
}
