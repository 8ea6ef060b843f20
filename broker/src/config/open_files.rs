//! How many files a broker opens when partitions and connections are at their bounds.

use super::model::Config;

/// Descriptors of a core beside partitions and connections: rings, listeners, ledger.
const PER_CORE: u64 = 128;
/// The active segment is open twice: plainly and with O_DSYNC. Sealed ones that are being read come on top.
const PER_PARTITION: u64 = 2;
/// Each half of a connection has a descriptor of its own.
const PER_CONNECTION: u64 = 2;
/// Descriptors of everything else.
const OF_PROCESS: u64 = 128;

/// `native.connections_max = "auto"` where files are not scarce.
const CONNECTIONS_AUTO_MAX: u64 = 10_000;
/// `native.connections_max = "auto"` is never less: below, the limit has to be raised.
const CONNECTIONS_AUTO_MIN: u64 = 256;

/// Open files at the bounds of this configuration.
pub fn wanted(config: &Config) -> u64 {
    let connections = PER_CONNECTION * u64::from(config.connections_max);
    OF_PROCESS
        + (files_of_core(config.partitions_max_per_core) + connections) * config.cores.len() as u64
}

/// The connections of one core that a limit on open files leaves room for.
pub(super) fn connections_that_fit(limit: u64, cores: usize, partitions_per_core: u32) -> u32 {
    let per_core = limit.saturating_sub(OF_PROCESS) / (cores as u64).max(1);
    let left = per_core.saturating_sub(files_of_core(partitions_per_core));
    let connections = (left / PER_CONNECTION).clamp(CONNECTIONS_AUTO_MIN, CONNECTIONS_AUTO_MAX);
    connections as u32
}

fn files_of_core(partitions: u32) -> u64 {
    PER_CORE + PER_PARTITION * u64::from(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_connections_fit_as_the_limit_leaves() {
        assert_eq!(connections_that_fit(1 << 20, 2, 1_000), 10_000);
        assert_eq!(connections_that_fit(u64::MAX, 64, 1_000), 10_000);
        assert_eq!(connections_that_fit(20_000, 2, 1_000), 3_904);
        assert_eq!(connections_that_fit(1_024, 2, 1_000), 256);
        assert_eq!(connections_that_fit(0, 0, u32::MAX), 256);
    }
}
