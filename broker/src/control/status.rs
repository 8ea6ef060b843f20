//! What the HTTP server may say about the broker's state, without asking anybody.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Where the broker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Cores are opening their partitions, or whoever starts the broker is not done.
    Starting,
    /// It serves, and a request to stop is one.
    Ready,
    /// No new work is taken.
    Stopping,
}

/// Written by the service and, once, by whoever starts the broker; read by HTTP handlers.
#[derive(Debug, Default)]
pub(super) struct Status {
    phase: AtomicU8,
    metadata_version: AtomicU64,
    topics: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Status {
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Stopping,
        }
    }

    /// The start is over, unless the stop has begun.
    pub(super) fn set_ready(&self) {
        let (from, to) = (Phase::Starting as u8, Phase::Ready as u8);
        let _ = (self.phase).compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn set_stopping(&self) {
        self.phase.store(Phase::Stopping as u8, Ordering::Relaxed);
    }

    pub(super) fn set_metadata(&self, version: u64, topics: usize) {
        self.metadata_version.store(version, Ordering::Relaxed);
        self.topics.store(topics as u64, Ordering::Relaxed);
    }

    pub(super) fn metadata_version(&self) -> u64 {
        self.metadata_version.load(Ordering::Relaxed)
    }

    pub(super) fn topics(&self) -> u64 {
        self.topics.load(Ordering::Relaxed)
    }

    /// The first failure stays: later ones follow from it.
    pub(super) fn set_failure(&self, reason: &str) {
        let mut failure = self.failure.lock().expect("no holder panics");
        failure.get_or_insert_with(|| reason.to_owned());
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().expect("no holder panics").clone()
    }
}
