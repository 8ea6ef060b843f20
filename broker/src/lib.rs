//! The Tackboard broker.
