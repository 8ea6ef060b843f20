//! Seeds of what is said about groups: heads, and what members tell each other.

use tackboard_schema::PartitionIndex;
use tackboard_schema::consumer_protocol::{Assignment, Partitions, Subscription};
use tackboard_schema::native;

use super::{Builder, made};

fn owned() -> Partitions {
    Partitions::from([("flights".to_owned(), vec![PartitionIndex(3)])])
}

fn subscription() -> Vec<u8> {
    let topics = vec!["flights".to_owned(), "weather".to_owned()];
    Subscription {
        topics,
        owned: owned(),
        generation: 4,
    }
    .encode()
}

fn assignment() -> Vec<u8> {
    let partitions = owned();
    Assignment { partitions }.encode()
}

/// Subscriptions and assignments, each with a name for its file.
pub fn told_by_members() -> [(&'static str, Vec<u8>); 3] {
    let oldest = b"\0\0\0\0\0\x01\0\x07flights\0\0\0\x02ab".to_vec();
    [
        ("seed-subscription", subscription()),
        ("seed-assignment", assignment()),
        ("seed-version-0", oldest),
    ]
}

/// Requests and responses, in the order of their keys.
pub fn heads() -> Vec<Vec<u8>> {
    let mut heads = about_membership();
    heads.extend(about_offsets());
    heads.extend(about_groups());
    heads
}

macro_rules! head {
    ($b:ident, $table:ident, $args:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        #[allow(clippy::needless_update, reason = "some tables have no other field")]
        let args = native::$args { $($field $(: $value)?,)* ..Default::default() };
        native::$table::create($b, &args)
    }};
}

fn about_membership() -> Vec<Vec<u8>> {
    vec![
        made(|b| {
            head!(
                b,
                FindCoordinatorRequest,
                FindCoordinatorRequestArgs {
                    group: Some(b.create_string("planner"))
                }
            )
        }),
        made(|b| {
            let host = Some(b.create_string("127.0.0.1"));
            head!(
                b,
                FindCoordinatorResponse,
                FindCoordinatorResponseArgs {
                    broker_id: 1,
                    core: 1,
                    host,
                    port: 7402
                }
            )
        }),
        made(|b| {
            let protocol = head!(
                b,
                GroupProtocol,
                GroupProtocolArgs {
                    name: Some(b.create_string("range")),
                    metadata: Some(b.create_vector(&subscription())),
                }
            );
            head!(
                b,
                JoinGroupRequest,
                JoinGroupRequestArgs {
                    group: Some(b.create_string("planner")),
                    client_id: Some(b.create_string("reader-1")),
                    instance: Some(b.create_string("one")),
                    protocol_type: Some(b.create_string("consumer")),
                    protocols: Some(b.create_vector(&[protocol])),
                }
            )
        }),
        made(|b| {
            let member = head!(
                b,
                JoinedMember,
                JoinedMemberArgs {
                    member_id: Some(b.create_string("reader-1-id")),
                    metadata: Some(b.create_vector(&subscription())),
                }
            );
            head!(
                b,
                JoinGroupResponse,
                JoinGroupResponseArgs {
                    generation: 3,
                    leader: Some(b.create_string("reader-1-id")),
                    members: Some(b.create_vector(&[member])),
                }
            )
        }),
        made(|b| {
            let member_id = Some(b.create_string("reader-1-id"));
            let part = head!(
                b,
                MemberAssignment,
                MemberAssignmentArgs {
                    member_id,
                    assignment: Some(b.create_vector(&assignment())),
                }
            );
            head!(
                b,
                SyncGroupRequest,
                SyncGroupRequestArgs {
                    group: Some(b.create_string("planner")),
                    generation: 3,
                    member_id,
                    assignments: Some(b.create_vector(&[part])),
                }
            )
        }),
        made(|b| {
            head!(
                b,
                SyncGroupResponse,
                SyncGroupResponseArgs {
                    assignment: Some(b.create_vector(&assignment()))
                }
            )
        }),
        made(|b| {
            head!(
                b,
                HeartbeatRequest,
                HeartbeatRequestArgs {
                    group: Some(b.create_string("planner")),
                    generation: 3,
                    member_id: Some(b.create_string("reader-1-id")),
                }
            )
        }),
        made(|b| {
            head!(
                b,
                HeartbeatResponse,
                HeartbeatResponseArgs { error_code: 27 }
            )
        }),
        made(|b| {
            let leaving = head!(
                b,
                LeavingMember,
                LeavingMemberArgs {
                    instance: Some(b.create_string("one"))
                }
            );
            head!(
                b,
                LeaveGroupRequest,
                LeaveGroupRequestArgs {
                    group: Some(b.create_string("planner")),
                    members: Some(b.create_vector(&[leaving])),
                }
            )
        }),
        made(|b| {
            let left = head!(b, LeftMember, LeftMemberArgs { error_code: 25 });
            head!(
                b,
                LeaveGroupResponse,
                LeaveGroupResponseArgs {
                    members: Some(b.create_vector(&[left]))
                }
            )
        }),
    ]
}

fn about_offsets() -> Vec<Vec<u8>> {
    vec![
        made(|b| {
            let entry = head!(
                b,
                OffsetCommitEntry,
                OffsetCommitEntryArgs {
                    topic: Some(b.create_string("flights")),
                    offset: 56_214,
                    metadata: Some(b.create_string("by hand")),
                }
            );
            head!(
                b,
                OffsetCommitRequest,
                OffsetCommitRequestArgs {
                    group: Some(b.create_string("planner")),
                    entries: Some(b.create_vector(&[entry])),
                }
            )
        }),
        made(|b| {
            let results = results(b);
            native::OffsetCommitResponse::create(
                b,
                &native::OffsetCommitResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        }),
        made(|b| {
            let entries = partitions(b);
            head!(
                b,
                OffsetFetchRequest,
                OffsetFetchRequestArgs {
                    group: Some(b.create_string("planner")),
                    entries,
                }
            )
        }),
        made(|b| {
            let result = head!(
                b,
                OffsetFetchResult,
                OffsetFetchResultArgs {
                    topic: Some(b.create_string("flights")),
                    offset: 7,
                }
            );
            head!(
                b,
                OffsetFetchResponse,
                OffsetFetchResponseArgs {
                    results: Some(b.create_vector(&[result]))
                }
            )
        }),
    ]
}

fn about_groups() -> Vec<Vec<u8>> {
    vec![
        made(|b| native::ListGroupsRequest::create(b, &native::ListGroupsRequestArgs {})),
        made(|b| {
            let group = head!(
                b,
                ListedGroup,
                ListedGroupArgs {
                    group: Some(b.create_string("planner")),
                    state: Some(b.create_string("Stable")),
                }
            );
            head!(
                b,
                ListGroupsResponse,
                ListGroupsResponseArgs {
                    groups: Some(b.create_vector(&[group]))
                }
            )
        }),
        made(|b| {
            let name = b.create_string("planner");
            head!(
                b,
                DescribeGroupsRequest,
                DescribeGroupsRequestArgs {
                    groups: Some(b.create_vector(&[name]))
                }
            )
        }),
        made(|b| {
            let member = head!(
                b,
                GroupMemberDescription,
                GroupMemberDescriptionArgs {
                    member_id: Some(b.create_string("reader-1-id")),
                    client_host: Some(b.create_string("127.0.0.1")),
                    assignment: Some(b.create_vector(&assignment())),
                }
            );
            let group = head!(
                b,
                GroupDescription,
                GroupDescriptionArgs {
                    group: Some(b.create_string("planner")),
                    members: Some(b.create_vector(&[member])),
                }
            );
            head!(
                b,
                DescribeGroupsResponse,
                DescribeGroupsResponseArgs {
                    groups: Some(b.create_vector(&[group]))
                }
            )
        }),
        made(|b| {
            let name = b.create_string("planner");
            head!(
                b,
                DeleteGroupsRequest,
                DeleteGroupsRequestArgs {
                    groups: Some(b.create_vector(&[name]))
                }
            )
        }),
        made(|b| {
            let group = head!(
                b,
                DeletedGroup,
                DeletedGroupArgs {
                    group: Some(b.create_string("planner")),
                    error_code: 68,
                }
            );
            head!(
                b,
                DeleteGroupsResponse,
                DeleteGroupsResponseArgs {
                    groups: Some(b.create_vector(&[group]))
                }
            )
        }),
        made(|b| {
            let entries = partitions(b);
            head!(
                b,
                DeleteOffsetsRequest,
                DeleteOffsetsRequestArgs {
                    group: Some(b.create_string("planner")),
                    entries,
                }
            )
        }),
        made(|b| {
            let results = results(b);
            native::DeleteOffsetsResponse::create(
                b,
                &native::DeleteOffsetsResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        }),
    ]
}

type Tables<T> =
    Option<flatbuffers::WIPOffset<flatbuffers::Vector<'static, flatbuffers::ForwardsUOffset<T>>>>;

fn partitions(b: &mut Builder) -> Tables<native::GroupPartition<'static>> {
    let partition = head!(
        b,
        GroupPartition,
        GroupPartitionArgs {
            topic: Some(b.create_string("flights")),
            partition: 3
        }
    );
    Some(b.create_vector(&[partition]))
}

fn results(b: &mut Builder) -> Tables<native::OffsetCommitResult<'static>> {
    let result = head!(
        b,
        OffsetCommitResult,
        OffsetCommitResultArgs {
            topic: Some(b.create_string("flights")),
            error_code: 22
        }
    );
    Some(b.create_vector(&[result]))
}
