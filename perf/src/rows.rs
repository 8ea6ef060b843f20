//! What was to be reached, row by row: where each figure is, what it is held against, and which measurement of `perf/all`
//! brings it.

use tackboard_schema::Durability::{Fsync, Written};

use crate::{
    subject::{self, Subject},
    table::{Kept, Line, Series},
};

/// One thing that is to be reached.
pub struct Row {
    /// What.
    pub what: &'static str,
    /// The measurement of `perf/all` that it needs.
    pub measurement: &'static str,
    /// Its lines.
    pub lines: fn(&Kept) -> Vec<Line>,
}

/// All of them.
pub const ROWS: &[Row] = &[
    Row {
        what: "Produce, 8 connections",
        measurement: "produce",
        lines: produce,
    },
    Row {
        what: "The broker's CPU for a million events",
        measurement: "produce",
        lines: produce_cpu,
    },
    Row {
        what: "One core for the broker, one for the load",
        measurement: "one-core",
        lines: one_core,
    },
    Row {
        what: "Open loop, 20,000 events a second in batches of 10",
        measurement: "open-loop",
        lines: open_loop,
    },
    Row {
        what: "Open loop, 100,000 events a second, `fsync`, 1 and 1,000 partitions",
        measurement: "partitions",
        lines: partitions,
    },
    Row {
        what: "The same over 100 partitions, on a disk whose sync takes 2 and 10 ms",
        measurement: "slow-sync",
        lines: slow_sync,
    },
    Row {
        what: "Consume hot data, 8 logs",
        measurement: "read-hot",
        lines: read_hot,
    },
    Row {
        what: "Consume cold data, 8 logs",
        measurement: "read-cold",
        lines: read_cold,
    },
    Row {
        what: "Produce while a consumer reads 10 GB from the disk",
        measurement: "cold-reader",
        lines: cold_reader,
    },
    Row {
        what: "64 producers with small keyed batches against 1, at the same rate",
        measurement: "producers",
        lines: producers,
    },
    Row {
        what: "Events for a second of the broker's CPU, 100 bytes in batches of 16 KiB, against other brokers",
        measurement: "peers-small",
        lines: peers_small,
    },
    Row {
        what: "The same, 1 KiB in batches of 128 KiB",
        measurement: "peers-large",
        lines: peers_large,
    },
    Row {
        what: "p99 and p99.9 at 20,000 events a second, against other brokers",
        measurement: "peers-open-loop",
        lines: peers_open_loop,
    },
    Row {
        what: "Through the door for clients of Kafka, beside the native one",
        measurement: "doors",
        lines: doors,
    },
    Row {
        what: "Through that door against Apache Kafka, flat out, 100 bytes in batches of 16 KiB",
        measurement: "peers-small",
        lines: kafka_flat_out,
    },
    Row {
        what: "The same at 20,000 events a second",
        measurement: "peers-open-loop",
        lines: kafka_open_loop,
    },
    Row {
        what: "Start with 1,000 partitions and 10 GB after kill -9",
        measurement: "start-full",
        lines: start_full,
    },
    Row {
        what: "An empty broker, and an idle one",
        measurement: "start-empty",
        lines: start_empty,
    },
    Row {
        what: "Memory beside the budget",
        measurement: "memory",
        lines: memory,
    },
    Row {
        what: "Consumer groups at the door for clients of Kafka, heartbeats every 0.5 s",
        measurement: "group-rebalance",
        lines: group_rebalance,
    },
];

const WRITTEN: Subject = Subject::Tackboard(Written);
const FSYNC: Subject = Subject::Tackboard(Fsync);

/// Bytes of the value of an event of `large`.
const LARGE: f64 = 1024.0;
/// Apache Iggy 0.8 under `fsync`, million events a second, small and large. It is in no ordinary package: these were
/// measured once with the same workloads, on another machine of this kind (docs/performance.md, "Peers").
const IGGY_FSYNC: [f64; 2] = [0.329, 0.223];

fn scaled(series: Series, factor: f64) -> Series {
    series.into_iter().map(|value| value * factor).collect()
}

fn million_events(kept: &Kept, file: &str, subject: Subject) -> Series {
    scaled(kept.rounds(file, subject, "/events_per_second"), 1e-6)
}

fn milliseconds(kept: &Kept, file: &str, subject: Subject, percentile: &str) -> Series {
    scaled(
        kept.rounds(file, subject, &format!("/latency/{percentile}_us")),
        1e-3,
    )
}

fn produce(kept: &Kept) -> Vec<Line> {
    let reference = subject::BUFFERED_WRITE;
    let against = |workload: &str, subject, what: &str| {
        let file = format!("run-{workload}");
        let line = Line::new(what, million_events(kept, &file, subject), "M ev/s");
        line.beside(reference.name(), million_events(kept, &file, reference))
    };
    let redis = |workload: &str, what: &str| {
        let file = format!("peers-{workload}");
        let line = Line::new(what, million_events(kept, &file, FSYNC), "M ev/s");
        line.beside(
            subject::REDIS_ALWAYS.name(),
            million_events(kept, &file, subject::REDIS_ALWAYS),
        )
        .ratio_at_least(6.0)
    };
    let large = scaled(million_events(kept, "run-large", FSYNC), LARGE / 1e3);
    let iggy = |workload: &str, what: &str, iggy: f64| {
        let line = Line::new(
            what,
            million_events(kept, &format!("run-{workload}"), FSYNC),
            "M ev/s",
        );
        line.at_least(4.0 * iggy)
    };
    vec![
        against("small", WRITTEN, "`small`, `written`").ratio_at_least(0.8),
        against("large", WRITTEN, "`large`, `written`").ratio_at_least(1.5),
        against("small", FSYNC, "`small`, `fsync`").at_least(5.0),
        Line::new("`large`, `fsync`", large, "GB/s").at_least(1.5),
        redis(
            "small",
            "`small`, `fsync`, beside Redis (`perf/all peers-small`)",
        ),
        redis(
            "large",
            "`large`, `fsync`, beside Redis (`perf/all peers-large`)",
        ),
        iggy(
            "small",
            "`small`, `fsync`, against 4 times Iggy 0.8 in another sitting",
            IGGY_FSYNC[0],
        ),
        iggy(
            "large",
            "`large`, `fsync`, against 4 times Iggy 0.8 in another sitting",
            IGGY_FSYNC[1],
        ),
    ]
}

fn produce_cpu(kept: &Kept) -> Vec<Line> {
    let cpu = |workload: &str, subject: Subject| {
        let series = kept.rounds(
            &format!("run-{workload}"),
            subject,
            "/cpu_seconds_per_million",
        );
        Line::new(format!("`{workload}`, {}", subject.name()), series, "s")
    };
    vec![
        cpu("small", WRITTEN).at_most(0.15),
        cpu("small", FSYNC).at_most(0.15),
        cpu("large", WRITTEN).at_most(0.7),
        cpu("large", FSYNC).at_most(0.7),
    ]
}

fn one_core(kept: &Kept) -> Vec<Line> {
    let rate = |workload: &str, subject: Subject| {
        let series = million_events(kept, &format!("one-core-{workload}"), subject);
        Line::new(
            format!("`{workload}`, {}", subject.name()),
            series,
            "M ev/s",
        )
    };
    vec![
        rate("small", WRITTEN).at_least(5.0),
        rate("small", FSYNC),
        rate("large", WRITTEN).at_least(0.8),
        rate("large", FSYNC),
    ]
}

/// The sums of the rounds of two series.
fn sum(left: Series, right: &Series) -> Series {
    match left.len() == right.len() {
        true => left.iter().zip(right).map(|(a, b)| a + b).collect(),
        false => Series::new(),
    }
}

fn open_loop(kept: &Kept) -> Vec<Line> {
    const FILE: &str = "run-open-20k";
    /// What our broker may take beyond the bare sum at p50.
    const BEYOND_MS: f64 = 0.03;
    let limit = |what: &str, percentile: &str| {
        scaled(kept.limits(FILE, &format!("/{what}/{percentile}_us")), 1e-3)
    };
    let mut lines = Vec::new();
    for (subject, write, name) in [
        (WRITTEN, "write", "ping-pong + write"),
        (FSYNC, "write_dsync", "ping-pong + write O_DSYNC"),
    ] {
        let bare = |percentile| sum(limit("ping_pong", percentile), &limit(write, percentile));
        let line = |percentile, what: String| {
            Line::new(what, milliseconds(kept, FILE, subject, percentile), "ms")
        };
        let beyond = milliseconds(kept, FILE, subject, "p50");
        let negative = scaled(bare("p50"), -1.0);
        lines.extend([
            line("p50", format!("{}, p50", subject.name())).beside(name, bare("p50")),
            Line::new("what it takes beyond that", sum(beyond, &negative), "ms").at_most(BEYOND_MS),
            line("p99", format!("{}, p99", subject.name()))
                .beside(name, bare("p99"))
                .ratio_at_most(2.0),
            line("p999", format!("{}, p99.9", subject.name()))
                .beside(name, bare("p999"))
                .ratio_at_most(2.0),
            late(kept, FILE, subject),
        ]);
    }
    lines
}

/// The driver itself is to keep to its schedule.
fn late(kept: &Kept, file: &str, subject: Subject) -> Line {
    let share = scaled(kept.rounds(file, subject, "/late_share"), 100.0);
    let what = format!("{}: sent late by the driver itself", subject.name());
    Line::new(what, share, "%").never_above(1.0)
}

fn schedule_kept(kept: &Kept, case: &str, figure: &str) -> Line {
    Line::new("schedule kept (1: yes)", kept.case(case, figure), "").never_below(1.0)
}

/// How the events of a case are spread over its partitions: the ending of its figures, and words for it. With keys all
/// partitions are dirty at a time; the aims are for these.
const KEYED: (&str, &str) = ("", "keyed");
const FILLED: (&str, &str) = ("_filled", "without keys, filled batch by batch");

fn partitions(kept: &Kept) -> Vec<Line> {
    const CASE: &str = "partitions";
    let case = |figure: &str| kept.case(CASE, figure);
    let mut lines = vec![
        Line::new("1 partition, p99", case("p99_ms_1"), "ms")
            .beside("raw write and sync, p99", case("raw_write_sync_p99_ms"))
            .ratio_at_most(3.0),
        schedule_kept(kept, CASE, "kept_schedule_1"),
    ];
    for (ending, spread) in [KEYED, FILLED] {
        let line = |figure: &str, what: &str| {
            let series = case(&format!("{figure}_1000{ending}"));
            Line::new(format!("1,000 partitions, {spread}, {what}"), series, "ms")
        };
        let schedule = format!("kept_schedule_1000{ending}");
        lines.extend(match ending {
            "" => [
                line("p99_ms", "p99").at_most(35.0),
                line("max_ms", "longest").never_above(250.0),
                schedule_kept(kept, CASE, &schedule),
            ],
            _ => [
                line("p99_ms", "p99"),
                line("max_ms", "longest"),
                schedule_kept(kept, CASE, &schedule),
            ],
        });
    }
    lines
}

fn slow_sync(kept: &Kept) -> Vec<Line> {
    const CASE: &str = "slow-sync";
    let lines = [2, 10].into_iter().flat_map(|delay| {
        [KEYED, FILLED]
            .into_iter()
            .flat_map(move |(ending, spread)| {
                let p99 = kept.case(CASE, &format!("p99_ms_{delay}{ending}"));
                let sync = vec![f64::from(delay); p99.len()];
                let line = Line::new(format!("sync of {delay} ms, {spread}, p99"), p99, "ms")
                    .beside("its sync", sync);
                let schedule = format!("kept_schedule_{delay}{ending}");
                match ending {
                    "" => [
                        line.ratio_at_most(2.5),
                        schedule_kept(kept, CASE, &schedule),
                    ],
                    _ => [line, schedule_kept(kept, CASE, &schedule)],
                }
            })
    });
    lines.collect()
}

fn read_hot(kept: &Kept) -> Vec<Line> {
    let bytes = |file: &str, subject| scaled(kept.rounds(file, subject, "/bytes_per_second"), 1e-9);
    let loopback = |file: &str| scaled(kept.limits(file, "/loopback_bytes_per_second"), 1e-9);
    let beside = |file: &str, what: &str| {
        Line::new(what, bytes(file, WRITTEN), "GB/s")
            .beside("loopback", loopback(file))
            .ratio_at_least(0.8)
    };
    let events = million_events(kept, "run-read-small", WRITTEN);
    vec![
        Line::new("`read-small`", events, "M ev/s").at_least(10.0),
        beside("run-read-small", "`read-small`"),
        Line::new("`read-large`", bytes("run-read-large", WRITTEN), "GB/s").at_least(3.0),
        beside("run-read-large", "`read-large`"),
    ]
}

fn read_cold(kept: &Kept) -> Vec<Line> {
    const FILE: &str = "run-read-cold";
    let bytes = scaled(kept.rounds(FILE, WRITTEN, "/bytes_per_second"), 1e-9);
    let limit = scaled(kept.limits(FILE, "/direct_read_bytes_per_second"), 1e-9);
    let share = kept.rounds(FILE, WRITTEN, "/disk_read_share");
    vec![
        Line::new("`read-cold`", bytes, "GB/s")
            .beside("direct reads of the same files", limit)
            .ratio_at_least(0.8),
        Line::new("bytes read from the disk for each byte sent", share, "").never_below(0.95),
    ]
}

fn cold_reader(kept: &Kept) -> Vec<Line> {
    const CASE: &str = "cold-reader";
    let case = |figure| kept.case(CASE, figure);
    vec![
        Line::new("p99 beside the reader", case("p99_ms_beside"), "ms")
            .beside("p99 without", case("p99_ms_without"))
            .ratio_at_most(2.0),
        schedule_kept(kept, CASE, "kept_schedule_beside"),
        // As much at least as one reader of a slow disk takes in: it was the disk that was read.
        Line::new("read meanwhile", case("read_gb"), "GB").never_below(1.0),
        Line::new(
            "reader at its end too early (1: yes)",
            case("reader_ended_early"),
            "",
        )
        .never_above(0.0),
    ]
}

fn producers(kept: &Kept) -> Vec<Line> {
    const CASE: &str = "producers";
    let case = |figure| kept.case(CASE, figure);
    vec![
        Line::new("64 producers, p99", case("p99_ms_64"), "ms")
            .beside("1 producer", case("p99_ms_1"))
            .ratio_at_most(3.0),
        Line::new(
            "64 producers, CPU for a million",
            case("cpu_s_per_million_64"),
            "s",
        )
        .beside("1 producer", case("cpu_s_per_million_1"))
        .ratio_at_most(2.0),
        schedule_kept(kept, CASE, "kept_schedule_1"),
        schedule_kept(kept, CASE, "kept_schedule_64"),
    ]
}

/// Each other broker with the one of ours whose answers mean the same.
fn pairs() -> impl Iterator<Item = (Subject, Subject)> {
    let comparable = |peer: Subject| Some((Subject::Tackboard(peer.comparable()?), peer));
    subject::PEERS.into_iter().filter_map(comparable)
}

fn peers_small(kept: &Kept) -> Vec<Line> {
    events_for_a_cpu_second(kept, "peers-small")
}

fn peers_large(kept: &Kept) -> Vec<Line> {
    events_for_a_cpu_second(kept, "peers-large")
}

fn million_events_for_a_cpu_second(kept: &Kept, file: &str, subject: Subject) -> Series {
    let seconds = kept.rounds(file, subject, "/cpu_seconds_per_million");
    seconds.into_iter().map(f64::recip).collect()
}

fn events_for_a_cpu_second(kept: &Kept, file: &str) -> Vec<Line> {
    let million_events = |subject| million_events_for_a_cpu_second(kept, file, subject);
    let lines = pairs().map(|(ours, peer)| {
        Line::new(ours.name(), million_events(ours), "M ev/CPU-s")
            .beside(peer.name(), million_events(peer))
            .ratio_at_least(if peer.is_kafka() { 5.0 } else { 3.0 })
    });
    lines.collect()
}

fn peers_open_loop(kept: &Kept) -> Vec<Line> {
    const FILE: &str = "peers-open-20k";
    let lines = pairs().flat_map(|(ours, peer)| {
        ["p99", "p999"].map(|percentile| {
            let what = match percentile {
                "p99" => "p99",
                _ => "p99.9",
            };
            let of = |subject| milliseconds(kept, FILE, subject, percentile);
            Line::new(format!("{}, {what}", ours.name()), of(ours), "ms")
                .beside(peer.name(), of(peer))
                .ratio_at_most(1.0)
        })
    });
    let driven = [WRITTEN, FSYNC]
        .into_iter()
        .chain(pairs().map(|(_, peer)| peer));
    lines
        .chain(driven.map(|subject| late(kept, FILE, subject)))
        .collect()
}

/// Through either door of our broker, the same batches.
fn doors(kept: &Kept) -> Vec<Line> {
    let pairs = [WRITTEN, FSYNC].into_iter().zip(subject::DOORS);
    let lines = pairs.flat_map(|(native, kafka)| {
        let rate = |workload: &str| {
            let file = format!("doors-{workload}");
            let what = format!("`{workload}`, {}", kafka.name());
            Line::new(what, million_events(kept, &file, kafka), "M ev/s")
                .beside(native.name(), million_events(kept, &file, native))
                .ratio_at_least(0.8)
        };
        let p99 = |workload: &str| {
            let file = format!("doors-{workload}");
            let what = format!("`{workload}`, {}, p99", kafka.name());
            Line::new(what, milliseconds(kept, &file, kafka, "p99"), "ms")
                .beside(native.name(), milliseconds(kept, &file, native, "p99"))
                .ratio_at_most(1.5)
        };
        [
            rate("small"),
            rate("large"),
            p99("small"),
            p99("large"),
            p99("open-20k"),
            late(kept, "doors-open-20k", kafka),
        ]
    });
    lines.collect()
}

/// Apache Kafka, each time beside ours at the durability whose answers mean the same, through the same protocol.
fn kafkas() -> impl Iterator<Item = (Subject, Subject)> {
    let comparable = |peer: Subject| Some((Subject::TackboardKafka(peer.comparable()?), peer));
    let kafkas = subject::PEERS.into_iter().filter(|peer| peer.is_kafka());
    kafkas.filter_map(comparable)
}

/// What holds of both however they are driven.
fn beside_kafka(kept: &Kept, file: &str, ours: Subject, kafka: Subject) -> Vec<Line> {
    let events = |subject| million_events_for_a_cpu_second(kept, file, subject);
    let megabytes = |subject| scaled(kept.rounds(file, subject, "/resident_bytes_max"), 1e-6);
    let mut lines = vec![
        Line::new(ours.name(), events(ours), "M ev/CPU-s")
            .beside(kafka.name(), events(kafka))
            .ratio_at_least(5.0),
        Line::new(format!("{}, memory", ours.name()), megabytes(ours), "MB")
            .beside(kafka.name(), megabytes(kafka))
            .ratio_at_most(0.2),
    ];
    for (percentile, what) in [("p50", "p50"), ("p99", "p99"), ("p999", "p99.9")] {
        let of = |subject| milliseconds(kept, file, subject, percentile);
        lines.push(
            Line::new(format!("{}, {what}", ours.name()), of(ours), "ms")
                .beside(kafka.name(), of(kafka))
                .ratio_at_most(1.0),
        );
    }
    lines
}

fn kafka_flat_out(kept: &Kept) -> Vec<Line> {
    let lines = kafkas().flat_map(|(ours, kafka)| beside_kafka(kept, "peers-small", ours, kafka));
    lines.collect()
}

fn kafka_open_loop(kept: &Kept) -> Vec<Line> {
    const FILE: &str = "peers-open-20k";
    let lines = kafkas().flat_map(|(ours, kafka)| {
        let mut lines = beside_kafka(kept, FILE, ours, kafka);
        lines.push(late(kept, FILE, ours));
        lines
    });
    lines.collect()
}

fn start_full(kept: &Kept) -> Vec<Line> {
    const CASE: &str = "start-full";
    let case = |figure| kept.case(CASE, figure);
    vec![
        Line::new("to ready", scaled(case("ready_ms"), 1e-3), "s").at_most(2.0),
        Line::new(
            "scanned, of what the ledger has not proven",
            case("scanned_mb"),
            "MB",
        )
        .beside("whole data", case("data_mb"))
        .ratio_at_most(0.05),
    ]
}

fn start_empty(kept: &Kept) -> Vec<Line> {
    const CASE: &str = "start-empty";
    let case = |figure| kept.case(CASE, figure);
    vec![
        Line::new("an empty folder to ready", case("ready_ms"), "ms").at_most(150.0),
        Line::new(
            "CPU of an idle broker",
            case("idle_cpu_percent"),
            "% of a core",
        )
        .at_most(2.0),
    ]
}

fn memory(kept: &Kept) -> Vec<Line> {
    let case = |figure| kept.case("memory", figure);
    let idle = kept.case("start-empty", "idle_resident_mb");
    vec![
        Line::new("idle, all of it (`perf/all start-empty`)", idle, "MB").at_most(64.0),
        Line::new(
            "full load and readers that never read: resident, less the budget of 512 MiB",
            case("beside_budget_mb"),
            "MB",
        )
        .never_above(64.0),
        // Not held against an aim: what was freed stays with the process, for memory that is got anew costs page faults.
        Line::new(
            "the same, less what the budgets account for (what was freed and is kept counts here)",
            case("beside_accounted_mb"),
            "MB",
        ),
    ]
}

fn group_rebalance(kept: &Kept) -> Vec<Line> {
    let line = |what: &str, figure: &str, unit| {
        Line::new(what, kept.case("group-rebalance", figure), unit)
    };
    vec![
        line(
            "3 members over 4 partitions: the most that one has",
            "of_3_over_4_most",
            "",
        )
        .never_above(2.0),
        line("the least that one of them has", "of_3_over_4_least", "").never_below(1.0),
        line("rebalances until then", "rebalances_of_3", "").never_above(1.0),
        line(
            "a fourth member: the most that one has",
            "of_4_over_4_most",
            "",
        )
        .never_above(1.0),
        line("rebalances that it takes", "rebalances_of_a_fourth", "").never_above(1.0),
        line(
            "a killed member's partitions have moved, after its session time-out of 6 s",
            "moved_s_after_session",
            "s",
        )
        .never_above(1.0),
        line(
            "a member joins 49 others over 200 partitions: all have their parts",
            "rebalance_s_50_over_200",
            "s",
        )
        .never_above(3.0),
        line("the most that one has", "of_50_over_200_most", "").never_above(4.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_measurement_and_its_aims() {
        let script = include_str!("../all");
        let nothing = Kept::of(std::path::Path::new("/nonexistent"));
        for row in ROWS {
            let entry = format!("\"{}\":", row.measurement);
            assert!(script.contains(&entry), "perf/all has no {entry}");
            assert!(!(row.lines)(&nothing).is_empty(), "{}", row.what);
        }
    }

    #[test]
    fn every_other_broker_is_compared_with_one_of_ours() {
        assert_eq!(pairs().count(), subject::PEERS.len());
        assert_eq!(kafkas().count(), 2);
    }
}
