//! A consumer over a network that loses connections at any point and answers in any order (in Kafka's protocol in that of
//! the requests, and with batches cut short), while records are appended and the caller seeks and pauses.
//!
//! Checked: between two seeks of a partition every record is handed out once, in the order of the log, from the place
//! that was asked for; after the faults have stopped everything is handed out.
//!
//! A run follows from its seed. `SIM_SEED=7` runs one, `SIM_RUNS=10000` more of them.

mod support;

use support::Broker;
use support::network::{Network, NetworkWeather};
use tackboard_client::protocol::Random;
use tackboard_client::protocol::consumer::ConsumerMachine;
use tackboard_client::{
    Compression, ConsumerConfig, Offset, PartitionIndex, Protocol, Records, Start, TimestampMs,
};
use tackboard_schema::record_batch::{BatchBuilder, BatchView};

const PARTITIONS: usize = 3;

struct Simulation {
    random: Random,
    network: Network,
    machine: ConsumerMachine,
    broker: Broker,
    appended: [i64; PARTITIONS],
    /// The next offset to be handed out, where it is known.
    next: [Option<i64>; PARTITIONS],
    is_paused: [bool; PARTITIONS],
    handed_out: usize,
}

impl Simulation {
    fn new(seed: u64, protocol: Protocol) -> Self {
        let mut random = Random::new(seed);
        let weather = NetworkWeather {
            cut: random.below(60),
            late: random.below(1000),
            refuse_dial: random.below(300),
        };
        let partition_fetch_bytes_max = 200 + random.below(2000) as u32;
        let mut config = ConsumerConfig {
            partition_fetch_bytes_max,
            prefetch_bytes_max: partition_fetch_bytes_max as usize * (1 + random.below(6) as usize),
            poll_bytes_max: 1 + random.below(4000) as usize,
            ..ConsumerConfig::default()
        };
        config.client.protocol = protocol;
        let mut machine = ConsumerMachine::new(&["broker:7400"], config, seed).unwrap();
        let all =
            [0, 1, 2].map(|partition| ("t", PartitionIndex(partition), Start::Offset(Offset(0))));
        machine.assign(&all);
        Self {
            random,
            network: Network::new(seed ^ 0x1234, protocol, weather),
            machine,
            broker: Broker::new(&[("t", PARTITIONS)]),
            appended: [0; PARTITIONS],
            next: [Some(0); PARTITIONS],
            is_paused: [false; PARTITIONS],
            handed_out: 0,
        }
    }

    fn partition(&mut self) -> usize {
        self.random.below(PARTITIONS as u64) as usize
    }

    /// A batch whose values are their offsets, and whose timestamps too.
    fn append(&mut self) {
        let index = self.partition();
        let mut builder = BatchBuilder::new(TimestampMs(0));
        for _ in 0..=self.random.below(9) {
            let offset = self.appended[index];
            let value = format!("{offset:0width$}", width = 8 + offset as usize % 50);
            builder
                .append(TimestampMs(offset), None, Some(value.as_bytes()), &[])
                .unwrap();
            self.appended[index] += 1;
        }
        let codec = [Compression::None, Compression::Lz4][self.random.below(2) as usize];
        let bytes = builder.finish(None, codec);
        let partition = &mut self.broker.topics.get_mut("t").unwrap()[index];
        partition
            .append(&BatchView::first(&bytes).unwrap())
            .unwrap();
    }

    fn interfere(&mut self) {
        let index = self.partition();
        let partition = PartitionIndex(index as i32);
        let at = self.random.below(self.appended[index] as u64 + 1) as i64;
        match self.random.below(5) {
            0 => {
                let is_paused = !self.is_paused[index];
                self.is_paused[index] = is_paused;
                self.machine.set_paused("t", partition, is_paused).unwrap();
            }
            1 => self.seek(index, Start::Offset(Offset(at)), Some(at)),
            2 => self.seek(index, Start::Earliest, Some(0)),
            // Where the end is depends on when the broker is asked.
            3 => self.seek(index, Start::Latest, None),
            _ if at < self.appended[index] => {
                self.seek(index, Start::Timestamp(TimestampMs(at)), Some(at));
            }
            _ => {}
        }
    }

    fn seek(&mut self, index: usize, start: Start, next: Option<i64>) {
        let partition = PartitionIndex(index as i32);
        self.machine.seek("t", partition, start).unwrap();
        self.next[index] = next;
    }

    fn poll(&mut self) {
        let chunks = self.machine.poll(self.network.now).unwrap();
        let total_bytes_max = 1 + self.random.below(4000) as usize;
        let (records, left) = Records::open(chunks, 1 << 20, total_bytes_max);
        self.machine.give_back(left);
        let records = records.unwrap();
        for record in &records {
            let record = record.unwrap();
            let index = record.partition.0 as usize;
            assert!(
                !self.is_paused[index],
                "nothing comes of a paused partition"
            );
            let next = self.next[index].get_or_insert(record.offset.0);
            assert_eq!(record.offset.0, *next, "no record twice, none left out");
            let value = std::str::from_utf8(record.value.unwrap()).unwrap();
            assert_eq!(value.parse(), Ok(*next), "and each the right one");
            *next += 1;
            self.handed_out += 1;
        }
    }

    fn step(&mut self) {
        self.network.step(&mut self.machine, &mut self.broker);
        if self.random.below(4) == 0 {
            self.poll();
        }
    }

    fn run(&mut self) -> usize {
        for _ in 0..1500 {
            match self.random.below(60) {
                0 => self.interfere(),
                1..10 => self.append(),
                _ => {}
            }
            self.step();
        }
        self.network.weather = NetworkWeather::default();
        for index in 0..PARTITIONS {
            let partition = PartitionIndex(index as i32);
            self.is_paused[index] = false;
            self.machine.set_paused("t", partition, false).unwrap();
            let next = self.next[index].unwrap_or(0);
            self.seek(index, Start::Offset(Offset(next)), Some(next));
        }
        let ends = self.appended.map(Some);
        for _ in 0..50_000 {
            if self.next == ends {
                break;
            }
            self.step();
        }
        assert_eq!(self.next, ends, "everything is handed out in the end");
        for (index, end) in ends.iter().enumerate() {
            let position = self.machine.position("t", PartitionIndex(index as i32));
            assert_eq!(position.unwrap().map(|offset| offset.0), *end);
        }
        self.handed_out
    }
}

fn run_seed(seed: u64, protocol: Protocol) -> usize {
    std::panic::catch_unwind(|| Simulation::new(seed, protocol).run()).unwrap_or_else(|panic| {
        eprintln!("SIM_SEED={seed} {protocol:?}");
        std::panic::resume_unwind(panic);
    })
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok();
    text.map(|text| text.parse().expect("a number"))
}

#[test]
fn every_record_once_and_in_order() {
    run_all(Protocol::Native);
}

#[test]
fn and_in_kafkas_protocol() {
    run_all(Protocol::Kafka);
}

fn run_all(protocol: Protocol) {
    let handed_out: usize = match number("SIM_SEED") {
        Some(seed) => run_seed(seed, protocol),
        None => (0..number("SIM_RUNS").unwrap_or(40))
            .map(|seed| run_seed(seed, protocol))
            .sum(),
    };
    assert!(handed_out > 1000);
}
