//! DescribeCluster, versions 0-1 (KIP-700): the cluster's id and its brokers.
//!
//! There are no controllers of their own to ask for (KIP-919): whoever asks for their endpoints is refused. There is no
//! access control: whoever asks what he may do on the cluster learns that it is everything.

use tackboard_schema::{
    ErrorCode,
    kafka::{DescribeClusterRequest, DescribeClusterResponse, DescribeClusterResponseBroker},
};

use super::handlers::Call;

const BROKERS: i8 = 1;

/// The operations that Kafka knows on a cluster, a bit each: create, alter, describe, cluster action, describe configs,
/// alter configs, idempotent write.
const ALL_OPERATIONS: i32 = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;

pub(super) fn handle(call: Call<'_>, request: &DescribeClusterRequest) {
    let state = &*call.state;
    let response = DescribeClusterResponse {
        endpoint_type: request.endpoint_type,
        cluster_id: state.topics.image().cluster_id.to_string().into(),
        ..DescribeClusterResponse::default()
    };
    if request.endpoint_type != BROKERS {
        let message = "only brokers have endpoints here";
        return call.respond(&DescribeClusterResponse {
            error_code: ErrorCode::InvalidRequest.code(),
            error_message: Some(message.into()),
            ..response
        });
    }
    let broker_id = state.config.broker_id.0;
    let brokers = state
        .kafka_endpoint
        .iter()
        .map(|endpoint| DescribeClusterResponseBroker {
            broker_id,
            host: endpoint.host.as_str().into(),
            port: i32::from(endpoint.port),
            rack: None,
        });
    let response = DescribeClusterResponse {
        controller_id: broker_id,
        brokers: brokers.collect(),
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true => ALL_OPERATIONS,
            false => response.cluster_authorized_operations,
        },
        ..response
    };
    call.respond(&response);
}
