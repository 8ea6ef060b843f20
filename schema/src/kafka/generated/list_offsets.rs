// Made from schema/kafka/messages/list_offsets.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: ListOffsets, versions 1-10.
///
/// Finds the offsets of partitions at points in time.
///
/// Points below zero: -1 the end (the high watermark, or the last stable offset), -2 the log's start, -3 the record with
/// the largest timestamp (7, KIP-734), -4 the start of what is local (8), -5 the last that was tiered (9, KIP-1005).
/// 2: isolation levels. 4: leader epochs (KIP-320). 10: a time-out.
/// 0 answered with many offsets, in other words: never advertised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsRequest {
    /// The follower that asks; -1 for a consumer.
    pub replica_id: i32,
    /// 0: up to the high watermark; 1: up to the last stable offset. Versions 2+.
    pub isolation_level: i8,
    /// The topics.
    pub topics: Vec<ListOffsetsRequestTopic>,
    /// How long a tiered log may be searched. Versions 10+.
    pub timeout_ms: i32,
}

impl Value for ListOffsetsRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        if version >= 2 {
            bytes += <i8>::bytes_min(form);
        }
        bytes += <Vec<ListOffsetsRequestTopic>>::bytes_min(form);
        if version >= 10 {
            bytes += <i32>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            replica_id: from.field("replica_id")?,
            isolation_level: if version >= 2 { from.field("isolation_level")? } else { 0 },
            topics: from.field("topics")?,
            timeout_ms: if version >= 10 { from.field("timeout_ms")? } else { 0 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("replica_id", &self.replica_id)?;
        if version >= 2 {
            to.field("isolation_level", &self.isolation_level)?;
        }
        to.field("topics", &self.topics)?;
        if version >= 10 {
            to.field("timeout_ms", &self.timeout_ms)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`ListOffsetsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsRequestTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<ListOffsetsRequestPartition>,
}

impl Value for ListOffsetsRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<ListOffsetsRequestPartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ListOffsetsRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOffsetsRequestPartition {
    /// Its index.
    pub partition_index: i32,
    /// The leader's epoch as the client knows it. Versions 4+. Default: -1.
    pub current_leader_epoch: i32,
    /// The time, or one of the points below zero.
    pub timestamp: i64,
}

impl Default for ListOffsetsRequestPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            current_leader_epoch: -1,
            timestamp: 0,
        }
    }
}

impl Value for ListOffsetsRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        if version >= 4 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <i64>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            partition_index: from.field("partition_index")?,
            current_leader_epoch: if version >= 4 { from.field("current_leader_epoch")? } else { -1 },
            timestamp: from.field("timestamp")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("partition_index", &self.partition_index)?;
        if version >= 4 {
            to.field("current_leader_epoch", &self.current_leader_epoch)?;
        }
        to.field("timestamp", &self.timestamp)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for ListOffsetsRequest {
    const API: ApiKey = ApiKey::ListOffsets;
}

/// Response: ListOffsets, versions 1-10.
///
/// Finds the offsets of partitions at points in time.
///
/// Points below zero: -1 the end (the high watermark, or the last stable offset), -2 the log's start, -3 the record with
/// the largest timestamp (7, KIP-734), -4 the start of what is local (8), -5 the last that was tiered (9, KIP-1005).
/// 2: isolation levels. 4: leader epochs (KIP-320). 10: a time-out.
/// 0 answered with many offsets, in other words: never advertised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsResponse {
    /// How long the client was held back for its quota. Versions 2+.
    pub throttle_time_ms: i32,
    /// The topics.
    pub topics: Vec<ListOffsetsResponseTopic>,
}

impl Value for ListOffsetsResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 2 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<ListOffsetsResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 2 { from.field("throttle_time_ms")? } else { 0 },
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 2 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ListOffsetsResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsResponseTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<ListOffsetsResponsePartition>,
}

impl Value for ListOffsetsResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<ListOffsetsResponsePartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ListOffsetsResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOffsetsResponsePartition {
    /// Its index.
    pub partition_index: i32,
    /// Whether it could be searched.
    pub error_code: i16,
    /// The record's timestamp; -1 if none was found. Default: -1.
    pub timestamp: i64,
    /// The first offset at or after the time; -1 if there is none. Default: -1.
    pub offset: i64,
    /// The epoch of that record. Versions 4+. Default: -1.
    pub leader_epoch: i32,
}

impl Default for ListOffsetsResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: 0,
            timestamp: -1,
            offset: -1,
            leader_epoch: -1,
        }
    }
}

impl Value for ListOffsetsResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        if version >= 4 {
            bytes += <i32>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            partition_index: from.field("partition_index")?,
            error_code: from.field("error_code")?,
            timestamp: from.field("timestamp")?,
            offset: from.field("offset")?,
            leader_epoch: if version >= 4 { from.field("leader_epoch")? } else { -1 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("partition_index", &self.partition_index)?;
        to.field("error_code", &self.error_code)?;
        to.field("timestamp", &self.timestamp)?;
        to.field("offset", &self.offset)?;
        if version >= 4 {
            to.field("leader_epoch", &self.leader_epoch)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for ListOffsetsResponse {
    const API: ApiKey = ApiKey::ListOffsets;
}

impl Request for ListOffsetsRequest {
    type Response = ListOffsetsResponse;
}

impl Response for ListOffsetsResponse {}
