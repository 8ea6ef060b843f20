//! The only way between the control thread and the cores: message types, channels and counters.

pub mod metrics;
