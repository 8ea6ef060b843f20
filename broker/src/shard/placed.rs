//! Entries as a door has read them: each with where it is served. From here on it makes no difference which door they
//! came through.
//!
//! Owns: what is handed to this core's logic and what to the cores that own the partitions, in which order.
//! Not here: what the words of a protocol mean, how many entries it allows, and what an answer looks like (`native`,
//! `kafka`); the logs themselves ([`super::work`]).

use std::{rc::Rc, sync::Arc};

use bytes::Bytes;
use tackboard_logic::{
    log::EpochEnd,
    metadata::Topic,
    request::{
        by_core::ByCore,
        fetch::{Bounds, entry_bytes_max},
        gather::Gather,
        lookup::ListedOffset,
        produce::{Appended, Respond},
    },
    shard::interface::{FetchEntry, LogDescription, LogId},
};
use tackboard_schema::{
    CorrelationId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, TOPIC_NAME_LENGTH_MAX,
    TimestampMs, TopicId, TopicPartition,
};

use super::{
    groups::is_internal,
    request::{Body, Entry, Failure, Fetched, Levels, Origin, Work},
    slab::Key,
    state::State,
    topics::Place,
};
use crate::native::connection::Connection;

/// Longest time a produce request may wait for its acks, ms.
const PRODUCE_TIMEOUT_MS_MAX: u32 = 300_000;

/// The entries of one request: what is asked of each partition, where it is served, and room for what comes of it.
pub struct Placed<A, O> {
    asked: Vec<(Result<Place, Failure>, A)>,
    entries: Vec<Entry<O>>,
}

impl<A, O> Placed<A, O> {
    /// Room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Placed {
            asked: Vec::with_capacity(count),
            entries: Vec::with_capacity(count),
        }
    }

    /// Adds the next entry: the topic's name to answer with, where the partition is served or why it is not, and what is
    /// asked of it.
    pub fn add(
        &mut self,
        topic: Arc<str>,
        partition: PartitionIndex,
        place: Result<Place, Failure>,
        asked: A,
    ) {
        self.entries.push(Entry::waiting(topic, partition));
        self.asked.push((place, asked));
    }
}

/// What a fetch asks of a partition.
#[derive(Clone, Copy, Debug)]
pub struct FetchFrom {
    /// The first offset wanted.
    pub offset: Offset,
    /// Most bytes of batches.
    pub bytes_max: u32,
}

impl State {
    /// Takes in a produce request. `owned` makes batches outlive the frame that they came in, for another core.
    pub fn produce<B: AsRef<[u8]>>(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        placed: Placed<B, Appended>,
        levels: Levels,
        timeout_ms: u32,
        owned: impl Fn(B) -> Bytes,
    ) {
        let Placed { asked, entries } = placed;
        let lengths = asked
            .iter()
            .map(|(_, batches)| batches.as_ref().len() as u64);
        let body_bytes = lengths.sum();
        let body = Body::Produce {
            respond: Respond::default(),
            entries,
        };
        let key = self.begin_from(connection, number, body_bytes, body);
        let timeout_ms = timeout_ms.min(PRODUCE_TIMEOUT_MS_MAX);
        let deadline_us = self.deadline_us(timeout_ms);
        let mut elsewhere = ByCore::default();
        for (index, (place, batches)) in (0..).zip(asked) {
            match place {
                Ok(Place::Here(log)) => {
                    self.append_here(key, index, log, batches.as_ref(), levels, deadline_us);
                }
                Ok(Place::There(core, partition)) => {
                    elsewhere.add(core, index, (partition, owned(batches)));
                }
                Err(failure) => self.entry_refused(key, index, levels, failure),
            }
        }
        self.call_each(key, elsewhere, |entries| Work::Produce {
            entries,
            levels,
            timeout_ms,
        });
        self.handed_out(key);
    }

    /// Takes in a fetch. The bounds that it asks for are kept within the broker's.
    pub fn fetch(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        placed: Placed<FetchFrom, Fetched>,
        asked_bounds: Bounds,
    ) {
        let Placed { asked, entries } = placed;
        let bounds = asked_bounds.within(entries.len(), self.config.frame_bytes_max);
        let mut here = Vec::with_capacity(entries.len());
        let mut elsewhere = ByCore::default();
        let mut failures = Vec::new();
        for (index, (place, FetchFrom { offset, bytes_max })) in (0..).zip(asked) {
            let bytes_max = entry_bytes_max(bytes_max);
            match place {
                Ok(Place::Here(log)) => here.push((
                    index,
                    FetchEntry {
                        log,
                        offset,
                        bytes_max,
                    },
                )),
                Ok(Place::There(core, partition)) => {
                    elsewhere.add(core, index, (partition, offset, bytes_max));
                }
                Err(failure) => failures.push((index, failure)),
            }
        }
        if let Err(failure) = self.admit_fetch_calls(connection, elsewhere.len()) {
            let refused = std::mem::take(&mut elsewhere).into_parts();
            let indexes = refused.into_iter().flat_map(|part| part.indexes);
            failures.extend(indexes.map(|index| (index, failure.clone())));
        }
        let parts = elsewhere.len() + usize::from(!here.is_empty());
        let share = bounds.share(parts, !failures.is_empty());
        let body = Body::Fetch {
            entries,
            parts: Vec::new(),
            gather: Gather::new(parts as u32, bounds.bytes_min),
            bytes_max: bounds.bytes_max,
        };
        let key = self.begin_from(connection, number, 0, body);
        for (index, failure) in failures {
            self.entry_failed(key, index, failure);
        }
        self.call_each(key, elsewhere, |entries| Work::Fetch {
            entries,
            bounds: share,
        });
        if !here.is_empty() {
            self.fetch_here(key, here, share);
        }
        self.handed_out(key);
    }

    /// Takes in a look-up of offsets by time or special value.
    pub fn list_offsets(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        placed: Placed<TimestampMs, ListedOffset>,
    ) {
        let Placed { asked, entries } = placed;
        let key = self.begin_from(connection, number, 0, Body::ListOffsets { entries });
        self.hand_each_out(key, asked, Self::list_offset_here, Work::ListOffsets);
    }

    /// Takes in a look-up of where leader epochs end.
    pub fn epoch_ends(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        placed: Placed<LeaderEpoch, Option<EpochEnd>>,
    ) {
        let Placed { asked, entries } = placed;
        let key = self.begin_from(connection, number, 0, Body::EpochEnds { entries });
        self.hand_each_out(key, asked, Self::epoch_end_here, Work::EpochEnds);
    }

    /// Takes in a deletion of records: below an offset, or below the high watermark.
    pub fn delete_records(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        placed: Placed<Option<Offset>, Offset>,
    ) {
        let Placed { asked, entries } = placed;
        let key = self.begin_from(connection, number, 0, Body::DeleteRecords { entries });
        self.hand_each_out(key, asked, Self::delete_records_here, Work::DeleteRecords);
    }

    /// Takes in a description of partitions.
    pub fn describe(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        placed: Placed<(), LogDescription>,
    ) {
        let Placed { asked, entries } = placed;
        let key = self.begin_from(connection, number, 0, Body::Describe { entries });
        self.hand_each_out(
            key,
            asked,
            |state, key, index, log, ()| state.describe_here(key, index, log),
            |named| Work::Describe(named.into_iter().map(|(partition, ())| partition).collect()),
        );
    }

    /// Hands out entries that have nothing to do with each other.
    fn hand_each_out<A>(
        &mut self,
        request: Key,
        asked: Vec<(Result<Place, Failure>, A)>,
        here: impl Fn(&mut Self, Key, u32, LogId, A),
        there: impl Fn(Vec<(TopicPartition, A)>) -> Work,
    ) {
        let mut elsewhere = ByCore::default();
        for (index, (place, asked)) in (0..).zip(asked) {
            match place {
                Ok(Place::Here(log)) => here(self, request, index, log, asked),
                Ok(Place::There(core, partition)) => elsewhere.add(core, index, (partition, asked)),
                Err(failure) => self.entry_failed(request, index, failure),
            }
        }
        self.call_each(request, elsewhere, there);
        self.handed_out(request);
    }

    fn begin_from(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        body_bytes: u64,
        body: Body,
    ) -> Key {
        let origin = Origin::Connection(connection.clone());
        self.begin(origin, number, body_bytes, body)
    }
}

/// A topic name of a length that a topic can have. Longer ones are not looked at, nor repeated in words.
///
/// # Errors
/// `INVALID_TOPIC_EXCEPTION`.
pub fn short(name: &str) -> Result<&str, Failure> {
    if name.len() <= TOPIC_NAME_LENGTH_MAX {
        return Ok(name);
    }
    let message = format!(
        "a topic name of {} bytes; at most {TOPIC_NAME_LENGTH_MAX} are allowed",
        name.len()
    );
    Err(Failure::new(ErrorCode::InvalidTopicException, message))
}

/// A topic as a request names it: the name to answer with, and the topic.
pub fn find_topic(state: &State, name: &str) -> (Arc<str>, Result<Arc<Topic>, Failure>) {
    if let Err(failure) = short(name) {
        return (name.into(), Err(failure));
    }
    match state.topics.topic(name) {
        Some(topic) => (topic.name.clone(), Ok(topic.clone())),
        None => {
            let message = format!("there is no topic {name}");
            let failure = Failure::new(ErrorCode::UnknownTopicOrPartition, message);
            (name.into(), Err(failure))
        }
    }
}

/// As [`find_topic`], by its id; the name of one that isn't there is its id.
pub fn find_topic_by_id(state: &State, id: TopicId) -> (Arc<str>, Result<Arc<Topic>, Failure>) {
    match state.topics.image().topic_by_id(id) {
        Some(topic) => (topic.name.clone(), Ok(topic.clone())),
        None => {
            let failure = Failure::new(
                ErrorCode::UnknownTopicId,
                format!("there is no topic with id {id}"),
            );
            (id.to_string().into(), Err(failure))
        }
    }
}

/// Where a partition of a topic that was [found](find_topic) is served, or the failure to answer with.
///
/// # Errors
/// That the topic was not found, or has no such partition that can be served.
pub fn place_in(
    state: &State,
    topic: &Result<Arc<Topic>, Failure>,
    partition: PartitionIndex,
) -> Result<Place, Failure> {
    match topic {
        Ok(topic) => state.topics.place(topic, partition),
        Err(failure) => Err(failure.clone()),
    }
}

/// As [`place_in`], for what a client wants to append.
///
/// # Errors
/// Besides, that the broker writes the topic itself.
pub fn place_to_write(
    state: &State,
    topic: &Result<Arc<Topic>, Failure>,
    partition: PartitionIndex,
) -> Result<Place, Failure> {
    if let Ok(topic) = topic
        && is_internal(&topic.name)
    {
        let message = format!("the broker alone writes topic {}", topic.name);
        return Err(Failure::new(ErrorCode::InvalidTopicException, message));
    }
    place_in(state, topic, partition)
}

/// Where an entry is served, as [`Place`] or as the failure to answer it with.
pub fn place_of(
    state: &State,
    topic: &str,
    partition: PartitionIndex,
) -> (Arc<str>, Result<Place, Failure>) {
    let (name, topic) = find_topic(state, topic);
    let place = place_in(state, &topic, partition);
    (name, place)
}
