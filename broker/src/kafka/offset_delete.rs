//! OffsetDelete.

use std::sync::Arc;

use tackboard_logic::group::interface::NamedPartition;
use tackboard_schema::kafka::{
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};

use super::{
    groups::{Named, Outcome, ask_one, codes_of, named},
    handlers::Call,
};
use crate::shard::groups::GroupRequest;

pub(super) fn handle(call: Call<'_>, request: &OffsetDeleteRequest) {
    let partitions = request.topics.iter().flat_map(|topic| {
        let name: Arc<str> = Arc::from(&*topic.name);
        topic
            .partitions
            .iter()
            .map(move |partition| named(&name, partition.partition_index))
    });
    let partitions: Vec<_> = partitions.collect();
    let wanted = GroupRequest::DeleteOffsets(request.group_id.to_string(), partitions.clone());
    ask_one(
        call,
        &request.group_id,
        Named::Partitions(partitions),
        wanted,
    );
}

pub(super) fn told(
    partitions: &[NamedPartition],
    outcome: Option<Outcome>,
) -> OffsetDeleteResponse {
    let codes = match codes_of(outcome, partitions.len()) {
        Ok(codes) => codes,
        Err(error_code) => {
            return OffsetDeleteResponse {
                error_code,
                ..OffsetDeleteResponse::default()
            };
        }
    };
    let told: Vec<_> = partitions.iter().zip(codes).collect();
    let topics = told.chunk_by(|(one, _), (next, _)| one.topic == next.topic);
    let topics = topics.map(|topic| OffsetDeleteResponseTopic {
        name: (*topic[0].0.topic).into(),
        partitions: topic
            .iter()
            .map(|(partition, error_code)| OffsetDeleteResponsePartition {
                partition_index: partition.partition,
                error_code: *error_code,
            })
            .collect(),
    });
    OffsetDeleteResponse {
        topics: topics.collect(),
        ..OffsetDeleteResponse::default()
    }
}
