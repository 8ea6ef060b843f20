// Made from schema/kafka/messages/offset_commit.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: OffsetCommit, versions 2-9.
///
/// Stores how far a group has read.
///
/// 3: throttle time. 5: how long to keep the offsets is the broker's affair. 6: leader epochs. 7: static members
/// (KIP-345). 9: members of the newer protocol commit too (KIP-848).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    /// The group.
    pub group_id: Str,
    /// The generation; below zero from outside the group. Default: -1.
    pub generation_id_or_member_epoch: i32,
    /// The member, or empty.
    pub member_id: Str,
    /// The static member's own name. Versions 7+. Default: null.
    pub group_instance_id: Option<Str>,
    /// How long to keep the offsets; -1: as the broker does. Versions 2-4. Default: -1.
    pub retention_time_ms: i64,
    /// The topics.
    pub topics: Vec<OffsetCommitRequestTopic>,
}

impl Default for OffsetCommitRequest {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            generation_id_or_member_epoch: -1,
            member_id: Str::default(),
            group_instance_id: None,
            retention_time_ms: -1,
            topics: Vec::new(),
        }
    }
}

impl Value for OffsetCommitRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        if version >= 7 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version <= 4 {
            bytes += <i64>::bytes_min(form);
        }
        bytes += <Vec<OffsetCommitRequestTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            generation_id_or_member_epoch: from.field("generation_id_or_member_epoch")?,
            member_id: from.field("member_id")?,
            group_instance_id: if version >= 7 { from.field("group_instance_id")? } else { None },
            retention_time_ms: if version <= 4 { from.field("retention_time_ms")? } else { -1 },
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("group_id", &self.group_id)?;
        to.field("generation_id_or_member_epoch", &self.generation_id_or_member_epoch)?;
        to.field("member_id", &self.member_id)?;
        if version >= 7 {
            to.field("group_instance_id", &self.group_instance_id)?;
        }
        if version <= 4 {
            to.field("retention_time_ms", &self.retention_time_ms)?;
        }
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetCommitRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCommitRequestTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetCommitRequestPartition>,
}

impl Value for OffsetCommitRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetCommitRequestPartition>>::bytes_min(form);
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

/// One of [`OffsetCommitRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitRequestPartition {
    /// Its index.
    pub partition_index: i32,
    /// The next offset to read.
    pub committed_offset: i64,
    /// The epoch of the record before it. Versions 6+. Default: -1.
    pub committed_leader_epoch: i32,
    /// Words of the client's own.
    pub committed_metadata: Option<Str>,
}

impl Default for OffsetCommitRequestPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            committed_metadata: Some(Str::default()),
        }
    }
}

impl Value for OffsetCommitRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        if version >= 6 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            partition_index: from.field("partition_index")?,
            committed_offset: from.field("committed_offset")?,
            committed_leader_epoch: if version >= 6 { from.field("committed_leader_epoch")? } else { -1 },
            committed_metadata: from.field("committed_metadata")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("partition_index", &self.partition_index)?;
        to.field("committed_offset", &self.committed_offset)?;
        if version >= 6 {
            to.field("committed_leader_epoch", &self.committed_leader_epoch)?;
        }
        to.field("committed_metadata", &self.committed_metadata)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetCommitRequest {
    const API: ApiKey = ApiKey::OffsetCommit;
}

/// Response: OffsetCommit, versions 2-9.
///
/// Stores how far a group has read.
///
/// 3: throttle time. 5: how long to keep the offsets is the broker's affair. 6: leader epochs. 7: static members
/// (KIP-345). 9: members of the newer protocol commit too (KIP-848).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCommitResponse {
    /// How long the client was held back for its quota. Versions 3+.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub topics: Vec<OffsetCommitResponseTopic>,
}

impl Value for OffsetCommitResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 3 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Vec<OffsetCommitResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 3 { from.field("throttle_time_ms")? } else { 0 },
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 3 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetCommitResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCommitResponseTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetCommitResponsePartition>,
}

impl Value for OffsetCommitResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetCommitResponsePartition>>::bytes_min(form);
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

/// One of [`OffsetCommitResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCommitResponsePartition {
    /// Its index.
    pub partition_index: i32,
    /// Whether the offset was stored.
    pub error_code: i16,
}

impl Value for OffsetCommitResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition_index: from.field("partition_index")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition_index", &self.partition_index)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetCommitResponse {
    const API: ApiKey = ApiKey::OffsetCommit;
}

impl Request for OffsetCommitRequest {
    type Response = OffsetCommitResponse;
}

impl Response for OffsetCommitResponse {}
