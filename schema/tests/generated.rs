//! The generated code is that of the definition beside it.
//!
//! `schema/regenerate --check` compares the code itself, but needs the compiler; this needs nothing.

use std::path::Path;

#[test]
fn the_generated_code_is_of_this_definition() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR"));
    let definition = std::fs::read(schema.join("flatbuffers/native.fbs")).unwrap();
    let stored = std::fs::read_to_string(schema.join("src/generated/native.fbs.crc32")).unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(&definition);
    assert_eq!(
        format!("{:08x}", crc.sum()),
        stored.trim(),
        "native.fbs has changed since code was generated from it; run schema/regenerate"
    );
}
