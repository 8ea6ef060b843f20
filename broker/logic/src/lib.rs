//! The pure state machines of the Tackboard broker.
//!
//! Everything here is synchronous and deterministic: no sockets, no files, no clock, no randomness. A driver
//! (`broker/src/shard`) or the simulator (`broker/sim`) hands inputs in, carries out the effects that come back,
//! and reports each completion as the next input.
//!
//! Where to start reading: [`shard::interface`] for the vocabulary, [`shard::Shard::step`] for the machine of one
//! core, [`log`] for one partition's log, [`ledger`] for what proves how far each log was durable, [`request`] for
//! whom an answer is owed to, [`metadata`] for topics and partitions, and [`group`] for consumer groups.

pub mod group;
pub mod ledger;
pub mod log;
pub mod metadata;
pub mod request;
pub mod shard;
