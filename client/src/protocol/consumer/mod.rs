//! The consumer without its sockets: positions, what to fetch when, what may be handed out.
//!
//! Start reading at [`ConsumerMachine`].

mod answers;
mod lane;
mod machine;

pub use machine::ConsumerMachine;
pub(crate) use machine::Tag;
