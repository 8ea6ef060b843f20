//! Heartbeat.

use tackboard_schema::kafka::{HeartbeatRequest, HeartbeatResponse};

use super::{
    groups::{Named, Outcome, ask_one, code_of, member},
    handlers::Call,
};
use crate::shard::groups::GroupRequest;

pub(super) fn handle(call: Call<'_>, request: &HeartbeatRequest) {
    let instance = request.group_instance_id.as_ref();
    let member = member(request.generation_id, &request.member_id, instance);
    let wanted = GroupRequest::Heartbeat(request.group_id.to_string(), member);
    ask_one(call, &request.group_id, Named::Nothing, wanted);
}

pub(super) fn told(outcome: Option<Outcome>) -> HeartbeatResponse {
    HeartbeatResponse {
        error_code: code_of(outcome),
        ..HeartbeatResponse::default()
    }
}
