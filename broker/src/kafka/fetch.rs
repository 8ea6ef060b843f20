//! Fetch, versions 4-17. From 13 on topics are named by their ids (KIP-516).
//!
//! The first batch is told whole, however few bytes were asked for (KIP-74); an offset within a batch is answered with the
//! whole batch. An epoch of the leader that is not the one in force is refused (KIP-320).
//!
//! Not honoured: sessions (KIP-227): every answer has session 0, and clients then name all their partitions each time.
//! `isolation_level`: there are no transactions, so the last stable offset is the high watermark. `rack_id` (KIP-392):
//! there is no other replica to prefer. `replica_id`, `replica_state`: nobody follows this broker.

use bytes::Bytes;
use tackboard_logic::request::fetch::Bounds;
use tackboard_schema::{
    CorrelationId, ErrorCode, Offset, PartitionIndex, TopicId,
    kafka::{
        FetchRequest, FetchResponse, FetchResponsePartition, FetchResponseTopic, Part, Records,
        encode_response, parts,
    },
};

use super::{
    answers::{Answers, Form},
    codes::fetch_code,
    handlers::Call,
};
use crate::{
    native::connection::{Connection, OutFrame},
    shard::{
        placed::{FetchFrom, Placed, find_topic, find_topic_by_id, place_in},
        request::{Entry, Fetched, Piece},
    },
};

/// The first version that names topics by their ids.
const TOPIC_IDS_FROM: i16 = 13;

pub(super) fn handle(call: Call<'_>, request: FetchRequest) {
    if request.session_id != 0 {
        return call.respond(&FetchResponse {
            error_code: ErrorCode::FetchSessionIdNotFound.code(),
            ..FetchResponse::default()
        });
    }
    let counts = request.topics.iter().map(|topic| topic.partitions.len());
    let count: usize = counts.sum();
    let admitted = call.state.admit_entries(call.connection, count);
    if count == 0 {
        return call.respond(&FetchResponse::default());
    }
    let Call {
        state,
        connection,
        answers,
        number,
        version,
        ..
    } = call;
    let by_id = version >= TOPIC_IDS_FROM;
    let mut ids = Vec::new();
    let number_of = |value: i32| u32::try_from(value).unwrap_or(0);
    let bounds = Bounds {
        wait_ms: number_of(request.max_wait_ms),
        bytes_min: number_of(request.min_bytes),
        bytes_max: number_of(request.max_bytes),
    };
    let mut placed = Placed::with_capacity(count);
    for topic in &request.topics {
        let (name, found) = match by_id {
            true => find_topic_by_id(state, topic.topic_id),
            false => find_topic(state, &topic.topic),
        };
        if by_id && !topic.partitions.is_empty() {
            ids.push((topic.topic_id, topic.partitions.len()));
        }
        for entry in &topic.partitions {
            let partition = PartitionIndex(entry.partition);
            let place = place_in(state, &found, partition).and_then(|place| {
                admitted.clone()?;
                state.check_epoch(&name, partition, entry.current_leader_epoch)?;
                Ok(place)
            });
            let from = FetchFrom {
                offset: Offset(entry.fetch_offset),
                bytes_max: number_of(entry.partition_max_bytes),
            };
            placed.add(name.clone(), partition, place, from);
        }
    }
    if by_id {
        answers.with(number, |asked| asked.form = Form::TopicIds(ids));
    }
    state.fetch(connection, number, placed, bounds);
}

/// Answers a fetch; the batches go out from where they lie.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    entries: Vec<Entry<Fetched>>,
) {
    let asked = answers.with(number, |asked| {
        let form = std::mem::replace(&mut asked.form, Form::Plain);
        (asked.version, asked.correlation_id, form)
    });
    let Some((version, correlation_id, form)) = asked else {
        return;
    };
    let mut response = FetchResponse::default();
    match form {
        Form::TopicIds(ids) => {
            let mut rest = entries.as_slice();
            for (id, count) in ids {
                let (topic, behind) = rest.split_at(count.min(rest.len()));
                rest = behind;
                response.responses.push(told_topic(id, topic));
            }
        }
        _ => {
            let topics = entries.chunk_by(|one, next| one.topic == next.topic);
            let told = topics.map(|topic| told_topic(TopicId::default(), topic));
            response.responses = told.collect();
        }
    }
    let mut bytes = Vec::new();
    let gaps = match encode_response(&mut bytes, version, correlation_id, &response) {
        Ok(gaps) => gaps,
        Err(error) => {
            tracing::error!(%error, version, "an answer could not be written; connection closed");
            return connection.close();
        }
    };
    let bytes = Bytes::from(bytes);
    let fetched = entries.into_iter().filter_map(|entry| entry.outcome?.ok());
    // As many as there are gaps.
    let mut records = fetched
        .filter(|fetched| fetched.byte_length() > 0)
        .map(|fetched| fetched.pieces);
    let mut frame = OutFrame {
        answers: 1,
        length: bytes.len(),
        ..OutFrame::default()
    };
    for part in parts(&bytes, &gaps) {
        match part {
            Part::Frame(part) => frame.body.push(Piece::Owned(bytes.slice_ref(part))),
            Part::Records(_) => frame.body.extend(records.next().into_iter().flatten()),
        }
    }
    frame.length += gaps.iter().map(|gap| gap.length as usize).sum::<usize>();
    answers.send(connection, number, Some(frame));
}

/// Partitions of one topic. Whoever named it by name is told no id.
fn told_topic(topic_id: TopicId, partitions: &[Entry<Fetched>]) -> FetchResponseTopic {
    let name = partitions.first().map_or("", |entry| &*entry.topic);
    FetchResponseTopic {
        topic: name.into(),
        topic_id,
        partitions: partitions.iter().map(told).collect(),
    }
}

fn told(entry: &Entry<Fetched>) -> FetchResponsePartition {
    let partition = FetchResponsePartition {
        partition_index: entry.partition.0,
        // Never null: old clients take that for a length.
        records: Some(Records::Here(Bytes::new())),
        ..FetchResponsePartition::default()
    };
    match &entry.outcome {
        Some(Ok(fetched)) => FetchResponsePartition {
            high_watermark: fetched.high_watermark.0,
            last_stable_offset: fetched.high_watermark.0,
            log_start_offset: fetched.log_start_offset.0,
            records: match fetched.byte_length() {
                0 => partition.records,
                length => Some(Records::Elsewhere(length as u32)),
            },
            ..partition
        },
        Some(Err(failure)) => {
            let (high_watermark, log_start_offset) = match &failure.log {
                Some(log) => (log.high_watermark.0, log.log_start_offset.0),
                None => (-1, -1),
            };
            FetchResponsePartition {
                error_code: fetch_code(failure.code),
                high_watermark,
                last_stable_offset: high_watermark,
                log_start_offset,
                ..partition
            }
        }
        None => FetchResponsePartition {
            error_code: ErrorCode::UnknownServerError.code(),
            high_watermark: -1,
            ..partition
        },
    }
}
