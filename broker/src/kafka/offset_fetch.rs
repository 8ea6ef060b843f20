//! OffsetFetch, versions 1-9.
//!
//! Version 1 tells what is wrong by partition, later ones by group.
//!
//! Not honoured: `require_stable`, since there are no transactions.

use std::{collections::BTreeSet, sync::Arc};

use tackboard_logic::group::interface::NamedPartition;
use tackboard_schema::{
    ErrorCode,
    kafka::{
        OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup,
        OffsetFetchResponseGroupPartition, OffsetFetchResponseGroupTopic,
        OffsetFetchResponsePartition, OffsetFetchResponseTopic, Str,
    },
    storage::group_record::CommittedOffset,
};

use super::{
    codes::kafka_code,
    groups::{Named, Outcome, ask, each_once, find, named},
    handlers::Call,
};
use crate::shard::groups::{GroupAnswer, GroupRequest};

/// The first version whose answer has a place for what is wrong with all of it. Before it, an answer without partitions
/// reads as one that found nothing wrong.
const HAS_ONE_CODE_FROM: i16 = 2;

/// The first version that names several groups.
const NAMES_SEVERAL_FROM: i16 = 8;

/// How many groups and partitions a request names.
pub(super) fn named_by(request: &OffsetFetchRequest) -> usize {
    let of_one = request.topics.iter().flatten();
    let of_one = of_one.map(|topic| topic.partition_indexes.len());
    let of_several = request.groups.iter().map(|group| {
        let topics = group.topics.iter().flatten();
        let partitions = topics.map(|topic| topic.partition_indexes.len());
        1 + partitions.sum::<usize>()
    });
    of_one.chain(of_several).sum()
}

pub(super) fn handle(mut call: Call<'_>, request: OffsetFetchRequest) {
    let mut groups = Vec::new();
    let mut questions = Vec::new();
    if call.version >= NAMES_SEVERAL_FROM {
        for group in each_once(request.groups, |group| &group.group_id) {
            let topics = group.topics.map(|topics| {
                let topics = topics.into_iter();
                topics
                    .map(|topic| (topic.name, topic.partition_indexes))
                    .collect()
            });
            let wanted = GroupRequest::Offsets(group.group_id.to_string(), partitions(topics));
            questions.push(find(&mut call, &group.group_id, wanted));
            groups.push(group.group_id);
        }
    } else {
        // Version 1 has no null: an empty array asks for nothing.
        let topics = request.topics.map(|topics| {
            let topics = topics.into_iter();
            topics
                .map(|topic| (topic.name, topic.partition_indexes))
                .collect()
        });
        let partitions = partitions(topics);
        let by_partition = (call.version < HAS_ONE_CODE_FROM).then(|| partitions.clone());
        let wanted = GroupRequest::Offsets(request.group_id.to_string(), partitions);
        questions.push(find(&mut call, &request.group_id, wanted));
        if let Some(partitions) = by_partition {
            let partitions = partitions.unwrap_or_default();
            return ask(call, Named::Partitions(partitions), questions);
        }
        groups.push(request.group_id);
    }
    ask(call, Named::Groups(groups), questions);
}

/// The partitions that are asked for, each once; `None`: all that the group has.
fn partitions(topics: Option<Vec<(Str, Vec<i32>)>>) -> Option<Vec<NamedPartition>> {
    let partitions = topics?.into_iter().flat_map(|(name, partitions)| {
        let name: Arc<str> = Arc::from(&*name);
        partitions
            .into_iter()
            .map(move |partition| named(&name, partition))
    });
    let partitions: BTreeSet<_> = partitions.collect();
    Some(partitions.into_iter().collect())
}

type Offsets = Vec<(NamedPartition, Option<CommittedOffset>)>;

fn offsets(outcome: Option<Outcome>) -> Result<Offsets, i16> {
    match outcome {
        Some(Ok(GroupAnswer::Offsets(offsets))) => Ok(offsets),
        Some(Err(code)) => Err(kafka_code(code)),
        _ => Err(ErrorCode::UnknownServerError.code()),
    }
}

/// Offset, leader epoch and metadata; -1 and nothing where none was committed.
fn parts(value: &Option<CommittedOffset>) -> (i64, i32, Option<Str>) {
    match value {
        Some(value) => {
            let metadata = value.metadata.as_str().into();
            (value.offset.0, value.leader_epoch.0, Some(metadata))
        }
        None => (-1, -1, Some("".into())),
    }
}

pub(super) fn told(
    version: i16,
    groups: Vec<Str>,
    mut outcomes: impl Iterator<Item = Outcome>,
) -> OffsetFetchResponse {
    if version >= NAMES_SEVERAL_FROM {
        let groups = groups.into_iter().zip(outcomes);
        return OffsetFetchResponse {
            groups: groups
                .map(|(group, outcome)| told_group(group, Some(outcome)))
                .collect(),
            ..OffsetFetchResponse::default()
        };
    }
    match offsets(outcomes.next()) {
        Ok(offsets) => told_of(&offsets, ErrorCode::None.code()),
        Err(error_code) => OffsetFetchResponse {
            error_code,
            ..OffsetFetchResponse::default()
        },
    }
}

/// The answer of a version in which each partition says what is wrong.
pub(super) fn told_by_partition(
    asked: Vec<NamedPartition>,
    outcome: Option<Outcome>,
) -> OffsetFetchResponse {
    match offsets(outcome) {
        Ok(offsets) => told_of(&offsets, ErrorCode::None.code()),
        Err(code) => {
            let nothing: Offsets = asked.into_iter().map(|one| (one, None)).collect();
            told_of(&nothing, code)
        }
    }
}

fn told_of(offsets: &Offsets, error_code: i16) -> OffsetFetchResponse {
    let topics = offsets.chunk_by(|(one, _), (next, _)| one.topic == next.topic);
    let topics = topics.map(|topic| OffsetFetchResponseTopic {
        name: (*topic[0].0.topic).into(),
        partitions: topic
            .iter()
            .map(|(partition, value)| {
                let (committed_offset, committed_leader_epoch, metadata) = parts(value);
                OffsetFetchResponsePartition {
                    partition_index: partition.partition,
                    committed_offset,
                    committed_leader_epoch,
                    metadata,
                    error_code,
                }
            })
            .collect(),
    });
    OffsetFetchResponse {
        topics: topics.collect(),
        ..OffsetFetchResponse::default()
    }
}

fn told_group(group_id: Str, outcome: Option<Outcome>) -> OffsetFetchResponseGroup {
    let offsets = match offsets(outcome) {
        Ok(offsets) => offsets,
        Err(error_code) => {
            return OffsetFetchResponseGroup {
                group_id,
                error_code,
                ..OffsetFetchResponseGroup::default()
            };
        }
    };
    let topics = offsets.chunk_by(|(one, _), (next, _)| one.topic == next.topic);
    let topics = topics.map(|topic| OffsetFetchResponseGroupTopic {
        name: (*topic[0].0.topic).into(),
        partitions: topic
            .iter()
            .map(|(partition, value)| {
                let (committed_offset, committed_leader_epoch, metadata) = parts(value);
                OffsetFetchResponseGroupPartition {
                    partition_index: partition.partition,
                    committed_offset,
                    committed_leader_epoch,
                    metadata,
                    ..OffsetFetchResponseGroupPartition::default()
                }
            })
            .collect(),
    });
    OffsetFetchResponseGroup {
        group_id,
        topics: topics.collect(),
        ..OffsetFetchResponseGroup::default()
    }
}
