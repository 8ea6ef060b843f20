//! Requests to join.

use std::sync::Arc;

use tackboard_schema::ErrorCode;

use super::context::Context;
use super::interface::{Effect, GroupState, Join, Waiter};
use super::member::{Member, ms_as_us};
use super::state::{Group, MEMBER_BYTES_MAX, refuse_join};
use super::{Coordinator, NAME_BYTES_MAX, Purpose};
use crate::shard::interface::Now;

/// Protocols that one member may name: each is looked for among those of every other member.
pub const PROTOCOLS_MAX: usize = 64;

/// A new member's id is made of the client's name and so many bytes.
const ID_SUFFIX_BYTES: usize = 37;

impl Coordinator {
    pub(super) fn join(&mut self, now: Now, waiter: Waiter, join: &Join, out: &mut Vec<Effect>) {
        if let Err(code) = self.admit(now, join) {
            let mut cx = Context {
                now,
                settings: &self.settings,
                out,
                last_store: &mut self.last_store,
                counts: &mut self.counts,
            };
            refuse_join(waiter, code, &join.member_id, &mut cx);
            return;
        }
        let replaced = self.with_group(now, &join.group, out, |group, cx| {
            join_group(group, waiter, join, cx)
        });
        if let Some(Some((store, purpose))) = replaced {
            self.stores.insert(store, purpose);
        }
    }

    /// Whether the request is one that a group can look at; makes the group if it is new.
    fn admit(&mut self, now: Now, join: &Join) -> Result<(), ErrorCode> {
        if join.group.is_empty() || join.group.len() > NAME_BYTES_MAX {
            return Err(ErrorCode::InvalidGroupId);
        }
        let mut names = [
            &join.member_id,
            &join.client_id,
            &join.client_host,
            &join.protocol_type,
        ]
        .into_iter()
        .chain(&join.instance)
        .chain(join.protocols.iter().map(|(name, _)| name));
        if names.any(|name| name.len() > NAME_BYTES_MAX - ID_SUFFIX_BYTES)
            || join.protocols.len() > PROTOCOLS_MAX
        {
            return Err(ErrorCode::InvalidRequest);
        }
        let settings = &self.settings;
        let range = settings.session_timeout_min_ms..=settings.session_timeout_max_ms;
        if !range.contains(&join.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        let bytes = bytes_of(join);
        let Some(group) = self.groups.get(join.group.as_str()) else {
            if bytes > MEMBER_BYTES_MAX {
                return Err(ErrorCode::GroupMaxSizeReached);
            }
            if self.bytes + bytes > settings.state_bytes_max {
                return Err(ErrorCode::PolicyViolation);
            }
            if !join.member_id.is_empty() {
                return Err(ErrorCode::UnknownMemberId);
            }
            if join.protocol_type.is_empty() || join.protocols.is_empty() {
                return Err(ErrorCode::InconsistentGroupProtocol);
            }
            return self.found(now, &join.group);
        };
        if group.state == GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        if !group.understands(join) {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let is_known = group.members.contains_key(join.member_id.as_str())
            || group.promised.contains_key(join.member_id.as_str())
            || (join.instance.as_deref()).is_some_and(|name| group.instances.contains_key(name));
        if !is_known && group.members.len() + group.promised.len() >= settings.members_max {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        let before = group.place_taken_by(join).map_or(0, Member::bytes);
        if group.member_bytes - before + bytes > MEMBER_BYTES_MAX {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        if !is_known && self.bytes + bytes > settings.state_bytes_max {
            return Err(ErrorCode::PolicyViolation);
        }
        Ok(())
    }

    /// A group that has no members yet.
    pub(super) fn found(&mut self, now: Now, id: &str) -> Result<(), ErrorCode> {
        if self.groups.len() >= self.settings.groups_max {
            return Err(ErrorCode::PolicyViolation);
        }
        let id: Arc<str> = Arc::from(id);
        let group = Group::new(id.clone(), now.wall);
        self.bytes += group.bytes();
        self.groups.insert(id, group);
        Ok(())
    }
}

/// Bytes of the member that it would be, with the longest id that it may be given.
fn bytes_of(join: &Join) -> usize {
    let name = join.instance.as_deref().unwrap_or(&join.client_id);
    Member::new(Arc::from(""), join).bytes() + name.len() + ID_SUFFIX_BYTES
}

/// What to do when the group's record is stored.
type Stored = (super::StoreId, Purpose);

fn join_group(
    group: &mut Group,
    waiter: Waiter,
    join: &Join,
    cx: &mut Context<'_>,
) -> Option<Stored> {
    if join.member_id.is_empty() {
        let id = new_member_id(join);
        let holder = join
            .instance
            .as_deref()
            .and_then(|name| group.instances.get(name));
        if let Some(holder) = holder.cloned() {
            return replace(group, &holder, id, waiter, join, cx);
        }
        if join.takes_id_first && join.instance.is_none() {
            let patience_us = ms_as_us(join.session_timeout_ms);
            let until_us = cx.now.monotonic_us.saturating_add(patience_us);
            group.promised.insert(id.clone(), until_us);
            group.member_bytes += id.len();
            refuse_join(waiter, ErrorCode::MemberIdRequired, &id, cx);
        } else {
            group.add(id, waiter, join, cx);
        }
        return None;
    }
    let id = join.member_id.as_str();
    if join.instance.is_none()
        && let Some((id, _)) = group.promised.remove_entry(id)
    {
        group.member_bytes -= id.len();
        group.add(id, waiter, join, cx);
        return None;
    }
    let member = match group.member(id, join.instance.as_deref()) {
        Ok(member) => member,
        Err(code) => {
            refuse_join(waiter, code, id, cx);
            return None;
        }
    };
    let is_leader = group.leader.as_ref() == Some(&member.id);
    let says_the_same = member.says_the_same(join);
    let knows_its_place = match group.state {
        // The answer may have been lost.
        GroupState::CompletingRebalance => says_the_same,
        // The leader joins to have everything assigned anew.
        GroupState::Stable => says_the_same && !is_leader,
        _ => false,
    };
    if !knows_its_place {
        group.rejoin(id, waiter, join, cx);
        return None;
    }
    let outcome = Ok(group.place_of(&member.id.clone()));
    if let Some(member) = group.members.get_mut(id) {
        member.heard(cx.now.monotonic_us);
    }
    cx.out.push(Effect::Joined { waiter, outcome });
    None
}

/// A static member is back under a new id, and takes over what it had. Whoever still uses the old id is fenced.
fn replace(
    group: &mut Group,
    old_id: &Arc<str>,
    id: Arc<str>,
    waiter: Waiter,
    join: &Join,
    cx: &mut Context<'_>,
) -> Option<Stored> {
    let mut member = group.members.remove(old_id)?;
    if let Some(waiter) = member.joining.take() {
        refuse_join(waiter, ErrorCode::FencedInstanceId, old_id, cx);
    }
    if let Some(waiter) = member.syncing.take() {
        let outcome = Err(ErrorCode::FencedInstanceId);
        cx.out.push(Effect::Synced { waiter, outcome });
    }
    member.id = id.clone();
    member.take_over(join);
    // One that is new keeps its longer time.
    if !member.is_new {
        member.heard(cx.now.monotonic_us);
    }
    if let Some(instance) = &member.instance {
        group.instances.insert(instance.clone(), id.clone());
    }
    group.members.insert(id.clone(), member);
    group.count_members();
    if group.unsynced.remove(old_id) {
        group.unsynced.insert(id.clone());
    }
    let led = group.leader.as_ref() == Some(old_id);
    if led {
        group.leader = Some(id.clone());
    }
    let same_protocol = group.protocol.as_ref() == Some(&group.choose_protocol());
    if group.state != GroupState::Stable || !same_protocol {
        group.rejoin(&id, waiter, join, cx);
        return None;
    }
    let mut joined = group.place_of(&id);
    // It must not assign, for nobody else has joined.
    joined.skip_assignment = led && join.may_skip_assignment;
    if led && !joined.skip_assignment {
        // The name of the one that did keeps it from trying. It takes itself for a follower, and does not see topics grow.
        joined.leader = old_id.clone();
        joined.members = Vec::new();
    }
    let store = group.record(&std::collections::BTreeMap::new(), cx);
    Some((store, Purpose::Replacement { waiter, joined }))
}

/// A name that nobody has: what the client is called, and 128 random bits in the form of a UUID.
fn new_member_id(join: &Join) -> Arc<str> {
    let name = join.instance.as_deref().unwrap_or(&join.client_id);
    let hex = format!("{:032x}", join.entropy);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    Arc::from(format!("{name}-{}", parts.join("-")))
}
