//! Time as the machines see it: passed in, never asked for.

use std::time::Duration;

/// Monotonic time since an arbitrary start that one client keeps for its whole life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now(pub Duration);

impl Now {
    /// This long after it.
    #[must_use]
    pub fn after(self, wait: Duration) -> Now {
        Now(self.0.saturating_add(wait))
    }

    /// How long it has been since `earlier`; zero if that is still to come.
    pub fn since(self, earlier: Now) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The earlier of two points in time, where either may be missing.
pub fn earliest(one: Option<Now>, other: Option<Now>) -> Option<Now> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
