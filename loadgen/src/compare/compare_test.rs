//! Verdicts over made-up results, and the text that a comparison is shown as.
//!
//! `UPDATE_GOLDEN=1` writes the text in `comparison.golden.txt` anew.

use serde_json::{Value, json};

use super::comparison::{Change, Comparison, THRESHOLD_DEFAULT};
use super::result::SavedRun;
use super::table;

/// A result with one stage in closed loop and one in open loop, whose main figures are these.
fn result(rate: f64, p99_us: f64) -> Value {
    let latency = |p99_us: f64| {
        json!({
            "events": 1_000_000, "events_per_second": 100_000.0, "bytes_per_second": 1e7, "p50_us": 1000.0,
            "p90_us": 2000.0, "p99_us": p99_us, "p999_us": 20_000.0, "p9999_us": 40_000.0, "max_us": 50_000.0,
        })
    };
    let mut closed = latency(30_000.0);
    closed["events_per_second"] = rate.into();
    closed["bytes_per_second"] = (rate * 100.0).into();
    let cost = json!({"broker_cpu_seconds": 0.2, "load_cpu_seconds": 0.3});
    json!({
        "loadgen": "0.1.0", "commit": "abc", "interrupted": false,
        "broker": "embedded broker on 127.0.0.1:41697, cores 0 and 1",
        "host": {"cpu": "Xeon", "cores": [0, 1], "kernel": "6.18", "memory_bytes": 1},
        "verified": {"holds": true},
        "stages": [
            {
                "title": "as fast as it goes", "plan": {"durability": "fsync"}, "loop": "closed",
                "produce": closed, "cost": cost,
            },
            {
                "title": "steady", "plan": {"durability": "fsync"}, "loop": "open", "stolen_cpu_share": 0.0125,
                "produce": latency(p99_us), "end_to_end": latency(p99_us), "schedule": {"kept_schedule": true},
            },
        ],
    })
}

fn runs(results: &[Value]) -> Vec<SavedRun> {
    let named = results.iter().enumerate();
    named
        .map(|(at, result)| {
            SavedRun::parse(&format!("run-{at}.json"), &result.to_string()).unwrap()
        })
        .collect()
}

fn compare(a: &[Value], b: &[Value]) -> Comparison {
    Comparison::of(&runs(a), &runs(b), THRESHOLD_DEFAULT).unwrap()
}

/// Five results whose rate and p99 lie around these by up to 4 %.
fn five(rate: f64, p99_us: f64) -> Vec<Value> {
    [0.96, 0.98, 1.0, 1.02, 1.04]
        .map(|by| result(rate * by, p99_us * by))
        .to_vec()
}

fn names(comparison: &Comparison, change: Change) -> Vec<String> {
    comparison
        .changed(change)
        .map(|(stage, row)| format!("{stage}: {}", row.figure.name))
        .collect()
}

#[test]
fn the_same_runs_show_no_difference() {
    let five = five(3e6, 8000.0);
    let comparison = compare(&five, &five);
    assert_eq!(comparison.verdict, Change::Same);
    assert!(comparison.differences.is_empty() && comparison.can_tell_noise());
}

#[test]
fn a_slower_build_is_worse_and_the_figures_are_named() {
    let comparison = compare(&five(3e6, 8000.0), &five(2.7e6, 9000.0));
    assert_eq!(comparison.verdict, Change::Worse);
    assert_eq!(
        names(&comparison, Change::Worse),
        [
            "as fast as it goes: produced/s",
            "steady: produce p99",
            "steady: end to end p99"
        ]
    );
    let turned = compare(&five(2.7e6, 9000.0), &five(3e6, 8000.0));
    assert_eq!(turned.verdict, Change::Better);
    assert_eq!(
        names(&turned, Change::Better),
        names(&comparison, Change::Worse)
    );
}

#[test]
fn medians_that_differ_inside_the_noise_are_no_difference() {
    let wide = |rates: [f64; 5]| rates.map(|rate| result(rate, 8000.0)).to_vec();
    let (a, b) = (
        wide([2.5e6, 2.8e6, 3.0e6, 3.2e6, 3.5e6]),
        wide([2.0e6, 2.4e6, 2.7e6, 2.9e6, 3.3e6]),
    );
    let comparison = compare(&a, &b);
    let row = &comparison.stages[0].rows[0];
    assert!(row.ratio.unwrap() < 0.95 && row.chance > 0.01, "{row:?}");
    assert_eq!(comparison.verdict, Change::Same);
}

#[test]
fn a_real_difference_below_the_threshold_is_none_that_counts() {
    let tight = |rate: f64| {
        [0.998, 0.999, 1.0, 1.001, 1.002]
            .map(|by| result(rate * by, 8000.0))
            .to_vec()
    };
    let (a, b) = (tight(3e6), tight(2.9e6));
    assert_eq!(compare(&a, &b).verdict, Change::Same);
    let strict = Comparison::of(&runs(&a), &runs(&b), 0.02).unwrap();
    assert_eq!(strict.verdict, Change::Worse);
}

#[test]
fn one_run_a_side_is_judged_by_the_threshold_alone_and_says_so() {
    let comparison = compare(&[result(3e6, 8000.0)], &[result(2.7e6, 8000.0)]);
    assert_eq!(comparison.verdict, Change::Worse);
    assert!(!comparison.can_tell_noise());
    let text = table::text(&comparison);
    assert!(
        text.contains("whether a difference is noise can't be judged"),
        "{text}"
    );
    assert_eq!(table::object(&comparison)["noise_judged"], false);
}

#[test]
fn tails_of_single_runs_and_queues_of_closed_loops_are_not_judged() {
    let mut b = result(3e6, 8000.0);
    b["stages"][1]["produce"]["max_us"] = 500_000.0.into();
    b["stages"][0]["produce"]["p99_us"] = 300_000.0.into();
    let one = compare(&[result(3e6, 8000.0)], std::slice::from_ref(&b));
    assert_eq!(one.verdict, Change::Same);
    // Five of each that agree are no accident; the queue of a closed loop is no latency all the same.
    let five = compare(&vec![result(3e6, 8000.0); 5], &vec![b; 5]);
    assert_eq!(names(&five, Change::Worse), ["steady: produce max"]);
}

#[test]
fn what_differs_beside_the_figures_is_named() {
    let mut b = result(3e6, 8000.0);
    b["host"]["cpu"] = "EPYC".into();
    b["stages"][1]["plan"]["durability"] = "written".into();
    b["broker"] = "embedded broker on 127.0.0.1:9, cores 0 and 1".into();
    let comparison = compare(&[result(3e6, 8000.0)], &[b]);
    let differing = comparison.differences.iter();
    let told = differing
        .map(|d| format!("{}: {} | {}", d.what, d.a, d.b))
        .collect::<Vec<_>>();
    assert_eq!(
        told,
        [
            "host cpu: Xeon | EPYC",
            "steady: durability: fsync | written"
        ]
    );
}

#[test]
fn an_older_result_is_compared_by_what_it_says() {
    let shown = |mut result: Value, settings: &str| {
        for stage in result["stages"].as_array_mut().unwrap() {
            stage["settings"] = json!(["100 B", settings]);
        }
        result
    };
    let mut old = shown(result(3e6, 8000.0), "fsync");
    for stage in old["stages"].as_array_mut().unwrap() {
        stage.as_object_mut().unwrap().remove("plan");
    }
    let same = compare(
        std::slice::from_ref(&old),
        &[shown(result(3e6, 8000.0), "fsync")],
    );
    assert_eq!(same.differences, []);
    let other = compare(&[old], &[shown(result(3e6, 8000.0), "written")]);
    assert_eq!(other.differences.len(), 2);
    assert_eq!(other.differences[1].what, "steady: settings");
}

#[test]
fn runs_that_differ_within_a_side_are_named_too() {
    let mut other = result(3e6, 8000.0);
    other["stages"][0]["plan"]["durability"] = "written".into();
    let both = [result(3e6, 8000.0), other];
    let comparison = compare(&both, &both);
    assert_eq!(comparison.differences[0].a, "fsync or written");
}

#[test]
fn void_stages_have_no_figures_and_count_by_themselves() {
    let mut late = result(3e6, 1.0);
    late["stages"][1]["schedule"]["kept_schedule"] = false.into();
    let a = vec![result(3e6, 8000.0); 5];
    let once = [&a[..4], std::slice::from_ref(&late)].concat();
    let comparison = compare(&a, &once);
    let p99 = comparison.stages[1]
        .rows
        .iter()
        .find(|row| row.figure.name == "produce p99");
    assert_eq!(p99.unwrap().b.count, 4);
    assert_eq!(comparison.verdict, Change::Same);

    let comparison = compare(&a, &vec![late.clone(); 5]);
    assert_eq!(comparison.verdict, Change::Worse);
    assert!(comparison.stages[1].rows.is_empty());
    assert_eq!(compare(&vec![late; 5], &a).verdict, Change::Better);
}

#[test]
fn a_run_that_lost_events_is_worse_whatever_its_rate() {
    let mut b = result(9e6, 1.0);
    b["verified"]["holds"] = false.into();
    let comparison = compare(&[result(3e6, 8000.0)], &[b]);
    assert_eq!(comparison.verdict, Change::Worse);
    assert!(comparison.stages.iter().all(|stage| stage.rows.is_empty()));
    let text = table::text(&comparison);
    assert!(
        text.contains("broken    B: run-0.json: its verdict does not hold"),
        "{text}"
    );
}

#[test]
fn sides_without_a_common_stage_are_not_compared() {
    let mut b = result(3e6, 8000.0);
    for (at, title) in ["one", "two"].into_iter().enumerate() {
        b["stages"][at]["title"] = title.into();
    }
    let (a, b) = (runs(&[result(3e6, 8000.0)]), runs(&[b]));
    assert!(Comparison::of(&a, &b, THRESHOLD_DEFAULT).is_none());
}

#[test]
fn the_text_is_as_it_was() {
    let mut other = five(2.7e6, 9000.0);
    other[4]["host"]["kernel"] = "6.19".into();
    other[0]["stages"][1]["schedule"]["kept_schedule"] = false.into();
    let many = table::text(&compare(&five(3e6, 8000.0), &other));
    let one = table::text(&compare(&[result(3e6, 8000.0)], &[result(3.01e6, 4000.0)]));
    let text = format!("{many}\n{}\n{one}", "=".repeat(80));
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/compare/comparison.golden.txt"
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}
