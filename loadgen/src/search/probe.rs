//! What a tried rate showed.

use std::time::Duration;

use crate::report::number::{milliseconds, span};
use crate::report::results::StageResult;

/// One probe.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The rate that was tried, events a second.
    pub rate: f64,
    /// Why it failed; none if it passed.
    pub failure: Option<String>,
    /// The stage that was run.
    pub stage: StageResult,
}

impl Probe {
    /// Judges a stage that was run at this rate: it must have kept its schedule to its end, with this p99 at most.
    pub fn of(rate: f64, stage: StageResult, p99_max: Duration) -> Self {
        let void = stage
            .schedule
            .as_ref()
            .and_then(|schedule| schedule.void.clone());
        let p99_ns = stage.produce_latency.percentile_ns(99.0);
        let failure = if let Some(why) = &stage.cut_short {
            Some(format!("cut short: {why}"))
        } else if let Some(why) = void {
            Some(format!("schedule not kept: {why}"))
        } else if stage.produce_latency.count() == 0 {
            Some("nothing was acknowledged".into())
        } else if u128::from(p99_ns) > p99_max.as_nanos() {
            Some(format!("p99 above {}", span(p99_max)))
        } else {
            None
        };
        Self {
            rate,
            failure,
            stage,
        }
    }

    /// Whether it passed.
    pub fn has_passed(&self) -> bool {
        self.failure.is_none()
    }

    /// p99 as people read it, ms.
    pub fn p99(&self) -> String {
        milliseconds(self.stage.produce_latency.percentile_ns(99.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::report_test::stage;
    use crate::report::results::ScheduleReport;

    fn open_loop() -> StageResult {
        StageResult {
            schedule: Some(ScheduleReport::default()),
            ..stage("probe")
        }
    }

    #[test]
    fn a_probe_passes_up_to_its_bound() {
        let failure = |p99_max| Probe::of(1.0, open_loop(), p99_max).failure;
        // The made-up stage has one latency, 1.5 ms to the histogram's three digits.
        assert_eq!(failure(Duration::from_micros(1502)), None);
        assert_eq!(
            failure(Duration::from_micros(1400)).unwrap(),
            "p99 above 1.4 ms"
        );
    }

    #[test]
    fn a_low_p99_of_a_stage_that_is_void_or_cut_short_is_none() {
        let mut stage = open_loop();
        stage.schedule.as_mut().unwrap().void = Some("late".into());
        let bound = Duration::from_secs(1);
        let probe = Probe::of(1.0, stage, bound);
        assert_eq!(probe.failure.unwrap(), "schedule not kept: late");
        let cut = StageResult {
            cut_short: Some("disk".into()),
            ..open_loop()
        };
        assert_eq!(
            Probe::of(1.0, cut, bound).failure.unwrap(),
            "cut short: disk"
        );
        let empty = StageResult {
            produce_latency: Default::default(),
            ..open_loop()
        };
        assert!(!Probe::of(1.0, empty, bound).has_passed());
    }
}
