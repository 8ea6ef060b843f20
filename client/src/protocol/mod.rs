//! The client without its sockets: pure machines that a transport drives.
//!
//! Owns: every decision. [`producer`] and [`consumer`] on top, each over a `cluster` of connections, each of those
//! over frames, whose contents one page reads and writes for each of the two protocols ([`wire`]).
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
pub mod group;
#[cfg(feature = "blocking")]
pub(crate) mod group_calls;
mod machine;
pub(crate) mod messages;
mod metadata;
pub mod producer;
mod random;
mod refresh;
mod time;
pub(crate) mod wire;

pub use backoff::Backoff;
pub use cluster::Action;
pub use connection::ConnectionId;
pub use frames::{FrameFault, FrameReader, InFrame, KafkaFrame, NativeFrame, READ_BYTES};
pub use machine::Machine;
pub use messages::Welcome;
pub use random::Random;
pub use time::{Now, earliest};
