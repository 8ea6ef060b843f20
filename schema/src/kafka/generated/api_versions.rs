// Made from schema/kafka/messages/api_versions.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: ApiVersions, versions 0-4.
///
/// Names the APIs that the broker serves, with their versions.
///
/// The header of its answer has no tagged fields in any version, so that a client can read it whatever it asked for. An
/// unknown version is answered as version 0, with error 35 and the versions of this API.
/// 3: the client names itself (KIP-511).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsRequest {
    /// What the client is. Versions 3+.
    pub client_software_name: Str,
    /// Its version. Versions 3+.
    pub client_software_version: Str,
}

impl Value for ApiVersionsRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 3 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 3 {
            bytes += <Str>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            client_software_name: if version >= 3 { from.field("client_software_name")? } else { Str::default() },
            client_software_version: if version >= 3 { from.field("client_software_version")? } else { Str::default() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 3 {
            to.field("client_software_name", &self.client_software_name)?;
        }
        if version >= 3 {
            to.field("client_software_version", &self.client_software_version)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for ApiVersionsRequest {
    const API: ApiKey = ApiKey::ApiVersions;
}

/// Response: ApiVersions, versions 0-4.
///
/// Names the APIs that the broker serves, with their versions.
///
/// The header of its answer has no tagged fields in any version, so that a client can read it whatever it asked for. An
/// unknown version is answered as version 0, with error 35 and the versions of this API.
/// 3: the client names itself (KIP-511).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiVersionsResponse {
    /// Whether the version was served.
    pub error_code: i16,
    /// The APIs.
    pub api_keys: Vec<ApiVersionsResponseApiVersion>,
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// Features that the cluster could have. Versions 3+. Tag 0.
    pub supported_features: Vec<ApiVersionsResponseSupportedFeature>,
    /// Counts the changes of what follows. Versions 3+. Tag 1. Default: -1.
    pub finalized_features_epoch: i64,
    /// Features that the cluster has. Versions 3+. Tag 2.
    pub finalized_features: Vec<ApiVersionsResponseFinalizedFeature>,
    /// Of the change to KRaft, which we have no part in. Versions 3+. Tag 3.
    pub zk_migration_ready: bool,
}

impl Default for ApiVersionsResponse {
    fn default() -> Self {
        Self {
            error_code: 0,
            api_keys: Vec::new(),
            throttle_time_ms: 0,
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
        }
    }
}

impl Value for ApiVersionsResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <Vec<ApiVersionsResponseApiVersion>>::bytes_min(form);
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let mut read = Self {
            error_code: from.field("error_code")?,
            api_keys: from.field("api_keys")?,
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
        };
        from.tags(|tag, from| {
            match tag {
                0 if version >= 3 => read.supported_features = from.field("supported_features")?,
                1 if version >= 3 => read.finalized_features_epoch = from.field("finalized_features_epoch")?,
                2 if version >= 3 => read.finalized_features = from.field("finalized_features")?,
                3 if version >= 3 => read.zk_migration_ready = from.field("zk_migration_ready")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("error_code", &self.error_code)?;
        to.field("api_keys", &self.api_keys)?;
        if version >= 1 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        let has_supported_features = version >= 3 && !self.supported_features.is_empty();
        let has_finalized_features_epoch = version >= 3 && self.finalized_features_epoch != -1;
        let has_finalized_features = version >= 3 && !self.finalized_features.is_empty();
        let has_zk_migration_ready = version >= 3 && self.zk_migration_ready;
        to.tag_count(&[has_supported_features, has_finalized_features_epoch, has_finalized_features, has_zk_migration_ready]);
        if has_supported_features {
            to.tagged(0, "supported_features", &self.supported_features)?;
        }
        if has_finalized_features_epoch {
            to.tagged(1, "finalized_features_epoch", &self.finalized_features_epoch)?;
        }
        if has_finalized_features {
            to.tagged(2, "finalized_features", &self.finalized_features)?;
        }
        if has_zk_migration_ready {
            to.tagged(3, "zk_migration_ready", &self.zk_migration_ready)?;
        }
        Ok(())
    }
}

/// One of [`ApiVersionsResponse::api_keys`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsResponseApiVersion {
    /// Its number.
    pub api_key: i16,
    /// The first version.
    pub min_version: i16,
    /// The last.
    pub max_version: i16,
}

impl Value for ApiVersionsResponseApiVersion {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i16>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            api_key: from.field("api_key")?,
            min_version: from.field("min_version")?,
            max_version: from.field("max_version")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("api_key", &self.api_key)?;
        to.field("min_version", &self.min_version)?;
        to.field("max_version", &self.max_version)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ApiVersionsResponse::supported_features`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsResponseSupportedFeature {
    /// Its name.
    pub name: Str,
    /// Its first level.
    pub min_version: i16,
    /// Its last.
    pub max_version: i16,
}

impl Value for ApiVersionsResponseSupportedFeature {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            min_version: from.field("min_version")?,
            max_version: from.field("max_version")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("min_version", &self.min_version)?;
        to.field("max_version", &self.max_version)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`ApiVersionsResponse::finalized_features`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsResponseFinalizedFeature {
    /// Its name.
    pub name: Str,
    /// Its last level.
    pub max_version_level: i16,
    /// Its first.
    pub min_version_level: i16,
}

impl Value for ApiVersionsResponseFinalizedFeature {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            name: from.field("name")?,
            max_version_level: from.field("max_version_level")?,
            min_version_level: from.field("min_version_level")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("name", &self.name)?;
        to.field("max_version_level", &self.max_version_level)?;
        to.field("min_version_level", &self.min_version_level)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for ApiVersionsResponse {
    const API: ApiKey = ApiKey::ApiVersions;
}

impl Request for ApiVersionsRequest {
    type Response = ApiVersionsResponse;
}

impl Response for ApiVersionsResponse {}
