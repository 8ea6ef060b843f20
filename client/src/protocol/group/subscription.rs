//! What a member wants to read: topics by name, or all whose names match a pattern.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex_lite::Regex;

use crate::error::{Error, Result};

/// Topics with such names belong to brokers.
const INTERNAL_PREFIX: &str = "__";

/// A regular expression for whole names of topics.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Reads a pattern: `flights\..*`.
    ///
    /// # Errors
    /// [`Error::Pattern`].
    pub fn new(pattern: &str) -> Result<Self> {
        let whole = format!("^(?:{pattern})$");
        let regex = Regex::new(&whole).map_err(|fault| Error::Pattern {
            pattern: pattern.into(),
            detail: fault.to_string().into(),
        })?;
        Ok(Self { regex })
    }

    /// Whether it matches the whole of a name. Topics of the brokers' own match no pattern.
    pub fn matches(&self, topic: &str) -> bool {
        !topic.starts_with(INTERNAL_PREFIX) && self.regex.is_match(topic)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Subscription {
    Topics(BTreeSet<Arc<str>>),
    Pattern {
        pattern: Pattern,
        /// The metadata request whose answer tells of all topics.
        serial: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_for_whole_names_and_not_for_internal_topics() {
        let pattern = Pattern::new("flights|weather\\..+").unwrap();
        for (name, matches) in [
            ("flights", true),
            ("flights2", false),
            ("my-flights", false),
            ("weather.de", true),
            ("weather.", false),
        ] {
            assert_eq!(pattern.matches(name), matches, "{name}");
        }
        assert!(!Pattern::new(".*").unwrap().matches("__consumer_offsets"));
        let fault = Pattern::new("flights(").unwrap_err();
        assert!(fault.to_string().starts_with("flights( is no pattern"));
    }
}
