// Made from schema/kafka/messages/offset_fetch.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: OffsetFetch, versions 1-9.
///
/// Answers how far groups have read.
///
/// A partition without an offset: offset and epoch -1, no error. All topics: null (2). 3: throttle time.
/// 5: leader epochs. 7: only what no open transaction can change (KIP-447). 8: several groups at once (KIP-709).
/// 9: members of the newer protocol (KIP-848).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetFetchRequest {
    /// The group. Versions 0-7.
    pub group_id: Str,
    /// Its topics; null for all. Versions 0-7. Null: versions 2-7.
    pub topics: Option<Vec<OffsetFetchRequestTopic>>,
    /// The groups. Versions 8+.
    pub groups: Vec<OffsetFetchRequestGroup>,
    /// Whether to refuse what an open transaction may change. Versions 7+.
    pub require_stable: bool,
}

impl Default for OffsetFetchRequest {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            topics: Some(Vec::new()),
            groups: Vec::new(),
            require_stable: false,
        }
    }
}

impl Value for OffsetFetchRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version <= 7 {
            bytes += <Str>::bytes_min(form);
        }
        if version <= 7 {
            bytes += <Option<Vec<OffsetFetchRequestTopic>>>::bytes_min(form);
        }
        if version >= 8 {
            bytes += <Vec<OffsetFetchRequestGroup>>::bytes_min(form);
        }
        if version >= 7 {
            bytes += <bool>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: if version <= 7 { from.field("group_id")? } else { Str::default() },
            topics: if version <= 7 { if version >= 2 { from.field("topics")? } else { Some(from.field("topics")?) } } else { Some(Vec::new()) },
            groups: if version >= 8 { from.field("groups")? } else { Vec::new() },
            require_stable: if version >= 7 { from.field("require_stable")? } else { false },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version <= 7 {
            to.field("group_id", &self.group_id)?;
        }
        if version <= 7 {
            to.nullable("topics", &self.topics, version >= 2)?;
        }
        if version >= 8 {
            to.field("groups", &self.groups)?;
        }
        if version >= 7 {
            to.field("require_stable", &self.require_stable)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetFetchRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetchRequestTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partition_indexes: Vec<i32>,
}

impl Value for OffsetFetchRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<i32>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            partition_indexes: from.field("partition_indexes")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("partition_indexes", &self.partition_indexes)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetFetchRequest::groups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetFetchRequestGroup {
    /// Its id.
    pub group_id: Str,
    /// The member of the newer protocol. Versions 9+. Default: null.
    pub member_id: Option<Str>,
    /// Its epoch. Versions 9+. Default: -1.
    pub member_epoch: i32,
    /// Its topics; null for all.
    pub topics: Option<Vec<OffsetFetchRequestGroupTopic>>,
}

impl Default for OffsetFetchRequestGroup {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            member_id: None,
            member_epoch: -1,
            topics: Some(Vec::new()),
        }
    }
}

impl Value for OffsetFetchRequestGroup {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        if version >= 9 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version >= 9 {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Option<Vec<OffsetFetchRequestGroupTopic>>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            group_id: from.field("group_id")?,
            member_id: if version >= 9 { from.field("member_id")? } else { None },
            member_epoch: if version >= 9 { from.field("member_epoch")? } else { -1 },
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("group_id", &self.group_id)?;
        if version >= 9 {
            to.field("member_id", &self.member_id)?;
        }
        if version >= 9 {
            to.field("member_epoch", &self.member_epoch)?;
        }
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetFetchRequestGroup::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetchRequestGroupTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partition_indexes: Vec<i32>,
}

impl Value for OffsetFetchRequestGroupTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<i32>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            partition_indexes: from.field("partition_indexes")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("partition_indexes", &self.partition_indexes)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetFetchRequest {
    const API: ApiKey = ApiKey::OffsetFetch;
}

/// Response: OffsetFetch, versions 1-9.
///
/// Answers how far groups have read.
///
/// A partition without an offset: offset and epoch -1, no error. All topics: null (2). 3: throttle time.
/// 5: leader epochs. 7: only what no open transaction can change (KIP-447). 8: several groups at once (KIP-709).
/// 9: members of the newer protocol (KIP-848).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetchResponse {
    /// How long the client was held back for its quota. Versions 3+.
    pub throttle_time_ms: i32,
    /// The topics. Versions 0-7.
    pub topics: Vec<OffsetFetchResponseTopic>,
    /// A fault of the whole request. Versions 2-7.
    pub error_code: i16,
    /// The groups. Versions 8+.
    pub groups: Vec<OffsetFetchResponseGroup>,
}

impl Value for OffsetFetchResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 3 {
            bytes += <i32>::bytes_min(form);
        }
        if version <= 7 {
            bytes += <Vec<OffsetFetchResponseTopic>>::bytes_min(form);
        }
        if (2..=7).contains(&version) {
            bytes += <i16>::bytes_min(form);
        }
        if version >= 8 {
            bytes += <Vec<OffsetFetchResponseGroup>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 3 { from.field("throttle_time_ms")? } else { 0 },
            topics: if version <= 7 { from.field("topics")? } else { Vec::new() },
            error_code: if (2..=7).contains(&version) { from.field("error_code")? } else { 0 },
            groups: if version >= 8 { from.field("groups")? } else { Vec::new() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 3 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        if version <= 7 {
            to.field("topics", &self.topics)?;
        }
        if (2..=7).contains(&version) {
            to.field("error_code", &self.error_code)?;
        }
        if version >= 8 {
            to.field("groups", &self.groups)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetFetchResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetchResponseTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetFetchResponsePartition>,
}

impl Value for OffsetFetchResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetFetchResponsePartition>>::bytes_min(form);
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

/// One of [`OffsetFetchResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetFetchResponsePartition {
    /// Its index.
    pub partition_index: i32,
    /// The next offset to read; -1 for none.
    pub committed_offset: i64,
    /// The epoch of the record before it. Versions 5-7. Default: -1.
    pub committed_leader_epoch: i32,
    /// Words of the client's own.
    pub metadata: Option<Str>,
    /// Whether it could be looked up.
    pub error_code: i16,
}

impl Default for OffsetFetchResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            metadata: Some(Str::default()),
            error_code: 0,
        }
    }
}

impl Value for OffsetFetchResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        if (5..=7).contains(&version) {
            bytes += <i32>::bytes_min(form);
        }
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            partition_index: from.field("partition_index")?,
            committed_offset: from.field("committed_offset")?,
            committed_leader_epoch: if (5..=7).contains(&version) { from.field("committed_leader_epoch")? } else { -1 },
            metadata: from.field("metadata")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("partition_index", &self.partition_index)?;
        to.field("committed_offset", &self.committed_offset)?;
        if (5..=7).contains(&version) {
            to.field("committed_leader_epoch", &self.committed_leader_epoch)?;
        }
        to.field("metadata", &self.metadata)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetFetchResponse::groups`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetchResponseGroup {
    /// Its id.
    pub group_id: Str,
    /// The topics.
    pub topics: Vec<OffsetFetchResponseGroupTopic>,
    /// A fault of the whole group.
    pub error_code: i16,
}

impl Value for OffsetFetchResponseGroup {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetFetchResponseGroupTopic>>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            group_id: from.field("group_id")?,
            topics: from.field("topics")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("group_id", &self.group_id)?;
        to.field("topics", &self.topics)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetFetchResponseGroup::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetchResponseGroupTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetFetchResponseGroupPartition>,
}

impl Value for OffsetFetchResponseGroupTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetFetchResponseGroupPartition>>::bytes_min(form);
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

/// One of [`OffsetFetchResponseGroupTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetFetchResponseGroupPartition {
    /// Its index.
    pub partition_index: i32,
    /// The next offset to read; -1 for none.
    pub committed_offset: i64,
    /// The epoch of the record before it. Default: -1.
    pub committed_leader_epoch: i32,
    /// Words of the client's own.
    pub metadata: Option<Str>,
    /// Whether it could be looked up.
    pub error_code: i16,
}

impl Default for OffsetFetchResponseGroupPartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            committed_offset: 0,
            committed_leader_epoch: -1,
            metadata: Some(Str::default()),
            error_code: 0,
        }
    }
}

impl Value for OffsetFetchResponseGroupPartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition_index: from.field("partition_index")?,
            committed_offset: from.field("committed_offset")?,
            committed_leader_epoch: from.field("committed_leader_epoch")?,
            metadata: from.field("metadata")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition_index", &self.partition_index)?;
        to.field("committed_offset", &self.committed_offset)?;
        to.field("committed_leader_epoch", &self.committed_leader_epoch)?;
        to.field("metadata", &self.metadata)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetFetchResponse {
    const API: ApiKey = ApiKey::OffsetFetch;
}

impl Request for OffsetFetchRequest {
    type Response = OffsetFetchResponse;
}

impl Response for OffsetFetchResponse {}
