//! Whether everything that was acknowledged came back, once, in order and unchanged.
//!
//! The sending side keeps an [`acked::AckedLog`] and the reading side a [`read::ReadLog`] for each producer and partition;
//! nothing is shared while a run lasts. When it is over, [`judge`] compares the two. Both are ranges of sequence numbers,
//! so their size follows from the number of faults and not from the number of events, and the answer is exact.
//!
//! Invariants:
//! 1. An event counts as read back only once and only if it was acknowledged.
//! 2. `acknowledged = read_back + lost`.
//! 3. Every counted fault is named by partition, and by offset where one is known, up to [`faults::NAMED_MAX`] of them.

pub mod acked;
pub mod checker;
pub mod faults;
pub mod judge;
pub mod ranges;
pub mod read;

#[cfg(test)]
mod judge_test;
#[cfg(test)]
mod planted_test;
