//! Reads the ledgers of a data folder, whatever number of cores wrote them.

use std::collections::BTreeMap;

use tackboard_schema::storage::ledger::{LedgerBlock, LedgerHeader, LedgerScan, choose};
use tackboard_schema::storage::{BLOCK_LENGTH, Stored};
use tackboard_schema::{DecodeError, TopicPartition};

use super::image::{LedgerImage, LedgerLog, apply};
use crate::shard::interface::LedgerFile;

/// The two files of one core's ledger, as read; empty where a file is absent.
#[derive(Clone, Copy, Debug)]
pub struct LedgerFiles<'a> {
    /// `ledger/<n>.a`
    pub a: &'a [u8],
    /// `ledger/<n>.b`
    pub b: &'a [u8],
}

/// A ledger that cannot be read: nothing is proven of the logs of that core.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ledger {ledger} cannot be read: {error}")]
pub struct LedgerFault {
    /// Index in the list of ledgers.
    pub ledger: usize,
    /// What is wrong.
    pub error: DecodeError,
}

/// Merges the ledgers. If several speak of one log, since the number of cores changed between runs, the latest run's
/// word counts.
///
/// # Errors
///
/// If one of them is there and cannot be read, or a block of it that was on the medium is damaged. A torn end is no
/// error.
pub fn replay(ledgers: &[LedgerFiles<'_>]) -> Result<LedgerImage, LedgerFault> {
    let mut image = LedgerImage::default();
    let mut words: BTreeMap<TopicPartition, (u64, u64)> = BTreeMap::new();
    for (ledger, files) in ledgers.iter().enumerate() {
        let read = replay_one(files).map_err(|error| LedgerFault { ledger, error })?;
        let Some((file, header, logs)) = read else {
            image.current.push(None);
            continue;
        };
        image.current.push(Some(file));
        image.generation = image.generation.max(header.generation);
        let word = (header.broker_epoch, header.generation);
        for (partition, log) in logs {
            let latest = words.get(&partition).is_none_or(|known| *known < word);
            if latest {
                words.insert(partition, word);
                image.logs.insert(partition, log);
            }
        }
    }
    Ok(image)
}

type OneLedger = (
    LedgerFile,
    LedgerHeader,
    BTreeMap<TopicPartition, LedgerLog>,
);

fn replay_one(files: &LedgerFiles<'_>) -> Result<Option<OneLedger>, DecodeError> {
    let (index, header) = match choose(headers(files)) {
        Stored::Empty => return Ok(None),
        Stored::Unreadable(error) => return Err(error),
        Stored::Present(chosen) => chosen,
    };
    let (file, bytes) = match index {
        0 => (LedgerFile::A, files.a),
        _ => (LedgerFile::B, files.b),
    };
    let mut logs = BTreeMap::new();
    let mut scan = LedgerScan::new(header.generation);
    for bytes in bytes.chunks(BLOCK_LENGTH).skip(1) {
        if let Some(block) = scan.block(bytes)? {
            block.records().for_each(|record| apply(&mut logs, &record));
        }
    }
    Ok(Some((file, header, logs)))
}

/// Both headers. One that is not readable because its first write was torn counts as never written: until that write is
/// proven nothing is appended behind it, and the other file, or an earlier run's ledger, still counts.
fn headers(files: &LedgerFiles<'_>) -> [Stored<LedgerHeader>; 2] {
    let read = |bytes: &[u8]| LedgerHeader::read((!bytes.is_empty()).then_some(bytes));
    match [read(files.a), read(files.b)] {
        [Stored::Unreadable(error), other] if !is_unreadable(&other) => {
            let first = torn_or_damaged(files.a, &other, error);
            [first, other]
        }
        [other, Stored::Unreadable(error)] if !is_unreadable(&other) => {
            let second = torn_or_damaged(files.b, &other, error);
            [other, second]
        }
        headers => headers,
    }
}

fn is_unreadable(header: &Stored<LedgerHeader>) -> bool {
    matches!(header, Stored::Unreadable(_))
}

fn torn_or_damaged(
    bytes: &[u8],
    other: &Stored<LedgerHeader>,
    error: DecodeError,
) -> Stored<LedgerHeader> {
    // What the file held before it was written anew is older than the other file.
    let newer_than = match other {
        Stored::Present(header) => header.generation,
        Stored::Empty | Stored::Unreadable(_) => 0,
    };
    let was_appended_to =
        (0..)
            .zip(bytes.chunks_exact(BLOCK_LENGTH).skip(1))
            .any(|(sequence, block)| {
                let mut generation = [0; 8];
                generation.copy_from_slice(&block[8..16]);
                let generation = u64::from_le_bytes(generation);
                let block = LedgerBlock::read(block, generation, sequence);
                generation > newer_than && block.is_ok_and(|block| block.blocks_durable() > 0)
            });
    if was_appended_to {
        Stored::Unreadable(error)
    } else {
        Stored::Empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::CoreId;
    use tackboard_schema::storage::ledger::BlockBuilder;

    fn file(generation: u64, blocks_durable: &[u64]) -> Vec<u8> {
        let header = LedgerHeader {
            generation,
            broker_epoch: 1,
            directory_id: [0; 16],
            core: CoreId(0),
        };
        let mut bytes = header.encode().to_vec();
        for (sequence, durable) in (0..).zip(blocks_durable) {
            let mut block = [0; BLOCK_LENGTH];
            BlockBuilder::new().finish_into(generation, sequence, *durable, &mut block);
            bytes.extend_from_slice(&block);
        }
        bytes
    }

    fn generation(a: &[u8], b: &[u8]) -> Option<u64> {
        let image = replay(&[LedgerFiles { a, b }]).ok()?;
        Some(image.generation)
    }

    #[test]
    fn a_torn_header_leaves_the_other_file_to_count() {
        let old = file(4, &[0, 1, 2]);
        let mut new = file(5, &[0, 0]);
        assert_eq!(generation(&old, &new), Some(5));
        new[3_000] = 1;
        assert_eq!(generation(&old, &new), Some(4));
        assert_eq!(generation(&new, &old), Some(4));
        assert_eq!(generation(&[], &new), Some(0), "never begun");
    }

    #[test]
    fn a_damaged_header_of_a_ledger_in_use_is_no_fresh_start() {
        let old = file(4, &[0, 1]);
        let mut new = file(5, &[0, 1]);
        new[20] ^= 1;
        assert_eq!(generation(&old, &new), None);
        assert_eq!(generation(&new, &[]), None);
    }

    #[test]
    fn what_was_there_before_a_torn_header_is_no_sign_of_use() {
        let current = file(4, &[0, 1]);
        let mut rewritten = file(3, &[0, 1, 2]);
        rewritten[..BLOCK_LENGTH].copy_from_slice(&file(5, &[])[..BLOCK_LENGTH]);
        rewritten[600] = 1;
        assert_eq!(generation(&current, &rewritten), Some(4));
    }
}
