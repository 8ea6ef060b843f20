//! Produce, versions 3-11; advertised from 0, because old librdkafka take from that whether they may compress.
//!
//! A partition gets one batch of magic 2 or is refused. Acks weaker than the topic's floor are raised to it; a client that
//! wants no answer gets none all the same, and loses its connection when anything of the request fails. The durability is
//! the topic's. Batches with a producer id are told apart from their repetitions (KIP-98).
//!
//! Not offered: transactions, which are refused. Not told: `record_errors` and `log_append_time` (records keep their
//! producer's timestamps), and `current_leader` (KIP-951).

use std::convert::identity;

use bytes::Bytes;
use tackboard_logic::request::produce::Appended;
use tackboard_schema::{
    Acks, CorrelationId, ErrorCode, PartitionIndex,
    kafka::{
        ProduceRequest, ProduceResponse, ProduceResponsePartition, ProduceResponseTopic, Records,
    },
    record_batch::BatchHeader,
};

use super::{
    answers::{Answers, Form},
    codes::kafka_code,
    handlers::Call,
};
use crate::{
    native::connection::Connection,
    shard::{
        placed::{Placed, find_topic, place_to_write},
        request::{Entry, Failure, Levels},
    },
};

pub(super) fn handle(call: Call<'_>, request: ProduceRequest) {
    let Call {
        state,
        connection,
        answers,
        number,
        ..
    } = call;
    let acks = match request.acks {
        -1 => Ok(Acks::All),
        0 => Ok(Acks::Count(0)),
        1 => Ok(Acks::Count(1)),
        other => {
            let message = format!("acks {other} is none of -1, 0 and 1");
            Err(Failure::new(ErrorCode::InvalidRequiredAcks, message))
        }
    };
    if request.acks == 0 {
        answers.with(number, |asked| asked.form = Form::Silent);
    }
    let levels = Levels {
        acks: acks.as_ref().ok().copied(),
        durability: None,
    };
    let transactional = request.transactional_id.is_some();
    let counts = request.topic_data.iter();
    let count = counts.map(|topic| topic.partition_data.len()).sum();
    let mut placed = Placed::with_capacity(count);
    for topic in request.topic_data {
        let (name, found) = find_topic(state, &topic.name);
        for partition in topic.partition_data {
            let index = PartitionIndex(partition.index);
            let records = match partition.records {
                Some(Records::Here(bytes)) => bytes,
                _ => Bytes::new(),
            };
            let place = match (&acks, transactional) {
                (Err(failure), _) => Err(failure.clone()),
                (Ok(_), true) => Err(Failure::new(
                    ErrorCode::InvalidRequest,
                    "transactions are not offered",
                )),
                (Ok(_), false) => place_to_write(state, &found, index).and_then(|place| {
                    one_batch(&records)?;
                    Ok(place)
                }),
            };
            placed.add(name.clone(), index, place, records);
        }
    }
    let timeout_ms = u32::try_from(request.timeout_ms).unwrap_or(0);
    state.produce(connection, number, placed, levels, timeout_ms, identity);
}

/// Clients send one batch a partition (Kafka refuses more from version 3 on); what is in it is checked where it is
/// appended.
fn one_batch(records: &[u8]) -> Result<(), Failure> {
    match BatchHeader::read(records) {
        Ok(header) if header.total_length() < records.len() => Err(Failure::new(
            ErrorCode::InvalidRecord,
            "more than one record batch for a partition",
        )),
        _ => Ok(()),
    }
}

/// Answers a produce request, if its client waits for it.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    entries: &[Entry<Appended>],
) {
    let silent = answers.with(number, |asked| matches!(asked.form, Form::Silent));
    if silent != Some(false) {
        let failed = entries
            .iter()
            .any(|entry| !matches!(entry.outcome, Some(Ok(_))));
        if failed {
            // All that a client that wants no answers can be told.
            tracing::debug!("a produce request with acks 0 failed; connection closed");
            connection.close();
        }
        return answers.send(connection, number, None);
    }
    let mut response = ProduceResponse::default();
    for topic in entries.chunk_by(|one, next| one.topic == next.topic) {
        response.responses.push(ProduceResponseTopic {
            name: (*topic[0].topic).into(),
            partition_responses: topic.iter().map(told).collect(),
        });
    }
    answers.respond(connection, number, &response);
}

fn told(entry: &Entry<Appended>) -> ProduceResponsePartition {
    let index = entry.partition.0;
    match &entry.outcome {
        Some(Ok(appended)) => ProduceResponsePartition {
            index,
            base_offset: appended.base_offset.0,
            log_append_time_ms: appended.log_append_time.map_or(-1, |time| time.0),
            log_start_offset: appended.log_start_offset.0,
            ..ProduceResponsePartition::default()
        },
        Some(Err(failure)) => ProduceResponsePartition {
            index,
            error_code: kafka_code(failure.code),
            base_offset: -1,
            error_message: Some(failure.message.as_str().into()),
            ..ProduceResponsePartition::default()
        },
        None => ProduceResponsePartition {
            index,
            error_code: ErrorCode::UnknownServerError.code(),
            base_offset: -1,
            ..ProduceResponsePartition::default()
        },
    }
}
