//! The producer without its sockets: which partition, which batch, which sequence, when to send and when again.
//!
//! Start reading at [`ProducerMachine`]; what keeps records in order and single is in `queue`.

mod batch;
mod dispatch;
mod machine;
mod murmur2;
mod partitioner;
mod queue;
#[cfg(test)]
mod queue_test;

pub use batch::BatchId;
pub use machine::{AppendError, Appended, ProducerMachine, TopicLookup, TopicSlot};
pub use murmur2::{murmur2, partition_of_key};
pub use partitioner::{CustomPartitioner, Keyed, Keyless, Partitioner, STICKY_BYTES};
