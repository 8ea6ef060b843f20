//! One partition's log.
//!
//! `Log` owns positions, segments, the layout of chunks, the producers' state and who waits for what. Bytes are the
//! driver's. What happens to a batch, in order:
//!
//! 1. `append`: it is admitted, gets its offsets and a place in a chunk. From here its order is fixed (S9).
//! 2. `write`: at the end of the turn, or when an earlier write completes, blocks of frozen chunks go to disk.
//! 3. [`sync_plan`]: what is written becomes durable.
//! 4. `progress`: positions move, waiting appends are answered, readers see more.
//! 5. `roll`, `retention`: segments are closed, sealed and finally deleted. `checkpoint`: what a start after a crash needs
//!    not read of the active one.
//!
//! Besides: `fetch` finds bytes for readers, `fence` is what follows a storage fault, `advance` moves the start up,
//! `truncate` cuts the end off, [`recovery`] is what came before the log was opened. What must hold stands in [`crate::shard::invariants`].

mod advance;
mod append;
pub mod boundary;
mod checkpoint;
pub mod chunk;
mod close;
mod epochs;
mod fence;
mod fetch;
pub mod index;
mod invariants;
pub mod limits;
mod open;
pub mod position;
pub mod producers;
mod progress;
mod read;
pub mod recent;
pub mod recovery;
pub(crate) mod retention;
mod roll;
pub mod segment;
pub mod stretch;
pub mod sync_plan;
mod timestamps;
mod truncate;
mod write;

use std::collections::{BTreeSet, VecDeque};

use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, TimestampMs, TopicPartition};

use advance::Advance;
use checkpoint::PendingCheckpoint;
use chunk::Chunks;
use position::{Position, Positions};
use producers::ProducerTable;
use recent::RecentBatches;
use recovery::DamagedRange;
use retention::DoomedSegment;
use segment::Segments;
use sync_plan::LogSync;
use truncate::Truncation;
use write::WriteInFlight;

use crate::ledger::writer::RecordNumber;
use crate::request::acks::AckQueue;
use crate::request::parked::ParkedId;
use crate::shard::interface::{
    LogConfig, LogDescription, LogId, Refusal, RefusalDetail, StorageFault,
};

pub use epochs::EpochEnd;
pub(crate) use fetch::Located;
pub use read::{Damage, FoundRecord, RecordSearch, StretchCut, find_record, trim_read};

/// Whether a log takes appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    Open,
    /// After a storage fault; reads below the high watermark go on.
    Fenced(StorageFault),
    /// Its end is being cut off: nothing is started any more, until it begins anew.
    Truncating,
    /// Its topic was deleted.
    Deleting,
}

/// One open log.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) id: LogId,
    pub(crate) partition: TopicPartition,
    pub(crate) config: LogConfig,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) state: LogState,

    /// First offset that can be read.
    pub(crate) log_start: Offset,
    /// Consumers see what lies below.
    pub(crate) high_watermark: Position,
    pub(crate) positions: Positions,
    pub(crate) sync: LogSync,
    last_append: Option<TimestampMs>,

    pub(crate) segments: Segments,
    /// Taken out of `segments`, waiting for the ledger or the disk.
    doomed: VecDeque<DoomedSegment>,
    pub(crate) chunks: Chunks,
    pub(crate) recent: RecentBatches,
    /// Writes that are in flight, or completed behind one that is.
    writes: VecDeque<WriteInFlight>,
    /// How far writes were issued.
    issued: sync_plan::Reach,
    /// The disk was full when something was written: nothing is issued until there is space.
    waits_for_space: bool,
    /// Creations, seals, preallocations and checkpoints in flight.
    segment_work: u32,
    /// A checkpoint that is made and waits until what it speaks of is durable.
    checkpoint: Option<PendingCheckpoint>,
    /// It is in the shard's list of logs whose checkpoint is due.
    pub(crate) checkpoint_queued: bool,
    /// Its end is to be cut off.
    truncation: Option<Truncation>,
    /// What a truncation asked the driver for is in flight.
    truncation_io: bool,

    producers: ProducerTable,
    epochs: Vec<(LeaderEpoch, Offset)>,
    damaged: Vec<DamagedRange>,

    /// Appends that wait until they are written.
    written_waiters: AckQueue,
    /// Appends that wait until they are durable.
    durable_waiters: AckQueue,
    /// Those who wait until the log begins further up.
    advances: VecDeque<Advance>,
    /// The last word to the ledger on where the log begins.
    start_record: RecordNumber,
    /// Fetches that wait for more bytes.
    pub(crate) parked: BTreeSet<ParkedId>,
    /// Everything below is to be synced in the background, although the topic does not ask for it.
    interval_until: Offset,

    /// What the ledger says is durable.
    pub(crate) ledger_durable: Position,
    /// It is in the shard's list of logs whose durable end is to be recorded.
    pub(crate) ledger_queued: bool,
    /// It is in the shard's list of logs that were appended to in this turn.
    pub(crate) in_turn: bool,
    /// The process is stopping: everything is synced, the active segment gets its index.
    draining: bool,
}

impl Log {
    pub(crate) fn describe(&self) -> LogDescription {
        LogDescription {
            log_start_offset: self.log_start,
            high_watermark: self.high_watermark.offset,
            log_end_offset: self.positions.appended().offset,
            size_bytes: self.size_bytes(),
            segment_count: self.segments.count() as u32,
            last_append: self.last_append,
            leader_epoch: self.leader_epoch,
            fenced: self.is_fenced(),
        }
    }

    /// The end of a leader epoch; `None`: it is later than this log's.
    pub(crate) fn epoch_end(&self, asked: LeaderEpoch) -> Option<EpochEnd> {
        epochs::epoch_end(&self.epochs, self.positions.appended().offset, asked)
    }

    /// Bytes of all segments.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.positions
            .appended()
            .at
            .since(self.segments.oldest().start)
    }

    pub(crate) fn is_fenced(&self) -> bool {
        matches!(self.state, LogState::Fenced(_))
    }

    /// Whether I/O may be started for it.
    pub(crate) fn is_open(&self) -> bool {
        self.state == LogState::Open
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.state == LogState::Deleting
    }

    /// Refuses what would change a log that takes no changes any more. A truncation under way is another matter: its
    /// callers tell it apart.
    fn admit_change(&self) -> Result<(), Refusal> {
        let (code, detail) = match self.state {
            LogState::Open | LogState::Truncating => return Ok(()),
            LogState::Fenced(why) => (ErrorCode::KafkaStorageError, RefusalDetail::Fenced(why)),
            LogState::Deleting => (ErrorCode::UnknownTopicOrPartition, RefusalDetail::Deleted),
        };
        Err(Refusal { code, detail })
    }

    /// How many appends wait for their acks condition.
    pub(crate) fn waiting_appends(&self) -> usize {
        self.written_waiters.len() + self.durable_waiters.len()
    }

    /// Whether any I/O of this log is in flight.
    pub(crate) fn has_io_in_flight(&self) -> bool {
        self.sync.is_syncing()
            || self.segment_work > 0
            || self.truncation_io
            || self.has_writes_flying()
            || self.doomed.iter().any(DoomedSegment::is_flying)
    }
}
