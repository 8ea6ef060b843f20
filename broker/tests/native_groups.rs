//! Consumer groups of the native client: shares, members that come, leave and are killed, members of both protocols in
//! one group, offsets, administration.

mod support;
#[path = "support/kafka.rs"]
mod wire;

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use support::{Raw, broker, eventually, folder};
use tackboard_client::{
    Admin, ClientConfig, Error, GroupConfig, GroupConsumer, NamedPartition, NewTopic, Offset,
    PartitionIndex, Producer, ProducerConfig, ProducerRecord,
};
use tackboard_schema::consumer_protocol::Assignment;
use tackboard_schema::frame::ApiKey;
use tackboard_schema::native::{self, HeadBuilder, read_head};
use tackboard_schema::{ErrorCode, kafka::*};

const FAST: &[&str] = &["group.initial.rebalance.delay.ms=0"];

/// Where the broker of `member_process` is.
const BROKER_OF_CHILD: &str = "NATIVE_GROUPS_BROKER";

fn config() -> GroupConfig {
    GroupConfig {
        session_timeout: Duration::from_secs(6),
        heartbeat_interval: Duration::from_millis(100),
        auto_commit: Some(Duration::from_millis(100)),
        ..GroupConfig::new("g")
    }
}

fn admin(address: &str) -> Admin {
    Admin::connect(&[address], ClientConfig::default()).unwrap()
}

/// A topic of four partitions with some events in each.
fn topic(address: &str) {
    admin(address)
        .create_topic(&NewTopic::new("t").partitions(4))
        .unwrap();
    produce(address, 0..40);
}

fn produce(address: &str, numbers: std::ops::Range<u32>) {
    let producer = Producer::connect(&[address], ProducerConfig::default()).unwrap();
    for number in numbers {
        let value = number.to_string();
        let record = ProducerRecord::new(&value).partition(PartitionIndex((number % 4) as i32));
        producer.send("t", record).unwrap();
    }
    producer.flush().unwrap();
}

/// A member that polls until it is told to stop.
struct Member {
    share: Arc<Mutex<BTreeSet<NamedPartition>>>,
    seen: Arc<Mutex<Vec<String>>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    fn start(address: &str, config: GroupConfig) -> Self {
        let (share, seen): (Arc<Mutex<_>>, Arc<Mutex<Vec<_>>>) = Default::default();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let mut consumer = GroupConsumer::connect(&[address], config).unwrap();
        consumer.subscribe(&["t"]).unwrap();
        let (its_share, its_seen, its_stop) = (share.clone(), seen.clone(), is_stopped.clone());
        let thread = std::thread::spawn(move || {
            while !its_stop.load(Ordering::Relaxed) {
                let records = consumer.poll(Duration::from_millis(20)).unwrap();
                let values = (&records).into_iter().map(|record| {
                    let value = record.unwrap().value.unwrap();
                    String::from_utf8(value.to_vec()).unwrap()
                });
                its_seen.lock().unwrap().extend(values);
                *its_share.lock().unwrap() = consumer.assignment();
            }
            consumer.close(Duration::from_secs(10)).unwrap();
        });
        Self {
            share,
            seen,
            is_stopped,
            thread: Some(thread),
        }
    }

    fn count(&self) -> usize {
        self.share.lock().unwrap().len()
    }

    fn leave(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

fn counts(members: &[Member]) -> Vec<usize> {
    let mut counts: Vec<usize> = members.iter().map(Member::count).collect();
    counts.sort_unstable();
    counts
}

#[test]
fn three_share_four_partitions_and_whoever_comes_or_leaves_changes_the_shares() {
    let data = folder();
    let broker = broker(data.path(), "0,1", FAST);
    let address = broker.native_address().to_string();
    topic(&address);
    let mut members: Vec<Member> = (0..3).map(|_| Member::start(&address, config())).collect();
    eventually("2/1/1", || counts(&members) == [1, 1, 2]);
    members.push(Member::start(&address, config()));
    eventually("one each", || counts(&members) == [1, 1, 1, 1]);
    members.remove(0).leave();
    eventually("2/1/1 again", || counts(&members) == [1, 1, 2]);
    produce(&address, 40..80);
    eventually("everything new is read", || {
        let all: BTreeSet<String> = (40..80).map(|number: u32| number.to_string()).collect();
        let of = |member: &Member| member.seen.lock().unwrap().clone();
        let seen: BTreeSet<String> = members.iter().flat_map(of).collect();
        all.is_subset(&seen)
    });
}

/// No test by itself: a member in a process of its own, to be killed.
#[test]
#[ignore = "started by the test that kills it"]
fn member_process() {
    let Ok(address) = std::env::var(BROKER_OF_CHILD) else {
        return;
    };
    let mut consumer = GroupConsumer::connect(&[&*address], config()).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    loop {
        consumer.poll(Duration::from_millis(20)).unwrap();
    }
}

struct Killed(Child);

impl Killed {
    fn start(address: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "member_process", "--ignored", "--nocapture"])
            .env(BROKER_OF_CHILD, address)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn partitions_of_a_killed_member_go_to_the_others() {
    let data = folder();
    let broker = broker(data.path(), "0,1", FAST);
    let address = broker.native_address().to_string();
    topic(&address);
    let members = [Member::start(&address, config())];
    eventually("all of them", || counts(&members) == [4]);
    let other = Killed::start(&address);
    eventually("half of them", || counts(&members) == [2]);
    drop(other);
    eventually("all of them again", || counts(&members) == [4]);
}

/// The bytes of a subscription to `t`, as the oldest clients tell it.
const SUBSCRIPTION: &[u8] = b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff";

#[test]
fn members_of_both_protocols_share_a_group() {
    let data = folder();
    let broker = broker(data.path(), "0,1", FAST);
    let address = broker.native_address().to_string();
    topic(&address);
    let member = Member::start(&address, config());
    eventually("all of them", || member.count() == 4);
    let mut kafka = wire::Client::of(&broker);
    let join = |member: &str| JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        member_id: member.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: SUBSCRIPTION.into(),
        }],
        ..Default::default()
    };
    let told = kafka.ask(9, &join(""));
    let joined = kafka.ask(9, &join(&told.member_id));
    assert_eq!(joined.error_code, 0);
    assert!(joined.members.is_empty(), "the native member leads");
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    let synced = kafka.ask(5, &sync);
    assert_eq!(synced.error_code, 0);
    let share = Assignment::decode(&synced.assignment).unwrap().partitions;
    assert_eq!(share["t"].len(), 2);
    eventually("the other half", || member.count() == 2);
    let described = admin(&address).describe_group("g").unwrap();
    assert_eq!(
        (
            &*described.state,
            &*described.protocol,
            described.members.len()
        ),
        ("Stable", "range", 2)
    );
    let all: BTreeSet<NamedPartition> = (described.members.iter())
        .flat_map(|member| member.assignment.iter().cloned())
        .collect();
    assert_eq!(all.len(), 4);
}

#[test]
fn what_is_committed_is_where_the_next_member_begins_and_a_restart_keeps_it() {
    let data = folder();
    let broker_was = broker(data.path(), "0,1", FAST);
    let address = broker_was.native_address().to_string();
    topic(&address);
    let member = Member::start(&address, config());
    eventually("everything is read", || {
        member.seen.lock().unwrap().len() == 40
    });
    member.leave();
    let offsets = admin(&address).group_offsets("g").unwrap();
    let offsets: Vec<_> = offsets.iter().map(|one| one.offset).collect();
    assert_eq!(offsets, [Some(Offset(10)); 4]);
    drop(broker_was);
    let broker = broker(data.path(), "0", FAST);
    let address = broker.native_address().to_string();
    produce(&address, 40..44);
    let member = Member::start(&address, config());
    eventually("what is new", || member.seen.lock().unwrap().len() == 4);
    let mut seen = member.seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, ["40", "41", "42", "43"]);
}

#[test]
fn groups_are_listed_described_reset_and_deleted() {
    let data = folder();
    let broker = broker(data.path(), "0,1", FAST);
    let address = broker.native_address().to_string();
    topic(&address);
    let mut admin = admin(&address);
    assert!(admin.list_groups().unwrap().is_empty());
    let code = |fault: Error| fault.code();
    let unknown = admin.describe_group("g").map_err(code);
    assert_eq!(unknown.unwrap_err(), Some(ErrorCode::GroupIdNotFound));
    let member = Member::start(&address, config());
    eventually("all of them", || member.count() == 4);
    let at = [(NamedPartition::new("t", 1), Offset(3))];
    let refused = admin.set_group_offsets("g", &at).map_err(code);
    assert_eq!(refused.unwrap_err(), Some(ErrorCode::UnknownMemberId));
    let refused = admin.delete_group("g").map_err(code);
    assert_eq!(refused.unwrap_err(), Some(ErrorCode::NonEmptyGroup));
    let partition = [NamedPartition::new("t", 0)];
    let refused = admin.delete_group_offsets("g", &partition).map_err(code);
    assert_eq!(
        refused.unwrap_err(),
        Some(ErrorCode::GroupSubscribedToTopic)
    );
    member.leave();
    let listed = admin.list_groups().unwrap();
    assert_eq!((&*listed[0].group, &*listed[0].state), ("g", "Empty"));
    admin.set_group_offsets("g", &at).unwrap();
    admin.delete_group_offsets("g", &partition).unwrap();
    let offsets = admin.group_offsets("g").unwrap();
    let found = offsets.iter().find(|one| one.partition == at[0].0);
    assert_eq!(found.unwrap().offset, Some(Offset(3)));
    assert!(offsets.iter().all(|one| one.partition != partition[0]));
    let nowhere = [(NamedPartition::new("t", 9), Offset(3))];
    let refused = admin.set_group_offsets("g", &nowhere).map_err(code);
    assert_eq!(
        refused.unwrap_err(),
        Some(ErrorCode::UnknownTopicOrPartition)
    );
    admin.delete_group("g").unwrap();
    assert!(admin.list_groups().unwrap().is_empty());
    assert!(admin.group_offsets("g").unwrap().is_empty());
}

/// What a head may say and no member does: too much, nothing, names that nobody could store.
#[test]
fn heads_that_ask_for_too_much_are_refused_and_the_connection_goes_on() {
    let data = folder();
    let broker = broker(data.path(), "0", FAST);
    let mut raw = Raw::connect(broker.native_address());
    let long = "x".repeat(40_000);
    let groups = |names: &[&str]| {
        let mut heads = HeadBuilder::new();
        let head = heads.build(|builder| {
            let names: Vec<_> = names
                .iter()
                .map(|name| builder.create_string(name))
                .collect();
            let groups = Some(builder.create_vector(&names));
            let args = native::DescribeGroupsRequestArgs { groups };
            native::DescribeGroupsRequest::create(builder, &args)
        });
        head.to_vec()
    };
    let too_many: Vec<String> = (0..10_001).map(|number| number.to_string()).collect();
    let too_many: Vec<&str> = too_many.iter().map(|name| &**name).collect();
    for names in [&[][..], &[&*long], &too_many] {
        raw.send(ApiKey::DescribeGroups, &groups(names), &[]);
        let answer = raw.receive().unwrap();
        let error = read_head::<native::ErrorResponse<'_>>(&answer.head).unwrap();
        assert_eq!(error.error_code(), ErrorCode::InvalidRequest.code());
    }
    let mut heads = HeadBuilder::new();
    let nameless = heads.build(|builder| {
        let group = Some(builder.create_string(""));
        native::FindCoordinatorRequest::create(
            builder,
            &native::FindCoordinatorRequestArgs { group },
        )
    });
    raw.send(ApiKey::FindCoordinator, nameless, &[]);
    let answer = raw.receive().unwrap();
    let found = read_head::<native::FindCoordinatorResponse<'_>>(&answer.head).unwrap();
    assert_eq!(found.error_code(), ErrorCode::InvalidGroupId.code());
}

#[test]
fn a_topic_that_is_deleted_keeps_neither_commits_nor_the_group_waiting() {
    let data = folder();
    let broker = broker(data.path(), "0,1", FAST);
    let address = broker.native_address().to_string();
    topic(&address);
    admin(&address)
        .create_topic(&NewTopic::new("u").partitions(1))
        .unwrap();
    let producer = Producer::connect(&[&address], ProducerConfig::default()).unwrap();
    producer.send("u", ProducerRecord::new("one")).unwrap();
    producer.flush().unwrap();
    let config = GroupConfig {
        // By itself it commits when it gives partitions up, and no sooner.
        auto_commit: Some(Duration::from_secs(3_600)),
        ..config()
    };
    let mut consumer = GroupConsumer::connect(&[&address], config).unwrap();
    consumer.subscribe(&["t", "u"]).unwrap();
    let mut read = 0;
    eventually("everything is read", || {
        read += (&consumer.poll(Duration::from_millis(20)).unwrap())
            .into_iter()
            .count();
        read == 41
    });
    admin(&address).delete_topic("u").unwrap();
    // Nothing tells the member yet, so what it has of the topic is to be committed as well.
    match consumer.commit() {
        Err(Error::Refused(refusal)) => {
            assert_eq!(refusal.code, ErrorCode::UnknownTopicOrPartition);
            assert_eq!(refusal.topic.as_deref(), Some("u"));
        }
        other => panic!("{other:?}"),
    }
    let committed = admin(&address).group_offsets("g").unwrap();
    let committed: Vec<_> = (committed.iter())
        .map(|found| (found.partition.clone(), found.offset))
        .collect();
    let all = (0..4).map(|index| (NamedPartition::new("t", index), Some(Offset(10))));
    assert_eq!(committed, Vec::from_iter(all));
    // It gives everything up for another, and commits what it can.
    let other = Member::start(&address, self::config());
    eventually("both have a share", || {
        let _ = consumer.poll(Duration::from_millis(20));
        other.count() == 2 && consumer.assignment().len() == 2
    });
    consumer.close(Duration::from_secs(10)).unwrap();
}

#[test]
fn a_member_may_wait_for_ever_for_events_and_for_its_leave() {
    let data = folder();
    let broker = broker(data.path(), "0", FAST);
    let address = broker.native_address().to_string();
    topic(&address);
    let mut consumer = GroupConsumer::connect(&[&address], config()).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    assert!(!consumer.poll(Duration::MAX).unwrap().is_empty());
    consumer.close(Duration::MAX).unwrap();
}
