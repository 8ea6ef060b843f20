//! What is true: for each partition the batches that were placed, in order, and how much of that must survive what.
//!
//! The truth is told by the simulator's own eyes (it carries out every placement) and by what clients were told. It knows
//! nothing of segments, indexes or ledgers; the checkers in [`crate::check`] compare the two.

mod batch;
mod group;
mod partition;
mod producer;

pub use batch::{Batch, Stamp};
pub use group::{Commit, Generation, GroupTopic, GroupTruth, OffsetTruth, Recorded};
pub use partition::{Cutting, Partition, Placed};
pub use producer::{Expected, ProducerTruth, next_sequence};
