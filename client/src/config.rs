//! Settings of the clients, their units, defaults and bounds.
//!
//! Everything has a default that is right for a start: `ProducerConfig::default()` delivers every record once,
//! in order, acknowledged by the level that the topic or the broker asks for.

use std::collections::BTreeSet;
use std::time::Duration;

use tackboard_schema::record_batch::Compression;
use tackboard_schema::{Acks, Durability};

use crate::error::{Error, Result};
use crate::protocol::group::assignor::Assignor;
use crate::protocol::producer::Partitioner;

/// A protocol to speak with brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Our own (`docs/protocol.md`).
    #[default]
    Native,
    /// Kafka's: any broker that speaks it will do. It knows no durability of a request, so
    /// [`ProducerConfig::durability`] must be left to the topic, and no description of a topic as ours has one.
    Kafka,
}

/// What all clients have in common: names, time-outs, back-off.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Shown in the broker's logs. Default: `tackboard-client`.
    pub client_id: String,
    /// What the port that is dialled speaks. Default: our own.
    pub protocol: Protocol,
    /// Longest time to establish a connection. Default: 5 s.
    pub connect_timeout: Duration,
    /// Longest time without an answer before a connection counts as lost. Default: 30 s.
    pub request_timeout: Duration,
    /// Longest time that a call on behalf of the caller takes, retries included: admin calls, finding out about a
    /// topic, waiting for room in the producer's buffer. Default: 60 s.
    pub call_timeout: Duration,
    /// First pause after a failure; doubles with every further one. Default: 20 ms.
    pub backoff: Duration,
    /// Longest pause after a failure. Default: 1 s.
    pub backoff_max: Duration,
    /// Age at which what is known about topics is asked for again. Default: 5 min.
    pub metadata_age_max: Duration,
    /// Longest frame taken from a broker, in bytes. Bounds the memory that a broker can make the client use for
    /// one answer. Default: 64 MiB.
    pub frame_bytes_max: u32,
    /// Talk to the listener that any core serves even where a partition's own core has one. Default: false.
    pub any_core_only: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            client_id: "tackboard-client".into(),
            protocol: Protocol::Native,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            backoff: Duration::from_millis(20),
            backoff_max: Duration::from_secs(1),
            metadata_age_max: Duration::from_secs(300),
            frame_bytes_max: 64 << 20,
            any_core_only: false,
        }
    }
}

/// Settings of a producer.
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    /// Names, time-outs, back-off.
    pub client: ClientConfig,
    /// Replicas that must hold a record before it counts as delivered. `None` (default): what the topic, else the
    /// broker, is configured with.
    pub acks: Option<Acks>,
    /// When a replica's copy counts; may raise what the topic asks for, never lower it. `None` (default): the topic's.
    pub durability: Option<Durability>,
    /// Whether a record is appended once even when its request has to be repeated. Needs an answer to every request,
    /// so it is off whenever acks is 0. Default: true.
    pub idempotent: bool,
    /// Codec of the batches. Default: none.
    pub compression: Compression,
    /// Size, in bytes before compression, at which a batch is sent without waiting any longer. 1 KiB to 1 GiB; the
    /// broker's own bound holds too. Default: 128 KiB.
    pub batch_bytes: usize,
    /// Longest time that a record waits for others to share its batch. Zero: a batch is sent as soon as the connection
    /// has room for it. Default: 5 ms.
    pub linger: Duration,
    /// Batches in flight per partition, 1 to 5: a broker remembers the last five of each producer. Default: 5.
    pub in_flight_max: usize,
    /// Records, in bytes, that the producer holds until they are delivered; a full one makes senders wait.
    /// Default: 64 MiB.
    pub buffer_bytes_max: usize,
    /// Time from `send` until a record is given up on. Default: 120 s.
    pub delivery_timeout: Duration,
    /// How records without an explicit partition find theirs.
    pub partitioner: Partitioner,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self {
            client: ClientConfig::default(),
            acks: None,
            durability: None,
            idempotent: true,
            compression: Compression::None,
            batch_bytes: 128 << 10,
            linger: Duration::from_millis(5),
            in_flight_max: IN_FLIGHT_MAX,
            buffer_bytes_max: 64 << 20,
            delivery_timeout: Duration::from_secs(120),
            partitioner: Partitioner::default(),
        }
    }
}

/// Batches that a broker remembers per producer and partition, so the most that may be in flight.
pub const IN_FLIGHT_MAX: usize = 5;

impl ProducerConfig {
    /// Checks the bounds; the error names the setting, its value and what is allowed.
    pub fn validate(&self) -> Result<()> {
        if !(1024..=1 << 30).contains(&self.batch_bytes) {
            return setting(
                "batch_bytes",
                self.batch_bytes,
                "allowed are 1024 to 1073741824 bytes",
            );
        }
        if !(1..=IN_FLIGHT_MAX).contains(&self.in_flight_max) {
            return setting(
                "in_flight_max",
                self.in_flight_max,
                "allowed are 1 to 5 batches",
            );
        }
        if self.buffer_bytes_max < self.batch_bytes {
            return setting(
                "buffer_bytes_max",
                self.buffer_bytes_max,
                "it must hold at least one batch (batch_bytes)",
            );
        }
        if self.delivery_timeout < self.linger {
            return setting(
                "delivery_timeout",
                format!("{:?}", self.delivery_timeout),
                "must not be below linger",
            );
        }
        if let (Protocol::Kafka, Some(durability)) = (self.client.protocol, self.durability) {
            return setting(
                "durability",
                format!("{durability:?}"),
                "none: a request of Kafka's protocol can't ask for it; set it on the topic",
            );
        }
        if matches!(self.acks, Some(Acks::Count(count)) if count < 0) {
            return setting(
                "acks",
                format!("{:?}", self.acks),
                "allowed are 0, a count of replicas, and all",
            );
        }
        self.partitioner.validate()
    }
}

/// Settings of a consumer.
#[derive(Clone, Debug)]
pub struct ConsumerConfig {
    /// Names, time-outs, back-off.
    pub client: ClientConfig,
    /// Bytes fetched ahead of the caller, over all partitions. Default: 32 MiB.
    pub prefetch_bytes_max: usize,
    /// Bytes asked for per partition and request; a larger batch is returned all the same. Default: 1 MiB.
    pub partition_fetch_bytes_max: u32,
    /// Bytes that make an answer worth sending before `fetch_wait_max` is over. Default: 1.
    pub fetch_bytes_min: u32,
    /// Longest time that the broker parks a fetch which finds too little. Default: 500 ms.
    pub fetch_wait_max: Duration,
    /// Bytes handed out by one `poll`, decompressed, to the next whole batch. Default: 4 MiB.
    pub poll_bytes_max: usize,
    /// Longest that a batch may become when it is decompressed, in bytes. Default: 64 MiB.
    pub decompressed_bytes_max: usize,
    /// What happens when a position is outside the log. Default: an error.
    pub offset_reset: OffsetReset,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            client: ClientConfig::default(),
            prefetch_bytes_max: 32 << 20,
            partition_fetch_bytes_max: 1 << 20,
            fetch_bytes_min: 1,
            fetch_wait_max: Duration::from_millis(500),
            poll_bytes_max: 4 << 20,
            decompressed_bytes_max: 64 << 20,
            offset_reset: OffsetReset::Fail,
        }
    }
}

impl ConsumerConfig {
    /// Checks the bounds; the error names the setting, its value and what is allowed.
    pub fn validate(&self) -> Result<()> {
        if self.partition_fetch_bytes_max == 0 {
            return setting("partition_fetch_bytes_max", 0, "at least 1 byte");
        }
        if self.prefetch_bytes_max < self.partition_fetch_bytes_max as usize {
            return setting(
                "prefetch_bytes_max",
                self.prefetch_bytes_max,
                "it must hold at least one partition's fetch (partition_fetch_bytes_max)",
            );
        }
        if self.poll_bytes_max == 0 {
            return setting("poll_bytes_max", 0, "at least 1 byte");
        }
        if self.fetch_wait_max >= self.client.request_timeout {
            return setting(
                "fetch_wait_max",
                format!("{:?}", self.fetch_wait_max),
                "must be below request_timeout",
            );
        }
        Ok(())
    }
}

/// Settings of a member of a consumer group.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Fetching; its `offset_reset` also says where a partition begins for which nothing is committed. Default: as
    /// `ConsumerConfig`, but `OffsetReset::Earliest`, so that nothing is passed over.
    pub consumer: ConsumerConfig,
    /// Name of the group, 1 to 255 bytes.
    pub group: String,
    /// A name of the member that outlives it: who comes back with it within the session time-out gets its partitions
    /// back, and nobody else's move. It must be unique within the group. Default: none.
    pub instance: Option<String>,
    /// Silence after which the coordinator takes the member for gone. The broker bounds it. Default: 45 s.
    pub session_timeout: Duration,
    /// How often the member says that it lives; at most half of the session time-out. Default: 3 s.
    pub heartbeat_interval: Duration,
    /// Longest time between two calls of `poll`; a member that takes longer leaves the group. Rebalances wait so long
    /// for each member. Default: 5 min.
    pub poll_interval_max: Duration,
    /// Who may share partitions out, dearest first. All members must have one in common. Members go on reading through
    /// a rebalance if every one of these is cooperative. Default: range, cooperative-sticky, as Kafka's Java client has
    /// it.
    pub assignors: Vec<Assignor>,
    /// How often positions are committed without being asked to; they also are whenever partitions are given up. A
    /// record counts as done once `poll` is called again. `None`: never. Default: 5 s.
    pub auto_commit: Option<Duration>,
}

/// Longest name of a group or of a static member, in bytes.
const GROUP_NAME_BYTES_MAX: usize = 255;

impl GroupConfig {
    /// Everything at its default, for a member of this group.
    pub fn new(group: impl Into<String>) -> Self {
        Self {
            consumer: ConsumerConfig {
                offset_reset: OffsetReset::Earliest,
                ..ConsumerConfig::default()
            },
            group: group.into(),
            instance: None,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            poll_interval_max: Duration::from_secs(300),
            assignors: vec![Assignor::Range, Assignor::CooperativeSticky],
            auto_commit: Some(Duration::from_secs(5)),
        }
    }

    /// Checks the bounds; the error names the setting, its value and what is allowed.
    pub fn validate(&self) -> Result<()> {
        if self.consumer.client.protocol == Protocol::Kafka {
            return setting(
                "protocol",
                "Kafka",
                "groups are joined through our own protocol",
            );
        }
        let is_name = |name: &str| (1..=GROUP_NAME_BYTES_MAX).contains(&name.len());
        if !is_name(&self.group) {
            return setting("group", &self.group, "a name of 1 to 255 bytes");
        }
        if let Some(instance) = self.instance.as_deref().filter(|name| !is_name(name)) {
            return setting("instance", instance, "a name of 1 to 255 bytes");
        }
        let milliseconds = |duration: Duration| i32::try_from(duration.as_millis()).ok();
        if milliseconds(self.session_timeout).is_none_or(|ms| ms < 1) {
            let value = format!("{:?}", self.session_timeout);
            return setting("session_timeout", value, "1 ms to 24 days");
        }
        if self.heartbeat_interval.is_zero()
            || self.heartbeat_interval.saturating_mul(2) > self.session_timeout
        {
            return setting(
                "heartbeat_interval",
                format!("{:?}", self.heartbeat_interval),
                "above 0, and at most half of session_timeout",
            );
        }
        if milliseconds(self.poll_interval_max).is_none_or(|ms| ms < 1) {
            let value = format!("{:?}", self.poll_interval_max);
            return setting("poll_interval_max", value, "1 ms to 24 days");
        }
        let distinct: BTreeSet<_> = self.assignors.iter().collect();
        if self.assignors.is_empty() || distinct.len() < self.assignors.len() {
            let value = format!("{:?}", self.assignors);
            return setting("assignors", value, "at least one, each once");
        }
        if self.auto_commit.is_some_and(|interval| interval.is_zero()) {
            return setting("auto_commit", 0, "above 0, or none");
        }
        self.consumer.validate()
    }
}

/// What a consumer does when its position is outside the log, since retention removed it or the log was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetReset {
    /// `poll` returns [`Error::OffsetOutOfRange`]; the position stays.
    #[default]
    Fail,
    /// Goes on at the first record there is.
    Earliest,
    /// Goes on with what is produced from now on.
    Latest,
}

pub(crate) fn setting<T>(
    key: &'static str,
    value: impl ToString,
    allowed: &'static str,
) -> Result<T> {
    Err(Error::Setting {
        key,
        value: value.to_string(),
        allowed,
    })
}
