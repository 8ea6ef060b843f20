//! Kafka's protocol: every message that we serve, read and written.
//!
//! The messages are defined in `schema/kafka/messages/`, one file per API; structures, decoders, encoders and
//! [`API_TABLE`] are made from there (`docs/kafka-wire.md`). A structure is named after its message and the definition:
//! [`FetchRequest`], `FetchRequestTopic`, `FetchRequestPartition`, …
//!
//! # A request
//!
//! ```
//! # use tackboard_schema::{ErrorCode, kafka::*};
//! # use bytes::Bytes;
//! // `frame` is what stood behind four bytes of length. Give it as `Bytes`: strings and records are slices of it.
//! fn answer(frame: Bytes, out: &mut Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
//!     let request = match RequestFrame::open(frame) {
//!         Ok(request) => request,
//!         // The one unsupported version that has an answer; it is always written as version 0.
//!         Err(RequestFault::UnsupportedVersion { api: ApiKey::ApiVersions, correlation_id, .. }) => {
//!             encode_response(out, 0, correlation_id, &unsupported_api_versions())?;
//!             return Ok(());
//!         }
//!         // Whatever else is wrong ends the connection.
//!         Err(fault) => return Err(fault.into()),
//!     };
//!     let (version, correlation_id) = (request.version, request.correlation_id);
//!     match request.api {
//!         ApiKey::ApiVersions => {
//!             let _: ApiVersionsRequest = request.body()?;
//!             encode_response(out, version, correlation_id, &api_versions())?;
//!         }
//!         ApiKey::Fetch => {
//!             let fetch: FetchRequest = request.body()?;
//!             // Fields that the version doesn't have are at their defaults, which is also what `..` is for.
//!             let mut response = FetchResponse::default();
//!             for topic in fetch.topics {
//!                 let partitions = topic.partitions.iter().map(|partition| FetchResponsePartition {
//!                     partition_index: partition.partition,
//!                     error_code: ErrorCode::None.code(),
//!                     // 1000 bytes that are sent from the log. They are not written here: the gaps say where they go,
//!                     // and `parts` in which order everything does.
//!                     records: Some(Records::Elsewhere(1000)),
//!                     ..FetchResponsePartition::default()
//!                 });
//!                 let partitions = partitions.collect();
//!                 let FetchRequestTopic { topic, topic_id, .. } = topic;
//!                 response.responses.push(FetchResponseTopic { topic, topic_id, partitions });
//!             }
//!             let gaps = encode_response(out, version, correlation_id, &response)?;
//!             for part in parts(out, &gaps) {
//!                 match part {
//!                     Part::Frame(_bytes) => { /* send them */ }
//!                     Part::Records(_index) => { /* send the records of gaps[index] */ }
//!                 }
//!             }
//!         }
//!         _ => { /* … */ }
//!     }
//!     Ok(())
//! }
//! # let mut request = Vec::new();
//! # let mut out = Vec::new();
//! # encode_request(&mut request, 4, 1, None, &ApiVersionsRequest::default()).unwrap();
//! # answer(Bytes::from(request.split_off(4)), &mut out).unwrap();
//! # let topics = vec![FetchRequestTopic { partitions: vec![FetchRequestPartition::default()], ..Default::default() }];
//! # encode_request(&mut request, 12, 1, None, &FetchRequest { topics, ..Default::default() }).unwrap();
//! # request.drain(..4);
//! # answer(Bytes::from(request.split_off(4)), &mut out).unwrap();
//! ```
//!
//! Not here: sockets, limits on the length of frames, and what is answered. Record batches are
//! [`record_batch`](crate::record_batch)'s.
//!
//! Invariants:
//! 1. No bytes make a decoder panic or allocate more than their count of elements, which the bytes that are left bound.
//! 2. Tagged fields are written only where they differ from their default.
//! 3. What is read here in a version is written here in the same bytes, but for tagged fields: ours are in order and
//!    without those that are unknown.

mod api_versions;
mod frame;
#[rustfmt::skip]
mod generated;
mod table;
mod wire;

pub use api_versions::{api_versions, unsupported_api_versions};
pub use frame::{
    LENGTH_PREFIX_BYTES, RequestFault, RequestFrame, decode_response, encode_request,
    encode_response, response_correlation_id,
};
pub use generated::*;
pub use table::{ApiRow, Versions};
pub use wire::{
    EncodeError, Gap, Part, REQUEST_ELEMENTS_MAX, RESPONSE_ELEMENTS_MAX, Records, Str, parts,
};

/// A request or a response.
pub trait Message: wire::Value + Default {
    /// The API that it belongs to.
    const API: ApiKey;
}

/// A request.
pub trait Request: Message {
    /// What answers it.
    type Response: Response;
}

/// A response.
pub trait Response: Message {}
