//! CreatePartitions, versions 0-3. What is answered can be produced to at once.
//!
//! Not honoured: assignments of replicas, which are refused; the time-out, since a change is decided at once or not at
//! all.

use tackboard_logic::metadata::Command;
use tackboard_schema::{
    ErrorCode,
    kafka::{CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsResponseTopic},
};

use super::{
    changes::{self, Change, refused},
    handlers::Call,
};

pub(super) fn handle(call: Call<'_>, request: CreatePartitionsRequest) {
    let asked = request.topics.into_iter().map(|topic| {
        let assigned = topic
            .assignments
            .is_some_and(|replicas| !replicas.is_empty());
        let command = match assigned {
            true => refused(
                ErrorCode::InvalidReplicaAssignment,
                "the broker assigns replicas itself",
            ),
            false => Ok(Command::CreatePartitions {
                name: topic.name.to_string(),
                count: topic.count,
            }),
        };
        (Change::of(topic.name), command)
    });
    let asked = asked.collect();
    changes::propose(call, asked, request.validate_only);
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
