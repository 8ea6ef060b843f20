//! Frames: headers, and the message behind them.
//!
//! On a connection every frame has four bytes of length before it. What is read here are frames without it; what is
//! written has it.

use bytes::Bytes;

use super::{
    ApiKey, Gap, Request, Response, Str,
    wire::{EncodeError, Form, REQUEST_ELEMENTS_MAX, RESPONSE_ELEMENTS_MAX, Reader, Writer},
};
use crate::DecodeError;

/// The length that stands before every frame on a connection.
pub const LENGTH_PREFIX_BYTES: usize = 4;

/// Key, version and correlation id are where they are whatever the API and its version.
const ANY_FORM: Form = Form {
    version: 0,
    flexible: false,
};

/// A request whose header was read, and whose API and version are served.
#[derive(Debug)]
pub struct RequestFrame {
    /// The API.
    pub api: ApiKey,
    /// Its version.
    pub version: i16,
    /// What the response must repeat.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<Str>,
    body: Reader,
}

/// Why a frame is no request that is served. Every one but an unsupported version of ApiVersions, which has an answer
/// ([`unsupported_api_versions`](super::unsupported_api_versions)), ends its connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The header can't be read.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// There is no such API, or none that is served.
    #[error("API {key} is not served")]
    UnknownApi {
        /// Its number.
        key: i16,
    },
    /// The API is served in other versions.
    #[error("{api} is served in versions {}, not in {version}", api.row().served)]
    UnsupportedVersion {
        /// The API.
        api: ApiKey,
        /// The version that was asked for.
        version: i16,
        /// What a response must repeat.
        correlation_id: i32,
    },
}

impl RequestFrame {
    /// Reads the header of a request. What is read later are slices of `frame`.
    pub fn open(frame: Bytes) -> Result<Self, RequestFault> {
        let mut body = Reader::new(frame, ANY_FORM, REQUEST_ELEMENTS_MAX);
        let key: i16 = body.field("api_key")?;
        let version: i16 = body.field("api_version")?;
        let correlation_id = body.field("correlation_id")?;
        let api = ApiKey::from_code(key).ok_or(RequestFault::UnknownApi { key })?;
        if !api.row().served.contains(version) {
            return Err(RequestFault::UnsupportedVersion {
                api,
                version,
                correlation_id,
            });
        }
        let client_id = body.field("client_id")?;
        body.set_form(Form::of(api.row(), version));
        body.skip_tags()?;
        Ok(Self {
            api,
            version,
            correlation_id,
            client_id,
            body,
        })
    }

    /// Reads the request. Panics if it isn't of the API that the header names.
    ///
    /// Bytes behind it are no fault, as they are none to Kafka: librdkafka asks for all topics with three bytes too
    /// many (Metadata from version 9).
    pub fn body<R: Request>(mut self) -> Result<R, DecodeError> {
        assert_eq!(R::API, self.api, "the request of another API");
        R::read(&mut self.body)
    }
}

/// Writes a response, with everything before it, behind what `out` has.
///
/// The gaps are where records belong that are [elsewhere](super::Records::Elsewhere): the frame on the wire are the
/// [`parts`](super::parts) of what was written here. A field that the version doesn't have is left out, and null where
/// the version has none is written as an empty value. After a fault `out` is as it was.
pub fn encode_response<R: Response>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    response: &R,
) -> Result<Vec<Gap>, EncodeError> {
    encode(out, |to| {
        to.field("correlation_id", &correlation_id)?;
        let row = R::API.row();
        let flexible = row.has_flexible_response_header(version);
        to.set_form(Form { version, flexible });
        to.no_tags();
        to.set_form(Form::of(row, version));
        response.write(to)
    })
}

/// Writes a request, with everything before it, as [`encode_response`] does.
pub fn encode_request<R: Request>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    client_id: Option<&Str>,
    request: &R,
) -> Result<Vec<Gap>, EncodeError> {
    encode(out, |to| {
        to.field("api_key", &R::API.code())?;
        to.field("api_version", &version)?;
        to.field("correlation_id", &correlation_id)?;
        to.field("client_id", &client_id.cloned())?;
        to.set_form(Form::of(R::API.row(), version));
        to.no_tags();
        request.write(to)
    })
}

fn encode(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<Vec<Gap>, EncodeError> {
    let begin = out.len();
    let mut to = Writer::new(out, ANY_FORM);
    let written = (to.field("length", &0_i32))
        .and_then(|()| write(&mut to))
        .and_then(|()| to.finish());
    if written.is_err() {
        out.truncate(begin);
    }
    written
}

/// The correlation id of a response, by which a client finds the request and so the version.
pub fn response_correlation_id(frame: &[u8]) -> Result<i32, DecodeError> {
    match frame.first_chunk() {
        Some(id) => Ok(i32::from_be_bytes(*id)),
        None => Err(DecodeError::truncated("the header of a response", 0)),
    }
}

/// Reads a response to a request that was sent in `version`. What is read are slices of `frame`.
pub fn decode_response<R: Response>(frame: Bytes, version: i16) -> Result<R, DecodeError> {
    let row = R::API.row();
    let flexible = row.has_flexible_response_header(version);
    let mut from = Reader::new(frame, Form { version, flexible }, RESPONSE_ELEMENTS_MAX);
    let _: i32 = from.field("correlation_id")?;
    from.skip_tags()?;
    from.set_form(Form::of(row, version));
    let response = R::read(&mut from)?;
    from.finish()?;
    Ok(response)
}
