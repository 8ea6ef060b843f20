//! Administration as single calls: one request, one answer, tried again where that can do no harm.
//!
//! Owns: which API a call is, how it is encoded and read, and when it is tried again.
//! Not here: connections; a transport makes one to any broker, sends, waits and asks [`Attempts`] what to do next.
//!
//! Any core of any broker answers these; what belongs to another core is passed on inside the broker.

use tackboard_schema::{ErrorCode, PartitionIndex};

use super::backoff::Backoff;
use super::frames::InFrame;
use super::messages::Context;
use super::random::Random;
use super::time::Now;
use super::wire::{self, Question};
use crate::admin::{
    ClusterDescription, CreatedTopic, ListedOffset, NewTopic, OffsetQuery, TopicDescription,
};
use crate::config::ClientConfig;
use crate::error::{Error, Result};

/// One call.
pub(crate) trait Call {
    type Output;
    /// Whether the call can be made again when the connection was lost before its answer.
    const IS_REPEATABLE: bool = true;

    fn question(&self) -> Question<'_>;

    fn read(&self, context: &Context, frame: &InFrame) -> Result<Self::Output>;

    /// The topic that it is about, if one.
    fn topic(&self) -> Option<&str> {
        None
    }
}

pub(crate) struct CreateTopic<'a>(pub(crate) &'a NewTopic);
pub(crate) struct DeleteTopic<'a>(pub(crate) &'a str);
pub(crate) struct CreatePartitions<'a>(pub(crate) &'a str, pub(crate) i32);
pub(crate) struct AlterTopic<'a>(
    pub(crate) &'a str,
    pub(crate) &'a [(String, Option<String>)],
);
pub(crate) struct DescribeTopic<'a>(pub(crate) &'a str);
pub(crate) struct DescribeCluster<'a>(pub(crate) Option<&'a [&'a str]>);
pub(crate) struct ListOffsets<'a>(pub(crate) &'a [(&'a str, PartitionIndex, OffsetQuery)]);

impl Call for CreateTopic<'_> {
    type Output = CreatedTopic;
    // The topic may have been created; made again, the call would say that it exists.
    const IS_REPEATABLE: bool = false;

    fn question(&self) -> Question<'_> {
        Question::CreateTopic(self.0)
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<CreatedTopic> {
        wire::read_create_topic(context, frame)
    }

    fn topic(&self) -> Option<&str> {
        Some(&self.0.name)
    }
}

impl Call for DeleteTopic<'_> {
    type Output = ();
    // As above: it may be gone already.
    const IS_REPEATABLE: bool = false;

    fn question(&self) -> Question<'_> {
        Question::DeleteTopic(self.0)
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<()> {
        wire::read_delete_topic(context, frame)
    }

    fn topic(&self) -> Option<&str> {
        Some(self.0)
    }
}

impl Call for CreatePartitions<'_> {
    type Output = ();
    // As above: it may have them already.
    const IS_REPEATABLE: bool = false;

    fn question(&self) -> Question<'_> {
        Question::CreatePartitions(self.0, self.1)
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<()> {
        wire::read_create_partitions(context, frame)
    }

    fn topic(&self) -> Option<&str> {
        Some(self.0)
    }
}

impl Call for AlterTopic<'_> {
    type Output = ();

    fn question(&self) -> Question<'_> {
        Question::AlterTopic(self.0, self.1)
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<()> {
        wire::read_alter_topic(context, frame)
    }

    fn topic(&self) -> Option<&str> {
        Some(self.0)
    }
}

impl Call for DescribeTopic<'_> {
    type Output = TopicDescription;

    fn question(&self) -> Question<'_> {
        Question::DescribeTopic(self.0)
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<TopicDescription> {
        wire::read_describe_topic(context, frame)
    }

    fn topic(&self) -> Option<&str> {
        Some(self.0)
    }
}

impl Call for DescribeCluster<'_> {
    type Output = ClusterDescription;

    fn question(&self) -> Question<'_> {
        Question::Metadata { topics: self.0 }
    }

    fn read(&self, context: &Context, frame: &InFrame) -> Result<ClusterDescription> {
        wire::read_metadata(context, frame)
    }
}

impl Call for ListOffsets<'_> {
    type Output = Vec<ListedOffset>;

    fn question(&self) -> Question<'_> {
        Question::ListOffsets { entries: self.0 }
    }

    /// In the order asked for, whatever the order of the answer.
    fn read(&self, context: &Context, frame: &InFrame) -> Result<Vec<ListedOffset>> {
        let mut results = wire::read_list_offsets(context, frame)?;
        let find = |(topic, partition, _): &(&str, PartitionIndex, OffsetQuery)| {
            let index = results
                .iter()
                .position(|result| &*result.0 == *topic && result.1 == *partition);
            match index {
                // `remove` keeps the order, so that a partition that is asked about twice gets its answers in turn.
                Some(index) => results
                    .remove(index)
                    .2
                    .map_err(|fault| named(fault, Some(topic))),
                None => Err(context.fault(format_args!("nothing about {topic}-{partition}"))),
            }
        };
        self.0.iter().map(find).collect()
    }
}

/// The context of a call's answer, said to be about its topic.
pub(crate) fn about<C: Call>(call: &C, context: Context) -> Context {
    match call.topic() {
        Some(topic) => context.topic(topic),
        None => context,
    }
}

/// Says of an unknown topic which one it is.
pub(crate) fn named(fault: Error, topic: Option<&str>) -> Error {
    match (&fault, topic) {
        (Error::Refused(refusal), Some(topic))
            if refusal.code == ErrorCode::UnknownTopicOrPartition =>
        {
            Error::UnknownTopic {
                topic: topic.into(),
                address: refusal.address.clone(),
            }
        }
        _ => fault,
    }
}

/// How often a call was tried, and whether it is tried again.
pub(crate) struct Attempts {
    deadline: Now,
    failures: u32,
    backoff: Backoff,
}

impl Attempts {
    pub(crate) fn new(config: &ClientConfig, now: Now) -> Self {
        let backoff = Backoff {
            first: config.backoff,
            max: config.backoff_max,
        };
        Self {
            deadline: now.after(config.call_timeout),
            failures: 0,
            backoff,
        }
    }

    pub(crate) fn deadline(&self) -> Now {
        self.deadline
    }

    /// How long to pause before trying again; the error itself if that would not help, or not be safe.
    pub(crate) fn again<C: Call>(
        &mut self,
        fault: Error,
        now: Now,
        random: &mut Random,
    ) -> Result<std::time::Duration, Error> {
        let is_transient = match &fault {
            Error::Refused(refusal) => is_transient(refusal.code),
            // One that had answered before may be on its way back; whoever never did is told of at once.
            Error::Disconnected { .. } => C::IS_REPEATABLE,
            _ => false,
        };
        self.failures += 1;
        let pause = self.backoff.pause(self.failures, random);
        match is_transient && now.after(pause) < self.deadline {
            true => Ok(pause),
            false => Err(fault),
        }
    }
}

/// Refusals that pass by themselves, and soon.
fn is_transient(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::LeaderNotAvailable
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::WrongShard
            | ErrorCode::OverBudget
            | ErrorCode::OffsetNotAvailable
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
    )
}
