//! What a client takes from its surroundings by itself: chance, the time of day, and how long it waits.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tackboard_schema::TimestampMs;

use crate::error::{Error, Result};

/// For ever: thirty years, which every system's clock can count from now on.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// When a wait ends that begins now. What the clock can't count up to ([`Duration::MAX`]) is for ever.
pub(super) fn deadline_after(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(FOREVER)
}

/// A seed that differs from client to client.
pub(super) fn seed() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::System {
        what: "no random numbers",
        detail: error.to_string().into(),
    })
}

/// The timestamp of a record that has none of its own.
pub(super) fn wall_clock() -> TimestampMs {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    TimestampMs(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
