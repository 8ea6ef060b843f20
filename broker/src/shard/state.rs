//! What one core holds: its logic and everything that logic's ids stand for.
//!
//! Synchronous: nothing here waits. What has to wait (I/O) is collected as [`Launch`]es, which [`super::Shard::enter`]
//! starts after the borrow of this state has ended.

use std::{rc::Rc, sync::Arc, time::Instant};

use tackboard_logic::{
    metadata::{Command, Endpoint, MetadataRefusal, UnaskedTopics},
    request::{
        account::Held,
        calls::Calls,
        entries::{EntryRoom, entries_worth},
        fetch::AnswerRoom,
        file_room::FileRoom,
        producer_ids::ProducerIds,
    },
    shard::{
        Shard as Machine,
        interface::{Effects, Input, LogId, Now, Unwritten},
    },
};
use tackboard_runtime::InboxSender;
use tackboard_schema::{CoreId, CorrelationId, ErrorCode, TimestampMs, native::HeadBuilder};

use super::{
    groups::Groups,
    launch::Launch,
    loan::Loans,
    request::{
        Body, CallTarget, Entry, Failure, Fetched, Origin, PeerMessage, Pending, TicketTarget,
    },
    slab::{Key, Slab},
    topics::Topics,
};
use crate::{
    bridge::{CoreMetrics, Metrics, PROPOSALS_QUEUED_MAX, ToControl},
    config::Config,
    disk::{chunks::Chunks, segments::LogFiles},
    kafka,
    native::{self, answer, connection::Connection},
};

/// A log that is open on this core.
pub struct OpenedLog {
    /// Its current id.
    pub id: LogId,
    /// Its name.
    pub partition: tackboard_schema::TopicPartition,
    /// Its files, shared with the tasks that use them.
    pub files: Rc<std::cell::RefCell<LogFiles>>,
}

/// Who waits for a proposal.
pub enum ProposalTarget {
    /// A client that creates or deletes a topic.
    Topic(Rc<Connection>, CorrelationId, super::control::TopicChange),
    /// A client of Kafka that changes topics: the one with this index in its request.
    KafkaChange {
        /// Whose request.
        connection: Rc<Connection>,
        /// Which.
        number: CorrelationId,
        /// The change's index.
        index: usize,
    },
    /// The topic of this name, which a client of Kafka asked for and which was not there.
    UnaskedTopic(String),
    /// The topic of consumer groups.
    OffsetsTopic,
    /// The clients that wait for a producer id.
    ProducerIds,
}

/// The state of one core.
pub struct State {
    /// Which core this is.
    pub core: CoreId,
    /// The broker's settings.
    pub config: Arc<Config>,
    pub(super) metrics: Metrics,
    pub(super) machine: Machine,
    pub(super) effects: Effects,
    pub(super) chunks: Chunks,
    pub(super) logs: Vec<Option<OpenedLog>>,
    /// The metadata that this core acts on.
    pub topics: Topics,
    pub(super) requests: Slab<Pending>,
    pub(super) tickets: Slab<TicketTarget>,
    pub(super) calls: Slab<CallTarget>,
    /// How many of them there are, and may be.
    pub(super) call_credit: Calls,
    /// Entries of unanswered requests, and how many there may be.
    pub(super) entry_room: EntryRoom,
    /// What may wait here for other cores: who asked, its call, our request.
    pub(super) peer_waits: ahash::AHashMap<(CoreId, Key), Key>,
    pub(super) peers: Vec<Option<InboxSender<PeerMessage>>>,
    /// Batches that other cores are sending.
    pub(super) loans: Loans,
    pub(super) launches: Vec<Launch>,
    pub(super) follow_ups: Vec<Input>,
    /// Builds the heads of all answers of this core.
    pub heads: HeadBuilder,
    pub(super) started: Instant,
    pub(super) now: Now,
    pub(super) waiting_for_room: Vec<Rc<Connection>>,
    pub(super) control: flume::Sender<ToControl>,
    pub(super) proposals: Slab<ProposalTarget>,
    /// Inodes for new partitions.
    pub(super) file_room: FileRoom,
    /// Topics that clients of Kafka asked for and that were not there.
    pub(super) unasked: UnaskedTopics,
    pub(super) producer_ids: ProducerIds<(Rc<Connection>, CorrelationId)>,
    pub(super) progress: Arc<tackboard_runtime::Progress>,
    pub(super) stopping: bool,
    pub(super) drained: bool,
    /// What a full disk left when it was.
    pub(super) unwritten: Unwritten,
    /// The coordinators of the groups of this core's partitions.
    pub(super) groups: Groups,
    /// Where clients of Kafka reach this broker.
    pub kafka_endpoint: Option<Endpoint>,
    /// Logic has given up: the process must end.
    pub(super) aborted: bool,
}

impl State {
    /// This core's counters.
    pub fn metrics(&self) -> &CoreMetrics {
        self.metrics.core(usize::from(self.core.0))
    }

    /// Reads both clocks, once a turn.
    pub(super) fn read_clock(&mut self) {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.now = Now {
            monotonic_us: self.started.elapsed().as_micros() as u64,
            wall: TimestampMs(wall.map_or(0, |since| since.as_millis() as i64)),
        };
    }

    /// The time `ms` from now, for logic's deadlines.
    pub fn deadline_us(&self, ms: u32) -> u64 {
        self.now.monotonic_us + u64::from(ms) * 1000
    }

    /// Whether appends are taken in: append budget, space on the disk, and credit with the other cores.
    pub fn has_append_room(&self) -> bool {
        self.machine.append_room() && self.call_credit.has_room() && !self.others_await_room()
    }

    /// Whether another core waits until segments have gone. Appends for it may arrive here.
    fn others_await_room(&self) -> bool {
        let own = usize::from(self.core.0);
        let mut cores = self.metrics.cores().iter().enumerate();
        self.config.log_budget_bytes.is_some()
            && cores.any(|(core, metrics)| core != own && metrics.producers_await_room.get() > 0)
    }

    /// Tells the other cores whether producers wait until segments of this one have gone, and returns it.
    pub(super) fn tell_awaited_room(&self) -> bool {
        if self.config.log_budget_bytes.is_none() {
            return false;
        }
        let awaited = self.machine.awaits_room();
        self.metrics().producers_await_room.set(u64::from(awaited));
        awaited
    }

    /// Whether a fetch or a lookup of so many entries is taken from `connection`.
    ///
    /// # Errors
    /// [`ErrorCode::OverBudget`]: the core holds as many as it may.
    pub fn admit_entries(&self, connection: &Connection, entries: usize) -> Result<(), Failure> {
        let admitted = self.entry_room.admit(connection.entries(), entries);
        admitted.map_err(|refusal| Failure::new(ErrorCode::OverBudget, refusal.to_string()))
    }

    /// Whether a fetch of `connection` may ask so many other cores.
    ///
    /// # Errors
    /// [`ErrorCode::OverBudget`], with the budget that is used up.
    pub fn admit_fetch_calls(&self, connection: &Connection, cores: usize) -> Result<(), Failure> {
        let admitted = self
            .call_credit
            .admit_fetch(connection.fetch_calls(), cores);
        admitted.map_err(|refusal| Failure::new(ErrorCode::OverBudget, refusal.to_string()))
    }

    /// One step of logic and all that follows from it. `payload` is the batch of an append.
    pub(super) fn step(&mut self, input: Input, payload: &[u8]) {
        let mut effects = std::mem::take(&mut self.effects);
        effects.clear();
        self.machine.step(self.now, input, &mut effects);
        self.carry_out(&mut effects, payload);
        self.effects = effects;
        while let Some(input) = self.follow_ups.pop() {
            self.step(input, &[]);
        }
    }

    // ---- requests -------------------------------------------------------------------------------------------------

    /// Takes in a request. It stays incomplete until [`State::handed_out`], whatever is answered before.
    pub fn begin(
        &mut self,
        origin: Origin,
        correlation_id: CorrelationId,
        body_bytes: u64,
        body: Body,
    ) -> Key {
        let carried = match &body {
            Body::Groups { .. } => entries_worth(body_bytes),
            _ => 0,
        };
        let held = Held {
            body_bytes,
            entries: body.entry_count() + carried,
        };
        if let Origin::Connection(connection) = &origin {
            connection.take_in(held);
            self.entry_room.taken(held.entries);
        }
        // What may wait for others to do something is no work.
        let counts_as_work = !matches!(body, Body::Fetch { .. } | Body::Groups { .. });
        if counts_as_work {
            self.progress.work_started();
        }
        let asker = match &origin {
            Origin::Connection(connection) if !counts_as_work => Some(connection.clone()),
            _ => None,
        };
        let request = self.requests.insert(Pending {
            origin,
            correlation_id,
            waiting: 1,
            held,
            counts_as_work,
            body,
        });
        if let Some(asker) = asker {
            asker.request_waits(request);
        }
        request
    }

    /// Whether an answer to a request still reaches anybody.
    pub(super) fn is_awaited(&mut self, request: Key) -> bool {
        match self.requests.get_mut(request) {
            Some(pending) => match &pending.origin {
                Origin::Connection(connection) => !connection.is_closed(),
                Origin::Core { .. } | Origin::Groups(_) => true,
            },
            None => false,
        }
    }

    /// Whether the one who waits for the answer to a request also takes what he is sent.
    pub(super) fn is_wanted(&mut self, request: Key) -> bool {
        let congested = (self.connection_of(request)).is_some_and(Connection::is_congested);
        self.is_awaited(request) && !congested
    }

    /// Whose request it is, if it did not come from another core.
    pub(super) fn connection_of(&mut self, request: Key) -> Option<&Connection> {
        match &self.requests.get_mut(request)?.origin {
            Origin::Connection(connection) => Some(connection),
            Origin::Core { .. } | Origin::Groups(_) => None,
        }
    }

    /// One more outcome is to come.
    pub(super) fn expect(&mut self, request: Key) {
        if let Some(pending) = self.requests.get_mut(request) {
            pending.waiting += 1;
        }
    }

    /// All parts of the request were handed out.
    pub fn handed_out(&mut self, request: Key) {
        self.outcome_arrived(request);
    }

    /// One outcome less to wait for; the last one completes the request.
    pub(super) fn outcome_arrived(&mut self, request: Key) {
        let Some(pending) = self.requests.get_mut(request) else {
            return;
        };
        pending.waiting -= 1;
        if pending.waiting == 0 {
            let pending = self.requests.remove(request).expect("just found");
            self.complete(request, pending);
        }
    }

    /// Answers a request that was removed.
    pub(super) fn complete(&mut self, request: Key, pending: Pending) {
        if pending.counts_as_work {
            self.progress.work_done();
        }
        self.count(&pending.body);
        match pending.origin {
            Origin::Connection(connection) => {
                if !pending.counts_as_work {
                    connection.request_waited(request);
                }
                connection.release(pending.held);
                self.entry_room.given_back(pending.held.entries);
                self.answer(&connection, pending.correlation_id, pending.body);
            }
            Origin::Groups(work) => self.group_work_done(work, pending.body),
            Origin::Core { core, call } => {
                self.peer_waits.remove(&(core, call));
                let outcome = self.outcome_for(core, pending.body);
                self.tell(core, PeerMessage::Done { call, outcome });
            }
        }
    }

    fn count(&self, body: &Body) {
        let failure = match body {
            Body::Produce { entries, .. } => first_failure(entries),
            Body::Fetch { entries, .. } => first_failure(entries),
            Body::ListOffsets { entries } => first_failure(entries),
            Body::EpochEnds { entries } => first_failure(entries),
            Body::DeleteRecords { entries } => first_failure(entries),
            Body::Describe { entries } => first_failure(entries),
            Body::Groups { entries, .. } => first_failure(entries),
        };
        if let Some((topic, partition, failure)) = failure {
            self.metrics().requests_refused.increment();
            tracing::debug!(topic, partition, code = %failure.code, message = %failure.message, "entry refused");
        }
    }

    fn answer(&mut self, connection: &Rc<Connection>, number: CorrelationId, mut body: Body) {
        if let Body::Groups { entries, room, .. } = &mut body {
            room.bound(entries);
        }
        let body = match body {
            Body::Fetch {
                entries, bytes_max, ..
            } => return answer_fetch(&mut self.heads, connection, number, entries, bytes_max),
            other => other,
        };
        if let Some(answers) = connection.kafka() {
            return match body {
                Body::Produce { entries, .. } => {
                    kafka::produce::answer(answers, connection, number, &entries);
                }
                Body::ListOffsets { entries } => {
                    kafka::list_offsets::answer(answers, connection, number, &entries);
                }
                Body::EpochEnds { entries } => {
                    kafka::offset_for_leader_epoch::answer(answers, connection, number, &entries);
                }
                Body::DeleteRecords { entries } => {
                    kafka::delete_records::answer(answers, connection, number, &entries);
                }
                Body::Groups { entries, .. } => {
                    kafka::groups::answer(answers, connection, number, entries);
                }
                Body::Describe { .. } | Body::Fetch { .. } => {
                    unreachable!("not asked for by this door, or answered above")
                }
            };
        }
        let heads = &mut self.heads;
        match body {
            Body::Produce { respond, .. } if !respond.is_due() => connection.release_request(),
            Body::Produce { entries, .. } => answer::produce(heads, connection, number, &entries),
            Body::ListOffsets { entries } => {
                answer::list_offsets(heads, connection, number, &entries);
            }
            Body::Describe { entries } => self.answer_description(connection, number, &entries),
            Body::Groups {
                entries,
                asked: Some(asked),
                ..
            } => native::groups::answer(heads, connection, number, &asked, entries),
            Body::EpochEnds { .. }
            | Body::DeleteRecords { .. }
            | Body::Groups { .. }
            | Body::Fetch { .. } => {
                unreachable!("not asked for by this door, or answered above")
            }
        }
    }

    /// Refuses a request as a whole, before anything of it was handed out.
    pub fn refuse(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        failure: &Failure,
    ) {
        connection.take_in(Held::default());
        self.metrics().requests_refused.increment();
        tracing::debug!(code = %failure.code, message = %failure.message, "request refused");
        answer::error(&mut self.heads, connection, correlation_id, failure);
    }

    // ---- room and proposals ---------------------------------------------------------------------------------------

    /// Remembers a connection whose next append has to wait.
    pub(super) fn wait_for_append_room(&mut self, connection: &Rc<Connection>) {
        self.waiting_for_room.push(connection.clone());
    }

    pub(super) fn wake_waiting(&mut self) {
        if !self.waiting_for_room.is_empty() && (self.has_append_room() || self.stopping) {
            for connection in self.waiting_for_room.drain(..) {
                connection.room.notify();
            }
        }
    }

    /// Asks the control thread for a change of the metadata, which was admitted.
    pub(super) fn propose(&mut self, target: ProposalTarget, command: Command) {
        self.progress.work_started();
        let call = self.proposals.insert(target);
        let core = self.core;
        let message = ToControl::Propose {
            core,
            call,
            command,
        };
        let refusal = if self.control.len() >= PROPOSALS_QUEUED_MAX {
            let message = format!("{PROPOSALS_QUEUED_MAX} changes of the metadata wait; try again");
            (ErrorCode::OverBudget, message)
        } else if self.control.try_send(message).is_err() {
            let message = "the broker's control thread has stopped".to_owned();
            (ErrorCode::ShuttingDown, message)
        } else {
            return;
        };
        let (code, message) = refusal;
        self.proposal_done(call, Err(MetadataRefusal { code, message }));
    }

    /// Answers a change of the metadata that is not asked for.
    pub(super) fn refuse_proposal(&mut self, target: ProposalTarget, refusal: MetadataRefusal) {
        self.progress.work_started();
        let call = self.proposals.insert(target);
        self.proposal_done(call, Err(refusal));
    }
}

fn first_failure<T>(entries: &[Entry<T>]) -> Option<(&str, i32, &Failure)> {
    entries.iter().find_map(|entry| match &entry.outcome {
        Some(Err(failure)) => Some((&*entry.topic, entry.partition.0, failure)),
        _ => None,
    })
}

fn answer_fetch(
    heads: &mut HeadBuilder,
    connection: &Rc<Connection>,
    number: CorrelationId,
    mut entries: Vec<Entry<Fetched>>,
    bytes_max: u32,
) {
    // A client that does not take what it was sent gets nothing that would be held for it on top.
    let congested = connection.is_congested();
    let mut room = AnswerRoom::new(bytes_max);
    for entry in &mut entries {
        if congested || !room.take(entry.byte_length()) {
            entry.empty();
        }
    }
    match connection.kafka() {
        Some(answers) => kafka::fetch::answer(answers, connection, number, entries),
        None => answer::fetch(heads, connection, number, entries),
    }
}
