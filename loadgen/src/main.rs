//! The load generator: drives a broker, measures it, and checks every event that comes back.
//!
//! Start reading at [`cli`] (arguments to a plan), then [`workload`] (what is sent), [`verdict`] (what must come back),
//! [`drive`] (who sends and reads it), [`report`] (what is shown).

mod cli;
mod machine;
mod measure;
mod report;
mod verdict;
mod workload;

fn main() {}
