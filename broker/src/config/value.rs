//! One value: from what was written to its type, or to a text that says what is allowed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tackboard_schema::Acks;

use super::quantity::{parse_duration, parse_size, show_duration, show_size};
use super::settings::Kind;

/// A value as it was written, before its setting's type is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Written {
    /// A TOML string, or text after `--set key=`.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A list of whole numbers.
    Integers(Vec<i64>),
    /// Something no setting takes (a float, a date, a list of texts), named for the message.
    Other(&'static str),
}

impl Written {
    /// From the command line, where there are no quotes to tell text from numbers.
    pub(super) fn from_flag(text: &str) -> Self {
        let text = text.trim();
        let unquoted = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        if let Some(unquoted) = unquoted {
            return Self::Text(unquoted.to_owned());
        }
        if let Ok(number) = text.parse() {
            return Self::Integer(number);
        }
        let inner = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        let numbers: Result<Vec<i64>, _> = inner
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::parse)
            .collect();
        match numbers {
            Ok(numbers) if text.starts_with('[') || numbers.len() > 1 => Self::Integers(numbers),
            _ => Self::Text(text.to_owned()),
        }
    }
}

/// A value of its setting's type, within its bounds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// One of the setting's words.
    Word(&'static str),
    Size(u64),
    Duration(Duration),
    Integer(i64),
    Address(SocketAddr),
    HostPort(String, u16),
    Host(String),
    Path(PathBuf),
    Cores(Vec<usize>),
    Acks(Acks),
}

impl Kind {
    /// Reads `written` as this type. The error says what is allowed.
    pub(super) fn read(&self, written: &Written) -> Result<Value, String> {
        self.read_word(written)
            .map(Value::Word)
            .or_else(|| self.read_typed(written))
            .ok_or_else(|| format!("expected {}", self.expected()))
    }

    fn read_word(&self, written: &Written) -> Option<&'static str> {
        let Written::Text(text) = written else {
            return None;
        };
        self.words().iter().copied().find(|word| word == text)
    }

    fn read_typed(&self, written: &Written) -> Option<Value> {
        match (self, written) {
            (Kind::Size { min, max, .. }, written) => {
                let bytes = match written {
                    Written::Text(text) => parse_size(text)?,
                    Written::Integer(number) => u64::try_from(*number).ok()?,
                    _ => return None,
                };
                (*min..=*max).contains(&bytes).then_some(Value::Size(bytes))
            }
            (Kind::Duration { min_ms, max_ms, .. }, written) => {
                let duration = match written {
                    Written::Text(text) => parse_duration(text)?,
                    Written::Integer(number) => Duration::from_millis(u64::try_from(*number).ok()?),
                    _ => return None,
                };
                let bounds = Duration::from_millis(*min_ms)..=Duration::from_millis(*max_ms);
                bounds
                    .contains(&duration)
                    .then_some(Value::Duration(duration))
            }
            (Kind::Integer { min, max, .. }, Written::Integer(number)) => (*min..=*max)
                .contains(number)
                .then_some(Value::Integer(*number)),
            (Kind::Address { .. }, Written::Text(text)) => text.parse().ok().map(Value::Address),
            (Kind::HostPort { .. }, Written::Text(text)) => read_host_port(text),
            (Kind::Host { .. }, Written::Text(text)) => {
                is_host(text).then(|| Value::Host(text.clone()))
            }
            (Kind::Path, Written::Text(text)) => {
                let usable = !text.is_empty() && !text.contains('\0');
                usable.then(|| Value::Path(PathBuf::from(text)))
            }
            (Kind::Cores, Written::Integers(numbers)) => read_cores(numbers),
            (Kind::Cores, Written::Integer(number)) => read_cores(&[*number]),
            (Kind::Acks, Written::Integer(number)) => {
                let count = i16::try_from(*number).ok().filter(|count| *count >= 0)?;
                Some(Value::Acks(Acks::Count(count)))
            }
            _ => None,
        }
    }

    /// A value of this type without units, as [`Stated`](super::model::Stated) has it.
    pub(super) fn plain(&self, value: &Value) -> String {
        let is_number = matches!(
            self,
            Kind::Size { .. } | Kind::Duration { .. } | Kind::Integer { .. }
        );
        match value {
            Value::Word("none") if is_number => "-1".to_owned(),
            Value::Word(word) => (*word).to_owned(),
            Value::Size(bytes) => bytes.to_string(),
            // Only what spins is told in less.
            Value::Duration(duration) if duration.subsec_micros() % 1000 != 0 => {
                show_duration(*duration)
            }
            Value::Duration(duration) => duration.as_millis().to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Address(address) => address.to_string(),
            Value::HostPort(host, port) => format!("{host}:{port}"),
            Value::Host(host) => host.clone(),
            Value::Path(path) => path.display().to_string(),
            Value::Cores(cores) => {
                let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
                cores.join(",")
            }
            Value::Acks(acks) => acks.to_string(),
        }
    }

    /// The words that this type accepts besides its values.
    pub(super) fn words(&self) -> &'static [&'static str] {
        match self {
            Kind::Size { words, .. }
            | Kind::Duration { words, .. }
            | Kind::Integer { words, .. }
            | Kind::Address { words }
            | Kind::HostPort { words }
            | Kind::Host { words }
            | Kind::Choice(words) => words,
            Kind::Cores | Kind::Acks => &["all"],
            Kind::Switch => &["true", "false"],
            Kind::Path => &[],
        }
    }

    /// What is allowed, to go behind "expected".
    pub fn expected(&self) -> String {
        let typed = match self {
            Kind::Size { min, max, .. } => format!(
                "a size from {} to {}, e.g. \"128 MiB\"",
                show_size(*min),
                show_size(*max)
            ),
            Kind::Duration { min_ms, max_ms, .. } => format!(
                "a duration from {} to {}, e.g. \"{}\"",
                show_duration(Duration::from_millis(*min_ms)),
                show_duration(Duration::from_millis(*max_ms)),
                show_duration(Duration::from_millis((*max_ms).min(100)))
            ),
            Kind::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::Address { .. } => "an address and port, e.g. \"127.0.0.1:7400\"".to_owned(),
            Kind::HostPort { .. } => {
                "a host and port, e.g. \"broker-1.example.org:7400\"".to_owned()
            }
            Kind::Host { .. } => "a host, e.g. \"broker-1.example.org\"".to_owned(),
            Kind::Path => "a folder, e.g. \"/var/lib/tackboard\"".to_owned(),
            Kind::Cores => "\"all\" or a list of CPU ids, e.g. [0, 1]".to_owned(),
            Kind::Acks => "\"all\" or a whole number from 0 to 32767".to_owned(),
            Kind::Switch => return "true or false".to_owned(),
            Kind::Choice(words) => return quoted_list(words),
        };
        match self {
            Kind::Cores | Kind::Acks => typed,
            _ if self.words().is_empty() => typed,
            _ => format!("{typed}, or {}", quoted_list(self.words())),
        }
    }

    /// The type in a word or two, for the documentation.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Kind::Size { .. } => "size",
            Kind::Duration { .. } => "duration",
            Kind::Integer { .. } => "whole number",
            Kind::Address { .. } => "address:port",
            Kind::HostPort { .. } => "host:port",
            Kind::Host { .. } => "host",
            Kind::Path => "folder",
            Kind::Cores => "list of CPUs",
            Kind::Acks => "acks",
            Kind::Switch => "true or false",
            Kind::Choice(_) => "word",
        }
    }
}

fn quoted_list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn read_host_port(text: &str) -> Option<Value> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    is_host(bare).then(|| Value::HostPort(bare.to_owned(), port))
}

/// A name or an address, without a port.
fn is_host(text: &str) -> bool {
    let address = text.parse::<std::net::IpAddr>().is_ok();
    let name = !text.is_empty()
        && text.len() <= 253
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    address || name
}

fn read_cores(numbers: &[i64]) -> Option<Value> {
    let cores: Option<Vec<usize>> = numbers
        .iter()
        .map(|number| usize::try_from(*number).ok())
        .collect();
    cores.filter(|cores| !cores.is_empty()).map(Value::Cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_tells_numbers_lists_and_text_apart() {
        assert_eq!(Written::from_flag("12"), Written::Integer(12));
        assert_eq!(Written::from_flag("[0, 1]"), Written::Integers(vec![0, 1]));
        assert_eq!(Written::from_flag("0,1"), Written::Integers(vec![0, 1]));
        assert_eq!(Written::from_flag("[]"), Written::Integers(vec![]));
        assert_eq!(
            Written::from_flag("\"all\""),
            Written::Text("all".to_owned())
        );
        assert_eq!(
            Written::from_flag("128 MiB"),
            Written::Text("128 MiB".to_owned())
        );
    }

    #[test]
    fn hosts_and_ports() {
        let read =
            |text: &str| Kind::HostPort { words: &["none"] }.read(&Written::Text(text.into()));
        assert_eq!(
            read("[::1]:7400"),
            Ok(Value::HostPort("::1".to_owned(), 7400))
        );
        assert_eq!(
            read("broker-1:7400"),
            Ok(Value::HostPort("broker-1".to_owned(), 7400))
        );
        assert_eq!(read("none"), Ok(Value::Word("none")));
        for wrong in ["broker-1", "broker-1:0", ":7400", "a b:1", "x:99999"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_expected_reads_as_a_sentence() {
        let kind = Kind::Size {
            min: 1 << 20,
            max: 2 << 30,
            words: &[],
        };
        assert_eq!(
            kind.read(&Written::Text("12".into())),
            Err("expected a size from 1 MiB to 2 GiB, e.g. \"128 MiB\"".to_owned())
        );
        assert_eq!(
            Kind::Choice(&["fsync", "interval", "written"]).expected(),
            "\"fsync\", \"interval\" or \"written\""
        );
    }
}
