//! One broker, its disk, its clients and all that goes wrong, driven by one queue of events in virtual time.
//!
//! The broker is the real [`Shard`](tackboard_logic::shard::Shard), recovery and ledger; the files of this module stand in for
//! its driver and for the world around it:
//! - [`boot`]: from the files on disk to serving shards, [`crash`]: and the ways back;
//! - [`turn`]: inputs in, effects out, [`io`]: what becomes of effects that take time;
//! - [`producing`], [`consuming`]: the clients;
//! - [`history`]: reads that wait for their turn;
//! - [`coordinating`], [`grouping`]: coordinators of consumer groups, and members;
//! - [`truncating`]: ends of logs are cut off, [`deleting`]: and beginnings;
//! - [`chaos`]: what happens out of the blue, [`heal`]: how it must end.
//!
//! Every decision is drawn from one stream of random numbers, so a seed replays exactly.

mod boot;
mod chaos;
mod consuming;
mod coordinating;
mod crash;
mod deleting;
mod grouping;
mod heal;
mod history;
mod io;
mod process;
mod producing;
mod truncating;
mod turn;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tackboard_logic::log::recovery::RestartClass;
use tackboard_schema::record_batch::BatchBuilder;
use tackboard_schema::{PartitionIndex, TimestampMs, TopicId, TopicPartition};

use crate::clock::Clock;
use crate::coverage::{Coverage, Event as Seen};
use crate::disk::Disk;
use crate::model::{GroupTopic, GroupTruth, Partition};
use crate::options::Options;
use crate::rng::Rng;

use consuming::Consumer;
use grouping::{Asked, Member};
use process::Process;
use producing::{Producer, Waiting};

/// Prints what happens if the run is traced.
macro_rules! trace {
    ($world:expr, $($what:tt)*) => {
        if $world.traced {
            eprintln!("{:>8} {:>12} {}", $world.steps, $world.clock.now_us(), format_args!($($what)*));
        }
    };
}
pub(crate) use trace;

/// So many buffers of released chunks are kept.
const SPARE_BUFFERS_MAX: usize = 64;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A core has inputs.
    Turn { incarnation: u32, core: usize },
    /// A core is told the time.
    Tick { incarnation: u32, core: usize },
    /// A core is told how much space is free.
    FreeSpace { incarnation: u32, core: usize },
    /// A step of an I/O operation is over.
    Io { incarnation: u32, operation: u64 },
    /// A producer acts.
    Producer(usize),
    /// A consumer acts.
    Consumer(usize),
    /// A coordinator is told the time, or goes on reading.
    Coordinator { incarnation: u32, number: u32 },
    /// A coordinator is told of an append that has ended.
    Stored { incarnation: u32, number: u32 },
    /// A member of a group acts.
    Member(usize),
    /// Somebody who is no member acts on groups.
    Operator,
    /// A process is started.
    Boot,
}

/// Everything there is.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) rng: Rng,
    pub(crate) clock: Clock,
    pub(crate) disk: Disk,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) coverage: Coverage,
    pub(crate) steps: u64,
    pub(crate) traced: bool,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    process: Option<Process>,
    incarnation: u32,
    /// Times that coming up was cut short since it last succeeded.
    deaths_in_a_row: u32,
    /// The worst end of a process since the last complete start.
    last_exit: RestartClass,
    producers: Vec<Producer>,
    consumers: Vec<Consumer>,
    waiting: BTreeMap<u64, Waiting>,
    next_ticket: u64,
    next_batch: u64,
    next_producer_id: i64,
    /// Partitions of the internal topic.
    internal: Vec<u32>,
    /// What is true of groups, by name.
    groups: BTreeMap<String, GroupTruth>,
    members: Vec<Member>,
    /// What each group reads.
    reads: Vec<GroupTopic>,
    group_topics: u64,
    /// What coordinators have been asked and not answered.
    asked: BTreeMap<u64, Asked>,
    /// The number of the last commit.
    next_commit: i64,
    builder: BatchBuilder,
    /// Bad things happen.
    chaos: bool,
    /// Producers make new batches.
    producing: bool,
    /// Clients rest until then.
    rest_until_us: u64,
    /// Buffers of chunks that were released.
    spare: Vec<Vec<u8>>,
}

impl World {
    /// The world of a seed, with a process that is about to start.
    pub(crate) fn new(seed: u64, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let options = Options::draw(&mut rng);
        let mut world = Self {
            disk: Disk::new(options.disk_bytes),
            options,
            rng,
            clock: Clock::new(),
            partitions: Vec::new(),
            coverage: Coverage::default(),
            steps: 0,
            traced,
            queue: BinaryHeap::new(),
            scheduled: 0,
            process: None,
            incarnation: 0,
            deaths_in_a_row: 0,
            last_exit: RestartClass::Clean,
            producers: Vec::new(),
            consumers: Vec::new(),
            waiting: BTreeMap::new(),
            next_ticket: 0,
            next_batch: 0,
            next_producer_id: 0,
            internal: Vec::new(),
            groups: BTreeMap::new(),
            members: Vec::new(),
            reads: Vec::new(),
            group_topics: 0,
            asked: BTreeMap::new(),
            next_commit: 0,
            builder: BatchBuilder::new(TimestampMs(0)),
            chaos: true,
            producing: true,
            rest_until_us: 0,
            spare: Vec::new(),
        };
        trace!(world, "{:?}", world.options);
        world.populate();
        world
    }

    /// Runs until so many steps were taken, then heals and audits.
    pub(crate) fn run(&mut self, steps: u64) {
        while self.steps < steps {
            self.next_event();
            if self.chaos {
                self.wreak_chaos();
            }
        }
        self.heal_and_audit();
    }

    fn populate(&mut self) {
        for _ in 0..self.options.partitions {
            self.add_partition();
        }
        for _ in 0..self.options.producers {
            self.add_producer();
        }
        for _ in 0..self.options.consumers {
            self.add_consumer();
        }
        self.populate_groups();
        self.schedule(0, Event::Boot);
    }

    fn add_partition(&mut self) -> u32 {
        let number = self.partitions.len() as u32;
        let mut topic = [0; 16];
        topic[12..].copy_from_slice(&(number + 1).to_be_bytes());
        let id = TopicPartition {
            topic: TopicId(topic),
            partition: PartitionIndex(0),
        };
        let config = self.options.draw_log(&mut self.rng);
        trace!(self, "partition {number} {config:?}");
        self.partitions
            .push(Partition::new(number, id, u64::from(number), config));
        number
    }

    /// Puts an event into the queue; of two at one time the first scheduled comes first.
    fn schedule(&mut self, after_us: u64, event: Event) {
        self.scheduled += 1;
        let at = self.clock.now_us() + after_us;
        self.queue.push(Reverse((at, self.scheduled, event)));
    }

    fn next_event(&mut self) {
        let Some(Reverse((at, _, event))) = self.queue.pop() else {
            panic!("nothing will ever happen again");
        };
        self.clock.advance_to(at);
        match event {
            Event::Producer(producer) => self.produce(producer),
            Event::Consumer(consumer) => self.consume(consumer),
            Event::Member(member) => self.act_as_member(member),
            Event::Operator => self.act_as_operator(),
            Event::Boot => self.boot(),
            Event::Turn { incarnation, .. }
            | Event::Tick { incarnation, .. }
            | Event::FreeSpace { incarnation, .. }
            | Event::Io { incarnation, .. }
            | Event::Coordinator { incarnation, .. }
            | Event::Stored { incarnation, .. }
                if incarnation != self.incarnation || self.process.is_none() => {}
            Event::Turn { core, .. } => self.turn(core),
            Event::Tick { core, .. } => self.tick(core),
            Event::FreeSpace { core, .. } => self.tell_free_space(core),
            Event::Io { operation, .. } => self.io_step(operation),
            Event::Coordinator { number, .. } => self.look_after_coordinator(number),
            Event::Stored { number, .. } => self.tell_stored(number),
        }
    }

    /// A partition that exists, if there is one; not of the internal topic, which the broker lets nobody change.
    fn pick_partition(&mut self) -> Option<u32> {
        let live = self.live_partitions();
        let live: Vec<u32> = live
            .filter(|number| !self.partitions[*number as usize].internal)
            .collect();
        (!live.is_empty()).then(|| self.rng.pick(&live))
    }

    fn live_partitions(&self) -> impl Iterator<Item = u32> {
        self.partitions
            .iter()
            .filter(|partition| !partition.deleted)
            .map(|partition| partition.number)
    }

    fn partition(&mut self, number: u32) -> &mut Partition {
        &mut self.partitions[number as usize]
    }

    /// A buffer with whatever was in it before.
    fn spare_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn keep_buffer(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(buffer);
        }
    }

    fn see(&mut self, event: Seen) {
        self.coverage.hit(event);
    }
}
