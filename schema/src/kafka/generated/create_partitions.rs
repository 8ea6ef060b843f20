// Made from schema/kafka/messages/create_partitions.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: CreatePartitions, versions 0-3.
///
/// Gives topics more partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatePartitionsRequest {
    /// The topics.
    pub topics: Vec<CreatePartitionsRequestTopic>,
    /// How long to wait for it.
    pub timeout_ms: i32,
    /// Whether to check only.
    pub validate_only: bool,
}

impl Value for CreatePartitionsRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<CreatePartitionsRequestTopic>>::bytes_min(form);
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

/// One of [`CreatePartitionsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatePartitionsRequestTopic {
    /// Its name.
    pub name: Str,
    /// How many partitions it should have.
    pub count: i32,
    /// Where the new replicas go; null as the broker does.
    pub assignments: Option<Vec<CreatePartitionsRequestAssignment>>,
}

impl Default for CreatePartitionsRequestTopic {
    fn default() -> Self {
        Self {
            name: Str::default(),
            count: 0,
            assignments: Some(Vec::new()),
        }
    }
}

impl Value for CreatePartitionsRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Option<Vec<CreatePartitionsRequestAssignment>>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            count: from.field("count")?,
            assignments: from.field("assignments")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("count", &self.count)?;
        to.field("assignments", &self.assignments)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`CreatePartitionsRequestTopic::assignments`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatePartitionsRequestAssignment {
    /// The brokers.
    pub broker_ids: Vec<i32>,
}

impl Value for CreatePartitionsRequestAssignment {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<i32>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            broker_ids: from.field("broker_ids")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("broker_ids", &self.broker_ids)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for CreatePartitionsRequest {
    const API: ApiKey = ApiKey::CreatePartitions;
}

/// Response: CreatePartitions, versions 0-3.
///
/// Gives topics more partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatePartitionsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub results: Vec<CreatePartitionsResponseTopic>,
}

impl Value for CreatePartitionsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<CreatePartitionsResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            results: from.field("results")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("results", &self.results)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`CreatePartitionsResponse::results`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatePartitionsResponseTopic {
    /// Its name.
    pub name: Str,
    /// Whether it has them.
    pub error_code: i16,
    /// What is wrong. Default: null.
    pub error_message: Option<Str>,
}

impl Value for CreatePartitionsResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            error_code: from.field("error_code")?,
            error_message: from.field("error_message")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("error_code", &self.error_code)?;
        to.field("error_message", &self.error_message)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for CreatePartitionsResponse {
    const API: ApiKey = ApiKey::CreatePartitions;
}

impl Request for CreatePartitionsRequest {
    type Response = CreatePartitionsResponse;
}

impl Response for CreatePartitionsResponse {}
