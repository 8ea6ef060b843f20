//! Members of one group, and the broker's own coordinator, over networks that lose connections at any point. Members
//! come, leave, vanish, commit by hand at any time, and don't poll for longer than they may; the coordinator moves; appends
//! of its topic fail.
//!
//! Checked: no two members of one generation have one partition; what is handed out of a partition follows without a hole
//! from where it was begun; a committed offset never goes back, and never gets ahead of what was handed out; whoever waits
//! for a commit is told what came of it; and when the faults have stopped, the group is balanced and every record was handed
//! out.
//!
//! A run follows from its seed. `SIM_SEED=7` runs one, `SIM_RUNS=10000` more of them.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use support::Broker;
use support::groups::Groups;
use support::network::{Network, NetworkWeather};
use tackboard_client::protocol::group::{
    Assignor, GroupEvent, GroupMachine, NamedPartition, Pattern, Polled,
};
use tackboard_client::protocol::{Machine, Now, Random, earliest};
use tackboard_client::{
    ClientConfig, Compression, ConsumerConfig, Error, GroupConfig, Offset, OffsetReset, Protocol,
    Records, Start, TimestampMs,
};
use tackboard_logic::group::interface::GroupSettings;
use tackboard_schema::ErrorCode;
use tackboard_schema::record_batch::{BatchBuilder, BatchView};

const PARTITIONS: usize = 6;
const MEMBERS_MAX: usize = 5;

/// Nobody waits longer for a commit: by then the member has its answer, or is put out.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(50);

struct Member {
    machine: GroupMachine,
    network: Network,
    /// Of each partition that it has, the next offset that it is to be handed.
    next: BTreeMap<NamedPartition, Option<i64>>,
    /// It does not poll until then.
    busy_until: Now,
    /// Since when it waits for a commit of its own.
    commits_since: Option<Now>,
    is_leaving: bool,
    instance: Option<String>,
}

struct Simulation {
    random: Random,
    now: Now,
    broker: Broker,
    members: Vec<Member>,
    /// Of each client ever, its number.
    clients: usize,
    appended: Vec<i64>,
    /// What was handed out to anybody.
    seen: Vec<BTreeSet<i64>>,
    assignors: Vec<Assignor>,
    weather: NetworkWeather,
    rebalances: usize,
    /// Records that were handed out before.
    again: usize,
    /// Some members are static ones.
    has_static: bool,
    /// Members also commit by hand.
    has_commits: bool,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let weather = NetworkWeather {
            cut: random.below(20),
            // What was sent on a connection that ended may not arrive after all: a commit would overtake a later one.
            late: 0,
            refuse_dial: random.below(200),
        };
        let assignors = match random.below(3) {
            0 => vec![Assignor::Range, Assignor::CooperativeSticky],
            1 => vec![Assignor::RoundRobin],
            _ => vec![Assignor::CooperativeSticky],
        };
        let mut broker = Broker::new(&[("t", PARTITIONS)]);
        broker.groups = Some(Groups::new(GroupSettings {
            initial_rebalance_delay_ms: random.below(3_000) as i32,
            ..GroupSettings::default()
        }));
        Self {
            random,
            now: Now::default(),
            broker,
            members: Vec::new(),
            clients: 0,
            appended: vec![0; PARTITIONS],
            seen: vec![BTreeSet::new(); PARTITIONS],
            assignors,
            weather,
            rebalances: 0,
            again: 0,
            has_static: true,
            has_commits: seed.is_multiple_of(2),
        }
    }

    fn groups(&mut self) -> &mut Groups {
        self.broker.groups.as_mut().expect("this test has groups")
    }

    /// For some members a name that outlives them, and that nobody has at the moment.
    fn free_name(&mut self) -> Option<String> {
        let number = self.random.below(6);
        let name = format!("s{number}");
        let is_taken = |member: &Member| member.instance.as_ref() == Some(&name);
        let is_free = number < 3 && !self.members.iter().any(is_taken);
        (self.has_static && is_free).then_some(name)
    }

    fn come(&mut self) {
        self.clients += 1;
        let config = GroupConfig {
            session_timeout: Duration::from_secs(6),
            heartbeat_interval: Duration::from_secs(1),
            poll_interval_max: Duration::from_secs(15),
            assignors: self.assignors.clone(),
            auto_commit: Some(Duration::from_millis(300)),
            consumer: ConsumerConfig {
                offset_reset: OffsetReset::Earliest,
                partition_fetch_bytes_max: 400,
                prefetch_bytes_max: 4_000,
                poll_bytes_max: 300,
                client: ClientConfig {
                    metadata_age_max: Duration::from_secs(2),
                    ..ClientConfig::default()
                },
                ..ConsumerConfig::default()
            },
            ..GroupConfig::new("g")
        };
        let config = GroupConfig {
            instance: self.free_name(),
            ..config
        };
        let instance = config.instance.clone();
        let seed = self.random.draw();
        let mut machine = GroupMachine::new(&["broker:7400"], config, seed).unwrap();
        match self.random.below(2) {
            0 => machine.subscribe(["t"], self.now),
            _ => machine.subscribe_pattern(Pattern::new("t").unwrap(), self.now),
        }
        let mut network = Network::new(seed ^ 0x1234, Protocol::Native, self.weather);
        network.client = self.clients;
        network.fetch_wait = Duration::from_millis(100);
        network.now = self.now;
        self.members.push(Member {
            machine,
            network,
            next: BTreeMap::new(),
            busy_until: self.now,
            commits_since: None,
            is_leaving: false,
            instance,
        });
    }

    fn append(&mut self) {
        let index = self.random.below(PARTITIONS as u64) as usize;
        let mut builder = BatchBuilder::new(TimestampMs(0));
        for _ in 0..=self.random.below(9) {
            let value = self.appended[index].to_string();
            builder
                .append(TimestampMs(0), None, Some(value.as_bytes()), &[])
                .unwrap();
            self.appended[index] += 1;
        }
        let bytes = builder.finish(None, Compression::None);
        let partition = &mut self.broker.topics.get_mut("t").unwrap()[index];
        partition
            .append(&BatchView::first(&bytes).unwrap())
            .unwrap();
    }

    fn interfere(&mut self) {
        let count = self.members.len() as u64;
        let index = self.random.below(count.max(1)) as usize;
        match self.random.below(8) {
            0 | 1 if self.members.len() < MEMBERS_MAX => self.come(),
            // Gone without a word.
            2 if count > 1 => drop(self.members.remove(index)),
            3 if count > 1 => {
                let member = &mut self.members[index];
                member.machine.leave(true);
                member.is_leaving = true;
            }
            4 if count > 0 => {
                let wait = Duration::from_millis(self.random.below(25_000));
                self.members[index].busy_until = self.now.after(wait);
            }
            5 => self.groups().restart(),
            6 => {
                self.groups().end_store(Err(ErrorCode::NotEnoughReplicas));
            }
            _ => {}
        }
    }

    /// What a caller may do whether or not it should have polled long ago: it commits what it was handed, as far as it
    /// knows what it has, and perhaps waits for that.
    fn commit(&mut self, index: usize) {
        let is_awaited = self.random.below(2) == 0;
        let is_all = self.random.below(2) == 0;
        let member = &mut self.members[index];
        if member.commits_since.is_some() {
            return;
        }
        let handed_out = (member.next.iter())
            .filter_map(|(partition, next)| Some((partition.clone(), Offset((*next)?))));
        let offsets: Vec<_> = handed_out.collect();
        let asked = match is_all {
            true => member.machine.commit(is_awaited),
            false => member.machine.commit_offsets(&offsets, is_awaited),
        };
        match asked {
            Ok(()) => member.commits_since = is_awaited.then_some(self.now),
            Err(fault) => assert!(matches!(fault, Error::NotMember { .. }), "{fault}"),
        }
    }

    /// Whether the caller is within a commit.
    fn awaits_commit(&mut self, index: usize) -> bool {
        let member = &mut self.members[index];
        let Some(since) = member.commits_since else {
            return false;
        };
        if member.machine.commit_outcome().is_some() {
            member.commits_since = None;
        }
        let waited = self.now.since(since);
        assert!(waited < COMMIT_WAIT_MAX, "a commit hangs");
        member.commits_since.is_some()
    }

    fn poll(&mut self, index: usize) {
        let awaits_commit = self.awaits_commit(index);
        let member = &mut self.members[index];
        if member.busy_until > self.now || awaits_commit {
            return;
        }
        match member
            .machine
            .poll(self.now)
            .expect("nothing here is final")
        {
            Polled::Event(id, event) => {
                match &event {
                    GroupEvent::Assigned(partitions) => {
                        self.rebalances += 1;
                        for partition in partitions {
                            let before = member.next.insert(partition.clone(), None);
                            assert!(before.is_none(), "{partition} is assigned twice");
                        }
                    }
                    GroupEvent::Revoked(partitions) | GroupEvent::Lost(partitions) => {
                        for partition in partitions {
                            let before = member.next.remove(partition);
                            assert!(before.is_some(), "{partition} was not assigned");
                        }
                    }
                    GroupEvent::CommitFailed(_) => {}
                }
                member.machine.handled(id);
                let told: BTreeSet<_> = member.next.keys().cloned().collect();
                if !matches!(event, GroupEvent::CommitFailed(_)) {
                    assert_eq!(member.machine.assignment(), told, "as the caller was told");
                }
            }
            Polled::Records(chunks) => {
                let (records, left) = Records::open(chunks, 1 << 20, 1 << 20);
                member.machine.give_back(left);
                for record in &records.unwrap() {
                    let record = record.unwrap();
                    let key = NamedPartition {
                        topic: record.topic.clone(),
                        partition: record.partition,
                    };
                    let next = member.next.get_mut(&key);
                    let next = next.expect("records of what the caller has been told of");
                    let offset = record.offset.0;
                    assert_eq!(*next.get_or_insert(offset), offset, "{key}: no hole");
                    *next = Some(offset + 1);
                    let is_new = self.seen[key.partition.0 as usize].insert(offset);
                    self.again += usize::from(!is_new);
                }
            }
        }
    }

    /// One thing happens, or time passes to when something will.
    fn step(&mut self) {
        let count = self.members.len();
        let first = self.random.below(count.max(1) as u64) as usize;
        let mut is_busy = match self.random.below(2) {
            0 => self.groups().end_store(Ok(())),
            _ => false,
        };
        for step in 0..count {
            let index = (first + step) % count;
            if self.random.below(3) == 0 {
                self.poll(index);
            }
            if self.has_commits && self.random.below(10) == 0 {
                self.commit(index);
            }
            let member = &mut self.members[index];
            member.network.now = self.now;
            is_busy |= member.network.stir(&mut member.machine, &mut self.broker);
            if is_busy {
                break;
            }
        }
        self.deliver();
        self.members
            .retain(|member| !(member.is_leaving && member.machine.is_outside()));
        self.check();
        // A caller's poll is not seen by the network, so time is never still for long.
        if !is_busy || self.random.below(20) == 0 {
            self.pass_time(is_busy);
        }
    }

    fn deliver(&mut self) {
        for ((client, connection), answer) in self.groups().take_answers() {
            let is_it = |member: &&mut Member| member.network.client == client;
            if let Some(member) = self.members.iter_mut().find(is_it) {
                member.network.deliver(connection, answer);
            }
        }
    }

    fn pass_time(&mut self, is_busy: bool) {
        let soon = self
            .now
            .after(Duration::from_micros(1 + self.random.below(5_000)));
        let mut next = Some(self.now.after(Duration::from_millis(50)));
        for member in &self.members {
            next = earliest(next, member.machine.next_deadline());
            next = earliest(next, member.network.next_answer());
        }
        let groups = self.groups();
        next = earliest(next, groups.next_deadline());
        self.now = match is_busy {
            true => soon,
            false => next.unwrap_or(soon).max(soon),
        };
        let now = self.now;
        self.groups().set_now(now);
    }

    fn check(&mut self) {
        let mut held: BTreeMap<(i32, NamedPartition), usize> = BTreeMap::new();
        for member in &self.members {
            let Some(generation) = member.machine.generation() else {
                continue;
            };
            for partition in member.machine.assignment() {
                let before = held.insert((generation, partition.clone()), member.network.client);
                assert_eq!(before, None, "{partition} in generation {generation}");
            }
        }
        for index in 0..PARTITIONS {
            let groups = self.broker.groups.as_ref().expect("this test has groups");
            let Some(committed) = groups.committed("t", index as i32) else {
                continue;
            };
            if let Some(last) = committed.0.checked_sub(1).filter(|last| *last >= 0) {
                assert!(self.seen[index].contains(&last), "t-{index}: {committed}");
            }
        }
    }

    fn is_all_committed(&self) -> bool {
        (0..PARTITIONS).all(|index| {
            let groups = self.broker.groups.as_ref().expect("this test has groups");
            let committed = groups.committed("t", index as i32);
            committed.map_or(0, |offset| offset.0) == self.appended[index]
        })
    }

    fn is_settled(&self) -> bool {
        let shares = self
            .members
            .iter()
            .map(|member| member.machine.assignment().len());
        let shares: Vec<usize> = shares.collect();
        let total: usize = shares.iter().sum();
        let is_even = shares.iter().max() <= shares.iter().min().map(|least| least + 1).as_ref();
        let all_seen =
            (0..PARTITIONS).all(|index| self.seen[index].len() as i64 == self.appended[index]);
        total == PARTITIONS && is_even && all_seen && self.is_all_committed()
    }

    fn run(&mut self) -> usize {
        self.come();
        for _ in 0..4_000 {
            match self.random.below(80) {
                0 => self.interfere(),
                1..6 => self.append(),
                _ => {}
            }
            self.step();
        }
        self.weather = NetworkWeather::default();
        if self.members.iter().all(|member| member.is_leaving) {
            self.come();
        }
        for member in &mut self.members {
            member.network.weather = NetworkWeather::default();
            member.busy_until = self.now;
        }
        let mut steps = 0;
        while !self.is_settled() {
            steps += 1;
            if steps >= 60_000 {
                let shares: Vec<_> = (self.members.iter())
                    .map(|member| (member.machine.generation(), member.machine.assignment()))
                    .collect();
                let group = self.groups().describe("g");
                panic!("not settled: {group:?}, {shares:?}");
            }
            self.step();
        }
        self.rebalances
    }

    fn leave(&mut self) {
        let index = self.random.below(self.members.len() as u64) as usize;
        let member = &mut self.members[index];
        member.machine.leave(true);
        member.is_leaving = true;
    }

    /// Steps until it is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..60_000 {
            if is_so(self) {
                return;
            }
            self.step();
        }
        panic!("never: {what}");
    }

    /// A group in fair weather.
    fn calm(seed: u64) -> Self {
        let mut simulation = Self::new(seed);
        simulation.weather = NetworkWeather::default();
        simulation.has_static = false;
        simulation.has_commits = false;
        simulation
    }
}

fn run_seed(seed: u64) -> usize {
    std::panic::catch_unwind(|| Simulation::new(seed).run()).unwrap_or_else(|panic| {
        eprintln!("SIM_SEED={seed}");
        std::panic::resume_unwind(panic);
    })
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok();
    text.map(|text| text.parse().expect("a number"))
}

#[test]
fn a_group_reads_everything_whatever_happens_to_its_members() {
    let rebalances: usize = match number("SIM_SEED") {
        Some(seed) => run_seed(seed),
        None => (0..number("SIM_RUNS").unwrap_or(25)).map(run_seed).sum(),
    };
    assert!(rebalances > 50 || number("SIM_SEED").is_some());
}

#[test]
fn members_that_come_and_leave_in_order_hand_over_without_reading_anything_twice() {
    for seed in 0..10 {
        let mut simulation = Simulation::calm(seed);
        simulation.come();
        for _ in 0..3_000 {
            match simulation.random.below(300) {
                0 if simulation.members.len() < MEMBERS_MAX => simulation.come(),
                1 if simulation.members.len() > 1 => simulation.leave(),
                2..20 => simulation.append(),
                _ => {}
            }
            simulation.step();
        }
        if simulation.members.iter().all(|member| member.is_leaving) {
            simulation.come();
        }
        simulation.until("everything is read", Simulation::is_settled);
        assert!(simulation.rebalances > 2, "seed {seed}");
        assert_eq!(simulation.again, 0, "seed {seed}");
    }
}

#[test]
fn a_topic_that_comes_to_match_the_pattern_is_read_from_its_start() {
    let mut simulation = Simulation::calm(1);
    simulation.come();
    let now = simulation.now;
    let member = &mut simulation.members[0];
    member
        .machine
        .subscribe_pattern(Pattern::new("t|later-.*").unwrap(), now);
    simulation.until("all of t", |it| {
        it.members[0].machine.assignment().len() == PARTITIONS
    });
    let topics = &mut simulation.broker.topics;
    topics.insert("later-one".into(), vec![support::Partition::default()]);
    topics.insert("another".into(), vec![support::Partition::default()]);
    simulation.until("one more", |it| {
        it.members[0].machine.assignment().len() == PARTITIONS + 1
    });
    let later = NamedPartition::new("later-one", 0);
    assert!(simulation.members[0].machine.assignment().contains(&later));
}

#[test]
fn a_seek_when_partitions_are_assigned_counts_more_than_what_is_committed() {
    let mut simulation = Simulation::calm(2);
    (0..40).for_each(|_| simulation.append());
    simulation.come();
    simulation.until("everything is committed", Simulation::is_settled);
    simulation.leave();
    simulation.until("nobody is left", |it| it.members.is_empty());
    simulation.come();
    let partition = NamedPartition::new("t", 3);
    for _ in 0..60_000 {
        simulation.step();
        let member = &mut simulation.members[0];
        if member.machine.assignment().contains(&partition) {
            break;
        }
    }
    // Told within the poll of the event; what follows is what a caller sees then.
    let start = Start::Offset(Offset(1));
    let member = &mut simulation.members[0];
    member.next.insert(partition.clone(), None);
    (member.machine)
        .seek(&partition.topic, partition.partition, start)
        .unwrap();
    let end = simulation.appended[3];
    simulation.until("it is read again", |it| {
        it.members[0].next[&partition] == Some(end)
    });
    assert_eq!(simulation.again as i64, end - 1);
}

#[test]
fn where_nothing_is_committed_the_caller_is_asked_if_it_wants_to_be() {
    let mut simulation = Simulation::calm(3);
    (0..40).for_each(|_| simulation.append());
    simulation.come();
    let config = GroupConfig {
        consumer: ConsumerConfig {
            offset_reset: OffsetReset::Fail,
            ..ConsumerConfig::default()
        },
        ..GroupConfig::new("g")
    };
    let mut machine = GroupMachine::new(&["broker:7400"], config, 7).unwrap();
    machine.subscribe(["t"], simulation.now);
    simulation.members[0].machine = machine;
    let mut fault = None;
    for _ in 0..60_000 {
        let member = &mut simulation.members[0];
        member.busy_until = simulation.now.after(Duration::from_secs(1));
        match member.machine.poll(simulation.now) {
            Ok(Polled::Event(id, _)) => member.machine.handled(id),
            Ok(Polled::Records(chunks)) => assert!(chunks.is_empty()),
            Err(found) => {
                fault = Some(found);
                break;
            }
        }
        simulation.step();
    }
    let told = fault.is_some_and(|fault| matches!(fault, Error::NothingCommitted { .. }));
    assert!(told);
}

#[test]
fn what_the_caller_commits_is_not_taken_back_by_what_is_committed_by_itself() {
    let mut simulation = Simulation::calm(5);
    (0..40).for_each(|_| simulation.append());
    simulation.come();
    let partition = NamedPartition::new("t", 3);
    let handed_out = |it: &Simulation| it.members[0].next.get(&partition).copied().flatten();
    simulation.until("something is handed out", |it| handed_out(it).is_some());
    let next = Offset(handed_out(&simulation).unwrap());
    let member = &mut simulation.members[0];
    // The poll that handed it out was the last: by itself nothing of it would be committed.
    member.busy_until = simulation.now.after(Duration::from_secs(3_600));
    let offsets = [(partition.clone(), next)];
    member.machine.commit_offsets(&offsets, true).unwrap();
    member.machine.leave(false);
    member.is_leaving = true;
    for _ in 0..60_000 {
        let Some(member) = simulation.members.first_mut() else {
            break;
        };
        if let Some((id, _)) = member.machine.poll_event() {
            member.machine.handled(id);
        }
        simulation.step();
    }
    assert!(simulation.members.is_empty());
    assert_eq!(simulation.groups().committed("t", 3), Some(next));
}

#[test]
fn a_member_that_was_put_out_commits_nothing_of_what_it_had() {
    let mut simulation = Simulation::calm(8);
    (0..40).for_each(|_| simulation.append());
    simulation.come();
    simulation.until("everything is committed", Simulation::is_settled);
    (0..40).for_each(|_| simulation.append());
    let ends = simulation.appended.clone();
    simulation.until("more is handed out", |it| {
        (it.members[0].next.iter()).all(|(one, next)| *next == Some(ends[one.partition.0 as usize]))
    });
    // It works on that for so long that another comes and does it meanwhile, and more.
    simulation.members[0].busy_until = simulation.now.after(Duration::from_secs(3_600));
    simulation.come();
    simulation.until("the other has everything", |it| {
        it.members[1].machine.assignment().len() == PARTITIONS
    });
    (0..40).for_each(|_| simulation.append());
    simulation.until(
        "the other has committed everything",
        Simulation::is_all_committed,
    );
    let member = &mut simulation.members[0];
    let own = NamedPartition::new("t", 3);
    assert!(member.machine.assignment().contains(&own), "it wasn't told");
    for is_awaited in [false, true] {
        let all = member.machine.commit(is_awaited);
        assert!(matches!(all, Err(Error::NotMember { .. })), "{all:?}");
        let one = [(own.clone(), Offset(1))];
        let one = member.machine.commit_offsets(&one, is_awaited);
        assert!(matches!(one, Err(Error::NotMember { .. })), "{one:?}");
    }
    // The coordinator's double fails if an offset goes back.
    member.busy_until = simulation.now;
    simulation.until("both have something", Simulation::is_settled);
    assert!(!simulation.members[0].machine.assignment().is_empty());
}
