//! The real binary on a disk that fails: EIO on writes, syncs and reads, short writes, slow and stuck ones.
//!
//! The faults are made in the broker's own disk driver, in builds with the feature `inject-faults`
//! (`broker/src/disk/inject.rs` has the rules):
//!
//! ```text
//! cargo test -p tackboard-broker --features inject-faults --test faults
//! ```
//!
//! Each test ends with a broker that has no faults on the same folder: everything acknowledged is there.

#[path = "support/kafka.rs"]
mod kafka;
#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;
#[path = "support/mod.rs"]
mod wire;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use process::{Broker, folder, serve};
use tackboard_schema::{
    ErrorCode, ProducerEpoch, ProducerId, TimestampMs,
    kafka::{
        FindCoordinatorRequest, InitProducerIdRequest, JoinGroupRequest, JoinGroupRequestProtocol,
        OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
        OffsetFetchRequest, OffsetFetchRequestGroup, ProduceRequest,
    },
    record_batch::{BatchBuilder, Compression},
};
use wire::{Answer, Raw, batch, produced};

const TOPIC: &str = "t";
/// More than so many are never needed until a rule is met.
const ROUNDS_MAX: usize = 200;

/// Requests that are under way: partition and event.
type Sent = BTreeMap<u64, (i32, Vec<u8>)>;

/// A broker with faults, and what it must keep.
struct Faulty {
    data: PathBuf,
    log: PathBuf,
    settings: Vec<&'static str>,
    broker: Broker,
    wire: Raw,
    sent: u64,
    acknowledged: BTreeMap<(i32, i64), Vec<u8>>,
}

impl Faulty {
    /// A topic made without faults, then a broker that meets those of `rules`.
    fn start(place: &Path, partitions: i32, rules: &str, settings: &[&'static str]) -> Faulty {
        let data = place.join("data");
        let mut sets = Vec::new();
        for setting in settings {
            sets.extend(["--set", *setting]);
        }
        let mut broker = Broker::spawn(serve(&data, &sets));
        let mut wire = connect(&broker);
        assert_eq!(wire.create_topic(TOPIC, partitions), 0);
        broker.signal(libc::SIGTERM);
        assert!(broker.child.wait().expect("ends").success());
        let log = place.join("stderr");
        let broker = spawn(&data, &sets, Some(rules), &log);
        Faulty {
            wire: connect(&broker),
            data,
            log,
            settings: sets,
            broker,
            sent: 0,
            acknowledged: BTreeMap::new(),
        }
    }

    /// An event of `length` bytes that no other is equal to.
    fn event(&mut self, length: usize) -> Vec<u8> {
        self.sent += 1;
        let mut event = format!("event {} ", self.sent).into_bytes();
        event.resize(length, b'.');
        event
    }

    /// Appends one event and notes it if it is acknowledged.
    fn produce(&mut self, partition: i32, length: usize) -> Result<(), (ErrorCode, String)> {
        let event = self.event(length);
        let id = (self.wire).send_produce(TOPIC, partition, &batch(1, &[&event]));
        let Some(answer) = self.wire.receive() else {
            panic!("the broker hung up: {}", self.said());
        };
        assert_eq!(answer.id, id);
        self.note(&answer, partition, event)
    }

    /// The same with a broker that may be gone; `None` when it is.
    fn try_produce(&mut self, partition: i32) -> Option<Result<(), (ErrorCode, String)>> {
        let event = self.event(1000);
        let bytes = batch(1, &[&event]);
        (self.wire)
            .try_send_produce(TOPIC, partition, &bytes)
            .ok()?;
        let answer = self.wire.receive()?;
        Some(self.note(&answer, partition, event))
    }

    fn note(
        &mut self,
        answer: &Answer,
        partition: i32,
        event: Vec<u8>,
    ) -> Result<(), (ErrorCode, String)> {
        let offset = produced(answer).map_err(|(code, message)| (named(code), message))?;
        self.acknowledged.insert((partition, offset), event);
        Ok(())
    }

    /// Sends `each` events to every partition at once; how many of each partition were refused.
    fn produce_everywhere(&mut self, partitions: i32, each: usize) -> BTreeMap<i32, usize> {
        let sent = self.send_everywhere(partitions, each).expect("it reads");
        let (refused, is_there) = self.receive_all(sent);
        assert!(is_there, "the broker hung up: {}", self.said());
        refused
    }

    /// The same with a broker that may be gone, one event each; false when it is.
    fn try_produce_everywhere(&mut self, partitions: i32) -> bool {
        let sent = self.send_everywhere(partitions, 1);
        sent.is_ok_and(|sent| self.receive_all(sent).1)
    }

    fn send_everywhere(&mut self, partitions: i32, each: usize) -> std::io::Result<Sent> {
        let mut sent = Sent::new();
        for partition in (0..partitions).flat_map(|partition| std::iter::repeat_n(partition, each))
        {
            let event = self.event(300);
            let bytes = batch(1, &[&event]);
            let id = (self.wire).try_send_produce(TOPIC, partition, &bytes)?;
            sent.insert(id, (partition, event));
        }
        Ok(sent)
    }

    /// How many of each partition were refused, and whether all were answered before the broker hung up.
    fn receive_all(&mut self, mut sent: Sent) -> (BTreeMap<i32, usize>, bool) {
        let mut refused = BTreeMap::new();
        while !sent.is_empty() {
            let Some(answer) = self.wire.receive() else {
                return (refused, false);
            };
            let (partition, event) = sent.remove(&answer.id).expect("answered once");
            if let Err((code, message)) = self.note(&answer, partition, event) {
                assert_eq!(code, ErrorCode::KafkaStorageError, "{message}");
                *refused.entry(partition).or_default() += 1;
            }
        }
        (refused, true)
    }

    fn must_produce(&mut self, partition: i32, length: usize) {
        let produced = self.produce(partition, length);
        produced.unwrap_or_else(|refusal| panic!("partition {partition}: {refusal:?}"));
    }

    /// Appends to all partitions in turn until one refuses, which must be this one.
    fn produce_until_refused(&mut self, partitions: i32, refusing: i32) -> (ErrorCode, String) {
        for _ in 0..ROUNDS_MAX {
            for partition in 0..partitions {
                if let Err(refusal) = self.produce(partition, 1000) {
                    assert_eq!(partition, refusing, "{refusal:?}");
                    return refusal;
                }
            }
        }
        panic!("the fault was never met");
    }

    /// How many faults were made.
    fn faults_made(&self) -> usize {
        self.said().matches("a storage fault on purpose").count()
    }

    /// No file met a fault twice: what failed was not tried again.
    fn nothing_was_repeated(&self) {
        let said = self.said();
        let faults = (said.lines()).filter(|line| line.contains("a storage fault on purpose"));
        let mut files: Vec<&str> = faults
            .filter_map(|line| line.split("path=").nth(1))
            .collect();
        files.sort_unstable();
        let twice = files.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(!files.is_empty() && twice.is_none(), "{said}");
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("its log")
    }

    /// Whatever was acknowledged is served by the broker as it runs now.
    fn holds(&mut self) {
        for ((partition, offset), event) in &self.acknowledged {
            let found = self.wire.fetch(TOPIC, *partition, *offset);
            let found = found.unwrap_or_else(|code| {
                panic!("partition {partition} offset {offset} is refused with {code}")
            });
            let first = found.first().expect("it was acknowledged");
            assert_eq!(
                (first.0, &first.1),
                (*offset, event),
                "partition {partition}"
            );
        }
    }

    /// Kills the broker, starts it without faults and looks for everything; every partition takes events again.
    fn stays_whole_after_a_kill(mut self, partitions: i32) {
        self.broker.signal(libc::SIGKILL);
        self.broker.child.wait().expect("ends");
        self.stays_whole_without_faults(partitions);
    }

    fn stays_whole_without_faults(mut self, partitions: i32) {
        assert!(!self.acknowledged.is_empty());
        self.broker = spawn(&self.data, &self.settings, None, &self.log);
        self.wire = connect(&self.broker);
        self.holds();
        for partition in 0..partitions {
            self.must_produce(partition, 1000);
        }
        self.holds();
    }

    /// Waits until the broker has ended by itself.
    fn ended(&mut self) -> ExitStatus {
        self.broker.child.wait().expect("ends")
    }
}

fn spawn(data: &Path, sets: &[&str], rules: Option<&str>, log: &Path) -> Broker {
    let mut command = serve(data, sets);
    if let Some(rules) = rules {
        command.env("TACKBOARD_INJECT_FAULTS", rules);
    }
    Broker::spawn_logging(command, log)
}

fn named(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).expect("a code of ours")
}

fn connect(broker: &Broker) -> Raw {
    Raw::connect(broker.address.parse().expect("an address"))
}

/// Of three partitions the second one's log meets `rule`, is fenced, and nothing else is touched.
fn only_the_touched_log_is_fenced(rule: &str, settings: &[&'static str]) {
    let place = folder();
    let mut faulty = Faulty::start(place.path(), 3, rule, settings);
    let (code, message) = faulty.produce_until_refused(3, 1);
    assert_eq!(code, ErrorCode::KafkaStorageError, "{message}");
    for _ in 0..20 {
        faulty.must_produce(0, 1000);
        faulty.must_produce(2, 1000);
        let refused = faulty.produce(1, 1000).expect_err("it is fenced");
        assert_eq!(refused.0, ErrorCode::KafkaStorageError, "{}", refused.1);
    }
    // Reads go on, of the fenced log too; and nothing was tried again on its files.
    faulty.holds();
    assert_eq!(faulty.faults_made(), 1, "{}", faulty.said());
    faulty.stays_whole_after_a_kill(3);
}

#[test]
fn a_failed_write_fences_its_log_alone_and_loses_nothing_acknowledged() {
    only_the_touched_log_is_fenced("write *-1/*.log eio after=5", &[]);
}

#[test]
fn a_failed_sync_fences_its_log_alone_and_is_not_repeated() {
    only_the_touched_log_is_fenced("sync *-1/*.log eio after=5", &[]);
}

#[test]
fn a_failed_sync_behind_the_answers_fences_its_log_too() {
    for durability in ["durability.default=interval", "durability.default=written"] {
        // What is only written is synced when its segment is full.
        let settings = [
            durability,
            "log.segment.bytes=1 MiB",
            "message.max.bytes=65536",
        ];
        let place = folder();
        let mut faulty = Faulty::start(place.path(), 2, "sync *-1/*.log eio after=6", &settings);
        let refusal = (0..1000).find_map(|_| {
            faulty.must_produce(0, 20_000);
            faulty.produce(1, 20_000).err()
        });
        let (code, message) = refusal.expect("the fault was never met");
        assert_eq!(code, ErrorCode::KafkaStorageError, "{message}");
        faulty.must_produce(0, 20_000);
        faulty.holds();
        // A new segment's creation and the old one's seal are under way together.
        faulty.nothing_was_repeated();
        faulty.stays_whole_after_a_kill(2);
    }
}

#[test]
fn one_failed_sync_of_many_under_way_touches_nobody_else() {
    // So many logs are dirty at once that syncs are shared.
    const PARTITIONS: i32 = 24;
    let place = folder();
    let rule = "sync *-7/*.log eio after=4";
    let each_by_itself = ["storage.syncfs=never"];
    let mut faulty = Faulty::start(place.path(), PARTITIONS, rule, &each_by_itself);
    let mut refused = 0;
    for _ in 0..20 {
        let mut told = faulty.produce_everywhere(PARTITIONS, 4);
        refused += told.remove(&7).unwrap_or(0);
        assert!(told.is_empty(), "{told:?}");
    }
    assert!(refused > 0, "the fault was never met");
    faulty.holds();
    // What was under way when the first one failed may fail as well; nothing is begun after it.
    let begun_at_once_max = 4;
    let faults = faulty.faults_made();
    assert!(
        (1..=begun_at_once_max).contains(&faults),
        "{}",
        faulty.said()
    );
    faulty.stays_whole_after_a_kill(PARTITIONS);
}

#[test]
fn a_failed_sync_of_all_logs_at_once_ends_the_broker_and_loses_nothing_acknowledged() {
    const PARTITIONS: i32 = 24;
    let place = folder();
    // Slow syncs of files make the other way the cheaper one.
    let rules = "sync *.log delay=5; sync p eio after=3";
    let mut faulty = Faulty::start(place.path(), PARTITIONS, rules, &[]);
    if faulty.said().contains("logs are synced one by one") {
        return process::pass_over("this disk's file system is not synced as a whole");
    }
    let mut rounds = 0..ROUNDS_MAX;
    while rounds.next().is_some() && faulty.try_produce_everywhere(PARTITIONS) {}
    assert!(rounds.next().is_some(), "the fault was never met");
    let status = faulty.ended();
    assert_eq!(status.code(), Some(1), "{status}, {}", faulty.said());
    faulty.stays_whole_without_faults(PARTITIONS);
}

#[test]
fn the_third_fenced_partition_ends_the_broker_and_loses_nothing_acknowledged() {
    let place = folder();
    let mut faulty = Faulty::start(place.path(), 4, "write p/*/*.log eio after=40", &[]);
    let mut fenced = std::collections::BTreeSet::new();
    for partition in (0..4).cycle() {
        match faulty.try_produce(partition) {
            Some(Ok(())) => {}
            Some(Err((code, message))) => {
                assert_eq!(code, ErrorCode::KafkaStorageError, "{message}");
                fenced.insert(partition);
            }
            // The third one may be told before the broker goes, or not.
            None => break,
        }
    }
    let status = faulty.ended();
    assert_eq!(status.code(), Some(1), "{status}, {}", faulty.said());
    assert!((2..=3).contains(&fenced.len()), "{fenced:?}");
    faulty.stays_whole_without_faults(4);
}

#[test]
fn a_ledger_that_cannot_be_written_ends_the_broker_and_loses_nothing_acknowledged() {
    for rule in ["write ledger/* eio after=4", "sync ledger/* eio after=4"] {
        let place = folder();
        let mut faulty = Faulty::start(place.path(), 2, rule, &[]);
        // The ledger is written by the clock, so the end comes between any two events.
        while let Some(outcome) = faulty.try_produce(0) {
            if outcome.is_err() {
                break;
            }
        }
        let status = faulty.ended();
        assert_eq!(status.code(), Some(1), "{status}, {}", faulty.said());
        let said = faulty.said();
        assert!(said.contains("the ledger cannot be written"), "{said}");
        assert_eq!(faulty.faults_made(), 1, "{said}");
        faulty.stays_whole_without_faults(2);
    }
}

#[test]
fn a_write_that_ends_early_at_a_block_is_continued() {
    let place = folder();
    let rule = "write *-0/*.log short=4096 times=20; write *-1/*.log short=8192 times=20";
    let mut faulty = Faulty::start(place.path(), 2, rule, &[]);
    for _ in 0..30 {
        faulty.must_produce(0, 40_000);
        faulty.must_produce(1, 40_000);
    }
    assert_eq!(faulty.faults_made(), 40, "{}", faulty.said());
    faulty.stays_whole_after_a_kill(2);
}

#[test]
fn a_write_that_ends_within_a_block_or_takes_nothing_fences_its_log_alone() {
    for rule in [
        "write *-1/*.log short=512 after=5",
        "write *-1/*.log short=0 after=5",
    ] {
        only_the_touched_log_is_fenced(rule, &[]);
    }
}

#[test]
fn a_segment_that_cannot_be_read_is_refused_and_everything_else_is_served() {
    let place = folder();
    let rule = "read *-1/00000000000000000000.log eio";
    let sets = ["log.segment.bytes=1 MiB", "message.max.bytes=65536"];
    // Without faults first: what is read below has to come from sealed segments.
    let mut faulty = Faulty::start(place.path(), 2, "read none eio", &sets);
    for _ in 0..60 {
        faulty.must_produce(0, 40_000);
        faulty.must_produce(1, 40_000);
    }
    faulty.broker.signal(libc::SIGTERM);
    assert!(faulty.ended().success());
    faulty.broker = spawn(&faulty.data, &faulty.settings, Some(rule), &faulty.log);
    faulty.wire = connect(&faulty.broker);
    let refused = faulty.wire.fetch(TOPIC, 1, 0).expect_err("its disk fails");
    assert_eq!(named(refused), ErrorCode::KafkaStorageError);
    let said = faulty.said();
    assert!(said.contains("a segment could not be read"), "{said}");
    let last = faulty.wire.fetch(TOPIC, 1, 59).expect("another segment");
    assert_eq!(last.first().map(|(offset, _)| *offset), Some(59));
    assert_eq!(faulty.wire.fetch(TOPIC, 0, 0).expect("another log")[0].0, 0);
    // A read fences nothing.
    faulty.must_produce(1, 1000);
    faulty.stays_whole_after_a_kill(2);
}

#[test]
fn a_read_that_readers_would_share_and_that_fails_is_done_again_for_whoever_asks_and_not_kept() {
    let place = folder();
    let sets = ["log.segment.bytes=1 MiB", "message.max.bytes=65536"];
    let mut faulty = Faulty::start(place.path(), 1, "read none eio", &sets);
    for _ in 0..60 {
        faulty.must_produce(0, 40_000);
    }
    faulty.broker.signal(libc::SIGTERM);
    assert!(faulty.ended().success());
    // The first read is that of the shared stretch.
    let rule = "read *-0/00000000000000000000.log eio times=1";
    faulty.broker = spawn(&faulty.data, &faulty.settings, Some(rule), &faulty.log);
    faulty.wire = connect(&faulty.broker);
    for _ in 0..2 {
        let records = faulty.wire.fetch(TOPIC, 0, 0).expect("it can be read now");
        assert!(records.len() > 10 && records[0].0 == 0);
    }
    assert_eq!(faulty.faults_made(), 1, "it was met");
    faulty.stays_whole_after_a_kill(1);
}

#[test]
fn slow_syncs_lose_nothing_and_refuse_nobody() {
    const PARTITIONS: i32 = 16;
    for rule in ["sync * delay=2", "sync * delay=10"] {
        let place = folder();
        let mut faulty = Faulty::start(place.path(), PARTITIONS, rule, &[]);
        for _ in 0..20 {
            let refused = faulty.produce_everywhere(PARTITIONS, 3);
            assert!(refused.is_empty(), "slow is no fault: {refused:?}");
        }
        assert_eq!(faulty.faults_made(), 1, "it was met");
        faulty.broker.signal(libc::SIGTERM);
        assert!(faulty.ended().success());
        faulty.stays_whole_without_faults(PARTITIONS);
    }
}

/// The offsets that one event has, sent over each of the connections in turn with that producer's next numbers, before any
/// answer is waited for.
fn sent_over_each(
    clients: &mut [kafka::Client],
    producer: ProducerId,
    sequences: std::ops::Range<i32>,
) -> Vec<Vec<i64>> {
    let numbered = |sequence| {
        let mut builder = BatchBuilder::new(TimestampMs(0));
        builder
            .append(TimestampMs(0), None, Some(b"event"), &[])
            .expect("fits");
        let stamp = (producer, ProducerEpoch(0), sequence);
        kafka::produce(TOPIC, 0, builder.finish(Some(stamp), Compression::None), -1)
    };
    let sent: Vec<Vec<i32>> = (clients.iter_mut())
        .map(|client| {
            let sequences = sequences.clone();
            sequences
                .map(|sequence| client.send(11, &numbered(sequence)))
                .collect()
        })
        .collect();
    let answered = clients.iter_mut().zip(sent).map(|(client, ids)| {
        let offsets = ids.into_iter().map(|id| {
            let mut told = client.receive::<ProduceRequest>(11, id);
            let told = told.responses.remove(0).partition_responses.remove(0);
            assert_eq!(told.error_code, 0, "{:?}", told.error_message);
            told.base_offset
        });
        offsets.collect()
    });
    answered.collect()
}

#[test]
fn what_is_sent_again_before_it_is_durable_has_one_offset_and_is_there_once() {
    const CONNECTIONS: usize = 3;
    let place = folder();
    let mut faulty = Faulty::start(place.path(), 1, "sync *-0/*.log delay=1500", &[]);
    let connections = |faulty: &Faulty| {
        let address = faulty.broker.kafka_address().parse().expect("an address");
        let clients = (0..CONNECTIONS).map(|_| kafka::Client::at(address));
        clients.collect::<Vec<_>>()
    };
    let mut clients = connections(&faulty);
    let none = InitProducerIdRequest {
        transactional_id: None,
        ..Default::default()
    };
    let producer = ProducerId(clients[0].ask(4, &none).producer_id);
    let told = sent_over_each(&mut clients, producer, 0..3);
    assert_eq!(told, [[0, 1, 2]; CONNECTIONS]);
    assert_eq!(faulty.faults_made(), 1, "the sync was late");
    // Once more after it is durable, and after a kill, together with what is new.
    let told = sent_over_each(&mut clients, producer, 1..4);
    assert_eq!(told, [[1, 2, 3]; CONNECTIONS]);
    faulty.broker.signal(libc::SIGKILL);
    faulty.ended();
    faulty.broker = spawn(&faulty.data, &faulty.settings, None, &faulty.log);
    let mut clients = connections(&faulty);
    let told = sent_over_each(&mut clients, producer, 2..5);
    assert_eq!(told, [[2, 3, 4]; CONNECTIONS]);
    let answer = clients[0].ask(12, &kafka::fetch(TOPIC, &[0], 0, 0));
    let found = kafka::offsets(&answer.responses[0].partitions[0]);
    assert_eq!(found, [0, 1, 2, 3, 4], "each is there once");
}

/// Commits offset 1 of the topic as somebody who assigns partitions to itself; the code of the outcome.
fn commit(client: &mut kafka::Client, group: &str) -> i16 {
    let request = OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: TOPIC.into(),
            partitions: vec![OffsetCommitRequestPartition {
                committed_offset: 1,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    client.ask(8, &request).topics[0].partitions[0].error_code
}

/// Codes of who looks for a group's coordinator, fetches its offsets, and joins it.
fn coordinator(client: &mut kafka::Client, group: &str) -> [i16; 3] {
    let find = FindCoordinatorRequest {
        coordinator_keys: vec![group.into()],
        ..Default::default()
    };
    let offsets = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let join = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    [
        client.ask(4, &find).coordinators[0].error_code,
        client.ask(8, &offsets).groups[0].error_code,
        client.ask(9, &join).error_code,
    ]
}

#[test]
fn a_fenced_partition_of_the_offsets_topic_has_no_coordinator_and_the_others_have() {
    let place = folder();
    // Kafka's hash puts the group `g` into partition 7, and `h` into 8.
    let mut faulty = Faulty::start(place.path(), 1, "write *-7/*.log eio after=5", &[]);
    let address = faulty.broker.kafka_address().parse().expect("an address");
    // Of several connections each core has some.
    let mut clients: Vec<_> = (0..6).map(|_| kafka::Client::at(address)).collect();
    let not_available = ErrorCode::CoordinatorNotAvailable.code();
    let serves = [0, 0, ErrorCode::MemberIdRequired.code()];
    wire::eventually("both groups have a coordinator", || {
        let [g, h] = ["g", "h"].map(|group| coordinator(&mut clients[0], group));
        (g, h) == (serves, serves)
    });
    let mut codes = (0..ROUNDS_MAX).map(|_| commit(&mut clients[0], "g"));
    let refused = codes.find(|code| *code != 0).expect("the fault is met");
    assert_eq!(refused, not_available);
    for client in &mut clients {
        assert_eq!(coordinator(client, "g"), [not_available; 3]);
        assert_eq!(commit(client, "g"), not_available);
        assert_eq!(coordinator(client, "h"), serves);
        assert_eq!(commit(client, "h"), 0);
    }
    assert_eq!(faulty.faults_made(), 1, "{}", faulty.said());

    faulty.broker.signal(libc::SIGKILL);
    faulty.ended();
    faulty.broker = spawn(&faulty.data, &faulty.settings, None, &faulty.log);
    let address = faulty.broker.kafka_address().parse().expect("an address");
    let mut client = kafka::Client::at(address);
    wire::eventually("it has a coordinator again", || {
        coordinator(&mut client, "g") == serves
    });
    assert_eq!(commit(&mut client, "g"), 0);
}

#[test]
fn producers_faster_than_the_disk_wait_unread_within_the_append_budget_and_hold_up_nobody() {
    // 15 % of it are for appends, 9.6 MiB; refusals begin at twice as much.
    const APPEND_BYTES: u64 = (64 << 20) / 100 * 15;
    let place = folder();
    let settings = ["memory.total=64 MiB"];
    let rule = "write *-0/*.log delay=300";
    let faulty = Faulty::start(place.path(), 2, rule, &settings);
    let producers: Vec<_> = (0..6)
        .map(|_| {
            let mut wire = connect(&faulty.broker);
            std::thread::spawn(move || {
                let event = batch(1, &[&[7; 200_000]]);
                for _ in 0..20 {
                    wire.send_produce(TOPIC, 0, &event);
                }
                for _ in 0..20 {
                    let answer = wire.receive().expect("an answer");
                    produced(&answer).expect("it waits, and is refused by nobody");
                }
            })
        })
        .collect();
    let mut other = connect(&faulty.broker);
    let held = || faulty.broker.metric("memory_append_bytes");
    wire::eventually("the budget is used up", || held() >= APPEND_BYTES);
    while producers.iter().any(|producer| !producer.is_finished()) {
        assert!(held() <= 2 * APPEND_BYTES, "{} bytes are held", held());
        assert!(!other.describe_topic(TOPIC).is_empty(), "it is answered");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    for producer in producers {
        producer.join().expect("all of it was acknowledged");
    }
}

/// The bound is 30 s (`IO_TIMEOUT_US`), and the tests wait for it: that of the binary as it is.
fn a_stuck_operation_fences_its_log_alone(rule: &str) {
    let place = folder();
    let mut faulty = Faulty::start(place.path(), 3, rule, &[]);
    let (code, message) = faulty.produce_until_refused(3, 1);
    assert_eq!(code, ErrorCode::RequestTimedOut, "{message}");
    // Each of these waits 10 s for its answer.
    for _ in 0..4 {
        faulty.must_produce(0, 1000);
        faulty.must_produce(2, 1000);
        match faulty.produce(1, 1000).expect_err("the log is stuck") {
            (ErrorCode::KafkaStorageError, _) => break,
            (code, message) => assert_eq!(code, ErrorCode::RequestTimedOut, "{message}"),
        }
    }
    let (code, message) = faulty.produce(1, 1000).expect_err("it is fenced");
    assert_eq!(code, ErrorCode::KafkaStorageError, "{message}");
    assert!(
        faulty.said().contains("no completion within the bound"),
        "{}",
        faulty.said()
    );
    faulty.must_produce(0, 1000);
    faulty.must_produce(2, 1000);
    faulty.holds();
    assert_eq!(faulty.faults_made(), 1, "{}", faulty.said());
    faulty.stays_whole_after_a_kill(3);
}

#[test]
fn a_stuck_write_fences_its_log_alone_after_30_seconds() {
    a_stuck_operation_fences_its_log_alone("write *-1/*.log stuck after=5");
}

#[test]
fn a_stuck_sync_fences_its_log_alone_after_30_seconds() {
    a_stuck_operation_fences_its_log_alone("sync *-1/*.log stuck after=5");
}

#[test]
fn a_stuck_ledger_ends_the_broker_after_30_seconds() {
    let place = folder();
    let sets = ["shutdown.deadline=5 s"];
    let mut faulty = Faulty::start(place.path(), 2, "sync ledger/* stuck after=4", &sets);
    for _ in 0..100 {
        faulty.must_produce(0, 1000);
        faulty.must_produce(1, 1000);
    }
    let status = faulty.ended();
    assert_eq!(
        (status.code(), status.signal()),
        (Some(1), None),
        "{}",
        faulty.said()
    );
    assert!(
        faulty.said().contains("the ledger takes no writes"),
        "{}",
        faulty.said()
    );
    faulty.stays_whole_without_faults(2);
}

#[test]
fn rules_that_cannot_be_read_end_the_start() {
    let place = folder();
    let output = serve(&place.path().join("data"), &[])
        .env("TACKBOARD_INJECT_FAULTS", "sync *.log eoi")
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let stderr = process::text(&output.stderr);
    assert!(stderr.contains("eoi is no effect of Sync"), "{stderr}");
    assert!(!place.path().join("data").exists());
}
