//! The Tackboard broker.

pub mod bridge;
pub mod check;
pub mod cli;
pub mod config;
pub mod control;
pub mod data_folder;
pub mod disk;
#[cfg(test)]
mod documents;
pub mod embedded;
#[cfg(test)]
mod golden;
pub mod kafka;
pub mod native;
mod random;
pub mod serve;
pub mod shard;
pub mod signals;
