//! From a frame to the handler of its API.

use std::rc::Rc;

use bytes::Bytes;
use tackboard_logic::request::account::Held;
use tackboard_schema::{
    CorrelationId,
    kafka::{
        AlterConfigsRequest, ApiKey, ApiVersionsRequest, ApiVersionsResponse, DeleteRecordsRequest,
        DescribeConfigsRequest, FetchRequest, IncrementalAlterConfigsRequest, ListOffsetsRequest,
        OffsetForLeaderEpochRequest, ProduceRequest, Request, RequestFault, RequestFrame, Response,
        Str, api_versions, unsupported_api_versions,
    },
};

use super::session::FrameFault;
use super::{
    alter_configs,
    answers::{Answers, Asked, Form},
    create_partitions, create_topics, delete_records, delete_topics, describe_cluster,
    describe_configs, fetch, groups, init_producer_id, list_offsets, metadata,
    offset_for_leader_epoch, produce,
};
use crate::{
    native::{connection::Connection, handlers::ENTRIES_MAX},
    shard::state::State,
};

/// The APIs that have a handler. Nothing else is advertised, for clients use what they see.
pub const OFFERED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::OffsetDelete,
    ApiKey::DescribeCluster,
];

/// What a client is told of them.
fn offered() -> ApiVersionsResponse {
    let mut response = api_versions();
    let is_offered = |code| OFFERED.iter().any(|key| key.code() == code);
    response.api_keys.retain(|api| is_offered(api.api_key));
    response
}

/// Whether a frame is a produce request, as far as its first bytes say.
pub fn appends(frame: &[u8]) -> bool {
    frame.starts_with(&ApiKey::Produce.code().to_be_bytes())
}

/// One request on its way through its handler.
pub(super) struct Call<'a> {
    pub state: &'a mut State,
    pub connection: &'a Rc<Connection>,
    pub answers: &'a Answers,
    /// Stands for the request.
    pub number: CorrelationId,
    pub version: i16,
    /// What the client calls itself.
    pub client_id: Option<Str>,
}

impl Call<'_> {
    /// Answers at once: the request needs nothing of a log.
    pub fn respond<R: Response>(&self, response: &R) {
        self.connection.take_in(Held::default());
        self.answers.respond(self.connection, self.number, response);
    }
}

/// Takes one request in.
///
/// # Errors
/// One that can't be read, or that is not served: the connection ends, as Kafka's does.
pub fn handle(
    state: &mut State,
    connection: &Rc<Connection>,
    frame: Bytes,
) -> Result<(), FrameFault> {
    state.metrics().requests.increment();
    let Some(answers) = connection.kafka() else {
        return Ok(());
    };
    let frame = match RequestFrame::open(frame) {
        Ok(frame) => frame,
        Err(RequestFault::UnsupportedVersion {
            api: ApiKey::ApiVersions,
            correlation_id,
            ..
        }) => {
            let number = answers.ask(Asked {
                api: ApiKey::ApiVersions,
                version: 0,
                correlation_id,
                form: Form::Plain,
            });
            connection.take_in(Held::default());
            answers.respond(connection, number, &unsupported_api_versions());
            return Ok(());
        }
        Err(fault) => return Err(fault.into()),
    };
    if frame.version > frame.api.row().advertised.max {
        return Err(FrameFault::from(RequestFault::UnsupportedVersion {
            api: frame.api,
            version: frame.version,
            correlation_id: frame.correlation_id,
        }));
    }
    let asked = Asked {
        api: frame.api,
        version: frame.version,
        correlation_id: frame.correlation_id,
        form: Form::Plain,
    };
    let call = Call {
        version: frame.version,
        client_id: frame.client_id.clone(),
        number: answers.ask(asked),
        state,
        connection,
        answers,
    };
    match frame.api {
        ApiKey::ApiVersions => {
            read::<ApiVersionsRequest>(frame)?;
            call.respond(&offered());
        }
        ApiKey::Metadata => metadata::handle(call, read(frame)?),
        ApiKey::Produce => {
            let request: ProduceRequest = read(frame)?;
            let counts = request
                .topic_data
                .iter()
                .map(|topic| topic.partition_data.len());
            bounded(ApiKey::Produce, counts.sum())?;
            produce::handle(call, request);
        }
        ApiKey::Fetch => {
            let request: FetchRequest = read(frame)?;
            let counts = request.topics.iter().map(|topic| topic.partitions.len());
            bounded(ApiKey::Fetch, counts.sum())?;
            fetch::handle(call, request);
        }
        ApiKey::ListOffsets => {
            let request: ListOffsetsRequest = read(frame)?;
            let counts = request.topics.iter().map(|topic| topic.partitions.len());
            bounded(ApiKey::ListOffsets, counts.sum())?;
            list_offsets::handle(call, request);
        }
        ApiKey::InitProducerId => init_producer_id::handle(call, &read(frame)?),
        ApiKey::CreateTopics => create_topics::handle(call, read(frame)?),
        ApiKey::DeleteTopics => delete_topics::handle(call, read(frame)?),
        ApiKey::DeleteRecords => {
            let request: DeleteRecordsRequest = read(frame)?;
            let counts = request.topics.iter().map(|topic| topic.partitions.len());
            bounded(ApiKey::DeleteRecords, counts.sum())?;
            delete_records::handle(call, &request);
        }
        ApiKey::CreatePartitions => create_partitions::handle(call, read(frame)?),
        ApiKey::DescribeCluster => describe_cluster::handle(call, &read(frame)?),
        ApiKey::OffsetForLeaderEpoch => {
            let request: OffsetForLeaderEpochRequest = read(frame)?;
            let counts = request.topics.iter().map(|topic| topic.partitions.len());
            bounded(ApiKey::OffsetForLeaderEpoch, counts.sum())?;
            offset_for_leader_epoch::handle(call, request);
        }
        ApiKey::DescribeConfigs => {
            let request: DescribeConfigsRequest = read(frame)?;
            let counts = (request.resources.iter())
                .map(|resource| 1 + resource.configuration_keys.as_ref().map_or(0, Vec::len));
            bounded(ApiKey::DescribeConfigs, counts.sum())?;
            describe_configs::handle(call, request);
        }
        ApiKey::AlterConfigs => {
            let request: AlterConfigsRequest = read(frame)?;
            let counts = (request.resources.iter()).map(|resource| 1 + resource.configs.len());
            bounded(ApiKey::AlterConfigs, counts.sum())?;
            alter_configs::handle(call, request);
        }
        ApiKey::IncrementalAlterConfigs => {
            let request: IncrementalAlterConfigsRequest = read(frame)?;
            let counts = (request.resources.iter()).map(|resource| 1 + resource.configs.len());
            bounded(ApiKey::IncrementalAlterConfigs, counts.sum())?;
            alter_configs::handle_incremental(call, request);
        }
        _ => groups::handle(call, frame)?,
    }
    Ok(())
}

pub(super) fn read<R: Request>(frame: RequestFrame) -> Result<R, RequestFault> {
    Ok(frame.body()?)
}

/// Whether a request names no more partitions, settings, groups or members than one may.
pub(super) fn bounded(api: ApiKey, count: usize) -> Result<(), FrameFault> {
    if count > ENTRIES_MAX {
        return Err(FrameFault::Entries { api, count });
    }
    Ok(())
}
