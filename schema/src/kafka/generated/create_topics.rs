// Made from schema/kafka/messages/create_topics.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: CreateTopics, versions 2-7.
///
/// Creates topics.
///
/// 4: -1 stands for the broker's own number of partitions and replicas. 5: what was created is answered (KIP-525).
/// 7: the topic's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTopicsRequest {
    /// The topics.
    pub topics: Vec<CreateTopicsRequestTopic>,
    /// How long to wait for it. Default: 60000.
    pub timeout_ms: i32,
    /// Whether to check only.
    pub validate_only: bool,
}

impl Default for CreateTopicsRequest {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            timeout_ms: 60000,
            validate_only: false,
        }
    }
}

impl Value for CreateTopicsRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<CreateTopicsRequestTopic>>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            topics: from.field("topics")?,
            timeout_ms: from.field("timeout_ms")?,
            validate_only: from.field("validate_only")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("topics", &self.topics)?;
        to.field("timeout_ms", &self.timeout_ms)?;
        to.field("validate_only", &self.validate_only)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`CreateTopicsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopicsRequestTopic {
    /// Its name.
    pub name: Str,
    /// How many partitions; -1 as the broker does.
    pub num_partitions: i32,
    /// How many replicas; -1 as the broker does.
    pub replication_factor: i16,
    /// Where the replicas go, or empty.
    pub assignments: Vec<CreateTopicsRequestAssignment>,
    /// Its settings.
    pub configs: Vec<CreateTopicsRequestConfig>,
}

impl Value for CreateTopicsRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <Vec<CreateTopicsRequestAssignment>>::bytes_min(form);
        bytes += <Vec<CreateTopicsRequestConfig>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            num_partitions: from.field("num_partitions")?,
            replication_factor: from.field("replication_factor")?,
            assignments: from.field("assignments")?,
            configs: from.field("configs")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("num_partitions", &self.num_partitions)?;
        to.field("replication_factor", &self.replication_factor)?;
        to.field("assignments", &self.assignments)?;
        to.field("configs", &self.configs)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`CreateTopicsRequestTopic::assignments`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopicsRequestAssignment {
    /// The partition.
    pub partition_index: i32,
    /// The brokers.
    pub broker_ids: Vec<i32>,
}

impl Value for CreateTopicsRequestAssignment {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<i32>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition_index: from.field("partition_index")?,
            broker_ids: from.field("broker_ids")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition_index", &self.partition_index)?;
        to.field("broker_ids", &self.broker_ids)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`CreateTopicsRequestTopic::configs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTopicsRequestConfig {
    /// The setting.
    pub name: Str,
    /// Its value.
    pub value: Option<Str>,
}

impl Default for CreateTopicsRequestConfig {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
        }
    }
}

impl Value for CreateTopicsRequestConfig {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            value: from.field("value")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("value", &self.value)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for CreateTopicsRequest {
    const API: ApiKey = ApiKey::CreateTopics;
}

/// Response: CreateTopics, versions 2-7.
///
/// Creates topics.
///
/// 4: -1 stands for the broker's own number of partitions and replicas. 5: what was created is answered (KIP-525).
/// 7: the topic's id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopicsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub topics: Vec<CreateTopicsResponseTopic>,
}

impl Value for CreateTopicsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<CreateTopicsResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`CreateTopicsResponse::topics`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTopicsResponseTopic {
    /// Its name.
    pub name: Str,
    /// Its id. Versions 7+.
    pub topic_id: TopicId,
    /// Whether it was created.
    pub error_code: i16,
    /// What is wrong. Default: null.
    pub error_message: Option<Str>,
    /// Why its settings are not shown. Versions 5+. Tag 0.
    pub topic_config_error_code: i16,
    /// How many partitions it has. Versions 5+. Default: -1.
    pub num_partitions: i32,
    /// How many replicas. Versions 5+. Default: -1.
    pub replication_factor: i16,
    /// Its settings. Versions 5+.
    pub configs: Option<Vec<CreateTopicsResponseConfig>>,
}

impl Default for CreateTopicsResponseTopic {
    fn default() -> Self {
        Self {
            name: Str::default(),
            topic_id: TopicId::default(),
            error_code: 0,
            error_message: None,
            topic_config_error_code: 0,
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
        }
    }
}

impl Value for CreateTopicsResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        if version >= 7 {
            bytes += <TopicId>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        if version >= 5 {
            bytes += <i32>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <i16>::bytes_min(form);
        }
        if version >= 5 {
            bytes += <Option<Vec<CreateTopicsResponseConfig>>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            name: from.field("name")?,
            topic_id: if version >= 7 { from.field("topic_id")? } else { TopicId::default() },
            error_code: from.field("error_code")?,
            error_message: from.field("error_message")?,
            topic_config_error_code: 0,
            num_partitions: if version >= 5 { from.field("num_partitions")? } else { -1 },
            replication_factor: if version >= 5 { from.field("replication_factor")? } else { -1 },
            configs: if version >= 5 { from.field("configs")? } else { Some(Vec::new()) },
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 5 => read.topic_config_error_code = from.field("topic_config_error_code")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("name", &self.name)?;
        if version >= 7 {
            to.field("topic_id", &self.topic_id)?;
        }
        to.field("error_code", &self.error_code)?;
        to.field("error_message", &self.error_message)?;
        if version >= 5 {
            to.field("num_partitions", &self.num_partitions)?;
        }
        if version >= 5 {
            to.field("replication_factor", &self.replication_factor)?;
        }
        if version >= 5 {
            to.field("configs", &self.configs)?;
        }
        let has_topic_config_error_code = version >= 5 && self.topic_config_error_code != 0;
        to.tag_count(&[has_topic_config_error_code]);
        if has_topic_config_error_code {
            to.tagged(0, "topic_config_error_code", &self.topic_config_error_code)?;
        }
        Ok(())
    }
}

/// One of [`CreateTopicsResponseTopic::configs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTopicsResponseConfig {
    /// The setting.
    pub name: Str,
    /// Its value.
    pub value: Option<Str>,
    /// Whether it can't be changed.
    pub read_only: bool,
    /// Where the value comes from. Default: -1.
    pub config_source: i8,
    /// Whether the value is a secret.
    pub is_sensitive: bool,
}

impl Default for CreateTopicsResponseConfig {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
        }
    }
}

impl Value for CreateTopicsResponseConfig {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            value: from.field("value")?,
            read_only: from.field("read_only")?,
            config_source: from.field("config_source")?,
            is_sensitive: from.field("is_sensitive")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("value", &self.value)?;
        to.field("read_only", &self.read_only)?;
        to.field("config_source", &self.config_source)?;
        to.field("is_sensitive", &self.is_sensitive)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for CreateTopicsResponse {
    const API: ApiKey = ApiKey::CreateTopics;
}

impl Request for CreateTopicsRequest {
    type Response = CreateTopicsResponse;
}

impl Response for CreateTopicsResponse {}
