//! From single values to one [`Config`]: fills in what depends on the host, and checks that the
//! settings agree with each other.
//!
//! Pure: the host comes in as a value. A relation is checked only if none of its settings has a
//! fault of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tackboard_schema::{Acks, BrokerId, Durability};

use super::fault::{Fault, Origin};
use super::host::Host;
use super::load::Entries;
use super::model::{
    Config, DirectIo, GroupConfig, LogFormat, Logging, MemoryBudget, MissingLedger, SyncFs,
};
use super::open_files;
use super::quantity::show_size;
use super::value::Value;

/// `memory.total = "auto"` is the host's memory divided by this.
const MEMORY_AUTO_DIVISOR: u64 = 4;
/// Less than this per core cannot hold the buffers of a few connections.
const MEMORY_PER_CORE_MIN: u64 = 32 << 20;
/// Upper bound of `storage.reserve_bytes = "auto"`.
const RESERVE_AUTO_MAX: u64 = 1 << 30;
/// `log.roll.ms = "auto"` is the retention divided by this, so that deletion goes in small steps.
const ROLL_AUTO_DIVISOR: u32 = 14;
/// `log.roll.ms = "auto"` without a retention by time.
const ROLL_AUTO_UNLIMITED: Duration = Duration::from_secs(7 * 86_400);
/// `log.roll.ms = "auto"` is never shorter, whatever the retention.
const ROLL_AUTO_MIN: Duration = Duration::from_secs(1);
/// A frame holds a head beside its batches; this much is kept for it.
const FRAME_HEAD_BYTES: u64 = 64 << 10;

/// Makes the configuration, or returns every fault found so far and by the relations.
pub(super) fn resolve(mut entries: Entries, host: &Host) -> Result<Config, Vec<Fault>> {
    let config = Reader { entries: &entries }.config(host);
    let mut relations = Relations {
        config: &config,
        host,
        entries: &entries,
        faults: Vec::new(),
    };
    if !entries.is_partial {
        relations.check();
    }
    let found = relations.faults;
    entries.faults.extend(found);
    if entries.faults.is_empty() {
        Ok(config)
    } else {
        Err(entries.faults)
    }
}

/// Typed access to values. A mismatch of type between here and the table is our mistake and
/// panics; the test that loads the defaults reaches every line.
struct Reader<'a> {
    entries: &'a Entries,
}

impl Reader<'_> {
    fn config(&self, host: &Host) -> Config {
        let cores = self.cores("cores").unwrap_or_else(|| host.cpus.clone());
        let memory_bytes = self
            .size("memory.total")
            .unwrap_or(host.memory_bytes / MEMORY_AUTO_DIVISOR);
        let retention = self.duration("log.retention.ms");
        let partitions_max_per_core = self.integer("storage.partitions_per_core_max") as u32;
        let connections_max = self.integer_or_word("native.connections_max");
        Config {
            broker_id: BrokerId(self.integer("broker.id") as i32),
            data_dir: self.path("data.dir"),
            memory: MemoryBudget::split(memory_bytes, cores.len()),
            connections_max: match connections_max {
                Some(number) => number as u32,
                None => open_files::connections_that_fit(
                    host.open_files_max,
                    cores.len(),
                    partitions_max_per_core,
                ),
            },
            connections_per_address_max: self
                .integer_or_word("native.connections_per_address_max")
                .map(|number| number as u32),
            cores,
            core_spin: self.plain_duration("core.spin"),
            native_bind: self
                .address("native.bind")
                .expect("native.bind has no word"),
            native_advertised: self.host_port("native.advertised"),
            kafka_bind: self.address("kafka.bind"),
            kafka_advertised: self.host_port("kafka.advertised"),
            groups: GroupConfig {
                offsets_partitions: self.integer("offsets.topic.num.partitions") as i32,
                initial_rebalance_delay: self.plain_duration("group.initial.rebalance.delay.ms"),
                session_timeout_min: self.plain_duration("group.min.session.timeout.ms"),
                session_timeout_max: self.plain_duration("group.max.session.timeout.ms"),
                members_max: self.integer("group.max.size") as usize,
                groups_max: self.integer("groups.per_partition_max") as usize,
                state_bytes_max: self.plain_size("groups.bytes_per_partition_max") as usize,
                offset_metadata_bytes_max: self.integer("offset.metadata.max.bytes") as usize,
                offsets_retention: self.plain_duration("offsets.retention.ms"),
                offsets_retention_check_interval: self
                    .plain_duration("offsets.retention.check.interval.ms"),
            },
            auto_create_topics: self.word("auto.create.topics.enable") == "true",
            native_core_bind: self
                .address("native.core_bind")
                .expect("native.core_bind has no word"),
            native_core_advertised_host: self.core_advertised_host(),
            http_bind: self.address("http.bind"),
            acks_default: self.acks("acks.default"),
            acks_min: self.acks("acks.min"),
            durability_default: self.durability("durability.default"),
            durability_interval: self.plain_duration("durability.interval"),
            durability_interval_bytes: self.plain_size("durability.interval_bytes"),
            segment_bytes: self.plain_size("log.segment.bytes"),
            segment_age: self
                .duration("log.roll.ms")
                .unwrap_or_else(|| automatic_roll(retention)),
            index_interval_bytes: self.plain_size("log.index.interval.bytes") as u32,
            retention,
            retention_bytes: self.size("log.retention.bytes"),
            log_budget_bytes: self.size("log.budget.bytes"),
            direct_io: match self.word("storage.direct_io") {
                "prefer" => DirectIo::Prefer,
                _ => DirectIo::Require,
            },
            syncfs: match self.word("storage.syncfs") {
                "never" => SyncFs::Never,
                _ => SyncFs::Auto,
            },
            missing_ledger: match self.word("storage.missing_ledger") {
                "scan" => MissingLedger::Scan,
                _ => MissingLedger::Refuse,
            },
            reserve_bytes: self
                .size("storage.reserve_bytes")
                .unwrap_or((host.file_system_bytes / 20).min(RESERVE_AUTO_MAX)),
            batch_bytes_max: self.plain_size("message.max.bytes") as u32,
            frame_bytes_max: self.plain_size("native.frame_bytes_max") as u32,
            requests_in_flight_max: self.integer("native.requests_in_flight_max") as u32,
            request_bytes_in_flight_max: self.plain_size("native.request_bytes_in_flight_max"),
            partitions_max_per_core,
            default_partitions: self.integer("num.partitions") as i32,
            default_replication_factor: self.integer("default.replication.factor") as i16,
            min_insync_replicas: self.integer("min.insync.replicas") as i16,
            shutdown_deadline: self.plain_duration("shutdown.deadline"),
            logging: Logging {
                level: self.word("logging.level"),
                format: match self.word("logging.format") {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Text,
                },
            },
            stated: self.entries.stated(),
        }
    }

    fn core_advertised_host(&self) -> Option<String> {
        match &self.entries.entry("native.core_advertised_host").value {
            Value::Host(host) => Some(host.clone()),
            _ => self.host_port("native.advertised").map(|(host, _)| host),
        }
    }

    fn size(&self, key: &str) -> Option<u64> {
        match &self.entries.entry(key).value {
            Value::Size(bytes) => Some(*bytes),
            Value::Word(_) => None,
            other => mistake(key, other),
        }
    }

    fn plain_size(&self, key: &str) -> u64 {
        self.size(key)
            .unwrap_or_else(|| panic!("{key} has no word"))
    }

    fn duration(&self, key: &str) -> Option<Duration> {
        match &self.entries.entry(key).value {
            Value::Duration(duration) => Some(*duration),
            Value::Word(_) => None,
            other => mistake(key, other),
        }
    }

    fn plain_duration(&self, key: &str) -> Duration {
        self.duration(key)
            .unwrap_or_else(|| panic!("{key} has no word"))
    }

    fn integer(&self, key: &str) -> i64 {
        self.integer_or_word(key)
            .unwrap_or_else(|| panic!("{key} has no word"))
    }

    fn integer_or_word(&self, key: &str) -> Option<i64> {
        match &self.entries.entry(key).value {
            Value::Integer(number) => Some(*number),
            Value::Word(_) => None,
            other => mistake(key, other),
        }
    }

    fn address(&self, key: &str) -> Option<SocketAddr> {
        match &self.entries.entry(key).value {
            Value::Address(address) => Some(*address),
            Value::Word(_) => None,
            other => mistake(key, other),
        }
    }

    fn host_port(&self, key: &str) -> Option<(String, u16)> {
        match &self.entries.entry(key).value {
            Value::HostPort(host, port) => Some((host.clone(), *port)),
            Value::Word(_) => None,
            other => mistake(key, other),
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        match &self.entries.entry(key).value {
            Value::Path(path) => path.clone(),
            other => mistake(key, other),
        }
    }

    fn cores(&self, key: &str) -> Option<Vec<usize>> {
        match &self.entries.entry(key).value {
            Value::Cores(cores) => Some(cores.clone()),
            Value::Word(_) => None,
            other => mistake(key, other),
        }
    }

    fn acks(&self, key: &str) -> Acks {
        match &self.entries.entry(key).value {
            Value::Acks(acks) => *acks,
            Value::Word(_) => Acks::All,
            other => mistake(key, other),
        }
    }

    fn word(&self, key: &str) -> &'static str {
        match &self.entries.entry(key).value {
            Value::Word(word) => word,
            other => mistake(key, other),
        }
    }

    fn durability(&self, key: &str) -> Durability {
        match self.word(key) {
            "written" => Durability::Written,
            "interval" => Durability::Interval,
            _ => Durability::Fsync,
        }
    }
}

fn mistake(key: &str, value: &Value) -> ! {
    panic!("{key} has the value {value:?}, of another type than is read")
}

fn automatic_roll(retention: Option<Duration>) -> Duration {
    match retention {
        Some(retention) => (retention / ROLL_AUTO_DIVISOR).max(ROLL_AUTO_MIN),
        None => ROLL_AUTO_UNLIMITED,
    }
}

/// Checks that settings agree with each other and with the host.
struct Relations<'a> {
    config: &'a Config,
    host: &'a Host,
    entries: &'a Entries,
    faults: Vec<Fault>,
}

impl Relations<'_> {
    fn check(&mut self) {
        self.check_cores_and_memory();
        self.check_replicas();
        self.check_sizes();
        self.check_listeners();
    }

    /// Reports that `key` does not agree with `other`, unless either has a fault of its own.
    fn disagree(&mut self, key: &str, other: &str, problem: String) {
        let (entry, against) = (self.entries.entry(key), self.entries.entry(other));
        if entry.faulty || against.faulty {
            return;
        }
        // When the first is a default, the line to look at is that of the second.
        let origin = match entry.origin {
            Origin::Default => against.origin.clone(),
            _ => entry.origin.clone(),
        };
        let subject = format!("{key} = {}", entry.shown);
        self.faults.push(Fault {
            origin,
            subject,
            problem,
        });
    }

    /// `other = value`, as it goes into the text of a fault.
    fn shown(&self, key: &str) -> String {
        format!("{key} = {}", self.entries.entry(key).shown)
    }

    fn check_cores_and_memory(&mut self) {
        let cores = &self.config.cores;
        let absent: Vec<String> = cores
            .iter()
            .filter(|core| !self.host.cpus.contains(core))
            .map(usize::to_string)
            .collect();
        if !absent.is_empty() {
            let available: Vec<String> = self.host.cpus.iter().map(usize::to_string).collect();
            let problem = format!(
                "no CPU {} for this process; it may run on {}",
                absent.join(", "),
                available.join(", ")
            );
            self.disagree("cores", "cores", problem);
        }
        if (1..cores.len()).any(|index| cores[..index].contains(&cores[index])) {
            self.disagree("cores", "cores", "names a CPU twice".to_owned());
        }
        let memory_min = MEMORY_PER_CORE_MIN * cores.len() as u64;
        if self.config.memory.total_bytes < memory_min {
            let problem = format!(
                "comes to {} for {} cores; expected at least {}",
                show_size(self.config.memory.total_bytes),
                cores.len(),
                show_size(memory_min)
            );
            self.disagree("memory.total", "cores", problem);
        }
    }

    fn check_replicas(&mut self) {
        let config = self.config;
        let replicas = config.default_replication_factor;
        if replicas > 1 {
            let problem = "more than the one broker that there is".to_owned();
            self.disagree(
                "default.replication.factor",
                "default.replication.factor",
                problem,
            );
        }
        let factor = self.shown("default.replication.factor");
        for (key, acks) in [
            ("acks.default", config.acks_default),
            ("acks.min", config.acks_min),
        ] {
            if matches!(acks, Acks::Count(count) if count > replicas) {
                self.disagree(
                    key,
                    "default.replication.factor",
                    format!("more than {factor}"),
                );
            }
        }
        if config.min_insync_replicas > replicas {
            let problem = format!("more than {factor}");
            self.disagree("min.insync.replicas", "default.replication.factor", problem);
        }
        if strength(config.acks_default) < strength(config.acks_min) {
            let problem = format!("less than the floor {}", self.shown("acks.min"));
            self.disagree("acks.default", "acks.min", problem);
        }
    }

    fn check_sizes(&mut self) {
        let config = self.config;
        let batch_bytes = u64::from(config.batch_bytes_max);
        let batch = self.shown("message.max.bytes");
        if u64::from(config.frame_bytes_max) < batch_bytes + FRAME_HEAD_BYTES {
            let problem = format!("expected at least 64 KiB more than {batch}");
            self.disagree("native.frame_bytes_max", "message.max.bytes", problem);
        }
        if config.segment_bytes < batch_bytes {
            let problem = format!("less than {batch}");
            self.disagree("log.segment.bytes", "message.max.bytes", problem);
        }
        if u64::from(config.index_interval_bytes) > config.segment_bytes {
            let problem = format!("more than {}", self.shown("log.segment.bytes"));
            self.disagree("log.index.interval.bytes", "log.segment.bytes", problem);
        }
        if config
            .retention
            .is_some_and(|retention| config.segment_age > retention)
        {
            let problem = format!(
                "longer than {}; nothing would be deleted in time",
                self.shown("log.retention.ms")
            );
            self.disagree("log.roll.ms", "log.retention.ms", problem);
        }
        let append_bytes = config.memory.per_core.append;
        if append_bytes < batch_bytes {
            let problem = format!(
                "leaves {} a core for appends, less than {batch}",
                show_size(append_bytes)
            );
            self.disagree("memory.total", "message.max.bytes", problem);
        }
    }

    fn check_listeners(&mut self) {
        let config = self.config;
        if config.native_bind.ip().is_unspecified() && config.native_advertised.is_none() {
            let problem = "clients cannot connect to that address; set native.advertised to the host and port that they can reach".to_owned();
            self.disagree("native.bind", "native.advertised", problem);
        }
        let unspecified = config
            .kafka_bind
            .is_some_and(|address| address.ip().is_unspecified());
        if unspecified && config.kafka_advertised.is_none() {
            let problem = "clients cannot connect to that address; set kafka.advertised to the host and port that they can reach".to_owned();
            self.disagree("kafka.bind", "kafka.advertised", problem);
        }
        let core_host = &config.native_core_advertised_host;
        if config.native_core_bind.ip().is_unspecified() && core_host.is_none() {
            let problem = "clients cannot connect to that address; set native.core_advertised_host to the host that they can reach".to_owned();
            self.disagree("native.core_bind", "native.core_advertised_host", problem);
        }
        let core_port = config.native_core_bind.port();
        let core_count = config.cores.len();
        let last_port = usize::from(core_port) + core_count - 1;
        if core_port != 0 && last_port > usize::from(u16::MAX) {
            let problem = format!("with {core_count} cores the last port would be {last_port}");
            self.disagree("native.core_bind", "cores", problem);
        }
        let core_ports = usize::from(core_port)..usize::from(core_port) + core_count;
        for (key, address) in [
            ("native.bind", Some(config.native_bind)),
            ("kafka.bind", config.kafka_bind),
            ("http.bind", config.http_bind),
        ] {
            let Some(address) = address else { continue };
            let in_range = core_port != 0 && core_ports.contains(&usize::from(address.port()));
            if in_range && same_host(address, config.native_core_bind) {
                let problem = format!(
                    "is one of the cores' own ports, {} to {last_port} ({})",
                    core_ports.start,
                    self.shown("native.core_bind")
                );
                self.disagree(key, "native.core_bind", problem);
            }
        }
        let native = ("native.bind", Some(config.native_bind));
        let kafka = ("kafka.bind", config.kafka_bind);
        let http = ("http.bind", config.http_bind);
        for ((key, address), (other_key, other)) in [(http, native), (kafka, native), (http, kafka)]
        {
            let (Some(address), Some(other)) = (address, other) else {
                continue;
            };
            let same_port = address.port() != 0 && address.port() == other.port();
            if same_port && same_host(address, other) {
                let problem = format!("same port as {}", self.shown(other_key));
                self.disagree(key, other_key, problem);
            }
        }
    }
}

/// Whether two listeners on one port would meet.
fn same_host(left: SocketAddr, right: SocketAddr) -> bool {
    left.ip() == right.ip() || left.ip().is_unspecified() || right.ip().is_unspecified()
}

/// Orders levels by how many replicas they wait for.
fn strength(acks: Acks) -> i32 {
    match acks {
        Acks::Count(count) => i32::from(count),
        Acks::All => i32::MAX,
    }
}
