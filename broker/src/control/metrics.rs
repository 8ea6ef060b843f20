//! The numbers of the whole process, and all numbers as `/metrics` shows them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tackboard_logic::metadata::ClusterId;
use tackboard_schema::BrokerId;

use crate::bridge::metrics::{CORE_METRICS, MetricKind};
use crate::bridge::{CoreMetrics, Metrics};
use crate::config::host::{Space, file_system_space};

use super::start::{RefreshMetrics, StorageLabels};
use super::status::{Phase, Status};

/// Content type of what [`render`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where the numbers of the process come from.
#[derive(Debug)]
pub struct BrokerNumbers {
    pub(super) metrics: Metrics,
    pub(super) refresh: RefreshMetrics,
    pub(super) status: Arc<Status>,
    pub(super) started: Instant,
    pub(super) data_dir: PathBuf,
    pub(super) reserve_bytes: u64,
    pub(super) log_budget_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) storage: StorageLabels,
    pub(super) cluster_id: ClusterId,
    pub(super) broker: BrokerId,
}

/// The numbers of one moment.
#[derive(Debug)]
pub struct Snapshot {
    ready: u64,
    uptime_seconds: u64,
    metadata_version: u64,
    topics: u64,
    space: Option<Space>,
    reserve_bytes: u64,
    log_budget_bytes: u64,
    memory_bytes: u64,
    resident_bytes: u64,
    open_files: u64,
}

/// One row of the table of the process's metrics; as the cores' `MetricDescription`.
#[derive(Debug)]
pub struct BrokerMetric {
    /// Name without the prefix.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// What its value suggests.
    pub action: &'static str,
    read: fn(&Snapshot) -> u64,
}

/// A metric whose labels are what it says; its value is always 1.
struct InfoMetric {
    name: &'static str,
    help: &'static str,
    action: &'static str,
}

/// In the order in which their labels are given when they are shown.
const INFO_METRICS: [InfoMetric; 2] = [
    InfoMetric {
        name: "broker",
        help: "Which broker this is: `version`, `cluster_id`, `broker`.",
        action: "For orientation.",
    },
    InfoMetric {
        name: "storage",
        help: "How the data folder is written: `io` is `direct` or `buffered`; `file_system`.",
        action: "`buffered`: direct I/O was refused and `storage.direct_io = \"prefer\"` allows to go on; move the folder to ext4 or XFS.",
    },
];

/// Every metric of the process, all gauges, in the order in which they are shown.
pub const BROKER_METRICS: &[BrokerMetric] = &[
    BrokerMetric {
        name: "ready",
        help: "1 while the broker serves, 0 while it starts or stops.",
        action: "0 for long after a start: recovery scans, or a core cannot open its partitions; see the log.",
        read: |now| now.ready,
    },
    BrokerMetric {
        name: "uptime_seconds",
        help: "Seconds since the start.",
        action: "Falls back to 0 unexpectedly: the process restarts; see why in the system's journal.",
        read: |now| now.uptime_seconds,
    },
    BrokerMetric {
        name: "metadata_version",
        help: "Position of the last command in the metadata log.",
        action: "Rises with topics created or deleted and with producers; a fast steady rise means clients that make a producer per request.",
        read: |now| now.metadata_version,
    },
    BrokerMetric {
        name: "topics",
        help: "Topics that exist.",
        action: "For orientation.",
        read: |now| now.topics,
    },
    BrokerMetric {
        name: "storage_free_bytes",
        help: "Free space on the data folder's file system.",
        action: "Alert well above `tackboard_storage_reserve_bytes`: below that produce requests are refused. Lower the retention or enlarge the disk.",
        read: |now| now.space.map_or(0, |space| space.free_bytes),
    },
    BrokerMetric {
        name: "storage_size_bytes",
        help: "Size of the data folder's file system.",
        action: "For orientation.",
        read: |now| now.space.map_or(0, |space| space.total_bytes),
    },
    BrokerMetric {
        name: "storage_reserve_bytes",
        help: "Free space below which produce requests are refused (`storage.reserve_bytes`).",
        action: "For comparison with `tackboard_storage_free_bytes`.",
        read: |now| now.reserve_bytes,
    },
    BrokerMetric {
        name: "log_budget_bytes",
        help: "Bytes that all logs together may have (`log.budget.bytes`); 0 without a bound.",
        action: "For comparison with the sum of `tackboard_log_bytes`: that stays near it or below, unless too much of it is exempt.",
        read: |now| now.log_budget_bytes,
    },
    BrokerMetric {
        name: "memory_budget_bytes",
        help: "Memory that all cores may use for buffers and indexes (`memory.total`).",
        action: "For comparison with the cores' memory gauges.",
        read: |now| now.memory_bytes,
    },
    BrokerMetric {
        name: "memory_resident_bytes",
        help: "Resident memory of the process.",
        action: "Well above `tackboard_memory_budget_bytes`: something outside the budget grows; please report it with the metrics.",
        read: |now| now.resident_bytes,
    },
    BrokerMetric {
        name: "open_files",
        help: "Open file descriptors of the process.",
        action: "Near the limit (`tackboard check` shows it): raise LimitNOFILE in the unit.",
        read: |now| now.open_files,
    },
];

impl BrokerNumbers {
    fn now(&self) -> Snapshot {
        Snapshot {
            ready: u64::from(self.status.phase() == Phase::Ready),
            uptime_seconds: self.started.elapsed().as_secs(),
            metadata_version: self.status.metadata_version(),
            topics: self.status.topics(),
            space: file_system_space(&self.data_dir).ok(),
            reserve_bytes: self.reserve_bytes,
            log_budget_bytes: self.log_budget_bytes,
            memory_bytes: self.memory_bytes,
            resident_bytes: resident_bytes().unwrap_or(0),
            open_files: std::fs::read_dir("/proc/self/fd").map_or(0, |list| list.count() as u64),
        }
    }
}

impl Collector for BrokerNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.refresh.0)(&self.metrics);
        let labels = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("cluster_id", self.cluster_id.to_string()),
            ("broker", self.broker.to_string()),
        ];
        let storage = [
            ("io", self.storage.io.to_owned()),
            ("file_system", self.storage.file_system.to_owned()),
        ];
        for (metric, labels) in INFO_METRICS.iter().zip([&labels[..], &storage]) {
            let help = metric.help.trim_end_matches('.');
            encoder
                .encode_descriptor(metric.name, help, None, MetricType::Info)?
                .encode_info(&labels)?;
        }
        let now = self.now();
        for metric in BROKER_METRICS {
            let help = metric.help.trim_end_matches('.');
            encoder
                .encode_descriptor(metric.name, help, None, MetricType::Gauge)?
                .encode_gauge(&(metric.read)(&now))?;
        }
        for metric in CORE_METRICS {
            let help = metric.help.trim_end_matches('.');
            let kind = match metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
            };
            let mut family = encoder.encode_descriptor(metric.name, help, None, kind)?;
            for (core, numbers) in self.metrics.cores().iter().enumerate() {
                encode_core(&mut family, metric.kind, core, (metric.read)(numbers))?;
            }
        }
        Ok(())
    }
}

fn encode_core(
    family: &mut MetricEncoder<'_>,
    kind: MetricKind,
    core: usize,
    value: u64,
) -> fmt::Result {
    let labels = [("core", core.to_string())];
    let mut encoder = family.encode_family(&labels)?;
    match kind {
        MetricKind::Counter => encoder.encode_counter::<NoLabelSet, u64, u64>(&value, None),
        MetricKind::Gauge => encoder.encode_gauge(&value),
    }
}

/// The registry that `/metrics` is made from.
pub(super) fn registry(numbers: Arc<BrokerNumbers>) -> Registry {
    let mut registry = Registry::with_prefix("tackboard");
    registry.register_collector(Box::new(numbers));
    registry
}

/// All metrics as text.
pub(super) fn render(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, registry);
    text
}

/// The table of all metrics in `docs/operations.md`.
pub fn table() -> String {
    let mut out = String::from("| metric | what it counts | what it suggests |\n|---|---|---|\n");
    for metric in INFO_METRICS {
        out += &format!(
            "| `tackboard_{}_info` | {} | {} |\n",
            metric.name, metric.help, metric.action
        );
    }
    for metric in BROKER_METRICS {
        out += &format!(
            "| `tackboard_{}` | {} | {} |\n",
            metric.name, metric.help, metric.action
        );
    }
    for metric in CORE_METRICS {
        let name = metric.exposed_name();
        out += &format!("| `{name}` | {} | {} |\n", metric.help, metric.action);
    }
    out
}

/// Seconds after which a core that has work and makes no progress makes the broker unhealthy.
const STUCK_SECONDS_MAX: u64 = 10;

impl BrokerNumbers {
    /// Why the broker is not healthy: one reason per line; empty if it is.
    pub(super) fn ailments(&self) -> Vec<String> {
        (self.refresh.0)(&self.metrics);
        let stuck = |core: &CoreMetrics| core.watchdog.stuck_seconds.get();
        let cores = self.metrics.cores().iter().map(stuck).enumerate();
        let stuck = cores
            .filter(|(_, seconds)| *seconds >= STUCK_SECONDS_MAX)
            .map(|(core, seconds)| format!("core {core} has made no progress for {seconds} s"));
        self.status.failure().into_iter().chain(stuck).collect()
    }

    /// Partitions that refuse appends, over all cores.
    pub(super) fn fenced(&self) -> u64 {
        self.metrics.sum(|core| core.partitions_fenced.get())
    }

    pub(super) fn phase(&self) -> Phase {
        self.status.phase()
    }
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf reads a constant of the system.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page_bytes).ok()?)
}
