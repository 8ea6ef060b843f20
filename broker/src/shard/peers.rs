//! Between cores: what this one asks of the others, and what it does for them.
//!
//! A request's part for another core leaves as [`Work`] with everything owned, and its outcome comes back the same way,
//! but for batches that were fetched: those are lent ([`super::loan`]). The asker keeps a [`CallTarget`], the other core a [`Pending`] request whose origin is the asker.
//!
//! Not here: how many calls there may be (`tackboard_logic::request::calls`), and what a request does on the core that
//! owns its logs ([`super::work`]).

use std::rc::Rc;

use bytes::Bytes;
use tackboard_logic::{
    request::{
        by_core::{ByCore, CorePart},
        calls::CALLS_MAX,
        fetch::Bounds,
        gather::Gather,
        produce::Respond,
    },
    shard::interface::{FetchEntry, Input},
};
use tackboard_schema::{
    CoreId, CorrelationId, ErrorCode, LeaderEpoch, Offset, TimestampMs, TopicPartition,
};

use super::{
    groups::{GroupRequest, Room, as_coordinator},
    loan,
    request::{
        Body, CallTarget, Entry, Failure, Fetched, FetchedThere, Levels, Origin, Part, PeerMessage,
        Work, WorkOutcome,
    },
    slab::Key,
    state::State,
};

impl State {
    // ---- what this core asks ----------------------------------------------------------------------------------------

    /// Hands the parts of `request` to the cores that own them.
    pub fn call_each<T>(
        &mut self,
        request: Key,
        elsewhere: ByCore<T>,
        work: impl Fn(Vec<T>) -> Work,
    ) {
        for part in elsewhere.into_parts() {
            let CorePart {
                core,
                indexes,
                entries,
            } = part;
            self.call(core, request, indexes, work(entries));
        }
    }

    /// Hands a part of `request` to the core that owns it, or fails it when there is no credit left: the inboxes are
    /// sized so that whatever credit allows has room.
    pub(super) fn call(&mut self, core: CoreId, request: Key, entries: Vec<u32>, work: Work) {
        if !self.call_credit.has_room() {
            let message = format!("{CALLS_MAX} calls to other cores are unanswered");
            let failure = Failure::new(ErrorCode::OverBudget, message);
            let outcome = self.refuse_all(request, &entries, &work, &failure);
            return self.merge(request, &entries, outcome);
        }
        // These wait for others to do something.
        let may_wait = match &work {
            Work::Fetch { .. } => true,
            Work::Groups(entries) => entries.iter().any(|(_, wanted)| wanted.may_wait()),
            _ => false,
        };
        for _ in &entries {
            self.expect(request);
        }
        let call = self.calls.insert(CallTarget {
            core,
            request,
            entries,
            may_wait,
        });
        self.call_credit.made(may_wait);
        if may_wait {
            if let Some(connection) = self.connection_of(request) {
                connection.fetch_call_made();
            }
            self.add_part(request, Part::There(core, call));
        }
        let from = self.core;
        self.tell(core, PeerMessage::Call { from, call, work });
    }

    pub(super) fn tell(&mut self, core: CoreId, message: PeerMessage) {
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
        if let Some(target) = self.calls.get_mut(call) {
            let (request, entries) = (target.request, target.entries.clone());
            let outcome = self.refuse_all(request, &entries, &work, &failure);
            self.call_done(call, outcome);
        }
    }

    /// The outcome of work that no core does.
    fn refuse_all(
        &mut self,
        request: Key,
        entries: &[u32],
        work: &Work,
        failure: &Failure,
    ) -> WorkOutcome {
        fn all<T>(entries: &[u32], failure: &Failure) -> Vec<Result<T, Failure>> {
            entries.iter().map(|_| Err(failure.clone())).collect()
        }
        match work {
            Work::Produce { levels, .. } => {
                for entry in entries {
                    self.entry_refused(request, *entry, *levels, failure.clone());
                }
                WorkOutcome::Produce {
                    // Whether anybody is told of it was noted with each.
                    respond: Respond::default(),
                    outcomes: all(entries, failure),
                }
            }
            Work::Fetch { .. } => WorkOutcome::Fetch {
                outcomes: all(entries, failure),
                loan: None,
            },
            Work::ListOffsets(_) => WorkOutcome::ListOffsets(all(entries, failure)),
            Work::DeleteRecords(_) => WorkOutcome::DeleteRecords(all(entries, failure)),
            Work::EpochEnds(_) => WorkOutcome::EpochEnds(all(entries, failure)),
            Work::Describe(_) => WorkOutcome::Describe(all(entries, failure)),
            Work::Groups(_) => WorkOutcome::Groups(all(entries, failure)),
        }
    }

    /// Takes in what another core sent.
    pub(super) fn take_message(&mut self, message: PeerMessage) {
        match message {
            PeerMessage::Call { from, call, work } => self.work_for(from, call, work),
            PeerMessage::Hurry { from, call } => self.hurry_for(from, call),
            PeerMessage::Done { call, outcome } => self.call_done(call, outcome),
            PeerMessage::GivenBack { loan } => self.loans.given_back(loan),
        }
    }

    /// Another core has done its part.
    pub(super) fn call_done(&mut self, call: Key, outcome: WorkOutcome) {
        let Some(CallTarget {
            core,
            request,
            entries,
            may_wait,
        }) = self.calls.remove(call)
        else {
            return;
        };
        self.call_credit.answered(may_wait);
        if may_wait && let Some(connection) = self.connection_of(request) {
            connection.fetch_call_answered();
        }
        if let WorkOutcome::Fetch { outcomes, loan } = &outcome {
            let bytes = loan.as_ref().map_or(0, |loan| loan.byte_length() as u64);
            let is_error = outcomes.iter().any(Result::is_err);
            self.part_answered(request, Part::There(core, call), bytes, is_error);
        }
        self.merge(request, &entries, outcome);
        for _ in &entries {
            self.outcome_arrived(request);
        }
        self.wake_waiting();
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
                respond.note(answered.is_due());
                fill(entries, indexes, outcomes);
            }
            (Body::Fetch { entries, .. }, WorkOutcome::Fetch { outcomes, loan }) => {
                let loan = loan.map(Rc::new);
                let fetched = |there: FetchedThere| Fetched {
                    high_watermark: there.high_watermark,
                    log_start_offset: there.log_start_offset,
                    pieces: (loan.as_ref())
                        .map_or_else(Vec::new, |loan| loan::pieces(loan, there.pieces)),
                };
                let outcomes = outcomes.into_iter().map(|outcome| outcome.map(fetched));
                fill(entries, indexes, outcomes);
            }
            (Body::ListOffsets { entries }, WorkOutcome::ListOffsets(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            (Body::DeleteRecords { entries }, WorkOutcome::DeleteRecords(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            (Body::EpochEnds { entries }, WorkOutcome::EpochEnds(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            (Body::Describe { entries }, WorkOutcome::Describe(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            (Body::Groups { entries, .. }, WorkOutcome::Groups(outcomes)) => {
                fill(entries, indexes, outcomes);
            }
            _ => unreachable!("a core answers the question it was asked"),
        }
    }

    // ---- what it does for others ------------------------------------------------------------------------------------

    /// A completed part's outcomes in a form that can leave this core for `asker`.
    pub(super) fn outcome_for(&mut self, asker: CoreId, body: Body) -> WorkOutcome {
        match body {
            Body::Produce { respond, entries } => WorkOutcome::Produce {
                respond,
                outcomes: all_taken(entries),
            },
            Body::Fetch { entries, .. } => self.lend(asker, entries),
            Body::ListOffsets { entries } => WorkOutcome::ListOffsets(all_taken(entries)),
            Body::DeleteRecords { entries } => WorkOutcome::DeleteRecords(all_taken(entries)),
            Body::EpochEnds { entries } => WorkOutcome::EpochEnds(all_taken(entries)),
            Body::Describe { entries } => WorkOutcome::Describe(all_taken(entries)),
            Body::Groups { entries, .. } => WorkOutcome::Groups(all_taken(entries)),
        }
    }

    /// Lends what was fetched for `asker`.
    fn lend(&mut self, asker: CoreId, entries: Vec<Entry<Fetched>>) -> WorkOutcome {
        let mut all = Vec::new();
        let mut lent = |fetched: Fetched| {
            let from = all.len();
            all.extend(fetched.pieces);
            FetchedThere {
                high_watermark: fetched.high_watermark,
                log_start_offset: fetched.log_start_offset,
                pieces: from..all.len(),
            }
        };
        let outcomes = all_taken(entries)
            .into_iter()
            .map(|outcome| outcome.map(&mut lent));
        let outcomes = outcomes.collect();
        let loan = (!all.is_empty()).then(|| self.loans.lend(asker, all));
        if let Some(loan) = &loan {
            let metrics = self.metrics();
            let counter = if loan.is_copy() {
                &metrics.cross_core_bytes_copied
            } else {
                &metrics.cross_core_bytes_lent
            };
            counter.add(loan.byte_length() as u64);
        }
        WorkOutcome::Fetch { outcomes, loan }
    }

    /// Does another core's part of a request.
    fn work_for(&mut self, from: CoreId, call: Key, work: Work) {
        let origin = Origin::Core { core: from, call };
        let request = match work {
            Work::Produce {
                entries,
                levels,
                timeout_ms,
            } => self.produce_for(origin, &entries, levels, timeout_ms),
            Work::Fetch { entries, bounds } => {
                let request = self.fetch_for(origin, entries, bounds);
                self.peer_waits.insert((from, call), request);
                request
            }
            Work::ListOffsets(entries) => self.list_offsets_for(origin, entries),
            Work::DeleteRecords(entries) => self.delete_records_for(origin, entries),
            Work::EpochEnds(entries) => self.epoch_ends_for(origin, entries),
            Work::Describe(entries) => self.describe_for(origin, &entries),
            Work::Groups(entries) => {
                let may_wait = entries.iter().any(|(_, wanted)| wanted.may_wait());
                let request = self.groups_for(origin, entries);
                if may_wait {
                    self.peer_waits.insert((from, call), request);
                }
                request
            }
        };
        self.handed_out(request);
    }

    /// Takes in another core's part.
    fn begin_for<T>(
        &mut self,
        origin: Origin,
        partitions: impl Iterator<Item = TopicPartition>,
        body: impl FnOnce(Vec<Entry<T>>) -> Body,
    ) -> Key {
        let image = self.topics.image();
        let entry = |partition: TopicPartition| {
            // Of a topic that only the asker knows, the asker knows the name, too.
            let name = (image.topic_by_id(partition.topic))
                .map_or_else(|| "".into(), |topic| topic.name.clone());
            Entry::waiting(name, partition.partition)
        };
        let entries = partitions.map(entry).collect();
        self.begin(origin, CorrelationId(0), 0, body(entries))
    }

    fn groups_for(&mut self, origin: Origin, entries: Vec<(TopicPartition, GroupRequest)>) -> Key {
        let names = entries.iter().map(|(name, _)| *name);
        let room = Room::new(self.config.frame_bytes_max);
        let request = self.begin_for(origin, names, |entries| Body::Groups {
            entries,
            parts: Vec::new(),
            room,
            asked: None,
        });
        for (index, (name, wanted)) in (0..).zip(entries) {
            match self.topics.served(name) {
                Ok(log) => self.group_here(request, index, log, wanted),
                // The asker's image has the topic, this core may not have opened it yet.
                Err(failure) => self.entry_failed(request, index, as_coordinator(&failure)),
            }
        }
        request
    }

    fn produce_for(
        &mut self,
        origin: Origin,
        entries: &[(TopicPartition, Bytes)],
        levels: Levels,
        timeout_ms: u32,
    ) -> Key {
        let names = entries.iter().map(|(name, _)| *name);
        let request = self.begin_for(origin, names, |entries| Body::Produce {
            respond: Respond::default(),
            entries,
        });
        let deadline_us = self.deadline_us(timeout_ms);
        for (index, (name, bytes)) in (0..).zip(entries) {
            match self.topics.served(*name) {
                Ok(log) => self.append_here(request, index, log, bytes, levels, deadline_us),
                Err(failure) => self.entry_refused(request, index, levels, failure),
            }
        }
        // What one message brought was one turn of the core that sent it, and is written as that.
        self.step(Input::TurnEnd, &[]);
        request
    }

    fn fetch_for(
        &mut self,
        origin: Origin,
        entries: Vec<(TopicPartition, Offset, u32)>,
        bounds: Bounds,
    ) -> Key {
        let names = entries.iter().map(|(name, ..)| *name);
        let request = self.begin_for(origin, names, |entries| Body::Fetch {
            entries,
            parts: Vec::new(),
            gather: Gather::new(1, 0),
            bytes_max: bounds.bytes_max,
        });
        let mut here = Vec::with_capacity(entries.len());
        let mut failed = false;
        for (index, (name, offset, bytes_max)) in (0..).zip(entries) {
            match self.topics.served(name) {
                Ok(log) => here.push((
                    index,
                    FetchEntry {
                        log,
                        offset,
                        bytes_max,
                    },
                )),
                Err(failure) => {
                    failed = true;
                    self.entry_failed(request, index, failure);
                }
            }
        }
        if !here.is_empty() {
            self.fetch_here(request, here, bounds.share(1, failed));
        }
        request
    }

    fn list_offsets_for(
        &mut self,
        origin: Origin,
        entries: Vec<(TopicPartition, TimestampMs)>,
    ) -> Key {
        let names = entries.iter().map(|(name, _)| *name);
        let body = |entries| Body::ListOffsets { entries };
        let request = self.begin_for(origin, names, body);
        for (index, (name, timestamp)) in (0..).zip(entries) {
            match self.topics.served(name) {
                Ok(log) => self.list_offset_here(request, index, log, timestamp),
                Err(failure) => self.entry_failed(request, index, failure),
            }
        }
        request
    }

    fn epoch_ends_for(
        &mut self,
        origin: Origin,
        entries: Vec<(TopicPartition, LeaderEpoch)>,
    ) -> Key {
        let names = entries.iter().map(|(name, _)| *name);
        let body = |entries| Body::EpochEnds { entries };
        let request = self.begin_for(origin, names, body);
        for (index, (name, epoch)) in (0..).zip(entries) {
            match self.topics.served(name) {
                Ok(log) => self.epoch_end_here(request, index, log, epoch),
                Err(failure) => self.entry_failed(request, index, failure),
            }
        }
        request
    }

    fn delete_records_for(
        &mut self,
        origin: Origin,
        entries: Vec<(TopicPartition, Option<Offset>)>,
    ) -> Key {
        let names = entries.iter().map(|(name, _)| *name);
        let body = |entries| Body::DeleteRecords { entries };
        let request = self.begin_for(origin, names, body);
        for (index, (name, offset)) in (0..).zip(entries) {
            match self.topics.served(name) {
                Ok(log) => self.delete_records_here(request, index, log, offset),
                Err(failure) => self.entry_failed(request, index, failure),
            }
        }
        request
    }

    fn describe_for(&mut self, origin: Origin, names: &[TopicPartition]) -> Key {
        let body = |entries| Body::Describe { entries };
        let request = self.begin_for(origin, names.iter().copied(), body);
        for (index, name) in (0..).zip(names) {
            match self.topics.served(*name) {
                Ok(log) => self.describe_here(request, index, log),
                Err(failure) => self.entry_failed(request, index, failure),
            }
        }
        request
    }

    /// Another core wants what it has parked here answered now: a fetch with what there is, a join with a refusal.
    fn hurry_for(&mut self, from: CoreId, call: Key) {
        if let Some(request) = self.peer_waits.get(&(from, call)).copied() {
            self.hurry(request);
            self.abandon_group_request(request);
        }
    }
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

fn all_taken<T>(entries: Vec<Entry<T>>) -> Vec<Result<T, Failure>> {
    let unknown = || Err(Failure::plain(ErrorCode::UnknownServerError));
    let outcomes = entries.into_iter().map(|entry| entry.outcome);
    outcomes
        .map(|outcome| outcome.unwrap_or_else(unknown))
        .collect()
}
