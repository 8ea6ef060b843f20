//! Consumer groups at Kafka's door: members, offsets, and what a restart leaves of them.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/process.rs"]
mod process;
mod support;
#[path = "support/kafka.rs"]
mod wire;

use std::{
    collections::BTreeSet,
    io::Write as _,
    ops::Range,
    sync::Mutex,
    time::{Duration, Instant},
};

use support::{PATIENCE, Raw, broker, eventually, folder};
use tackboard_broker::embedded::Handle;
use tackboard_schema::{
    ErrorCode,
    frame::ApiKey as NativeApi,
    kafka::*,
    native::{self, HeadBuilder, read_head},
};
use wire::{Client, fetch};

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
    client.ask(8, &committing(member, offset)).topics[0].partitions[0].error_code
}

fn committing(member: Option<&JoinGroupResponse>, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
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
    }
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

/// What a counter or gauge says, of all cores together.
fn metric(broker: &Handle, name: &str) -> f64 {
    let values = support::metrics(broker);
    let values = values.lines().filter(|line| line.starts_with(name));
    values
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Every coordinator has read its topic.
fn all_serve(client: &mut Client) {
    eventually("every coordinator serves", || {
        client.ask(4, &ListGroupsRequest::default()).error_code == 0
    });
}

#[test]
fn joins_of_clients_that_have_gone_take_no_room_from_others() {
    let data = folder();
    let running = broker(
        data.path(),
        "[0, 1]",
        &["group.initial.rebalance.delay.ms=60 s"],
    );
    let mut stays = with_groups(&running);
    all_serve(&mut stays);
    let joins = |name: &str| {
        let mut client = Client::of(&running);
        for group in 0..100 {
            let join = JoinGroupRequest {
                group_id: format!("{name}{group}").as_str().into(),
                rebalance_timeout_ms: 60_000,
                ..join("")
            };
            client.send(3, &join);
        }
        client
    };
    // About half of these joins wait at a core that their client is not connected to: in all three times as many as may.
    for _ in 0..20 {
        drop((0..20).map(|_| joins("gone")).collect::<Vec<_>>());
        eventually("their connections are gone", || {
            metric(&running, "tackboard_connections_open") <= 1.0
        });
    }
    let _waits = [joins("here"), joins("too")];
    eventually("others join as ever", || {
        let listed = stays.ask(4, &ListGroupsRequest::default()).groups;
        let theirs = listed
            .iter()
            .filter(|group| !group.group_id.starts_with("gone"));
        theirs.count() == 200
    });
    assert!(running.shutdown());
}

#[test]
fn fetches_that_wait_at_another_core_keep_no_member_from_being_heard() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", FAST);
    let mut client = with_groups(&running);
    all_serve(&mut client);
    assert_eq!(client.create("t", 2), 0);
    let refused = metric(&running, "tackboard_requests_refused");
    // More than one connection may have waiting at the core that it is not connected to is refused.
    let long = |partition| fetch("t", &[partition], 0, 2_000);
    for _ in 0..70 {
        client.send(11, &long(0));
        client.send(11, &long(1));
    }
    let heartbeats = (0..16).map(|group| {
        let request = HeartbeatRequest {
            group_id: format!("{group}").as_str().into(),
            generation_id: 1,
            member_id: "nobody".into(),
            ..Default::default()
        };
        client.send(4, &request)
    });
    let heartbeats: Vec<_> = heartbeats.collect();
    for _ in 0..140 {
        assert!(client.frame().is_some());
    }
    for id in heartbeats {
        let told = client.receive::<HeartbeatRequest>(4, id).error_code;
        assert_eq!(told, ErrorCode::UnknownMemberId.code());
    }
    assert!(metric(&running, "tackboard_requests_refused") > refused);
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
fn an_answer_without_a_code_of_its_own_tells_what_is_wrong_by_partition() {
    let data = folder();
    let running = broker(data.path(), "[0]", FAST);
    let mut client = Client::of(&running);
    let request = OffsetFetchRequest {
        group_id: "g".into(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "t".into(),
            partition_indexes: vec![0, 3],
        }]),
        ..Default::default()
    };
    // Whoever asks first meets no coordinator; to say nothing would be to say that nothing is committed.
    let told = client.ask(1, &request).topics;
    let partitions = told.iter().flat_map(|topic| &topic.partitions);
    let partitions = partitions.map(|told| {
        let index = told.partition_index;
        (index, told.committed_offset, told.error_code)
    });
    let code = ErrorCode::CoordinatorNotAvailable.code();
    assert_eq!(
        partitions.collect::<Vec<_>>(),
        [(0, -1, code), (3, -1, code)]
    );
    assert!(running.shutdown());
}

#[test]
fn commits_that_are_being_stored_when_the_broker_stops_are_answered_as_they_end() {
    const COMMITS: i64 = 1_000;
    let data = folder();
    let running = broker(data.path(), "[0]", FAST);
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    let ids: Vec<_> = (1..=COMMITS)
        .map(|offset| client.send(8, &committing(None, offset)))
        .collect();
    client.receive::<OffsetCommitRequest>(8, ids[0]);
    let stopping = std::thread::spawn(move || running.shutdown());
    // What it has not read is not answered; what it has read is.
    let mut answered = 1;
    while let Some(frame) = client.frame() {
        assert_eq!(response_correlation_id(&frame), Ok(ids[answered]));
        let told: OffsetCommitResponse = decode_response(frame, 8).expect("in its own words");
        assert_eq!(told.topics[0].partitions[0].error_code, 0);
        answered += 1;
    }
    assert!(stopping.join().expect("no panic"));
    let running = broker(data.path(), "[0]", FAST);
    eprintln!("{answered} of {COMMITS} commits were read");
    let stored = offset_of(&mut with_groups(&running), 0);
    assert_eq!(stored, Ok(answered as i64), "the last that was answered");
    assert!(running.shutdown());
}

#[test]
fn the_topic_of_the_groups_is_the_brokers_own() {
    let data = folder();
    let running = broker(data.path(), "[0]", FAST);
    let refused = ErrorCode::InvalidTopicException.code();
    assert_eq!(
        Client::of(&running).create("__consumer_offsets", 3),
        refused
    );
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(commit(&mut client, None, 3), 0);
    let below = commit(&mut client, None, -1);
    assert_eq!(below, ErrorCode::InvalidRequest.code());
    assert_eq!(offset_of(&mut client, 0), Ok(3));
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
    for validate_only in [false, true] {
        let grow = CreatePartitionsRequest {
            validate_only,
            ..grow.clone()
        };
        let told = client.ask(3, &grow).results.remove(0);
        assert_eq!(told.error_code, refused, "only tried: {validate_only}");
    }
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

#[test]
fn a_static_member_takes_its_place_over_and_who_is_late_is_fenced() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", FAST);
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    let join = || JoinGroupRequest {
        group_instance_id: Some("static".into()),
        ..join("")
    };
    let first = client.ask(9, &join());
    assert_eq!(first.error_code, 0);
    let parts: [(&str, &'static [u8]); 1] = [(&first.member_id, b"all")];
    assert_eq!(client.ask(5, &sync(&first, &parts)).error_code, 0);
    let mut heartbeat = |member: &JoinGroupResponse, generation_id| {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id,
            member_id: member.member_id.clone(),
            group_instance_id: Some("static".into()),
        };
        client.ask(4, &request).error_code
    };
    assert_eq!(heartbeat(&first, 1), 0);
    assert_eq!(heartbeat(&first, 0), ErrorCode::IllegalGeneration.code());

    // The same client, started anew.
    let mut again = Client::of(&running);
    let second = again.ask(9, &join());
    assert_eq!(
        (second.error_code, second.generation_id),
        (0, 1),
        "nobody rebalances"
    );
    assert_ne!(second.member_id, first.member_id);
    assert_eq!(heartbeat(&first, 1), ErrorCode::FencedInstanceId.code());
    assert_eq!(heartbeat(&second, 1), 0);
    assert_eq!(&*again.ask(5, &sync(&second, &[])).assignment, b"all");
    let late = JoinGroupResponse {
        generation_id: 0,
        ..second.clone()
    };
    let code = commit(&mut again, Some(&late), 5);
    assert_eq!(code, ErrorCode::IllegalGeneration.code());
    assert_eq!(commit(&mut again, Some(&second), 5), 0);
    assert!(running.shutdown());
}

#[test]
fn a_member_that_falls_silent_loses_its_place() {
    let data = folder();
    let quick = "group.min.session.timeout.ms=100 ms";
    let running = broker(data.path(), "[0, 1]", &[FAST[0], quick]);
    let mut stays = with_groups(&running);
    let mut goes = Client::of(&running);
    let join = |member: &str| JoinGroupRequest {
        session_timeout_ms: 300,
        ..join(member)
    };
    let told = goes.ask(9, &join(""));
    let first = goes.ask(9, &join(&told.member_id));
    assert_eq!(first.error_code, 0);
    assert_eq!(described(&mut stays).members.len(), 1);
    eventually("it has lost it", || {
        described(&mut stays).members.is_empty()
    });
    assert_eq!(
        heartbeat(&mut goes, &first),
        ErrorCode::UnknownMemberId.code()
    );
    assert!(running.shutdown());
}

#[test]
fn offsets_that_nobody_uses_are_forgotten_after_their_time() {
    let data = folder();
    let soon = [
        "offsets.retention.ms=300 ms",
        "offsets.retention.check.interval.ms=100 ms",
    ];
    let running = broker(data.path(), "[0]", &soon);
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(commit(&mut client, None, 3), 0);
    eventually("the group is gone", || {
        let listed = client.ask(4, &ListGroupsRequest::default());
        listed.groups.is_empty()
    });
    assert_eq!(offset_of(&mut client, 0), Ok(-1));
    assert!(running.shutdown());
}

#[test]
fn the_topic_of_the_groups_is_written_anew_before_it_grows_without_bound() {
    let data = folder();
    let running = broker(data.path(), "[0]", &[]);
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(client.create("u", 1), 0);
    assert_eq!(commit(&mut client, None, 3), 0);
    let begin = |client: &mut Client| {
        let request = ListOffsetsRequest {
            topics: vec![ListOffsetsRequestTopic {
                name: "__consumer_offsets".into(),
                // Where Kafka's hash puts the group.
                partitions: vec![ListOffsetsRequestPartition {
                    partition_index: 103 % 16,
                    timestamp: -2,
                    ..Default::default()
                }],
            }],
            ..Default::default()
        };
        let answer = client.ask(5, &request);
        answer.topics[0].partitions[0].offset
    };
    assert_eq!(begin(&mut client), 0);
    // Somebody commits very much for another topic: 400 KiB each time.
    let mut much = committing(None, 1);
    much.topics[0].name = "u".into();
    let mut partition = much.topics[0].partitions[0].clone();
    partition.committed_metadata = Some("m".repeat(4_096).as_str().into());
    much.topics[0].partitions = vec![partition; 100];
    eventually("the topic begins later", || {
        let told = client.ask(8, &much);
        assert!(
            told.topics[0]
                .partitions
                .iter()
                .all(|one| one.error_code == 0)
        );
        begin(&mut client) > 0
    });
    assert_eq!(offset_of(&mut client, 0), Ok(3));
    assert!(running.shutdown());
    let running = broker(data.path(), "[0]", &[]);
    let mut client = with_groups(&running);
    assert!(begin(&mut client) > 0);
    assert_eq!(offset_of(&mut client, 0), Ok(3), "it was written anew");
    assert!(running.shutdown());
}

/// Where a broker in a process of its own serves clients of Kafka.
fn door(broker: &process::Broker) -> Client {
    let line = (broker.greeting.lines()).find_map(|line| line.strip_prefix("kafka"));
    let address = line.expect("it has one").trim();
    Client::at(address.parse().expect("an address"))
}

/// Commits; `None`: the broker has gone.
fn try_commit(client: &mut Client, member: &JoinGroupResponse, offset: i64) -> Option<i16> {
    let mut frame = Vec::new();
    let request = committing(Some(member), offset);
    encode_request(&mut frame, 8, 1, Some(&"test".into()), &request).expect("fits");
    client.stream.write_all(&frame).ok()?;
    let answer: OffsetCommitResponse = decode_response(client.frame()?, 8).expect("in its words");
    Some(answer.topics[0].partitions[0].error_code)
}

#[test]
fn a_commit_that_was_answered_outlives_every_kill() {
    let kills = std::env::var("GROUP_KILLS").ok();
    let kills = kills.map_or(4, |kills| kills.parse().expect("a number"));
    let data = folder();
    let (mut sent, mut answered) = (0, -1);
    let mut member = None;
    for round in 0..=kills {
        let broker = process::Broker::spawn(process::serve(
            data.path(),
            &["--set", "group.initial.rebalance.delay.ms=0"],
        ));
        let mut client = door(&broker);
        eventually("the group is served", || {
            find(&mut client, "g") == 0 && offset_of(&mut client, 0).is_ok()
        });
        let found = offset_of(&mut client, 0).expect("served");
        assert!(
            answered <= found && found <= sent,
            "round {round}: {answered} was answered, {sent} sent, {found} is there"
        );
        if round == kills {
            break;
        }
        let member = member.get_or_insert_with(|| {
            assert_eq!(client.create("t", 1), 0);
            let long = |member: &str| JoinGroupRequest {
                session_timeout_ms: 60_000,
                ..join(member)
            };
            let told = client.ask(9, &long(""));
            let joined = client.ask(9, &long(&told.member_id));
            let parts: [(&str, &'static [u8]); 1] = [(&joined.member_id, b"all")];
            assert_eq!(client.ask(5, &sync(&joined, &parts)).error_code, 0);
            joined
        });
        assert_eq!(
            heartbeat(&mut client, member),
            0,
            "it is still in its group"
        );
        sent = sent.max(found).max(0);
        let pid = broker.child.id() as i32;
        let after = Duration::from_millis(40 + 70 * round);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(after);
            // SAFETY: our own child, which is not waited for before this thread has ended.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        loop {
            sent += 1;
            match try_commit(&mut client, member, sent) {
                Some(0) => answered = sent,
                Some(code) => panic!("a commit is refused with {code}"),
                None => break,
            }
        }
        killer.join().expect("it has killed");
        assert!(answered > 0, "some commits were answered");
    }
}

/// What a member that joins a group for the first time may be told before it has its place: all that clients try again.
const TRIED_AGAIN: [ErrorCode; 5] = [
    ErrorCode::CoordinatorLoadInProgress,
    ErrorCode::CoordinatorNotAvailable,
    ErrorCode::NotCoordinator,
    ErrorCode::MemberIdRequired,
    ErrorCode::RebalanceInProgress,
];

fn is_tried_again(code: i16) -> bool {
    TRIED_AGAIN.iter().any(|one| one.code() == code)
}

/// The same of a member that has joined: no client of Kafka takes its heartbeat or sync for one that came too early.
fn is_told_to_members(code: i16) -> bool {
    is_tried_again(code) && code != ErrorCode::CoordinatorLoadInProgress.code()
}

/// The generation in which each member has its place; 0: none yet.
type Places = Mutex<Vec<i32>>;

/// A member of the first group that a broker has ever seen, as a client goes about it, until all have their places in
/// one generation.
fn be_member(broker: &Handle, own: usize, places: &Places) -> Result<(), String> {
    let begun = Instant::now();
    let late = || begun.elapsed() > PATIENCE;
    let mut client = Client::of(broker);
    loop {
        match find(&mut client, "g") {
            0 => break,
            code if !is_tried_again(code) || late() => return Err(format!("finding: {code}")),
            _ => {}
        }
    }
    // The coordinator has a connection of its own, which may end at another core.
    let mut client = Client::of(broker);
    let mut member_id = Str::default();
    let all_have = |generation| {
        let mut places = places.lock().expect("nobody has panicked");
        places[own] = generation;
        places.iter().all(|one| *one == generation)
    };
    while !late() {
        let told = client.ask(9, &join(&member_id));
        if !told.member_id.is_empty() {
            member_id = told.member_id.clone();
        }
        match told.error_code {
            0 => {}
            code if is_tried_again(code) => continue,
            code => return Err(format!("joining: {code}")),
        }
        let parts = told.members.iter();
        let parts: Vec<(&str, &'static [u8])> = parts
            .map(|member| (member.member_id.as_str(), &b"part"[..]))
            .collect();
        let synced = client.ask(5, &sync(&told, &parts));
        match synced.error_code {
            0 if &*synced.assignment == b"part" => {}
            code if is_told_to_members(code) => continue,
            code => return Err(format!("syncing: {code}, {:?}", synced.assignment)),
        }
        while !late() {
            if all_have(told.generation_id) {
                return Ok(());
            }
            match heartbeat(&mut client, &told) {
                0 => std::thread::sleep(Duration::from_millis(5)),
                code if is_told_to_members(code) => break,
                code => return Err(format!("living: {code}")),
            }
        }
    }
    Err("not in time".to_owned())
}

#[test]
fn members_that_start_together_on_a_new_broker_all_find_their_place() {
    for _ in 0..6 {
        let data = folder();
        let running = broker(data.path(), "[0, 1]", FAST);
        let places = Mutex::new(vec![0; 8]);
        let outcomes = std::thread::scope(|scope| {
            let member = |own| {
                let (running, places) = (&running, &places);
                scope.spawn(move || be_member(running, own, places))
            };
            let members: Vec<_> = (0..8).map(member).collect();
            let outcomes = members.into_iter().map(|member| member.join());
            outcomes
                .map(|outcome| outcome.expect("no panic"))
                .collect::<Vec<_>>()
        });
        assert_eq!(outcomes, vec![Ok(()); 8]);
        assert!(running.shutdown());
    }
}

/// Frames of 256 KiB, and metadata of 4 KiB in them.
const SHORT_FRAMES: &[&str] = &[
    "group.initial.rebalance.delay.ms=0",
    "message.max.bytes=64 KiB",
    "native.frame_bytes_max=256 KiB",
];

/// Commits as somebody who assigns partitions to itself.
fn commit_for(client: &mut Client, group: &str, partitions: Range<i32>, metadata: &str) {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 1,
        committed_metadata: Some(metadata.into()),
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: partitions.map(partition).collect(),
        }],
        ..Default::default()
    };
    let told = client.ask(8, &request);
    let codes = told.topics[0].partitions.iter();
    assert!(codes.clone().all(|one| one.error_code == 0), "{group}");
}

/// The length of an answer on the wire, and what it says.
fn ask_measured<R: Request>(
    client: &mut Client,
    version: i16,
    request: &R,
) -> (usize, R::Response) {
    client.send(version, request);
    let frame = client.frame().expect("an answer");
    let length = frame.len();
    (
        length,
        decode_response(frame, version).expect("in its own words"),
    )
}

fn all_offsets<'g>(groups: impl IntoIterator<Item = &'g str>) -> OffsetFetchRequest {
    let group = |group: &str| OffsetFetchRequestGroup {
        group_id: group.into(),
        topics: None,
        ..Default::default()
    };
    OffsetFetchRequest {
        groups: groups.into_iter().map(group).collect(),
        ..Default::default()
    }
}

#[test]
fn answers_about_many_groups_are_no_longer_than_a_frame() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", SHORT_FRAMES);
    let mut client = with_groups(&running);
    all_serve(&mut client);
    assert_eq!(client.create("t", 100), 0);
    let names: Vec<_> = (0..12).map(|number| format!("group-{number}")).collect();
    for name in &names {
        commit_for(&mut client, name, 0..20, &"m".repeat(4_000));
    }

    let mut left: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        let (length, told) = ask_measured(&mut client, 8, &all_offsets(left.iter().copied()));
        assert!(length <= 256 << 10, "{length} bytes");
        let before = left.len();
        left.retain(|name| {
            let of_it = |group: &&OffsetFetchResponseGroup| group.group_id.as_str() == *name;
            let group = told.groups.iter().find(of_it).expect("each is told of");
            match group.error_code {
                0 => assert_eq!(group.topics[0].partitions.len(), 20),
                code => assert_eq!(code, ErrorCode::CoordinatorNotAvailable.code()),
            }
            group.error_code != 0
        });
        assert!(left.len() < before, "some fit");
        rounds += 1;
    }
    assert!(rounds > 1, "not all fitted at once");

    // What never fits is said so, not to be asked for again and again; in parts it is told.
    for partitions in [0..50, 50..100] {
        commit_for(&mut client, "large", partitions, &"m".repeat(4_000));
    }
    let told = client.ask(8, &all_offsets(["large"]));
    let code = ErrorCode::PolicyViolation.code();
    assert_eq!(told.groups[0].error_code, code);
    let (length, told) = ask_measured(&mut client, 8, &all_offsets(["large", "group-0"]));
    assert!(length <= 256 << 10, "{length} bytes");
    let codes: Vec<_> = told.groups.iter().map(|group| group.error_code).collect();
    assert_eq!(codes, [code, 0]);
    assert!(running.shutdown());
}

#[test]
fn a_partition_named_again_and_again_is_told_of_once() {
    let data = folder();
    let running = broker(data.path(), "[0]", SHORT_FRAMES);
    let mut client = with_groups(&running);
    assert_eq!(client.create("t", 1), 0);
    commit_for(&mut client, "g", 0..1, &"m".repeat(4_000));
    let partition_indexes = vec![0; 9_000];
    let request = OffsetFetchRequest {
        group_id: "g".into(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "t".into(),
            partition_indexes: partition_indexes.clone(),
        }]),
        ..Default::default()
    };
    for version in [1, 7] {
        let told = client.ask(version, &request);
        assert_eq!(told.topics[0].partitions.len(), 1, "version {version}");
    }
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestGroupTopic {
                name: "t".into(),
                partition_indexes,
            }]),
            ..Default::default()
        }],
        ..Default::default()
    };
    let told = client.ask(8, &request);
    assert_eq!(told.groups[0].topics[0].partitions.len(), 1);
    assert!(running.shutdown());
}

#[test]
fn descriptions_and_lists_of_groups_are_no_longer_than_a_frame() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", SHORT_FRAMES);
    let mut client = with_groups(&running);
    all_serve(&mut client);
    let mut members = Vec::new();
    let names: Vec<_> = (0..6).map(|number| format!("group-{number}")).collect();
    for name in &names {
        let mut member = Client::of(&running);
        let mut join = join("");
        join.group_id = name.as_str().into();
        join.protocols[0].metadata = vec![7; 30_000].into();
        join.member_id = member.ask(9, &join).member_id;
        let joined = member.ask(9, &join);
        let mut sync = sync(&joined, &[]);
        sync.group_id = name.as_str().into();
        sync.assignments = vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: vec![8; 30_000].into(),
        }];
        assert_eq!(member.ask(5, &sync).error_code, 0);
        members.push(member);
    }
    let mut left: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        let request = DescribeGroupsRequest {
            groups: left.iter().map(|name| (*name).into()).collect(),
            ..Default::default()
        };
        let (length, told) = ask_measured(&mut client, 5, &request);
        assert!(length <= 256 << 10, "{length} bytes");
        let before = left.len();
        left.retain(|name| {
            let of_it = |group: &&DescribeGroupsResponseGroup| group.group_id.as_str() == *name;
            let group = told.groups.iter().find(of_it).expect("each is told of");
            match group.error_code {
                0 => assert_eq!(group.members[0].member_assignment.len(), 30_000),
                code => assert_eq!(code, ErrorCode::CoordinatorNotAvailable.code()),
            }
            group.error_code != 0
        });
        assert!(left.len() < before, "some fit");
        rounds += 1;
    }
    assert!(rounds > 1, "not all fitted at once");

    let head = HeadBuilder::new()
        .build(|builder| {
            let names = names.iter().map(|name| builder.create_string(name));
            let names: Vec<_> = names.collect();
            let groups = Some(builder.create_vector(&names));
            native::DescribeGroupsRequest::create(
                builder,
                &native::DescribeGroupsRequestArgs { groups },
            )
        })
        .to_vec();
    let mut raw = Raw::connect(running.native_address());
    raw.send(NativeApi::DescribeGroups, &head, &[]);
    let answer = raw.receive().expect("an answer").head;
    assert!(answer.len() <= 256 << 10, "{} bytes", answer.len());
    let told = read_head::<native::DescribeGroupsResponse<'_>>(&answer).expect("is whole");
    let codes = told.groups().expect("each is told of");
    let codes: BTreeSet<_> = codes.iter().map(|group| group.error_code()).collect();
    assert_eq!(codes, BTreeSet::from([0, ErrorCode::OverBudget.code()]));

    assert_eq!(client.create("t", 1), 0);
    for number in 0..40 {
        let name = format!("{number}-{}", "long".repeat(5_000));
        commit_for(&mut client, &name, 0..1, "");
    }
    let (length, told) = ask_measured(&mut client, 4, &ListGroupsRequest::default());
    assert!(length <= 256 << 10, "{length} bytes");
    assert_eq!(told.error_code, ErrorCode::PolicyViolation.code());
    assert!(running.shutdown());
}

#[test]
fn what_a_request_of_a_group_carries_counts_until_it_is_answered() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", FAST);
    let mut client = with_groups(&running);
    all_serve(&mut client);
    let waits = join_new(&mut client);
    let first = client.receive::<JoinGroupRequest>(9, waits);
    // It waits for the first one, which does not join again.
    let mut second = Client::of(&running);
    let mut join = join("");
    join.protocols[0].metadata = vec![7; 500_000].into();
    join.member_id = second.ask(9, &join).member_id;
    second.send(9, &join);
    let in_flight = || metric(&running, "tackboard_request_bytes_in_flight");
    eventually("its bytes are counted", || in_flight() >= 500_000.0);
    join.member_id = first.member_id;
    join.protocols[0].metadata = vec![7; 100_000].into();
    assert_eq!(client.ask(9, &join).error_code, 0);
    eventually("they are let go", || in_flight() < 100_000.0);
    assert!(running.shutdown());
}

#[test]
fn what_no_group_has_room_for_is_refused_and_the_others_go_on() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", FAST);
    let mut client = with_groups(&running);
    all_serve(&mut client);
    assert_eq!(client.create("t", 8), 0);
    let too_large = ErrorCode::GroupMaxSizeReached.code();
    let mut long = join("");
    long.protocols[0].metadata = vec![7; 2 << 20].into();
    assert_eq!(client.ask(9, &long).error_code, too_large);

    let mut follower = Client::of(&running);
    let waits = join_new(&mut client);
    let led = client.receive::<JoinGroupRequest>(9, waits);
    let waits = join_new(&mut follower);
    eventually("the leader hears of it", || {
        heartbeat(&mut client, &led) != 0
    });
    let led = client.ask(9, &join(&led.member_id));
    let followed = follower.receive::<JoinGroupRequest>(9, waits);
    let waits = follower.send(5, &sync(&followed, &[]));
    let mut assigns = sync(&led, &[(&led.member_id, b"")]);
    assigns.assignments[0].assignment = vec![7; 2 << 20].into();
    assert_eq!(client.ask(5, &assigns).error_code, too_large);
    let told = follower.receive::<SyncGroupRequest>(5, waits);
    assert_eq!(told.error_code, too_large, "it does not wait");

    let partition = |partition_index, length| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 1,
        committed_metadata: Some("m".repeat(length).into()),
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: "of nobody".into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition(0, 5_000), partition(1, 4_000)],
        }],
        ..Default::default()
    };
    let told = client.ask(8, &request).topics.remove(0).partitions;
    let codes: Vec<_> = told.iter().map(|one| one.error_code).collect();
    assert_eq!(codes, [ErrorCode::OffsetMetadataTooLarge.code(), 0]);
    assert!(running.shutdown());
}
