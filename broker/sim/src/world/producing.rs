//! Producers: idempotent ones, which retry whatever they don't hear of, and plain ones, which don't.

use std::collections::VecDeque;
use std::rc::Rc;

use tackboard_logic::group::interface::StoreId;
use tackboard_logic::shard::interface::{Append, Input, LogId, Produced, Refusal, Ticket};
use tackboard_schema::{Acks, Durability, ErrorCode};

use super::deleting::Deletion;
use super::process::Payload;
use super::truncating::Cut;
use super::turn::Decision;
use super::{Event, World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::model::{Batch, Expected, Stamp, next_sequence};

/// Batches that an idempotent producer has in flight at most: the window of the log.
const IN_FLIGHT_MAX: usize = 5;

/// Whom an answer is for.
pub(super) enum Waiting {
    Produce {
        producer: usize,
        request: Request,
    },
    Fetch {
        consumer: usize,
    },
    /// Records of a coordinator.
    Store {
        store: StoreId,
        request: Request,
    },
    Truncate(Cut),
    DeleteRecords(Deletion),
    /// A coordinator has written its log anew.
    Rewritten {
        number: u32,
    },
    /// The connection was lost; the broker doesn't know.
    Nobody {
        request: Option<Request>,
    },
}

/// What was asked of the broker, as far as its answer is judged by it.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) partition: u32,
    pub(super) batch: Rc<Batch>,
    pub(super) acks: Acks,
    pub(super) durability: Durability,
}

/// A client that writes to one partition.
pub(super) struct Producer {
    partition: u32,
    identity: Option<Identity>,
    acks: Option<Acks>,
    durability: Option<Durability>,
    /// In order; the front is the oldest that isn't acknowledged.
    queue: VecDeque<Sent>,
    /// A batch of the client's former life that is still on its way.
    straggler: Option<Rc<Batch>>,
}

#[derive(Clone, Copy)]
struct Identity {
    id: i64,
    epoch: i16,
    next_sequence: i32,
}

struct Sent {
    batch: Rc<Batch>,
    ticket: Option<u64>,
    done: bool,
}

impl World {
    pub(super) fn add_producer(&mut self) {
        let partition = self.pick_partition().unwrap_or(0);
        let identity = (!self.rng.one_in(4)).then(|| self.new_identity());
        let producer = Producer {
            partition,
            identity,
            acks: self.rng.pick(&[
                None,
                None,
                Some(Acks::All),
                Some(Acks::Count(1)),
                Some(Acks::Count(0)),
            ]),
            durability: self.rng.pick(&[
                None,
                None,
                Some(Durability::Fsync),
                Some(Durability::Interval),
                Some(Durability::Written),
            ]),
            queue: VecDeque::new(),
            straggler: None,
        };
        self.producers.push(producer);
        let index = self.producers.len() - 1;
        self.schedule(0, Event::Producer(index));
    }

    fn new_identity(&mut self) -> Identity {
        self.next_producer_id += 1;
        Identity {
            id: self.next_producer_id,
            epoch: 0,
            // An unknown producer may start anywhere, so let some wrap soon.
            next_sequence: if self.rng.one_in(8) {
                i32::MAX - self.rng.below(20) as i32
            } else {
                0
            },
        }
    }

    /// A producer acts: sends again what was refused or lost, or something new.
    pub(super) fn produce(&mut self, index: usize) {
        let pause = self.pause_us();
        self.schedule(pause, Event::Producer(index));
        if self.rests() {
            return;
        }
        self.follow_deletion(index);
        let partition = self.producers[index].partition;
        let Some((core, log)) = self.serving(partition) else {
            return;
        };
        if !self.host(core).shard.append_room() && !self.rng.one_in(8) {
            return;
        }
        if self.rng.one_in(64) {
            self.lose_connection(index);
        }
        if self.rng.one_in(256) {
            self.restart_producer(index);
        }
        if self.rng.one_in(16)
            && let Some(batch) = self.producers[index].straggler.take()
        {
            self.send(index, batch, None, core, log);
            return;
        }
        let producer = &self.producers[index];
        let unsent = producer
            .queue
            .iter()
            .position(|sent| sent.ticket.is_none() && !sent.done);
        let at = match unsent {
            Some(at) => at,
            None if self.producing && producer.queue.len() < IN_FLIGHT_MAX => {
                self.make_batch(index)
            }
            None => return,
        };
        let batch = self.producers[index].queue[at].batch.clone();
        self.send(index, batch, Some(at), core, log);
    }

    /// Sends a batch. Nobody waits for the answer unless it is the one `at` that place of the queue.
    fn send(&mut self, index: usize, batch: Rc<Batch>, at: Option<usize>, core: usize, log: LogId) {
        let ticket = self.next_ticket();
        let deadline_us = self.deadline_us();
        let producer = &mut self.producers[index];
        let (acks, durability) = (producer.acks, producer.durability);
        let number = producer.partition;
        if let Some(at) = at {
            producer.queue[at].ticket = Some(ticket);
        }
        let config = &self.partition(number).config;
        let request = Request {
            partition: number,
            batch: batch.clone(),
            acks: acks
                .unwrap_or(config.acks_default)
                .at_least(config.acks_min),
            durability: durability
                .unwrap_or(config.durability)
                .max(config.durability),
        };
        let waiting = match at {
            Some(_) => Waiting::Produce {
                producer: index,
                request,
            },
            None => Waiting::Nobody {
                request: Some(request),
            },
        };
        self.waiting.insert(ticket, waiting);
        let payload = Payload {
            partition: number,
            batch: batch.clone(),
        };
        let payload = self.host(core).receive(payload);
        let append = Append {
            log,
            ticket: Ticket(ticket),
            header: batch.header,
            payload,
            acks,
            durability,
            deadline_us,
        };
        self.post(core, Input::Append(append));
    }

    fn make_batch(&mut self, index: usize) -> usize {
        let records = if self.rng.one_in(4) {
            self.rng.between(1, 8)
        } else {
            1
        };
        let wall_ms = self.clock.wall_ms();
        let timestamps: Vec<i64> = (0..records)
            .map(|_| wall_ms - self.rng.below(2_000) as i64 + 1_000)
            .collect();
        let number = self.producers[index].partition;
        let largest = self.partition(number).batch_bytes_max() / records - 100;
        let mut filler = self.rng.below(self.options.value_bytes_max.min(largest));
        let plain = self.producers[index].identity.is_none();
        if plain && self.rng.one_in(500) {
            filler = largest + 200;
        }
        let stamp = self.producers[index].identity.as_mut().map(|identity| {
            let sequence = identity.next_sequence;
            identity.next_sequence = next_sequence(sequence, records as i64);
            Stamp {
                id: identity.id,
                epoch: identity.epoch,
                sequence,
            }
        });
        let id = self.next_batch;
        self.next_batch += 1;
        let batch = Batch::build(&mut self.builder, id, timestamps, filler as usize, stamp);
        let queue = &mut self.producers[index].queue;
        queue.push_back(Sent {
            batch: Rc::new(batch),
            ticket: None,
            done: false,
        });
        queue.len() - 1
    }

    /// An answer arrives from a shard.
    pub(super) fn produced(
        &mut self,
        ticket: u64,
        respond: bool,
        outcome: Result<Produced, Refusal>,
        decision: Option<&Decision>,
    ) {
        let waiting = self
            .waiting
            .remove(&ticket)
            .expect("an append is answered once");
        let (producer, store, request) = match waiting {
            Waiting::Produce { producer, request } => (Some(producer), None, Some(request)),
            Waiting::Store { store, request } => (None, Some(store), Some(request)),
            Waiting::Nobody { request } => (None, None, request),
            Waiting::Fetch { .. }
            | Waiting::Truncate(_)
            | Waiting::DeleteRecords(_)
            | Waiting::Rewritten { .. } => {
                panic!("{ticket} is no append")
            }
        };
        let request = request.expect("only appends are answered so");
        // The decision about a batch is made in the step that takes it; a later answer is about acks.
        let decision = decision.filter(|decision| decision.ticket == ticket);
        let expected = decision.map(|decision| decision.expected.as_slice());
        match &outcome {
            Ok(produced) => self.acknowledged(&request, respond, *produced, expected),
            Err(refusal) => {
                self.count_refusal(refusal.code);
                let faulty = self.faults_were_injected();
                let partition = &self.partitions[request.partition as usize];
                check::refusal(partition, &request.batch, refusal, expected, faulty);
            }
        }
        if let Some(store) = store {
            let outcome = outcome.as_ref().map(|_| ()).map_err(|refusal| refusal.code);
            self.batch_stored(request.partition, store, outcome);
        }
        if let Some(producer) = producer {
            self.hear(producer, ticket, outcome.map_err(|refusal| refusal.code));
        }
    }

    fn acknowledged(
        &mut self,
        request: &Request,
        respond: bool,
        produced: Produced,
        expected: Option<&[Expected]>,
    ) {
        assert_eq!(
            respond,
            request.acks != Acks::Count(0),
            "acks 0 is never answered, all else is"
        );
        let partition = &mut self.partitions[request.partition as usize];
        check::answer(partition, &request.batch, produced, expected);
        if produced.duplicate {
            self.see(Seen::Duplicate);
        }
        if !respond {
            return;
        }
        self.see(Seen::Acknowledged);
        if request.durability == Durability::Fsync {
            self.see(Seen::AcknowledgedFsync);
        } else {
            self.see(Seen::AcknowledgedWritten);
        }
        let partition = &mut self.partitions[request.partition as usize];
        check::not_cut_off(partition, produced.base_offset.0);
        check::acknowledged(
            partition,
            produced.base_offset.0,
            request.durability,
            &mut self.disk,
        );
    }

    /// A producer learns what became of a batch.
    fn hear(&mut self, index: usize, ticket: u64, outcome: Result<Produced, ErrorCode>) {
        let producer = &mut self.producers[index];
        let Some(at) = producer
            .queue
            .iter()
            .position(|sent| sent.ticket == Some(ticket))
        else {
            return;
        };
        producer.queue[at].ticket = None;
        let oldest = producer.queue.iter().position(|sent| !sent.done) == Some(at);
        match outcome {
            Ok(_) => producer.queue[at].done = true,
            Err(_) if producer.identity.is_none() => producer.queue[at].done = true,
            // What was lost in between can't be sent again: the producer begins anew.
            Err(ErrorCode::OutOfOrderSequenceNumber) if oldest => self.new_epoch(index),
            Err(ErrorCode::InvalidProducerEpoch | ErrorCode::MessageTooLarge) => {
                self.new_epoch(index)
            }
            Err(_) => {}
        }
        let queue = &mut self.producers[index].queue;
        while queue.front().is_some_and(|sent| sent.done) {
            queue.pop_front();
        }
    }

    fn new_epoch(&mut self, index: usize) {
        let fresh = self.new_identity();
        let bump = self.rng.coin();
        let producer = &mut self.producers[index];
        producer.straggler = producer.queue.pop_back().map(|sent| sent.batch);
        producer.queue.clear();
        let Some(identity) = &mut producer.identity else {
            return;
        };
        *identity = match bump && identity.epoch < i16::MAX {
            true => Identity {
                epoch: identity.epoch + 1,
                next_sequence: 0,
                ..*identity
            },
            false => fresh,
        };
    }

    /// The client restarts. What it had in flight may still arrive.
    fn restart_producer(&mut self, index: usize) {
        trace!(self, "producer {index} restarts");
        self.lose_connection(index);
        self.new_epoch(index);
    }

    /// Answers under way are lost; what is idempotent is sent again.
    fn lose_connection(&mut self, index: usize) {
        for sent in &mut self.producers[index].queue {
            if let Some(ticket) = sent.ticket.take()
                && let Some(waiting) = self.waiting.get_mut(&ticket)
                && let Waiting::Produce { request, .. } = waiting
            {
                *waiting = Waiting::Nobody {
                    request: Some(request.clone()),
                };
            }
        }
        let producer = &mut self.producers[index];
        if producer.identity.is_none() {
            producer.queue.clear();
        }
    }

    /// The process is gone: every answer under way is lost.
    pub(super) fn forget_connections(&mut self) {
        self.waiting.clear();
        for producer in &mut self.producers {
            for sent in &mut producer.queue {
                sent.ticket = None;
            }
            if producer.identity.is_none() {
                producer.queue.clear();
            }
        }
        self.forget_fetches();
        self.forget_coordinators();
    }

    fn follow_deletion(&mut self, index: usize) {
        let number = self.producers[index].partition;
        if !self.partition(number).deleted {
            return;
        }
        let Some(partition) = self.pick_partition() else {
            return;
        };
        let identity = self.producers[index]
            .identity
            .is_some()
            .then(|| self.new_identity());
        let producer = &mut self.producers[index];
        producer.partition = partition;
        producer.identity = identity;
        producer.straggler = None;
        producer.queue.clear();
    }

    /// Whether every producer has heard that all it sent is kept, those of partitions out of service aside.
    pub(super) fn producers_are_content(&self) -> bool {
        let content =
            |producer: &Producer| producer.queue.is_empty() || self.is_excused(producer.partition);
        self.producers.iter().all(content)
    }

    pub(super) fn next_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    fn deadline_us(&mut self) -> u64 {
        let patience = self.rng.pick(&[1_000, 1_000_000, 30_000_000, 60_000_000]);
        self.clock.now().monotonic_us + patience
    }

    pub(super) fn pause_us(&mut self) -> u64 {
        self.rng.between(1, self.options.pause_us_max) + self.rest_left_us()
    }

    fn rest_left_us(&self) -> u64 {
        self.rest_until_us.saturating_sub(self.clock.now_us())
    }

    pub(super) fn rests(&self) -> bool {
        self.rest_left_us() > 0
    }
}
