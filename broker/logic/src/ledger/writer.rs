//! Records what is proven, and keeps the ledger short.
//!
//! One write is in flight at a time; what is recorded meanwhile goes with the next. A ledger that has grown moves to
//! the other file: its content in short form under the next generation, synced, then the header, synced, which is
//! the moment from which the new file counts. Until then the old one does.
//!
//! Owns: the image of what is recorded, and where the ledger ends. Not here: what is to be recorded, and when.
//!
//! Invariants: a record is given to this only after what it says is proven; a block says of earlier ones that they
//! are durable only after their completion.

use std::collections::BTreeMap;

use tackboard_schema::storage::BLOCK_LENGTH;
use tackboard_schema::storage::ledger::{BlockBuilder, LedgerHeader, LedgerRecord};
use tackboard_schema::{CoreId, TopicPartition};

use super::image::{LedgerLog, LedgerStart, apply};
use crate::log::limits::IO_TIMEOUT_US;
use crate::shard::interface::{Effect, Effects, LedgerFile, StorageFault};

/// Blocks that a ledger may have before it is moved: 4 MiB.
pub const LEDGER_BLOCKS_MIN: u64 = 1024;

/// Bytes that each of the two files of a ledger keeps allocated, so that a full disk does not stop the core: what a ledger
/// has when it is moved, and a quarter more for the write that finds it grown.
pub const LEDGER_RESERVED_BYTES: u64 =
    (1 + LEDGER_BLOCKS_MIN + LEDGER_BLOCKS_MIN / 4) * BLOCK_LENGTH as u64;

/// A ledger is moved when it is so many times as long as its content in short form.
pub const LEDGER_GROWTH_MAX: u64 = 4;

/// Counts records; a record is durable when the count of durable records reaches its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordNumber(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Blocks behind the ones that are there.
    Append { blocks: u64 },
    /// The content in short form, in the other file.
    Snapshot { blocks: u64 },
    /// The header that makes the other file count.
    Header,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    sequence: u64,
    step: Step,
    records: RecordNumber,
}

/// One core's ledger.
#[derive(Debug)]
pub struct LedgerWriter {
    header: LedgerHeader,
    file: LedgerFile,
    logs: BTreeMap<TopicPartition, LedgerLog>,
    pending: Vec<LedgerRecord>,
    builder: BlockBuilder,
    /// Blocks of the current file, and those known to be durable: the same while nothing is in flight.
    blocks: u64,
    snapshot_blocks: u64,
    recorded: RecordNumber,
    durable: RecordNumber,
    in_flight: Option<InFlight>,
    last_sequence: u64,
    /// The write that was in flight when time was last looked at, and since when it is known to be.
    watched: (u64, u64),
    started: bool,
    failed: bool,
}

impl LedgerWriter {
    /// Begins a ledger: the first [`Self::flush`] writes its content to `start.file`.
    pub fn new(
        core: CoreId,
        directory_id: [u8; 16],
        broker_epoch: u64,
        start: LedgerStart,
    ) -> Self {
        Self {
            header: LedgerHeader {
                // The move to the first file counts it up.
                generation: start.generation.saturating_sub(1),
                broker_epoch,
                directory_id,
                core,
            },
            file: other(start.file),
            logs: start.logs.into_iter().collect(),
            pending: Vec::new(),
            builder: BlockBuilder::new(),
            blocks: 0,
            snapshot_blocks: 0,
            recorded: RecordNumber(0),
            durable: RecordNumber(0),
            in_flight: None,
            last_sequence: 0,
            watched: (0, 0),
            started: false,
            failed: false,
        }
    }

    /// Takes note of something that is proven. It reaches the medium with a later flush.
    pub fn record(&mut self, record: LedgerRecord) -> RecordNumber {
        apply(&mut self.logs, &record);
        self.pending.push(record);
        self.recorded.0 += 1;
        self.recorded
    }

    /// What is recorded of a log.
    pub fn log(&self, partition: &TopicPartition) -> Option<&LedgerLog> {
        self.logs.get(partition)
    }

    /// All records up to this one are on the medium.
    pub fn durable(&self) -> RecordNumber {
        self.durable
    }

    /// Everything that was recorded is on the medium.
    pub fn is_settled(&self) -> bool {
        self.started && self.pending.is_empty() && self.in_flight.is_none()
    }

    /// Something was recorded that no write carries yet.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The new ledger's first content is on the medium: ledgers of an earlier start are not needed any more.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// No write is in flight, so a flush would start one.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none() && !self.failed
    }

    /// Whether the write in flight was in flight at every look since [`IO_TIMEOUT_US`] ago, and the core awake. A write
    /// that hangs proves as little as one that failed.
    pub fn is_stuck(&mut self, now_us: u64, awake_since_us: u64) -> bool {
        let Some(flight) = self.in_flight else {
            return false;
        };
        if self.watched.0 != flight.sequence {
            self.watched = (flight.sequence, now_us);
        }
        now_us.saturating_sub(self.watched.1.max(awake_since_us)) >= IO_TIMEOUT_US
    }

    /// Writes what was recorded, if nothing is in flight. True: a write was issued.
    pub fn flush(&mut self, out: &mut Effects) -> bool {
        if !self.is_idle() {
            return false;
        }
        let grown = self.blocks >= LEDGER_BLOCKS_MIN.max(self.snapshot_blocks * LEDGER_GROWTH_MAX);
        if !self.started || (grown && !self.pending.is_empty()) {
            self.begin_move(out);
        } else if !self.pending.is_empty() {
            self.append(out);
        } else {
            return false;
        }
        true
    }

    /// A write completed. `Err`: the ledger can prove nothing any more, and the process must stop.
    pub fn written(
        &mut self,
        sequence: u64,
        result: Result<(), StorageFault>,
        out: &mut Effects,
    ) -> Result<(), StorageFault> {
        let Some(flight) = self.in_flight.take_if(|flight| flight.sequence == sequence) else {
            return Ok(());
        };
        if let Err(fault) = result {
            self.failed = true;
            return Err(fault);
        }
        match flight.step {
            Step::Append { blocks } => {
                self.blocks += blocks;
                self.durable = flight.records;
            }
            Step::Snapshot { blocks } => {
                self.snapshot_blocks = blocks;
                let bytes = Box::new(self.header.encode());
                self.issue(
                    other(self.file),
                    0,
                    bytes,
                    None,
                    Step::Header,
                    flight.records,
                    out,
                );
            }
            Step::Header => {
                self.file = other(self.file);
                self.blocks = self.snapshot_blocks;
                self.durable = flight.records;
                self.started = true;
            }
        }
        Ok(())
    }

    fn append(&mut self, out: &mut Effects) {
        let mut pending = std::mem::take(&mut self.pending);
        let bytes = self.encode(pending.iter().copied(), self.blocks);
        pending.clear();
        self.pending = pending;
        let blocks = (bytes.len() / BLOCK_LENGTH) as u64;
        let at = (1 + self.blocks) * BLOCK_LENGTH as u64;
        let records = self.recorded;
        self.issue(
            self.file,
            at,
            bytes,
            None,
            Step::Append { blocks },
            records,
            out,
        );
    }

    /// The snapshot holds what is pending as well.
    fn begin_move(&mut self, out: &mut Effects) {
        self.pending.clear();
        self.header.generation += 1;
        let logs = std::mem::take(&mut self.logs);
        let records = logs
            .iter()
            .flat_map(|(partition, log)| log.records(*partition));
        let bytes = self.encode(records, 0);
        self.logs = logs;
        let blocks = (bytes.len() / BLOCK_LENGTH) as u64;
        let at = BLOCK_LENGTH as u64;
        let end = at + bytes.len() as u64;
        let (file, records) = (other(self.file), self.recorded);
        self.issue(
            file,
            at,
            bytes,
            Some(LEDGER_RESERVED_BYTES.max(end)),
            Step::Snapshot { blocks },
            records,
            out,
        );
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one effect")]
    fn issue(
        &mut self,
        file: LedgerFile,
        at: u64,
        bytes: Box<[u8]>,
        cut_to: Option<u64>,
        step: Step,
        records: RecordNumber,
        out: &mut Effects,
    ) {
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        self.in_flight = Some(InFlight {
            sequence,
            step,
            records,
        });
        out.push(Effect::WriteLedger {
            sequence,
            file,
            at,
            bytes,
            cut_to,
        });
    }

    /// Blocks with these records, the first of which stands at place `first` of its file. Never empty.
    fn encode(&mut self, records: impl Iterator<Item = LedgerRecord>, first: u64) -> Box<[u8]> {
        let mut bytes = Vec::new();
        for record in records {
            if !self.builder.push(&record) {
                self.finish_block(first, &mut bytes);
                assert!(
                    self.builder.push(&record),
                    "an empty block has room for a record"
                );
            }
        }
        if !self.builder.is_empty() || bytes.is_empty() {
            self.finish_block(first, &mut bytes);
        }
        bytes.into_boxed_slice()
    }

    fn finish_block(&mut self, first: u64, bytes: &mut Vec<u8>) {
        let sequence = first + (bytes.len() / BLOCK_LENGTH) as u64;
        let mut block = [0; BLOCK_LENGTH];
        self.builder
            .finish_into(self.header.generation, sequence, first, &mut block);
        bytes.extend_from_slice(&block);
    }
}

fn other(file: LedgerFile) -> LedgerFile {
    match file {
        LedgerFile::A => LedgerFile::B,
        LedgerFile::B => LedgerFile::A,
    }
}
