//! Figures that were measured several times: medians and how far they lay apart.

use hdrhistogram::Histogram;
use serde::Serialize;
use tackboard_report::plot::Curve;

/// Longest latency that a histogram tells apart: an hour, in nanoseconds.
const LATENCY_MAX_NANOS: u64 = 3_600_000_000_000;

/// One figure from several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The middle value; of an even number of rounds the mean of the two in the middle.
    pub median: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
}

impl Figure {
    /// Of these rounds; `None` when there was none.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = rounds.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[half],
            _ => (sorted[half - 1] + sorted[half]) / 2.0,
        };
        Some(Figure {
            median,
            least,
            greatest,
        })
    }

    /// `1.23 [1.10–1.40]`, each number as `write` puts it.
    pub fn show(&self, write: impl Fn(f64) -> String) -> String {
        format!(
            "{} [{}–{}]",
            write(self.median),
            write(self.least),
            write(self.greatest)
        )
    }
}

/// Steps of a curve for each halving of what is left.
const TICKS_PER_HALF: u32 = 5;
/// Digits that a histogram keeps of a latency, and one of many small ones.
const DIGITS: u8 = 3;
const FEW_DIGITS: u8 = 2;

/// Latencies of one round, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        Self::with_digits(DIGITS)
    }

    /// None yet, in a histogram of a few tens of kilobytes that tells them apart to a hundredth.
    pub fn coarse() -> Self {
        Self::with_digits(FEW_DIGITS)
    }

    fn with_digits(digits: u8) -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NANOS, digits);
        Latencies(histogram.expect("bounds and digits are in range"))
    }

    /// Counts one.
    pub fn record(&mut self, latency: std::time::Duration) {
        self.record_n(latency, 1);
    }

    /// Counts `count` events of the same latency.
    pub fn record_n(&mut self, latency: std::time::Duration, count: u64) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record_n(nanos, count);
    }

    /// Takes in another round's.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Their distribution, as pictures show it.
    pub fn curve(&self, name: String) -> Curve {
        let steps = self.0.iter_quantiles(TICKS_PER_HALF).map(|step| {
            let millis = step.value_iterated_to() as f64 / 1e6;
            (step.quantile_iterated_to(), millis)
        });
        Curve {
            name,
            count: self.count(),
            steps: steps.collect(),
        }
    }

    /// What is kept of them.
    pub fn percentiles(&self) -> Percentiles {
        let micros = |quantile| self.0.value_at_quantile(quantile) as f64 / 1000.0;
        Percentiles {
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            p999_us: micros(0.999),
            max_us: self.0.max() as f64 / 1000.0,
        }
    }
}

/// The percentiles that are compared, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// Half were faster.
    pub p50_us: f64,
    /// 99 % were faster.
    pub p99_us: f64,
    /// 99.9 % were faster.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_the_spread_the_ends() {
        let odd = Figure::of([5.0, 1.0, 3.0]).unwrap();
        assert_eq!((odd.median, odd.least, odd.greatest), (3.0, 1.0, 5.0));
        assert_eq!(Figure::of([4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(Figure::of([]), None);
        assert_eq!(odd.show(|value| format!("{value:.1}")), "3.0 [1.0–5.0]");
    }
}
