#![no_main]
//! Feeds the target `checkpoint`.

#[allow(dead_code)]
#[path = "../../tests/fuzz_targets/mod.rs"]
mod fuzz_targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::checkpoint(bytes));
