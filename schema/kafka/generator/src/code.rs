//! Renders the types of an API with their decoders and encoders.

use std::fmt::Write;

use crate::{Api, Field, Kind, Range, Struct};

/// The first line of every generated file.
pub(crate) fn heading(from: &str) -> String {
    format!("// Made from {from} by schema/regenerate. Changes go there.\n\n")
}

/// The file of an API.
pub fn render(api: &Api) -> String {
    let mut out = heading(&format!("schema/kafka/messages/{}.kmsg", api.module));
    out.push_str("use crate::kafka::wire::prelude::*;\n");
    let (name, versions) = (&api.name, api.versions);
    for message in [&api.request, &api.response] {
        let mut text = vec![
            format!("{}: {name}, versions {versions}.", part(api, message)),
            String::new(),
        ];
        text.extend(api.text.iter().cloned());
        structure(&mut out, api, message, &text);
        let _ = write!(
            out,
            "\nimpl Message for {} {{\n    const API: ApiKey = ApiKey::{name};\n}}\n",
            message.name
        );
    }
    let (request, response) = (&api.request.name, &api.response.name);
    let _ = write!(
        out,
        "\nimpl Request for {request} {{\n    type Response = {response};\n}}\n\nimpl Response for {response} {{}}\n"
    );
    out
}

fn part(api: &Api, message: &Struct) -> &'static str {
    if message.name == api.request.name {
        "Request"
    } else {
        "Response"
    }
}

fn structure(out: &mut String, api: &Api, of: &Struct, text: &[String]) {
    out.push('\n');
    for line in text {
        let _ = writeln!(out, "{}", format!("/// {line}").trim_end());
    }
    let derives = if has_own_default(of) { "" } else { ", Default" };
    let _ = writeln!(out, "#[derive(Clone, Debug{derives}, PartialEq, Eq)]");
    let _ = writeln!(out, "pub struct {} {{", of.name);
    for field in &of.fields {
        let _ = writeln!(
            out,
            "    /// {}\n    pub {}: {},",
            documentation(api, field),
            field.name,
            field.rust()
        );
    }
    out.push_str("}\n");
    if has_own_default(of) {
        default(out, of);
    }
    value(out, api, of);
    for field in &of.fields {
        if let Some(part) = field.kind.structure() {
            let place = format!("[`{}::{}`]", of.name, field.name);
            let text = match field.kind {
                Kind::Array(_) => format!("One of {place}."),
                _ => format!("What {place} holds."),
            };
            structure(out, api, part, &[text]);
        }
    }
}

/// What a field means, and what of that depends on the version.
fn documentation(api: &Api, field: &Field) -> String {
    let mut sentences: Vec<String> = field.text.clone().into_iter().collect();
    if field.versions.condition(api.versions).is_some() {
        sentences.push(format!("Versions {}.", field.versions));
    }
    if let Some(range) = field
        .nullable
        .filter(|range| range.condition(api.versions).is_some())
    {
        sentences.push(format!("Null: versions {range}."));
    }
    if let Some(tag) = field.tag {
        sentences.push(format!("Tag {tag}."));
    }
    if let Some(default) = &field.default {
        sentences.push(format!("Default: {default}."));
    }
    if sentences.is_empty() {
        sentences.push(format!("`{}`.", field.name));
    }
    sentences.join(" ")
}

/// Whether any field's default isn't that of its type.
fn has_own_default(of: &Struct) -> bool {
    let is_own = |default: String| {
        !matches!(default.as_str(), "None" | "0" | "false" | "Vec::new()")
            && !default.ends_with("::default()")
    };
    of.fields.iter().any(|field| {
        field.nullable.is_some() && field.default.is_none() || is_own(field.rust_default())
    })
}

fn default(out: &mut String, of: &Struct) {
    let _ = writeln!(
        out,
        "\nimpl Default for {} {{\n    fn default() -> Self {{\n        Self {{",
        of.name
    );
    for field in &of.fields {
        let _ = writeln!(out, "            {}: {},", field.name, field.rust_default());
    }
    out.push_str("        }\n    }\n}\n");
}

fn value(out: &mut String, api: &Api, of: &Struct) {
    let body = [bytes_min(api, of), read(api, of), write(api, of)];
    let _ = write!(
        out,
        "\nimpl Value for {} {{\n{}}}\n",
        of.name,
        body.join("\n")
    );
}

/// Binds `version` in a function whose body names it.
fn with_version(signature: &str, from: &str, body: &str) -> String {
    let bind = if names_version(body) {
        format!("        let version = {from}.version;\n")
    } else {
        String::new()
    };
    format!("    {signature} {{\n{bind}{body}    }}\n")
}

/// Whether any condition does.
pub(crate) fn names_version(code: &str) -> bool {
    ["version >", "version <", "version =", "&version"]
        .iter()
        .any(|condition| code.contains(condition))
}

fn bytes_min(api: &Api, of: &Struct) -> String {
    let mut body = String::from("        let mut bytes = form.tags_bytes_min();\n");
    for field in of.fields.iter().filter(|field| field.tag.is_none()) {
        let add = format!("bytes += <{}>::bytes_min(form);", field.rust());
        let _ = match field.versions.condition(api.versions) {
            None => writeln!(body, "        {add}"),
            Some(condition) => writeln!(
                body,
                "        if {condition} {{\n            {add}\n        }}"
            ),
        };
    }
    body.push_str("        bytes\n");
    with_version("fn bytes_min(form: Form) -> usize", "form", &body)
}

fn read(api: &Api, of: &Struct) -> String {
    let tagged: Vec<&Field> = of
        .fields
        .iter()
        .filter(|field| field.tag.is_some())
        .collect();
    let binding = if tagged.is_empty() {
        "let read"
    } else {
        "let mut read"
    };
    let mut body = format!("        {binding} = Self {{\n");
    for field in &of.fields {
        let name = &field.name;
        let value = match (field.tag, field.versions.condition(api.versions)) {
            (Some(_), _) => field.rust_default(),
            (None, None) => read_value(api.versions, field),
            (None, Some(condition)) => format!(
                "if {condition} {{ {} }} else {{ {} }}",
                read_value(api.versions, field),
                field.rust_default()
            ),
        };
        let _ = writeln!(body, "            {name}: {value},");
    }
    body.push_str("        };\n");
    if tagged.is_empty() {
        body.push_str("        from.skip_tags()?;\n");
    } else {
        body.push_str("        from.tags(|tag, from| {\n            match tag {\n");
        for field in tagged {
            let when = field
                .versions
                .condition(api.versions)
                .map(|condition| format!(" if {condition}"));
            let _ = writeln!(
                body,
                "                {}{} => read.{} = {},",
                field.tag.unwrap_or_default(),
                when.unwrap_or_default(),
                field.name,
                read_value(api.versions, field)
            );
        }
        body.push_str("                _ => return Ok(false),\n            }\n            Ok(true)\n        })?;\n");
    }
    body.push_str("        Ok(read)\n");
    with_version(
        "fn read(from: &mut Reader) -> Result<Self, DecodeError>",
        "from.form()",
        &body,
    )
}

fn read_value(of: Range, field: &Field) -> String {
    let name = &field.name;
    match field
        .nullable
        .map(|range| range.condition(field_range(of, field)))
    {
        None | Some(None) => format!("from.field(\"{name}\")?"),
        Some(Some(condition)) => {
            format!(
                "if {condition} {{ from.field(\"{name}\")? }} else {{ Some(from.field(\"{name}\")?) }}"
            )
        }
    }
}

/// The versions in which the field is read, for conditions within the one on its presence.
pub(crate) fn field_range(of: Range, field: &Field) -> Range {
    let last = match (of.last, field.versions.last) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    };
    Range {
        first: of.first.max(field.versions.first),
        last,
    }
}

fn write(api: &Api, of: &Struct) -> String {
    let mut body = String::new();
    for field in of.fields.iter().filter(|field| field.tag.is_none()) {
        let name = &field.name;
        let put = match field
            .nullable
            .map(|range| range.condition(field_range(api.versions, field)))
        {
            None | Some(None) => format!("to.field(\"{name}\", &self.{name})?;"),
            Some(Some(condition)) => {
                format!("to.nullable(\"{name}\", &self.{name}, {condition})?;")
            }
        };
        let _ = match field.versions.condition(api.versions) {
            None => writeln!(body, "        {put}"),
            Some(condition) => writeln!(
                body,
                "        if {condition} {{\n            {put}\n        }}"
            ),
        };
    }
    let tagged: Vec<&Field> = of
        .fields
        .iter()
        .filter(|field| field.tag.is_some())
        .collect();
    if tagged.is_empty() {
        body.push_str("        to.no_tags();\n        Ok(())\n");
        return with_version(
            "fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError>",
            "to.form()",
            &body,
        );
    }
    let mut counts = Vec::new();
    for field in &tagged {
        let name = &field.name;
        let present = (field.versions.condition(api.versions))
            .map_or_else(String::new, |condition| format!("{condition} && "));
        let differs = match field.rust_default().as_str() {
            "None" => format!("self.{name}.is_some()"),
            "Vec::new()" => format!("!self.{name}.is_empty()"),
            "false" => format!("self.{name}"),
            default => format!("self.{name} != {default}"),
        };
        let _ = writeln!(body, "        let has_{name} = {present}{differs};");
        counts.push(format!("has_{}", field.name));
    }
    let _ = writeln!(body, "        to.tag_count(&[{}]);", counts.join(", "));
    for field in &tagged {
        let (name, tag) = (&field.name, field.tag.unwrap_or_default());
        let _ = writeln!(
            body,
            "        if has_{name} {{\n            to.tagged({tag}, \"{name}\", &self.{name})?;\n        }}"
        );
    }
    body.push_str("        Ok(())\n");
    with_version(
        "fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError>",
        "to.form()",
        &body,
    )
}
