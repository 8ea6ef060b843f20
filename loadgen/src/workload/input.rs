//! Real events read from a file: one JSON object a line (NDJSON), plain or gzip.
//!
//! Owns the bytes of all lines, in memory, and for each line its key and its time. An event's value is the line exactly
//! as it stands in the file, without the newline. Bounded: an input larger than [`INPUT_BYTES_MAX`] is refused by name.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use ahash::AHashMap;
use anyhow::{Context, Result, anyhow, bail};
use flate2::bufread::MultiGzDecoder;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::event::VALUE_BYTES_MAX;

/// Most bytes of an input, unpacked. It is held in memory so that reading it can't slow the load.
pub const INPUT_BYTES_MAX: usize = 2 << 30;

/// The first 20,000 flights of the data set that `perf/data/README.md` describes.
static SAMPLE: &[u8] = include_bytes!("../../data/flights-20000.ndjson.gz");

/// What the built-in sample is called.
const SAMPLE_NAME: &str = "flights";

/// What to read from each line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    /// The field whose value becomes the key; `null` or absent: no key.
    pub key: Option<String>,
    /// The field with the event's time: RFC 3339 text or milliseconds since the Unix epoch.
    pub timestamp: Option<String>,
}

/// One event of the input.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    start: usize,
    length: u32,
    /// Index into the keys; [`Line::NO_KEY`] without one.
    key: u32,
    timestamp_ms: i64,
}

impl Line {
    const NO_KEY: u32 = u32::MAX;
}

/// All events of one input, in its order.
pub struct Input {
    name: String,
    text: Vec<u8>,
    lines: Vec<Line>,
    keys: Vec<Box<[u8]>>,
}

impl Input {
    /// The built-in sample: 20,000 flights, keyed by `tailnum`, timed by `sched_dep`.
    pub fn sample() -> Result<Self> {
        let fields = Fields {
            key: Some("tailnum".into()),
            timestamp: Some("sched_dep".into()),
        };
        Self::read(SAMPLE_NAME.into(), Cursor::new(SAMPLE), &fields)
    }

    /// Reads a file, unpacking it if it is gzip (told by its first two bytes, not by its name).
    pub fn open(path: &Path, fields: &Fields) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("--input {name}"))?;
        Self::read(name, BufReader::with_capacity(1 << 20, file), fields)
    }

    fn read(name: String, mut source: impl BufRead, fields: &Fields) -> Result<Self> {
        let magic = source
            .fill_buf()
            .with_context(|| format!("--input {name}"))?;
        let mut text = Vec::new();
        let limit = INPUT_BYTES_MAX as u64 + 1;
        if magic.starts_with(&[0x1f, 0x8b]) {
            MultiGzDecoder::new(source)
                .take(limit)
                .read_to_end(&mut text)
        } else {
            source.take(limit).read_to_end(&mut text)
        }
        .with_context(|| format!("--input {name}: not readable as gzip or text"))?;
        if text.len() > INPUT_BYTES_MAX {
            bail!(
                "--input {name}: more than {INPUT_BYTES_MAX} bytes unpacked, the most that is held in memory"
            );
        }
        Self::index(name, text, fields)
    }

    fn index(name: String, text: Vec<u8>, fields: &Fields) -> Result<Self> {
        let mut lines = Vec::new();
        let mut keys = Vec::new();
        let mut key_numbers = AHashMap::<Box<[u8]>, u32>::new();
        let mut start = 0;
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let at = start;
            start += line.len() + 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let place = || format!("--input {name} line {}", number + 1);
            if line.len() > VALUE_BYTES_MAX as usize {
                bail!(
                    "{}: {} bytes, expected at most {VALUE_BYTES_MAX}",
                    place(),
                    line.len()
                );
            }
            let (key, timestamp_ms) = pick(line, fields).with_context(place)?;
            let key = match key {
                None => Line::NO_KEY,
                Some(key) => match key_numbers.get(&key) {
                    Some(&number) => number,
                    None => {
                        let number = keys.len() as u32;
                        keys.push(key.clone());
                        key_numbers.insert(key, number);
                        number
                    }
                },
            };
            lines.push(Line {
                start: at,
                length: line.len() as u32,
                key,
                timestamp_ms,
            });
        }
        if lines.is_empty() {
            bail!("--input {name}: no events in it, expected one JSON object a line");
        }
        if lines.len() > u32::MAX as usize {
            bail!(
                "--input {name}: {} lines, expected at most {}",
                lines.len(),
                u32::MAX
            );
        }
        Ok(Self {
            name,
            text,
            lines,
            keys,
        })
    }

    /// So many of its events, in words.
    pub fn counted(&self, count: u64) -> String {
        let count = crate::report::number::grouped(count);
        match self.name.as_str() {
            SAMPLE_NAME => format!("{count} {SAMPLE_NAME}"),
            name => format!("{count} events from {name}"),
        }
    }

    /// How many events there are.
    pub fn count(&self) -> u32 {
        self.lines.len() as u32
    }

    /// Bytes of all values together.
    pub fn value_bytes(&self) -> u64 {
        self.lines.iter().map(|line| u64::from(line.length)).sum()
    }

    /// The value of an event, or nothing if there is no such line.
    pub fn value(&self, line: u32) -> Option<&[u8]> {
        let line = self.lines.get(line as usize)?;
        self.text.get(line.start..line.start + line.length as usize)
    }

    /// The key of an event.
    pub fn key(&self, line: u32) -> Option<&[u8]> {
        self.key_number(line).map(|key| &*self.keys[key as usize])
    }

    /// The number of an event's key among [`Input::keys`].
    pub fn key_number(&self, line: u32) -> Option<u32> {
        let key = self.lines.get(line as usize)?.key;
        (key != Line::NO_KEY).then_some(key)
    }

    /// All different keys, in order of their first event.
    pub fn keys(&self) -> &[Box<[u8]>] {
        &self.keys
    }

    /// The time of an event, ms since the Unix epoch, if a timestamp field was named.
    pub fn timestamp_ms(&self, line: u32) -> Option<i64> {
        let timestamp_ms = self.lines.get(line as usize)?.timestamp_ms;
        (timestamp_ms != i64::MIN).then_some(timestamp_ms)
    }

    /// Whether every event is at or after the one before: what replay by timestamps needs.
    pub fn first_step_back(&self) -> Option<u32> {
        let step = self
            .lines
            .windows(2)
            .position(|pair| pair[1].timestamp_ms < pair[0].timestamp_ms)?;
        Some(step as u32 + 1)
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .field("lines", &self.lines.len())
            .finish_non_exhaustive()
    }
}

/// Key and time of one line.
fn pick(line: &[u8], fields: &Fields) -> Result<(Option<Box<[u8]>>, i64)> {
    if fields.key.is_none() && fields.timestamp.is_none() {
        // Nothing is read from the line, so it need not even be JSON.
        return Ok((None, i64::MIN));
    }
    let mut json = serde_json::Deserializer::from_slice(line);
    let picked = json
        .deserialize_map(FieldPicker { fields })
        .and_then(|picked| json.end().map(|()| picked));
    let (key, timestamp) = picked.map_err(|error| not_an_object(line, &error))?;
    let key = match (&fields.key, key) {
        (None, _) | (_, None | Some(Value::Null)) => None,
        (_, Some(Value::String(text))) => Some(text.into_bytes().into_boxed_slice()),
        (_, Some(value @ (Value::Number(_) | Value::Bool(_)))) => {
            Some(value.to_string().into_bytes().into_boxed_slice())
        }
        (Some(field), Some(value)) => {
            bail!("{field} = {value}: a key is text, a number, true, false or null")
        }
    };
    let timestamp_ms = match &fields.timestamp {
        None => i64::MIN,
        Some(field) => timestamp_of(field, timestamp)?,
    };
    Ok((key, timestamp_ms))
}

/// The parser knows where it stopped; what is there is said in our own words.
fn not_an_object(line: &[u8], error: &serde_json::Error) -> anyhow::Error {
    const EXPECTED: &str = "expected one JSON object and nothing after it";
    const SHOWN_MAX: usize = 60;
    if error.is_eof() {
        return anyhow!("ends before its JSON object does; {EXPECTED}");
    }
    // Columns count bytes from 1; what is not an object at all has none.
    let column = match line.trim_ascii_start().first() {
        Some(b'{') => error.column().clamp(1, line.len()),
        _ => 1,
    };
    let rest = String::from_utf8_lossy(&line[column - 1..]);
    let shown: String = rest.chars().take(SHOWN_MAX).collect();
    anyhow!("is no JSON object from column {column} on: {shown}; {EXPECTED}")
}

fn timestamp_of(field: &str, value: Option<Value>) -> Result<i64> {
    const ALLOWED: &str = "expected RFC 3339 text or milliseconds since 1970";
    match value {
        Some(Value::String(text)) => match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(time.as_millisecond()),
            Err(_) => bail!("{field} = {text:?}: {ALLOWED}"),
        },
        Some(Value::Number(number)) => match number.as_i64() {
            Some(milliseconds) => Ok(milliseconds),
            None => bail!("{field} = {number}: {ALLOWED}"),
        },
        Some(value) => bail!("{field} = {value}: {ALLOWED}"),
        None => bail!("there is no field {field}: {ALLOWED}"),
    }
}

/// Reads two fields of an object and skips the others without building them.
struct FieldPicker<'a> {
    fields: &'a Fields,
}

impl<'de> Visitor<'de> for FieldPicker<'_> {
    type Value = (Option<Value>, Option<Value>);

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut key, mut timestamp) = (None, None);
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let (is_key, is_timestamp) = (
                self.fields.key.as_deref() == Some(&*name),
                self.fields.timestamp.as_deref() == Some(&*name),
            );
            if !is_key && !is_timestamp {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value::<Value>()?;
            if is_key {
                key = Some(value.clone());
            }
            if is_timestamp {
                timestamp = Some(value);
            }
        }
        Ok((key, timestamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn fields() -> Fields {
        Fields {
            key: Some("k".into()),
            timestamp: Some("t".into()),
        }
    }

    fn read(text: &[u8]) -> Result<Input> {
        Input::read("test".into(), Cursor::new(text), &fields())
    }

    #[test]
    fn keeps_lines_exactly_and_reads_key_and_time() {
        let text = b"{\"t\":\"2013-07-04T00:00:00Z\",\"k\":\"a\", \"x\":{\"k\":1}}\n{\"k\":null,\"t\":5}\r\n\n{\"t\":6,\"k\":42}";
        let input = read(text).unwrap();
        assert_eq!(input.count(), 3);
        assert_eq!(input.value(0).unwrap(), &text[..49]);
        assert_eq!(input.value(1).unwrap(), b"{\"k\":null,\"t\":5}");
        assert_eq!(input.value(3), None);
        assert_eq!(
            (input.key(0), input.key(1), input.key(2)),
            (Some(&b"a"[..]), None, Some(&b"42"[..]))
        );
        assert_eq!(input.timestamp_ms(0), Some(1_372_896_000_000));
        assert_eq!(input.timestamp_ms(2), Some(6));
        assert_eq!(input.first_step_back(), Some(1));
    }

    #[test]
    fn gzip_is_told_by_its_bytes() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed
            .write_all(b"{\"t\":1,\"k\":\"a\"}\n{\"t\":2,\"k\":\"a\"}\n")
            .unwrap();
        let input = read(&packed.finish().unwrap()).unwrap();
        assert_eq!((input.count(), input.keys().len()), (2, 1));
    }

    #[test]
    fn faults_name_line_field_and_what_is_allowed() {
        for (text, expected) in [
            (&b"{\"t\":1}\n{\"k\":\n"[..], "line 2"),
            (
                b"{\"t\":",
                "line 1: ends before its JSON object does; expected one",
            ),
            (
                b"[1]\n",
                "is no JSON object from column 1 on: [1]; expected",
            ),
            (b"{\"t\":1} x\n", "from column 9 on: x; expected"),
            (b"{\"t\":\"\xff\"}\n", "line 1: is no JSON object"),
            (b"{\"t\":\"noon\"}\n", "t = \"noon\": expected RFC 3339"),
            (b"{\"k\":1}\n", "there is no field t"),
            (b"{\"k\":[1],\"t\":1}\n", "k = [1]: a key is text"),
            (b"\n\n", "no events in it"),
            (b"\x1f\x8bnot gzip", "not readable as gzip"),
        ] {
            let fault = format!("{:#}", read(text).unwrap_err());
            assert!(
                fault.contains(expected) && fault.contains("--input test"),
                "{fault}"
            );
        }
    }

    #[test]
    fn without_fields_any_text_is_an_event() {
        let input = Input::read(
            "test".into(),
            Cursor::new(b"plain\ntext\n"),
            &Fields::default(),
        )
        .unwrap();
        assert_eq!(
            (input.value(1), input.key(1), input.timestamp_ms(1)),
            (Some(&b"text"[..]), None, None)
        );
    }

    #[test]
    fn the_sample_is_what_it_says() {
        let input = Input::sample().unwrap();
        assert_eq!(input.count(), 20_000);
        assert_eq!(input.value_bytes(), 3_455_840 - 20_000);
        assert_eq!(input.first_step_back(), None);
        assert!(input.key(0) == Some(b"N14228"));
    }
}
