//! Sends what may be sent, and takes in what the brokers answer.
//!
//! Batches of many partitions that go to one connection share a request: one batch per partition, so that each result
//! belongs to one batch.

use std::sync::Arc;

use bytes::Bytes;
use tackboard_schema::native::{ProduceEntryHead, ProduceRequestHead};
use tackboard_schema::{Acks, ErrorCode, Offset, PartitionIndex};

use super::batch::{BatchId, Identity};
use super::machine::{ProducerMachine, Slot};
use super::queue::Verdict;
use crate::error::Error;
use crate::protocol::backoff::Backoff;
use crate::protocol::cluster::{Answer, Route};
use crate::protocol::connection::ConnectionId;
use crate::protocol::messages::Context;
use crate::protocol::time::{Now, earliest};
use crate::protocol::wire::{self, ProduceResult, Question};
use crate::record::BatchReport;

/// Bytes of batches that share one request; a larger batch goes alone.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Batches that share one request: bounds its head.
const REQUEST_BATCHES_MAX: usize = 1024;

/// The least time that a request is given, so that a batch near its end does not cost others their connection.
const REQUEST_TIMEOUT_MIN: std::time::Duration = std::time::Duration::from_secs(1);

/// What a request of the producer was for.
#[derive(Debug)]
pub(crate) enum Tag {
    InitProducer,
    Produce(Vec<Sent>),
}

/// A batch that a request carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    slot: Slot,
    batch: BatchId,
    length: u32,
    deadline: Now,
}

/// A request being put together.
struct Draft {
    connection: ConnectionId,
    acks: Acks,
    sent: Vec<Sent>,
    body: Vec<Bytes>,
    bytes: usize,
}

/// What came of looking at a partition.
enum Look {
    /// A batch of it is in a draft; there may be more.
    Sent,
    /// Nothing to do until an answer, a record or a deadline lists it again.
    Idle,
    /// It waits for a route, an identity, or the time given.
    Stalled(Option<Now>),
    /// Its connection takes no more for now.
    Crowded,
}

impl ProducerMachine {
    /// Sends everything that may be sent.
    pub(super) fn dispatch(&mut self, now: Now) {
        let revision = self.cluster.revision();
        if revision != self.seen_revision {
            self.seen_revision = revision;
            self.take_in_metadata();
            self.relist_stalled();
        }
        if self.agenda.stalled_until.is_some_and(|until| until <= now) {
            self.relist_stalled();
        }
        let mut drafts = Vec::new();
        while !self.agenda.ready.is_empty() {
            // Each pass takes one batch per partition, so that one request never has two.
            for _ in 0..self.agenda.ready.len() {
                let Some(slot) = self.agenda.ready.pop_front() else {
                    break;
                };
                self.lane_mut(slot).is_listed = false;
                match self.look(slot, &mut drafts, now) {
                    Look::Sent => self.list(slot),
                    Look::Idle => {}
                    Look::Stalled(until) => {
                        self.lane_mut(slot).is_listed = true;
                        self.agenda.stalled.push(slot);
                        self.agenda.stalled_until = earliest(self.agenda.stalled_until, until);
                    }
                    Look::Crowded => {
                        self.lane_mut(slot).is_listed = true;
                        self.agenda.crowded.push(slot);
                    }
                }
            }
            drafts.drain(..).for_each(|draft| self.send(draft, now));
        }
        self.ask_for_identity(now);
    }

    fn lane_mut(&mut self, slot: Slot) -> &mut super::machine::Lane {
        &mut self.topics[slot.topic as usize].lanes[slot.partition as usize]
    }

    fn relist_stalled(&mut self) {
        self.agenda.stalled_until = None;
        self.agenda.ready.extend(self.agenda.stalled.drain(..));
    }

    /// Takes the next batch of a partition into a draft, if it may go out.
    fn look(&mut self, slot: Slot, drafts: &mut Vec<Draft>, now: Now) -> Look {
        let (name, acks) = self.topic_of(slot);
        let in_flight_max = self.config.in_flight_max;
        let queue = &mut self.lane_mut(slot).queue;
        let is_open_due = queue.open.as_ref().is_some_and(|open| open.is_due);
        if !queue.may_send(in_flight_max) || !(queue.has_waiting() || is_open_due) {
            return Look::Idle;
        }
        let (blocked_until, metadata_needed) = (queue.blocked_until, queue.metadata_needed);
        if blocked_until > now {
            return Look::Stalled(Some(blocked_until));
        }
        if !self.cluster.refreshed(metadata_needed) {
            return Look::Stalled(None);
        }
        let connection = match self
            .cluster
            .route(&name, PartitionIndex(slot.partition as i32), now)
        {
            Route::Ready(connection) => connection,
            Route::Wait => return Look::Stalled(Some(now.after(self.config.client.backoff))),
            Route::Refused(fault) => return self.fail_partition(slot, fault),
        };
        if !self.lane_mut(slot).queue.has_waiting() {
            self.seal(slot);
        }
        let current = self.identity.current;
        let queue = &mut self.lane_mut(slot).queue;
        if queue.needs_identity(current) {
            self.identity.is_wanted = true;
            return Look::Stalled(None);
        }
        if !queue.may_use(connection) {
            return Look::Idle;
        }
        self.draft(slot, connection, acks, drafts)
    }

    fn draft(
        &mut self,
        slot: Slot,
        connection: ConnectionId,
        acks: Acks,
        drafts: &mut Vec<Draft>,
    ) -> Look {
        let delivery_timeout = self.config.delivery_timeout;
        let Some(length) = self.lane_mut(slot).queue.next_length() else {
            return Look::Idle;
        };
        let fits = |draft: &&mut Draft| {
            draft.connection == connection
                && draft.acks == acks
                && draft.bytes + length <= REQUEST_BYTES_MAX
                && draft.sent.len() < REQUEST_BATCHES_MAX
        };
        let drafted: usize = drafts
            .iter()
            .filter(|draft| draft.connection == connection)
            .map(|draft| draft.bytes)
            .sum();
        if !self.cluster.has_room(connection, drafted + length) {
            return Look::Crowded;
        }
        let current = self.identity.current;
        let queue = &mut self.lane_mut(slot).queue;
        let deadline = queue.oldest().unwrap_or_default().after(delivery_timeout);
        let Some((batch, bytes)) = queue.take(connection, current) else {
            return Look::Idle;
        };
        let draft = match drafts.iter_mut().rev().find(fits) {
            Some(draft) => draft,
            None => {
                drafts.push(Draft {
                    connection,
                    acks,
                    sent: Vec::new(),
                    body: Vec::new(),
                    bytes: 0,
                });
                drafts.last_mut().expect("one was just added")
            }
        };
        draft.sent.push(Sent {
            slot,
            batch,
            length: length as u32,
            deadline,
        });
        draft.body.push(bytes);
        draft.bytes += length;
        Look::Sent
    }

    fn topic_of(&self, slot: Slot) -> (Arc<str>, Acks) {
        let topic = &self.topics[slot.topic as usize];
        (topic.name.clone(), topic.acks)
    }

    /// The topic is gone, or the broker refuses it: everything queued for the partition fails.
    fn fail_partition(&mut self, slot: Slot, fault: Error) -> Look {
        let queue = &mut self.lane_mut(slot).queue;
        if queue.is_settled() {
            queue.fail_all(|_| fault.clone());
            self.report(slot);
        }
        Look::Idle
    }

    fn send(&mut self, draft: Draft, now: Now) {
        let timeout = self.config.client.request_timeout;
        let entries: Vec<_> = draft
            .sent
            .iter()
            .map(|sent| ProduceEntryHead {
                topic: &self.topics[sent.slot.topic as usize].name,
                partition: PartitionIndex(sent.slot.partition as i32),
                byte_length: sent.length,
            })
            .collect();
        let request = ProduceRequestHead {
            acks: Some(draft.acks),
            durability: self.config.durability,
            // The broker gives up first, so that its answer says why.
            timeout_ms: u32::try_from((timeout * 4 / 5).as_millis()).unwrap_or(u32::MAX),
        };
        let question = Question::Produce {
            request: &request,
            entries: &entries,
            body: &draft.body,
        };
        let delivery = draft
            .sent
            .iter()
            .map(|sent| sent.deadline)
            .min()
            .unwrap_or_default();
        let deadline = now
            .after(timeout)
            .min(delivery.max(now.after(REQUEST_TIMEOUT_MIN)));
        if draft.acks == Acks::Count(0) {
            self.cluster
                .send(draft.connection, &question, None, deadline, now);
            for sent in draft.sent {
                self.lane_mut(sent.slot).queue.unanswerable(sent.batch);
                self.report(sent.slot);
            }
        } else {
            let tag = Some(Tag::Produce(draft.sent));
            self.cluster
                .send(draft.connection, &question, tag, deadline, now);
        }
    }

    /// Reports the batches of a partition whose fate is known.
    pub(super) fn report(&mut self, slot: Slot) {
        let topic = &mut self.topics[slot.topic as usize];
        let name = topic.name.clone();
        while let Some(completion) = topic.lanes[slot.partition as usize].queue.completed() {
            self.outstanding.remove(&completion.batch);
            self.buffered_bytes -= completion.buffered_bytes;
            let report = BatchReport {
                topic: name.clone(),
                partition: PartitionIndex(slot.partition as i32),
                record_count: completion.record_count,
                batch_bytes: completion.batch_bytes,
                outcome: completion.outcome,
            };
            self.reports.push_back((completion.batch, report));
        }
    }

    // Answers.

    /// Requests that will have no answer.
    pub(super) fn handle_lost(&mut self, now: Now) {
        for (_, tag) in self.cluster.take_lost() {
            let fault = self.cluster.last_fault().cloned().unwrap_or(Error::Closed);
            match tag {
                Tag::InitProducer => self.identity_failed(now),
                Tag::Produce(batches) => {
                    let metadata_needed = self.cluster.want_refresh();
                    for sent in batches {
                        let queue = &mut self.lane_mut(sent.slot).queue;
                        queue.lost(sent.batch, fault.clone());
                        queue.metadata_needed = metadata_needed;
                        self.follow_up(sent.slot, now);
                    }
                }
            }
        }
    }

    pub(super) fn handle_answer(&mut self, answer: Answer<Tag>, now: Now) {
        self.agenda.ready.extend(self.agenda.crowded.drain(..));
        match answer.tag {
            Tag::InitProducer => match wire::read_init_producer(&answer.context, &answer.frame) {
                Ok((id, epoch)) => {
                    self.identity.current = Some(Identity { id, epoch });
                    self.identity.is_asked = false;
                    self.identity.failures = 0;
                    self.relist_stalled();
                }
                Err(fault) => {
                    self.cluster.set_fault(fault);
                    self.identity_failed(now);
                }
            },
            Tag::Produce(ref batches) => self.handle_produced(&answer, batches, now),
        }
    }

    fn handle_produced(&mut self, answer: &Answer<Tag>, batches: &[Sent], now: Now) {
        let context = &answer.context;
        let read = wire::read_produced(context, &answer.frame);
        for (index, sent) in batches.iter().enumerate() {
            let (name, _) = self.topic_of(sent.slot);
            let partition = PartitionIndex(sent.slot.partition as i32);
            let about = || context.clone().topic(&name);
            let verdict = match &read {
                Ok(produced) => match produced.result(index, &name, partition) {
                    Some(result) => verdict(&about(), partition, result),
                    None => {
                        unreadable(context.fault(format_args!("nothing about {name}-{partition}")))
                    }
                },
                Err(Error::Refused(refusal)) => {
                    let result = ProduceResult {
                        code: refusal.code,
                        message: Some(&refusal.message),
                        base_offset: -1,
                    };
                    verdict(&about(), partition, result)
                }
                Err(fault) => unreadable(fault.clone()),
            };
            self.apply(sent, verdict, now);
        }
    }

    fn apply(&mut self, sent: &Sent, verdict: Verdict, now: Now) {
        let needs_metadata =
            matches!(&verdict, Verdict::Retry { fault, .. } if moves_leader(fault));
        if needs_metadata {
            let metadata_needed = self.cluster.want_refresh();
            self.lane_mut(sent.slot).queue.metadata_needed = metadata_needed;
        }
        self.lane_mut(sent.slot).queue.answered(sent.batch, verdict);
        self.follow_up(sent.slot, now);
    }

    /// After something has become known of a batch.
    fn follow_up(&mut self, slot: Slot, now: Now) {
        if let Some(failures) = self.lane_mut(slot).queue.settle() {
            let pause = self.pause(failures);
            self.lane_mut(slot).queue.blocked_until = now.after(pause);
        }
        self.report(slot);
        self.list(slot);
    }

    fn pause(&mut self, failures: u32) -> std::time::Duration {
        let client = &self.config.client;
        Backoff {
            first: client.backoff,
            max: client.backoff_max,
        }
        .pause(failures, &mut self.random)
    }

    // The identity.

    fn ask_for_identity(&mut self, now: Now) {
        if !self.identity.is_wanted || self.identity.is_asked || now < self.identity.not_before {
            return;
        }
        let Some(connection) = self.cluster.any_ready() else {
            return;
        };
        let deadline = now.after(self.config.client.request_timeout);
        let tag = Some(Tag::InitProducer);
        self.cluster
            .send(connection, &Question::InitProducer, tag, deadline, now);
        self.identity.is_asked = true;
        self.identity.is_wanted = false;
    }

    fn identity_failed(&mut self, now: Now) {
        self.identity.is_asked = false;
        self.identity.is_wanted = true;
        self.identity.failures = self.identity.failures.saturating_add(1);
        self.identity.not_before = now.after(self.pause(self.identity.failures));
    }

    /// When an identity can be asked for again; without a connection that waits for one.
    pub(super) fn identity_deadline(&self) -> Option<Now> {
        let waits = self.identity.is_wanted && !self.identity.is_asked;
        (waits && self.cluster.has_ready()).then_some(self.identity.not_before)
    }
}

/// What a code means for a batch.
fn verdict(context: &Context, partition: PartitionIndex, result: ProduceResult<'_>) -> Verdict {
    let ProduceResult {
        code,
        message,
        base_offset,
    } = result;
    let offset = (base_offset >= 0).then_some(Offset(base_offset));
    let fault = || Error::Refused(context.refusal(Some(partition), code, message));
    match code {
        ErrorCode::None | ErrorCode::DuplicateSequenceNumber => Verdict::Appended(offset),
        ErrorCode::OutOfOrderSequenceNumber => Verdict::OutOfOrder(fault()),
        ErrorCode::UnknownProducerId | ErrorCode::InvalidProducerEpoch => Verdict::Fenced(fault()),
        // The wait for acks failed, or the disk did: the batch may well be in the log.
        ErrorCode::RequestTimedOut
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::StorageFullAfterAppend
        | ErrorCode::NetworkException
        | ErrorCode::KafkaStorageError => Verdict::Retry {
            fault: fault(),
            maybe_appended: true,
        },
        code if code.retriable() => Verdict::Retry {
            fault: fault(),
            maybe_appended: false,
        },
        code => Verdict::Failed {
            fault: fault(),
            maybe_appended: code == ErrorCode::UnknownServerError,
        },
    }
}

/// An answer that says nothing that can be relied on.
fn unreadable(fault: Error) -> Verdict {
    Verdict::Retry {
        fault,
        maybe_appended: true,
    }
}

/// Whether the refusal says that the partition is to be looked for elsewhere.
fn moves_leader(fault: &Error) -> bool {
    matches!(
        fault.code(),
        Some(
            ErrorCode::NotLeaderOrFollower
                | ErrorCode::LeaderNotAvailable
                | ErrorCode::UnknownTopicOrPartition
                | ErrorCode::UnknownTopicId
                | ErrorCode::FencedLeaderEpoch
                | ErrorCode::UnknownLeaderEpoch
                | ErrorCode::KafkaStorageError
                | ErrorCode::WrongShard
                | ErrorCode::ShuttingDown
        )
    )
}
