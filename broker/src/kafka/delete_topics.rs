//! DeleteTopics, versions 1-6: by name, or by id (KIP-516).
//!
//! Not honoured: the time-out, since a change is decided at once or not at all.

use tackboard_logic::metadata::Command;
use tackboard_schema::kafka::{
    DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicsResponseTopic,
};

use super::{
    changes::{self, Change},
    handlers::Call,
};

pub(super) fn handle(call: Call<'_>, request: DeleteTopicsRequest) {
    let by_name = |name: tackboard_schema::kafka::Str| {
        let command = Command::DeleteTopic {
            name: name.to_string(),
        };
        (Change::of(name), Ok(command))
    };
    let named = request.topic_names.into_iter().map(by_name);
    let topics = request.topics.into_iter().map(|topic| match topic.name {
        Some(name) => by_name(name),
        None => {
            let topic_id = topic.topic_id;
            let change = Change {
                name: None,
                topic_id,
                ..Change::of("".into())
            };
            (change, Ok(Command::DeleteTopicById { topic_id }))
        }
    });
    changes::propose(call, named.chain(topics).collect(), false);
}

/// The answer, once every topic is decided.
pub(super) fn answer(changes: Vec<Change>) -> DeleteTopicsResponse {
    let responses = changes.into_iter().map(|change| {
        let (error_code, error_message) = change.told();
        DeleteTopicsResponseTopic {
            name: change.name,
            topic_id: change.topic_id,
            error_code,
            error_message,
        }
    });
    DeleteTopicsResponse {
        responses: responses.collect(),
        ..DeleteTopicsResponse::default()
    }
}
