//! The broker's own files, byte by byte. `docs/storage-format.md` describes the same in words.
//!
//! | file | what | module |
//! |---|---|---|
//! | `superblock.a`, `superblock.b` | whose folder this is, and how it was left | [`superblock`] |
//! | `ledger/<run>-<core>.a`, `.b` | what is proven of each log | [`ledger`] |
//! | `p/<topic id>-<partition>/<base offset>.log` | record batches, nothing else | [`crate::record_batch`] |
//! | `….idx` | index and summary of a sealed segment | [`index`] |
//! | `….pst` | idempotent producers as of an offset | [`producer_snapshot`] |
//! | `….ckp` | both, as of a place in the active segment | [`checkpoint`] |
//!
//! Records of the internal topic `__consumer_offsets` have Kafka's layouts: [`group_record`].
//!
//! All integers are little-endian (record batches and these records keep Kafka's big-endian), every structure carries its own
//! CRC-32C, and every file begins with eight letters and a version.
//!
//! Not here: when to write or sync what, and what to do about damage; that is decided in `logic`.

pub mod checkpoint;
mod envelope;
pub mod group_record;
pub mod index;
pub mod ledger;
mod paths;
pub mod producer_snapshot;
pub mod superblock;

pub use envelope::{BLOCK_LENGTH, Stored};
pub use paths::{
    CHECKPOINT_EXTENSION, INDEX_EXTENSION, LOG_EXTENSION, SNAPSHOT_EXTENSION,
    parse_segment_file_name, segment_file_name,
};
