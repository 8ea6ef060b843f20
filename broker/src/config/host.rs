//! What the host offers, as far as defaults depend on it.
//!
//! Gathered once, before settings are resolved, so that resolving is a pure function that tests
//! can call for any machine.

use std::fs;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The machine, or the part of it that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// CPU ids in the process's affinity mask, ascending.
    pub cpus: Vec<usize>,
    /// The smaller of the host's memory and the cgroup's limit.
    pub memory_bytes: u64,
    /// Size of the file system that holds (or will hold) the data folder.
    pub file_system_bytes: u64,
    /// Files that the process may have open, once its soft limit is raised to the hard one.
    pub open_files_max: u64,
}

impl Host {
    /// Looks at the running system. What cannot be read counts as absent: one CPU, 1 GiB of
    /// memory, an empty file system, no open files; the checks before the start say more.
    pub fn gather(data_dir: &Path) -> Self {
        Self {
            cpus: allowed_cpus(),
            memory_bytes: memory_bytes().unwrap_or(1 << 30),
            file_system_bytes: existing_ancestor(data_dir)
                .and_then(|folder| file_system_space(&folder).ok())
                .map_or(0, |space| space.total_bytes),
            open_files_max: limit(libc::RLIMIT_NOFILE).map_or(0, |limit| limit.hard),
        }
    }
}

/// A limit of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The one that holds.
    pub soft: u64,
    /// What the process may raise it to.
    pub hard: u64,
}

/// A limit as it now stands.
pub fn limit(resource: libc::__rlimit_resource_t) -> io::Result<Limit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is valid during the call.
    if unsafe { libc::getrlimit(resource, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Limit {
        soft: limit.rlim_cur,
        hard: limit.rlim_max,
    })
}

/// CPU ids that this process may run on, ascending. Never empty.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a cpu_set_t is plain bits, for which all zeros is a valid value.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the pointer is to a cpu_set_t of the size given, alive during the call.
    let result = unsafe { libc::sched_getaffinity(0, mem::size_of::<libc::cpu_set_t>(), &mut set) };
    let bits = libc::CPU_SETSIZE as usize;
    // SAFETY: `cpu` is below CPU_SETSIZE, the number of bits in the set.
    let cpus: Vec<usize> = (0..bits)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect();
    if result == 0 && !cpus.is_empty() {
        cpus
    } else {
        vec![0]
    }
}

/// Space on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total_bytes: u64,
    /// Free for us (not for root alone).
    pub free_bytes: u64,
}

/// The space of the file system that holds `path`.
pub fn file_system_space(path: &Path) -> io::Result<Space> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a statvfs is plain numbers, for which all zeros is a valid value.
    let mut stat: libc::statvfs = unsafe { mem::zeroed() };
    // SAFETY: both pointers are valid during the call, the path ends with a zero byte.
    if unsafe { libc::statvfs(path.as_ptr(), &mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let fragment = stat.f_frsize as u64;
    Ok(Space {
        total_bytes: fragment.saturating_mul(stat.f_blocks as u64),
        free_bytes: fragment.saturating_mul(stat.f_bavail as u64),
    })
}

/// The nearest folder above (or at) `path` that exists.
pub fn existing_ancestor(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute
        .ancestors()
        .find(|folder| folder.is_dir())
        .map(Path::to_path_buf)
}

fn memory_bytes() -> Option<u64> {
    let host = host_memory_bytes(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let limit = cgroup_memory_limit().unwrap_or(u64::MAX);
    Some(host.min(limit))
}

fn host_memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The tightest limit from the process's cgroup up to the root (version 2), or of version 1.
fn cgroup_memory_limit() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let unified = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or("/");
    let root = Path::new("/sys/fs/cgroup");
    let folder = root.join(unified.trim_start_matches('/'));
    let limits = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    let tightest = limits
        .filter_map(|folder| read_limit(&folder.join("memory.max")))
        .min();
    tightest.or_else(|| read_limit(&root.join("memory/memory.limit_in_bytes")))
}

fn read_limit(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_cpu_memory_and_a_disk() {
        let host = Host::gather(Path::new("does/not/exist/yet"));
        assert!(!host.cpus.is_empty());
        assert!(host.memory_bytes >= 64 << 20);
        assert!(host.file_system_bytes > 0);
    }

    #[test]
    fn meminfo_is_in_kib() {
        assert_eq!(
            host_memory_bytes("MemTotal:       1024 kB\nMemFree: 1 kB\n"),
            Some(1 << 20)
        );
        assert_eq!(host_memory_bytes("nonsense"), None);
    }
}
