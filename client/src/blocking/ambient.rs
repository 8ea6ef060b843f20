//! What a client takes from its surroundings by itself: chance and the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

use tackboard_schema::TimestampMs;

use crate::error::{Error, Result};

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
