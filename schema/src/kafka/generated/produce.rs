// Made from schema/kafka/messages/produce.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: Produce, versions 3-11.
///
/// Appends one record batch to each of any number of partitions.
///
/// 0-2: message sets of old formats, refused; advertised since old clients compress only where they see version 0.
/// 5: log start offset. 8: faults by record (KIP-467). 10: the new leader comes with a refusal (KIP-951).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceRequest {
    /// The transaction that the batches are part of. Default: null.
    pub transactional_id: Option<Str>,
    /// 0 (no answer is sent), 1, or -1 for every in-sync replica.
    pub acks: i16,
    /// How long to wait for the acks.
    pub timeout_ms: i32,
    /// The topics.
    pub topic_data: Vec<ProduceRequestTopic>,
}

impl Value for ProduceRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<ProduceRequestTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            transactional_id: from.field("transactional_id")?,
            acks: from.field("acks")?,
            timeout_ms: from.field("timeout_ms")?,
            topic_data: from.field("topic_data")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("transactional_id", &self.transactional_id)?;
        to.field("acks", &self.acks)?;
        to.field("timeout_ms", &self.timeout_ms)?;
        to.field("topic_data", &self.topic_data)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ProduceRequest::topic_data`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceRequestTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partition_data: Vec<ProduceRequestPartition>,
}

impl Value for ProduceRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<ProduceRequestPartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            partition_data: from.field("partition_data")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("partition_data", &self.partition_data)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ProduceRequestTopic::partition_data`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceRequestPartition {
    /// Its index.
    pub index: i32,
    /// One record batch.
    pub records: Option<Records>,
}

impl Default for ProduceRequestPartition {
    fn default() -> Self {
        Self {
            index: 0,
            records: Some(Records::default()),
        }
    }
}

impl Value for ProduceRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Option<Records>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            index: from.field("index")?,
            records: from.field("records")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("index", &self.index)?;
        to.field("records", &self.records)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for ProduceRequest {
    const API: ApiKey = ApiKey::Produce;
}

/// Response: Produce, versions 3-11.
///
/// Appends one record batch to each of any number of partitions.
///
/// 0-2: message sets of old formats, refused; advertised since old clients compress only where they see version 0.
/// 5: log start offset. 8: faults by record (KIP-467). 10: the new leader comes with a refusal (KIP-951).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceResponse {
    /// The topics, as they were asked.
    pub responses: Vec<ProduceResponseTopic>,
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// Where the leaders are that were named. Versions 10+. Tag 0.
    pub node_endpoints: Vec<ProduceResponseNodeEndpoint>,
}

impl Value for ProduceResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<ProduceResponseTopic>>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            responses: from.field("responses")?,
            throttle_time_ms: from.field("throttle_time_ms")?,
            node_endpoints: Vec::new(),
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 10 => read.node_endpoints = from.field("node_endpoints")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("responses", &self.responses)?;
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        let has_node_endpoints = version >= 10 && !self.node_endpoints.is_empty();
        to.tag_count(&[has_node_endpoints]);
        if has_node_endpoints {
            to.tagged(0, "node_endpoints", &self.node_endpoints)?;
        }
        Ok(())
    }
}

/// One of [`ProduceResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceResponseTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partition_responses: Vec<ProduceResponsePartition>,
}

impl Value for ProduceResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<ProduceResponsePartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            partition_responses: from.field("partition_responses")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("partition_responses", &self.partition_responses)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ProduceResponseTopic::partition_responses`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceResponsePartition {
    /// Its index.
    pub index: i32,
    /// Whether the batch was appended.
    pub error_code: i16,
    /// The offset of its first record.
    pub base_offset: i64,
    /// When it was appended; -1 if records keep their own time. Default: -1.
    pub log_append_time_ms: i64,
    /// The first offset that the log has. Versions 5+. Default: -1.
    pub log_start_offset: i64,
    /// The records that a refusal is about. Versions 8+.
    pub record_errors: Vec<ProduceResponseRecordError>,
    /// What is wrong. Versions 8+. Default: null.
    pub error_message: Option<Str>,
    /// The leader, when it is another. Versions 10+. Tag 0.
    pub current_leader: ProduceResponseCurrentLeader,
}

impl Default for ProduceResponsePartition {
    fn default() -> Self {
        Self {
            index: 0,
            error_code: 0,
            base_offset: 0,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: ProduceResponseCurrentLeader::default(),
        }
    }
}

impl Value for ProduceResponsePartition {
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
        if version >= 8 {
            bytes += <Vec<ProduceResponseRecordError>>::bytes_min(form);
        }
        if version >= 8 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            index: from.field("index")?,
            error_code: from.field("error_code")?,
            base_offset: from.field("base_offset")?,
            log_append_time_ms: from.field("log_append_time_ms")?,
            log_start_offset: if version >= 5 { from.field("log_start_offset")? } else { -1 },
            record_errors: if version >= 8 { from.field("record_errors")? } else { Vec::new() },
            error_message: if version >= 8 { from.field("error_message")? } else { None },
            current_leader: ProduceResponseCurrentLeader::default(),
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 10 => read.current_leader = from.field("current_leader")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("index", &self.index)?;
        to.field("error_code", &self.error_code)?;
        to.field("base_offset", &self.base_offset)?;
        to.field("log_append_time_ms", &self.log_append_time_ms)?;
        if version >= 5 {
            to.field("log_start_offset", &self.log_start_offset)?;
        }
        if version >= 8 {
            to.field("record_errors", &self.record_errors)?;
        }
        if version >= 8 {
            to.field("error_message", &self.error_message)?;
        }
        let has_current_leader = version >= 10 && self.current_leader != ProduceResponseCurrentLeader::default();
        to.tag_count(&[has_current_leader]);
        if has_current_leader {
            to.tagged(0, "current_leader", &self.current_leader)?;
        }
        Ok(())
    }
}

/// One of [`ProduceResponsePartition::record_errors`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceResponseRecordError {
    /// The record within the batch.
    pub batch_index: i32,
    /// What is wrong with it. Default: null.
    pub batch_index_error_message: Option<Str>,
}

impl Value for ProduceResponseRecordError {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            batch_index: from.field("batch_index")?,
            batch_index_error_message: from.field("batch_index_error_message")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("batch_index", &self.batch_index)?;
        to.field("batch_index_error_message", &self.batch_index_error_message)?;
        to.no_tags();
        Ok(())
    }
}

/// What [`ProduceResponsePartition::current_leader`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceResponseCurrentLeader {
    /// Its broker. Default: -1.
    pub leader_id: i32,
    /// Its epoch. Default: -1.
    pub leader_epoch: i32,
}

impl Default for ProduceResponseCurrentLeader {
    fn default() -> Self {
        Self {
            leader_id: -1,
            leader_epoch: -1,
        }
    }
}

impl Value for ProduceResponseCurrentLeader {
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

/// One of [`ProduceResponse::node_endpoints`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceResponseNodeEndpoint {
    /// The broker.
    pub node_id: i32,
    /// Its host.
    pub host: Str,
    /// Its port.
    pub port: i32,
    /// Its rack. Default: null.
    pub rack: Option<Str>,
}

impl Value for ProduceResponseNodeEndpoint {
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

impl Message for ProduceResponse {
    const API: ApiKey = ApiKey::Produce;
}

impl Request for ProduceRequest {
    type Response = ProduceResponse;
}

impl Response for ProduceResponse {}
