//! What a ledger says of its logs: the meaning of its records, in order.

use std::collections::BTreeMap;

use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{LeaderEpoch, Offset, TimestampMs, TopicPartition};

use crate::shard::interface::{LedgerFile, SegmentBase};

/// Leader epochs that are kept per log; older ones are merged into the oldest kept. Every process start adds one.
pub const EPOCHS_PER_LOG_MAX: usize = 128;

/// A position below which everything was on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenEnd {
    /// The next offset.
    pub offset: Offset,
    /// The segment that ends there.
    pub segment: SegmentBase,
    /// The position in its file.
    pub file_at: u64,
    /// The broker's wall clock at the last append below.
    pub last_append: TimestampMs,
}

/// What the ledgers know of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerLog {
    /// First offset that can be read.
    pub log_start_offset: Offset,
    /// Everything below was on the medium.
    pub durable: Option<ProvenEnd>,
    /// Where each leader epoch begins, in order.
    pub epochs: Vec<(LeaderEpoch, Offset)>,
    /// The segment that was opened last, and the broker's wall clock at its first append.
    pub opened: Option<(SegmentBase, TimestampMs)>,
    /// A truncation that was begun: nothing at or behind it is the log's.
    pub truncate: Option<ProvenEnd>,
    /// A storage fault fenced it, and it was not opened since.
    pub fenced: bool,
}

impl LedgerLog {
    fn apply(&mut self, record: &LedgerRecord) {
        match *record {
            LedgerRecord::Durable {
                next_offset,
                segment_base,
                position,
                last_append,
                ..
            } => {
                self.durable = Some(ProvenEnd {
                    offset: next_offset,
                    segment: SegmentBase(segment_base),
                    file_at: position,
                    last_append,
                });
                self.truncate = None;
                self.fenced = false;
            }
            LedgerRecord::LogStart { offset, .. } => {
                self.log_start_offset = self.log_start_offset.max(offset);
            }
            // One broker's watermark follows from what recovery finds; the record is for replicas.
            LedgerRecord::HighWatermark { .. } => {}
            LedgerRecord::EpochStart {
                epoch,
                start_offset,
                ..
            } => note_epoch(&mut self.epochs, epoch, start_offset),
            LedgerRecord::Truncate {
                next_offset,
                segment_base,
                position,
                ..
            } => self.apply_truncate(next_offset, segment_base, position),
            LedgerRecord::Fenced { .. } => self.fenced = true,
            LedgerRecord::SegmentOpened {
                base_offset,
                first_append,
                ..
            } => self.opened = Some((SegmentBase(base_offset), first_append)),
            LedgerRecord::SegmentSealed {
                base_offset,
                next_offset,
                size_bytes,
                last_append,
                ..
            } => self.apply_sealed(ProvenEnd {
                offset: next_offset,
                segment: SegmentBase(base_offset),
                file_at: size_bytes,
                last_append,
            }),
            LedgerRecord::Removed { .. } => *self = Self::default(),
        }
    }

    fn apply_truncate(&mut self, offset: Offset, segment: Offset, file_at: u64) {
        let end = ProvenEnd {
            offset,
            segment: SegmentBase(segment),
            file_at,
            last_append: self.durable.map_or(TimestampMs(0), |end| end.last_append),
        };
        self.truncate = Some(end);
        if self.durable.is_some_and(|durable| durable.offset > offset) {
            self.durable = Some(end);
        }
        self.opened = self.opened.filter(|(base, _)| *base <= end.segment);
        self.epochs.retain(|(_, start)| *start < offset);
    }

    /// A sealed segment is durable to its end, and so is everything before it.
    fn apply_sealed(&mut self, end: ProvenEnd) {
        if self
            .durable
            .is_none_or(|durable| durable.offset < end.offset)
        {
            self.durable = Some(end);
        }
    }

    /// The records that say the same in short.
    pub(super) fn records(
        &self,
        partition: TopicPartition,
    ) -> impl Iterator<Item = LedgerRecord> + '_ {
        let start = (self.log_start_offset > Offset(0)).then_some(LedgerRecord::LogStart {
            partition,
            offset: self.log_start_offset,
        });
        let epochs =
            self.epochs
                .iter()
                .map(move |(epoch, start_offset)| LedgerRecord::EpochStart {
                    partition,
                    epoch: *epoch,
                    start_offset: *start_offset,
                });
        let opened = self
            .opened
            .map(|(base, first_append)| LedgerRecord::SegmentOpened {
                partition,
                base_offset: base.0,
                first_append,
            });
        let durable = self.durable.map(|end| LedgerRecord::Durable {
            partition,
            next_offset: end.offset,
            segment_base: end.segment.0,
            position: end.file_at,
            last_append: end.last_append,
        });
        // Behind the durable record, which would otherwise end the truncation and the fence.
        let truncate = self.truncate.map(|end| LedgerRecord::Truncate {
            partition,
            next_offset: end.offset,
            segment_base: end.segment.0,
            position: end.file_at,
        });
        let fenced = self.fenced.then_some(LedgerRecord::Fenced {
            partition,
            durable_offset: self.durable.map_or(Offset(0), |end| end.offset),
        });
        (start.into_iter())
            .chain(epochs)
            .chain(opened)
            .chain(durable)
            .chain(truncate)
            .chain(fenced)
    }
}

/// Adds an epoch that begins at `start`: epochs and starts rise; what a later epoch takes over is dropped.
pub fn note_epoch(epochs: &mut Vec<(LeaderEpoch, Offset)>, epoch: LeaderEpoch, start: Offset) {
    if epochs.last().is_some_and(|(last, _)| *last >= epoch) {
        return;
    }
    while epochs
        .last()
        .is_some_and(|(_, last_start)| *last_start >= start)
    {
        epochs.pop();
    }
    if epochs.len() >= EPOCHS_PER_LOG_MAX {
        epochs.remove(1);
    }
    epochs.push((epoch, start));
}

/// Everything the ledgers of a data folder say, merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerImage {
    /// The greatest generation among them; a start writes a greater one.
    pub generation: u64,
    /// By index of the ledger: which of its two files counts. `None`: it was never written.
    pub current: Vec<Option<LedgerFile>>,
    /// By log.
    pub logs: BTreeMap<TopicPartition, LedgerLog>,
}

impl LedgerImage {
    /// Applies one record.
    pub fn apply(&mut self, record: &LedgerRecord) {
        apply(&mut self.logs, record);
    }
}

/// Applies one record to the logs of a ledger.
pub(super) fn apply(logs: &mut BTreeMap<TopicPartition, LedgerLog>, record: &LedgerRecord) {
    let partition = record.partition();
    if let LedgerRecord::Removed { .. } = record {
        logs.remove(&partition);
        return;
    }
    logs.entry(partition).or_default().apply(record);
}

/// What a core's new ledger begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerStart {
    /// Greater than that of every ledger that was there.
    pub generation: u64,
    /// The file to begin in: the one that does not count at present (`A` if neither was ever written).
    pub file: LedgerFile,
    /// The logs of this core, from the image.
    pub logs: Vec<(TopicPartition, LedgerLog)>,
}

impl LedgerStart {
    /// For ledger `index` of a folder whose ledgers say `image`: with the logs for which `owned` holds.
    pub fn from_image(
        image: &LedgerImage,
        index: usize,
        owned: impl Fn(&TopicPartition) -> bool,
    ) -> Self {
        let logs = image.logs.iter().filter(|(partition, _)| owned(partition));
        Self {
            generation: image.generation + 1,
            file: match image.current.get(index).copied().flatten() {
                Some(LedgerFile::A) => LedgerFile::B,
                Some(LedgerFile::B) | None => LedgerFile::A,
            },
            logs: logs
                .map(|(partition, log)| (*partition, log.clone()))
                .collect(),
        }
    }
}
