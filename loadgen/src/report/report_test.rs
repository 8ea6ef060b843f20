//! The shape of the JSON object, and what is saved.

use super::json::{Part, object};
use super::results::{Cost, Flow, RunResult, ScheduleReport, Setting, StageResult};
use super::save;
use crate::machine::host::Host;
use crate::measure::latency::Latency;
use crate::measure::process::ThreadUse;
use crate::measure::timeline::{Interval, Timeline};
use crate::verdict::judge::Verdict;

/// A stage in closed loop with 100 events of one latency, 1.5 ms.
pub fn stage(title: &str) -> StageResult {
    let mut latency = Latency::default();
    latency.record(1_500_000, 100);
    let flow = Flow {
        events: 100,
        bytes: 10_000,
        seconds: 2.0,
    };
    let mut timeline = Timeline::default();
    timeline.push(Interval {
        seconds: 1.0,
        acknowledged_per_second: 50.0,
        ..Interval::default()
    });
    StageResult {
        title: title.into(),
        settings: vec!["100 B".into()],
        plan: vec![("event-size", "100 B".into())],
        produced: Some(flow),
        read: Some(flow),
        produce_latency: latency.clone(),
        end_to_end_latency: latency,
        schedule: None,
        timeline,
        verdict: Some(Verdict {
            acknowledged: 100,
            read_back: 100,
            ..Verdict::default()
        }),
        cost: Cost {
            broker: None,
            load_cpu_seconds: 0.5,
            busiest: Some(ThreadUse {
                busy: 0.25,
                waiting: None,
            }),
        },
        stolen_share: Some(0.0125),
        reconnects: 2,
        cut_short: None,
        notes: Vec::new(),
    }
}

fn result() -> RunResult {
    let steady = StageResult {
        schedule: Some(ScheduleReport::default()),
        ..stage("steady")
    };
    let stages = vec![stage("real events"), stage("as fast as it goes"), steady];
    RunResult {
        setting: Setting {
            host: Host::read(),
            broker: "embedded".into(),
            storage: Some("ext4 direct I/O".into()),
            commit: Some("abc".into()),
            started_at: "2026-01-02T03:04:05.678Z".into(),
        },
        verdict: RunResult::verdict_of(&stages),
        stages,
        memory_bytes_max: Some(1),
        interrupted: false,
    }
}

const PARTS: [Part; 3] = [Part::Real, Part::Main, Part::Steady];

#[test]
fn the_object_has_the_promised_fields() {
    let object = object(&result(), &PARTS);
    for field in [
        "acknowledged",
        "read_back",
        "lost",
        "duplicated",
        "out_of_order",
    ] {
        assert!(object["verified"][field].is_u64(), "verified.{field}");
    }
    assert_eq!(object["verified"]["acknowledged"], 300);
    for part in ["produce", "steady", "end_to_end"] {
        for field in ["events_per_second", "p50_us", "p99_us", "p999_us", "max_us"] {
            assert!(object[part][field].is_f64(), "{part}.{field}");
        }
    }
    assert_eq!(object["produce"]["events_per_second"], 50.0);
    assert!((object["produce"]["p50_us"].as_f64().unwrap() / 1500.0 - 1.0).abs() < 0.002);
    assert_eq!(object["steady"]["kept_schedule"], true);
    assert!(object["host"]["cores"].is_array() && object["host"]["kernel"].is_string());
    let stages = object["stages"].as_array().unwrap();
    let loops: Vec<_> = stages.iter().map(|stage| &stage["loop"]).collect();
    assert_eq!(loops, ["closed", "closed", "open"]);
    let cost = &stages[0]["cost"];
    assert_eq!(cost["load_cpu_seconds"], 0.5);
    assert_eq!(cost["load_busy_share"], 0.25);
    assert!(cost["load_waiting_share"].is_null() && cost["broker_cpu_seconds"].is_null());
    assert_eq!(stages[0]["plan"]["event-size"], "100 B");
    assert_eq!(stages[0]["stolen_cpu_share"], 0.0125);
    assert_eq!(stages[0]["reconnects"], 2);
    assert_eq!(object["reconnects"], 6);
}

#[test]
fn a_void_stage_says_so() {
    let mut result = result();
    result.stages[2].schedule.as_mut().unwrap().void = Some("too slow".into());
    assert!(result.is_void());
    let object = object(&result, &PARTS);
    assert_eq!(
        (
            &object["steady"]["kept_schedule"],
            &object["steady"]["void"]
        ),
        (&false.into(), &"too slow".into())
    );
}

#[test]
fn a_run_is_saved_in_a_folder_of_its_own() {
    let parent = tempfile::tempdir().unwrap();
    let said = save::save(parent.path(), &result(), &PARTS).unwrap();
    let folder = parent.path().join("2026-01-02T030405-abc");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    assert_eq!(json["verified"]["lost"], 0);
    for name in [
        "steady-produce.hgrm",
        "as-fast-as-it-goes-end-to-end.hgrm",
        "latency.svg",
        "timeline.svg",
    ] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    // Another run of the same second takes nothing from it.
    let again = save::save(parent.path(), &result(), &PARTS).unwrap();
    assert!(again.contains("2026-01-02T030405-abc-2/"), "{again}");
    assert!(
        said.ends_with("run.json  6 × .hgrm  latency.svg  timeline.svg"),
        "{said}"
    );
}
