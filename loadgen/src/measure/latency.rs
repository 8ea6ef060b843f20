//! Latency histograms.

use hdrhistogram::Histogram;

/// Longest latency that is told from longer ones: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Shortest latency that is told from zero: a microsecond.
const LATENCY_NS_MIN: u64 = 1_000;

/// Latencies in nanoseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, 3)
            .expect("the bounds are in their domain");
        Self { histogram }
    }
}

/// The percentiles that are shown and saved.
pub const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

impl Latency {
    /// Notes `count` events of one latency; what is over an hour counts as an hour.
    pub fn record(&mut self, latency_ns: u64, count: u64) {
        self.histogram.saturating_record_n(latency_ns, count);
    }

    /// Adds another histogram to this one.
    pub fn add(&mut self, other: &Latency) {
        self.histogram
            .add(&other.histogram)
            .expect("all latency histograms have the same bounds");
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// How many events were noted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency that this share of events, in percent, did not exceed; zero without events.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        if self.count() == 0 {
            0
        } else {
            self.histogram
                .value_at_percentile(percent)
                .min(self.max_ns())
        }
    }

    /// The longest latency.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// The mean latency.
    pub fn mean_ns(&self) -> f64 {
        self.histogram.mean()
    }

    /// Standard deviation of the latencies.
    pub fn deviation_ns(&self) -> f64 {
        self.histogram.stdev()
    }

    /// How many events took at least `from_ns` and less than `to_ns`, to the histogram's resolution.
    pub fn count_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.histogram
            .iter_recorded()
            .filter(|step| (from_ns..to_ns).contains(&step.value_iterated_to()))
            .map(|step| step.count_at_value())
            .sum()
    }

    /// The distribution for percentile plots: value, share of events up to it, events up to it, each step halving the rest.
    pub fn steps(&self, ticks_per_half: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut count = 0;
        for step in self.histogram.iter_quantiles(ticks_per_half) {
            count += step.count_since_last_iteration();
            steps.push(Step {
                latency_ns: step.value_iterated_to(),
                share: step.quantile_iterated_to(),
                count,
            });
        }
        steps
    }

    /// Buckets and sub-buckets, which the text format states.
    pub fn resolution(&self) -> (u32, u32) {
        let sub_buckets = 2048;
        let buckets =
            (self.histogram.distinct_values() as u32 / (sub_buckets / 2)).saturating_sub(1);
        (buckets, sub_buckets)
    }
}

/// One step of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Latency.
    pub latency_ns: u64,
    /// Share of events with at most this latency, 0 to 1.
    pub share: f64,
    /// How many events that is.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_histograms_are_as_one() {
        let (mut a, mut b, mut all) = (Latency::default(), Latency::default(), Latency::default());
        for n in 1..=1000u64 {
            if n % 2 == 0 { &mut a } else { &mut b }.record(n * 100_000, 3);
            all.record(n * 100_000, 3);
        }
        a.add(&b);
        assert_eq!(a.count(), 3000);
        for (_, percent) in PERCENTILES {
            assert_eq!(a.percentile_ns(percent), all.percentile_ns(percent));
        }
        let p50 = a.percentile_ns(50.0) as f64;
        assert!((p50 / 50_000_000.0 - 1.0).abs() < 0.002, "{p50}");
    }

    #[test]
    fn without_events_everything_is_zero() {
        let latency = Latency::default();
        assert_eq!(
            (
                latency.percentile_ns(99.0),
                latency.max_ns(),
                latency.count()
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn counts_between_bounds_add_up() {
        let mut latency = Latency::default();
        for n in 1..=100u64 {
            latency.record(n * 1_000_000, 1);
        }
        let parts = [(0, 10), (10, 50), (50, 1000)]
            .map(|(from, to)| latency.count_between(from * 1_000_000, to * 1_000_000));
        assert_eq!(parts.iter().sum::<u64>(), 100);
    }
}
