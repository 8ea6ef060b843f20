//! What people and programs get to see: the screen, the JSON object, saved files, the live line.

pub mod bars;
pub mod json;
pub mod number;
pub mod pictures;
pub mod progress;
pub mod results;
pub mod save;
pub mod screen;

#[cfg(test)]
pub mod report_test;
