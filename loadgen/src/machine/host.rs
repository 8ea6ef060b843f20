//! What a run was measured on.

use tackboard_report::machine;
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
        Self {
            cpu: machine::cpu_model(),
            cores: allowed_cpus(),
            kernel: machine::kernel_release(),
            memory_bytes: machine::memory_bytes(),
        }
    }

    /// Kernel version without what distributions add: `6.18`.
    pub fn kernel_version(&self) -> String {
        self.kernel.split('.').take(2).collect::<Vec<_>>().join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_version_is_what_all_distributions_mean_by_it() {
        let kernel = "6.18.5-1-cloud+deb13".to_owned();
        let host = Host {
            kernel,
            ..Host::read()
        };
        assert_eq!(host.kernel_version(), "6.18");
    }
}
