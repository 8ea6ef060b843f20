// Made from schema/kafka/messages/delete_records.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: DeleteRecords, versions 0-2.
///
/// Deletes the records of partitions below an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRecordsRequest {
    /// The topics.
    pub topics: Vec<DeleteRecordsRequestTopic>,
    /// How long to wait for it.
    pub timeout_ms: i32,
}

impl Value for DeleteRecordsRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<DeleteRecordsRequestTopic>>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            topics: from.field("topics")?,
            timeout_ms: from.field("timeout_ms")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("topics", &self.topics)?;
        to.field("timeout_ms", &self.timeout_ms)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DeleteRecordsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRecordsRequestTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<DeleteRecordsRequestPartition>,
}

impl Value for DeleteRecordsRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<DeleteRecordsRequestPartition>>::bytes_min(form);
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

/// One of [`DeleteRecordsRequestTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRecordsRequestPartition {
    /// Its index.
    pub partition_index: i32,
    /// The first offset to keep; -1: the high watermark.
    pub offset: i64,
}

impl Value for DeleteRecordsRequestPartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition_index: from.field("partition_index")?,
            offset: from.field("offset")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition_index", &self.partition_index)?;
        to.field("offset", &self.offset)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DeleteRecordsRequest {
    const API: ApiKey = ApiKey::DeleteRecords;
}

/// Response: DeleteRecords, versions 0-2.
///
/// Deletes the records of partitions below an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRecordsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub topics: Vec<DeleteRecordsResponseTopic>,
}

impl Value for DeleteRecordsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<DeleteRecordsResponseTopic>>::bytes_min(form);
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

/// One of [`DeleteRecordsResponse::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRecordsResponseTopic {
    /// Its name.
    pub name: Str,
    /// The partitions.
    pub partitions: Vec<DeleteRecordsResponsePartition>,
}

impl Value for DeleteRecordsResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<DeleteRecordsResponsePartition>>::bytes_min(form);
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

/// One of [`DeleteRecordsResponseTopic::partitions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteRecordsResponsePartition {
    /// Its index.
    pub partition_index: i32,
    /// The first offset that is left.
    pub low_watermark: i64,
    /// Whether records were deleted.
    pub error_code: i16,
}

impl Value for DeleteRecordsResponsePartition {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            partition_index: from.field("partition_index")?,
            low_watermark: from.field("low_watermark")?,
            error_code: from.field("error_code")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("partition_index", &self.partition_index)?;
        to.field("low_watermark", &self.low_watermark)?;
        to.field("error_code", &self.error_code)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DeleteRecordsResponse {
    const API: ApiKey = ApiKey::DeleteRecords;
}

impl Request for DeleteRecordsRequest {
    type Response = DeleteRecordsResponse;
}

impl Response for DeleteRecordsResponse {}
