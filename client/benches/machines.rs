//! What an event and a batch cost in the client's machines, against the broker of the tests.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use tackboard_client::protocol::consumer::ConsumerMachine;
use tackboard_client::protocol::producer::{ProducerMachine, TopicLookup, TopicSlot};
use tackboard_client::protocol::{Action, ConnectionId, FrameReader, InFrame, Machine, Now};
use tackboard_client::{
    ConsumerConfig, PartitionIndex, ProducerConfig, ProducerRecord, Protocol, Records, Start,
    TimestampMs,
};
use tackboard_schema::record_batch::{BatchBuilder, BatchView, Compression};

#[path = "../../schema/benches/counted/mod.rs"]
mod counted;
#[path = "../tests/support/mod.rs"]
mod support;

use counted::Counter;
use support::Broker;

const TOPIC: &str = "orders";
const WALL: TimestampMs = TimestampMs(1);
const FRAME_BYTES_MAX: u32 = 16 << 20;

/// Events of one batch: with 100 bytes each, a little less than 16 KiB.
const EVENTS: u32 = 150;
const EVENT_BYTES: usize = 100;

/// The way to the broker and back, on which nothing takes time.
struct Wire {
    broker: Broker,
    now: Now,
    readers: HashMap<ConnectionId, FrameReader>,
    answers: FrameReader,
}

impl Wire {
    fn new() -> Self {
        Self {
            broker: Broker::new(&[(TOPIC, 1)]),
            now: Now::default(),
            readers: HashMap::new(),
            answers: FrameReader::new(Protocol::Native, FRAME_BYTES_MAX),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    /// The broker's answers to what a machine sent.
    fn answers(
        &mut self,
        connection: ConnectionId,
        output: impl Iterator<Item = Bytes>,
    ) -> VecDeque<InFrame> {
        let (mut requests, mut frames) = (VecDeque::new(), VecDeque::new());
        let new = || FrameReader::new(Protocol::Native, FRAME_BYTES_MAX);
        let reader = self.readers.entry(connection).or_insert_with(new);
        output.for_each(|bytes| support::network::feed(reader, &bytes, &mut requests));
        for request in requests {
            let answer = self.broker.answer(&request).expect("acks are asked for");
            support::network::feed(&mut self.answers, &answer.frame, &mut frames);
        }
        frames
    }

    /// Carries out what the machine wants until it wants nothing more.
    fn settle(&mut self, machine: &mut impl Machine) {
        machine.advance(self.now);
        let mut output = VecDeque::new();
        while let Some(action) = machine.next_action() {
            match action {
                Action::Open { connection, .. } => machine.opened(connection, self.now),
                Action::Close { .. } => panic!("nothing goes wrong here"),
                Action::Write { connection } => {
                    machine.take_output(connection, &mut output);
                    for frame in self.answers(connection, output.drain(..)) {
                        machine.received(connection, frame, self.now);
                    }
                }
            }
            machine.advance(self.now);
        }
    }
}

/// A producer that knows its topic and has delivered a batch.
fn producer(wire: &mut Wire) -> (ProducerMachine, TopicSlot) {
    let config = ProducerConfig {
        linger: Duration::from_millis(1),
        ..ProducerConfig::default()
    };
    let mut machine = ProducerMachine::new(&["broker:7400"], config, 1).expect("sound settings");
    let slot = loop {
        wire.settle(&mut machine);
        if let TopicLookup::Ready(slot) = machine.topic(TOPIC) {
            break slot;
        }
    };
    (machine, slot)
}

fn append(machine: &mut ProducerMachine, slot: TopicSlot, event: &ProducerRecord<'_>, now: Now) {
    for _ in 0..EVENTS {
        let appended = machine.append(slot, black_box(event), now, WALL);
        black_box(appended.expect("the buffer has room"));
    }
}

/// Has the machine send its batch; returns where to and what.
fn send(machine: &mut ProducerMachine, now: Now, out: &mut VecDeque<Bytes>) -> ConnectionId {
    machine.advance(now);
    let Some(Action::Write { connection }) = machine.next_action() else {
        panic!("a batch is due");
    };
    machine.take_output(connection, out);
    machine.advance(now);
    connection
}

/// Rounds of a batch: appended, sent, answered. Which of the three is counted?
fn produce(counter: &mut Counter, counted: Stage, key: Option<&[u8]>) {
    let mut wire = Wire::new();
    let (mut machine, slot) = producer(&mut wire);
    let value = [7; EVENT_BYTES];
    let event = ProducerRecord {
        key,
        value: Some(&value),
        ..ProducerRecord::default()
    };
    let mut out = VecDeque::new();
    // The first batch fetches the producer's id.
    append(&mut machine, slot, &event, wire.now);
    wire.pass(Duration::from_millis(2));
    wire.settle(&mut machine);
    machine.next_report().expect("it is delivered");
    while counter.goes_on() {
        let now = wire.now;
        match counted {
            Stage::Append => counter.count(EVENTS, || append(&mut machine, slot, &event, now)),
            _ => append(&mut machine, slot, &event, now),
        }
        wire.pass(Duration::from_millis(2));
        let now = wire.now;
        let mut connection = None;
        match counted {
            Stage::Send => counter.count(1, || {
                connection = Some(send(&mut machine, now, &mut out));
            }),
            _ => connection = Some(send(&mut machine, now, &mut out)),
        }
        let connection = connection.expect("it was sent");
        let mut answers = wire.answers(connection, out.drain(..));
        let answer = answers.pop_front().expect("one batch, one answer");
        let mut take_answer = || {
            machine.received(connection, answer.clone(), now);
            machine.advance(now);
            black_box(machine.next_report().expect("the batch is delivered"));
        };
        match counted {
            Stage::Answer => counter.count(1, take_answer),
            _ => take_answer(),
        }
        // The broker of the tests never forgets.
        wire.broker.topics.get_mut(TOPIC).expect("it is there")[0]
            .batches
            .clear();
    }
}

/// What becomes of a batch in a producer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Append,
    Send,
    Answer,
}

fn append_events(counter: &mut Counter) {
    produce(counter, Stage::Append, None);
}

fn append_keyed_events(counter: &mut Counter) {
    produce(counter, Stage::Append, Some(b"N14228"));
}

fn close_and_send_batch(counter: &mut Counter) {
    produce(counter, Stage::Send, None);
}

fn take_answer(counter: &mut Counter) {
    produce(counter, Stage::Answer, None);
}

fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new(WALL);
    for _ in 0..EVENTS {
        let appended = builder.append(WALL, None, Some(&[7; EVENT_BYTES]), &[]);
        appended.expect("far below the format's bound");
    }
    builder.finish(None, Compression::None)
}

/// Rounds of a fetch that finds one batch. What is counted: its answer, or the walk over its records?
fn consume(counter: &mut Counter, counts_records: bool) {
    let mut wire = Wire::new();
    let config = ConsumerConfig::default();
    let (bytes_max, poll_bytes_max) = (config.decompressed_bytes_max, config.poll_bytes_max);
    let mut machine = ConsumerMachine::new(&["broker:7400"], config, 1).expect("sound settings");
    let partition = PartitionIndex(0);
    let start = Start::Offset(tackboard_client::Offset(0));
    machine.assign(&[(TOPIC, partition, start)]);
    let batch = batch();
    let view = BatchView::first(&batch).expect("a sound batch");
    let mut out = VecDeque::new();
    let mut connection = None;
    // To the first fetch, which stays unanswered until a batch is there.
    while connection.is_none() {
        machine.advance(wire.now);
        while let Some(action) = machine.next_action() {
            match action {
                Action::Open { connection, .. } => machine.opened(connection, wire.now),
                Action::Close { .. } => panic!("nothing goes wrong here"),
                Action::Write { connection: at } => {
                    machine.take_output(at, &mut out);
                    let log = &mut wire.broker.topics.get_mut(TOPIC).expect("it is there")[0];
                    log.batches.clear();
                    log.append(&view).expect("no rule is broken");
                    for frame in wire.answers(at, out.drain(..)) {
                        machine.received(at, frame, wire.now);
                    }
                    if machine.has_news() {
                        connection = Some(at);
                    }
                }
            }
            if connection.is_some() {
                break;
            }
            machine.advance(wire.now);
        }
    }
    let connection = connection.expect("it was found");
    let now = wire.now;
    let mut chunks = machine.poll(now).expect("no fault");
    while counter.goes_on() {
        let walk = || {
            let (records, left) = Records::open(chunks.clone(), bytes_max, poll_bytes_max);
            assert!(left.is_empty());
            let records = records.expect("sound batches");
            for record in &records {
                black_box(record.expect("a sound record"));
            }
        };
        match counts_records {
            true => counter.count(EVENTS, walk),
            false => walk(),
        }
        machine.advance(now);
        let Some(Action::Write { .. }) = machine.next_action() else {
            panic!("there is room for another fetch");
        };
        machine.take_output(connection, &mut out);
        machine.advance(now);
        let log = &mut wire.broker.topics.get_mut(TOPIC).expect("it is there")[0];
        log.append(&view).expect("no rule is broken");
        let answer = wire.answers(connection, out.drain(..)).pop_front();
        let answer = answer.expect("one fetch, one answer");
        // Its own offsets go on; what was read before is not needed any more.
        log_keeps_last(&mut wire.broker);
        let mut take = || {
            machine.received(connection, answer.clone(), now);
            chunks = machine.poll(now).expect("no fault");
        };
        match counts_records {
            true => take(),
            false => counter.count(1, take),
        }
        assert_eq!(chunks.len(), 1, "one batch is handed out");
    }
}

fn log_keeps_last(broker: &mut Broker) {
    let log = &mut broker.topics.get_mut(TOPIC).expect("it is there")[0];
    let last = log.batches.len() - 1;
    log.batches.drain(..last);
}

fn walk_records(counter: &mut Counter) {
    consume(counter, true);
}

fn take_fetched_batch(counter: &mut Counter) {
    consume(counter, false);
}

fn main() {
    counted::main(&[
        ("client: append an event", append_events),
        ("client: append an event with a key", append_keyed_events),
        (
            "client: close and send a batch of 16 KiB",
            close_and_send_batch,
        ),
        ("client: take the answer to a batch", take_answer),
        ("client: take a fetched batch of 16 KiB", take_fetched_batch),
        ("client: read a record", walk_records),
    ]);
}
