//! Whether this runs inside a checkout of the project, of which commit, and where that keeps results.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The top folder of the checkout that the current folder is in: the one with the load generator and `perf/`.
pub fn root() -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?;
    let is_root = |folder: &Path| {
        folder.join("loadgen/Cargo.toml").is_file() && folder.join("perf/scenarios").is_dir()
    };
    current
        .ancestors()
        .find(|folder| is_root(folder))
        .map(Path::to_owned)
}

/// The commit that is checked out, with `+` if the work tree differs; nothing without git.
pub fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(arguments)
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|status| !status.is_empty());
    Some(if changed {
        format!("{commit}+")
    } else {
        commit
    })
}
