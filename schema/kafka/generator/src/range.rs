//! Ranges of versions.

use std::fmt;

/// Versions from `first` to `last`, both included; without `last` every later one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub first: i16,
    /// The last.
    pub last: Option<i16>,
}

impl Range {
    /// Reads `3`, `3-7` and `3+`.
    pub fn read(text: &str) -> Option<Range> {
        let number = |text: &str| text.parse::<i16>().ok().filter(|number| *number >= 0);
        if let Some(first) = text.strip_suffix('+') {
            let first = number(first)?;
            return Some(Range { first, last: None });
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(Range {
            first,
            last: Some(last),
        })
    }

    /// A condition on `version`, which is one of `of`, that holds within this range. `None`: it always does.
    pub fn condition(self, of: Range) -> Option<String> {
        let begins_late = self.first > of.first;
        let ends_early = self
            .last
            .filter(|last| of.last.is_none_or(|end| *last < end));
        match (begins_late, ends_early) {
            (false, None) => None,
            (true, None) => Some(format!("version >= {}", self.first)),
            (false, Some(last)) => Some(format!("version <= {last}")),
            (true, Some(last)) if last == self.first => Some(format!("version == {last}")),
            (true, Some(last)) => Some(format!("({}..={last}).contains(&version)", self.first)),
        }
    }

    /// Whether any version lies in both.
    pub fn meets(self, other: Range) -> bool {
        let before = |one: Range, two: Range| one.last.is_some_and(|last| last < two.first);
        !before(self, other) && !before(other, self)
    }
}

/// As it is read.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}+", self.first),
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}-{last}", self.first),
        }
    }
}
