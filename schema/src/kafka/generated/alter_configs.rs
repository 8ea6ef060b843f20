// Made from schema/kafka/messages/alter_configs.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: AlterConfigs, versions 0-2.
///
/// Sets all settings of topics and brokers; what is not named goes back to its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlterConfigsRequest {
    /// What is changed.
    pub resources: Vec<AlterConfigsRequestResource>,
    /// Whether to check only.
    pub validate_only: bool,
}

impl Value for AlterConfigsRequest {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<AlterConfigsRequestResource>>::bytes_min(form);
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

/// One of [`AlterConfigsRequest::resources`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlterConfigsRequestResource {
    /// Its kind.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
    /// The settings.
    pub configs: Vec<AlterConfigsRequestConfig>,
}

impl Value for AlterConfigsRequestResource {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i8>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<AlterConfigsRequestConfig>>::bytes_min(form);
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

/// One of [`AlterConfigsRequestResource::configs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterConfigsRequestConfig {
    /// The setting.
    pub name: Str,
    /// Its value.
    pub value: Option<Str>,
}

impl Default for AlterConfigsRequestConfig {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
        }
    }
}

impl Value for AlterConfigsRequestConfig {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            value: from.field("value")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("value", &self.value)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for AlterConfigsRequest {
    const API: ApiKey = ApiKey::AlterConfigs;
}

/// Response: AlterConfigs, versions 0-2.
///
/// Sets all settings of topics and brokers; what is not named goes back to its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlterConfigsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The resources, as they were asked.
    pub responses: Vec<AlterConfigsResponseResource>,
}

impl Value for AlterConfigsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<AlterConfigsResponseResource>>::bytes_min(form);
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

/// One of [`AlterConfigsResponse::responses`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlterConfigsResponseResource {
    /// Whether it was changed.
    pub error_code: i16,
    /// What is wrong. Default: null.
    pub error_message: Option<Str>,
    /// Its kind.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
}

impl Value for AlterConfigsResponseResource {
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

impl Message for AlterConfigsResponse {
    const API: ApiKey = ApiKey::AlterConfigs;
}

impl Request for AlterConfigsRequest {
    type Response = AlterConfigsResponse;
}

impl Response for AlterConfigsResponse {}
