//! The control thread: everything that is not on the road of a record.
//!
//! Owns: the metadata and its log, the images that the cores act on, the admin HTTP server, the order
//! of a shutdown.
//!
//! Not here: the superblock and the lock of the data folder (`boot`), partitions and their files
//! (`shard`, `disk`), topic requests of clients (a core takes them and proposes here).
//!
//! Invariants:
//! 1. One way to change metadata: [`quorum::MetadataQuorum::propose`]. A command is durable before it
//!    is applied, and applied by every core before its proposer is answered.
//! 2. The cores never wait for this thread on the road of a record, and it never waits for a core:
//!    a full inbox is tried again later.
//! 3. Without requests this thread sleeps: no timer runs while nothing is pending.
//!
//! Reading and writing the metadata log blocks this thread, HTTP included. That is meant: a broker
//! whose disk does not answer must not look healthy.
//!
//! Start reading at [`start`], then `service`.

mod http;
pub mod metadata_log;
pub mod metrics;
pub mod quorum;
mod service;
mod start;
mod status;

pub use metadata_log::{MetadataLogError, RecoverySummary};
pub use start::{
    ControlConfig, ControlError, ControlEvent, ControlHandle, Metadata, RefreshMetrics,
    ShutdownReport, StorageLabels, start,
};
