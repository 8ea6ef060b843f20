//! Native client of the Tackboard broker: [`Producer`], [`Consumer`], [`Admin`].
#![warn(missing_docs)]

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
pub use blocking::{Admin, Consumer, Delivery, Producer};

pub use admin::{
    BrokerDescription, ClusterDescription, CreatedTopic, ListedOffset, NewTopic, OffsetQuery,
    PartitionDescription, PartitionSummary, TopicDescription, TopicSetting, TopicSummary,
};
pub use config::{ClientConfig, ConsumerConfig, IN_FLIGHT_MAX, OffsetReset, ProducerConfig};
pub use consumed::{Chunk, ConsumerRecord, Records, RecordsIterator, Start};
pub use error::{Error, Refusal, Result};
pub use protocol::producer::{CustomPartitioner, Keyed, Keyless, Partitioner};
pub use record::{BatchReport, Header, ProducerRecord, RecordPosition};
pub use tackboard_schema::record_batch::Compression;
pub use tackboard_schema::{Acks, Durability, ErrorCode, Offset, PartitionIndex, TimestampMs};
