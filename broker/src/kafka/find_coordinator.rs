//! FindCoordinator. Every group of this broker is coordinated by it, at the address that Metadata names.

use tackboard_schema::{
    ErrorCode,
    kafka::{
        FindCoordinatorRequest, FindCoordinatorResponse, FindCoordinatorResponseCoordinator, Str,
    },
};

use super::{codes::kafka_code, handlers::Call};

/// Of a key that names a group.
const GROUP: i8 = 0;

pub(super) fn handle(call: Call<'_>, request: FindCoordinatorRequest) {
    let broker = call.state.config.broker_id.0;
    let endpoint = call.state.kafka_endpoint.clone();
    let key_type = request.key_type;
    let mut found = |key: Str| {
        let refusal = if key_type != GROUP {
            let message = "transactions are not offered";
            Some((ErrorCode::InvalidRequest, message.to_owned()))
        } else if key.is_empty() {
            let code = ErrorCode::InvalidGroupId;
            Some((code, code.text().to_owned()))
        } else {
            let refusal = call.state.coordinator_of(&key).1.err();
            refusal.map(|failure| (failure.code, failure.message))
        };
        let (node_id, host, port) = match (&refusal, &endpoint) {
            (None, Some(endpoint)) => (broker, endpoint.host.as_str(), i32::from(endpoint.port)),
            _ => (-1, "", -1),
        };
        FindCoordinatorResponseCoordinator {
            key,
            node_id,
            host: host.into(),
            port,
            error_code: refusal.as_ref().map_or(0, |(code, _)| kafka_code(*code)),
            error_message: refusal.map(|(_, message)| message.into()),
        }
    };
    if call.version >= 4 {
        let coordinators = request.coordinator_keys.into_iter().map(found).collect();
        return call.respond(&FindCoordinatorResponse {
            coordinators,
            ..FindCoordinatorResponse::default()
        });
    }
    let FindCoordinatorResponseCoordinator {
        node_id,
        host,
        port,
        error_code,
        error_message,
        ..
    } = found(request.key);
    call.respond(&FindCoordinatorResponse {
        node_id,
        host,
        port,
        error_code,
        error_message,
        ..FindCoordinatorResponse::default()
    });
}
