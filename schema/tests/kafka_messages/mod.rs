//! Messages for tests: random ones of every API and version.

include!("every_api.rs");
pub(crate) use for_every_api;

#[rustfmt::skip]
mod generated;
mod invent;

pub use invent::{Extent, Invent, Inventor};
