//! All probes of a search and what it found, as text and as one JSON object.

use std::time::Duration;

use serde_json::{Value, json};

use super::machine::{End, FAILURES_BELIEVED, Search};
use super::probe::Probe;
use crate::measure::latency::PERCENTILES;
use crate::report::json::stage_object;
use crate::report::number::{grouped, milliseconds, rate, span};

/// What was looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The p99 that may not be exceeded.
    pub p99_max: Duration,
    /// How near the answer was to be.
    pub precision: f64,
}

/// One line for each probe.
pub fn probe_line(number: usize, probe: &Probe) -> String {
    let latency = &probe.stage.produce_latency;
    let values = PERCENTILES
        .iter()
        .map(|&(_, percent)| latency.percentile_ns(percent))
        .chain([latency.max_ns()]);
    let cells = values.map(|ns| format!("{:>9}", milliseconds(ns)));
    let outcome = probe.failure.as_deref().unwrap_or("passed");
    format!(
        "{number:>5}{:>14}{}  {outcome}",
        grouped(probe.rate.round() as u64),
        cells.collect::<String>()
    )
}

/// The heading over such lines.
pub fn heading() -> String {
    let names = PERCENTILES.iter().map(|(name, _)| *name).chain(["max ms"]);
    let names = names.map(|name| format!("{name:>9}"));
    format!("{:>5}{:>14}{}", "probe", "ev/s", names.collect::<String>())
}

/// What was found.
pub fn found(search: &Search, probes: &[Probe], question: Question) -> String {
    let bound = span(question.p99_max);
    let Some(passed) = search.passed() else {
        return match search.end() {
            Some(_) => {
                format!("no rate that was tried keeps its schedule with a p99 of {bound}")
            }
            None => "nothing yet: it was ended before a rate passed".to_owned(),
        };
    };
    let not_further = match search.end() {
        Some(_) => "there were no more probes",
        None => "it was ended before",
    };
    let best = probes
        .iter()
        .rfind(|probe| probe.has_passed() && probe.rate == passed);
    let p99 = best.map(Probe::p99).unwrap_or_default();
    let text = format!(
        "{} ev/s keep their schedule with a p99 of {p99} ms, where {bound} are allowed",
        rate(passed)
    );
    match (search.failed(), search.end()) {
        (Some(failed), end) => {
            let apart = (failed / passed - 1.0) * 100.0;
            let enough = match end {
                Some(End::Precise) => String::new(),
                _ => format!(", less near than was asked: {not_further}"),
            };
            format!(
                "{text}; {} ev/s, {apart:.1} % more, failed {FAILURES_BELIEVED} times{enough}",
                rate(failed)
            )
        }
        (None, Some(End::HighestPassed)) => {
            format!("{text}; it is the highest rate that is tried")
        }
        (None, _) => {
            format!("{text}; no rate failed {FAILURES_BELIEVED} times, and {not_further}")
        }
    }
}

/// The parts of the JSON object that are about the search. Times are in microseconds.
pub fn object(search: &Search, probes: &[Probe], question: Question) -> Value {
    let objects = probes.iter().map(|probe| {
        let mut object = stage_object(&probe.stage);
        object["rate"] = probe.rate.into();
        object["passed"] = probe.has_passed().into();
        object["failure"] = probe.failure.clone().into();
        object
    });
    json!({
        "p99_us_max": question.p99_max.as_secs_f64() * 1e6,
        "precision": question.precision,
        "rate_passed": search.passed(),
        "rate_failed": search.failed(),
        "ended": search.end().map(End::name),
        "probes": objects.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::machine::Bounds;
    use super::*;
    use crate::report::report_test::stage;
    use crate::report::results::{ScheduleReport, StageResult};

    const QUESTION: Question = Question {
        p99_max: Duration::from_millis(5),
        precision: 0.5,
    };

    /// Searches where rates up to 30,000 pass.
    fn searched(probes_max: u32, rate_max: f64) -> (Search, Vec<Probe>) {
        let mut search = Search::new(Bounds {
            rate_first: 10_000.0,
            rate_min: 1000.0,
            rate_max,
            precision: QUESTION.precision,
            probes_max,
        });
        let mut probes = Vec::new();
        while let Some(rate) = search.next() {
            let bound = if rate <= 30_000.0 { 5 } else { 1 };
            let stage = StageResult {
                schedule: Some(ScheduleReport::default()),
                ..stage("probe")
            };
            let probe = Probe::of(rate, stage, Duration::from_millis(bound));
            search.note(probe.has_passed());
            probes.push(probe);
        }
        (search, probes)
    }

    #[test]
    fn lines_stand_under_their_heading() {
        let (_, probes) = searched(20, 1e6);
        assert_eq!(
            format!(
                "{}\n{}\n{}",
                heading(),
                probe_line(1, &probes[0]),
                probe_line(3, &probes[2])
            ),
            "probe          ev/s      p50      p90      p99    p99.9   p99.99   max ms\n    \
             1        10,000     1.50     1.50     1.50     1.50     1.50     1.50  passed\n    \
             3        40,000     1.50     1.50     1.50     1.50     1.50     1.50  p99 above 1.0 ms"
        );
    }

    #[test]
    fn what_was_found_is_said_with_what_bounds_it() {
        let said = |probes_max, rate_max| {
            let (search, probes) = searched(probes_max, rate_max);
            found(&search, &probes, QUESTION)
        };
        let found = "28,300 ev/s keep their schedule with a p99 of 1.50 ms, where 5.0 ms are allowed; 40,000 ev/s, 41.4 % \
                     more, failed 2 times";
        assert_eq!(said(20, 1e6), found);
        let short = said(4, 1e6);
        assert!(
            short.starts_with("20,000 ev/s") && short.ends_with("there were no more probes"),
            "{short}"
        );
        assert!(said(20, 20_000.0).ends_with("it is the highest rate that is tried"));
        assert!(said(1, 1e6).ends_with("no rate failed 2 times, and there were no more probes"));
        assert!(said(0, 1e6).starts_with("no rate that was tried"));
    }

    #[test]
    fn a_search_that_was_ended_claims_no_more_than_it_saw() {
        let mut search = Search::new(Bounds {
            rate_first: 10_000.0,
            rate_min: 1000.0,
            rate_max: 1e6,
            precision: QUESTION.precision,
            probes_max: 20,
        });
        assert!(found(&search, &[], QUESTION).starts_with("nothing yet"));
        search.note(true);
        let ending = "no rate failed 2 times, and it was ended before";
        assert!(found(&search, &[], QUESTION).ends_with(ending));
        search.note(false);
        assert!(found(&search, &[], QUESTION).ends_with(ending));
        search.note(false);
        let ending = "less near than was asked: it was ended before";
        assert!(found(&search, &[], QUESTION).ends_with(ending));
    }

    #[test]
    fn the_object_has_every_probe() {
        let (search, probes) = searched(20, 1e6);
        let object = object(&search, &probes, QUESTION);
        assert_eq!(object["p99_us_max"], 5000.0);
        assert_eq!(object["ended"], "precise");
        let listed = object["probes"].as_array().unwrap();
        assert_eq!(listed.len(), probes.len());
        assert_eq!(
            (&listed[0]["passed"], &listed[2]["passed"]),
            (&true.into(), &false.into())
        );
        assert!(listed[0]["produce"]["p99_us"].is_f64());
    }
}
