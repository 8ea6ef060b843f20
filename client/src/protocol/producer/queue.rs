//! The batches of one partition on their way to its leader: order, sequence numbers, repetition.
//!
//! Owns: the open batch and the sealed ones, and what is known of each one's fate.
//! Not here: connections, time-outs of requests, records (`machine`).
//!
//! Invariants:
//! 1. Batches are sent, repeated and reported in the order in which they were begun.
//! 2. Idempotent: a batch keeps its sequence number through every repetition, so that the broker appends it once. It
//!    gets another number, under another producer id, only if no transmission of it can have been appended.
//! 3. Nothing is repeated while anything of the partition is in flight.
//! 4. At most `in_flight_max` batches were sent from the oldest one on whose fate is not known, answered ones among
//!    them: answers come in any order, and the broker recognizes a repetition only among its last batches. Only one
//!    until the broker has shown that it knows the producer id here: of an id that it does not know it takes any
//!    sequence number, so that a later batch could pass an earlier one that was refused.
//! 5. Every batch is reported exactly once. An error other than [`Error::UnknownOutcome`] says that it was not
//!    appended.
//!
//! How a sequence ends: when a batch is refused for good, or given up on, the sequence has a gap, and what follows it
//! under the same id would be refused. Once nothing is in flight the id is retired here: batches that were certainly
//! not appended go on under a new id, others are reported as unknown. When the broker itself finds a gap that this
//! side knows nothing of, acknowledged records may be lost; then everything queued fails, so that nothing follows the
//! hole unnoticed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tackboard_schema::record_batch::{BatchBuilder, Compression};
use tackboard_schema::{Offset, PartitionIndex};

use super::batch::{Batch, BatchId, BatchState, Identity, Stamp, sequence_after};
use crate::error::{Error, Result};
use crate::protocol::connection::ConnectionId;
use crate::protocol::time::Now;

/// What a broker's answer means for a batch.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It is in the log, and has been since now or since an earlier transmission.
    Appended(Option<Offset>),
    /// Its sequence number does not follow the last one the broker has.
    OutOfOrder(Error),
    /// The broker will take nothing under this producer id any more.
    Fenced(Error),
    /// To be sent again.
    Retry {
        fault: Error,
        /// It may have been appended all the same.
        maybe_appended: bool,
    },
    /// Refused for good.
    Failed { fault: Error, maybe_appended: bool },
}

/// A batch whose fate is known.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) batch: BatchId,
    pub(crate) record_count: u32,
    pub(crate) batch_bytes: usize,
    pub(crate) buffered_bytes: usize,
    pub(crate) outcome: Result<Option<Offset>>,
}

/// The batch that takes records.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    pub(crate) id: BatchId,
    pub(crate) builder: BatchBuilder,
    pub(crate) created: Now,
    /// It need not wait for more records.
    pub(crate) is_due: bool,
}

#[derive(Debug)]
pub(crate) struct PartitionQueue {
    topic: Arc<str>,
    partition: PartitionIndex,
    is_idempotent: bool,
    pub(crate) open: Option<OpenBatch>,
    batches: VecDeque<Batch>,
    in_flight: usize,
    /// Where the batches in flight were sent.
    connection: Option<ConnectionId>,
    identity: Option<Identity>,
    /// Not to be used here again.
    retired: Option<Identity>,
    next_sequence: i32,
    /// A batch was acknowledged under the identity since the last loss of a connection.
    is_proven: bool,
    /// Batches were refused and wait for what is in flight.
    is_retrying: bool,
    /// A number of the sequence was used up by a batch that failed.
    has_gap: bool,
    /// The broker found a gap of its own.
    broken: Option<Error>,
    /// Failures since the last success.
    failures: u32,
    pause_due: bool,
    pub(crate) blocked_until: Now,
    /// Number of the metadata request to wait for.
    pub(crate) metadata_needed: u64,
}

impl PartitionQueue {
    pub(crate) fn new(topic: Arc<str>, partition: PartitionIndex, is_idempotent: bool) -> Self {
        Self {
            topic,
            partition,
            is_idempotent,
            open: None,
            batches: VecDeque::new(),
            in_flight: 0,
            connection: None,
            identity: None,
            retired: None,
            next_sequence: 0,
            is_proven: false,
            is_retrying: false,
            has_gap: false,
            broken: None,
            failures: 0,
            pause_due: false,
            blocked_until: Now::default(),
            metadata_needed: 0,
        }
    }

    /// When the oldest batch was begun.
    pub(crate) fn oldest(&self) -> Option<Now> {
        self.batches
            .front()
            .map(|batch| batch.created)
            .or(self.open.as_ref().map(|open| open.created))
    }

    /// Closes the open batch; returns its builder, emptied, for the next one.
    pub(crate) fn seal(&mut self, compression: Compression) -> Option<BatchBuilder> {
        let OpenBatch {
            id,
            mut builder,
            created,
            ..
        } = self.open.take()?;
        let (record_count, buffered_bytes) = (builder.record_count() as u32, builder.size());
        let bytes = Bytes::from(builder.finish(None, compression));
        self.batches.push_back(Batch {
            id,
            bytes,
            record_count,
            buffered_bytes,
            created,
            state: BatchState::Waiting,
            stamp: None,
            maybe_appended: false,
            last_fault: None,
        });
        Some(builder)
    }

    /// Whether the next batch may go out as far as this partition is concerned.
    pub(crate) fn may_send(&self, in_flight_max: usize) -> bool {
        let is_window_known = self.is_idempotent && self.is_proven;
        let window = if is_window_known { in_flight_max } else { 1 };
        let is_settling = self.is_retrying || self.has_gap || self.broken.is_some();
        !is_settling && self.sent_since_oldest_unfinished() < window
    }

    /// How many batches were sent from the oldest one on whose fate is not known, whatever became of the others.
    fn sent_since_oldest_unfinished(&self) -> usize {
        let sent = self.next_waiting().unwrap_or(self.batches.len());
        let unfinished = self.batches.iter().take(sent);
        unfinished.skip_while(|batch| batch.is_done()).count()
    }

    /// Whether a sealed batch waits to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        self.next_waiting().is_some()
    }

    fn next_waiting(&self) -> Option<usize> {
        self.batches
            .iter()
            .position(|batch| matches!(batch.state, BatchState::Waiting))
    }

    /// The length of the batch that [`Self::take`] would send.
    pub(crate) fn next_length(&self) -> Option<usize> {
        self.next_waiting()
            .map(|index| self.batches[index].bytes.len())
    }

    /// Whether another identity than `current` is needed before the next batch can be sent.
    pub(crate) fn needs_identity(&self, current: Option<Identity>) -> bool {
        let next = self.next_waiting().map(|index| &self.batches[index]);
        self.is_idempotent
            && self.identity.is_none()
            && next.is_some_and(|batch| batch.stamp.is_none())
            && (current.is_none() || current == self.retired)
    }

    /// Whether batches may be sent on this connection: not while others are in flight elsewhere.
    pub(crate) fn may_use(&self, connection: ConnectionId) -> bool {
        self.in_flight == 0 || self.connection == Some(connection)
    }

    /// Sends the next batch: marks it as in flight, and returns its bytes.
    ///
    /// Only after [`Self::may_send`], [`Self::may_use`], and with an identity if one is needed.
    pub(crate) fn take(
        &mut self,
        connection: ConnectionId,
        current: Option<Identity>,
    ) -> Option<(BatchId, Bytes)> {
        let index = self.next_waiting()?;
        if self.is_idempotent && self.batches[index].stamp.is_none() {
            let identity = self.identity.or(current)?;
            self.identity = Some(identity);
            let batch = &mut self.batches[index];
            batch.stamp(Stamp {
                identity,
                base_sequence: self.next_sequence,
            });
            self.next_sequence = sequence_after(self.next_sequence, batch.record_count);
        }
        self.in_flight += 1;
        self.connection = Some(connection);
        let batch = &mut self.batches[index];
        batch.state = BatchState::InFlight;
        Some((batch.id, batch.bytes.clone()))
    }

    /// No answer is expected for the batch: with acks 0 nothing more is known of it.
    pub(crate) fn unanswerable(&mut self, id: BatchId) {
        if let Some(index) = self.landed(id) {
            self.batches[index].state = BatchState::Done(Ok(None));
        }
    }

    /// The batch in flight with this id, which is so no longer.
    fn landed(&mut self, id: BatchId) -> Option<usize> {
        let is_it = |batch: &Batch| batch.id == id && matches!(batch.state, BatchState::InFlight);
        let index = self.batches.iter().position(is_it)?;
        self.in_flight -= 1;
        Some(index)
    }

    /// The broker has answered about a batch.
    pub(crate) fn answered(&mut self, id: BatchId, verdict: Verdict) {
        let Some(index) = self.landed(id) else { return };
        match verdict {
            Verdict::Appended(offset) => {
                self.batches[index].state = BatchState::Done(Ok(offset));
                self.is_proven = true;
                self.failures = 0;
            }
            Verdict::OutOfOrder(fault) => {
                let follows_unfinished = self
                    .batches
                    .iter()
                    .take(index)
                    .any(|batch| !batch.is_done());
                if follows_unfinished || self.has_gap || self.broken.is_some() {
                    self.batches[index].state = BatchState::Refused;
                    self.is_retrying = true;
                } else {
                    self.fail(index, fault.clone());
                    self.broken = Some(fault);
                }
            }
            Verdict::Fenced(fault) => {
                self.fail(index, fault.clone());
                self.broken = Some(fault);
            }
            Verdict::Retry {
                fault,
                maybe_appended,
            } => self.refused(index, fault, maybe_appended),
            Verdict::Failed {
                fault,
                maybe_appended,
            } => {
                self.batches[index].maybe_appended |= maybe_appended;
                self.has_gap |= self.is_idempotent;
                self.fail(index, fault);
            }
        }
    }

    /// The connection ended before the broker answered about a batch.
    pub(crate) fn lost(&mut self, id: BatchId, fault: Error) {
        if let Some(index) = self.landed(id) {
            self.is_proven = false;
            self.refused(index, fault, true);
        }
    }

    fn refused(&mut self, index: usize, fault: Error, maybe_appended: bool) {
        let batch = &mut self.batches[index];
        batch.maybe_appended |= maybe_appended;
        if batch.maybe_appended && !self.is_idempotent {
            // Sending it again could append it twice.
            return self.fail(index, fault);
        }
        batch.last_fault = Some(fault.into());
        batch.state = BatchState::Refused;
        self.is_retrying = true;
        self.pause_due = true;
    }

    /// Ends a batch with `fault`, unless it may have been appended all the same.
    fn fail(&mut self, index: usize, fault: Error) {
        let batch = &mut self.batches[index];
        let outcome = match batch.maybe_appended {
            true => unknown_outcome(
                &self.topic,
                self.partition,
                batch.record_count,
                Some(fault.into()),
            ),
            false => fault,
        };
        batch.state = BatchState::Done(Err(outcome));
    }

    /// Draws the consequences once nothing is in flight. Returns how many failures there have been in a row if the
    /// partition has to pause.
    pub(crate) fn settle(&mut self) -> Option<u32> {
        if self.in_flight > 0 {
            return None;
        }
        if let Some(cause) = self.broken.take() {
            let (topic, partition) = (self.topic.clone(), self.partition);
            self.fail_all(|record_count| Error::SequenceBroken {
                topic: topic.clone(),
                partition,
                record_count,
                cause: cause.clone().into(),
            });
        } else if self.has_gap {
            self.retire_identity();
        }
        if std::mem::take(&mut self.is_retrying) {
            for batch in self
                .batches
                .iter_mut()
                .filter(|batch| matches!(batch.state, BatchState::Refused))
            {
                batch.state = BatchState::Waiting;
            }
        }
        if !std::mem::take(&mut self.pause_due) {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        Some(self.failures)
    }

    /// Ends the sequence. Batches that were certainly not appended will be sent under another identity.
    fn retire_identity(&mut self) {
        assert_eq!(
            self.in_flight, 0,
            "an identity is retired only when nothing is in flight under it"
        );
        for index in 0..self.batches.len() {
            let batch = &mut self.batches[index];
            if batch.is_done() || batch.stamp.is_none() {
                continue;
            }
            if batch.maybe_appended {
                let last_fault = batch.last_fault.take();
                let outcome =
                    unknown_outcome(&self.topic, self.partition, batch.record_count, last_fault);
                batch.state = BatchState::Done(Err(outcome));
            } else {
                batch.stamp = None;
                batch.state = BatchState::Waiting;
            }
        }
        self.retired = self.identity.take().or(self.retired);
        self.next_sequence = 0;
        self.is_proven = false;
        self.has_gap = false;
    }

    /// Ends everything that is queued, the open batch too, with an error made from the number of records.
    ///
    /// Only when nothing is in flight.
    pub(crate) fn fail_all(&mut self, error: impl Fn(u32) -> Error) {
        self.seal(Compression::None);
        for index in 0..self.batches.len() {
            if !self.batches[index].is_done() {
                let fault = error(self.batches[index].record_count);
                self.fail(index, fault);
            }
        }
        self.retire_identity();
        self.is_retrying = false;
    }

    /// The producer ends: nothing more is waited for.
    pub(crate) fn abandon(&mut self, now: Now, last: Option<&Error>) {
        for batch in self
            .batches
            .iter_mut()
            .filter(|batch| matches!(batch.state, BatchState::InFlight))
        {
            batch.maybe_appended = true;
            batch.state = BatchState::Refused;
        }
        self.in_flight = 0;
        let waited = self
            .oldest()
            .map_or(Duration::ZERO, |oldest| now.since(oldest));
        let (topic, partition, last) = (
            self.topic.clone(),
            self.partition,
            last.cloned().map(Box::new),
        );
        self.fail_all(|record_count| Error::NotSent {
            topic: topic.clone(),
            partition,
            record_count,
            waited,
            last: last.clone(),
        });
    }

    /// Nothing is in flight, so that everything may be ended.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_flight == 0
    }

    /// Gives up on batches that were begun more than `timeout` ago. Only settled partitions are looked at: what is in
    /// flight ends by its own deadline.
    pub(crate) fn expire(&mut self, now: Now, timeout: Duration) {
        if self.in_flight > 0 {
            return;
        }
        if self
            .open
            .as_ref()
            .is_some_and(|open| now.since(open.created) >= timeout)
        {
            self.seal(Compression::None);
        }
        let mut breaks_sequence = false;
        for index in 0..self.batches.len() {
            let batch = &mut self.batches[index];
            if batch.is_done() {
                continue;
            }
            if now.since(batch.created) < timeout {
                break;
            }
            breaks_sequence |= batch.stamp.is_some();
            let last = batch.last_fault.take();
            let (record_count, waited) = (batch.record_count, now.since(batch.created));
            let outcome = match batch.maybe_appended {
                true => unknown_outcome(&self.topic, self.partition, record_count, last),
                false => Error::NotSent {
                    topic: self.topic.clone(),
                    partition: self.partition,
                    record_count,
                    waited,
                    last,
                },
            };
            batch.state = BatchState::Done(Err(outcome));
        }
        if breaks_sequence {
            self.retire_identity();
        }
    }

    /// What will be said of batches that are given up on without having been sent.
    pub(crate) fn note_fault(&mut self, fault: &Error) {
        let unsent = self
            .batches
            .iter_mut()
            .filter(|batch| !batch.is_done() && batch.last_fault.is_none());
        unsent.for_each(|batch| batch.last_fault = Some(fault.clone().into()));
    }

    /// The next batch whose fate is known and that follows no batch whose fate is not.
    pub(crate) fn completed(&mut self) -> Option<Completion> {
        if !self.batches.front()?.is_done() {
            return None;
        }
        let batch = self.batches.pop_front()?;
        let BatchState::Done(outcome) = batch.state else {
            unreachable!("it was just found to be done")
        };
        Some(Completion {
            batch: batch.id,
            record_count: batch.record_count,
            batch_bytes: batch.bytes.len(),
            buffered_bytes: batch.buffered_bytes,
            outcome,
        })
    }
}

fn unknown_outcome(
    topic: &Arc<str>,
    partition: PartitionIndex,
    record_count: u32,
    last: Option<Box<Error>>,
) -> Error {
    Error::UnknownOutcome {
        topic: topic.clone(),
        partition,
        record_count,
        last,
    }
}
