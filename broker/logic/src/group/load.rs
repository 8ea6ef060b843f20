//! Reading back what the internal topic holds.

use std::sync::Arc;

use tackboard_schema::storage::group_record::{CommittedOffset, GroupKey, GroupMetadata};
use tackboard_schema::{DecodeError, TimestampMs};

use super::interface::{GroupSettings, GroupState, NamedPartition, Opaque, StoreId};
use super::member::Member;
use super::state::{Group, Held};
use super::{Coordinator, interface::Join};
use crate::shard::interface::Now;

/// A coordinator that is reading its topic, record by record, from the log's start to its high watermark.
#[derive(Debug)]
pub struct Loader {
    coordinator: Coordinator,
    now: Now,
}

impl Loader {
    /// Nothing is known yet.
    pub fn new(settings: GroupSettings, now: Now) -> Self {
        Self {
            coordinator: Coordinator::new(settings, now),
            now,
        }
    }

    /// Takes note of the next record.
    ///
    /// # Errors
    /// A record that is not ours. It says nothing, and the ones after it are still to be read.
    pub fn take(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), DecodeError> {
        match GroupKey::decode(key)? {
            Some(GroupKey::Offset {
                group,
                topic,
                partition,
            }) => {
                let value = value.map(CommittedOffset::decode).transpose()?;
                let partition = NamedPartition {
                    topic: Arc::from(topic),
                    partition,
                };
                self.take_offset(&group, partition, value);
            }
            Some(GroupKey::Group { group }) => {
                let value = value.map(GroupMetadata::decode).transpose()?;
                self.take_group(&group, value);
            }
            None => {}
        }
        Ok(())
    }

    fn group(&mut self, id: &str) -> &mut Group {
        let id: Arc<str> = Arc::from(id);
        let groups = &mut self.coordinator.groups;
        let wall = self.now.wall;
        groups
            .entry(id.clone())
            .or_insert_with(|| Group::new(id, wall))
    }

    fn take_offset(
        &mut self,
        group: &str,
        partition: NamedPartition,
        value: Option<CommittedOffset>,
    ) {
        let group = self.group(group);
        match value {
            Some(value) => {
                let store = StoreId(0);
                group.set_offset(partition, Held { store, value });
            }
            None => group.unset_offset(&partition),
        }
    }

    fn take_group(&mut self, id: &str, value: Option<GroupMetadata>) {
        let group = self.group(id);
        let offsets = std::mem::take(&mut group.offsets);
        let offset_bytes = group.offset_bytes;
        *group = Group::new(group.id.clone(), TimestampMs(0));
        group.offsets = offsets;
        group.offset_bytes = offset_bytes;
        if let Some(metadata) = value {
            restore(group, metadata);
        }
    }

    /// Everything was read: members have their whole session time from now on.
    pub fn finish(self, now: Now) -> Coordinator {
        let mut coordinator = self.coordinator;
        coordinator.heard_us = now.monotonic_us;
        coordinator.groups.retain(|_, group| !group.is_void());
        for (id, group) in &mut coordinator.groups {
            group.count_members();
            coordinator.bytes += group.bytes();
            coordinator.members += group.members.len();
            for member in group.members.values_mut() {
                member.heard(now.monotonic_us);
            }
            if group.state_since.0 <= 0 {
                group.state_since = now.wall;
            }
            group.due_us = group.next_due_us();
            if group.due_us != u64::MAX {
                coordinator.due.insert((group.due_us, id.clone()));
            }
        }
        coordinator
    }
}

fn restore(group: &mut Group, metadata: GroupMetadata) {
    let text = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    group.state_since = TimestampMs(metadata.state_since);
    group.generation = metadata.generation;
    group.protocol_type = text(&metadata.protocol_type);
    group.protocol = metadata.protocol.as_deref().and_then(text);
    let protocol = metadata.protocol.clone().unwrap_or_default();
    for stored in &metadata.members {
        let join = Join {
            instance: stored.group_instance_id.clone(),
            client_id: stored.client_id.clone(),
            client_host: stored.client_host.clone(),
            session_timeout_ms: stored.session_timeout_ms,
            rebalance_timeout_ms: stored.rebalance_timeout_ms,
            protocols: vec![(protocol.clone(), Opaque::from(&*stored.subscription))],
            ..Join::default()
        };
        let id: Arc<str> = Arc::from(stored.member_id.as_str());
        let mut member = Member::new(id.clone(), &join);
        member.assignment = Opaque::from(&*stored.assignment);
        member.is_new = false;
        if let Some(instance) = &member.instance {
            group.instances.insert(instance.clone(), id.clone());
        }
        group.members.insert(id, member);
    }
    let leader = metadata.leader.as_deref().and_then(text);
    group.leader = leader.filter(|id| group.members.contains_key(id));
    // Two members under one static name can't have been stored; if they were, neither has the other's place.
    let holds_its_name = |member: &Member| {
        let holder = member
            .instance
            .as_ref()
            .and_then(|name| group.instances.get(name));
        holder.is_none_or(|id| *id == member.id)
    };
    group.members.retain(|_, member| holds_its_name(member));
    group.leader = group
        .leader
        .take()
        .filter(|id| group.members.contains_key(id));
    if group.leader.is_none() {
        group.leader = group.members.keys().next().cloned();
    }
    if !group.members.is_empty() {
        group.state = GroupState::Stable;
    }
    group.set_recorded(Some(metadata));
}
