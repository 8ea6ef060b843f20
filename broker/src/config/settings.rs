//! The table of settings. Every other list of settings is made from it.
//!
//! To add one: a row here, a field in `model::Config`, its line in `resolve`. A test then asks for
//! `UPDATE_GOLDEN=1 cargo test -p tackboard-broker`, which rewrites `config/broker.toml` and
//! `docs/configuration.md`.
//!
//! Names: a setting that Kafka's brokers have keeps Kafka's name; ours say their section first and
//! their unit, then `_max`, last.

use super::similar::{edit_distance, is_near, normalized};

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The dotted key, as in the file and after `--set`.
    pub key: &'static str,
    /// Type and bounds.
    pub kind: Kind,
    /// The default, as it stands in the file (TOML).
    pub default: &'static str,
    /// What it does and when to change it.
    pub text: &'static str,
    /// Kafka's name for it, or the KIP it follows.
    pub kafka: Option<&'static str>,
    /// Whether a change needs a restart. All do, so far.
    pub restart: bool,
}

/// Type and bounds of a value. `words` are accepted besides.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant says what its fields bound")]
pub enum Kind {
    /// `"128 MiB"`, or digits alone for bytes.
    Size {
        min: u64,
        max: u64,
        words: &'static [&'static str],
    },
    /// `"7 d"`, or digits alone for milliseconds; bounds in milliseconds.
    Duration {
        min_ms: u64,
        max_ms: u64,
        words: &'static [&'static str],
    },
    /// A whole number.
    Integer {
        min: i64,
        max: i64,
        words: &'static [&'static str],
    },
    /// `"127.0.0.1:7400"`: an IP address and a port.
    Address { words: &'static [&'static str] },
    /// `"broker-1.example.org:7400"`, or a word.
    HostPort { words: &'static [&'static str] },
    /// `"broker-1.example.org"`, or a word.
    Host { words: &'static [&'static str] },
    /// A folder.
    Path,
    /// `"all"` or CPU ids, `[0, 1]`.
    Cores,
    /// `"all"` or a number of replicas.
    Acks,
    /// `true` or `false`.
    Switch,
    /// One of some words.
    Choice(&'static [&'static str]),
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600 * SECOND_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A titled group of settings.
#[derive(Debug)]
pub struct Section {
    /// Heading in the file and on the page.
    pub title: &'static str,
    /// In the order in which they are shown.
    pub settings: &'static [Setting],
}

const fn setting(
    key: &'static str,
    kind: Kind,
    default: &'static str,
    kafka: Option<&'static str>,
    text: &'static str,
) -> Setting {
    Setting {
        key,
        kind,
        default,
        text,
        kafka,
        restart: true,
    }
}

/// All settings, by section.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "The broker",
        settings: BROKER,
    },
    Section {
        title: "Listeners",
        settings: LISTENERS,
    },
    Section {
        title: "Acknowledgement and durability",
        settings: ACKNOWLEDGEMENT,
    },
    Section {
        title: "Logs",
        settings: LOGS,
    },
    Section {
        title: "Topics",
        settings: TOPICS,
    },
    Section {
        title: "Consumer groups",
        settings: GROUPS,
    },
    Section {
        title: "Limits",
        settings: LIMITS,
    },
    Section {
        title: "Operation",
        settings: OPERATION,
    },
];

const BROKER: &[Setting] = &[
    setting(
        "broker.id",
        Kind::Integer {
            min: 0,
            max: i32::MAX as i64,
            words: &[],
        },
        "1",
        Some("node.id"),
        "Number of this broker in the cluster. It is written into the data folder at the first start and must not change afterwards.",
    ),
    setting(
        "data.dir",
        Kind::Path,
        "\"./tackboard-data\"",
        Some("log.dirs"),
        "Folder of everything the broker keeps. Put it on a local disk with ext4 or XFS. `--data DIR` sets it too.",
    ),
    setting(
        "cores",
        Kind::Cores,
        "\"all\"",
        None,
        "CPUs that the broker uses, one pinned thread each: \"all\" that the process may run on, or a list like [0, 1]. Partitions are spread over them; a restart with another number only moves ownership.",
    ),
    setting(
        "core.spin",
        Kind::Duration {
            min_ms: 0,
            max_ms: 10,
            words: &[],
        },
        "\"0 ms\"",
        None,
        "How long an idle core looks for work before it sleeps. On CPUs that the broker has to itself some tens of microseconds can save requests the wake-up, for a core that is seldom seen idle; measure it before you keep it. Leave it at 0 where other programs, the load generator among them, run on the same CPUs.",
    ),
    setting(
        "memory.total",
        Kind::Size {
            min: 64 * MIB,
            max: 64 * TIB,
            words: &["auto"],
        },
        "\"auto\"",
        None,
        "Memory for append buffers, tail cache, sockets, indexes and reads of history of all cores together. \"auto\" is a quarter of the cgroup's limit or, without one, of the host's memory.",
    ),
];

const LISTENERS: &[Setting] = &[
    setting(
        "native.bind",
        Kind::Address { words: &[] },
        "\"127.0.0.1:7400\"",
        Some("listeners"),
        "Address of the native listener that any core serves; clients begin here. Port 0: the system picks one.",
    ),
    setting(
        "native.advertised",
        Kind::HostPort { words: &["none"] },
        "\"none\"",
        Some("advertised.listeners"),
        "Host and port that clients are told instead of native.bind. Needed when native.bind is 0.0.0.0 or [::], or behind address translation.",
    ),
    setting(
        "kafka.bind",
        Kind::Address { words: &["off"] },
        "\"127.0.0.1:9092\"",
        Some("listeners"),
        "Address of the listener for clients of Apache Kafka, which any core serves. \"off\" turns it off. Port 0: the system picks one.",
    ),
    setting(
        "kafka.advertised",
        Kind::HostPort { words: &["none"] },
        "\"none\"",
        Some("advertised.listeners"),
        "Host and port that clients of Apache Kafka are told instead of kafka.bind. Needed when kafka.bind is 0.0.0.0 or [::], or behind address translation.",
    ),
    setting(
        "native.core_bind",
        Kind::Address { words: &[] },
        "\"127.0.0.1:7401\"",
        None,
        "Address of the cores' own listeners: core i listens on port + i, and native clients connect to the core that owns their partition. Port 0: the system picks one for each.",
    ),
    setting(
        "native.core_advertised_host",
        Kind::Host { words: &["none"] },
        "\"none\"",
        None,
        "Host that clients are told for the cores' own listeners. \"none\": the host of native.advertised, else the address of native.core_bind.",
    ),
    setting(
        "http.bind",
        Kind::Address { words: &["off"] },
        "\"127.0.0.1:8400\"",
        None,
        "Address of the admin HTTP server with /metrics, /healthz and /readyz, or \"off\". It has no access control: keep it off public networks.",
    ),
];

const ACKNOWLEDGEMENT: &[Setting] = &[
    setting(
        "acks.default",
        Kind::Acks,
        "\"all\"",
        Some("acks (a producer setting there)"),
        "How many replicas hold a record before its producer gets an answer, for requests that name no level and topics that set none: \"all\" in sync, a number, or 0 for no answer at all.",
    ),
    setting(
        "acks.min",
        Kind::Acks,
        "0",
        None,
        "Floor under acks, whatever a request says. A topic can raise it.",
    ),
    setting(
        "durability.default",
        Kind::Choice(&["fsync", "interval", "written"]),
        "\"fsync\"",
        Some("log.flush.interval.messages = 1 comes closest to fsync"),
        "When a replica's copy counts: \"fsync\" on the medium (survives power loss), \"interval\" written with direct I/O and synced in the background, \"written\" written, and synced when its segment is full and at a clean stop. All three survive a kill of the process. A request or a topic can name another; a request only a stronger one.",
    ),
    setting(
        "durability.interval",
        Kind::Duration {
            min_ms: 1,
            max_ms: HOUR_MS,
            words: &[],
        },
        "\"100 ms\"",
        Some("log.flush.interval.ms"),
        "Under \"interval\": the longest time between a write and its sync.",
    ),
    setting(
        "durability.interval_bytes",
        Kind::Size {
            min: 4 * KIB,
            max: GIB,
            words: &[],
        },
        "\"1 MiB\"",
        None,
        "Under \"interval\": so many written bytes of one partition bring its sync forward.",
    ),
];

const LOGS: &[Setting] = &[
    setting(
        "log.segment.bytes",
        Kind::Size {
            min: MIB,
            max: 2 * GIB,
            words: &[],
        },
        "\"128 MiB\"",
        Some("log.segment.bytes"),
        "A log is a row of segment files; a new one begins before the newest would grow past this. Retention deletes whole segments.",
    ),
    setting(
        "log.roll.ms",
        Kind::Duration {
            min_ms: SECOND_MS,
            max_ms: 365 * DAY_MS,
            words: &["auto"],
        },
        "\"auto\"",
        Some("log.roll.ms"),
        "A new segment also begins when the newest one's first append is this long ago. \"auto\": a fourteenth of log.retention.ms, so 12 h at 7 d; 7 d without a retention by time.",
    ),
    setting(
        "log.index.interval.bytes",
        Kind::Size {
            min: 4 * KIB,
            max: 16 * MIB,
            words: &[],
        },
        "\"32 KiB\"",
        Some("log.index.interval.bytes"),
        "One entry of the offset index for so many bytes of log. Smaller: faster seeks, more memory.",
    ),
    setting(
        "log.retention.ms",
        Kind::Duration {
            min_ms: SECOND_MS,
            max_ms: 36_500 * DAY_MS,
            words: &["none"],
        },
        "\"7 d\"",
        Some("log.retention.ms"),
        "Events are kept this long after they were appended (by the broker's clock), read or not; \"none\": for ever. A topic can set its own.",
    ),
    setting(
        "log.retention.bytes",
        Kind::Size {
            min: MIB,
            max: 1024 * TIB,
            words: &["none"],
        },
        "\"none\"",
        Some("log.retention.bytes"),
        "Size of one partition's log above which its oldest segments are deleted; \"none\": no bound. A topic can set its own.",
    ),
    setting(
        "log.budget.bytes",
        Kind::Size {
            min: 16 * MIB,
            max: 1024 * TIB,
            words: &["none"],
        },
        "\"none\"",
        None,
        "Size of all logs of the broker together above which the oldest segments are deleted, whichever partition they are in; \"none\": no bound. With a budget the oldest segments also go when the disk has little space left, whoever took it, so that produce requests are not refused: less than storage.reserve_bytes, or a sixteenth of the budget (64 MiB at most) if that is more, and what came in the last two seconds. Where load is faster than that, producers wait until segments have gone; they are refused only if nothing more can go. So the budget may be as large as the disk. The segment that a partition appends to cannot go: it is ended at an eighth of the budget divided by the number of cores (but not below 1 MiB) if log.segment.bytes is more, and earlier, the largest first, while those of all partitions have more than a quarter of the budget; up to 64 KiB of each partition stay. It is looked at once a second, and more often while producers wait. A topic is exempt with tackboard.retention.budget = exempt; retention by time and by partition holds besides.",
    ),
    setting(
        "storage.direct_io",
        Kind::Choice(&["require", "prefer"]),
        "\"require\"",
        None,
        "\"require\": the broker starts only where the file system takes direct I/O. \"prefer\": elsewhere, as on some overlay and network file systems, it goes on with buffered I/O and says so at the start, in `tackboard check` and in the metric tackboard_storage_info. Durability levels keep their meaning; it is slower. On tmpfs and ramfs nothing survives a restart of the machine.",
    ),
    setting(
        "storage.missing_ledger",
        Kind::Choice(&["refuse", "scan"]),
        "\"refuse\"",
        None,
        "What to do when ledgers of the data folder are gone or cannot be read, so that nothing tells how far its logs were durable. \"refuse\": do not start. \"scan\": every batch that holds is kept; from the first one that does not hold a log is cut off, though it may have been acknowledged, and each such log is named. For one start, after a copy of the folder was made.",
    ),
    setting(
        "storage.syncfs",
        Kind::Choice(&["auto", "never"]),
        "\"auto\"",
        None,
        "How very many dirty logs are put on the medium. \"auto\": all at once with syncfs(2) where that costs less than syncing each, as measured, and where the device is seen to empty its cache. \"never\": each by itself; for a data folder on a file system that others write much to.",
    ),
    setting(
        "storage.reserve_bytes",
        Kind::Size {
            min: 0,
            max: 64 * TIB,
            words: &["auto"],
        },
        "\"auto\"",
        None,
        "With less free space than this, produce requests are refused with STORAGE_FULL; reads and retention go on. With log.budget.bytes the oldest segments go instead, and what has arrived by then may use the reserve. \"auto\": 5 % of the file system, at most 1 GiB.",
    ),
];

const TOPICS: &[Setting] = &[
    setting(
        "num.partitions",
        Kind::Integer {
            min: 1,
            max: 10_000,
            words: &[],
        },
        "1",
        Some("num.partitions"),
        "Partitions of a topic whose creator names no number.",
    ),
    setting(
        "auto.create.topics.enable",
        Kind::Switch,
        "true",
        Some("auto.create.topics.enable"),
        "Whether a topic is created when a client of Apache Kafka asks for one that does not exist.",
    ),
    setting(
        "default.replication.factor",
        Kind::Integer {
            min: 1,
            max: i16::MAX as i64,
            words: &[],
        },
        "1",
        Some("default.replication.factor"),
        "Replicas of a topic whose creator names no number. At most the number of brokers.",
    ),
    setting(
        "min.insync.replicas",
        Kind::Integer {
            min: 1,
            max: i16::MAX as i64,
            words: &[],
        },
        "1",
        Some("min.insync.replicas"),
        "With acks \"all\": fewer replicas in sync than this refuse the request. It may not exceed the replicas that there can be: with one broker it is 1, which changes nothing.",
    ),
    setting(
        "message.max.bytes",
        Kind::Size {
            min: KIB,
            max: GIB,
            words: &[],
        },
        "1048588",
        Some("message.max.bytes"),
        "Largest record batch, compressed as it comes. A topic can set its own.",
    ),
];

const GROUPS: &[Setting] = &[
    setting(
        "offsets.topic.num.partitions",
        Kind::Integer {
            min: 1,
            max: 1_000,
            words: &[],
        },
        "16",
        Some("offsets.topic.num.partitions"),
        "Partitions of __consumer_offsets, the internal topic of consumer groups, which is created when the first group is asked for. A group belongs to one of them, and is coordinated by the core that owns it. Once the topic is there, this changes nothing.",
    ),
    setting(
        "group.initial.rebalance.delay.ms",
        Kind::Duration {
            min_ms: 0,
            max_ms: 5 * 60 * SECOND_MS,
            words: &[],
        },
        "\"3 s\"",
        Some("group.initial.rebalance.delay.ms"),
        "How long the first rebalance of an empty group waits for more members.",
    ),
    setting(
        "group.min.session.timeout.ms",
        Kind::Duration {
            min_ms: 1,
            max_ms: 60 * 60 * SECOND_MS,
            words: &[],
        },
        "\"6 s\"",
        Some("group.min.session.timeout.ms"),
        "The shortest session time-out that a member may ask for: after so long without a heartbeat it has lost its place.",
    ),
    setting(
        "group.max.session.timeout.ms",
        Kind::Duration {
            min_ms: 1,
            max_ms: 24 * 60 * 60 * SECOND_MS,
            words: &[],
        },
        "\"30 min\"",
        Some("group.max.session.timeout.ms"),
        "The longest one.",
    ),
    setting(
        "group.max.size",
        Kind::Integer {
            min: 1,
            max: 100_000,
            words: &[],
        },
        "5000",
        Some("group.max.size"),
        "Members of one group. What they tell each other is bounded besides: their subscriptions together by 1 MiB, and so are their assignments.",
    ),
    setting(
        "groups.per_partition_max",
        Kind::Integer {
            min: 1,
            max: 1_000_000,
            words: &[],
        },
        "10000",
        None,
        "Groups that one partition of __consumer_offsets holds; one more is refused with POLICY_VIOLATION.",
    ),
    setting(
        "groups.bytes_per_partition_max",
        Kind::Size {
            min: MIB,
            max: 64 * GIB,
            words: &[],
        },
        "\"64 MiB\"",
        None,
        "Memory that the groups of one partition of __consumer_offsets may take: their members, what is assigned to these, and what they have committed. Above it new members and new offsets are refused with POLICY_VIOLATION, assignments with GROUP_MAX_SIZE_REACHED; offsets that are there move on. Of one group, members take 1 MiB at most, assignments as much (both else GROUP_MAX_SIZE_REACHED), offsets 8 MiB, and one commit 4 MiB.",
    ),
    setting(
        "offset.metadata.max.bytes",
        Kind::Integer {
            min: 0,
            max: 32_767,
            words: &[],
        },
        "4096",
        Some("offset.metadata.max.bytes"),
        "Longest text that a consumer may keep with a committed offset, in bytes.",
    ),
    setting(
        "offsets.retention.ms",
        Kind::Duration {
            min_ms: 1,
            max_ms: 10 * 365 * DAY_MS,
            words: &[],
        },
        "\"7 d\"",
        Some("offsets.retention.minutes"),
        "How long committed offsets are kept that nobody uses: those of a group that has been empty for so long, those of topics that no member of a group at work reads, and, for consumers that assign partitions to themselves, those that were committed so long ago.",
    ),
    setting(
        "offsets.retention.check.interval.ms",
        Kind::Duration {
            min_ms: 1,
            max_ms: DAY_MS,
            words: &[],
        },
        "\"10 min\"",
        Some("offsets.retention.check.interval.ms"),
        "How often it is looked for such offsets.",
    ),
];

const LIMITS: &[Setting] = &[
    setting(
        "native.frame_bytes_max",
        Kind::Size {
            min: 64 * KIB,
            max: GIB,
            words: &[],
        },
        "\"16 MiB\"",
        Some("socket.request.max.bytes"),
        "Largest frame in either direction, of both listeners; so it bounds what one fetch returns.",
    ),
    setting(
        "native.connections_max",
        Kind::Integer {
            min: 1,
            max: 1_000_000,
            words: &["auto"],
        },
        "\"auto\"",
        Some("max.connections"),
        "Connections of one core, of both listeners together. A connection beyond it is closed at once. Each needs two open files and, beside memory.total, a read buffer of 4 KiB that grows to 256 KiB while its client is busy. `auto`: 10,000, or what the limit on open files (`ulimit -Hn`) leaves beside the partitions, but not less than 256; `tackboard check` compares.",
    ),
    setting(
        "native.connections_per_address_max",
        Kind::Integer {
            min: 1,
            max: 1_000_000,
            words: &["none"],
        },
        "\"none\"",
        Some("max.connections.per.ip"),
        "Connections of one core, of both listeners together, that come from one IP address; \"none\": as many as native.connections_max. One beyond it is closed at once. Clients behind one address translation share theirs.",
    ),
    setting(
        "native.requests_in_flight_max",
        Kind::Integer {
            min: 1,
            max: 100_000,
            words: &[],
        },
        "256",
        Some("max.in.flight.requests.per.connection (a producer setting there)"),
        "Unanswered requests of one connection; at the bound the broker stops reading from it.",
    ),
    setting(
        "native.request_bytes_in_flight_max",
        Kind::Size {
            min: 64 * KIB,
            max: GIB,
            words: &[],
        },
        "\"8 MiB\"",
        Some("queued.max.request.bytes"),
        "Bytes of unanswered requests of one connection; at the bound the broker stops reading from it. A single larger request is still taken.",
    ),
    setting(
        "storage.partitions_per_core_max",
        Kind::Integer {
            min: 1,
            max: 100_000,
            words: &[],
        },
        "1000",
        None,
        "Partitions that one core may own; topics beyond it are refused. Each needs at least two open files and some memory.",
    ),
];

const OPERATION: &[Setting] = &[
    setting(
        "shutdown.deadline",
        Kind::Duration {
            min_ms: 0,
            max_ms: HOUR_MS,
            words: &[],
        },
        "\"30 s\"",
        None,
        "SIGTERM and SIGINT stop the broker cleanly: answer what was asked, write, sync. After this long it exits anyway, and the next start recovers as after a crash.",
    ),
    setting(
        "logging.level",
        Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
        "\"info\"",
        None,
        "Least important log lines that are written (to stderr).",
    ),
    setting(
        "logging.format",
        Kind::Choice(&["text", "json"]),
        "\"text\"",
        None,
        "\"text\" for people, \"json\" one object per line for collectors.",
    ),
];

/// All settings in order.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}

/// The setting of that key.
pub fn find(key: &str) -> Option<&'static Setting> {
    all().find(|setting| setting.key == key)
}

/// The setting whose key is nearest to `key`, if it is near enough to be meant.
///
/// Compared are whole keys, with `_` and `.` taken as equal, and also the words in them, so that
/// `segment_bytes` and `retension.ms` find `log.segment.bytes` and `log.retention.ms`.
pub fn nearest(key: &str) -> Option<&'static Setting> {
    let wanted = normalized(key);
    all()
        .map(|setting| {
            let candidate = normalized(setting.key);
            let whole = edit_distance(&wanted, &candidate);
            let without_section = candidate.split_once('.').map_or(usize::MAX, |(_, rest)| {
                edit_distance(&wanted, rest).saturating_add(1)
            });
            let both_without_section = match (wanted.split_once('.'), candidate.split_once('.')) {
                (Some((_, left)), Some((_, right))) => edit_distance(left, right) + 2,
                _ => usize::MAX,
            };
            (
                whole.min(without_section).min(both_without_section),
                setting,
            )
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| is_near(*distance, &wanted))
        .map(|(_, setting)| setting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_topic_may_have_as_many_partitions_by_default_as_when_it_is_asked_for() {
        let kind = &find("num.partitions").expect("a setting").kind;
        let most = i64::from(tackboard_logic::metadata::PARTITIONS_MAX);
        assert!(matches!(kind, Kind::Integer { max, .. } if *max == most));
    }

    #[test]
    fn keys_are_unique_and_no_key_is_the_table_of_another() {
        let keys: BTreeSet<_> = all().map(|setting| setting.key).collect();
        assert_eq!(keys.len(), all().count());
        for key in &keys {
            let table = format!("{key}.");
            assert!(
                !keys.iter().any(|other| other.starts_with(&table)),
                "{key} is also a table"
            );
        }
    }

    #[test]
    fn near_misses_find_what_was_meant() {
        let nearest_key = |key| nearest(key).map(|setting| setting.key);
        assert_eq!(nearest_key("retension.ms"), Some("log.retention.ms"));
        assert_eq!(nearest_key("log.retention_ms"), Some("log.retention.ms"));
        assert_eq!(
            nearest_key("storage.segment_bytes"),
            Some("log.segment.bytes")
        );
        assert_eq!(nearest_key("acks.defualt"), Some("acks.default"));
        assert_eq!(nearest_key("data.dri"), Some("data.dir"));
        assert_eq!(nearest_key("colour.of.the.sky"), None);
    }
}
