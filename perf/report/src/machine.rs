//! What the system says about the machine that a figure was measured on.

use std::fs;

/// Name of the CPU model.
pub fn cpu_model() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    field(&cpuinfo, "model name")
        .unwrap_or("unknown CPU")
        .to_owned()
}

/// Release of the kernel.
pub fn kernel_release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// Memory of the machine in bytes; 0 where the system doesn't tell.
pub fn memory_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = field(&meminfo, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    kib.unwrap_or(0u64) * 1024
}

/// The first value of this name in a text of `name: value` lines.
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
        assert!(!cpu_model().is_empty());
        assert!(kernel_release().contains('.'));
        assert!(memory_bytes() > 1 << 20);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: A CPU @ 2:1 GHz\nmodel name\t: another\n";
        assert_eq!(field(text, "model name"), Some("A CPU @ 2:1 GHz"));
        assert_eq!(field(text, "mode"), None);
    }
}
