//! FindCoordinator, versions 0-5. Every group of this broker is coordinated by it, at the address that Metadata names.
//!
//! Whether a group has a coordinator is for the core to say that owns its partition: a storage fault may have ended it.
//!
//! Gap: coordinators of transactions, which are not offered.

use tackboard_logic::metadata::Endpoint;
use tackboard_schema::{
    ErrorCode,
    kafka::{
        FindCoordinatorRequest, FindCoordinatorResponse, FindCoordinatorResponseCoordinator, Str,
    },
};

use super::{
    codes::kafka_code,
    groups::{Named, Outcome, ask, code_of},
    handlers::Call,
};
use crate::shard::groups::GroupRequest;

/// Of a key that names a group.
const GROUP: i8 = 0;

/// The first version that names several keys.
const NAMES_SEVERAL_FROM: i16 = 4;

/// What was looked for, and where it is if it is there.
pub struct Sought {
    /// The keys, and why nobody is asked about one.
    keys: Vec<(Str, Option<(ErrorCode, String)>)>,
    broker: i32,
    endpoint: Option<Endpoint>,
}

pub(super) fn handle(call: Call<'_>, request: FindCoordinatorRequest) {
    let keys = match call.version >= NAMES_SEVERAL_FROM {
        true => request.coordinator_keys,
        false => vec![request.key],
    };
    let mut questions = Vec::new();
    let mut seek = |key: &Str| {
        if request.key_type != GROUP {
            let message = "transactions are not offered";
            return Some((ErrorCode::InvalidRequest, message.to_owned()));
        }
        if key.is_empty() {
            let code = ErrorCode::InvalidGroupId;
            return Some((code, code.text().to_owned()));
        }
        match call.state.coordinator_of(key) {
            (_, Err(failure)) => Some((failure.code, failure.message)),
            (index, place) => {
                questions.push((index, place, GroupRequest::Find(key.to_string())));
                None
            }
        }
    };
    let keys = keys.into_iter().map(|key| {
        let refusal = seek(&key);
        (key, refusal)
    });
    let keys = keys.collect();
    let sought = Sought {
        keys,
        broker: call.state.config.broker_id.0,
        endpoint: call.state.kafka_endpoint.clone(),
    };
    if questions.is_empty() {
        return call.respond(&told(call.version, sought, std::iter::empty()));
    }
    ask(call, Named::Coordinators(sought), questions);
}

pub(super) fn told(
    version: i16,
    sought: Sought,
    mut outcomes: impl Iterator<Item = Outcome>,
) -> FindCoordinatorResponse {
    let Sought {
        keys,
        broker,
        endpoint,
    } = sought;
    let mut found = keys.into_iter().map(|(key, refusal)| {
        let refusal = match refusal {
            Some((code, message)) => Some((kafka_code(code), message)),
            None => match code_of(outcomes.next()) {
                0 => None,
                code => {
                    let message = "the group has no coordinator for the moment";
                    Some((code, message.to_owned()))
                }
            },
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
            error_code: refusal.as_ref().map_or(0, |(code, _)| *code),
            error_message: refusal.map(|(_, message)| message.into()),
        }
    });
    if version >= NAMES_SEVERAL_FROM {
        return FindCoordinatorResponse {
            coordinators: found.collect(),
            ..FindCoordinatorResponse::default()
        };
    }
    let only = found.next().unwrap_or_default();
    FindCoordinatorResponse {
        node_id: only.node_id,
        host: only.host,
        port: only.port,
        error_code: only.error_code,
        error_message: only.error_message,
        ..FindCoordinatorResponse::default()
    }
}
