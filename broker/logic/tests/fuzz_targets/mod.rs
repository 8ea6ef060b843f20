//! What is done with hostile bytes of the metadata log: they decode or they don't, and what decodes encodes to something
//! that decodes to the same. Shared by the fuzzer (`schema/fuzz`) and by `metadata_corpus.rs`.

use tackboard_logic::metadata::{decode_command, decode_snapshot, encode_command, encode_snapshot};

/// A target: true if the bytes decode.
pub type Target = fn(&[u8]) -> bool;

/// Every target, with the folder of its corpus.
#[allow(dead_code)] // The fuzzer calls the targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("metadata_command", metadata_command),
    ("metadata_snapshot", metadata_snapshot),
];

/// A record of the metadata log.
pub fn metadata_command(bytes: &[u8]) -> bool {
    let Ok(command) = decode_command(bytes) else {
        return false;
    };
    let mut again = Vec::new();
    encode_command(&command, &mut again).expect("what was decoded keeps to every bound");
    assert_eq!(decode_command(&again).as_ref(), Ok(&command));
    true
}

/// A snapshot of the metadata.
pub fn metadata_snapshot(bytes: &[u8]) -> bool {
    let Ok(machine) = decode_snapshot(bytes) else {
        return false;
    };
    let mut again = Vec::new();
    encode_snapshot(&machine, &mut again);
    let same = decode_snapshot(&again).expect("what was encoded decodes");
    assert_eq!(same.image(), machine.image());
    true
}
