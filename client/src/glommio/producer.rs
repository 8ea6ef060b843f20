//! Sends records from tasks of one executor.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tackboard_runtime::Progress;
use tackboard_schema::TimestampMs;

use super::driver::{Driven, Driver};
use crate::config::ProducerConfig;
use crate::error::{Error, Result};
use crate::protocol::Machine;
use crate::protocol::producer::{
    AppendError, Appended, BatchId, ProducerMachine, TopicLookup, TopicSlot,
};
use crate::record::{BatchReport, ProducerRecord};
use crate::system::{seed, wall_clock};

/// Sends records. Shared between the tasks of its executor by reference or in an `Rc`.
///
/// What becomes of records is told by batch, through [`Self::take_reports`] or [`Self::reports`]: the caller has to
/// take them, they are kept until then. Dropped without [`Self::close`] it ends at once, and what is not delivered by then
/// may or may not be.
pub struct Producer {
    driver: Driver<State>,
}

struct State {
    machine: ProducerMachine,
    seen_revision: u64,
    reports: VecDeque<(BatchId, BatchReport)>,
    /// The first failure since the last flush.
    failure: Option<Error>,
}

impl Driven for State {
    type Machine = ProducerMachine;

    fn machine(&mut self) -> &mut ProducerMachine {
        &mut self.machine
    }

    fn advanced(&mut self) -> bool {
        let revision = self.machine.revision();
        let mut has_news = revision != self.seen_revision;
        self.seen_revision = revision;
        while let Some((batch, report)) = self.machine.next_report() {
            has_news = true;
            if let Err(fault) = &report.outcome {
                self.failure.get_or_insert_with(|| fault.clone());
            }
            self.reports.push_back((batch, report));
        }
        has_news
    }
}

impl Producer {
    /// Connects to any of `brokers` (`host:port`), which tells of the others. `progress` are the counters by which the
    /// watchdog sees that this core moves.
    ///
    /// # Errors
    /// [`Error::Setting`] for settings out of bounds, [`Error::Unreachable`] when no broker answers.
    pub async fn connect<A: AsRef<str>>(
        brokers: &[A],
        config: ProducerConfig,
        progress: Option<Arc<Progress>>,
    ) -> Result<Self> {
        let client = config.client.clone();
        let machine = ProducerMachine::new(brokers, config, seed()?)?;
        let state = State {
            machine,
            seen_revision: 0,
            reports: VecDeque::new(),
            failure: None,
        };
        Ok(Self {
            driver: Driver::start(state, client, progress).await?,
        })
    }

    /// Looks a topic up: what records are sent to.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`]; [`Error::TimedOut`] when no broker tells within `call_timeout`.
    pub async fn topic(&self, name: &str) -> Result<TopicSlot> {
        let what = format!("a question about topic {name}");
        let look = |state: &mut State| match state.machine.topic(name) {
            TopicLookup::Ready(slot) => Some(Ok(slot)),
            TopicLookup::Pending => None,
            TopicLookup::Failed(fault) => Some(Err(fault)),
        };
        self.driver.shared.wait(&what, look).await
    }

    /// How many partitions a topic has.
    pub fn partition_count(&self, topic: TopicSlot) -> usize {
        self.driver
            .shared
            .driven
            .borrow()
            .machine
            .partition_count(topic)
    }

    /// Copies a record into the batch of its partition; `None` when the buffer is full. A record without a timestamp
    /// gets the time now.
    ///
    /// # Errors
    /// [`Error::UnknownPartition`], [`Error::RecordTooLarge`], [`Error::Closed`]: the record was not taken.
    pub fn try_send(
        &self,
        topic: TopicSlot,
        record: &ProducerRecord<'_>,
    ) -> Result<Option<Appended>> {
        self.try_send_at(topic, record, record.timestamp.unwrap_or_else(wall_clock))
    }

    /// The same for a caller that has just looked at the clock: `wall` is the time of a record that has none.
    ///
    /// # Errors
    /// As [`Self::try_send`].
    pub fn try_send_at(
        &self,
        topic: TopicSlot,
        record: &ProducerRecord<'_>,
        wall: TimestampMs,
    ) -> Result<Option<Appended>> {
        let shared = &self.driver.shared;
        if shared.is_closing() {
            return Err(Error::Closed);
        }
        let now = shared.now();
        let appended = shared
            .driven
            .borrow_mut()
            .machine
            .append(topic, record, now, wall);
        match appended {
            Ok(appended) => {
                if appended.wakes {
                    shared.turn();
                }
                Ok(Some(appended))
            }
            Err(AppendError::BufferFull) => Ok(None),
            Err(AppendError::Failed(fault)) => Err(fault),
        }
    }

    /// The same, but waits while the buffer is full.
    ///
    /// # Errors
    /// As [`Self::try_send`]; [`Error::TimedOut`] when the buffer stays full for `call_timeout`.
    pub async fn send(&self, topic: TopicSlot, record: &ProducerRecord<'_>) -> Result<Appended> {
        loop {
            if let Some(appended) = self.try_send(topic, record)? {
                return Ok(appended);
            }
            self.room().await?;
        }
    }

    /// Waits until the buffer takes another record.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when it stays full for `call_timeout`; [`Error::Closed`].
    pub async fn room(&self) -> Result<()> {
        let look = |state: &mut State| {
            let buffer_bytes_max = state.machine.config().buffer_bytes_max;
            (state.machine.buffered_bytes() < buffer_bytes_max).then_some(Ok(()))
        };
        self.driver
            .shared
            .wait("the producer's full buffer", look)
            .await
    }

    /// Moves what became of batches to the end of `reports`, without waiting. Reports of one partition come in the order
    /// of sending; the id is that of [`Appended::batch`].
    pub fn take_reports(&self, reports: &mut Vec<(BatchId, BatchReport)>) {
        reports.extend(self.driver.shared.driven.borrow_mut().reports.drain(..));
    }

    /// The same, but waits until there is at least one.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn reports(&self, reports: &mut Vec<(BatchId, BatchReport)>) -> Result<()> {
        let look = |state: &mut State| {
            reports.extend(state.reports.drain(..));
            (!reports.is_empty()).then_some(Ok(()))
        };
        self.driver
            .shared
            .wait_until(None, look)
            .await
            .unwrap_or(Ok(()))
    }

    /// Bytes of records that are not reported yet.
    pub fn buffered_bytes(&self) -> usize {
        self.driver.shared.driven.borrow().machine.buffered_bytes()
    }

    /// Waits until everything sent before is delivered or has failed, which takes at most the delivery time-out and a
    /// little.
    ///
    /// # Errors
    /// The first failure of a record since the last flush. [`Error::UnknownOutcome`] says that records may be in the
    /// log all the same; every other error says that they are not.
    pub async fn flush(&self) -> Result<()> {
        let shared = &self.driver.shared;
        let mark = shared.driven.borrow_mut().machine.flush();
        let look = |state: &mut State| state.machine.is_flushed(mark).then_some(Ok(()));
        shared.wait_until(None, look).await.unwrap_or(Ok(()))?;
        match shared.driven.borrow_mut().failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Flushes, and ends the connections. Reports that were not taken are lost with the producer.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub async fn close(&self) -> Result<()> {
        let flushed = self.flush().await;
        self.driver.stop().await;
        flushed
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}
