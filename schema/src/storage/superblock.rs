//! The superblock: to whom a data folder belongs, and how the last run left it.
//!
//! Two files of 4096 bytes each, written in turn: [`Superblock::copy`] says which of them a sequence number
//! goes to, so a torn write leaves the other. [`read`] takes the newer one.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 16 bytes | `TKBSUPER`, version 1, CRC-32C over all 4096 bytes |
//! | 16 | u64 | sequence number: one more at each write |
//! | 24 | 16 bytes | cluster id |
//! | 40 | 16 bytes | directory id |
//! | 56 | 16 bytes | boot id of the machine at the last write |
//! | 72 | i32 | broker id |
//! | 76 | u8 | 1: the last run ended cleanly; 0: it did not, or still goes on |
//! | 77 | 3 bytes | zero |
//! | 80 | u64 | broker epoch: counts the runs on this folder |
//! | 88 | u64 | broker epoch of the run whose ledgers prove what is durable; counts only with the next field |
//! | 96 | u16 | how many ledgers that run has, one a core; 0: no run has recovered its logs yet |
//! | 98 | … | zero |
//!
//! Invariants:
//! 1. An unreadable copy is never taken for an absent one: a folder with one is not fresh.
//! 2. If one copy is unreadable, the other's clean flag is not believed, since it may be the older one.

use super::envelope::{BLOCK_LENGTH, ENVELOPE_LENGTH, Stored, open, seal};
use crate::{BrokerId, DecodeError};

const LETTERS: &[u8; 8] = b"TKBSUPER";
const VERSION: u32 = 1;

/// Names of the two files, in the data folder.
pub const FILE_NAMES: [&str; 2] = ["superblock.a", "superblock.b"];

/// What a superblock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// One more at each write; the greater of the two copies counts.
    pub sequence: u64,
    /// The cluster that the broker belongs to.
    pub cluster_id: [u8; 16],
    /// Drawn at random when the folder was first used.
    pub directory_id: [u8; 16],
    /// The machine's boot id when this was written: tells a crash of the process from one of the machine.
    pub boot_id: [u8; 16],
    /// The broker.
    pub broker_id: BrokerId,
    /// Everything was synced, and nothing was appended since.
    pub is_clean: bool,
    /// Counts the runs on this folder.
    pub broker_epoch: u64,
    /// The run whose ledgers prove what is durable.
    pub ledger_epoch: u64,
    /// How many ledgers it has, one a core; 0: no run has recovered its logs yet.
    pub ledger_count: u16,
}

impl Superblock {
    /// Which of the two files this is written to: an index into [`FILE_NAMES`].
    pub fn copy(&self) -> usize {
        (self.sequence % 2) as usize
    }

    /// The whole file.
    pub fn encode(&self) -> [u8; BLOCK_LENGTH] {
        let mut bytes = [0; BLOCK_LENGTH];
        let mut at = ENVELOPE_LENGTH;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.sequence.to_le_bytes());
        put(&self.cluster_id);
        put(&self.directory_id);
        put(&self.boot_id);
        put(&self.broker_id.0.to_le_bytes());
        put(&[u8::from(self.is_clean), 0, 0, 0]);
        put(&self.broker_epoch.to_le_bytes());
        put(&self.ledger_epoch.to_le_bytes());
        put(&self.ledger_count.to_le_bytes());
        seal(&mut bytes, LETTERS, VERSION);
        bytes
    }

    /// Reads one copy. `None`: there is no such file.
    pub fn read_copy(bytes: Option<&[u8]>) -> Stored<Self> {
        Stored::read(bytes, Self::decode)
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() != BLOCK_LENGTH {
            let error = DecodeError::corrupt("superblock has the wrong length", 0);
            return Err(error.with_detail(format_args!(
                "{} bytes found, {BLOCK_LENGTH} expected",
                bytes.len()
            )));
        }
        let mut cursor = open(bytes, LETTERS, VERSION)?;
        let superblock = Self {
            sequence: cursor.u64_le("sequence of a superblock")?,
            cluster_id: cursor.array("cluster id of a superblock")?,
            directory_id: cursor.array("directory id of a superblock")?,
            boot_id: cursor.array("boot id of a superblock")?,
            broker_id: BrokerId(cursor.i32_le("broker id of a superblock")?),
            is_clean: match cursor.array("clean flag of a superblock")? {
                [0, 0, 0, 0] => false,
                [1, 0, 0, 0] => true,
                flags => {
                    let error =
                        DecodeError::invalid("clean flag of a superblock", cursor.position() - 4);
                    return Err(error.with_detail(format_args!("found {flags:?}")));
                }
            },
            broker_epoch: cursor.u64_le("broker epoch of a superblock")?,
            ledger_epoch: cursor.u64_le("ledger epoch of a superblock")?,
            ledger_count: cursor.u16_le("ledger count of a superblock")?,
        };
        Ok(superblock)
    }
}

/// Reads both copies, in the order of [`FILE_NAMES`], and settles on one.
pub fn read(copies: [Option<&[u8]>; 2]) -> Stored<Superblock> {
    let [a, b] = copies.map(Superblock::read_copy);
    match (a, b) {
        (Stored::Empty, Stored::Empty) => Stored::Empty,
        (Stored::Present(only), Stored::Empty) | (Stored::Empty, Stored::Present(only)) => {
            Stored::Present(only)
        }
        (Stored::Present(a), Stored::Present(b)) => newer(a, b),
        (Stored::Present(other), Stored::Unreadable(_))
        | (Stored::Unreadable(_), Stored::Present(other)) => Stored::Present(Superblock {
            is_clean: false,
            ..other
        }),
        (Stored::Unreadable(error), _) | (_, Stored::Unreadable(error)) => {
            Stored::Unreadable(error)
        }
    }
}

fn newer(a: Superblock, b: Superblock) -> Stored<Superblock> {
    if (a.cluster_id, a.directory_id, a.broker_id) != (b.cluster_id, b.directory_id, b.broker_id) {
        let what = "the two copies of the superblock belong to different folders";
        return Stored::Unreadable(DecodeError::corrupt(what, 24));
    }
    Stored::Present(if a.sequence > b.sequence { a } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock(sequence: u64) -> Superblock {
        Superblock {
            sequence,
            cluster_id: [1; 16],
            directory_id: [2; 16],
            boot_id: [3; 16],
            broker_id: BrokerId(4),
            is_clean: true,
            broker_epoch: 5,
            ledger_epoch: 4,
            ledger_count: 2,
        }
    }

    #[test]
    fn reads_the_newer_copy() {
        let (older, newer) = (superblock(6), superblock(7));
        assert_eq!((older.copy(), newer.copy()), (0, 1));
        let (a, b) = (older.encode(), newer.encode());
        assert_eq!(read([Some(&a), Some(&b)]), Stored::Present(newer));
        assert_eq!(read([Some(&a), None]), Stored::Present(older));
        assert_eq!(read([None, Some(&b)]), Stored::Present(newer));
    }

    #[test]
    fn nothing_written_is_empty_and_only_that() {
        let zeros = [0; BLOCK_LENGTH];
        assert_eq!(read([None, None]), Stored::Empty);
        assert_eq!(read([Some(&[]), Some(&zeros)]), Stored::Empty);
        let junk = [0, 0, 7];
        assert!(matches!(read([Some(&junk), None]), Stored::Unreadable(_)));
        assert!(matches!(read([None, Some(&junk)]), Stored::Unreadable(_)));
        assert!(matches!(
            read([Some(&junk), Some(&junk)]),
            Stored::Unreadable(_)
        ));
    }

    #[test]
    fn a_damaged_copy_leaves_the_other_but_not_its_clean_flag() {
        let a = superblock(6).encode();
        let mut b = superblock(7).encode();
        b[4000] = 1;
        let expected = Superblock {
            is_clean: false,
            ..superblock(6)
        };
        assert_eq!(read([Some(&a), Some(&b)]), Stored::Present(expected));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = superblock(6).encode();
        for bit in 0..BLOCK_LENGTH * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(Superblock::read_copy(Some(&bad)), Stored::Unreadable(_)),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn copies_of_different_folders_are_refused() {
        let stranger = Superblock {
            directory_id: [9; 16],
            ..superblock(7)
        };
        let read = read([Some(&superblock(6).encode()), Some(&stranger.encode())]);
        assert!(matches!(read, Stored::Unreadable(_)));
    }

    #[test]
    fn a_newer_format_is_unreadable_not_empty() {
        let mut bytes = superblock(6).encode();
        seal(&mut bytes, LETTERS, VERSION + 1);
        let Stored::Unreadable(error) = Superblock::read_copy(Some(&bytes)) else {
            panic!("a newer format was read")
        };
        assert_eq!(
            error.to_string(),
            "version of a file is not one that this program reads at byte 8 (2 found, 1 expected)"
        );
    }
}
