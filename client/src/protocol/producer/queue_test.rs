//! One partition's queue, step by step. What holds over any order of events is in `tests/producer_under_faults.rs`.

use std::time::Duration;

use tackboard_schema::record_batch::{BatchBuilder, BatchHeader, Compression};
use tackboard_schema::{ErrorCode, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs};

use super::batch::{BatchId, Identity};
use super::queue::{OpenBatch, PartitionQueue, Verdict};
use crate::error::{Error, Refusal, Result};
use crate::protocol::connection::ConnectionId;
use crate::protocol::time::Now;

const CONNECTION: ConnectionId = ConnectionId(1);
const FIRST: Identity = identity(7);
const SECOND: Identity = identity(8);

const fn identity(id: i64) -> Identity {
    Identity {
        id: ProducerId(id),
        epoch: ProducerEpoch(0),
    }
}

fn refused(code: ErrorCode) -> Error {
    Error::Refused(Refusal {
        api: "Produce",
        address: "b:1".into(),
        topic: None,
        partition: None,
        code,
        message: "".into(),
    })
}

fn appended(offset: i64) -> Verdict {
    Verdict::Appended(Some(Offset(offset)))
}

fn out_of_order() -> Verdict {
    Verdict::OutOfOrder(refused(ErrorCode::OutOfOrderSequenceNumber))
}

fn at(seconds: u64) -> Now {
    Now(Duration::from_secs(seconds))
}

struct Partition {
    queue: PartitionQueue,
    next_batch: u64,
}

impl Partition {
    fn new(is_idempotent: bool) -> Self {
        let queue = PartitionQueue::new("t".into(), PartitionIndex(0), is_idempotent);
        Self {
            queue,
            next_batch: 0,
        }
    }

    /// A queue whose first batch was acknowledged, so that the window is open.
    fn proven() -> Self {
        let mut partition = Self::new(true);
        partition.add(3, at(0));
        assert_eq!(partition.send(FIRST), [(0, 7, 0)]);
        partition.queue.answered(BatchId(0), appended(0));
        assert_eq!(partition.settle(), [Ok(Some(0))]);
        partition
    }

    fn add(&mut self, records: usize, created: Now) {
        let mut builder = BatchBuilder::new(TimestampMs(0));
        for _ in 0..records {
            builder
                .append(TimestampMs(0), None, Some(b"v"), &[])
                .unwrap();
        }
        let id = BatchId(self.next_batch);
        self.next_batch += 1;
        self.queue.open = Some(OpenBatch {
            id,
            builder,
            created,
            is_due: false,
        });
        self.queue.seal(Compression::None);
    }

    /// Sends all that may be sent: batch, producer id, first sequence of each.
    fn send(&mut self, current: Identity) -> Vec<(u64, i64, i32)> {
        let mut sent = Vec::new();
        while self.queue.may_send(5) && self.queue.has_waiting() {
            assert!(!self.queue.needs_identity(Some(current)));
            let (id, bytes) = self.queue.take(CONNECTION, Some(current)).unwrap();
            let header = BatchHeader::read(&bytes).unwrap();
            sent.push((id.0, header.producer_id.0, header.base_sequence));
        }
        sent
    }

    /// What became of batches, by kind of error.
    fn settle(&mut self) -> Vec<Result<Option<i64>, &'static str>> {
        self.queue.settle();
        let completions = std::iter::from_fn(|| self.queue.completed());
        let outcomes = completions.map(|completion| match completion.outcome {
            Ok(offset) => Ok(offset.map(|offset| offset.0)),
            Err(Error::UnknownOutcome { .. }) => Err("unknown"),
            Err(Error::SequenceBroken { .. }) => Err("broken"),
            Err(Error::NotSent { .. }) => Err("not sent"),
            Err(_) => Err("refused"),
        });
        outcomes.collect()
    }
}

#[test]
fn one_batch_until_the_broker_knows_the_producer_then_five() {
    let mut partition = Partition::new(true);
    (0..8).for_each(|_| partition.add(2, at(0)));
    assert_eq!(partition.send(FIRST), [(0, 7, 0)]);
    partition.queue.answered(BatchId(0), appended(0));
    let wanted = [(1, 7, 2), (2, 7, 4), (3, 7, 6), (4, 7, 8), (5, 7, 10)];
    assert_eq!(partition.send(FIRST), wanted);
    // After a loss again only one, with the sequence that it had.
    for id in 1..=5 {
        let fault = Error::Closed;
        partition.queue.lost(BatchId(id), fault);
    }
    assert_eq!(partition.settle(), [Ok(Some(0))]);
    assert_eq!(partition.send(FIRST), [(1, 7, 2)]);
}

#[test]
fn answers_in_any_order_are_reported_in_order() {
    let mut partition = Partition::proven();
    (0..3).for_each(|_| partition.add(1, at(0)));
    partition.send(FIRST);
    partition.queue.answered(BatchId(3), appended(5));
    partition.queue.answered(BatchId(2), appended(4));
    assert_eq!(partition.settle(), []);
    partition.queue.answered(BatchId(1), appended(3));
    assert_eq!(partition.settle(), [Ok(Some(3)), Ok(Some(4)), Ok(Some(5))]);
}

#[test]
fn the_window_begins_at_the_oldest_batch_whose_fate_is_not_known() {
    let mut partition = Partition::proven();
    (0..7).for_each(|_| partition.add(1, at(0)));
    assert_eq!(partition.send(FIRST).len(), 5);
    // Batch 1 went in a request with batches of other partitions, and waits for them to be answered. The broker
    // remembers the last five: a sixth would make it forget batch 1, which then could not be repeated.
    for id in 2..=5 {
        partition
            .queue
            .answered(BatchId(id), appended(id as i64 + 2));
    }
    assert_eq!(partition.send(FIRST), []);
    partition.queue.answered(BatchId(1), appended(3));
    assert_eq!(partition.send(FIRST), [(6, 7, 8), (7, 7, 9)]);
}

#[test]
fn a_refused_batch_and_those_behind_it_go_again_in_order() {
    let mut partition = Partition::proven();
    (0..3).for_each(|_| partition.add(1, at(0)));
    let first = partition.send(FIRST);
    let fault = refused(ErrorCode::StorageFull);
    let maybe_appended = false;
    partition.queue.answered(
        BatchId(1),
        Verdict::Retry {
            fault,
            maybe_appended,
        },
    );
    assert_eq!(partition.send(FIRST), [], "not before the others landed");
    partition.queue.answered(BatchId(2), out_of_order());
    partition.queue.answered(BatchId(3), out_of_order());
    assert_eq!(partition.settle(), []);
    assert_eq!(partition.send(FIRST), first);
}

#[test]
fn a_batch_refused_for_good_costs_those_behind_it_nothing_but_the_producer_id() {
    let mut partition = Partition::proven();
    (0..3).for_each(|_| partition.add(1, at(0)));
    partition.send(FIRST);
    let fault = refused(ErrorCode::InvalidRecord);
    let maybe_appended = false;
    partition.queue.answered(
        BatchId(1),
        Verdict::Failed {
            fault,
            maybe_appended,
        },
    );
    partition.queue.answered(BatchId(2), out_of_order());
    partition.queue.answered(BatchId(3), out_of_order());
    assert_eq!(partition.settle(), [Err("refused")]);
    assert!(
        partition.queue.needs_identity(Some(FIRST)),
        "the old one is used up"
    );
    assert_eq!(partition.send(SECOND), [(2, 8, 0)]);
}

#[test]
fn a_gap_that_only_the_broker_knows_of_fails_everything_queued() {
    let mut partition = Partition::proven();
    (0..3).for_each(|_| partition.add(1, at(0)));
    partition.send(FIRST);
    partition.queue.answered(BatchId(1), out_of_order());
    partition.queue.answered(BatchId(2), out_of_order());
    partition.queue.lost(BatchId(3), Error::Closed);
    partition.add(1, at(0));
    let wanted = [Err("refused"), Err("broken"), Err("unknown"), Err("broken")];
    assert_eq!(partition.settle(), wanted);
    // What is sent from now on begins a sequence of its own.
    partition.add(1, at(1));
    assert!(partition.queue.needs_identity(Some(FIRST)));
    assert_eq!(partition.send(SECOND), [(5, 8, 0)]);
}

#[test]
fn a_batch_that_is_given_up_on_takes_with_it_what_may_have_been_appended() {
    let mut partition = Partition::proven();
    partition.add(1, at(0));
    partition.add(1, at(5));
    partition.send(FIRST);
    partition.add(1, at(5));
    partition.queue.lost(BatchId(1), Error::Closed);
    partition.queue.lost(BatchId(2), Error::Closed);
    assert_eq!(partition.settle(), []);
    partition.queue.expire(at(9), Duration::from_secs(10));
    assert_eq!(partition.settle(), []);
    partition.queue.expire(at(10), Duration::from_secs(10));
    assert_eq!(partition.settle(), [Err("unknown"), Err("unknown")]);
    assert_eq!(
        partition.send(SECOND),
        [(3, 8, 0)],
        "never sent, so safe to send"
    );
}

#[test]
fn what_was_never_sent_is_given_up_on_without_doubt() {
    let mut partition = Partition::proven();
    partition.add(4, at(0));
    partition.add(2, at(5));
    partition.queue.expire(at(10), Duration::from_secs(10));
    assert_eq!(partition.settle(), [Err("not sent")]);
    assert_eq!(
        partition.send(FIRST),
        [(2, 7, 3)],
        "no number of the sequence was used"
    );
}

#[test]
fn without_idempotence_nothing_is_repeated_that_may_have_been_appended() {
    let mut partition = Partition::new(false);
    partition.add(1, at(0));
    partition.add(1, at(0));
    assert_eq!(partition.send(FIRST), [(0, -1, -1)], "one at a time");
    let fault = refused(ErrorCode::StorageFull);
    partition.queue.answered(
        BatchId(0),
        Verdict::Retry {
            fault,
            maybe_appended: false,
        },
    );
    assert_eq!(partition.settle(), []);
    assert_eq!(partition.send(FIRST), [(0, -1, -1)]);
    partition.queue.lost(BatchId(0), Error::Closed);
    assert_eq!(partition.settle(), [Err("unknown")]);
    assert_eq!(partition.send(FIRST), [(1, -1, -1)]);
}

#[test]
fn an_abandoned_producer_says_what_it_knows() {
    let mut partition = Partition::proven();
    partition.add(1, at(0));
    partition.send(FIRST);
    partition.add(1, at(0));
    partition.queue.abandon(at(1), None);
    assert_eq!(partition.settle(), [Err("unknown"), Err("not sent")]);
}
