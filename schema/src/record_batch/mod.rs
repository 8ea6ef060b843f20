//! The record batch, Kafka's format version 2: the one byte format of disk, replication, native bodies and
//! the Kafka wire.
//!
//! A batch is a header of 61 bytes, all integers big-endian, and its records, compressed as one block or not
//! at all. The CRC-32C covers everything from the attributes on, so the broker can set base offset and leader
//! epoch ([`stamp`]) and nothing else.
//!
//! - [`check_batch`]: what a broker demands of a batch before it takes it; [`check_stored_batch`]: what it
//!   demands of one that it reads back from its own disk.
//! - [`BatchView`], [`BatchIterator`]: reading. [`BatchBuilder`]: writing.
//!
//! Not here: message sets of versions 0 and 1; they are refused by their magic.

mod builder;
mod check;
pub mod compression;
mod header;
mod iterator;
mod record;
mod varint;
mod view;

pub use builder::{BATCH_LENGTH_MAX, BatchBuilder, BatchFull, ProducerStamp};
pub use check::{CheckedBatch, check_batch, check_stored_batch};
pub use compression::Compression;
pub use header::{Attributes, BatchHeader, HEADER_LENGTH, LENGTH_AND_OFFSET_LENGTH, MAGIC, stamp};
pub use iterator::BatchIterator;
pub use record::{HeaderIterator, Record, RecordHeader, RecordIterator};
pub use view::BatchView;
