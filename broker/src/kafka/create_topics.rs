//! CreateTopics: one change of the metadata a topic, one answer for all.

use tackboard_logic::metadata::{MetadataRefusal, Outcome};
use tackboard_schema::{
    CorrelationId, ErrorCode, TopicId,
    kafka::{
        ApiKey, CreateTopicsRequest, CreateTopicsResponse, CreateTopicsResponseTopic,
        DeleteTopicsResponse, DeleteTopicsResponseTopic, Str,
    },
};

use super::{
    answers::{Answers, Form},
    codes::kafka_code,
    handlers::Call,
};
use crate::{
    bridge::ProposalResult,
    native::{connection::Connection, handlers::ENTRIES_MAX},
};

/// Topics of one request that are changed.
pub struct Changes {
    /// In the order of the request.
    topics: Vec<Change>,
    /// Changes that are not decided yet.
    waiting: usize,
}

/// One topic.
#[derive(Default)]
pub(super) struct Change {
    pub name: Option<Str>,
    pub topic_id: TopicId,
    pub partitions: i32,
    pub replication_factor: i16,
    /// How it ended.
    pub refusal: Option<(ErrorCode, String)>,
}

impl Changes {
    /// Changes that are about to be proposed.
    pub(super) fn new(topics: Vec<Change>) -> Self {
        let waiting = topics
            .iter()
            .filter(|topic| topic.refusal.is_none())
            .count();
        Self { topics, waiting }
    }
}

pub(super) fn handle(call: Call<'_>, request: CreateTopicsRequest) {
    let mut asked = Vec::new();
    let changes = request.topics.iter().enumerate().map(|(index, topic)| {
        let refuse = |code, message: &str| Some((code, message.to_owned()));
        let refusal = if index >= ENTRIES_MAX {
            refuse(
                ErrorCode::PolicyViolation,
                "more topics than one request may name",
            )
        } else if request.validate_only {
            refuse(ErrorCode::InvalidRequest, "checking alone is not offered")
        } else if topic.configs.iter().any(|config| config.value.is_none()) {
            refuse(ErrorCode::InvalidConfig, "a setting without a value")
        } else if !topic.assignments.is_empty() {
            refuse(
                ErrorCode::InvalidRequest,
                "the broker assigns replicas itself",
            )
        } else {
            None
        };
        asked.push(refusal.is_none());
        Change {
            name: Some(topic.name.clone()),
            partitions: topic.num_partitions,
            replication_factor: topic.replication_factor,
            refusal,
            ..Change::default()
        }
    });
    let changes = Changes::new(changes.collect());
    let Call {
        state,
        connection,
        answers,
        number,
        ..
    } = call;
    connection.take_in(Default::default());
    answers.with(number, |asked| asked.form = Form::Topics(changes));
    for (index, (topic, is_asked)) in request.topics.iter().zip(asked).enumerate() {
        if is_asked {
            let configs = topic.configs.iter();
            let configs = configs.filter_map(|config| {
                Some((config.name.to_string(), config.value.as_ref()?.to_string()))
            });
            let size = (topic.num_partitions, topic.replication_factor);
            state.create_topic_for_kafka(
                connection,
                number,
                index,
                &topic.name,
                size,
                configs.collect(),
            );
        }
    }
    answer_when_decided(answers, connection, number);
}

/// One of the changes of a request was decided.
pub fn decided(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    index: usize,
    size: Option<(i32, i16)>,
    result: ProposalResult,
) {
    answers.with(number, |asked| {
        let Form::Topics(changes) = &mut asked.form else {
            return;
        };
        changes.waiting -= 1;
        let change = &mut changes.topics[index];
        if let Some((partitions, replication_factor)) = size {
            change.partitions = partitions;
            change.replication_factor = replication_factor;
        }
        match result {
            Ok(decided) => match decided.outcome {
                Outcome::TopicCreated { topic_id, .. } | Outcome::TopicDeleted { topic_id, .. } => {
                    change.topic_id = topic_id
                }
                _ => {}
            },
            Err(MetadataRefusal { code, message }) => change.refusal = Some((code, message)),
        }
    });
    answer_when_decided(answers, connection, number);
}

pub(super) fn answer_when_decided(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
) {
    let decided = answers.with(number, |asked| match &mut asked.form {
        Form::Topics(changes) if changes.waiting == 0 => {
            Some((asked.api, std::mem::take(&mut changes.topics)))
        }
        _ => None,
    });
    let Some(Some((api, topics))) = decided else {
        return;
    };
    if api == ApiKey::DeleteTopics {
        let responses = topics.into_iter().map(|change| {
            let (error_code, error_message) = told(&change);
            DeleteTopicsResponseTopic {
                name: change.name,
                topic_id: change.topic_id,
                error_code,
                error_message,
            }
        });
        let response = DeleteTopicsResponse {
            responses: responses.collect(),
            ..DeleteTopicsResponse::default()
        };
        return answers.respond(connection, number, &response);
    }
    let topics = topics.into_iter().map(|change| {
        let (error_code, error_message) = told(&change);
        CreateTopicsResponseTopic {
            name: change.name.unwrap_or_default(),
            topic_id: change.topic_id,
            error_code,
            error_message,
            num_partitions: change.partitions,
            replication_factor: change.replication_factor,
            configs: Some(Vec::new()),
            ..CreateTopicsResponseTopic::default()
        }
    });
    let response = CreateTopicsResponse {
        topics: topics.collect(),
        ..CreateTopicsResponse::default()
    };
    answers.respond(connection, number, &response);
}

fn told(change: &Change) -> (i16, Option<Str>) {
    match &change.refusal {
        Some((code, message)) => (kafka_code(*code), Some(message.as_str().into())),
        None => (0, None),
    }
}
