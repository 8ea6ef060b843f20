//! The client without its sockets: pure machines that a transport drives.
//!
//! Owns: every decision. [`producer`] and [`consumer`] on top, each over a `cluster` of connections, each of those
//! over frames and their heads.
//!
//! Not here: sockets, threads, clocks. Time is passed in ([`Now`]), randomness comes from a seed that is passed in,
//! bytes come and go as buffers.
//!
//! Start reading at [`Machine`].

mod addresses;
mod backoff;
#[cfg(feature = "blocking")]
pub(crate) mod calls;
mod cluster;
pub(crate) mod connection;
pub mod consumer;
mod frames;
mod machine;
pub(crate) mod messages;
mod metadata;
pub mod producer;
mod random;
mod refresh;
mod time;
#[cfg(feature = "blocking")]
mod topic_messages;

pub use backoff::Backoff;
pub use cluster::Action;
pub use connection::ConnectionId;
pub use frames::{FrameReader, InFrame, READ_BYTES};
pub use machine::Machine;
pub use messages::Welcome;
pub use random::Random;
pub use time::{Now, earliest};
