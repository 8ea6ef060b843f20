//! The answers to ApiVersions, made from the table.

use super::{API_TABLE, ApiKey, ApiRow, ApiVersionsResponse, ApiVersionsResponseApiVersion};
use crate::ErrorCode;

fn advertised(row: &ApiRow) -> ApiVersionsResponseApiVersion {
    ApiVersionsResponseApiVersion {
        api_key: row.key.code(),
        min_version: row.advertised.min,
        max_version: row.advertised.max,
    }
}

/// Every API that is advertised, and no features.
pub fn api_versions() -> ApiVersionsResponse {
    ApiVersionsResponse {
        api_keys: API_TABLE.iter().map(advertised).collect(),
        ..ApiVersionsResponse::default()
    }
}

/// The answer to a version of ApiVersions that is not served, to be sent in version 0: the client tries again with one
/// that is.
pub fn unsupported_api_versions() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![advertised(ApiKey::ApiVersions.row())],
        ..ApiVersionsResponse::default()
    }
}
