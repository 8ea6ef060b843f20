//! What can be wrong with an event, and the list of those found.

use crate::workload::event::Corruption;

/// How many faults are kept by name (some 100 bytes each); all are counted.
pub const NAMED_MAX: usize = 10_000;

/// One thing that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Acknowledged, not read back: this many events from this sequence on.
    Lost {
        /// How many.
        count: u64,
    },
    /// Read once and gone at a later reading.
    Vanished {
        /// How many.
        count: u64,
    },
    /// Read more than once.
    Duplicated,
    /// Read after an event that was sent after it.
    OutOfOrder {
        /// The highest sequence that had been read before.
        after: u64,
    },
    /// An event of a key that came before an earlier one of the same key.
    KeyOutOfOrder {
        /// Line of the earlier event.
        line: u32,
        /// Line of the event that came before it.
        after: u32,
    },
    /// Not what was sent.
    Corrupted(Corruption),
    /// A batch of the partition that could not be read.
    Unreadable(String),
    /// Lies at another offset than the acknowledgement said.
    Misplaced,
    /// The offset does not follow the one before.
    OffsetGap {
        /// The offset that should have come.
        expected: i64,
    },
    /// Belongs to no producer of this run.
    Foreign,
    /// Read although it was never handed to the producer.
    NeverSent {
        /// How many.
        count: u64,
    },
}

impl Fault {
    /// One word for tables and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost",
            Self::Vanished { .. } => "vanished",
            Self::Duplicated => "duplicated",
            Self::OutOfOrder { .. } | Self::KeyOutOfOrder { .. } => "out of order",
            Self::Corrupted(_) | Self::Unreadable(_) => "corrupted",
            Self::Misplaced => "misplaced",
            Self::OffsetGap { .. } => "offset gap",
            Self::Foreign => "foreign",
            Self::NeverSent { .. } => "never sent",
        }
    }
}

/// A fault and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFault {
    /// What happened.
    pub fault: Fault,
    /// The partition.
    pub partition: i32,
    /// The offset, where one is known.
    pub offset: Option<i64>,
    /// The producer, where known.
    pub producer: Option<u16>,
    /// The event's sequence, where known.
    pub sequence: Option<u64>,
}

impl std::fmt::Display for NamedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "partition {}", self.partition)?;
        if let Some(offset) = self.offset {
            write!(f, " offset {offset}")?;
        }
        write!(f, "  {}: ", self.fault.name())?;
        match (self.producer, self.sequence) {
            (Some(producer), Some(sequence)) => {
                write!(f, "event {sequence} of producer {producer} ")?
            }
            _ => write!(f, "event ")?,
        }
        match &self.fault {
            Fault::Lost { count: 1 } => write!(f, "was acknowledged and did not come back"),
            Fault::Lost { count } => write!(
                f,
                "and {} after it were acknowledged and did not come back",
                count - 1
            ),
            Fault::Vanished { count: 1 } => write!(f, "was read once and is gone"),
            Fault::Vanished { count } => {
                write!(f, "and {} after it were read once and are gone", count - 1)
            }
            Fault::Duplicated => write!(f, "came once more"),
            Fault::OutOfOrder { after } => write!(f, "came after event {after}"),
            Fault::KeyOutOfOrder { line, after } => {
                write!(
                    f,
                    "(line {}) came after line {} with the same key",
                    line + 1,
                    after + 1
                )
            }
            Fault::Corrupted(corruption) => write!(f, "{corruption}"),
            Fault::Unreadable(why) => write!(f, "lies in a batch that can't be read: {why}"),
            Fault::Misplaced => write!(
                f,
                "or one near it lies at another offset than was acknowledged"
            ),
            Fault::OffsetGap { expected } => write!(f, "should lie at offset {expected}"),
            Fault::Foreign => write!(f, "belongs to nobody in this run"),
            Fault::NeverSent { count } => {
                write!(f, "and up to {} after it were never sent", count - 1)
            }
        }
    }
}

/// Counts of all faults and the names of the first ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Acknowledged and not read back.
    pub lost: u64,
    /// Read once and gone later.
    pub vanished: u64,
    /// Read again.
    pub duplicated: u64,
    /// Out of order.
    pub out_of_order: u64,
    /// Not what was sent.
    pub corrupted: u64,
    /// At another offset than was acknowledged or than follows.
    pub misplaced: u64,
    /// Of no producer of this run, or never sent.
    pub foreign: u64,
    /// The first faults, by name.
    pub named: Vec<NamedFault>,
}

impl Faults {
    /// Counts a fault, and keeps it if there is room.
    pub fn add(&mut self, named: NamedFault) {
        let (counter, count) = match &named.fault {
            Fault::Lost { count } => (&mut self.lost, *count),
            Fault::Vanished { count } => (&mut self.vanished, *count),
            Fault::Duplicated => (&mut self.duplicated, 1),
            Fault::OutOfOrder { .. } | Fault::KeyOutOfOrder { .. } => (&mut self.out_of_order, 1),
            Fault::Corrupted(_) | Fault::Unreadable(_) => (&mut self.corrupted, 1),
            Fault::Misplaced | Fault::OffsetGap { .. } => (&mut self.misplaced, 1),
            Fault::Foreign => (&mut self.foreign, 1),
            Fault::NeverSent { count } => (&mut self.foreign, *count),
        };
        *counter += count;
        if self.named.len() < NAMED_MAX {
            self.named.push(named);
        }
    }

    /// Adds what another reader found.
    pub fn merge(&mut self, other: Faults) {
        self.lost += other.lost;
        self.vanished += other.vanished;
        self.duplicated += other.duplicated;
        self.out_of_order += other.out_of_order;
        self.corrupted += other.corrupted;
        self.misplaced += other.misplaced;
        self.foreign += other.foreign;
        let room = NAMED_MAX - self.named.len();
        self.named.extend(other.named.into_iter().take(room));
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.lost
            + self.vanished
            + self.duplicated
            + self.out_of_order
            + self.corrupted
            + self.misplaced
            + self.foreign
    }
}
