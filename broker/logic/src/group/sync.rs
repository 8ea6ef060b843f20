//! Handing out the leader's assignment.

use std::collections::BTreeMap;
use std::sync::Arc;

use tackboard_schema::ErrorCode;

use super::context::Context;
use super::interface::{Effect, GroupState, Opaque, Sync, Synced, Waiter};
use super::state::{Group, MEMBER_BYTES_MAX};
use super::{Coordinator, Purpose};
use crate::shard::interface::Now;

impl Coordinator {
    pub(super) fn sync(&mut self, now: Now, waiter: Waiter, sync: Sync, out: &mut Vec<Effect>) {
        if let Err(code) = self.hear_sync(now, &sync) {
            let outcome = Err(code);
            out.push(Effect::Synced { waiter, outcome });
            return;
        }
        let group = sync.group.clone();
        let room = self.settings.state_bytes_max.saturating_sub(self.bytes);
        let stored = self.with_group(now, &group, out, |group, cx| {
            sync_group(group, waiter, sync, room, cx)
        });
        if let Some(Some((store, purpose))) = stored {
            self.stores.insert(store, purpose);
        }
    }

    fn hear_sync(&mut self, now: Now, sync: &Sync) -> Result<(), ErrorCode> {
        let state = self.hear(now, &sync.group, &sync.member)?;
        if state == GroupState::PreparingRebalance {
            return Err(ErrorCode::RebalanceInProgress);
        }
        let group = &self.groups[sync.group.as_str()];
        let agrees = |told: &Option<String>, known: &Option<Arc<str>>| {
            told.is_none() || told.as_deref() == known.as_deref()
        };
        if agrees(&sync.protocol_type, &group.protocol_type)
            && agrees(&sync.protocol, &group.protocol)
        {
            Ok(())
        } else {
            Err(ErrorCode::InconsistentGroupProtocol)
        }
    }
}

fn sync_group(
    group: &mut Group,
    waiter: Waiter,
    sync: Sync,
    room: usize,
    cx: &mut Context<'_>,
) -> Option<(super::StoreId, Purpose)> {
    let length: usize = (sync.assignments.iter())
        .map(|(_, assignment)| assignment.len())
        .sum();
    let id: Arc<str> = Arc::from(sync.member.member_id.as_str());
    let assigns =
        group.state == GroupState::CompletingRebalance && group.leader.as_ref() == Some(&id);
    let has_no_room =
        length > MEMBER_BYTES_MAX || assigns && group.growth_by_assignment(length) > room;
    let has_no_room = has_no_room.then_some(ErrorCode::GroupMaxSizeReached);
    if let Some(code) = sync.refused.or(has_no_room) {
        let outcome = Err(code);
        cx.out.push(Effect::Synced { waiter, outcome });
        if assigns {
            // There is no other assignment to come: whoever waits for one would wait until the leader is given up.
            group.refuse_syncs(code, cx);
            group.rebalance_or_go_on(cx);
        }
        return None;
    }
    group.unsynced.remove(&id);
    if group.state == GroupState::Stable {
        answer(group, &id, waiter, cx);
        return None;
    }
    let member = group.members.get_mut(&id)?;
    if let Some(earlier) = member.syncing.replace(waiter) {
        let outcome = Err(ErrorCode::RebalanceInProgress);
        cx.out.push(Effect::Synced {
            waiter: earlier,
            outcome,
        });
    }
    // A generation has one assignment: the members would not be told of a second one that the log remembers.
    if !assigns || group.assigning == Some(group.generation) {
        return None;
    }
    group.assigning = Some(group.generation);
    // Whoever the leader forgot gets nothing, rather than what it had before.
    let mut assignments: BTreeMap<Arc<str>, Opaque> = group
        .members
        .keys()
        .map(|id| (id.clone(), Opaque::default()))
        .collect();
    for (member, assignment) in sync.assignments {
        if let Some(place) = assignments.get_mut(member.as_str()) {
            *place = assignment;
        }
    }
    let store = group.record(&assignments, cx);
    let purpose = Purpose::Assignment {
        group: group.id.clone(),
        generation: group.generation,
        assignments,
    };
    Some((store, purpose))
}

/// The assignment of a generation is stored, or could not be.
pub(super) fn assigned(
    group: &mut Group,
    generation: i32,
    assignments: BTreeMap<Arc<str>, Opaque>,
    result: Result<(), ErrorCode>,
    cx: &mut Context<'_>,
) {
    if group.assigning == Some(generation) {
        group.assigning = None;
    }
    if group.state != GroupState::CompletingRebalance || group.generation != generation {
        return;
    }
    if let Err(code) = result {
        group.refuse_syncs(code, cx);
        group.rebalance_or_go_on(cx);
        return;
    }
    for (id, assignment) in assignments {
        if let Some(member) = group.members.get_mut(&id) {
            member.assignment = assignment;
        }
    }
    group.count_members();
    group.state = GroupState::Stable;
    group.state_since = cx.now.wall;
    let waiting = group.members.values_mut();
    let waiting = waiting.filter_map(|member| Some((member.id.clone(), member.syncing.take()?)));
    let waiting: Vec<_> = waiting.collect();
    for (id, waiter) in waiting {
        answer(group, &id, waiter, cx);
    }
}

fn answer(group: &mut Group, id: &Arc<str>, waiter: Waiter, cx: &mut Context<'_>) {
    let Some(member) = group.members.get_mut(id) else {
        return;
    };
    member.heard(cx.now.monotonic_us);
    let outcome = Ok(Synced {
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        protocol: group.protocol.clone().unwrap_or_default(),
        assignment: member.assignment.clone(),
    });
    cx.out.push(Effect::Synced { waiter, outcome });
}
