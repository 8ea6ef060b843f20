//! How long consumer groups take to find themselves: members at a broker's door for clients of Kafka, a thread each, that
//! join, lead, follow and show signs of life as a client does, and read nothing.
//!
//! Used by the case `group-rebalance` of `perf/cases`, which starts the broker; one round, its figures printed as JSON.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tackboard_schema::{
    ErrorCode, PartitionIndex,
    consumer_protocol::{Assignment, Partitions, Subscription},
    kafka::*,
};

/// Kafka's clients say 3 s of 45 s by default: then nobody hears of a rebalance sooner.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// After so long a member asks again what it was told to ask again: Kafka's `retry.backoff.ms`.
const AGAIN: Duration = Duration::from_millis(100);
const SESSION: Duration = Duration::from_secs(6);
const REBALANCE: Duration = Duration::from_secs(30);
/// Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer that is believed.
const ANSWER_BYTES_MAX: i32 = 16 << 20;

/// Which broker.
#[derive(clap::Args)]
pub struct GroupsArguments {
    /// Its listener for clients of Kafka.
    address: SocketAddr,
}

/// Measures one round.
///
/// # Errors
/// When the broker refuses, or a group doesn't find itself in time.
pub fn run(arguments: &GroupsArguments) -> Result<()> {
    let mut figures = few(arguments.address)?;
    figures.extend(many(arguments.address)?);
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

type Figures = BTreeMap<&'static str, f64>;

/// Three members over four partitions, a fourth, and what becomes of one that falls silent.
fn few(address: SocketAddr) -> Result<Figures> {
    let mut group = Group::new(address, "few", 4)?;
    (0..3).for_each(|_| group.add());
    let three = group.settle()?;
    group.add();
    let four = group.settle()?;
    let killed = Instant::now();
    group.kill(0);
    let left = group.settle()?;
    let moved = left.at.duration_since(killed).as_secs_f64() - SESSION.as_secs_f64();
    Ok(Figures::from([
        ("of_3_over_4_most", three.most()),
        ("of_3_over_4_least", three.least()),
        ("rebalances_of_3", f64::from(three.generation)),
        ("of_4_over_4_most", four.most()),
        (
            "rebalances_of_a_fourth",
            f64::from(four.generation - three.generation),
        ),
        ("moved_s_after_session", moved),
    ]))
}

/// A fiftieth member joins 49 others, over 200 partitions.
fn many(address: SocketAddr) -> Result<Figures> {
    let mut group = Group::new(address, "many", 200)?;
    (0..49).for_each(|_| group.add());
    group.settle()?;
    let begun = Instant::now();
    group.add();
    let settled = group.settle()?;
    let took = settled.at.duration_since(begun).as_secs_f64();
    Ok(Figures::from([
        ("rebalance_s_50_over_200", took),
        ("of_50_over_200_most", settled.most()),
        ("of_50_over_200_least", settled.least()),
    ]))
}

/// A group, and the topic of its own name that it reads.
struct Group {
    address: SocketAddr,
    name: &'static str,
    partitions: i32,
    /// Whoever is dropped here falls silent at once.
    members: BTreeMap<usize, Sender<()>>,
    added: usize,
    reports: Receiver<Result<Report>>,
    reporting: Sender<Result<Report>>,
    generation: i32,
}

/// A member was told what it has.
struct Report {
    member: usize,
    generation: i32,
    partitions: Vec<PartitionIndex>,
    at: Instant,
}

/// All members have been told, in one generation.
struct Settled {
    generation: i32,
    /// How many partitions each has.
    counts: Vec<usize>,
    /// When the last was told.
    at: Instant,
}

impl Settled {
    fn most(&self) -> f64 {
        self.counts.iter().max().map_or(0.0, |count| *count as f64)
    }

    fn least(&self) -> f64 {
        self.counts.iter().min().map_or(0.0, |count| *count as f64)
    }
}

impl Group {
    fn new(address: SocketAddr, name: &'static str, partitions: i32) -> Result<Group> {
        let mut connection = Connection::open(address)?;
        let topic = CreateTopicsRequestTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: -1,
            ..Default::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![topic],
            timeout_ms: PATIENCE.as_millis() as i32,
            ..Default::default()
        };
        let code = connection.ask(7, &request)?.topics[0].error_code;
        ensure!(code == 0, "topic {name} is refused with {code}");
        let deadline = Instant::now() + PATIENCE;
        let request = FindCoordinatorRequest {
            coordinator_keys: vec![name.into()],
            ..Default::default()
        };
        while connection.ask(4, &request)?.coordinators[0].error_code != 0 {
            ensure!(Instant::now() < deadline, "the group has no coordinator");
            thread::sleep(Duration::from_millis(20));
        }
        let (reporting, reports) = mpsc::channel();
        Ok(Group {
            address,
            name,
            partitions,
            members: BTreeMap::new(),
            added: 0,
            reports,
            reporting,
            generation: 0,
        })
    }

    fn add(&mut self) {
        let (life, ending) = mpsc::channel();
        let mut member = Member {
            number: self.added,
            address: self.address,
            group: self.name,
            partitions: self.partitions,
            id: String::new(),
        };
        self.members.insert(self.added, life);
        self.added += 1;
        let reporting = self.reporting.clone();
        thread::spawn(move || {
            if let Err(error) = member.live(&reporting, &ending) {
                // Nobody hears it when the round is over.
                let _ = reporting.send(Err(error));
            }
        });
    }

    fn kill(&mut self, member: usize) {
        self.members.remove(&member);
    }

    /// Waits until all members were told what they have in one generation, a later one than before.
    fn settle(&mut self) -> Result<Settled> {
        let deadline = Instant::now() + PATIENCE;
        let mut told: BTreeMap<i32, BTreeMap<usize, Report>> = BTreeMap::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let report = self.reports.recv_timeout(left);
            let report = report.with_context(|| format!("{} has not settled", self.name))??;
            let (member, generation) = (report.member, report.generation);
            if generation <= self.generation {
                continue;
            }
            let reports = told.entry(generation).or_default();
            reports.insert(member, report);
            if !reports.keys().eq(self.members.keys()) {
                continue;
            }
            self.generation = generation;
            let mut owned: Vec<_> = (reports.values())
                .flat_map(|report| report.partitions.iter().map(|partition| partition.0))
                .collect();
            owned.sort_unstable();
            ensure!(
                owned.iter().copied().eq(0..self.partitions),
                "each partition has one owner, but {owned:?}"
            );
            let counts = reports.values().map(|report| report.partitions.len());
            return Ok(Settled {
                generation,
                counts: counts.collect(),
                at: (reports.values().map(|report| report.at).max()).expect("there are some"),
            });
        }
    }
}

/// A member, by itself on its thread.
struct Member {
    number: usize,
    address: SocketAddr,
    group: &'static str,
    partitions: i32,
    id: String,
}

impl Member {
    /// Until the other end of `ending` is gone; then it falls silent, without a word to the group.
    fn live(&mut self, reporting: &Sender<Result<Report>>, ending: &Receiver<()>) -> Result<()> {
        let mut connection = Connection::open(self.address)?;
        loop {
            let Some(report) = self.join(&mut connection)? else {
                continue;
            };
            let request = HeartbeatRequest {
                group_id: self.group.into(),
                generation_id: report.generation,
                member_id: self.id.as_str().into(),
                ..Default::default()
            };
            // Nobody listens any more when the round is over.
            let _ = reporting.send(Ok(report));
            loop {
                if ending.recv_timeout(HEARTBEAT) != Err(RecvTimeoutError::Timeout) {
                    return Ok(());
                }
                let code = connection.ask(4, &request)?.error_code;
                if self.must_join(code)? {
                    break;
                }
            }
        }
    }

    /// What it has in the next generation; `None` if that is over before it was told.
    fn join(&mut self, connection: &mut Connection) -> Result<Option<Report>> {
        let mut joined = connection.ask(9, &self.request())?;
        if joined.error_code == ErrorCode::MemberIdRequired.code() {
            self.id = joined.member_id.as_str().to_owned();
            joined = connection.ask(9, &self.request())?;
        }
        if self.must_join(joined.error_code)? {
            return Ok(None);
        }
        let request = SyncGroupRequest {
            group_id: self.group.into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            assignments: self.plan(&joined.members),
            ..Default::default()
        };
        let synced = connection.ask(5, &request)?;
        if self.must_join(synced.error_code)? {
            return Ok(None);
        }
        let mut assignment = Assignment::decode(&synced.assignment)?;
        let partitions = assignment.partitions.remove(self.group);
        Ok(Some(Report {
            member: self.number,
            generation: joined.generation_id,
            partitions: partitions.unwrap_or_default(),
            at: Instant::now(),
        }))
    }

    fn request(&self) -> JoinGroupRequest {
        let subscription = Subscription {
            topics: vec![self.group.to_owned()],
            ..Default::default()
        };
        JoinGroupRequest {
            group_id: self.group.into(),
            session_timeout_ms: SESSION.as_millis() as i32,
            rebalance_timeout_ms: REBALANCE.as_millis() as i32,
            member_id: self.id.as_str().into(),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupRequestProtocol {
                name: "range".into(),
                metadata: subscription.encode().into(),
            }],
            ..Default::default()
        }
    }

    /// The leader's plan, ranges one after the other; nothing from whoever does not lead, who is told of no members.
    fn plan(&self, members: &[JoinGroupResponseMember]) -> Vec<SyncGroupRequestAssignment> {
        let mut ids: Vec<_> = members.iter().map(|member| &member.member_id).collect();
        ids.sort_unstable_by_key(|id| id.as_str());
        let count = ids.len() as i32;
        let ranges = (0..count).map(|place| {
            let begin = |place: i32| {
                let more = self.partitions % count;
                place * (self.partitions / count) + place.min(more)
            };
            (begin(place)..begin(place + 1)).map(PartitionIndex)
        });
        let parts = ids.iter().zip(ranges).map(|(id, range)| {
            let partitions = Partitions::from([(self.group.to_owned(), range.collect())]);
            SyncGroupRequestAssignment {
                member_id: (*id).clone(),
                assignment: Assignment { partitions }.encode().into(),
            }
        });
        parts.collect()
    }

    /// Whether it has to join again.
    fn must_join(&mut self, code: i16) -> Result<bool> {
        match ErrorCode::from_code(code) {
            Some(ErrorCode::None) => Ok(false),
            Some(ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration) => Ok(true),
            Some(ErrorCode::UnknownMemberId) => {
                self.id.clear();
                Ok(true)
            }
            Some(
                ErrorCode::CoordinatorNotAvailable
                | ErrorCode::CoordinatorLoadInProgress
                | ErrorCode::NotCoordinator,
            ) => {
                std::thread::sleep(AGAIN);
                Ok(true)
            }
            _ => bail!("a member of {} is refused with {code}", self.group),
        }
    }
}

/// A connection with one request under way.
struct Connection {
    stream: TcpStream,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).context("no connection to the broker")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { stream })
    }

    fn ask<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        let mut frame = Vec::new();
        encode_request(&mut frame, version, 1, Some(&"perf".into()), request)?;
        self.stream.write_all(&frame)?;
        let mut length = [0; LENGTH_PREFIX_BYTES];
        self.stream.read_exact(&mut length)?;
        let length = i32::from_be_bytes(length);
        ensure!(
            (0..=ANSWER_BYTES_MAX).contains(&length),
            "an answer of {length} bytes"
        );
        let mut frame = vec![0; length as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(decode_response(frame.into(), version)?)
    }
}
