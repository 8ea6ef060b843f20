//! The figures of a stage that are compared: where they stand in its JSON object, which way is better, what is judged.

use serde_json::Value;

use crate::report::number::{byte_rate, milliseconds, rate};

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// Whether a change of a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Whenever it is there.
    Always,
    /// In open loop: in closed loop latency is the wait in the queue that the load itself builds up.
    InOpenLoop,
    /// In open loop, and only with enough runs a side to tell noise: a few events make it, so single runs differ widely.
    InOpenLoopBeyondNoise,
    /// Never: it follows from others, or is the load generator's own.
    Never,
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events a second.
    Rate,
    /// Bytes a second.
    ByteRate,
    /// Microseconds, shown as milliseconds.
    Microseconds,
    /// CPU seconds per million events.
    CpuSeconds,
    /// A share of one, shown in percent.
    Share,
}

impl Unit {
    /// The value as people read it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate => rate(value),
            Self::ByteRate => byte_rate(value),
            Self::Microseconds => milliseconds((value * 1000.0) as u64),
            Self::CpuSeconds => format!("{value:.3}"),
            Self::Share => format!("{:.2} %", value * 100.0),
        }
    }
}

impl Unit {
    /// What stands behind a figure's name where its values do not say it.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Microseconds => " ms",
            Self::Rate | Self::ByteRate | Self::CpuSeconds | Self::Share => "",
        }
    }
}

/// A figure.
#[derive(Debug)]
pub struct Figure {
    /// Its name on the screen and in JSON.
    pub name: &'static str,
    /// How it is shown.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Whether a change counts.
    pub judged: Judged,
    /// Finds it in the JSON object of a stage.
    pub find: fn(&Value) -> Option<f64>,
}

const fn rate_of(name: &'static str, judged: Judged, unit: Unit, find: Find) -> Figure {
    Figure {
        name,
        unit,
        better: Better::Higher,
        judged,
        find,
    }
}

const fn latency(name: &'static str, judged: Judged, find: Find) -> Figure {
    Figure {
        name,
        unit: Unit::Microseconds,
        better: Better::Lower,
        judged,
        find,
    }
}

const fn cost(name: &'static str, judged: Judged, unit: Unit, find: Find) -> Figure {
    Figure {
        name,
        unit,
        better: Better::Lower,
        judged,
        find,
    }
}

type Find = fn(&Value) -> Option<f64>;

use Judged::{Always, InOpenLoop, InOpenLoopBeyondNoise, Never};

/// All of them, in the order in which they are shown.
#[rustfmt::skip]
pub static FIGURES: &[Figure] = &[
    rate_of("produced/s", Always, Unit::Rate, |stage| stage["produce"]["events_per_second"].as_f64()),
    rate_of("produced bytes/s", Never, Unit::ByteRate, |stage| stage["produce"]["bytes_per_second"].as_f64()),
    rate_of("read/s", Always, Unit::Rate, |stage| stage["end_to_end"]["events_per_second"].as_f64()),
    rate_of("read bytes/s", Never, Unit::ByteRate, |stage| stage["end_to_end"]["bytes_per_second"].as_f64()),
    latency("produce p50", InOpenLoop, |stage| stage["produce"]["p50_us"].as_f64()),
    latency("produce p90", InOpenLoop, |stage| stage["produce"]["p90_us"].as_f64()),
    latency("produce p99", InOpenLoop, |stage| stage["produce"]["p99_us"].as_f64()),
    latency("produce p99.9", InOpenLoop, |stage| stage["produce"]["p999_us"].as_f64()),
    latency("produce p99.99", InOpenLoopBeyondNoise, |stage| stage["produce"]["p9999_us"].as_f64()),
    latency("produce max", InOpenLoopBeyondNoise, |stage| stage["produce"]["max_us"].as_f64()),
    latency("end to end p50", InOpenLoop, |stage| stage["end_to_end"]["p50_us"].as_f64()),
    latency("end to end p90", InOpenLoop, |stage| stage["end_to_end"]["p90_us"].as_f64()),
    latency("end to end p99", InOpenLoop, |stage| stage["end_to_end"]["p99_us"].as_f64()),
    latency("end to end p99.9", InOpenLoop, |stage| stage["end_to_end"]["p999_us"].as_f64()),
    latency("end to end p99.99", InOpenLoopBeyondNoise, |stage| stage["end_to_end"]["p9999_us"].as_f64()),
    latency("end to end max", InOpenLoopBeyondNoise, |stage| stage["end_to_end"]["max_us"].as_f64()),
    cost("broker CPU s/million", Always, Unit::CpuSeconds, |stage| per_million(stage, "broker_cpu_seconds")),
    cost("load CPU s/million", Never, Unit::CpuSeconds, |stage| per_million(stage, "load_cpu_seconds")),
    cost("taken by the host", Never, Unit::Share, |stage| stage["stolen_cpu_share"].as_f64()),
];

/// A cost by the events that were sent, or read where none were sent.
fn per_million(stage: &Value, cost: &str) -> Option<f64> {
    let events = ["produce", "end_to_end"]
        .into_iter()
        .find_map(|flow| stage[flow]["events"].as_f64())
        .filter(|&events| events > 0.0)?;
    Some(stage["cost"][cost].as_f64()? / events * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_unique() {
        for (at, figure) in FIGURES.iter().enumerate() {
            assert!(
                FIGURES[..at].iter().all(|other| other.name != figure.name),
                "{}",
                figure.name
            );
        }
    }

    #[test]
    fn a_cost_is_by_the_million_of_what_was_sent_or_read() {
        let cost = json!({"broker_cpu_seconds": 0.5});
        let sent =
            json!({"produce": {"events": 2_000_000}, "end_to_end": {"events": 1}, "cost": cost});
        assert_eq!(per_million(&sent, "broker_cpu_seconds"), Some(0.25));
        let read = json!({"end_to_end": {"events": 1_000_000}, "cost": cost});
        assert_eq!(per_million(&read, "broker_cpu_seconds"), Some(0.5));
        assert_eq!(per_million(&read, "load_cpu_seconds"), None);
        assert_eq!(
            per_million(&json!({"cost": cost}), "broker_cpu_seconds"),
            None
        );
    }
}
