//! What the CPUs give: checksums, and messages from core to core.

use std::{
    hint::black_box,
    io,
    time::{Duration, Instant},
};

use serde::Serialize;
use tackboard_runtime::{Watchdog, inbox};

use super::executor;
use crate::figure::{Latencies, Percentiles};

/// The bytes that are checksummed: a batch, which fits the nearest caches.
const BATCH: usize = 16 << 10;
/// Checksums between two looks at the clock.
const CHECKSUMS_A_LOOK: u32 = 64;

/// CRC-32C over batches that lie in the cache: bytes per second on one CPU.
pub fn crc32c_bytes_per_second(lasting: Duration) -> f64 {
    let batch = vec![0x5a; BATCH];
    let (started, mut bytes) = (Instant::now(), 0u64);
    while started.elapsed() < lasting {
        for _ in 0..CHECKSUMS_A_LOOK {
            black_box(crc32c::crc32c(black_box(&batch)));
        }
        bytes += u64::from(CHECKSUMS_A_LOOK) * BATCH as u64;
    }
    bytes as f64 / started.elapsed().as_secs_f64()
}

/// Round trips of a message through the inboxes of two cores.
#[derive(Clone, Debug, Serialize)]
pub struct Mailbox {
    /// Round trips that were measured.
    pub count: u64,
    /// Of a round trip.
    pub latency: Percentiles,
    /// Every one, for the picture.
    #[serde(skip)]
    pub all: Latencies,
}

/// Measures with both cores otherwise idle.
///
/// # Errors
/// When an executor could not start.
pub fn mailbox(cpus: (usize, usize), lasting: Duration) -> io::Result<Mailbox> {
    let watchdog = Watchdog::start();
    let (to_server, questions) = inbox::<Instant>(16);
    let (to_client, answers) = inbox::<Instant>(16);
    let server = executor::start(cpus.0, &watchdog, move |core| async move {
        while let Some(question) = questions.next().await {
            core.progress.turn();
            // The client asks one at a time: there is room, unless it has gone.
            let _ = to_client.send(question);
        }
    })?;
    let client = executor::start(cpus.1, &watchdog, move |core| async move {
        let (mut latencies, mut count) = (Latencies::new(), 0);
        let started = Instant::now();
        while started.elapsed() < lasting {
            if to_server.send(Instant::now()).is_err() {
                break;
            }
            let Some(asked_at) = answers.next().await else {
                break;
            };
            core.progress.turn();
            latencies.record(asked_at.elapsed());
            count += 1;
        }
        Mailbox {
            count,
            latency: latencies.percentiles(),
            all: latencies,
        }
    })?;
    let measured = client.join()?;
    server.join()?;
    Ok(measured)
}
