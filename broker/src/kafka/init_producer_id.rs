//! InitProducerId, versions 0-4, for producers without transactions: a new id each time, with epoch 0.
//!
//! Not offered: transactions, which are refused.

use tackboard_schema::{
    CorrelationId, ErrorCode, ProducerId,
    kafka::{InitProducerIdRequest, InitProducerIdResponse},
};

use super::{answers::Answers, codes::kafka_code, handlers::Call};
use crate::{native::connection::Connection, shard::request::Failure};

pub(super) fn handle(call: Call<'_>, request: &InitProducerIdRequest) {
    if request.transactional_id.is_some() {
        return call.respond(&InitProducerIdResponse {
            error_code: ErrorCode::InvalidRequest.code(),
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        });
    }
    // One that has an id asks for another epoch of it (KIP-360): a new id is as good, for nothing is known of it.
    call.state.init_producer(call.connection, call.number);
}

/// Answers with an id, or why there is none.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    outcome: Result<ProducerId, Failure>,
) {
    let response = match outcome {
        Ok(id) => InitProducerIdResponse {
            producer_id: id.0,
            ..InitProducerIdResponse::default()
        },
        Err(failure) => InitProducerIdResponse {
            error_code: kafka_code(failure.code),
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        },
    };
    answers.respond(connection, number, &response);
}
