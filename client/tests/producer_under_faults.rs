//! A producer over a network that loses connections at any point, delivers what was sent on them late or never, and
//! answers in any order, to a broker that refuses batches, or appends them and says otherwise.
//!
//! Checked at the end of every run, for each partition:
//! 1. no record is in the log twice;
//! 2. records that were acknowledged are in the log, where the report says, and in the order of sending;
//! 3. records that failed otherwise than with an unknown outcome are not in the log;
//! 4. every record is reported once, reports come in the order of sending, and with nothing refused for good, nothing
//!    fails while time is left.
//!
//! A run follows from its seed. `SIM_SEED=7` runs one, `SIM_RUNS=100000` more of them.

mod support;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{Broker, Fault, FaultRule};
use tackboard_client::protocol::producer::{AppendError, ProducerMachine, TopicLookup};
use tackboard_client::protocol::{
    Action, ConnectionId, FrameReader, InFrame, Machine, Now, Random,
};
use tackboard_client::{
    Compression, Error, ErrorCode, Keyless, PartitionIndex, Partitioner, ProducerConfig,
    ProducerRecord,
};
use tackboard_schema::{Offset, TimestampMs};

const PARTITIONS: usize = 3;

/// How much goes wrong, in parts of a thousand.
#[derive(Clone, Copy, Debug)]
struct Weather {
    /// A step ends a connection.
    cut: u64,
    /// The requests under way on a connection that ends arrive all the same, some time.
    late: u64,
    /// A dial fails.
    refuse_dial: u64,
    /// A batch is refused for now.
    refuse: u64,
    /// A batch is appended, and said not to be, or not to be known.
    lie: u64,
    /// A batch is refused for good.
    poison: u64,
    /// The broker has a fault of its own.
    crash: u64,
}

struct Link {
    reader: FrameReader,
    /// Whether the client still believes in it.
    is_open: bool,
    /// What arrived at the broker's side and was not looked at.
    requests: VecDeque<InFrame>,
    /// Answers under way.
    answers: Vec<Vec<u8>>,
    address: Arc<str>,
}

struct Simulation {
    random: Random,
    weather: Weather,
    now: Now,
    machine: ProducerMachine,
    broker: Broker,
    /// What goes wrong with the next batches; shared with the broker.
    is_stormy: Arc<Mutex<bool>>,
    // Ordered, so that a run follows from its seed.
    links: BTreeMap<ConnectionId, Link>,
    answer_reader: FrameReader,
    order: Vec<ConnectionId>,
    /// Values by batch, in the order of sending.
    batches: HashMap<u64, Vec<(u32, Vec<u8>)>>,
    sent: [u64; PARTITIONS],
    fates: Vec<Fate>,
    last_reported: [Option<u64>; PARTITIONS],
}

struct Fate {
    partition: u32,
    value: Vec<u8>,
    outcome: Result<Option<Offset>, Error>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut part = |most: u64| {
            if random.below(2) == 0 {
                0
            } else {
                random.below(most)
            }
        };
        let weather = Weather {
            cut: part(60),
            late: part(1000),
            refuse_dial: part(500),
            refuse: part(200),
            lie: part(100),
            poison: part(20),
            crash: part(10),
        };
        let mut config = ProducerConfig {
            linger: Duration::from_millis(random.below(6)),
            in_flight_max: 1 + random.below(5) as usize,
            compression: if random.below(4) == 0 {
                Compression::Lz4
            } else {
                Compression::None
            },
            partitioner: Partitioner::Spread(Keyless::RoundRobin),
            batch_bytes: 1024,
            buffer_bytes_max: 1 << 14,
            delivery_timeout: Duration::from_secs(if random.below(3) == 0 { 2 } else { 600 }),
            ..ProducerConfig::default()
        };
        config.client.request_timeout = Duration::from_millis(500 + random.below(3000));
        let is_stormy = Arc::new(Mutex::new(true));
        let mut broker = Broker::new(&[("t", PARTITIONS)]);
        broker.fault = faults(weather, is_stormy.clone(), Random::new(seed ^ 0xabcd));
        Self {
            machine: ProducerMachine::new(&["broker:7400"], config, seed).unwrap(),
            random,
            weather,
            now: Now::default(),
            broker,
            is_stormy,
            links: BTreeMap::new(),
            answer_reader: FrameReader::new(1 << 26),
            order: Vec::new(),
            batches: HashMap::new(),
            sent: [0; PARTITIONS],
            fates: Vec::new(),
            last_reported: [None; PARTITIONS],
        }
    }

    fn happens(&mut self, parts: u64) -> bool {
        *self.is_stormy.lock().unwrap() && self.random.below(1000) < parts
    }

    /// Advances the machine and carries out what it asks for.
    fn turn(&mut self) {
        self.machine.advance(self.now);
        while let Some(action) = self.machine.next_action() {
            match action {
                Action::Open {
                    connection,
                    address,
                } => {
                    let link = Link {
                        reader: FrameReader::new(1 << 26),
                        is_open: true,
                        requests: VecDeque::new(),
                        answers: Vec::new(),
                        address,
                    };
                    self.links.insert(connection, link);
                    self.order.push(connection);
                    if self.happens(self.weather.refuse_dial) {
                        self.close(connection);
                    } else {
                        self.machine.opened(connection, self.now);
                    }
                    self.machine.advance(self.now);
                }
                Action::Write { connection } => {
                    let mut output = VecDeque::new();
                    self.machine.take_output(connection, &mut output);
                    self.machine.advance(self.now);
                    let Some(link) = self.links.get_mut(&connection) else {
                        continue;
                    };
                    for bytes in output {
                        feed(&mut link.reader, &bytes, &mut link.requests);
                    }
                }
                Action::Close { connection } => self.forget(connection),
            }
        }
        self.take_reports();
    }

    /// The client's end of the connection is gone; requests under way may still arrive.
    fn forget(&mut self, connection: ConnectionId) {
        let arrives = self.happens(self.weather.late);
        if let Some(link) = self.links.get_mut(&connection) {
            link.is_open = false;
            link.answers.clear();
            if !arrives {
                link.requests.clear();
            }
        }
    }

    fn close(&mut self, connection: ConnectionId) {
        self.forget(connection);
        let address = self.links[&connection].address.clone();
        let fault = Error::Disconnected {
            address,
            detail: "cut".into(),
        };
        self.machine.closed(connection, fault, self.now);
    }

    /// One thing happens somewhere.
    fn step(&mut self) {
        self.order.retain(|id| {
            let link = &self.links[id];
            link.is_open || !link.requests.is_empty()
        });
        let busy: Vec<ConnectionId> = {
            let is_busy = |id: &&ConnectionId| {
                let link = &self.links[*id];
                !link.requests.is_empty() || (link.is_open && !link.answers.is_empty())
            };
            self.order.iter().filter(is_busy).copied().collect()
        };
        if self.happens(self.weather.cut) && !self.order.is_empty() {
            let victim = self.order[self.random.below(self.order.len() as u64) as usize];
            if self.links[&victim].is_open {
                self.close(victim);
            }
        } else if !busy.is_empty() && self.random.below(4) > 0 {
            let connection = busy[self.random.below(busy.len() as u64) as usize];
            self.move_bytes(connection);
        } else {
            self.pass_time(busy.is_empty());
        }
        self.turn();
    }

    fn move_bytes(&mut self, connection: ConnectionId) {
        let link = self.links.get_mut(&connection).unwrap();
        let answers = link.is_open && !link.answers.is_empty();
        if answers && (link.requests.is_empty() || self.random.below(2) == 0) {
            let answer = link
                .answers
                .swap_remove(self.random.below(link.answers.len() as u64) as usize);
            let mut frames = VecDeque::new();
            feed(&mut self.answer_reader, &answer, &mut frames);
            for frame in frames {
                self.machine.received(connection, frame, self.now);
            }
        } else if let Some(request) = link.requests.pop_front() {
            // Requests of one connection are carried out in order; answers leave in any order.
            if let Some(answer) = self.broker.answer(&request)
                && link.is_open
            {
                link.answers.push(answer.frame);
            }
        }
    }

    /// To the next deadline when nothing else can happen, else a little.
    fn pass_time(&mut self, is_idle: bool) {
        let next = self.machine.next_deadline().unwrap_or(self.now);
        self.now = match is_idle {
            true => next.max(self.now.after(Duration::from_micros(1))),
            false => self
                .now
                .after(Duration::from_micros(self.random.below(2000))),
        };
    }

    fn send_some(&mut self) {
        let TopicLookup::Ready(topic) = self.machine.topic("t") else {
            return;
        };
        for _ in 0..self.random.below(12) {
            let partition = self.random.below(PARTITIONS as u64) as usize;
            let mut value = format!("{partition} {:06} ", self.sent[partition]).into_bytes();
            value.resize(value.len() + self.random.below(300) as usize, b'x');
            let record = ProducerRecord::new(&value).partition(PartitionIndex(partition as i32));
            match self
                .machine
                .append(topic, &record, self.now, TimestampMs(1))
            {
                Ok(appended) => {
                    let batch = self.batches.entry(appended.batch.0).or_default();
                    assert_eq!(batch.len(), appended.index as usize);
                    batch.push((partition as u32, value));
                    self.sent[partition] += 1;
                }
                Err(AppendError::BufferFull) => return,
                Err(AppendError::Failed(fault)) => panic!("{fault}"),
            }
        }
    }

    fn take_reports(&mut self) {
        while let Some((batch, report)) = self.machine.next_report() {
            let values = self
                .batches
                .remove(&batch.0)
                .expect("a batch is reported once");
            assert_eq!(values.len(), report.record_count as usize);
            let partition = report.partition.0 as usize;
            assert!(
                self.last_reported[partition].is_none_or(|last| last < batch.0),
                "reports are in order"
            );
            self.last_reported[partition] = Some(batch.0);
            for (index, (partition, value)) in values.into_iter().enumerate() {
                let outcome = report.outcome.clone();
                let outcome = outcome.map(|offset| offset.map(|offset| offset.plus(index as i64)));
                self.fates.push(Fate {
                    partition,
                    value,
                    outcome,
                });
            }
        }
    }

    fn run(&mut self) {
        self.turn();
        for _ in 0..2000 {
            if self.random.below(3) == 0 {
                self.send_some();
            }
            self.step();
        }
        // The storm is over: what is left goes out, or is given up on.
        *self.is_stormy.lock().unwrap() = false;
        let mark = self.machine.flush();
        for _ in 0..200_000 {
            if self.machine.is_flushed(mark) {
                break;
            }
            self.step();
        }
        assert!(
            self.machine.is_flushed(mark),
            "everything is reported once the faults have stopped"
        );
        // What is still under way from connections that are gone arrives last.
        for connection in self.order.clone() {
            let link = self.links.get_mut(&connection).unwrap();
            for request in std::mem::take(&mut link.requests) {
                self.broker.answer(&request);
            }
        }
        self.check();
    }

    fn check(&self) {
        assert!(self.batches.is_empty() && self.machine.buffered_bytes() == 0);
        let partitions = &self.broker.topics["t"];
        for (index, partition) in partitions.iter().enumerate() {
            let log = partition.values();
            let places: HashMap<&[u8], Offset> = log
                .iter()
                .map(|(offset, value)| (&value[..], *offset))
                .collect();
            assert_eq!(places.len(), log.len(), "no record is in the log twice");
            let mut last_acknowledged = None;
            for fate in self
                .fates
                .iter()
                .filter(|fate| fate.partition as usize == index)
            {
                let place = places.get(&fate.value[..]).copied();
                match &fate.outcome {
                    Ok(offset) => {
                        assert!(place.is_some(), "what was acknowledged is in the log");
                        assert!(
                            offset.is_none() || *offset == place,
                            "and where the report says"
                        );
                        assert!(place > last_acknowledged, "and in the order of sending");
                        last_acknowledged = place;
                    }
                    Err(Error::UnknownOutcome { .. }) => {}
                    Err(fault) => assert_eq!(place, None, "what failed is not in the log: {fault}"),
                }
                if let Err(fault) = &fate.outcome {
                    let is_calm = self.weather.poison + self.weather.crash == 0;
                    let has_time = self.machine.config().delivery_timeout > Duration::from_secs(10);
                    assert!(
                        !(is_calm && has_time),
                        "nothing fails that can be repeated: {fault}"
                    );
                }
            }
        }
    }
}

fn faults(weather: Weather, is_stormy: Arc<Mutex<bool>>, mut random: Random) -> FaultRule {
    Box::new(move |_, _, batch| {
        // Refused for good is what is in the batch, not what the weather is.
        let hash = tackboard_client::protocol::producer::murmur2(&batch.bytes()[61..]);
        if u64::from(hash % 1000) < weather.poison {
            return Fault::Refuse(ErrorCode::InvalidRecord);
        }
        if !*is_stormy.lock().unwrap() {
            return Fault::None;
        }
        let draw = random.below(1000);
        let refusals = [
            ErrorCode::StorageFull,
            ErrorCode::NotLeaderOrFollower,
            ErrorCode::OverBudget,
        ];
        let lies = [
            ErrorCode::RequestTimedOut,
            ErrorCode::NotEnoughReplicasAfterAppend,
        ];
        if draw < weather.refuse {
            Fault::Refuse(refusals[random.below(3) as usize])
        } else if draw < weather.refuse + weather.lie {
            Fault::AppendAndSay(lies[random.below(2) as usize])
        } else if draw < weather.refuse + weather.lie + weather.crash {
            match random.below(2) {
                0 => Fault::Refuse(ErrorCode::UnknownServerError),
                _ => Fault::AppendAndSay(ErrorCode::UnknownServerError),
            }
        } else {
            Fault::None
        }
    })
}

fn feed(reader: &mut FrameReader, mut bytes: &[u8], frames: &mut VecDeque<InFrame>) {
    while !bytes.is_empty() {
        let space = reader.space();
        let count = space.len().min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        reader.filled(count);
        bytes = &bytes[count..];
        while let Some(frame) = reader.next_frame().unwrap() {
            frames.push_back(frame);
        }
    }
}

/// What happened over all runs, by record.
#[derive(Debug, Default)]
struct Seen {
    acknowledged: usize,
    unknown: usize,
    refused: usize,
    not_sent: usize,
}

impl Seen {
    fn add(&mut self, fates: &[Fate]) {
        for fate in fates {
            match &fate.outcome {
                Ok(_) => self.acknowledged += 1,
                Err(Error::UnknownOutcome { .. }) => self.unknown += 1,
                Err(Error::NotSent { .. }) => self.not_sent += 1,
                Err(_) => self.refused += 1,
            }
        }
    }
}

fn run_seed(seed: u64) -> Vec<Fate> {
    let outcome = std::panic::catch_unwind(|| {
        let mut simulation = Simulation::new(seed);
        simulation.run();
        simulation.fates
    });
    outcome.unwrap_or_else(|panic| {
        eprintln!(
            "SIM_SEED={seed} weather {:?}",
            Simulation::new(seed).weather
        );
        std::panic::resume_unwind(panic);
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("a number"))
}

#[test]
fn nothing_acknowledged_is_lost_reordered_or_doubled() {
    if let Some(seed) = number("SIM_SEED") {
        run_seed(seed);
        return;
    }
    let mut seen = Seen::default();
    (0..number("SIM_RUNS").unwrap_or(100)).for_each(|seed| seen.add(&run_seed(seed)));
    // Runs in which little happens would prove little.
    assert!(
        seen.acknowledged > 10_000 && seen.unknown > 100 && seen.refused > 100,
        "{seen:?}"
    );
}

#[test]
fn the_same_seed_runs_the_same_way() {
    let run = |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.run();
        simulation
            .fates
            .into_iter()
            .map(|fate| (fate.value, fate.outcome.is_ok()))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
