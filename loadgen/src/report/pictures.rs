//! The two pictures of a run, from its stages: latency by percentile, and rates and tails over time.

use tackboard_report::plot::{self, Course, Curve, Moment};

use super::results::StageResult;

/// Steps of a curve for each halving of what is left.
const TICKS_PER_HALF: u32 = 5;

/// Latency by percentile, a curve for each stage and each way that it measured.
pub fn latency(stages: &[StageResult]) -> String {
    let mut curves = Vec::new();
    for stage in stages {
        for (what, latency) in [
            ("produce", &stage.produce_latency),
            ("end to end", &stage.end_to_end_latency),
        ] {
            if latency.count() > 0 {
                let steps = latency.steps(TICKS_PER_HALF).into_iter();
                curves.push(Curve {
                    name: format!("{}, {what}", stage.title),
                    count: latency.count(),
                    steps: steps
                        .map(|step| (step.share, step.latency_ns as f64 / 1e6))
                        .collect(),
                });
            }
        }
    }
    plot::by_percentile(&curves)
}

/// Acknowledged events (read ones, where none are sent) and their p99 over time, stages one after the other.
pub fn timeline(stages: &[StageResult]) -> String {
    let (mut courses, mut ends, mut start) = (Vec::new(), Vec::new(), 0.0);
    for stage in stages {
        let intervals = stage.timeline.intervals();
        let Some(last) = intervals.last() else {
            continue;
        };
        let reads_only = stage.produced.is_none();
        let moments = intervals.iter().map(|interval| Moment {
            seconds: start + interval.seconds,
            events_per_second: match reads_only {
                true => interval.read_per_second,
                false => interval.acknowledged_per_second,
            },
            p99_ms: match reads_only {
                true => interval.end_to_end_p99_ms,
                false => interval.produce_p99_ms,
            },
        });
        courses.push(Course {
            name: stage.title.clone(),
            moments: moments.collect(),
        });
        start += last.seconds;
        ends.push(start);
    }
    plot::over_time(&courses, &ends)
}
