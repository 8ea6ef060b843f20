//! The pure state machines of the Tackboard broker.
