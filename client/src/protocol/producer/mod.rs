//! The producer without its sockets: which partition, which batch, which sequence, when to send and when again.

mod murmur2;
mod partitioner;

pub use murmur2::{murmur2, partition_of_key};
pub use partitioner::{CustomPartitioner, Keyed, Keyless, Partitioner, STICKY_BYTES};
