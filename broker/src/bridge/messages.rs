//! The messages, and how they are handed over.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tackboard_logic::metadata::{Command, Image, MetadataRefusal, Outcome};
use tackboard_schema::{CoreId, TopicPartition};

/// Messages that an inbox between the control thread and the cores holds.
pub const CONTROL_INBOX_MAX: usize = 16_384;
/// Proposals that wait in the control thread's inbox; a core makes none above it. What is left is for what must not get
/// lost: a core has at most one image to report ([`ToCore::Image`]), its end and its fault.
pub const PROPOSALS_QUEUED_MAX: usize = CONTROL_INBOX_MAX / 4 * 3;

/// From the control thread to a core.
#[derive(Clone, Debug)]
pub enum ToCore {
    /// The metadata changed. Images come in the order of their versions. The core answers [`ToControl::ImageApplied`]
    /// with the version that it then acts on, and gets the newest one only after that.
    Image(Arc<Image>),
    /// What came of the proposal that the core numbered `call`.
    ProposalDone {
        /// The core's own number.
        call: u64,
        /// The outcome, once every core has applied it; or why it was refused.
        result: ProposalResult,
    },
    /// Finish: answer what was asked, write, sync, close. Answered by [`ToControl::Drained`].
    Shutdown {
        /// After this the process ends anyway.
        deadline: Instant,
    },
}

/// What came of a proposal.
pub type ProposalResult = Result<Decided, MetadataRefusal>;

/// An accepted proposal, durable and applied by every core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The position of the command in the metadata log.
    pub version: u64,
    /// What it did.
    pub outcome: Outcome,
}

/// From a core to the control thread.
#[derive(Debug)]
pub enum ToControl {
    /// A change to the metadata is wanted. Answered by [`ToCore::ProposalDone`].
    Propose {
        /// Who asks.
        core: CoreId,
        /// The core's own number for it, returned with the answer.
        call: u64,
        /// The change.
        command: Command,
    },
    /// The core acts on this version: partitions that it now owns are open, others closed.
    ImageApplied {
        /// Who says so.
        core: CoreId,
        /// The version of the image.
        version: u64,
        /// Partitions that it could not open, or opened but fenced.
        faults: Vec<PartitionFault>,
    },
    /// The core has finished after [`ToCore::Shutdown`].
    Drained {
        /// Who says so.
        core: CoreId,
        /// Everything was written and synced.
        clean: bool,
    },
    /// The core cannot go on; the process must end.
    Fatal {
        /// Who says so.
        core: CoreId,
        /// What happened, for the log.
        reason: String,
    },
}

/// A partition that a core cannot serve as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFault {
    /// Which.
    pub partition: TopicPartition,
    /// What is wrong with it.
    pub reason: String,
}

/// Hands messages to one core without waiting.
///
/// A closure, because a core's inbox carries more than these messages: the part of the broker that
/// makes the inbox wraps them.
pub struct CoreSender(Box<SendToCore>);

type SendToCore = dyn Fn(ToCore) -> Result<(), Undelivered> + Send;

/// The inbox was full or its core has gone. The message comes back.
#[derive(Debug)]
pub struct Undelivered {
    /// What was not delivered.
    pub message: ToCore,
    /// The core will never take another message.
    pub closed: bool,
}

impl CoreSender {
    /// Wraps what delivers a message, which must not block.
    pub fn new(send: impl Fn(ToCore) -> Result<(), Undelivered> + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Delivers, or returns the message.
    pub fn send(&self, message: ToCore) -> Result<(), Undelivered> {
        (self.0)(message)
    }
}

impl From<flume::Sender<ToCore>> for CoreSender {
    fn from(sender: flume::Sender<ToCore>) -> Self {
        Self::new(move |message| {
            sender.try_send(message).map_err(|error| {
                let closed = sender.is_disconnected();
                Undelivered {
                    message: error.into_inner(),
                    closed,
                }
            })
        })
    }
}

impl fmt::Debug for CoreSender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CoreSender")
    }
}
