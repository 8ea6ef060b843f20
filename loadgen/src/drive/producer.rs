//! One producer of a load core: makes events when they are due, hands them to the client library's producer, and keeps
//! account of what was acknowledged.
//!
//! Invariants:
//! 1. Events of one partition carry sequences from zero without gaps, in the order in which they were handed over.
//! 2. Reports of one partition come in that order too, so its oldest unreported events are the ones a report is about.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tackboard_client::glommio::Pump;
use tackboard_client::protocol::producer::{AppendError, ProducerMachine, TopicLookup, TopicSlot};
use tackboard_client::protocol::{Machine, Now};
use tackboard_client::{BatchReport, Header, PartitionIndex, ProducerRecord, TimestampMs};
use tackboard_runtime::Progress;

use super::alarm::Alarm;
use super::order::{CoreCounters, StageOrder, bump};
use super::outcome::{ProducerOutcome, Snapshot};
use super::source::{Event, Source};
use crate::measure::clock::{monotonic_ns, wall_ms};
use crate::verdict::acked::AckedLog;
use crate::workload::event::STAMP_HEADER;

/// Events made between two looks at the sockets.
const EVENTS_PER_TURN: u32 = 2048;

/// Longest time between two looks at whether the stage was stopped.
pub const PAUSE_MAX: Duration = Duration::from_millis(50);

/// What one core's tasks share.
pub struct CoreShare {
    /// Latencies since the last snapshot.
    pub snapshot: RefCell<Snapshot>,
    /// What others may see.
    pub counters: Arc<CoreCounters>,
    /// The watchdog's view of the core.
    pub progress: Arc<Progress>,
}

impl CoreShare {
    /// Gives a machine its sockets on this core; news on them ring the alarm.
    pub fn pump<M: Machine + 'static>(
        &self,
        machine: M,
        order: &StageOrder,
        alarm: &Rc<Alarm>,
    ) -> Pump<M> {
        let alarm = alarm.clone();
        Pump::new(
            machine,
            &order.client.client(),
            self.progress.clone(),
            move || alarm.ring(),
        )
    }
}

/// Events of one partition that are not reported yet, in order: due time, how many, bytes of keys and values.
type Pending = VecDeque<(u64, u32, u32)>;

struct Lane {
    pending: Pending,
    log: AckedLog,
    /// Sequence of the oldest event that is not reported.
    next_reported: u64,
}

struct Producer {
    order: Arc<StageOrder>,
    share: Rc<CoreShare>,
    source: Source,
    lanes: Vec<Lane>,
    outcome: ProducerOutcome,
    /// When something was last acknowledged, or when waiting began.
    moved_ns: u64,
    /// Whether the last event had to wait for room in the buffer.
    held_back: bool,
}

/// Runs one producer until all its events are reported.
pub async fn run(
    number: u32,
    order: Arc<StageOrder>,
    share: Rc<CoreShare>,
    alarm: Rc<Alarm>,
) -> ProducerOutcome {
    let machine = match ProducerMachine::new(
        &order.client.brokers,
        order.client.producer(),
        order.seed ^ u64::from(number),
    ) {
        Ok(machine) => machine,
        Err(error) => {
            return ProducerOutcome {
                fault: Some(error.to_string()),
                gave_up: true,
                ..ProducerOutcome::default()
            };
        }
    };
    let pump = share.pump(machine, &order, &alarm);
    let mut producer = Producer::new(number, order, share);
    let topic = producer.find_topic(&pump, &alarm).await;
    if let Some(topic) = topic {
        producer.send_all(&pump, topic, &alarm).await;
        producer.wait_for_reports(&pump, &alarm).await;
    }
    producer.outcome.reconnects = pump.reconnects();
    pump.close().await;
    bump(&producer.share.counters.producers_done, 1);
    producer.outcome.is_cut = producer.source.is_cut();
    producer.outcome.logs = producer.lanes.into_iter().map(|lane| lane.log).collect();
    producer.outcome
}

impl Producer {
    fn new(number: u32, order: Arc<StageOrder>, share: Rc<CoreShare>) -> Self {
        let lane = || Lane {
            pending: VecDeque::new(),
            log: AckedLog::new(),
            next_reported: 0,
        };
        Self {
            source: Source::new(number, &order),
            lanes: (0..order.expected.partitions).map(|_| lane()).collect(),
            outcome: ProducerOutcome {
                producer: number,
                ..ProducerOutcome::default()
            },
            moved_ns: monotonic_ns(),
            held_back: false,
            order,
            share,
        }
    }

    /// Waits until the broker has told of the topic.
    async fn find_topic(
        &mut self,
        pump: &Pump<ProducerMachine>,
        alarm: &Alarm,
    ) -> Option<TopicSlot> {
        loop {
            let pause = pump.turn();
            match pump.with(|machine, _| machine.topic(&self.order.topic)) {
                TopicLookup::Ready(slot) => return Some(slot),
                // A broker that has just been started may not know it yet.
                TopicLookup::Failed(fault) => self.outcome.fault = Some(fault.to_string()),
                TopicLookup::Pending => {}
            }
            if self.is_stopped() || self.has_given_up(true) {
                return None;
            }
            alarm.sleep(Some(self.wake_ns(pause, None))).await;
        }
    }

    async fn send_all(&mut self, pump: &Pump<ProducerMachine>, topic: TopicSlot, alarm: &Alarm) {
        loop {
            let made = pump.with(|machine, now| {
                self.take_reports(machine);
                self.make_events(machine, topic, now)
            });
            let pause = pump.turn();
            let waits = self.has_pending();
            if self.is_stopped() || self.source.is_over() || self.has_given_up(waits) {
                return;
            }
            match made {
                // The sockets get their turn before more is made.
                Made::More => glommio::executor().yield_task_queue_now().await,
                Made::NotDue(due_ns) => alarm.sleep(Some(self.wake_ns(pause, Some(due_ns)))).await,
                Made::Full => alarm.sleep(Some(self.wake_ns(pause, None))).await,
            }
        }
    }

    async fn wait_for_reports(&mut self, pump: &Pump<ProducerMachine>, alarm: &Alarm) {
        self.moved_ns = monotonic_ns();
        let mark = pump.with(|machine, _| machine.flush());
        loop {
            let pause = pump.turn();
            let flushed = pump.with(|machine, _| {
                self.take_reports(machine);
                machine.is_flushed(mark)
            });
            if flushed {
                return;
            }
            if self.has_given_up(true) || self.order.control.stop_reading.load(Ordering::Relaxed) {
                self.outcome.gave_up = true;
                pump.with(|machine, now| {
                    machine.abandon(now);
                    self.take_reports(machine);
                });
                return;
            }
            alarm.sleep(Some(self.wake_ns(pause, None))).await;
        }
    }

    fn make_events(&mut self, machine: &mut ProducerMachine, topic: TopicSlot, now: Now) -> Made {
        let now_ns = monotonic_ns();
        let wall = TimestampMs(wall_ms());
        let counters = self.share.counters.clone();
        let (mut sent, mut sent_bytes) = (0, 0);
        let mut made = Made::More;
        for _ in 0..EVENTS_PER_TURN {
            let event = match self.source.next(now_ns) {
                Ok(event) => event,
                Err(due_ns) => {
                    made = Made::NotDue(due_ns);
                    break;
                }
            };
            let (partition, due_ns, bytes) = (event.partition, event.due_ns, event.bytes());
            match append(machine, topic, &event, now, wall) {
                Ok(()) => {}
                Err(AppendError::BufferFull) => {
                    self.outcome.held_back +=
                        u64::from(self.order.pace.is_open_loop() && !self.held_back);
                    self.held_back = true;
                    made = Made::Full;
                    break;
                }
                Err(AppendError::Failed(fault)) => {
                    self.outcome.fault = Some(fault.to_string());
                    self.outcome.gave_up = true;
                    self.source.end();
                    break;
                }
            }
            self.source.took();
            let lane = &mut self.lanes[usize::from(partition)];
            lane.log.sent += 1;
            note(&mut lane.pending, due_ns, bytes);
            if self.order.pace.is_open_loop() && !self.held_back && due_ns >= self.order.warm_ns {
                self.share
                    .snapshot
                    .borrow_mut()
                    .lag
                    .record(now_ns.saturating_sub(due_ns), 1);
            }
            self.held_back = false;
            sent += 1;
            sent_bytes += u64::from(bytes);
        }
        bump(&counters.sent, sent);
        bump(&counters.sent_bytes, sent_bytes);
        made
    }

    fn take_reports(&mut self, machine: &mut ProducerMachine) {
        let mut now_ns = None;
        while let Some((_, report)) = machine.next_report() {
            let now_ns = *now_ns.get_or_insert_with(monotonic_ns);
            self.take_report(&report, now_ns);
        }
    }

    fn take_report(&mut self, report: &BatchReport, now_ns: u64) {
        let lane = &mut self.lanes[report.partition.0 as usize];
        let first = lane.next_reported;
        lane.next_reported += u64::from(report.record_count);
        let is_acknowledged = report.outcome.is_ok();
        match &report.outcome {
            Ok(offset) => {
                lane.log
                    .acknowledge(first..lane.next_reported, offset.map(|offset| offset.0));
                self.moved_ns = now_ns;
            }
            Err(fault) => self.outcome.fault = Some(fault.to_string()),
        }
        let mut snapshot = self.share.snapshot.borrow_mut();
        let (mut left, mut bytes) = (report.record_count, 0);
        while left > 0 {
            let (due_ns, count, run_bytes) = take_run(&mut lane.pending, left);
            left -= count;
            bytes += u64::from(run_bytes);
            if is_acknowledged && due_ns >= self.order.warm_ns {
                snapshot
                    .produce
                    .record(now_ns.saturating_sub(due_ns), u64::from(count));
                self.outcome.events += u64::from(count);
                self.outcome.bytes += u64::from(run_bytes);
                self.outcome.span.note(due_ns);
                self.outcome.span.note(now_ns);
            }
        }
        if is_acknowledged {
            bump(
                &self.share.counters.acknowledged,
                u64::from(report.record_count),
            );
            bump(&self.share.counters.acknowledged_bytes, bytes);
        }
    }

    fn is_stopped(&self) -> bool {
        self.order.control.stop_sending.load(Ordering::Relaxed)
    }

    /// Something is waited for, and nothing has moved for so long that waiting on makes no sense.
    fn has_given_up(&mut self, waits: bool) -> bool {
        let now_ns = monotonic_ns();
        if !waits {
            self.moved_ns = now_ns;
        }
        let gave_up = now_ns.saturating_sub(self.moved_ns) > self.order.give_up.as_nanos() as u64;
        self.outcome.gave_up |= gave_up;
        gave_up
    }

    /// Whether events were handed over whose fate is not known.
    fn has_pending(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.pending.is_empty())
    }

    /// When to look again: what the machine wants, what is due, and often enough to see that the stage was stopped.
    fn wake_ns(&self, machine: Option<Duration>, due_ns: Option<u64>) -> u64 {
        let pause = machine.unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        let at_latest = monotonic_ns() + pause.as_nanos() as u64;
        due_ns.unwrap_or(u64::MAX).min(at_latest)
    }
}

/// How a turn of making events ended.
enum Made {
    /// There is more to make at once.
    More,
    /// The next event is due then.
    NotDue(u64),
    /// The buffer is full.
    Full,
}

#[inline]
fn append(
    machine: &mut ProducerMachine,
    topic: TopicSlot,
    event: &Event<'_>,
    now: Now,
    wall: TimestampMs,
) -> Result<(), AppendError> {
    let header: [Header<'_>; 1] = [(
        STAMP_HEADER,
        event.stamp_header.as_ref().map(|stamp| &stamp[..]),
    )];
    let record = ProducerRecord {
        key: event.key,
        value: Some(event.value),
        timestamp: event.timestamp_ms.map(TimestampMs),
        headers: if event.stamp_header.is_some() {
            &header
        } else {
            &[]
        },
        partition: Some(PartitionIndex(i32::from(event.partition))),
    };
    machine.append(topic, &record, now, wall).map(|_| ())
}

/// Notes an event that was handed over.
#[inline]
fn note(pending: &mut Pending, due_ns: u64, bytes: u32) {
    match pending.back_mut() {
        Some((due, count, total)) if *due == due_ns && *total < u32::MAX / 2 => {
            *count += 1;
            *total += bytes;
        }
        _ => pending.push_back((due_ns, 1, bytes)),
    }
}

/// Takes at most `most` events that were due at one time off the front. Bytes of a run that is split are split evenly.
fn take_run(pending: &mut Pending, most: u32) -> (u64, u32, u32) {
    let (due_ns, count, bytes) = pending
        .front_mut()
        .expect("what is reported was handed over before");
    if *count <= most {
        let run = (*due_ns, *count, *bytes);
        pending.pop_front();
        return run;
    }
    let taken_bytes = (u64::from(*bytes) * u64::from(most) / u64::from(*count)) as u32;
    *count -= most;
    *bytes -= taken_bytes;
    (*due_ns, most, taken_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_due_time_are_taken_in_order_and_split() {
        let mut pending = Pending::new();
        for (due_ns, bytes) in [(5, 100), (5, 100), (5, 100), (9, 40)] {
            note(&mut pending, due_ns, bytes);
        }
        assert_eq!(pending.len(), 2);
        assert_eq!(take_run(&mut pending, 2), (5, 2, 200));
        assert_eq!(take_run(&mut pending, 10), (5, 1, 100));
        assert_eq!(take_run(&mut pending, 10), (9, 1, 40));
        assert!(pending.is_empty());
    }
}
