// Made from schema/kafka/messages/delete_topics.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: DeleteTopics, versions 1-6.
///
/// Deletes topics.
///
/// 5: words come with a refusal. 6: topics by id too (KIP-516).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopicsRequest {
    /// The topics. Versions 6+.
    pub topics: Vec<DeleteTopicsRequestTopic>,
    /// The topics. Versions 0-5.
    pub topic_names: Vec<Str>,
    /// How long to wait for it.
    pub timeout_ms: i32,
}

impl Value for DeleteTopicsRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 6 {
            bytes += <Vec<DeleteTopicsRequestTopic>>::bytes_min(form);
        }
        if version <= 5 {
            bytes += <Vec<Str>>::bytes_min(form);
        }
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            topics: if version >= 6 { from.field("topics")? } else { Vec::new() },
            topic_names: if version <= 5 { from.field("topic_names")? } else { Vec::new() },
            timeout_ms: from.field("timeout_ms")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 6 {
            to.field("topics", &self.topics)?;
        }
        if version <= 5 {
            to.field("topic_names", &self.topic_names)?;
        }
        to.field("timeout_ms", &self.timeout_ms)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DeleteTopicsRequest::topics`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopicsRequestTopic {
    /// Its name; null where it is deleted by id. Default: null.
    pub name: Option<Str>,
    /// Its id, or zero.
    pub topic_id: TopicId,
}

impl Value for DeleteTopicsRequestTopic {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <TopicId>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            topic_id: from.field("topic_id")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("topic_id", &self.topic_id)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DeleteTopicsRequest {
    const API: ApiKey = ApiKey::DeleteTopics;
}

/// Response: DeleteTopics, versions 1-6.
///
/// Deletes topics.
///
/// 5: words come with a refusal. 6: topics by id too (KIP-516).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopicsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The topics, as they were asked.
    pub responses: Vec<DeleteTopicsResponseTopic>,
}

impl Value for DeleteTopicsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<DeleteTopicsResponseTopic>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            responses: from.field("responses")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("responses", &self.responses)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DeleteTopicsResponse::responses`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteTopicsResponseTopic {
    /// Its name; null if it is unknown. Null: versions 6+.
    pub name: Option<Str>,
    /// Its id. Versions 6+.
    pub topic_id: TopicId,
    /// Whether it was deleted.
    pub error_code: i16,
    /// What is wrong. Versions 5+. Default: null.
    pub error_message: Option<Str>,
}

impl Default for DeleteTopicsResponseTopic {
    fn default() -> Self {
        Self {
            name: Some(Str::default()),
            topic_id: TopicId::default(),
            error_code: 0,
            error_message: None,
        }
    }
}

impl Value for DeleteTopicsResponseTopic {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Option<Str>>::bytes_min(form);
        if version >= 6 {
            bytes += <TopicId>::bytes_min(form);
        }
        bytes += <i16>::bytes_min(form);
        if version >= 5 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            name: if version >= 6 { from.field("name")? } else { Some(from.field("name")?) },
            topic_id: if version >= 6 { from.field("topic_id")? } else { TopicId::default() },
            error_code: from.field("error_code")?,
            error_message: if version >= 5 { from.field("error_message")? } else { None },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.nullable("name", &self.name, version >= 6)?;
        if version >= 6 {
            to.field("topic_id", &self.topic_id)?;
        }
        to.field("error_code", &self.error_code)?;
        if version >= 5 {
            to.field("error_message", &self.error_message)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for DeleteTopicsResponse {
    const API: ApiKey = ApiKey::DeleteTopics;
}

impl Request for DeleteTopicsRequest {
    type Response = DeleteTopicsResponse;
}

impl Response for DeleteTopicsResponse {}
