//! A request that a core has taken in and not yet answered.
//!
//! A request has entries, one a partition; each entry gets an outcome, from this core's logic or from the core that owns
//! the partition. The last outcome completes the request, and it is answered to where it came from.

use std::{ops::Range, rc::Rc, sync::Arc};

use bytes::Bytes;
use glommio::io::{DmaBuffer, ReadResult};
use tackboard_logic::{
    log::EpochEnd,
    request::{
        account::Held,
        fetch::Bounds,
        gather::Gather,
        lookup::ListedOffset,
        produce::{Appended, Respond},
    },
    shard::interface::{LogDescription, Ticket},
};
use tackboard_schema::{
    CoreId, CorrelationId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, TimestampMs,
    TopicPartition,
};

use super::{
    cold::Hold,
    groups::{GroupAnswer, GroupRequest, GroupWork, Room},
    loan::Loan,
    slab::Key,
};
use crate::native::{connection::Connection, groups::Asked};

/// Where the answer goes.
pub enum Origin {
    /// To a connection of this core.
    Connection(Rc<Connection>),
    /// To a coordinator of groups on this core.
    Groups(GroupWork),
    /// To the core whose connection it came from, under that core's call.
    Core {
        /// That core.
        core: CoreId,
        /// Its name for the call.
        call: Key,
    },
}

/// Why an entry failed, with a text for people.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The code on the wire.
    pub code: ErrorCode,
    /// What happened, and with which numbers.
    pub message: String,
    /// What the log holds, if that is why.
    pub log: Option<LogBounds>,
}

/// Where a log begins and ends for readers.
#[derive(Clone, Copy, Debug)]
pub struct LogBounds {
    /// First offset of the partition.
    pub log_start_offset: Offset,
    /// Readers see what lies below it.
    pub high_watermark: Offset,
}

impl Failure {
    /// A failure with its code's own text.
    pub fn plain(code: ErrorCode) -> Self {
        Failure {
            code,
            message: code.text().to_owned(),
            log: None,
        }
    }

    /// A failure with a text of its own.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
            log: None,
        }
    }

    /// A fetch of what the log does not hold.
    pub fn out_of_range(log: LogBounds) -> Self {
        let message = format!(
            "the log holds offsets {} to {} (exclusive)",
            log.log_start_offset, log.high_watermark
        );
        Failure {
            log: Some(log),
            ..Failure::new(ErrorCode::OffsetOutOfRange, message)
        }
    }
}

/// What one fetch entry yields.
#[derive(Default)]
pub struct Fetched {
    /// Readers see what lies below it.
    pub high_watermark: Offset,
    /// First offset of the partition.
    pub log_start_offset: Offset,
    /// Whole record batches, in pieces.
    pub pieces: Vec<Piece>,
}

impl Fetched {
    /// Bytes of all pieces.
    pub fn byte_length(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes().len()).sum()
    }
}

/// Bytes on their way to a socket, held by whatever owns them. Nothing is copied to get them there.
pub enum Piece {
    /// Part of a frozen append buffer.
    Chunk(Rc<DmaBuffer>, Range<usize>),
    /// Part of what was read from a segment, with what counts in the budget for reads of history.
    Read(ReadResult, Hold),
    /// The short rest behind a cut buffer.
    Owned(Bytes),
    /// A piece of what another core lent, by its index.
    Lent(Rc<Loan>, usize),
}

impl Piece {
    /// The bytes themselves.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Piece::Chunk(buffer, range) => &buffer.as_bytes()[range.clone()],
            Piece::Read(bytes, _) => bytes,
            Piece::Owned(bytes) => bytes,
            Piece::Lent(loan, index) => loan.piece(*index),
        }
    }
}

/// One entry of a request, named as the client named it.
pub struct Entry<T> {
    /// The topic's name, for the answer.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// What is known so far.
    pub outcome: Option<Result<T, Failure>>,
}

impl<T> Entry<T> {
    /// An entry that waits for its outcome.
    pub fn waiting(topic: Arc<str>, partition: PartitionIndex) -> Self {
        Entry {
            topic,
            partition,
            outcome: None,
        }
    }
}

impl Entry<Fetched> {
    /// Bytes of its batches.
    pub fn byte_length(&self) -> u64 {
        match &self.outcome {
            Some(Ok(fetched)) => fetched.byte_length() as u64,
            Some(Err(_)) | None => 0,
        }
    }

    /// Lets go of the batches.
    pub fn empty(&mut self) {
        if let Some(Ok(fetched)) = &mut self.outcome {
            fetched.pieces.clear();
        }
    }
}

/// What a request asks and what is known of its answer.
pub enum Body {
    /// Append batches.
    Produce {
        /// Whether the client gets an answer.
        respond: Respond,
        /// One a partition.
        entries: Vec<Entry<Appended>>,
    },
    /// Read batches.
    Fetch {
        /// One a partition.
        entries: Vec<Entry<Fetched>>,
        /// Parts that may be parked and have not answered.
        parts: Vec<Part>,
        /// Says when those that have not answered are hurried.
        gather: Gather,
        /// Most bytes of batches in the answer.
        bytes_max: u32,
    },
    /// Look offsets up.
    ListOffsets {
        /// One a partition.
        entries: Vec<Entry<ListedOffset>>,
    },
    /// Look up where leader epochs end.
    EpochEnds {
        /// One a partition.
        entries: Vec<Entry<Option<EpochEnd>>>,
    },
    /// Delete the oldest records.
    DeleteRecords {
        /// One a partition: where it begins then.
        entries: Vec<Entry<Offset>>,
    },
    /// Describe partitions.
    Describe {
        /// One a partition.
        entries: Vec<Entry<LogDescription>>,
    },
    /// Ask coordinators of groups.
    Groups {
        /// One a question.
        entries: Vec<Entry<GroupAnswer>>,
        /// Parts at other cores that may be parked.
        parts: Vec<Part>,
        /// How much may be told.
        room: Room,
        /// What a request of our own protocol named, for its answer.
        asked: Option<Box<Asked>>,
    },
}

impl Body {
    /// How many partitions it is about.
    pub fn entry_count(&self) -> usize {
        match self {
            Body::Produce { entries, .. } => entries.len(),
            Body::Fetch { entries, .. } => entries.len(),
            Body::ListOffsets { entries } => entries.len(),
            Body::EpochEnds { entries } => entries.len(),
            Body::DeleteRecords { entries } => entries.len(),
            Body::Describe { entries } => entries.len(),
            Body::Groups { entries, .. } => entries.len(),
        }
    }
}

/// A part of a request that may be parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// With this core's logic.
    Here(Ticket),
    /// With another core.
    There(CoreId, Key),
}

/// A request that was not answered yet.
pub struct Pending {
    /// Where the answer goes.
    pub origin: Origin,
    /// The client's name for it.
    pub correlation_id: CorrelationId,
    /// Outcomes still to come, plus one while it is being handed out.
    pub waiting: u32,
    /// What counts against the budgets of its connection and of the core.
    pub held: Held,
    /// Whether it counts as work for the watchdog (a parked fetch does not).
    pub counts_as_work: bool,
    /// The question and its answer.
    pub body: Body,
}

/// What a ticket given to logic stands for.
pub enum TicketTarget {
    /// What groups have committed was written anew, and their log is to begin there.
    Rewritten {
        /// Which one.
        partition: TopicPartition,
    },
    /// One batch of a produce entry.
    Append {
        /// The request.
        request: Key,
        /// Index of its entry.
        entry: u32,
    },
    /// An entry of a request that deletes records.
    DeleteRecords {
        /// The request.
        request: Key,
        /// Index of its entry.
        entry: u32,
    },
    /// All entries of a fetch that this core serves.
    Fetch {
        /// The request.
        request: Key,
        /// Indexes of its entries, in the order that logic was given them.
        entries: Vec<u32>,
    },
}

/// What a call to another core stands for.
pub struct CallTarget {
    /// Who was asked.
    pub core: CoreId,
    /// The request.
    pub request: Key,
    /// Indexes of its entries, in the order that the other core was given them.
    pub entries: Vec<u32>,
    /// Whether it may be parked there, and counts as a fetch.
    pub may_wait: bool,
}

/// A request's part for another core, with everything owned.
#[derive(Debug)]
pub enum Work {
    /// Append these batches.
    Produce {
        /// Partition and its batches.
        entries: Vec<(TopicPartition, Bytes)>,
        /// As the request said.
        levels: Levels,
        /// Give up after, ms.
        timeout_ms: u32,
    },
    /// Read from these offsets.
    Fetch {
        /// Partition, offset, bytes at most.
        entries: Vec<(TopicPartition, Offset, u32)>,
        /// Over all of them.
        bounds: Bounds,
    },
    /// Look these up.
    ListOffsets(Vec<(TopicPartition, TimestampMs)>),
    /// Look up where these leader epochs end.
    EpochEnds(Vec<(TopicPartition, LeaderEpoch)>),
    /// Delete what these hold below an offset, or below the high watermark.
    DeleteRecords(Vec<(TopicPartition, Option<Offset>)>),
    /// Describe these.
    Describe(Vec<TopicPartition>),
    /// Ask the coordinators of these.
    Groups(Vec<(TopicPartition, GroupRequest)>),
}

/// What a produce request says of acks and durability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// `None`: the topic's.
    pub acks: Option<tackboard_schema::Acks>,
    /// `None`: the topic's.
    pub durability: Option<tackboard_schema::Durability>,
}

/// Outcomes on their way back, in the order of the part's entries.
#[derive(Debug)]
pub enum WorkOutcome {
    /// Of `Work::Produce`.
    Produce {
        /// As in [`Body::Produce`].
        respond: Respond,
        /// One an entry.
        outcomes: Vec<Result<Appended, Failure>>,
    },
    /// Of `Work::Fetch`.
    Fetch {
        /// One an entry.
        outcomes: Vec<Result<FetchedThere, Failure>>,
        /// The batches of all of them.
        loan: Option<Loan>,
    },
    /// Of `Work::ListOffsets`.
    ListOffsets(Vec<Result<ListedOffset, Failure>>),
    /// Of `Work::EpochEnds`.
    EpochEnds(Vec<Result<Option<EpochEnd>, Failure>>),
    /// Of `Work::DeleteRecords`.
    DeleteRecords(Vec<Result<Offset, Failure>>),
    /// Of `Work::Describe`.
    Describe(Vec<Result<LogDescription, Failure>>),
    /// Of `Work::Groups`.
    Groups(Vec<Result<GroupAnswer, Failure>>),
}

/// What one entry of a fetch yields on the core that was asked.
#[derive(Debug)]
pub struct FetchedThere {
    /// As in [`Fetched`].
    pub high_watermark: Offset,
    /// As in [`Fetched`].
    pub log_start_offset: Offset,
    /// Which pieces of the loan are its batches.
    pub pieces: Range<usize>,
}

/// From core to core.
#[derive(Debug)]
pub enum PeerMessage {
    /// Do this for a connection of mine.
    Call {
        /// Who asks.
        from: CoreId,
        /// Its name for the call.
        call: Key,
        /// What to do.
        work: Work,
    },
    /// Answer what is parked of that call now: a fetch with what there is, a question to groups with a refusal.
    Hurry {
        /// Who asked.
        from: CoreId,
        /// Its name for the call.
        call: Key,
    },
    /// Done.
    Done {
        /// The asker's name for the call.
        call: Key,
        /// What came of it.
        outcome: WorkOutcome,
    },
    /// A loan of yours is not needed any more.
    GivenBack {
        /// Your name for it.
        loan: Key,
    },
}
