//! Two sets of results, and whether one is worse than the other.
//!
//! [`result`] reads what a run saved, [`figure`] says which figures of it count and which way is better, [`statistic`] tells
//! a difference from noise, [`comparison`] judges, [`table`] shows. Nothing here touches a file; `command/compare.rs` does.

pub mod comparison;
pub mod figure;
pub mod result;
pub mod statistic;
pub mod table;

#[cfg(test)]
mod compare_test;
