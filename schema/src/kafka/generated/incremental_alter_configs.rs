// Made from schema/kafka/messages/incremental_alter_configs.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: IncrementalAlterConfigs, versions 0-1.
///
/// Changes settings of topics and brokers, and leaves others as they are (KIP-339).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncrementalAlterConfigsRequest {
    /// What is changed.
    pub resources: Vec<IncrementalAlterConfigsRequestResource>,
    /// Whether to check only.
    pub validate_only: bool,
}

impl Value for IncrementalAlterConfigsRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<IncrementalAlterConfigsRequestResource>>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            resources: from.field("resources")?,
            validate_only: from.field("validate_only")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("resources", &self.resources)?;
        to.field("validate_only", &self.validate_only)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`IncrementalAlterConfigsRequest::resources`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncrementalAlterConfigsRequestResource {
    /// Its kind.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
    /// The settings.
    pub configs: Vec<IncrementalAlterConfigsRequestConfig>,
}

impl Value for IncrementalAlterConfigsRequestResource {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i8>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<IncrementalAlterConfigsRequestConfig>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            resource_type: from.field("resource_type")?,
            resource_name: from.field("resource_name")?,
            configs: from.field("configs")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("resource_type", &self.resource_type)?;
        to.field("resource_name", &self.resource_name)?;
        to.field("configs", &self.configs)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`IncrementalAlterConfigsRequestResource::configs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncrementalAlterConfigsRequestConfig {
    /// The setting.
    pub name: Str,
    /// 0 set, 1 delete, 2 append, 3 subtract.
    pub config_operation: i8,
    /// The value.
    pub value: Option<Str>,
}

impl Default for IncrementalAlterConfigsRequestConfig {
    fn default() -> Self {
        Self {
            name: Str::default(),
            config_operation: 0,
            value: Some(Str::default()),
        }
    }
}

impl Value for IncrementalAlterConfigsRequestConfig {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            config_operation: from.field("config_operation")?,
            value: from.field("value")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("config_operation", &self.config_operation)?;
        to.field("value", &self.value)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for IncrementalAlterConfigsRequest {
    const API: ApiKey = ApiKey::IncrementalAlterConfigs;
}

/// Response: IncrementalAlterConfigs, versions 0-1.
///
/// Changes settings of topics and brokers, and leaves others as they are (KIP-339).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncrementalAlterConfigsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The resources, as they were asked.
    pub responses: Vec<IncrementalAlterConfigsResponseResource>,
}

impl Value for IncrementalAlterConfigsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<IncrementalAlterConfigsResponseResource>>::bytes_min(form);
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

/// One of [`IncrementalAlterConfigsResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncrementalAlterConfigsResponseResource {
    /// Whether it was changed.
    pub error_code: i16,
    /// What is wrong. Default: null.
    pub error_message: Option<Str>,
    /// Its kind.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
}

impl Value for IncrementalAlterConfigsResponseResource {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            error_code: from.field("error_code")?,
            error_message: from.field("error_message")?,
            resource_type: from.field("resource_type")?,
            resource_name: from.field("resource_name")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("error_code", &self.error_code)?;
        to.field("error_message", &self.error_message)?;
        to.field("resource_type", &self.resource_type)?;
        to.field("resource_name", &self.resource_name)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for IncrementalAlterConfigsResponse {
    const API: ApiKey = ApiKey::IncrementalAlterConfigs;
}

impl Request for IncrementalAlterConfigsRequest {
    type Response = IncrementalAlterConfigsResponse;
}

impl Response for IncrementalAlterConfigsResponse {}
