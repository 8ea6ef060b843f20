//! What administration asks and answers: topics, their settings, their partitions, the brokers.

use std::sync::Arc;

use tackboard_schema::{
    Acks, BrokerId, CoreId, Durability, ErrorCode, LeaderEpoch, Offset, PartitionIndex,
    TimestampMs, TopicId,
};

use crate::protocol::group::NamedPartition;

/// A topic to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name: 1 to 249 of `a-z A-Z 0-9 . _ -`.
    pub name: String,
    /// How many partitions. Absent: the broker's default.
    pub partitions: Option<i32>,
    /// How many replicas each partition has. Absent: the broker's default.
    pub replication_factor: Option<i16>,
    /// Topic settings by key, e.g. `retention.ms` and `604800000`.
    pub configs: Vec<(String, String)>,
}

impl NewTopic {
    /// A topic with the broker's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The same topic with this many partitions.
    #[must_use]
    pub fn partitions(mut self, partitions: i32) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// The same topic with this many replicas of each partition.
    #[must_use]
    pub fn replication_factor(mut self, replication_factor: i16) -> Self {
        self.replication_factor = Some(replication_factor);
        self
    }

    /// The same topic with one more setting.
    #[must_use]
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((key.into(), value.into()));
        self
    }
}

/// A consumer group, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSummary {
    /// Its name.
    pub group: Arc<str>,
    /// `consumer`, or empty for one that never had members.
    pub protocol_type: Arc<str>,
    /// `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
    pub state: Arc<str>,
}

/// A consumer group with its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name.
    pub group: Arc<str>,
    /// As in [`GroupSummary`].
    pub state: Arc<str>,
    /// Rises with each rebalance; -1: none yet.
    pub generation: i32,
    /// As in [`GroupSummary`].
    pub protocol_type: Arc<str>,
    /// The assignor that the members agreed on; empty outside of a stable generation.
    pub protocol: Arc<str>,
    /// Its members, in the order of their clients' names.
    pub members: Vec<GroupMember>,
}

/// A member of a group. Topics and assignment are told of a stable group of consumers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Given by the coordinator.
    pub member_id: Arc<str>,
    /// Name of a static member.
    pub instance: Option<Arc<str>>,
    /// As the client calls itself.
    pub client_id: Arc<str>,
    /// The address that it came from.
    pub client_host: Arc<str>,
    /// What it wants to read.
    pub topics: Vec<Arc<str>>,
    /// What it reads.
    pub assignment: Vec<NamedPartition>,
}

/// A topic that was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its id, drawn by the broker.
    pub topic_id: TopicId,
    /// How many partitions it has.
    pub partitions: i32,
    /// How many replicas each has.
    pub replication_factor: i16,
}

/// What a broker tells of the cluster: its brokers and topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterDescription {
    /// Every broker.
    pub brokers: Vec<BrokerDescription>,
    /// The topics that were asked for, in the order of their names.
    pub topics: Vec<TopicSummary>,
}

/// One broker and where its cores listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerDescription {
    /// Its number.
    pub broker_id: BrokerId,
    /// `host:port` of the listener that any core serves.
    pub address: Arc<str>,
    /// `host:port` of each core's own listener, by core; absent where a core has none.
    pub core_addresses: Vec<Option<Arc<str>>>,
}

/// One topic as metadata has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSummary {
    /// Its name.
    pub name: Arc<str>,
    /// `None` when all is well.
    pub error: Option<ErrorCode>,
    /// Its id.
    pub topic_id: TopicId,
    /// The acks of a produce request that names none.
    pub acks: Acks,
    /// Its durability.
    pub durability: Durability,
    /// Its partitions, by index.
    pub partitions: Vec<PartitionSummary>,
}

impl TopicSummary {
    /// Whether fewer replicas are in sync than a count of acks asks for: how many are, in the partition with the fewest. A
    /// producer would wait for more of them until it gives up.
    pub fn too_few_replicas(&self, acks: Option<Acks>) -> Option<usize> {
        let Some(Acks::Count(acks)) = acks else {
            return None;
        };
        let in_sync = self
            .partitions
            .iter()
            .map(|partition| partition.in_sync_replicas.len());
        in_sync
            .min()
            .filter(|fewest| i64::from(acks) > *fewest as i64)
    }
}

/// One partition as metadata has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSummary {
    /// Its index.
    pub partition: PartitionIndex,
    /// `None` when all is well.
    pub error: Option<ErrorCode>,
    /// The broker that leads it; absent when there is none.
    pub leader: Option<BrokerId>,
    /// Counts its leaders.
    pub leader_epoch: LeaderEpoch,
    /// The core of the leader that owns it.
    pub core: CoreId,
    /// All its replicas.
    pub replicas: Vec<BrokerId>,
    /// Those in sync.
    pub in_sync_replicas: Vec<BrokerId>,
}

/// One topic in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    /// Its name.
    pub name: Arc<str>,
    /// Its id.
    pub topic_id: TopicId,
    /// How many replicas each partition has.
    pub replication_factor: i16,
    /// Every topic setting in effect.
    pub configs: Vec<TopicSetting>,
    /// Its partitions, by index.
    pub partitions: Vec<PartitionDescription>,
}

/// One setting in effect for a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSetting {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Set on the topic itself, rather than inherited from the broker.
    pub from_topic: bool,
}

/// One partition in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Its index.
    pub partition: PartitionIndex,
    /// What is wrong with it, in the broker's words; `None` when all is well.
    pub error: Option<(ErrorCode, String)>,
    /// The broker that leads it; absent when there is none.
    pub leader: Option<BrokerId>,
    /// Counts its leaders.
    pub leader_epoch: LeaderEpoch,
    /// The core of the leader that owns it.
    pub core: CoreId,
    /// The offset of the first record there is.
    pub log_start_offset: Offset,
    /// The end of what consumers may read, exclusive.
    pub high_watermark: Offset,
    /// The end of the log, exclusive.
    pub log_end_offset: Offset,
    /// Its size on disk, in bytes.
    pub size_bytes: u64,
    /// How many segment files it has.
    pub segment_count: u32,
    /// When a record was last appended, by the broker's clock; absent when none ever was.
    pub last_append: Option<TimestampMs>,
}

/// Which offset of a partition is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetQuery {
    /// The first record there is.
    Earliest,
    /// The end of what may be read: the offset of the next record (the high watermark).
    Latest,
    /// The first record whose timestamp is at or after this one.
    At(TimestampMs),
}

impl OffsetQuery {
    /// As both protocols number it.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            // Nothing is older than the epoch; below it lie the two numbers above.
            Self::At(timestamp) => timestamp.0.max(0),
        }
    }
}

/// The answer to an [`OffsetQuery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// The offset; absent when no record is at or after the timestamp.
    pub offset: Option<Offset>,
    /// The timestamp of the record at that offset, where the broker tells it.
    pub timestamp: Option<TimestampMs>,
}
