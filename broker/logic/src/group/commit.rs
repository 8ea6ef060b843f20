//! Committing offsets, and forgetting them.

use std::ops::Bound;
use std::sync::Arc;

use tackboard_schema::storage::group_record::CommittedOffset;
use tackboard_schema::{ErrorCode, Offset};

use super::interface::{
    CommitEntry, Effect, GroupState, MemberRef, NamedPartition, Record, StoreId, Waiter,
};
use super::state::{COMMIT_BYTES_MAX, Group, Held, OFFSET_BYTES_MAX, offset_bytes};
use super::subscription::Reads;
use super::{Coordinator, Ended, NAME_BYTES_MAX, Purpose};
use crate::shard::interface::Now;

/// The entries of a commit, in the order of the request: what is on its way to the topic, or why it is not.
pub(super) type Entries = Vec<Result<(NamedPartition, CommittedOffset), ErrorCode>>;

impl Coordinator {
    pub(super) fn commit(
        &mut self,
        now: Now,
        waiter: Waiter,
        group: &str,
        member: &MemberRef,
        entries: Vec<CommitEntry>,
        out: &mut Vec<Effect>,
    ) {
        if let Err(code) = self.may_commit(now, group, member) {
            let outcome = Err(code);
            out.push(Effect::Committed { waiter, outcome });
            return;
        }
        let state_room = self.settings.state_bytes_max.saturating_sub(self.bytes);
        let metadata_max = self.settings.offset_metadata_bytes_max.min(NAME_BYTES_MAX);
        let appended = self.with_group(now, group, out, |group, cx| {
            let admit = |entry: CommitEntry| {
                if let Some(code) = entry.refused {
                    return Err(code);
                }
                // It would read as none.
                if entry.offset < Offset(0) {
                    return Err(ErrorCode::InvalidRequest);
                }
                if entry.metadata.len() > metadata_max {
                    return Err(ErrorCode::OffsetMetadataTooLarge);
                }
                if entry.partition.topic.len() > NAME_BYTES_MAX {
                    return Err(ErrorCode::UnknownTopicOrPartition);
                }
                let value = CommittedOffset {
                    offset: entry.offset,
                    leader_epoch: entry.leader_epoch,
                    metadata: entry.metadata,
                    committed_at: cx.now.wall,
                };
                Ok((entry.partition, value))
            };
            let mut entries: Entries = entries.into_iter().map(admit).collect();
            bound(group, &mut entries, state_room);
            let record = |(partition, value): &(NamedPartition, CommittedOffset)| Record::Offset {
                group: group.id.clone(),
                partition: partition.clone(),
                value: Some(value.clone()),
            };
            let records: Vec<_> = entries.iter().flatten().map(record).collect();
            if records.is_empty() {
                return Err(entries);
            }
            let store = cx.store(records);
            for (partition, value) in entries.iter().flatten().cloned() {
                group.underway.insert(partition, Held { store, value });
            }
            Ok((store, group.id.clone(), entries))
        });
        match appended {
            Some(Ok((store, group, entries))) => {
                let purpose = Purpose::Commit {
                    waiter,
                    group,
                    entries,
                };
                self.stores.insert(store, purpose);
            }
            Some(Err(outcomes)) => {
                let codes = outcomes.into_iter().filter_map(Result::err).collect();
                let outcome = Ok(codes);
                out.push(Effect::Committed { waiter, outcome });
            }
            None => {}
        }
    }

    /// Whether this one may commit to the group; makes the group for somebody who assigned partitions to itself.
    fn may_commit(&mut self, now: Now, group: &str, member: &MemberRef) -> Result<(), ErrorCode> {
        if group.len() > NAME_BYTES_MAX {
            return Err(ErrorCode::InvalidGroupId);
        }
        let Some(known) = self.groups.get(group) else {
            return if member.generation < 0 {
                self.found(now, group)
            } else {
                Err(ErrorCode::IllegalGeneration)
            };
        };
        if known.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        // Whoever assigns partitions to itself may bear a name all the same. Members know better than somebody who is none.
        if member.generation < 0 && known.state == GroupState::Empty {
            return Ok(());
        }
        match self.hear(now, group, member)? {
            // It may have got other partitions.
            GroupState::CompletingRebalance => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one pending commit")]
    pub(super) fn committed(
        &mut self,
        now: Now,
        store: StoreId,
        waiter: Waiter,
        group: &str,
        entries: Entries,
        ended: Ended,
        out: &mut Vec<Effect>,
    ) {
        let result = ended.result();
        self.with_group(now, group, out, |group, cx| {
            if result.is_ok() {
                cx.counts.commits += entries.iter().flatten().count() as u64;
            }
            for (partition, value) in entries.iter().flatten() {
                if (group.underway.get(partition)).is_some_and(|held| held.store == store) {
                    group.underway.remove(partition);
                }
                match ended {
                    // It counts even if a later one is on its way: that one may fail.
                    Ended::Stored => {
                        let value = value.clone();
                        group.settle(partition, store);
                        group.set_offset(partition.clone(), Held { store, value });
                    }
                    Ended::InDoubt(_) => group.doubt(partition.clone(), store),
                    Ended::Refused(_) => {}
                }
            }
        });
        let code_of = |entry: Result<_, ErrorCode>| match (entry, result) {
            (Err(code), _) | (Ok(_), Err(code)) => code,
            (Ok(_), Ok(())) => ErrorCode::None,
        };
        let outcome = Ok(entries.into_iter().map(code_of).collect());
        out.push(Effect::Committed { waiter, outcome });
    }

    // ---- forgetting -----------------------------------------------------------------------------------------------

    pub(super) fn delete_offsets(
        &mut self,
        now: Now,
        waiter: Waiter,
        group: &str,
        partitions: Vec<NamedPartition>,
        out: &mut Vec<Effect>,
    ) {
        let codes = match self.groups.get(group) {
            None => Err(ErrorCode::GroupIdNotFound),
            Some(group) => may_forget(group, &partitions),
        };
        let codes = match codes {
            Ok(codes) => codes,
            Err(code) => {
                let outcome = Err(code);
                out.push(Effect::Committed { waiter, outcome });
                return;
            }
        };
        let wanted = partitions.into_iter().zip(&codes);
        let wanted = wanted.filter(|(_, code)| **code == ErrorCode::None);
        let wanted: Vec<_> = wanted.map(|(partition, _)| partition).collect();
        if !self.forget(now, group, &wanted, Some((waiter, codes.clone())), out) {
            let outcome = Ok(codes);
            out.push(Effect::Committed { waiter, outcome });
        }
    }

    /// Appends that these offsets are gone. False: there were none of them.
    pub(super) fn forget(
        &mut self,
        now: Now,
        group: &str,
        partitions: &[NamedPartition],
        waiter: Option<(Waiter, Vec<ErrorCode>)>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let appended = self.with_group(now, group, out, |group, cx| {
            let newest = |partition: &NamedPartition| {
                let store = group.newest_commit(partition)?;
                Some((partition.clone(), store))
            };
            let removed: Vec<_> = partitions.iter().filter_map(newest).collect();
            if removed.is_empty() {
                return None;
            }
            let gone = removed.iter().map(|(partition, _)| Record::Offset {
                group: group.id.clone(),
                partition: partition.clone(),
                value: None,
            });
            let store = cx.store(gone.collect());
            group.removing.extend(removed.iter().cloned());
            Some((store, group.id.clone(), removed))
        });
        let Some(Some((store, group, removed))) = appended else {
            return false;
        };
        let purpose = Purpose::Removal {
            group,
            waiter,
            removed,
        };
        self.stores.insert(store, purpose);
        true
    }

    pub(super) fn removed(
        &mut self,
        now: Now,
        group: &str,
        waiter: Option<(Waiter, Vec<ErrorCode>)>,
        removed: Vec<(NamedPartition, StoreId)>,
        ended: Ended,
        out: &mut Vec<Effect>,
    ) {
        let is_refused = matches!(ended, Ended::Refused(_));
        self.with_group(now, group, out, |group, _| {
            for (partition, store) in removed {
                if group.removing.get(&partition) == Some(&store) {
                    group.removing.remove(&partition);
                }
                // In doubt it is forgotten too: nobody may go on from an offset that a restart takes away.
                if is_refused {
                    continue;
                }
                // What was committed meanwhile stays.
                let is_held = |held: &Held| held.store <= store;
                if group.offsets.get(&partition).is_some_and(is_held) {
                    group.unset_offset(&partition);
                }
                group.settle(&partition, store);
            }
        });
        if is_refused {
            self.give_up_rewrite();
        }
        if let Some((waiter, codes)) = waiter {
            let outcome = ended.result().map(|()| codes);
            out.push(Effect::Committed { waiter, outcome });
        }
    }

    pub(super) fn delete_group(
        &mut self,
        now: Now,
        waiter: Waiter,
        group: &str,
        out: &mut Vec<Effect>,
    ) {
        let code = match self.groups.get(group).map(|group| (group.state, group)) {
            None => ErrorCode::GroupIdNotFound,
            Some((GroupState::Dead, _)) => ErrorCode::CoordinatorNotAvailable,
            Some((GroupState::Empty, group)) if group.promised.is_empty() => ErrorCode::None,
            Some(_) => ErrorCode::NonEmptyGroup,
        };
        if code == ErrorCode::None {
            self.bury(now, group, Some(waiter), out);
        } else {
            out.push(Effect::Done { waiter, code });
        }
    }

    /// Appends that a group is gone with all that it knew.
    pub(super) fn bury(
        &mut self,
        now: Now,
        group: &str,
        waiter: Option<Waiter>,
        out: &mut Vec<Effect>,
    ) {
        let appended = self.with_group(now, group, out, |group, cx| {
            let partitions = group.offsets.keys().chain(group.underway.keys());
            let partitions = partitions.chain(group.doubtful.keys());
            let gone = partitions.map(|partition| Record::Offset {
                group: group.id.clone(),
                partition: partition.clone(),
                value: None,
            });
            let itself = Record::Group {
                group: group.id.clone(),
                value: None,
            };
            let records = gone.chain([itself]).collect();
            group.state = GroupState::Dead;
            (cx.store(records), group.id.clone())
        });
        if let Some((store, group)) = appended {
            self.stores
                .insert(store, Purpose::Deletion { group, waiter });
        }
    }

    pub(super) fn deleted(
        &mut self,
        now: Now,
        group: &str,
        waiter: Option<Waiter>,
        ended: Ended,
        out: &mut Vec<Effect>,
    ) {
        let is_refused = matches!(ended, Ended::Refused(_));
        self.with_group(now, group, out, |group, _| {
            if is_refused {
                group.state = GroupState::Empty;
                return;
            }
            // In doubt too, as with offsets.
            group.offsets.clear();
            group.doubtful.clear();
            group.offset_bytes = 0;
            group.underway.clear();
            group.set_recorded(None);
        });
        if is_refused {
            self.give_up_rewrite();
        }
        if let Some(waiter) = waiter {
            let code = ended.result().err().unwrap_or(ErrorCode::None);
            out.push(Effect::Done { waiter, code });
        }
    }
}

/// Takes out of a commit what would be too much: for one append, for the group, or for all groups together.
fn bound(group: &Group, entries: &mut Entries, state_room: usize) {
    let group_room = OFFSET_BYTES_MAX.saturating_sub(group.offset_bytes);
    let (mut length, mut growth) = (0, 0);
    for entry in entries {
        let Ok((partition, value)) = entry else {
            continue;
        };
        length += offset_bytes(&group.id, partition, value);
        let grows_by = group.growth(partition, value);
        growth += grows_by;
        if length > COMMIT_BYTES_MAX {
            *entry = Err(ErrorCode::InvalidCommitOffsetSize);
        } else if grows_by > 0 && growth > group_room.min(state_room) {
            *entry = Err(ErrorCode::PolicyViolation);
        }
    }
}

/// Which of these offsets may be deleted: not those that members still move.
fn may_forget(group: &Group, partitions: &[NamedPartition]) -> Result<Vec<ErrorCode>, ErrorCode> {
    match group.state {
        GroupState::Dead => Err(ErrorCode::GroupIdNotFound),
        GroupState::Empty => Ok(vec![ErrorCode::None; partitions.len()]),
        _ if !group.is_of_consumers() => Err(ErrorCode::NonEmptyGroup),
        _ => {
            let read = Reads::of(group);
            let code = |partition: &NamedPartition| {
                if read.contains(&partition.topic) {
                    ErrorCode::GroupSubscribedToTopic
                } else {
                    ErrorCode::None
                }
            };
            Ok(partitions.iter().map(code).collect())
        }
    }
}

impl Group {
    /// Whether its members are consumers, whose subscriptions can be read.
    pub(super) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some("consumer")
    }

    /// The offsets that live, as the topic says or will say: in order, from a partition on or all of them.
    pub(super) fn newest_offsets(
        &self,
        from: Option<&NamedPartition>,
    ) -> impl Iterator<Item = (&NamedPartition, &CommittedOffset)> {
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let range = (from, Bound::Unbounded);
        let mut underway = self.underway.range(range).peekable();
        let settled = self.offsets.range(range);
        let mut settled = settled
            .filter(|(partition, _)| !self.underway.contains_key(partition))
            .peekable();
        let all = std::iter::from_fn(move || {
            let settled_first = match (settled.peek(), underway.peek()) {
                (Some((one, _)), Some((other, _))) => one < other,
                (next, _) => next.is_some(),
            };
            match settled_first {
                true => settled.next(),
                false => underway.next(),
            }
        });
        let lives = |(partition, held): &(&NamedPartition, &Held)| {
            let gone = self.removing.get(partition);
            gone.is_none_or(|gone| held.store > *gone)
        };
        all.filter(lives)
            .map(|(partition, held)| (partition, &held.value))
    }

    pub(super) fn check_invariants(&self) {
        self.check_bytes();
        let prepares = self.state == GroupState::PreparingRebalance;
        assert_eq!(
            self.rebalance.is_some(),
            prepares,
            "{}: who waits for whom",
            self.id
        );
        for (id, member) in &self.members {
            assert_eq!(*id, member.id);
            assert!(
                member.joining.is_none() || prepares,
                "{id} joins in {:?}",
                self.state
            );
            let syncs = self.state == GroupState::CompletingRebalance;
            assert!(
                member.syncing.is_none() || syncs,
                "{id} syncs in {:?}",
                self.state
            );
            if let Some(instance) = &member.instance {
                assert_eq!(self.instances.get(instance), Some(id));
            }
        }
        assert!(
            self.instances
                .values()
                .all(|id| self.members.contains_key(id))
        );
        assert!(self.unsynced.iter().all(|id| self.members.contains_key(id)));
        let is_empty = matches!(self.state, GroupState::Empty | GroupState::Dead);
        // A rebalance may still wait when the last one has left.
        assert!(
            self.members.is_empty() == is_empty || (self.members.is_empty() && prepares),
            "{}: {} members, {:?}",
            self.id,
            self.members.len(),
            self.state
        );
        let leader: Option<&Arc<str>> = self.leader.as_ref();
        assert!(
            leader.is_none_or(|id| self.members.contains_key(id)),
            "{}: leader",
            self.id
        );
    }
}
