//! The pure state machines of the Tackboard broker.

pub mod metadata;
