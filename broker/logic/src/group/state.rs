//! One group: its members and how they come to an agreement.
//!
//! Kafka's classic protocol. `Empty` → members arrive → `PreparingRebalance`, until all that are known have joined →
//! `CompletingRebalance`, until the leader's assignment is stored → `Stable`. Whoever comes, goes or changes its mind
//! begins it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tackboard_schema::storage::group_record::{CommittedOffset, GroupMember, GroupMetadata};
use tackboard_schema::{ErrorCode, TimestampMs};

use super::context::Context;
use super::interface::{
    Effect, GroupState, Join, JoinRefusal, Joined, JoinedMember, NamedPartition, Opaque, Record,
    StoreId, Waiter,
};
use super::member::{MEMBER_BYTES, Member, NEW_MEMBER_PATIENCE_US, ms_as_us};

/// A rebalance that nobody has joined yet is looked at again after so long at least, whatever its members say, in
/// microseconds.
const REBALANCE_WAIT_US_MIN: u64 = 1_000_000;

/// A rebalance that waits for members to join.
#[derive(Clone, Copy, Debug)]
pub struct Rebalance {
    /// It goes on with those that are there.
    pub until_us: u64,
    /// The first one of an empty group waits for more members to arrive, for so long at most.
    pub initial_left_us: Option<u64>,
    /// Somebody arrived since it last began to wait.
    pub grew: bool,
}

/// A committed offset, and by which append: a late deletion does not touch a later commit.
#[derive(Clone, Debug)]
pub struct Held {
    pub store: StoreId,
    pub value: CommittedOffset,
}

/// Bytes of an offset's record, about: of what one append holds, and of what is kept.
pub fn offset_bytes(group: &str, partition: &NamedPartition, value: &CommittedOffset) -> usize {
    OFFSET_BYTES + group.len() + partition.topic.len() + value.metadata.len()
}

/// Bytes of a group's record, about.
fn metadata_bytes(metadata: &GroupMetadata) -> usize {
    let member = |member: &GroupMember| {
        let names = member.member_id.len() + member.client_id.len() + member.client_host.len();
        let instance = member.group_instance_id.as_ref().map_or(0, String::len);
        MEMBER_BYTES + names + instance + member.subscription.len() + member.assignment.len()
    };
    metadata.members.iter().map(member).sum()
}

/// Bytes that are kept of an offset in doubt, about.
fn doubt_bytes(partition: &NamedPartition) -> usize {
    OFFSET_BYTES + partition.topic.len()
}

/// Of these, what is no text.
pub const OFFSET_BYTES: usize = 64;

/// Bytes that the members of one group may take, and those of their assignments: a record holds both.
pub const MEMBER_BYTES_MAX: usize = 1 << 20;

/// Bytes of all stored offsets of one group: to forget it is one append. Commits that are on their way come on top.
pub const OFFSET_BYTES_MAX: usize = 8 << 20;

/// Bytes of the records of one commit.
pub const COMMIT_BYTES_MAX: usize = 4 << 20;

/// A group.
#[derive(Debug)]
pub struct Group {
    pub id: Arc<str>,
    pub state: GroupState,
    /// When it took on that state.
    pub state_since: TimestampMs,
    pub generation: i32,
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    pub leader: Option<Arc<str>>,
    pub members: BTreeMap<Arc<str>, Member>,
    /// Static names of members.
    pub instances: BTreeMap<Arc<str>, Arc<str>>,
    /// Ids that were handed out and have not come back yet, and how long that may take.
    pub promised: BTreeMap<Arc<str>, u64>,
    pub rebalance: Option<Rebalance>,
    /// Members that have joined the present generation and not asked for their part yet.
    pub unsynced: BTreeSet<Arc<str>>,
    /// When these are given up.
    pub sync_until_us: u64,
    /// The generation whose assignment is being stored.
    pub assigning: Option<i32>,
    pub offsets: BTreeMap<NamedPartition, Held>,
    /// Commits that are appended and not stored yet: the newest of each partition.
    pub underway: BTreeMap<NamedPartition, Held>,
    /// Offsets whose removal is appended and not stored yet, as of which commit.
    pub removing: BTreeMap<NamedPartition, StoreId>,
    /// Offsets of which a commit failed that may be on the topic all the same, and the newest such commit: what forgets
    /// the partition has to forget it too.
    pub doubtful: BTreeMap<NamedPartition, StoreId>,
    /// Bytes of the members.
    pub member_bytes: usize,
    /// Bytes of what is assigned to them.
    pub assignment_bytes: usize,
    /// Bytes of the offsets that are stored, with their names, and of the names of those in doubt.
    pub offset_bytes: usize,
    /// The newest record of it in the topic.
    pub recorded: Option<GroupMetadata>,
    /// Its bytes, about.
    pub recorded_bytes: usize,
    /// When the coordinator looks at it next, as registered there.
    pub due_us: u64,
}

impl Group {
    pub fn new(id: Arc<str>, now: TimestampMs) -> Self {
        Self {
            id,
            state: GroupState::Empty,
            state_since: now,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            promised: BTreeMap::new(),
            rebalance: None,
            unsynced: BTreeSet::new(),
            assigning: None,
            sync_until_us: u64::MAX,
            offsets: BTreeMap::new(),
            underway: BTreeMap::new(),
            removing: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            member_bytes: 0,
            assignment_bytes: 0,
            offset_bytes: 0,
            recorded: None,
            recorded_bytes: 0,
            due_us: u64::MAX,
        }
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        let members = self.member_bytes + self.assignment_bytes + self.recorded_bytes;
        self.id.len() + members + self.offset_bytes
    }

    /// By how many bytes an assignment so long would make it grow. Its record holds it once more, with the members.
    pub fn growth_by_assignment(&self, length: usize) -> usize {
        let after = self.member_bytes + 2 * length;
        after.saturating_sub(self.assignment_bytes + self.recorded_bytes)
    }

    /// Members say something else of themselves.
    pub fn count_members(&mut self) {
        let promised = self.promised.keys().map(|id| id.len());
        let members = self.members.values().map(Member::bytes);
        self.member_bytes = members.chain(promised).sum();
        let assignments = self.members.values().map(|member| member.assignment.len());
        self.assignment_bytes = assignments.sum();
    }

    /// Panics when what is counted is not what is held.
    pub fn check_bytes(&self) {
        let promised = self.promised.keys().map(|id| id.len());
        let members = self.members.values();
        let held: usize = members.clone().map(Member::bytes).chain(promised).sum();
        assert_eq!(self.member_bytes, held, "{}: members", self.id);
        let held: usize = members.map(|member| member.assignment.len()).sum();
        assert_eq!(self.assignment_bytes, held, "{}: assignments", self.id);
        let offsets = self.offsets.iter();
        let offsets = offsets.map(|(key, held)| offset_bytes(&self.id, key, &held.value));
        let doubtful = self.doubtful.keys().map(doubt_bytes);
        let held: usize = offsets.chain(doubtful).sum();
        assert_eq!(self.offset_bytes, held, "{}: offsets", self.id);
        let held = self.recorded.as_ref().map_or(0, metadata_bytes);
        assert_eq!(self.recorded_bytes, held, "{}: its record", self.id);
    }

    /// Takes note of the newest record, or that there is none.
    pub fn set_recorded(&mut self, metadata: Option<GroupMetadata>) {
        self.recorded_bytes = metadata.as_ref().map_or(0, metadata_bytes);
        self.recorded = metadata;
    }

    /// Takes note of a stored offset.
    pub fn set_offset(&mut self, partition: NamedPartition, held: Held) {
        self.offset_bytes += offset_bytes(&self.id, &partition, &held.value);
        if let Some(before) = self.offsets.insert(partition.clone(), held) {
            self.offset_bytes -= offset_bytes(&self.id, &partition, &before.value);
        }
    }

    /// Forgets a stored offset.
    pub fn unset_offset(&mut self, partition: &NamedPartition) {
        if let Some(before) = self.offsets.remove(partition) {
            self.offset_bytes -= offset_bytes(&self.id, partition, &before.value);
        }
    }

    /// Takes note of a commit that failed and may be on the topic.
    pub fn doubt(&mut self, partition: NamedPartition, store: StoreId) {
        self.settle(&partition, store);
        if !self.doubtful.contains_key(&partition) {
            self.offset_bytes += doubt_bytes(&partition);
            self.doubtful.insert(partition, store);
        }
    }

    /// The topic says something newer of a partition than any doubtful commit up to this append.
    pub fn settle(&mut self, partition: &NamedPartition, store: StoreId) {
        let is_older = |doubtful: &StoreId| *doubtful <= store;
        if self.doubtful.get(partition).is_some_and(is_older) {
            self.doubtful.remove(partition);
            self.offset_bytes -= doubt_bytes(partition);
        }
    }

    /// The newest commit for a partition that the topic may hold.
    pub fn newest_commit(&self, partition: &NamedPartition) -> Option<StoreId> {
        let held = [&self.underway, &self.offsets].map(|offsets| offsets.get(partition));
        let stores = held.into_iter().flatten().map(|held| held.store);
        stores.chain(self.doubtful.get(partition).copied()).max()
    }

    /// By how many bytes a commit would make it grow.
    pub fn growth(&self, partition: &NamedPartition, value: &CommittedOffset) -> usize {
        let before = self
            .offsets
            .get(partition)
            .map_or(0, |held| offset_bytes(&self.id, partition, &held.value));
        offset_bytes(&self.id, partition, value).saturating_sub(before)
    }

    /// Nothing is known of it that would be missed.
    pub fn is_void(&self) -> bool {
        self.members.is_empty()
            && self.promised.is_empty()
            && self.offsets.is_empty()
            && self.underway.is_empty()
            && self.doubtful.is_empty()
            && self.recorded.is_none()
    }

    /// A member by its id; `FENCED_INSTANCE_ID` if another one has its static name.
    pub fn member(&self, id: &str, instance: Option<&str>) -> Result<&Member, ErrorCode> {
        if let Some(instance) = instance {
            match self.instances.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(holder) if &**holder != id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        self.members.get(id).ok_or(ErrorCode::UnknownMemberId)
    }

    fn enter(&mut self, state: GroupState, cx: &Context<'_>) {
        self.state = state;
        self.state_since = cx.now.wall;
    }

    /// How long the slowest member may take to join again.
    fn rebalance_timeout_us(&self) -> u64 {
        let timeouts = self.members.values();
        let timeouts = timeouts.map(|member| ms_as_us(member.rebalance_timeout_ms));
        timeouts.max().unwrap_or(0)
    }

    /// The member that one who joins is, or takes the place of.
    pub fn place_taken_by(&self, join: &Join) -> Option<&Member> {
        let holder = join.instance.as_deref();
        let holder = holder.and_then(|name| self.instances.get(name));
        let id = holder.map_or(join.member_id.as_str(), |id| id);
        self.members.get(id)
    }

    // ---- joining --------------------------------------------------------------------------------------------------

    /// Whether one who says this of itself can be a member.
    pub fn understands(&self, join: &Join) -> bool {
        if join.protocol_type.is_empty() || join.protocols.is_empty() {
            return false;
        }
        // Whoever is replaced by it need not agree.
        let replaced = (join.instance.as_deref()).and_then(|instance| self.instances.get(instance));
        let mut others = (self.members.values())
            .filter(|member| *member.id != *join.member_id && Some(&member.id) != replaced)
            .peekable();
        if others.peek().is_none() {
            return true;
        }
        let others: Vec<_> = others.collect();
        let knows = |name: &str| {
            let knows_it =
                |member: &&Member| member.protocols.iter().any(|(known, _)| **known == *name);
            others.iter().all(knows_it)
        };
        self.protocol_type.as_deref() == Some(&join.protocol_type)
            && join.protocols.iter().any(|(name, _)| knows(name))
    }

    /// A new member; the group rebalances.
    pub fn add(&mut self, id: Arc<str>, waiter: Waiter, join: &Join, cx: &mut Context<'_>) {
        if self.members.is_empty() {
            self.protocol_type = Some(Arc::from(join.protocol_type.as_str()));
        }
        let mut member = Member::new(id.clone(), join);
        member.joining = Some(waiter);
        member.session_until_us = cx.now.monotonic_us.saturating_add(NEW_MEMBER_PATIENCE_US);
        if let Some(instance) = &member.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.member_bytes += member.bytes();
        self.members.insert(id.clone(), member);
        self.leader.get_or_insert(id);
        if let Some(rebalance) = &mut self.rebalance {
            rebalance.grew = true;
        }
        self.rebalance_or_go_on(cx);
    }

    /// A member joins again, in a rebalance or to cause one.
    pub fn rejoin(&mut self, id: &str, waiter: Waiter, join: &Join, cx: &mut Context<'_>) {
        if self.members.len() == 1 {
            self.protocol_type = Some(Arc::from(join.protocol_type.as_str()));
        }
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        member.take_over(join);
        let earlier = member.joining.replace(waiter);
        self.count_members();
        if let Some(earlier) = earlier {
            refuse_join(earlier, ErrorCode::RebalanceInProgress, id, cx);
        }
        self.rebalance_or_go_on(cx);
    }

    /// Begins a rebalance unless one is under way; else sees whether it can end.
    pub fn rebalance_or_go_on(&mut self, cx: &mut Context<'_>) {
        match self.state {
            GroupState::PreparingRebalance => self.try_complete(cx),
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => {
                self.prepare(cx);
            }
            GroupState::Dead => {}
        }
    }

    fn prepare(&mut self, cx: &mut Context<'_>) {
        if self.state == GroupState::CompletingRebalance {
            self.refuse_syncs(ErrorCode::RebalanceInProgress, cx);
        }
        self.unsynced.clear();
        self.sync_until_us = u64::MAX;
        let timeout_us = self.rebalance_timeout_us();
        let (wait_us, initial_left_us) = if self.state == GroupState::Empty {
            let delay_us = ms_as_us(cx.settings.initial_rebalance_delay_ms).min(timeout_us);
            (delay_us, Some(timeout_us - delay_us))
        } else {
            (timeout_us, None)
        };
        self.rebalance = Some(Rebalance {
            until_us: cx.now.monotonic_us.saturating_add(wait_us),
            initial_left_us: initial_left_us.filter(|_| wait_us > 0),
            grew: false,
        });
        self.enter(GroupState::PreparingRebalance, cx);
        self.try_complete(cx);
    }

    /// Ends the rebalance if nobody is missing.
    pub fn try_complete(&mut self, cx: &mut Context<'_>) {
        let may_end = self
            .rebalance
            .is_some_and(|rebalance| rebalance.initial_left_us.is_none());
        let all_joined = self.members.values().all(|member| member.joining.is_some());
        if self.state == GroupState::PreparingRebalance
            && may_end
            && all_joined
            && self.promised.is_empty()
        {
            self.complete(cx);
        }
    }

    /// The next generation begins, with those that have joined.
    fn complete(&mut self, cx: &mut Context<'_>) {
        let late = self.members.values();
        let late = late.filter(|member| member.joining.is_none() && member.instance.is_none());
        let late: Vec<_> = late.map(|member| member.id.clone()).collect();
        for id in late {
            self.drop_member(&id, cx);
        }
        if !self.members.is_empty() && !self.elect() {
            // Static members only, none of which is back yet: their sessions decide.
            let wait_us = self.rebalance_timeout_us().max(REBALANCE_WAIT_US_MIN);
            self.rebalance = Some(Rebalance {
                until_us: cx.now.monotonic_us.saturating_add(wait_us),
                initial_left_us: None,
                grew: false,
            });
            return;
        }
        self.rebalance = None;
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        cx.counts.rebalances += 1;
        if self.members.is_empty() {
            self.protocol = None;
            self.leader = None;
            self.enter(GroupState::Empty, cx);
            if self.recorded.is_some() {
                self.record(&BTreeMap::new(), cx);
            }
            return;
        }
        self.protocol = Some(self.choose_protocol());
        self.enter(GroupState::CompletingRebalance, cx);
        self.unsynced = self.members.keys().cloned().collect();
        self.sync_until_us = cx
            .now
            .monotonic_us
            .saturating_add(self.rebalance_timeout_us());
        let ids: Vec<_> = self.members.keys().cloned().collect();
        for id in ids {
            let joined = self.place_of(&id);
            let Some(member) = self.members.get_mut(&id) else {
                continue;
            };
            member.is_new = false;
            member.heard(cx.now.monotonic_us);
            if let Some(waiter) = member.joining.take() {
                let outcome = Ok(joined);
                cx.out.push(Effect::Joined { waiter, outcome });
            }
        }
    }

    /// Makes sure that the leader is one who has joined.
    fn elect(&mut self) -> bool {
        let has_joined = |id: &Arc<str>| self.members.get(id).is_some_and(|m| m.joining.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let mut joined = self
            .members
            .values()
            .filter(|member| member.joining.is_some());
        let Some(first) = joined.next().map(|member| member.id.clone()) else {
            return false;
        };
        self.leader = Some(first);
        true
    }

    /// Protocols that all members know, in the leader's order.
    fn common_protocols(&self) -> Vec<Arc<str>> {
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        let Some(leader) = leader.or_else(|| self.members.values().next()) else {
            return Vec::new();
        };
        let known_to_all = |name: &Arc<str>| {
            let knows = |member: &Member| member.protocols.iter().any(|(known, _)| known == name);
            self.members.values().all(knows)
        };
        let names = leader.protocols.iter().map(|(name, _)| name.clone());
        names.filter(known_to_all).collect()
    }

    /// The common protocol that most members like best.
    pub fn choose_protocol(&self) -> Arc<str> {
        let common = self.common_protocols();
        let mut votes = vec![0_usize; common.len()];
        for member in self.members.values() {
            let choice = member.dearest(&common);
            let choice = common.iter().position(|name| Some(name) == choice.as_ref());
            if let Some(choice) = choice {
                votes[choice] += 1;
            }
        }
        let most = votes.iter().copied().max().unwrap_or(0);
        let winner = votes.iter().position(|count| *count == most);
        let winner = winner.and_then(|index| common.get(index));
        winner.cloned().unwrap_or_default()
    }

    /// What a member is told about the present generation.
    pub fn place_of(&self, id: &Arc<str>) -> Joined {
        let protocol = self.protocol.clone().unwrap_or_default();
        let leader = self.leader.clone().unwrap_or_default();
        let members = if *id == leader {
            let members = self.members.values();
            let members = members.map(|member| JoinedMember {
                member_id: member.id.clone(),
                instance: member.instance.clone(),
                subscription: member.subscription(&protocol),
            });
            members.collect()
        } else {
            Vec::new()
        };
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol,
            leader,
            member_id: id.clone(),
            members,
            skip_assignment: false,
        }
    }

    // ---- leaving --------------------------------------------------------------------------------------------------

    /// A member is gone; the others rebalance.
    pub fn remove(&mut self, id: &str, cx: &mut Context<'_>) {
        self.drop_member(id, cx);
        // An empty group has nothing to agree on.
        if self.state != GroupState::Empty {
            self.rebalance_or_go_on(cx);
        }
    }

    fn drop_member(&mut self, id: &str, cx: &mut Context<'_>) {
        let Some(member) = self.members.remove(id) else {
            return;
        };
        self.member_bytes -= member.bytes();
        self.assignment_bytes -= member.assignment.len();
        if let Some(waiter) = member.joining {
            refuse_join(waiter, ErrorCode::UnknownMemberId, id, cx);
        }
        if let Some(waiter) = member.syncing {
            let outcome = Err(ErrorCode::UnknownMemberId);
            cx.out.push(Effect::Synced { waiter, outcome });
        }
        if let Some(instance) = &member.instance {
            self.instances.remove(instance);
        }
        self.unsynced.remove(id);
        if self.leader.as_deref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// Everybody who waits for an assignment is told that there is none.
    pub fn refuse_syncs(&mut self, code: ErrorCode, cx: &mut Context<'_>) {
        for member in self.members.values_mut() {
            if let Some(waiter) = member.syncing.take() {
                let outcome = Err(code);
                cx.out.push(Effect::Synced { waiter, outcome });
            }
        }
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    /// Gives up whom nothing was heard of for too long.
    pub fn on_time(&mut self, cx: &mut Context<'_>) {
        let now_us = cx.now.monotonic_us;
        let before = self.promised.len();
        self.promised.retain(|_, until_us| *until_us > now_us);
        if self.promised.len() < before {
            self.count_members();
            self.try_complete(cx);
        }
        let silent = self.members.values().filter(|member| {
            let may_be_silent = member.waits() && !member.is_new;
            !may_be_silent && member.session_until_us <= now_us
        });
        let silent: Vec<_> = silent.map(|member| member.id.clone()).collect();
        for id in silent {
            self.remove(&id, cx);
        }
        if self.sync_until_us <= now_us {
            self.sync_until_us = u64::MAX;
            let idle: Vec<_> = std::mem::take(&mut self.unsynced).into_iter().collect();
            for id in idle {
                self.remove(&id, cx);
            }
        }
        let due = self
            .rebalance
            .filter(|rebalance| rebalance.until_us <= now_us);
        if let Some(rebalance) = due {
            match rebalance.initial_left_us {
                Some(left_us) if rebalance.grew && left_us > 0 => {
                    let delay_us = ms_as_us(cx.settings.initial_rebalance_delay_ms).min(left_us);
                    self.rebalance = Some(Rebalance {
                        until_us: now_us.saturating_add(delay_us),
                        initial_left_us: Some(left_us - delay_us),
                        grew: false,
                    });
                }
                _ => self.complete(cx),
            }
        }
    }

    /// When [`Group::on_time`] has something to do.
    pub fn next_due_us(&self) -> u64 {
        let members = self.members.values();
        let members = members.filter(|member| !member.waits() || member.is_new);
        let sessions = members.map(|member| member.session_until_us);
        let rebalance = self.rebalance.map(|rebalance| rebalance.until_us);
        let syncs = (!self.unsynced.is_empty()).then_some(self.sync_until_us);
        let promised = self.promised.values().copied();
        let others = promised.chain(rebalance).chain(syncs);
        sessions.chain(others).min().unwrap_or(u64::MAX)
    }

    /// Moves every deadline: the coordinator stood still for so long, and could hear nobody.
    pub fn forgive(&mut self, by_us: u64) {
        let move_on = |deadline_us: &mut u64| *deadline_us = deadline_us.saturating_add(by_us);
        for member in self.members.values_mut() {
            move_on(&mut member.session_until_us);
        }
        self.promised.values_mut().for_each(move_on);
        move_on(&mut self.sync_until_us);
        if let Some(rebalance) = &mut self.rebalance {
            move_on(&mut rebalance.until_us);
        }
    }

    // ---- records --------------------------------------------------------------------------------------------------

    /// The group as it is, with these assignments, or those that the members have.
    pub fn metadata(&self, assignments: &BTreeMap<Arc<str>, Opaque>) -> GroupMetadata {
        let protocol = self.protocol.clone().unwrap_or_default();
        let members = self.members.values().map(|member| {
            let assignment = assignments.get(&member.id).unwrap_or(&member.assignment);
            GroupMember {
                member_id: member.id.to_string(),
                group_instance_id: member.instance.as_deref().map(str::to_owned),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                session_timeout_ms: member.session_timeout_ms,
                subscription: member.subscription(&protocol).to_vec(),
                assignment: assignment.to_vec(),
            }
        });
        GroupMetadata {
            protocol_type: self.protocol_type.as_deref().unwrap_or_default().to_owned(),
            generation: self.generation,
            protocol: self.protocol.as_deref().map(str::to_owned),
            leader: self.leader.as_deref().map(str::to_owned),
            state_since: self.state_since.0,
            members: members.collect(),
        }
    }

    /// Appends the group's record.
    pub fn record(
        &mut self,
        assignments: &BTreeMap<Arc<str>, Opaque>,
        cx: &mut Context<'_>,
    ) -> StoreId {
        let metadata = self.metadata(assignments);
        self.set_recorded(Some(metadata.clone()));
        let record = Record::Group {
            group: self.id.clone(),
            value: Some(metadata),
        };
        cx.store(vec![record])
    }
}

/// Answers a join with an error.
pub fn refuse_join(waiter: Waiter, code: ErrorCode, member_id: &str, cx: &mut Context<'_>) {
    let member_id = Arc::from(member_id);
    let outcome = Err(JoinRefusal { code, member_id });
    cx.out.push(Effect::Joined { waiter, outcome });
}
