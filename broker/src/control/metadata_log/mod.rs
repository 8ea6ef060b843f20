//! The metadata log of one broker: every accepted command, in order, on the medium before its answer.
//!
//! Owns: the folder `meta/` with its logs and snapshots.
//!
//! ```text
//! meta/log-<base>            commands base + 1, base + 2, …; the newest one grows
//! meta/snapshot-<version>    the whole state after that command
//! meta/*.tmp                 unfinished, deleted at the next start
//! ```
//!
//! After [`Limits::records`] commands, or [`Limits::bytes`], a snapshot is written and a new log begins. Two
//! snapshots and the logs from the older one on are kept: should the newest be unreadable, the older one
//! and its log give the same state.
//!
//! Not here: what commands mean (`logic::metadata`), who is told of them (`control::service`), consensus.
//!
//! Invariants:
//! 1. A command is applied only after the file that holds it was synced.
//! 2. A file gets its name only when it is complete and synced; so a file that has a name and no
//!    valid header was damaged.
//! 3. After a failed sync nothing is written any more: what is on the medium is then unknown.
//! 4. A damaged tail is cut off only if no proof says that it had been synced. Each record carries
//!    that proof for what stands before it; see [`format`].
//!
//! Start reading at [`store::MetadataLog`].

pub(super) mod format;
mod recovery;
mod store;

pub use recovery::{MetadataLogError, RecoverySummary};
pub use store::{Limits, MetadataLog};

#[cfg(test)]
mod store_test;
