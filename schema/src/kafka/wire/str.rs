//! Strings.

use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
};

use bytes::Bytes;

use crate::DecodeError;

/// UTF-8 text that may be a slice of the frame it came in.
///
/// A clone costs a reference. What is kept for longer than a request is [`detached`](Str::detached), or it would keep
/// the whole frame.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Str(Bytes);

impl Str {
    /// Text that is part of the program.
    pub const fn from_static(text: &'static str) -> Self {
        Str(Bytes::from_static(text.as_bytes()))
    }

    /// The text in bytes of its own.
    #[must_use]
    pub fn detached(&self) -> Self {
        Str(Bytes::copy_from_slice(&self.0))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when it was made")
    }

    /// `at_byte` is where the text stands.
    pub(super) fn from_utf8(bytes: Bytes, at_byte: usize) -> Result<Self, DecodeError> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Str(bytes)),
            Err(fault) => Err(DecodeError::invalid(
                "a string is not UTF-8",
                at_byte + fault.valid_up_to(),
            )),
        }
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Str(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Str(text.into())
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

/// As `str` does, so that a map with these keys can be searched by `&str`.
impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn maps_are_searched_by_what_the_text_says() {
        let frame = Bytes::from_static(b"..topic..");
        let slice = Str::from_utf8(frame.slice(2..7), 2).unwrap();
        let known = HashMap::from([(slice.detached(), 1)]);
        assert_eq!(known.get("topic"), Some(&1));
        assert_eq!(known.get(&Str::from("topic".to_owned())), Some(&1));
        assert_eq!(known.get("topics"), None);
        assert!(slice == "topic" && slice == Str::from_static("topic"));
        assert_eq!(format!("{slice:?} {slice:>7}"), "\"topic\"   topic");
    }
}
