//! The client for threads: sockets of the standard library, calls that wait.
//!
//! Owns: sockets and threads. Not here: decisions (`protocol`).
//!
//! A producer or consumer has one thread that keeps time and calls back, and two per connection, which read and write.
//! [`Admin`] has none.

mod admin;
mod ambient;
mod consumer;
mod delivery;
mod dial;
mod driver;
mod group;
mod producer;

pub use admin::Admin;
pub use consumer::Consumer;
pub use delivery::Delivery;
pub use group::{GroupConsumer, RebalanceListener};
pub use producer::Producer;
