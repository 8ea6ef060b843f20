//! Where a figure comes from: the machine and the commit that every kept file begins with, whichever program wrote it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use tackboard_report::checkout;

use crate::machine::Machine;

/// What a figure was measured on, and of what.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    /// The machine.
    pub machine: Machine,
    /// The commit that is checked out, with `+` if the work tree differs; nothing outside of a checkout.
    commit: Option<String>,
}

/// Whose origin.
#[derive(clap::Args)]
pub struct OriginArguments {
    /// Folder on the disk that is used.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Prints it as one JSON object.
///
/// # Errors
/// When nothing can be printed.
pub fn run(arguments: &OriginArguments) -> Result<()> {
    println!("{}", serde_json::to_string(&Origin::of(&arguments.data))?);
    Ok(())
}

impl Origin {
    /// Of what is measured now, with its data in `folder`.
    pub fn of(folder: &Path) -> Self {
        Origin {
            machine: Machine::read(folder),
            commit: checkout::root().and_then(|root| checkout::commit(&root)),
        }
    }
}

/// The origin that a kept file names, in words.
pub fn in_words(file: &Value) -> Option<String> {
    let machine = &file["machine"];
    Some(format!(
        "Commit {}, {}, {} CPUs, kernel {}, {}",
        file["commit"].as_str()?,
        machine["cpu"].as_str()?,
        machine["cpus"],
        machine["kernel"].as_str()?,
        machine["storage"].as_str()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_kept_with_is_what_its_table_tells() {
        let mut origin = Origin::of(Path::new("/"));
        origin.commit = Some("0123456789ab+".to_owned());
        let words = in_words(&serde_json::to_value(&origin).unwrap()).unwrap();
        let machine = &origin.machine;
        assert!(words.starts_with("Commit 0123456789ab+, "), "{words}");
        for part in [&machine.cpu, &machine.kernel, &machine.storage] {
            assert!(words.contains(part.as_str()), "{part}: {words}");
        }
        assert_eq!(in_words(&serde_json::json!({"values": {}})), None);
    }
}
