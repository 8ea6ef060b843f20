//! OffsetCommit, versions 2-9.
//!
//! A commit without a generation (-1) is that of a client which assigns partitions to itself; it counts while the group has
//! no members, whatever names it bears. An offset below 0 is refused.
//!
//! Not honoured: `retention_time_ms` (versions 2-4), since how long offsets are kept is for the broker's settings to say.

use std::sync::Arc;

use tackboard_logic::group::interface::{CommitEntry, NamedPartition};
use tackboard_schema::{
    ErrorCode, LeaderEpoch, Offset,
    kafka::{
        OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
    },
};

use super::{
    groups::{Named, Outcome, ask_one, codes_of, member, named},
    handlers::Call,
};
use crate::shard::groups::{Commit, GroupRequest};

pub(super) fn handle(call: Call<'_>, request: &OffsetCommitRequest) {
    let generation = request.generation_id_or_member_epoch;
    let member = member(
        generation,
        &request.member_id,
        request.group_instance_id.as_ref(),
    );
    let entries = request.topics.iter().flat_map(|topic| {
        let name: Arc<str> = Arc::from(&*topic.name);
        topic.partitions.iter().map(move |partition| CommitEntry {
            partition: named(&name, partition.partition_index),
            offset: Offset(partition.committed_offset),
            leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
            metadata: (partition.committed_metadata.as_ref())
                .map(|metadata| metadata.to_string())
                .unwrap_or_default(),
            refused: None,
        })
    });
    let entries: Vec<_> = entries.collect();
    let exists = |partition: &NamedPartition| call.state.has_partition(partition);
    let named = entries
        .iter()
        .map(|entry| (entry.partition.clone(), exists(&entry.partition)));
    let named: Vec<_> = named.collect();
    let known = entries
        .into_iter()
        .zip(&named)
        .filter(|(_, (_, exists))| *exists);
    let known = known.map(|(entry, _)| entry).collect();
    let wanted = GroupRequest::Commit(Commit {
        group: request.group_id.to_string(),
        member,
        entries: known,
        known_in: call.state.topics.image().version,
    });
    ask_one(call, &request.group_id, Named::Commits(named), wanted);
}

pub(super) fn told(
    named: &[(NamedPartition, bool)],
    outcome: Option<Outcome>,
) -> OffsetCommitResponse {
    let known = named.iter().filter(|(_, exists)| *exists).count();
    let mut codes = match codes_of(outcome, known) {
        Ok(codes) => codes,
        Err(code) => vec![code; known],
    }
    .into_iter();
    let told: Vec<_> = (named.iter())
        .map(|(partition, exists)| {
            let code = if *exists { codes.next() } else { None };
            (
                partition,
                code.unwrap_or(ErrorCode::UnknownTopicOrPartition.code()),
            )
        })
        .collect();
    let topics = told.chunk_by(|(one, _), (next, _)| one.topic == next.topic);
    let topics = topics.map(|topic| OffsetCommitResponseTopic {
        name: (*topic[0].0.topic).into(),
        partitions: topic
            .iter()
            .map(|(partition, error_code)| OffsetCommitResponsePartition {
                partition_index: partition.partition,
                error_code: *error_code,
            })
            .collect(),
    });
    OffsetCommitResponse {
        topics: topics.collect(),
        ..OffsetCommitResponse::default()
    }
}
