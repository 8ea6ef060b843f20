//! What may be asked of a coordinator without changing anything.

use std::sync::Arc;

use tackboard_schema::storage::group_record::CommittedOffset;

use super::Coordinator;
use super::interface::{GroupState, NamedPartition, Opaque};
use super::member::Member;
use super::state::Held;

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// Its id.
    pub group: Arc<str>,
    /// `consumer`, or empty for one that assigns partitions to itself.
    pub protocol_type: Arc<str>,
    /// Where it stands.
    pub state: GroupState,
}

/// A group in detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Where it stands.
    pub state: GroupState,
    /// Its present generation.
    pub generation: i32,
    /// `consumer`, or empty for one that assigns partitions to itself.
    pub protocol_type: Arc<str>,
    /// The assignor, once the members have agreed on it.
    pub protocol: Arc<str>,
    /// Everybody.
    pub members: Vec<MemberView>,
}

/// A member in detail. Subscription and assignment are shown of a group that is stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Its id.
    pub member_id: Arc<str>,
    /// Its static name.
    pub instance: Option<Arc<str>>,
    /// As the client calls itself.
    pub client_id: String,
    /// The address that it came from.
    pub client_host: String,
    /// What it told the assignor.
    pub subscription: Opaque,
    /// What it was assigned.
    pub assignment: Opaque,
}

impl Coordinator {
    /// Every group.
    pub fn list(&self) -> impl Iterator<Item = GroupListing> + '_ {
        self.groups.values().map(|group| GroupListing {
            group: group.id.clone(),
            protocol_type: group.protocol_type.clone().unwrap_or_default(),
            state: group.state,
        })
    }

    /// A group in detail; `None`: there is none (Kafka shows it as `Dead`).
    pub fn describe(&self, group: &str) -> Option<GroupView> {
        let group = self.groups.get(group)?;
        let is_stable = group.state == GroupState::Stable;
        let protocol = group
            .protocol
            .clone()
            .filter(|_| is_stable)
            .unwrap_or_default();
        let view = |member: &Member| MemberView {
            member_id: member.id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            subscription: member.subscription(&protocol),
            assignment: if is_stable {
                member.assignment.clone()
            } else {
                Opaque::default()
            },
        };
        let members = group.members.values().map(view).collect();
        Some(GroupView {
            state: group.state,
            generation: group.generation,
            protocol_type: group.protocol_type.clone().unwrap_or_default(),
            protocol,
            members,
        })
    }

    /// What a group has committed for a partition. Only what the topic holds (G1), and nothing that was committed for a
    /// topic that is gone: another one may bear its name.
    pub fn committed_offset(
        &self,
        group: &str,
        partition: &NamedPartition,
    ) -> Option<&CommittedOffset> {
        let held = self.groups.get(group)?.offsets.get(partition)?;
        (!self.sweep.is_of_gone(partition, held)).then_some(&held.value)
    }

    /// All that a group has committed, for topics that are there.
    pub fn committed_offsets(
        &self,
        group: &str,
    ) -> impl Iterator<Item = (&NamedPartition, &CommittedOffset)> {
        let group = self.groups.get(group);
        let offsets = group.into_iter().flat_map(|group| &group.offsets);
        let lives =
            |(partition, held): &(&NamedPartition, &Held)| !self.sweep.is_of_gone(partition, held);
        offsets
            .filter(lives)
            .map(|(partition, held)| (partition, &held.value))
    }
}
