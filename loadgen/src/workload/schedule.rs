//! When each event is due.
//!
//! In open loop the schedule is fixed before the first event and nothing that the broker does can move it: latency is
//! taken from the time an event was *due*, so a stall is paid for by every event that fell due during it (no coordinated
//! omission). Each producer has a schedule of its own; together they make up the asked rate.
//!
//! Times are nanoseconds since the start of the stage.

use super::rng::Rng;

/// How events are spread over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as the in-flight limits allow (closed loop).
    AsFast,
    /// At equal distances: events a second of all producers together.
    Constant(f64),
    /// At random distances with this mean rate: events a second of all producers together.
    Poisson(f64),
    /// By the input's own timestamps, this many times faster than they happened.
    Timestamps(f64),
}

impl Pace {
    /// Whether the schedule stands before the run does.
    pub fn is_open_loop(&self) -> bool {
        !matches!(self, Self::AsFast)
    }
}

/// The due times of one producer's events.
#[derive(Debug)]
pub struct Schedule {
    kind: Kind,
    /// Due time of the next event.
    next_ns: u64,
    /// Events handed out so far.
    count: u64,
}

#[derive(Debug)]
enum Kind {
    Constant {
        period_ns: f64,
        phase_ns: f64,
    },
    Poisson {
        mean_gap_ns: f64,
        rng: Rng,
        exact_ns: f64,
    },
}

impl Schedule {
    /// Every `producers`-th event of a constant rate, beginning with the `producer`-th.
    pub fn constant(events_per_second: f64, producer: u32, producers: u32) -> Self {
        let period_ns = 1e9 / events_per_second * f64::from(producers);
        let phase_ns = 1e9 / events_per_second * f64::from(producer);
        Self {
            kind: Kind::Constant {
                period_ns,
                phase_ns,
            },
            next_ns: phase_ns as u64,
            count: 0,
        }
    }

    /// A Poisson process with an equal share of the rate; the sum over producers is Poisson with the whole rate.
    pub fn poisson(events_per_second: f64, producer: u32, producers: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 0x7363_6865_6475_6c65 ^ u64::from(producer));
        let mean_gap_ns = 1e9 / events_per_second * f64::from(producers);
        let exact_ns = exponential(&mut rng, mean_gap_ns);
        Self {
            kind: Kind::Poisson {
                mean_gap_ns,
                rng,
                exact_ns,
            },
            next_ns: exact_ns as u64,
            count: 0,
        }
    }

    /// When the next event is due.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next event, and returns the time at which it is due.
    pub fn take(&mut self) -> u64 {
        let due_ns = self.next_ns;
        self.count += 1;
        self.next_ns = match &mut self.kind {
            // From the count, not by adding: rounding must not add up over a long run.
            Kind::Constant {
                period_ns,
                phase_ns,
            } => (*phase_ns + *period_ns * self.count as f64) as u64,
            Kind::Poisson {
                mean_gap_ns,
                rng,
                exact_ns,
            } => {
                *exact_ns += exponential(rng, *mean_gap_ns);
                *exact_ns as u64
            }
        };
        due_ns
    }
}

fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -rng.unit().ln() * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn take_due(schedule: &mut Schedule, now_ns: u64) -> Option<u64> {
        (schedule.next_ns() <= now_ns).then(|| schedule.take())
    }

    fn due_within(mut schedule: Schedule, until_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| take_due(&mut schedule, until_ns)).collect()
    }

    #[test]
    fn producers_share_a_constant_rate_evenly() {
        let mut all: Vec<u64> = (0..3)
            .flat_map(|p| due_within(Schedule::constant(1000.0, p, 3), SECOND_NS - 1))
            .collect();
        all.sort_unstable();
        assert_eq!(all.len(), 1000);
        for (n, due) in all.iter().enumerate() {
            assert!(
                due.abs_diff(n as u64 * 1_000_000) <= 1,
                "event {n} due at {due}"
            );
        }
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        // 3 does not divide a second: a thousand seconds later every event is still where it belongs.
        let due = due_within(Schedule::constant(3.0, 0, 1), 1000 * SECOND_NS - 1);
        assert_eq!(due.len(), 3000);
        assert!(due[2997].abs_diff(999 * SECOND_NS) <= 1000);
    }

    #[test]
    fn nothing_is_due_early_and_a_late_caller_gets_the_intended_times() {
        let mut schedule = Schedule::constant(1000.0, 0, 1);
        assert_eq!(take_due(&mut schedule, 0), Some(0));
        assert_eq!(take_due(&mut schedule, 999_999), None);
        assert_eq!(schedule.next_ns(), 1_000_000);
        // After a stall of 10 ms ten events are due, each with its own intended time.
        let late = std::iter::from_fn(|| take_due(&mut schedule, 10_000_000)).collect::<Vec<_>>();
        assert_eq!(late, (1..=10).map(|n| n * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn poisson_has_the_asked_rate_and_the_variance_of_one() {
        let due = due_within(Schedule::poisson(10_000.0, 0, 1, 42), 100 * SECOND_NS);
        let mean_rate = due.len() as f64 / 100.0;
        assert!((mean_rate - 10_000.0).abs() < 50.0, "{mean_rate}");
        // The counts of a Poisson process in equal windows have a variance equal to their mean.
        let mut counts = vec![0f64; 1000];
        for t in &due {
            counts[((t / 100_000_000) as usize).min(999)] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 1000.0;
        assert!(
            (variance / mean - 1.0).abs() < 0.2,
            "variance over mean {}",
            variance / mean
        );
        assert!(due.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn poisson_is_repeatable_and_differs_by_producer() {
        let of =
            |producer, seed| due_within(Schedule::poisson(100.0, producer, 2, seed), SECOND_NS);
        assert_eq!(of(0, 1), of(0, 1));
        assert_ne!(of(0, 1), of(1, 1));
        assert_ne!(of(0, 1), of(0, 2));
    }
}
