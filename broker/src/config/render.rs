//! Shows the table of settings: as a file, as a page, and one at a time.
//!
//! `config/broker.toml` and `docs/configuration.md` are kept in the repository; the test below
//! fails when they differ from what is rendered here, and `UPDATE_GOLDEN=1` rewrites them.

use std::fmt::Write as _;

use super::settings::{self, Kind, SECTIONS, Setting};

/// Width of comment lines in the rendered file.
const COMMENT_WIDTH: usize = 98;

/// A row of the table of topic settings, which lives elsewhere (see the module doc of `config`).
#[derive(Clone, Copy, Debug)]
pub struct TopicSettingRow<'a> {
    /// The key, as given to `topic create --config`.
    pub key: &'a str,
    /// The key as clients of Kafka know it.
    pub kafka_key: &'a str,
    /// What values are allowed.
    pub allowed: &'a str,
    /// The broker's setting, or the value, that holds without it.
    pub default_from: &'a str,
    /// What it does.
    pub text: &'a str,
}

/// A configuration file with every setting at its default.
pub fn file() -> String {
    let mut out = String::from(
        "# Every setting of the broker, at its default.\n\
         #\n\
         # Sizes are written \"128 MiB\", durations \"7 d\", \"12 h\", \"30 s\", \"100 ms\". Digits alone\n\
         # mean bytes or milliseconds. A setting left out has its default.\n\
         #   tackboard serve --config broker.toml\n\
         #   tackboard config explain KEY\n",
    );
    for section in SECTIONS {
        let _ = write!(out, "\n\n# ---- {} ----\n", section.title);
        for setting in section.settings {
            out.push('\n');
            for line in wrapped(setting.text, COMMENT_WIDTH - 2) {
                let _ = writeln!(out, "# {line}");
            }
            if !matches!(setting.kind, Kind::Path) {
                for line in wrapped(
                    &format!("Allowed: {}.", setting.kind.expected()),
                    COMMENT_WIDTH - 2,
                ) {
                    let _ = writeln!(out, "# {line}");
                }
            }
            let _ = writeln!(out, "{} = {}", setting.key, setting.default);
        }
    }
    out
}

/// The documentation page, `docs/configuration.md`.
pub fn page(topic_settings: &[TopicSettingRow<'_>]) -> String {
    let mut out = String::from(PAGE_START);
    for section in SECTIONS {
        let _ = write!(out, "\n## {}\n", section.title);
        for setting in section.settings {
            let _ = write!(out, "\n### `{}`\n\n{}\n\n", setting.key, setting.text);
            for (name, value) in facts(setting) {
                let _ = writeln!(out, "- {name}: {value}");
            }
        }
    }
    out.push_str(TOPIC_START);
    for row in topic_settings {
        let keys = match row.kafka_key == row.key {
            true => format!("`{}`", row.key),
            false => format!("`{}`, at Kafka's door `{}`", row.key, row.kafka_key),
        };
        let _ = writeln!(
            out,
            "| {} | {} | `{}` | {} |",
            keys, row.allowed, row.default_from, row.text
        );
    }
    out
}

const PAGE_START: &str = "# Configuration

<!-- Rendered from broker/src/config/settings.rs; UPDATE_GOLDEN=1 cargo test -p tackboard-broker rewrites it. -->

`tackboard serve` runs without any setting. Later sources win: the defaults, the file named by
`--config FILE`, `--data DIR`, then each `--set KEY=VALUE` in order. The file is TOML; a key may be written
dotted (`acks.default = \"all\"`) or under its table (`[acks]`, then `default = \"all\"`).
[`config/broker.toml`](../config/broker.toml) holds every setting at its default; `tackboard config render` prints
it and `tackboard config explain KEY` prints one entry of this page.

Sizes are written `\"128 MiB\"` (also `B`, `KiB`, `GiB`, `TiB`, and decimal `KB`, `MB`, `GB`, `TB`), durations
`\"7 d\"` (also `h`, `min`, `s`, `ms`, `us`). Digits alone mean bytes or milliseconds.

Everything that is wrong is reported at once, with line, key, value and what is allowed, and then nothing is
started (exit code 2). Of a file that is no TOML the first such place is told, with the values that can be read. A change takes effect at the next start.
";

const TOPIC_START: &str = "
## Topic settings

Set when a topic is created, `tackboard topic create NAME --config KEY=VALUE`, or later, `tackboard topic alter NAME
--config KEY=VALUE --reset KEY`; what is changed holds at once. What a topic does not set it takes from the broker's
setting, also when that changes later.

Clients of Kafka create and alter topics with the same settings, some of them under a longer name. To their tools the
broker's own settings (all those above) are those of its broker resource, which can be described and not altered. Settings
with one allowed value are there for tools that name them.

Values are plain numbers of milliseconds and bytes, as in Kafka; the command line also takes `\"7 d\"` and `\"128 MiB\"`.

| key | allowed | without it | what it does |
|---|---|---|---|
";

/// One setting, as `tackboard config explain KEY` prints it.
pub fn explanation(setting: &Setting) -> String {
    let mut out = format!("{}\n", setting.key);
    for line in wrapped(setting.text, COMMENT_WIDTH - 2) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
    for (name, value) in facts(setting) {
        let _ = writeln!(out, "  {name:<10} {}", value.replace('`', ""));
    }
    out
}

/// The list of keys with their defaults, for the end of `serve --help`.
pub fn key_list() -> String {
    let width = settings::all()
        .map(|setting| setting.key.len())
        .max()
        .unwrap_or(0);
    let mut out = String::from(
        "Settings (for --set and the file; tackboard config explain KEY tells more):\n",
    );
    for setting in settings::all() {
        let _ = writeln!(out, "  {:width$}  {}", setting.key, setting.default);
    }
    out
}

fn facts(setting: &Setting) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("type", setting.kind.type_name().to_owned()),
        ("default", format!("`{}`", setting.default)),
        ("allowed", setting.kind.expected()),
    ];
    if let Some(kafka) = setting.kafka {
        facts.push(("in Kafka", kafka.to_owned()));
    }
    let takes_effect = if setting.restart {
        "at the next start"
    } else {
        "at once"
    };
    facts.push(("changes", takes_effect.to_owned()));
    facts
}

/// Breaks a text into lines at spaces.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn the_file_in_the_repository_is_as_rendered() {
        golden::check("config/broker.toml", &file());
    }

    #[test]
    fn every_setting_can_be_explained() {
        for setting in settings::all() {
            let text = explanation(setting);
            assert!(text.contains(setting.default), "{text}");
        }
    }

    #[test]
    fn long_texts_are_broken_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
