//! Says whether this machine can run the broker, and what mends it where it cannot.
//!
//! Owns: the checks of `tackboard check`, which `tackboard serve` makes too before it starts anything.
//!
//! Not here: anything of the runtime. The checks ask the kernel directly, so that they can explain what
//! the runtime would only fail with.
//!
//! Invariants:
//! 1. A check changes nothing that lasts: its test file is deleted, limits are only read.
//! 2. Every warning and fault names what mends it, as a command where there is one.

mod kernel;
mod limits;
mod storage;

use serde::Serialize;

use crate::config::{Config, DirectIo};

pub use limits::raise_open_files;
pub use storage::{Refused, StorageVerdict, Unusable, judge as judge_storage};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// The broker runs, but less well.
    Warn,
    /// The broker does not start.
    Fault,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub text: String,
    /// What mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            name,
            level: Level::Ok,
            text: text.into(),
            remedy: None,
        }
    }

    fn warn(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name,
            level: Level::Warn,
            text: text.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn fault(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name,
            level: Level::Fault,
            text: text.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// Makes all checks for this configuration.
pub fn run(config: &Config) -> Vec<Finding> {
    let mut findings = vec![kernel::version(), kernel::io_uring()];
    findings.push(storage_finding(config));
    findings.extend([
        storage::space(config),
        limits::locked_memory(config),
        limits::open_files(config),
        limits::cores(config),
        limits::memory(config),
    ]);
    findings
}

/// The worst of the findings.
pub fn worst(findings: &[Finding]) -> Level {
    findings
        .iter()
        .map(|finding| finding.level)
        .max()
        .unwrap_or(Level::Ok)
}

fn storage_finding(config: &Config) -> Finding {
    const NAME: &str = "storage";
    let folder = config.data_dir.display();
    let verdict = match judge_storage(&config.data_dir) {
        Ok(verdict) => verdict,
        Err(unusable) => return Finding::fault(NAME, unusable.text, unusable.remedy),
    };
    match (verdict.reason(), config.direct_io) {
        (None, _) => Finding::ok(
            NAME,
            match config.data_dir.exists() {
                true => format!("direct, {folder} is on {}", verdict.file_system),
                false => format!("direct, {folder} will be made on {}", verdict.file_system),
            },
        ),
        (Some(reason), DirectIo::Prefer) => Finding::warn(
            NAME,
            format!("buffered, {folder}: {reason}; storage.direct_io = \"prefer\" goes on with it"),
            DIRECT_REMEDY,
        ),
        (Some(reason), DirectIo::Require) => Finding::fault(
            NAME,
            format!("{folder}: {reason}; storage.direct_io = \"require\" refuses to go on"),
            direct_io_remedy(),
        ),
    }
}

const DIRECT_REMEDY: &str = "put the data folder on a disk with ext4 or XFS: --data DIR";

/// What helps where direct I/O is required and refused.
pub fn direct_io_remedy() -> String {
    format!(
        "{DIRECT_REMEDY}; or allow buffered I/O, which is slower: --set storage.direct_io=prefer"
    )
}

/// The findings as lines for people; remedies are indented below.
pub fn render(findings: &[Finding]) -> String {
    let width = findings
        .iter()
        .map(|finding| finding.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for finding in findings {
        let level = match finding.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fault => "fault",
        };
        out += &format!("{level:<7}{:<width$}  {}\n", finding.name, finding.text);
        if let Some(remedy) = &finding.remedy {
            out += &format!("{:7}{:width$}  {remedy}\n", "", "");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Host, Sources, load_for};
    use std::path::Path;

    fn config(data_dir: &Path, direct_io: &str) -> Config {
        let sources = Sources {
            data_dir: Some(data_dir.to_owned()),
            sets: vec![format!("storage.direct_io={direct_io}")],
            ..Sources::default()
        };
        load_for(&sources, Host::gather).expect("valid")
    }

    #[test]
    fn every_warning_and_fault_says_what_mends_it_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("folder");
        let findings = run(&config(folder.path(), "prefer"));
        for finding in &findings {
            assert_eq!(
                finding.remedy.is_none(),
                finding.level == Level::Ok,
                "{finding:?}"
            );
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0);
        assert_eq!(
            render(&findings)
                .lines()
                .filter(|line| !line.starts_with(' '))
                .count(),
            findings.len()
        );
    }

    #[test]
    fn memory_backed_storage_is_refused_unless_allowed() {
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            return;
        }
        let finding = |direct_io| storage_finding(&config(memory, direct_io));
        assert_eq!(finding("require").level, Level::Fault);
        assert!(
            finding("require").text.contains("memory"),
            "{:?}",
            finding("require")
        );
        assert_eq!(finding("prefer").level, Level::Warn);
        assert!(finding("prefer").text.starts_with("buffered"));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_fault() {
        let finding = storage_finding(&config(Path::new("/proc/tackboard"), "prefer"));
        assert_eq!(finding.level, Level::Fault, "{finding:?}");
        // To own /proc would not help.
        assert!(
            finding.remedy.is_some_and(|text| !text.contains("chown")),
            "the remedy does not fit"
        );
    }
}
