//! Handles on what becomes of single records, at the cost of one allocation per batch.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::ambient::deadline_after;
use crate::error::Result;
use crate::record::{BatchReport, RecordPosition};

/// What became of a batch, for those who hold a handle on one of its records.
#[derive(Debug, Default)]
pub(super) struct Fate {
    report: Mutex<Option<BatchReport>>,
    known: Condvar,
}

impl Fate {
    pub(super) fn settle(&self, report: BatchReport) {
        *self
            .report
            .lock()
            .expect("no thread panics while it holds the lock") = Some(report);
        self.known.notify_all();
    }
}

/// A handle on one record that was sent. Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub(super) fate: Arc<Fate>,
    pub(super) index: u32,
}

impl Delivery {
    /// Waits until the record is delivered or has failed. That takes at most the producer's delivery time-out and a
    /// little; a record whose batch is not full is sent when its linger is over.
    pub fn wait(&self) -> Result<RecordPosition> {
        let mut report = self
            .fate
            .report
            .lock()
            .expect("no thread panics while it holds the lock");
        loop {
            if let Some(report) = &*report {
                return record_outcome(report, self.index);
            }
            report = self
                .fate
                .known
                .wait(report)
                .expect("no thread panics while it holds the lock");
        }
    }

    /// The same, but `None` when that takes longer than `timeout`.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<RecordPosition>> {
        let deadline = deadline_after(timeout);
        let mut report = self
            .fate
            .report
            .lock()
            .expect("no thread panics while it holds the lock");
        loop {
            if let Some(report) = &*report {
                return Some(record_outcome(report, self.index));
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            report = self
                .fate
                .known
                .wait_timeout(report, left)
                .expect("no thread panics while it holds the lock")
                .0;
        }
    }

    /// What became of it, if that is known.
    pub fn try_get(&self) -> Option<Result<RecordPosition>> {
        let report = self
            .fate
            .report
            .lock()
            .expect("no thread panics while it holds the lock");
        report
            .as_ref()
            .map(|report| record_outcome(report, self.index))
    }
}

/// What a batch's fate means for its record number `index`.
pub(crate) fn record_outcome(report: &BatchReport, index: u32) -> Result<RecordPosition> {
    let base_offset = report.outcome.clone()?;
    Ok(RecordPosition {
        topic: report.topic.clone(),
        partition: report.partition,
        offset: base_offset.map(|base_offset| base_offset.plus(i64::from(index))),
    })
}
