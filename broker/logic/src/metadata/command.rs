//! What may be proposed, and what comes of it.

use std::fmt;

use tackboard_schema::{BrokerId, ErrorCode, ProducerId, TimestampMs, TopicId};

use super::topic_settings::ConfigChange;

/// Producer ids are handed to brokers in blocks of this many.
pub const PRODUCER_IDS_PER_BLOCK: i64 = 1_000;

/// One run of a broker process, drawn at random when it starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncarnationId(pub [u8; 16]);

impl fmt::Debug for IncarnationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IncarnationId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// Where clients reach a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// A host name or an address, 1..=255 bytes.
    pub host: String,
    /// Never 0.
    pub port: u16,
}

/// A change to the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A broker process started.
    RegisterBroker(RegisterBroker),
    /// A topic is wanted.
    CreateTopic(CreateTopic),
    /// A topic is no longer wanted. Its files may go once this is committed.
    DeleteTopic {
        /// The topic's name.
        name: String,
    },
    /// This very topic is no longer wanted, whatever else may have its name by now.
    DeleteTopicById {
        /// The topic's id.
        topic_id: TopicId,
    },
    /// A topic is to have more partitions.
    CreatePartitions {
        /// The topic's name.
        name: String,
        /// How many it is to have, more than it has.
        count: i32,
    },
    /// A topic's settings change.
    AlterTopic(AlterTopic),
    /// A broker needs another block of [`PRODUCER_IDS_PER_BLOCK`] producer ids.
    AllocateProducerIds {
        /// Who will hand them out.
        broker: BrokerId,
    },
}

/// A broker process says who it is and where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterBroker {
    /// The broker; the same for every process on its data folder.
    pub broker: BrokerId,
    /// This process. A second registration by the same process (its answer was lost) bumps no epoch.
    pub incarnation: IncarnationId,
    /// The native listener that any core answers.
    pub any_core: Endpoint,
    /// The native listener of each core, in core order; so there are as many as cores.
    pub cores: Vec<Endpoint>,
    /// How many partitions each core takes at most.
    pub partitions_per_core_max: u32,
}

/// A topic as asked for, defaults filled in by the proposer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTopic {
    /// The name wanted.
    pub name: String,
    /// Drawn at random by the proposer.
    pub topic_id: TopicId,
    /// How many partitions, at least 1.
    pub partitions: i32,
    /// How many copies of each partition, at least 1.
    pub replication_factor: i16,
    /// Topic settings as key and value.
    pub configs: Vec<(String, String)>,
    /// The proposer's clock.
    pub at: TimestampMs,
}

/// Changes to a topic's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterTopic {
    /// The topic's name.
    pub name: String,
    /// Whether settings that no change names become the broker's again.
    pub resets_others: bool,
    /// Key and what becomes of it, each key once.
    pub changes: Vec<(String, ConfigChange)>,
}

/// What an accepted command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The broker is registered.
    BrokerRegistered {
        /// The version at which this process registered.
        broker_epoch: u64,
        /// How many partitions got a new leader epoch.
        partitions_led: u32,
    },
    /// The topic exists.
    TopicCreated {
        /// Its id.
        topic_id: TopicId,
        /// How many partitions it has.
        partitions: i32,
    },
    /// The topic is gone.
    TopicDeleted {
        /// The id it had.
        topic_id: TopicId,
        /// How many partitions it had.
        partitions: i32,
    },
    /// The topic has more partitions.
    PartitionsCreated {
        /// Its id.
        topic_id: TopicId,
        /// How many partitions it has now.
        partitions: i32,
    },
    /// The topic has other settings.
    TopicAltered {
        /// Its id.
        topic_id: TopicId,
    },
    /// A block of producer ids that nobody else gets.
    ProducerIds {
        /// The first id of the block.
        first: ProducerId,
        /// How many ids follow each other from there.
        count: i64,
    },
}

/// Why a command was refused: an ordinary answer for the proposer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRefusal {
    /// The code for the client.
    pub code: ErrorCode,
    /// What was wrong, with the value and what is allowed.
    pub message: String,
}

impl MetadataRefusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for MetadataRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for MetadataRefusal {}
