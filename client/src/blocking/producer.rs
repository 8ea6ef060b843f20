//! Sends records from threads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;

use super::ambient::{seed, wall_clock};
use super::delivery::{Delivery, Fate, record_outcome};
use super::driver::{Driven, Driver, News};
use crate::config::ProducerConfig;
use crate::error::{Error, Result};
use crate::protocol::producer::{
    AppendError, Appended, BatchId, ProducerMachine, TopicLookup, TopicSlot,
};
use crate::record::{BatchReport, ProducerRecord, RecordPosition};

type ReportTo = Box<dyn FnMut(BatchReport) + Send>;
type Callback = Box<dyn FnOnce(Result<RecordPosition>) + Send>;

/// Sends records. May be shared between threads by reference.
///
/// Dropped without [`Self::close`] it ends at once, and what is not delivered by then fails.
///
/// ```no_run
/// use tackboard_client::{Producer, ProducerConfig, ProducerRecord};
/// # fn main() -> tackboard_client::Result<()> {
/// let producer = Producer::connect(&["127.0.0.1:7400"], ProducerConfig::default())?;
/// producer.send("flights", ProducerRecord::new("departed").key("N14228"))?;
/// producer.flush()?;
/// # Ok(()) }
/// ```
pub struct Producer {
    driver: Driver<State>,
}

struct State {
    machine: ProducerMachine,
    /// Batches whose fate somebody wants to know.
    watched: AHashMap<BatchId, Watchers>,
    /// The first failure since the last flush.
    failure: Option<Error>,
    /// Reports go to the time keeper's thread, which calls back without the lock.
    report_to: Option<ReportSlot>,
    work: VecDeque<Work>,
    calls: Calls,
}

/// Reports by number: how many were queued for the time keeper's thread, taken by it, and told by it.
#[derive(Clone, Copy, Default)]
struct Calls {
    queued: u64,
    taken: u64,
    told: u64,
}

#[derive(Default)]
struct Watchers {
    fate: Option<Arc<Fate>>,
    callbacks: Vec<(u32, Callback)>,
}

/// The caller's report function; it is away while it runs.
type ReportSlot = Arc<std::sync::Mutex<ReportTo>>;

struct Work {
    report: BatchReport,
    callbacks: Vec<(u32, Callback)>,
}

impl Driven for State {
    type Machine = ProducerMachine;

    fn machine(&mut self) -> &mut ProducerMachine {
        &mut self.machine
    }

    fn advanced(&mut self) -> News {
        // Callers wait for reports. Waking them for less would make two of them wake each other.
        let mut news = News::default();
        while let Some((batch, report)) = self.machine.next_report() {
            news.for_callers = true;
            if let Err(fault) = &report.outcome {
                self.failure.get_or_insert_with(|| fault.clone());
            }
            let watchers = self.watched.remove(&batch).unwrap_or_default();
            if let Some(fate) = watchers.fate {
                fate.settle(report.clone());
            }
            if self.report_to.is_some() || !watchers.callbacks.is_empty() {
                self.work.push_back(Work {
                    report,
                    callbacks: watchers.callbacks,
                });
                self.calls.queued += 1;
                news.for_keeper = true;
            }
        }
        news
    }

    fn take_work(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        if self.work.is_empty() {
            return None;
        }
        self.calls.taken = self.calls.queued;
        let (work, report_to) = (std::mem::take(&mut self.work), self.report_to.clone());
        Some(Box::new(move || {
            for Work { report, callbacks } in work {
                callbacks
                    .into_iter()
                    .for_each(|(index, callback)| callback(record_outcome(&report, index)));
                if let Some(report_to) = &report_to {
                    (report_to.lock().expect("only this thread calls it"))(report);
                }
            }
        }))
    }

    fn work_done(&mut self) {
        self.calls.told = self.calls.taken;
    }
}

impl Producer {
    /// Connects to any of `brokers` (`host:port`), which tells of the others.
    ///
    /// # Errors
    /// [`Error::Setting`] for settings out of bounds, [`Error::Unreachable`] when no broker answers.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: ProducerConfig) -> Result<Self> {
        Self::start(brokers, config, None)
    }

    /// The same, and `report` is told what became of every batch, on a thread of the client, in order per partition.
    /// While it runs nothing else is reported, so it should be quick; it must not call the producer.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_with_reports<A: AsRef<str>>(
        brokers: &[A],
        config: ProducerConfig,
        report: impl FnMut(BatchReport) + Send + 'static,
    ) -> Result<Self> {
        let report_to: ReportTo = Box::new(report);
        Self::start(brokers, config, Some(Arc::new(report_to.into())))
    }

    fn start<A: AsRef<str>>(
        brokers: &[A],
        config: ProducerConfig,
        report_to: Option<ReportSlot>,
    ) -> Result<Self> {
        let client = config.client.clone();
        let machine = ProducerMachine::new(brokers, config, seed()?)?;
        let state = State {
            machine,
            watched: AHashMap::new(),
            failure: None,
            report_to,
            work: VecDeque::new(),
            calls: Calls::default(),
        };
        Ok(Self {
            driver: Driver::start(state, client)?,
        })
    }

    /// Copies a record into the batch of its partition. Waits while the buffer is full, and for the topic's metadata
    /// when it is the first of its topic. What becomes of it is told by [`Self::flush`], and to the report function.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], [`Error::UnknownPartition`], [`Error::RecordTooLarge`]; [`Error::TimedOut`] when the
    /// buffer stays full, or no broker tells of the topic, for `call_timeout`. In each case the record was not taken.
    pub fn send(&self, topic: &str, record: ProducerRecord<'_>) -> Result<()> {
        self.append(topic, &record, |_, _| ())
    }

    /// The same, with a handle on what becomes of the record.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_tracked(&self, topic: &str, record: ProducerRecord<'_>) -> Result<Delivery> {
        self.append(topic, &record, |state, appended| {
            let watchers = state.watched.entry(appended.batch).or_default();
            Delivery {
                fate: watchers.fate.get_or_insert_default().clone(),
                index: appended.index,
            }
        })
    }

    /// The same, and `callback` is called with what became of the record, on a thread of the client, in order per
    /// partition. It must not call the producer.
    ///
    /// # Errors
    /// As [`Self::send`]; then `callback` is not called.
    pub fn send_with(
        &self,
        topic: &str,
        record: ProducerRecord<'_>,
        callback: impl FnOnce(Result<RecordPosition>) + Send + 'static,
    ) -> Result<()> {
        self.append(topic, &record, |state, appended| {
            let watchers = state.watched.entry(appended.batch).or_default();
            watchers
                .callbacks
                .push((appended.index, Box::new(callback)));
        })
    }

    fn append<T>(
        &self,
        topic: &str,
        record: &ProducerRecord<'_>,
        watch: impl FnOnce(&mut State, Appended) -> T,
    ) -> Result<T> {
        let wall = record.timestamp.unwrap_or_else(wall_clock);
        let shared = &self.driver.shared;
        loop {
            let mut inner = shared.lock();
            if inner.is_closing {
                return Err(Error::Closed);
            }
            let machine = &mut inner.driven.machine;
            let TopicLookup::Ready(slot) = machine.topic(topic) else {
                drop(inner);
                self.topic_slot(topic)?;
                continue;
            };
            match machine.append(slot, record, shared.now(), wall) {
                Ok(appended) => {
                    let watched = watch(&mut inner.driven, appended);
                    if appended.wakes {
                        shared.turn(&mut inner);
                    }
                    return Ok(watched);
                }
                Err(AppendError::BufferFull) => {
                    drop(inner);
                    self.wait_for_room()?;
                }
                Err(AppendError::Failed(fault)) => return Err(fault),
            }
        }
    }

    fn topic_slot(&self, topic: &str) -> Result<TopicSlot> {
        let what = format!("a question about topic {topic}");
        self.driver
            .shared
            .wait(&what, |state| match state.machine.topic(topic) {
                TopicLookup::Ready(slot) => Some(Ok(slot)),
                TopicLookup::Pending => None,
                TopicLookup::Failed(fault) => Some(Err(fault)),
            })
    }

    fn wait_for_room(&self) -> Result<()> {
        self.driver
            .shared
            .wait("the producer's full buffer", |state| {
                let buffer_bytes_max = state.machine.config().buffer_bytes_max;
                (state.machine.buffered_bytes() < buffer_bytes_max).then_some(Ok(()))
            })
    }

    /// How many partitions a topic has.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; [`Error::TimedOut`] when no broker tells within `call_timeout`.
    pub fn partition_count(&self, topic: &str) -> Result<usize> {
        let slot = self.topic_slot(topic)?;
        Ok(self
            .driver
            .shared
            .lock()
            .driven
            .machine
            .partition_count(slot))
    }

    /// Waits until everything sent before is delivered or has failed, and callbacks have been told. That takes at most
    /// the delivery time-out and a little.
    ///
    /// # Errors
    /// The first failure of a record since the last flush. [`Error::UnknownOutcome`] says that records may be in the
    /// log all the same; every other error says that they are not.
    pub fn flush(&self) -> Result<()> {
        let shared = &self.driver.shared;
        let mark = shared.lock().driven.machine.flush();
        self.wait_long(|state| state.machine.is_flushed(mark).then_some(Ok(())))?;
        let queued = shared.lock().driven.calls.queued;
        self.wait_long(|state| (state.calls.told >= queued).then_some(Ok(())))?;
        match shared.lock().driven.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Waits for something that is bounded by other time-outs than this one.
    fn wait_long(&self, mut look: impl FnMut(&mut State) -> Option<Result<()>>) -> Result<()> {
        let shared = &self.driver.shared;
        loop {
            let deadline = Instant::now() + Duration::from_secs(3600);
            if let Some(found) = shared.wait_until(deadline, &mut look) {
                return found;
            }
        }
    }

    /// Flushes, and ends connections and threads.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn close(mut self) -> Result<()> {
        let flushed = self.flush();
        self.driver.stop();
        flushed
    }
}

/// Ends the producer without waiting: what is not delivered yet fails.
impl Drop for Producer {
    fn drop(&mut self) {
        let shared = &self.driver.shared;
        let mut inner = shared.lock();
        let now = shared.now();
        inner.driven.machine.abandon(now);
        inner.driven.advanced();
        drop(inner);
        self.driver.stop();
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}
