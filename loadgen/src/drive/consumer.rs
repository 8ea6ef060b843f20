//! One consumer of a load core: reads its partitions from where the stage began and checks every event as it comes.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tackboard_client::glommio::Pump;
use tackboard_client::protocol::consumer::ConsumerMachine;
use tackboard_client::{Chunk, Error, Offset, PartitionIndex, Start};
use tackboard_schema::DecodeError;
use tackboard_schema::record_batch::{BatchIterator, RecordIterator};

use super::alarm::Alarm;
use super::order::{StageOrder, bump};
use super::outcome::ConsumerOutcome;
use super::producer::{CoreShare, PAUSE_MAX};
use crate::measure::clock::monotonic_ns;
use crate::verdict::checker::{Content, PartitionChecker, Seen};
use crate::workload::event::STAMP_HEADER;

/// Most that a batch may become when it is decompressed.
const DECOMPRESSED_BYTES_MAX: usize = 64 << 20;

/// The partition that a key belongs to, as the client library says.
pub fn partition_of_key(key: &[u8], partitions: i32) -> i32 {
    tackboard_client::protocol::producer::partition_of_key(key, partitions.unsigned_abs()) as i32
}

struct Consumer {
    order: Arc<StageOrder>,
    share: Rc<CoreShare>,
    partitions: Vec<Partition>,
    outcome: ConsumerOutcome,
    /// When something was last read, or when waiting began.
    moved_ns: u64,
    /// Holds a decompressed batch.
    scratch: Vec<u8>,
}

struct Partition {
    checker: PartitionChecker,
    next_offset: i64,
    /// It can't be read any further.
    is_broken: bool,
}

/// Runs one consumer until it has read everything that was acknowledged, or was told to stop.
pub async fn run(
    number: u32,
    order: Arc<StageOrder>,
    share: Rc<CoreShare>,
    alarm: Rc<Alarm>,
) -> ConsumerOutcome {
    let seed = order.seed ^ 0x636f_6e73 ^ u64::from(number) << 32;
    let machine = match ConsumerMachine::new(&order.client.brokers, order.client.consumer(), seed) {
        Ok(machine) => machine,
        Err(error) => {
            return ConsumerOutcome {
                fault: Some(error.to_string()),
                gave_up: true,
                ..ConsumerOutcome::default()
            };
        }
    };
    let pump = share.pump(machine, &order, &alarm);
    let mut consumer = Consumer::new(number, order, share);
    consumer.read_all(&pump, &alarm).await;
    consumer.outcome.reconnects = pump.reconnects();
    pump.close().await;
    consumer.outcome.partitions = consumer
        .partitions
        .into_iter()
        .map(|partition| partition.checker)
        .collect();
    consumer.outcome
}

impl Consumer {
    fn new(number: u32, order: Arc<StageOrder>, share: Rc<CoreShare>) -> Self {
        let mine = (0..order.expected.partitions)
            .filter(|partition| partition.unsigned_abs() % order.consumers == number);
        let partitions = mine.map(|partition| Partition {
            checker: PartitionChecker::new(partition, order.expected.clone(), partition_of_key),
            next_offset: order.start_offsets[partition as usize],
            is_broken: false,
        });
        Self {
            partitions: partitions.collect(),
            outcome: ConsumerOutcome::default(),
            moved_ns: monotonic_ns(),
            scratch: Vec::new(),
            order,
            share,
        }
    }

    async fn read_all(&mut self, pump: &Pump<ConsumerMachine>, alarm: &Alarm) {
        pump.with(|machine, _| {
            let start = |partition: &Partition| {
                let index = PartitionIndex(partition.checker.partition());
                (
                    &*self.order.topic,
                    index,
                    Start::Offset(Offset(partition.next_offset)),
                )
            };
            machine.assign(&self.partitions.iter().map(start).collect::<Vec<_>>());
        });
        loop {
            let pause = pump.turn();
            let polled = pump.with(|machine, now| machine.poll(now));
            let is_idle = match polled {
                Ok(chunks) => {
                    chunks.iter().for_each(|chunk| self.take_chunk(chunk));
                    chunks.is_empty()
                }
                Err(fault) => {
                    self.take_fault(fault, pump);
                    false
                }
            };
            if self.is_done() {
                return;
            }
            if is_idle {
                let pause = pause.unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
                alarm
                    .sleep(Some(monotonic_ns() + pause.as_nanos() as u64))
                    .await;
            } else {
                glommio::executor().yield_task_queue_now().await;
            }
        }
    }

    /// Everything up to the known ends was read, or there is no sense in waiting for more.
    fn is_done(&mut self) -> bool {
        let control = &self.order.control;
        if control.stop_reading.load(Ordering::Relaxed) {
            return true;
        }
        let Some(ends) = control.ends.get() else {
            self.moved_ns = monotonic_ns();
            return false;
        };
        let is_read = |partition: &Partition| {
            partition.is_broken
                || partition.next_offset >= ends[partition.checker.partition() as usize]
        };
        if self.partitions.iter().all(is_read) {
            return true;
        }
        let waited_ns = monotonic_ns().saturating_sub(self.moved_ns);
        self.outcome.gave_up = waited_ns > self.order.give_up.as_nanos() as u64;
        self.outcome.gave_up
    }

    fn take_fault(&mut self, fault: Error, pump: &Pump<ConsumerMachine>) {
        self.outcome.fault = Some(fault.to_string());
        let place = match &fault {
            Error::CorruptBatch {
                partition, offset, ..
            } => Some((*partition, *offset)),
            Error::OffsetOutOfRange { partition, .. } => Some((*partition, Offset(-1))),
            _ => None,
        };
        let Some((index, offset)) = place else { return };
        let Some(partition) = self
            .partitions
            .iter_mut()
            .find(|partition| partition.checker.partition() == index.0)
        else {
            return;
        };
        // Where the next batch begins is not known, so nothing more of this partition can be read.
        let offset = if offset.0 >= 0 {
            offset.0
        } else {
            partition.next_offset
        };
        partition.is_broken = true;
        partition.checker.unreadable(offset, &fault.to_string());
        pump.with(|machine, _| {
            let _ = machine.set_paused(&self.order.topic, index, true);
        });
    }

    fn take_chunk(&mut self, chunk: &Chunk) {
        let now_ns = monotonic_ns();
        self.moved_ns = now_ns;
        let Some(partition) = self
            .partitions
            .iter_mut()
            .find(|partition| partition.checker.partition() == chunk.partition.0)
        else {
            return;
        };
        let mut tally = Tally {
            warm_ns: self.order.warm_ns,
            ..Tally::default()
        };
        for batch in BatchIterator::new(&chunk.batches) {
            let read = batch.and_then(|batch| {
                let records =
                    batch.records_decompressed(&mut self.scratch, DECOMPRESSED_BYTES_MAX)?;
                read_batch(
                    records,
                    chunk.first_offset,
                    &mut partition.checker,
                    &self.order,
                    &mut tally,
                )
            });
            if let Err(fault) = read {
                partition
                    .checker
                    .unreadable(chunk.first_offset.0, &fault.to_string());
                break;
            }
        }
        partition.next_offset = chunk.next_offset.0;
        tally.end_run();
        let mut snapshot = self.share.snapshot.borrow_mut();
        for (due_ns, count) in &tally.runs {
            snapshot
                .end_to_end
                .record(now_ns.saturating_sub(*due_ns), *count);
        }
        if tally.events > 0 {
            self.outcome.events += tally.events;
            self.outcome.bytes += tally.bytes;
            self.outcome.span.note(now_ns);
        }
        bump(&self.share.counters.read, tally.seen);
    }
}

/// Events of one chunk, summed up.
#[derive(Default)]
struct Tally {
    warm_ns: u64,
    /// Events of any kind.
    seen: u64,
    /// Events in the figures.
    events: u64,
    bytes: u64,
    /// Due times in the figures, and how many events each.
    runs: Vec<(u64, u64)>,
    run: (u64, u64),
}

impl Tally {
    #[inline]
    fn add(&mut self, due_ns: u64) {
        if self.run.0 == due_ns {
            self.run.1 += 1;
        } else {
            self.end_run();
            self.run = (due_ns, 1);
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.1 > 0 {
            self.runs.push(run);
        }
    }
}

#[inline]
fn read_batch(
    records: RecordIterator<'_>,
    first_offset: Offset,
    checker: &mut PartitionChecker,
    order: &StageOrder,
    tally: &mut Tally,
) -> Result<(), DecodeError> {
    let is_replay = matches!(order.expected.content, Content::Replay(_));
    for record in records {
        let record = record?;
        if record.offset < first_offset {
            continue;
        }
        tally.seen += 1;
        let key_bytes = record.key.map_or(0, <[u8]>::len) as u64;
        let bytes = key_bytes + record.value.map_or(0, <[u8]>::len) as u64;
        if !order.checks {
            tally.events += 1;
            tally.bytes += bytes;
            continue;
        }
        let stamp_header = if is_replay {
            let mut headers = record.headers();
            headers
                .find(|header| header.key == STAMP_HEADER.as_bytes())
                .and_then(|header| header.value)
        } else {
            None
        };
        let seen = Seen {
            offset: record.offset.0,
            key: record.key,
            value: record.value,
            stamp_header,
        };
        let Some(stamp) = checker.check(seen) else {
            continue;
        };
        if stamp.due_ns >= tally.warm_ns {
            tally.events += 1;
            tally.bytes += bytes;
            tally.add(stamp.due_ns);
        }
    }
    Ok(())
}
