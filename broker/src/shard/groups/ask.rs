//! Questions to coordinators, from whichever door: to those of this core at once, to the others through their cores.

use std::rc::Rc;

use tackboard_logic::{
    group::interface::NamedPartition,
    request::{by_core::ByCore, entries::entries_worth},
};
use tackboard_schema::{CorrelationId, PartitionIndex};

use super::{GroupRequest, OFFSETS_TOPIC, Room};
use crate::{
    native::{connection::Connection, groups::Asked},
    shard::{
        request::{Body, Entry, Failure, Origin, Work},
        state::State,
        topics::Place,
    },
};

/// A question to one coordinator: its partition, where that is, and what is asked.
pub type GroupQuestion = (PartitionIndex, Result<Place, Failure>, GroupRequest);

impl State {
    /// Asks coordinators for a connection. A request of our own protocol says what it named; Kafka's door keeps that
    /// itself.
    pub fn ask_groups(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        mut questions: Vec<GroupQuestion>,
        asked: Option<Box<Asked>>,
    ) {
        let metadata_bytes_max = self.config.groups.offset_metadata_bytes_max;
        let known: Vec<_> = (questions.iter_mut())
            .map(|(.., wanted)| wanted.shorten(metadata_bytes_max))
            .collect();
        let lengths = questions.iter().map(|(.., wanted)| wanted.byte_length());
        let body_bytes = lengths.sum();
        let entries = questions.len() + entries_worth(body_bytes);
        let admitted = self.admit_entries(connection, entries);
        let entries = questions
            .iter()
            .map(|(index, ..)| Entry::waiting(OFFSETS_TOPIC.into(), *index));
        let body = Body::Groups {
            entries: entries.collect(),
            parts: Vec::new(),
            room: Room::new(self.config.frame_bytes_max)
                .beside(questions.iter().map(|(.., wanted)| wanted)),
            asked,
        };
        let may_wait = questions.iter().any(|(.., wanted)| wanted.may_wait());
        let origin = Origin::Connection(connection.clone());
        let key = self.begin(origin, number, body_bytes, body);
        let mut elsewhere = ByCore::default();
        for ((index, (_, place, wanted)), known) in (0..).zip(questions).zip(known) {
            if let Some(answer) = known {
                self.entry_grouped(key, index, Ok(answer));
                continue;
            }
            let place = admitted.clone().and(place);
            match place {
                Ok(Place::Here(log)) => self.group_here(key, index, log, wanted),
                Ok(Place::There(core, partition)) => {
                    elsewhere.add(core, index, (partition, wanted));
                }
                Err(failure) => self.entry_failed(key, index, failure),
            }
        }
        // A join may wait at another core for as long as a fetch; a heartbeat is answered at once, however many wait.
        if may_wait && let Err(failure) = self.admit_fetch_calls(connection, elsewhere.len()) {
            let refused = std::mem::take(&mut elsewhere).into_parts();
            for index in refused.into_iter().flat_map(|part| part.indexes) {
                self.entry_failed(key, index, failure.clone());
            }
        }
        self.call_each(key, elsewhere, Work::Groups);
        self.handed_out(key);
    }

    /// Whether a topic has this partition.
    pub fn has_partition(&self, partition: &NamedPartition) -> bool {
        let index = usize::try_from(partition.partition).ok();
        let topic = self.topics.topic(&partition.topic);
        index.is_some_and(|index| topic.is_some_and(|topic| index < topic.partitions.len()))
    }
}
