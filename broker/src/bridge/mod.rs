//! The only way between the control thread and the cores: message types, channels and counters.
//!
//! Owns: [`ToCore`] and [`ToControl`], and the numbers that cores count and the control thread shows.
//!
//! Not here: either end. The control thread (`control`) and the cores (`shard`) know this module
//! and not each other.
//!
//! Invariants:
//! 1. Neither side ever waits for the other: a full inbox returns the message.
//! 2. What crosses is immutable or owned; nothing is shared that both sides write.

mod messages;
pub mod metrics;

pub use messages::{
    CONTROL_INBOX_MAX, CoreSender, Decided, PROPOSALS_QUEUED_MAX, PartitionFault, ProposalResult,
    ToControl, ToCore, Undelivered,
};
pub use metrics::{CoreMetrics, Metrics};
