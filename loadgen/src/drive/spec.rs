//! A stage as its command describes it, and the order that the load cores get.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tackboard_client::Protocol;

use super::consumer::partition_of_key;
use super::order::{ClientSettings, StageControl, StageOrder};
use crate::cli::plan::{Mode, Plan};
use crate::measure::clock::monotonic_ns;
use crate::report::number::{grouped, rate, span};
use crate::verdict::checker::{Content, Expected};
use crate::workload::input::Input;
use crate::workload::keys::{KeyChooser, key_bytes};
use crate::workload::schedule::Pace;

/// Time that clients have to connect before the first event is due.
const START_DELAY_NS: u64 = 200_000_000;

/// Bytes that a record takes in the log beside its key and value, about.
const RECORD_OVERHEAD_BYTES: f64 = 12.0;

/// A stage.
#[derive(Clone, Debug)]
pub struct StageSpec {
    /// What it is called.
    pub title: String,
    /// Its settings.
    pub plan: Plan,
    /// Real events, if it sends those.
    pub input: Option<Arc<Input>>,
    /// Most bytes that it may write.
    pub bytes_max: Option<u64>,
}

/// What is known of the topic when a stage begins.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: i32,
    /// Where each partition ended when the stage began.
    pub start_offsets: Vec<i64>,
    /// It was made by this stage, so nobody else writes to it.
    pub is_ours: bool,
    /// Nobody named it, so it goes when it is done with.
    pub is_temporary: bool,
    /// The setting that it got its durability from, where requests can't ask for one.
    pub durability_setting: Option<String>,
}

impl StageSpec {
    /// How many producers there are.
    pub fn producers(&self, cores: u32) -> u32 {
        if self.plan.mode == Mode::Consume {
            return 0;
        }
        let of_input = |input: &Arc<Input>| if input.keys().is_empty() { 1 } else { cores };
        self.plan
            .producers
            .unwrap_or_else(|| self.input.as_ref().map_or(cores, of_input))
    }

    /// How many consumers there are; no more than partitions, since each partition has one.
    pub fn consumers(&self, cores: u32, partitions: i32) -> u32 {
        self.plan
            .consumers
            .unwrap_or(cores)
            .clamp(1, partitions.max(1) as u32)
    }

    /// How many events are sent at most, and whether it is the disk that says so.
    pub fn count(&self) -> (u64, bool) {
        let asked = self.plan.count.unwrap_or(u64::MAX);
        let asked = self
            .input
            .as_ref()
            .map_or(asked, |input| asked.min(input.count().into()));
        let event_bytes = match &self.input {
            Some(input) => input.value_bytes() as f64 / f64::from(input.count()),
            None => self.plan.event_size.bytes_mean(),
        };
        let fits = self.bytes_max.map_or(u64::MAX, |bytes| {
            (bytes as f64 / (event_bytes + RECORD_OVERHEAD_BYTES)) as u64
        });
        (asked.min(fits), fits < asked)
    }

    /// How long events are sent, the warm-up included.
    pub fn send_time(&self) -> Option<Duration> {
        self.plan.send_time().map(|time| time + self.plan.warmup)
    }

    /// The order for the load cores: the first event is due shortly from now.
    pub fn order(&self, brokers: Vec<String>, topic: &Topic, cores: u32) -> Result<StageOrder> {
        let plan = &self.plan;
        let mut run = [0; 4];
        getrandom::fill(&mut run).map_err(|error| std::io::Error::other(error.to_string()))?;
        let start_ns = monotonic_ns() + START_DELAY_NS;
        let content = match &self.input {
            Some(input) => Content::Replay(input.clone()),
            None => Content::Synthetic {
                keys: plan.keys.count(),
            },
        };
        let home = |key: &[u8]| partition_of_key(key, topic.partitions) as u16;
        let partition_of_key = match &self.input {
            Some(input) => input.keys().iter().map(|key| home(key)).collect(),
            None => (0..plan.keys.count())
                .map(|number| home(&key_bytes(number)))
                .collect(),
        };
        Ok(StageOrder {
            sends: plan.mode.produces(),
            reads: plan.mode.consumes(),
            checks: plan.mode == Mode::Both,
            topic: topic.name.clone(),
            expected: Expected {
                run: u32::from_le_bytes(run),
                producers: self.producers(cores),
                others_allowed: !topic.is_ours,
                content,
                partitions: topic.partitions,
            },
            size: plan.event_size.clone(),
            keys: KeyChooser::new(&plan.keys),
            partition_of_key,
            pace: plan.pace,
            start_ns,
            warm_ns: start_ns + plan.warmup.as_nanos() as u64,
            stop_ns: self.send_time().map_or(u64::MAX, |time| {
                start_ns.saturating_add(time.as_nanos() as u64)
            }),
            count: self.count().0,
            consumers: self.consumers(cores, topic.partitions),
            start_offsets: topic.start_offsets.clone(),
            client: self.client(brokers, topic.partitions),
            seed: plan.seed,
            give_up: plan.give_up,
            cores,
            control: Arc::new(StageControl::default()),
        })
    }

    fn client(&self, brokers: Vec<String>, partitions: i32) -> ClientSettings {
        let plan = &self.plan;
        // In closed loop whatever waits longer than for the window only makes latency: one batch more than is in flight.
        let window = u64::from(plan.batch_bytes)
            * u64::from(plan.in_flight + 1)
            * u64::from(partitions.unsigned_abs());
        let is_closed_loop = plan.pace == Pace::AsFast;
        ClientSettings {
            brokers,
            protocol: plan.protocol,
            batch_bytes: plan.batch_bytes,
            linger: plan.linger,
            in_flight: plan.in_flight,
            buffer_bytes: if is_closed_loop {
                plan.buffer_bytes.min(window)
            } else {
                plan.buffer_bytes
            },
            acks: plan.acks,
            // With Kafka's protocol it is the topic that has one.
            durability: plan
                .durability
                .filter(|_| plan.protocol == Protocol::Native),
            compression: plan.compression,
        }
    }

    /// Its settings in the order in which they are worth reading.
    pub fn settings(&self, topic: &Topic, cores: u32) -> Vec<String> {
        let plan = &self.plan;
        let mut settings = Vec::new();
        match (&self.input, plan.mode) {
            (_, Mode::Consume) => {}
            (Some(input), _) => {
                let count = u64::from(input.count()).min(plan.count.unwrap_or(u64::MAX));
                settings.push(input.counted(count));
                settings.extend(plan.key_field.as_ref().map(|field| format!("key {field}")));
            }
            (None, _) => {
                settings.push(plan.event_size.to_string());
                settings.extend((plan.keys.count() > 0).then(|| plan.keys.to_string()));
            }
        }
        match plan.pace {
            Pace::AsFast => {}
            Pace::Constant(per_second) => settings.push(format!(
                "{} ev/s, open loop, from the intended send time",
                rate(per_second)
            )),
            Pace::Poisson(per_second) => settings.push(format!(
                "{} ev/s, open loop (poisson), from the intended send time",
                rate(per_second)
            )),
            Pace::Timestamps(factor) => settings.push(format!(
                "by its own timestamps, {} times as fast",
                grouped(factor as u64)
            )),
        }
        if plan.protocol == Protocol::Kafka {
            settings.push("Kafka's protocol".into());
        }
        settings.push(counted(topic.partitions.into(), "partition"));
        if plan.mode.produces() {
            settings.push(counted(self.producers(cores).into(), "producer"));
            settings.extend(plan.acks.map(|acks| match acks {
                tackboard_schema::Acks::All => "acks all".into(),
                tackboard_schema::Acks::Count(count) => format!("acks {count}"),
            }));
            settings.extend(
                plan.durability
                    .map(|durability| format!("{durability:?}").to_lowercase()),
            );
            settings.extend(topic.durability_setting.clone());
            if plan.compression != tackboard_schema::record_batch::Compression::None {
                settings.push(plan.compression.name().into());
            }
        }
        if plan.mode == Mode::Consume {
            settings.push(counted(
                self.consumers(cores, topic.partitions).into(),
                "consumer",
            ));
        }
        settings.extend(plan.send_time().filter(|_| self.input.is_none()).map(span));
        settings
    }
}

fn counted(count: i64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}
