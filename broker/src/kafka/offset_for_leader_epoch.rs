//! OffsetForLeaderEpoch, versions 2-4 (KIP-320): where a leader epoch ended, by which a consumer learns that what it has
//! read was cut off.
//!
//! An epoch that is later than the log's is answered with -1 and -1. One that lies below what the log holds is answered
//! with itself, and with where the log's first epoch begins.

use tackboard_logic::log::EpochEnd;
use tackboard_schema::{
    CorrelationId, ErrorCode, LeaderEpoch, PartitionIndex,
    kafka::{
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
        OffsetForLeaderEpochResponsePartition, OffsetForLeaderEpochResponseTopic,
    },
};

use super::{answers::Answers, codes::kafka_code, handlers::Call};
use crate::{
    native::connection::Connection,
    shard::{
        placed::{Placed, find_topic, place_in},
        request::Entry,
    },
};

pub(super) fn handle(call: Call<'_>, request: OffsetForLeaderEpochRequest) {
    let counts = request.topics.iter().map(|topic| topic.partitions.len());
    let count: usize = counts.sum();
    let admitted = call.state.admit_entries(call.connection, count);
    if count == 0 {
        return call.respond(&OffsetForLeaderEpochResponse::default());
    }
    let Call {
        state,
        connection,
        number,
        ..
    } = call;
    let mut placed = Placed::with_capacity(count);
    for topic in &request.topics {
        let (name, found) = find_topic(state, &topic.topic);
        for entry in &topic.partitions {
            let partition = PartitionIndex(entry.partition);
            let place = place_in(state, &found, partition).and_then(|place| {
                admitted.clone()?;
                state.check_epoch(&name, partition, entry.current_leader_epoch)?;
                Ok(place)
            });
            placed.add(
                name.clone(),
                partition,
                place,
                LeaderEpoch(entry.leader_epoch),
            );
        }
    }
    state.epoch_ends(connection, number, placed);
}

/// Answers a look-up of where leader epochs end.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    entries: &[Entry<Option<EpochEnd>>],
) {
    let mut response = OffsetForLeaderEpochResponse::default();
    for topic in entries.chunk_by(|one, next| one.topic == next.topic) {
        response.topics.push(OffsetForLeaderEpochResponseTopic {
            topic: (*topic[0].topic).into(),
            partitions: topic.iter().map(told).collect(),
        });
    }
    answers.respond(connection, number, &response);
}

fn told(entry: &Entry<Option<EpochEnd>>) -> OffsetForLeaderEpochResponsePartition {
    let partition = OffsetForLeaderEpochResponsePartition {
        partition: entry.partition.0,
        ..OffsetForLeaderEpochResponsePartition::default()
    };
    let code = match &entry.outcome {
        Some(Ok(Some(end))) => {
            return OffsetForLeaderEpochResponsePartition {
                leader_epoch: end.leader_epoch.0,
                end_offset: end.end_offset.0,
                ..partition
            };
        }
        Some(Ok(None)) => return partition,
        Some(Err(failure)) => kafka_code(failure.code),
        None => ErrorCode::UnknownServerError.code(),
    };
    OffsetForLeaderEpochResponsePartition {
        error_code: code,
        ..partition
    }
}
