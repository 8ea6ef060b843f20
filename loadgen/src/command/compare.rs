//! `compare`: reads two sets of results and shows what they say about each other.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Ending, Session};
use crate::cli::arguments::Sides;
use crate::compare::comparison::{Change, Comparison};
use crate::compare::result::SavedRun;
use crate::compare::statistic::VALUES_MAX;
use crate::compare::table;

/// Largest result that is read: thousands of times what a run of days leaves.
const RESULT_BYTES_MAX: u64 = 64 << 20;

/// Compares.
pub fn run(sides: &Sides, session: &Session) -> Result<Ending> {
    let (a, b) = match (side(&sides.a), side(&sides.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (a, b) => {
            let whys = [a, b].into_iter().filter_map(Result::err);
            return Ok(Ending::Unusable(whys.collect::<Vec<_>>().join("\n       ")));
        }
    };
    let Some(comparison) = Comparison::of(&a, &b, sides.threshold) else {
        let why = "the two sides have no stage in common, so there is nothing to compare";
        return Ok(Ending::Unusable(why.into()));
    };
    let text = if session.json {
        format!("{}\n", table::object(&comparison))
    } else {
        table::text(&comparison)
    };
    // Somebody who closes the pipe early wants no more.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(match comparison.verdict {
        Change::Worse => Ending::Bad,
        Change::Better | Change::Same | Change::NotJudged => Ending::Good,
    })
}

/// All runs of a side.
fn side(paths: &[PathBuf]) -> Result<Vec<SavedRun>, String> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(results_at(path).map_err(|why| format!("{}: {why}", path.display()))?);
    }
    if files.len() > VALUES_MAX {
        return Err(format!(
            "{}: {} results, and a side has at most {VALUES_MAX}",
            paths[0].display(),
            files.len()
        ));
    }
    let read = |file: &PathBuf| {
        let run = std::fs::metadata(file)
            .map_err(|error| error.to_string())
            .and_then(|meta| match meta.len() {
                0..=RESULT_BYTES_MAX => Ok(()),
                bytes => Err(format!("has {bytes} bytes, too many for a result")),
            })
            .and_then(|()| std::fs::read_to_string(file).map_err(|error| error.to_string()))
            .and_then(|text| SavedRun::parse(&file.display().to_string(), &text));
        run.map_err(|why| format!("{}: {why}", file.display()))
    };
    files.iter().map(read).collect()
}

/// The results that a path stands for: itself, its `run.json`, or those of the runs that it holds, in order of their names.
fn results_at(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let own = path.join("run.json");
    if own.is_file() {
        return Ok(vec![own]);
    }
    let entries = std::fs::read_dir(path).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?.path();
        let of_a_run = entry.join("run.json");
        let is_result = entry.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("run") && name.ends_with(".json")
        });
        if of_a_run.is_file() {
            found.push(of_a_run);
        } else if is_result {
            found.push(entry);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err("holds no result: no run*.json, and no folder with a run.json".into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_its_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(results_at(path).unwrap_err().contains("no result"));
        for run in ["2", "1"] {
            std::fs::create_dir(path.join(run)).unwrap();
            std::fs::write(path.join(run).join("run.json"), "{}").unwrap();
        }
        std::fs::write(path.join("run-3.json"), "{}").unwrap();
        std::fs::write(path.join("limits.json"), "{}").unwrap();
        let found = results_at(path).unwrap();
        let names = ["1/run.json", "2/run.json", "run-3.json"].map(|name| path.join(name));
        assert_eq!(found, names);
        assert_eq!(results_at(&path.join("1")).unwrap(), names[..1]);
        assert_eq!(results_at(&names[2]).unwrap(), names[2..]);
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        let why = side(&["/no/such/run.json".into()]).unwrap_err();
        assert!(why.starts_with("/no/such/run.json: "), "{why}");
        let too_many = vec![PathBuf::from("x"); VALUES_MAX + 1];
        assert!(side(&too_many).unwrap_err().contains("at most 30"));
    }
}
