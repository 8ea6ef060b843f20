//! Who sends and reads the events: load cores, each a pinned executor with its own producers, consumers and connections.
//!
//! The main thread gives every load core the same [`order::StageOrder`] and collects what comes back: snapshots of their
//! histograms while a stage runs, the logs of what was acknowledged and read at its end. A load core shares nothing with
//! another; what each client does over its sockets is decided by the client library's machines and carried out by
//! its glommio transport.

pub mod alarm;
pub mod broker;
pub mod consumer;
pub mod core;
pub mod order;
pub mod outcome;
pub mod producer;
pub mod source;
pub mod spec;
pub mod stage;
pub mod topic;

#[cfg(test)]
mod source_test;
