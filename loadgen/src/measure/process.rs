//! CPU time and memory.

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
}
