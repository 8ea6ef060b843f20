//! CPU time that the host took from this machine.
//!
//! A virtual machine's CPUs are threads of its host. While the host runs something else on them, everything here stands
//! still, the clocks alone excepted: a stall that no program on this machine made and none can be blamed for. The kernel
//! counts that time as `steal`.

/// Above this share of stolen CPU time a stage says so beside its figures: 0.5 % of ten seconds are five stalls of ten
/// milliseconds, enough to make a p99.9 at any rate.
pub const STOLEN_SHARE_NOTED: f64 = 0.005;

/// Fields of the first line of `/proc/stat` that add up to all CPU time. Those behind them, time of guests, are contained
/// in the first two.
const FIELDS: usize = 8;

/// Which of them is stolen time.
const STEAL_FIELD: usize = 7;

/// CPU time of all CPUs since the machine was started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    stolen: u64,
    all: u64,
}

impl CpuTicks {
    /// Asks the system, which may not tell.
    pub fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let mut ticks = [0u64; FIELDS];
        let mut words = line.split_whitespace();
        for tick in &mut ticks {
            *tick = words.next()?.parse().ok()?;
        }
        Some(Self {
            stolen: ticks[STEAL_FIELD],
            all: ticks.iter().sum(),
        })
    }

    /// The share of CPU time, 0 to 1, that was stolen since `earlier`; none if no tick passed.
    pub fn stolen_share_since(&self, earlier: Self) -> Option<f64> {
        // The time that waits for I/O can fall, says proc(5): so may the sum.
        let all = self.all.checked_sub(earlier.all).filter(|&all| all > 0)?;
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        Some((stolen as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 10 50 700 20 0 10 10 40 4\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
    const AFTER: &str = "cpu  160 10 80 780 20 0 20 30 90 9\n";

    #[test]
    fn guests_are_not_counted_twice() {
        let before = CpuTicks::parse(BEFORE).unwrap();
        assert_eq!((before.stolen, before.all), (10, 900));
        let share = CpuTicks::parse(AFTER).unwrap().stolen_share_since(before);
        assert_eq!(share, Some(0.1));
    }

    #[test]
    fn time_that_stands_or_runs_back_has_no_share() {
        let (before, after) = (CpuTicks::parse(BEFORE), CpuTicks::parse(AFTER));
        assert_eq!(before.unwrap().stolen_share_since(before.unwrap()), None);
        assert_eq!(before.unwrap().stolen_share_since(after.unwrap()), None);
    }

    #[test]
    fn what_is_no_such_line_has_no_ticks() {
        for text in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "intr 5"] {
            assert_eq!(CpuTicks::parse(text), None, "{text:?}");
        }
        assert!(CpuTicks::read().is_some());
    }
}
