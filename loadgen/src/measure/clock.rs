//! The two clocks of a run.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of the machine's monotonic clock: the same in all threads and processes of one boot.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec to the address that it is given; this clock exists on every Linux.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(result, 0, "the monotonic clock can be read");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Milliseconds since the Unix epoch: what records carry as their timestamp.
pub fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_forward_only() {
        let before = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let after = monotonic_ns();
        assert!(after - before >= 2_000_000);
        assert!(wall_ms() > 1_600_000_000_000);
    }
}
