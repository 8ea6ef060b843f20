//! A request whose parts are answered apart, by several cores: when it is complete, and when a part that waits should
//! be hurried.
//!
//! Owns: which parts have answered and how many bytes they brought. Not here: the answers themselves, which the
//! connection's core keeps in the order of the request's entries, and time, since each part has its own deadline.
//!
//! A fetch of several parts is parked in several places. Each place would wait for `bytes_min` on its own, although
//! the answer needs them in total only; so as soon as enough has come together, or a part has an error to report, the
//! others are hurried, once.

/// What to do after a part has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// Wait for the others.
    Wait,
    /// Hurry the others, then wait for them.
    Hurry,
    /// Every part has answered.
    Complete,
}

/// One request in parts.
#[derive(Clone, Debug)]
pub struct Gather {
    waiting: u32,
    bytes_min: u64,
    bytes: u64,
    hurried: bool,
}

impl Gather {
    /// A request of `parts` parts that wants at least `bytes_min` bytes in total. Requests that do not park ask for
    /// none and are never hurried.
    pub fn new(parts: u32, bytes_min: u32) -> Self {
        Self {
            waiting: parts,
            bytes_min: u64::from(bytes_min),
            bytes: 0,
            hurried: bytes_min == 0,
        }
    }

    /// A part has answered with so many bytes, or with an error.
    ///
    /// # Panics
    ///
    /// If more parts answer than there are.
    pub fn answered(&mut self, bytes: u64, is_error: bool) -> Gathering {
        assert!(self.waiting > 0, "a part answers once");
        self.waiting -= 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.waiting == 0 {
            return Gathering::Complete;
        }
        let enough = is_error || self.bytes >= self.bytes_min;
        if enough && !std::mem::replace(&mut self.hurried, true) {
            return Gathering::Hurry;
        }
        Gathering::Wait
    }

    /// Parts that have not answered.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_hurried_once_when_there_is_enough_in_total() {
        let mut gather = Gather::new(4, 100);
        assert_eq!(gather.answered(60, false), Gathering::Wait);
        assert_eq!(gather.answered(40, false), Gathering::Hurry);
        assert_eq!(gather.answered(500, false), Gathering::Wait);
        assert_eq!(gather.answered(0, false), Gathering::Complete);
    }

    #[test]
    fn an_error_hurries_and_a_request_that_never_parks_does_not() {
        let mut fetch = Gather::new(2, 1);
        assert_eq!(fetch.answered(0, true), Gathering::Hurry);
        assert_eq!(fetch.answered(0, false), Gathering::Complete);
        let mut produce = Gather::new(2, 0);
        assert_eq!(produce.answered(0, false), Gathering::Wait);
        assert_eq!(produce.answered(0, false), Gathering::Complete);
    }
}
