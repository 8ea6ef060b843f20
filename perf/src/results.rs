//! Where figures are kept: a folder for each commit and day, with a file for each thing that was measured and a table of
//! what was to be reached.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::Serialize;
use tackboard_report::checkout;

use crate::table;

/// Where figures are kept, if anywhere.
#[derive(clap::Args)]
pub struct ResultsArguments {
    /// Folder to keep figures and pictures in, `none` for nowhere; perf/results/<date>-<commit> of this checkout unless
    /// named.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Digits of the commit in a folder's name.
const COMMIT_DIGITS: usize = 7;
/// The table, in the folder that it is about.
pub const TABLE: &str = "README.md";

/// A folder of results.
pub struct Results {
    folder: Option<PathBuf>,
}

impl Results {
    /// Where the arguments say.
    pub fn new(arguments: &ResultsArguments) -> Self {
        let folder = match &arguments.out {
            Some(out) if out == Path::new("none") => None,
            Some(out) => Some(out.clone()),
            None => default_folder(),
        };
        Results { folder }
    }

    /// Keeps a text under this name.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn text(&self, name: &str, text: &str) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let write = || {
            fs::create_dir_all(folder)?;
            fs::write(folder.join(name), text)
        };
        write().with_context(|| format!("--out {} can't be written", folder.display()))
    }

    /// Keeps figures under this name, as JSON, and writes the folder's table anew.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn figures(&self, name: &str, figures: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(figures)? + "\n";
        self.text(&format!("{name}.json"), &text)?;
        self.table()
    }

    /// Writes the folder's table anew.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub fn table(&self) -> Result<()> {
        match &self.folder {
            Some(folder) => self.text(TABLE, &table::render(folder)),
            None => Ok(()),
        }
    }

    /// The folder as the user may find it.
    pub fn shown(&self) -> Option<String> {
        Some(self.folder.as_ref()?.display().to_string())
    }
}

/// `perf/results/<date>-<commit>` of the checkout that this runs in; of a work tree that differs from its commit, with
/// `-dirty` behind it.
pub fn default_folder() -> Option<PathBuf> {
    let root = checkout::root()?;
    let date = jiff::Zoned::now().date().to_string();
    let name = folder_name(&date, checkout::commit(&root).as_deref());
    Some(root.join("perf/results").join(name))
}

fn folder_name(date: &str, commit: Option<&str>) -> String {
    let Some(commit) = commit else {
        return date.to_owned();
    };
    let digits = commit.trim_end_matches('+');
    let short = digits.get(..COMMIT_DIGITS).unwrap_or(digits);
    match commit.ends_with('+') {
        true => format!("{date}-{short}-dirty"),
        false => format!("{date}-{short}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_day_and_commit_and_that_the_tree_was_changed() {
        let name = |commit| folder_name("2026-11-30", commit);
        assert_eq!(name(Some("0123456789ab")), "2026-11-30-0123456");
        assert_eq!(name(Some("0123456789ab+")), "2026-11-30-0123456-dirty");
        assert_eq!(name(None), "2026-11-30");
    }

    #[test]
    fn figures_are_kept_with_their_table_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("new");
        let out = |out: PathBuf| Results::new(&ResultsArguments { out: Some(out) });
        out(inside.clone()).figures("one", &[1, 2]).unwrap();
        assert_eq!(
            serde_json::from_str::<[u8; 2]>(&fs::read_to_string(inside.join("one.json")).unwrap())
                .unwrap(),
            [1, 2]
        );
        assert!(inside.join(TABLE).is_file());
        let nowhere = out(PathBuf::from("none"));
        nowhere.figures("two", &[1]).unwrap();
        assert_eq!(nowhere.shown(), None);
    }
}
