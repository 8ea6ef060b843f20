//! What a client asks a broker and what it is told, and how both stand on the wire: ours, or Kafka's.
//!
//! The machines batch, number, repeat and decide without knowing which wire they are on. They hand a [`Question`] to a
//! connection and read an answer by one of the functions of this page, which return the same types whatever the wire.
//! This is where the two differ least. What was asked, of which partition, within which bounds, and what came of each
//! partition are the same notions on both, and a body is the same record batches. Above this seam there would be two
//! machines; below it, at the bytes, the machines would have to know of versions and tagged fields.
//!
//! What differs is kept below:
//!
//! | | native | Kafka |
//! |---|---|---|
//! | greeting | Hello: one version, bounds of the broker | ApiVersions: a version for each API, no bounds ([`kafka::Wire`] has its own) |
//! | answers | in any order | in the order of the requests, so that a parked fetch holds back whatever is behind it |
//! | a partition is reached at | its core's port, else any core's | its leader's one address |
//! | acks | asked for, or left to the topic | always asked for |
//! | durability | may be raised by a request | the topic's |
//! | a batch in a request or answer | in the body, behind the head | in the midst of the message |
//! | the end of a fetched stretch | a whole batch | anywhere: what is not whole is left out here |
//! | codes | ours and Kafka's | Kafka's, which become ours in one table (`kafka::codes`) |
//!
//! Since answers come in order, a fetch that finds nothing is an obstacle, not only something that waits. So producers
//! and consumers have connections of their own (each machine has, on both wires), a consumer has one request at a time on
//! a connection ([`Pipelining::One`]), and it asks for nothing while a partition with a full buffer would have to wait for
//! the answer ([`Wire::answers_in_order`]).
//!
//! Not here: batching, windows, sequence numbers, retries, what a code means for a batch. Messages of Kafka are
//! `tackboard_schema::kafka`'s, heads of ours `tackboard_schema::native`'s.
//!
//! Invariants:
//! 1. Batches are passed on as slices, to the socket and from the frame they came in.
//! 2. Whatever a broker sends, reading it ends in a value or an error, never in a panic; an error code that this client
//!    does not know reads as `UNKNOWN_SERVER_ERROR` and keeps the broker's message.

#[cfg(feature = "blocking")]
pub(crate) mod group_admin;
pub(crate) mod groups;
pub(crate) mod kafka;
mod native;
#[cfg(feature = "blocking")]
mod native_topics;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::{
    FetchEntryHead, FetchRequestHead, HeadBuilder, ProduceEntryHead, ProduceRequestHead,
    ProduceResponse,
};
use tackboard_schema::{
    CorrelationId, ErrorCode, Offset, PartitionIndex, ProducerEpoch, ProducerId,
};

use super::frames::InFrame;
use super::messages::{Context, Welcome};
use crate::admin::{ClusterDescription, ListedOffset, OffsetQuery, PartitionSummary};
#[cfg(feature = "blocking")]
use crate::admin::{CreatedTopic, NewTopic, TopicDescription};
use crate::config::{ClientConfig, Protocol};
use crate::error::Result;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question<'a> {
    /// The first of every connection.
    Hello { client_id: &'a str },
    /// About these topics, or about all.
    Metadata { topics: Option<&'a [&'a str]> },
    /// For a producer id.
    InitProducer,
    /// To append these batches, one for each entry.
    Produce {
        request: &'a ProduceRequestHead,
        entries: &'a [ProduceEntryHead<'a>],
        body: &'a [Bytes],
    },
    /// For batches.
    Fetch {
        request: &'a FetchRequestHead,
        entries: &'a [FetchEntryHead<'a>],
    },
    /// For offsets by position or by time.
    ListOffsets {
        entries: &'a [(&'a str, PartitionIndex, OffsetQuery)],
    },
    /// To the coordinator of a group. Not on Kafka's wire.
    Group(groups::GroupQuestion<'a>),
    /// To create a topic.
    #[cfg(feature = "blocking")]
    CreateTopic(&'a NewTopic),
    /// To delete a topic.
    #[cfg(feature = "blocking")]
    DeleteTopic(&'a str),
    /// For more partitions of a topic, so that it has so many.
    #[cfg(feature = "blocking")]
    CreatePartitions(&'a str, i32),
    /// For other settings of a topic: key and value, or none for the broker's.
    #[cfg(feature = "blocking")]
    AlterTopic(&'a str, &'a [(String, Option<String>)]),
    /// For a topic's settings and positions.
    #[cfg(feature = "blocking")]
    DescribeTopic(&'a str),
}

impl Question<'_> {
    /// Which API it is, by our names.
    pub(crate) fn api(&self) -> ApiKey {
        match self {
            Self::Hello { .. } => ApiKey::Hello,
            Self::Metadata { .. } => ApiKey::Metadata,
            Self::InitProducer => ApiKey::InitProducer,
            Self::Produce { .. } => ApiKey::Produce,
            Self::Fetch { .. } => ApiKey::Fetch,
            Self::ListOffsets { .. } => ApiKey::ListOffsets,
            Self::Group(question) => question.api(),
            #[cfg(feature = "blocking")]
            Self::CreateTopic(_) => ApiKey::CreateTopic,
            #[cfg(feature = "blocking")]
            Self::DeleteTopic(_) => ApiKey::DeleteTopic,
            #[cfg(feature = "blocking")]
            Self::CreatePartitions(..) => ApiKey::CreatePartitions,
            #[cfg(feature = "blocking")]
            Self::AlterTopic(..) => ApiKey::AlterTopic,
            #[cfg(feature = "blocking")]
            Self::DescribeTopic(_) => ApiKey::DescribeTopic,
        }
    }

    /// The batches that it carries.
    fn body(&self) -> &[Bytes] {
        match self {
            Self::Produce { body, .. } => body,
            _ => &[],
        }
    }

    /// Their bytes.
    pub(crate) fn body_length(&self) -> usize {
        self.body().iter().map(Bytes::len).sum()
    }
}

/// How many requests a client has before their answers on a connection whose broker doesn't say what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipelining {
    /// One: answers may be long in coming, and those behind them are not to wait.
    One,
    /// Several, so that the broker always has the next one at hand.
    Several,
}

/// How a connection's requests are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Native,
    Kafka(kafka::Wire),
}

/// Why a request was not written, as a code with words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unaskable {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Wire {
    pub(crate) fn new(config: &ClientConfig, pipelining: Pipelining) -> Self {
        match config.protocol {
            Protocol::Native => Self::Native,
            Protocol::Kafka => Self::Kafka(kafka::Wire::new(&config.client_id, pipelining)),
        }
    }

    /// Whether an answer holds back those to the requests behind its own.
    pub(crate) fn answers_in_order(&self) -> bool {
        matches!(self, Self::Kafka(_))
    }

    /// Writes a request behind what `out` has; returns the version that it is in. `out` is untouched after a fault.
    pub(crate) fn write(
        &self,
        out: &mut VecDeque<Bytes>,
        heads: &mut HeadBuilder,
        question: &Question<'_>,
        id: CorrelationId,
    ) -> Result<i16, Unaskable> {
        match self {
            Self::Native => {
                native::write(out, heads, question, id);
                Ok(0)
            }
            Self::Kafka(wire) => wire.write(out, question, id),
        }
    }

    /// The request that an answer with this id belongs to, `next` being the id of the next one.
    pub(crate) fn request_id(&self, answered: CorrelationId, next: u64) -> CorrelationId {
        match self {
            Self::Native => answered,
            Self::Kafka(_) => kafka::request_id(answered, next),
        }
    }

    /// Reads the answer to [`Question::Hello`], by which later requests are written.
    pub(crate) fn read_hello(&mut self, context: &Context, frame: &InFrame) -> Result<Welcome> {
        match (self, frame) {
            (Self::Kafka(wire), InFrame::Kafka(frame)) => wire.read_hello(context, frame),
            (_, InFrame::Native(frame)) => native::read_hello(context, frame),
            (Self::Native, InFrame::Kafka(_)) => Err(context.fault("a frame of Kafka's")),
        }
    }
}

/// Reads the answer to [`Question::Metadata`].
pub(crate) fn read_metadata(context: &Context, frame: &InFrame) -> Result<ClusterDescription> {
    match frame {
        InFrame::Native(frame) => native::read_metadata(context, frame),
        InFrame::Kafka(frame) => kafka::read_metadata(context, frame),
    }
}

/// Reads the answer to [`Question::InitProducer`].
pub(crate) fn read_init_producer(
    context: &Context,
    frame: &InFrame,
) -> Result<(ProducerId, ProducerEpoch)> {
    match frame {
        InFrame::Native(frame) => native::read_init_producer(context, frame),
        InFrame::Kafka(frame) => kafka::read_init_producer(context, frame),
    }
}

/// What was said of one partition, or why it was refused.
pub(crate) type ListOffsetsResult = (Arc<str>, PartitionIndex, Result<ListedOffset>);

/// Reads the answer to [`Question::ListOffsets`], one result per entry, each with its own refusal.
pub(crate) fn read_list_offsets(
    context: &Context,
    frame: &InFrame,
) -> Result<Vec<ListOffsetsResult>> {
    match frame {
        InFrame::Native(frame) => native::read_list_offsets(context, frame),
        InFrame::Kafka(frame) => kafka::read_list_offsets(context, frame),
    }
}

/// The answer to [`Question::Produce`].
#[derive(Debug)]
pub(crate) enum Produced<'a> {
    Native(ProduceResponse<'a>),
    Kafka(kafka::Produced),
}

/// What became of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProduceResult<'a> {
    pub(crate) code: ErrorCode,
    pub(crate) message: Option<&'a str>,
    /// The offset of its first record; below zero where the broker doesn't tell it.
    pub(crate) base_offset: i64,
}

/// Reads the answer to [`Question::Produce`].
pub(crate) fn read_produced<'a>(context: &Context, frame: &'a InFrame) -> Result<Produced<'a>> {
    match frame {
        InFrame::Native(frame) => native::read_produced(context, frame).map(Produced::Native),
        InFrame::Kafka(frame) => kafka::read_produced(context, frame).map(Produced::Kafka),
    }
}

impl Produced<'_> {
    /// What it says of the entry with this index, which is this partition's.
    pub(crate) fn result(
        &self,
        index: usize,
        topic: &str,
        partition: PartitionIndex,
    ) -> Option<ProduceResult<'_>> {
        match self {
            Self::Native(answer) => native::produced(answer, index, topic, partition),
            Self::Kafka(answer) => answer.result(index, topic, partition),
        }
    }
}

/// What a fetch yielded of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchResult<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: PartitionIndex,
    pub(crate) code: ErrorCode,
    pub(crate) message: Option<&'a str>,
    /// Below zero where the broker doesn't tell it.
    pub(crate) high_watermark: Offset,
    pub(crate) log_start_offset: Offset,
    /// A slice of the frame, not checked yet.
    pub(crate) batches: Bytes,
}

/// Reads the answer to [`Question::Fetch`] and passes on what it says of each partition, in its order.
pub(crate) fn read_fetched(
    context: &Context,
    frame: &InFrame,
    take: impl FnMut(usize, FetchResult<'_>),
) -> Result<()> {
    match frame {
        InFrame::Native(frame) => native::read_fetched(context, frame, take),
        InFrame::Kafka(frame) => kafka::read_fetched(context, frame, take),
    }
}

/// Reads the answer to [`Question::CreateTopic`].
#[cfg(feature = "blocking")]
pub(crate) fn read_create_topic(context: &Context, frame: &InFrame) -> Result<CreatedTopic> {
    match frame {
        InFrame::Native(frame) => native_topics::read_create_topic(context, frame),
        InFrame::Kafka(frame) => kafka::read_create_topic(context, frame),
    }
}

/// Reads the answer to [`Question::DeleteTopic`].
#[cfg(feature = "blocking")]
pub(crate) fn read_delete_topic(context: &Context, frame: &InFrame) -> Result<()> {
    match frame {
        InFrame::Native(frame) => native_topics::read_delete_topic(context, frame),
        InFrame::Kafka(frame) => kafka::read_delete_topic(context, frame),
    }
}

/// Reads the answer to [`Question::CreatePartitions`], which is never asked on Kafka's wire.
#[cfg(feature = "blocking")]
pub(crate) fn read_create_partitions(context: &Context, frame: &InFrame) -> Result<()> {
    match frame {
        InFrame::Native(frame) => native_topics::read_create_partitions(context, frame),
        InFrame::Kafka(_) => Err(context.fault("a frame of Kafka's")),
    }
}

/// Reads the answer to [`Question::AlterTopic`], which is never asked on Kafka's wire.
#[cfg(feature = "blocking")]
pub(crate) fn read_alter_topic(context: &Context, frame: &InFrame) -> Result<()> {
    match frame {
        InFrame::Native(frame) => native_topics::read_alter_topic(context, frame),
        InFrame::Kafka(_) => Err(context.fault("a frame of Kafka's")),
    }
}

/// Reads the answer to [`Question::DescribeTopic`], which is never asked on Kafka's wire.
#[cfg(feature = "blocking")]
pub(crate) fn read_describe_topic(context: &Context, frame: &InFrame) -> Result<TopicDescription> {
    match frame {
        InFrame::Native(frame) => native_topics::read_describe_topic(context, frame),
        InFrame::Kafka(_) => Err(context.fault("a frame of Kafka's")),
    }
}

/// `host:port`, with brackets around an IPv6 address.
fn address(host: &str, port: u16) -> Arc<str> {
    if host.contains(':') && !host.starts_with('[') {
        return format!("[{host}]:{port}").into();
    }
    format!("{host}:{port}").into()
}

/// Whether partitions, in order, are numbered from 0 without a hole.
fn are_dense(partitions: &[PartitionSummary]) -> bool {
    partitions
        .iter()
        .zip(0..)
        .all(|(partition, index)| partition.partition.0 == index)
}
