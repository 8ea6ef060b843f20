//! Pauses after failures: doubling up to a bound, and spread at random so that many clients of one broker do not
//! come back at the same instant.

use std::time::Duration;

use super::random::Random;

/// How long to pause after the n-th failure in a row.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest.
    pub max: Duration,
}

impl Backoff {
    /// The pause after so many failures in a row (from 1): between three quarters of the nominal pause and all of it.
    pub fn pause(self, failures: u32, random: &mut Random) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let nominal = self.first.saturating_mul(1 << doublings).min(self.max);
        let spread = (nominal / 4).as_micros() as u64;
        nominal - Duration::from_micros(random.below(spread + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_bound() {
        let backoff = Backoff {
            first: Duration::from_millis(20),
            max: Duration::from_secs(1),
        };
        let mut random = Random::new(1);
        for (failures, nominal_ms) in [
            (1, 20),
            (2, 40),
            (3, 80),
            (6, 640),
            (7, 1000),
            (u32::MAX, 1000),
        ] {
            let pause = backoff.pause(failures, &mut random);
            let nominal = Duration::from_millis(nominal_ms);
            assert!(
                pause <= nominal && pause >= nominal * 3 / 4,
                "{failures}: {pause:?}"
            );
        }
    }
}
