//! ListOffsets, versions 1-6 (the decoder knows later ones, for special values that are not answered; they are not taken).
//!
//! -1 is the high watermark, -2 the log's start; a time is the first record that is not older, or offset -1 if there is
//! none.
//!
//! Not honoured: `isolation_level`: there are no transactions, so the last stable offset is the high watermark. The leader
//! epoch of what is found is not told (-1).

use tackboard_logic::request::lookup::ListedOffset;
use tackboard_schema::{
    CorrelationId, ErrorCode, PartitionIndex, TimestampMs,
    kafka::{
        ListOffsetsRequest, ListOffsetsResponse, ListOffsetsResponsePartition,
        ListOffsetsResponseTopic,
    },
};

use super::{answers::Answers, codes::kafka_code, handlers::Call};
use crate::{
    native::connection::Connection,
    shard::{
        placed::{Placed, find_topic, place_in},
        request::{Entry, Failure},
    },
};

pub(super) fn handle(call: Call<'_>, request: ListOffsetsRequest) {
    let count: usize = request
        .topics
        .iter()
        .map(|topic| topic.partitions.len())
        .sum();
    let admitted = call.state.admit_entries(call.connection, count);
    if count == 0 {
        return call.respond(&ListOffsetsResponse::default());
    }
    let Call {
        state,
        connection,
        number,
        ..
    } = call;
    let mut placed = Placed::with_capacity(count);
    for topic in &request.topics {
        let (name, found) = find_topic(state, &topic.name);
        for entry in &topic.partitions {
            let partition = PartitionIndex(entry.partition_index);
            let place = place_in(state, &found, partition).and_then(|place| {
                admitted.clone()?;
                state.check_epoch(&name, partition, entry.current_leader_epoch)?;
                Ok(place)
            });
            let timestamp = TimestampMs(entry.timestamp);
            placed.add(name.clone(), partition, place, timestamp);
        }
    }
    state.list_offsets(connection, number, placed);
}

/// Answers a look-up of offsets.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    entries: &[Entry<ListedOffset>],
) {
    let mut response = ListOffsetsResponse::default();
    for topic in entries.chunk_by(|one, next| one.topic == next.topic) {
        response.topics.push(ListOffsetsResponseTopic {
            name: (*topic[0].topic).into(),
            partitions: topic.iter().map(told).collect(),
        });
    }
    answers.respond(connection, number, &response);
}

fn told(entry: &Entry<ListedOffset>) -> ListOffsetsResponsePartition {
    let partition_index = entry.partition.0;
    match &entry.outcome {
        Some(Ok(listed)) => ListOffsetsResponsePartition {
            partition_index,
            timestamp: listed.timestamp.0,
            offset: listed.offset.0,
            ..ListOffsetsResponsePartition::default()
        },
        Some(Err(Failure { code, .. })) => ListOffsetsResponsePartition {
            partition_index,
            error_code: kafka_code(*code),
            ..ListOffsetsResponsePartition::default()
        },
        None => ListOffsetsResponsePartition {
            partition_index,
            error_code: ErrorCode::UnknownServerError.code(),
            ..ListOffsetsResponsePartition::default()
        },
    }
}
