//! Runs every fuzz target over its corpus and over some thousands of mutants of it.
//!
//! Corpora lie in `fuzz/corpus/<target>/`: seeds that this test wrote (`UPDATE_CORPUS=1` writes them again)
//! and whatever a fuzzer found worth keeping. The mutants are the same in every run; `FUZZ_SEED` and
//! `FUZZ_MUTANTS` (per file) choose others.

mod fuzz_targets;
mod kafka_messages;
mod seeds;

use std::path::{Path, PathBuf};

use fuzz_targets::TARGETS;

/// Mutants made of each file of a corpus.
const MUTANTS_PER_FILE: u64 = 300;

fn corpus_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

/// The files of a corpus in the order of their names.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = corpus_folder(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    };
    files.into_iter().map(read).collect()
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
        Err(_) => default,
    }
}

/// Names the input if the target panics with it.
struct Running<'a> {
    path: &'a Path,
    mutant: Option<(u64, &'a [u8])>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            match self.mutant {
                None => eprintln!("failed with {}", self.path.display()),
                Some((seed, bytes)) => {
                    eprintln!(
                        "failed with mutant {seed} of {}: {:02x?}",
                        self.path.display(),
                        bytes
                    );
                }
            }
        }
    }
}

#[test]
fn corpora_hold_and_so_do_their_mutants() {
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        seeds::write(&corpus_folder);
    }
    let first_seed = number("FUZZ_SEED", 1);
    let mutants = number("FUZZ_MUTANTS", MUTANTS_PER_FILE);
    for (name, target) in TARGETS {
        let files = corpus(name);
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for (index, (path, bytes)) in files.iter().enumerate() {
            let running = Running { path, mutant: None };
            target(bytes);
            drop(running);
            for mutant in 0..mutants {
                let seed = first_seed.wrapping_mul(0x1_0000).wrapping_add(mutant);
                let other = &files[(index + mutant as usize) % files.len()].1;
                let mutated = Mutator::new(seed ^ (index as u64) << 48).mutate(bytes, other);
                let _running = Running {
                    path,
                    mutant: Some((seed, &mutated)),
                };
                target(&mutated);
            }
        }
    }
}

/// Changes bytes as fuzzers do, the same for the same seed.
struct Mutator {
    state: u64,
}

impl Mutator {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 if there is none.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut mutated = bytes.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut mutated, other);
        }
        mutated
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len());
        let length = self.below(bytes.len() - at).min(64);
        match self.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[at] = self.next() as u8,
            2 => self.overwrite(bytes, at),
            3 => drop(bytes.drain(at..at + length)),
            4 => bytes.truncate(at),
            5 => {
                let copy = bytes[at..at + length].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let from = self.below(other.len());
                let length = self.below(other.len() - from).min(256);
                let end = (at + length).min(bytes.len());
                bytes.splice(at..end, other[from..from + length].iter().copied());
            }
        }
    }

    /// Puts a number at the edge of some range over the bytes, in either byte order.
    fn overwrite(&mut self, bytes: &mut [u8], at: usize) {
        const EDGES: [i64; 10] = [
            0,
            1,
            -1,
            0x7f,
            0xff,
            0x7fff,
            i32::MAX as i64,
            u32::MAX as i64,
            i32::MIN as i64,
            i64::MIN,
        ];
        let edge = EDGES[self.below(EDGES.len())];
        let width = 1 << self.below(4);
        let little = edge.to_le_bytes();
        let big = edge.to_be_bytes();
        let number = if self.below(2) == 0 {
            &little[..width]
        } else {
            &big[8 - width..]
        };
        for (byte, new) in bytes.iter_mut().skip(at).zip(number) {
            *byte = *new;
        }
    }
}
