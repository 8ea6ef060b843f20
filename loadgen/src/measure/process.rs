//! CPU time and memory.

use std::time::Instant;

/// CPU seconds used by the calling thread.
pub fn thread_cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec to the address that it is given; this clock exists on every Linux.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "the thread's CPU clock can be read");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that the calling thread was ready to run and had no CPU, if the system says so.
pub fn thread_waiting_seconds() -> Option<f64> {
    waiting_seconds(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Its fields are the time that the thread ran, the time that it waited for a CPU, both in nanoseconds, and how often.
fn waiting_seconds(schedstat: &str) -> Option<f64> {
    let waiting_ns: u64 = schedstat.split_whitespace().nth(1)?.parse().ok()?;
    Some(waiting_ns as f64 / 1e9)
}

/// How a thread spent its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadUse {
    /// Share of the time, 0 to 1, that it ran.
    pub busy: f64,
    /// Share of the time that it was ready to run and had no CPU, if the system tells.
    pub waiting: Option<f64>,
}

/// A point in the life of the calling thread, from which its use of time is counted.
#[derive(Clone, Copy, Debug)]
pub struct ThreadMark {
    at: Instant,
    cpu_seconds: f64,
    waiting_seconds: Option<f64>,
}

impl ThreadMark {
    /// Now.
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            cpu_seconds: thread_cpu_seconds(),
            waiting_seconds: thread_waiting_seconds(),
        }
    }

    /// How the calling thread, which must be the one that made the mark, has spent its time since.
    pub fn since(&self) -> ThreadUse {
        let now = Self::now();
        let seconds = (now.at - self.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let share = |spent: f64| (spent / seconds).clamp(0.0, 1.0);
        ThreadUse {
            busy: share(now.cpu_seconds - self.cpu_seconds),
            waiting: now
                .waiting_seconds
                .zip(self.waiting_seconds)
                .map(|(now, then)| share(now - then)),
        }
    }
}

/// The most memory that this process has held at once, in bytes, if the system says so.
pub fn memory_bytes_max() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_answers() {
        assert!(memory_bytes_max().unwrap() > 1 << 20);
        assert!(thread_cpu_seconds() > 0.0);
    }

    #[test]
    fn waiting_is_the_second_field() {
        assert_eq!(waiting_seconds("1345667 1500000000 3\n"), Some(1.5));
        assert_eq!(waiting_seconds(""), None);
        assert_eq!(waiting_seconds("1 x 3"), None);
    }

    #[test]
    fn a_thread_that_sleeps_is_not_busy_and_one_that_spins_is() {
        let mark = ThreadMark::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let slept = mark.since();
        let mark = ThreadMark::now();
        while mark.at.elapsed().as_millis() < 20 {}
        let spun = mark.since();
        // However crowded the machine is: who spins runs or waits for a CPU, who sleeps does neither.
        let ready = |of: ThreadUse| of.busy + of.waiting.unwrap_or(0.0);
        assert!(ready(slept) < ready(spun), "{slept:?} {spun:?}");
    }
}
