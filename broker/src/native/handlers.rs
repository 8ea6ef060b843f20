//! From a frame to the entries of a request: one function an API.
//!
//! A head that the verifier refuses, an unknown API or version is answered with an error under the request's correlation
//! id; the connection goes on.

use std::{collections::BTreeSet, rc::Rc};

use bytes::Bytes;
use tackboard_logic::{
    metadata::ConfigChange,
    request::{account::Held, fetch::Bounds},
};
use tackboard_schema::{
    CorrelationId, DecodeError, ErrorCode, Offset, PartitionIndex, TimestampMs,
    frame::{ApiKey, Frame, Kind, PROTOCOL_VERSION},
    native::{
        AlterTopicRequest, CreatePartitionsRequest, CreateTopicRequest, DeleteTopicRequest,
        DescribeTopicRequest, FetchRequest, HelloRequest, HelloResponse, HelloResponseArgs,
        InitProducerRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest, SettingChange,
        acks_from_head, durability_from_head, read_head,
    },
};

use super::{answer::send_head, connection::Connection, groups};
use crate::shard::{
    placed::{FetchFrom, Placed, find_topic, place_of, place_to_write, short},
    request::{Failure, Levels},
    state::State,
};

/// Entries in one request.
pub const ENTRIES_MAX: usize = 10_000;

/// Takes one request in. Everything that goes wrong is answered.
pub fn handle(state: &mut State, connection: &Rc<Connection>, frame: &Frame<'_>) {
    state.metrics().requests.increment();
    let id = frame.prefix.correlation_id;
    if let Err(failure) = dispatch(state, connection, frame) {
        state.refuse(connection, id, &failure);
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Failure::new(ErrorCode::InvalidRequest, format!("head refused: {error}"))
    }
}

fn dispatch(
    state: &mut State,
    connection: &Rc<Connection>,
    frame: &Frame<'_>,
) -> Result<(), Failure> {
    let prefix = &frame.prefix;
    if prefix.kind != Kind::Request {
        let message = "a client sends requests (kind 0), not responses";
        return Err(Failure::new(ErrorCode::InvalidRequest, message));
    }
    if prefix.version != PROTOCOL_VERSION {
        let message = format!(
            "protocol version {} is not served; {PROTOCOL_VERSION} is",
            prefix.version
        );
        return Err(Failure::new(ErrorCode::UnsupportedVersion, message));
    }
    let id = prefix.correlation_id;
    match ApiKey::from_key(prefix.api_key) {
        Some(ApiKey::Hello) => hello(state, connection, id, frame.head),
        Some(ApiKey::Metadata) => metadata(state, connection, id, frame.head),
        Some(ApiKey::CreateTopic) => create_topic(state, connection, id, frame.head),
        Some(ApiKey::DeleteTopic) => {
            let request = read_head::<DeleteTopicRequest<'_>>(frame.head)?;
            state.delete_topic(connection, id, short(request.name())?);
            Ok(())
        }
        Some(ApiKey::DescribeTopic) => {
            let request = read_head::<DescribeTopicRequest<'_>>(frame.head)?;
            state.describe_topic(connection, id, short(request.name())?);
            Ok(())
        }
        Some(ApiKey::CreatePartitions) => {
            let request = read_head::<CreatePartitionsRequest<'_>>(frame.head)?;
            state.create_partitions(connection, id, short(request.name())?, request.count());
            Ok(())
        }
        Some(ApiKey::AlterTopic) => alter_topic(state, connection, id, frame.head),
        Some(ApiKey::InitProducer) => {
            read_head::<InitProducerRequest<'_>>(frame.head)?;
            state.init_producer(connection, id);
            Ok(())
        }
        Some(ApiKey::Produce) => produce(state, connection, frame),
        Some(ApiKey::Fetch) => fetch(state, connection, id, frame.head),
        Some(ApiKey::ListOffsets) => list_offsets(state, connection, id, frame.head),
        Some(
            api @ (ApiKey::FindCoordinator
            | ApiKey::JoinGroup
            | ApiKey::SyncGroup
            | ApiKey::Heartbeat
            | ApiKey::LeaveGroup
            | ApiKey::OffsetCommit
            | ApiKey::OffsetFetch
            | ApiKey::ListGroups
            | ApiKey::DescribeGroups
            | ApiKey::DeleteGroups
            | ApiKey::DeleteOffsets),
        ) => groups::handle(state, connection, api, frame),
        Some(ApiKey::Error) | None => {
            let message = format!(
                "api_key {} is not one that can be asked for",
                prefix.api_key
            );
            Err(Failure::new(ErrorCode::UnsupportedVersion, message))
        }
    }
}

fn hello(
    state: &mut State,
    connection: &Rc<Connection>,
    id: CorrelationId,
    head: &[u8],
) -> Result<(), Failure> {
    let request = read_head::<HelloRequest<'_>>(head)?;
    let served = request.min_version()..=request.max_version();
    if !served.contains(&PROTOCOL_VERSION) {
        let message = format!(
            "the client speaks versions {} to {}, the broker {PROTOCOL_VERSION}",
            request.min_version(),
            request.max_version()
        );
        return Err(Failure::new(ErrorCode::UnsupportedVersion, message));
    }
    tracing::debug!(client = request.client_id().unwrap_or_default(), "hello");
    connection.take_in(Held::default());
    let config = state.config.clone();
    let core = state.core.0;
    let cluster_id = state.topics.image().cluster_id.to_string();
    let answer = state.heads.build(|builder| {
        let args = HelloResponseArgs {
            version: PROTOCOL_VERSION,
            cluster_id: Some(builder.create_string(&cluster_id)),
            broker_id: config.broker_id.0,
            broker_version: Some(builder.create_string(env!("CARGO_PKG_VERSION"))),
            core_count: config.cores.len() as u16,
            core,
            frame_bytes_max: config.frame_bytes_max,
            batch_bytes_max: config.batch_bytes_max,
            requests_in_flight_max: config.requests_in_flight_max,
            request_bytes_in_flight_max: config.request_bytes_in_flight_max,
            ..Default::default()
        };
        HelloResponse::create(builder, &args)
    });
    send_head(connection, ApiKey::Hello, id, answer);
    Ok(())
}

fn metadata(
    state: &mut State,
    connection: &Rc<Connection>,
    id: CorrelationId,
    head: &[u8],
) -> Result<(), Failure> {
    let request = read_head::<MetadataRequest<'_>>(head)?;
    let names = match request.topics() {
        None => None,
        Some(topics) => {
            bounded(topics.len().max(1))?;
            // A vector may name one string many times: each topic is told once.
            let names: Result<BTreeSet<&str>, Failure> = topics.iter().map(short).collect();
            Some(names?.into_iter().collect())
        }
    };
    state.answer_metadata(connection, id, names);
    Ok(())
}

fn create_topic(
    state: &mut State,
    connection: &Rc<Connection>,
    id: CorrelationId,
    head: &[u8],
) -> Result<(), Failure> {
    let request = read_head::<CreateTopicRequest<'_>>(head)?;
    let own = |text: &str| text.to_owned();
    let configs = (request.configs().iter().flatten())
        .map(|setting| (own(setting.key()), own(setting.value())))
        .collect();
    let size = (request.partitions(), request.replication_factor());
    state.create_topic(connection, id, short(request.name())?, size, configs);
    Ok(())
}

fn alter_topic(
    state: &mut State,
    connection: &Rc<Connection>,
    id: CorrelationId,
    head: &[u8],
) -> Result<(), Failure> {
    let request = read_head::<AlterTopicRequest<'_>>(head)?;
    let change = |change: SettingChange<'_>| {
        let change_of = |value: &str| ConfigChange::Set(value.to_owned());
        let becomes = change.value().map_or(ConfigChange::Reset, change_of);
        (change.key().to_owned(), becomes)
    };
    bounded(request.changes().len())?;
    let changes = request.changes().iter().map(change).collect();
    state.alter_topic(connection, id, short(request.name())?, changes);
    Ok(())
}

/// The number of entries of a request, if it is one that is taken.
pub(super) fn bounded(entries: usize) -> Result<(), Failure> {
    if (1..=ENTRIES_MAX).contains(&entries) {
        return Ok(());
    }
    let message = format!("{entries} entries; a request has 1 to {ENTRIES_MAX}");
    Err(Failure::new(ErrorCode::InvalidRequest, message))
}

fn produce(
    state: &mut State,
    connection: &Rc<Connection>,
    frame: &Frame<'_>,
) -> Result<(), Failure> {
    let request = read_head::<ProduceRequest<'_>>(frame.head)?;
    let levels = Levels {
        acks: acks_from_head(request.acks_level(), request.acks_count())?,
        durability: durability_from_head(request.durability())?,
    };
    let wanted = request.entries();
    bounded(wanted.len())?;
    let lengths = wanted.iter().map(|entry| u64::from(entry.byte_length()));
    let body_length: u64 = lengths.sum();
    if (frame.body.len() as u64) < body_length {
        let message = format!(
            "the entries speak of {body_length} bytes, the body has {}",
            frame.body.len()
        );
        return Err(Failure::new(ErrorCode::InvalidRequest, message));
    }
    let mut placed = Placed::with_capacity(wanted.len());
    let mut rest = frame.body;
    for entry in wanted {
        let partition = PartitionIndex(entry.partition());
        let (topic, found) = find_topic(state, short(entry.topic())?);
        let place = place_to_write(state, &found, partition);
        let (batches, after) = rest.split_at(entry.byte_length() as usize);
        rest = after;
        placed.add(topic, partition, place, batches);
    }
    let id = frame.prefix.correlation_id;
    let timeout_ms = request.timeout_ms();
    state.produce(
        connection,
        id,
        placed,
        levels,
        timeout_ms,
        Bytes::copy_from_slice,
    );
    Ok(())
}

fn fetch(
    state: &mut State,
    connection: &Rc<Connection>,
    id: CorrelationId,
    head: &[u8],
) -> Result<(), Failure> {
    let request = read_head::<FetchRequest<'_>>(head)?;
    let wanted = request.entries();
    bounded(wanted.len())?;
    state.admit_entries(connection, wanted.len())?;
    let bounds = Bounds {
        wait_ms: request.wait_ms_max(),
        bytes_min: request.bytes_min(),
        bytes_max: request.bytes_max(),
    };
    let mut placed = Placed::with_capacity(wanted.len());
    for entry in wanted {
        let partition = PartitionIndex(entry.partition());
        let (topic, place) = place_of(state, short(entry.topic())?, partition);
        let from = FetchFrom {
            offset: Offset(entry.fetch_offset()),
            bytes_max: entry.bytes_max(),
        };
        placed.add(topic, partition, place, from);
    }
    state.fetch(connection, id, placed, bounds);
    Ok(())
}

fn list_offsets(
    state: &mut State,
    connection: &Rc<Connection>,
    id: CorrelationId,
    head: &[u8],
) -> Result<(), Failure> {
    let request = read_head::<ListOffsetsRequest<'_>>(head)?;
    let wanted = request.entries();
    bounded(wanted.len())?;
    state.admit_entries(connection, wanted.len())?;
    let mut placed = Placed::with_capacity(wanted.len());
    for entry in wanted {
        let partition = PartitionIndex(entry.partition());
        let (topic, place) = place_of(state, short(entry.topic())?, partition);
        placed.add(topic, partition, place, TimestampMs(entry.timestamp_ms()));
    }
    state.list_offsets(connection, id, placed);
    Ok(())
}
