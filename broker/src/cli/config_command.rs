//! `tackboard config`.

use serde_json::{Value, json};

use crate::config::{render, settings};

use super::arguments::{ConfigArguments, ConfigCommand};
use super::failure::Failure;
use super::output::{print, print_json};

pub(super) fn run(arguments: &ConfigArguments) -> Result<(), Failure> {
    match &arguments.command {
        ConfigCommand::Render => print(&render::file()),
        ConfigCommand::Explain {
            key: Some(key),
            json,
        } => explain(key, *json),
        ConfigCommand::Explain {
            key: None,
            json: false,
        } => print(&render::key_list()),
        ConfigCommand::Explain {
            key: None,
            json: true,
        } => {
            let all: Vec<Value> = settings::all().map(as_json).collect();
            print_json(&json!({ "settings": all }))
        }
    }
}

fn explain(key: &str, json: bool) -> Result<(), Failure> {
    let Some(setting) = settings::find(key) else {
        let meant = settings::nearest(key).map_or_else(String::new, |setting| {
            format!("; did you mean {}?", setting.key)
        });
        return Err(Failure::Usage(format!(
            "there is no setting {key}{meant}\nall of them: tackboard config explain"
        )));
    };
    if json {
        print_json(&as_json(setting))
    } else {
        print(&render::explanation(setting))
    }
}

fn as_json(setting: &settings::Setting) -> Value {
    json!({
        "key": setting.key,
        "default": setting.default.trim_matches('"'),
        "allowed": setting.kind.expected(),
        "text": setting.text,
        "kafka": setting.kafka,
        "restart": setting.restart,
    })
}
