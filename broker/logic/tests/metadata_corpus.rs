//! Runs the fuzz targets of the metadata log's records over their corpora, and over mutants of them.
//!
//! The corpora lie beside those of the schema, in `schema/fuzz/corpus/metadata_command` and `…/metadata_snapshot`;
//! `UPDATE_CORPUS=1` writes their seeds again. The mutants are the same in every run.

mod fuzz_targets;

use std::path::{Path, PathBuf};

use tackboard_logic::metadata::{
    ClusterId, Command, CreateTopic, Endpoint, IncarnationId, Machine, RegisterBroker,
    encode_command, encode_snapshot,
};
use tackboard_schema::{BrokerId, TimestampMs, TopicId};

/// Mutants made of each file of a corpus.
const MUTANTS_PER_FILE: u64 = 2000;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schema/fuzz/corpus")
        .join(target)
}

fn commands() -> Vec<Command> {
    let endpoint = |port| Endpoint {
        host: "127.0.0.1".into(),
        port,
    };
    vec![
        Command::RegisterBroker(RegisterBroker {
            broker: BrokerId(1),
            incarnation: IncarnationId([7; 16]),
            any_core: endpoint(7400),
            cores: vec![endpoint(7401), endpoint(7402)],
            partitions_per_core_max: 1000,
        }),
        Command::CreateTopic(CreateTopic {
            name: "flights".into(),
            topic_id: TopicId([9; 16]),
            partitions: 6,
            replication_factor: 1,
            configs: vec![
                ("retention.ms".into(), "1000".into()),
                ("acks.min".into(), "1".into()),
            ],
            at: TimestampMs(1_796_000_000_000),
        }),
        Command::AllocateProducerIds {
            broker: BrokerId(1),
        },
        Command::DeleteTopic {
            name: "flights".into(),
        },
    ]
}

/// One seed for each command, and a snapshot of the state after each.
fn write_seeds() {
    let mut machine = Machine::new(ClusterId([5; 16]));
    for (target, _) in fuzz_targets::TARGETS {
        std::fs::create_dir_all(folder(target)).unwrap();
    }
    for (version, command) in (1..).zip(commands()) {
        let mut bytes = Vec::new();
        encode_command(&command, &mut bytes).unwrap();
        std::fs::write(
            folder("metadata_command").join(format!("seed-{version}")),
            &bytes,
        )
        .unwrap();
        machine.apply(version, command).unwrap();
        let mut bytes = Vec::new();
        encode_snapshot(&machine, &mut bytes);
        std::fs::write(
            folder("metadata_snapshot").join(format!("seed-{version}")),
            &bytes,
        )
        .unwrap();
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn mutant(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = bytes.to_vec();
    for _ in 0..=next(&mut state) % 3 {
        let at = (next(&mut state) % (bytes.len() as u64 + 1)) as usize;
        let value = next(&mut state) as u8;
        match next(&mut state) % 5 {
            0 if at < bytes.len() => bytes[at] ^= 1 << (value % 8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][usize::from(value % 5)],
            2 => bytes.insert(at, value),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

#[test]
fn corpora_hold_and_so_do_their_mutants() {
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        write_seeds();
    }
    for (name, target) in fuzz_targets::TARGETS {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(
            files.len() >= commands().len(),
            "the corpus of {name} is incomplete"
        );
        for path in files {
            let bytes = std::fs::read(&path).unwrap();
            assert!(target(&bytes), "{} does not decode", path.display());
            for seed in 0..MUTANTS_PER_FILE {
                target(&mutant(&bytes, seed));
            }
        }
    }
}
