// Made from schema/kafka/messages/metadata.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: Metadata, versions 0-12.
///
/// Names the brokers, topics and partitions, and creates topics that are asked for.
///
/// All topics: an empty array in version 0, null from 1 on. 4: whether topics may be created; before, they are.
/// 7: leader epochs. 8: operations that the client may do. 10: topic ids. 12: topics may be asked for by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRequest {
    /// The topics; null for all. Null: versions 1+.
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// Whether a topic that isn't there may be created. Versions 4+. Default: true.
    pub allow_auto_topic_creation: bool,
    /// Whether to name the operations allowed on the cluster. Versions 8-10.
    pub include_cluster_authorized_operations: bool,
    /// Whether to name the operations allowed on topics. Versions 8+.
    pub include_topic_authorized_operations: bool,
}

impl Default for MetadataRequest {
    fn default() -> Self {
        Self {
            topics: Some(Vec::new()),
            allow_auto_topic_creation: true,
            include_cluster_authorized_operations: false,
            include_topic_authorized_operations: false,
        }
    }
}

impl Value for MetadataRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Option<Vec<MetadataRequestTopic>>>::bytes_min(form);
        if version >= 4 {
            bytes += <bool>::bytes_min(form);
        }
        if (8..=10).contains(&version) {
            bytes += <bool>::bytes_min(form);
        }
        if version >= 8 {
            bytes += <bool>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            topics: if version >= 1 { from.field("topics")? } else { Some(from.field("topics")?) },
            allow_auto_topic_creation: if version >= 4 { from.field("allow_auto_topic_creation")? } else { true },
            include_cluster_authorized_operations: if (8..=10).contains(&version) { from.field("include_cluster_authorized_operations")? } else { false },
            include_topic_authorized_operations: if version >= 8 { from.field("include_topic_authorized_operations")? } else { false },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.nullable("topics", &self.topics, version >= 1)?;
        if version >= 4 {
            to.field("allow_auto_topic_creation", &self.allow_auto_topic_creation)?;
        }
        if (8..=10).contains(&version) {
            to.field("include_cluster_authorized_operations", &self.include_cluster_authorized_operations)?;
        }
        if version >= 8 {
            to.field("include_topic_authorized_operations", &self.include_topic_authorized_operations)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`MetadataRequest::topics`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRequestTopic {
    /// Its id, or zero. Versions 10+.
    pub topic_id: TopicId,
    /// Its name; null where it is asked for by id. Null: versions 10+.
    pub name: Option<Str>,
}

impl Default for MetadataRequestTopic {
    fn default() -> Self {
        Self {
            topic_id: TopicId::default(),
            name: Some(Str::default()),
        }
    }
}

impl Value for MetadataRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 10 {
            bytes += <TopicId>::bytes_min(form);
        }
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            topic_id: if version >= 10 { from.field("topic_id")? } else { TopicId::default() },
            name: if version >= 10 { from.field("name")? } else { Some(from.field("name")?) },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 10 {
            to.field("topic_id", &self.topic_id)?;
        }
        to.nullable("name", &self.name, version >= 10)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for MetadataRequest {
    const API: ApiKey = ApiKey::Metadata;
}

/// Response: Metadata, versions 0-12.
///
/// Names the brokers, topics and partitions, and creates topics that are asked for.
///
/// All topics: an empty array in version 0, null from 1 on. 4: whether topics may be created; before, they are.
/// 7: leader epochs. 8: operations that the client may do. 10: topic ids. 12: topics may be asked for by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponse {
    /// How long the client was held back for its quota. Versions 3+.
    pub throttle_time_ms: i32,
    /// The brokers that are there.
    pub brokers: Vec<MetadataResponseBroker>,
    /// The cluster. Versions 2+. Default: null.
    pub cluster_id: Option<Str>,
    /// The broker that takes changes of topics. Versions 1+. Default: -1.
    pub controller_id: i32,
    /// The topics.
    pub topics: Vec<MetadataResponseTopic>,
    /// A bit for each operation; the default: not asked for. Versions 8-10. Default: -2147483648.
    pub cluster_authorized_operations: i32,
}

impl Default for MetadataResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            brokers: Vec::new(),
            cluster_id: None,
            controller_id: -1,
            topics: Vec::new(),
            cluster_authorized_operations: -2147483648,
        }
    }
}

impl Value for MetadataResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 3 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<MetadataResponseBroker>>::bytes_min(form);
        if version >= 2 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<MetadataResponseTopic>>::bytes_min(form);
        if (8..=10).contains(&version) {
            bytes += <i32>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 3 { from.field("throttle_time_ms")? } else { 0 },
            brokers: from.field("brokers")?,
            cluster_id: if version >= 2 { from.field("cluster_id")? } else { None },
            controller_id: if version >= 1 { from.field("controller_id")? } else { -1 },
            topics: from.field("topics")?,
            cluster_authorized_operations: if (8..=10).contains(&version) { from.field("cluster_authorized_operations")? } else { -2147483648 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 3 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        to.field("brokers", &self.brokers)?;
        if version >= 2 {
            to.field("cluster_id", &self.cluster_id)?;
        }
        if version >= 1 {
            to.field("controller_id", &self.controller_id)?;
        }
        to.field("topics", &self.topics)?;
        if (8..=10).contains(&version) {
            to.field("cluster_authorized_operations", &self.cluster_authorized_operations)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`MetadataResponse::brokers`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataResponseBroker {
    /// Its id.
    pub node_id: i32,
    /// Its host.
    pub host: Str,
    /// Its port.
    pub port: i32,
    /// Its rack. Versions 1+. Default: null.
    pub rack: Option<Str>,
}

impl Value for MetadataResponseBroker {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        if version >= 1 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            node_id: from.field("node_id")?,
            host: from.field("host")?,
            port: from.field("port")?,
            rack: if version >= 1 { from.field("rack")? } else { None },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("node_id", &self.node_id)?;
        to.field("host", &self.host)?;
        to.field("port", &self.port)?;
        if version >= 1 {
            to.field("rack", &self.rack)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`MetadataResponse::topics`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponseTopic {
    /// Whether it can be used.
    pub error_code: i16,
    /// Its name; null if it is unknown. Null: versions 12+.
    pub name: Option<Str>,
    /// Its id. Versions 10+.
    pub topic_id: TopicId,
    /// Whether the broker keeps it for itself. Versions 1+.
    pub is_internal: bool,
    /// The partitions.
    pub partitions: Vec<MetadataResponsePartition>,
    /// A bit for each operation; the default: not asked for. Versions 8+. Default: -2147483648.
    pub topic_authorized_operations: i32,
}

impl Default for MetadataResponseTopic {
    fn default() -> Self {
        Self {
            error_code: 0,
            name: Some(Str::default()),
            topic_id: TopicId::default(),
            is_internal: false,
            partitions: Vec::new(),
            topic_authorized_operations: -2147483648,
        }
    }
}

impl Value for MetadataResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        if version >= 10 {
            bytes += <TopicId>::bytes_min(form);
        }
        if version >= 1 {
            bytes += <bool>::bytes_min(form);
        }
        bytes += <Vec<MetadataResponsePartition>>::bytes_min(form);
        if version >= 8 {
            bytes += <i32>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            error_code: from.field("error_code")?,
            name: if version >= 12 { from.field("name")? } else { Some(from.field("name")?) },
            topic_id: if version >= 10 { from.field("topic_id")? } else { TopicId::default() },
            is_internal: if version >= 1 { from.field("is_internal")? } else { false },
            partitions: from.field("partitions")?,
            topic_authorized_operations: if version >= 8 { from.field("topic_authorized_operations")? } else { -2147483648 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("error_code", &self.error_code)?;
        to.nullable("name", &self.name, version >= 12)?;
        if version >= 10 {
            to.field("topic_id", &self.topic_id)?;
        }
        if version >= 1 {
            to.field("is_internal", &self.is_internal)?;
        }
        to.field("partitions", &self.partitions)?;
        if version >= 8 {
            to.field("topic_authorized_operations", &self.topic_authorized_operations)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`MetadataResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataResponsePartition {
    /// Whether it can be used.
    pub error_code: i16,
    /// Its index.
    pub partition_index: i32,
    /// The leader; -1 for none.
    pub leader_id: i32,
    /// The leader's epoch. Versions 7+. Default: -1.
    pub leader_epoch: i32,
    /// The brokers that have a replica.
    pub replica_nodes: Vec<i32>,
    /// Those that are in sync.
    pub isr_nodes: Vec<i32>,
    /// Those that are not there. Versions 5+.
    pub offline_replicas: Vec<i32>,
}

impl Default for MetadataResponsePartition {
    fn default() -> Self {
        Self {
            error_code: 0,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            offline_replicas: Vec::new(),
        }
    }
}

impl Value for MetadataResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        if version >= 7 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<i32>>::bytes_min(form);
        bytes += <Vec<i32>>::bytes_min(form);
        if version >= 5 {
            bytes += <Vec<i32>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            error_code: from.field("error_code")?,
            partition_index: from.field("partition_index")?,
            leader_id: from.field("leader_id")?,
            leader_epoch: if version >= 7 { from.field("leader_epoch")? } else { -1 },
            replica_nodes: from.field("replica_nodes")?,
            isr_nodes: from.field("isr_nodes")?,
            offline_replicas: if version >= 5 { from.field("offline_replicas")? } else { Vec::new() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("error_code", &self.error_code)?;
        to.field("partition_index", &self.partition_index)?;
        to.field("leader_id", &self.leader_id)?;
        if version >= 7 {
            to.field("leader_epoch", &self.leader_epoch)?;
        }
        to.field("replica_nodes", &self.replica_nodes)?;
        to.field("isr_nodes", &self.isr_nodes)?;
        if version >= 5 {
            to.field("offline_replicas", &self.offline_replicas)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for MetadataResponse {
    const API: ApiKey = ApiKey::Metadata;
}

impl Request for MetadataRequest {
    type Response = MetadataResponse;
}

impl Response for MetadataResponse {}
