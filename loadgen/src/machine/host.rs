//! What a run was measured on.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use tackboard_runtime::allowed_cpus;

/// The machine, as far as it explains a figure.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Host {
    /// Name of the CPU model.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cores: Vec<usize>,
    /// Kernel release.
    pub kernel: String,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
}

impl Host {
    /// Asks the system.
    pub fn read() -> Self {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib = field(&meminfo, "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .unwrap_or(0u64);
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            cpu: field(&cpuinfo, "model name")
                .unwrap_or("unknown CPU")
                .to_owned(),
            cores: allowed_cpus(),
            kernel: kernel_release(),
            memory_bytes: memory_kib * 1024,
        }
    }

    /// Kernel version without what distributions add: `6.18`.
    pub fn kernel_version(&self) -> String {
        self.kernel.split('.').take(2).collect::<Vec<_>>().join(".")
    }
}

fn kernel_release() -> String {
    let mut name = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the call fills the structure with texts that end in a zero byte, or leaves it zeroed.
    unsafe {
        libc::uname(name.as_mut_ptr());
        CStr::from_ptr(name.assume_init_ref().release.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let host = Host::read();
        assert!(
            !host.cores.is_empty() && host.memory_bytes > 0 && host.kernel_version().contains('.')
        );
    }
}
