//! A network between one machine and the broker of `support`: everything in it happens in steps that follow from a seed.
//!
//! Connections end at any point; what was sent on one that ended arrives late or never; requests of one connection are
//! carried out in order, and answered in any order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tackboard_client::protocol::{
    Action, ConnectionId, FrameReader, InFrame, Machine, Now, Random,
};
use tackboard_client::{Error, Protocol};

use super::Broker;

/// Longest frame either side takes.
const FRAME_BYTES_MAX: u32 = 1 << 26;

/// How much goes wrong, in parts of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkWeather {
    /// A step ends a connection.
    pub cut: u64,
    /// The requests under way on a connection that ends arrive all the same, some time.
    pub late: u64,
    /// A dial fails.
    pub refuse_dial: u64,
}

struct Link {
    reader: FrameReader,
    /// Whether the client still believes in it.
    is_open: bool,
    /// What arrived at the broker's side and was not looked at.
    requests: VecDeque<InFrame>,
    /// Answers under way.
    answers: Vec<Vec<u8>>,
    /// Answers to fetches that found nothing, and when they leave.
    parked: Vec<(Now, Vec<u8>)>,
    address: Arc<str>,
}

pub struct Network {
    /// Which of several clients of one broker this is.
    pub client: usize,
    /// How long a fetch that finds nothing waits.
    pub fetch_wait: Duration,
    pub random: Random,
    pub weather: NetworkWeather,
    pub now: Now,
    protocol: Protocol,
    links: BTreeMap<ConnectionId, Link>,
    answer_reader: FrameReader,
}

impl Network {
    pub fn new(seed: u64, protocol: Protocol, weather: NetworkWeather) -> Self {
        Self {
            client: 0,
            fetch_wait: Duration::ZERO,
            random: Random::new(seed),
            weather,
            now: Now::default(),
            protocol,
            links: BTreeMap::new(),
            answer_reader: FrameReader::new(protocol, FRAME_BYTES_MAX),
        }
    }

    fn happens(&mut self, parts: u64) -> bool {
        self.random.below(1000) < parts
    }

    /// Advances the machine and carries out what it asks for.
    pub fn turn(&mut self, machine: &mut impl Machine) {
        machine.advance(self.now);
        while let Some(action) = machine.next_action() {
            match action {
                Action::Open {
                    connection,
                    address,
                } => {
                    let link = Link {
                        reader: FrameReader::new(self.protocol, FRAME_BYTES_MAX),
                        is_open: true,
                        requests: VecDeque::new(),
                        answers: Vec::new(),
                        parked: Vec::new(),
                        address,
                    };
                    self.links.insert(connection, link);
                    if self.happens(self.weather.refuse_dial) {
                        self.close(machine, connection);
                    } else {
                        machine.opened(connection, self.now);
                    }
                }
                Action::Write { connection } => {
                    let mut output = VecDeque::new();
                    machine.take_output(connection, &mut output);
                    if let Some(link) = self.links.get_mut(&connection) {
                        let bytes = output.iter();
                        bytes.for_each(|bytes| feed(&mut link.reader, bytes, &mut link.requests));
                    }
                }
                Action::Close { connection } => self.forget(connection),
            }
            machine.advance(self.now);
        }
    }

    /// The client's end of the connection is gone; requests under way may still arrive.
    fn forget(&mut self, connection: ConnectionId) {
        let arrives = self.happens(self.weather.late);
        if let Some(link) = self.links.get_mut(&connection) {
            link.is_open = false;
            link.answers.clear();
            link.parked.clear();
            if !arrives {
                link.requests.clear();
            }
        }
    }

    fn close(&mut self, machine: &mut impl Machine, connection: ConnectionId) {
        self.forget(connection);
        let address = self.links[&connection].address.clone();
        let detail = "cut".into();
        machine.closed(
            connection,
            Error::Disconnected { address, detail },
            self.now,
        );
    }

    /// One thing happens somewhere.
    pub fn step(&mut self, machine: &mut impl Machine, broker: &mut Broker) {
        self.links
            .retain(|_, link| link.is_open || !link.requests.is_empty());
        let is_busy =
            |link: &Link| !link.requests.is_empty() || (link.is_open && !link.answers.is_empty());
        let links = self.links.iter();
        let busy: Vec<_> = links
            .filter(|(_, link)| is_busy(link))
            .map(|(id, _)| *id)
            .collect();
        let open: Vec<_> = self.links.keys().copied().collect();
        if self.happens(self.weather.cut) && !open.is_empty() {
            let victim = open[self.random.below(open.len() as u64) as usize];
            if self.links[&victim].is_open {
                self.close(machine, victim);
            }
        } else if !busy.is_empty() && self.random.below(4) > 0 {
            let connection = busy[self.random.below(busy.len() as u64) as usize];
            self.move_bytes(machine, broker, connection);
        } else {
            self.pass_time(machine, busy.is_empty());
        }
        self.turn(machine);
    }

    fn move_bytes(
        &mut self,
        machine: &mut impl Machine,
        broker: &mut Broker,
        connection: ConnectionId,
    ) {
        let link = self.links.get_mut(&connection).expect("it was just found");
        let has_answers = link.is_open && !link.answers.is_empty();
        if has_answers && (link.requests.is_empty() || self.random.below(2) == 0) {
            let answer = match self.protocol {
                Protocol::Native => {
                    let chosen = self.random.below(link.answers.len() as u64) as usize;
                    link.answers.swap_remove(chosen)
                }
                // Its answers come in order.
                Protocol::Kafka => link.answers.remove(0),
            };
            let mut frames = VecDeque::new();
            feed(&mut self.answer_reader, &answer, &mut frames);
            for frame in frames {
                machine.received(connection, frame, self.now);
            }
        } else if let Some(request) = link.requests.pop_front() {
            broker.caller = (self.client, connection);
            match broker.answer(&request) {
                Some(answer) if link.is_open => {
                    if answer.is_empty_fetch && !self.fetch_wait.is_zero() {
                        link.parked
                            .push((self.now.after(self.fetch_wait), answer.frame));
                    } else {
                        link.answers.push(answer.frame);
                    }
                }
                _ => {}
            }
        }
    }

    /// The broker answers a request that it took before.
    pub fn deliver(&mut self, connection: ConnectionId, answer: Vec<u8>) {
        if let Some(link) = self.links.get_mut(&connection).filter(|link| link.is_open) {
            link.answers.push(answer);
        }
    }

    /// When a fetch that waits is answered next.
    pub fn next_answer(&self) -> Option<Now> {
        let links = self.links.values();
        let parked = links.flat_map(|link| link.parked.iter().map(|(due, _)| *due));
        parked.min()
    }

    /// Something moves or breaks, without any time passing; false if there was nothing to move.
    pub fn stir(&mut self, machine: &mut impl Machine, broker: &mut Broker) -> bool {
        self.links
            .retain(|_, link| link.is_open || !link.requests.is_empty());
        let now = self.now;
        for link in self.links.values_mut() {
            let due = link.parked.extract_if(.., |(due, _)| *due <= now);
            link.answers.extend(due.map(|(_, answer)| answer));
        }
        let is_busy =
            |link: &Link| !link.requests.is_empty() || (link.is_open && !link.answers.is_empty());
        let busy: Vec<_> = (self.links.iter())
            .filter(|(_, link)| is_busy(link))
            .map(|(id, _)| *id)
            .collect();
        let Some(index) = (busy.len() as u64).checked_sub(1) else {
            self.turn(machine);
            return false;
        };
        let chosen = busy[self.random.below(index + 1) as usize];
        match self.happens(self.weather.cut) && self.links[&chosen].is_open {
            true => self.close(machine, chosen),
            false => self.move_bytes(machine, broker, chosen),
        }
        self.turn(machine);
        true
    }

    /// To the next deadline when nothing else can happen, else a little.
    fn pass_time(&mut self, machine: &impl Machine, is_idle: bool) {
        let next = machine.next_deadline().unwrap_or(self.now);
        self.now = match is_idle {
            true => next.max(self.now.after(Duration::from_micros(1))),
            false => self
                .now
                .after(Duration::from_micros(self.random.below(2000))),
        };
    }

    /// What is still under way arrives, though nobody hears the answers.
    pub fn drain(&mut self, broker: &mut Broker) {
        for link in self.links.values_mut() {
            for request in std::mem::take(&mut link.requests) {
                broker.answer(&request);
            }
        }
    }
}

pub fn feed(reader: &mut FrameReader, mut bytes: &[u8], frames: &mut VecDeque<InFrame>) {
    while !bytes.is_empty() {
        let space = reader.space();
        let count = space.len().min(bytes.len());
        space[..count].copy_from_slice(&bytes[..count]);
        reader.filled(count);
        bytes = &bytes[count..];
        while let Some(frame) = reader.next_frame().expect("framing is never lost here") {
            frames.push_back(frame);
        }
    }
}
