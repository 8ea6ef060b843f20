//! The native door: listeners, connections, one handler an API.
//!
//! Follow a request from [`session`] (socket to frame) through [`handlers`] (frame to entries) into `shard`, and its
//! answer back through [`answer`] into the connection's outbox ([`connection`]).
//!
//! The APIs of consumer groups, which only differ in their heads, are in [`groups`].
//!
//! Not here: decisions about logs (logic), ownership of partitions (`shard::topics`).

pub mod answer;
pub mod connection;
pub mod groups;
pub mod handlers;
pub mod session;
