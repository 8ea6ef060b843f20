//! What a run does, once all settings are known to be good.

use std::path::PathBuf;
use std::time::Duration;

use tackboard_client::Protocol;
use tackboard_schema::record_batch::Compression;
use tackboard_schema::{Acks, Durability};

use super::fault::SettingFaults;
use crate::workload::event::{PRODUCER_COUNT_MAX, VALUE_BYTES_MAX};
use crate::workload::keys::KeySpec;
use crate::workload::schedule::Pace;
use crate::workload::size::SizeSpec;

/// Which sides run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Produce, read everything back and verify it.
    Both,
    /// Produce only.
    Produce,
    /// Consume only: whatever lies in the topic.
    Consume,
}

impl Mode {
    /// Whether events are sent.
    pub fn produces(self) -> bool {
        self != Self::Consume
    }

    /// Whether events are read.
    pub fn consumes(self) -> bool {
        self != Self::Produce
    }
}

/// Everything that `run` and `verify` can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Scenario file's own words about itself.
    pub description: Option<String>,
    /// Where the broker is; none: an embedded one.
    pub brokers: Vec<String>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Which sides run.
    pub mode: Mode,
    /// The topic; none: one with a fresh name, deleted afterwards.
    pub topic: Option<String>,
    /// Whether a topic that this run made for itself stays.
    pub keep: bool,
    /// Partitions of a topic that this run creates.
    pub partitions: i32,
    /// How events are spread over time.
    pub pace: Pace,
    /// Sizes of synthetic events.
    pub event_size: SizeSpec,
    /// Keys of synthetic events.
    pub keys: KeySpec,
    /// Real events instead of synthetic ones.
    pub input: Option<PathBuf>,
    /// Field of the input that becomes the key.
    pub key_field: Option<String>,
    /// Field of the input that becomes the timestamp.
    pub timestamp_field: Option<String>,
    /// How long events are sent, after the warm-up.
    pub duration: Option<Duration>,
    /// How many events are sent, the warm-up's included.
    pub count: Option<u64>,
    /// Time at the start that the figures leave out.
    pub warmup: Duration,
    /// Producers; none: one per load core (one for an input).
    pub producers: Option<u32>,
    /// Consumers; none: one per load core.
    pub consumers: Option<u32>,
    /// Size at which a batch is sent.
    pub batch_bytes: u32,
    /// Longest wait of an event for others in its batch.
    pub linger: Duration,
    /// Batches in flight per producer and partition.
    pub in_flight: u32,
    /// Bytes that a producer holds until they are acknowledged.
    pub buffer_bytes: u64,
    /// Acknowledgement level; none: what the topic or broker is configured with.
    pub acks: Option<Acks>,
    /// Durability; none: what the topic or broker is configured with.
    pub durability: Option<Durability>,
    /// Codec of the batches.
    pub compression: Compression,
    /// CPUs of the load cores; none: all.
    pub cores: Option<Vec<usize>>,
    /// CPUs of the embedded broker; none: all.
    pub broker_cores: Option<Vec<usize>>,
    /// Start of all random sequences.
    pub seed: u64,
    /// Folder in which the embedded broker's temporary folder is made; none: chosen.
    pub data: Option<PathBuf>,
    /// Folder that results are saved in; none: `perf/results` inside a checkout, else nowhere.
    pub out: Option<PathBuf>,
    /// Time without any progress after which a run gives up.
    pub give_up: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            description: None,
            brokers: Vec::new(),
            protocol: Protocol::Native,
            mode: Mode::Both,
            topic: None,
            keep: false,
            partitions: 6,
            pace: Pace::AsFast,
            event_size: SizeSpec::Fixed(100),
            keys: KeySpec::None,
            input: None,
            key_field: None,
            timestamp_field: None,
            duration: None,
            count: None,
            warmup: Duration::ZERO,
            producers: None,
            consumers: None,
            batch_bytes: 64 << 10,
            linger: Duration::from_micros(500),
            in_flight: 5,
            buffer_bytes: 64 << 20,
            acks: Some(Acks::All),
            durability: Some(Durability::Fsync),
            compression: Compression::None,
            cores: None,
            broker_cores: None,
            seed: 1,
            data: None,
            out: None,
            give_up: Duration::from_secs(60),
        }
    }
}

/// How long a run without `--duration` and `--count` lasts.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(10);

impl Plan {
    /// How long events are sent after the warm-up: what was said, else ten seconds unless a count or an input bounds it.
    pub fn send_time(&self) -> Option<Duration> {
        let bounded = self.count.is_some() || self.input.is_some();
        self.duration.or((!bounded).then_some(DURATION_DEFAULT))
    }

    /// What shapes the figures of a run, by the names of the settings: runs that differ in it measured different things.
    pub fn shape(&self) -> Vec<(&'static str, String)> {
        let or = |value: Option<String>, otherwise: &str| value.unwrap_or(otherwise.to_owned());
        let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
        let (rate, arrival) = match self.pace {
            Pace::AsFast => ("max".to_owned(), "as it is taken".to_owned()),
            Pace::Constant(rate) => (rate.to_string(), "constant".to_owned()),
            Pace::Poisson(rate) => (rate.to_string(), "poisson".to_owned()),
            Pace::Timestamps(factor) => {
                ("the input's".to_owned(), format!("{factor} times as fast"))
            }
        };
        let mode = match self.mode {
            Mode::Both => "both",
            Mode::Produce => "produce",
            Mode::Consume => "consume",
        };
        let acks = self.acks.map(|acks| match acks {
            Acks::All => "all".to_owned(),
            Acks::Count(count) => count.to_string(),
        });
        let durability = self
            .durability
            .map(|durability| format!("{durability:?}").to_lowercase());
        let input = self.input.as_ref().map(|path| path.display().to_string());
        let cpus =
            |cpus: &Option<Vec<usize>>| or(cpus.as_ref().map(|cpus| format!("{cpus:?}")), "all");
        let clients = |count: Option<u32>| or(count.map(|count| count.to_string()), "by cores");
        let protocol = match self.protocol {
            Protocol::Native => "native",
            Protocol::Kafka => "kafka",
        };
        vec![
            ("protocol", protocol.to_owned()),
            ("mode", mode.to_owned()),
            ("partitions", self.partitions.to_string()),
            ("rate", rate),
            ("arrival", arrival),
            ("duration", or(self.send_time().map(seconds), "all of it")),
            (
                "count",
                or(self.count.map(|count| count.to_string()), "any"),
            ),
            ("warmup", seconds(self.warmup)),
            ("event-size", self.event_size.to_string()),
            ("keys", self.keys.to_string()),
            ("input", or(input, "none")),
            ("key-field", or(self.key_field.clone(), "none")),
            ("producers", clients(self.producers)),
            ("consumers", clients(self.consumers)),
            ("batch-size", self.batch_bytes.to_string()),
            ("linger", seconds(self.linger)),
            ("in-flight", self.in_flight.to_string()),
            ("buffer", self.buffer_bytes.to_string()),
            ("acks", or(acks, "topic")),
            ("durability", or(durability, "topic")),
            ("compression", self.compression.name().to_owned()),
            ("cores", cpus(&self.cores)),
            ("broker-cores", cpus(&self.broker_cores)),
        ]
    }

    /// Finds settings that contradict each other.
    pub fn check(&self, faults: &mut SettingFaults) {
        self.check_input(faults);
        self.check_target(faults);
        let batch_bytes = u64::from(self.batch_bytes);
        if self.input.is_none()
            && u64::from(self.event_size.bytes_max()) > batch_bytes.max(VALUE_BYTES_MAX.into())
        {
            faults.add(
                "event-size",
                self.event_size.to_string(),
                "no more than fits a batch",
            );
        }
        if self.buffer_bytes < batch_bytes * u64::from(self.partitions.unsigned_abs()) {
            faults.add(
                "buffer-bytes",
                self.buffer_bytes.to_string(),
                format!(
                    "room for one batch in each of {} partitions",
                    self.partitions
                ),
            );
        }
        if self.protocol == Protocol::Kafka && self.mode.produces() {
            let acks = match self.acks {
                None => Some("topic".to_owned()),
                Some(Acks::Count(count)) if count > 1 => Some(count.to_string()),
                _ => None,
            };
            if let Some(acks) = acks {
                let allowed = "0, 1 or all: what a request of Kafka's protocol can ask for";
                faults.add("acks", acks, allowed);
            }
        }
        if self.acks == Some(Acks::Count(0)) && self.mode == Mode::Both {
            let allowed = "1 or all: with 0 nothing is acknowledged, so nothing can be verified; add --mode produce";
            faults.add("acks", "0", allowed);
        }
    }

    fn check_input(&self, faults: &mut SettingFaults) {
        if self.input.is_some() {
            if self.keys != KeySpec::None {
                faults.add(
                    "keys",
                    self.keys.to_string(),
                    "none beside --input: keys come from --key-field",
                );
            }
            if matches!(self.pace, Pace::Timestamps(_)) && self.timestamp_field.is_none() {
                faults.add("speed-up", "given", "--timestamp-field beside it");
            }
            return;
        }
        for (field, given) in [
            ("key-field", &self.key_field),
            ("timestamp-field", &self.timestamp_field),
        ] {
            if let Some(value) = given {
                faults.add(field, value.clone(), "an --input to take it from");
            }
        }
        if matches!(self.pace, Pace::Timestamps(_)) {
            faults.add(
                "speed-up",
                "given",
                "an --input whose timestamps it follows",
            );
        }
    }

    fn check_target(&self, faults: &mut SettingFaults) {
        if self.mode == Mode::Consume && self.topic.is_none() {
            faults.add("mode", "consume", "a --topic to read from");
        }
        if self.mode == Mode::Consume && self.brokers.is_empty() {
            faults.add(
                "mode",
                "consume",
                "a --broker to read from: an embedded one is empty",
            );
        }
        if !self.brokers.is_empty() {
            for (field, given) in [
                ("data", self.data.is_some()),
                ("broker-cores", self.broker_cores.is_some()),
            ] {
                if given {
                    faults.add(
                        field,
                        "given",
                        "no --broker beside it: it is for the embedded one",
                    );
                }
            }
        }
        if let Some(topic) = &self.topic
            && let Err(why) = tackboard_schema::validate_topic_name(topic)
        {
            faults.add("topic", topic.clone(), why);
        }
        if self
            .producers
            .is_some_and(|count| count > PRODUCER_COUNT_MAX)
        {
            faults.add(
                "producers",
                "too many",
                format!("at most {PRODUCER_COUNT_MAX}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings;
    use super::*;

    #[test]
    fn what_shapes_a_run_is_named_as_its_settings_are() {
        for (name, value) in Plan::default().shape() {
            assert!(
                settings::find(name).is_some() && !value.is_empty(),
                "{name}"
            );
        }
    }
}
