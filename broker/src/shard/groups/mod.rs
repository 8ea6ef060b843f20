//! Consumer groups on the core that owns their partition of `__consumer_offsets`: what a coordinator wants done is done
//! here.
//!
//! A partition's coordinator comes into being when its log is opened: the log is read from its start (`log.rs`), and until
//! that is done members are told to wait. What the coordinator stores is appended like any producer's batch, and the log
//! is written anew before it grows without bound.
//!
//! Not here: what becomes of groups (`tackboard_logic::group`), and the words of the requests (`kafka`).

mod ask;
mod log;
mod room;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ahash::AHashMap;
pub use ask::GroupQuestion;
pub use log::GroupWork;
use log::{Loading, Rewrite};
pub use room::Room;
use tackboard_logic::{
    group::{
        Coordinator, Counts, GroupListing, GroupView, RewritePlan, Standing,
        interface::{
            CommitEntry, Effect, GroupSettings, Input, Join, JoinRefusal, Joined, MemberRef,
            NamedPartition, StoreId, Sync, Synced, Waiter,
        },
        length::{commit_bytes, partition_bytes, shorten_commit},
    },
    metadata::{Command, CreateTopic, MetadataRefusal, Topic},
    shard::interface::{LogConfig, LogId},
};
use tackboard_schema::{
    Durability, ErrorCode, PartitionIndex, TopicPartition, storage::group_record::CommittedOffset,
};

use super::{
    request::{Body, Failure, Part, Pending},
    slab::{Key, Slab},
    state::State,
    topics::Place,
};

/// The internal topic, under Kafka's name.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Segments of that topic are no longer, in bytes: what was written anew goes segment by segment.
const OFFSETS_SEGMENT_BYTES_MAX: u64 = 8 << 20;

/// How often the coordinators are told in one turn which appends have ended. What they then append ends with the disk, or
/// at once if it is refused; the rest is told with the next turn.
pub(super) const TELLS_PER_TURN_MAX: usize = 4;

/// Deadlines of groups that are nearer than this are met to the tick, in microseconds; the others are found by the look
/// of once a second.
const NEAR_US: u64 = 2_000_000;

/// Whether the broker alone writes a topic.
pub fn is_internal(topic: &str) -> bool {
    topic == OFFSETS_TOPIC
}

/// What governs the logs of the internal topic, whatever its settings say: nothing is old because of its age or place,
/// what is stored is durable (old records go once they are written anew, and no power cut may take the new ones), and
/// whatever a coordinator stores fits.
pub fn internal_log_config(own: LogConfig) -> LogConfig {
    LogConfig {
        retention_ms: None,
        retention_bytes: None,
        yields_to_budget: false,
        segment_bytes: own.segment_bytes.min(OFFSETS_SEGMENT_BYTES_MAX),
        batch_bytes_max: own.batch_bytes_max.max(log::STORED_BATCH_BYTES_MAX),
        durability: Durability::Fsync,
        ..own
    }
}

/// What is asked of a coordinator.
#[derive(Clone, Debug)]
pub enum GroupRequest {
    /// To become or stay a member.
    Join(Box<Join>),
    /// To hand out or learn an assignment.
    Sync(Sync),
    /// To be known to live.
    Heartbeat(String, MemberRef),
    /// To be no member any more.
    Leave(String, Vec<MemberRef>),
    /// To remember offsets.
    Commit(Commit),
    /// To forget offsets.
    DeleteOffsets(String, Vec<NamedPartition>),
    /// To forget a group.
    Delete(String),
    /// What is remembered: for these partitions, or for all.
    Offsets(String, Option<Vec<NamedPartition>>),
    /// Who is in a group.
    Describe(String),
    /// Which groups there are.
    List,
    /// Whether there is a coordinator for a group.
    Find(String),
}

/// Offsets that are to be remembered.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The group.
    pub group: String,
    /// Who commits.
    pub member: MemberRef,
    /// What.
    pub entries: Vec<CommitEntry>,
    /// The version of the image in which the asker has found their partitions.
    pub known_in: u64,
}

impl GroupRequest {
    /// Whether it is answered when other members have done something, for as long as they like.
    pub fn may_wait(&self) -> bool {
        matches!(self, GroupRequest::Join(_) | GroupRequest::Sync(_))
    }

    /// Bytes that it carries, about.
    fn byte_length(&self) -> u64 {
        let length = match self {
            Self::Join(join) => join.byte_length(),
            Self::Sync(sync) => sync.byte_length(),
            Self::Commit(commit) => commit_bytes(&commit.entries),
            Self::DeleteOffsets(_, partitions) | Self::Offsets(_, Some(partitions)) => {
                partitions.iter().map(partition_bytes).sum()
            }
            // Names, of which each counts as an entry.
            Self::Heartbeat(..) | Self::Leave(..) | Self::Delete(_) => 0,
            Self::Offsets(_, None) | Self::Describe(_) | Self::List | Self::Find(_) => 0,
        };
        length as u64
    }

    /// Leaves out what no group has room for. What nobody but the client has to learn of is its answer.
    fn shorten(&mut self, metadata_bytes_max: usize) -> Option<GroupAnswer> {
        match self {
            Self::Join(join) => {
                let code = join.check_length().err()?;
                let member_id = Arc::from(join.member_id.as_str());
                let refusal = JoinRefusal { code, member_id };
                return Some(GroupAnswer::Joined(Err(refusal)));
            }
            Self::Sync(sync) => sync.shorten(),
            Self::Commit(commit) => {
                shorten_commit(&commit.group, &mut commit.entries, metadata_bytes_max);
            }
            _ => {}
        }
        None
    }

    /// The group that the answer names, where requests name several; else nothing.
    fn named_group(&self) -> &str {
        match self {
            Self::Offsets(group, _)
            | Self::Describe(group)
            | Self::Delete(group)
            | Self::Find(group) => group,
            _ => "",
        }
    }
}

/// What it answers.
#[derive(Debug)]
pub enum GroupAnswer {
    /// To a join.
    Joined(Result<Joined, JoinRefusal>),
    /// To a sync.
    Synced(Result<Synced, ErrorCode>),
    /// To a heartbeat, a deletion, or who looks for a coordinator.
    Done(ErrorCode),
    /// To a leave, a commit or a deletion of offsets: one code each.
    Codes(Result<Vec<ErrorCode>, ErrorCode>),
    /// What is remembered; `None`: nothing.
    Offsets(Vec<(NamedPartition, Option<CommittedOffset>)>),
    /// Who is in a group; `None`: there is no such group.
    Described(Option<GroupView>),
    /// The groups.
    Listed(Vec<GroupListing>),
}

/// Who waits for a coordinator's answer.
struct WaiterTarget {
    /// Whose coordinator is to answer.
    partition: TopicPartition,
    request: Key,
    entry: u32,
    /// It waits for other members, which may be long; the others wait for the disk.
    is_parked: bool,
}

enum Host {
    Loading(Box<Loading>),
    Serving(Box<Serving>),
}

/// A coordinator at work.
struct Serving {
    coordinator: Coordinator,
    rewrite: Rewrite,
    plan: RewritePlan,
}

/// The coordinators of one core.
#[derive(Default)]
pub struct Groups {
    hosts: AHashMap<TopicPartition, Host>,
    waiters: Slab<WaiterTarget>,
    /// Appends that have ended and of which the coordinators do not know yet.
    stored: VecDeque<(TopicPartition, StoreId, Result<(), ErrorCode>)>,
    /// What was counted of the coordinators' work so far.
    published: Counts,
    /// The internal topic was proposed, and the proposal is not decided.
    is_creating: bool,
}

impl Groups {
    /// When the first coordinator has something to do, microseconds.
    fn next_deadline_us(&self) -> Option<u64> {
        let deadline = |host: &Host| match host {
            Host::Loading(_) => None,
            Host::Serving(serving) => serving.coordinator.next_deadline_us(),
        };
        self.hosts.values().filter_map(deadline).min()
    }
}

/// The partition of `count` to which a group belongs: Java's hash of the name, as Kafka does it.
pub fn partition_of(group: &str, count: usize) -> PartitionIndex {
    let hash = (group.encode_utf16()).fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    PartitionIndex((hash & i32::MAX) % count.max(1) as i32)
}

impl State {
    // ---- where ----------------------------------------------------------------------------------------------------

    /// The topic of the groups; it is created when it is first asked for.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE` until it is there.
    pub fn offsets_topic(&mut self) -> Result<Arc<Topic>, Failure> {
        if let Some(topic) = self.topics.topic(OFFSETS_TOPIC) {
            return Ok(topic.clone());
        }
        if !std::mem::replace(&mut self.groups.is_creating, true) {
            self.create_offsets_topic();
        }
        let message = "the topic of the groups is being created";
        Err(Failure::new(ErrorCode::CoordinatorNotAvailable, message))
    }

    /// Refuses a change that would take the internal topic away from the groups, send them to other partitions of it, or
    /// make it otherwise than the broker does.
    ///
    /// # Errors
    /// `INVALID_TOPIC_EXCEPTION`.
    pub fn spare_groups(&self, command: &Command) -> Result<(), MetadataRefusal> {
        if !self.harms_groups(command) {
            return Ok(());
        }
        Err(MetadataRefusal {
            code: ErrorCode::InvalidTopicException,
            message: format!("topic {OFFSETS_TOPIC} is the broker's own: groups depend on it"),
        })
    }

    fn harms_groups(&self, command: &Command) -> bool {
        match command {
            Command::CreateTopic(CreateTopic { name, .. })
            | Command::DeleteTopic { name }
            | Command::CreatePartitions { name, .. } => is_internal(name),
            Command::DeleteTopicById { topic_id } => {
                let topic = self.topics.image().topic_by_id(*topic_id);
                topic.is_some_and(|topic| is_internal(&topic.name))
            }
            _ => false,
        }
    }

    /// The proposal of the topic was decided. If it was refused, the next one who asks for a group has it proposed again.
    pub(super) fn offsets_topic_decided(&mut self) {
        self.groups.is_creating = false;
    }

    /// Where a group is coordinated.
    pub fn coordinator_of(&mut self, group: &str) -> (PartitionIndex, Result<Place, Failure>) {
        match self.offsets_topic() {
            Ok(topic) => {
                let index = partition_of(group, topic.partitions.len());
                (index, self.coordinator_at(&topic, index))
            }
            Err(failure) => (PartitionIndex(0), Err(failure)),
        }
    }

    /// Every coordinator there is; none before somebody has asked for a group.
    pub fn every_coordinator(&self) -> Vec<(PartitionIndex, Result<Place, Failure>)> {
        let Some(topic) = self.topics.topic(OFFSETS_TOPIC) else {
            return Vec::new();
        };
        let indexes = (0..topic.partitions.len() as i32).map(PartitionIndex);
        let coordinators = indexes.map(|index| (index, self.coordinator_at(topic, index)));
        coordinators.collect()
    }

    fn coordinator_at(&self, topic: &Topic, index: PartitionIndex) -> Result<Place, Failure> {
        let place = self.topics.place(topic, index);
        place.map_err(|failure| as_coordinator(&failure))
    }

    // ---- requests -------------------------------------------------------------------------------------------------

    /// Puts a question to the coordinator of a partition of this core.
    pub fn group_here(&mut self, request: Key, entry: u32, log: LogId, wanted: GroupRequest) {
        let partition = self.opened(log).map(|opened| opened.partition);
        let host = partition.and_then(|partition| self.groups.hosts.get(&partition));
        let (Some(partition), Some(host)) = (partition, host) else {
            let failure = Failure::new(
                ErrorCode::CoordinatorNotAvailable,
                format!(
                    "a partition of {OFFSETS_TOPIC} has no coordinator; the broker's log says why"
                ),
            );
            return self.entry_grouped(request, entry, Err(failure));
        };
        if let GroupRequest::Find(_) = wanted {
            let found = Ok(GroupAnswer::Done(ErrorCode::None));
            return self.entry_grouped(request, entry, found);
        }
        let coordinator = match host {
            Host::Serving(serving) => &serving.coordinator,
            Host::Loading(_) => {
                return self.entry_grouped(request, entry, while_loading(&wanted));
            }
        };
        let Some(Pending {
            body: Body::Groups { entries, room, .. },
            ..
        }) = self.requests.get_mut(request)
        else {
            return;
        };
        match look(coordinator, &wanted, room) {
            Some(outcome) => entries[entry as usize].outcome = Some(outcome),
            None => self.step_for(request, entry, partition, wanted),
        }
    }

    /// Has a coordinator do something, whose answer may take its time.
    fn step_for(
        &mut self,
        request: Key,
        entry: u32,
        partition: TopicPartition,
        mut wanted: GroupRequest,
    ) {
        let is_parked = wanted.may_wait();
        if is_parked && self.stopping {
            let failure = Failure::plain(ErrorCode::ShuttingDown);
            return self.entry_grouped(request, entry, Err(failure));
        }
        if let GroupRequest::Commit(commit) = &mut wanted {
            self.look_at_commit(commit);
        }
        self.expect(request);
        let waiter = self.groups.waiters.insert(WaiterTarget {
            partition,
            request,
            entry,
            is_parked,
        });
        self.step_group(partition, input(Waiter(waiter), wanted));
    }

    /// The coordinator has forgotten what was committed for a topic when this core's image lost it: nothing may be
    /// committed behind that, by whoever still knows the topic.
    fn look_at_commit(&self, commit: &mut Commit) {
        let image = self.topics.image();
        for entry in &mut commit.entries {
            let NamedPartition { topic, partition } = &entry.partition;
            let admitted = image.admits_commits(topic, *partition, commit.known_in);
            entry.refused = entry.refused.or(admitted.err());
        }
    }

    fn entry_grouped(&mut self, request: Key, entry: u32, outcome: Result<GroupAnswer, Failure>) {
        if let Some(Pending {
            body: Body::Groups { entries, .. },
            ..
        }) = self.requests.get_mut(request)
        {
            entries[entry as usize].outcome = Some(outcome);
        }
    }

    /// The broker stops: members do not wait for each other any more. What is being stored is answered once it is.
    pub(super) fn release_members(&mut self) {
        self.release_waiters(ErrorCode::ShuttingDown, |waiter| waiter.is_parked);
    }

    fn release_waiters(&mut self, code: ErrorCode, are: impl Fn(&WaiterTarget) -> bool) {
        for waiter in self.groups.waiters.keys() {
            let target = self.groups.waiters.get_mut(waiter);
            if target.is_some_and(|target| are(target))
                && let Some(target) = self.groups.waiters.remove(waiter)
            {
                let failure = Failure::plain(code);
                self.entry_grouped(target.request, target.entry, Err(failure));
                self.outcome_arrived(target.request);
            }
        }
    }

    /// The log of a partition takes nothing any more: its groups have no coordinator until a restart, and nobody waits for
    /// one.
    pub(super) fn coordinator_fenced(&mut self, partition: TopicPartition) {
        if self.groups.hosts.remove(&partition).is_some() {
            let code = ErrorCode::CoordinatorNotAvailable;
            self.release_waiters(code, |waiter| waiter.partition == partition);
        }
    }

    /// Refuses what is open of a request to groups. What is parked of it at other cores is refused there, too: it would
    /// hold room for as long as other members like.
    pub(super) fn abandon_group_request(&mut self, request: Key) {
        let pending = self.requests.get_mut(request);
        if !pending.is_some_and(|pending| matches!(pending.body, Body::Groups { .. })) {
            return;
        }
        let Some(mut pending) = self.requests.remove(request) else {
            return;
        };
        if let Body::Groups { entries, parts, .. } = &mut pending.body {
            for part in std::mem::take(parts) {
                if let Part::There(core, call) = part {
                    self.hurry_there(core, call);
                }
            }
            let open = entries.iter_mut().filter(|entry| entry.outcome.is_none());
            let stopping = || Err(Failure::plain(ErrorCode::ShuttingDown));
            open.for_each(|entry| entry.outcome = Some(stopping()));
        }
        self.complete(request, pending);
    }

    // ---- the coordinators -----------------------------------------------------------------------------------------

    fn group_settings(&self) -> GroupSettings {
        let config = &self.config.groups;
        let ms = |time: Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        let long_ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        GroupSettings {
            session_timeout_min_ms: ms(config.session_timeout_min),
            session_timeout_max_ms: ms(config.session_timeout_max),
            initial_rebalance_delay_ms: ms(config.initial_rebalance_delay),
            members_max: config.members_max,
            groups_max: config.groups_max,
            state_bytes_max: config.state_bytes_max,
            offset_metadata_bytes_max: config.offset_metadata_bytes_max,
            offsets_retention_ms: long_ms(config.offsets_retention),
            offsets_retention_check_ms: long_ms(config.offsets_retention_check_interval),
        }
    }

    fn step_group(&mut self, partition: TopicPartition, input: Input) {
        let Some(Host::Serving(serving)) = self.groups.hosts.get_mut(&partition) else {
            return;
        };
        let mut effects = Vec::new();
        serving.coordinator.step(self.now, input, &mut effects);
        for effect in effects {
            let (waiter, answer) = match effect {
                Effect::Joined { waiter, outcome } => (waiter, GroupAnswer::Joined(outcome)),
                Effect::Synced { waiter, outcome } => (waiter, GroupAnswer::Synced(outcome)),
                Effect::Done { waiter, code } => (waiter, GroupAnswer::Done(code)),
                Effect::Left { waiter, outcome } | Effect::Committed { waiter, outcome } => {
                    (waiter, GroupAnswer::Codes(outcome))
                }
                Effect::Store { store, records } => {
                    self.store_group(partition, store, &records);
                    continue;
                }
            };
            if let Some(WaiterTarget { request, entry, .. }) = self.groups.waiters.remove(waiter.0)
            {
                self.entry_grouped(request, entry, Ok(answer));
                self.outcome_arrived(request);
            }
        }
    }

    /// Tells the coordinators which appends have ended. True: some had.
    pub(super) fn tell_groups(&mut self) -> bool {
        let count = self.groups.stored.len();
        for _ in 0..count {
            if let Some((partition, store, result)) = self.groups.stored.pop_front() {
                self.step_group(partition, Input::Stored { store, result });
            }
        }
        count > 0
    }

    /// Whether some group has a deadline soon, or something to be told.
    pub(super) fn groups_want_time(&self) -> bool {
        let near_us = self.now.monotonic_us.saturating_add(NEAR_US);
        let is_near = |deadline_us: u64| deadline_us <= near_us;
        !self.groups.stored.is_empty() || self.groups.next_deadline_us().is_some_and(is_near)
    }

    /// Tells those coordinators the time that have a deadline behind them.
    pub(super) fn meet_group_deadlines(&mut self) {
        let now_us = self.now.monotonic_us;
        let is_due = |host: &Host| match host {
            Host::Loading(_) => false,
            Host::Serving(serving) => {
                let deadline_us = serving.coordinator.next_deadline_us();
                deadline_us.is_some_and(|deadline_us| deadline_us <= now_us)
            }
        };
        let hosts = self.groups.hosts.iter();
        let due: Vec<_> = hosts
            .filter(|(_, host)| is_due(host))
            .map(|(partition, _)| *partition)
            .collect();
        for partition in due {
            self.step_group(partition, Input::Tick);
        }
    }

    /// About once a second: tells every coordinator the time, and looks after its log.
    pub(super) fn tick_groups(&mut self) {
        let partitions: Vec<_> = self.groups.hosts.keys().copied().collect();
        for partition in partitions {
            match self.groups.hosts.get(&partition) {
                Some(Host::Serving(_)) => {
                    self.step_group(partition, Input::Tick);
                    self.keep_group_log_short(partition);
                }
                // A read that failed is tried again.
                Some(Host::Loading(_)) => self.load_more(partition),
                None => {}
            }
        }
    }

    /// How the coordinators stand, for the core's counters.
    pub(super) fn publish_groups(&mut self) {
        let mut all = Standing::default();
        for host in self.groups.hosts.values() {
            if let Host::Serving(serving) = host {
                let one = serving.coordinator.standing();
                all.groups += one.groups;
                all.members += one.members;
                all.bytes += one.bytes;
                all.counts.rebalances += one.counts.rebalances;
                all.counts.commits += one.counts.commits;
            }
        }
        let known = std::mem::replace(&mut self.groups.published, all.counts);
        let metrics = self.metrics();
        metrics.groups.set(all.groups);
        metrics.group_members.set(all.members);
        metrics.group_state_bytes.set(all.bytes);
        let rebalances = all.counts.rebalances.saturating_sub(known.rebalances);
        metrics.group_rebalances.add(rebalances);
        let commits = all.counts.commits.saturating_sub(known.commits);
        metrics.offsets_committed.add(commits);
    }

    /// A topic is gone, and what groups have committed for it. One that is loading finds that out when it has.
    pub(super) fn topic_gone(&mut self, topic: &Arc<str>) {
        let partitions: Vec<_> = self.groups.hosts.keys().copied().collect();
        for partition in partitions {
            let (topic, until) = (topic.clone(), None);
            self.step_group(partition, Input::TopicDeleted { topic, until });
        }
    }

    /// A coordinator has read its log: what is said there of topics that went meanwhile, or while the broker was down, or
    /// too soon before that for all to be taken back, is not to be told.
    pub(super) fn forget_orphaned(&mut self, partition: TopicPartition) {
        let Some(Host::Serving(serving)) = self.groups.hosts.get(&partition) else {
            return;
        };
        let topics = serving.coordinator.committed_topics();
        for (topic, until) in self.topics.image().orphaned(topics) {
            self.step_group(partition, Input::TopicDeleted { topic, until });
        }
    }

    /// A partition of the topic is gone.
    pub(super) fn forget_groups(&mut self, partition: TopicPartition) {
        self.groups.hosts.remove(&partition);
    }
}

/// What a fault of the partition means to whoever looks for its coordinator: clients of groups give up at the codes that
/// those of partitions try again.
pub(super) fn as_coordinator(failure: &Failure) -> Failure {
    Failure::new(ErrorCode::CoordinatorNotAvailable, failure.message.clone())
}

/// What a coordinator says that does not know yet who its members are. Members that were in their group before a restart
/// are not to leave it for that: clients of Kafka take no "loading" for an answer to a heartbeat or a sync, because Kafka's
/// coordinators take the one on trust, and have the other join again.
fn while_loading(wanted: &GroupRequest) -> Result<GroupAnswer, Failure> {
    match wanted {
        GroupRequest::Heartbeat(..) => Ok(GroupAnswer::Done(ErrorCode::None)),
        GroupRequest::Sync(_) => Ok(GroupAnswer::Synced(Err(ErrorCode::RebalanceInProgress))),
        _ => Err(Failure::plain(ErrorCode::CoordinatorLoadInProgress)),
    }
}

/// The answer to a question that changes nothing; `None`: it is none.
fn look(
    coordinator: &Coordinator,
    wanted: &GroupRequest,
    room: &mut Room,
) -> Option<Result<GroupAnswer, Failure>> {
    let answer = match wanted {
        GroupRequest::Offsets(group, wanted) => offsets_of(coordinator, group, wanted, room),
        GroupRequest::Describe(group) => describe(coordinator, group, room),
        GroupRequest::List => Ok(GroupAnswer::Listed(coordinator.list().collect())),
        _ => return None,
    };
    Some(answer)
}

fn offsets_of(
    coordinator: &Coordinator,
    group: &str,
    wanted: &Option<Vec<NamedPartition>>,
    room: &mut Room,
) -> Result<GroupAnswer, Failure> {
    room.look()?;
    let found: Vec<_> = match wanted {
        None => coordinator
            .committed_offsets(group)
            .map(|(partition, value)| (partition, Some(value)))
            .collect(),
        Some(wanted) => wanted
            .iter()
            .map(|partition| (partition, coordinator.committed_offset(group, partition)))
            .collect(),
    };
    room.take_offsets(found.iter().copied())?;
    let found = found.into_iter();
    let offsets = found.map(|(partition, value)| (partition.clone(), value.cloned()));
    Ok(GroupAnswer::Offsets(offsets.collect()))
}

fn describe(
    coordinator: &Coordinator,
    group: &str,
    room: &mut Room,
) -> Result<GroupAnswer, Failure> {
    room.look()?;
    let view = coordinator.describe(group);
    if let Some(view) = &view {
        room.take_view(view)?;
    }
    Ok(GroupAnswer::Described(view))
}

fn input(waiter: Waiter, wanted: GroupRequest) -> Input {
    match wanted {
        GroupRequest::Join(join) => Input::Join(waiter, *join),
        GroupRequest::Sync(sync) => Input::Sync(waiter, sync),
        GroupRequest::Heartbeat(group, member) => Input::Heartbeat {
            waiter,
            group,
            member,
        },
        GroupRequest::Leave(group, members) => Input::Leave {
            waiter,
            group,
            members,
        },
        GroupRequest::Commit(commit) => Input::Commit {
            waiter,
            group: commit.group,
            member: commit.member,
            entries: commit.entries,
        },
        GroupRequest::DeleteOffsets(group, partitions) => Input::DeleteOffsets {
            waiter,
            group,
            partitions,
        },
        GroupRequest::Delete(group) => Input::DeleteGroup { waiter, group },
        GroupRequest::Offsets(..)
        | GroupRequest::Describe(_)
        | GroupRequest::List
        | GroupRequest::Find(_) => {
            unreachable!("answered without a step")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_belong_to_the_partitions_that_kafka_gives_them() {
        // `Math.abs("name".hashCode()) % 50`, as Kafka's tools show it.
        for (group, partition) in [("", 0), ("a", 47), ("ab", 5), ("\u{1d11e}", 44)] {
            assert_eq!(
                partition_of(group, 50),
                PartitionIndex(partition),
                "{group}"
            );
        }
    }

    #[test]
    fn no_setting_makes_the_internal_topic_forget() {
        let config = internal_log_config(LogConfig {
            retention_ms: Some(1),
            retention_bytes: Some(1),
            yields_to_budget: true,
            segment_bytes: 1 << 30,
            batch_bytes_max: 1_000,
            durability: Durability::Written,
            ..LogConfig::default()
        });
        // Old records go when new ones are stored, and no power cut may take these.
        assert_eq!(config.durability, Durability::Fsync);
        assert_eq!((config.retention_ms, config.retention_bytes), (None, None));
        assert!(!config.yields_to_budget);
        assert_eq!(config.segment_bytes, OFFSETS_SEGMENT_BYTES_MAX);
        assert_eq!(config.batch_bytes_max, log::STORED_BATCH_BYTES_MAX);
    }
}
