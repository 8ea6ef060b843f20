//! Reads settings from a TOML file and the command line, all faults at once.
//!
//! Later sources win: defaults, then the file, then `--data`, then each `--set` in order.
//!
//! In the file a key may be written dotted (`acks.default = "all"`), or under a table
//! (`[acks]`, then `default = "all"`); both name the same setting.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Faults, Origin};
use super::host::Host;
use super::model::{Config, Stated};
use super::resolve::resolve;
use super::settings::{self, Setting};
use super::value::{Value, Written};

/// Where the settings of a start come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `--config FILE`.
    pub file: Option<PathBuf>,
    /// `--data DIR`, short for `--set data.dir=DIR`.
    pub data_dir: Option<PathBuf>,
    /// `--set KEY=VALUE`, in order.
    pub sets: Vec<String>,
}

/// A larger file is not a configuration.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads and checks everything, and fills in what depends on the host.
pub fn load(sources: &Sources) -> Result<Config, Faults> {
    load_for(sources, Host::gather)
}

/// As [`load`], for a host that the caller describes once the data folder is known.
pub fn load_for(sources: &Sources, host: impl FnOnce(&Path) -> Host) -> Result<Config, Faults> {
    let mut entries = Entries::with_defaults();
    if let Some(file) = &sources.file {
        match read_file(file) {
            Ok(text) => entries.add_file(&text),
            Err(problem) => entries.fault(
                Origin::Flag("--config"),
                file.display().to_string(),
                problem,
            ),
        }
    }
    if let Some(data_dir) = &sources.data_dir {
        let written = Written::Text(data_dir.display().to_string());
        entries.add(
            "data.dir",
            &written,
            &data_dir.display().to_string(),
            Origin::Flag("--data"),
        );
    }
    for set in &sources.sets {
        entries.add_flag(set);
    }
    let file = sources.file.as_ref().map(|file| file.display().to_string());
    let host = host(entries.data_dir());
    resolve(entries, &host).map_err(|faults| Faults::new(file, faults))
}

fn read_file(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("is larger than 1 MiB; that is no configuration".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        format!(
            "is not UTF-8 text: bad byte at {}",
            error.utf8_error().valid_up_to()
        )
    })
}

/// One setting's value and where it came from.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// As written, for messages.
    pub(super) shown: String,
    pub(super) origin: Origin,
    /// A fault was reported for it: relations with other settings are not checked.
    pub(super) faulty: bool,
}

/// A value for every setting, and the faults so far.
#[derive(Debug)]
pub(super) struct Entries {
    by_key: BTreeMap<&'static str, Entry>,
    pub(super) faults: Vec<Fault>,
    /// Not every value of the file is known: what they say together cannot be judged.
    pub(super) is_partial: bool,
}

impl Entries {
    pub(super) fn with_defaults() -> Self {
        let by_key = settings::all()
            .map(|setting| (setting.key, default_entry(setting)))
            .collect();
        Self {
            by_key,
            faults: Vec::new(),
            is_partial: false,
        }
    }

    /// The entry of a key in the table. Panics on another key: that would be our mistake.
    pub(super) fn entry(&self, key: &str) -> &Entry {
        self.by_key
            .get(key)
            .unwrap_or_else(|| panic!("{key} is not in the table of settings"))
    }

    /// All of them, in the order of the table.
    pub(super) fn stated(&self) -> Vec<Stated> {
        let stated = |setting: &'static Setting| {
            let entry = self.entry(setting.key);
            Stated {
                setting,
                value: setting.kind.plain(&entry.value),
                default: setting.kind.plain(&default_entry(setting).value),
            }
        };
        settings::all().map(stated).collect()
    }

    fn data_dir(&self) -> &Path {
        match &self.entry("data.dir").value {
            Value::Path(path) => path,
            other => unreachable!("data.dir is a folder, not {other:?}"),
        }
    }

    pub(super) fn fault(&mut self, origin: Origin, subject: String, problem: String) {
        self.faults.push(Fault {
            origin,
            subject,
            problem,
        });
    }

    fn add_flag(&mut self, set: &str) {
        match set.split_once('=') {
            Some((key, text)) => {
                let written = Written::from_flag(text);
                self.add(key.trim(), &written, text.trim(), Origin::Flag("--set"));
            }
            None => self.fault(
                Origin::Flag("--set"),
                set.to_owned(),
                "expected KEY=VALUE, e.g. --set acks.default=all".to_owned(),
            ),
        }
    }

    fn add(&mut self, key: &str, written: &Written, shown: &str, origin: Origin) {
        let Some(setting) = settings::find(key) else {
            self.fault(origin, key.to_owned(), unknown(key));
            return;
        };
        let entry = self
            .by_key
            .get_mut(setting.key)
            .expect("every setting has an entry");
        entry.origin = origin.clone();
        entry.shown = shown.to_owned();
        match setting.kind.read(written) {
            Ok(value) => {
                entry.value = value;
                entry.faulty = false;
            }
            Err(problem) => {
                entry.faulty = true;
                self.fault(origin, format!("{key} = {shown}"), problem);
            }
        }
    }

    /// One slip of the pen makes the parser stumble more than once: only where it first did is reported, and values
    /// that it stumbled in are left out. The others are checked, each by itself.
    fn add_file(&mut self, text: &str) {
        let lines = Lines::of(text);
        let (table, errors) = DeTable::parse_recoverable(text);
        let stumbles: Vec<usize> = errors
            .iter()
            .map(|error| error.span().map_or(0, |span| span.start))
            .collect();
        let first = errors.iter().zip(&stumbles).min_by_key(|(_, at)| **at);
        if let Some((error, at)) = first {
            let line = lines.number(*at);
            let subject = lines.text(line).trim().to_owned();
            let problem = error.message().replace('\n', ", ");
            self.fault(Origin::Line(line), subject, problem);
            self.is_partial = true;
        }
        let file = FileText { lines, stumbles };
        self.add_table(table.get_ref(), "", &file);
    }

    fn add_table(&mut self, table: &DeTable<'_>, prefix: &str, file: &FileText<'_>) {
        for (name, value) in table {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            let origin = Origin::Line(file.lines.number(name.span().start));
            match value.get_ref() {
                // Also in a table that holds no settings each key is named with its own suggestion.
                DeValue::Table(inner) if settings::find(&key).is_none() => {
                    self.add_table(inner, &key, file);
                }
                _ if file.stumbled(name.span().start..value.span().end) => {}
                value_read => {
                    let shown = file.lines.span(value.span());
                    self.add(&key, &written(value_read), shown, origin);
                }
            }
        }
    }
}

/// A file's text, and where in it the parser stumbled.
struct FileText<'a> {
    lines: Lines<'a>,
    stumbles: Vec<usize>,
}

impl FileText<'_> {
    /// Whether the parser stumbled on a line that the bytes lie on.
    fn stumbled(&self, bytes: Range<usize>) -> bool {
        let lines = self.lines.number(bytes.start)..=self.lines.number(bytes.end);
        self.stumbles
            .iter()
            .any(|at| lines.contains(&self.lines.number(*at)))
    }
}

fn unknown(key: &str) -> String {
    match settings::nearest(key) {
        Some(setting) => format!("no such setting; did you mean {}?", setting.key),
        None => "no such setting; all of them: tackboard config render".to_owned(),
    }
}

fn default_entry(setting: &Setting) -> Entry {
    let parsed = DeValue::parse(setting.default);
    let parsed = parsed.unwrap_or_else(|error| panic!("default of {}: {error}", setting.key));
    let value = setting.kind.read(&written(parsed.get_ref()));
    Entry {
        value: value.unwrap_or_else(|error| panic!("default of {}: {error}", setting.key)),
        shown: setting.default.to_owned(),
        origin: Origin::Default,
        faulty: false,
    }
}

fn written(value: &DeValue<'_>) -> Written {
    match value {
        DeValue::String(text) => Written::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Written::Integer(number),
            Err(_) => Written::Other("a number out of range"),
        },
        DeValue::Array(array) => {
            let numbers = array
                .iter()
                .map(|element| match written(element.get_ref()) {
                    Written::Integer(number) => Some(number),
                    _ => None,
                });
            match numbers.collect() {
                Some(numbers) => Written::Integers(numbers),
                None => Written::Other("a list"),
            }
        }
        DeValue::Boolean(value) => Written::Text(value.to_string()),
        other => Written::Other(other.type_str()),
    }
}

/// The text of a file by lines, to tell where a byte stands.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0)
            .chain(breaks.map(|(at, _)| at + 1))
            .collect();
        Self { text, starts }
    }

    /// The line, counted from 1, that holds the byte.
    fn number(&self, at_byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= at_byte)
    }

    fn text(&self, line: usize) -> &'a str {
        self.text.lines().nth(line.saturating_sub(1)).unwrap_or("")
    }

    /// What a value looks like in the file; its first line if it has several.
    fn span(&self, span: Range<usize>) -> &'a str {
        let text = self.text.get(span).unwrap_or("");
        text.lines().next().unwrap_or("")
    }
}

#[cfg(test)]
#[path = "load_test.rs"]
mod tests;
