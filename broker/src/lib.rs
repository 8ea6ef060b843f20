//! The Tackboard broker.

pub mod bridge;
pub mod config;
pub mod control;
#[cfg(test)]
mod golden;
