//! What is sent: numbered events, their sizes, keys and times.
//!
//! Everything here is a pure function of its settings and a seed: no sockets, no clock, no threads. A producer asks
//! [`schedule`] when the next event is due, [`keys`] and [`size`] what it looks like, and [`event`] to write its bytes;
//! [`input`] holds real events read from a file. The reading side uses the same modules to say what must come back.

pub mod event;
pub mod input;
pub mod keys;
pub mod rng;
pub mod schedule;
pub mod size;
pub mod spread;
