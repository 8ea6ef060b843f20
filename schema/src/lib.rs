//! Every byte layout of Tackboard that crosses a socket or a restart.
//!
//! Owns: the native protocol's frame and heads, the record batch (Kafka's format, version 2) with its
//! compression codecs, the messages of Kafka's protocol, the layouts of the broker's own files, the ids,
//! topic names and error codes that all of them speak of, and what the members of a group tell each other.
//!
//! Not here: files, sockets, clocks, threads, and any decision. Everything is a function over bytes.
//!
//! Invariants:
//! 1. No byte that came from outside can cause a panic, an unbounded loop or an allocation beyond a
//!    bound that the caller gave; it causes a [`DecodeError`] that says what was wrong and at which byte.
//! 2. What a decoder accepts, the encoder beside it can make.
//!
//! Where to start reading: [`frame`], then [`record_batch`], then [`storage`].
//! `docs/protocol.md` and `docs/storage-format.md` describe the same bytes in words.

pub mod consumer_protocol;
mod cursor;
mod decode_error;
mod error_code;
pub mod frame;
mod ids;
pub mod kafka;
pub mod native;
pub mod record_batch;
pub mod storage;
mod topic_name;

pub use decode_error::{DecodeError, DecodeErrorKind};
pub use error_code::ErrorCode;
pub use ids::{
    Acks, BrokerId, CoreId, CorrelationId, Durability, LeaderEpoch, Offset, PartitionIndex,
    ProducerEpoch, ProducerId, TimestampMs, TopicId, TopicPartition,
};
pub use topic_name::{TOPIC_NAME_LENGTH_MAX, validate_topic_name};
