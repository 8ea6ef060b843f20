//! Who may import whom: reads every source file of the workspace and fails with file and line.
//!
//! The rules are the table below; `docs/ARCHITECTURE.md` shows the same in words. Code behind `#[cfg(test)]` and in
//! `tests/`, `benches/` and `examples/` may import what it likes.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One layer: the folder (or file) it lives in, and the paths it must not mention.
struct Layer {
    place: &'static str,
    never: &'static [&'static str],
}

const CLOCKS: &[&str] = &[
    "std::time::Instant::now",
    "Instant::now",
    "std::time::SystemTime::now",
    "SystemTime::now",
    "std::thread",
    "std::fs",
    "std::net",
    "rand",
    "getrandom",
];
const RUNTIMES: &[&str] = &["glommio", "tokio", "openraft", "axum", "flume"];
const OURS: &[&str] = &[
    "tackboard_logic",
    "tackboard_runtime",
    "tackboard_sim",
    "tackboard_broker",
    "tackboard_client",
];
const CONTROL_ONLY: &[&str] = &["tokio", "openraft", "axum", "crate::control"];

/// Every layer. The lists of all rows that a file lies under add up.
const LAYERS: &[Layer] = &[
    Layer {
        place: "schema/src",
        never: RUNTIMES,
    },
    Layer {
        place: "schema/src",
        never: CLOCKS,
    },
    Layer {
        place: "schema/src",
        never: OURS,
    },
    Layer {
        place: "broker/logic/src",
        never: RUNTIMES,
    },
    Layer {
        place: "broker/logic/src",
        never: CLOCKS,
    },
    Layer {
        place: "broker/logic/src",
        never: &[
            "tackboard_runtime",
            "tackboard_sim",
            "tackboard_broker",
            "tackboard_client",
        ],
    },
    Layer {
        place: "broker/sim/src",
        never: &[
            "glommio",
            "tokio",
            "openraft",
            "tackboard_broker",
            "tackboard_runtime",
            "tackboard_client",
        ],
    },
    Layer {
        place: "broker/runtime/src",
        never: OURS,
    },
    Layer {
        place: "broker/runtime/src",
        never: &["tackboard_schema", "tokio", "openraft"],
    },
    Layer {
        place: "broker/src/config",
        never: RUNTIMES,
    },
    Layer {
        place: "broker/src/config",
        never: &[
            "tackboard_runtime",
            "tackboard_client",
            "crate::shard",
            "crate::disk",
            "crate::native",
            "crate::control",
            "crate::bridge",
            "crate::cli",
        ],
    },
    Layer {
        place: "broker/src/bridge",
        never: &[
            "glommio",
            "tokio",
            "openraft",
            "axum",
            "tackboard_runtime",
            "tackboard_logic::log",
            "tackboard_logic::shard",
            "crate::shard",
            "crate::disk",
            "crate::native",
            "crate::control",
            "crate::cli",
        ],
    },
    Layer {
        place: "broker/src/shard",
        never: CONTROL_ONLY,
    },
    Layer {
        place: "broker/src/disk",
        never: CONTROL_ONLY,
    },
    Layer {
        place: "broker/src/native",
        never: CONTROL_ONLY,
    },
    Layer {
        place: "broker/src/kafka",
        never: CONTROL_ONLY,
    },
    Layer {
        place: "broker/src/control",
        never: &[
            "glommio",
            "tackboard_runtime",
            "tackboard_logic::log",
            "tackboard_logic::shard",
            "crate::shard",
            "crate::disk",
            "crate::native",
            "crate::kafka",
            "crate::cli",
        ],
    },
    Layer {
        place: "broker/src/cli",
        never: &[
            "glommio",
            "tackboard_runtime",
            "crate::shard",
            "crate::disk",
            "crate::native",
            "crate::control",
        ],
    },
    Layer {
        place: "broker/src/shard",
        never: &[
            "crate::cli",
            "crate::check",
            "crate::serve",
            "crate::signals",
        ],
    },
    Layer {
        place: "broker/src/disk",
        never: &[
            "crate::cli",
            "crate::check",
            "crate::native",
            "crate::shard",
            "crate::bridge",
        ],
    },
    Layer {
        place: "broker/src/native",
        never: &["crate::cli", "crate::check", "crate::disk", "crate::serve"],
    },
    Layer {
        place: "broker/src/kafka",
        never: &["crate::cli", "crate::check", "crate::disk", "crate::serve"],
    },
    Layer {
        place: "broker/src/check",
        never: &[
            "glommio",
            "tackboard_runtime",
            "tackboard_logic",
            "crate::shard",
            "crate::disk",
            "crate::native",
        ],
    },
    Layer {
        place: "loadgen/src",
        never: &[
            "tackboard_broker::shard",
            "tackboard_broker::disk",
            "tackboard_broker::native",
            "tackboard_broker::control",
            "tackboard_broker::bridge",
            "tackboard_broker::data_folder",
        ],
    },
    Layer {
        place: "client/src",
        never: &[
            "tackboard_broker",
            "tackboard_logic",
            "tackboard_sim",
            "tokio",
            "openraft",
        ],
    },
    Layer {
        place: "client/src/protocol",
        never: &[
            "glommio",
            "std::net",
            "std::thread",
            "tackboard_runtime",
            "Instant::now",
            "SystemTime::now",
            "crate::blocking",
            "crate::glommio",
        ],
    },
    Layer {
        place: "client/src/blocking",
        never: &["glommio", "tackboard_runtime"],
    },
    Layer {
        place: "client/src/glommio.rs",
        never: &["crate::blocking", "std::thread"],
    },
    Layer {
        place: "loadgen/src",
        never: &["tackboard_logic", "tackboard_sim", "tokio", "openraft"],
    },
    Layer {
        place: "perf/report/src",
        never: RUNTIMES,
    },
    Layer {
        place: "perf/report/src",
        never: OURS,
    },
    // Servers are measured as processes, ours as any other.
    Layer {
        place: "perf/src",
        never: &[
            "tackboard_logic",
            "tackboard_sim",
            "tackboard_broker",
            "tokio",
            "openraft",
        ],
    },
];

#[test]
fn every_layer_keeps_to_what_it_may_import() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the broker lies in the workspace");
    let mut broken = Vec::new();
    let mut checked = 0;
    for layer in LAYERS {
        let files = sources(&root.join(layer.place));
        if files.is_empty() {
            broken.push(format!("{} is in the table and has no source", layer.place));
        }
        for file in files {
            checked += 1;
            let text = fs::read_to_string(&file).expect("a source file is readable");
            for (line, path) in mentioned_paths(&text) {
                if let Some(rule) = layer.never.iter().find(|rule| covers(rule, &path)) {
                    let name = file.strip_prefix(root).unwrap_or(&file).display();
                    broken.push(format!(
                        "{name}:{line}: {} must not use {rule} ({path})",
                        layer.place
                    ));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} files were checked");
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn use_trees_and_inline_paths_are_both_seen() {
    let text = "use crate::{\n    bridge::Metrics,\n    control::{self, start},\n};\n\
                fn f() { tokio::spawn(x) } // glommio::none\n\
                #[cfg(test)]\nmod tests { use std::fs; }\n";
    let paths: Vec<_> = mentioned_paths(text)
        .into_iter()
        .map(|(line, path)| format!("{line} {path}"))
        .collect();
    for expected in [
        "2 crate::bridge::Metrics",
        "3 crate::control::self",
        "3 crate::control::start",
        "5 tokio::spawn",
    ] {
        assert!(
            paths.iter().any(|path| path == expected),
            "{expected} not in {paths:?}"
        );
    }
    assert!(
        !paths
            .iter()
            .any(|path| path.contains("glommio") || path.contains("fs")),
        "{paths:?}"
    );
}

/// Whether `path` is what the rule names, or lies below it.
fn covers(rule: &str, path: &str) -> bool {
    path.strip_prefix(rule)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn sources(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let mut found = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs")
                && !name.ends_with("_test.rs")
                && !name.ends_with("tests.rs")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every path in the code, with its line: `use` trees spread out, paths elsewhere as they stand.
fn mentioned_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // The prefixes of the use tree that is open, one per brace.
    let mut open: Vec<String> = Vec::new();
    let mut in_use = false;
    for (index, raw) in text.lines().enumerate() {
        if raw.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let mut line = raw.split("//").next().unwrap_or_default().trim();
        let after = line.strip_prefix("pub ").unwrap_or(line);
        let after = after.strip_prefix("pub(crate) ").unwrap_or(after);
        if let Some(tree) = after.strip_prefix("use ") {
            in_use = true;
            open.clear();
            line = tree;
        }
        if !in_use {
            found.extend(inline_paths(line).map(|path| (index + 1, path)));
            continue;
        }
        let mut name = String::new();
        let end = |name: &mut String, open: &[String], found: &mut Vec<(usize, String)>| {
            let path = name
                .split(" as ")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            if !path.is_empty() {
                found.push((index + 1, format!("{}{path}", open.concat())));
            }
            name.clear();
        };
        for letter in line.chars() {
            match letter {
                '{' => open.push(std::mem::take(&mut name).trim().to_owned()),
                '}' => {
                    end(&mut name, &open, &mut found);
                    open.pop();
                }
                ',' => end(&mut name, &open, &mut found),
                ';' => {
                    end(&mut name, &open, &mut found);
                    in_use = false;
                }
                other => name.push(other),
            }
        }
    }
    found
}

/// Words joined by `::`.
fn inline_paths(line: &str) -> impl Iterator<Item = String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    line.split(move |letter| !is_part(letter))
        .filter(|word| word.contains("::") && !word.starts_with(':'))
        .map(|word| word.trim_end_matches(':').to_owned())
}
