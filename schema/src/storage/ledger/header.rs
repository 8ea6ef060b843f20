//! The first 4096 bytes of a ledger, and the choice between its two files.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 16 bytes | `TKBLEDGR`, version 1, CRC-32C over all 4096 bytes |
//! | 16 | u64 | generation: one more each time the ledger moves to the other file |
//! | 24 | u64 | broker epoch of the run that wrote it |
//! | 32 | 16 bytes | directory id, as in the superblock |
//! | 48 | u16 | core |
//! | 50 | … | zero |

use crate::storage::envelope::{BLOCK_LENGTH, ENVELOPE_LENGTH, Stored, open, seal};
use crate::{CoreId, DecodeError};

const LETTERS: &[u8; 8] = b"TKBLEDGR";
const VERSION: u32 = 1;

/// What stands in front of a ledger's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerHeader {
    /// Its blocks carry the same number.
    pub generation: u64,
    /// The run that wrote it. When the ledgers of several cores speak of one partition, since the number of
    /// cores changed between runs, the later run's word counts.
    pub broker_epoch: u64,
    /// The folder it belongs to.
    pub directory_id: [u8; 16],
    /// The core whose ledger it is.
    pub core: CoreId,
}

impl LedgerHeader {
    /// The header's whole block.
    pub fn encode(&self) -> [u8; BLOCK_LENGTH] {
        let mut bytes = [0; BLOCK_LENGTH];
        let mut at = ENVELOPE_LENGTH;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.generation.to_le_bytes());
        put(&self.broker_epoch.to_le_bytes());
        put(&self.directory_id);
        put(&self.core.0.to_le_bytes());
        seal(&mut bytes, LETTERS, VERSION);
        bytes
    }

    /// Reads a ledger's first block. `None`: there is no such file. Bytes behind the block are not looked at.
    pub fn read(bytes: Option<&[u8]>) -> Stored<Self> {
        let block = bytes.map(|bytes| &bytes[..bytes.len().min(BLOCK_LENGTH)]);
        Stored::read(block, Self::decode)
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < BLOCK_LENGTH {
            let error = DecodeError::truncated("header of a ledger", 0);
            return Err(error.with_detail(format_args!(
                "{BLOCK_LENGTH} bytes wanted, {} left",
                bytes.len()
            )));
        }
        let mut cursor = open(bytes, LETTERS, VERSION)?;
        Ok(Self {
            generation: cursor.u64_le("generation of a ledger")?,
            broker_epoch: cursor.u64_le("broker epoch of a ledger")?,
            directory_id: cursor.array("directory id of a ledger")?,
            core: CoreId(cursor.u16_le("core of a ledger")?),
        })
    }
}

/// Which of a core's two files counts: its index (0 for `.a`, 1 for `.b`) and its header.
///
/// The greater generation wins. A file whose header was never written is one that a shortening did not
/// finish. A header that cannot be read makes the ledger unreadable, whatever the other file says, because
/// it may have been the newer one.
pub fn choose(headers: [Stored<LedgerHeader>; 2]) -> Stored<(usize, LedgerHeader)> {
    match headers {
        [Stored::Unreadable(error), _] | [_, Stored::Unreadable(error)] => {
            Stored::Unreadable(error)
        }
        [Stored::Empty, Stored::Empty] => Stored::Empty,
        [Stored::Present(a), Stored::Empty] => Stored::Present((0, a)),
        [Stored::Empty, Stored::Present(b)] => Stored::Present((1, b)),
        [Stored::Present(a), Stored::Present(b)] if a.generation == b.generation => {
            let error = DecodeError::corrupt("two files of a ledger have one generation", 16);
            Stored::Unreadable(error.with_detail(format_args!("generation {}", a.generation)))
        }
        [Stored::Present(a), Stored::Present(b)] if a.generation > b.generation => {
            Stored::Present((0, a))
        }
        [Stored::Present(_), Stored::Present(b)] => Stored::Present((1, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(generation: u64) -> LedgerHeader {
        LedgerHeader {
            generation,
            broker_epoch: 8,
            directory_id: [7; 16],
            core: CoreId(3),
        }
    }

    #[test]
    fn reads_what_it_writes() {
        let mut bytes = header(1).encode().to_vec();
        assert_eq!(LedgerHeader::read(Some(&bytes)), Stored::Present(header(1)));
        bytes.extend_from_slice(&[9; 100]);
        assert_eq!(LedgerHeader::read(Some(&bytes)), Stored::Present(header(1)));
        bytes[4095] = 1;
        assert!(matches!(
            LedgerHeader::read(Some(&bytes)),
            Stored::Unreadable(_)
        ));
        assert!(matches!(
            LedgerHeader::read(Some(&header(1).encode()[..4095])),
            Stored::Unreadable(_)
        ));
        assert_eq!(LedgerHeader::read(None), Stored::Empty);
        assert_eq!(LedgerHeader::read(Some(&[0; 4096])), Stored::Empty);
    }

    #[test]
    fn the_greater_generation_counts_and_damage_counts_most() {
        let present = |generation| Stored::Present(header(generation));
        let damaged = || Stored::Unreadable(DecodeError::corrupt("x", 0));
        assert_eq!(
            choose([present(1), present(2)]),
            Stored::Present((1, header(2)))
        );
        assert_eq!(
            choose([present(3), present(2)]),
            Stored::Present((0, header(3)))
        );
        assert_eq!(
            choose([Stored::Empty, present(2)]),
            Stored::Present((1, header(2)))
        );
        assert_eq!(choose([Stored::Empty, Stored::Empty]), Stored::Empty);
        assert!(matches!(
            choose([present(1), damaged()]),
            Stored::Unreadable(_)
        ));
        assert!(matches!(
            choose([damaged(), Stored::Empty]),
            Stored::Unreadable(_)
        ));
        assert!(matches!(
            choose([present(1), present(1)]),
            Stored::Unreadable(_)
        ));
    }
}
