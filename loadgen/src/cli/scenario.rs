//! Scenario files: a description and settings under the names that the flags have.
//!
//! ```toml
//! description = "small events, steady"
//! event-size = 100
//! rate = "100k"
//! duration = "30 s"
//! ```

use std::path::Path;

use tackboard_broker::config::similar::nearest;
use toml::de::{DeTable, DeValue};

use super::fault::SettingFaults;
use super::plan::Plan;
use super::settings;

/// The key that is no setting: what the file is about.
const DESCRIPTION: &str = "description";

/// Puts the settings of a scenario file into the plan. Faults name the file, the line and the key.
pub fn load(path: &Path, plan: &mut Plan, faults: &mut SettingFaults) {
    match std::fs::read_to_string(path) {
        Ok(text) => apply(&path.display().to_string(), &text, plan, faults),
        Err(error) => faults.add(
            "--scenario",
            path.display().to_string(),
            format!("a file that can be read ({error})"),
        ),
    }
}

fn apply(file: &str, text: &str, plan: &mut Plan, faults: &mut SettingFaults) {
    let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = line_of(error.span().map_or(0, |span| span.start));
            return faults.add(
                format!("{file} line {line}"),
                error.message().trim(),
                "TOML: key = value",
            );
        }
    };
    let mut entries = table
        .into_iter()
        .map(|(key, value)| (key.span().start, key, value))
        .collect::<Vec<_>>();
    // As they stand in the file, for faults in that order; but the arrival says how a rate is spread, so it comes last.
    entries.sort_by_key(|(at, key, _)| (&**key.get_ref() == "arrival", *at));
    for (at, key, value) in entries {
        let field = format!("{file} line {}  {}", line_of(at), key.get_ref());
        let value = as_text(value.get_ref());
        if key.get_ref() == DESCRIPTION {
            plan.description = value;
            continue;
        }
        let Some(setting) = settings::find(key.get_ref()) else {
            faults.add(field, value.unwrap_or_default(), suggestion(key.get_ref()));
            continue;
        };
        match value {
            Some(value) if (setting.apply)(plan, &value).is_some() => {}
            value => faults.add(
                field,
                value.unwrap_or_else(|| "table".into()),
                setting.allowed,
            ),
        }
    }
}

/// A value as it would stand behind a flag; lists are joined with commas.
fn as_text(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(items) => items
            .iter()
            .map(|item| as_text(item.get_ref()))
            .collect::<Option<Vec<_>>>()?
            .join(","),
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

/// The known setting that was meant perhaps, or where all of them stand.
fn suggestion(unknown: &str) -> String {
    let known = settings::all().map(|setting| setting.name);
    match nearest(unknown, known.chain([DESCRIPTION])) {
        Some(name) => format!("a known setting; did you mean {name}?"),
        None => "a known setting; all of them: tackboard-loadgen run --help".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::schedule::Pace;
    use crate::workload::size::SizeSpec;

    fn read(text: &str) -> (Plan, SettingFaults) {
        let (mut plan, mut faults) = (Plan::default(), SettingFaults::default());
        apply("s.toml", text, &mut plan, &mut faults);
        (plan, faults)
    }

    #[test]
    fn keys_are_the_flags() {
        let (plan, faults) = read(
            "description = \"x\"\nevent-size = 200\nrate = \"100k\"\narrival = \"poisson\"\nkeep = true\ncores = [1, 0]\n",
        );
        assert_eq!(faults.0, []);
        assert_eq!(plan.event_size, SizeSpec::Fixed(200));
        assert_eq!(plan.pace, Pace::Poisson(100_000.0));
        assert_eq!(plan.cores, Some(vec![0, 1]));
        assert!(plan.keep);
    }

    #[test]
    fn faults_name_file_line_key_value_and_what_is_allowed() {
        let (_, faults) = read(
            "partitions = 0\n\nlingr = \"1ms\"\nacks = \"most\"\nEvent_Szie = 1\ncolour = 1\n[topic]\n",
        );
        let text = faults.to_string();
        assert!(
            text.starts_with("6 settings are not usable, nothing was started:"),
            "{text}"
        );
        for expected in [
            "s.toml line 1  partitions = \"0\"",
            "expected a whole number from 1 to 1,000",
            "s.toml line 3  lingr = \"1ms\"",
            "did you mean linger?",
            "s.toml line 4  acks = \"most\"",
            "expected a known setting; did you mean event-size?",
            "expected a known setting; all of them: tackboard-loadgen run --help",
            "s.toml line 7  topic",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
    }

    #[test]
    fn broken_toml_names_its_line() {
        let (_, faults) = read("rate = 5\nacks = \n");
        assert!(faults.to_string().contains("s.toml line 2"), "{faults}");
    }

    #[test]
    fn the_scenarios_that_come_along_are_good() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../perf/scenarios");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let (mut plan, mut faults) = (Plan::default(), SettingFaults::default());
            load(&path, &mut plan, &mut faults);
            plan.check(&mut faults);
            assert!(
                faults.0.is_empty() && plan.description.is_some(),
                "{}: {faults}",
                path.display()
            );
            count += 1;
        }
        assert!(count > 0);
    }
}
