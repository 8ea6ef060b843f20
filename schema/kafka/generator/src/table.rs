//! Renders the table of all APIs.

use std::fmt::Write;

use crate::{Api, Range, code};

/// The module above the APIs.
pub fn render(apis: &[Api]) -> String {
    let mut out = code::heading("schema/kafka/messages/");
    out.push_str("use crate::kafka::table::{ApiRow, Versions};\n\n");
    for api in apis {
        let _ = writeln!(out, "mod {};", api.module);
    }
    out.push('\n');
    for api in apis {
        let _ = writeln!(out, "pub use {}::*;", api.module);
    }
    out.push_str("\n/// An API by its number on the wire.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\n");
    out.push_str("#[repr(i16)]\npub enum ApiKey {\n");
    for api in apis {
        let text = api.text.first().map_or(api.name.as_str(), String::as_str);
        let _ = writeln!(out, "    /// {text}\n    {} = {},", api.name, api.key);
    }
    out.push_str("}\n\n/// Every API, in order of key.\n");
    let _ = writeln!(out, "pub static API_TABLE: [ApiRow; {}] = [", apis.len());
    for api in apis {
        let flexible = api
            .flexible_from
            .map_or("None".to_owned(), |from| format!("Some({from})"));
        let _ = writeln!(out, "    ApiRow {{");
        let _ = writeln!(
            out,
            "        key: ApiKey::{},\n        name: \"{}\",",
            api.name, api.name
        );
        let _ = writeln!(out, "        served: {},", versions(api.versions));
        let _ = writeln!(out, "        advertised: {},", versions(api.advertised));
        let _ = writeln!(out, "        flexible_from: {flexible},\n    }},");
    }
    out.push_str("];\n\nimpl ApiKey {\n    /// Its place in [`API_TABLE`].\n");
    out.push_str("    pub(crate) fn index(self) -> usize {\n        match self {\n");
    for (index, api) in apis.iter().enumerate() {
        let _ = writeln!(out, "            ApiKey::{} => {index},", api.name);
    }
    out.push_str("        }\n    }\n}\n");
    out
}

fn versions(range: Range) -> String {
    let last = range.last.expect("an API's ranges end");
    format!("Versions {{ min: {}, max: {last} }}", range.first)
}
