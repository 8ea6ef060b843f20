//! The binary under consumer groups that have a hard time: kills of the broker amid commits and rebalances, members that
//! come and vanish at random.
//!
//! Members are threads that do what a client of Kafka does. Whatever they are told is held against one [`Audit`]: a
//! partition has one owner in a generation, an offset that was committed never goes back, and nothing is skipped.
//!
//! `ENDURE_SEED` sets the seed of what is random; it is printed. `GROUP_KILL_ROUNDS` and `GROUP_CHURN_SECONDS` set how
//! long it goes on.

#[path = "support/process.rs"]
#[allow(dead_code, reason = "each of the binaries that share it uses a part")]
mod process;
#[path = "support/random.rs"]
mod random;
#[path = "support/kafka.rs"]
mod wire;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use process::{Broker, folder, serve};
use random::Random;
use tackboard_schema::{ErrorCode, kafka::*};
use wire::{Client, batch, fetch, offsets, produce};

const TOPIC: &str = "t";
const GROUP: &str = "g";
const PARTITIONS: usize = 6;
/// Longest wait for anything: several times session and rebalance time-out together, and a start of the broker.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most that a commit may say beside one offset.
const METADATA_BYTES: usize = 4_096;
/// No offset that is committed in earnest comes near it.
const STALE_OFFSET: i64 = 1 << 40;

/// How members live.
#[derive(Clone, Copy, Default)]
struct Habits {
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
    /// Of a thousand turns with a generation, those that end the member.
    vanishes_permille: u64,
    /// The broker is killed now and then: connections may end.
    broker_is_killed: bool,
    /// Bytes that a commit carries beside its offset.
    commit_bytes: usize,
}

/// What is common to all threads of a test.
struct Stage {
    habits: Habits,
    /// Where the broker listens; it moves with each start.
    address: Mutex<SocketAddr>,
    audit: Mutex<Audit>,
    /// Members stay where they are from now on.
    calm: AtomicBool,
    over: AtomicBool,
    /// For each member the turns that it has taken in a generation.
    turns: Vec<AtomicU64>,
    /// Commits of an earlier generation that were refused.
    stale_commits: AtomicU64,
}

/// What was promised, and what came of it.
#[derive(Default)]
struct Audit {
    /// Which member has a partition in a generation.
    owners: BTreeMap<(i32, usize), String>,
    /// The newest generation that anybody was given.
    generation: i32,
    /// For each partition the offset behind the last that somebody has read, all before it having been read too.
    read: [i64; PARTITIONS],
    /// The highest commit that was answered.
    committed: [i64; PARTITIONS],
    /// The offset behind the last event that was acknowledged.
    produced: [i64; PARTITIONS],
}

impl Stage {
    fn new(habits: Habits, members: usize, address: SocketAddr) -> Stage {
        Stage {
            habits,
            address: Mutex::new(address),
            audit: Mutex::default(),
            calm: AtomicBool::new(false),
            over: AtomicBool::new(false),
            turns: (0..members).map(|_| AtomicU64::new(0)).collect(),
            stale_commits: AtomicU64::new(0),
        }
    }

    fn audit(&self) -> MutexGuard<'_, Audit> {
        self.audit.lock().expect("no thread has failed")
    }

    fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// A connection, unless the broker is gone.
    fn connect(&self) -> Option<Client> {
        let address = *self.address.lock().expect("no thread has failed");
        TcpStream::connect(address).ok().map(Client::over)
    }

    /// Every member has taken turns in a generation after this call.
    fn all_members_are_well(&self) {
        let seen: Vec<u64> = self.turns.iter().map(|turns| turns.load(SeqCst)).collect();
        eventually("every member is in its group", || {
            let turns = self.turns.iter().map(|turns| turns.load(SeqCst));
            // The turn that was under way may have begun before.
            turns.zip(&seen).all(|(now, seen)| now >= seen + 2)
        });
    }

    /// Holds what the group is said to have committed against what was promised, of each partition that is named.
    fn is_as_promised(
        &self,
        group: &OffsetFetchResponseGroup,
        floor: &[i64; PARTITIONS],
    ) -> BTreeMap<usize, i64> {
        let found = group.topics[0].partitions.iter().map(|found| {
            let part = found.partition_index as usize;
            let offset = found.committed_offset.max(0);
            assert_eq!(found.error_code, 0);
            assert!(
                offset >= floor[part],
                "partition {part}: {} was committed, {} is found",
                floor[part],
                found.committed_offset
            );
            let read = self.audit().read[part];
            assert!(offset <= read, "partition {part}: {offset} was never read");
            (part, offset)
        });
        found.collect()
    }

    /// Every commit that was answered is found in the broker that listens here.
    fn no_commit_is_lost(&self, address: SocketAddr) {
        let floor = self.audit().committed;
        let mut client = Client::at(address);
        let all: Vec<usize> = (0..PARTITIONS).collect();
        eventually("the group's offsets are told", || {
            let group = client.ask(8, &committed_offsets(&all)).groups.remove(0);
            // It may have yet to be read.
            let is_told = settled(group.error_code).is_some();
            if is_told {
                let found = self.is_as_promised(&group, &floor);
                assert_eq!(found.len(), PARTITIONS);
            }
            is_told
        });
    }

    /// In the newest generation every partition has an owner.
    fn everything_is_owned(&self) {
        eventually("every partition has an owner", || {
            let audit = self.audit();
            let is_owned = |part| audit.owners.contains_key(&(audit.generation, part));
            (0..PARTITIONS).all(is_owned)
        });
    }

    /// Everything that was acknowledged is read by the group and committed.
    fn nothing_is_skipped(&self) {
        eventually("all is read and committed", || {
            let Audit {
                produced,
                committed,
                ..
            } = *self.audit();
            assert!(produced.iter().all(|end| *end > 0), "there was something");
            committed
                .iter()
                .zip(produced)
                .all(|(next, end)| *next >= end)
        });
    }
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn committed_offsets(parts: &[usize]) -> OffsetFetchRequest {
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: GROUP.into(),
            topics: Some(vec![OffsetFetchRequestGroupTopic {
                name: TOPIC.into(),
                partition_indexes: parts.iter().map(|part| *part as i32).collect(),
            }]),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Ends all threads when a test is over, however it ends: they would be waited for.
struct Curtain<'a>(&'a Stage);

impl Drop for Curtain<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
    }
}

/// A member of the group.
struct Member<'a> {
    stage: &'a Stage,
    number: usize,
    random: Random,
    client: Option<Client>,
    /// Empty: the broker gives one.
    id: String,
    /// That it is in, if it is in one.
    generation: Option<i32>,
    /// As it was in before.
    earlier: Option<(String, i32)>,
    /// What it has, and where it reads on.
    positions: BTreeMap<usize, i64>,
    /// Connections of its earlier lives, which are open and silent.
    silent: Vec<Client>,
}

/// What an answer means to a member that does not stop for anything: `None` when it has to begin anew.
fn settled(code: i16) -> Option<()> {
    match ErrorCode::from_code(code).expect("one of Kafka's") {
        ErrorCode::None => Some(()),
        ErrorCode::RebalanceInProgress
        | ErrorCode::IllegalGeneration
        | ErrorCode::UnknownMemberId
        | ErrorCode::NotCoordinator
        | ErrorCode::CoordinatorNotAvailable
        | ErrorCode::CoordinatorLoadInProgress => None,
        other => panic!("no member should hear of {other:?}"),
    }
}

impl<'a> Member<'a> {
    fn new(stage: &'a Stage, number: usize) -> Member<'a> {
        Member {
            stage,
            number,
            random: Random::numbered(number as u64 + 1),
            client: None,
            id: String::new(),
            generation: None,
            earlier: None,
            positions: BTreeMap::new(),
            silent: Vec::new(),
        }
    }

    fn live(mut self) {
        while !self.stage.is_over() {
            if self.client.is_none() {
                self.client = self.stage.connect();
            }
            if self.turn().is_none() {
                // A broker that is starting, or reads its groups, is not asked in a tight loop.
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    fn turn(&mut self) -> Option<()> {
        if self.generation.is_none() {
            self.join()?;
        }
        self.work()?;
        self.stage.turns[self.number].fetch_add(1, SeqCst);
        let vanishes = self.random.below(1000) < self.stage.habits.vanishes_permille;
        if vanishes && !self.stage.calm.load(SeqCst) {
            self.vanish();
        }
        Some(())
    }

    /// `None`: there is no connection any more.
    fn ask<R: Request>(&mut self, version: i16, request: &R) -> Option<R::Response> {
        let answer = self.client.as_mut()?.try_ask(version, request);
        if answer.is_none() {
            let may_be = self.stage.habits.broker_is_killed || self.stage.is_over();
            assert!(may_be, "no answer in time, or the broker hung up");
            self.client = None;
        }
        answer
    }

    /// Heeds what an answer says of the member's own standing.
    fn heed(&mut self, code: i16) -> Option<()> {
        let heeded = settled(code);
        if heeded.is_none() {
            let generation = self.generation.take();
            self.earlier = generation.map(|generation| (self.id.clone(), generation));
            self.positions.clear();
            if code == ErrorCode::UnknownMemberId.code() {
                self.id.clear();
            }
        }
        heeded
    }

    fn join(&mut self) -> Option<()> {
        let request = |id: &str, habits: &Habits| JoinGroupRequest {
            group_id: GROUP.into(),
            session_timeout_ms: habits.session_timeout_ms,
            rebalance_timeout_ms: habits.rebalance_timeout_ms,
            member_id: id.into(),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupRequestProtocol {
                name: "range".into(),
                metadata: b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff"[..].into(),
            }],
            ..Default::default()
        };
        let habits = self.stage.habits;
        let mut joined = self.ask(9, &request(&self.id, &habits))?;
        if joined.error_code == ErrorCode::MemberIdRequired.code() {
            self.id = joined.member_id.as_str().to_owned();
            joined = self.ask(9, &request(&self.id, &habits))?;
        }
        self.heed(joined.error_code)?;
        self.id = joined.member_id.as_str().to_owned();
        // The leader's plan: partitions in turn.
        let mut ids: Vec<_> = joined.members.iter().map(|one| &one.member_id).collect();
        ids.sort_unstable_by_key(|id| id.as_str());
        let plan = ids.iter().enumerate().map(|(place, id)| {
            let parts = (place..PARTITIONS).step_by(ids.len());
            SyncGroupRequestAssignment {
                member_id: (*id).clone(),
                assignment: parts.map(|part| part as u8).collect::<Vec<_>>().into(),
            }
        });
        let request = SyncGroupRequest {
            group_id: GROUP.into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            assignments: plan.collect(),
            ..Default::default()
        };
        let synced = self.ask(5, &request)?;
        self.heed(synced.error_code)?;
        self.claim(joined.generation_id, &synced.assignment);
        self.resume()
    }

    /// Nobody else has what it was given.
    fn claim(&mut self, generation: i32, parts: &[u8]) {
        let mut audit = self.stage.audit();
        // Whoever was slow may claim what he had in an earlier one.
        audit.generation = audit.generation.max(generation);
        for part in parts {
            let owner = (audit.owners)
                .entry((generation, usize::from(*part)))
                .or_insert_with(|| self.id.clone());
            assert_eq!(*owner, self.id, "partition {part} in {generation}");
        }
        drop(audit);
        self.generation = Some(generation);
        self.positions = parts.iter().map(|part| (usize::from(*part), 0)).collect();
    }

    /// Looks up where it reads on.
    fn resume(&mut self) -> Option<()> {
        let parts: Vec<usize> = self.positions.keys().copied().collect();
        if parts.is_empty() {
            return Some(());
        }
        let floor = self.stage.audit().committed;
        let answer = self.ask(8, &committed_offsets(&parts));
        // Whoever does not know where to read on is in no generation.
        let Some(mut answer) = answer else {
            self.generation = None;
            return None;
        };
        let group = answer.groups.remove(0);
        self.heed(group.error_code)?;
        self.positions
            .extend(self.stage.is_as_promised(&group, &floor));
        Some(())
    }

    /// Reads on in one of its partitions, commits, and shows a sign of life.
    fn work(&mut self) -> Option<()> {
        if !self.positions.is_empty() {
            let place = self.random.below(self.positions.len() as u64) as usize;
            let (part, position) = self.positions.iter().nth(place).expect("there");
            self.read_on(*part, *position)?;
        } else {
            thread::sleep(Duration::from_millis(5));
        }
        self.commit_as_before()?;
        let request = HeartbeatRequest {
            group_id: GROUP.into(),
            generation_id: self.generation.expect("it is in one"),
            member_id: self.id.as_str().into(),
            ..Default::default()
        };
        let code = self.ask(4, &request)?.error_code;
        self.heed(code)
    }

    fn read_on(&mut self, part: usize, position: i64) -> Option<()> {
        let answer = self.ask(12, &fetch(TOPIC, &[part as i32], position, 5))?;
        let answer = &answer.responses[0].partitions[0];
        assert_eq!(answer.error_code, 0, "partition {part} at {position}");
        let read = offsets(answer);
        let expected = position..position + read.len() as i64;
        assert!(read.iter().copied().eq(expected.clone()), "{read:?}");
        // Half of it, so that there is something left for whoever comes next.
        let next = position + (read.len() as i64 + 1) / 2;
        let mut audit = self.stage.audit();
        audit.read[part] = audit.read[part].max(next);
        drop(audit);
        if next == position {
            return Some(());
        }
        let (id, generation) = (self.id.clone(), self.generation.expect("it is in one"));
        let code = self.commit(&id, generation, part, next)?;
        if code == 0 {
            let mut audit = self.stage.audit();
            audit.committed[part] = audit.committed[part].max(next);
            self.positions.insert(part, next);
        }
        self.heed(code)
    }

    fn commit(&mut self, id: &str, generation: i32, part: usize, offset: i64) -> Option<i16> {
        // What is said beside one offset is bounded, so the same offset is committed often.
        let said = self.stage.habits.commit_bytes;
        let partition = OffsetCommitRequestPartition {
            partition_index: part as i32,
            committed_offset: offset,
            committed_metadata: Some("m".repeat(said.min(METADATA_BYTES)).as_str().into()),
            ..Default::default()
        };
        let times = said.div_ceil(METADATA_BYTES).max(1);
        let request = OffsetCommitRequest {
            group_id: GROUP.into(),
            generation_id_or_member_epoch: generation,
            member_id: id.into(),
            topics: vec![OffsetCommitRequestTopic {
                name: TOPIC.into(),
                partitions: vec![partition; times],
            }],
            ..Default::default()
        };
        let answer = self.ask(8, &request)?;
        let mut codes = answer.topics[0].partitions.iter().map(|one| one.error_code);
        let code = codes.next().expect("it was asked for");
        assert!(codes.all(|other| other == code), "one commit, one outcome");
        Some(code)
    }

    /// Commits once more what it did in a generation that is over.
    fn commit_as_before(&mut self) -> Option<()> {
        let Some((id, generation)) = self.earlier.take() else {
            return Some(());
        };
        if self.generation == Some(generation) && self.id == id {
            return Some(());
        }
        let code = self.commit(&id, generation, 0, STALE_OFFSET)?;
        assert_ne!(code, 0, "a commit of generation {generation} is taken");
        assert!(settled(code).is_none());
        self.stage.stale_commits.fetch_add(1, SeqCst);
        Some(())
    }

    /// Ends this member: it leaves, hangs up, or says nothing any more. Another takes its place in this thread.
    fn vanish(&mut self) {
        match self.random.below(3) {
            0 => {
                let request = LeaveGroupRequest {
                    group_id: GROUP.into(),
                    members: vec![LeaveGroupRequestMember {
                        member_id: self.id.as_str().into(),
                        ..Default::default()
                    }],
                    ..Default::default()
                };
                self.ask(5, &request);
            }
            1 => self.client = None,
            _ => self.silent.extend(self.client.take()),
        }
        let generation = self.generation.take().expect("it was in one");
        self.earlier = Some((std::mem::take(&mut self.id), generation));
        self.positions.clear();
    }
}

/// Appends to all partitions until the test is over.
fn feed(stage: &Stage) {
    let mut random = Random::numbered(99);
    let mut client = None;
    while !stage.calm.load(SeqCst) && !stage.is_over() {
        let Some(connected) = client.as_mut() else {
            client = stage.connect();
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let part = random.below(PARTITIONS as u64) as usize;
        let request = produce(TOPIC, part as i32, batch(&["event"]), -1);
        let Some(mut told) = connected.try_ask(11, &request) else {
            client = None;
            continue;
        };
        let told = told.responses.remove(0).partition_responses.remove(0);
        assert_eq!(told.error_code, 0, "{:?}", told.error_message);
        let mut audit = stage.audit();
        audit.produced[part] = audit.produced[part].max(told.base_offset + 1);
        drop(audit);
        thread::sleep(Duration::from_millis(2));
    }
}

fn start(data: &Path, log: &Path) -> (Broker, SocketAddr) {
    let mut command = serve(data, &[]);
    for set in [
        "group.initial.rebalance.delay.ms=0",
        "group.min.session.timeout.ms=100 ms",
    ] {
        command.args(["--set", set]);
    }
    let broker = Broker::spawn_logging(command, log);
    let address = broker.kafka_address().parse().expect("an address");
    (broker, address)
}

/// A broker with the topic, whose groups are served.
fn start_afresh(place: &Path) -> (Broker, SocketAddr) {
    let (broker, address) = start(&place.join("data"), &place.join("log"));
    let mut client = Client::at(address);
    assert_eq!(client.create(TOPIC, PARTITIONS as i32), 0);
    eventually("the group has a coordinator", || {
        let request = FindCoordinatorRequest {
            coordinator_keys: vec![GROUP.into()],
            ..Default::default()
        };
        client.ask(4, &request).coordinators.remove(0).error_code == 0
    });
    (broker, address)
}

fn said_nothing_bad(log: &Path) {
    let said = std::fs::read_to_string(log).expect("its log");
    assert!(!said.contains("panicked"), "{said}");
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// What is waited for before a kill.
enum Moment {
    /// So many milliseconds at most.
    Within(u64),
    /// The group's topic is being written anew; the first kill then comes at once, the others within so many
    /// milliseconds.
    InRewriting(u64),
}

impl Moment {
    fn wait(&self, round: u64, random: &mut Random, log: &Path) {
        let within_ms = match self {
            Moment::Within(within_ms) => *within_ms,
            Moment::InRewriting(within_ms) => {
                eventually("a rewriting begins", || rewritings(log).0 > 0);
                if round == 0 { 1 } else { *within_ms }
            }
        };
        thread::sleep(Duration::from_millis(random.below(within_ms)));
    }
}

/// How many rewritings of a group's topic have begun, and how many have ended, by the broker's log.
fn rewritings(log: &Path) -> (usize, usize) {
    let said = std::fs::read_to_string(log).expect("its log");
    let count = |what| said.matches(what).count();
    (count("is being written anew"), count("was written anew"))
}

/// Kills the broker again and again under a group of four. Returns the last, and how many were killed in a rewriting.
fn outlives_every_kill(
    rounds: u64,
    moment: &Moment,
    commit_bytes: usize,
    place: &Path,
) -> (Broker, usize) {
    const MEMBERS: usize = 4;
    let mut random = Random::new();
    let (mut broker, address) = start_afresh(place);
    let habits = Habits {
        session_timeout_ms: 2_000,
        rebalance_timeout_ms: 4_000,
        vanishes_permille: 20,
        broker_is_killed: true,
        commit_bytes,
    };
    let stage = Stage::new(habits, MEMBERS, address);
    let mut in_rewriting = 0;
    let log = place.join("log");
    thread::scope(|scope| {
        let curtain = Curtain(&stage);
        for number in 0..MEMBERS {
            let member = Member::new(&stage, number);
            scope.spawn(|| member.live());
        }
        scope.spawn(|| feed(&stage));
        for round in 0..rounds {
            // Every other kill meets a group that may not have found itself again.
            if round % 2 == 0 {
                stage.all_members_are_well();
            }
            moment.wait(round, &mut random, &log);
            broker.signal(libc::SIGKILL);
            broker.child.wait().expect("ends");
            said_nothing_bad(&log);
            let (begun, ended) = rewritings(&log);
            in_rewriting += usize::from(begun > ended);
            let (again, address) = start(&place.join("data"), &log);
            broker = again;
            // Before the members know where it is, and commit anew what it may have lost.
            stage.no_commit_is_lost(address);
            *stage.address.lock().expect("no thread has failed") = address;
        }
        stage.calm.store(true, SeqCst);
        stage.all_members_are_well();
        stage.everything_is_owned();
        stage.nothing_is_skipped();
        drop(curtain);
    });
    stage.no_commit_is_lost(*stage.address.lock().expect("no thread has failed"));
    let audit = stage.audit();
    assert!(audit.generation > 1, "it has rebalanced");
    eprintln!(
        "{rounds} kills, {} generations, committed {:?}",
        audit.generation, audit.committed
    );
    said_nothing_bad(&log);
    (broker, in_rewriting)
}

#[test]
fn a_group_outlives_every_kill_of_the_broker_amid_commits_and_rebalances() {
    let rounds = from_environment("GROUP_KILL_ROUNDS", 8);
    outlives_every_kill(rounds, &Moment::Within(700), 0, folder().path());
}

#[test]
fn a_group_outlives_every_kill_of_the_broker_while_its_topic_is_written_anew() {
    let rounds = from_environment("GROUP_KILL_ROUNDS", 8) / 2;
    let place = folder();
    // That is looked after once a second, and takes two or three of them.
    let moment = Moment::InRewriting(2_000);
    let (broker, in_rewriting) =
        outlives_every_kill(rounds, &moment, 64 * METADATA_BYTES, place.path());
    assert!(in_rewriting > 0, "no kill met a rewriting");
    let address = broker.kafka_address().parse().expect("an address");
    let request = ListOffsetsRequest {
        topics: vec![ListOffsetsRequestTopic {
            name: "__consumer_offsets".into(),
            partitions: vec![ListOffsetsRequestPartition {
                // Where Kafka's hash puts the group.
                partition_index: 103 % 16,
                timestamp: -2,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let mut client = Client::at(address);
    eventually("it is written anew", || {
        client.ask(5, &request).topics[0].partitions[0].offset > 0
    });
}

#[test]
fn a_group_whose_members_come_and_vanish_at_random_never_stands_still() {
    const MEMBERS: usize = 8;
    let seconds = from_environment("GROUP_CHURN_SECONDS", 15);
    Random::new();
    let place = folder();
    let (_broker, address) = start_afresh(place.path());
    let habits = Habits {
        session_timeout_ms: 1_000,
        rebalance_timeout_ms: 2_000,
        vanishes_permille: 20,
        broker_is_killed: false,
        commit_bytes: 0,
    };
    let stage = Stage::new(habits, MEMBERS, address);
    thread::scope(|scope| {
        let curtain = Curtain(&stage);
        for number in 0..MEMBERS {
            let member = Member::new(&stage, number);
            scope.spawn(|| member.live());
        }
        scope.spawn(|| feed(&stage));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(seconds) {
            stage.all_members_are_well();
        }
        stage.calm.store(true, SeqCst);
        stage.all_members_are_well();
        stage.everything_is_owned();
        stage.nothing_is_skipped();
        drop(curtain);
    });
    assert!(stage.stale_commits.load(SeqCst) > 0, "some were tried");
    let audit = stage.audit();
    eprintln!(
        "{} generations, {} stale commits refused, committed {:?}",
        audit.generation,
        stage.stale_commits.load(SeqCst),
        audit.committed
    );
    said_nothing_bad(&place.path().join("log"));
}
