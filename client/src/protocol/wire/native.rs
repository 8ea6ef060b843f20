//! Our own wire: a frame with a FlatBuffer for its head (`docs/protocol.md`).
//!
//! Owns: heads of requests, reading of answers. Heads that create, delete and describe topics have a page of their own
//! (`native_topics`).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tackboard_schema::frame::{ApiKey, Kind, encode_head, padding};
use tackboard_schema::native::{self, HeadBuilder, read_head};
use tackboard_schema::{
    Acks, BrokerId, CoreId, CorrelationId, Durability, ErrorCode, LeaderEpoch, Offset,
    PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicId,
};

#[cfg(feature = "blocking")]
use super::native_topics;
use super::{FetchResult, ListOffsetsResult, ProduceResult, Question, address, are_dense, groups};
use crate::admin::{
    BrokerDescription, ClusterDescription, ListedOffset, OffsetQuery, PartitionSummary,
    TopicSummary,
};
use crate::error::{Error, Result};
use crate::protocol::frames::NativeFrame;
use crate::protocol::messages::{Context, Welcome, error_code};

/// The version of the protocol that this client speaks.
const VERSION: u8 = tackboard_schema::frame::PROTOCOL_VERSION;

/// Writes a request behind what `out` has.
pub(super) fn write(
    out: &mut VecDeque<Bytes>,
    heads: &mut HeadBuilder,
    question: &Question<'_>,
    id: CorrelationId,
) {
    let body_length = question.body_length();
    let head = head(heads, question);
    let mut frame = Vec::new();
    encode_head(
        &mut frame,
        Kind::Request,
        question.api(),
        id,
        head,
        body_length,
    );
    out.push_back(frame.into());
    out.extend(question.body().iter().cloned());
    match padding(body_length) {
        [] => {}
        zeros => out.push_back(Bytes::from_static(zeros)),
    }
}

fn head<'b>(builder: &'b mut HeadBuilder, question: &Question<'_>) -> &'b [u8] {
    match question {
        Question::Hello { client_id } => hello_request(builder, client_id),
        Question::Metadata { topics } => metadata_request(builder, *topics),
        Question::InitProducer => init_producer_request(builder),
        Question::Produce {
            request, entries, ..
        } => builder.produce_request(request, entries),
        Question::Fetch { request, entries } => builder.fetch_request(request, entries),
        Question::ListOffsets { entries } => list_offsets_request(builder, entries),
        Question::Group(question) => groups::head(builder, question),
        #[cfg(feature = "blocking")]
        Question::CreateTopic(topic) => native_topics::create_topic_request(builder, topic),
        #[cfg(feature = "blocking")]
        Question::DeleteTopic(name) => native_topics::delete_topic_request(builder, name),
        #[cfg(feature = "blocking")]
        Question::CreatePartitions(name, count) => {
            native_topics::create_partitions_request(builder, name, *count)
        }
        #[cfg(feature = "blocking")]
        Question::AlterTopic(name, changes) => {
            native_topics::alter_topic_request(builder, name, changes)
        }
        #[cfg(feature = "blocking")]
        Question::DescribeTopic(name) => native_topics::describe_topic_request(builder, name),
    }
}

impl Context {
    /// The head of the answer as a table.
    pub(super) fn read<'a, T>(&self, frame: &'a NativeFrame) -> Result<T::Inner>
    where
        T: flatbuffers::Follow<'a> + flatbuffers::Verifiable + 'a,
    {
        match ApiKey::from_key(frame.prefix.api_key) {
            Some(ApiKey::Error) => {
                let error = read_head::<native::ErrorResponse<'_>>(frame.head())
                    .map_err(|fault| self.fault(fault))?;
                self.check(error.error_code(), error.message())?;
                Err(self.fault("an error without a code"))
            }
            Some(api) if api == self.api => {
                read_head::<T>(frame.head()).map_err(|fault| self.fault(fault))
            }
            _ => Err(self.fault(format_args!("API key {}", frame.prefix.api_key))),
        }
    }
}

/// The first request of every connection.
pub(super) fn hello_request<'b>(builder: &'b mut HeadBuilder, client_id: &str) -> &'b [u8] {
    builder.build(|builder| {
        let client_id = Some(builder.create_string(client_id));
        let args = native::HelloRequestArgs {
            client_id,
            min_version: VERSION,
            max_version: VERSION,
        };
        native::HelloRequest::create(builder, &args)
    })
}

/// Reads the answer to [`hello_request`].
pub(super) fn read_hello(context: &Context, frame: &NativeFrame) -> Result<Welcome> {
    let hello = context.read::<native::HelloResponse<'_>>(frame)?;
    context.check(hello.error_code(), hello.message())?;
    if hello.version() != VERSION {
        return Err(context.fault(format_args!(
            "version {} where {VERSION} was asked for",
            hello.version()
        )));
    }
    Ok(Welcome {
        cluster_id: hello.cluster_id().unwrap_or_default().into(),
        broker_id: BrokerId(hello.broker_id()),
        broker_version: hello.broker_version().unwrap_or_default().into(),
        core_count: hello.core_count(),
        core: CoreId(hello.core()),
        frame_bytes_max: hello.frame_bytes_max(),
        batch_bytes_max: hello.batch_bytes_max(),
        requests_in_flight_max: hello.requests_in_flight_max(),
        request_bytes_in_flight_max: hello.request_bytes_in_flight_max(),
    })
}

/// Asks about these topics, or about all.
pub(super) fn metadata_request<'b>(
    builder: &'b mut HeadBuilder,
    topics: Option<&[&str]>,
) -> &'b [u8] {
    builder.build(|builder| {
        let topics = topics.map(|topics| {
            let names: Vec<_> = topics
                .iter()
                .map(|name| builder.create_string(name))
                .collect();
            builder.create_vector(&names)
        });
        native::MetadataRequest::create(builder, &native::MetadataRequestArgs { topics })
    })
}

/// Reads the answer to [`metadata_request`].
pub(super) fn read_metadata(context: &Context, frame: &NativeFrame) -> Result<ClusterDescription> {
    let metadata = context.read::<native::MetadataResponse<'_>>(frame)?;
    context.check(metadata.error_code(), metadata.message())?;
    let brokers = metadata
        .brokers()
        .unwrap_or_default()
        .iter()
        .map(broker)
        .collect();
    let topics = metadata.topics().unwrap_or_default().iter();
    let mut topics = topics
        .map(|topic| topic_summary(context, topic))
        .collect::<Result<Vec<_>>>()?;
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(ClusterDescription { brokers, topics })
}

fn broker(broker: native::Broker<'_>) -> BrokerDescription {
    let ports = broker.core_ports();
    let cores = broker.core_hosts().iter().zip(ports.iter());
    BrokerDescription {
        broker_id: BrokerId(broker.broker_id()),
        address: address(broker.host(), broker.port()),
        core_addresses: cores
            .map(|(host, port)| (port != 0 && !host.is_empty()).then(|| address(host, port)))
            .collect(),
    }
}

fn topic_summary(context: &Context, topic: native::TopicMetadata<'_>) -> Result<TopicSummary> {
    let durability = tackboard_schema::native::durability_from_head(topic.durability());
    let mut partitions: Vec<_> = topic
        .partitions()
        .unwrap_or_default()
        .iter()
        .map(partition_summary)
        .collect();
    partitions.sort_by_key(|partition| partition.partition);
    if !are_dense(&partitions) {
        return Err(context.fault(format_args!(
            "partitions of {} that are not numbered from 0",
            topic.name()
        )));
    }
    Ok(TopicSummary {
        name: topic.name().into(),
        error: some_error(topic.error_code()),
        topic_id: topic_id(topic.topic_id()),
        acks: Acks::from_i16(topic.acks()).unwrap_or(Acks::All),
        durability: durability
            .map_err(|fault| context.fault(fault))?
            .unwrap_or(Durability::Fsync),
        partitions,
    })
}

fn partition_summary(partition: native::PartitionMetadata<'_>) -> PartitionSummary {
    let brokers =
        |ids: Option<flatbuffers::Vector<'_, i32>>| ids.iter().flatten().map(BrokerId).collect();
    PartitionSummary {
        partition: PartitionIndex(partition.partition()),
        error: some_error(partition.error_code()),
        leader: (partition.leader() >= 0).then(|| BrokerId(partition.leader())),
        leader_epoch: LeaderEpoch(partition.leader_epoch()),
        core: CoreId(partition.core()),
        replicas: brokers(partition.replicas()),
        in_sync_replicas: brokers(partition.in_sync_replicas()),
    }
}

pub(super) fn some_error(code: i16) -> Option<ErrorCode> {
    (code != 0).then(|| error_code(code))
}

pub(super) fn topic_id(id: Option<&native::Uuid>) -> TopicId {
    TopicId(id.map_or([0; 16], |id| id.bytes().into()))
}

/// Asks for a producer id.
pub(super) fn init_producer_request(builder: &mut HeadBuilder) -> &[u8] {
    builder.build(|builder| {
        native::InitProducerRequest::create(builder, &native::InitProducerRequestArgs {})
    })
}

/// Reads the answer to [`init_producer_request`].
pub(super) fn read_init_producer(
    context: &Context,
    frame: &NativeFrame,
) -> Result<(ProducerId, ProducerEpoch)> {
    let answer = context.read::<native::InitProducerResponse<'_>>(frame)?;
    context.check(answer.error_code(), answer.message())?;
    let (id, epoch) = (answer.producer_id(), answer.producer_epoch());
    if id < 0 || epoch < 0 {
        return Err(context.fault(format_args!("producer id {id} and epoch {epoch}")));
    }
    Ok((ProducerId(id), ProducerEpoch(epoch)))
}

/// Asks for offsets by position or by time.
pub(super) fn list_offsets_request<'b>(
    builder: &'b mut HeadBuilder,
    entries: &[(&str, PartitionIndex, OffsetQuery)],
) -> &'b [u8] {
    builder.build(|builder| {
        let entries = entries.iter().map(|(topic, partition, query)| {
            let args = native::ListOffsetsEntryArgs {
                topic: Some(builder.create_shared_string(topic)),
                partition: partition.0,
                timestamp_ms: query.number(),
            };
            native::ListOffsetsEntry::create(builder, &args)
        });
        let entries: Vec<_> = entries.collect();
        let entries = Some(builder.create_vector(&entries));
        native::ListOffsetsRequest::create(builder, &native::ListOffsetsRequestArgs { entries })
    })
}

/// Reads the answer to [`list_offsets_request`], one result per entry, each with its own refusal.
pub(super) fn read_list_offsets(
    context: &Context,
    frame: &NativeFrame,
) -> Result<Vec<ListOffsetsResult>> {
    let answer = context.read::<native::ListOffsetsResponse<'_>>(frame)?;
    context.check(answer.error_code(), answer.message())?;
    let results = answer.results().unwrap_or_default().iter().map(|result| {
        let (topic, partition): (Arc<str>, _) =
            (result.topic().into(), PartitionIndex(result.partition()));
        let listed = match error_code(result.error_code()) {
            ErrorCode::None => Ok(ListedOffset {
                topic: topic.clone(),
                partition,
                offset: (result.offset() >= 0).then(|| Offset(result.offset())),
                timestamp: (result.timestamp_ms() >= 0).then(|| TimestampMs(result.timestamp_ms())),
            }),
            code => {
                let context = context.clone().topic(result.topic());
                Err(Error::Refused(context.refusal(
                    Some(partition),
                    code,
                    result.message(),
                )))
            }
        };
        (topic, partition, listed)
    });
    Ok(results.collect())
}

/// The answer to a produce request.
pub(super) fn read_produced<'a>(
    context: &Context,
    frame: &'a NativeFrame,
) -> Result<native::ProduceResponse<'a>> {
    let answer = context.read::<native::ProduceResponse<'_>>(frame)?;
    context.check(answer.error_code(), answer.message())?;
    Ok(answer)
}

/// What it says of one batch. Brokers answer in the order of the entries; nothing depends on it.
pub(super) fn produced<'a>(
    answer: &native::ProduceResponse<'a>,
    index: usize,
    topic: &str,
    partition: PartitionIndex,
) -> Option<ProduceResult<'a>> {
    let results = answer.results().unwrap_or_default();
    let is_it = |result: &native::ProduceResult<'_>| {
        result.partition() == partition.0 && result.topic() == topic
    };
    let in_order = (index < results.len())
        .then(|| results.get(index))
        .filter(is_it);
    let result = in_order.or_else(|| results.iter().find(is_it))?;
    Some(ProduceResult {
        code: error_code(result.error_code()),
        message: result.message(),
        base_offset: result.base_offset(),
    })
}

/// Passes on what an answer to a fetch request says of each partition, in its order.
pub(super) fn read_fetched(
    context: &Context,
    frame: &NativeFrame,
    mut take: impl FnMut(usize, FetchResult<'_>),
) -> Result<()> {
    let answer = context.read::<native::FetchResponse<'_>>(frame)?;
    context.check(answer.error_code(), answer.message())?;
    let (body, mut at) = (frame.body(), 0);
    for (index, result) in answer.results().unwrap_or_default().iter().enumerate() {
        let end = at + result.byte_length() as usize;
        if end > body.len() {
            return Err(context.fault(format_args!(
                "a body of {} bytes where {end} are used",
                body.len()
            )));
        }
        let batches = body.slice(at..end);
        at = end;
        let result = FetchResult {
            topic: result.topic(),
            partition: PartitionIndex(result.partition()),
            code: error_code(result.error_code()),
            message: result.message(),
            high_watermark: Offset(result.high_watermark()),
            log_start_offset: Offset(result.log_start_offset()),
            batches,
        };
        take(index, result);
    }
    Ok(())
}
