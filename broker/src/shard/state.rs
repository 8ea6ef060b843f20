//! What one core holds: its logic and everything that logic's ids stand for.
//!
//! Synchronous: nothing here waits. What has to wait (I/O) is collected as [`Launch`]es, which [`super::Shard::enter`]
//! starts after the borrow of this state has ended.

use std::{rc::Rc, sync::Arc, time::Instant};

use tackboard_logic::{
    metadata::Command,
    request::{
        calls::{CALLS_MAX, Calls},
        gather::Gathering,
    },
    shard::{
        Shard as Machine,
        interface::{Effects, Input, LogId, Now},
    },
};
use tackboard_runtime::InboxSender;
use tackboard_schema::{CoreId, CorrelationId, ErrorCode, TimestampMs, native::HeadBuilder};

use super::{
    launch::Launch,
    request::{
        Body, CallTarget, Entry, Failure, Origin, Part, PeerMessage, Pending, TicketTarget, Work,
        WorkOutcome,
    },
    slab::{Key, Slab},
    topics::Topics,
};
use crate::{
    bridge::{CoreMetrics, Metrics, ToControl},
    config::Config,
    disk::{chunks::Chunks, segments::LogFiles},
    native::{answer, connection::Connection},
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
    /// The clients in [`State::waiting_producers`].
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
    /// Fetches done for other cores: who asked, its call, our request.
    pub(super) peer_fetches: ahash::AHashMap<(CoreId, Key), Key>,
    pub(super) peers: Vec<Option<InboxSender<PeerMessage>>>,
    pub(super) launches: Vec<Launch>,
    pub(super) follow_ups: Vec<Input>,
    /// Builds the heads of all answers of this core.
    pub heads: HeadBuilder,
    pub(super) started: Instant,
    pub(super) now: Now,
    pub(super) waiting_for_room: Vec<Rc<Connection>>,
    pub(super) control: flume::Sender<ToControl>,
    pub(super) proposals: Slab<ProposalTarget>,
    /// Producer ids of this core's block that were not given out yet.
    pub(super) producer_ids: std::ops::Range<i64>,
    pub(super) waiting_producers: Vec<(Rc<Connection>, CorrelationId)>,
    pub(super) progress: Arc<tackboard_runtime::Progress>,
    pub(super) stopping: bool,
    pub(super) drained: bool,
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

    /// Whether appends are taken in: append budget, and credit with the other cores.
    pub fn has_append_room(&self) -> bool {
        self.machine.append_room() && self.call_credit.has_room()
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
        held_bytes: u64,
        body: Body,
    ) -> Key {
        if let Origin::Connection(connection) = &origin {
            connection.take_in(held_bytes);
        }
        let counts_as_work = !matches!(body, Body::Fetch { .. });
        if counts_as_work {
            self.progress.work_started();
        }
        self.requests.insert(Pending {
            origin,
            correlation_id,
            waiting: 1,
            held_bytes,
            counts_as_work,
            body,
        })
    }

    /// Whether an answer to a request still reaches anybody.
    pub(super) fn is_awaited(&mut self, request: Key) -> bool {
        match self.requests.get_mut(request) {
            Some(pending) => match &pending.origin {
                Origin::Connection(connection) => !connection.is_closed(),
                Origin::Core { .. } => true,
            },
            None => false,
        }
    }

    /// Whether the one who waits for the answer to a request also takes what he is sent.
    pub(super) fn is_wanted(&mut self, request: Key) -> bool {
        let congested = (self.connection_of(request)).is_some_and(Connection::is_congested);
        self.is_awaited(request) && !congested
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
            self.complete(pending);
        }
    }

    fn complete(&mut self, pending: Pending) {
        if pending.counts_as_work {
            self.progress.work_done();
        }
        self.count(&pending.body);
        match pending.origin {
            Origin::Connection(connection) => {
                connection.release_bytes(pending.held_bytes);
                self.answer(&connection, pending.correlation_id, pending.body);
            }
            Origin::Core { core, call } => {
                self.peer_fetches.remove(&(core, call));
                let outcome = into_outcome(pending.body);
                if let WorkOutcome::Fetch(fetched) = &outcome {
                    let copied = fetched
                        .iter()
                        .flatten()
                        .map(|(_, _, bytes)| bytes.len() as u64);
                    self.metrics().cross_core_bytes_copied.add(copied.sum());
                }
                self.tell(core, PeerMessage::Done { call, outcome });
            }
        }
    }

    fn count(&self, body: &Body) {
        let failure = match body {
            Body::Produce { entries, .. } => first_failure(entries),
            Body::Fetch { entries, .. } => first_failure(entries),
            Body::ListOffsets { entries } => first_failure(entries),
            Body::Describe { entries } => first_failure(entries),
        };
        if let Some((topic, partition, failure)) = failure {
            self.metrics().requests_refused.increment();
            tracing::debug!(topic, partition, code = %failure.code, message = %failure.message, "entry refused");
        }
    }

    fn answer(&mut self, connection: &Rc<Connection>, correlation_id: CorrelationId, body: Body) {
        let heads = &mut self.heads;
        match body {
            Body::Produce { respond: false, .. } => connection.release_request(),
            Body::Produce { entries, .. } => {
                answer::produce(heads, connection, correlation_id, &entries);
            }
            Body::Fetch { mut entries, .. } => {
                if connection.is_congested() {
                    // It does not take what it was sent: it gets nothing that would be held for it on top.
                    entries.iter_mut().for_each(Entry::empty);
                }
                answer::fetch(heads, connection, correlation_id, entries);
            }
            Body::ListOffsets { entries } => {
                answer::list_offsets(heads, connection, correlation_id, &entries);
            }
            Body::Describe { entries } => {
                self.answer_description(connection, correlation_id, &entries);
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
        connection.take_in(0);
        self.metrics().requests_refused.increment();
        tracing::debug!(code = %failure.code, message = %failure.message, "request refused");
        answer::error(&mut self.heads, connection, correlation_id, failure);
    }

    // ---- other cores ----------------------------------------------------------------------------------------------

    /// Hands a part of `request` to the core that owns it, or fails it when there is no credit left: the inboxes are
    /// sized so that whatever credit allows has room.
    pub(super) fn call(&mut self, core: CoreId, request: Key, entries: Vec<u32>, work: Work) {
        if !self.call_credit.has_room() {
            for entry in entries {
                let message = format!("{CALLS_MAX} calls to other cores are unanswered");
                let failure = Failure::new(ErrorCode::OverBudget, message);
                self.entry_failed(request, entry, failure);
            }
            return;
        }
        let is_fetch = matches!(work, Work::Fetch { .. });
        for _ in &entries {
            self.expect(request);
        }
        let call = self.calls.insert(CallTarget {
            core,
            request,
            entries,
        });
        self.call_credit.made(is_fetch);
        if is_fetch {
            if let Some(connection) = self.connection_of(request) {
                connection.fetch_call_made();
            }
            self.add_part(request, Part::There(core, call));
        }
        let from = self.core;
        self.tell(core, PeerMessage::Call { from, call, work });
    }

    /// Whose request it is, if it did not come from another core.
    fn connection_of(&mut self, request: Key) -> Option<&Connection> {
        match &self.requests.get_mut(request)?.origin {
            Origin::Connection(connection) => Some(connection),
            Origin::Core { .. } => None,
        }
    }

    pub(super) fn add_part(&mut self, request: Key, part: Part) {
        if let Some(Pending {
            body: Body::Fetch { parts, .. },
            ..
        }) = self.requests.get_mut(request)
        {
            parts.push(part);
        }
    }

    fn tell(&mut self, core: CoreId, message: PeerMessage) {
        self.metrics().cross_core_messages.increment();
        let sender = self.peers.get(usize::from(core.0)).and_then(Option::as_ref);
        let sent = sender.map(|sender| sender.send(message));
        if let Some(Err(undelivered)) = sent {
            // Inboxes are sized for every call that credit allows; only a core that has gone refuses.
            self.undelivered(core, undelivered.0);
        }
    }

    fn undelivered(&mut self, core: CoreId, message: PeerMessage) {
        let PeerMessage::Call { call, work, .. } = message else {
            return;
        };
        let failure = Failure::new(
            ErrorCode::ShuttingDown,
            format!("core {core}, which owns the partition, has stopped"),
        );
        let outcome = refuse_all(&work, &failure);
        self.call_done(call, outcome);
    }

    /// Takes in what another core sent.
    pub(super) fn take_message(&mut self, message: PeerMessage) {
        match message {
            PeerMessage::Call { from, call, work } => self.work_for(from, call, work),
            PeerMessage::Hurry { from, call } => self.hurry_for(from, call),
            PeerMessage::Done { call, outcome } => self.call_done(call, outcome),
        }
    }

    /// Another core has done its part.
    pub(super) fn call_done(&mut self, call: Key, outcome: WorkOutcome) {
        let Some(CallTarget {
            core,
            request,
            entries,
        }) = self.calls.remove(call)
        else {
            return;
        };
        let is_fetch = matches!(outcome, WorkOutcome::Fetch(_));
        self.call_credit.answered(is_fetch);
        if let WorkOutcome::Fetch(fetched) = &outcome {
            if let Some(connection) = self.connection_of(request) {
                connection.fetch_call_answered();
            }
            let lengths = fetched
                .iter()
                .flatten()
                .map(|(_, _, bytes)| bytes.len() as u64);
            let (bytes, is_error) = (lengths.sum(), fetched.iter().any(Result::is_err));
            self.part_answered(request, Part::There(core, call), bytes, is_error);
        }
        self.merge(request, &entries, outcome);
        for _ in &entries {
            self.outcome_arrived(request);
        }
        self.wake_waiting();
    }

    /// A part of a fetch has answered with so many bytes, or with an error: the others may have to answer now, too.
    pub(super) fn part_answered(&mut self, request: Key, done: Part, bytes: u64, is_error: bool) {
        let Some(Pending {
            body: Body::Fetch { parts, gather, .. },
            ..
        }) = self.requests.get_mut(request)
        else {
            return;
        };
        parts.retain(|part| *part != done);
        if gather.answered(bytes, is_error) != Gathering::Hurry {
            return;
        }
        for part in parts.clone() {
            match part {
                Part::Here(ticket) => self.follow_ups.push(Input::HurryFetch { ticket }),
                Part::There(core, call) => self.hurry_there(core, call),
            }
        }
    }

    pub(super) fn hurry_there(&mut self, core: CoreId, call: Key) {
        let from = self.core;
        self.tell(core, PeerMessage::Hurry { from, call });
    }

    fn merge(&mut self, request: Key, indexes: &[u32], outcome: WorkOutcome) {
        let Some(pending) = self.requests.get_mut(request) else {
            return;
        };
        match (&mut pending.body, outcome) {
            (
                Body::Produce { respond, entries },
                WorkOutcome::Produce {
                    respond: answered,
                    outcomes,
                },
            ) => {
                *respond |= answered;
                fill(entries, indexes, outcomes);
            }
            (Body::Fetch { entries, .. }, WorkOutcome::Fetch(outcomes)) => {
                let outcomes = outcomes
                    .into_iter()
                    .map(|outcome| outcome.map(fetched_elsewhere));
                fill(entries, indexes, outcomes);
            }
            (Body::ListOffsets { entries }, WorkOutcome::ListOffsets(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            (Body::Describe { entries }, WorkOutcome::Describe(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            _ => unreachable!("a core answers the question it was asked"),
        }
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

    /// Asks the control thread for a change of the metadata.
    pub(super) fn propose(&mut self, target: ProposalTarget, command: Command) {
        self.progress.work_started();
        let call = self.proposals.insert(target);
        let core = self.core;
        let message = ToControl::Propose {
            core,
            call,
            command,
        };
        if self.control.try_send(message).is_err() {
            let refusal = tackboard_logic::metadata::MetadataRefusal {
                code: ErrorCode::ShuttingDown,
                message: "the broker's control thread has stopped or is overloaded".into(),
            };
            self.proposal_done(call, Err(refusal));
        }
    }
}

fn first_failure<T>(entries: &[Entry<T>]) -> Option<(&str, i32, &Failure)> {
    entries.iter().find_map(|entry| match &entry.outcome {
        Some(Err(failure)) => Some((&*entry.topic, entry.partition.0, failure)),
        _ => None,
    })
}

fn fill<T>(
    entries: &mut [Entry<T>],
    indexes: &[u32],
    outcomes: impl IntoIterator<Item = Result<T, Failure>>,
) {
    for (index, outcome) in indexes.iter().zip(outcomes) {
        entries[*index as usize].outcome = Some(outcome);
    }
}

fn fetched_elsewhere(
    (high_watermark, log_start_offset, bytes): (
        tackboard_schema::Offset,
        tackboard_schema::Offset,
        bytes::Bytes,
    ),
) -> super::request::Fetched {
    let mut pieces = Vec::new();
    if !bytes.is_empty() {
        pieces.push(super::request::Piece::Owned(bytes));
    }
    super::request::Fetched {
        high_watermark,
        log_start_offset,
        pieces,
    }
}

fn taken<T>(outcome: Option<Result<T, Failure>>) -> Result<T, Failure> {
    outcome.unwrap_or_else(|| Err(Failure::plain(ErrorCode::UnknownServerError)))
}

/// A completed request's outcomes with everything owned, so that they can leave the core.
fn into_outcome(body: Body) -> WorkOutcome {
    match body {
        Body::Produce { respond, entries } => WorkOutcome::Produce {
            respond,
            outcomes: entries
                .into_iter()
                .map(|entry| taken(entry.outcome))
                .collect(),
        },
        Body::Fetch { entries, .. } => {
            let copied = entries.into_iter().map(|entry| {
                taken(entry.outcome).map(|fetched| {
                    let mut bytes = bytes::BytesMut::with_capacity(fetched.byte_length());
                    for piece in &fetched.pieces {
                        bytes.extend_from_slice(piece.bytes());
                    }
                    (
                        fetched.high_watermark,
                        fetched.log_start_offset,
                        bytes.freeze(),
                    )
                })
            });
            WorkOutcome::Fetch(copied.collect())
        }
        Body::ListOffsets { entries } => WorkOutcome::ListOffsets(
            entries
                .into_iter()
                .map(|entry| taken(entry.outcome))
                .collect(),
        ),
        Body::Describe { entries } => WorkOutcome::Describe(
            entries
                .into_iter()
                .map(|entry| taken(entry.outcome))
                .collect(),
        ),
    }
}

fn refuse_all(work: &Work, failure: &Failure) -> WorkOutcome {
    let times = |count: usize| std::iter::repeat_n(failure.clone(), count);
    match work {
        Work::Produce { entries, .. } => WorkOutcome::Produce {
            respond: true,
            outcomes: times(entries.len()).map(Err).collect(),
        },
        Work::Fetch { entries, .. } => WorkOutcome::Fetch(times(entries.len()).map(Err).collect()),
        Work::ListOffsets(entries) => {
            WorkOutcome::ListOffsets(times(entries.len()).map(Err).collect())
        }
        Work::Describe(entries) => WorkOutcome::Describe(times(entries.len()).map(Err).collect()),
    }
}
