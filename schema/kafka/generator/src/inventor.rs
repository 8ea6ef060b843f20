//! Renders what the tests need to make random messages of every API and version, and to go over all of them.

use std::fmt::Write;

use crate::{Api, Struct, code};

/// The file with a macro that goes over all of them.
pub fn render_every_api(apis: &[Api]) -> String {
    let mut out = code::heading("schema/kafka/messages/");
    out.push_str("/// Calls a macro with every API: its name, its request and its response.\n");
    out.push_str("macro_rules! for_every_api {\n    ($each:ident) => {\n        $each! {\n");
    for api in apis {
        let (name, request, response) = (&api.name, &api.request.name, &api.response.name);
        let _ = writeln!(out, "            {name}, {request}, {response};");
    }
    out.push_str("        }\n    };\n}\n");
    out
}

/// The file that makes random ones.
pub fn render(apis: &[Api]) -> String {
    let mut out = code::heading("schema/kafka/messages/");
    out.push_str(
        "use tackboard_schema::{TopicId, kafka::*};\n\nuse super::invent::{Invent, Inventor};\n",
    );
    for api in apis {
        for message in [&api.request, &api.response] {
            structure(&mut out, api, message);
        }
    }
    out
}

fn structure(out: &mut String, api: &Api, of: &Struct) {
    let mut body = String::new();
    for field in &of.fields {
        let nullable = field
            .nullable
            .map(|range| range.condition(code::field_range(api.versions, field)));
        let value = match nullable {
            None | Some(None) => "by.value()".to_owned(),
            Some(Some(condition)) => {
                format!("if {condition} {{ by.value() }} else {{ Some(by.value()) }}")
            }
        };
        let value = match field.versions.condition(api.versions) {
            None => value,
            Some(condition) => format!(
                "if {condition} {{ {value} }} else {{ {} }}",
                field.rust_default()
            ),
        };
        let _ = writeln!(body, "            {}: {value},", field.name);
    }
    let bind = if code::names_version(&body) {
        "        let version = by.version;\n"
    } else {
        ""
    };
    let _ = write!(
        out,
        "\nimpl Invent for {} {{\n    fn invent(by: &mut Inventor) -> Self {{\n{bind}        Self {{\n{body}        }}\n    }}\n}}\n",
        of.name
    );
    for part in of.fields.iter().filter_map(|field| field.kind.structure()) {
        structure(out, api, part);
    }
}
