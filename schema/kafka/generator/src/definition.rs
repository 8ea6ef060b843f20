//! What a definition says.

use crate::Range;

/// An API: its request and its response.
#[derive(Clone, Debug)]
pub struct Api {
    /// The module of its code, which is the name of its file.
    pub module: String,
    /// Its name, as in `OffsetCommit`.
    pub name: String,
    /// Its number on the wire.
    pub key: i16,
    /// The versions that are defined, and served.
    pub versions: Range,
    /// The versions that an answer to ApiVersions names.
    pub advertised: Range,
    /// The first version with compact lengths and tagged fields.
    pub flexible_from: Option<i16>,
    /// What it does.
    pub text: Vec<String>,
    /// The request.
    pub request: Struct,
    /// The response.
    pub response: Struct,
}

/// Fields in the order in which they are sent.
#[derive(Clone, Debug)]
pub struct Struct {
    /// The name of its Rust type.
    pub name: String,
    /// The fields.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The versions that have it.
    pub versions: Range,
    /// The versions in which it may be null.
    pub nullable: Option<Range>,
    /// Its tag, if it is a tagged field.
    pub tag: Option<u32>,
    /// The value that it has when nothing was sent, as it is written in the definition.
    pub default: Option<String>,
    /// What it means.
    pub text: Option<String>,
}

/// A type.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A type without parts: the name of its Rust type.
    Plain(&'static str),
    /// A structure.
    Struct(Struct),
    /// Any number of one type.
    Array(Box<Kind>),
}

impl Kind {
    /// The structure that it is or is made of.
    pub fn structure(&self) -> Option<&Struct> {
        match self {
            Kind::Plain(_) => None,
            Kind::Struct(structure) => Some(structure),
            Kind::Array(of) => of.structure(),
        }
    }

    /// The Rust type.
    pub fn rust(&self) -> String {
        match self {
            Kind::Plain(name) => (*name).to_owned(),
            Kind::Struct(structure) => structure.name.clone(),
            Kind::Array(of) => format!("Vec<{}>", of.rust()),
        }
    }
}

impl Field {
    /// The Rust type, with null.
    pub fn rust(&self) -> String {
        match self.nullable {
            Some(_) => format!("Option<{}>", self.kind.rust()),
            None => self.kind.rust(),
        }
    }

    /// The Rust expression of its default.
    pub fn rust_default(&self) -> String {
        let value = match (self.default.as_deref(), &self.kind) {
            (Some("null"), _) => return "None".to_owned(),
            (Some(number), Kind::Plain(_)) => number.to_owned(),
            (None, Kind::Plain("bool")) => "false".to_owned(),
            (None, Kind::Plain("i8" | "i16" | "i32" | "i64")) => "0".to_owned(),
            (_, Kind::Array(_)) => "Vec::new()".to_owned(),
            (_, kind) => format!("{}::default()", kind.rust()),
        };
        match self.nullable {
            Some(_) => format!("Some({value})"),
            None => value,
        }
    }
}
