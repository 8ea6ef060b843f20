//! What is asked of the coordinator of a group, and what it answers. On our own wire only: through Kafka's, clients of
//! Kafka's are members.

use std::collections::BTreeMap;
use std::sync::Arc;

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};
use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::{self, HeadBuilder};
use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, PartitionIndex};

#[cfg(feature = "blocking")]
use super::group_admin;
use crate::error::{Error, Result};
use crate::protocol::frames::{InFrame, NativeFrame};
use crate::protocol::group::{NamedPartition, PROTOCOL_TYPE};
use crate::protocol::messages::{Context, error_code};

/// Who asks, as the coordinator knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    /// The group.
    pub group: &'a str,
    /// Empty: none was given yet.
    pub member_id: &'a str,
    /// Name of a static member.
    pub instance: Option<&'a str>,
    /// -1: none.
    pub generation: i32,
}

/// What a join says beside who joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinTerms<'a> {
    /// New members are named after it.
    pub client_id: &'a str,
    /// Silence after which the member is out.
    pub session_timeout_ms: i32,
    /// How long a rebalance waits for it.
    pub rebalance_timeout_ms: i32,
    /// Names of assignors, each with the subscription.
    pub protocols: &'a [(&'a str, Vec<u8>)],
}

/// A place in a generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joined {
    /// The generation.
    pub generation: i32,
    /// The assignor that was agreed on.
    pub protocol: String,
    /// The member that assigns.
    pub leader: String,
    /// The member that is told this.
    pub member_id: String,
    /// Everybody, for the leader.
    pub members: Vec<JoinedMember>,
}

/// A member, as the leader is told of it.
#[derive(Clone, Debug)]
pub(crate) struct JoinedMember {
    /// Its id.
    pub member_id: Arc<str>,
    /// Its static name.
    pub instance: Option<Arc<str>>,
    /// What it told the assignors, in its own words.
    pub subscription: Vec<u8>,
}

/// How a join ended.
#[derive(Clone, Debug)]
pub(crate) enum JoinAnswer {
    /// There is a new generation.
    Joined(Joined),
    /// Come back with this id.
    TakeId(String),
}

/// What a group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The partition.
    pub partition: NamedPartition,
    /// The next offset to read; `None`: nothing is committed.
    pub offset: Option<Offset>,
    /// Leader epoch of the record before it, as the consumer knew it; -1: it named none.
    pub leader_epoch: LeaderEpoch,
    /// Whatever whoever committed it wanted to be told again.
    pub metadata: String,
}

/// A question to a coordinator.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GroupQuestion<'a> {
    /// Where it is.
    Find { group: &'a str },
    /// To be a member.
    Join {
        who: Identity<'a>,
        terms: JoinTerms<'a>,
    },
    /// For the member's part; from the leader with everybody's.
    Sync {
        who: Identity<'a>,
        protocol: &'a str,
        assignments: &'a [(Arc<str>, Vec<u8>)],
    },
    /// To be known to live.
    Heartbeat { who: Identity<'a> },
    /// To be no member any more.
    Leave { who: Identity<'a> },
    /// To remember offsets.
    Commit {
        who: Identity<'a>,
        offsets: &'a [(NamedPartition, Offset)],
    },
    /// For what is remembered of these partitions, or of all.
    Offsets {
        group: &'a str,
        partitions: Option<&'a [NamedPartition]>,
    },
    /// For all groups.
    #[cfg(feature = "blocking")]
    List,
    /// For a group's members.
    #[cfg(feature = "blocking")]
    Describe { group: &'a str },
    /// To forget a group.
    #[cfg(feature = "blocking")]
    Delete { group: &'a str },
    /// To forget offsets.
    #[cfg(feature = "blocking")]
    DeleteOffsets {
        group: &'a str,
        partitions: &'a [NamedPartition],
    },
}

impl GroupQuestion<'_> {
    /// Which API it is.
    pub(crate) fn api(&self) -> ApiKey {
        match self {
            Self::Find { .. } => ApiKey::FindCoordinator,
            Self::Join { .. } => ApiKey::JoinGroup,
            Self::Sync { .. } => ApiKey::SyncGroup,
            Self::Heartbeat { .. } => ApiKey::Heartbeat,
            Self::Leave { .. } => ApiKey::LeaveGroup,
            Self::Commit { .. } => ApiKey::OffsetCommit,
            Self::Offsets { .. } => ApiKey::OffsetFetch,
            #[cfg(feature = "blocking")]
            Self::List => ApiKey::ListGroups,
            #[cfg(feature = "blocking")]
            Self::Describe { .. } => ApiKey::DescribeGroups,
            #[cfg(feature = "blocking")]
            Self::Delete { .. } => ApiKey::DeleteGroups,
            #[cfg(feature = "blocking")]
            Self::DeleteOffsets { .. } => ApiKey::DeleteOffsets,
        }
    }
}

/// The head of a question.
pub(super) fn head<'b>(builder: &'b mut HeadBuilder, question: &GroupQuestion<'_>) -> &'b [u8] {
    match *question {
        GroupQuestion::Find { group } => find_coordinator_request(builder, group),
        GroupQuestion::Join { who, terms } => join_request(builder, who, terms),
        GroupQuestion::Sync {
            who,
            protocol,
            assignments,
        } => sync_request(builder, who, protocol, assignments),
        GroupQuestion::Heartbeat { who } => heartbeat_request(builder, who),
        GroupQuestion::Leave { who } => leave_request(builder, who),
        GroupQuestion::Commit { who, offsets } => commit_request(builder, who, offsets),
        GroupQuestion::Offsets { group, partitions } => fetch_request(builder, group, partitions),
        #[cfg(feature = "blocking")]
        GroupQuestion::List => group_admin::list_request(builder),
        #[cfg(feature = "blocking")]
        GroupQuestion::Describe { group } => group_admin::describe_request(builder, group),
        #[cfg(feature = "blocking")]
        GroupQuestion::Delete { group } => group_admin::delete_request(builder, group),
        #[cfg(feature = "blocking")]
        GroupQuestion::DeleteOffsets { group, partitions } => {
            group_admin::delete_offsets_request(builder, group, partitions)
        }
    }
}

/// The frame as one of our own; no other question is asked here.
pub(super) fn own<'f>(context: &Context, frame: &'f InFrame) -> Result<&'f NativeFrame> {
    match frame {
        InFrame::Native(frame) => Ok(frame),
        InFrame::Kafka(_) => Err(context.fault("a frame of Kafka's")),
    }
}

type Strings<'b> = Option<WIPOffset<&'b str>>;
type Tables<'b, T> = WIPOffset<Vector<'b, ForwardsUOffset<T>>>;

fn optional(builder: &mut FlatBufferBuilder<'static>, text: Option<&str>) -> Strings<'static> {
    text.map(|text| builder.create_string(text))
}

fn some_id(id: &str) -> Option<&str> {
    (!id.is_empty()).then_some(id)
}

fn find_coordinator_request<'b>(builder: &'b mut HeadBuilder, group: &str) -> &'b [u8] {
    builder.build(|builder| {
        let group = Some(builder.create_string(group));
        let args = native::FindCoordinatorRequestArgs { group };
        native::FindCoordinatorRequest::create(builder, &args)
    })
}

/// Where the coordinator listens.
pub(crate) fn read_find_coordinator(context: &Context, frame: &InFrame) -> Result<Arc<str>> {
    let found = context.read::<native::FindCoordinatorResponse<'_>>(own(context, frame)?)?;
    context.check(found.error_code(), found.message())?;
    match (found.host().unwrap_or_default(), found.port()) {
        ("", _) | (_, 0) => Err(context.fault("a coordinator without an address")),
        (host, port) => Ok(super::address(host, port)),
    }
}

fn join_request<'b>(
    builder: &'b mut HeadBuilder,
    who: Identity<'_>,
    terms: JoinTerms<'_>,
) -> &'b [u8] {
    builder.build(|builder| {
        let protocols: Vec<_> = (terms.protocols.iter())
            .map(|(name, subscription)| {
                let args = native::GroupProtocolArgs {
                    name: Some(builder.create_string(name)),
                    metadata: Some(builder.create_vector(subscription)),
                };
                native::GroupProtocol::create(builder, &args)
            })
            .collect();
        let args = native::JoinGroupRequestArgs {
            group: Some(builder.create_string(who.group)),
            client_id: Some(builder.create_string(terms.client_id)),
            member_id: optional(builder, some_id(who.member_id)),
            instance: optional(builder, who.instance),
            session_timeout_ms: terms.session_timeout_ms,
            rebalance_timeout_ms: terms.rebalance_timeout_ms,
            protocol_type: Some(builder.create_string(PROTOCOL_TYPE)),
            protocols: Some(builder.create_vector(&protocols)),
        };
        native::JoinGroupRequest::create(builder, &args)
    })
}

pub(crate) fn read_join(context: &Context, frame: &InFrame) -> Result<JoinAnswer> {
    let joined = context.read::<native::JoinGroupResponse<'_>>(own(context, frame)?)?;
    let member_id = joined.member_id().unwrap_or_default().to_owned();
    if error_code(joined.error_code()) == ErrorCode::MemberIdRequired && !member_id.is_empty() {
        return Ok(JoinAnswer::TakeId(member_id));
    }
    context.check(joined.error_code(), joined.message())?;
    let members = joined.members().unwrap_or_default().iter();
    let members = members.map(|member| JoinedMember {
        member_id: member.member_id().into(),
        instance: member.instance().map(Into::into),
        subscription: member.metadata().map_or_else(Vec::new, bytes),
    });
    Ok(JoinAnswer::Joined(Joined {
        generation: joined.generation(),
        protocol: joined.protocol().unwrap_or_default().to_owned(),
        leader: joined.leader().unwrap_or_default().to_owned(),
        members: members.collect(),
        member_id,
    }))
}

fn bytes(vector: Vector<'_, u8>) -> Vec<u8> {
    vector.bytes().to_vec()
}

/// From the leader with everybody's part, from the others with none.
fn sync_request<'b>(
    builder: &'b mut HeadBuilder,
    who: Identity<'_>,
    protocol: &str,
    assignments: &[(Arc<str>, Vec<u8>)],
) -> &'b [u8] {
    builder.build(|builder| {
        let assignments: Vec<_> = (assignments.iter())
            .map(|(member_id, assignment)| {
                let args = native::MemberAssignmentArgs {
                    member_id: Some(builder.create_string(member_id)),
                    assignment: Some(builder.create_vector(assignment)),
                };
                native::MemberAssignment::create(builder, &args)
            })
            .collect();
        let args = native::SyncGroupRequestArgs {
            group: Some(builder.create_string(who.group)),
            generation: who.generation,
            member_id: Some(builder.create_string(who.member_id)),
            instance: optional(builder, who.instance),
            protocol_type: Some(builder.create_string(PROTOCOL_TYPE)),
            protocol: Some(builder.create_string(protocol)),
            assignments: Some(builder.create_vector(&assignments)),
        };
        native::SyncGroupRequest::create(builder, &args)
    })
}

/// The member's part, as the leader wrote it.
pub(crate) fn read_sync(context: &Context, frame: &InFrame) -> Result<Vec<u8>> {
    let synced = context.read::<native::SyncGroupResponse<'_>>(own(context, frame)?)?;
    context.check(synced.error_code(), synced.message())?;
    Ok(synced.assignment().map_or_else(Vec::new, bytes))
}

fn heartbeat_request<'b>(builder: &'b mut HeadBuilder, who: Identity<'_>) -> &'b [u8] {
    builder.build(|builder| {
        let args = native::HeartbeatRequestArgs {
            group: Some(builder.create_string(who.group)),
            generation: who.generation,
            member_id: Some(builder.create_string(who.member_id)),
            instance: optional(builder, who.instance),
        };
        native::HeartbeatRequest::create(builder, &args)
    })
}

pub(crate) fn read_heartbeat(context: &Context, frame: &InFrame) -> Result<()> {
    let heard = context.read::<native::HeartbeatResponse<'_>>(own(context, frame)?)?;
    context.check(heard.error_code(), heard.message())
}

fn leave_request<'b>(builder: &'b mut HeadBuilder, who: Identity<'_>) -> &'b [u8] {
    builder.build(|builder| {
        let args = native::LeavingMemberArgs {
            member_id: Some(builder.create_string(who.member_id)),
            instance: optional(builder, who.instance),
        };
        let member = native::LeavingMember::create(builder, &args);
        let args = native::LeaveGroupRequestArgs {
            group: Some(builder.create_string(who.group)),
            members: Some(builder.create_vector(&[member])),
        };
        native::LeaveGroupRequest::create(builder, &args)
    })
}

fn commit_request<'b>(
    builder: &'b mut HeadBuilder,
    who: Identity<'_>,
    offsets: &[(NamedPartition, Offset)],
) -> &'b [u8] {
    builder.build(|builder| {
        let entries: Vec<_> = (offsets.iter())
            .map(|(partition, offset)| {
                let args = native::OffsetCommitEntryArgs {
                    topic: Some(builder.create_shared_string(&partition.topic)),
                    partition: partition.partition.0,
                    offset: offset.0,
                    ..Default::default()
                };
                native::OffsetCommitEntry::create(builder, &args)
            })
            .collect();
        let args = native::OffsetCommitRequestArgs {
            group: Some(builder.create_string(who.group)),
            generation: who.generation,
            member_id: optional(builder, some_id(who.member_id)),
            instance: optional(builder, who.instance),
            entries: Some(builder.create_vector(&entries)),
        };
        native::OffsetCommitRequest::create(builder, &args)
    })
}

/// What was refused, by partition; of all others the offsets are stored.
pub(crate) fn read_commit(
    context: &Context,
    frame: &InFrame,
) -> Result<BTreeMap<NamedPartition, Error>> {
    let committed = context.read::<native::OffsetCommitResponse<'_>>(own(context, frame)?)?;
    context.check(committed.error_code(), committed.message())?;
    let results = committed.results().unwrap_or_default().iter();
    let refused = results.filter_map(|result| {
        let fault = refusal_of(
            context,
            result.topic(),
            result.partition(),
            result.error_code(),
            result.message(),
        );
        let partition = NamedPartition::new(result.topic(), result.partition());
        fault.err().map(|fault| (partition, fault))
    });
    Ok(refused.collect())
}

/// The first refusal among the results of partitions.
pub(super) fn check_results(
    context: &Context,
    results: Option<Vector<'_, ForwardsUOffset<native::OffsetCommitResult<'_>>>>,
) -> Result<()> {
    for result in results.iter().flatten() {
        refusal_of(
            context,
            result.topic(),
            result.partition(),
            result.error_code(),
            result.message(),
        )?;
    }
    Ok(())
}

fn refusal_of(
    context: &Context,
    topic: &str,
    partition: i32,
    code: i16,
    message: Option<&str>,
) -> Result<()> {
    match error_code(code) {
        ErrorCode::None => Ok(()),
        code => {
            let context = context.clone().topic(topic);
            let partition = Some(PartitionIndex(partition));
            Err(Error::Refused(context.refusal(partition, code, message)))
        }
    }
}

/// Asks what is committed for these partitions, or for all that there are.
fn fetch_request<'b>(
    builder: &'b mut HeadBuilder,
    group: &str,
    partitions: Option<&[NamedPartition]>,
) -> &'b [u8] {
    builder.build(|builder| {
        let entries = partitions.map(|partitions| self::partitions(builder, partitions));
        let group = Some(builder.create_string(group));
        let args = native::OffsetFetchRequestArgs { group, entries };
        native::OffsetFetchRequest::create(builder, &args)
    })
}

/// A vector of partitions.
pub(super) fn partitions(
    builder: &mut FlatBufferBuilder<'static>,
    partitions: &[NamedPartition],
) -> Tables<'static, native::GroupPartition<'static>> {
    let partitions: Vec<_> = (partitions.iter())
        .map(|partition| {
            let args = native::GroupPartitionArgs {
                topic: Some(builder.create_shared_string(&partition.topic)),
                partition: partition.partition.0,
            };
            native::GroupPartition::create(builder, &args)
        })
        .collect();
    builder.create_vector(&partitions)
}

/// What is committed; the first refusal, if there is one.
pub(crate) fn read_fetch(context: &Context, frame: &InFrame) -> Result<Vec<CommittedOffset>> {
    let fetched = context.read::<native::OffsetFetchResponse<'_>>(own(context, frame)?)?;
    context.check(fetched.error_code(), fetched.message())?;
    let results = fetched.results().unwrap_or_default().iter().map(|result| {
        refusal_of(
            context,
            result.topic(),
            result.partition(),
            result.error_code(),
            result.message(),
        )?;
        Ok(CommittedOffset {
            partition: NamedPartition::new(result.topic(), result.partition()),
            offset: (result.offset() >= 0).then(|| Offset(result.offset())),
            leader_epoch: LeaderEpoch(result.leader_epoch()),
            metadata: result.metadata().unwrap_or_default().to_owned(),
        })
    });
    results.collect()
}
