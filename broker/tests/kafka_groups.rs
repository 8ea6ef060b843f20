//! Consumer groups at Kafka's door: members, offsets, and what a restart leaves of them.

mod support;
#[path = "support/kafka.rs"]
mod wire;

use support::{broker, eventually, folder};
use tackboard_broker::embedded::Handle;
use tackboard_schema::{ErrorCode, kafka::*};
use wire::Client;

const FAST: &[&str] = &["group.initial.rebalance.delay.ms=0"];

fn find(client: &mut Client, group: &str) -> i16 {
    let request = FindCoordinatorRequest {
        coordinator_keys: vec![group.into()],
        ..Default::default()
    };
    client.ask(4, &request).coordinators.remove(0).error_code
}

/// A broker whose topic of groups is there, and read.
fn with_groups(broker: &Handle) -> Client {
    let mut client = Client::of(broker);
    eventually("the group has a coordinator", || {
        find(&mut client, "g") == 0
    });
    eventually("it has read its topic", || {
        offset_of(&mut client, 0).is_ok()
    });
    client
}

fn join(member: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: 10_000,
        member_id: member.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff"[..].into(),
        }],
        ..Default::default()
    }
}

/// Joins as a client does: it is given an id first.
fn join_new(client: &mut Client) -> i32 {
    let told = client.ask(9, &join(""));
    assert_eq!(told.error_code, ErrorCode::MemberIdRequired.code());
    client.send(9, &join(&told.member_id))
}

fn sync(joined: &JoinGroupResponse, parts: &[(&str, &'static [u8])]) -> SyncGroupRequest {
    let part = |(member, part): &(&str, &'static [u8])| SyncGroupRequestAssignment {
        member_id: (*member).into(),
        assignment: (*part).into(),
    };
    SyncGroupRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: parts.iter().map(part).collect(),
        ..Default::default()
    }
}

fn heartbeat(client: &mut Client, joined: &JoinGroupResponse) -> i16 {
    let request = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    client.ask(4, &request).error_code
}

fn commit(client: &mut Client, member: Option<&JoinGroupResponse>, offset: i64) -> i16 {
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: member.map_or(-1, |member| member.generation_id),
        member_id: member
            .map(|member| member.member_id.clone())
            .unwrap_or_default(),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: 0,
                committed_offset: offset,
                committed_metadata: Some("where I am".into()),
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    client.ask(8, &request).topics[0].partitions[0].error_code
}

/// What the group has committed; -1: nothing.
fn offset_of(client: &mut Client, partition: i32) -> Result<i64, i16> {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestGroupTopic {
                name: "t".into(),
                partition_indexes: vec![partition],
            }]),
            ..Default::default()
        }],
        ..Default::default()
    };
    let group = client.ask(8, &request).groups.remove(0);
    match group.error_code {
        0 => Ok(group.topics[0].partitions[0].committed_offset),
        code => Err(code),
    }
}

fn described(client: &mut Client) -> DescribeGroupsResponseGroup {
    let request = DescribeGroupsRequest {
        groups: vec!["g".into()],
        ..Default::default()
    };
    client.ask(5, &request).groups.remove(0)
}

#[test]
fn members_share_a_group_and_a_restart_keeps_it() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", FAST);
    let mut one = with_groups(&running);
    let mut two = Client::of(&running);
    assert_eq!(one.create("t", 4), 0);

    let waits = join_new(&mut one);
    let first = one.receive::<JoinGroupRequest>(9, waits);
    assert_eq!((first.error_code, first.members.len()), (0, 1));
    let waits = join_new(&mut two);
    eventually("the first one hears of it", || {
        heartbeat(&mut one, &first) == ErrorCode::RebalanceInProgress.code()
    });
    let led = one.ask(9, &join(&first.member_id));
    let followed = two.receive::<JoinGroupRequest>(9, waits);
    assert_eq!((led.generation_id, followed.generation_id), (2, 2));
    assert_eq!((led.members.len(), followed.members.len()), (2, 0));
    assert_eq!(followed.leader, led.member_id);

    let waits = two.send(5, &sync(&followed, &[]));
    let parts: [(&str, &'static [u8]); 2] =
        [(&led.member_id, b"one"), (&followed.member_id, b"two")];
    assert_eq!(&*one.ask(5, &sync(&led, &parts)).assignment, b"one");
    assert_eq!(
        &*two.receive::<SyncGroupRequest>(5, waits).assignment,
        b"two"
    );
    assert_eq!(described(&mut one).group_state.as_str(), "Stable");

    assert_eq!(offset_of(&mut one, 0), Ok(-1));
    assert_eq!(commit(&mut one, Some(&led), 7), 0);
    assert_eq!(commit(&mut one, None, 8), ErrorCode::UnknownMemberId.code());
    assert_eq!(offset_of(&mut two, 0), Ok(7));
    assert!(running.shutdown());

    let running = broker(data.path(), "[1]", FAST);
    let mut one = with_groups(&running);
    assert_eq!(offset_of(&mut one, 0), Ok(7));
    assert_eq!(heartbeat(&mut one, &led), 0, "its session goes on");
    let leave = LeaveGroupRequest {
        group_id: "g".into(),
        members: [&led, &followed]
            .map(|joined| LeaveGroupRequestMember {
                member_id: joined.member_id.clone(),
                ..Default::default()
            })
            .to_vec(),
        ..Default::default()
    };
    let left = one.ask(5, &leave);
    assert!(left.members.iter().all(|member| member.error_code == 0));
    assert_eq!(described(&mut one).group_state.as_str(), "Empty");
    let listed = one.ask(4, &ListGroupsRequest::default());
    assert_eq!(
        (listed.groups.len(), listed.groups[0].group_id.as_str()),
        (1, "g")
    );
    let delete = DeleteGroupsRequest {
        groups_names: vec!["g".into()],
    };
    assert_eq!(one.ask(2, &delete).results[0].error_code, 0);
    assert_eq!(described(&mut one).group_state.as_str(), "Dead");
    assert_eq!(offset_of(&mut one, 0), Ok(-1));
    assert!(running.shutdown());
}

#[test]
fn a_client_that_goes_while_it_joins_leaves_nothing_waiting() {
    let data = folder();
    let running = broker(
        data.path(),
        "[0, 1]",
        &["group.initial.rebalance.delay.ms=60 s"],
    );
    let mut stays = with_groups(&running);
    for _ in 0..20 {
        let mut goes = Client::of(&running);
        join_new(&mut goes);
    }
    let metrics = || support::metrics(&running);
    eventually("their connections are gone", || {
        let open = metrics();
        let open = open
            .lines()
            .find(|line| line.starts_with("tackboard_connections_open"));
        let sum: f64 = metrics()
            .lines()
            .filter(|line| line.starts_with("tackboard_connections_open"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum();
        assert!(open.is_some());
        sum <= 1.0
    });
    assert_eq!(
        described(&mut stays).members.len(),
        20,
        "their sessions decide"
    );
    assert!(running.shutdown());
}

#[test]
fn the_broker_stops_at_once_though_members_wait_for_each_other() {
    let data = folder();
    let running = broker(
        data.path(),
        "[0, 1]",
        &["group.initial.rebalance.delay.ms=60 s"],
    );
    let mut client = with_groups(&running);
    join_new(&mut client);
    let begun = std::time::Instant::now();
    assert!(running.shutdown());
    // Half of the time that a shutdown may take: nobody was waited for.
    assert!(begun.elapsed() < std::time::Duration::from_secs(15));
}

#[test]
fn the_topic_of_the_groups_is_the_brokers_own() {
    let data = folder();
    let running = broker(data.path(), "[0]", FAST);
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(commit(&mut client, None, 3), 0);
    let all = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let topics = client.ask(12, &all).topics;
    let internal = |name: &str| {
        let topic = topics
            .iter()
            .find(|topic| topic.name.as_deref() == Some(name));
        topic.expect("there").is_internal
    };
    assert!(internal("__consumer_offsets") && !internal("t"));
    let produce = ProduceRequest {
        acks: -1,
        timeout_ms: 1_000,
        topic_data: vec![ProduceRequestTopic {
            name: "__consumer_offsets".into(),
            partition_data: vec![ProduceRequestPartition::default()],
        }],
        ..Default::default()
    };
    let told = client.ask(11, &produce);
    let code = told.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::InvalidTopicException.code());
    let delete = DeleteTopicsRequest {
        topic_names: vec!["__consumer_offsets".into()],
        ..Default::default()
    };
    let told = client.ask(5, &delete).responses.remove(0);
    assert_eq!(told.error_code, ErrorCode::InvalidTopicException.code());
    let grow = CreatePartitionsRequest {
        topics: vec![CreatePartitionsRequestTopic {
            name: "__consumer_offsets".into(),
            count: 50,
            assignments: None,
        }],
        ..Default::default()
    };
    let told = client.ask(3, &grow).results.remove(0);
    assert_eq!(told.error_code, ErrorCode::InvalidTopicException.code());
    // A topic that goes takes along what groups have committed for it.
    let delete = DeleteTopicsRequest {
        topic_names: vec!["t".into()],
        ..Default::default()
    };
    assert_eq!(client.ask(5, &delete).responses[0].error_code, 0);
    eventually("the offset is forgotten", || {
        offset_of(&mut client, 0) == Ok(-1)
    });
    assert!(running.shutdown());
}
