//! What is measured: latencies, rates over time, CPU time, also what the host took, and memory.
//!
//! Each load core records into histograms of its own and hands over what it has when it is asked; they are merged on
//! reading. Nothing is shared while events flow.

pub mod clock;
pub mod hgrm;
pub mod latency;
pub mod process;
pub mod steal;
pub mod timeline;
