//! One line of input: which of its fields are the key and the time.
//!
//! The line's bytes are the event's value, untouched. Only the fields asked for are looked at; the rest
//! of the object is skipped over, but must be JSON.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use tackboard_client::TimestampMs;

/// Which fields of a line mean something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
}

/// What those fields say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EventLine<'a> {
    pub(super) key: Option<Cow<'a, str>>,
    pub(super) timestamp: Option<TimestampMs>,
}

impl Fields<'_> {
    /// Reads a line. Without any field asked for, the line may be anything.
    ///
    /// # Errors
    /// What is wrong with the line, to go behind its number.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Result<EventLine<'a>, String> {
        if self.key.is_none() && self.timestamp.is_none() {
            return Ok(EventLine::default());
        }
        let raw = self.find(line)?;
        let key = match (self.key, raw.key) {
            (Some(field), Some(value)) => key_of(field, value)?,
            _ => None,
        };
        let timestamp = match (self.timestamp, raw.timestamp) {
            (None, _) => None,
            (Some(field), Some(value)) => Some(timestamp_of(field, value)?),
            (Some(field), None) => {
                return Err(format!("has no field \"{field}\" for the timestamp"));
            }
        };
        Ok(EventLine { key, timestamp })
    }

    fn find<'a>(&self, line: &'a [u8]) -> Result<RawFields<'a>, String> {
        let mut reader = serde_json::Deserializer::from_slice(line);
        let found = self
            .deserialize(&mut reader)
            .and_then(|found| reader.end().map(|()| found));
        found.map_err(|error| self.why_not_an_object(line, &error))
    }

    /// The parser knows where it stopped; what is there is said in our own words.
    fn why_not_an_object(&self, line: &[u8], error: &serde_json::Error) -> String {
        let field = self.key.or(self.timestamp).unwrap_or_default();
        let expected = format!("expected one, e.g. {{\"{field}\":\"…\"}}");
        let Ok(text) = std::str::from_utf8(line) else {
            let at = line
                .utf8_chunks()
                .next()
                .map_or(0, |good| good.valid().len());
            return format!(
                "is no JSON object: byte 0x{:02x} at column {} is not UTF-8; {expected}",
                line[at],
                at + 1
            );
        };
        let begun = text.trim_ascii_start();
        if begun.is_empty() {
            return format!("is empty, no JSON object; {expected}");
        }
        if !begun.starts_with('{') {
            return format!("is no JSON object: {}; {expected}", shortened(begun));
        }
        if error.is_eof() {
            return format!(
                "ends before its JSON object does, a quote or bracket is not closed; {expected}"
            );
        }
        // Columns count bytes from 1, and name the byte that could not be; one past the end names the last.
        let column = error.column().clamp(1, text.len());
        let stopped = text.floor_char_boundary(column - 1);
        format!(
            "is no JSON object from column {} on: {}; {expected}",
            stopped + 1,
            shortened(&text[stopped..])
        )
    }
}

#[derive(Default)]
pub(super) struct RawFields<'a> {
    key: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
}

impl<'de> DeserializeSeed<'de> for &Fields<'_> {
    type Value = RawFields<'de>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<RawFields<'de>, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &Fields<'_> {
    type Value = RawFields<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
        let mut found = RawFields::default();
        while let Some(name) = map.next_key_seed(FieldName)? {
            let is_key = self.key == Some(&*name);
            let is_timestamp = self.timestamp == Some(&*name);
            if !is_key && !is_timestamp {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = Some(map.next_value::<&RawValue>()?);
            if is_key {
                found.key = value;
            }
            if is_timestamp {
                found.timestamp = value;
            }
        }
        Ok(found)
    }
}

/// A field's name, borrowed unless it contains escapes.
pub(super) struct FieldName;

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Cow<'de, str>, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for FieldName {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a field's name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// The text of a string; a number or a truth value as it is written; none for null.
fn key_of<'a>(field: &str, value: &'a RawValue) -> Result<Option<Cow<'a, str>>, String> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => string_of(text).map(Some),
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => Err(format!(
            "has {} as \"{field}\"; a key is a string, a number, true, false or null",
            shortened(text)
        )),
        _ => Ok(Some(Cow::Borrowed(text))),
    }
}

fn timestamp_of(field: &str, value: &RawValue) -> Result<TimestampMs, String> {
    let text = value.get();
    let read = || {
        if let Ok(ms) = text.parse() {
            return Some(ms);
        }
        let string = string_of(text).ok()?;
        match string.parse() {
            Ok(ms) => Some(ms),
            Err(_) => jiff::Timestamp::from_str(&string)
                .ok()
                .map(|time| time.as_millisecond()),
        }
    };
    let ms = read().filter(|ms| *ms >= 0).ok_or_else(|| {
        format!(
            "has {} as \"{field}\"; expected a time since 1970 as RFC 3339, e.g. \"2013-07-04T00:00:00Z\", or milliseconds",
            shortened(text)
        )
    })?;
    Ok(TimestampMs(ms))
}

fn string_of(text: &str) -> Result<Cow<'_, str>, String> {
    let inner = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::from_str(text).map(Cow::Owned).map_err(|_| {
            format!(
                "has {} as a string; an escape \\u stands for a character, and from d800 to dfff two of them do",
                shortened(text)
            )
        }),
    }
}

/// The beginning of a value, for a message.
fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: Fields<'static> = Fields {
        key: Some("tailnum"),
        timestamp: Some("sched_dep"),
    };
    const KEY: Fields<'static> = Fields {
        key: Some("k"),
        timestamp: None,
    };

    fn key(line: &str) -> Result<Option<String>, String> {
        KEY.read(line.as_bytes())
            .map(|line| line.key.map(Cow::into_owned))
    }

    #[test]
    fn key_and_time_of_a_flight() {
        let line = br#"{"sched_dep":"2013-01-01T10:15:00Z","flight":1545,"tailnum":"N14228"}"#;
        let event = FLIGHT.read(line).expect("valid");
        assert_eq!(event.key.as_deref(), Some("N14228"));
        assert_eq!(event.timestamp, Some(TimestampMs(1_357_035_300_000)));
        assert!(matches!(event.key, Some(Cow::Borrowed(_))));
    }

    #[test]
    fn a_missing_or_null_key_is_no_key() {
        assert_eq!(key(r#"{"k":null}"#), Ok(None));
        assert_eq!(key(r#"{"other":"x"}"#), Ok(None));
        assert_eq!(key("{}"), Ok(None));
        assert_eq!(key(r#"{"k":""}"#), Ok(Some(String::new())));
    }

    #[test]
    fn keys_are_taken_as_written() {
        assert_eq!(key(r#"{"k":1.50}"#), Ok(Some("1.50".to_owned())));
        assert_eq!(
            key(r#"{"k":12345678901234567890}"#),
            Ok(Some("12345678901234567890".to_owned()))
        );
        assert_eq!(key(r#"{"k":true}"#), Ok(Some("true".to_owned())));
        assert_eq!(
            key(r#"{"k":"caf\u00e9 \"x\""}"#),
            Ok(Some("café \"x\"".to_owned()))
        );
        assert_eq!(
            key(r#"{"\u006b":"escaped name"}"#),
            Ok(Some("escaped name".to_owned()))
        );
        assert_eq!(
            key(r#"{"a":{"k":"inner"},"k":"outer"}"#),
            Ok(Some("outer".to_owned()))
        );
    }

    #[test]
    fn times_in_milliseconds_and_with_zones() {
        let time = |value: &str| {
            let fields = Fields {
                key: None,
                timestamp: Some("t"),
            };
            fields
                .read(format!(r#"{{"t":{value}}}"#).as_bytes())
                .map(|line| line.timestamp)
        };
        let expected = Ok(Some(TimestampMs(1_372_896_000_000)));
        assert_eq!(time("1372896000000"), expected);
        assert_eq!(time("\"1372896000000\""), expected);
        assert_eq!(time("\"2013-07-04T02:00:00+02:00\""), expected);
        for wrong in [
            "\"2013-07-04\"",
            "\"soon\"",
            "null",
            "true",
            "1.5",
            "-1",
            "[]",
            "\"\"",
        ] {
            let error = time(wrong).expect_err(wrong);
            assert!(error.contains("as \"t\"; expected a time"), "{error}");
        }
        let missing = Fields {
            key: None,
            timestamp: Some("t"),
        }
        .read(b"{}");
        assert_eq!(
            missing,
            Err("has no field \"t\" for the timestamp".to_owned())
        );
    }

    #[test]
    fn a_bad_line_says_what_is_wrong_and_where() {
        for (line, expected) in [
            ("", "is empty, "),
            ("   ", "is empty, "),
            ("hello", "object: hello; "),
            ("[1,2]", "object: [1,2]; "),
            ("5", "object: 5; "),
            (r#""text""#, r#"object: "text"; "#),
            (r#"{"k":"v""#, "ends before its JSON object does"),
            (r#"{"k":"v"#, "ends before its JSON object does"),
            ("{", "ends before its JSON object does"),
            (r#"{"k":"v"} more"#, "from column 11 on: more; "),
            (r#"{"k":"a\qb"}"#, r#"from column 9 on: qb"}; "#),
            (r#"{"k":nope}"#, "from column 7 on: ope}; "),
            (r#"{"k":1,}"#, "from column 8 on: }; "),
            (r#"{'k':1}"#, "from column 2 on: 'k':1}; "),
            (r#"{"é":x}"#, "from column 7 on: x}; "),
        ] {
            let error = key(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
            assert!(
                error.ends_with(r#"expected one, e.g. {"k":"…"}"#),
                "{error}"
            );
        }
        let nested = key(r#"{"k":{"nested":1}}"#).expect_err("no key");
        assert!(nested.contains("a key is a string"), "{nested}");
        let half = key(r#"{"k":"\ud800"}"#).expect_err("half a character");
        assert!(half.starts_with(r#"has "\ud800" as a string"#), "{half}");
        let error = KEY.read(b"{\"k\":\"\xff\"}").expect_err("not text");
        assert!(
            error.contains("byte 0xff at column 7 is not UTF-8; "),
            "{error}"
        );
    }

    #[test]
    fn without_fields_a_line_is_anything() {
        assert_eq!(
            Fields::default().read(b"\xff not json"),
            Ok(EventLine::default())
        );
    }
}
