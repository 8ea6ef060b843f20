//! Writes the code of Kafka's messages; with `--check` says whether it is what the definitions give.

use std::{env, fs, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let check = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [argument] if argument == "--check" => true,
        _ => {
            eprintln!("usage: tackboard-kafka-generator [--check]");
            return ExitCode::from(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    match run(&root, check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, check: bool) -> Result<(), String> {
    for file in tackboard_kafka_generator::generate(root)? {
        let path = root.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|found| found == file.text) {
            continue;
        }
        if check {
            return Err(format!(
                "{}: stale; run schema/regenerate",
                file.path.display()
            ));
        }
        let folder = path.parent().expect("every file lies in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, &file.text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
