//! CreateTopics, versions 2-7.
//!
//! A count or replication factor of -1 is the broker's own, in every version. The answer names all settings of the topic
//! (KIP-525), also when it is only tried (`validate_only`).
//!
//! Instead of both numbers a request may assign replicas, if it says what holds anyway: each partition on this broker
//! alone.
//!
//! Not honoured: other assignments, which are refused; the time-out, since a change is decided at once or not at all.

use tackboard_logic::metadata::TopicSetting;
use tackboard_schema::{
    BrokerId, ErrorCode,
    kafka::{
        CreateTopicsRequest, CreateTopicsRequestTopic, CreateTopicsResponse,
        CreateTopicsResponseConfig, CreateTopicsResponseTopic,
    },
};

use super::{
    changes::{self, Change, refused},
    configs,
    handlers::Call,
};
use crate::config::Config;

pub(super) fn handle(call: Call<'_>, request: CreateTopicsRequest) {
    let state = &*call.state;
    let asked = request.topics.into_iter().map(|topic| {
        let command = settings(&topic).and_then(|configs| {
            let size = size(&topic, state.config.broker_id)?;
            Ok(state.topic_to_create(&topic.name, size, configs).0)
        });
        (Change::of(topic.name), command)
    });
    let asked = asked.collect();
    changes::propose(call, asked, request.validate_only);
}

/// How many partitions and replicas are asked for; -1 for the broker's own number.
fn size(
    topic: &CreateTopicsRequestTopic,
    broker: BrokerId,
) -> Result<(i32, i16), tackboard_logic::metadata::MetadataRefusal> {
    let asked = (topic.num_partitions, topic.replication_factor);
    if topic.assignments.is_empty() {
        return Ok(asked);
    }
    if asked != (-1, -1) {
        let message = "replicas are assigned, so partitions and replicas are not counted: -1 each";
        return refused(ErrorCode::InvalidRequest, message);
    }
    let mut indexes: Vec<i32> = (topic.assignments.iter())
        .map(|assignment| assignment.partition_index)
        .collect();
    indexes.sort_unstable();
    let without_gaps = (0..).zip(&indexes).all(|(at, index)| at == *index);
    let here = (topic.assignments.iter()).all(|assignment| assignment.broker_ids == [broker.0]);
    if !without_gaps || !here {
        let message = "each partition from 0 on takes one replica, on this broker";
        return refused(ErrorCode::InvalidReplicaAssignment, message);
    }
    Ok((indexes.len() as i32, 1))
}

/// The settings of a new topic, under our names.
fn settings(
    topic: &CreateTopicsRequestTopic,
) -> Result<Vec<(String, String)>, tackboard_logic::metadata::MetadataRefusal> {
    let pairs = topic.configs.iter().map(|config| match &config.value {
        Some(value) => {
            let key = TopicSetting::key_from_kafka(&config.name);
            Ok((key.to_owned(), value.to_string()))
        }
        None => refused(ErrorCode::InvalidConfig, "a setting without a value"),
    });
    pairs.collect()
}

/// The answer, once every topic is decided.
pub(super) fn answer(config: &Config, changes: Vec<Change>) -> CreateTopicsResponse {
    let topics = changes.into_iter().map(|change| {
        let (error_code, error_message) = change.told();
        let told = CreateTopicsResponseTopic {
            topic_id: change.topic_id,
            error_code,
            error_message,
            num_partitions: -1,
            replication_factor: -1,
            ..CreateTopicsResponseTopic::default()
        };
        let told = match &change.topic {
            None => told,
            Some(topic) => {
                let replicas = topic.partitions.first().map(|first| first.replicas.len());
                let configs = configs::of_topic(config, topic);
                CreateTopicsResponseTopic {
                    num_partitions: topic.partitions.len() as i32,
                    replication_factor: replicas.unwrap_or(0) as i16,
                    configs: Some(configs.into_iter().map(setting).collect()),
                    ..told
                }
            }
        };
        CreateTopicsResponseTopic {
            name: change.name.unwrap_or_default(),
            ..told
        }
    });
    CreateTopicsResponse {
        topics: topics.collect(),
        ..CreateTopicsResponse::default()
    }
}

fn setting(shown: configs::Shown<'_>) -> CreateTopicsResponseConfig {
    CreateTopicsResponseConfig {
        name: shown.name.into(),
        value: Some(shown.value().into()),
        read_only: shown.read_only,
        config_source: shown.source().code(),
        is_sensitive: false,
    }
}
