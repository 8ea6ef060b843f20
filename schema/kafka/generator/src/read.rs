//! Reads a definition.

use std::fmt::Display;

use crate::{Api, Field, Kind, Range, Struct};

/// Columns by which a field stands to the right of what it is part of.
const INDENT: usize = 4;

/// The types without parts, as definitions and as Rust name them.
const PLAIN: [(&str, &str); 9] = [
    ("bool", "bool"),
    ("int8", "i8"),
    ("int16", "i16"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("string", "Str"),
    ("bytes", "Bytes"),
    ("records", "Records"),
    ("uuid", "TopicId"),
];

/// A line with something on it.
struct Line<'a> {
    number: usize,
    indent: usize,
    words: Vec<&'a str>,
    /// What stands behind `#`.
    text: Option<&'a str>,
}

impl Line<'_> {
    fn fault(&self, what: impl Display) -> String {
        format!("line {}: {what}", self.number)
    }
}

/// Reads the text of a file; `module` is its name.
pub fn api(module: &str, text: &str) -> Result<Api, String> {
    let lines = lines(text)?;
    let comment = lines.iter().take_while(|line| line.words.is_empty());
    let text = comment
        .filter_map(|line| line.text)
        .map(str::to_owned)
        .collect();
    let head: Vec<&Line<'_>> = (lines.iter())
        .take_while(|line| line.words != ["request"])
        .filter(|line| !line.words.is_empty())
        .collect();
    let (name, key) = match head.first().map(|line| line.words.as_slice()) {
        Some(["api", name, key]) => (*name, key.parse().map_err(|_| format!("key {key}"))?),
        _ => return Err("begins with `api NAME KEY`".to_owned()),
    };
    let range = |word: &str| -> Result<Option<Range>, String> {
        let Some(line) = head.iter().find(|line| line.words[0] == word) else {
            return Ok(None);
        };
        let read = Range::read(line.words.get(1).copied().unwrap_or_default());
        read.map(Some)
            .ok_or_else(|| line.fault("a range of versions is missing"))
    };
    if let Some(line) = (head.iter().skip(1))
        .find(|line| !["versions", "advertised", "flexible"].contains(&line.words[0]))
    {
        return Err(line.fault("only versions, advertised and flexible are known here"));
    }
    let versions = range("versions")?.ok_or("`versions` is missing")?;

    let of = |part: &str| {
        body(
            &format!("{name}{part}"),
            &part.to_lowercase(),
            &lines,
            versions,
        )
    };
    let flexible_from = range("flexible")?.map(|range| range.first);
    let (request, response) = (of("Request")?, of("Response")?);
    for message in [&request, &response] {
        check_tags(message, flexible_from)?;
    }
    Ok(Api {
        module: module.to_owned(),
        name: name.to_owned(),
        key,
        versions,
        advertised: range("advertised")?.unwrap_or(versions),
        flexible_from,
        text,
        request,
        response,
    })
}

/// Versions before the flexible ones have no tagged fields.
fn check_tags(of: &Struct, flexible_from: Option<i16>) -> Result<(), String> {
    for field in &of.fields {
        let first = field.versions.first;
        if field.tag.is_some() && flexible_from.is_none_or(|flexible| first < flexible) {
            return Err(format!("{}: a tagged field in version {first}", field.name));
        }
        if let Some(part) = field.kind.structure() {
            check_tags(part, flexible_from)?;
        }
    }
    Ok(())
}

fn lines(text: &str) -> Result<Vec<Line<'_>>, String> {
    let mut lines = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let (code, text) = match raw.split_once('#') {
            Some((code, text)) => (code, Some(text.trim())),
            None => (raw, None),
        };
        let indent = code.len() - code.trim_start().len();
        let line = Line {
            number: index + 1,
            indent: indent / INDENT,
            words: code.split_whitespace().collect(),
            text,
        };
        if line.words.is_empty() && text.is_none() {
            continue;
        }
        if !line.words.is_empty() && indent % INDENT != 0 {
            return Err(line.fault(format!("indented by a multiple of {INDENT} spaces")));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// The fields below the line that is `word`.
fn body(name: &str, word: &str, lines: &[Line<'_>], of: Range) -> Result<Struct, String> {
    let begin = (lines.iter())
        .position(|line| line.words == [word])
        .ok_or_else(|| format!("`{word}` is missing"))?;
    let fields: Vec<&Line<'_>> = (lines[begin + 1..].iter())
        .filter(|line| !line.words.is_empty())
        .take_while(|line| line.indent > 0)
        .collect();
    structure(name, name, &fields, 1, of)
}

/// The structure whose fields stand at `depth`; the types of its parts are named after `message`.
fn structure(
    name: &str,
    message: &str,
    lines: &[&Line<'_>],
    depth: usize,
    of: Range,
) -> Result<Struct, String> {
    let mut fields = Vec::new();
    let mut rest = lines;
    while let [line, below @ ..] = rest {
        if line.indent != depth {
            return Err(line.fault("belongs to nothing above it"));
        }
        let parts = below.iter().take_while(|line| line.indent > depth).count();
        let (parts, next) = below.split_at(parts);
        fields.push(field(line, message, parts, depth, of)?);
        rest = next;
    }
    Ok(Struct {
        name: name.to_owned(),
        fields,
    })
}

/// `NAME TYPE [VERSIONS] [tag N] [= DEFAULT]`.
fn field(
    line: &Line<'_>,
    message: &str,
    parts: &[&Line<'_>],
    depth: usize,
    of: Range,
) -> Result<Field, String> {
    let [name, kind, more @ ..] = line.words.as_slice() else {
        return Err(line.fault("a field is `NAME TYPE [VERSIONS] [tag N] [= DEFAULT]`"));
    };
    let (kind, nullable) = match kind.split_once('?') {
        None => (*kind, None),
        Some((kind, "")) => (kind, Some(of)),
        Some((kind, versions)) => {
            let range = Range::read(versions).ok_or_else(|| line.fault(versions))?;
            (kind, Some(range))
        }
    };
    let mut field = Field {
        name: (*name).to_owned(),
        kind: self::kind(line, kind, message, parts, depth, of)?,
        versions: of,
        nullable,
        tag: None,
        default: None,
        text: line.text.map(str::to_owned),
    };
    let mut more = more;
    if let [versions, rest @ ..] = more
        && let Some(range) = Range::read(versions)
    {
        if !range.meets(of) {
            return Err(line.fault("in none of the versions that are defined"));
        }
        (field.versions, more) = (range, rest);
    }
    if let ["tag", tag, rest @ ..] = more {
        field.tag = Some(
            tag.parse()
                .map_err(|_| line.fault("the tag is no number"))?,
        );
        more = rest;
    }
    if let ["=", default, rest @ ..] = more {
        field.default = Some((*default).to_owned());
        more = rest;
    }
    match more {
        [] => Ok(field),
        [word, ..] => Err(line.fault(format!("{word:?} is not understood"))),
    }
}

fn kind(
    line: &Line<'_>,
    name: &str,
    message: &str,
    parts: &[&Line<'_>],
    depth: usize,
    of: Range,
) -> Result<Kind, String> {
    if let Some(element) = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
    {
        let element = kind(line, element, message, parts, depth, of)?;
        return Ok(Kind::Array(Box::new(element)));
    }
    if let Some((_, rust)) = PLAIN.iter().find(|(known, _)| *known == name) {
        return match parts {
            [] => Ok(Kind::Plain(rust)),
            _ => Err(line.fault("has no parts")),
        };
    }
    if !name.starts_with(char::is_uppercase) || parts.is_empty() {
        return Err(line.fault(format!("{name} is no type, or a structure without fields")));
    }
    let structure = structure(&format!("{message}{name}"), message, parts, depth + 1, of)?;
    Ok(Kind::Struct(structure))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Asks.
api Ask 7
versions 1-4
advertised 0-4
flexible 3+

request
    topics  [Topic]?2+  = null  # Which.
        name  string
        ids   [int32]  2-3
    mode    int8  3+ tag 1 = -1
response
    error_code int16
";

    #[test]
    fn a_definition_is_read_whole() {
        let api = api("ask", TEXT).unwrap();
        assert_eq!(
            (api.name.as_str(), api.key, api.flexible_from),
            ("Ask", 7, Some(3))
        );
        assert_eq!(api.text, ["Asks."]);
        assert_eq!(
            [api.versions, api.advertised].map(|range| range.to_string()),
            ["1-4", "0-4"]
        );
        let [topics, mode] = api.request.fields.as_slice() else {
            panic!("{:?}", api.request)
        };
        assert_eq!(topics.rust(), "Option<Vec<AskRequestTopic>>");
        assert_eq!(topics.rust_default(), "None");
        assert_eq!(topics.nullable, Range::read("2+"));
        assert_eq!(topics.text.as_deref(), Some("Which."));
        let topic = topics.kind.structure().unwrap();
        assert_eq!(topic.fields[1].rust(), "Vec<i32>");
        assert_eq!(topic.fields[1].versions, Range::read("2-3").unwrap());
        assert_eq!((mode.tag, mode.rust_default().as_str()), (Some(1), "-1"));
        assert_eq!(api.response.name, "AskResponse");
    }

    #[test]
    fn faults_name_their_line() {
        for (line, with, fault) in [
            (
                "    mode    int8  3+ tag 1 = -1",
                "    mode    int9",
                "line 11: int9 is no type",
            ),
            (
                "    mode    int8  3+ tag 1 = -1",
                "    mode    int8 5+",
                "line 11: in none",
            ),
            (
                "    mode    int8  3+ tag 1 = -1",
                "    mode    int8 maybe",
                "line 11: \"maybe\"",
            ),
            (
                "    mode    int8  3+ tag 1 = -1",
                "      mode  int8",
                "line 11: indented",
            ),
            (
                "        name  string",
                "            name  string",
                "line 9: belongs",
            ),
            (
                "flexible 3+",
                "flexible 4+",
                "mode: a tagged field in version 3",
            ),
            ("advertised 0-4", "advertised", "line 4: a range"),
            ("advertised 0-4", "serves 0-4", "line 4: only"),
            ("api Ask 7", "api Ask", "begins with"),
        ] {
            assert!(TEXT.contains(line));
            let error = api("ask", &TEXT.replace(line, with)).unwrap_err();
            assert!(error.starts_with(fault), "{error}");
        }
    }
}
