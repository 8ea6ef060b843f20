//! Reads records as a member of a consumer group, from threads. Heartbeats, fetching and commits go on in the background.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use tackboard_schema::{Offset, PartitionIndex};

use super::ambient::{deadline_after, seed};
use super::driver::{Driven, Driver, News};
use crate::config::GroupConfig;
use crate::consumed::{Records, Start};
use crate::error::{Error, Result};
use crate::protocol::Now;
use crate::protocol::group::{EventId, GroupEvent, GroupMachine, NamedPartition, Pattern, Polled};

/// A member that is dropped without [`GroupConsumer::close`] tells its coordinator so, at most for so long.
const DROP_WAIT: Duration = Duration::from_secs(1);

/// Is told how the member's share changes. Every function is called within [`GroupConsumer::poll`] or
/// [`GroupConsumer::close`], by the thread that calls these, with the consumer at hand: to seek in new partitions, or to
/// commit for those that go. A poll within a poll returns nothing.
pub trait RebalanceListener: Send {
    /// These are the member's from now on, besides those that it has.
    fn assigned(&mut self, consumer: &mut GroupConsumer, partitions: &[NamedPartition]) {
        let _ = (consumer, partitions);
    }

    /// These are about to go to others. It is the last moment to commit for them; where commits go on by themselves,
    /// what was handed out is committed afterwards.
    fn revoked(&mut self, consumer: &mut GroupConsumer, partitions: &[NamedPartition]) {
        let _ = (consumer, partitions);
    }

    /// These are gone already, perhaps to others: the group went on without the member. Nothing can be committed for them.
    fn lost(&mut self, consumer: &mut GroupConsumer, partitions: &[NamedPartition]) {
        let _ = (consumer, partitions);
    }

    /// A commit that nobody waited for was refused.
    fn commit_failed(&mut self, consumer: &mut GroupConsumer, fault: &Error) {
        let _ = (consumer, fault);
    }
}

/// Reads the share of some topics that a group gives to this member.
///
/// Call [`Self::poll`] again and again: what an earlier call returned counts as done then, and is committed from time to
/// time ([`GroupConfig::auto_commit`]), so that every record is handed to some member at least once.
///
/// ```no_run
/// use std::time::Duration;
/// use tackboard_client::{GroupConfig, GroupConsumer};
/// # fn main() -> tackboard_client::Result<()> {
/// let mut consumer = GroupConsumer::connect(&["127.0.0.1:7400"], GroupConfig::new("planner"))?;
/// consumer.subscribe(&["flights"])?;
/// for _ in 0..100 {
///     for record in &consumer.poll(Duration::from_secs(1))? {
///         println!("{:?}", record?.value);
///     }
/// }
/// consumer.close(Duration::from_secs(10))
/// # }
/// ```
pub struct GroupConsumer {
    driver: Driver<State>,
    decompressed_bytes_max: usize,
    poll_bytes_max: usize,
    /// A poll that waits comes back to the machine so often, or it would seem to be away.
    poll_wait_max: Duration,
    listener: Option<Box<dyn RebalanceListener>>,
    is_telling: bool,
}

struct State {
    machine: GroupMachine,
}

impl Driven for State {
    type Machine = GroupMachine;

    fn machine(&mut self) -> &mut GroupMachine {
        &mut self.machine
    }

    fn advanced(&mut self) -> News {
        News {
            for_callers: self.machine.has_news(),
            for_keeper: false,
        }
    }
}

impl GroupConsumer {
    /// Connects to any of `brokers` (`host:port`), which tells of the others. The member joins with its first
    /// subscription.
    ///
    /// # Errors
    /// [`Error::Setting`] for settings out of bounds, [`Error::Unreachable`] when no broker answers.
    pub fn connect<A: AsRef<str>>(brokers: &[A], config: GroupConfig) -> Result<Self> {
        let consumer = &config.consumer;
        let (client, decompressed_bytes_max, poll_bytes_max) = (
            consumer.client.clone(),
            consumer.decompressed_bytes_max,
            consumer.poll_bytes_max,
        );
        let poll_wait_max = config.poll_interval_max / 2;
        let machine = GroupMachine::new(brokers, config, seed()?)?;
        Ok(Self {
            driver: Driver::start(State { machine }, client)?,
            decompressed_bytes_max,
            poll_bytes_max,
            poll_wait_max,
            listener: None,
            is_telling: false,
        })
    }

    /// Tells this listener of the member's share from now on.
    pub fn set_listener(&mut self, listener: impl RebalanceListener + 'static) {
        self.listener = Some(Box::new(listener));
    }

    /// Reads these topics from now on, as far as they are the member's share; a subscription before is replaced.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn subscribe(&mut self, topics: &[&str]) -> Result<()> {
        self.with(|machine, now| {
            machine.subscribe(topics.iter().copied(), now);
            Ok(())
        })
    }

    /// Reads all topics whose names match, those to come included: they are looked for whenever metadata is asked for
    /// anew ([`ClientConfig::metadata_age_max`](crate::ClientConfig::metadata_age_max)).
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn subscribe_pattern(&mut self, pattern: Pattern) -> Result<()> {
        self.with(|machine, now| {
            machine.subscribe_pattern(pattern, now);
            Ok(())
        })
    }

    /// The next records, whole batches of them; none when `timeout` passes without any. Takes part in rebalances.
    ///
    /// # Errors
    /// As [`Consumer::poll`](crate::Consumer::poll); [`Error::Refused`] by the coordinator, for a reason that does not
    /// pass by itself; [`Error::NothingCommitted`]. The next call goes on.
    pub fn poll(&mut self, timeout: Duration) -> Result<Records> {
        if self.is_telling {
            return Ok(Records::default());
        }
        let deadline = deadline_after(timeout);
        loop {
            let shared = &self.driver.shared;
            let until = deadline.min(deadline_after(self.poll_wait_max));
            let polled = shared.wait_until(until, |state| match state.machine.poll(shared.now()) {
                Ok(Polled::Records(chunks)) if chunks.is_empty() => None,
                polled => Some(polled),
            });
            match polled.transpose()? {
                Some(Polled::Event(id, event)) => self.tell(id, &event)?,
                Some(Polled::Records(chunks)) => {
                    let (records, left) =
                        Records::open(chunks, self.decompressed_bytes_max, self.poll_bytes_max);
                    if !left.is_empty() {
                        self.with(|machine, _| {
                            machine.give_back(left);
                            Ok(())
                        })?;
                    }
                    return records;
                }
                None if Instant::now() >= deadline => return Ok(Records::default()),
                None => {}
            }
        }
    }

    /// Calls the listener, without the lock.
    fn tell(&mut self, id: EventId, event: &GroupEvent) -> Result<()> {
        if let Some(mut listener) = self.listener.take() {
            self.is_telling = true;
            match event {
                GroupEvent::Assigned(partitions) => listener.assigned(self, partitions),
                GroupEvent::Revoked(partitions) => listener.revoked(self, partitions),
                GroupEvent::Lost(partitions) => listener.lost(self, partitions),
                GroupEvent::CommitFailed(fault) => listener.commit_failed(self, fault),
            }
            self.is_telling = false;
            // One that was set meanwhile stays.
            self.listener.get_or_insert(listener);
        }
        self.with(|machine, _| {
            machine.handled(id);
            Ok(())
        })
    }

    /// Commits everything that was handed out, and waits until that is stored.
    ///
    /// # Errors
    /// [`Error::NotMember`]: nothing was committed, and others may read the partitions by now; [`Error::Refused`]: of the
    /// partition that it names nothing was, as of one whose topic was deleted; [`Error::TimedOut`] when no coordinator
    /// answers within `call_timeout`: what comes of it is not known.
    pub fn commit(&mut self) -> Result<()> {
        self.with(|machine, _| machine.commit(true))?;
        self.await_commit()
    }

    /// Commits everything that was handed out, without waiting. A refusal is told to the listener.
    ///
    /// # Errors
    /// [`Error::NotMember`] if it is known already that nothing can be committed: the next poll tells what is lost.
    pub fn commit_later(&mut self) -> Result<()> {
        self.with(|machine, _| machine.commit(false))
    }

    /// Commits these offsets, each that of the next record to be read, and waits until that is stored.
    ///
    /// # Errors
    /// [`Error::NotAssigned`] if a partition is not the member's, else as [`Self::commit`].
    pub fn commit_offsets(&mut self, offsets: &[(NamedPartition, Offset)]) -> Result<()> {
        self.with(|machine, _| machine.commit_offsets(offsets, true))?;
        self.await_commit()
    }

    /// Commits these offsets without waiting. A refusal is told to the listener.
    ///
    /// # Errors
    /// [`Error::NotAssigned`] if a partition is not the member's; [`Error::NotMember`] as for [`Self::commit_later`].
    pub fn commit_offsets_later(&mut self, offsets: &[(NamedPartition, Offset)]) -> Result<()> {
        self.with(|machine, _| machine.commit_offsets(offsets, false))
    }

    fn await_commit(&mut self) -> Result<()> {
        let shared = &self.driver.shared;
        let outcome = shared.wait("a commit", |state| state.machine.commit_outcome());
        let mut inner = shared.lock();
        inner.driven.machine.stop_waiting_for_commit();
        outcome
    }

    /// What the member has.
    pub fn assignment(&self) -> BTreeSet<NamedPartition> {
        self.driver.shared.lock().driven.machine.assignment()
    }

    /// Goes on from another place in a partition that the member has.
    ///
    /// # Errors
    /// [`Error::NotAssigned`].
    pub fn seek(&mut self, topic: &str, partition: PartitionIndex, start: Start) -> Result<()> {
        self.with(|machine, _| machine.seek(topic, partition, start))
    }

    /// Returns and fetches nothing of a partition until [`Self::resume`].
    ///
    /// # Errors
    /// [`Error::NotAssigned`], also before it is known where a new partition begins.
    pub fn pause(&mut self, topic: &str, partition: PartitionIndex) -> Result<()> {
        self.with(|machine, _| machine.set_paused(topic, partition, true))
    }

    /// Undoes [`Self::pause`].
    ///
    /// # Errors
    /// As [`Self::pause`].
    pub fn resume(&mut self, topic: &str, partition: PartitionIndex) -> Result<()> {
        self.with(|machine, _| machine.set_paused(topic, partition, false))
    }

    /// The offset of the next record that [`Self::poll`] will return; `None` until that is known.
    ///
    /// # Errors
    /// [`Error::NotAssigned`].
    pub fn position(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        let inner = self.driver.shared.lock();
        inner.driven.machine.position(topic, partition)
    }

    /// What the group has committed for a partition of the member's, as far as the member knows.
    ///
    /// # Errors
    /// [`Error::NotAssigned`].
    pub fn committed(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        let inner = self.driver.shared.lock();
        inner.driven.machine.committed(topic, partition)
    }

    /// The end of what may be read, exclusive, as of the last answer; `None` until there was one.
    ///
    /// # Errors
    /// [`Error::NotAssigned`].
    pub fn high_watermark(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        let inner = self.driver.shared.lock();
        inner.driven.machine.high_watermark(topic, partition)
    }

    /// Commits what was handed out, if the member commits by itself; gives everything up and leaves the group. A static
    /// member keeps its place until its session ends.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when that takes longer than `timeout`; the group finds out by the session time-out then.
    pub fn close(mut self, timeout: Duration) -> Result<()> {
        self.leave(true, timeout)
    }

    fn leave(&mut self, is_done: bool, timeout: Duration) -> Result<()> {
        let deadline = deadline_after(timeout);
        self.with(|machine, _| {
            machine.leave(is_done);
            Ok(())
        })?;
        loop {
            let shared = &self.driver.shared;
            let polled = shared.wait_until(deadline, |state| match state.machine.is_outside() {
                true => Some(Ok(None)),
                false => state.machine.poll_event().map(|told| Ok(Some(told))),
            });
            match polled.transpose()? {
                Some(Some((id, event))) => self.tell(id, &event)?,
                Some(None) => return Ok(()),
                None => {
                    return Err(Error::TimedOut {
                        what: "leaving the group".into(),
                        waited: timeout,
                        last: None,
                    });
                }
            }
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut GroupMachine, Now) -> Result<T>) -> Result<T> {
        let shared = &self.driver.shared;
        let mut inner = shared.lock();
        if inner.is_closing {
            return Err(Error::Closed);
        }
        let outcome = act(&mut inner.driven.machine, shared.now());
        shared.turn(&mut inner);
        outcome
    }
}

impl Drop for GroupConsumer {
    /// The group need not wait for the session's end. What was handed out last may not be done, so it is not committed.
    fn drop(&mut self) {
        self.listener = None;
        if let Err(fault) = self.leave(false, DROP_WAIT) {
            tracing::debug!(%fault, "the group was not told of a member that is gone");
        }
    }
}

impl fmt::Debug for GroupConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupConsumer").finish_non_exhaustive()
    }
}
