//! What the load generator and the comparisons share when they leave figures behind: the pictures, what the system says
//! about the machine, and where a checkout keeps its results.
//!
//! Not here: what was measured, and any text about it, which each program has its own.

pub mod checkout;
pub mod machine;
pub mod plot;
