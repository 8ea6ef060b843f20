//! The APIs of consumer groups: from heads to questions for coordinators, and from their answers to heads.
//!
//! Any connection will do for any group: what another core coordinates is asked there. Names that a request has several
//! times are asked about once.

use std::{collections::BTreeSet, rc::Rc, sync::Arc};

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};
use tackboard_logic::{
    group::{
        GroupView, NAME_BYTES_MAX,
        interface::{
            CommitEntry, Join, JoinRefusal, Joined, MemberRef, NamedPartition, Opaque, Sync,
        },
    },
    metadata::Endpoint,
};
use tackboard_schema::{
    CorrelationId, ErrorCode, LeaderEpoch, Offset, PartitionIndex,
    frame::{ApiKey, Frame},
    native::{self as head, HeadBuilder, read_head},
    storage::group_record::CommittedOffset,
};

use super::{answer::send_head, connection::Connection, handlers::bounded};
use crate::shard::{
    groups::{Commit, GroupAnswer, GroupQuestion, GroupRequest},
    placed::short,
    request::{Entry, Failure},
    state::State,
    topics::Place,
};

/// Who leaves, and who looks on, says nothing of a generation.
const NO_GENERATION: i32 = -1;

/// What a request named, in its order, for the answer.
#[derive(Debug)]
pub struct Asked {
    api: ApiKey,
    named: Named,
}

#[derive(Debug)]
enum Named {
    Nothing,
    Groups(Vec<String>),
    Members(Vec<MemberRef>),
    Partitions(Vec<NamedPartition>),
    /// And whether they exist: only what does is asked about.
    Commits(Vec<(NamedPartition, bool)>),
    /// A coordinator.
    Coordinator(Box<Sought>),
}

/// Where a coordinator is, if it is there.
#[derive(Debug)]
struct Sought {
    broker: i32,
    core: u16,
    endpoint: Option<Endpoint>,
}

/// Takes one request in.
///
/// # Errors
/// A head that can't be read, or that names too much.
pub fn handle(
    state: &mut State,
    connection: &Rc<Connection>,
    api: ApiKey,
    frame: &Frame<'_>,
) -> Result<(), Failure> {
    let id = frame.prefix.correlation_id;
    let (named, questions) = match api {
        ApiKey::FindCoordinator => find_coordinator(state, frame.head)?,
        ApiKey::JoinGroup => join(state, connection, frame.head)?,
        ApiKey::SyncGroup => sync(state, frame.head)?,
        ApiKey::Heartbeat => {
            let request = read_head::<head::HeartbeatRequest<'_>>(frame.head)?;
            let member = member(
                request.generation(),
                Some(request.member_id()),
                request.instance(),
            )?;
            let wanted = GroupRequest::Heartbeat(name(request.group())?, member);
            (Named::Nothing, one(state, request.group(), wanted))
        }
        ApiKey::LeaveGroup => {
            let request = read_head::<head::LeaveGroupRequest<'_>>(frame.head)?;
            bounded(request.members().len())?;
            let members = request
                .members()
                .iter()
                .map(|one| member(NO_GENERATION, one.member_id(), one.instance()));
            let members = members.collect::<Result<Vec<_>, _>>()?;
            let wanted = GroupRequest::Leave(name(request.group())?, members.clone());
            let questions = one(state, request.group(), wanted);
            (Named::Members(members), questions)
        }
        ApiKey::OffsetCommit => commit(state, frame.head)?,
        ApiKey::OffsetFetch => {
            let request = read_head::<head::OffsetFetchRequest<'_>>(frame.head)?;
            let wanted = request.entries().map(partitions).transpose()?;
            let wanted = GroupRequest::Offsets(name(request.group())?, wanted);
            (Named::Nothing, one(state, request.group(), wanted))
        }
        ApiKey::DeleteOffsets => {
            let request = read_head::<head::DeleteOffsetsRequest<'_>>(frame.head)?;
            let named = partitions(request.entries())?;
            let wanted = GroupRequest::DeleteOffsets(name(request.group())?, named.clone());
            let questions = one(state, request.group(), wanted);
            (Named::Partitions(named), questions)
        }
        ApiKey::ListGroups => {
            read_head::<head::ListGroupsRequest<'_>>(frame.head)?;
            (Named::Nothing, every_coordinator(state))
        }
        ApiKey::DescribeGroups => {
            let request = read_head::<head::DescribeGroupsRequest<'_>>(frame.head)?;
            several(state, request.groups(), GroupRequest::Describe)?
        }
        ApiKey::DeleteGroups => {
            let request = read_head::<head::DeleteGroupsRequest<'_>>(frame.head)?;
            several(state, request.groups(), GroupRequest::Delete)?
        }
        other => unreachable!("{other:?} is not about groups"),
    };
    if questions.is_empty() {
        // Nobody has ever asked for a group, so there is none to list.
        let asked = Asked { api, named };
        connection.take_in(Default::default());
        answer(&mut state.heads, connection, id, &asked, Vec::new());
        return Ok(());
    }
    let asked = Asked { api, named };
    state.ask_groups(connection, id, questions, Some(Box::new(asked)));
    Ok(())
}

// ---- requests -----------------------------------------------------------------------------------------------------

/// The name of a group, a member or an assignor, if it is one that can be stored.
fn name(text: &str) -> Result<String, Failure> {
    if text.len() <= NAME_BYTES_MAX {
        return Ok(text.to_owned());
    }
    let message = format!(
        "a name of {} bytes; at most {NAME_BYTES_MAX} are allowed",
        text.len()
    );
    Err(Failure::new(ErrorCode::InvalidRequest, message))
}

fn member(
    generation: i32,
    member_id: Option<&str>,
    instance: Option<&str>,
) -> Result<MemberRef, Failure> {
    Ok(MemberRef {
        generation,
        member_id: name(member_id.unwrap_or_default())?,
        instance: instance.map(name).transpose()?,
    })
}

fn opaque(told: Option<Vector<'_, u8>>) -> Opaque {
    told.map_or_else(Opaque::default, |told| Opaque::from(told.bytes()))
}

fn one(state: &mut State, group: &str, wanted: GroupRequest) -> Vec<GroupQuestion> {
    let (index, place) = state.coordinator_of(group);
    vec![(index, place, wanted)]
}

fn several(
    state: &mut State,
    groups: Vector<'_, ForwardsUOffset<&str>>,
    wanted: impl Fn(String) -> GroupRequest,
) -> Result<(Named, Vec<GroupQuestion>), Failure> {
    bounded(groups.len())?;
    let groups: BTreeSet<String> = groups.iter().map(name).collect::<Result<_, _>>()?;
    let mut questions = Vec::with_capacity(groups.len());
    for group in &groups {
        let (index, place) = state.coordinator_of(group);
        questions.push((index, place, wanted(group.clone())));
    }
    Ok((Named::Groups(groups.into_iter().collect()), questions))
}

fn every_coordinator(state: &State) -> Vec<GroupQuestion> {
    let coordinators = state.every_coordinator().into_iter();
    coordinators
        .map(|(index, place)| (index, place, GroupRequest::List))
        .collect()
}

/// Each partition once.
fn partitions(
    named: Vector<'_, ForwardsUOffset<head::GroupPartition<'_>>>,
) -> Result<Vec<NamedPartition>, Failure> {
    bounded(named.len().max(1))?;
    let named = named.iter().map(|one| {
        Ok(NamedPartition {
            topic: Arc::from(short(one.topic())?),
            partition: one.partition(),
        })
    });
    let named = named.collect::<Result<BTreeSet<_>, Failure>>()?;
    Ok(named.into_iter().collect())
}

/// Which core coordinates a group, and where it listens.
fn find_coordinator(
    state: &mut State,
    bytes: &[u8],
) -> Result<(Named, Vec<GroupQuestion>), Failure> {
    let request = read_head::<head::FindCoordinatorRequest<'_>>(bytes)?;
    let group = name(request.group())?;
    let (index, place) = match group.is_empty() {
        true => {
            let failure = Failure::plain(ErrorCode::InvalidGroupId);
            (PartitionIndex(0), Err(failure))
        }
        false => state.coordinator_of(&group),
    };
    let core = match &place {
        Ok(Place::There(core, _)) => core.0,
        _ => state.core.0,
    };
    let broker_id = state.config.broker_id;
    let image = state.topics.image();
    let broker = image.brokers.get(&broker_id);
    // A core without a listener of its own is reached through any.
    let own = broker.and_then(|broker| broker.cores.get(usize::from(core)));
    let endpoint = own
        .filter(|own| own.port != 0 && !own.host.is_empty())
        .or(broker.map(|broker| &broker.any_core));
    let sought = Sought {
        broker: broker_id.0,
        core,
        endpoint: endpoint.cloned(),
    };
    let question = (index, place, GroupRequest::Find(group));
    Ok((Named::Coordinator(Box::new(sought)), vec![question]))
}

fn join(
    state: &mut State,
    connection: &Connection,
    bytes: &[u8],
) -> Result<(Named, Vec<GroupQuestion>), Failure> {
    let request = read_head::<head::JoinGroupRequest<'_>>(bytes)?;
    bounded(request.protocols().len())?;
    let protocols = request.protocols().iter();
    let protocols =
        protocols.map(|protocol| Ok((name(protocol.name())?, opaque(protocol.metadata()))));
    let join = Join {
        group: name(request.group())?,
        member_id: name(request.member_id().unwrap_or_default())?,
        instance: request.instance().map(name).transpose()?,
        client_id: name(request.client_id().unwrap_or_default())?,
        client_host: format!("/{}", connection.address()),
        session_timeout_ms: request.session_timeout_ms(),
        rebalance_timeout_ms: request.rebalance_timeout_ms(),
        protocol_type: name(request.protocol_type())?,
        protocols: protocols.collect::<Result<_, Failure>>()?,
        takes_id_first: true,
        // Its answer has no place for that.
        may_skip_assignment: false,
        entropy: u128::from_ne_bytes(crate::random::random_id()),
    };
    let wanted = GroupRequest::Join(Box::new(join));
    Ok((Named::Nothing, one(state, request.group(), wanted)))
}

fn sync(state: &mut State, bytes: &[u8]) -> Result<(Named, Vec<GroupQuestion>), Failure> {
    let request = read_head::<head::SyncGroupRequest<'_>>(bytes)?;
    let assignments = request.assignments().unwrap_or_default();
    bounded(assignments.len().max(1))?;
    let assignments = assignments
        .iter()
        .map(|part| Ok((name(part.member_id())?, opaque(part.assignment()))));
    let sync = Sync {
        group: name(request.group())?,
        member: member(
            request.generation(),
            Some(request.member_id()),
            request.instance(),
        )?,
        protocol_type: request.protocol_type().map(name).transpose()?,
        protocol: request.protocol().map(name).transpose()?,
        assignments: assignments.collect::<Result<_, Failure>>()?,
        refused: None,
    };
    let wanted = GroupRequest::Sync(sync);
    Ok((Named::Nothing, one(state, request.group(), wanted)))
}

fn commit(state: &mut State, bytes: &[u8]) -> Result<(Named, Vec<GroupQuestion>), Failure> {
    let request = read_head::<head::OffsetCommitRequest<'_>>(bytes)?;
    let entries = request.entries();
    bounded(entries.len())?;
    let member = member(
        request.generation(),
        request.member_id(),
        request.instance(),
    )?;
    let entries = entries.iter().map(|entry| {
        let partition = NamedPartition {
            topic: Arc::from(short(entry.topic())?),
            partition: entry.partition(),
        };
        Ok(CommitEntry {
            partition,
            offset: Offset(entry.offset()),
            leader_epoch: LeaderEpoch(entry.leader_epoch()),
            metadata: entry.metadata().unwrap_or_default().to_owned(),
            refused: None,
        })
    });
    let entries = entries.collect::<Result<Vec<_>, Failure>>()?;
    let named: Vec<_> = (entries.iter())
        .map(|entry| {
            (
                entry.partition.clone(),
                state.has_partition(&entry.partition),
            )
        })
        .collect();
    let known = entries.into_iter().zip(&named);
    let known = known
        .filter(|(_, (_, exists))| *exists)
        .map(|(entry, _)| entry);
    let wanted = GroupRequest::Commit(Commit {
        group: name(request.group())?,
        member,
        entries: known.collect(),
        known_in: state.topics.image().version,
    });
    Ok((Named::Commits(named), one(state, request.group(), wanted)))
}

// ---- answers ------------------------------------------------------------------------------------------------------

type Builder = FlatBufferBuilder<'static>;
type Text = Option<WIPOffset<&'static str>>;

/// What a coordinator said, or why it said nothing.
type Outcome = Result<GroupAnswer, Failure>;

fn outcome(entry: Entry<GroupAnswer>) -> Outcome {
    entry
        .outcome
        .unwrap_or_else(|| Err(Failure::plain(ErrorCode::CoordinatorNotAvailable)))
}

/// A code that stands for nothing but itself.
fn plain(code: ErrorCode) -> Option<Failure> {
    (code != ErrorCode::None).then(|| Failure::plain(code))
}

/// What a coordinator never says to this question.
fn unexpected() -> Failure {
    Failure::plain(ErrorCode::UnknownServerError)
}

fn code(refusal: Option<&Failure>) -> i16 {
    refusal.map_or(0, |failure| failure.code.code())
}

fn message(builder: &mut Builder, refusal: Option<&Failure>) -> Text {
    refusal.map(|failure| builder.create_string(&failure.message))
}

fn optional(builder: &mut Builder, text: Option<&str>) -> Text {
    text.map(|text| builder.create_string(text))
}

/// Answers a request whose coordinators have answered.
pub fn answer(
    heads: &mut HeadBuilder,
    connection: &Connection,
    id: CorrelationId,
    asked: &Asked,
    entries: Vec<Entry<GroupAnswer>>,
) {
    let mut outcomes = entries.into_iter().map(outcome);
    let mut first = || outcomes.next().unwrap_or_else(|| Err(unexpected()));
    let head = match (asked.api, &asked.named) {
        (ApiKey::FindCoordinator, Named::Coordinator(sought)) => found(heads, sought, first()),
        (ApiKey::JoinGroup, _) => joined(heads, first()),
        (ApiKey::SyncGroup, _) => synced(heads, first()),
        (ApiKey::Heartbeat, _) => heard(heads, first()),
        (ApiKey::LeaveGroup, Named::Members(members)) => left(heads, members, first()),
        (ApiKey::OffsetCommit, Named::Commits(named)) => committed(heads, named, first()),
        (ApiKey::OffsetFetch, _) => fetched(heads, first()),
        (ApiKey::DeleteOffsets, Named::Partitions(named)) => forgotten(heads, named, first()),
        (ApiKey::ListGroups, _) => listed(heads, outcomes),
        (ApiKey::DescribeGroups, Named::Groups(groups)) => described(heads, groups, outcomes),
        (ApiKey::DeleteGroups, Named::Groups(groups)) => deleted(heads, groups, outcomes),
        _ => unreachable!("every API of groups says what it named"),
    };
    send_head(connection, asked.api, id, head);
}

fn found<'h>(heads: &'h mut HeadBuilder, sought: &Sought, outcome: Outcome) -> &'h [u8] {
    let unknown = || Failure::plain(ErrorCode::CoordinatorNotAvailable);
    let endpoint = match done(outcome) {
        Some(failure) => Err(failure),
        None => sought.endpoint.as_ref().ok_or_else(unknown),
    };
    heads.build(|builder| {
        let args = match &endpoint {
            Ok(endpoint) => head::FindCoordinatorResponseArgs {
                broker_id: sought.broker,
                core: sought.core,
                host: Some(builder.create_string(&endpoint.host)),
                port: endpoint.port,
                ..Default::default()
            },
            Err(failure) => head::FindCoordinatorResponseArgs {
                error_code: failure.code.code(),
                message: Some(builder.create_string(&failure.message)),
                ..Default::default()
            },
        };
        head::FindCoordinatorResponse::create(builder, &args)
    })
}

fn joined(heads: &mut HeadBuilder, outcome: Outcome) -> &[u8] {
    let outcome = match outcome {
        Ok(GroupAnswer::Joined(joined)) => joined,
        Ok(_) => Err(no_id(ErrorCode::UnknownServerError)),
        Err(failure) => Err(no_id(failure.code)),
    };
    heads.build(|builder| {
        let args = match &outcome {
            Ok(joined) => joined_args(builder, joined),
            Err(refusal) => head::JoinGroupResponseArgs {
                error_code: refusal.code.code(),
                message: Some(builder.create_string(refusal.code.text())),
                member_id: Some(builder.create_string(&refusal.member_id)),
                ..Default::default()
            },
        };
        head::JoinGroupResponse::create(builder, &args)
    })
}

fn no_id(code: ErrorCode) -> JoinRefusal {
    JoinRefusal {
        code,
        member_id: Arc::from(""),
    }
}

fn joined_args(builder: &mut Builder, joined: &Joined) -> head::JoinGroupResponseArgs<'static> {
    let members: Vec<_> = (joined.members.iter())
        .map(|member| {
            let args = head::JoinedMemberArgs {
                member_id: Some(builder.create_string(&member.member_id)),
                instance: optional(builder, member.instance.as_deref()),
                metadata: Some(builder.create_vector(&member.subscription)),
            };
            head::JoinedMember::create(builder, &args)
        })
        .collect();
    head::JoinGroupResponseArgs {
        generation: joined.generation,
        protocol_type: Some(builder.create_string(&joined.protocol_type)),
        protocol: Some(builder.create_string(&joined.protocol)),
        leader: Some(builder.create_string(&joined.leader)),
        member_id: Some(builder.create_string(&joined.member_id)),
        members: Some(builder.create_vector(&members)),
        ..Default::default()
    }
}

fn synced(heads: &mut HeadBuilder, outcome: Outcome) -> &[u8] {
    let outcome = match outcome {
        Ok(GroupAnswer::Synced(synced)) => synced.map_err(Failure::plain),
        Ok(_) => Err(unexpected()),
        Err(failure) => Err(failure),
    };
    heads.build(|builder| {
        let refusal = outcome.as_ref().err();
        let mut args = head::SyncGroupResponseArgs {
            error_code: code(refusal),
            message: message(builder, refusal),
            ..Default::default()
        };
        if let Ok(synced) = &outcome {
            args.protocol_type = Some(builder.create_string(&synced.protocol_type));
            args.protocol = Some(builder.create_string(&synced.protocol));
            args.assignment = Some(builder.create_vector(&synced.assignment));
        }
        head::SyncGroupResponse::create(builder, &args)
    })
}

/// The refusal of an answer that is nothing but a code.
fn done(outcome: Outcome) -> Option<Failure> {
    match outcome {
        Ok(GroupAnswer::Done(code)) => plain(code),
        Ok(_) => Some(unexpected()),
        Err(failure) => Some(failure),
    }
}

fn heard(heads: &mut HeadBuilder, outcome: Outcome) -> &[u8] {
    let refusal = done(outcome);
    heads.build(|builder| {
        let args = head::HeartbeatResponseArgs {
            error_code: code(refusal.as_ref()),
            message: message(builder, refusal.as_ref()),
        };
        head::HeartbeatResponse::create(builder, &args)
    })
}

/// One code for each of `count` things that were named, or why there is none.
fn codes(outcome: Outcome, count: usize) -> Result<Vec<ErrorCode>, Failure> {
    match outcome {
        Ok(GroupAnswer::Codes(Ok(codes))) if codes.len() == count => Ok(codes),
        Ok(GroupAnswer::Codes(Err(code))) => Err(Failure::plain(code)),
        Ok(_) => Err(unexpected()),
        Err(failure) => Err(failure),
    }
}

fn left<'h>(heads: &'h mut HeadBuilder, members: &[MemberRef], outcome: Outcome) -> &'h [u8] {
    let outcome = codes(outcome, members.len());
    heads.build(|builder| {
        let refusal = outcome.as_ref().err();
        let codes = outcome.as_deref().unwrap_or_default();
        let left: Vec<_> = (members.iter().zip(codes))
            .map(|(member, code)| {
                let refusal = plain(*code);
                let args = head::LeftMemberArgs {
                    error_code: code.code(),
                    message: message(builder, refusal.as_ref()),
                    member_id: Some(builder.create_string(&member.member_id)),
                    instance: optional(builder, member.instance.as_deref()),
                };
                head::LeftMember::create(builder, &args)
            })
            .collect();
        let args = head::LeaveGroupResponseArgs {
            error_code: code(refusal),
            message: message(builder, refusal),
            members: Some(builder.create_vector(&left)),
        };
        head::LeaveGroupResponse::create(builder, &args)
    })
}

type Results<'b> = WIPOffset<Vector<'b, ForwardsUOffset<head::OffsetCommitResult<'b>>>>;

fn results<'p>(
    builder: &mut Builder,
    told: impl Iterator<Item = (&'p NamedPartition, ErrorCode)>,
) -> Results<'static> {
    let results: Vec<_> = told
        .map(|(partition, code)| {
            let refusal = plain(code);
            let args = head::OffsetCommitResultArgs {
                error_code: code.code(),
                message: message(builder, refusal.as_ref()),
                topic: Some(builder.create_shared_string(&partition.topic)),
                partition: partition.partition,
            };
            head::OffsetCommitResult::create(builder, &args)
        })
        .collect();
    builder.create_vector(&results)
}

fn committed<'h>(
    heads: &'h mut HeadBuilder,
    named: &[(NamedPartition, bool)],
    outcome: Outcome,
) -> &'h [u8] {
    let known = named.iter().filter(|(_, exists)| *exists).count();
    let outcome = codes(outcome, known);
    heads.build(|builder| {
        let refusal = outcome.as_ref().err();
        let told = outcome.as_ref().map(|codes| {
            let mut codes = codes.iter().copied();
            let told = named.iter().map(|(partition, exists)| {
                let code = match exists {
                    true => codes.next(),
                    false => None,
                };
                (
                    partition,
                    code.unwrap_or(ErrorCode::UnknownTopicOrPartition),
                )
            });
            told.collect::<Vec<_>>()
        });
        let results = results(builder, told.unwrap_or_default().into_iter());
        let args = head::OffsetCommitResponseArgs {
            error_code: code(refusal),
            message: message(builder, refusal),
            results: Some(results),
        };
        head::OffsetCommitResponse::create(builder, &args)
    })
}

fn forgotten<'h>(
    heads: &'h mut HeadBuilder,
    named: &[NamedPartition],
    outcome: Outcome,
) -> &'h [u8] {
    let outcome = codes(outcome, named.len());
    heads.build(|builder| {
        let refusal = outcome.as_ref().err();
        let codes = outcome.as_deref().unwrap_or_default();
        let results = results(builder, named.iter().zip(codes.iter().copied()));
        let args = head::DeleteOffsetsResponseArgs {
            error_code: code(refusal),
            message: message(builder, refusal),
            results: Some(results),
        };
        head::DeleteOffsetsResponse::create(builder, &args)
    })
}

fn fetched(heads: &mut HeadBuilder, outcome: Outcome) -> &[u8] {
    let outcome = match outcome {
        Ok(GroupAnswer::Offsets(offsets)) => Ok(offsets),
        Ok(_) => Err(unexpected()),
        Err(failure) => Err(failure),
    };
    heads.build(|builder| {
        let refusal = outcome.as_ref().err();
        let offsets = outcome.as_deref().unwrap_or_default();
        let results: Vec<_> = (offsets.iter())
            .map(|(partition, value)| offset_head(builder, partition, value.as_ref()))
            .collect();
        let args = head::OffsetFetchResponseArgs {
            error_code: code(refusal),
            message: message(builder, refusal),
            results: Some(builder.create_vector(&results)),
        };
        head::OffsetFetchResponse::create(builder, &args)
    })
}

fn offset_head(
    builder: &mut Builder,
    partition: &NamedPartition,
    value: Option<&CommittedOffset>,
) -> WIPOffset<head::OffsetFetchResult<'static>> {
    let args = head::OffsetFetchResultArgs {
        topic: Some(builder.create_shared_string(&partition.topic)),
        partition: partition.partition,
        offset: value.map_or(-1, |value| value.offset.0),
        leader_epoch: value.map_or(-1, |value| value.leader_epoch.0),
        metadata: optional(builder, value.map(|value| &*value.metadata)),
        ..Default::default()
    };
    head::OffsetFetchResult::create(builder, &args)
}

/// Groups of all coordinators; one that doesn't answer makes the list one that can't be relied on.
fn listed(heads: &mut HeadBuilder, outcomes: impl Iterator<Item = Outcome>) -> &[u8] {
    let (mut groups, mut refusal) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(GroupAnswer::Listed(some)) => groups.extend(some),
            Ok(_) => refusal = Some(unexpected()),
            Err(failure) => refusal = Some(failure),
        }
    }
    heads.build(|builder| {
        let groups: Vec<_> = (groups.iter())
            .map(|group| {
                let args = head::ListedGroupArgs {
                    group: Some(builder.create_string(&group.group)),
                    protocol_type: Some(builder.create_string(&group.protocol_type)),
                    state: Some(builder.create_string(group.state.name())),
                };
                head::ListedGroup::create(builder, &args)
            })
            .collect();
        let args = head::ListGroupsResponseArgs {
            error_code: code(refusal.as_ref()),
            message: message(builder, refusal.as_ref()),
            groups: Some(builder.create_vector(&groups)),
        };
        head::ListGroupsResponse::create(builder, &args)
    })
}

fn described<'h>(
    heads: &'h mut HeadBuilder,
    groups: &[String],
    outcomes: impl Iterator<Item = Outcome>,
) -> &'h [u8] {
    let outcomes = outcomes.map(|outcome| match outcome {
        Ok(GroupAnswer::Described(Some(view))) => Ok(view),
        Ok(GroupAnswer::Described(None)) => Err(Failure::plain(ErrorCode::GroupIdNotFound)),
        Ok(_) => Err(unexpected()),
        Err(failure) => Err(failure),
    });
    let told: Vec<_> = groups.iter().zip(outcomes).collect();
    heads.build(|builder| {
        let groups: Vec<_> = (told.iter())
            .map(|(group, outcome)| description(builder, group, outcome))
            .collect();
        let args = head::DescribeGroupsResponseArgs {
            groups: Some(builder.create_vector(&groups)),
            ..Default::default()
        };
        head::DescribeGroupsResponse::create(builder, &args)
    })
}

fn description(
    builder: &mut Builder,
    group: &str,
    outcome: &Result<GroupView, Failure>,
) -> WIPOffset<head::GroupDescription<'static>> {
    let refusal = outcome.as_ref().err();
    let mut args = head::GroupDescriptionArgs {
        error_code: code(refusal),
        message: message(builder, refusal),
        group: Some(builder.create_string(group)),
        ..Default::default()
    };
    if let Ok(view) = outcome {
        let members: Vec<_> = (view.members.iter())
            .map(|member| {
                let args = head::GroupMemberDescriptionArgs {
                    member_id: Some(builder.create_string(&member.member_id)),
                    instance: optional(builder, member.instance.as_deref()),
                    client_id: Some(builder.create_string(&member.client_id)),
                    client_host: Some(builder.create_string(&member.client_host)),
                    metadata: Some(builder.create_vector(&member.subscription)),
                    assignment: Some(builder.create_vector(&member.assignment)),
                };
                head::GroupMemberDescription::create(builder, &args)
            })
            .collect();
        args.state = Some(builder.create_string(view.state.name()));
        args.generation = view.generation;
        args.protocol_type = Some(builder.create_string(&view.protocol_type));
        args.protocol = Some(builder.create_string(&view.protocol));
        args.members = Some(builder.create_vector(&members));
    }
    head::GroupDescription::create(builder, &args)
}

fn deleted<'h>(
    heads: &'h mut HeadBuilder,
    groups: &[String],
    outcomes: impl Iterator<Item = Outcome>,
) -> &'h [u8] {
    let told: Vec<_> = groups.iter().zip(outcomes.map(done)).collect();
    heads.build(|builder| {
        let groups: Vec<_> = (told.iter())
            .map(|(group, refusal)| {
                let args = head::DeletedGroupArgs {
                    error_code: code(refusal.as_ref()),
                    message: message(builder, refusal.as_ref()),
                    group: Some(builder.create_string(group)),
                };
                head::DeletedGroup::create(builder, &args)
            })
            .collect();
        let args = head::DeleteGroupsResponseArgs {
            groups: Some(builder.create_vector(&groups)),
            ..Default::default()
        };
        head::DeleteGroupsResponse::create(builder, &args)
    })
}
