//! Which rate is tried next, and what was found: a search over rates that pass or fail.
//!
//! It grows the rate by [`GROWTH`] until one fails, or shrinks it until one passes, and then halves what lies between the
//! highest rate that passed and the lowest that failed, on a scale of ratios, until the two are as near as was asked.
//!
//! A machine that is shared stalls now and then, and one stall fails a probe of any rate. So a rate has failed only after
//! [`FAILURES_BELIEVED`] probes of it in a row. A rate has passed after one: nothing makes a broker faster by accident.
//!
//! Invariants: at most `probes_max` probes; `passed < failed`; every rate lies within the bounds.

/// No lower rate is tried: a p99 takes hundreds of events.
pub const RATE_MIN: f64 = 100.0;

/// No higher rate is tried: the most that `--rate` takes.
pub const RATE_MAX: f64 = 1e8;

/// Factor between two rates while no bound is known.
pub const GROWTH: f64 = 2.0;

/// Probes of a rate that must fail one after the other before it counts as failed.
pub const FAILURES_BELIEVED: u32 = 2;

/// Significant digits of the rates that are tried.
const DIGITS: i32 = 4;

/// What bounds a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The rate that is tried first.
    pub rate_first: f64,
    /// No lower rate is tried.
    pub rate_min: f64,
    /// No higher rate is tried.
    pub rate_max: f64,
    /// How far above the highest rate that passed the lowest that failed may lie, as a share of it.
    pub precision: f64,
    /// Most probes.
    pub probes_max: u32,
}

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The bounds are as near as was asked.
    Precise,
    /// There were no more probes.
    OutOfProbes,
    /// The highest rate that may be tried passed.
    HighestPassed,
    /// The lowest rate that may be tried failed.
    LowestFailed,
}

impl End {
    /// A few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precise => "precise",
            Self::OutOfProbes => "out of probes",
            Self::HighestPassed => "the highest rate passed",
            Self::LowestFailed => "the lowest rate failed",
        }
    }
}

/// A search that is under way, or over.
#[derive(Clone, Debug)]
pub struct Search {
    bounds: Bounds,
    rate: f64,
    /// Failed probes of `rate`, one after the other.
    failures: u32,
    probes: u32,
    passed: Option<f64>,
    failed: Option<f64>,
    end: Option<End>,
}

impl Search {
    /// A search that has tried nothing yet.
    pub fn new(bounds: Bounds) -> Self {
        let first = rounded(bounds.rate_first).clamp(bounds.rate_min, bounds.rate_max);
        Self {
            bounds,
            rate: first,
            failures: 0,
            probes: 0,
            passed: None,
            failed: None,
            end: (bounds.probes_max == 0).then_some(End::OutOfProbes),
        }
    }

    /// The rate to try next; none when the search is over.
    pub fn next(&self) -> Option<f64> {
        self.end.is_none().then_some(self.rate)
    }

    /// The highest rate that passed.
    pub fn passed(&self) -> Option<f64> {
        self.passed
    }

    /// The lowest rate that failed.
    pub fn failed(&self) -> Option<f64> {
        self.failed
    }

    /// Why the search is over, once it is.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Notes what the probe of [`Search::next`] showed.
    pub fn note(&mut self, has_passed: bool) {
        assert!(
            self.end.is_none(),
            "a search that is over asked for no probe"
        );
        self.probes += 1;
        if has_passed {
            self.passed = Some(self.rate);
            self.failures = 0;
            self.go_on();
        } else {
            self.failures += 1;
            if self.failures == FAILURES_BELIEVED {
                self.failed = Some(self.rate);
                self.failures = 0;
                self.go_on();
            }
        }
        if self.end.is_none() && self.probes == self.bounds.probes_max {
            self.end = Some(End::OutOfProbes);
        }
    }

    /// Chooses the next rate, or ends.
    fn go_on(&mut self) {
        let bounds = self.bounds;
        self.rate = match (self.passed, self.failed) {
            (Some(passed), _) if passed >= bounds.rate_max => {
                return self.finish(End::HighestPassed);
            }
            (_, Some(failed)) if failed <= bounds.rate_min => {
                return self.finish(End::LowestFailed);
            }
            (Some(passed), None) => rounded(passed * GROWTH).min(bounds.rate_max),
            (None, Some(failed)) => rounded(failed / GROWTH).max(bounds.rate_min),
            (Some(passed), Some(failed)) => {
                let between = rounded((passed * failed).sqrt());
                // Rates that are one step of rounding apart have none between them.
                let is_between = passed < between && between < failed;
                if failed <= passed * (1.0 + bounds.precision) || !is_between {
                    return self.finish(End::Precise);
                }
                between
            }
            (None, None) => self.rate,
        };
    }

    fn finish(&mut self, end: End) {
        self.end = Some(end);
    }
}

/// To [`DIGITS`] significant digits, so that a rate can be read, said and given to `--rate` again.
fn rounded(rate: f64) -> f64 {
    let step = 10f64.powi(rate.log10().floor() as i32 + 1 - DIGITS);
    (rate / step).round() * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng::Rng;

    const BOUNDS: Bounds = Bounds {
        rate_first: 10_000.0,
        rate_min: 10.0,
        rate_max: 1e8,
        precision: 0.05,
        probes_max: 40,
    };

    /// p99 of a queue that nears its capacity, ms.
    fn p99_ms(rate: f64, capacity: f64) -> f64 {
        if rate >= capacity {
            f64::INFINITY
        } else {
            0.5 / (1.0 - rate / capacity)
        }
    }

    /// The rate at which it reaches 5 ms.
    fn truth(capacity: f64) -> f64 {
        capacity * 0.9
    }

    /// Searches until it is over; `stalls` says of each probe whether a stall spoils it.
    fn search(
        bounds: Bounds,
        capacity: f64,
        mut stalls: impl FnMut() -> bool,
    ) -> (Search, Vec<f64>) {
        let mut search = Search::new(bounds);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            rates.push(rate);
            search.note(p99_ms(rate, capacity) <= 5.0 && !stalls());
            assert!(rates.len() <= bounds.probes_max as usize);
        }
        (search, rates)
    }

    #[test]
    fn the_rate_is_found_as_precisely_as_asked_whatever_it_is() {
        let mut rng = Rng::new(7, 0);
        for _ in 0..2000 {
            let capacity = 100.0 * 10f64.powf(rng.unit() * 5.0);
            let precision = 0.01 + rng.unit() * 0.2;
            let bounds = Bounds {
                precision,
                ..BOUNDS
            };
            let (search, rates) = search(bounds, capacity, || false);
            assert_eq!(search.end(), Some(End::Precise), "{capacity} {rates:?}");
            let (passed, failed) = (search.passed().unwrap(), search.failed().unwrap());
            assert!(passed <= truth(capacity) && truth(capacity) < failed);
            assert!(
                failed / passed <= 1.0 + precision + 1e-9,
                "{capacity} {rates:?}"
            );
        }
    }

    #[test]
    fn it_grows_and_then_halves() {
        let (search, rates) = search(
            Bounds {
                precision: 0.1,
                ..BOUNDS
            },
            60_000.0,
            || false,
        );
        let expected = [
            10_000.0, 20_000.0, 40_000.0, 80_000.0, 80_000.0, 56_570.0, 56_570.0, 47_570.0,
            51_880.0,
        ];
        assert_eq!(rates, expected);
        assert_eq!(
            (search.passed(), search.failed()),
            (Some(51_880.0), Some(56_570.0))
        );
    }

    #[test]
    fn one_stall_changes_nothing_but_the_number_of_probes() {
        let (calm, rates) = search(BOUNDS, 1e6, || false);
        for spoiled in 0..rates.len() {
            let mut probe = 0;
            let (stalled, more) = search(BOUNDS, 1e6, || {
                probe += 1;
                probe == spoiled + 1
            });
            assert_eq!(
                (stalled.passed(), stalled.failed()),
                (calm.passed(), calm.failed())
            );
            assert!(more.len() <= rates.len() + 1);
        }
    }

    #[test]
    fn stalls_in_a_tenth_of_all_probes_seldom_mislead() {
        let found = |seed| {
            let mut rng = Rng::new(seed, 1);
            let (search, _) = search(BOUNDS, 1e6, || rng.unit() < 0.1);
            search.passed().is_some_and(|rate| rate > truth(1e6) / 1.06)
        };
        // Two stalls on one rate, one probe in a hundred, are believed: that is some tenth of the searches.
        let right = (0..1000).filter(|&seed| found(seed)).count();
        assert!(right > 850, "{right} of 1000");
    }

    #[test]
    fn a_first_rate_that_fails_is_shrunk() {
        let (search, rates) = search(BOUNDS, 3000.0, || false);
        assert_eq!(rates[..4], [10_000.0, 10_000.0, 5000.0, 5000.0]);
        assert_eq!(search.end(), Some(End::Precise));
    }

    #[test]
    fn every_end_has_its_name() {
        let end = |bounds, capacity| search(bounds, capacity, || false).0.end().unwrap();
        assert_eq!(end(BOUNDS, 1e9), End::HighestPassed);
        assert_eq!(end(BOUNDS, 1.0), End::LowestFailed);
        assert_eq!(
            end(
                Bounds {
                    probes_max: 5,
                    ..BOUNDS
                },
                1e6
            ),
            End::OutOfProbes
        );
        assert_eq!(
            end(
                Bounds {
                    probes_max: 0,
                    ..BOUNDS
                },
                1e6
            ),
            End::OutOfProbes
        );
    }
}
