//! The code that is checked in is what the definitions give.

use std::{fs, path::Path};

#[test]
fn the_generated_code_is_of_these_definitions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let files = tackboard_kafka_generator::generate(&root).unwrap();
    for file in &files {
        let found = fs::read_to_string(root.join(&file.path)).unwrap_or_default();
        assert!(
            found == file.text,
            "{}: stale; run schema/regenerate",
            file.path.display()
        );
    }
    let folder = root.join("schema/src/kafka/generated");
    let left_over: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| !files.iter().any(|file| file.path.ends_with(name)))
        .collect();
    assert!(left_over.is_empty(), "made from nothing: {left_over:?}");
}
