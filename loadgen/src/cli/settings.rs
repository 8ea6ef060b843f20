//! The one table of settings of `run`, `verify` and `search`.
//!
//! Each entry is a flag `--name`, a key `name` of a scenario file, a line of help, and the words that a refused value gets.

use std::path::PathBuf;

use tackboard_client::Protocol;
use tackboard_schema::Acks;
use tackboard_schema::record_batch::Compression;

use super::plan::{Mode, Plan};
use super::quantity;
use crate::workload::event::PRODUCER_COUNT_MAX;
use crate::workload::keys::KeySpec;
use crate::workload::schedule::Pace;
use crate::workload::size::SizeSpec;

/// A setting.
pub struct Setting {
    /// Name of the flag, without dashes, and of the key.
    pub name: &'static str,
    /// What stands for the value in help; empty for a switch.
    pub value_name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The default, as shown.
    pub default: &'static str,
    /// What values are allowed.
    pub allowed: &'static str,
    /// Whether `verify` has it too.
    in_verify: bool,
    /// Whether `search` has it too.
    in_search: bool,
    /// Puts a value into the plan; nothing if the value is not allowed.
    pub apply: fn(&mut Plan, &str) -> Option<()>,
}

/// The commands that have settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// One run: all of them.
    Run,
    /// A verification.
    Verify,
    /// A search for a rate.
    Search,
}

impl Setting {
    /// Whether a command has it.
    pub fn is_of(&self, command: Of) -> bool {
        match command {
            Of::Run => true,
            Of::Verify => self.in_verify,
            Of::Search => self.in_search,
        }
    }
}

/// Heading under which a group of settings stands in help.
pub struct Group {
    /// The heading.
    pub heading: &'static str,
    /// Its settings.
    pub settings: &'static [Setting],
}

/// Finds a setting.
pub fn find(name: &str) -> Option<&'static Setting> {
    all().find(|setting| setting.name == name)
}

/// All settings.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// Shorthand for the table.
const fn setting(
    name: &'static str,
    value_name: &'static str,
    default: &'static str,
    help: &'static str,
    allowed: &'static str,
    apply: fn(&mut Plan, &str) -> Option<()>,
) -> Setting {
    Setting {
        name,
        value_name,
        help,
        default,
        allowed,
        in_verify: false,
        in_search: true,
        apply,
    }
}

const fn verify_too(setting: Setting) -> Setting {
    Setting {
        in_verify: true,
        ..setting
    }
}

/// Marks what bounds a run otherwise than a search does, or has no sense for many runs.
const fn not_in_search(setting: Setting) -> Setting {
    Setting {
        in_search: false,
        ..setting
    }
}

/// The table.
pub static GROUPS: &[Group] = &[
    Group {
        heading: "Target",
        settings: TARGET,
    },
    Group {
        heading: "Load",
        settings: LOAD,
    },
    Group {
        heading: "Events",
        settings: EVENTS,
    },
    Group {
        heading: "Clients",
        settings: CLIENTS,
    },
    Group {
        heading: "Machine and results",
        settings: MACHINE,
    },
];

static TARGET: &[Setting] = &[
    verify_too(setting(
        "broker",
        "HOST:PORT",
        "an embedded broker",
        "Broker to talk to; several with commas",
        "HOST:PORT, several with commas, e.g. 127.0.0.1:7400",
        |plan, text| {
            plan.brokers = text.split(',').map(broker).collect::<Option<Vec<_>>>()?;
            Some(())
        },
    )),
    verify_too(setting(
        "protocol",
        "PROTOCOL",
        "native",
        "What the broker is spoken to in: native, or kafka, which other brokers understand too",
        "native or kafka",
        |plan, text| {
            plan.protocol = match text {
                "native" => Protocol::Native,
                "kafka" => Protocol::Kafka,
                _ => return None,
            };
            Some(())
        },
    )),
    setting(
        "mode",
        "MODE",
        "both",
        "both: produce, read back, verify; produce; consume",
        "both, produce or consume",
        |plan, text| {
            plan.mode = match text {
                "both" => Mode::Both,
                "produce" => Mode::Produce,
                "consume" => Mode::Consume,
                _ => return None,
            };
            Some(())
        },
    ),
    setting(
        "topic",
        "NAME",
        "a fresh one",
        "Topic; created if it does not exist, and kept",
        "1 to 249 of a-z A-Z 0-9 . _ -",
        |plan, text| {
            plan.topic = Some(text.to_owned());
            Some(())
        },
    ),
    not_in_search(verify_too(setting(
        "keep",
        "",
        "false",
        "Keep the topic that this run made for itself",
        "true or false",
        |plan, text| {
            plan.keep = text.parse().ok()?;
            Some(())
        },
    ))),
    verify_too(setting(
        "partitions",
        "COUNT",
        "6",
        "Partitions of a topic that this run creates",
        "a whole number from 1 to 1,000",
        |plan, text| {
            plan.partitions = whole(text, 1, 1000)? as i32;
            Some(())
        },
    )),
];

static LOAD: &[Setting] = &[
    verify_too(setting(
        "rate",
        "RATE",
        "max",
        "Events a second in open loop, or max: as fast as it goes",
        "events a second from 0.1 to 100,000,000, e.g. 100000 or 100k; or max",
        |plan, text| {
            plan.pace = match text {
                "max" => Pace::AsFast,
                _ => {
                    let rate = quantity::number(text).filter(|rate| (0.1..=1e8).contains(rate))?;
                    if matches!(plan.pace, Pace::Poisson(_)) {
                        Pace::Poisson(rate)
                    } else {
                        Pace::Constant(rate)
                    }
                }
            };
            Some(())
        },
    )),
    setting(
        "arrival",
        "KIND",
        "constant",
        "How a rate is spread over time: constant or poisson",
        "constant or poisson, beside a --rate",
        |plan, text| {
            plan.pace = match (text, plan.pace) {
                ("constant", Pace::Poisson(rate) | Pace::Constant(rate)) => Pace::Constant(rate),
                ("poisson", Pace::Poisson(rate) | Pace::Constant(rate)) => Pace::Poisson(rate),
                ("constant", Pace::AsFast) => Pace::AsFast,
                _ => return None,
            };
            Some(())
        },
    ),
    not_in_search(setting(
        "speed-up",
        "FACTOR",
        "",
        "Replay the input by its own timestamps, so many times faster than they happened",
        "a number from 0.001 to 1,000,000,000",
        |plan, text| {
            let factor = quantity::number(text).filter(|factor| (0.001..=1e9).contains(factor))?;
            plan.pace = Pace::Timestamps(factor);
            Some(())
        },
    )),
    verify_too(setting(
        "duration",
        "TIME",
        "10 s, or all of the input",
        "How long events are sent; a warm-up comes before it",
        "a time from 100 ms to 30 days with its unit, e.g. 10s, 500ms, 5min",
        |plan, text| {
            plan.duration = Some(
                quantity::duration(text).filter(|d| (0.1..=2.6e6).contains(&d.as_secs_f64()))?,
            );
            Some(())
        },
    )),
    not_in_search(verify_too(setting(
        "count",
        "COUNT",
        "",
        "How many events are sent",
        "a whole number from 1, e.g. 1000000 or 1M",
        |plan, text| {
            plan.count = Some(quantity::count(text).filter(|&count| count > 0)?);
            Some(())
        },
    ))),
    setting(
        "warmup",
        "TIME",
        "0",
        "Time at the start that the figures leave out",
        "a time from 0 to 1 h with its unit, e.g. 2s",
        |plan, text| {
            plan.warmup = quantity::duration(text).filter(|d| d.as_secs() <= 3600)?;
            Some(())
        },
    ),
];

static EVENTS: &[Setting] = &[
    verify_too(setting(
        "event-size",
        "SIZE",
        "100",
        "Bytes of an event's value: a size, a range, or sizes with weights",
        SizeSpec::ALLOWED,
        |plan, text| {
            plan.event_size = SizeSpec::parse(text)?;
            Some(())
        },
    )),
    setting(
        "keys",
        "KEYS",
        "none",
        "Keys of synthetic events: none, uniform:COUNT, zipf:COUNT[:EXPONENT]",
        KeySpec::ALLOWED,
        |plan, text| {
            plan.keys = KeySpec::parse(text)?;
            Some(())
        },
    ),
    not_in_search(setting(
        "input",
        "FILE",
        "",
        "Send the lines of this NDJSON file, plain or gzip, once",
        "the path of a file",
        |plan, text| {
            plan.input = Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
            plan.input.as_ref().map(|_| ())
        },
    )),
    not_in_search(setting(
        "key-field",
        "FIELD",
        "",
        "Field of the input that becomes the key",
        "the name of a field",
        |plan, text| {
            plan.key_field = Some(text.to_owned()).filter(|text| !text.is_empty());
            plan.key_field.as_ref().map(|_| ())
        },
    )),
    not_in_search(setting(
        "timestamp-field",
        "FIELD",
        "",
        "Field of the input that becomes the timestamp (RFC 3339 or ms)",
        "the name of a field",
        |plan, text| {
            plan.timestamp_field = Some(text.to_owned()).filter(|text| !text.is_empty());
            plan.timestamp_field.as_ref().map(|_| ())
        },
    )),
];

static CLIENTS: &[Setting] = &[
    verify_too(setting(
        "producers",
        "COUNT",
        "one per load core; one where an input has no keys",
        "How many producers",
        "a whole number from 1 to 65,536",
        |plan, text| {
            plan.producers = Some(whole(text, 1, PRODUCER_COUNT_MAX.into())? as u32);
            Some(())
        },
    )),
    verify_too(setting(
        "consumers",
        "COUNT",
        "one per load core",
        "How many consumers; partitions are shared out among them",
        "a whole number from 1 to 1,000",
        |plan, text| {
            plan.consumers = Some(whole(text, 1, 1000)? as u32);
            Some(())
        },
    )),
    verify_too(setting(
        "batch-size",
        "SIZE",
        "64 KiB",
        "Size at which a batch is sent",
        "a size from 1 KiB to 1,000,000 B, e.g. 16 KiB",
        |plan, text| {
            plan.batch_bytes =
                quantity::bytes(text).filter(|bytes| (1024..=1_000_000).contains(bytes))? as u32;
            Some(())
        },
    )),
    verify_too(setting(
        "linger",
        "TIME",
        "500us",
        "Longest wait of an event for others in its batch",
        "a time from 0 to 10 s with its unit, e.g. 1ms",
        |plan, text| {
            plan.linger = quantity::duration(text).filter(|d| d.as_secs_f64() <= 10.0)?;
            Some(())
        },
    )),
    verify_too(setting(
        "in-flight",
        "COUNT",
        "5",
        "Batches in flight per producer and partition",
        "a whole number from 1 to 5",
        |plan, text| {
            plan.in_flight = whole(text, 1, 5)? as u32;
            Some(())
        },
    )),
    setting(
        "buffer",
        "SIZE",
        "64 MiB",
        "What a producer holds until it is acknowledged",
        "a size from 1 MiB to 16 GiB",
        |plan, text| {
            plan.buffer_bytes =
                quantity::bytes(text).filter(|bytes| (1 << 20..=16 << 30).contains(bytes))?;
            Some(())
        },
    ),
    verify_too(setting(
        "acks",
        "LEVEL",
        "all",
        "Acknowledgement level: 0, a count of replicas, all, or topic (what the topic is configured with)",
        "0, a count of replicas from 1 to 100, all, or topic",
        |plan, text| {
            plan.acks = match text {
                "topic" => None,
                "all" => Some(Acks::All),
                _ => Some(Acks::Count(whole(text, 0, 100)? as i16)),
            };
            Some(())
        },
    )),
    verify_too(setting(
        "durability",
        "LEVEL",
        "fsync",
        "When a copy counts: fsync, interval, written, or topic; with kafka a setting of the topic that is created",
        "fsync, interval, written, or topic",
        |plan, text| {
            plan.durability = match text {
                "topic" => None,
                level => Some(level.parse().ok()?),
            };
            Some(())
        },
    )),
    verify_too(setting(
        "compression",
        "CODEC",
        "none",
        "Codec of the batches: none, gzip, snappy, lz4, zstd",
        "none, gzip, snappy, lz4 or zstd",
        |plan, text| {
            plan.compression = Compression::ALL
                .into_iter()
                .find(|codec| codec.name() == text)?;
            Some(())
        },
    )),
    verify_too(setting(
        "give-up",
        "TIME",
        "60s",
        "Time without any progress after which the run gives up",
        "a time from 1 s to 1 h with its unit",
        |plan, text| {
            plan.give_up =
                quantity::duration(text).filter(|d| (1.0..=3600.0).contains(&d.as_secs_f64()))?;
            Some(())
        },
    )),
];

static MACHINE: &[Setting] = &[
    verify_too(setting(
        "cores",
        "CPUS",
        "all",
        "CPUs of the load cores, beside the broker's",
        "all, or CPU numbers with commas, e.g. 0,1",
        |plan, text| {
            plan.cores = cpus(text)?;
            Some(())
        },
    )),
    setting(
        "broker-cores",
        "CPUS",
        "all",
        "CPUs of the embedded broker",
        "all, or CPU numbers with commas, e.g. 0,1",
        |plan, text| {
            plan.broker_cores = cpus(text)?;
            Some(())
        },
    ),
    verify_too(setting(
        "seed",
        "NUMBER",
        "1",
        "Start of all random sequences",
        "a whole number",
        |plan, text| {
            plan.seed = text.parse().ok()?;
            Some(())
        },
    )),
    setting(
        "data",
        "DIR",
        "a real disk, chosen",
        "Folder in which the embedded broker's temporary folder is made",
        "the path of a folder",
        |plan, text| {
            plan.data = Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
            plan.data.as_ref().map(|_| ())
        },
    ),
    not_in_search(verify_too(setting(
        "out",
        "DIR",
        "perf/results inside a checkout, else nothing is saved",
        "Folder that results are saved in; none: nothing is saved",
        "the path of a folder, or none",
        |plan, text| {
            plan.out = Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
            plan.out.as_ref().map(|_| ())
        },
    ))),
];

fn whole(text: &str, low: u64, high: u64) -> Option<u64> {
    quantity::count(text).filter(|count| (low..=high).contains(count))
}

fn broker(text: &str) -> Option<String> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    (!host.is_empty() && port > 0).then(|| text.trim().to_owned())
}

fn cpus(text: &str) -> Option<Option<Vec<usize>>> {
    if text == "all" {
        return Some(None);
    }
    let mut cpus = text
        .split(',')
        .map(|cpu| cpu.trim().parse().ok())
        .collect::<Option<Vec<usize>>>()?;
    cpus.sort_unstable();
    cpus.dedup();
    Some(Some(cpus))
}
