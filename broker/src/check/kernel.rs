//! The kernel's version, and whether it lets this process use io_uring.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, OwnedFd};

use super::Finding;

/// The runtime needs what this version brought.
const VERSION_MIN: (u32, u32) = (5, 8);
/// Below this the ring's memory counts against the locked-memory limit and several fixes are missing.
const VERSION_GOOD: (u32, u32) = (5, 15);

const SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";

pub(super) fn version() -> Finding {
    const NAME: &str = "kernel";
    let remedy = "upgrade the kernel to 5.15 or newer";
    let Some(release) = release() else {
        return Finding::warn(NAME, "cannot be told", remedy);
    };
    match parse(&release) {
        Some(version) if version < VERSION_MIN => Finding::fault(
            NAME,
            format!("Linux {release}; at least 5.8 is needed"),
            remedy,
        ),
        Some(version) if version < VERSION_GOOD => Finding::warn(
            NAME,
            format!("Linux {release}; 5.15 or newer is better"),
            remedy,
        ),
        _ => Finding::ok(NAME, format!("Linux {release}")),
    }
}

/// The running kernel's release, e.g. `6.18.0`.
fn release() -> Option<String> {
    // SAFETY: a utsname is arrays of bytes, for which all zeros is a valid value.
    let mut name: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: the pointer is valid during the call.
    if unsafe { libc::uname(&mut name) } != 0 {
        return None;
    }
    // SAFETY: the kernel ends the text with a zero byte within the array.
    let release = unsafe { CStr::from_ptr(name.release.as_ptr()) };
    Some(release.to_string_lossy().into_owned())
}

fn parse(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|character: char| !character.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn io_uring() -> Finding {
    match set_up_ring() {
        Ok(()) => Finding::ok("io_uring", "available"),
        Err(error) => explain(&error, switch()),
    }
}

/// Makes a small ring and closes it again.
fn set_up_ring() -> io::Result<()> {
    const ENTRIES: libc::c_uint = 4;
    /// `struct io_uring_params` of the kernel's interface, as 64-bit words.
    const PARAMS_WORDS: usize = 15;
    let mut params = [0u64; PARAMS_WORDS];
    // SAFETY: `params` is at least as large as the structure (120 bytes) that the kernel reads and
    // writes, suitably aligned, and alive during the call.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, params.as_mut_ptr()) };
    if ring < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(ring as i32) });
    Ok(())
}

/// The system-wide switch: 0 allowed, 1 only for a group, 2 denied; None before Linux 6.6.
fn switch() -> Option<u8> {
    fs::read_to_string(SWITCH).ok()?.trim().parse().ok()
}

fn explain(error: &io::Error, switch: Option<u8>) -> Finding {
    const NAME: &str = "io_uring";
    match (error.raw_os_error(), switch) {
        (Some(libc::ENOSYS), _) => Finding::fault(
            NAME,
            "this kernel (or sandbox) has no io_uring",
            "use a kernel with CONFIG_IO_URING; gVisor and some sandboxes have none",
        ),
        (Some(libc::EPERM | libc::EACCES), Some(setting @ 1..)) => Finding::fault(
            NAME,
            format!("switched off for this process: kernel.io_uring_disabled = {setting}"),
            "sysctl -w kernel.io_uring_disabled=0",
        ),
        (Some(libc::EPERM | libc::EACCES), _) => Finding::fault(
            NAME,
            "denied to this process by a seccomp filter or security module, as container runtimes do by default",
            "docker run --security-opt seccomp=unconfined …, or a profile that allows io_uring_setup, io_uring_enter and io_uring_register; in a systemd unit remove them from SystemCallFilter",
        ),
        (Some(libc::ENOMEM), _) => Finding::fault(
            NAME,
            "no memory for a ring: the locked-memory limit is used up",
            "LimitMEMLOCK=infinity in the unit, or `ulimit -l unlimited` in this shell",
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => Finding::fault(
            NAME,
            "no file descriptor left for a ring",
            "LimitNOFILE=1048576 in the unit, or `ulimit -n 1048576` in this shell",
        ),
        _ => Finding::fault(
            NAME,
            format!("a ring cannot be made: {error}"),
            "see the kernel's log: dmesg | tail",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(parse("6.18.0"), Some((6, 18)));
        assert_eq!(parse("5.4-custom+"), Some((5, 4)));
        assert_eq!(parse("5.10.0-28-amd64"), Some((5, 10)));
        assert_eq!(parse("strange"), None);
        assert!((5, 10) > VERSION_MIN);
    }

    #[test]
    fn a_denied_ring_names_the_switch_or_the_filter() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        assert_eq!(
            explain(&denied, Some(2)).remedy.as_deref(),
            Some("sysctl -w kernel.io_uring_disabled=0")
        );
        assert!(explain(&denied, Some(0)).text.contains("seccomp"));
        assert!(explain(&denied, None).text.contains("seccomp"));
        let absent = io::Error::from_raw_os_error(libc::ENOSYS);
        assert_eq!(explain(&absent, None).level, Level::Fault);
    }
}
