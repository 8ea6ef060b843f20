//! The heads of the native protocol: the tables generated from `flatbuffers/native.fbs`, a verified way in
//! and a reusable way out.
//!
//! Owns: which bounds a head must keep to before anything of it is read, and how its enumerations map to
//! ours. Not here: the frame around a head ([`crate::frame`]).
//!
//! Invariants: no table is made from outside bytes except by [`read_head`]; an enumeration's value that is
//! not known is an error, never a default.

#[allow(
    unused_imports,
    dead_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    rust_2018_idioms,
    unsafe_op_in_unsafe_fn,
    mismatched_lifetime_syntaxes
)]
#[rustfmt::skip]
#[path = "../generated/native_generated.rs"]
mod generated;

mod encode;
mod levels;
mod read;

pub use encode::{
    FetchEntryHead, FetchRequestHead, FetchResultHead, HeadBuilder, ProduceEntryHead,
    ProduceRequestHead, ProduceResultHead,
};
pub use generated::tackboard::native::*;
pub use levels::{acks_from_head, acks_to_head, durability_from_head, durability_to_head};
pub use read::{HEAD_DEPTH_MAX, HEAD_TABLES_MAX, read_head};
