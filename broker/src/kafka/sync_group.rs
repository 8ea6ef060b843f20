//! SyncGroup.

use bytes::Bytes;
use tackboard_logic::group::interface::{Opaque, Sync};
use tackboard_schema::{
    ErrorCode,
    kafka::{SyncGroupRequest, SyncGroupResponse},
};

use super::{
    codes::kafka_code,
    groups::{Named, Outcome, ask_one, member},
    handlers::Call,
};
use crate::shard::groups::{GroupAnswer, GroupRequest};

pub(super) fn handle(call: Call<'_>, request: &SyncGroupRequest) {
    let assignments = request.assignments.iter();
    let assignments =
        assignments.map(|one| (one.member_id.to_string(), Opaque::from(&*one.assignment)));
    let sync = Sync {
        group: request.group_id.to_string(),
        member: member(
            request.generation_id,
            &request.member_id,
            request.group_instance_id.as_ref(),
        ),
        protocol_type: request.protocol_type.as_ref().map(|name| name.to_string()),
        protocol: request.protocol_name.as_ref().map(|name| name.to_string()),
        assignments: assignments.collect(),
        refused: None,
    };
    ask_one(
        call,
        &request.group_id,
        Named::Nothing,
        GroupRequest::Sync(sync),
    );
}

pub(super) fn told(outcome: Option<Outcome>) -> SyncGroupResponse {
    match outcome {
        Some(Ok(GroupAnswer::Synced(Ok(synced)))) => SyncGroupResponse {
            protocol_type: Some((*synced.protocol_type).into()),
            protocol_name: Some((*synced.protocol).into()),
            assignment: Bytes::copy_from_slice(&synced.assignment),
            ..SyncGroupResponse::default()
        },
        Some(Ok(GroupAnswer::Synced(Err(code)))) | Some(Err(code)) => SyncGroupResponse {
            error_code: kafka_code(code),
            ..SyncGroupResponse::default()
        },
        _ => SyncGroupResponse {
            error_code: ErrorCode::UnknownServerError.code(),
            ..SyncGroupResponse::default()
        },
    }
}
