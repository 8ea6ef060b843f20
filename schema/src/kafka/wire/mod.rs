//! How types look on the wire.
//!
//! Integers are big-endian. What has a length comes behind it: two bytes for strings and four for everything else, or,
//! in the flexible versions of an API, a varint of the length and one; null is -1, or 0. Flexible structures end with
//! tagged fields, which a reader may skip.
//!
//! [`Value`] is what the generated code is made of: every type reads, writes and says how short it can be.

mod error;
mod reader;
mod records;
mod str;
mod values;
mod writer;

pub use error::EncodeError;
pub use reader::{REQUEST_ELEMENTS_MAX, RESPONSE_ELEMENTS_MAX, Reader};
pub use records::{Gap, Part, Records, parts};
pub use str::Str;
use values::Width;
pub use values::{Form, Value};
pub use writer::Writer;

/// What generated code uses.
pub(in crate::kafka) mod prelude {
    pub(in crate::kafka) use super::{EncodeError, Form, Reader, Records, Str, Value, Writer};
    pub(in crate::kafka) use crate::{
        DecodeError, TopicId,
        kafka::{ApiKey, Message, Request, Response},
    };
    pub(in crate::kafka) use bytes::Bytes;
}
