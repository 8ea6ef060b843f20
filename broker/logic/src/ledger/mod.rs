//! What proves how far each log was durable.

use std::collections::BTreeMap;

use tackboard_schema::{LeaderEpoch, Offset, TopicPartition};

use crate::shard::interface::SegmentBase;

/// What the ledgers know of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerLog {
    /// First offset that can be read.
    pub log_start_offset: Offset,
    /// Everything below was on the medium.
    pub durable: Option<ProvenEnd>,
    /// Where each leader epoch begins, in order.
    pub epochs: Vec<(LeaderEpoch, Offset)>,
    /// A storage fault had fenced it.
    pub fenced: bool,
}

/// A position below which everything was on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenEnd {
    /// The next offset.
    pub offset: Offset,
    /// The segment that ends there.
    pub segment: SegmentBase,
    /// The position in its file.
    pub file_at: u64,
}

/// Everything the ledgers of a data folder say, merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerImage {
    /// The greatest generation among them; the next start writes a greater one.
    pub generation: u64,
    /// By log.
    pub logs: BTreeMap<TopicPartition, LedgerLog>,
}

/// What a core's new ledger begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerStart {
    /// Greater than that of every ledger that was there.
    pub generation: u64,
    /// The logs of this core.
    pub logs: Vec<(TopicPartition, LedgerLog)>,
}

/// The two files of one core's ledger, as read; empty where a file is absent.
#[derive(Clone, Copy, Debug)]
pub struct LedgerFiles<'a> {
    /// `ledger/<n>.a`
    pub a: &'a [u8],
    /// `ledger/<n>.b`
    pub b: &'a [u8],
}

/// A ledger that cannot be read: the logs of that core are unproven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ledger {ledger}: {what}")]
pub struct LedgerFault {
    /// Index in the list of ledgers.
    pub ledger: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// Merges the ledgers of a data folder, whatever number of cores wrote them.
pub fn replay(_ledgers: &[LedgerFiles<'_>]) -> Result<LedgerImage, LedgerFault> {
    Ok(LedgerImage::default())
}
