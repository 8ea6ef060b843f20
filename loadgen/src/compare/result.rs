//! One saved run, as far as it is compared.

use std::collections::BTreeMap;

use serde_json::Value;

use super::figure::FIGURES;

/// A run that was read back from its JSON object.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// Where it was read from.
    pub name: String,
    /// Commit of the checkout that it ran in.
    pub commit: Option<String>,
    /// What it ran on and with: what must be equal for its figures to be comparable.
    pub facts: BTreeMap<String, String>,
    /// Whether everything that was verified held.
    pub holds: bool,
    /// Its stages.
    pub stages: Vec<SavedStage>,
}

/// One stage of it.
#[derive(Clone, Debug)]
pub struct SavedStage {
    /// What it is called.
    pub title: String,
    /// Its settings as the screen shows them: not all that matter.
    pub settings: String,
    /// All settings that shape its figures; older results lack them.
    pub plan: Option<BTreeMap<String, String>>,
    /// Whether it kept its schedule; none in closed loop.
    pub kept_schedule: Option<bool>,
    /// One for each of [`FIGURES`], where it has one.
    pub values: Vec<Option<f64>>,
}

impl SavedRun {
    /// Reads a run's JSON object. An error says what the text is not.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let object: Value =
            serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        let stages = object["stages"]
            .as_array()
            .filter(|stages| object["loadgen"].is_string() && !stages.is_empty())
            .ok_or("is no result of the load generator")?;
        if object["interrupted"] == true {
            return Err("is of a run that was interrupted".into());
        }
        let mut facts = BTreeMap::new();
        for (key, value) in object["host"].as_object().into_iter().flatten() {
            facts.insert(format!("host {key}"), shown(value));
        }
        if !object["storage"].is_null() {
            facts.insert("storage".into(), shown(&object["storage"]));
        }
        facts.insert("broker".into(), without_ports(&shown(&object["broker"])));
        Ok(Self {
            name: name.to_owned(),
            commit: object["commit"].as_str().map(str::to_owned),
            facts,
            // Without a verdict there was nothing to verify: only one side ran.
            holds: object["verified"]["holds"].as_bool().unwrap_or_else(|| {
                stages
                    .iter()
                    .all(|stage| stage["verified"]["holds"] != false)
            }),
            stages: stages.iter().map(SavedStage::read).collect(),
        })
    }
}

impl SavedStage {
    fn read(stage: &Value) -> Self {
        let plan = stage["plan"].as_object().map(|plan| {
            let settings = plan.iter();
            settings
                .map(|(key, value)| (key.clone(), shown(value)))
                .collect()
        });
        Self {
            title: shown(&stage["title"]),
            settings: shown(&stage["settings"]),
            plan,
            kept_schedule: stage["schedule"]["kept_schedule"].as_bool(),
            values: FIGURES.iter().map(|figure| (figure.find)(stage)).collect(),
        }
    }

    /// Whether its figures count: a stage whose schedule was not kept is void.
    pub fn counts(&self) -> bool {
        self.kept_schedule != Some(false)
    }
}

/// A value as text: lists with commas, and texts without their quotes.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A description without the ports in it, which the system picks anew for each embedded broker.
fn without_ports(text: &str) -> String {
    let mut parts = text.split(':');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == part.len() {
            kept.push(':');
        }
        kept.push_str(rest);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_no_difference() {
        let text = "embedded broker on 127.0.0.1:41697, cores 0 and 1: mine";
        assert_eq!(
            without_ports(text),
            "embedded broker on 127.0.0.1, cores 0 and 1: mine"
        );
    }

    #[test]
    fn what_is_no_result_says_what_it_is_not() {
        let why = |text: &str| SavedRun::parse("x", text).unwrap_err();
        assert!(why("{").starts_with("is no JSON: "));
        for text in [
            "{}",
            "[1]",
            r#"{"loadgen":"1","stages":[]}"#,
            r#"{"stages":[{}]}"#,
        ] {
            assert_eq!(why(text), "is no result of the load generator", "{text}");
        }
        let interrupted = r#"{"loadgen":"1","stages":[{}],"interrupted":true}"#;
        assert_eq!(why(interrupted), "is of a run that was interrupted");
    }
}
