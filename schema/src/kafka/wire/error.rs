//! Faults, and where in a message they are.

use std::fmt;

use crate::DecodeError;

/// A message that its format can't express; the fault of whoever made it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct EncodeError {
    /// The limit that is exceeded.
    pub what: &'static str,
    /// The field, as in `topics[3].name`; empty for the whole frame.
    pub path: Box<str>,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(self.what),
            path => write!(f, "{path}: {}", self.what),
        }
    }
}

impl EncodeError {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            path: Box::default(),
        }
    }

    /// The fault seen from the structure that has it in a field.
    #[cold]
    pub(super) fn in_field(mut self, name: &str) -> Self {
        self.path = joined(name, &self.path);
        self
    }

    /// The fault seen from the array that has it in an element.
    #[cold]
    pub(super) fn in_element(mut self, index: usize) -> Self {
        self.path = joined(&format!("[{index}]"), &self.path);
        self
    }
}

/// The fault seen from the structure that has it in a field: the path comes before the values.
#[cold]
pub(super) fn in_field(mut fault: DecodeError, name: &str) -> DecodeError {
    fault.detail = Some(joined(name, fault.detail.as_deref().unwrap_or_default()));
    fault
}

/// The fault seen from the array that has it in an element.
#[cold]
pub(super) fn in_element(fault: DecodeError, index: usize) -> DecodeError {
    in_field(fault, &format!("[{index}]"))
}

/// `rest` is empty, a path, or what stands behind one.
fn joined(name: &str, rest: &str) -> Box<str> {
    let dot = if rest.is_empty() || rest.starts_with(['[', ':']) {
        ""
    } else {
        "."
    };
    format!("{name}{dot}{rest}").into_boxed_str()
}
