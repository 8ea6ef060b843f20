//! What is sent: the events of a batch, the same bytes for every server.

use std::fmt;

use serde::Serialize;
use tackboard_schema::{
    TimestampMs,
    record_batch::{BatchBuilder, Compression},
};

/// The time that all events carry.
const TIMESTAMP: TimestampMs = TimestampMs(1_700_000_000_000);

/// What is sent.
#[derive(Clone, Debug, Serialize)]
pub struct Workload {
    /// Its name in tables and files.
    pub name: &'static str,
    /// Bytes of the value of each event; there is no key.
    pub event_bytes: usize,
    /// Events in a request.
    pub events_a_batch: usize,
    /// Connections, each with a log of its own.
    pub connections: usize,
    /// Whether it goes as fast as answers come, or by a schedule.
    pub pace: Pace,
}

/// When a request is sent.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As soon as fewer than so many are unanswered on its connection.
    InFlight(usize),
    /// By a schedule of so many events per second over all connections, whatever the answers do.
    EventsPerSecond(u64),
    /// Nothing is sent any more once each log holds so many bytes: then they are read, over and over, one request at a
    /// time on each connection.
    Read {
        /// Bytes of each log, batch headers included.
        log_bytes: u64,
        /// How far each is read, from its start.
        read_bytes: u64,
    },
}

/// As the heading of a table says it.
impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::InFlight(window) => write!(f, "{window} in flight on each"),
            Pace::EventsPerSecond(rate) => write!(f, "{rate} events/s by schedule"),
            Pace::Read {
                log_bytes,
                read_bytes,
            } => write!(
                f,
                "reading the first {} MiB of logs of {} MiB each",
                read_bytes >> 20,
                log_bytes >> 20
            ),
        }
    }
}

/// The values of one batch: no two alike, and nothing that a codec would shorten.
pub fn event_values(workload: &Workload) -> impl Iterator<Item = Vec<u8>> {
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    let event_bytes = workload.event_bytes;
    (0..workload.events_a_batch).map(move |_| {
        let next = || {
            // xorshift64
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            noise as u8
        };
        std::iter::repeat_with(next).take(event_bytes).collect()
    })
}

/// The batch as a Kafka record batch, without a producer id: the same bytes are sent over and over, and none of them
/// is a retry.
pub fn record_batch(workload: &Workload) -> Vec<u8> {
    let mut builder = BatchBuilder::new(TIMESTAMP);
    for value in event_values(workload) {
        let appended = builder.append(TIMESTAMP, None, Some(&value), &[]);
        appended.expect("a workload's batch is far below the longest");
    }
    builder.finish(None, Compression::None)
}

/// Events of `event_bytes` that fit a record batch of `batch_bytes`, with its header and the framing of records.
pub fn events_that_fit(event_bytes: usize, batch_bytes: usize) -> usize {
    let mut builder = BatchBuilder::new(TIMESTAMP);
    let value = vec![0; event_bytes];
    while builder.size_after(TIMESTAMP, None, Some(&value), &[]) <= batch_bytes {
        let appended = builder.append(TIMESTAMP, None, Some(&value), &[]);
        appended.expect("it was asked whether it fits");
    }
    builder.record_count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_events_as_fit() {
        let mut workload = Workload {
            name: "test",
            event_bytes: 100,
            events_a_batch: events_that_fit(100, 16 << 10),
            connections: 1,
            pace: Pace::InFlight(1),
        };
        assert!(record_batch(&workload).len() <= 16 << 10);
        workload.events_a_batch += 1;
        assert!(record_batch(&workload).len() > 16 << 10);
    }
}
