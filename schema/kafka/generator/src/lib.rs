//! Makes Rust code of the definitions of Kafka's messages.
//!
//! `schema/kafka/messages/` holds one file per API, in a format that `docs/kafka-wire.md` describes. [`read`] turns
//! one into an [`Api`], [`code`] renders its types with encoder and decoder, [`table`] the table of all APIs, and
//! [`inventor`] what the tests need to make random messages. The code is checked in: nobody runs this but who changed
//! a definition (`schema/regenerate`), and the test of this crate, which says when that was forgotten.
//!
//! Not here: how a type looks on the wire. That is `schema/src/kafka/wire/`, which the code calls.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub mod code;
pub mod definition;
pub mod inventor;
mod range;
pub mod read;
pub mod table;

pub use definition::{Api, Field, Kind, Struct};
pub use range::Range;

/// A file of generated code.
pub struct Generated {
    /// Its path, from the root of the repository.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
}

/// Reads every definition below `root`, the repository, and renders every generated file.
pub fn generate(root: &Path) -> Result<Vec<Generated>, String> {
    let apis = definitions(&root.join("schema/kafka/messages"))?;
    let source = Path::new("schema/src/kafka/generated");
    let mut files: Vec<Generated> = (apis.iter())
        .map(|api| Generated {
            path: source.join(format!("{}.rs", api.module)),
            text: code::render(api),
        })
        .collect();
    files.push(Generated {
        path: source.join("mod.rs"),
        text: table::render(&apis),
    });
    files.push(Generated {
        path: "schema/tests/kafka_messages/generated.rs".into(),
        text: inventor::render(&apis),
    });
    files.push(Generated {
        path: "schema/tests/kafka_messages/every_api.rs".into(),
        text: inventor::render_every_api(&apis),
    });
    Ok(files)
}

/// The APIs of all files in `folder`, in order of their keys.
pub fn definitions(folder: &Path) -> Result<Vec<Api>, String> {
    let fault = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut apis: Vec<Api> = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| fault(folder, &error))? {
        let path = entry.map_err(|error| fault(folder, &error))?.path();
        let module = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path).map_err(|error| fault(&path, &error))?;
        apis.push(read::api(&module, &text).map_err(|error| fault(&path, &error))?);
    }
    apis.sort_by_key(|api| api.key);
    match apis.windows(2).find(|pair| pair[0].key == pair[1].key) {
        Some(pair) => Err(format!(
            "{} and {} have one key",
            pair[0].name, pair[1].name
        )),
        None => Ok(apis),
    }
}
