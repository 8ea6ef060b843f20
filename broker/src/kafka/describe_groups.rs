//! DescribeGroups, versions 0-5. A group that there is not is `Dead`.
//!
//! Groups that do not fit the answer are refused with a code at which clients ask again.
//!
//! Not honoured: `include_authorized_operations`, since there is no access control.

use bytes::Bytes;
use tackboard_schema::{
    ErrorCode,
    kafka::{
        DescribeGroupsRequest, DescribeGroupsResponse, DescribeGroupsResponseGroup,
        DescribeGroupsResponseMember, Str,
    },
};

use super::{
    codes::kafka_code,
    groups::{Named, Outcome, ask, each_once, find},
    handlers::Call,
};
use crate::shard::groups::{GroupAnswer, GroupRequest};

/// The state of a group that is not there.
const DEAD: &str = "Dead";

pub(super) fn handle(mut call: Call<'_>, request: DescribeGroupsRequest) {
    let groups: Vec<Str> = each_once(request.groups, |group| group).collect();
    let questions = groups.iter().map(|group| {
        let wanted = GroupRequest::Describe(group.to_string());
        find(&mut call, group, wanted)
    });
    let questions = questions.collect();
    ask(call, Named::Groups(groups), questions);
}

pub(super) fn told(
    groups: Vec<Str>,
    outcomes: impl Iterator<Item = Outcome>,
) -> DescribeGroupsResponse {
    let groups = groups.into_iter().zip(outcomes);
    DescribeGroupsResponse {
        groups: groups
            .map(|(group, outcome)| told_group(group, outcome))
            .collect(),
        ..DescribeGroupsResponse::default()
    }
}

fn told_group(group_id: Str, outcome: Outcome) -> DescribeGroupsResponseGroup {
    let view = match outcome {
        Ok(GroupAnswer::Described(Some(view))) => view,
        Ok(GroupAnswer::Described(None)) => {
            return DescribeGroupsResponseGroup {
                group_id,
                group_state: DEAD.into(),
                ..DescribeGroupsResponseGroup::default()
            };
        }
        Ok(_) => return refused(group_id, ErrorCode::UnknownServerError),
        Err(code) => return refused(group_id, code),
    };
    let members = view
        .members
        .into_iter()
        .map(|member| DescribeGroupsResponseMember {
            member_id: (*member.member_id).into(),
            group_instance_id: member.instance.as_deref().map(Into::into),
            client_id: member.client_id.into(),
            client_host: member.client_host.into(),
            member_metadata: Bytes::copy_from_slice(&member.subscription),
            member_assignment: Bytes::copy_from_slice(&member.assignment),
        });
    DescribeGroupsResponseGroup {
        group_id,
        group_state: view.state.name().into(),
        protocol_type: (*view.protocol_type).into(),
        protocol_data: (*view.protocol).into(),
        members: members.collect(),
        ..DescribeGroupsResponseGroup::default()
    }
}

fn refused(group_id: Str, code: ErrorCode) -> DescribeGroupsResponseGroup {
    DescribeGroupsResponseGroup {
        error_code: kafka_code(code),
        group_id,
        ..DescribeGroupsResponseGroup::default()
    }
}
