// Made from schema/kafka/messages/offset_delete.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: OffsetDelete, versions 0.
///
/// Deletes offsets that a group has stored (KIP-496).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetDeleteRequest {
    /// The group.
    pub group_id: Str,
    /// The topics.
    pub topics: Vec<OffsetDeleteRequestTopic>,
}

impl Value for OffsetDeleteRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetDeleteRequestTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            group_id: from.field("group_id")?,
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("group_id", &self.group_id)?;
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetDeleteRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetDeleteRequestTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetDeleteRequestPartition>,
}

impl Value for OffsetDeleteRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetDeleteRequestPartition>>::bytes_min(form);
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

/// One of [`OffsetDeleteRequestTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetDeleteRequestPartition {
    /// Its index.
    pub partition_index: i32,
}

impl Value for OffsetDeleteRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition_index: from.field("partition_index")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition_index", &self.partition_index)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for OffsetDeleteRequest {
    const API: ApiKey = ApiKey::OffsetDelete;
}

/// Response: OffsetDelete, versions 0.
///
/// Deletes offsets that a group has stored (KIP-496).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetDeleteResponse {
    /// A fault of the whole request.
    pub error_code: i16,
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub topics: Vec<OffsetDeleteResponseTopic>,
}

impl Value for OffsetDeleteResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<OffsetDeleteResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            error_code: from.field("error_code")?,
            throttle_time_ms: from.field("throttle_time_ms")?,
            topics: from.field("topics")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("error_code", &self.error_code)?;
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("topics", &self.topics)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`OffsetDeleteResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetDeleteResponseTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<OffsetDeleteResponsePartition>,
}

impl Value for OffsetDeleteResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<OffsetDeleteResponsePartition>>::bytes_min(form);
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

/// One of [`OffsetDeleteResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetDeleteResponsePartition {
    /// Its index.
    pub partition_index: i32,
    /// Whether the offset was deleted.
    pub error_code: i16,
}

impl Value for OffsetDeleteResponsePartition {
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

impl Message for OffsetDeleteResponse {
    const API: ApiKey = ApiKey::OffsetDelete;
}

impl Request for OffsetDeleteRequest {
    type Response = OffsetDeleteResponse;
}

impl Response for OffsetDeleteResponse {}
