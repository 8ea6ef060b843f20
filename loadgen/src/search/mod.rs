//! The highest rate at which a broker keeps its latency.
//!
//! [`machine`] says which rate is tried next, [`probe`] what a tried rate showed, [`table`] shows all of it. Nothing here
//! runs anything; `command/search.rs` does.

pub mod machine;
pub mod probe;
pub mod table;
