// Made from schema/kafka/messages/fetch.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: Fetch, versions 4-17.
///
/// Reads record batches of any number of partitions, and waits for them.
///
/// The first batch comes whole however small the bounds are (KIP-74). 7: sessions (KIP-227). 9: leader epochs (KIP-320).
/// 10: batches may be compressed with zstd (KIP-110). 11: a replica nearby may be named (KIP-392). 12: diverging epochs
/// (KIP-595). 13: topics by id instead of name (KIP-516). 15: the state of a replica. 16: leaders and where they are
/// (KIP-951). 17: directories of replicas.
/// Records in an answer are never null, but may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// The cluster, if it is known. Versions 12+. Tag 0. Default: null.
    pub cluster_id: Option<Str>,
    /// The follower that asks; -1 for a consumer. Versions 0-14. Default: -1.
    pub replica_id: i32,
    /// The follower that asks. Versions 15+. Tag 1.
    pub replica_state: FetchRequestReplicaState,
    /// How long to wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// The fewest bytes to answer with before the wait is over.
    pub min_bytes: i32,
    /// The most bytes to answer with. Default: 0x7fffffff.
    pub max_bytes: i32,
    /// 0: up to the high watermark; 1: up to the last stable offset.
    pub isolation_level: i8,
    /// The session; 0 for none. Versions 7+.
    pub session_id: i32,
    /// The request's place in it; 0 begins one, -1 has none. Versions 7+. Default: -1.
    pub session_epoch: i32,
    /// The topics.
    pub topics: Vec<FetchRequestTopic>,
    /// What leaves the session. Versions 7+.
    pub forgotten_topics_data: Vec<FetchRequestForgottenTopic>,
    /// The rack of the consumer. Versions 11+.
    pub rack_id: Str,
}

impl Default for FetchRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: -1,
            replica_state: FetchRequestReplicaState::default(),
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: 0x7fffffff,
            isolation_level: 0,
            session_id: 0,
            session_epoch: -1,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
            rack_id: Str::default(),
        }
    }
}

impl Value for FetchRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version <= 14 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        if version >= 7 {
            bytes += <i32>::bytes_min(form);
        }
        if version >= 7 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<FetchRequestTopic>>::bytes_min(form);
        if version >= 7 {
            bytes += <Vec<FetchRequestForgottenTopic>>::bytes_min(form);
        }
        if version >= 11 {
            bytes += <Str>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            cluster_id: None,
            replica_id: if version <= 14 { from.field("replica_id")? } else { -1 },
            replica_state: FetchRequestReplicaState::default(),
            max_wait_ms: from.field("max_wait_ms")?,
            min_bytes: from.field("min_bytes")?,
            max_bytes: from.field("max_bytes")?,
            isolation_level: from.field("isolation_level")?,
            session_id: if version >= 7 { from.field("session_id")? } else { 0 },
            session_epoch: if version >= 7 { from.field("session_epoch")? } else { -1 },
            topics: from.field("topics")?,
            forgotten_topics_data: if version >= 7 { from.field("forgotten_topics_data")? } else { Vec::new() },
            rack_id: if version >= 11 { from.field("rack_id")? } else { Str::default() },
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 12 => read.cluster_id = from.field("cluster_id")?,
                1 if version >= 15 => read.replica_state = from.field("replica_state")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version <= 14 {
            to.field("replica_id", &self.replica_id)?;
        }
        to.field("max_wait_ms", &self.max_wait_ms)?;
        to.field("min_bytes", &self.min_bytes)?;
        to.field("max_bytes", &self.max_bytes)?;
        to.field("isolation_level", &self.isolation_level)?;
        if version >= 7 {
            to.field("session_id", &self.session_id)?;
        }
        if version >= 7 {
            to.field("session_epoch", &self.session_epoch)?;
        }
        to.field("topics", &self.topics)?;
        if version >= 7 {
            to.field("forgotten_topics_data", &self.forgotten_topics_data)?;
        }
        if version >= 11 {
            to.field("rack_id", &self.rack_id)?;
        }
        let has_cluster_id = version >= 12 && self.cluster_id.is_some();
        let has_replica_state = version >= 15 && self.replica_state != FetchRequestReplicaState::default();
        to.tag_count(&[has_cluster_id, has_replica_state]);
        if has_cluster_id {
            to.tagged(0, "cluster_id", &self.cluster_id)?;
        }
        if has_replica_state {
            to.tagged(1, "replica_state", &self.replica_state)?;
        }
        Ok(())
    }
}

/// What [`FetchRequest::replica_state`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequestReplicaState {
    /// Its broker; -1 for a consumer. Default: -1.
    pub replica_id: i32,
    /// Its epoch. Default: -1.
    pub replica_epoch: i64,
}

impl Default for FetchRequestReplicaState {
    fn default() -> Self {
        Self {
            replica_id: -1,
            replica_epoch: -1,
        }
    }
}

impl Value for FetchRequestReplicaState {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            replica_id: from.field("replica_id")?,
            replica_epoch: from.field("replica_epoch")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("replica_id", &self.replica_id)?;
        to.field("replica_epoch", &self.replica_epoch)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`FetchRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchRequestTopic {
    /// Its name. Versions 0-12.
    pub topic: Str,
    /// Its id. Versions 13+.
    pub topic_id: TopicId,
    /// The partitions.
    pub partitions: Vec<FetchRequestPartition>,
}

impl Value for FetchRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version <= 12 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 13 {
            bytes += <TopicId>::bytes_min(form);
        }
        bytes += <Vec<FetchRequestPartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            topic: if version <= 12 { from.field("topic")? } else { Str::default() },
            topic_id: if version >= 13 { from.field("topic_id")? } else { TopicId::default() },
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version <= 12 {
            to.field("topic", &self.topic)?;
        }
        if version >= 13 {
            to.field("topic_id", &self.topic_id)?;
        }
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`FetchRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequestPartition {
    /// Its index.
    pub partition: i32,
    /// The leader's epoch as the client knows it. Versions 9+. Default: -1.
    pub current_leader_epoch: i32,
    /// The first offset to read.
    pub fetch_offset: i64,
    /// The epoch of the record before it. Versions 12+. Default: -1.
    pub last_fetched_epoch: i32,
    /// The follower's first offset. Versions 5+. Default: -1.
    pub log_start_offset: i64,
    /// The most bytes of this partition.
    pub partition_max_bytes: i32,
    /// The follower's directory. Versions 17+. Tag 0.
    pub replica_directory_id: TopicId,
}

impl Default for FetchRequestPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            fetch_offset: 0,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 0,
            replica_directory_id: TopicId::default(),
        }
    }
}

impl Value for FetchRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        if version >= 9 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i64>::bytes_min(form);
        if version >= 12 {
            bytes += <i32>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <i64>::bytes_min(form);
        }
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            partition: from.field("partition")?,
            current_leader_epoch: if version >= 9 { from.field("current_leader_epoch")? } else { -1 },
            fetch_offset: from.field("fetch_offset")?,
            last_fetched_epoch: if version >= 12 { from.field("last_fetched_epoch")? } else { -1 },
            log_start_offset: if version >= 5 { from.field("log_start_offset")? } else { -1 },
            partition_max_bytes: from.field("partition_max_bytes")?,
            replica_directory_id: TopicId::default(),
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 17 => read.replica_directory_id = from.field("replica_directory_id")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("partition", &self.partition)?;
        if version >= 9 {
            to.field("current_leader_epoch", &self.current_leader_epoch)?;
        }
        to.field("fetch_offset", &self.fetch_offset)?;
        if version >= 12 {
            to.field("last_fetched_epoch", &self.last_fetched_epoch)?;
        }
        if version >= 5 {
            to.field("log_start_offset", &self.log_start_offset)?;
        }
        to.field("partition_max_bytes", &self.partition_max_bytes)?;
        let has_replica_directory_id = version >= 17 && self.replica_directory_id != TopicId::default();
        to.tag_count(&[has_replica_directory_id]);
        if has_replica_directory_id {
            to.tagged(0, "replica_directory_id", &self.replica_directory_id)?;
        }
        Ok(())
    }
}

/// One of [`FetchRequest::forgotten_topics_data`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchRequestForgottenTopic {
    /// Its name. Versions 0-12.
    pub topic: Str,
    /// Its id. Versions 13+.
    pub topic_id: TopicId,
    /// The partitions.
    pub partitions: Vec<i32>,
}

impl Value for FetchRequestForgottenTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version <= 12 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 13 {
            bytes += <TopicId>::bytes_min(form);
        }
        bytes += <Vec<i32>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            topic: if version <= 12 { from.field("topic")? } else { Str::default() },
            topic_id: if version >= 13 { from.field("topic_id")? } else { TopicId::default() },
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version <= 12 {
            to.field("topic", &self.topic)?;
        }
        if version >= 13 {
            to.field("topic_id", &self.topic_id)?;
        }
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for FetchRequest {
    const API: ApiKey = ApiKey::Fetch;
}

/// Response: Fetch, versions 4-17.
///
/// Reads record batches of any number of partitions, and waits for them.
///
/// The first batch comes whole however small the bounds are (KIP-74). 7: sessions (KIP-227). 9: leader epochs (KIP-320).
/// 10: batches may be compressed with zstd (KIP-110). 11: a replica nearby may be named (KIP-392). 12: diverging epochs
/// (KIP-595). 13: topics by id instead of name (KIP-516). 15: the state of a replica. 16: leaders and where they are
/// (KIP-951). 17: directories of replicas.
/// Records in an answer are never null, but may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// A fault of the whole request. Versions 7+.
    pub error_code: i16,
    /// The session; 0 for none. Versions 7+.
    pub session_id: i32,
    /// The topics.
    pub responses: Vec<FetchResponseTopic>,
    /// Where the leaders are that were named. Versions 16+. Tag 0.
    pub node_endpoints: Vec<FetchResponseNodeEndpoint>,
}

impl Value for FetchResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        if version >= 7 {
            bytes += <i16>::bytes_min(form);
        }
        if version >= 7 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<FetchResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            error_code: if version >= 7 { from.field("error_code")? } else { 0 },
            session_id: if version >= 7 { from.field("session_id")? } else { 0 },
            responses: from.field("responses")?,
            node_endpoints: Vec::new(),
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 16 => read.node_endpoints = from.field("node_endpoints")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        if version >= 7 {
            to.field("error_code", &self.error_code)?;
        }
        if version >= 7 {
            to.field("session_id", &self.session_id)?;
        }
        to.field("responses", &self.responses)?;
        let has_node_endpoints = version >= 16 && !self.node_endpoints.is_empty();
        to.tag_count(&[has_node_endpoints]);
        if has_node_endpoints {
            to.tagged(0, "node_endpoints", &self.node_endpoints)?;
        }
        Ok(())
    }
}

/// One of [`FetchResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponseTopic {
    /// Its name. Versions 0-12.
    pub topic: Str,
    /// Its id. Versions 13+.
    pub topic_id: TopicId,
    /// The partitions.
    pub partitions: Vec<FetchResponsePartition>,
}

impl Value for FetchResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version <= 12 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 13 {
            bytes += <TopicId>::bytes_min(form);
        }
        bytes += <Vec<FetchResponsePartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            topic: if version <= 12 { from.field("topic")? } else { Str::default() },
            topic_id: if version >= 13 { from.field("topic_id")? } else { TopicId::default() },
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version <= 12 {
            to.field("topic", &self.topic)?;
        }
        if version >= 13 {
            to.field("topic_id", &self.topic_id)?;
        }
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`FetchResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponsePartition {
    /// Its index.
    pub partition_index: i32,
    /// Whether it could be read.
    pub error_code: i16,
    /// The end of what is replicated.
    pub high_watermark: i64,
    /// The end of what no open transaction holds back. Default: -1.
    pub last_stable_offset: i64,
    /// The first offset that the log has. Versions 5+. Default: -1.
    pub log_start_offset: i64,
    /// Where the follower's log parts from the leader's. Versions 12+. Tag 0.
    pub diverging_epoch: FetchResponseDivergingEpoch,
    /// The leader, when it is another. Versions 12+. Tag 1.
    pub current_leader: FetchResponseCurrentLeader,
    /// The snapshot to fetch instead. Versions 12+. Tag 2.
    pub snapshot_id: FetchResponseSnapshotId,
    /// Aborted transactions in the records, by first offset.
    pub aborted_transactions: Option<Vec<FetchResponseAbortedTransaction>>,
    /// The replica to read from instead; then there are no records. Versions 11+. Default: -1.
    pub preferred_read_replica: i32,
    /// The record batches.
    pub records: Option<Records>,
}

impl Default for FetchResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: 0,
            high_watermark: 0,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: FetchResponseDivergingEpoch::default(),
            current_leader: FetchResponseCurrentLeader::default(),
            snapshot_id: FetchResponseSnapshotId::default(),
            aborted_transactions: Some(Vec::new()),
            preferred_read_replica: -1,
            records: Some(Records::default()),
        }
    }
}

impl Value for FetchResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        if version >= 5 {
            bytes += <i64>::bytes_min(form);
        }
        bytes += <Option<Vec<FetchResponseAbortedTransaction>>>::bytes_min(form);
        if version >= 11 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Option<Records>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            partition_index: from.field("partition_index")?,
            error_code: from.field("error_code")?,
            high_watermark: from.field("high_watermark")?,
            last_stable_offset: from.field("last_stable_offset")?,
            log_start_offset: if version >= 5 { from.field("log_start_offset")? } else { -1 },
            diverging_epoch: FetchResponseDivergingEpoch::default(),
            current_leader: FetchResponseCurrentLeader::default(),
            snapshot_id: FetchResponseSnapshotId::default(),
            aborted_transactions: from.field("aborted_transactions")?,
            preferred_read_replica: if version >= 11 { from.field("preferred_read_replica")? } else { -1 },
            records: from.field("records")?,
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 12 => read.diverging_epoch = from.field("diverging_epoch")?,
                1 if version >= 12 => read.current_leader = from.field("current_leader")?,
                2 if version >= 12 => read.snapshot_id = from.field("snapshot_id")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("partition_index", &self.partition_index)?;
        to.field("error_code", &self.error_code)?;
        to.field("high_watermark", &self.high_watermark)?;
        to.field("last_stable_offset", &self.last_stable_offset)?;
        if version >= 5 {
            to.field("log_start_offset", &self.log_start_offset)?;
        }
        to.field("aborted_transactions", &self.aborted_transactions)?;
        if version >= 11 {
            to.field("preferred_read_replica", &self.preferred_read_replica)?;
        }
        to.field("records", &self.records)?;
        let has_diverging_epoch = version >= 12 && self.diverging_epoch != FetchResponseDivergingEpoch::default();
        let has_current_leader = version >= 12 && self.current_leader != FetchResponseCurrentLeader::default();
        let has_snapshot_id = version >= 12 && self.snapshot_id != FetchResponseSnapshotId::default();
        to.tag_count(&[has_diverging_epoch, has_current_leader, has_snapshot_id]);
        if has_diverging_epoch {
            to.tagged(0, "diverging_epoch", &self.diverging_epoch)?;
        }
        if has_current_leader {
            to.tagged(1, "current_leader", &self.current_leader)?;
        }
        if has_snapshot_id {
            to.tagged(2, "snapshot_id", &self.snapshot_id)?;
        }
        Ok(())
    }
}

/// What [`FetchResponsePartition::diverging_epoch`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponseDivergingEpoch {
    /// The largest epoch that both have. Default: -1.
    pub epoch: i32,
    /// Its end. Default: -1.
    pub end_offset: i64,
}

impl Default for FetchResponseDivergingEpoch {
    fn default() -> Self {
        Self {
            epoch: -1,
            end_offset: -1,
        }
    }
}

impl Value for FetchResponseDivergingEpoch {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            epoch: from.field("epoch")?,
            end_offset: from.field("end_offset")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("epoch", &self.epoch)?;
        to.field("end_offset", &self.end_offset)?;
        to.no_tags();
        Ok(())
    }
}

/// What [`FetchResponsePartition::current_leader`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponseCurrentLeader {
    /// Its broker. Default: -1.
    pub leader_id: i32,
    /// Its epoch. Default: -1.
    pub leader_epoch: i32,
}

impl Default for FetchResponseCurrentLeader {
    fn default() -> Self {
        Self {
            leader_id: -1,
            leader_epoch: -1,
        }
    }
}

impl Value for FetchResponseCurrentLeader {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            leader_id: from.field("leader_id")?,
            leader_epoch: from.field("leader_epoch")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("leader_id", &self.leader_id)?;
        to.field("leader_epoch", &self.leader_epoch)?;
        to.no_tags();
        Ok(())
    }
}

/// What [`FetchResponsePartition::snapshot_id`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchResponseSnapshotId {
    /// Its end. Default: -1.
    pub end_offset: i64,
    /// Its epoch. Default: -1.
    pub epoch: i32,
}

impl Default for FetchResponseSnapshotId {
    fn default() -> Self {
        Self {
            end_offset: -1,
            epoch: -1,
        }
    }
}

impl Value for FetchResponseSnapshotId {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i64>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            end_offset: from.field("end_offset")?,
            epoch: from.field("epoch")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("end_offset", &self.end_offset)?;
        to.field("epoch", &self.epoch)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`FetchResponsePartition::aborted_transactions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponseAbortedTransaction {
    /// The producer.
    pub producer_id: i64,
    /// The first offset of the transaction.
    pub first_offset: i64,
}

impl Value for FetchResponseAbortedTransaction {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i64>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            producer_id: from.field("producer_id")?,
            first_offset: from.field("first_offset")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("producer_id", &self.producer_id)?;
        to.field("first_offset", &self.first_offset)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`FetchResponse::node_endpoints`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponseNodeEndpoint {
    /// The broker.
    pub node_id: i32,
    /// Its host.
    pub host: Str,
    /// Its port.
    pub port: i32,
    /// Its rack. Default: null.
    pub rack: Option<Str>,
}

impl Value for FetchResponseNodeEndpoint {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            node_id: from.field("node_id")?,
            host: from.field("host")?,
            port: from.field("port")?,
            rack: from.field("rack")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("node_id", &self.node_id)?;
        to.field("host", &self.host)?;
        to.field("port", &self.port)?;
        to.field("rack", &self.rack)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for FetchResponse {
    const API: ApiKey = ApiKey::Fetch;
}

impl Request for FetchRequest {
    type Response = FetchResponse;
}

impl Response for FetchResponse {}
