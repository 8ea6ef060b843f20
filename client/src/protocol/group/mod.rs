//! A member of a consumer group without its sockets: joining, shares, heartbeats, commits, leaving.
//!
//! [`GroupMachine`] is a consumer ([`super::consumer`]) whose partitions a group decides about. It speaks the classic
//! protocol of Kafka's groups, and what members tell each other is Kafka's too, so that clients of both kinds can be
//! members of one group.
//!
//! - `machine`: what a transport and a caller see; `membership`: the phases of a member; `leader`: the leader's duty;
//!   `answers`: what a coordinator's answers change.
//! - `holdings`: the partitions that the member has; `offsets`, `commits`: how far they have come.
//! - [`assignor`]: who reads what, worked out by the group's leader.
//!
//! Invariants:
//! 1. No record of a partition is handed out before the caller has been told that it is assigned, nor after the caller
//!    was told that it is not.
//! 2. Offsets are committed only in a generation that gave the partition or left it to the member, or in which the member
//!    gives it up; nothing of what was lost is. One request is under way at a time, so that a commit never overtakes a
//!    later one.
//! 3. What is committed by itself was handed out by a poll before the last one: the caller has come back since.
//! 4. A member that was put out, or can't know whether it was, reads nothing until it has joined again.
//!
//! Source: Kafka's protocol guide; KIP-62 (poll interval), KIP-345 (static members), KIP-394 (ids first), KIP-429
//! (cooperative rebalances).

mod answers;
pub mod assignor;
mod commits;
mod holdings;
mod leader;
mod machine;
mod membership;
mod offsets;
mod subscription;

pub use super::wire::groups::CommittedOffset;
pub use assignor::{Assignor, NamedPartition};
pub use machine::{EventId, GroupEvent, GroupMachine, Polled};
pub use subscription::Pattern;

/// The kind of group that consumers make.
pub(crate) const PROTOCOL_TYPE: &str = "consumer";

/// Entries in one request about offsets; what a broker takes.
const ENTRIES_MAX: usize = 10_000;

/// A request about the group that is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupAsk {
    kind: AskKind,
    /// The attempt at being a member that it belongs to; an answer to an earlier one changes nothing.
    attempt: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskKind {
    Find,
    Join,
    Sync,
    Heartbeat,
    Leave,
    Commit,
    Offsets,
}
