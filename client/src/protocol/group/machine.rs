//! What a transport and a caller see of a member of a group.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tackboard_schema::{Offset, PartitionIndex};

use super::assignor::NamedPartition;
use super::commits::Commits;
use super::holdings::Holdings;
use super::membership::Seat;
use super::subscription::{Pattern, Subscription};
use crate::config::GroupConfig;
use crate::consumed::{Chunk, Start};
use crate::error::{Error, Result};
use crate::protocol::backoff::Backoff;
use crate::protocol::cluster::Action;
use crate::protocol::connection::ConnectionId;
use crate::protocol::consumer::ConsumerMachine;
use crate::protocol::frames::InFrame;
use crate::protocol::machine::Machine;
use crate::protocol::random::Random;
use crate::protocol::time::{Now, earliest};

/// Something that the caller has to know of before anything else happens.
#[derive(Clone, Debug)]
pub enum GroupEvent {
    /// These partitions are the member's from now on, besides those that it has.
    Assigned(Vec<NamedPartition>),
    /// These are about to go to others. It is the last moment to commit for them.
    Revoked(Vec<NamedPartition>),
    /// These are gone already: the group went on without the member. Nothing can be committed for them.
    Lost(Vec<NamedPartition>),
    /// A commit that nobody waits for was refused.
    CommitFailed(Error),
}

/// Names an event, so that one that took its place meanwhile is not taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId(u64);

/// What [`GroupMachine::poll`] has.
#[derive(Debug)]
pub enum Polled {
    /// Call [`GroupMachine::handled`] once the caller knows; nothing else is told before.
    Event(EventId, GroupEvent),
    /// Records, perhaps none.
    Records(Vec<Chunk>),
}

/// A member of a consumer group without its sockets. See [`Machine`] for how it is driven.
pub struct GroupMachine {
    pub(super) config: GroupConfig,
    pub(super) consumer: ConsumerMachine,
    pub(super) random: Random,
    /// `None`: the member is on its way out, or outside.
    pub(super) subscription: Option<Subscription>,
    pub(super) seat: Seat,
    pub(super) holdings: Holdings,
    pub(super) commits: Commits,
    /// At most one of each kind that tells of partitions, and one of a commit.
    pub(super) events: VecDeque<(EventId, GroupEvent)>,
    last_event: u64,
    /// To be told by the next poll.
    pub(super) fault: Option<Error>,
    pub(super) wake_at: Option<Now>,
}

impl GroupMachine {
    /// A member-to-be that will find its cluster through any of `brokers` (`host:port`). The seed decides the spread of
    /// pauses.
    pub fn new(brokers: &[impl AsRef<str>], config: GroupConfig, seed: u64) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            consumer: ConsumerMachine::new(brokers, config.consumer.clone(), seed)?,
            seat: Seat::new(&config),
            config,
            random: Random::new(seed.wrapping_add(2)),
            subscription: None,
            holdings: Holdings::default(),
            commits: Commits::default(),
            events: VecDeque::new(),
            last_event: 0,
            fault: None,
            wake_at: None,
        })
    }

    /// The settings.
    pub fn config(&self) -> &GroupConfig {
        &self.config
    }

    /// Reads these topics from now on, as far as they are the member's share.
    pub fn subscribe<'t>(&mut self, topics: impl IntoIterator<Item = &'t str>, now: Now) {
        let topics = topics.into_iter().map(Into::into).collect();
        self.consumer.cluster.set_wants_all(false);
        self.subscription = Some(Subscription::Topics(topics));
        self.seat.polled(now);
        self.seat.look_again();
    }

    /// Reads all topics whose names match, those to come included.
    pub fn subscribe_pattern(&mut self, pattern: Pattern, now: Now) {
        self.consumer.cluster.set_wants_all(true);
        let serial = self.consumer.cluster.want_refresh();
        self.subscription = Some(Subscription::Pattern { pattern, serial });
        self.seat.polled(now);
        self.seat.look_again();
    }

    /// Begins to leave the group. With `is_done` what was handed out counts as done, and is committed if the member
    /// commits by itself. Go on polling events until [`Self::is_outside`].
    pub fn leave(&mut self, is_done: bool) {
        if is_done {
            self.mark_done();
        }
        self.subscription = None;
        self.consumer.cluster.set_wants_all(false);
    }

    /// Whether the member has left, or never was one.
    pub fn is_outside(&self) -> bool {
        self.subscription.is_none() && self.seat.is_outside() && self.events.is_empty()
    }

    /// The next thing to tell: an event, a fault, records. Whatever was handed out before counts as done.
    ///
    /// # Errors
    /// As [`ConsumerMachine::poll`]; a coordinator's refusal that does not pass by itself, told each time that it was
    /// met; [`Error::NothingCommitted`].
    pub fn poll(&mut self, now: Now) -> Result<Polled> {
        self.seat.polled(now);
        self.mark_done();
        if let Some((id, event)) = self.poll_event() {
            return Ok(Polled::Event(id, event));
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        Ok(Polled::Records(self.consumer.poll(now)?))
    }

    /// The next event alone, for a member that is on its way out.
    pub fn poll_event(&mut self) -> Option<(EventId, GroupEvent)> {
        let (id, event) = self.events.front()?;
        if let GroupEvent::Assigned(partitions) = event {
            for partition in partitions {
                if let Some(holding) = self.holdings.0.get_mut(partition) {
                    holding.is_announced = true;
                }
            }
        }
        Some((*id, event.clone()))
    }

    /// The caller knows of the event that was polled. Nothing to do if another has taken its place: the next poll tells
    /// that one.
    pub fn handled(&mut self, id: EventId) {
        if self.events.front().is_none_or(|(told, _)| *told != id) {
            return;
        }
        match self.events.pop_front().map(|(_, event)| event) {
            Some(GroupEvent::Revoked(partitions)) => {
                for partition in &partitions {
                    self.commit_before_it_goes(partition);
                    self.drop_partition(partition);
                }
                self.seat.gave_up();
            }
            Some(GroupEvent::Lost(partitions)) => {
                partitions.iter().for_each(|one| self.drop_partition(one));
            }
            Some(GroupEvent::Assigned(_) | GroupEvent::CommitFailed(_)) | None => {}
        }
    }

    fn commit_before_it_goes(&mut self, partition: &NamedPartition) {
        let Some(holding) = self.holdings.0.get(partition) else {
            return;
        };
        if let (Some(_), Some(done)) = (self.config.auto_commit, holding.done)
            && holding.committed != Some(done)
        {
            self.commits.add(partition.clone(), done);
        }
    }

    pub(super) fn drop_partition(&mut self, partition: &NamedPartition) {
        self.holdings.0.remove(partition);
        self.consumer
            .unassign(&partition.topic, partition.partition);
    }

    fn mark_done(&mut self) {
        for (partition, holding) in &mut self.holdings.0 {
            if holding.is_read
                && let Ok(position) = self
                    .consumer
                    .position(&partition.topic, partition.partition)
            {
                holding.done = position;
            }
        }
    }

    /// Takes back what a poll handed out and the caller did not get to.
    pub fn give_back(&mut self, chunks: Vec<Chunk>) {
        self.consumer.give_back(chunks);
    }

    /// Whether [`Self::poll`] has something, or a commit that is waited for has ended.
    pub fn has_news(&self) -> bool {
        !self.events.is_empty()
            || self.fault.is_some()
            || self.commits.has_outcome()
            || self.is_outside()
            || self.consumer.has_news()
    }

    /// What the member has, as the caller knows it.
    pub fn assignment(&self) -> BTreeSet<NamedPartition> {
        self.holdings.announced()
    }

    /// The generation that the member belongs to, if it belongs to one.
    pub fn generation(&self) -> Option<i32> {
        self.seat.generation()
    }

    // Commits.

    /// Commits everything that was handed out; with `is_awaited`, ask for [`Self::commit_outcome`] until there is one.
    ///
    /// # Errors
    /// [`Error::NotMember`] if the member was put out, and its caller has yet to poll that.
    pub fn commit(&mut self, is_awaited: bool) -> Result<()> {
        self.check_that_nothing_is_lost()?;
        self.mark_done();
        let offsets: Vec<_> = (self.holdings.uncommitted())
            .map(|(partition, offset)| (partition.clone(), offset))
            .collect();
        let ticket = self.commits.ask(offsets);
        if is_awaited {
            self.commits.wait_for(ticket);
        }
        Ok(())
    }

    /// Commits these offsets, each the next to be read.
    ///
    /// # Errors
    /// [`Error::NotAssigned`] if a partition is not the member's, [`Error::NotMember`] as for [`Self::commit`]; nothing is
    /// committed then.
    pub fn commit_offsets(
        &mut self,
        offsets: &[(NamedPartition, Offset)],
        is_awaited: bool,
    ) -> Result<()> {
        self.check_that_nothing_is_lost()?;
        for (partition, _) in offsets {
            self.holding(&partition.topic, partition.partition)?;
        }
        for (partition, offset) in offsets {
            // It is the caller who says how far it has come, until it polls again.
            if let Some(holding) = self.holdings.0.get_mut(partition) {
                holding.done = Some(*offset);
            }
        }
        let ticket = self.commits.ask(offsets.iter().cloned());
        if is_awaited {
            self.commits.wait_for(ticket);
        }
        Ok(())
    }

    /// What the caller still takes for its own may be others' by now: committed in the next generation, it would take back
    /// what these have committed.
    fn check_that_nothing_is_lost(&self) -> Result<()> {
        let is_loss = |(_, event): &(EventId, GroupEvent)| matches!(event, GroupEvent::Lost(_));
        match self.events.iter().any(is_loss) {
            true => Err(self.not_a_member()),
            false => Ok(()),
        }
    }

    /// What came of the commit that is waited for.
    pub fn commit_outcome(&mut self) -> Option<Result<()>> {
        self.commits.take_outcome()
    }

    /// The caller waits for the outcome no longer: a refusal is an event from now on.
    pub fn stop_waiting_for_commit(&mut self) {
        self.commits.stop_waiting();
    }

    /// What the group has committed for a partition of the member's, as far as the member knows.
    pub fn committed(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        Ok(self.holding(topic, partition)?.committed)
    }

    fn holding(&self, topic: &str, partition: PartitionIndex) -> Result<&super::holdings::Holding> {
        let key = NamedPartition {
            topic: topic.into(),
            partition,
        };
        self.holdings.0.get(&key).ok_or_else(|| Error::NotAssigned {
            topic: topic.into(),
            partition,
        })
    }

    // Positions.

    /// Goes on from another place; also within the event that tells of the partition.
    pub fn seek(&mut self, topic: &str, partition: PartitionIndex, start: Start) -> Result<()> {
        self.holding(topic, partition)?;
        let key = NamedPartition {
            topic: topic.into(),
            partition,
        };
        let Some(holding) = self.holdings.0.get_mut(&key) else {
            return Ok(());
        };
        holding.start = Some(start);
        holding.done = None;
        match holding.is_read {
            true => self.consumer.seek(topic, partition, start),
            false => Ok(()),
        }
    }

    /// Hands out and fetches nothing of a partition, or does so again.
    ///
    /// # Errors
    /// [`Error::NotAssigned`], also before the first record of a new partition could be read.
    pub fn set_paused(
        &mut self,
        topic: &str,
        partition: PartitionIndex,
        is_paused: bool,
    ) -> Result<()> {
        self.consumer.set_paused(topic, partition, is_paused)
    }

    /// The offset of the next record to be handed out; `None` while that is not known.
    pub fn position(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        match self.holding(topic, partition)?.is_read {
            true => self.consumer.position(topic, partition),
            false => Ok(None),
        }
    }

    /// The end of what may be read, as of the last answer.
    pub fn high_watermark(&self, topic: &str, partition: PartitionIndex) -> Result<Option<Offset>> {
        match self.holding(topic, partition)?.is_read {
            true => self.consumer.high_watermark(topic, partition),
            false => Ok(None),
        }
    }

    // For the parts of this machine.

    pub(super) fn backoff(&self) -> Backoff {
        Backoff {
            first: self.config.consumer.client.backoff,
            max: self.config.consumer.client.backoff_max,
        }
    }

    /// Something is due then.
    pub(super) fn wake(&mut self, at: Now) {
        self.wake_at = earliest(self.wake_at, Some(at));
    }

    /// Puts an event at the end. Of each kind there is one at most.
    pub(super) fn tell(&mut self, event: GroupEvent) {
        let kind = std::mem::discriminant(&event);
        if let GroupEvent::CommitFailed(fault) = &event {
            tracing::warn!(group = self.config.group, %fault, "commit refused");
        }
        self.last_event += 1;
        let event = (EventId(self.last_event), event);
        match (self.events.iter_mut()).find(|(_, told)| std::mem::discriminant(told) == kind) {
            Some(told) => *told = event,
            None => self.events.push_back(event),
        }
    }

    /// The partitions and topics as the assignors' leader needs to see them.
    pub(super) fn known_sizes<'t>(
        &self,
        topics: impl IntoIterator<Item = &'t Arc<str>>,
    ) -> super::assignor::Sizes {
        let sizes = topics.into_iter().filter_map(|topic| {
            let size = self.consumer.cluster.known_size(topic)?;
            Some((topic.clone(), size))
        });
        sizes.collect()
    }
}

impl Machine for GroupMachine {
    fn opened(&mut self, connection: ConnectionId, now: Now) {
        self.consumer.opened(connection, now);
    }

    fn closed(&mut self, connection: ConnectionId, fault: Error, now: Now) {
        self.consumer.closed(connection, fault, now);
    }

    fn received(&mut self, connection: ConnectionId, frame: InFrame, now: Now) {
        self.consumer.received(connection, frame, now);
    }

    fn advance(&mut self, now: Now) {
        self.consumer.advance(now);
        self.take_outcomes(now);
        self.wake_at = None;
        self.notice_metadata();
        self.notice_silence(now);
        self.proceed(now);
        self.find_starts(now);
        self.send_commits(now);
        // New partitions are asked for at once.
        self.consumer.advance(now);
        self.take_outcomes(now);
    }

    fn next_deadline(&self) -> Option<Now> {
        earliest(self.wake_at, self.consumer.next_deadline())
    }

    fn next_action(&mut self) -> Option<Action> {
        self.consumer.next_action()
    }

    fn take_output(&mut self, connection: ConnectionId, out: &mut VecDeque<Bytes>) {
        self.consumer.take_output(connection, out);
    }

    fn revision(&self) -> u64 {
        self.consumer.revision()
    }

    fn is_up(&self) -> bool {
        self.consumer.is_up()
    }

    fn unreachable(&self) -> Option<Error> {
        self.consumer.unreachable()
    }
}
