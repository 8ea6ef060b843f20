//! What only Kafka's wire asks of the machines: answers that hold back others, and answers that make no sense.

mod support;

use std::collections::VecDeque;
use std::time::Duration;

use support::network::feed;
use support::{Broker, Partition};
use tackboard_client::protocol::consumer::ConsumerMachine;
use tackboard_client::protocol::producer::{ProducerMachine, TopicLookup};
use tackboard_client::protocol::{
    Action, ConnectionId, FrameReader, InFrame, Machine, Now, Random,
};
use tackboard_client::{
    ConsumerConfig, OffsetReset, PartitionIndex, ProducerConfig, ProducerRecord, Protocol, Start,
    TimestampMs,
};
use tackboard_schema::Offset;
use tackboard_schema::kafka::{ApiKey, RequestFrame};
use tackboard_schema::record_batch::{BatchBuilder, BatchIterator, BatchView, Compression};

const FRAME_BYTES_MAX: u32 = 1 << 20;

/// Base offset, length and leader epoch of a batch.
const PLACE_BYTES: usize = 16;

/// The way to the broker and back: nothing is lost or late, but answers may be kept back, or changed.
struct Road {
    broker: Broker,
    now: Now,
    reader: FrameReader,
    /// Requests of these APIs stay unanswered.
    kept_back: Vec<ApiKey>,
    /// What was asked, in order.
    asked: Vec<ApiKey>,
    damage: Option<Random>,
}

impl Road {
    fn new() -> Self {
        Self {
            broker: Broker::new(&[("t", 2)]),
            now: Now::default(),
            reader: FrameReader::new(Protocol::Kafka, FRAME_BYTES_MAX),
            kept_back: Vec::new(),
            asked: Vec::new(),
            damage: None,
        }
    }

    /// Carries out what the machine wants until it wants nothing more, at most so many things.
    fn settle(&mut self, machine: &mut impl Machine, actions_max: usize) {
        machine.advance(self.now);
        for _ in 0..actions_max {
            match machine.next_action() {
                Some(Action::Open { connection, .. }) => {
                    self.reader = FrameReader::new(Protocol::Kafka, FRAME_BYTES_MAX);
                    machine.opened(connection, self.now);
                }
                Some(Action::Write { connection }) => self.write(machine, connection),
                Some(Action::Close { .. }) => {}
                None => return,
            }
            machine.advance(self.now);
        }
    }

    /// Whether each batch is one of the log, but for its place there, which no checksum covers.
    fn has_stored(&self, batches: &[u8]) -> bool {
        let stored = || self.broker.topics["t"].iter().flat_map(|it| &it.batches);
        BatchIterator::new(batches).all(|batch| {
            let batch = batch.expect("it was checked");
            let covered = &batch.bytes()[PLACE_BYTES..];
            stored().any(|stored| stored.bytes[PLACE_BYTES..] == *covered)
        })
    }

    fn write(&mut self, machine: &mut impl Machine, connection: ConnectionId) {
        let (mut output, mut requests) = (VecDeque::new(), VecDeque::new());
        machine.take_output(connection, &mut output);
        let bytes: Vec<u8> = output.into_iter().flatten().collect();
        feed(&mut self.reader, &bytes, &mut requests);
        for request in requests {
            let InFrame::Kafka(frame) = &request else {
                panic!("a frame of ours");
            };
            let api = RequestFrame::open(frame.bytes().clone()).unwrap().api;
            self.asked.push(api);
            let answer = self.broker.answer(&request).expect("acks are asked for");
            if !self.kept_back.contains(&api) {
                self.deliver(machine, connection, answer.frame);
            }
        }
    }

    fn deliver(&mut self, machine: &mut impl Machine, connection: ConnectionId, bytes: Vec<u8>) {
        let bytes = match &mut self.damage {
            Some(random) => damaged(bytes, random),
            None => bytes,
        };
        // As a transport does: what is no frame ends the connection.
        let mut reader = FrameReader::new(Protocol::Kafka, FRAME_BYTES_MAX);
        let count = bytes.len();
        reader.space()[..count].copy_from_slice(&bytes);
        reader.filled(count);
        while let Ok(Some(frame)) = reader.next_frame() {
            machine.received(connection, frame, self.now);
        }
    }
}

/// The same bytes, or some that no broker sends.
fn damaged(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let below = |random: &mut Random, count: usize| random.below(count as u64) as usize;
    match random.below(4) {
        // Bytes behind the correlation id are others.
        0 | 1 if bytes.len() > 8 => {
            for _ in 0..1 + random.below(4) {
                let at = 8 + below(random, bytes.len() - 8);
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(random, 5)];
            }
        }
        // It ends too early.
        2 => {
            bytes.truncate(8 + below(random, bytes.len() - 7));
            let length = bytes.len() as i32 - 4;
            bytes[..4].copy_from_slice(&length.to_be_bytes());
        }
        _ => {}
    }
    bytes
}

fn append(partition: &mut Partition, value: &[u8]) {
    let mut builder = BatchBuilder::new(TimestampMs(0));
    builder
        .append(TimestampMs(0), None, Some(value), &[])
        .unwrap();
    let bytes = builder.finish(None, Compression::None);
    let view = BatchView::first(&bytes).unwrap();
    partition.append(&view).unwrap();
}

fn consumer(config: ConsumerConfig) -> ConsumerMachine {
    let mut machine = ConsumerMachine::new(&["broker:7400"], config, 1).unwrap();
    let start = Start::Offset(Offset(0));
    machine.assign(&[
        ("t", PartitionIndex(0), start),
        ("t", PartitionIndex(1), start),
    ]);
    machine
}

fn consumer_config() -> ConsumerConfig {
    let mut config = ConsumerConfig {
        partition_fetch_bytes_max: 1000,
        ..ConsumerConfig::default()
    };
    config.client.protocol = Protocol::Kafka;
    config
}

/// The fetch that waits at the end of one partition would hold back the next of the other.
#[test]
fn nothing_is_asked_while_a_full_partition_would_wait_for_the_answer() {
    let mut road = Road::new();
    let partitions = road.broker.topics.get_mut("t").unwrap();
    append(&mut partitions[0], &[7; 2000]);
    append(&mut partitions[1], b"small");
    let mut machine = consumer(consumer_config());
    road.settle(&mut machine, 100);
    let fetches = |road: &Road| {
        let fetches = road.asked.iter().filter(|api| **api == ApiKey::Fetch);
        fetches.count()
    };
    assert_eq!(fetches(&road), 1, "and no other before there is room");
    assert_eq!(machine.poll(road.now).unwrap().len(), 2);
    road.kept_back = vec![ApiKey::Fetch];
    road.settle(&mut machine, 100);
    assert_eq!(fetches(&road), 2, "for both together");
    road.now = road.now.after(Duration::from_millis(100));
    road.settle(&mut machine, 100);
    assert_eq!(fetches(&road), 2, "one at a time");
}

/// Whatever a broker answers, the machines neither panic nor hand out what was not in the log.
#[test]
fn answers_that_make_no_sense_are_faults_and_nothing_else() {
    let (mut read, mut delivered, mut refused) = (0, 0, 0);
    for seed in 0..300 {
        let mut road = Road::new();
        for (index, partition) in road
            .broker
            .topics
            .get_mut("t")
            .unwrap()
            .iter_mut()
            .enumerate()
        {
            append(partition, format!("value {index}").as_bytes());
        }
        road.damage = Some(Random::new(seed));
        let mut config = consumer_config();
        config.offset_reset = OffsetReset::Earliest;
        let mut machine = consumer(config);
        let mut producing = ProducerConfig::default();
        producing.client.protocol = Protocol::Kafka;
        let mut producer = ProducerMachine::new(&["broker:7400"], producing, seed).unwrap();
        for _ in 0..40 {
            road.settle(&mut machine, 20);
            match machine.poll(road.now) {
                Ok(chunks) => {
                    for chunk in chunks {
                        assert!(road.has_stored(&chunk.batches));
                        read += 1;
                    }
                }
                Err(_) => refused += 1,
            }
            road.settle(&mut producer, 20);
            if let TopicLookup::Ready(topic) = producer.topic("t") {
                let partitions = producer.partition_count(topic) as i32;
                let record = ProducerRecord::new(b"x").partition(PartitionIndex(partitions - 1));
                let _ = producer.append(topic, &record, road.now, TimestampMs(1));
            }
            while let Some((_, report)) = producer.next_report() {
                match report.outcome {
                    Ok(_) => delivered += 1,
                    Err(_) => refused += 1,
                }
            }
            road.now = road.now.after(Duration::from_secs(3));
        }
    }
    assert!(
        read > 100 && delivered > 100 && refused > 100,
        "{read} read, {delivered} delivered, {refused} refused"
    );
}
