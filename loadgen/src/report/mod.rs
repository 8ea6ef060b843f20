//! What people and programs get to see: the screen, the JSON object, saved files, the live line.

pub mod bars;
pub mod number;
