//! Groups against a topic in memory: what Kafka's clients rely on, and what random members may never break.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tackboard_schema::{ErrorCode, LeaderEpoch, Offset, TimestampMs};

use super::interface::*;
use super::length::{commit_bytes, shorten_commit};
use super::state::{COMMIT_BYTES_MAX, MEMBER_BYTES_MAX};
use super::{Coordinator, Loader, NAME_BYTES_MAX};
use crate::shard::interface::Now;

const SECOND_US: u64 = 1_000_000;
const SESSION_MS: i32 = 10_000;
const REBALANCE_MS: i32 = 60_000;

/// A coordinator, its topic, and what it has answered.
struct World {
    coordinator: Coordinator,
    settings: GroupSettings,
    now: Now,
    /// Records that the topic holds.
    topic: Vec<Record>,
    appends: VecDeque<(StoreId, Vec<Record>)>,
    /// Appends end as soon as they are made.
    stores_at_once: bool,
    waiters: u64,
    joined: BTreeMap<Waiter, Result<Joined, JoinRefusal>>,
    synced: BTreeMap<Waiter, Result<Synced, ErrorCode>>,
    done: BTreeMap<Waiter, ErrorCode>,
    codes: BTreeMap<Waiter, Result<Vec<ErrorCode>, ErrorCode>>,
}

impl World {
    fn new(initial_rebalance_delay_ms: i32) -> Self {
        let settings = GroupSettings {
            initial_rebalance_delay_ms,
            ..GroupSettings::default()
        };
        let now = Now {
            monotonic_us: SECOND_US,
            wall: TimestampMs(1_000_000_000_000),
        };
        Self {
            coordinator: Loader::new(settings.clone(), now).finish(now),
            settings,
            now,
            topic: Vec::new(),
            appends: VecDeque::new(),
            stores_at_once: true,
            waiters: 0,
            joined: BTreeMap::new(),
            synced: BTreeMap::new(),
            done: BTreeMap::new(),
            codes: BTreeMap::new(),
        }
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.coordinator.step(self.now, input, &mut out);
        self.coordinator.check_invariants();
        for effect in out {
            let earlier = match effect {
                Effect::Joined { waiter, outcome } => self.joined.insert(waiter, outcome).is_some(),
                Effect::Synced { waiter, outcome } => self.synced.insert(waiter, outcome).is_some(),
                Effect::Done { waiter, code } => self.done.insert(waiter, code).is_some(),
                Effect::Left { waiter, outcome } | Effect::Committed { waiter, outcome } => {
                    self.codes.insert(waiter, outcome).is_some()
                }
                Effect::Store { store, records } => {
                    self.appends.push_back((store, records));
                    false
                }
            };
            assert!(!earlier, "answered twice");
        }
        if self.stores_at_once {
            while self.end_append(Ok(())) {}
        }
    }

    /// The oldest append ends; false: there is none.
    fn end_append(&mut self, result: Result<(), ErrorCode>) -> bool {
        let Some((store, records)) = self.appends.pop_front() else {
            return false;
        };
        if result.is_ok() {
            self.topic.extend(records);
        }
        self.step(Input::Stored { store, result });
        true
    }

    /// The oldest append is given up on, and reaches the topic all the same.
    fn doubt_append(&mut self) {
        let (store, records) = self.appends.pop_front().expect("an append");
        self.topic.extend(records);
        let result = Err(ErrorCode::RequestTimedOut);
        self.step(Input::Stored { store, result });
    }

    fn delete_group(&mut self) -> Waiter {
        let waiter = self.waiter();
        let group = "g".to_owned();
        self.step(Input::DeleteGroup { waiter, group });
        waiter
    }

    fn delete_offset(&mut self, partition: i32) -> Waiter {
        let waiter = self.waiter();
        self.step(Input::DeleteOffsets {
            waiter,
            group: "g".to_owned(),
            partitions: vec![of_t(partition)],
        });
        waiter
    }

    fn waiter(&mut self) -> Waiter {
        self.waiters += 1;
        Waiter(self.waiters)
    }

    fn advance(&mut self, ms: u64) {
        // A tick a second, as a driver would.
        for _ in 0..ms / 1_000 {
            self.pass(1_000);
        }
        self.pass(ms % 1_000);
    }

    fn pass(&mut self, ms: u64) {
        self.now.monotonic_us += ms * 1_000;
        self.now.wall.0 += ms as i64;
        self.step(Input::Tick);
    }

    /// The process died: another one reads the topic.
    fn restart(&mut self) {
        self.appends.clear();
        let mut loader = Loader::new(self.settings.clone(), self.now);
        for record in &self.topic {
            let (key, value) = record.encode();
            loader.take(&key, value.as_deref()).expect("our own");
        }
        self.coordinator = loader.finish(self.now);
        self.coordinator.check_invariants();
    }

    fn join_as(&mut self, member_id: &str, change: impl FnOnce(&mut Join)) -> Waiter {
        let waiter = self.waiter();
        let mut join = Join {
            group: "g".to_owned(),
            member_id: member_id.to_owned(),
            client_id: "client".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            protocol_type: "consumer".to_owned(),
            protocols: vec![("range".to_owned(), reads("t"))],
            entropy: u128::from(waiter.0),
            ..Join::default()
        };
        change(&mut join);
        self.step(Input::Join(waiter, join));
        waiter
    }

    fn join(&mut self, member_id: &str) -> Waiter {
        self.join_as(member_id, |_| ())
    }

    fn joined(&self, waiter: Waiter) -> Joined {
        let answer = self.joined.get(&waiter).expect("answered");
        answer.clone().expect("joined")
    }

    fn refused(&self, waiter: Waiter) -> ErrorCode {
        let answer = self.joined.get(&waiter).expect("answered");
        answer.clone().expect_err("refused").code
    }

    fn sync(&mut self, place: &Joined, assignments: &[(&Arc<str>, &[u8])]) -> Waiter {
        let waiter = self.waiter();
        let assignments = assignments.iter();
        let sync = Sync {
            group: "g".to_owned(),
            member: member(place),
            assignments: assignments
                .map(|(id, part)| (id.to_string(), Opaque::from(*part)))
                .collect(),
            ..Sync::default()
        };
        self.step(Input::Sync(waiter, sync));
        waiter
    }

    fn heartbeat(&mut self, place: &Joined) -> ErrorCode {
        let waiter = self.waiter();
        self.step(Input::Heartbeat {
            waiter,
            group: "g".to_owned(),
            member: member(place),
        });
        self.done[&waiter]
    }

    fn leave(&mut self, member: MemberRef) -> ErrorCode {
        let waiter = self.waiter();
        self.step(Input::Leave {
            waiter,
            group: "g".to_owned(),
            members: vec![member],
        });
        self.codes[&waiter].clone().expect("looked at")[0]
    }

    fn commit(&mut self, member: MemberRef, partition: i32, offset: i64) -> Waiter {
        let waiter = self.waiter();
        let entry = CommitEntry {
            partition: of_t(partition),
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(4),
            metadata: format!("at {offset}"),
            refused: None,
        };
        self.step(Input::Commit {
            waiter,
            group: "g".to_owned(),
            member,
            entries: vec![entry],
        });
        waiter
    }

    fn offset(&self, partition: i32) -> Option<i64> {
        let committed = self.coordinator.committed_offset("g", &of_t(partition));
        committed.map(|committed| committed.offset.0)
    }

    fn state(&self) -> Option<GroupState> {
        self.coordinator.describe("g").map(|group| group.state)
    }

    /// Two members in a stable group, the first of which leads.
    fn pair(&mut self) -> [Joined; 2] {
        let first = self.join("");
        let first = self.joined(first).member_id;
        let second = self.join("");
        assert!(!self.joined.contains_key(&second), "it waits for the first");
        let first = self.join(&first);
        let places = [self.joined(first), self.joined(second)];
        let [leader, other] = &places;
        let other_waits = self.sync(other, &[]);
        assert!(!self.synced.contains_key(&other_waits));
        let parts: [(&Arc<str>, &[u8]); 2] =
            [(&leader.member_id, b"one"), (&other.member_id, b"two")];
        let led = self.sync(leader, &parts);
        assert_eq!(&*self.synced[&led].clone().unwrap().assignment, b"one");
        assert_eq!(
            &*self.synced[&other_waits].clone().unwrap().assignment,
            b"two"
        );
        assert_eq!(self.state(), Some(GroupState::Stable));
        places
    }
}

fn member(place: &Joined) -> MemberRef {
    MemberRef {
        generation: place.generation,
        member_id: place.member_id.to_string(),
        instance: None,
    }
}

fn nobody() -> MemberRef {
    MemberRef {
        generation: -1,
        ..MemberRef::default()
    }
}

fn of_t(partition: i32) -> NamedPartition {
    NamedPartition {
        topic: Arc::from("t"),
        partition,
    }
}

/// A subscription to one topic of a single letter.
fn reads(topic: &str) -> Opaque {
    let mut told = b"\0\0\0\0\0\x01\0\x01".to_vec();
    told.extend_from_slice(topic.as_bytes());
    told.extend_from_slice(&[0xff; 4]);
    Opaque::from(told)
}

// ---- joining ------------------------------------------------------------------------------------------------------

#[test]
fn the_leader_gets_everybody_and_the_others_get_its_name() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    assert_eq!((leader.generation, other.generation), (2, 2));
    assert_eq!(leader.members.len(), 2);
    assert!(other.members.is_empty());
    assert_eq!(other.leader, leader.member_id);
    assert_eq!(&*other.protocol, "range");
    assert!(leader.member_id.starts_with("client-"));
    assert_eq!(leader.member_id.len(), "client-".len() + 36);
}

#[test]
fn the_first_rebalance_waits_for_more_members_but_not_for_ever() {
    let mut world = World::new(3_000);
    let first = world.join("");
    world.advance(2_000);
    let second = world.join("");
    world.advance(1_000);
    assert!(world.joined.is_empty(), "the second one prolongs the wait");
    world.advance(3_000);
    assert_eq!(world.joined(first).generation, 1);
    assert_eq!(world.joined(second).generation, 1);
}

#[test]
fn a_member_is_given_its_id_first_and_is_not_waited_for_when_it_never_returns() {
    let mut world = World::new(0);
    let first = world.join_as("", |join| join.takes_id_first = true);
    let refusal = world.joined[&first].clone().unwrap_err();
    assert_eq!(refusal.code, ErrorCode::MemberIdRequired);
    let first = world.join(&refusal.member_id);
    assert_eq!(world.joined(first).member_id, refusal.member_id);

    let lost = world.join_as("", |join| join.takes_id_first = true);
    assert_eq!(world.refused(lost), ErrorCode::MemberIdRequired);
    let place = world.joined(first);
    world.sync(&place, &[]);
    let again = world.join(&place.member_id);
    assert!(
        !world.joined.contains_key(&again),
        "the one with the promised id may come"
    );
    world.advance(SESSION_MS as u64);
    assert_eq!(world.joined(again).generation, 2);
}

#[test]
fn joins_that_can_not_be_are_refused_by_name() {
    let mut world = World::new(0);
    world.pair();
    type Change = fn(&mut Join);
    let refusals: [(&str, Change, ErrorCode); 8] = [
        ("", |join| join.group.clear(), ErrorCode::InvalidGroupId),
        (
            "",
            |join| join.session_timeout_ms = 1,
            ErrorCode::InvalidSessionTimeout,
        ),
        (
            "",
            |join| join.protocols.clear(),
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            "",
            |join| join.protocols[0].0 = "own".to_owned(),
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            "",
            |join| join.protocol_type = "connect".to_owned(),
            ErrorCode::InconsistentGroupProtocol,
        ),
        ("stranger", |_| (), ErrorCode::UnknownMemberId),
        (
            "stranger",
            |join| join.group = "new".to_owned(),
            ErrorCode::UnknownMemberId,
        ),
        (
            "",
            |join| join.client_id = "x".repeat(40_000),
            ErrorCode::InvalidRequest,
        ),
    ];
    for (id, change, code) in refusals {
        let waiter = world.join_as(id, change);
        assert_eq!(world.refused(waiter), code);
    }
    assert_eq!(
        world.state(),
        Some(GroupState::Stable),
        "nobody was disturbed"
    );
    assert_eq!(world.coordinator.list().count(), 1);

    world.settings.members_max = 2;
    world.restart();
    let waiter = world.join("");
    assert_eq!(world.refused(waiter), ErrorCode::GroupMaxSizeReached);
}

#[test]
fn the_protocol_is_one_that_all_know_and_most_like() {
    let mut world = World::new(3_000);
    let protocols = |names: &'static [&'static str]| {
        move |join: &mut Join| {
            let protocols = names.iter().map(|name| (name.to_string(), reads("t")));
            join.protocols = protocols.collect();
        }
    };
    world.join_as("", protocols(&["a", "b", "c"]));
    world.join_as("", protocols(&["c", "b", "x"]));
    let last = world.join_as("", protocols(&["x", "c", "b"]));
    world.advance(10_000);
    assert_eq!(&*world.joined(last).protocol, "c");
}

#[test]
fn a_follower_that_asks_again_disturbs_nobody_and_the_leader_does() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    let again = world.join(&other.member_id);
    assert_eq!(world.joined(again), other);
    let changed = world.join_as(&other.member_id, |join| join.protocols[0].1 = reads("u"));
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    assert_eq!(world.heartbeat(&leader), ErrorCode::RebalanceInProgress);
    let led = world.join(&leader.member_id);
    assert_eq!(world.joined(led).generation, 3);
    assert_eq!(world.joined(changed).generation, 3);
}

#[test]
fn a_second_join_of_a_waiting_member_takes_the_place_of_the_first() {
    let mut world = World::new(0);
    let [_, other] = world.pair();
    let waits = world.join_as(&other.member_id, |join| join.protocols[0].1 = reads("u"));
    let again = world.join_as(&other.member_id, |join| join.protocols[0].1 = reads("u"));
    assert_eq!(world.refused(waits), ErrorCode::RebalanceInProgress);
    assert!(!world.joined.contains_key(&again));
}

// ---- silence and leaving ------------------------------------------------------------------------------------------

#[test]
fn who_is_silent_loses_its_place_within_the_session_time() {
    let mut world = World::new(0);
    let [leader, _] = world.pair();
    for _ in 0..SESSION_MS / 1_000 {
        assert_eq!(world.state(), Some(GroupState::Stable));
        assert_eq!(world.heartbeat(&leader), ErrorCode::None);
        world.advance(1_000);
    }
    assert_eq!(world.heartbeat(&leader), ErrorCode::RebalanceInProgress);
    let again = world.join(&leader.member_id);
    assert_eq!(world.joined(again).members.len(), 1);
}

#[test]
fn who_does_not_join_again_is_dropped_when_the_rebalance_has_waited_for_it() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    let waits = world.join_as(&other.member_id, |join| join.protocols[0].1 = reads("u"));
    for _ in 0..REBALANCE_MS / 1_000 {
        assert!(!world.joined.contains_key(&waits));
        assert_eq!(world.heartbeat(&leader), ErrorCode::RebalanceInProgress);
        world.advance(1_000);
    }
    let place = world.joined(waits);
    assert_eq!((place.members.len(), &place.leader), (1, &other.member_id));
    assert_eq!(world.heartbeat(&leader), ErrorCode::UnknownMemberId);
}

#[test]
fn who_joins_and_never_syncs_is_dropped() {
    let mut world = World::new(0);
    let first = world.join("");
    let place = world.joined(first);
    for _ in 0..REBALANCE_MS / 1_000 {
        assert_eq!(world.heartbeat(&place), ErrorCode::None);
        world.advance(1_000);
    }
    assert_eq!(world.state(), None);
}

#[test]
fn a_coordinator_that_stood_still_drops_nobody() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    world.pass(600_000);
    assert_eq!(world.state(), Some(GroupState::Stable));
    assert_eq!(world.heartbeat(&leader), ErrorCode::None);
    assert_eq!(world.heartbeat(&other), ErrorCode::None);
    world.advance(SESSION_MS as u64);
    assert_eq!(
        world.state(),
        Some(GroupState::Empty),
        "both are silent now"
    );
}

#[test]
fn members_leave_by_id_or_by_static_name() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    assert_eq!(world.leave(member(&leader)), ErrorCode::None);
    assert_eq!(world.leave(member(&leader)), ErrorCode::UnknownMemberId);
    assert_eq!(world.leave(member(&other)), ErrorCode::None);
    assert_eq!(world.state(), Some(GroupState::Empty));

    let first = world.join_as("", |join| join.instance = Some("static".to_owned()));
    assert_eq!(world.joined(first).generation, 4);
    let by_name = |name: &str| MemberRef {
        instance: Some(name.to_owned()),
        ..nobody()
    };
    assert_eq!(world.leave(by_name("else")), ErrorCode::UnknownMemberId);
    assert_eq!(world.leave(by_name("static")), ErrorCode::None);
    assert_eq!(world.state(), Some(GroupState::Empty));
}

#[test]
fn a_static_member_comes_back_under_a_new_id_without_a_rebalance() {
    let mut world = World::new(0);
    let instance = |join: &mut Join| join.instance = Some("static".to_owned());
    let first = world.join_as("", instance);
    let place = world.joined(first);
    world.sync(&place, &[(&place.member_id, b"all")]);
    let back = world.join_as("", instance);
    let new = world.joined(back);
    assert_ne!(new.member_id, place.member_id);
    assert_eq!(new.generation, place.generation);
    assert_eq!(new.leader, place.member_id, "it must not assign");
    let synced = world.sync(&new, &[]);
    assert_eq!(&*world.synced[&synced].clone().unwrap().assignment, b"all");
    let fenced = world.waiter();
    world.step(Input::Heartbeat {
        waiter: fenced,
        group: "g".to_owned(),
        member: MemberRef {
            instance: Some("static".to_owned()),
            ..member(&place)
        },
    });
    assert_eq!(world.done[&fenced], ErrorCode::FencedInstanceId);
    world.restart();
    assert_eq!(
        world.heartbeat(&new),
        ErrorCode::None,
        "the new id was stored"
    );
}

#[test]
fn a_static_leader_that_comes_back_goes_on_to_lead_and_assigns_nothing() {
    let mut world = World::new(0);
    let instance = |join: &mut Join| {
        join.instance = Some("static".to_owned());
        join.may_skip_assignment = true;
    };
    let first = world.join_as("", instance);
    let place = world.joined(first);
    assert!(!place.skip_assignment);
    world.sync(&place, &[(&place.member_id, b"all")]);
    let back = world.join_as("", instance);
    let new = world.joined(back);
    assert_eq!((new.generation, new.skip_assignment), (1, true));
    assert_eq!(new.leader, new.member_id, "it looks after the topics");
    assert_eq!(new.members.len(), 1);
    let synced = world.sync(&new, &[]);
    assert_eq!(&*world.synced[&synced].clone().unwrap().assignment, b"all");
    // A topic has grown.
    let again = world.join_as(&new.member_id, instance);
    let again = world.joined(again);
    assert_eq!((again.generation, again.skip_assignment), (2, false));
}

#[test]
fn a_static_member_that_comes_back_amid_a_rebalance_begins_it_anew() {
    let mut world = World::new(0);
    let instance = |join: &mut Join| join.instance = Some("static".to_owned());
    let first = world.join_as("", instance);
    let place = world.joined(first);
    assert_eq!(world.state(), Some(GroupState::CompletingRebalance));
    let back = world.join_as("", instance);
    assert_eq!(world.joined(back).generation, place.generation + 1);
}

// ---- syncing ------------------------------------------------------------------------------------------------------

#[test]
fn nobody_is_told_a_part_before_it_is_stored() {
    let mut world = World::new(0);
    let first = world.join("");
    let place = world.joined(first);
    world.stores_at_once = false;
    let waits = world.sync(&place, &[(&place.member_id, b"all")]);
    assert!(!world.synced.contains_key(&waits));
    assert_eq!(world.state(), Some(GroupState::CompletingRebalance));
    assert!(world.end_append(Ok(())));
    assert!(world.synced[&waits].is_ok());
    assert_eq!(world.state(), Some(GroupState::Stable));
}

#[test]
fn an_assignment_that_can_not_be_stored_is_made_anew() {
    let mut world = World::new(0);
    let first = world.join("");
    let place = world.joined(first);
    world.stores_at_once = false;
    let waits = world.sync(&place, &[(&place.member_id, b"all")]);
    assert!(world.end_append(Err(ErrorCode::StorageFull)));
    assert_eq!(
        world.synced[&waits],
        Err(ErrorCode::CoordinatorNotAvailable)
    );
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
    let again = world.join(&place.member_id);
    assert_eq!(world.joined(again).generation, place.generation + 1);
}

#[test]
fn a_leader_that_assigns_again_while_its_assignment_is_stored_waits_for_the_first() {
    let mut world = World::new(0);
    let first = world.join("");
    let place = world.joined(first);
    world.stores_at_once = false;
    let given_up = world.sync(&place, &[(&place.member_id, b"all")]);
    let waits = world.sync(&place, &[(&place.member_id, b"none")]);
    assert_eq!(world.synced[&given_up], Err(ErrorCode::RebalanceInProgress));
    assert!(world.end_append(Ok(())));
    let part = world.synced[&waits].clone().expect("stored");
    assert_eq!(&part.assignment[..], b"all");
    assert!(!world.end_append(Ok(())), "no other one goes to the log");
}

#[test]
fn an_assignment_of_an_earlier_generation_comes_too_late() {
    let mut world = World::new(0);
    let first = world.join("");
    let place = world.joined(first);
    world.stores_at_once = false;
    let waits = world.sync(&place, &[(&place.member_id, b"all")]);
    let second = world.join("");
    assert_eq!(world.synced[&waits], Err(ErrorCode::RebalanceInProgress));
    let again = world.join(&place.member_id);
    assert!(world.end_append(Ok(())));
    assert_eq!(world.state(), Some(GroupState::CompletingRebalance));
    assert_eq!(
        world.joined(again).generation,
        world.joined(second).generation
    );
}

#[test]
fn a_sync_of_another_time_or_kind_is_refused() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    let stale = Joined {
        generation: 1,
        ..other.clone()
    };
    let waiter = world.sync(&stale, &[]);
    assert_eq!(world.synced[&waiter], Err(ErrorCode::IllegalGeneration));
    let waiter = world.waiter();
    let sync = Sync {
        group: "g".to_owned(),
        member: member(&other),
        protocol: Some("sticky".to_owned()),
        ..Sync::default()
    };
    world.step(Input::Sync(waiter, sync));
    assert_eq!(
        world.synced[&waiter],
        Err(ErrorCode::InconsistentGroupProtocol)
    );
    world.join(&leader.member_id);
    let waiter = world.sync(&other, &[]);
    assert_eq!(world.synced[&waiter], Err(ErrorCode::RebalanceInProgress));
}

// ---- offsets ------------------------------------------------------------------------------------------------------

#[test]
fn a_commit_counts_when_it_is_stored_and_comes_back_after_a_restart() {
    let mut world = World::new(0);
    let [leader, _] = world.pair();
    world.stores_at_once = false;
    let waiter = world.commit(member(&leader), 0, 7);
    assert_eq!(world.offset(0), None);
    assert!(world.end_append(Ok(())));
    assert_eq!(world.codes[&waiter], Ok(vec![ErrorCode::None]));
    assert_eq!(world.offset(0), Some(7));
    world.restart();
    assert_eq!(world.offset(0), Some(7));
    assert_eq!(world.offset(1), None, "none is made up");
    assert_eq!(world.state(), Some(GroupState::Stable));
    assert_eq!(world.heartbeat(&leader), ErrorCode::None);
    let committed = world.coordinator.committed_offset("g", &of_t(0)).unwrap();
    assert_eq!(
        (committed.leader_epoch, &*committed.metadata),
        (LeaderEpoch(4), "at 7")
    );
}

#[test]
fn a_failed_commit_takes_nothing_back() {
    let mut world = World::new(0);
    let [leader, _] = world.pair();
    world.stores_at_once = false;
    let first = world.commit(member(&leader), 0, 7);
    let second = world.commit(member(&leader), 0, 9);
    assert!(world.end_append(Ok(())));
    assert!(world.end_append(Err(ErrorCode::KafkaStorageError)));
    assert_eq!(world.codes[&first], Ok(vec![ErrorCode::None]));
    assert_eq!(world.codes[&second], Ok(vec![ErrorCode::NotCoordinator]));
    assert_eq!(world.offset(0), Some(7));
}

#[test]
fn only_members_of_the_generation_commit_and_anybody_to_a_group_without_members() {
    let mut world = World::new(0);
    let waiter = world.commit(nobody(), 0, 1);
    assert_eq!(world.codes[&waiter], Ok(vec![ErrorCode::None]));
    let [leader, other] = world.pair();
    let stale = MemberRef {
        generation: 1,
        ..member(&leader)
    };
    let stranger = MemberRef {
        member_id: "stranger".to_owned(),
        ..member(&leader)
    };
    for (member, code) in [
        (nobody(), ErrorCode::UnknownMemberId),
        (stale, ErrorCode::IllegalGeneration),
        (stranger, ErrorCode::UnknownMemberId),
    ] {
        let waiter = world.commit(member, 0, 2);
        assert_eq!(world.codes[&waiter], Err(code));
    }
    // In a rebalance members may still commit what they have read, until the new generation begins.
    let waits = world.join(&leader.member_id);
    let waiter = world.commit(member(&other), 0, 3);
    assert_eq!(world.codes[&waiter], Ok(vec![ErrorCode::None]));
    world.join(&other.member_id);
    let place = world.joined(waits);
    let waiter = world.commit(member(&place), 0, 4);
    assert_eq!(world.codes[&waiter], Err(ErrorCode::RebalanceInProgress));
    assert_eq!(world.offset(0), Some(3));
}

#[test]
fn who_names_itself_without_a_generation_commits_to_a_group_without_members() {
    let mut world = World::new(0);
    let itself = MemberRef {
        generation: -1,
        member_id: "somebody".to_owned(),
        instance: Some("static".to_owned()),
    };
    // To a group that is not there yet, and to one that is.
    for offset in [1, 2] {
        let waiter = world.commit(itself.clone(), 0, offset);
        assert_eq!(world.codes[&waiter], Ok(vec![ErrorCode::None]));
        assert_eq!(world.offset(0), Some(offset));
    }
    world.pair();
    let waiter = world.commit(itself, 0, 3);
    assert_eq!(world.codes[&waiter], Err(ErrorCode::UnknownMemberId));
}

#[test]
fn an_offset_below_0_is_refused() {
    let mut world = World::new(0);
    let waiter = world.commit(nobody(), 0, -1);
    assert_eq!(world.codes[&waiter], Ok(vec![ErrorCode::InvalidRequest]));
    assert_eq!(world.offset(0), None);
}

#[test]
fn what_may_be_forgotten_on_the_topic_is_not_told_any_more() {
    for whole_group in [false, true] {
        let mut world = World::new(0);
        world.commit(nobody(), 0, 7);
        world.stores_at_once = false;
        let waiter = match whole_group {
            true => world.delete_group(),
            false => world.delete_offset(0),
        };
        world.doubt_append();
        let unavailable = ErrorCode::CoordinatorNotAvailable;
        match whole_group {
            true => assert_eq!(world.done[&waiter], unavailable),
            false => assert_eq!(world.codes[&waiter], Err(unavailable)),
        }
        assert_eq!(world.offset(0), None, "a restart would take it away");
        world.restart();
        assert_eq!(world.offset(0), None);
    }
}

#[test]
fn a_commit_that_may_be_on_the_topic_goes_with_what_is_forgotten() {
    for whole_group in [false, true] {
        let mut world = World::new(0);
        world.commit(nobody(), 1, 7);
        world.stores_at_once = false;
        let waiter = world.commit(nobody(), 0, 7);
        world.doubt_append();
        let unavailable = ErrorCode::CoordinatorNotAvailable;
        assert_eq!(world.codes[&waiter], Ok(vec![unavailable]));
        assert_eq!(world.offset(0), None);
        world.stores_at_once = true;
        match whole_group {
            true => world.delete_group(),
            false => world.delete_offset(0),
        };
        world.restart();
        assert_eq!(world.offset(0), None);
        assert_eq!(world.offset(1), (!whole_group).then_some(7));
    }
}

#[test]
fn long_metadata_is_refused_for_its_partition_alone() {
    let mut world = World::new(0);
    let waiter = world.waiter();
    let entry = |partition, metadata: usize| CommitEntry {
        partition: of_t(partition),
        offset: Offset(5),
        leader_epoch: LeaderEpoch(-1),
        metadata: "m".repeat(metadata),
        refused: None,
    };
    world.step(Input::Commit {
        waiter,
        group: "g".to_owned(),
        member: nobody(),
        entries: vec![entry(0, 4_097), entry(1, 4_096)],
    });
    let codes = vec![ErrorCode::OffsetMetadataTooLarge, ErrorCode::None];
    assert_eq!(world.codes[&waiter], Ok(codes));
    assert_eq!((world.offset(0), world.offset(1)), (None, Some(5)));
}

#[test]
fn offsets_are_deleted_unless_members_read_the_topic() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 1);
    let [_, _] = world.pair();
    let delete = |world: &mut World, topic: &str| {
        let waiter = world.waiter();
        let topic = Arc::from(topic);
        world.step(Input::DeleteOffsets {
            waiter,
            group: "g".to_owned(),
            partitions: vec![NamedPartition {
                topic,
                partition: 0,
            }],
        });
        world.codes[&waiter].clone()
    };
    assert_eq!(
        delete(&mut world, "t"),
        Ok(vec![ErrorCode::GroupSubscribedToTopic])
    );
    assert_eq!(delete(&mut world, "u"), Ok(vec![ErrorCode::None]));
    assert_eq!(world.offset(0), Some(1));
    world.advance(SESSION_MS as u64);
    assert_eq!(delete(&mut world, "t"), Ok(vec![ErrorCode::None]));
    assert_eq!(world.offset(0), None);
    world.restart();
    assert_eq!(world.offset(0), None);
}

#[test]
fn a_group_is_deleted_with_all_it_knew_once_it_is_empty() {
    let mut world = World::new(0);
    let delete = |world: &mut World| {
        let waiter = world.waiter();
        world.step(Input::DeleteGroup {
            waiter,
            group: "g".to_owned(),
        });
        waiter
    };
    let waiter = delete(&mut world);
    assert_eq!(world.done[&waiter], ErrorCode::GroupIdNotFound);
    let [leader, _] = world.pair();
    world.commit(member(&leader), 0, 7);
    let waiter = delete(&mut world);
    assert_eq!(world.done[&waiter], ErrorCode::NonEmptyGroup);
    world.advance(SESSION_MS as u64);
    world.stores_at_once = false;
    let waiter = delete(&mut world);
    let late = world.join("");
    assert_eq!(world.refused(late), ErrorCode::CoordinatorNotAvailable);
    assert!(world.end_append(Ok(())));
    assert_eq!(world.done[&waiter], ErrorCode::None);
    assert_eq!(world.state(), None);
    world.restart();
    assert_eq!((world.state(), world.offset(0)), (None, None));
}

#[test]
fn offsets_expire_when_their_group_has_been_empty_for_long() {
    let mut world = World::new(0);
    let [leader, other] = world.pair();
    world.commit(member(&leader), 0, 7);
    let retention_ms = world.settings.offsets_retention_ms as u64;
    // A group at work keeps them, however old.
    world.now.wall.0 += 2 * retention_ms as i64;
    world.pass(1_000);
    assert_eq!(world.offset(0), Some(7));
    for place in [&leader, &other] {
        assert_eq!(world.leave(member(place)), ErrorCode::None);
    }
    world.now.wall.0 += retention_ms as i64 - 1;
    world.pass(0);
    assert_eq!(world.offset(0), Some(7));
    world.now.wall.0 += world.settings.offsets_retention_check_ms;
    world.pass(0);
    assert_eq!((world.state(), world.offset(0)), (None, None));
    world.restart();
    assert_eq!(world.state(), None);
}

#[test]
fn offsets_of_a_topic_that_is_gone_go_and_those_of_its_successor_stay() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 7);
    world.commit(nobody(), 1, 8);
    world.step(Input::TopicDeleted {
        topic: Arc::from("t"),
        until: None,
    });
    assert_eq!(world.offset(0), None, "before any pass");
    world.commit(nobody(), 1, 1);
    assert_eq!(world.offset(1), Some(1));
    world.pass(1_000);
    assert_eq!((world.offset(0), world.offset(1)), (None, Some(1)));
    world.restart();
    assert_eq!((world.offset(0), world.offset(1)), (None, Some(1)));
}

#[test]
fn what_a_topic_leaves_goes_after_a_restart_and_what_its_successor_was_given_stays() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 7);
    world.advance(1_000);
    let until = Some(world.now.wall);
    world.commit(nobody(), 1, 8);
    world.restart();
    let topics = world.coordinator.committed_topics();
    assert_eq!(
        topics.iter().map(|topic| &**topic).collect::<Vec<_>>(),
        ["t"]
    );
    let topic = topics.into_iter().next().unwrap();
    world.step(Input::TopicDeleted { topic, until });
    world.advance(2_000);
    assert_eq!((world.offset(0), world.offset(1)), (None, Some(8)));
}

#[test]
fn an_offset_of_a_topic_that_is_gone_goes_though_its_commit_was_under_way() {
    let mut world = World::new(0);
    world.stores_at_once = false;
    world.commit(nobody(), 0, 7);
    world.step(Input::TopicDeleted {
        topic: Arc::from("t"),
        until: None,
    });
    world.pass(1_000);
    world.stores_at_once = true;
    assert!(world.end_append(Ok(())));
    world.advance(2_000);
    assert_eq!(world.offset(0), None);
}

#[test]
fn an_offset_of_a_topic_that_is_gone_goes_though_it_could_not_be_taken_back_at_first() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 7);
    world.commit(nobody(), 1, 8);
    world.stores_at_once = false;
    world.step(Input::TopicDeleted {
        topic: Arc::from("t"),
        until: None,
    });
    world.pass(1_000);
    assert!(world.end_append(Err(ErrorCode::StorageFull)));
    assert_eq!(world.offset(0), None, "it is still there, and not told");
    world.stores_at_once = true;
    world.advance(2_000);
    assert_eq!((world.offset(0), world.offset(1)), (None, None));
    // Another start knows nothing of the topic that went: nothing of it is left.
    world.restart();
    assert_eq!((world.offset(0), world.offset(1)), (None, None));
}

#[test]
fn the_topic_written_anew_says_the_same() {
    let mut world = World::new(0);
    let [leader, _] = world.pair();
    for offset in 0..50 {
        world.commit(member(&leader), offset % 3, i64::from(offset));
    }
    let before = world.topic.len();
    world.coordinator.begin_rewrite();
    world.stores_at_once = false;
    world.pass(1_000);
    // What is on its way when it begins, and what comes meanwhile, is not undone by it.
    world.commit(member(&leader), 0, 100);
    assert!(!world.coordinator.take_rewritten());
    while world.end_append(Ok(())) {}
    assert!(world.coordinator.take_rewritten());
    assert!(!world.coordinator.take_rewritten());
    world.topic.drain(..before);
    assert_eq!(world.topic.len(), 5);
    world.restart();
    let offsets = [0, 1, 2].map(|partition| world.offset(partition));
    assert_eq!(offsets, [Some(100), Some(49), Some(47)]);
    assert_eq!(world.heartbeat(&leader), ErrorCode::None);
}

#[test]
fn a_large_group_is_written_anew_in_parts_and_what_changes_between_them_counts() {
    let mut world = World::new(0);
    let commit = |world: &mut World, partition: i32, offset: i64| {
        let entry = CommitEntry {
            partition: of_t(partition),
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(-1),
            metadata: "m".repeat(4_000),
            refused: None,
        };
        let waiter = world.waiter();
        world.step(Input::Commit {
            waiter,
            group: "g".to_owned(),
            member: nobody(),
            entries: vec![entry],
        });
    };
    for partition in 0..600 {
        commit(&mut world, partition, 1);
    }
    let before = world.topic.len();
    world.coordinator.begin_rewrite();
    world.stores_at_once = false;
    world.pass(1_000);
    let part = world.appends[0].1.len();
    assert!((200..300).contains(&part), "one append holds {part}");
    while world.end_append(Ok(())) {}
    assert!(world.coordinator.is_rewriting());
    // One that was passed already, one on its way as it is passed, and one that is new.
    commit(&mut world, 0, 2);
    commit(&mut world, 599, 2);
    commit(&mut world, 600, 2);
    for _ in 0..5 {
        world.pass(1_000);
    }
    assert!(
        !world.coordinator.take_rewritten(),
        "the commits are on their way"
    );
    while world.end_append(Ok(())) {}
    assert!(world.coordinator.take_rewritten());
    world.topic.drain(..before);
    world.restart();
    for partition in 0..=600 {
        let expected = if [0, 599, 600].contains(&partition) {
            2
        } else {
            1
        };
        assert_eq!(world.offset(partition), Some(expected), "{partition}");
    }
}

#[test]
fn what_a_group_holds_is_bounded() {
    let mut world = World::new(0);
    let large = |bytes: usize| Opaque::from(vec![0; bytes]);
    let told = |bytes: usize| {
        move |join: &mut Join| join.protocols = vec![("range".to_owned(), large(bytes))]
    };
    let refused = world.join_as("", told(MEMBER_BYTES_MAX));
    assert_eq!(world.refused(refused), ErrorCode::GroupMaxSizeReached);
    let first = world.join_as("", told(MEMBER_BYTES_MAX / 2));
    let first = world.joined(first);
    let refused = world.join_as("", told(MEMBER_BYTES_MAX / 2));
    assert_eq!(world.refused(refused), ErrorCode::GroupMaxSizeReached);
    // One who is in it may say as much as before.
    let again = world.join_as(&first.member_id, told(MEMBER_BYTES_MAX / 2 - 1));
    let again = world.joined(again);
    let refused = world.sync(
        &again,
        &[(&again.member_id, &vec![0; MEMBER_BYTES_MAX + 1])],
    );
    assert_eq!(world.synced[&refused], Err(ErrorCode::GroupMaxSizeReached));
}

#[test]
fn an_assignment_that_is_too_long_leaves_nobody_waiting() {
    let mut world = World::new(0);
    let [led, followed] = world.pair();
    let [led, followed] = [led, followed].map(|place| world.join(&place.member_id));
    let [led, followed] = [led, followed].map(|waiter| world.joined(waiter));
    let waits = world.sync(&followed, &[]);
    let long = vec![0; MEMBER_BYTES_MAX + 1];
    // One that has nothing to assign disturbs nobody with it.
    let refused = world.sync(&followed, &[(&led.member_id, &long)]);
    assert_eq!(world.synced[&refused], Err(ErrorCode::GroupMaxSizeReached));
    assert_eq!(world.synced.get(&waits), None);
    let refused = world.sync(&led, &[(&led.member_id, &long)]);
    for waiter in [refused, waits] {
        let told = world.synced.get(&waiter);
        assert_eq!(told, Some(&Err(ErrorCode::GroupMaxSizeReached)));
    }
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
}

#[test]
fn assignments_that_were_cut_off_on_their_way_leave_nobody_waiting() {
    let mut world = World::new(0);
    let [led, followed] = world.pair();
    let [led, followed] = [led, followed].map(|place| world.join(&place.member_id));
    let [led, followed] = [led, followed].map(|waiter| world.joined(waiter));
    let waits = world.sync(&followed, &[]);
    let part = |length| (led.member_id.to_string(), vec![0; length].into());
    let mut sync = Sync {
        group: "g".to_owned(),
        member: member(&led),
        assignments: vec![part(MEMBER_BYTES_MAX)],
        ..Sync::default()
    };
    sync.shorten();
    assert_eq!(sync.refused, None, "a group may have room for it");
    sync.assignments.push(part(1));
    sync.shorten();
    assert_eq!(sync.byte_length(), 0);
    let refused = world.waiter();
    world.step(Input::Sync(refused, sync));
    for waiter in [refused, waits] {
        let told = world.synced.get(&waiter);
        assert_eq!(told, Some(&Err(ErrorCode::GroupMaxSizeReached)));
    }
    assert_eq!(world.state(), Some(GroupState::PreparingRebalance));
}

#[test]
fn what_of_a_commit_is_too_much_does_not_travel() {
    let entry = |partition: i32, length: usize| CommitEntry {
        partition: of_t(partition),
        offset: Offset(1),
        leader_epoch: LeaderEpoch(-1),
        metadata: "m".repeat(length),
        refused: None,
    };
    let mut entries: Vec<_> = (0..5).map(|number| entry(number, 1 << 20)).collect();
    entries.push(entry(5, (1 << 20) + 1));
    shorten_commit("g", &mut entries, 1 << 20);
    let refused: Vec<_> = entries.iter().map(|entry| entry.refused).collect();
    let too_much = Some(ErrorCode::InvalidCommitOffsetSize);
    let too_long = Some(ErrorCode::OffsetMetadataTooLarge);
    assert_eq!(refused, [None, None, None, too_much, too_much, too_long]);
    assert!(commit_bytes(&entries) <= COMMIT_BYTES_MAX);
}

#[test]
fn assignments_count_among_what_all_groups_hold() {
    let mut world = World::new(0);
    world.settings.state_bytes_max = 3 << 20;
    world.restart();
    let mut of_one = |group: &str| {
        let waiter = world.join_as("", |join| join.group = group.to_owned());
        let place = world.joined(waiter);
        let waiter = world.waiter();
        world.step(Input::Sync(
            waiter,
            Sync {
                group: group.to_owned(),
                member: member(&place),
                assignments: vec![(place.member_id.to_string(), vec![0; 1 << 20].into())],
                ..Sync::default()
            },
        ));
        let told = world.synced[&waiter].as_ref().map(|_| ());
        (
            told.map_err(|code| *code),
            world.coordinator.standing().bytes,
        )
    };
    let (told, bytes) = of_one("one");
    assert_eq!(told, Ok(()));
    assert!(
        bytes >= 2 << 20,
        "the member's part and the record: {bytes}"
    );
    let (told, bytes) = of_one("two");
    assert_eq!(told, Err(ErrorCode::GroupMaxSizeReached));
    assert!(bytes < 3 << 20, "{bytes}");
    world.restart();
    assert!(
        world.coordinator.standing().bytes >= 2 << 20,
        "also when read back"
    );
}

#[test]
fn long_assignments_are_written_anew_some_at_a_time() {
    let mut world = World::new(0);
    for group in ["one", "two", "three"] {
        let waiter = world.join_as("", |join| join.group = group.to_owned());
        let place = world.joined(waiter);
        let waiter = world.waiter();
        world.step(Input::Sync(
            waiter,
            Sync {
                group: group.to_owned(),
                member: member(&place),
                assignments: vec![(place.member_id.to_string(), vec![0; 1 << 20].into())],
                ..Sync::default()
            },
        ));
    }
    world.stores_at_once = false;
    world.coordinator.begin_rewrite();
    for _ in 0..3 {
        world.step(Input::Tick);
        assert_eq!(world.appends.len(), 1, "one group fills a tick");
        assert!(world.end_append(Ok(())));
    }
}

#[test]
fn what_one_commit_and_all_groups_hold_is_bounded() {
    let mut world = World::new(0);
    world.settings.offset_metadata_bytes_max = NAME_BYTES_MAX;
    world.settings.state_bytes_max = 3 << 20;
    world.restart();
    let commit = |world: &mut World, partitions: std::ops::Range<i32>| {
        let entries = partitions.map(|partition| CommitEntry {
            partition: of_t(partition),
            offset: Offset(1),
            leader_epoch: LeaderEpoch(-1),
            metadata: "m".repeat(30_000),
            refused: None,
        });
        let entries = entries.collect();
        let waiter = world.waiter();
        world.step(Input::Commit {
            waiter,
            group: "g".to_owned(),
            member: nobody(),
            entries,
        });
        world.codes[&waiter].clone().expect("each has its own code")
    };
    let codes = commit(&mut world, 0..200);
    let stored = codes
        .iter()
        .filter(|code| **code == ErrorCode::None)
        .count();
    let refused = |of: ErrorCode| codes.iter().filter(|code| **code == of).count();
    assert!((100..110).contains(&stored), "{stored} fit");
    assert!(
        refused(ErrorCode::PolicyViolation) > 0,
        "no room for all of one append"
    );
    assert!(
        refused(ErrorCode::InvalidCommitOffsetSize) > 0,
        "nor one append for all"
    );
    // What is there moves on.
    assert_eq!(commit(&mut world, 0..1), [ErrorCode::None]);
    assert_eq!(commit(&mut world, 900..901), [ErrorCode::PolicyViolation]);
    world.restart();
    assert_eq!(world.offset(0), Some(1));
    assert_eq!(commit(&mut world, 900..901), [ErrorCode::PolicyViolation]);
}

#[test]
fn a_topic_that_could_not_be_written_anew_stays_as_it_is() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 7);
    world.coordinator.begin_rewrite();
    world.stores_at_once = false;
    world.pass(1_000);
    assert!(world.end_append(Err(ErrorCode::StorageFull)));
    assert!(!world.coordinator.take_rewritten());
    world.coordinator.begin_rewrite();
    world.pass(1_000);
    assert!(world.end_append(Ok(())));
    assert!(world.coordinator.take_rewritten());
}

#[test]
fn a_deletion_that_is_refused_before_an_earlier_commit_ends_takes_nothing() {
    for commit_ends in [Ok(()), Err(ErrorCode::StorageFull)] {
        let mut world = World::new(0);
        world.commit(nobody(), 0, 7);
        world.stores_at_once = false;
        let committed = world.commit(nobody(), 1, 8);
        let deleted = world.delete_group();
        let (store, _) = world.appends.pop_back().expect("the deletion");
        let result = Err(ErrorCode::OverBudget);
        world.step(Input::Stored { store, result });
        assert_eq!(world.done[&deleted], ErrorCode::CoordinatorNotAvailable);
        assert!(world.end_append(commit_ends));
        let stored = commit_ends.is_ok();
        let code = world.codes[&committed].clone().expect("looked at")[0];
        assert_eq!(code == ErrorCode::None, stored);
        for _ in 0..2 {
            assert_eq!(world.offset(0), Some(7));
            assert_eq!(world.offset(1), stored.then_some(8));
            world.restart();
        }
    }
}

#[test]
fn what_can_not_be_written_anew_is_not_appended_to_the_end() {
    let mut world = World::new(0);
    for number in 0..250 {
        let waiter = world.waiter();
        let entry = CommitEntry {
            partition: of_t(0),
            offset: Offset(7),
            leader_epoch: LeaderEpoch(-1),
            metadata: String::new(),
            refused: None,
        };
        world.step(Input::Commit {
            waiter,
            group: format!("group-{number}"),
            member: nobody(),
            entries: vec![entry],
        });
    }
    world.stores_at_once = false;
    world.coordinator.begin_rewrite();
    world.pass(1_000);
    assert!(world.end_append(Err(ErrorCode::RequestTimedOut)));
    while world.end_append(Ok(())) {}
    assert!(!world.coordinator.is_rewriting(), "it is given up");
    world.pass(1_000);
    assert!(world.appends.is_empty(), "the rest would be for nothing");
    assert!(!world.coordinator.take_rewritten());
    world.coordinator.begin_rewrite();
    for _ in 0..3 {
        world.pass(1_000);
        while world.end_append(Ok(())) {}
    }
    assert!(world.coordinator.take_rewritten());
}

#[test]
fn what_is_being_forgotten_does_not_come_back_with_the_topic_written_anew() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 7);
    world.commit(nobody(), 1, 8);
    world.stores_at_once = false;
    let waiter = world.waiter();
    world.step(Input::DeleteOffsets {
        waiter,
        group: "g".to_owned(),
        partitions: vec![of_t(0)],
    });
    world.coordinator.begin_rewrite();
    world.pass(1_000);
    while world.end_append(Ok(())) {}
    assert!(world.coordinator.take_rewritten());
    world.restart();
    assert_eq!((world.offset(0), world.offset(1)), (None, Some(8)));
}

#[test]
fn a_group_whose_deletion_fails_is_not_left_out_of_the_topic() {
    let mut world = World::new(0);
    world.commit(nobody(), 0, 7);
    world.stores_at_once = false;
    let waiter = world.waiter();
    world.step(Input::DeleteGroup {
        waiter,
        group: "g".to_owned(),
    });
    world.coordinator.begin_rewrite();
    world.pass(1_000);
    assert!(world.end_append(Err(ErrorCode::NotEnoughReplicas)));
    assert!(
        !world.coordinator.take_rewritten(),
        "what is old is still needed"
    );
    assert_eq!(world.offset(0), Some(7));
}

#[test]
fn static_members_without_time_to_rebalance_do_not_stop_the_clock() {
    let mut world = World::new(0);
    let hasty = |name: &'static str| {
        move |join: &mut Join| {
            join.instance = Some(name.to_owned());
            join.rebalance_timeout_ms = -1;
        }
    };
    let first = world.join_as("", hasty("a"));
    let first = world.joined(first);
    let second = world.join_as("", hasty("b"));
    let again = world.join_as(&first.member_id, hasty("a"));
    let sync = |world: &mut World, place: &Joined, name: &str| {
        let waiter = world.waiter();
        let mut member = member(place);
        member.instance = Some(name.to_owned());
        let group = "g".to_owned();
        let sync = Sync {
            group,
            member,
            ..Sync::default()
        };
        world.step(Input::Sync(waiter, sync));
    };
    let (leader, other) = (world.joined(again), world.joined(second));
    sync(&mut world, &other, "b");
    sync(&mut world, &leader, "a");
    assert_eq!(world.state(), Some(GroupState::Stable));
    let leaves = MemberRef {
        instance: Some("a".to_owned()),
        ..nobody()
    };
    assert_eq!(world.leave(leaves), ErrorCode::None);
    world.advance(3_000);
    let members = world.coordinator.describe("g").expect("there").members;
    assert_eq!(members.len(), 1, "the other's session decides");
}

#[test]
fn a_member_with_a_great_many_protocols_is_refused() {
    let mut world = World::new(0);
    let waiter = world.join_as("", |join| {
        let one = join.protocols[0].clone();
        join.protocols = vec![one; 65];
    });
    assert_eq!(world.refused(waiter), ErrorCode::InvalidRequest);
}

// ---- anything -----------------------------------------------------------------------------------------------------

/// Small, seeded, good enough to choose orders.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// What one client knows.
#[derive(Default)]
struct Client {
    id: String,
    instance: Option<String>,
    place: Option<Joined>,
    joins: Option<Waiter>,
    syncs: Option<Waiter>,
    is_gone: bool,
}

impl Client {
    /// Does what its library would do next.
    fn go_on(&mut self, world: &mut World) {
        if let Some(waiter) = self.joins {
            match world.joined.remove(&waiter) {
                None => return,
                Some(Ok(place)) => {
                    self.id = place.member_id.to_string();
                    self.place = Some(place);
                }
                Some(Err(refusal)) if refusal.code == ErrorCode::MemberIdRequired => {
                    self.id = refusal.member_id.to_string();
                }
                Some(Err(refusal)) => self.forget(refusal.code),
            }
            self.joins = None;
        } else if let Some(waiter) = self.syncs {
            match world.synced.remove(&waiter) {
                None => return,
                Some(Ok(synced)) => {
                    let place = self.place.as_ref().expect("it joined");
                    // A static member may have got its part under an earlier id.
                    let name = self.instance.as_deref().unwrap_or(&place.member_id);
                    let part = format!("{} {name}", place.generation);
                    let got = &*synced.assignment;
                    // A leader that was replaced or restored may leave a part empty.
                    assert!(got.is_empty() || got.starts_with(part.as_bytes()));
                }
                Some(Err(code)) => self.forget(code),
            }
            self.syncs = None;
        } else if let Some(place) = self.place.clone() {
            let code = self.heartbeat(world, &place);
            if code != ErrorCode::None {
                self.forget(code);
            }
        } else {
            let instance = self.instance.clone();
            let joins = world.join_as(&self.id, |join| {
                join.takes_id_first = true;
                join.instance = instance;
            });
            self.joins = Some(joins);
        }
        if let (Some(place), None, None) = (&self.place, self.joins, self.syncs) {
            let parts = place.members.iter();
            let parts: Vec<_> = parts
                .map(|member| {
                    (
                        member.member_id.clone(),
                        format!("{} {}", place.generation, member.member_id),
                    )
                })
                .collect();
            let parts: Vec<(&Arc<str>, &[u8])> = parts
                .iter()
                .map(|(id, part)| (id, part.as_bytes()))
                .collect();
            self.syncs = Some(world.sync(&place.clone(), &parts));
        }
    }

    fn heartbeat(&self, world: &mut World, place: &Joined) -> ErrorCode {
        let waiter = world.waiter();
        world.step(Input::Heartbeat {
            waiter,
            group: "g".to_owned(),
            member: MemberRef {
                instance: self.instance.clone(),
                ..member(place)
            },
        });
        world.done[&waiter]
    }

    fn forget(&mut self, code: ErrorCode) {
        self.place = None;
        if matches!(
            code,
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId
        ) {
            self.id.clear();
        }
    }
}

/// Members come, go, vanish and commit at random, appends fail, the process is killed; then the faults stop.
fn live_through(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut world = World::new([0, 3_000][random.below(2) as usize]);
    world.stores_at_once = random.below(2) == 0;
    let mut clients: Vec<Client> = Vec::new();
    let mut next_offset = 1;
    // The newest offset whose commit was acknowledged.
    let (mut commits, mut acknowledged) = (BTreeMap::new(), 0);
    for _ in 0..300 {
        match random.below(12) {
            0 if clients.len() < 6 => {
                let instance = random.below(3) == 0;
                clients.push(Client {
                    instance: instance.then(|| format!("static-{}", random.below(3))),
                    ..Client::default()
                });
            }
            1 if !clients.is_empty() => {
                let index = random.below(clients.len() as u64) as usize;
                clients[index].is_gone |= random.below(2) == 0;
            }
            2 => world.advance(random.below(9_000)),
            3 if random.below(4) == 0 => {
                world.restart();
                for client in &mut clients {
                    // Nobody answers any more.
                    client.joins = None;
                    client.syncs = None;
                }
                commits.clear();
            }
            4 => drop(world.end_append(Err(ErrorCode::StorageFull))),
            5 | 6 => {
                world.end_append(Ok(()));
            }
            7 => {
                if let Some(place) = clients.iter().find_map(|client| client.place.clone()) {
                    let waiter = world.commit(member(&place), 0, next_offset);
                    commits.insert(waiter, next_offset);
                    next_offset += 1;
                }
            }
            8 if random.below(8) == 0 => world.coordinator.begin_rewrite(),
            _ if !clients.is_empty() => {
                let index = random.below(clients.len() as u64) as usize;
                if !clients[index].is_gone {
                    clients[index].go_on(&mut world);
                }
            }
            _ => {}
        }
        commits.retain(|waiter, offset| match world.codes.remove(waiter) {
            None => true,
            Some(outcome) => {
                if outcome == Ok(vec![ErrorCode::None]) {
                    acknowledged = acknowledged.max(*offset);
                }
                false
            }
        });
        let held = world.offset(0).unwrap_or(0);
        assert!(
            held >= acknowledged,
            "{held} after {acknowledged} was acknowledged"
        );
    }
    // Everybody who is still there gets a place in the end.
    world.stores_at_once = true;
    while world.end_append(Ok(())) {}
    let mut names = std::collections::BTreeSet::new();
    clients.retain(|client| {
        let is_twin = client.instance.is_some() && !names.insert(client.instance.clone());
        !client.is_gone && !is_twin
    });
    for _ in 0..400 {
        world.pass(500);
        clients
            .iter_mut()
            .for_each(|client| client.go_on(&mut world));
    }
    let wanted = if clients.is_empty() {
        [None, Some(GroupState::Empty)]
    } else {
        [Some(GroupState::Stable); 2]
    };
    assert!(
        wanted.contains(&world.state()),
        "{:?} with {} clients",
        world.state(),
        clients.len()
    );
    let members = world
        .coordinator
        .describe("g")
        .map_or(0, |group| group.members.len());
    assert_eq!(members, clients.len());
    let held = world.offset(0);
    world.restart();
    // A commit that failed may count after all if the topic was written anew meanwhile; none goes back.
    assert!(world.offset(0) >= held);
}

#[test]
fn whatever_members_do_no_commit_is_lost_and_the_group_comes_to_rest() {
    for seed in 0..200 {
        let run = std::panic::catch_unwind(|| live_through(seed));
        assert!(run.is_ok(), "seed {seed} failed: live_through({seed})");
    }
}
