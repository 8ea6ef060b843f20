//! The client for tasks of one glommio executor: everything on one core, no locks, no threads.
//!
//! Owns: sockets and tasks. Not here: decisions (`protocol`); administration, which is seldom and small: use
//! the blocking `Admin` before the executor starts, or on another thread.
//!
//! [`Producer`] and [`Consumer`] must be closed, or dropped, before the executor ends; `close` waits for their sockets.

mod consumer;
mod driver;
mod producer;

pub use consumer::Consumer;
pub use producer::Producer;
