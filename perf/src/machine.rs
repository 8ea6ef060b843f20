//! What a figure was measured on, and what a process costs.

use std::{fs, io, mem::MaybeUninit, path::Path, time::Duration};

use serde::Serialize;
use tackboard_report::machine;

/// The machine, as far as it explains a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Name of the CPU model.
    pub cpu: String,
    /// How many CPUs this process may use.
    pub cpus: usize,
    /// Kernel release.
    pub kernel: String,
    /// File system and device that hold the data folder.
    pub storage: String,
}

impl Machine {
    /// Asks the system; `folder` is where data will lie.
    pub fn read(folder: &Path) -> Self {
        Machine {
            cpu: machine::cpu_model(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: machine::kernel_release(),
            storage: storage_of(folder),
        }
    }
}

/// Type and source of the mount that `folder` lies under: the longest mount point that is a prefix of it.
fn storage_of(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let under = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (source, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder
            .starts_with(point)
            .then(|| (point.len(), format!("{kind} on {source}")))
    });
    under
        .max_by_key(|(length, _)| *length)
        .map_or_else(|| "unknown".to_owned(), |(_, text)| text)
}

/// A process and everything that it has started, start scripts leaving the work to children.
pub fn family(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = processes
        .filter_map(|entry| {
            let child = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in brackets may hold anything; state and parent follow it.
            let behind_name = stat.rsplit(')').next()?;
            let parent = behind_name.split_whitespace().nth(1)?.parse().ok()?;
            Some((child, parent))
        })
        .collect();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(member) = family.get(at).copied() {
        at += 1;
        let children = parents.iter().filter(|(_, parent)| *parent == member);
        family.extend(children.map(|(child, _)| *child));
    }
    family
}

/// Kills everything that `pid` has started, and what that has started in turn; `pid` itself lives on.
pub fn kill_descendants(pid: u32) {
    for member in family(pid).into_iter().skip(1) {
        // SAFETY: no pointers. A member that has ended meanwhile is no process any more, or a zombie of this family.
        unsafe { libc::kill(member as libc::pid_t, libc::SIGKILL) };
    }
}

/// CPU time that all threads of a process have used.
///
/// # Errors
/// When there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: both calls write to the variables they are given, and nowhere else.
    let time = unsafe {
        let found = libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock);
        if found != 0 {
            return Err(io::Error::from_raw_os_error(found));
        }
        if libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        time.assume_init()
    };
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// CPU time of a whole [`family`] whose members all live on.
///
/// # Errors
/// When one of them has ended.
pub fn family_cpu_time(family: &[u32]) -> io::Result<Duration> {
    family.iter().map(|member| cpu_time(*member)).sum()
}

/// Bytes that a process held resident at most.
pub fn resident_bytes_max(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let text = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = text.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Bytes that a process has had the disk read so far, by direct reads too.
pub fn disk_read_bytes(pid: u32) -> Option<u64> {
    let counters = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let text = counters
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"))?;
    text.trim().parse().ok()
}

/// Pins the calling thread to `cpu`.
///
/// # Errors
/// When this process may not use that CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    confine(&[cpu])
}

/// Keeps the calling thread, and what it starts, to `cpus`. Allocates nothing: it runs between fork and exec, too.
///
/// # Errors
/// When this process may use none of them.
pub fn confine(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: the set is plain data, and the call reads no more than its size.
    let confined = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(*cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    match confined {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes sleeps of the calling thread end when they are due, not up to 50 µs later.
pub fn sleep_precisely() {
    // SAFETY: no pointers; the slack of this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_cost() {
        let own = std::process::id();
        let before = cpu_time(own).unwrap();
        let mut sum = 0u64;
        while cpu_time(own).unwrap() == before {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(resident_bytes_max(own).unwrap() > 0);
        assert_eq!(family(own)[0], own);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        assert!(cpu_time(ended.id()).is_err());
    }
}
