//! Requests as a whole: whom an answer is owed to, what is asked of which core, and what the answer is made of.
//!
//! - [`acks`], [`parked`]: appends and fetches that wait, on the core that owns the log.
//! - [`by_core`], [`gather`], [`fetch`], [`produce`]: requests that several cores answer together, on the core whose
//!   connection they came from.
//! - [`calls`], [`entries`], [`account`], [`read_buffer`]: what a core may ask of the others and hold, and a connection
//!   of its core.
//! - [`connections`]: who may connect at all; [`file_room`]: whether there are inodes for new partitions.
//! - [`in_order`]: answers that may not overtake each other.
//! - [`lookup`], [`producer_ids`]: what takes several steps to answer.

pub mod account;
pub mod acks;
pub mod by_core;
pub mod calls;
pub mod connections;
pub mod entries;
pub mod fetch;
pub mod file_room;
pub mod gather;
pub mod in_order;
pub mod lookup;
pub mod parked;
pub mod produce;
pub mod producer_ids;
pub mod read_buffer;
