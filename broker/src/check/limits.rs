//! What the process may use: locked memory, open files, CPUs, memory.

use std::fs;
use std::io;
use std::path::Path;

use crate::config::host::{Limit, limit};
use crate::config::quantity::{approximate_size, separated, show_size};
use crate::config::{Config, open_files};

use super::Finding;

/// With less locked memory than this per core its rings cannot be made (measured).
const LOCKED_BYTES_PER_CORE_MIN: u64 = 512 << 10;
/// With less than this glommio makes no executor, whatever the process is allowed beyond it.
const LOCKED_BYTES_MIN: u64 = 512 << 10;
/// Buffers that a core registers with the kernel: its I/O arena, on each of its three rings.
const LOCKED_BYTES_PER_CORE_GOOD: u64 = 3 * (16 << 20);
/// Below this not even a small broker starts.
const FILES_MIN: u64 = 256;

const RAISE_LOCKED: &str =
    "raise it: LimitMEMLOCK=infinity in the unit, or `ulimit -l unlimited` in this shell";

pub(super) fn locked_memory(config: &Config) -> Finding {
    let limit = limit(libc::RLIMIT_MEMLOCK).map(|limit| limit.soft);
    judge_locked_memory(limit, may_lock_without_limit(), config.cores.len() as u64)
}

fn judge_locked_memory(limit: io::Result<u64>, is_lifted: bool, cores: u64) -> Finding {
    const NAME: &str = "locked memory";
    match limit {
        Ok(bytes) if is_lifted && bytes < LOCKED_BYTES_MIN => Finding::fault(
            NAME,
            format!(
                "limited to {}; the limit must say at least {}, even though this process may go beyond it",
                show_size(bytes),
                show_size(LOCKED_BYTES_MIN)
            ),
            RAISE_LOCKED,
        ),
        _ if is_lifted => Finding::ok(NAME, "unlimited"),
        Err(error) => Finding::warn(NAME, format!("limit cannot be read: {error}"), RAISE_LOCKED),
        Ok(libc::RLIM_INFINITY) => Finding::ok(NAME, "unlimited"),
        Ok(bytes) if bytes < LOCKED_BYTES_PER_CORE_MIN * cores => Finding::fault(
            NAME,
            format!(
                "limited to {}; {cores} cores need at least {} for their rings",
                show_size(bytes),
                show_size(LOCKED_BYTES_PER_CORE_MIN * cores)
            ),
            RAISE_LOCKED,
        ),
        Ok(bytes) if bytes < LOCKED_BYTES_PER_CORE_GOOD * cores => Finding::warn(
            NAME,
            format!(
                "limited to {}; io_uring buffers run unregistered, about 10 % more CPU ({} would do)",
                show_size(bytes),
                show_size(LOCKED_BYTES_PER_CORE_GOOD * cores)
            ),
            RAISE_LOCKED,
        ),
        Ok(bytes) => Finding::ok(NAME, format!("limited to {}, enough", show_size(bytes))),
    }
}

/// Whether the process has CAP_IPC_LOCK, which lifts the limit.
fn may_lock_without_limit() -> bool {
    const CAP_IPC_LOCK: u32 = 14;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> CAP_IPC_LOCK & 1 == 1)
}

pub(super) fn open_files(config: &Config) -> Finding {
    let wanted = open_files::wanted(config);
    judge_open_files(limit(libc::RLIMIT_NOFILE).map(|limit| limit.hard), wanted)
}

fn judge_open_files(limit: io::Result<u64>, wanted: u64) -> Finding {
    const NAME: &str = "open files";
    let remedy = format!(
        "raise it: LimitNOFILE={} in the unit, or `ulimit -Hn {}` as root; or lower native.connections_max and storage.partitions_per_core_max",
        wanted.next_power_of_two(),
        wanted.next_power_of_two()
    );
    let many = separated(wanted);
    match limit {
        Err(error) => Finding::warn(NAME, format!("limit cannot be read: {error}"), remedy),
        Ok(files) if files < FILES_MIN => Finding::fault(
            NAME,
            format!("limited to {files}; at least {FILES_MIN} are needed"),
            remedy,
        ),
        Ok(files) if files < wanted => Finding::warn(
            NAME,
            format!(
                "limited to {}; connections and partitions at their bounds need {many}",
                separated(files)
            ),
            remedy,
        ),
        Ok(libc::RLIM_INFINITY) => Finding::ok(NAME, "unlimited"),
        Ok(files) => Finding::ok(
            NAME,
            format!(
                "up to {} (at the bounds {many} are needed)",
                separated(files)
            ),
        ),
    }
}

/// Raises the soft limit on open files to the hard one, which every process may do. Many systems keep
/// the soft limit low for old programs' sake.
pub fn raise_open_files() -> io::Result<()> {
    let Limit { soft, hard } = limit(libc::RLIMIT_NOFILE)?;
    if soft >= hard {
        return Ok(());
    }
    let raised = libc::rlimit {
        rlim_cur: hard,
        rlim_max: hard,
    };
    // SAFETY: the pointer is valid during the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

pub(super) fn cores(config: &Config) -> Finding {
    judge_cores(&config.cores, tightest_quota())
}

/// The least CPU time that this process's cgroup or one around it allows, in CPUs.
fn tightest_quota() -> Option<f64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    (root.join(path).ancestors())
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| fs::read_to_string(folder.join("cpu.max")).ok())
        .filter_map(|text| parse_quota(&text))
        .min_by(f64::total_cmp)
}

fn judge_cores(cores: &[usize], quota: Option<f64>) -> Finding {
    const NAME: &str = "cores";
    let ids: Vec<String> = cores.iter().map(usize::to_string).collect();
    let ids = ids.join(" ");
    match quota {
        Some(cpus) if cpus + 0.01 < cores.len() as f64 => Finding::warn(
            NAME,
            format!(
                "CPUs {ids}, but the cgroup allows {cpus:.1} CPUs of time: cores will be halted in turn"
            ),
            format!(
                "use fewer: --set cores=[{}]; or raise CPUQuota",
                first(cores, cpus)
            ),
        ),
        _ => Finding::ok(NAME, format!("CPUs {ids}")),
    }
}

fn first(cores: &[usize], cpus: f64) -> String {
    let count = (cpus as usize).max(1);
    let ids: Vec<String> = cores.iter().take(count).map(usize::to_string).collect();
    ids.join(",")
}

/// CPUs' worth of time from a cgroup's `cpu.max`: `quota period` in microseconds, or `max period`.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then_some(quota / period)
}

pub(super) fn memory(config: &Config) -> Finding {
    const NAME: &str = "memory";
    let budget = config.memory.total_bytes;
    let per_core = approximate_size(config.memory.core_bytes(config.cores.len()));
    let text = format!("{} budget, {per_core} each core", approximate_size(budget));
    match available_bytes() {
        Some(available) if available < budget => Finding::warn(
            NAME,
            format!(
                "{text}, but only {} are available",
                approximate_size(available)
            ),
            "lower memory.total, or stop what else uses memory",
        ),
        _ => Finding::ok(NAME, text),
    }
}

fn available_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    #[test]
    fn locked_memory_is_judged_per_core() {
        let level = |bytes, cores| judge_locked_memory(Ok(bytes), false, cores).level;
        assert_eq!(level(64 << 10, 1), Level::Fault);
        assert_eq!(level(8 << 20, 2), Level::Warn);
        assert_eq!(level(8 << 20, 64), Level::Fault);
        assert_eq!(level(96 << 20, 2), Level::Ok);
        let lifted = |bytes| judge_locked_memory(Ok(bytes), true, 64).level;
        assert_eq!(lifted(64 << 10), Level::Fault, "no executor is made");
        assert_eq!(lifted(512 << 10), Level::Ok);
        assert_eq!(level(libc::RLIM_INFINITY, 64), Level::Ok);
    }

    #[test]
    fn open_files_are_judged_by_the_bounds() {
        let level = |files| judge_open_files(Ok(files), 22_512).level;
        assert_eq!(level(100), Level::Fault);
        assert_eq!(level(4_096), Level::Warn);
        assert_eq!(level(1 << 20), Level::Ok);
    }

    #[test]
    fn a_cpu_quota_below_the_cores_is_a_warning() {
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(judge_cores(&[0, 1], Some(1.5)).level, Level::Warn);
        assert_eq!(judge_cores(&[0, 1], Some(2.0)).level, Level::Ok);
        assert!(
            judge_cores(&[4, 5], Some(1.5))
                .remedy
                .is_some_and(|text| text.contains("[4]"))
        );
    }
}
