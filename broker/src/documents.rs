//! Pages of `docs/` that repeat what code says, held against the code.

use tackboard_logic::metadata::TOPIC_SETTINGS;

use crate::bridge::metrics::CORE_METRICS;
use crate::config::MemoryBudget;
use crate::config::render::{self, TopicSettingRow};
use crate::config::settings;
use crate::control::metrics;
use crate::golden;

#[test]
fn the_configuration_page_is_as_rendered() {
    let allowed: Vec<String> = TOPIC_SETTINGS
        .iter()
        .map(|setting| setting.kind.to_string())
        .collect();
    let rows: Vec<TopicSettingRow<'_>> = TOPIC_SETTINGS
        .iter()
        .zip(&allowed)
        .map(|(setting, allowed)| TopicSettingRow {
            key: setting.name,
            kafka_key: setting.kafka_name,
            allowed,
            default_from: setting.default_from,
            text: setting.text,
        })
        .collect();
    golden::check("docs/configuration.md", &render::page(&rows));
}

#[test]
fn what_a_topic_does_not_set_comes_from_a_setting_that_exists() {
    for setting in TOPIC_SETTINGS {
        let is_setting = settings::find(setting.default_from).is_some();
        assert!(
            is_setting || !setting.default_from.contains('.'),
            "{setting:?}"
        );
    }
}

#[test]
fn the_metrics_of_the_operations_page_are_those_that_are_exposed() {
    golden::check_section("docs/operations.md", "metrics", &metrics::table());
}

/// One bound on what the broker uses. Settings and metrics are named as their own tables have them.
struct Budget {
    what: &'static str,
    setting: &'static str,
    /// The part of the setting that this is, of each core's.
    share: Option<fn(&MemoryBudget) -> u64>,
    /// Of what is used now, and of what was refused.
    metrics: &'static [&'static str],
    over: &'static str,
}

const BUDGETS: &[Budget] = &[
    Budget {
        what: "memory of all cores",
        setting: "memory.total",
        share: None,
        metrics: &["memory_budget_bytes", "memory_resident_bytes"],
        over: "its shares below are held to, each by itself",
    },
    Budget {
        what: "… append buffers",
        setting: "memory.total",
        share: Some(|memory| memory.per_core.append),
        metrics: &["memory_append_bytes"],
        over: "produce requests stay unread in the sockets; at twice as much they are refused: `OVER_BUDGET`",
    },
    Budget {
        what: "… tail cache",
        setting: "memory.total",
        share: Some(|memory| memory.per_core.tail_cache),
        metrics: &["memory_tail_cache_bytes"],
        over: "what is oldest leaves it",
    },
    Budget {
        what: "… reads of history",
        setting: "memory.total",
        share: Some(|memory| memory.per_core.cold_reads),
        metrics: &["memory_cold_read_bytes", "memory_cold_kept_bytes"],
        over: "a fetch that would read more gets `OVER_BUDGET`; our client tries again",
    },
    Budget {
        what: "… large frames in sockets",
        setting: "memory.total",
        share: Some(|memory| memory.per_core.sockets),
        metrics: &["memory_socket_bytes", "frames_over_budget_total"],
        over: "a frame for which there is no room ends its connection",
    },
    Budget {
        what: "… indexes",
        setting: "memory.total",
        share: Some(|memory| memory.per_core.indexes),
        metrics: &["memory_index_bytes"],
        over: "those of the oldest segments are thinned out",
    },
    Budget {
        what: "connections of a core",
        setting: "native.connections_max",
        share: None,
        metrics: &["connections_open", "connections_refused_total"],
        over: "the connection is closed at once; a line in the log every 10 s at most",
    },
    Budget {
        what: "… from one address",
        setting: "native.connections_per_address_max",
        share: None,
        metrics: &["connections_refused_per_address_total"],
        over: "the same",
    },
    Budget {
        what: "size of a frame",
        setting: "native.frame_bytes_max",
        share: None,
        metrics: &["frames_broken_total"],
        over: "the connection ends before memory is taken for it; answers are cut to whole batches",
    },
    Budget {
        what: "size of a record batch",
        setting: "message.max.bytes",
        share: None,
        metrics: &["produce_batches_refused_total"],
        over: "refused: `MESSAGE_TOO_LARGE`",
    },
    Budget {
        what: "requests of a connection in flight",
        setting: "native.requests_in_flight_max",
        share: None,
        metrics: &["requests_in_flight"],
        over: "its next ones stay unread until some are answered",
    },
    Budget {
        what: "… and their bytes",
        setting: "native.request_bytes_in_flight_max",
        share: None,
        metrics: &["request_bytes_in_flight"],
        over: "the same",
    },
    Budget {
        what: "partitions of a core",
        setting: "storage.partitions_per_core_max",
        share: None,
        metrics: &["partitions"],
        over: "a topic is not created: `POLICY_VIOLATION`",
    },
    Budget {
        what: "all logs",
        setting: "log.budget.bytes",
        share: None,
        metrics: &[
            "log_budget_bytes",
            "log_bytes",
            "log_budget_dropped_bytes_total",
            "producers_await_room",
        ],
        over: "the oldest segments go; producers wait where load is faster than that",
    },
    Budget {
        what: "free space",
        setting: "storage.reserve_bytes",
        share: None,
        metrics: &["storage_reserve_bytes", "storage_free_bytes"],
        over: "produce requests and new topics are refused: `STORAGE_FULL`; with `log.budget.bytes` the oldest segments go first",
    },
];

fn budget_rows() -> String {
    use std::fmt::Write as _;
    let mut out =
        String::from("| what | setting | default | metrics | over it |\n|---|---|---|---|---|\n");
    let whole = 100 << 20;
    for budget in BUDGETS {
        let setting = settings::find(budget.setting).expect("the table names settings");
        let default = match budget.share {
            Some(share) => {
                let percent = share(&MemoryBudget::split(whole, 1)) * 100 / whole;
                format!("{percent} % of the core's part")
            }
            None => format!("`{}`", setting.default),
        };
        let metrics: Vec<String> = (budget.metrics.iter())
            .map(|name| format!("`tackboard_{name}`"))
            .collect();
        let (what, key, metrics) = (budget.what, budget.setting, metrics.join(", "));
        let _ = writeln!(
            out,
            "| {what} | `{key}` | {default} | {metrics} | {} |",
            budget.over
        );
    }
    out
}

#[test]
fn the_budgets_of_the_operations_page_are_those_of_the_tables() {
    golden::check_section("docs/operations.md", "budgets", &budget_rows());
}

#[test]
fn every_budget_has_metrics_that_exist() {
    let exposed = metrics::table();
    for name in BUDGETS.iter().flat_map(|budget| budget.metrics) {
        assert!(
            exposed.contains(&format!("| `tackboard_{name}` |")),
            "{name}"
        );
    }
    let memory = CORE_METRICS
        .iter()
        .filter(|metric| metric.name.starts_with("memory_"))
        .map(|metric| metric.name);
    for name in memory {
        let is_listed = BUDGETS.iter().any(|budget| budget.metrics.contains(&name));
        assert!(is_listed, "{name} is memory without a budget");
    }
}
