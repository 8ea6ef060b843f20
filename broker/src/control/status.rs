//! What the HTTP server may say about the broker's state, without asking anybody.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Where the broker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Cores are opening their partitions.
    Starting,
    /// All cores act on an image.
    Ready,
    /// No new work is taken.
    Stopping,
}

/// Written by the service, read by HTTP handlers; both run on the control thread.
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

    pub(super) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
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
