//! Native client of the Tackboard broker.
//!
//! Four clients, each over the native protocol (`docs/protocol.md`), each talking straight to the core that owns a
//! partition, and through the listener that any core serves where that one does not answer. With
//! [`ClientConfig::protocol`] all but the members of groups speak Kafka's instead, with any broker that does:
//!
//! - [`Producer`]: batches by size and time, keeps several batches in flight, repeats what failed;
//! - [`Consumer`]: reads partitions that the caller names, ahead of the caller up to a bound;
//! - [`GroupConsumer`]: the same, of partitions that a consumer group shares out among its members;
//! - [`Admin`]: topics, their settings and offsets, groups.
//!
//! What a producer promises, unless [`ProducerConfig::idempotent`] is off or acks is 0:
//! 1. A record that was reported as delivered is in the log once, whatever was repeated on the way.
//! 2. Delivered records of one partition are in the order of sending.
//! 3. A record that failed is not in the log, unless the error is [`Error::UnknownOutcome`], which says that nobody
//!    can tell.
//!
//! What a consumer promises: every batch had its checksum verified; no record is returned twice and none is left out,
//! whatever connections are lost, as long as the caller does not seek. A member of a group promises the same from one
//! assignment of a partition to its end; over all members every record is handed out at least once, since what is
//! committed was handed out before.
//!
//! Where to start reading: [`protocol`] holds every decision, in machines without sockets, clocks or threads. The
//! transports around them are `blocking` (threads and the standard library's sockets; the default, and what the names
//! at the root are) and `glommio` (a machine's sockets on one executor; feature `glommio`). Examples are in `client/examples`.
//!
//! Not here: transactions.

mod admin;
mod config;
mod consumed;
mod error;
pub mod protocol;
mod record;
#[cfg(any(feature = "blocking", feature = "glommio"))]
mod system;

#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(feature = "glommio")]
pub mod glommio;

#[cfg(feature = "blocking")]
pub use blocking::{Admin, Consumer, Delivery, GroupConsumer, Producer, RebalanceListener};

pub use admin::{
    BrokerDescription, ClusterDescription, CreatedTopic, GroupDescription, GroupMember,
    GroupSummary, ListedOffset, NewTopic, OffsetQuery, PartitionDescription, PartitionSummary,
    TopicDescription, TopicSetting, TopicSummary,
};
pub use config::{
    ClientConfig, ConsumerConfig, GroupConfig, IN_FLIGHT_MAX, OffsetReset, ProducerConfig, Protocol,
};
pub use consumed::{Chunk, ConsumerRecord, Records, RecordsIterator, Start};
pub use error::{Error, Refusal, Result};
pub use protocol::group::{Assignor, CommittedOffset, NamedPartition, Pattern};
pub use protocol::producer::{CustomPartitioner, Keyed, Keyless, Partitioner};
pub use record::{BatchReport, Header, ProducerRecord, RecordPosition};
pub use tackboard_schema::record_batch::Compression;
pub use tackboard_schema::{Acks, Durability, ErrorCode, Offset, PartitionIndex, TimestampMs};
