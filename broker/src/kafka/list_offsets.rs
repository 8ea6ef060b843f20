//! ListOffsets.

use tackboard_logic::request::{by_core::ByCore, lookup::ListedOffset};
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
        request::{Body, Entry, Failure, Origin, Work},
        topics::Place,
        work::{find_topic, place_in},
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
    let mut entries = Vec::with_capacity(count);
    let mut places = Vec::with_capacity(count);
    for topic in &request.topics {
        let (name, found) = find_topic(state, &topic.name);
        for entry in &topic.partitions {
            let partition = PartitionIndex(entry.partition_index);
            let place = place_in(state, &found, partition);
            let place = place.and_then(|place| {
                admitted.clone()?;
                state.check_epoch(&name, partition, entry.current_leader_epoch)?;
                Ok(place)
            });
            entries.push(Entry::waiting(name.clone(), partition));
            places.push((place, TimestampMs(entry.timestamp)));
        }
    }
    let origin = Origin::Connection(connection.clone());
    let key = state.begin(origin, number, 0, Body::ListOffsets { entries });
    let mut elsewhere = ByCore::default();
    for (index, (place, timestamp)) in (0..).zip(places) {
        match place {
            Ok(Place::Here(log)) => state.list_offset_here(key, index, log, timestamp),
            Ok(Place::There(core, partition)) => elsewhere.add(core, index, (partition, timestamp)),
            Err(failure) => state.entry_failed(key, index, failure),
        }
    }
    state.call_each(key, elsewhere, Work::ListOffsets);
    state.handed_out(key);
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
