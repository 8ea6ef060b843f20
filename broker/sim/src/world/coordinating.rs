//! Coordinators of groups, as the broker's driver runs them: what they store goes through the log of their partition of
//! the internal topic, they read it back before they serve, and write it anew when it has grown.
//!
//! Here is also what is watched of them: every answer and every append meets the checkers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use tackboard_logic::group::interface::{
    Effect, GroupState, Input, NamedPartition, Record, StoreId, Waiter,
};
use tackboard_logic::group::{Coordinator, Loader, RewritePlan};
use tackboard_logic::shard::interface::{
    AdvanceLogStart, Append, Input as ShardInput, Refusal, Ticket,
};
use tackboard_schema::record_batch::{BatchIterator, Compression};
use tackboard_schema::{Acks, Durability, ErrorCode, Offset, TimestampMs};

use super::grouping::{Asked, subscription};
use super::process::Payload;
use super::producing::{Request, Waiting};
use super::{Event, World, trace};
use crate::check;
use crate::clock::Clock;
use crate::coverage::Event as Seen;
use crate::model::{Batch, GroupTruth, Recorded};

/// How long a coordinator waits for its records to be stored, in microseconds.
const STORE_TIMEOUT_US: u64 = 5_000_000;

/// Every coordinator is told the time so often, and when a group has a deadline.
const TICK_US: u64 = 1_000_000;

/// A look at what has been read so far.
const LOAD_PAUSE_US: u64 = 5_000;

/// The coordinator of one partition of the internal topic.
pub(super) enum Coordinating {
    Loading(Box<Loading>),
    Serving(Box<Serving>),
}

/// It reads its log.
pub(super) struct Loading {
    loader: Loader,
    log_start: i64,
    next: i64,
}

/// It serves.
pub(super) struct Serving {
    pub(super) coordinator: Coordinator,
    rewrite: Rewrite,
    plan: RewritePlan,
    stores: BTreeMap<StoreId, Store>,
    /// Appends that have ended, of which it has not been told.
    ended: VecDeque<(StoreId, Result<(), ErrorCode>)>,
}

/// How far writing the log anew has come.
enum Rewrite {
    Rests,
    Writing { from: Offset, size_bytes: u64 },
    Advancing { living_bytes: u64 },
}

/// An append that has not ended, or of which the coordinator was not told.
#[derive(Default)]
struct Store {
    /// Batches that have not been answered.
    open: usize,
    failure: Option<ErrorCode>,
    batches: BTreeSet<u64>,
    commits: Vec<(String, NamedPartition, i64)>,
    removals: Vec<(String, NamedPartition)>,
    groups: Vec<(String, Option<Recorded>)>,
}

/// What is known of a step before it is made.
struct Step {
    states: BTreeMap<Arc<str>, GroupState>,
    /// The group of which somebody wants something forgotten.
    forgets: Option<String>,
    /// What is to be committed, and whether whoever wants that may.
    commits: BTreeSet<(NamedPartition, i64)>,
    may_commit: bool,
}

impl Step {
    fn of(input: &Input, coordinator: &Coordinator) -> Self {
        let listed = coordinator.list();
        let mut step = Self {
            states: listed.map(|it| (it.group, it.state)).collect(),
            forgets: None,
            commits: BTreeSet::new(),
            may_commit: false,
        };
        match input {
            Input::Commit {
                group,
                member,
                entries,
                ..
            } => {
                let entries = entries.iter();
                step.commits = entries
                    .map(|entry| (entry.partition.clone(), entry.offset.0))
                    .collect();
                let view = coordinator.describe(group);
                step.may_commit = view.is_none_or(|view| view.members.is_empty())
                    && member.generation < 0
                    || coordinator.describe(group).is_some_and(|view| {
                        let mut members = view.members.iter();
                        view.generation == member.generation
                            && members.any(|known| *known.member_id == member.member_id)
                    });
            }
            Input::DeleteOffsets { group, .. } | Input::DeleteGroup { group, .. } => {
                step.forgets = Some(group.clone());
            }
            _ => {}
        }
        step
    }
}

impl Coordinating {
    fn serving(&mut self) -> Option<&mut Serving> {
        match self {
            Self::Loading(_) => None,
            Self::Serving(serving) => Some(serving),
        }
    }
}

impl World {
    pub(super) fn coordinating(&mut self, number: u32) -> Option<&mut Serving> {
        let process = self.process.as_mut()?;
        process.coordinators.get_mut(&number)?.serving()
    }

    /// A coordinator that takes questions.
    pub(super) fn coordinator(&self, number: u32) -> Option<&Coordinator> {
        match self.process.as_ref()?.coordinators.get(&number)? {
            Coordinating::Loading(_) => None,
            Coordinating::Serving(serving) => Some(&serving.coordinator),
        }
    }

    // ---- loading --------------------------------------------------------------------------------------------------

    /// A partition of the internal topic was opened: its coordinator comes into being.
    pub(super) fn begin_load(&mut self, number: u32) {
        let (core, log) = self.serving(number).expect("it was just opened");
        let described = self.host(core).shard.describe(log).expect("it is open");
        let log_start = described.log_start_offset.0;
        let settings = self.options.groups.settings.clone();
        let loading = Loading {
            loader: Loader::new(settings, self.clock.now()),
            log_start,
            next: log_start,
        };
        let loading = Coordinating::Loading(Box::new(loading));
        self.process_mut().coordinators.insert(number, loading);
        self.read_from(number, log_start);
        let incarnation = self.incarnation;
        self.schedule(
            0,
            Event::Coordinator {
                incarnation,
                number,
            },
        );
    }

    /// What a reader got of the log: records, as the driver takes them in.
    pub(super) fn take_loaded(&mut self, number: u32, bytes: &[u8]) {
        let process = self.process.as_mut();
        let host = process.and_then(|process| process.coordinators.get_mut(&number));
        let Some(Coordinating::Loading(loading)) = host else {
            return;
        };
        for batch in BatchIterator::new(bytes) {
            let batch = batch.expect("it was looked at");
            let after = batch.header().next_offset().0;
            if after <= loading.next {
                continue;
            }
            for record in batch.records() {
                let record = record.expect("it was looked at");
                let key = record.key.unwrap_or_default();
                let taken = loading.loader.take(key, record.value);
                taken.expect("only coordinators write to the internal topic");
            }
            loading.next = after;
        }
    }

    /// Whether a coordinator still reads, and has not read everything.
    pub(super) fn reads_for_coordinator(&mut self, number: u32) -> bool {
        let Some((core, log)) = self.serving(number) else {
            return false;
        };
        let end = self.host(core).shard.describe(log);
        let end = end.map_or(0, |described| described.log_end_offset.0);
        match self.process_mut().coordinators.get(&number) {
            Some(Coordinating::Loading(loading)) => loading.next < end,
            _ => false,
        }
    }

    fn begin_to_serve(&mut self, number: u32) {
        let now = self.clock.now();
        let host = self.process_mut().coordinators.remove(&number);
        let Some(Coordinating::Loading(loading)) = host else {
            return;
        };
        let serving = Serving {
            coordinator: loading.loader.finish(now),
            rewrite: Rewrite::Rests,
            plan: RewritePlan::default(),
            stores: BTreeMap::new(),
            ended: VecDeque::new(),
        };
        serving.coordinator.check_invariants();
        self.check_loaded(number, loading.log_start, &serving.coordinator);
        if serving.coordinator.list().next().is_some() {
            self.see(Seen::GroupsLoaded);
        }
        let topics = serving.coordinator.committed_topics();
        let serving = Coordinating::Serving(Box::new(serving));
        self.process_mut().coordinators.insert(number, serving);
        for topic in topics {
            if !self.group_topic_exists(&topic) {
                self.make_step(number, Input::TopicDeleted { topic, until: None });
            }
        }
        self.check_shown(number);
    }

    fn check_loaded(&mut self, number: u32, log_start: i64, coordinator: &Coordinator) {
        let mut truths = std::mem::take(&mut self.groups);
        let ours = |group: &String| self.coordinator_of(group) == number;
        let names = truths.keys().filter(|group| ours(group));
        let partition = &self.partitions[number as usize];
        let told = check::loaded(partition, log_start, coordinator, names);
        for (group, truth) in truths.iter_mut().filter(|(group, _)| ours(group)) {
            truth.recorded = None;
            if coordinator.describe(group).is_none() {
                truth.begin_anew();
            }
            for (partition, truth) in &mut truth.offsets {
                let shown = coordinator.committed_offset(group, partition);
                let shown = shown.map(|value| value.offset.0);
                if let Some(commit) = shown.and_then(|number| truth.commits.get_mut(&number)) {
                    commit.stored = true;
                }
                if !truth.of_deleted_topic {
                    check::shown(group, partition, truth, shown);
                }
                check::settle(truth, shown);
            }
        }
        for (group, recorded) in told {
            if let Some(truth) = truths.get_mut(&group) {
                truth.recorded = Some((StoreId(0), recorded));
            }
        }
        self.groups = truths;
    }

    // ---- steps ----------------------------------------------------------------------------------------------------

    /// A coordinator is told the time, or reads on.
    pub(super) fn look_after_coordinator(&mut self, number: u32) {
        let incarnation = self.incarnation;
        let event = Event::Coordinator {
            incarnation,
            number,
        };
        if self.coordinator(number).is_none() {
            if self.serving(number).is_some() && !self.reads_for_coordinator(number) {
                self.begin_to_serve(number);
            }
            return self.schedule(LOAD_PAUSE_US, event);
        }
        self.step_group(number, Input::Tick);
        self.keep_group_log_short(number);
        let deadline_us = self
            .coordinator(number)
            .and_then(Coordinator::next_deadline_us);
        let now_us = self.clock.now_us();
        let due_us = deadline_us.map_or(u64::MAX, Clock::of_monotonic);
        let wait_us = due_us.saturating_sub(now_us).clamp(1_000, TICK_US);
        let wait_us = wait_us + self.rng.below(1_000);
        self.schedule(wait_us, event);
    }

    /// One step of a coordinator, and what it shows then.
    pub(super) fn step_group(&mut self, number: u32, input: Input) {
        self.make_step(number, input);
        self.check_shown(number);
    }

    /// One step of a coordinator, its invariants, the checkers, and what it wants done.
    fn make_step(&mut self, number: u32, input: Input) {
        let now = self.clock.now();
        let Some(coordinator) = self.coordinator(number) else {
            return;
        };
        let step = Step::of(&input, coordinator);
        trace!(self, "coordinator {number} <- {input:?}");
        let mut effects = Vec::new();
        let serving = self.coordinating(number).expect("it was there");
        serving.coordinator.step(now, input, &mut effects);
        serving.coordinator.check_invariants();
        self.steps += 1;
        self.see(Seen::Step);
        for effect in effects {
            trace!(self, "coordinator {number} -> {effect:?}");
            match effect {
                Effect::Store { store, records } => {
                    self.note_store(number, store, &records, &step);
                    self.store_group(number, store, &records);
                }
                Effect::Joined { waiter, .. }
                | Effect::Synced { waiter, .. }
                | Effect::Done { waiter, .. }
                | Effect::Left { waiter, .. }
                | Effect::Committed { waiter, .. } => self.answered(waiter, effect),
            }
        }
    }

    fn answered(&mut self, waiter: Waiter, answer: Effect) {
        let asked = self.asked.remove(&waiter.0);
        let asked = asked.unwrap_or_else(|| panic!("{waiter:?} is answered once: {answer:?}"));
        self.take_group_answer(waiter.0, asked, answer);
    }

    /// What is shown of every group is what may be shown.
    fn check_shown(&mut self, number: u32) {
        if self.coordinator(number).is_none() {
            return;
        }
        let mut truths = std::mem::take(&mut self.groups);
        let coordinator = self.coordinator(number).expect("it serves");
        for (group, truth) in &mut truths {
            if self.coordinator_of(group) != number {
                continue;
            }
            if coordinator.describe(group).is_none() {
                truth.begin_anew();
            }
            for (partition, truth) in &mut truth.offsets {
                let shown = coordinator.committed_offset(group, partition);
                check::shown(group, partition, truth, shown.map(|value| value.offset.0));
            }
        }
        self.groups = truths;
    }

    // ---- appends --------------------------------------------------------------------------------------------------

    /// Whether a member of a group that is at work has said that it reads the topic.
    fn reads_topic(&self, number: u32, group: &str, topic: &str) -> bool {
        let view = self.coordinator(number).and_then(|it| it.describe(group));
        let told = subscription(topic);
        view.is_some_and(|view| view.members.iter().any(|one| one.subscription == told))
    }

    /// Looks at what a coordinator is about to append.
    fn note_store(&mut self, number: u32, store: StoreId, records: &[Record], step: &Step) {
        let wall_ms = self.clock.wall_ms();
        let retention_ms = self.options.groups.settings.offsets_retention_ms;
        let mut noted = Store {
            groups: check::recorded(records),
            ..Store::default()
        };
        let mut expired = false;
        for record in records {
            let Record::Offset {
                group,
                partition,
                value,
            } = record
            else {
                continue;
            };
            let name = group.to_string();
            let is_read = value.is_none() && self.reads_topic(number, group, &partition.topic);
            let truth = self.groups.entry(name.clone()).or_default();
            let truth = truth.offsets.entry(partition.clone()).or_default();
            if let Some(value) = value {
                let commit = (partition.clone(), value.offset.0);
                if step.commits.contains(&commit) {
                    check::commit_taken(group, step.may_commit);
                    truth.take(commit.1, wall_ms);
                } else {
                    check::written_anew(group, partition, truth, commit.1);
                }
                noted.commits.push((name, commit.0, commit.1));
                continue;
            }
            if step.forgets.as_deref() != Some(&**group) {
                let state = step.states.get(group).copied();
                let times = (wall_ms, retention_ms);
                check::expired(group, partition, truth, times, state, is_read);
                expired = true;
            }
            truth.removals.insert(store, truth.newest());
            noted.removals.push((name, partition.clone()));
        }
        if expired {
            self.see(Seen::OffsetsExpired);
        }
        let serving = self.coordinating(number).expect("it has made a step");
        serving.stores.insert(store, noted);
    }

    /// Appends what a coordinator wants stored.
    fn store_group(&mut self, number: u32, store: StoreId, records: &[Record]) {
        let batches = self.batches_of(records);
        let place = self.serving(number);
        let serving = self.coordinating(number).expect("it has made a step");
        let noted = serving.stores.get_mut(&store).expect("it was noted");
        noted.open = batches.len();
        noted.batches = batches.iter().map(|batch| batch.id).collect();
        let Some((core, log)) = place else {
            noted.open = 0;
            noted.failure = Some(ErrorCode::NotLeaderOrFollower);
            return self.store_ended(number, store);
        };
        for batch in batches {
            let ticket = self.next_ticket();
            let request = Request {
                partition: number,
                batch: batch.clone(),
                acks: Acks::All,
                durability: Durability::Fsync,
            };
            let waiting = Waiting::Store { store, request };
            self.waiting.insert(ticket, waiting);
            let payload = Payload {
                partition: number,
                batch: batch.clone(),
            };
            let payload = self.host(core).receive(payload);
            let append = Append {
                log,
                ticket: Ticket(ticket),
                header: batch.header,
                payload,
                acks: Some(Acks::All),
                durability: None,
                deadline_us: self.clock.now().monotonic_us + STORE_TIMEOUT_US,
            };
            self.post(core, ShardInput::Append(append));
        }
    }

    /// The records as batches, one behind the other.
    fn batches_of(&mut self, records: &[Record]) -> Vec<Rc<Batch>> {
        let now = TimestampMs(self.clock.wall_ms());
        let mut batches = Vec::new();
        self.builder.reset(now);
        let mut count = 0;
        for (index, record) in records.iter().enumerate() {
            let (key, value) = record.encode();
            let appended = self.builder.append(now, Some(&key), value.as_deref(), &[]);
            appended.expect("the batch is short");
            count += 1;
            let is_last = index + 1 == records.len();
            if is_last || self.builder.size() >= self.options.groups.batch_bytes {
                let bytes = self.builder.finish(None, Compression::None);
                let id = self.next_batch;
                self.next_batch += 1;
                let timestamps = vec![now.0; std::mem::take(&mut count)];
                batches.push(Rc::new(Batch::of(id, bytes, timestamps)));
                self.builder.reset(now);
            }
        }
        batches
    }

    /// A batch of a coordinator was appended, or was not.
    pub(super) fn batch_stored(
        &mut self,
        number: u32,
        store: StoreId,
        outcome: Result<(), ErrorCode>,
    ) {
        let Some(serving) = self.coordinating(number) else {
            return;
        };
        let noted = serving.stores.get_mut(&store).expect("it ends once");
        noted.open -= 1;
        noted.failure = noted.failure.or(outcome.err());
        if noted.open == 0 {
            self.store_ended(number, store);
        }
    }

    fn store_ended(&mut self, number: u32, store: StoreId) {
        let serving = self.coordinating(number).expect("it waits for it");
        let failure = serving.stores[&store].failure;
        let result = failure.map_or(Ok(()), Err);
        serving.ended.push_back((store, result));
        let delay_us = self.rng.below(50);
        let incarnation = self.incarnation;
        self.schedule(
            delay_us,
            Event::Stored {
                incarnation,
                number,
            },
        );
    }

    /// A coordinator is told of an append that has ended.
    pub(super) fn tell_stored(&mut self, number: u32) {
        let Some(serving) = self.coordinating(number) else {
            return;
        };
        let Some((store, result)) = serving.ended.pop_front() else {
            return;
        };
        let noted = serving.stores.remove(&store).expect("it ends once");
        self.note_stored(number, store, noted, result);
        self.step_group(number, Input::Stored { store, result });
    }

    /// What an append that has ended means for what is true.
    fn note_stored(
        &mut self,
        number: u32,
        store: StoreId,
        noted: Store,
        result: Result<(), ErrorCode>,
    ) {
        let partition = &self.partitions[number as usize];
        let mut placed = partition.sequence.iter().rev();
        let is_placed = placed.any(|placed| noted.batches.contains(&placed.batch.id));
        if result.is_err() {
            self.see(Seen::StoreFailed);
        }
        for (group, partition, number) in noted.commits.iter().filter(|_| result.is_ok()) {
            let truth = self.groups.entry(group.clone()).or_default();
            let truth = truth.offsets.entry(partition.clone()).or_default();
            if let Some(commit) = truth.commits.get_mut(number) {
                commit.stored = true;
            }
        }
        for (group, partition) in noted.removals {
            let truth = self.groups.entry(group).or_default();
            let truth = truth.offsets.entry(partition).or_default();
            let Some(reached) = truth.removals.remove(&store) else {
                continue;
            };
            if result.is_ok() {
                truth.lose(reached);
            } else if is_placed {
                truth.doubtful = truth.doubtful.max(reached);
            }
        }
        for (group, recorded) in noted.groups.into_iter().filter(|_| result.is_ok()) {
            let truth = self.groups.entry(group).or_default();
            check::note_recorded(truth, store, recorded);
        }
    }

    // ---- writing the log anew -------------------------------------------------------------------------------------

    fn keep_group_log_short(&mut self, number: u32) {
        let Some((core, log)) = self.serving(number) else {
            return;
        };
        let Some(described) = self.host(core).shard.describe(log) else {
            return;
        };
        let now = self.clock.now();
        let scaled_bytes = described.size_bytes * self.options.groups.rewrite_scale;
        let serving = self.coordinating(number).expect("it serves");
        match serving.rewrite {
            Rewrite::Rests => {
                if serving.plan.is_due(now, scaled_bytes) {
                    serving.coordinator.begin_rewrite();
                    serving.rewrite = Rewrite::Writing {
                        from: described.log_end_offset,
                        size_bytes: described.size_bytes,
                    };
                }
            }
            Rewrite::Writing { from, size_bytes } if serving.coordinator.take_rewritten() => {
                let living_bytes = described.size_bytes.saturating_sub(size_bytes);
                serving.rewrite = Rewrite::Advancing { living_bytes };
                let ticket = self.next_ticket();
                let offset = Some(from);
                self.waiting.insert(ticket, Waiting::Rewritten { number });
                let advance = AdvanceLogStart {
                    log,
                    ticket: Ticket(ticket),
                    offset,
                };
                self.post(core, ShardInput::AdvanceLogStart(advance));
            }
            Rewrite::Writing { .. } if !serving.coordinator.is_rewriting() => {
                serving.rewrite = Rewrite::Rests;
                serving.plan.failed(now);
            }
            Rewrite::Writing { .. } | Rewrite::Advancing { .. } => {}
        }
    }

    /// The log begins with what was written anew, or could not be made to.
    pub(super) fn group_log_advanced(&mut self, number: u32, outcome: Result<Offset, Refusal>) {
        let faulty = self.faults_were_injected();
        let partition = &mut self.partitions[number as usize];
        match &outcome {
            Ok(log_start) => check::records_deleted(partition, None, log_start.0),
            Err(refusal) => check::deletion_refused(partition, refusal, faulty),
        }
        let now = self.clock.now();
        let scale = self.options.groups.rewrite_scale;
        let Some(serving) = self.coordinating(number) else {
            return;
        };
        let Rewrite::Advancing { living_bytes } = serving.rewrite else {
            return;
        };
        serving.rewrite = Rewrite::Rests;
        if outcome.is_ok() {
            serving.plan.succeeded(living_bytes * scale);
            self.see(Seen::GroupsRewritten);
        } else {
            serving.plan.failed(now);
        }
    }

    /// Whether the log of each coordinator is as short as it is to be.
    pub(super) fn group_logs_are_short(&mut self) -> bool {
        let numbers = self.coordinator_numbers();
        numbers.into_iter().all(|number| {
            let now = self.clock.now();
            let scale = self.options.groups.rewrite_scale;
            let Some((core, log)) = self.serving(number) else {
                return self.is_excused(number);
            };
            let described = self.host(core).shard.describe(log).expect("it is open");
            let Some(serving) = self.coordinating(number) else {
                return false;
            };
            matches!(serving.rewrite, Rewrite::Rests)
                && !serving.plan.is_due(now, described.size_bytes * scale)
        })
    }

    /// The log of a coordinator was fenced: the coordinator ends with it, and whoever waits for it asks again.
    pub(super) fn end_coordinator(&mut self, number: u32) {
        self.process_mut().coordinators.remove(&number);
        let asked = std::mem::take(&mut self.asked).into_iter();
        let (ended, asked) =
            asked.partition(|(_, asked)| self.coordinator_of(&asked.group) == number);
        self.asked = asked;
        let ended: BTreeMap<u64, Asked> = ended;
        for member in &mut self.members {
            member.forget_answers(&ended);
        }
    }

    /// The process is gone, and with it all that its coordinators knew.
    pub(super) fn forget_coordinators(&mut self) {
        self.asked.clear();
        self.groups
            .values_mut()
            .for_each(GroupTruth::forget_process);
        for member in &mut self.members {
            member.forget_connection();
        }
    }

    /// Waits for an answer of a coordinator.
    pub(super) fn expect_group_answer(&mut self, asked: Asked) -> Waiter {
        let waiter = self.next_ticket();
        self.asked.insert(waiter, asked);
        Waiter(waiter)
    }
}
