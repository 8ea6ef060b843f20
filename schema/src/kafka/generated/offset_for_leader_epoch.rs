// Made from schema/kafka/messages/offset_for_leader_epoch.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: OffsetForLeaderEpoch, versions 2-4.
///
/// Finds where a leader epoch ended, so that a client sees what was truncated (KIP-320).
///
/// The answer is the largest epoch up to the one asked for, and its end; -1 and -1 if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetForLeaderEpochRequest {
    /// The follower that asks; -1 for a consumer. Versions 3+. Default: -2.
    pub replica_id: i32,
    /// The topics.
    pub topics: Vec<OffsetForLeaderEpochRequestTopic>,
}

impl Default for OffsetForLeaderEpochRequest {
    fn default() -> Self {
        Self {
            replica_id: -2,
            topics: Vec::new(),
        }
    }
}

impl Value for OffsetForLeaderEpochRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 3 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<OffsetForLeaderEpochRequestTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            replica_id: if version >= 3 { from.field("replica_id")? } else { -2 },
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 3 {
            to.field("replica_id", &self.replica_id)?;
        }
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetForLeaderEpochRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetForLeaderEpochRequestTopic {
    /// Its name.
    pub topic: Str,
    /// The partitions.
    pub partitions: Vec<OffsetForLeaderEpochRequestPartition>,
}

impl Value for OffsetForLeaderEpochRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetForLeaderEpochRequestPartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            topic: from.field("topic")?,
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("topic", &self.topic)?;
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetForLeaderEpochRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetForLeaderEpochRequestPartition {
    /// Its index.
    pub partition: i32,
    /// The leader's epoch as the client knows it. Default: -1.
    pub current_leader_epoch: i32,
    /// The epoch to look up.
    pub leader_epoch: i32,
}

impl Default for OffsetForLeaderEpochRequestPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            leader_epoch: 0,
        }
    }
}

impl Value for OffsetForLeaderEpochRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition: from.field("partition")?,
            current_leader_epoch: from.field("current_leader_epoch")?,
            leader_epoch: from.field("leader_epoch")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition", &self.partition)?;
        to.field("current_leader_epoch", &self.current_leader_epoch)?;
        to.field("leader_epoch", &self.leader_epoch)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetForLeaderEpochRequest {
    const API: ApiKey = ApiKey::OffsetForLeaderEpoch;
}

/// Response: OffsetForLeaderEpoch, versions 2-4.
///
/// Finds where a leader epoch ended, so that a client sees what was truncated (KIP-320).
///
/// The answer is the largest epoch up to the one asked for, and its end; -1 and -1 if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetForLeaderEpochResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub topics: Vec<OffsetForLeaderEpochResponseTopic>,
}

impl Value for OffsetForLeaderEpochResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<OffsetForLeaderEpochResponseTopic>>::bytes_min(form);
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

/// One of [`OffsetForLeaderEpochResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetForLeaderEpochResponseTopic {
    /// Its name.
    pub topic: Str,
    /// The partitions.
    pub partitions: Vec<OffsetForLeaderEpochResponsePartition>,
}

impl Value for OffsetForLeaderEpochResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetForLeaderEpochResponsePartition>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            topic: from.field("topic")?,
            partitions: from.field("partitions")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("topic", &self.topic)?;
        to.field("partitions", &self.partitions)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetForLeaderEpochResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetForLeaderEpochResponsePartition {
    /// Whether it could be looked up.
    pub error_code: i16,
    /// Its index.
    pub partition: i32,
    /// The epoch. Default: -1.
    pub leader_epoch: i32,
    /// Its end. Default: -1.
    pub end_offset: i64,
}

impl Default for OffsetForLeaderEpochResponsePartition {
    fn default() -> Self {
        Self {
            error_code: 0,
            partition: 0,
            leader_epoch: -1,
            end_offset: -1,
        }
    }
}

impl Value for OffsetForLeaderEpochResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            error_code: from.field("error_code")?,
            partition: from.field("partition")?,
            leader_epoch: from.field("leader_epoch")?,
            end_offset: from.field("end_offset")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("error_code", &self.error_code)?;
        to.field("partition", &self.partition)?;
        to.field("leader_epoch", &self.leader_epoch)?;
        to.field("end_offset", &self.end_offset)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetForLeaderEpochResponse {
    const API: ApiKey = ApiKey::OffsetForLeaderEpoch;
}

impl Request for OffsetForLeaderEpochRequest {
    type Response = OffsetForLeaderEpochResponse;
}

impl Response for OffsetForLeaderEpochResponse {}
