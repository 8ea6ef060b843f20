//! Reads records from threads. Fetching goes on in the background, up to the configured bound.

use std::fmt;
use std::time::Duration;

use tackboard_schema::{Offset, PartitionIndex};

use super::ambient::{deadline_after, seed};
use super::driver::{Driven, Driver, News};
use crate::config::ConsumerConfig;
use crate::consumed::{Records, Start};
use crate::error::Result;
use crate::protocol::Now;
use crate::protocol::consumer::ConsumerMachine;

/// Reads records of partitions that the caller names.
///
/// ```no_run
/// use std::time::Duration;
/// use tackboard_client::{Consumer, ConsumerConfig, Start};
/// # fn main() -> tackboard_client::Result<()> {
/// let mut consumer = Consumer::connect(&["127.0.0.1:7400"], ConsumerConfig::default())?;
/// consumer.assign_topic("flights", Start::Earliest)?;
/// for record in &consumer.poll(Duration::from_secs(1))? {
///     println!("{:?}", record?.value);
/// }
/// # Ok(()) }
/// ```
pub struct Consumer {
    driver: Driver<State>,
    decompressed_bytes_max: usize,
    poll_bytes_max: usize,
}

struct State {
    machine: ConsumerMachine,
}

impl Driven for State {
    type Machine = ConsumerMachine;

    fn machine(&mut self) -> &mut ConsumerMachine {
        &mut self.machine
    }

    fn advanced(&mut self) -> News {
        News {
            for_callers: self.machine.has_news(),
            for_keeper: false,
        }
    }
}

impl Consumer {
    /// Connects to any of `brokers` (`host:port`), which tells of the others.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for settings out of bounds,
    /// [`Error::Unreachable`](crate::Error::Unreachable) when no broker answers.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: ConsumerConfig) -> Result<Self> {
        let (client, decompressed_bytes_max, poll_bytes_max) = (
            config.client.clone(),
            config.decompressed_bytes_max,
            config.poll_bytes_max,
        );
        let machine = ConsumerMachine::new(brokers, config, seed()?)?;
        Ok(Self {
            driver: Driver::start(State { machine }, client)?,
            decompressed_bytes_max,
            poll_bytes_max,
        })
    }

    /// Reads exactly these partitions from now on, each from its start; what was assigned before is dropped. Fetching
    /// begins at once; a partition that does not exist shows at [`Self::poll`].
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed).
    pub fn assign(&mut self, partitions: &[(&str, PartitionIndex, Start)]) -> Result<()> {
        self.with(|machine, _| {
            machine.assign(partitions);
            Ok(())
        })
    }

    /// Reads all partitions of a topic from now on; what was assigned before is dropped.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic); [`Error::TimedOut`](crate::Error::TimedOut) when no broker
    /// tells of the topic within `call_timeout`.
    pub fn assign_topic(&mut self, topic: &str, start: Start) -> Result<()> {
        let count = self.partition_count(topic)?;
        let partitions: Vec<_> = (0..count as i32)
            .map(|index| (topic, PartitionIndex(index), start))
            .collect();
        self.assign(&partitions)
    }

    /// How many partitions a topic has.
    ///
    /// # Errors
    /// As [`Self::assign_topic`].
    pub fn partition_count(&mut self, topic: &str) -> Result<usize> {
        let what = format!("a question about topic {topic}");
        self.driver
            .shared
            .wait(&what, |state| state.machine.partition_count(topic))
    }

    /// The next records, whole batches of them; none when `timeout` passes without any.
    ///
    /// # Errors
    /// What is wrong with a partition, once everything before it was returned:
    /// [`Error::OffsetOutOfRange`](crate::Error::OffsetOutOfRange),
    /// [`Error::CorruptBatch`](crate::Error::CorruptBatch), [`Error::UnknownTopic`](crate::Error::UnknownTopic), a
    /// refusal. The next call goes on with the other partitions and tries this one again. A broker that is away is no
    /// error before it has been so for `call_timeout`.
    pub fn poll(&mut self, timeout: Duration) -> Result<Records> {
        let shared = &self.driver.shared;
        let deadline = deadline_after(timeout);
        let polled = shared.wait_until(deadline, |state| match state.machine.poll(shared.now()) {
            Ok(chunks) if chunks.is_empty() => None,
            polled => Some(polled),
        });
        let chunks = polled.transpose()?.unwrap_or_default();
        // Decompression is done without the lock, so that fetching goes on meanwhile.
        let (records, left) =
            Records::open(chunks, self.decompressed_bytes_max, self.poll_bytes_max);
        if !left.is_empty() {
            self.with(|machine, _| {
                machine.give_back(left);
                Ok(())
            })?;
        }
        records
    }

    /// Goes on from another place in an assigned partition.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn seek(&mut self, topic: &str, partition: PartitionIndex, start: Start) -> Result<()> {
        self.with(|machine, _| machine.seek(topic, partition, start))
    }

    /// Returns and fetches nothing of an assigned partition until [`Self::resume`].
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn pause(&mut self, topic: &str, partition: PartitionIndex) -> Result<()> {
        self.with(|machine, _| machine.set_paused(topic, partition, true))
    }

    /// Undoes [`Self::pause`]; goes on where it was.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn resume(&mut self, topic: &str, partition: PartitionIndex) -> Result<()> {
        self.with(|machine, _| machine.set_paused(topic, partition, false))
    }

    /// The offset of the next record that [`Self::poll`] will return; `None` until a broker has told where that is.
    ///
    /// # Errors
    /// [`Error::NotAssigned`](crate::Error::NotAssigned).
    pub fn position(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        self.driver
            .shared
            .lock()
            .driven
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
            .lock()
            .driven
            .machine
            .high_watermark(topic, partition)
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut ConsumerMachine, Now) -> Result<T>) -> Result<T> {
        let shared = &self.driver.shared;
        let mut inner = shared.lock();
        let outcome = act(&mut inner.driven.machine, shared.now());
        shared.turn(&mut inner);
        outcome
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
