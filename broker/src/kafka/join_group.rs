//! JoinGroup, versions 0-9.
//!
//! From version 4 on a new member gets its id first (KIP-394). From version 9 on a static leader that comes back to a group
//! which is stable is told that it leads and assigns nothing (KIP-814); before, that its former self leads.

use tackboard_logic::group::interface::{Join, Opaque};
use tackboard_schema::kafka::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};

use super::{
    codes::kafka_code,
    groups::{Named, Outcome, ask_one},
    handlers::Call,
};
use crate::shard::groups::{GroupAnswer, GroupRequest};

/// The first version in which a member without an id is given one before it is let in (KIP-394).
const TAKES_ID_FIRST_FROM: i16 = 4;

/// The first version whose answer can tell a leader to leave the assignment as it is (KIP-814).
const MAY_SKIP_FROM: i16 = 9;

pub(super) fn handle(call: Call<'_>, request: &JoinGroupRequest) {
    let protocols = request.protocols.iter();
    let protocols = protocols.map(|one| (one.name.to_string(), Opaque::from(&*one.metadata)));
    let join = Join {
        group: request.group_id.to_string(),
        member_id: request.member_id.to_string(),
        instance: request
            .group_instance_id
            .as_ref()
            .map(|name| name.to_string()),
        client_id: call
            .client_id
            .as_ref()
            .map(|name| name.to_string())
            .unwrap_or_default(),
        client_host: format!("/{}", call.connection.address()),
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: if call.version == 0 {
            request.session_timeout_ms
        } else {
            request.rebalance_timeout_ms
        },
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols.collect(),
        takes_id_first: call.version >= TAKES_ID_FIRST_FROM,
        may_skip_assignment: call.version >= MAY_SKIP_FROM,
        entropy: u128::from_ne_bytes(crate::random::random_id()),
    };
    let wanted = GroupRequest::Join(Box::new(join));
    ask_one(call, &request.group_id, Named::Nothing, wanted);
}

pub(super) fn told(outcome: Option<Outcome>) -> JoinGroupResponse {
    let refused = |code, member_id: &str| JoinGroupResponse {
        error_code: kafka_code(code),
        member_id: member_id.into(),
        ..JoinGroupResponse::default()
    };
    let joined = match outcome {
        Some(Ok(GroupAnswer::Joined(Ok(joined)))) => joined,
        Some(Ok(GroupAnswer::Joined(Err(refusal)))) => {
            return refused(refusal.code, &refusal.member_id);
        }
        Some(Err(code)) => return refused(code, ""),
        _ => return refused(tackboard_schema::ErrorCode::UnknownServerError, ""),
    };
    let members = joined.members.iter().map(|member| JoinGroupResponseMember {
        member_id: (*member.member_id).into(),
        group_instance_id: member.instance.as_deref().map(Into::into),
        metadata: bytes::Bytes::copy_from_slice(&member.subscription),
    });
    JoinGroupResponse {
        generation_id: joined.generation,
        protocol_type: Some((*joined.protocol_type).into()),
        protocol_name: Some((*joined.protocol).into()),
        leader: (*joined.leader).into(),
        skip_assignment: joined.skip_assignment,
        member_id: (*joined.member_id).into(),
        members: members.collect(),
        ..JoinGroupResponse::default()
    }
}
