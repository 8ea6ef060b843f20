// Made from schema/kafka/messages/describe_configs.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: DescribeConfigs, versions 1-4.
///
/// Answers the settings of topics and brokers.
///
/// Resources: 2 is a topic, 4 a broker. Without keys all settings are meant.
/// 1: synonyms. 3: types and words (KIP-569).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeConfigsRequest {
    /// What is asked about.
    pub resources: Vec<DescribeConfigsRequestResource>,
    /// Whether to name where else a value is set.
    pub include_synonyms: bool,
    /// Whether to say what settings mean. Versions 3+.
    pub include_documentation: bool,
}

impl Value for DescribeConfigsRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Vec<DescribeConfigsRequestResource>>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        if version >= 3 {
            bytes += <bool>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            resources: from.field("resources")?,
            include_synonyms: from.field("include_synonyms")?,
            include_documentation: if version >= 3 { from.field("include_documentation")? } else { false },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("resources", &self.resources)?;
        to.field("include_synonyms", &self.include_synonyms)?;
        if version >= 3 {
            to.field("include_documentation", &self.include_documentation)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`DescribeConfigsRequest::resources`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsRequestResource {
    /// Its kind.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
    /// The settings; null for all.
    pub configuration_keys: Option<Vec<Str>>,
}

impl Default for DescribeConfigsRequestResource {
    fn default() -> Self {
        Self {
            resource_type: 0,
            resource_name: Str::default(),
            configuration_keys: Some(Vec::new()),
        }
    }
}

impl Value for DescribeConfigsRequestResource {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i8>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Vec<Str>>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            resource_type: from.field("resource_type")?,
            resource_name: from.field("resource_name")?,
            configuration_keys: from.field("configuration_keys")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("resource_type", &self.resource_type)?;
        to.field("resource_name", &self.resource_name)?;
        to.field("configuration_keys", &self.configuration_keys)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DescribeConfigsRequest {
    const API: ApiKey = ApiKey::DescribeConfigs;
}

/// Response: DescribeConfigs, versions 1-4.
///
/// Answers the settings of topics and brokers.
///
/// Resources: 2 is a topic, 4 a broker. Without keys all settings are meant.
/// 1: synonyms. 3: types and words (KIP-569).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeConfigsResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// The resources, as they were asked.
    pub results: Vec<DescribeConfigsResponseResult>,
}

impl Value for DescribeConfigsResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<DescribeConfigsResponseResult>>::bytes_min(form);
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

/// One of [`DescribeConfigsResponse::results`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeConfigsResponseResult {
    /// Whether they can be shown.
    pub error_code: i16,
    /// What is wrong. Default: null.
    pub error_message: Option<Str>,
    /// Its kind.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Str,
    /// The settings.
    pub configs: Vec<DescribeConfigsResponseConfig>,
}

impl Value for DescribeConfigsResponseResult {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <Vec<DescribeConfigsResponseConfig>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            error_code: from.field("error_code")?,
            error_message: from.field("error_message")?,
            resource_type: from.field("resource_type")?,
            resource_name: from.field("resource_name")?,
            configs: from.field("configs")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("error_code", &self.error_code)?;
        to.field("error_message", &self.error_message)?;
        to.field("resource_type", &self.resource_type)?;
        to.field("resource_name", &self.resource_name)?;
        to.field("configs", &self.configs)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DescribeConfigsResponseResult::configs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsResponseConfig {
    /// The setting.
    pub name: Str,
    /// Its value.
    pub value: Option<Str>,
    /// Whether it can't be changed.
    pub read_only: bool,
    /// Where the value comes from. Default: -1.
    pub config_source: i8,
    /// Whether the value is a secret.
    pub is_sensitive: bool,
    /// Where else it is set, what counts first.
    pub synonyms: Vec<DescribeConfigsResponseSynonym>,
    /// The type of its value. Versions 3+.
    pub config_type: i8,
    /// What it means. Versions 3+.
    pub documentation: Option<Str>,
}

impl Default for DescribeConfigsResponseConfig {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
            synonyms: Vec::new(),
            config_type: 0,
            documentation: Some(Str::default()),
        }
    }
}

impl Value for DescribeConfigsResponseConfig {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        bytes += <bool>::bytes_min(form);
        bytes += <Vec<DescribeConfigsResponseSynonym>>::bytes_min(form);
        if version >= 3 {
            bytes += <i8>::bytes_min(form);
        }
        if version >= 3 {
            bytes += <Option<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            name: from.field("name")?,
            value: from.field("value")?,
            read_only: from.field("read_only")?,
            config_source: from.field("config_source")?,
            is_sensitive: from.field("is_sensitive")?,
            synonyms: from.field("synonyms")?,
            config_type: if version >= 3 { from.field("config_type")? } else { 0 },
            documentation: if version >= 3 { from.field("documentation")? } else { Some(Str::default()) },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("name", &self.name)?;
        to.field("value", &self.value)?;
        to.field("read_only", &self.read_only)?;
        to.field("config_source", &self.config_source)?;
        to.field("is_sensitive", &self.is_sensitive)?;
        to.field("synonyms", &self.synonyms)?;
        if version >= 3 {
            to.field("config_type", &self.config_type)?;
        }
        if version >= 3 {
            to.field("documentation", &self.documentation)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`DescribeConfigsResponseConfig::synonyms`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsResponseSynonym {
    /// The setting.
    pub name: Str,
    /// The value.
    pub value: Option<Str>,
    /// Where the value comes from.
    pub source: i8,
}

impl Default for DescribeConfigsResponseSynonym {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
            source: 0,
        }
    }
}

impl Value for DescribeConfigsResponseSynonym {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i8>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            value: from.field("value")?,
            source: from.field("source")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("value", &self.value)?;
        to.field("source", &self.source)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DescribeConfigsResponse {
    const API: ApiKey = ApiKey::DescribeConfigs;
}

impl Request for DescribeConfigsRequest {
    type Response = DescribeConfigsResponse;
}

impl Response for DescribeConfigsResponse {}
