//! One stage from its beginning to its result, as the main thread sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tackboard_client::Protocol;
use tackboard_schema::Acks;

use super::broker::Broker;
use super::core::LoadCores;
use super::order::{CoreCounters, StageControl, StageOrder};
use super::outcome::{ConsumerOutcome, CoreMessage, CoreOutcome, ProducerOutcome, Snapshot, Span};
use super::spec::{StageSpec, Topic};
use super::topic::Topics;
use crate::cli::plan::Mode;
use crate::machine::interrupt::Interrupt;
use crate::measure::clock::monotonic_ns;
use crate::measure::process::ThreadUse;
use crate::measure::steal::CpuTicks;
use crate::measure::timeline::{Interval, Timeline};
use crate::report::progress::{Glimpse, Progress};
use crate::report::results::{BrokerCost, Cost, Flow, ScheduleReport, StageResult};
use crate::verdict::judge::Verdict;
use crate::workload::schedule::Pace;

/// Time between two looks at the load cores.
const TICK: Duration = Duration::from_millis(100);

/// Time between two snapshots of their histograms.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(500);

/// Time that an interrupted stage has to end in order.
const INTERRUPTED_MAX: Duration = Duration::from_secs(3);

/// A stage is void when more than 1 % of its events left later than this.
const LAG_P99_NS_MAX: u64 = 10_000_000;

/// What all stages of a run share.
pub struct Bench<'a> {
    /// The load cores.
    pub cores: &'a LoadCores,
    /// The broker.
    pub broker: &'a Broker,
    /// Whether it is time to stop.
    pub interrupt: &'a Interrupt,
}

/// What came of a stage on all load cores.
#[derive(Default)]
pub struct Collected {
    /// All latencies.
    pub latencies: Snapshot,
    /// Rates and tails over time.
    pub timeline: Timeline,
    /// All producers.
    pub producers: Vec<ProducerOutcome>,
    /// All consumers.
    pub consumers: Vec<ConsumerOutcome>,
    /// CPU seconds of the load cores.
    pub cpu_seconds: f64,
    /// How the busiest of them spent its time.
    pub busiest: Option<ThreadUse>,
}

/// A stage that is over, with everything that is needed to go on with its topic.
pub struct StageRun<'a> {
    /// What came of it.
    pub result: StageResult,
    /// What the load cores collected.
    pub collected: Collected,
    /// What they were told.
    pub order: Arc<StageOrder>,
    /// Its topic, which is still there.
    pub topic: Topic,
    /// Asks about it.
    pub topics: Topics<'a>,
}

impl Collected {
    /// Connections that were lost and made again.
    pub fn reconnects(&self) -> u64 {
        let producers = self.producers.iter().map(|producer| producer.reconnects);
        let consumers = self.consumers.iter().map(|consumer| consumer.reconnects);
        producers.chain(consumers).sum()
    }
}

impl<'a> Bench<'a> {
    /// Runs a stage: makes its topic, sends and reads, and says what came of it. A topic that nobody named is removed.
    pub fn run(&self, spec: &StageSpec, progress: &mut Progress) -> Result<StageResult> {
        let mut run = self.run_and_keep(spec, progress)?;
        if run.topic.is_temporary && !spec.plan.keep {
            run.topics.remove(&run.topic)?;
        }
        Ok(run.result)
    }

    /// As [`Bench::run`], but the topic stays.
    pub fn run_and_keep(&self, spec: &StageSpec, progress: &mut Progress) -> Result<StageRun<'a>> {
        let brokers = self.broker.addresses();
        let plan = &spec.plan;
        let mut topics = Topics::new(brokers.clone(), plan.protocol, plan.give_up, self.interrupt);
        let topic = match (spec.plan.mode, &spec.plan.topic) {
            (Mode::Consume, Some(name)) => topics.existing(name)?,
            (_, name) => topics.make(name.as_deref(), plan.partitions, plan.durability)?,
        };
        if plan.protocol == Protocol::Kafka && plan.mode != Mode::Consume && !topic.is_ours {
            eprintln!(
                "note  topic {} exists: its own durability is what holds",
                topic.name
            );
        }
        if spec.plan.mode != Mode::Consume
            && let Err(refusal) = topics.check_acks(&topic, spec.plan.acks)
        {
            if topic.is_ours {
                topics.remove(&topic)?;
            }
            return Err(refusal);
        }
        let stats_before = self.broker.stats();
        let ticks_before = CpuTicks::read();
        let order = Arc::new(spec.order(brokers, &topic, self.cores.count())?);
        if spec.plan.mode == Mode::Consume && spec.plan.duration.is_none() {
            let _ = order.control.ends.set(topics.ends(&topic)?);
        }
        let collected = self.carry_out(&order, spec, &topic, &mut topics, progress)?;
        let mut result = result(spec, &topic, &order, &collected, self.cores.count());
        result.cost.broker = stats_before
            .zip(self.broker.stats())
            .map(|(before, after)| BrokerCost {
                cpu_seconds: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
                syncs: after.syncs - before.syncs,
            });
        result.stolen_share = ticks_before
            .zip(CpuTicks::read())
            .and_then(|(before, after)| after.stolen_share_since(before));
        if self.reading_was_interrupted(&order) {
            // What was not read because nobody waited for it is not lost.
            result.verdict = None;
            result.cut_short = Some("interrupted before everything was read back".into());
        }
        Ok(StageRun {
            result,
            collected,
            order,
            topic,
            topics,
        })
    }

    /// Whether the readers of a stage that is over were stopped before they had read everything.
    pub fn reading_was_interrupted(&self, order: &StageOrder) -> bool {
        self.interrupt.raised() && order.control.stop_reading.load(Ordering::Relaxed)
    }

    /// Has the load cores do their work and waits for them.
    pub fn carry_out(
        &self,
        order: &Arc<StageOrder>,
        spec: &StageSpec,
        topic: &Topic,
        topics: &mut Topics<'_>,
        progress: &mut Progress,
    ) -> Result<Collected> {
        let counters = self.cores.begin(order)?;
        let mut watch = Watch::new(order, spec, counters);
        let mut collected = Collected::default();
        let mut running = self.cores.count();
        while running > 0 {
            match self.cores.messages().recv_timeout(TICK) {
                Ok(CoreMessage::Snapshot(snapshot)) => {
                    watch.take_snapshot(&snapshot, &mut collected.latencies)
                }
                Ok(CoreMessage::Done(outcome)) => {
                    running -= 1;
                    take_outcome(*outcome, &mut collected);
                }
                Err(flume::RecvTimeoutError::Timeout) => {}
                Err(flume::RecvTimeoutError::Disconnected) => {
                    bail!("a load core ended before its stage did")
                }
            }
            watch.tick(
                &order.control,
                self.interrupt,
                &mut collected.timeline,
                progress,
            );
            if watch.needs_ends() {
                topics.moved(watch.moved_at);
                // Everything is acknowledged or given up: what is there now is all there will be.
                match topics.ends(topic) {
                    Ok(ends) => {
                        let _ = order.control.ends.set(ends);
                    }
                    Err(error) => {
                        // Without known ends consumers would wait for ever.
                        order.control.stop_reading.store(true, Ordering::Relaxed);
                        progress.clear();
                        eprintln!(
                            "warning  where the partitions end could not be asked: {error:#}"
                        );
                    }
                }
            }
        }
        watch.finish(&mut collected.timeline);
        topics.moved(watch.moved_at);
        progress.clear();
        Ok(collected)
    }
}

fn take_outcome(outcome: CoreOutcome, collected: &mut Collected) {
    collected.producers.extend(outcome.producers);
    collected.consumers.extend(outcome.consumers);
    collected.cpu_seconds += outcome.cpu_seconds;
    let both = collected.busiest.into_iter().chain(outcome.thread_use);
    collected.busiest = both.max_by(|a, b| a.busy.total_cmp(&b.busy));
}

/// Follows a running stage: rates, snapshots, its end.
struct Watch<'a> {
    order: &'a StageOrder,
    spec: &'a StageSpec,
    counters: Vec<Arc<CoreCounters>>,
    /// Latencies since the last interval ended.
    recent: Snapshot,
    asked_at: Instant,
    /// Time, acknowledged and read events at the end of the last interval.
    mark: (u64, u64, u64),
    last: Interval,
    interrupted_at: Option<Instant>,
    /// Acknowledged and read events together, and when they last became more.
    moved: u64,
    moved_at: Instant,
    ends_asked: bool,
}

impl<'a> Watch<'a> {
    fn new(order: &'a StageOrder, spec: &'a StageSpec, counters: Vec<Arc<CoreCounters>>) -> Self {
        Self {
            order,
            spec,
            counters,
            recent: Snapshot::default(),
            asked_at: Instant::now(),
            mark: (order.start_ns, 0, 0),
            last: Interval::default(),
            interrupted_at: None,
            moved: 0,
            moved_at: Instant::now(),
            ends_asked: false,
        }
    }

    fn sum(&self, counter: impl Fn(&CoreCounters) -> &std::sync::atomic::AtomicU64) -> u64 {
        self.counters
            .iter()
            .map(|counters| counter(counters).load(Ordering::Relaxed))
            .sum()
    }

    fn take_snapshot(&mut self, snapshot: &Snapshot, all: &mut Snapshot) {
        self.recent.add(snapshot);
        all.add(snapshot);
    }

    /// All producers are done and nobody has asked yet where the partitions end.
    fn needs_ends(&mut self) -> bool {
        let done = self.sum(|counters| &counters.producers_done)
            >= u64::from(self.order.expected.producers);
        let needed = self.order.sends && self.order.reads && done && !self.ends_asked;
        self.ends_asked |= needed;
        needed
    }

    fn tick(
        &mut self,
        control: &StageControl,
        interrupt: &Interrupt,
        timeline: &mut Timeline,
        progress: &mut Progress,
    ) {
        if interrupt.raised() {
            control.stop_sending.store(true, Ordering::Relaxed);
            let since = *self.interrupted_at.get_or_insert_with(Instant::now);
            if since.elapsed() > INTERRUPTED_MAX || !self.order.sends {
                control.stop_reading.store(true, Ordering::Relaxed);
            }
        }
        if !self.order.sends && monotonic_ns() >= self.order.stop_ns {
            control.stop_reading.store(true, Ordering::Relaxed);
        }
        let moved =
            self.sum(|counters| &counters.acknowledged) + self.sum(|counters| &counters.read);
        if moved > self.moved {
            (self.moved, self.moved_at) = (moved, Instant::now());
        }
        if self.asked_at.elapsed() >= SNAPSHOT_EVERY {
            self.asked_at = Instant::now();
            self.end_interval(timeline);
            control.ask_for_snapshot();
        }
        progress.draw(&self.spec.title, self.glimpse());
    }

    /// Closes the interval that the snapshots received so far belong to.
    fn end_interval(&mut self, timeline: &mut Timeline) {
        let now_ns = monotonic_ns();
        let (at_ns, acknowledged, read) = self.mark;
        if now_ns <= at_ns {
            return;
        }
        let seconds = (now_ns - at_ns) as f64 / 1e9;
        self.mark = (
            now_ns,
            self.sum(|counters| &counters.acknowledged),
            self.sum(|counters| &counters.read),
        );
        let recent = self.recent.take();
        self.last = Interval {
            seconds: (now_ns - self.order.start_ns.min(now_ns)) as f64 / 1e9,
            acknowledged_per_second: (self.mark.1 - acknowledged) as f64 / seconds,
            read_per_second: (self.mark.2 - read) as f64 / seconds,
            produce_p99_ms: recent.produce.percentile_ns(99.0) as f64 / 1e6,
            end_to_end_p99_ms: recent.end_to_end.percentile_ns(99.0) as f64 / 1e6,
            lag_max_ms: recent.lag.max_ns() as f64 / 1e6,
        };
        timeline.push(self.last);
    }

    fn finish(&mut self, timeline: &mut Timeline) {
        self.end_interval(timeline);
    }

    fn glimpse(&self) -> Glimpse {
        let by_count = self.sum(|counters| &counters.sent) as f64 / self.order.count.max(1) as f64;
        let elapsed_ns = monotonic_ns().saturating_sub(self.order.start_ns) as f64;
        let by_time = match self.spec.send_time() {
            Some(time) => elapsed_ns / time.as_nanos().max(1) as f64,
            None => 0.0,
        };
        let latency_ms = if self.order.sends {
            self.last.produce_p99_ms
        } else {
            self.last.end_to_end_p99_ms
        };
        Glimpse {
            done: by_time.max(if self.order.sends { by_count } else { 0.0 }),
            acknowledged_per_second: self.last.acknowledged_per_second,
            read_per_second: self.last.read_per_second,
            p99_ns: (latency_ms * 1e6) as u64,
            lag_ns: self
                .order
                .pace
                .is_open_loop()
                .then_some((self.last.lag_max_ms * 1e6) as u64),
        }
    }
}

fn result(
    spec: &StageSpec,
    topic: &Topic,
    order: &StageOrder,
    collected: &Collected,
    cores: u32,
) -> StageResult {
    let produced = order.sends.then(|| {
        let mut span = Span::default();
        collected
            .producers
            .iter()
            .for_each(|producer| span.cover(producer.span));
        Flow {
            events: collected
                .producers
                .iter()
                .map(|producer| producer.events)
                .sum(),
            bytes: collected
                .producers
                .iter()
                .map(|producer| producer.bytes)
                .sum(),
            seconds: span.seconds(),
        }
    });
    let read = order.reads.then(|| {
        let mut span = Span::default();
        collected
            .consumers
            .iter()
            .for_each(|consumer| span.cover(consumer.span));
        Flow {
            events: collected
                .consumers
                .iter()
                .map(|consumer| consumer.events)
                .sum(),
            bytes: collected
                .consumers
                .iter()
                .map(|consumer| consumer.bytes)
                .sum(),
            seconds: span.seconds(),
        }
    });
    StageResult {
        title: spec.title.clone(),
        settings: spec.settings(topic, cores),
        plan: spec.plan.shape(),
        produced,
        read,
        produce_latency: collected.latencies.produce.clone(),
        end_to_end_latency: collected.latencies.end_to_end.clone(),
        schedule: (order.sends && order.pace.is_open_loop()).then(|| schedule(order, collected)),
        timeline: collected.timeline.clone(),
        verdict: order
            .checks
            .then(|| verdict(order, &collected.producers, &collected.consumers)),
        cost: Cost {
            broker: None,
            load_cpu_seconds: collected.cpu_seconds,
            busiest: collected.busiest,
        },
        stolen_share: None,
        reconnects: collected.reconnects(),
        cut_short: cut_short(spec, order, collected),
        notes: notes(order, collected),
    }
}

/// Compares what all producers had acknowledged with what all consumers read.
pub fn verdict(
    order: &StageOrder,
    producers: &[ProducerOutcome],
    consumers: &[ConsumerOutcome],
) -> Verdict {
    let mut verdict = Verdict::default();
    for checker in consumers.iter().flat_map(|consumer| &consumer.partitions) {
        verdict.faults.merge(checker.faults().clone());
    }
    for partition in 0..order.expected.partitions {
        let checker = consumers
            .iter()
            .flat_map(|c| &c.partitions)
            .find(|checker| checker.partition() == partition);
        let nothing = Default::default();
        for producer in producers {
            let number = producer.producer as u16;
            let read = checker.map_or(&nothing, |checker| &checker.logs()[usize::from(number)]);
            if let Some(acked) = producer.logs.get(partition as usize) {
                verdict.add(partition, number, acked, read);
            }
        }
    }
    verdict
}

fn schedule(order: &StageOrder, collected: &Collected) -> ScheduleReport {
    let sent = collected
        .producers
        .iter()
        .flat_map(|producer| &producer.logs)
        .map(|log| log.sent)
        .sum::<u64>();
    let scheduled = match order.pace {
        Pace::Constant(rate) if order.stop_ns < u64::MAX => {
            (rate * (order.stop_ns - order.start_ns) as f64 / 1e9).round() as u64
        }
        _ => sent,
    };
    let lag = collected.latencies.lag.clone();
    let held_back = collected
        .producers
        .iter()
        .any(|producer| producer.held_back > 0);
    let is_cut = collected.producers.iter().any(|producer| producer.is_cut);
    let void = if held_back || is_cut {
        Some("the broker took the events more slowly than they fell due, and the producers' buffers were full".into())
    } else if lag.percentile_ns(99.0) > LAG_P99_NS_MAX {
        Some("the load generator was late: more than 1 % of the events left more than 10 ms after they were due".into())
    } else {
        None
    };
    ScheduleReport {
        lag,
        due: scheduled.min(order.count).max(sent),
        sent,
        void,
    }
}

/// Why a stage ended before it was meant to.
pub fn cut_short(spec: &StageSpec, order: &StageOrder, collected: &Collected) -> Option<String> {
    let (count, by_disk) = spec.count();
    let sent = collected
        .producers
        .iter()
        .flat_map(|producer| &producer.logs)
        .map(|log| log.sent)
        .sum::<u64>();
    if by_disk && order.sends && sent >= count {
        return Some("a quarter of the free disk space was used".into());
    }
    let gave_up = collected.producers.iter().any(|producer| producer.gave_up)
        || collected.consumers.iter().any(|consumer| consumer.gave_up);
    gave_up.then(|| {
        format!(
            "nothing moved for {} s, so it gave up",
            order.give_up.as_secs()
        )
    })
}

/// What is worth knowing beside the figures, once each: what went wrong on the way, and what the figures are not.
fn notes(order: &StageOrder, collected: &Collected) -> Vec<String> {
    let producers = collected
        .producers
        .iter()
        .filter_map(|producer| producer.fault.clone());
    let consumers = collected
        .consumers
        .iter()
        .filter_map(|consumer| consumer.fault.clone());
    let mut notes = producers.chain(consumers).collect::<Vec<_>>();
    notes.sort();
    notes.dedup();
    if order.sends && order.client.acks == Some(Acks::Count(0)) {
        notes.push("with acks 0 nothing is acknowledged: the figures are about handing events to connections".into());
    }
    notes
}
