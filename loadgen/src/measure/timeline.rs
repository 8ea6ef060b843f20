//! Rates and tail latency over the course of a stage.

/// One interval of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Its end, seconds since the stage began.
    pub seconds: f64,
    /// Events acknowledged in it, per second.
    pub acknowledged_per_second: f64,
    /// Events read in it, per second.
    pub read_per_second: f64,
    /// Latency from due to acknowledged that 99 % of the events acknowledged in it did not exceed, ms.
    pub produce_p99_ms: f64,
    /// The same from due to read.
    pub end_to_end_p99_ms: f64,
    /// The most that an event was handed over late in it, ms; in open loop.
    pub lag_max_ms: f64,
}

/// All intervals of a stage, in order. Bounded: neighbours merge in pairs when there are too many.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    intervals: Vec<Interval>,
}

/// Most intervals kept.
const INTERVALS_MAX: usize = 2048;

impl Timeline {
    /// Notes the interval that just ended.
    pub fn push(&mut self, interval: Interval) {
        self.intervals.push(interval);
        if self.intervals.len() >= INTERVALS_MAX {
            self.intervals = self
                .intervals
                .chunks(2)
                .map(|pair| merged(pair[0], pair[pair.len() - 1]))
                .collect();
        }
    }

    /// The intervals.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

fn merged(a: Interval, b: Interval) -> Interval {
    Interval {
        seconds: b.seconds,
        acknowledged_per_second: (a.acknowledged_per_second + b.acknowledged_per_second) / 2.0,
        read_per_second: (a.read_per_second + b.read_per_second) / 2.0,
        produce_p99_ms: a.produce_p99_ms.max(b.produce_p99_ms),
        end_to_end_p99_ms: a.end_to_end_p99_ms.max(b.end_to_end_p99_ms),
        lag_max_ms: a.lag_max_ms.max(b.lag_max_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_stay_bounded_and_keep_their_peaks() {
        let mut timeline = Timeline::default();
        for n in 0..10_000 {
            let peak = if n == 777 { 50.0 } else { 1.0 };
            timeline.push(Interval {
                seconds: f64::from(n),
                produce_p99_ms: peak,
                ..Interval::default()
            });
        }
        assert!(timeline.intervals().len() < INTERVALS_MAX);
        assert!(
            timeline
                .intervals()
                .iter()
                .any(|interval| interval.produce_p99_ms == 50.0)
        );
        assert!(
            timeline
                .intervals()
                .windows(2)
                .all(|pair| pair[0].seconds < pair[1].seconds)
        );
    }
}
