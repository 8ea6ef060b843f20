//! What a stage is, as every load core is told it, and what the cores let others see of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tackboard_client::{ClientConfig, ConsumerConfig, ProducerConfig, Protocol};
use tackboard_schema::record_batch::Compression;
use tackboard_schema::{Acks, Durability};

use crate::verdict::checker::Expected;
use crate::workload::keys::KeyChooser;
use crate::workload::schedule::Pace;
use crate::workload::size::SizeSpec;

/// How the clients of a stage are set.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Addresses to start from.
    pub brokers: Vec<String>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Size at which a batch is sent.
    pub batch_bytes: u32,
    /// Longest wait of an event for others in its batch.
    pub linger: Duration,
    /// Batches in flight per producer and partition.
    pub in_flight: u32,
    /// Bytes that a producer holds until they are acknowledged.
    pub buffer_bytes: u64,
    /// Acknowledgement level.
    pub acks: Option<Acks>,
    /// Durability that requests ask for.
    pub durability: Option<Durability>,
    /// Codec of the batches.
    pub compression: Compression,
}

impl ClientSettings {
    /// Settings of both.
    pub fn client(&self) -> ClientConfig {
        ClientConfig {
            client_id: "tackboard-loadgen".into(),
            protocol: self.protocol,
            ..ClientConfig::default()
        }
    }

    /// Settings of the client library's producer. It never gives a batch up by itself: the stage does, when nothing has
    /// moved for long.
    pub fn producer(&self) -> ProducerConfig {
        ProducerConfig {
            client: self.client(),
            acks: self.acks,
            durability: self.durability,
            compression: self.compression,
            batch_bytes: self.batch_bytes as usize,
            linger: self.linger,
            in_flight_max: self.in_flight as usize,
            buffer_bytes_max: self.buffer_bytes as usize,
            delivery_timeout: Duration::from_secs(365 * 86_400),
            ..ProducerConfig::default()
        }
    }

    /// Settings of the client library's consumer.
    pub fn consumer(&self) -> ConsumerConfig {
        ConsumerConfig {
            client: self.client(),
            ..ConsumerConfig::default()
        }
    }
}

/// Everything that a load core needs to know of a stage. Times are ns of the monotonic clock.
#[derive(Debug)]
pub struct StageOrder {
    /// Whether producers run.
    pub sends: bool,
    /// Whether consumers run.
    pub reads: bool,
    /// Whether what consumers read is events of this run, to be checked.
    pub checks: bool,
    /// The topic; it exists.
    pub topic: String,
    /// What the events are.
    pub expected: Expected,
    /// Sizes of synthetic events.
    pub size: SizeSpec,
    /// Keys of synthetic events.
    pub keys: KeyChooser,
    /// Partition of each key: of each synthetic one by number, or of each key of the input.
    pub partition_of_key: Vec<u16>,
    /// How events are spread over time.
    pub pace: Pace,
    /// When the first event may be due.
    pub start_ns: u64,
    /// Events that are due before are left out of the figures.
    pub warm_ns: u64,
    /// No event is due at or after this time.
    pub stop_ns: u64,
    /// How many events are sent, all producers together.
    pub count: u64,
    /// Consumers, all cores together.
    pub consumers: u32,
    /// Where each partition is read from.
    pub start_offsets: Vec<i64>,
    /// How clients are set.
    pub client: ClientSettings,
    /// Start of all random sequences.
    pub seed: u64,
    /// Time without any progress after which whoever waits gives up.
    pub give_up: Duration,
    /// Load cores.
    pub cores: u32,
    /// What changes while the stage runs.
    pub control: Arc<StageControl>,
}

impl StageOrder {
    /// The events of one producer, out of all.
    pub fn count_of(&self, producer: u32) -> u64 {
        let producers = u64::from(self.expected.producers);
        self.count / producers + u64::from(u64::from(producer) < self.count % producers)
    }

    /// Whether numbers that are shared out in turn, to producers or consumers, belong to a load core.
    pub fn is_on(&self, number: u32, core: u32) -> bool {
        number % self.cores == core
    }
}

/// What the main thread tells the load cores while a stage runs. Written by the main thread.
#[derive(Debug, Default)]
pub struct StageControl {
    /// Send no more events.
    pub stop_sending: AtomicBool,
    /// Consumers end without waiting for more.
    pub stop_reading: AtomicBool,
    /// Where each partition ends; consumers stop there once [`StageControl::ends_known`] is set.
    pub ends: std::sync::OnceLock<Vec<i64>>,
    /// Rises whenever a snapshot is asked for.
    pub snapshots: AtomicU32,
}

impl StageControl {
    /// Asks every load core for a snapshot.
    pub fn ask_for_snapshot(&self) {
        self.snapshots.fetch_add(1, Ordering::Release);
    }
}

/// Events that a load core counts, for whoever watches. Written by that core alone.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CoreCounters {
    /// Events handed to producers.
    pub sent: AtomicU64,
    /// Bytes of their keys and values.
    pub sent_bytes: AtomicU64,
    /// Events acknowledged.
    pub acknowledged: AtomicU64,
    /// Bytes of their keys and values.
    pub acknowledged_bytes: AtomicU64,
    /// Events read.
    pub read: AtomicU64,
    /// Producers that are done.
    pub producers_done: AtomicU64,
}

/// Adds to a counter that has one writer.
pub fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}
