//! Acknowledgements event by event, where drivers count batch by batch.

use crate::workload::Workload;

/// Acknowledged events that are not yet counted as part of a batch.
pub struct Acknowledged {
    events_a_batch: u64,
    events: u64,
}

impl Acknowledged {
    /// None yet.
    pub fn new(workload: &Workload) -> Self {
        Self::in_batches_of(workload.events_a_batch as u64)
    }

    /// None yet, of batches of `events`.
    pub fn in_batches_of(events: u64) -> Self {
        Acknowledged {
            events_a_batch: events,
            events: 0,
        }
    }

    /// So many more events were acknowledged.
    pub fn add(&mut self, events: u64) {
        self.events += events;
    }

    /// The batches that are whole by now; what is left over counts for the next one.
    pub fn whole_batches(&mut self) -> u64 {
        let batches = self.events / self.events_a_batch;
        self.events %= self.events_a_batch;
        batches
    }
}
