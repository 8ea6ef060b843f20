//! Hands the entries of a request to this core's logic, and takes their outcomes in.

use tackboard_logic::{
    request::{
        fetch::Bounds,
        gather::Gathering,
        lookup::{ListedOffset, Lookup, LookupStep, Wanted},
        produce::{Appended, merge},
    },
    shard::interface::{
        AdvanceLogStart, Append, FetchEntry, Input, LogId, PayloadId, Refusal, Ticket,
    },
};
use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, TimestampMs, record_batch::check_batch};

use super::{
    launch::Launch,
    request::{Body, Failure, Fetched, Levels, Part, Pending, TicketTarget},
    slab::Key,
    state::State,
    topics::effective_acks,
};
use crate::native::connection::Connection;

/// The payload of the append being handed over: logic places or discards it within the step.
const PAYLOAD: PayloadId = PayloadId(0);
/// Batches in one produce entry.
pub const BATCHES_PER_ENTRY_MAX: usize = 1024;

impl State {
    // ---- produce --------------------------------------------------------------------------------------------------

    /// Appends the batches in `bytes`, all or none of which are well formed, to one log of this core.
    pub fn append_here(
        &mut self,
        request: Key,
        entry: u32,
        log: LogId,
        bytes: &[u8],
        levels: Levels,
        deadline_us: u64,
    ) {
        if let Err(failure) = check_entry(bytes, self.config.frame_bytes_max) {
            return self.entry_refused(request, entry, levels, failure);
        }
        let mut rest = bytes;
        while let Ok(header) = tackboard_schema::record_batch::BatchHeader::read(rest) {
            let (batch, after) = rest.split_at(header.total_length());
            rest = after;
            self.expect(request);
            let target = TicketTarget::Append { request, entry };
            let ticket = Ticket(self.tickets.insert(target));
            let append = Append {
                log,
                ticket,
                header,
                payload: PAYLOAD,
                acks: levels.acks,
                durability: levels.durability,
                deadline_us,
            };
            self.step(Input::Append(append), batch);
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Refuses one produce entry. A producer that waits for no answer gets none.
    pub fn entry_refused(&mut self, request: Key, entry: u32, levels: Levels, failure: Failure) {
        self.metrics().produce_batches_refused.increment();
        let Some(Pending {
            body: Body::Produce { entries, .. },
            ..
        }) = self.requests.get_mut(request)
        else {
            return;
        };
        let topic = self.topics.topic(&entries[entry as usize].topic);
        let acks = effective_acks(&self.config, topic.map(|topic| &**topic), levels.acks);
        self.entry_appended(request, entry, acks.is_answered(), Err(failure));
    }

    /// One batch of a produce entry was appended or refused. The entry keeps its first offset and its first failure.
    pub(super) fn entry_appended(
        &mut self,
        request: Key,
        entry: u32,
        respond: bool,
        outcome: Result<Appended, Failure>,
    ) {
        let Some(Pending {
            body:
                Body::Produce {
                    respond: answered,
                    entries,
                },
            ..
        }) = self.requests.get_mut(request)
        else {
            return;
        };
        answered.note(respond);
        let known = &mut entries[entry as usize].outcome;
        *known = Some(merge(known.take(), outcome));
    }

    // ---- fetch ----------------------------------------------------------------------------------------------------

    /// Reads from logs of this core: parked until there is enough, or the deadline.
    pub fn fetch_here(&mut self, request: Key, entries: Vec<(u32, FetchEntry)>, bounds: Bounds) {
        let (indexes, entries): (Vec<u32>, Vec<FetchEntry>) = entries.into_iter().unzip();
        for _ in &indexes {
            self.expect(request);
        }
        let target = TicketTarget::Fetch {
            request,
            entries: indexes,
        };
        let ticket = Ticket(self.tickets.insert(target));
        self.add_part(request, Part::Here(ticket));
        let input = Input::Fetch {
            ticket,
            entries,
            bytes_min: bounds.bytes_min,
            bytes_max: bounds.bytes_max,
            deadline_us: self.deadline_us(bounds.wait_ms),
        };
        self.step(input, &[]);
    }

    /// A part of a request was handed out, which may be parked.
    pub(super) fn add_part(&mut self, request: Key, part: Part) {
        if let Some(Pending {
            body: Body::Fetch { parts, .. } | Body::Groups { parts, .. },
            ..
        }) = self.requests.get_mut(request)
        {
            parts.push(part);
        }
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

    /// What one fetch entry yields is known.
    pub(super) fn entry_fetched(
        &mut self,
        request: Key,
        entry: u32,
        outcome: Result<Fetched, Failure>,
    ) {
        if let Ok(fetched) = &outcome {
            self.metrics().fetch_bytes.add(fetched.byte_length() as u64);
        }
        if let Some(Pending {
            body: Body::Fetch { entries, .. },
            ..
        }) = self.requests.get_mut(request)
        {
            entries[entry as usize].outcome = Some(outcome);
        }
    }

    // ---- offsets and descriptions ---------------------------------------------------------------------------------

    /// Looks an offset up by time or special value in a log of this core.
    pub fn list_offset_here(
        &mut self,
        request: Key,
        entry: u32,
        log: LogId,
        timestamp: TimestampMs,
    ) {
        let step = match Wanted::parse(timestamp) {
            Ok(wanted) => Lookup::begin(&self.machine, log, wanted),
            Err(refusal) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, refusal.to_string());
                return self.entry_listed(request, entry, Err(failure));
            }
        };
        let outcome = match step {
            LookupStep::Read(lookup) => {
                self.expect(request);
                return self.launch_lookup(request, entry, lookup);
            }
            LookupStep::Listed(listed) => Ok(listed),
            LookupStep::Deleted => Err(Failure::plain(ErrorCode::UnknownTopicOrPartition)),
            LookupStep::Truncating => Err(Failure::plain(ErrorCode::NotLeaderOrFollower)),
            LookupStep::Fault(_) => unreachable!("nothing was read yet"),
        };
        self.entry_listed(request, entry, outcome);
    }

    fn launch_lookup(&mut self, request: Key, entry: u32, lookup: Lookup) {
        match self.launches.last_mut() {
            Some(Launch::LookUps {
                request: same,
                lookups,
            }) if *same == request => lookups.push((entry, lookup)),
            _ => self.launches.push(Launch::LookUps {
                request,
                lookups: vec![(entry, lookup)],
            }),
        }
    }

    /// An offset was looked up.
    pub(super) fn entry_listed(
        &mut self,
        request: Key,
        entry: u32,
        outcome: Result<ListedOffset, Failure>,
    ) {
        if let Some(Pending {
            body: Body::ListOffsets { entries },
            ..
        }) = self.requests.get_mut(request)
        {
            entries[entry as usize].outcome = Some(outcome);
        }
    }

    /// Looks up where a leader epoch ends in a log of this core.
    pub fn epoch_end_here(&mut self, request: Key, entry: u32, log: LogId, epoch: LeaderEpoch) {
        let outcome = match self.machine.is_truncating(log) {
            true => Err(Failure::plain(ErrorCode::NotLeaderOrFollower)),
            false => Ok(self.machine.epoch_end(log, epoch)),
        };
        if let Some(Pending {
            body: Body::EpochEnds { entries },
            ..
        }) = self.requests.get_mut(request)
        {
            entries[entry as usize].outcome = Some(outcome);
        }
    }

    /// Deletes what a log of this core holds below `offset`; `None`: below its high watermark.
    pub fn delete_records_here(
        &mut self,
        request: Key,
        entry: u32,
        log: LogId,
        offset: Option<Offset>,
    ) {
        if let Err(failure) = self.spare_group_log(log) {
            return self.entry_failed(request, entry, failure);
        }
        self.expect(request);
        let target = TicketTarget::DeleteRecords { request, entry };
        let advance = AdvanceLogStart {
            log,
            ticket: Ticket(self.tickets.insert(target)),
            offset,
        };
        self.step(Input::AdvanceLogStart(advance), &[]);
    }

    /// A log begins where it was asked to, or does not.
    pub(super) fn records_deleted(
        &mut self,
        request: Key,
        entry: u32,
        outcome: Result<Offset, Refusal>,
    ) {
        let outcome = outcome.map_err(|refusal| Failure::new(refusal.code, refusal.to_string()));
        if let Some(Pending {
            body: Body::DeleteRecords { entries },
            ..
        }) = self.requests.get_mut(request)
        {
            entries[entry as usize].outcome = Some(outcome);
        }
        self.outcome_arrived(request);
    }

    /// Describes a log of this core.
    pub fn describe_here(&mut self, request: Key, entry: u32, log: LogId) {
        let described = self.machine.describe(log);
        if let Some(Pending {
            body: Body::Describe { entries },
            ..
        }) = self.requests.get_mut(request)
        {
            let missing = || Failure::plain(ErrorCode::UnknownTopicOrPartition);
            entries[entry as usize].outcome = Some(described.ok_or_else(missing));
        }
    }

    /// Records that an entry failed before it reached a log; one of a produce request is [refused](Self::entry_refused).
    pub fn entry_failed(&mut self, request: Key, entry: u32, failure: Failure) {
        let Some(pending) = self.requests.get_mut(request) else {
            return;
        };
        let index = entry as usize;
        match &mut pending.body {
            Body::Produce { .. } => unreachable!("who is told of it depends on the acks"),
            Body::Fetch { entries, .. } => entries[index].outcome = Some(Err(failure)),
            Body::ListOffsets { entries } => entries[index].outcome = Some(Err(failure)),
            Body::EpochEnds { entries } => entries[index].outcome = Some(Err(failure)),
            Body::DeleteRecords { entries } => entries[index].outcome = Some(Err(failure)),
            Body::Describe { entries } => entries[index].outcome = Some(Err(failure)),
            Body::Groups { entries, .. } => entries[index].outcome = Some(Err(failure)),
        }
    }

    // ---- hurry ------------------------------------------------------------------------------------------------------

    /// Answers what is parked of a fetch with what there is.
    pub(super) fn hurry(&mut self, request: Key) {
        let Some(Pending {
            body: Body::Fetch { parts, .. },
            ..
        }) = self.requests.get_mut(request)
        else {
            return;
        };
        for part in parts.clone() {
            match part {
                Part::Here(ticket) => self.step(Input::HurryFetch { ticket }, &[]),
                Part::There(core, call) => self.hurry_there(core, call),
            }
        }
    }

    /// The broker stops: nothing is gained by letting fetches wait.
    pub(super) fn hurry_fetches(&mut self) {
        for request in self.requests.keys() {
            self.hurry(request);
        }
    }

    /// A connection's client has gone: nobody waits for what it asked for. How many requests others have on this core is of
    /// no account: thousands of clients may go at once.
    pub(super) fn client_gone(&mut self, connection: &Connection) {
        for request in connection.waiting_requests() {
            self.hurry(request);
            // A stop ends the reading of all of them: clients are there, and wait for what is being stored.
            if !self.stopping {
                self.abandon_group_request(request);
            }
        }
    }
}

/// Whether an entry is one or more well-formed batches. All are looked at before the first is appended, so that bad
/// bytes leave no half of an entry behind.
fn check_entry(bytes: &[u8], batch_bytes_max: u32) -> Result<(), Failure> {
    let mut at = 0;
    let mut count = 0;
    while at < bytes.len() {
        let batch = check_batch(&bytes[at..], batch_bytes_max).map_err(|error| {
            let message = format!("batch at byte {at} of the entry: {error}");
            Failure::new(error.error_code(), message)
        })?;
        count += 1;
        if count > BATCHES_PER_ENTRY_MAX {
            let message = format!("more than {BATCHES_PER_ENTRY_MAX} batches in one entry");
            return Err(Failure::new(ErrorCode::InvalidRequest, message));
        }
        at += batch.bytes().len();
    }
    match count {
        0 => {
            let message = "the entry has no record batch";
            Err(Failure::new(ErrorCode::InvalidRequest, message))
        }
        _ => Ok(()),
    }
}
