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
    let header = |bytes: &[u8]| match LedgerHeader::read((!bytes.is_empty()).then_some(bytes)) {
        Stored::Unreadable(_) if !was_in_use(bytes) => Stored::Empty,
        header => header,
    };
    let (index, header) = match choose([header(files.a), header(files.b)]) {
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

/// Whether a file ever counted. A crash may leave a header half written, which is nothing to worry about as long as no
/// block was added behind it: the other file counts, or the ledgers of the run before.
fn was_in_use(bytes: &[u8]) -> bool {
    let mut blocks = bytes.chunks_exact(BLOCK_LENGTH).skip(1);
    blocks.any(LedgerBlock::is_of_ledger_in_use)
}
