//! Heads about groups as administration asks: which there are, who is in them, what is forgotten.

use std::sync::Arc;

use tackboard_schema::PartitionIndex;
use tackboard_schema::consumer_protocol::{Assignment, Partitions, Subscription};
use tackboard_schema::native::{self, HeadBuilder};

use super::groups::{check_results, own, partitions};
use crate::admin::{GroupDescription, GroupMember, GroupSummary};
use crate::error::Result;
use crate::protocol::frames::InFrame;
use crate::protocol::group::{NamedPartition, PROTOCOL_TYPE};
use crate::protocol::messages::Context;

pub(super) fn list_request(builder: &mut HeadBuilder) -> &[u8] {
    builder.build(|builder| {
        native::ListGroupsRequest::create(builder, &native::ListGroupsRequestArgs {})
    })
}

/// The groups, in the order of their names.
pub(crate) fn read_list(context: &Context, frame: &InFrame) -> Result<Vec<GroupSummary>> {
    let answer = context.read::<native::ListGroupsResponse<'_>>(own(context, frame)?)?;
    context.check(answer.error_code(), answer.message())?;
    let groups = answer.groups().unwrap_or_default().iter();
    let mut groups: Vec<_> = groups
        .map(|group| GroupSummary {
            group: group.group().into(),
            protocol_type: group.protocol_type().unwrap_or_default().into(),
            state: group.state().unwrap_or_default().into(),
        })
        .collect();
    groups.sort_by(|one, other| one.group.cmp(&other.group));
    Ok(groups)
}

pub(super) fn describe_request<'b>(builder: &'b mut HeadBuilder, group: &str) -> &'b [u8] {
    builder.build(|builder| {
        let group = builder.create_string(group);
        let groups = Some(builder.create_vector(&[group]));
        let args = native::DescribeGroupsRequestArgs { groups };
        native::DescribeGroupsRequest::create(builder, &args)
    })
}

/// The group of this name.
pub(crate) fn read_describe(
    context: &Context,
    frame: &InFrame,
    name: &str,
) -> Result<GroupDescription> {
    let answer = context.read::<native::DescribeGroupsResponse<'_>>(own(context, frame)?)?;
    context.check(answer.error_code(), answer.message())?;
    let mut groups = answer.groups().unwrap_or_default().iter();
    let group = groups
        .find(|group| group.group() == name)
        .ok_or_else(|| context.fault(format_args!("nothing about {name}")))?;
    context.check(group.error_code(), group.message())?;
    let protocol_type = group.protocol_type().unwrap_or_default();
    let members = group.members().unwrap_or_default().iter();
    let mut members: Vec<_> = members
        .map(|one| member(one, protocol_type == PROTOCOL_TYPE))
        .collect();
    members.sort_by(|one, other| {
        let key = |member: &GroupMember| (member.client_id.clone(), member.member_id.clone());
        key(one).cmp(&key(other))
    });
    Ok(GroupDescription {
        group: group.group().into(),
        state: group.state().unwrap_or_default().into(),
        generation: group.generation(),
        protocol_type: protocol_type.into(),
        protocol: group.protocol().unwrap_or_default().into(),
        members,
    })
}

/// Of groups that are no consumers' nobody here can read what they tell each other.
fn member(member: native::GroupMemberDescription<'_>, is_consumer: bool) -> GroupMember {
    let told = member.metadata().map(|told| told.bytes());
    let told = told.filter(|told| is_consumer && !told.is_empty());
    let subscription = told.and_then(|told| Subscription::decode(told).ok());
    let assignment = member.assignment().filter(|_| is_consumer);
    let assignment = assignment.and_then(|told| Assignment::decode(told.bytes()).ok());
    GroupMember {
        member_id: member.member_id().into(),
        instance: member.instance().map(Into::into),
        client_id: member.client_id().unwrap_or_default().into(),
        client_host: member.client_host().unwrap_or_default().into(),
        topics: subscription.map_or_else(Vec::new, |told| {
            told.topics.into_iter().map(Into::into).collect()
        }),
        assignment: named(assignment.unwrap_or_default().partitions),
    }
}

fn named(partitions: Partitions) -> Vec<NamedPartition> {
    let named = partitions.into_iter().flat_map(|(topic, indices)| {
        let topic: Arc<str> = topic.into();
        let one = move |partition: PartitionIndex| NamedPartition {
            topic: topic.clone(),
            partition,
        };
        indices.into_iter().map(one)
    });
    named.collect()
}

pub(super) fn delete_request<'b>(builder: &'b mut HeadBuilder, group: &str) -> &'b [u8] {
    builder.build(|builder| {
        let group = builder.create_string(group);
        let groups = Some(builder.create_vector(&[group]));
        let args = native::DeleteGroupsRequestArgs { groups };
        native::DeleteGroupsRequest::create(builder, &args)
    })
}

/// Whether the group of this name is forgotten.
pub(crate) fn read_delete(context: &Context, frame: &InFrame, name: &str) -> Result<()> {
    let answer = context.read::<native::DeleteGroupsResponse<'_>>(own(context, frame)?)?;
    context.check(answer.error_code(), answer.message())?;
    let mut groups = answer.groups().unwrap_or_default().iter();
    let group = groups
        .find(|group| group.group() == name)
        .ok_or_else(|| context.fault(format_args!("nothing about {name}")))?;
    context.check(group.error_code(), group.message())
}

pub(super) fn delete_offsets_request<'b>(
    builder: &'b mut HeadBuilder,
    group: &str,
    named: &[NamedPartition],
) -> &'b [u8] {
    builder.build(|builder| {
        let entries = Some(partitions(builder, named));
        let group = Some(builder.create_string(group));
        let args = native::DeleteOffsetsRequestArgs { group, entries };
        native::DeleteOffsetsRequest::create(builder, &args)
    })
}

/// The first refusal, if there is one.
pub(crate) fn read_delete_offsets(context: &Context, frame: &InFrame) -> Result<()> {
    let answer = context.read::<native::DeleteOffsetsResponse<'_>>(own(context, frame)?)?;
    context.check(answer.error_code(), answer.message())?;
    check_results(context, answer.results())
}
