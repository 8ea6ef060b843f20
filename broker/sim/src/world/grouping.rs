//! Members of groups: they join, share out what they read, commit, fall silent, vanish and come back, and somebody deletes
//! what they committed, or all of a group, or the topic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tackboard_logic::group::GroupView;
use tackboard_logic::group::interface::{
    CommitEntry, Effect, GroupState, Input, Join, JoinRefusal, Joined, MemberRef, NamedPartition,
    Opaque, Sync, Synced,
};
use tackboard_schema::{ErrorCode, LeaderEpoch, Offset};

use super::{Event, World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::model::GroupTopic;

/// Partitions that one commit names at most.
const COMMIT_ENTRIES_MAX: usize = 4;

/// Whom an answer is for, and what was asked.
pub(super) struct Asked {
    /// A member that waits for it; `None`: nobody any more, or an operator.
    member: Option<usize>,
    pub(super) group: String,
    instance: Option<String>,
    what: What,
}

enum What {
    Join,
    Sync {
        generation: i32,
        member_id: String,
    },
    Heartbeat,
    Leave,
    Commit(Vec<(NamedPartition, i64)>),
    /// All that was committed up to a commit.
    DeleteOffsets(Vec<NamedPartition>, i64),
    DeleteGroup(i64),
}

/// A client that reads as a member of a group.
pub(super) struct Member {
    group: usize,
    instance: Option<String>,
    takes_id_first: bool,
    session_timeout_ms: i32,
    rebalance_timeout_ms: i32,
    id: String,
    generation: i32,
    phase: Phase,
    /// The answer that it waits for.
    waiter: Option<u64>,
    /// What it reads.
    owned: Vec<NamedPartition>,
    /// It does nothing until then.
    silent_until_us: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// It is to join.
    Out,
    /// It was told of a generation; the leader, of all members.
    Joined(Option<Vec<String>>),
    /// It knows what to read.
    Settled,
}

impl Member {
    pub(super) fn forget_connection(&mut self) {
        self.waiter = None;
    }

    pub(super) fn forget_answers(&mut self, ended: &BTreeMap<u64, Asked>) {
        self.waiter = self.waiter.filter(|waiter| !ended.contains_key(waiter));
    }

    fn reference(&self) -> MemberRef {
        MemberRef {
            generation: self.generation,
            member_id: self.id.clone(),
            instance: self.instance.clone(),
        }
    }

    /// It is to join under a new id.
    fn begin_anew(&mut self) {
        self.id.clear();
        self.generation = -1;
        self.owned.clear();
        self.phase = Phase::Out;
    }
}

pub(super) fn group_name(group: usize) -> String {
    format!("group-{group}")
}

impl World {
    /// The internal topic, and clients that depend on it.
    pub(super) fn populate_groups(&mut self) {
        for _ in 0..self.options.groups.coordinators {
            let number = self.add_partition();
            let own = self.partition(number).config.clone();
            let config = self.options.groups.internal_log(own);
            let partition = self.partition(number);
            partition.config = config;
            partition.internal = true;
            self.internal.push(number);
            self.add_coordinators_reader(number);
        }
        if self.internal.is_empty() {
            return;
        }
        for _ in 0..self.options.groups.groups {
            let topic = self.new_group_topic();
            self.reads.push(topic);
        }
        for _ in 0..self.options.groups.members {
            self.add_member();
        }
        self.schedule(0, Event::Operator);
    }

    fn new_group_topic(&mut self) -> GroupTopic {
        self.group_topics += 1;
        GroupTopic {
            name: Arc::from(format!("topic-{}", self.group_topics)),
            partitions: self.rng.between(1, 6) as i32,
        }
    }

    fn add_member(&mut self) {
        let index = self.members.len();
        let group = self.rng.below(self.reads.len() as u64) as usize;
        // Two clients may have one static name.
        let instance = (self.rng.one_in(3)).then(|| format!("static-{}", self.rng.below(3)));
        let session_timeout_ms = self.rng.pick(&[50, 500, 6_000]);
        let rebalance_timeout_ms = self.rng.pick(&[100, 1_000, 10_000]);
        self.members.push(Member {
            group,
            instance,
            takes_id_first: self.rng.coin(),
            session_timeout_ms,
            rebalance_timeout_ms,
            id: String::new(),
            generation: -1,
            phase: Phase::Out,
            waiter: None,
            owned: Vec::new(),
            silent_until_us: 0,
        });
        self.schedule(0, Event::Member(index));
    }

    /// The partition whose coordinator a group has.
    pub(super) fn coordinator_of(&self, group: &str) -> u32 {
        let hash: usize = group.bytes().map(usize::from).sum();
        self.internal[hash % self.internal.len()]
    }

    pub(super) fn group_topic_exists(&self, topic: &str) -> bool {
        self.reads.iter().any(|known| &*known.name == topic)
    }

    // ---- members --------------------------------------------------------------------------------------------------

    /// A member acts.
    pub(super) fn act_as_member(&mut self, index: usize) {
        let member = &self.members[index];
        let session_us = member.session_timeout_ms as u64 * 1_000;
        // A client that hears of a rebalance later than the others wait for it is put out again and again.
        let rebalance_us = member.rebalance_timeout_ms as u64 * 1_000;
        let patience_us = match self.chaos {
            true => session_us,
            false => session_us.min(rebalance_us),
        };
        let pause = self.rng.between(1, patience_us / 4);
        self.schedule(pause, Event::Member(index));
        if self.chaos {
            self.plague_member(index);
        }
        let member = &self.members[index];
        if member.waiter.is_some() || member.silent_until_us > self.clock.now_us() {
            return;
        }
        match member.phase.clone() {
            Phase::Out => self.join(index),
            Phase::Joined(members) => self.sync(index, members),
            Phase::Settled if self.rng.coin() => self.heartbeat(index),
            Phase::Settled => self.commit_as(index),
        }
    }

    /// What may happen to a member: its connection goes, it falls silent, leaves, or does something that it should not.
    fn plague_member(&mut self, index: usize) {
        if self.rng.one_in(64) {
            self.lose_groups_answer(index);
        }
        if self.rng.one_in(128) {
            let session_us = self.members[index].session_timeout_ms as u64 * 1_000;
            let silent_us = self.rng.below(4 * session_us);
            let until_us = self.clock.now_us() + silent_us;
            self.lose_groups_answer(index);
            let member = &mut self.members[index];
            member.silent_until_us = until_us;
            // The client may be another process when it comes back.
            if self.rng.coin() {
                self.members[index].begin_anew();
            }
        }
        if self.rng.one_in(128) {
            self.leave(index);
        }
        // A rebalance that nobody needs.
        if self.rng.one_in(64) && self.members[index].phase == Phase::Settled {
            self.members[index].phase = Phase::Out;
        }
        if self.rng.one_in(64) {
            self.send_something_stale(index);
        }
    }

    /// Nobody waits any more for what a member has asked.
    fn lose_groups_answer(&mut self, index: usize) {
        if let Some(waiter) = self.members[index].waiter.take()
            && let Some(asked) = self.asked.get_mut(&waiter)
        {
            asked.member = None;
        }
    }

    fn ask_as(
        &mut self,
        index: usize,
        what: What,
    ) -> (u32, tackboard_logic::group::interface::Waiter) {
        let member = &self.members[index];
        let group = group_name(member.group);
        let number = self.coordinator_of(&group);
        let asked = Asked {
            member: Some(index),
            instance: member.instance.clone(),
            group,
            what,
        };
        let waiter = self.expect_group_answer(asked);
        self.members[index].waiter = Some(waiter.0);
        (number, waiter)
    }

    /// Whether a group's coordinator takes questions.
    fn takes_questions(&self, group: &str) -> bool {
        let process = self.process.as_ref();
        process.is_some_and(|process| !process.shutting_down)
            && self.coordinator(self.coordinator_of(group)).is_some()
    }

    fn member_takes_part(&self, index: usize) -> bool {
        self.takes_questions(&group_name(self.members[index].group))
    }

    fn join(&mut self, index: usize) {
        if !self.member_takes_part(index) {
            return;
        }
        let member = &self.members[index];
        let subscription = subscription(&self.reads[member.group].name);
        let mut protocols = vec![
            ("range".to_owned(), subscription.clone()),
            ("roundrobin".to_owned(), subscription),
        ];
        let join = Join {
            group: group_name(member.group),
            member_id: member.id.clone(),
            instance: member.instance.clone(),
            client_id: format!("client-{index}"),
            client_host: "/127.0.0.1".to_owned(),
            session_timeout_ms: member.session_timeout_ms,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            protocol_type: "consumer".to_owned(),
            protocols: match self.rng.below(3) {
                0 => protocols,
                1 => {
                    protocols.reverse();
                    protocols
                }
                _ => protocols.split_off(0).into_iter().take(1).collect(),
            },
            takes_id_first: self.members[index].takes_id_first,
            // Whoever speaks the newer version knows both.
            may_skip_assignment: self.members[index].takes_id_first,
            entropy: u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64()),
        };
        let (number, waiter) = self.ask_as(index, What::Join);
        self.step_group(number, Input::Join(waiter, join));
    }

    fn sync(&mut self, index: usize, members: Option<Vec<String>>) {
        if !self.member_takes_part(index) {
            return;
        }
        let assignments = members.map(|members| self.share_out(index, members));
        let member = &self.members[index];
        let sync = Sync {
            group: group_name(member.group),
            member: member.reference(),
            assignments: assignments.unwrap_or_default(),
            ..Sync::default()
        };
        let what = What::Sync {
            generation: member.generation,
            member_id: member.id.clone(),
        };
        let (number, waiter) = self.ask_as(index, what);
        self.step_group(number, Input::Sync(waiter, sync));
    }

    /// Each partition of what the group reads, for one member each.
    fn share_out(&mut self, index: usize, mut members: Vec<String>) -> Vec<(String, Opaque)> {
        // A leader may leave somebody without anything, or without a word.
        if members.len() > 1 && self.rng.one_in(8) {
            members.pop();
        }
        let topic = self.reads[self.members[index].group].clone();
        let first = self.rng.below(members.len() as u64) as usize;
        let count = members.len();
        let members = members.into_iter().enumerate().map(|(place, id)| {
            let theirs = (0..topic.partitions)
                .filter(|partition| (*partition as usize + first) % count == place);
            let theirs: Vec<i32> = theirs.collect();
            (id, assignment(&topic.name, &theirs))
        });
        members.collect()
    }

    fn heartbeat(&mut self, index: usize) {
        if !self.member_takes_part(index) {
            return;
        }
        let member = &self.members[index];
        let (group, member) = (group_name(member.group), member.reference());
        let (number, waiter) = self.ask_as(index, What::Heartbeat);
        let input = Input::Heartbeat {
            waiter,
            group,
            member,
        };
        self.step_group(number, input);
    }

    fn leave(&mut self, index: usize) {
        if self.members[index].id.is_empty() || !self.member_takes_part(index) {
            return;
        }
        self.lose_groups_answer(index);
        let member = &self.members[index];
        let (group, mut gone) = (group_name(member.group), member.reference());
        // An operator names a static member without its id.
        if gone.instance.is_some() && self.rng.coin() {
            gone.member_id.clear();
        }
        let (number, waiter) = self.ask_as(index, What::Leave);
        let input = Input::Leave {
            waiter,
            group,
            members: vec![gone],
        };
        self.step_group(number, input);
    }

    fn commit_as(&mut self, index: usize) {
        let member = &self.members[index];
        if member.owned.is_empty() || !self.member_takes_part(index) {
            return;
        }
        let (group, reference) = (member.group, member.reference());
        let owned = member.owned.clone();
        let partitions = self.some_of(owned);
        let (entries, numbers) = self.entries_of(group, partitions);
        let (number, waiter) = self.ask_as(index, What::Commit(numbers));
        let input = Input::Commit {
            waiter,
            group: group_name(group),
            member: reference,
            entries,
        };
        self.step_group(number, input);
    }

    fn some_of(&mut self, mut partitions: Vec<NamedPartition>) -> Vec<NamedPartition> {
        let count = self.rng.between(1, COMMIT_ENTRIES_MAX as u64) as usize;
        let from = self.rng.below(partitions.len() as u64) as usize;
        partitions.rotate_left(from);
        partitions.truncate(count);
        partitions
    }

    /// A new commit for each partition; for one of a topic that is gone, the driver refuses it.
    fn entries_of(
        &mut self,
        group: usize,
        partitions: Vec<NamedPartition>,
    ) -> (Vec<CommitEntry>, Vec<(NamedPartition, i64)>) {
        let exists = self.reads[group].name.clone();
        let mut entries = Vec::new();
        let mut numbers = Vec::new();
        for partition in partitions {
            self.next_commit += 1;
            let refused = (partition.topic != exists).then_some(ErrorCode::UnknownTopicOrPartition);
            let metadata = "x".repeat(self.rng.below(100) as usize);
            entries.push(CommitEntry {
                partition: partition.clone(),
                offset: Offset(self.next_commit),
                leader_epoch: LeaderEpoch(-1),
                metadata,
                refused,
            });
            numbers.push((partition, self.next_commit));
        }
        (entries, numbers)
    }

    /// A message of a member's former life, or of a generation that is over, arrives late; nobody waits for its answer.
    fn send_something_stale(&mut self, index: usize) {
        let member = &self.members[index];
        if member.id.is_empty() || !self.member_takes_part(index) {
            return;
        }
        let group = member.group;
        let mut reference = member.reference();
        match self.rng.below(3) {
            0 => reference.generation -= 1,
            1 => reference.generation += 1,
            _ => reference.member_id.push('x'),
        }
        let topic = self.reads[group].name.clone();
        let partition = NamedPartition {
            topic,
            partition: 0,
        };
        let (entries, numbers) = self.entries_of(group, vec![partition]);
        self.commit_for_nobody(group, reference, entries, numbers);
    }

    fn commit_for_nobody(
        &mut self,
        group: usize,
        member: MemberRef,
        entries: Vec<CommitEntry>,
        numbers: Vec<(NamedPartition, i64)>,
    ) {
        let name = group_name(group);
        let waiter = self.expect_group_answer(Asked {
            member: None,
            group: name.clone(),
            instance: None,
            what: What::Commit(numbers),
        });
        let number = self.coordinator_of(&name);
        let input = Input::Commit {
            waiter,
            group: name,
            member,
            entries,
        };
        self.step_group(number, input);
    }

    // ---- operators ------------------------------------------------------------------------------------------------

    /// Somebody changes groups from outside, or commits to one without being a member.
    pub(super) fn act_as_operator(&mut self) {
        let pause = self.rng.between(1, 200_000);
        self.schedule(pause, Event::Operator);
        if !self.chaos {
            return;
        }
        let group = self.rng.below(self.reads.len() as u64) as usize;
        let name = group_name(group);
        if self.rng.one_in(64) {
            self.replace_group_topic(group);
        }
        if !self.takes_questions(&name) {
            return;
        }
        let topic = self.reads[group].clone();
        let partitions = (0..topic.partitions).map(|partition| NamedPartition {
            topic: topic.name.clone(),
            partition,
        });
        let partitions: Vec<_> = partitions.collect();
        let partitions = self.some_of(partitions);
        match self.rng.below(8) {
            0 => self.delete_offsets(&name, partitions),
            1 => self.delete_group(&name),
            _ => {
                let (entries, numbers) = self.entries_of(group, partitions);
                let nobody = MemberRef {
                    generation: -1,
                    ..MemberRef::default()
                };
                self.commit_for_nobody(group, nobody, entries, numbers);
            }
        }
    }

    fn delete_offsets(&mut self, group: &str, partitions: Vec<NamedPartition>) {
        let number = self.coordinator_of(group);
        let waiter = self.expect_group_answer(Asked {
            member: None,
            group: group.to_owned(),
            instance: None,
            what: What::DeleteOffsets(partitions.clone(), self.next_commit),
        });
        let group = group.to_owned();
        let input = Input::DeleteOffsets {
            waiter,
            group,
            partitions,
        };
        self.step_group(number, input);
    }

    fn delete_group(&mut self, group: &str) {
        let number = self.coordinator_of(group);
        let waiter = self.expect_group_answer(Asked {
            member: None,
            group: group.to_owned(),
            instance: None,
            what: What::DeleteGroup(self.next_commit),
        });
        let group = group.to_owned();
        self.step_group(number, Input::DeleteGroup { waiter, group });
    }

    /// The topic that a group reads is deleted, and it reads another one.
    fn replace_group_topic(&mut self, group: usize) {
        let topic = self.new_group_topic();
        let gone = std::mem::replace(&mut self.reads[group], topic).name;
        trace!(self, "{gone} is deleted");
        for truth in self.groups.values_mut() {
            for (partition, truth) in &mut truth.offsets {
                truth.of_deleted_topic |= partition.topic == gone;
            }
        }
        for number in self.internal.clone() {
            let (topic, until) = (gone.clone(), None);
            self.step_group(number, Input::TopicDeleted { topic, until });
        }
        for member in &mut self.members {
            if member.group == group && member.phase == Phase::Settled {
                member.phase = Phase::Out;
            }
        }
    }

    // ---- answers --------------------------------------------------------------------------------------------------

    /// A coordinator answers.
    pub(super) fn take_group_answer(&mut self, waiter: u64, asked: Asked, answer: Effect) {
        self.check_group_answer(&asked, &answer);
        let waits = |member: &usize| self.members[*member].waiter == Some(waiter);
        let Some(index) = asked.member.filter(waits) else {
            return;
        };
        self.members[index].waiter = None;
        match (asked.what, answer) {
            (What::Join, Effect::Joined { outcome, .. }) => self.hear_joined(index, outcome),
            (What::Sync { .. }, Effect::Synced { outcome, .. }) => {
                self.hear_synced(index, outcome);
            }
            (What::Heartbeat, Effect::Done { code, .. }) => self.hear_code(index, code),
            (What::Leave, _) => self.members[index].begin_anew(),
            (What::Commit(_), Effect::Committed { outcome, .. }) => {
                let codes = outcome.unwrap_or_else(|code| vec![code]);
                let refused = codes.into_iter().find(|code| *code != ErrorCode::None);
                // A topic that is gone is no reason to join anew; being told to rebalance is.
                self.hear_code(index, refused.unwrap_or(ErrorCode::None));
            }
            (_, answer) => panic!("{answer:?} is no answer to what was asked"),
        }
    }

    fn check_group_answer(&mut self, asked: &Asked, answer: &Effect) {
        let truth = self.groups.entry(asked.group.clone()).or_default();
        match (&asked.what, answer) {
            (
                What::Join,
                Effect::Joined {
                    outcome: Ok(joined),
                    ..
                },
            ) => {
                let is_static = asked.instance.is_some();
                check::joined(&asked.group, truth, joined, is_static);
                self.see(Seen::GroupJoined);
            }
            (
                What::Sync {
                    generation,
                    member_id,
                },
                Effect::Synced {
                    outcome: Ok(synced),
                    ..
                },
            ) => {
                let owner = check::owner(member_id, asked.instance.as_deref());
                let partitions = read_assignment(&synced.assignment);
                let told = (&*synced.assignment, partitions.as_slice());
                check::synced(&asked.group, truth, *generation, owner, told);
                self.see(Seen::GroupSynced);
            }
            (What::Commit(numbers), Effect::Committed { outcome, .. }) => {
                let codes = match outcome {
                    Ok(codes) => codes.clone(),
                    Err(code) => vec![*code; numbers.len()],
                };
                assert_eq!(codes.len(), numbers.len(), "one code for each entry");
                let done = numbers.iter().zip(&codes);
                let done = done.filter(|(_, code)| **code == ErrorCode::None);
                let mut count = 0;
                for ((partition, number), _) in done {
                    let truth = truth.offsets.entry(partition.clone()).or_default();
                    check::commit_acknowledged(&asked.group, partition, truth, *number);
                    count += 1;
                }
                self.see(if count > 0 {
                    Seen::OffsetCommitted
                } else {
                    Seen::CommitRefused
                });
            }
            (
                What::DeleteOffsets(partitions, up_to),
                Effect::Committed {
                    outcome: Ok(codes), ..
                },
            ) => {
                let done = partitions.iter().zip(codes);
                for (partition, _) in done.filter(|(_, code)| **code == ErrorCode::None) {
                    let truth = truth.offsets.entry(partition.clone()).or_default();
                    truth.lose(*up_to);
                }
                self.see(Seen::OffsetsDeleted);
            }
            (
                What::DeleteGroup(up_to),
                Effect::Done {
                    code: ErrorCode::None,
                    ..
                },
            ) => {
                for truth in truth.offsets.values_mut() {
                    truth.lose(*up_to);
                }
                self.see(Seen::GroupDeleted);
            }
            _ => {}
        }
    }

    fn hear_joined(&mut self, index: usize, outcome: Result<Joined, JoinRefusal>) {
        let member = &mut self.members[index];
        match outcome {
            Ok(joined) => {
                member.id = joined.member_id.to_string();
                member.generation = joined.generation;
                let leads = joined.leader == joined.member_id;
                let members = joined.members.iter();
                let members = members.map(|member| member.member_id.to_string());
                member.phase = Phase::Joined(leads.then(|| members.collect()));
            }
            Err(refusal) if refusal.code == ErrorCode::MemberIdRequired => {
                member.id = refusal.member_id.to_string();
            }
            Err(refusal) => self.hear_code(index, refusal.code),
        }
    }

    fn hear_synced(&mut self, index: usize, outcome: Result<Synced, ErrorCode>) {
        let member = &mut self.members[index];
        match outcome {
            Ok(synced) => {
                member.owned = read_assignment(&synced.assignment);
                member.phase = Phase::Settled;
                // The topic may have gone meanwhile.
                let reads = self.reads[member.group].name.clone();
                if member
                    .owned
                    .iter()
                    .any(|partition| partition.topic != reads)
                {
                    member.phase = Phase::Out;
                }
            }
            Err(code) => {
                member.phase = Phase::Out;
                self.hear_code(index, code);
            }
        }
    }

    /// What a code means to a member.
    fn hear_code(&mut self, index: usize, code: ErrorCode) {
        let member = &mut self.members[index];
        match code {
            ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration => {
                member.phase = Phase::Out;
            }
            ErrorCode::UnknownMemberId => member.begin_anew(),
            ErrorCode::FencedInstanceId => {
                // Another client has its name: this one gives up, and another process comes some time.
                let session_us = member.session_timeout_ms as u64 * 1_000;
                member.begin_anew();
                member.silent_until_us = self.clock.now_us() + 4 * session_us;
            }
            _ => {}
        }
    }

    // ---- how it must end ------------------------------------------------------------------------------------------

    /// One client for each static name: two that fence each other never come to rest.
    pub(super) fn settle_static_names(&mut self) {
        let mut seen = BTreeSet::new();
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            let Some(instance) = member.instance.clone() else {
                continue;
            };
            if !seen.insert((member.group, instance)) {
                self.lose_groups_answer(index);
                self.members[index].instance = None;
                self.members[index].begin_anew();
            }
        }
    }

    /// Whether every group is at rest: its members know what they read, and together they read everything.
    pub(super) fn groups_are_stable(&self) -> bool {
        (0..self.reads.len()).all(|group| self.group_is_stable(group))
    }

    fn group_is_stable(&self, group: usize) -> bool {
        let name = group_name(group);
        let number = self.coordinator_of(&name);
        if self.is_excused(number) {
            return true;
        }
        let Some(coordinator) = self.coordinator(number) else {
            return false;
        };
        let members = self.members.iter().filter(|member| member.group == group);
        let members: Vec<&Member> = members.collect();
        let Some(view) = coordinator.describe(&name) else {
            return members.is_empty();
        };
        if members.is_empty() {
            return view.state == GroupState::Empty;
        }
        let knows = |member: &&Member| is_settled(member, &view);
        let mut read: Vec<_> = members.iter().flat_map(|member| &member.owned).collect();
        read.sort();
        let topic = &self.reads[group];
        let all = (0..topic.partitions).map(|partition| NamedPartition {
            topic: topic.name.clone(),
            partition,
        });
        view.state == GroupState::Stable
            && view.members.len() == members.len()
            && members.iter().all(knows)
            && read.into_iter().cloned().eq(all)
    }

    pub(super) fn coordinator_numbers(&self) -> Vec<u32> {
        self.internal.clone()
    }
}

fn is_settled(member: &Member, view: &GroupView) -> bool {
    let mut members = view.members.iter();
    member.phase == Phase::Settled
        && member.generation == view.generation
        && members.any(|known| *known.member_id == member.id)
}

/// What consumers tell each other of what they read: a version, topics, no data of their own.
pub(super) fn subscription(topic: &str) -> Opaque {
    let mut bytes = vec![0, 1, 0, 0, 0, 1];
    bytes.extend_from_slice(&(topic.len() as u16).to_be_bytes());
    bytes.extend_from_slice(topic.as_bytes());
    bytes.extend_from_slice(&[0xff; 4]);
    bytes.into()
}

/// Partitions of a topic, in a form of our own: the coordinator does not look at it.
fn assignment(topic: &str, partitions: &[i32]) -> Opaque {
    let numbers: Vec<String> = partitions.iter().map(i32::to_string).collect();
    format!("{topic} {}", numbers.join(" ")).into_bytes().into()
}

fn read_assignment(bytes: &[u8]) -> Vec<NamedPartition> {
    let text = std::str::from_utf8(bytes).expect("it was made here");
    let mut words = text.split_whitespace();
    let Some(topic) = words.next() else {
        return Vec::new();
    };
    let topic: Arc<str> = Arc::from(topic);
    let partitions = words.map(|word| NamedPartition {
        topic: topic.clone(),
        partition: word.parse().expect("it was made here"),
    });
    partitions.collect()
}
