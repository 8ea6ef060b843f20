//! From arguments and scenario files to a plan that can be carried out, or to every fault found in them.
//!
//! [`settings`] is the one table of settings of a run: it gives the flags, their help, and the keys of a scenario file, so
//! the two can't differ. Nothing is started before the whole plan is found to be good.

pub mod arguments;
pub mod fault;
pub mod plan;
pub mod quantity;
pub mod scenario;
pub mod settings;
