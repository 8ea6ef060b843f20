//! What the APIs of groups have in common: finding the coordinators, and what is kept until they have answered.

use std::collections::BTreeSet;

use tackboard_logic::group::interface::{MemberRef, NamedPartition};
use tackboard_schema::{
    CorrelationId, ErrorCode,
    kafka::{
        ApiKey, DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest,
        LeaveGroupRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
        RequestFault, RequestFrame, Str,
    },
};

use super::{
    answers::{Answers, Form},
    codes::kafka_code,
    delete_groups, describe_groups, find_coordinator,
    handlers::{Call, bounded, read},
    heartbeat, join_group, leave_group, list_groups, offset_commit, offset_delete, offset_fetch,
    session::FrameFault,
    sync_group,
};
use crate::{
    native::connection::Connection,
    shard::{
        groups::{GroupAnswer, GroupQuestion, GroupRequest},
        request::Entry,
    },
};

/// What a request of groups named, in its order, for the answer.
#[derive(Default)]
pub enum Named {
    /// Nothing that the answer repeats.
    #[default]
    Nothing,
    /// Groups.
    Groups(Vec<Str>),
    /// Members that leave.
    Members(Vec<MemberRef>),
    /// Partitions whose offsets are deleted, or asked for where each has a code of its own.
    Partitions(Vec<NamedPartition>),
    /// Partitions whose offsets are committed, and whether they exist.
    Commits(Vec<(NamedPartition, bool)>),
    /// Groups of some kinds.
    Listed(list_groups::Filter),
    /// Coordinators.
    Coordinators(find_coordinator::Sought),
}

/// Takes in one request of groups.
///
/// # Errors
/// One that can't be read, that names too much, or that nobody serves.
pub(super) fn handle(call: Call<'_>, frame: RequestFrame) -> Result<(), FrameFault> {
    let api = frame.api;
    match api {
        ApiKey::FindCoordinator => {
            let request: FindCoordinatorRequest = read(frame)?;
            bounded(api, request.coordinator_keys.len())?;
            find_coordinator::handle(call, request);
        }
        ApiKey::JoinGroup => join_group::handle(call, &read(frame)?),
        ApiKey::SyncGroup => sync_group::handle(call, &read(frame)?),
        ApiKey::Heartbeat => heartbeat::handle(call, &read(frame)?),
        ApiKey::LeaveGroup => {
            let request: LeaveGroupRequest = read(frame)?;
            bounded(api, request.members.len())?;
            leave_group::handle(call, &request);
        }
        ApiKey::OffsetCommit => {
            let request: OffsetCommitRequest = read(frame)?;
            let counts = request.topics.iter().map(|topic| topic.partitions.len());
            bounded(api, counts.sum())?;
            offset_commit::handle(call, &request);
        }
        ApiKey::OffsetFetch => {
            let request: OffsetFetchRequest = read(frame)?;
            bounded(api, offset_fetch::named_by(&request))?;
            offset_fetch::handle(call, request);
        }
        ApiKey::OffsetDelete => {
            let request: OffsetDeleteRequest = read(frame)?;
            let counts = request.topics.iter().map(|topic| topic.partitions.len());
            bounded(api, counts.sum())?;
            offset_delete::handle(call, &request);
        }
        ApiKey::DescribeGroups => {
            let request: DescribeGroupsRequest = read(frame)?;
            bounded(api, request.groups.len())?;
            describe_groups::handle(call, request);
        }
        ApiKey::DeleteGroups => {
            let request: DeleteGroupsRequest = read(frame)?;
            bounded(api, request.groups_names.len())?;
            delete_groups::handle(call, request);
        }
        ApiKey::ListGroups => list_groups::handle(call, &read(frame)?),
        other => {
            return Err(FrameFault::from(RequestFault::UnknownApi {
                key: other.code(),
            }));
        }
    }
    Ok(())
}

/// Asks one coordinator.
pub(super) fn ask_one(mut call: Call<'_>, group: &str, named: Named, wanted: GroupRequest) {
    let question = find(&mut call, group, wanted);
    ask(call, named, vec![question]);
}

/// A question to the coordinator of a group.
pub(super) fn find(call: &mut Call<'_>, group: &str, wanted: GroupRequest) -> GroupQuestion {
    let (index, place) = call.state.coordinator_of(group);
    (index, place, wanted)
}

/// Asks coordinators, and keeps what was named for the answer.
pub(super) fn ask(call: Call<'_>, named: Named, questions: Vec<GroupQuestion>) {
    let Call {
        state,
        connection,
        answers,
        number,
        ..
    } = call;
    answers.with(number, |asked| asked.form = Form::Groups(named));
    state.ask_groups(connection, number, questions, None);
}

/// What a request names several times is asked and told once: a short request has no long answer.
pub(super) fn each_once<T>(named: Vec<T>, name: impl Fn(&T) -> &Str) -> impl Iterator<Item = T> {
    let mut seen = BTreeSet::new();
    named
        .into_iter()
        .filter(move |one| seen.insert(name(one).clone()))
}

/// Answers a request whose coordinators have answered.
pub fn answer(
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
    entries: Vec<Entry<GroupAnswer>>,
) {
    let asked = answers.with(number, |asked| {
        let form = std::mem::replace(&mut asked.form, Form::Plain);
        (asked.api, asked.version, form)
    });
    let Some((api, version, Form::Groups(named))) = asked else {
        return;
    };
    let mut outcomes = entries.into_iter().map(outcome);
    match (api, named) {
        (ApiKey::FindCoordinator, Named::Coordinators(sought)) => {
            let told = find_coordinator::told(version, sought, outcomes);
            answers.respond(connection, number, &told);
        }
        (ApiKey::JoinGroup, _) => {
            answers.respond(connection, number, &join_group::told(outcomes.next()));
        }
        (ApiKey::SyncGroup, _) => {
            answers.respond(connection, number, &sync_group::told(outcomes.next()));
        }
        (ApiKey::Heartbeat, _) => {
            answers.respond(connection, number, &heartbeat::told(outcomes.next()));
        }
        (ApiKey::LeaveGroup, Named::Members(members)) => {
            let told = leave_group::told(version, members, outcomes.next());
            answers.respond(connection, number, &told);
        }
        (ApiKey::OffsetCommit, Named::Commits(partitions)) => {
            let told = offset_commit::told(&partitions, outcomes.next());
            answers.respond(connection, number, &told);
        }
        (ApiKey::OffsetDelete, Named::Partitions(partitions)) => {
            let told = offset_delete::told(&partitions, outcomes.next());
            answers.respond(connection, number, &told);
        }
        (ApiKey::OffsetFetch, Named::Groups(groups)) => {
            let told = offset_fetch::told(version, groups, outcomes);
            answers.respond(connection, number, &told);
        }
        (ApiKey::OffsetFetch, Named::Partitions(partitions)) => {
            let told = offset_fetch::told_by_partition(partitions, outcomes.next());
            answers.respond(connection, number, &told);
        }
        (ApiKey::DescribeGroups, Named::Groups(groups)) => {
            answers.respond(connection, number, &describe_groups::told(groups, outcomes));
        }
        (ApiKey::DeleteGroups, Named::Groups(groups)) => {
            answers.respond(connection, number, &delete_groups::told(groups, outcomes));
        }
        (ApiKey::ListGroups, Named::Listed(filter)) => {
            answers.respond(connection, number, &list_groups::told(&filter, outcomes));
        }
        _ => unreachable!("only the APIs of groups ask coordinators, and say what they named"),
    }
}

/// What a coordinator said, or why it said nothing.
pub(super) type Outcome = Result<GroupAnswer, ErrorCode>;

fn outcome(entry: Entry<GroupAnswer>) -> Outcome {
    match entry.outcome {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(failure)) => Err(match failure.code {
            ErrorCode::OverBudget | ErrorCode::ShuttingDown => ErrorCode::CoordinatorNotAvailable,
            code => code,
        }),
        None => Err(ErrorCode::CoordinatorNotAvailable),
    }
}

/// The code of an answer that is nothing but one.
pub(super) fn code_of(outcome: Option<Outcome>) -> i16 {
    kafka_code(match outcome {
        Some(Ok(GroupAnswer::Done(code))) | Some(Err(code)) => code,
        _ => ErrorCode::UnknownServerError,
    })
}

/// Codes, one for each of `count` things that were named.
pub(super) fn codes_of(outcome: Option<Outcome>, count: usize) -> Result<Vec<i16>, i16> {
    let told = |codes: Vec<ErrorCode>| codes.into_iter().map(kafka_code).collect();
    match outcome {
        Some(Ok(GroupAnswer::Codes(Ok(codes)))) if codes.len() == count => Ok(told(codes)),
        Some(Ok(GroupAnswer::Codes(Err(code)))) | Some(Err(code)) => Err(kafka_code(code)),
        _ => Err(ErrorCode::UnknownServerError.code()),
    }
}

/// The member that a request speaks of.
pub(super) fn member(generation: i32, id: &Str, instance: Option<&Str>) -> MemberRef {
    MemberRef {
        generation,
        member_id: id.to_string(),
        instance: instance.map(|instance| instance.to_string()),
    }
}

/// A partition under its topic's name.
pub(super) fn named(topic: &std::sync::Arc<str>, partition: i32) -> NamedPartition {
    NamedPartition {
        topic: topic.clone(),
        partition,
    }
}
