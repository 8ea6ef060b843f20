//! Heads between bytes and the client's own types.
//!
//! Owns: encoding of requests, reading of answers, for what every client needs. Produce and fetch are read in place by
//! their machines, administration has a page of its own (`topic_messages`). Not here: when to send what.
//!
//! Invariant: whatever a broker sends, reading it ends in a value or an error, never in a panic; an error code that
//! this client does not know reads as `UNKNOWN_SERVER_ERROR` and keeps the broker's message.

use std::sync::Arc;

use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::{self, HeadBuilder, read_head};
use tackboard_schema::{
    Acks, BrokerId, CoreId, Durability, ErrorCode, LeaderEpoch, Offset, PartitionIndex,
    ProducerEpoch, ProducerId, TimestampMs, TopicId,
};

use super::frames::InFrame;
use crate::admin::{
    BrokerDescription, ClusterDescription, ListedOffset, OffsetQuery, PartitionSummary,
    TopicSummary,
};
use crate::error::{Error, Refusal, Result};

/// What a broker says of itself when a connection begins, and the bounds it holds its clients to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The cluster's id, perhaps empty.
    pub cluster_id: String,
    /// The broker's number.
    pub broker_id: BrokerId,
    /// Its release.
    pub broker_version: String,
    /// How many cores it runs on.
    pub core_count: u16,
    /// The core that serves this connection.
    pub core: CoreId,
    /// Longest frame it takes, in bytes.
    pub frame_bytes_max: u32,
    /// Longest record batch it takes unless a topic says otherwise, in bytes.
    pub batch_bytes_max: u32,
    /// Requests it takes on one connection before their answers.
    pub requests_in_flight_max: u32,
    /// Bytes of such requests.
    pub request_bytes_in_flight_max: u64,
}

/// The version of the protocol that this client speaks.
const VERSION: u8 = tackboard_schema::frame::PROTOCOL_VERSION;

/// The name of an API in errors.
pub fn api_name(api: ApiKey) -> &'static str {
    match api {
        ApiKey::Error => "Error",
        ApiKey::Hello => "Hello",
        ApiKey::Metadata => "Metadata",
        ApiKey::CreateTopic => "CreateTopic",
        ApiKey::DeleteTopic => "DeleteTopic",
        ApiKey::DescribeTopic => "DescribeTopic",
        ApiKey::InitProducer => "InitProducer",
        ApiKey::Produce => "Produce",
        ApiKey::Fetch => "Fetch",
        ApiKey::ListOffsets => "ListOffsets",
        ApiKey::FindCoordinator => "FindCoordinator",
        ApiKey::JoinGroup => "JoinGroup",
        ApiKey::SyncGroup => "SyncGroup",
        ApiKey::Heartbeat => "Heartbeat",
        ApiKey::LeaveGroup => "LeaveGroup",
        ApiKey::OffsetCommit => "OffsetCommit",
        ApiKey::OffsetFetch => "OffsetFetch",
        ApiKey::ListGroups => "ListGroups",
        ApiKey::DescribeGroups => "DescribeGroups",
        ApiKey::DeleteGroups => "DeleteGroups",
        ApiKey::DeleteOffsets => "DeleteOffsets",
    }
}

/// The code with this number; one that is not known reads as a fault of the server.
pub fn error_code(number: i16) -> ErrorCode {
    ErrorCode::from_code(number).unwrap_or(ErrorCode::UnknownServerError)
}

/// What an answer is about, for the errors that it may turn into.
#[derive(Clone, Debug)]
pub struct Context {
    /// Which API was called.
    pub api: ApiKey,
    /// Who answered.
    pub address: Arc<str>,
    /// Which topic it is about, if one.
    pub topic: Option<Arc<str>>,
}

impl Context {
    /// For an API at an address.
    pub fn new(api: ApiKey, address: &Arc<str>) -> Self {
        Self {
            api,
            address: address.clone(),
            topic: None,
        }
    }

    /// The same about a topic.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// `Ok` for code 0, else the refusal.
    pub fn check(&self, code: i16, message: Option<&str>) -> Result<()> {
        match error_code(code) {
            ErrorCode::None => Ok(()),
            code => Err(Error::Refused(self.refusal(None, code, message))),
        }
    }

    /// A refusal in this context.
    pub fn refusal(
        &self,
        partition: Option<PartitionIndex>,
        code: ErrorCode,
        message: Option<&str>,
    ) -> Refusal {
        Refusal {
            api: api_name(self.api),
            address: self.address.clone(),
            topic: self.topic.clone(),
            partition,
            code,
            message: message.unwrap_or_default().into(),
        }
    }

    /// The broker sent something that cannot be.
    pub fn fault(&self, what: impl ToString) -> Error {
        let what = format!(
            "an answer to {} with {}",
            api_name(self.api),
            what.to_string()
        );
        Error::Protocol {
            address: self.address.clone(),
            what: what.into(),
        }
    }

    /// The head of the answer as a table.
    pub fn read<'a, T>(&self, frame: &'a InFrame) -> Result<T::Inner>
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
pub fn hello_request<'b>(builder: &'b mut HeadBuilder, client_id: &str) -> &'b [u8] {
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
pub fn read_hello(context: &Context, frame: &InFrame) -> Result<Welcome> {
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
pub fn metadata_request<'b>(builder: &'b mut HeadBuilder, topics: Option<&[&str]>) -> &'b [u8] {
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
pub fn read_metadata(context: &Context, frame: &InFrame) -> Result<ClusterDescription> {
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

/// `host:port`, with brackets around an IPv6 address.
fn address(host: &str, port: u16) -> Arc<str> {
    if host.contains(':') && !host.starts_with('[') {
        return format!("[{host}]:{port}").into();
    }
    format!("{host}:{port}").into()
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
    let dense = partitions
        .iter()
        .zip(0..)
        .all(|(partition, index)| partition.partition.0 == index);
    if !dense {
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
pub fn init_producer_request(builder: &mut HeadBuilder) -> &[u8] {
    builder.build(|builder| {
        native::InitProducerRequest::create(builder, &native::InitProducerRequestArgs {})
    })
}

/// Reads the answer to [`init_producer_request`].
pub fn read_init_producer(
    context: &Context,
    frame: &InFrame,
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
pub fn list_offsets_request<'b>(
    builder: &'b mut HeadBuilder,
    entries: &[(&str, PartitionIndex, OffsetQuery)],
) -> &'b [u8] {
    builder.build(|builder| {
        let entries = entries.iter().map(|(topic, partition, query)| {
            let args = native::ListOffsetsEntryArgs {
                topic: Some(builder.create_shared_string(topic)),
                partition: partition.0,
                timestamp_ms: match query {
                    OffsetQuery::Latest => -1,
                    OffsetQuery::Earliest => -2,
                    // Nothing is older than the epoch; below it lie the two numbers above.
                    OffsetQuery::At(timestamp) => timestamp.0.max(0),
                },
            };
            native::ListOffsetsEntry::create(builder, &args)
        });
        let entries: Vec<_> = entries.collect();
        let entries = Some(builder.create_vector(&entries));
        native::ListOffsetsRequest::create(builder, &native::ListOffsetsRequestArgs { entries })
    })
}

/// What was said of one partition, or why it was refused.
pub type ListOffsetsResult = (Arc<str>, PartitionIndex, Result<ListedOffset>);

/// Reads the answer to [`list_offsets_request`], one result per entry, each with its own refusal.
pub fn read_list_offsets(context: &Context, frame: &InFrame) -> Result<Vec<ListOffsetsResult>> {
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
