//! Saves a run: `run.json`, a `.hgrm` file per histogram, two pictures.
//!
//! Files are written only into the folder named with `--out`, or into `perf/results/` of the checkout that the load
//! generator runs in; each run gets a folder of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tackboard_report::checkout;

use super::json::{Part, object};
use super::pictures;
use super::results::RunResult;
use crate::measure::hgrm;

/// Most results that begin in one second.
const SAME_SECOND_MAX: u32 = 100;

/// Where a run is to be saved, if anywhere.
pub fn folder(out: Option<&Path>) -> Option<PathBuf> {
    match out {
        Some(out) if out == Path::new("none") => None,
        Some(out) => Some(out.to_owned()),
        None => checkout::root().map(|root| root.join("perf/results")),
    }
}

/// Saves the run in a new folder inside `parent`, and says what was written.
pub fn save(parent: &Path, result: &RunResult, parts: &[Part]) -> Result<String> {
    let folder = make_folder(parent, &name(result))
        .with_context(|| format!("--out {}", parent.display()))?;
    let write = |name: &str, text: String| -> Result<()> {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("--out {}", path.display()))
    };
    write(
        "run.json",
        serde_json::to_string_pretty(&object(result, parts))? + "\n",
    )?;
    let mut histograms = 0;
    for stage in &result.stages {
        for (what, latency) in [
            ("produce", &stage.produce_latency),
            ("end-to-end", &stage.end_to_end_latency),
        ] {
            if latency.count() > 0 {
                write(
                    &format!("{}-{what}.hgrm", stage.title.replace(' ', "-")),
                    hgrm::render(latency),
                )?;
                histograms += 1;
            }
        }
    }
    write("latency.svg", pictures::latency(&result.stages))?;
    write("timeline.svg", pictures::timeline(&result.stages))?;
    Ok(format!(
        "{}/  run.json  {histograms} × .hgrm  latency.svg  timeline.svg",
        shown(&folder).display()
    ))
}

/// Makes a folder that was not there: runs that begin in the same second get numbers behind their names.
fn make_folder(parent: &Path, name: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(parent)?;
    let numbered = (2..=SAME_SECOND_MAX).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.to_owned()).chain(numbered) {
        let folder = parent.join(name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::Error::other(format!(
        "{SAME_SECOND_MAX} results are named {name} already"
    )))
}

/// Folder of a run: its time, and the commit if there is one, so that runs sort by age.
fn name(result: &RunResult) -> String {
    let time = result.setting.started_at.replace(':', "");
    let time = time
        .split('.')
        .next()
        .unwrap_or(&time)
        .trim_end_matches('Z')
        .to_owned();
    let commit = result
        .setting
        .commit
        .as_ref()
        .map(|commit| format!("-{commit}"))
        .unwrap_or_default();
    format!("{time}{commit}")
}

/// A path below the current folder is shown from there.
fn shown(path: &Path) -> PathBuf {
    let current = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(current)
        .map_or_else(|_| path.to_owned(), Path::to_owned)
}
