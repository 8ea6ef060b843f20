//! LeaveGroup.

use tackboard_logic::group::interface::MemberRef;
use tackboard_schema::kafka::{LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember};

use super::{
    groups::{Named, Outcome, ask_one, codes_of, member},
    handlers::Call,
};
use crate::shard::groups::GroupRequest;

/// The first version that names several members, and answers each.
const NAMES_SEVERAL_FROM: i16 = 3;
/// Who leaves says nothing of a generation.
const NO_GENERATION: i32 = -1;

pub(super) fn handle(call: Call<'_>, request: &LeaveGroupRequest) {
    let members: Vec<MemberRef> = if call.version >= NAMES_SEVERAL_FROM {
        let members = request.members.iter();
        let members = members.map(|one| {
            let instance = one.group_instance_id.as_ref();
            member(NO_GENERATION, &one.member_id, instance)
        });
        members.collect()
    } else {
        vec![member(NO_GENERATION, &request.member_id, None)]
    };
    let wanted = GroupRequest::Leave(request.group_id.to_string(), members.clone());
    ask_one(call, &request.group_id, Named::Members(members), wanted);
}

pub(super) fn told(
    version: i16,
    members: Vec<MemberRef>,
    outcome: Option<Outcome>,
) -> LeaveGroupResponse {
    let codes = match codes_of(outcome, members.len()) {
        Ok(codes) => codes,
        Err(error_code) => {
            return LeaveGroupResponse {
                error_code,
                ..LeaveGroupResponse::default()
            };
        }
    };
    if version < NAMES_SEVERAL_FROM {
        return LeaveGroupResponse {
            error_code: codes.first().copied().unwrap_or(0),
            ..LeaveGroupResponse::default()
        };
    }
    let members = members.into_iter().zip(codes);
    let members = members.map(|(member, error_code)| LeaveGroupResponseMember {
        member_id: member.member_id.into(),
        group_instance_id: member.instance.map(Into::into),
        error_code,
    });
    LeaveGroupResponse {
        members: members.collect(),
        ..LeaveGroupResponse::default()
    }
}
