//! Reads records from a task of one executor. Fetching goes on in the background, up to the configured bound.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tackboard_runtime::Progress;
use tackboard_schema::{Offset, PartitionIndex};

use super::driver::{Driven, Driver};
use crate::config::ConsumerConfig;
use crate::consumed::{Records, Start};
use crate::error::Result;
use crate::protocol::Machine;
use crate::protocol::consumer::ConsumerMachine;
use crate::system::seed;

/// Reads records of partitions that the caller names.
pub struct Consumer {
    driver: Driver<State>,
    decompressed_bytes_max: usize,
}

struct State {
    machine: ConsumerMachine,
    seen_revision: u64,
}

impl Driven for State {
    type Machine = ConsumerMachine;

    fn machine(&mut self) -> &mut ConsumerMachine {
        &mut self.machine
    }

    fn advanced(&mut self) -> bool {
        let revision = self.machine.revision();
        let has_news = revision != self.seen_revision || self.machine.has_news();
        self.seen_revision = revision;
        has_news
    }
}

impl Consumer {
    /// Connects to any of `brokers` (`host:port`), which tells of the others. `progress` are the counters by which the
    /// watchdog sees that this core moves.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for settings out of bounds,
    /// [`Error::Unreachable`](crate::Error::Unreachable) when no broker answers.
    pub async fn connect<A: AsRef<str>>(
        brokers: &[A],
        config: ConsumerConfig,
        progress: Option<Arc<Progress>>,
    ) -> Result<Self> {
        let (client, decompressed_bytes_max) =
            (config.client.clone(), config.decompressed_bytes_max);
        let machine = ConsumerMachine::new(brokers, config, seed()?)?;
        let driver = Driver::start(
            State {
                machine,
                seen_revision: 0,
            },
            client,
            progress,
        )
        .await?;
        Ok(Self {
            driver,
            decompressed_bytes_max,
        })
    }

    /// Reads exactly these partitions from now on, each from its start; what was assigned before is dropped. Fetching
    /// begins at once; a partition that does not exist shows at [`Self::poll`].
    pub fn assign(&self, partitions: &[(&str, PartitionIndex, Start)]) {
        self.with(|machine| machine.assign(partitions));
    }

    /// How many partitions a topic has.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic); [`Error::TimedOut`](crate::Error::TimedOut) when no broker
    /// tells within `call_timeout`.
    pub async fn partition_count(&self, topic: &str) -> Result<usize> {
        let what = format!("a question about topic {topic}");
        self.driver
            .shared
            .wait(&what, |state| state.machine.partition_count(topic))
            .await
    }

    /// The next records, whole batches of them; none when `timeout` passes without any.
    ///
    /// # Errors
    /// What is wrong with a partition, once everything before it was returned; the next call goes on. A broker that is
    /// away is no error before it has been so for `call_timeout`.
    pub async fn poll(&self, timeout: Duration) -> Result<Records> {
        let shared = &self.driver.shared;
        let look = |state: &mut State| match state.machine.poll(shared.now()) {
            Ok(chunks) if chunks.is_empty() => None,
            polled => Some(polled),
        };
        let polled = shared
            .wait_until(Some(shared.now().after(timeout)), look)
            .await;
        Records::open(
            polled.transpose()?.unwrap_or_default(),
            self.decompressed_bytes_max,
        )
    }

    /// Goes on from another place in an assigned partition.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn seek(&self, topic: &str, partition: PartitionIndex, start: Start) -> Result<()> {
        self.with(|machine| machine.seek(topic, partition, start))
    }

    /// Returns and fetches nothing of an assigned partition until [`Self::resume`].
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn pause(&self, topic: &str, partition: PartitionIndex) -> Result<()> {
        self.with(|machine| machine.set_paused(topic, partition, true))
    }

    /// Undoes [`Self::pause`]; goes on where it was.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn resume(&self, topic: &str, partition: PartitionIndex) -> Result<()> {
        self.with(|machine| machine.set_paused(topic, partition, false))
    }

    /// The offset of the next record that [`Self::poll`] will return; `None` until a broker has told where that is.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn position(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        self.driver
            .shared
            .driven
            .borrow()
            .machine
            .position(topic, partition)
    }

    /// The end of what may be read, exclusive, as of the last answer; `None` until there was one.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn high_watermark(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        self.driver
            .shared
            .driven
            .borrow()
            .machine
            .high_watermark(topic, partition)
    }

    /// Ends the connections and waits until their sockets are closed.
    pub async fn close(&self) {
        self.driver.stop().await;
    }

    fn with<T>(&self, act: impl FnOnce(&mut ConsumerMachine) -> T) -> T {
        let outcome = act(&mut self.driver.shared.driven.borrow_mut().machine);
        self.driver.shared.turn();
        outcome
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
