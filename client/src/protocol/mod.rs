//! The client without its sockets: pure machines that a transport drives.
//!
//! Not here: sockets, threads, clocks. Time is passed in ([`Now`]), randomness comes from a seed that is passed in,
//! bytes come and go as buffers.

mod backoff;
mod frames;
mod messages;
pub mod producer;
mod random;
mod time;

pub use backoff::Backoff;
pub use frames::{FrameReader, InFrame, READ_BYTES};
pub use messages::Welcome;
pub use random::Random;
pub use time::{Now, earliest};
