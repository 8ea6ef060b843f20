//! A coordinator's partition of the internal topic: what it stores is appended, all of it is read when it comes into
//! being, and it is written anew when it has grown.

use tackboard_logic::{
    group::{
        Loader, RewritePlan,
        interface::{Record, StoreId},
    },
    request::{fetch::Bounds, gather::Gather, produce::Respond},
    shard::interface::{AdvanceLogStart, FetchEntry, Input, LogId, Refusal, Ticket},
};
use tackboard_schema::{
    Acks, CorrelationId, DecodeError, ErrorCode, Offset, TimestampMs, TopicPartition,
    record_batch::{BatchBuilder, BatchFull, BatchIterator, Compression},
};

use super::{Host, OFFSETS_TOPIC, Serving};
use crate::shard::{
    request::{Body, Entry, Failure, Fetched, Levels, Origin, TicketTarget},
    state::State,
};

/// Bytes of a log that are read at a time when a coordinator comes into being.
const LOAD_BYTES: u32 = 1 << 20;
/// How long a coordinator waits for its records to be stored, in milliseconds. Kafka's `offsets.commit.timeout.ms`.
const STORE_TIMEOUT_MS: u32 = 5_000;
/// A batch of records is ended when it is so long, in bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Longest batch that the internal topic takes, in bytes: whatever a coordinator has to say of one group, and the batch
/// around it.
pub(super) const STORED_BATCH_BYTES_MAX: u32 = 8 << 20;

/// What a request of the coordinator's own is for.
#[derive(Clone, Copy, Debug)]
pub enum GroupWork {
    /// Records are appended.
    Store(TopicPartition, StoreId),
    /// The log is read.
    Load(TopicPartition),
}

/// A coordinator that is reading its log.
pub(super) struct Loading {
    loader: Loader,
    next: Offset,
    /// A read is under way.
    is_reading: bool,
    /// It could not be read, which was said.
    has_failed: bool,
    /// Records that are not about groups: how many, and what is wrong with the first one.
    strange: Option<(u64, DecodeError)>,
}

/// How far writing the log anew has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rewrite {
    /// It is not under way.
    Rests,
    /// Everything that lives is written behind this offset, at which the log was so long.
    Writing { from: Offset, size_bytes: u64 },
    /// The log is to begin there.
    Advancing { living_bytes: u64 },
}

impl State {
    // ---- appends --------------------------------------------------------------------------------------------------

    /// Appends records of a coordinator.
    pub(super) fn store_group(
        &mut self,
        partition: TopicPartition,
        store: StoreId,
        records: &[Record],
    ) {
        let log = self.topics.served(partition);
        let batches = batches(records, self.now.wall);
        let (log, batches) = match (log, batches) {
            (Ok(log), Ok(batches)) => (log, batches),
            (Err(failure), _) => return self.store_ended(partition, store, Err(failure.code)),
            (_, Err(_)) => {
                return self.store_ended(partition, store, Err(ErrorCode::MessageTooLarge));
            }
        };
        let body = Body::Produce {
            respond: Respond::default(),
            entries: vec![Entry::waiting(OFFSETS_TOPIC.into(), partition.partition)],
        };
        let origin = Origin::Groups(GroupWork::Store(partition, store));
        let request = self.begin(origin, CorrelationId(0), batches.len() as u64, body);
        let levels = Levels {
            acks: Some(Acks::All),
            durability: None,
        };
        let deadline_us = self.deadline_us(STORE_TIMEOUT_MS);
        self.append_here(request, 0, log, &batches, levels, deadline_us);
        self.handed_out(request);
    }

    /// The coordinator is told at the end of the turn: it may be in the middle of a step.
    fn store_ended(
        &mut self,
        partition: TopicPartition,
        store: StoreId,
        result: Result<(), ErrorCode>,
    ) {
        self.groups.stored.push_back((partition, store, result));
    }

    /// A request of a coordinator's own is complete.
    pub(in crate::shard) fn group_work_done(&mut self, work: GroupWork, body: Body) {
        match (work, body) {
            (GroupWork::Store(partition, store), Body::Produce { entries, .. }) => {
                let outcome = entries.into_iter().next().and_then(|entry| entry.outcome);
                let result = match outcome {
                    Some(Ok(_)) => Ok(()),
                    Some(Err(failure)) => Err(failure.code),
                    None => Err(ErrorCode::UnknownServerError),
                };
                self.store_ended(partition, store, result);
            }
            (GroupWork::Load(partition), Body::Fetch { entries, .. }) => {
                let outcome = entries.into_iter().next().and_then(|entry| entry.outcome);
                let unknown = || Err(Failure::plain(ErrorCode::UnknownServerError));
                self.take_loaded(partition, outcome.unwrap_or_else(unknown));
            }
            _ => unreachable!("stored by a produce, loaded by a fetch"),
        }
    }

    // ---- loading --------------------------------------------------------------------------------------------------

    /// A partition of the internal topic was opened: its coordinator comes into being.
    pub(in crate::shard) fn begin_load(&mut self, partition: TopicPartition, log: LogId) {
        let Some(described) = self.machine.describe(log) else {
            return;
        };
        let loading = self.loading_from(described.log_start_offset);
        self.groups.hosts.insert(partition, loading);
        self.load_more(partition);
    }

    fn loading_from(&self, next: Offset) -> Host {
        Host::Loading(Box::new(Loading {
            loader: Loader::new(self.group_settings(), self.now),
            next,
            is_reading: false,
            has_failed: false,
            strange: None,
        }))
    }

    /// Refuses to have records of groups deleted, but for those of a partition that can't be read: its groups are served
    /// again from what lies behind.
    ///
    /// # Errors
    /// `INVALID_TOPIC_EXCEPTION`.
    pub(in crate::shard) fn spare_group_log(&self, log: LogId) -> Result<(), Failure> {
        let partition = self.opened(log).map(|opened| opened.partition);
        let topic = self.topics.topic(OFFSETS_TOPIC);
        let Some(partition) =
            partition.filter(|partition| topic.is_some_and(|topic| topic.id == partition.topic))
        else {
            return Ok(());
        };
        match self.groups.hosts.get(&partition) {
            Some(Host::Loading(loading)) if loading.has_failed => Ok(()),
            _ => {
                let message = format!("the broker alone writes topic {OFFSETS_TOPIC}");
                Err(Failure::new(ErrorCode::InvalidTopicException, message))
            }
        }
    }

    /// Reads on, or, if everything was read, begins to serve.
    pub(super) fn load_more(&mut self, partition: TopicPartition) {
        let Some(Host::Loading(loading)) = self.groups.hosts.get_mut(&partition) else {
            return;
        };
        if loading.is_reading {
            return;
        }
        let next = loading.next;
        let log = self.topics.log(partition);
        let Some((log, described)) = log.and_then(|log| Some((log, self.machine.describe(log)?)))
        else {
            return;
        };
        if next < described.log_start_offset {
            // What could not be read was given up. What was read before it is older than that.
            let (from, to) = (next.0, described.log_start_offset.0);
            tracing::warn!(
                %partition, from, to,
                "records of groups were deleted: what groups have committed is read from what lies behind"
            );
            let loading = self.loading_from(described.log_start_offset);
            self.groups.hosts.insert(partition, loading);
            return self.load_more(partition);
        }
        // Nobody else appends, so this end stays; a log that is opened has nothing that is not durable.
        if next >= described.log_end_offset {
            return self.begin_to_serve(partition);
        }
        loading.is_reading = true;
        let bounds = Bounds {
            wait_ms: 0,
            bytes_min: 0,
            bytes_max: LOAD_BYTES,
        };
        let body = Body::Fetch {
            entries: vec![Entry::waiting(OFFSETS_TOPIC.into(), partition.partition)],
            parts: Vec::new(),
            gather: Gather::new(1, bounds.bytes_min),
            bytes_max: bounds.bytes_max,
        };
        let origin = Origin::Groups(GroupWork::Load(partition));
        let request = self.begin(origin, CorrelationId(0), 0, body);
        let entry = FetchEntry {
            log,
            offset: next,
            bytes_max: LOAD_BYTES,
        };
        self.fetch_here(request, vec![(0, entry)], bounds);
        self.handed_out(request);
    }

    fn begin_to_serve(&mut self, partition: TopicPartition) {
        if let Some(Host::Loading(loading)) = self.groups.hosts.remove(&partition) {
            if let Some((records, first)) = loading.strange {
                tracing::warn!(
                    %partition, records, %first,
                    "records that are not about groups were passed over"
                );
            }
            let serving = Serving {
                coordinator: loading.loader.finish(self.now),
                rewrite: Rewrite::Rests,
                plan: RewritePlan::default(),
            };
            let host = Host::Serving(Box::new(serving));
            self.groups.hosts.insert(partition, host);
            self.forget_orphaned(partition);
        }
    }

    fn take_loaded(&mut self, partition: TopicPartition, outcome: Result<Fetched, Failure>) {
        let Some(Host::Loading(loading)) = self.groups.hosts.get_mut(&partition) else {
            return;
        };
        loading.is_reading = false;
        let before = loading.next;
        let taken = match outcome {
            Ok(fetched) => loading.take(&fetched),
            Err(failure) => Err(format!("{}: {}", failure.code, failure.message)),
        };
        if let Err(why) = taken {
            // What can't be read may be the newest offset of some group: better none than an older one. The look of once
            // a second tries again.
            if !std::mem::replace(&mut loading.has_failed, true) {
                tracing::error!(
                    %partition, offset = loading.next.0, why,
                    "what groups have committed can't be read: its groups are not served"
                );
            }
            return;
        }
        // Nothing below the high watermark: looked at again in a second.
        if loading.next > before {
            self.load_more(partition);
        }
    }

    // ---- writing the log anew -------------------------------------------------------------------------------------

    /// Has the log written anew when it has grown, and lets what is old go.
    pub(super) fn keep_group_log_short(&mut self, partition: TopicPartition) {
        let log = self.topics.log(partition);
        let Some((log, described)) = log.and_then(|log| Some((log, self.machine.describe(log)?)))
        else {
            return;
        };
        let Some(Host::Serving(serving)) = self.groups.hosts.get_mut(&partition) else {
            return;
        };
        let coordinator = &mut serving.coordinator;
        match serving.rewrite {
            Rewrite::Rests => {
                if serving.plan.is_due(self.now, described.size_bytes) {
                    coordinator.begin_rewrite();
                    serving.rewrite = Rewrite::Writing {
                        from: described.log_end_offset,
                        size_bytes: described.size_bytes,
                    };
                    tracing::info!(
                        %partition, log_bytes = described.size_bytes,
                        "what groups have committed is being written anew"
                    );
                }
            }
            Rewrite::Writing { from, size_bytes } if coordinator.take_rewritten() => {
                let living_bytes = described.size_bytes.saturating_sub(size_bytes);
                serving.rewrite = Rewrite::Advancing { living_bytes };
                let ticket = self.tickets.insert(TicketTarget::Rewritten { partition });
                let advance = AdvanceLogStart {
                    log,
                    ticket: Ticket(ticket),
                    offset: Some(from),
                };
                self.step(Input::AdvanceLogStart(advance), &[]);
            }
            // Something of it could not be stored.
            Rewrite::Writing { .. } if !coordinator.is_rewriting() => {
                serving.rewrite = Rewrite::Rests;
                serving.plan.failed(self.now);
                tracing::warn!(%partition, "what groups have committed could not be written anew; tried again later");
            }
            Rewrite::Writing { .. } | Rewrite::Advancing { .. } => {}
        }
    }

    /// The log begins with what was written anew, or could not be made to.
    pub(in crate::shard) fn group_log_advanced(
        &mut self,
        partition: TopicPartition,
        outcome: Result<Offset, Refusal>,
    ) {
        let Some(Host::Serving(serving)) = self.groups.hosts.get_mut(&partition) else {
            return;
        };
        let Rewrite::Advancing { living_bytes } = serving.rewrite else {
            return;
        };
        serving.rewrite = Rewrite::Rests;
        match outcome {
            Ok(offset) => {
                serving.plan.succeeded(living_bytes);
                tracing::info!(
                    %partition, log_start_offset = offset.0, living_bytes,
                    "what groups have committed was written anew"
                );
            }
            Err(refusal) => {
                serving.plan.failed(self.now);
                tracing::warn!(%partition, %refusal, "old records of groups could not be deleted; tried again later");
            }
        }
    }
}

impl Loading {
    /// Takes in what was read.
    ///
    /// # Errors
    /// Bytes that no coordinator has written: what is behind them is not looked at.
    fn take(&mut self, fetched: &Fetched) -> Result<(), String> {
        let mut bytes = Vec::with_capacity(fetched.byte_length());
        for piece in &fetched.pieces {
            bytes.extend_from_slice(piece.bytes());
        }
        for batch in BatchIterator::new(&bytes) {
            let batch = batch.map_err(|error| error.to_string())?;
            let after = batch.header().next_offset();
            // The first one may begin before what was asked for.
            if after <= self.next {
                continue;
            }
            for record in batch.records() {
                let record = record.map_err(|error| error.to_string())?;
                let taken = self
                    .loader
                    .take(record.key.unwrap_or_default(), record.value);
                if let Err(error) = taken {
                    self.strange.get_or_insert((0, error)).0 += 1;
                }
            }
            self.next = after;
        }
        Ok(())
    }
}

/// The records as batches, one behind the other.
fn batches(records: &[Record], now: TimestampMs) -> Result<Vec<u8>, BatchFull> {
    let mut out = Vec::new();
    let mut builder = BatchBuilder::new(now);
    for record in records {
        let (key, value) = record.encode();
        builder.append(now, Some(&key), value.as_deref(), &[])?;
        if builder.size() >= BATCH_BYTES {
            out.extend_from_slice(&builder.finish(None, Compression::None));
            builder.reset(now);
        }
    }
    if !builder.is_empty() {
        out.extend_from_slice(&builder.finish(None, Compression::None));
    }
    Ok(out)
}
