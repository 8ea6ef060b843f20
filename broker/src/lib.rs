//! The Tackboard broker.

pub mod bridge;
pub mod config;
#[cfg(test)]
mod golden;
