#![no_main]
//! Feeds the target `metadata_command`.

#[allow(dead_code)]
#[path = "../../../broker/logic/tests/fuzz_targets/mod.rs"]
mod fuzz_targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_targets::metadata_command(bytes);
});
