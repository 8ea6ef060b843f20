//! CreatePartitions, versions 0-3. What is answered can be produced to at once.
//!
//! An assignment of replicas may say what holds anyway: each new partition on this broker alone.
//!
//! Not honoured: other assignments, which are refused; the time-out, since a change is decided at once or not at all.

use tackboard_logic::metadata::Command;
use tackboard_schema::{
    ErrorCode,
    kafka::{
        CreatePartitionsRequest, CreatePartitionsRequestTopic, CreatePartitionsResponse,
        CreatePartitionsResponseTopic,
    },
};

use super::{
    changes::{self, Change, refused},
    handlers::Call,
};
use crate::shard::{placed::find_topic, state::State};

pub(super) fn handle(call: Call<'_>, request: CreatePartitionsRequest) {
    let state = &*call.state;
    let asked = request.topics.into_iter().map(|topic| {
        let command = match may_be_assigned(state, &topic) {
            true => Ok(Command::CreatePartitions {
                name: topic.name.to_string(),
                count: topic.count,
            }),
            false => refused(
                ErrorCode::InvalidReplicaAssignment,
                "each new partition takes one replica, on this broker",
            ),
        };
        (Change::of(topic.name), command)
    });
    let asked = asked.collect();
    changes::propose(call, asked, request.validate_only);
}

/// Whether the replicas are as the broker would assign them, each new partition having one. Of a topic that isn't there
/// something else is said.
fn may_be_assigned(state: &State, topic: &CreatePartitionsRequestTopic) -> bool {
    let Some(assignments) = topic.assignments.as_ref().filter(|all| !all.is_empty()) else {
        return true;
    };
    let Ok(found) = find_topic(state, &topic.name).1 else {
        return true;
    };
    let added = i64::from(topic.count) - found.partitions.len() as i64;
    let here = [state.config.broker_id.0];
    assignments.len() as i64 == added && assignments.iter().all(|one| one.broker_ids == here)
}

/// The answer, once every topic is decided.
pub(super) fn answer(changes: Vec<Change>) -> CreatePartitionsResponse {
    let results = changes.into_iter().map(|change| {
        let (error_code, error_message) = change.told();
        CreatePartitionsResponseTopic {
            name: change.name.unwrap_or_default(),
            error_code,
            error_message,
        }
    });
    CreatePartitionsResponse {
        results: results.collect(),
        ..CreatePartitionsResponse::default()
    }
}
