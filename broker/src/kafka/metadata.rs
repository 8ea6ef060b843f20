//! Metadata, versions 0-12, with topic ids from 10 on and by topic id from 12 on.
//!
//! A topic that is asked for and not there is created, where setting and request allow it: the client is told to ask again
//! (`LEADER_NOT_AVAILABLE`), or why the topic can't be created. A topic that a request names twice is told once.
//!
//! Not told: the operations that a client may do on a topic or on the cluster; there is no access control.

use std::collections::BTreeSet;

use tackboard_logic::metadata::Topic;
use tackboard_schema::{
    BrokerId, ErrorCode, TopicId,
    kafka::{
        MetadataRequest, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
        MetadataResponseTopic, Str,
    },
    validate_topic_name,
};

use super::{codes::kafka_code, handlers::Call};
use crate::{
    native::handlers::ENTRIES_MAX,
    shard::{control::Trial, groups::OFFSETS_TOPIC},
};

pub(super) fn handle(mut call: Call<'_>, request: MetadataRequest) {
    let image = call.state.topics.image().clone();
    let (cluster_id, broker) = (image.cluster_id.to_string(), call.state.config.broker_id);
    let mut response = MetadataResponse {
        brokers: call
            .state
            .kafka_endpoint
            .iter()
            .map(|endpoint| MetadataResponseBroker {
                node_id: broker.0,
                host: endpoint.host.as_str().into(),
                port: i32::from(endpoint.port),
                ..MetadataResponseBroker::default()
            })
            .collect(),
        cluster_id: Some(cluster_id.into()),
        controller_id: broker.0,
        ..MetadataResponse::default()
    };
    // Version 0 has no null: an empty array asks for everything.
    let wanted = request
        .topics
        .filter(|topics| call.version > 0 || !topics.is_empty());
    match wanted {
        None => response.topics = image.topics().map(|topic| told(topic)).collect(),
        Some(topics) => {
            // A request may name one topic many times: each is told once.
            let mut named = BTreeSet::new();
            let may_create =
                request.allow_auto_topic_creation && call.state.config.auto_create_topics;
            let mut trial = may_create.then(|| call.state.begin_trial());
            for topic in topics {
                if !named.insert((topic.name.clone(), topic.topic_id)) {
                    continue;
                }
                let told = match topic.name {
                    name if named.len() > ENTRIES_MAX => refused(name, topic.topic_id),
                    Some(name) => by_name(&mut call, name, trial.as_mut()),
                    None => by_id(&call, topic.topic_id),
                };
                response.topics.push(told);
            }
        }
    }
    call.respond(&response);
}

/// A topic, by its name. One that isn't there is created if there is something to try it on.
fn by_name(call: &mut Call<'_>, name: Str, trial: Option<&mut Trial>) -> MetadataResponseTopic {
    if let Some(topic) = call.state.topics.topic(&name) {
        return told(topic);
    }
    let error_code = match trial {
        _ if validate_topic_name(&name).is_err() => ErrorCode::InvalidTopicException,
        Some(trial) => call.state.create_topic_unasked(trial, &name),
        None => ErrorCode::UnknownTopicOrPartition,
    };
    MetadataResponseTopic {
        error_code: kafka_code(error_code),
        name: Some(name),
        ..MetadataResponseTopic::default()
    }
}

/// One topic too many for a request.
fn refused(name: Option<Str>, topic_id: TopicId) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::PolicyViolation.code(),
        name,
        topic_id,
        ..MetadataResponseTopic::default()
    }
}

fn by_id(call: &Call<'_>, id: TopicId) -> MetadataResponseTopic {
    match call.state.topics.image().topic_by_id(id) {
        Some(topic) => told(topic),
        None => MetadataResponseTopic {
            error_code: ErrorCode::UnknownTopicId.code(),
            topic_id: id,
            ..MetadataResponseTopic::default()
        },
    }
}

fn told(topic: &Topic) -> MetadataResponseTopic {
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    let partitions = (0..).zip(&topic.partitions);
    let partitions = partitions.map(|(index, partition)| MetadataResponsePartition {
        partition_index: index,
        leader_id: partition.leader.0,
        leader_epoch: partition.leader_epoch.0,
        replica_nodes: ids(&partition.replicas),
        isr_nodes: ids(&partition.isr),
        ..MetadataResponsePartition::default()
    });
    MetadataResponseTopic {
        name: Some((*topic.name).into()),
        topic_id: topic.id,
        is_internal: *topic.name == *OFFSETS_TOPIC,
        partitions: partitions.collect(),
        ..MetadataResponseTopic::default()
    }
}
