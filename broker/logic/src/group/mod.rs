//! Consumer groups: who is in them, who reads what, and how far they have come.
//!
//! One [`Coordinator`] per partition of the internal topic `__consumer_offsets`, on the core that owns it. It takes the
//! requests of members, appends what must outlive it to that partition, and answers when that is stored. Everything
//! that it knows, [`Loader`] reads back from the partition.
//!
//! - [`interface`]: its vocabulary.
//! - `state`, `member`: one group and the classic protocol (joining, syncing, leaving, time-outs).
//! - `join`, `sync`, `commit`: requests. `sweep`: what expires, and rewriting the topic; `rewrite`: when.
//! - [`length`]: what of a request need not reach the coordinator. [`load`]: reading the topic back.
//!
//! Invariants (`check_invariants`):
//! - G1 nothing is answered as done before the topic holds it;
//! - G2 a commit needs a member of the present generation, or a group without members;
//! - G3 a committed offset never goes back to an earlier commit, and none is made up: absent is absent.
//!
//! Not here: which partition a group belongs to, the topic's appends, and the wire.

mod commit;
mod context;
pub mod interface;
mod join;
pub mod length;
pub mod load;
mod member;
mod rewrite;
mod state;
mod subscription;
mod sweep;
mod sync;
mod views;

#[cfg(test)]
mod group_test;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tackboard_schema::ErrorCode;

use crate::log::limits::STANDSTILL_US;
use crate::shard::interface::Now;
use commit::Entries;
use context::Context;
use interface::{Effect, GroupSettings, Input, MemberRef, Opaque, StoreId, Waiter};
pub use load::Loader;
pub use rewrite::{REWRITE_GROWTH, RewritePlan};
use state::Group;
use sweep::{Gone, Sweep};
pub use views::{GroupListing, GroupView, MemberView};

/// Longest group id, member id, static name or protocol name, in bytes: what a stored string can hold.
pub const NAME_BYTES_MAX: usize = i16::MAX as usize;

/// What an append was for.
#[derive(Debug)]
enum Purpose {
    /// The leader's assignment.
    Assignment {
        group: Arc<str>,
        generation: i32,
        assignments: BTreeMap<Arc<str>, Opaque>,
    },
    /// A static member came back under another id; it gets the place that it had.
    Replacement {
        waiter: Waiter,
        joined: interface::Joined,
    },
    Commit {
        waiter: Waiter,
        group: Arc<str>,
        entries: Entries,
    },
    /// Offsets are forgotten; somebody may wait to be told.
    Removal {
        group: Arc<str>,
        waiter: Option<(Waiter, Vec<ErrorCode>)>,
        /// Which, as of which commit.
        removed: Vec<(interface::NamedPartition, StoreId)>,
    },
    /// The whole group is.
    Deletion {
        group: Arc<str>,
        waiter: Option<Waiter>,
    },
    /// A group is written anew.
    Rewrite,
}

/// How an append ended.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Stored,
    /// The topic will never hold it.
    Refused(ErrorCode),
    /// It was appended, and nobody knows whether it will be there after a restart.
    InDoubt(ErrorCode),
}

impl Ended {
    fn result(self) -> Result<(), ErrorCode> {
        match self {
            Self::Stored => Ok(()),
            Self::Refused(code) | Self::InDoubt(code) => Err(code),
        }
    }
}

/// The groups of one partition of `__consumer_offsets`.
#[derive(Debug)]
pub struct Coordinator {
    settings: GroupSettings,
    groups: BTreeMap<Arc<str>, Group>,
    /// When which group has to be looked at.
    due: BTreeSet<(u64, Arc<str>)>,
    last_store: u64,
    stores: BTreeMap<StoreId, Purpose>,
    sweep: Sweep,
    /// Bytes of all groups, about.
    bytes: usize,
    /// Members of all groups.
    members: usize,
    counts: Counts,
    /// The time of the last input.
    heard_us: u64,
}

/// What a coordinator has done since it began to serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Generations that have begun.
    pub rebalances: u64,
    /// Offsets that were committed.
    pub commits: u64,
}

/// How a coordinator stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Groups that it knows.
    pub groups: u64,
    /// Their members.
    pub members: u64,
    /// Bytes of all of it, about.
    pub bytes: u64,
    /// What it has done.
    pub counts: Counts,
}

impl Coordinator {
    fn new(settings: GroupSettings, now: Now) -> Self {
        Self {
            sweep: Sweep::new(now.wall, settings.offsets_retention_check_ms),
            settings,
            groups: BTreeMap::new(),
            due: BTreeSet::new(),
            last_store: 0,
            stores: BTreeMap::new(),
            bytes: 0,
            members: 0,
            counts: Counts::default(),
            heard_us: now.monotonic_us,
        }
    }

    /// Takes one input and appends what follows from it to `out`.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.notice_standstill(now);
        match input {
            Input::Join(waiter, join) => self.join(now, waiter, &join, out),
            Input::Sync(waiter, sync) => self.sync(now, waiter, sync, out),
            Input::Heartbeat {
                waiter,
                group,
                member,
            } => {
                let code = self.heartbeat(now, &group, &member);
                out.push(Effect::Done { waiter, code });
            }
            Input::Leave {
                waiter,
                group,
                members,
            } => self.leave(now, waiter, &group, &members, out),
            Input::Commit {
                waiter,
                group,
                member,
                entries,
            } => self.commit(now, waiter, &group, &member, entries, out),
            Input::DeleteOffsets {
                waiter,
                group,
                partitions,
            } => self.delete_offsets(now, waiter, &group, partitions, out),
            Input::DeleteGroup { waiter, group } => self.delete_group(now, waiter, &group, out),
            Input::TopicDeleted { topic, until } => {
                let last = StoreId(self.last_store);
                self.sweep.topic_deleted(topic, Gone { last, until });
            }
            Input::Stored { store, result } => self.stored(now, store, result, out),
            Input::Tick => self.tick(now, out),
        }
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        Standing {
            groups: self.groups.len() as u64,
            members: self.members as u64,
            bytes: self.bytes as u64,
            counts: self.counts,
        }
    }

    /// The topics for which something is committed.
    pub fn committed_topics(&self) -> BTreeSet<Arc<str>> {
        let offsets = self.groups.values().flat_map(|group| group.offsets.keys());
        offsets.map(|partition| partition.topic.clone()).collect()
    }

    /// When [`Input::Tick`] is wanted at the latest; once a second is soon enough when nothing is due.
    pub fn next_deadline_us(&self) -> Option<u64> {
        self.due.first().map(|(due_us, _)| *due_us)
    }

    /// Members that could not be heard while the coordinator stood still are not late for it.
    fn notice_standstill(&mut self, now: Now) {
        let stood_us = now.monotonic_us.saturating_sub(self.heard_us);
        self.heard_us = now.monotonic_us;
        if stood_us <= STANDSTILL_US {
            return;
        }
        for group in self.groups.values_mut() {
            group.forgive(stood_us);
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        // Each group once, whatever it makes of it.
        let later = self
            .due
            .split_off(&(now.monotonic_us.saturating_add(1), Arc::from("")));
        for (_, id) in std::mem::replace(&mut self.due, later) {
            if let Some(group) = self.groups.get_mut(&id) {
                group.due_us = u64::MAX;
            }
            self.with_group(now, &id, out, Group::on_time);
        }
        self.sweep(now, out);
    }

    /// Runs `work` on a group with the rest of the coordinator at hand, and sees to its next deadline.
    fn with_group<R>(
        &mut self,
        now: Now,
        id: &str,
        out: &mut Vec<Effect>,
        work: impl FnOnce(&mut Group, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let group = self.groups.get_mut(id)?;
        let mut cx = Context {
            now,
            settings: &self.settings,
            out,
            last_store: &mut self.last_store,
            counts: &mut self.counts,
        };
        let (bytes, members) = (group.bytes(), group.members.len());
        let result = work(group, &mut cx);
        self.bytes = self.bytes + group.bytes() - bytes;
        self.members = self.members + group.members.len() - members;
        let due_us = group.next_due_us();
        // A deadline that moved out is found to be early when it comes up.
        if due_us < group.due_us {
            self.due.remove(&(group.due_us, group.id.clone()));
            group.due_us = due_us;
            self.due.insert((due_us, group.id.clone()));
        }
        if group.is_void() {
            self.bytes -= group.bytes();
            self.due.remove(&(group.due_us, group.id.clone()));
            self.groups.remove(id);
        }
        Some(result)
    }

    // ---- heartbeats and leaving -----------------------------------------------------------------------------------

    fn heartbeat(&mut self, now: Now, group: &str, member: &MemberRef) -> ErrorCode {
        match self.hear(now, group, member) {
            Ok(interface::GroupState::PreparingRebalance) => ErrorCode::RebalanceInProgress,
            Ok(_) => ErrorCode::None,
            Err(code) => code,
        }
    }

    /// A member of the present generation was heard from; where its group stands.
    fn hear(
        &mut self,
        now: Now,
        group: &str,
        member: &MemberRef,
    ) -> Result<interface::GroupState, ErrorCode> {
        let group = self
            .groups
            .get_mut(group)
            .ok_or(ErrorCode::UnknownMemberId)?;
        if group.state == interface::GroupState::Dead {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        group.member(&member.member_id, member.instance.as_deref())?;
        if member.generation != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        // One that is new has no generation yet, and keeps its longer time.
        if let Some(member) = group.members.get_mut(member.member_id.as_str())
            && !member.is_new
        {
            member.heard(now.monotonic_us);
        }
        Ok(group.state)
    }

    fn leave(
        &mut self,
        now: Now,
        waiter: Waiter,
        group: &str,
        members: &[MemberRef],
        out: &mut Vec<Effect>,
    ) {
        let left = self.with_group(now, group, out, |group, cx| {
            let leave = |member: &MemberRef| leave_one(group, member, cx);
            members.iter().map(leave).collect::<Vec<_>>()
        });
        let unknown = || vec![ErrorCode::UnknownMemberId; members.len()];
        let outcome = Ok(left.unwrap_or_else(unknown));
        out.push(Effect::Left { waiter, outcome });
    }

    // ---- appends that ended ---------------------------------------------------------------------------------------

    fn stored(
        &mut self,
        now: Now,
        store: StoreId,
        result: Result<(), ErrorCode>,
        out: &mut Vec<Effect>,
    ) {
        let is_in_doubt = result.is_err_and(is_in_doubt);
        let result = result.map_err(as_coordinator);
        let ended = match result {
            Ok(()) => Ended::Stored,
            Err(code) if is_in_doubt => Ended::InDoubt(code),
            Err(code) => Ended::Refused(code),
        };
        match self.stores.remove(&store) {
            Some(Purpose::Assignment {
                group,
                generation,
                assignments,
            }) => {
                self.with_group(now, &group, out, |group, cx| {
                    sync::assigned(group, generation, assignments, result, cx);
                });
            }
            Some(Purpose::Replacement { waiter, joined }) => {
                let member_id = joined.member_id.clone();
                let outcome = result
                    .map(|()| joined)
                    .map_err(|code| interface::JoinRefusal { code, member_id });
                out.push(Effect::Joined { waiter, outcome });
            }
            Some(Purpose::Commit {
                waiter,
                group,
                entries,
            }) => {
                let ended = match ended {
                    Ended::Refused(ErrorCode::MessageTooLarge) => {
                        Ended::Refused(ErrorCode::InvalidCommitOffsetSize)
                    }
                    other => other,
                };
                self.committed(now, store, waiter, &group, entries, ended, out);
            }
            Some(Purpose::Removal {
                group,
                waiter,
                removed,
            }) => self.removed(now, &group, waiter, removed, ended, out),
            Some(Purpose::Deletion { group, waiter }) => {
                self.deleted(now, &group, waiter, ended, out);
            }
            Some(Purpose::Rewrite) if result.is_err() => self.give_up_rewrite(),
            Some(Purpose::Rewrite) | None => {}
        }
        self.end_rewrite();
    }

    /// Panics when an invariant is broken; for tests and the simulator.
    ///
    /// # Panics
    /// See above.
    pub fn check_invariants(&self) {
        for (id, group) in &self.groups {
            assert_eq!(*id, group.id);
            group.check_invariants();
            assert!(
                group.due_us == u64::MAX || self.due.contains(&(group.due_us, id.clone())),
                "{id}: its deadline is not registered"
            );
            assert!(
                group.due_us <= group.next_due_us(),
                "{id}: nobody looks at it in time"
            );
        }
        let bytes: usize = self.groups.values().map(Group::bytes).sum();
        let members: usize = self.groups.values().map(|group| group.members.len()).sum();
        assert_eq!((self.bytes, self.members), (bytes, members));
        let due = self.due.iter();
        for (due_us, id) in due {
            let group = self.groups.get(id).expect("what is due is a group");
            assert_eq!(group.due_us, *due_us);
        }
    }
}

fn leave_one(group: &mut Group, member: &MemberRef, cx: &mut Context<'_>) -> ErrorCode {
    if group.state == interface::GroupState::Dead {
        return ErrorCode::CoordinatorNotAvailable;
    }
    // An operator may name a static member without its id.
    let id = match &member.instance {
        Some(instance) if member.member_id.is_empty() => {
            match group.instances.get(instance.as_str()) {
                Some(id) => id.clone(),
                None => return ErrorCode::UnknownMemberId,
            }
        }
        _ => Arc::from(member.member_id.as_str()),
    };
    if group.promised.remove(&id).is_some() {
        group.member_bytes -= id.len();
        group.try_complete(cx);
        return ErrorCode::None;
    }
    match group.member(&id, member.instance.as_deref()) {
        Ok(_) => {
            group.remove(&id, cx);
            ErrorCode::None
        }
        Err(code) => code,
    }
}

/// Whether an append that ended so may be found on the topic later. A log with a fault takes nothing any more: what a
/// restart finds there, nobody has contradicted.
fn is_in_doubt(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RequestTimedOut
            | ErrorCode::StorageFullAfterAppend
            | ErrorCode::NotEnoughReplicasAfterAppend
    )
}

/// What a fault of the internal topic means to whoever talks to the coordinator.
fn as_coordinator(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut
        | ErrorCode::StorageFull
        | ErrorCode::StorageFullAfterAppend
        | ErrorCode::OverBudget => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError | ErrorCode::ShuttingDown => {
            ErrorCode::NotCoordinator
        }
        other => other,
    }
}
