//! The run as one JSON object: raw numbers, times in microseconds, RFC 3339.
//!
//! `produce` and `end_to_end` are the stage that goes as fast as it can (or the only stage), `steady` the one at a rate,
//! `real` the one with real events; `stages` holds all of them in full. In a stage whose `loop` is `closed`, latency is
//! mostly the wait in the queue that the load itself builds up.

use serde_json::{Map, Value, json};

use super::results::{Flow, RunResult, ScheduleReport, Setting, StageResult};
use crate::measure::latency::Latency;
use crate::verdict::judge::Verdict;

/// Which part of the object a stage is shown as, beside its place among all stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Real events, replayed.
    Real,
    /// The stage whose figures are `produce` and `end_to_end`.
    Main,
    /// The stage at a steady rate.
    Steady,
}

/// The whole object.
pub fn object(result: &RunResult, parts: &[Part]) -> Value {
    let mut object = setting_fields(&result.setting);
    for (stage, part) in result.stages.iter().zip(parts) {
        match part {
            Part::Real => object.insert("real".into(), stage_object(stage)),
            Part::Steady => object.insert("steady".into(), steady(stage)),
            Part::Main => {
                object.insert(
                    "produce".into(),
                    figures(stage.produced.as_ref(), &stage.produce_latency),
                );
                object.insert(
                    "end_to_end".into(),
                    figures(stage.read.as_ref(), &stage.end_to_end_latency),
                )
            }
        };
    }
    object.insert(
        "stages".into(),
        result.stages.iter().map(stage_object).collect(),
    );
    object.insert("memory_bytes_max".into(), result.memory_bytes_max.into());
    object.insert("reconnects".into(), result.reconnects().into());
    object.insert("interrupted".into(), result.interrupted.into());
    object.insert(
        "verified".into(),
        result.verdict.as_ref().map_or(Value::Null, verdict_object),
    );
    Value::Object(object)
}

/// Where and on what it took place.
pub fn setting_fields(setting: &Setting) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("loadgen".into(), env!("CARGO_PKG_VERSION").into());
    fields.insert("started_at".into(), setting.started_at.clone().into());
    fields.insert("commit".into(), setting.commit.clone().into());
    let host = serde_json::to_value(&setting.host).expect("a host is plain data");
    fields.insert("host".into(), host);
    fields.insert("broker".into(), setting.broker.clone().into());
    fields.insert("storage".into(), setting.storage.clone().into());
    fields
}

/// What was lost, duplicated, out of order, or changed.
fn verdict_object(verdict: &Verdict) -> Value {
    let faults = &verdict.faults;
    let named = faults.named.iter().map(|named| {
        json!({
            "fault": named.fault.name(), "partition": named.partition, "offset": named.offset,
            "producer": named.producer, "sequence": named.sequence, "text": named.to_string(),
        })
    });
    json!({
        "holds": verdict.holds(),
        "acknowledged": verdict.acknowledged,
        "read_back": verdict.read_back,
        "lost": faults.lost + faults.vanished,
        "duplicated": faults.duplicated,
        "out_of_order": faults.out_of_order,
        "corrupted": faults.corrupted,
        "misplaced": faults.misplaced,
        "foreign": faults.foreign,
        "unacknowledged": verdict.unacknowledged,
        "unacknowledged_read": verdict.unacknowledged_read,
        "counts_are_bounds": verdict.counts_are_bounds,
        "faults": named.collect::<Vec<_>>(),
    })
}

/// Rate and latency of one direction.
fn figures(flow: Option<&Flow>, latency: &Latency) -> Value {
    let mut object = Map::new();
    if let Some(flow) = flow {
        object.insert("events".into(), flow.events.into());
        object.insert("bytes".into(), flow.bytes.into());
        object.insert("seconds".into(), flow.seconds.into());
        object.insert("events_per_second".into(), flow.events_per_second().into());
        object.insert("bytes_per_second".into(), flow.bytes_per_second().into());
    }
    for (name, percent) in [
        ("p50_us", 50.0),
        ("p90_us", 90.0),
        ("p99_us", 99.0),
        ("p999_us", 99.9),
        ("p9999_us", 99.99),
    ] {
        object.insert(name.into(), microseconds(latency.percentile_ns(percent)));
    }
    object.insert("max_us".into(), microseconds(latency.max_ns()));
    Value::Object(object)
}

fn steady(stage: &StageResult) -> Value {
    let mut object = figures(stage.produced.as_ref(), &stage.produce_latency);
    let fields = object.as_object_mut().expect("figures are an object");
    if let Some(schedule) = &stage.schedule {
        add_schedule(fields, schedule);
    }
    fields.insert(
        "end_to_end".into(),
        figures(stage.read.as_ref(), &stage.end_to_end_latency),
    );
    object
}

fn add_schedule(fields: &mut Map<String, Value>, schedule: &ScheduleReport) {
    fields.insert("kept_schedule".into(), schedule.kept().into());
    fields.insert("void".into(), schedule.void.clone().into());
    fields.insert(
        "lag_p99_us".into(),
        microseconds(schedule.lag.percentile_ns(99.0)),
    );
    fields.insert("lag_max_us".into(), microseconds(schedule.lag.max_ns()));
    fields.insert("events_due".into(), schedule.due.into());
    fields.insert("events_sent".into(), schedule.sent.into());
}

/// One stage in full.
pub fn stage_object(stage: &StageResult) -> Value {
    let mut object = Map::new();
    object.insert("title".into(), stage.title.clone().into());
    object.insert("settings".into(), stage.settings.clone().into());
    let plan = stage
        .plan
        .iter()
        .map(|(name, value)| (*name, value.clone()));
    object.insert("plan".into(), plan.collect());
    if stage.produced.is_some() {
        let kind = match stage.is_closed_loop() {
            true => "closed",
            false => "open",
        };
        object.insert("loop".into(), kind.into());
        object.insert(
            "produce".into(),
            figures(stage.produced.as_ref(), &stage.produce_latency),
        );
    }
    if stage.read.is_some() {
        object.insert(
            "end_to_end".into(),
            figures(stage.read.as_ref(), &stage.end_to_end_latency),
        );
    }
    if let Some(schedule) = &stage.schedule {
        let mut fields = Map::new();
        add_schedule(&mut fields, schedule);
        object.insert("schedule".into(), Value::Object(fields));
    }
    if let Some(verdict) = &stage.verdict {
        object.insert("verified".into(), verdict_object(verdict));
    }
    let cost = &stage.cost;
    let cost = json!({
        "broker_cpu_seconds": cost.broker.map(|broker| broker.cpu_seconds),
        "syncs": cost.broker.map(|broker| broker.syncs),
        "load_cpu_seconds": cost.load_cpu_seconds,
        "load_busy_share": cost.busiest.map(|thread| thread.busy),
        "load_waiting_share": cost.busiest.and_then(|thread| thread.waiting),
    });
    object.insert("cost".into(), cost);
    object.insert("stolen_cpu_share".into(), stage.stolen_share.into());
    object.insert("reconnects".into(), stage.reconnects.into());
    object.insert("cut_short".into(), stage.cut_short.clone().into());
    object.insert("notes".into(), stage.notes.clone().into());
    let timeline =
        serde_json::to_value(stage.timeline.intervals()).expect("intervals are plain data");
    object.insert("timeline".into(), timeline);
    Value::Object(object)
}

/// Microseconds to the nanosecond, as far as the histogram tells them apart.
fn microseconds(ns: u64) -> Value {
    (ns as f64 / 1000.0).into()
}
