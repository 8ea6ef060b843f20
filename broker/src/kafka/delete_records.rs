//! DeleteRecords, versions 0-2 (KIP-107): the log begins at an offset, or (-1) at its high watermark.
//!
//! Whoever is answered is never shown the records again, not even after a crash. An offset within a batch is taken as it
//! is: the batch is still fetched, and clients skip what lies below. Disk space comes back a segment at a time.
//!
//! Not honoured: the time-out. The answer comes when the new beginning is on the medium, or with the fault that prevents
//! that.

use tackboard_schema::{
    CorrelationId, ErrorCode, Offset, PartitionIndex,
    kafka::{
        DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsResponsePartition,
        DeleteRecordsResponseTopic,
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

/// Stands for the high watermark.
const HIGH_WATERMARK: i64 = -1;

pub(super) fn handle(call: Call<'_>, request: &DeleteRecordsRequest) {
    let counts = request.topics.iter().map(|topic| topic.partitions.len());
    let count: usize = counts.sum();
    let admitted = call.state.admit_entries(call.connection, count);
    if count == 0 {
        return call.respond(&DeleteRecordsResponse::default());
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
                Ok(place)
            });
            let offset = match entry.offset {
                HIGH_WATERMARK => None,
                offset => Some(Offset(offset)),
            };
            placed.add(name.clone(), partition, place, offset);
        }
    }
    state.delete_records(connection, number, placed);
}

/// Answers with where the logs begin.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    entries: &[Entry<Offset>],
) {
    let mut response = DeleteRecordsResponse::default();
    for topic in entries.chunk_by(|one, next| one.topic == next.topic) {
        response.topics.push(DeleteRecordsResponseTopic {
            name: (*topic[0].topic).into(),
            partitions: topic.iter().map(told).collect(),
        });
    }
    answers.respond(connection, number, &response);
}

fn told(entry: &Entry<Offset>) -> DeleteRecordsResponsePartition {
    let (error_code, low_watermark) = match &entry.outcome {
        Some(Ok(log_start)) => (0, log_start.0),
        Some(Err(Failure { code, .. })) => (kafka_code(*code), -1),
        None => (ErrorCode::UnknownServerError.code(), -1),
    };
    DeleteRecordsResponsePartition {
        partition_index: entry.partition.0,
        low_watermark,
        error_code,
    }
}
