//! Offsets on their way to the coordinator: those that wait, those that are under way, and who wants to know.
//!
//! What the coordinator refuses of some partitions is settled for these alone: the rest is stored, or sent again.
//!
//! Invariants:
//! 1. One request is in flight at a time, and one that failed is sent again together with what came to wait meanwhile,
//!    the later offset of each partition counting: the coordinator sees them in order.
//! 2. What waits is of partitions that are held, or that the caller gave up in this generation, before which nothing is
//!    joined anew; nothing of what was lost. Who waits is the one caller.

use std::collections::BTreeMap;

use tackboard_schema::Offset;

use super::ENTRIES_MAX;
use super::assignor::NamedPartition;
use crate::error::{Error, Result};
use crate::protocol::time::Now;

#[derive(Debug, Default)]
pub(super) struct Commits {
    waiting: BTreeMap<NamedPartition, Offset>,
    /// The last caller's commit that `waiting` holds; 0: none.
    waiting_ticket: u64,
    in_flight: Option<Batch>,
    last_ticket: u64,
    awaited: Option<Awaited>,
    pub(super) failures: u32,
    pub(super) blocked_until: Now,
}

/// The commit that a caller waits for.
#[derive(Debug)]
struct Awaited {
    ticket: u64,
    /// The first refusal of something that belongs to it.
    refusal: Option<Error>,
    outcome: Option<Result<()>>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) offsets: Vec<(NamedPartition, Offset)>,
    /// The last caller's commit of which it holds anything; 0: none.
    ticket: u64,
    /// The rest of that commit is yet to be sent.
    is_part: bool,
}

impl Commits {
    /// Nothing waits and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// Something waits to be sent, and nothing is in its way.
    pub(super) fn may_send(&self, now: Now) -> bool {
        self.in_flight.is_none() && !self.waiting.is_empty() && self.blocked_until <= now
    }

    /// Adds what is to be committed by itself.
    pub(super) fn add(&mut self, partition: NamedPartition, offset: Offset) {
        self.waiting.insert(partition, offset);
    }

    /// Adds a caller's commit and returns its ticket.
    pub(super) fn ask(
        &mut self,
        offsets: impl IntoIterator<Item = (NamedPartition, Offset)>,
    ) -> u64 {
        self.last_ticket += 1;
        self.waiting.extend(offsets);
        if !self.waiting.is_empty() {
            self.waiting_ticket = self.last_ticket;
        } else if let Some(batch) = &mut self.in_flight {
            batch.ticket = self.last_ticket;
        } else {
            // There is nothing to commit.
            return 0;
        }
        self.last_ticket
    }

    /// The caller will ask for the outcome of this commit.
    pub(super) fn wait_for(&mut self, ticket: u64) {
        self.awaited = Some(Awaited {
            ticket,
            refusal: None,
            outcome: (ticket == 0).then_some(Ok(())),
        });
    }

    /// The caller asks no more.
    pub(super) fn stop_waiting(&mut self) {
        self.awaited = None;
    }

    /// What came of the commit that was waited for, once.
    pub(super) fn take_outcome(&mut self) -> Option<Result<()>> {
        let outcome = self.awaited.as_mut()?.outcome.take()?;
        self.awaited = None;
        Some(outcome)
    }

    /// Whether [`Self::take_outcome`] has something.
    pub(super) fn has_outcome(&self) -> bool {
        (self.awaited.as_ref()).is_some_and(|awaited| awaited.outcome.is_some())
    }

    /// The next request: as much as one may hold.
    pub(super) fn start(&mut self) -> &Batch {
        let mut offsets = std::mem::take(&mut self.waiting);
        if let Some((first_left, _)) = offsets.iter().nth(ENTRIES_MAX) {
            let first_left = first_left.clone();
            self.waiting = offsets.split_off(&first_left);
        }
        // A commit is done when the last of it is.
        let is_part = !self.waiting.is_empty();
        let ticket = match is_part {
            true => self.waiting_ticket,
            false => std::mem::take(&mut self.waiting_ticket),
        };
        let offsets = offsets.into_iter().collect();
        self.in_flight.insert(Batch {
            offsets,
            ticket,
            is_part,
        })
    }

    /// The request is under way no longer.
    pub(super) fn end(&mut self) -> Option<Batch> {
        self.in_flight.take()
    }

    /// It has to be sent again. What was asked for since is later.
    pub(super) fn again(&mut self, batch: Batch) {
        for (partition, offset) in batch.offsets {
            self.waiting.entry(partition).or_insert(offset);
        }
        self.waiting_ticket = self.waiting_ticket.max(batch.ticket);
    }

    /// What belongs to the batch was refused for good, and goes on without. Returns the refusal if no caller waits to be
    /// told.
    pub(super) fn refuse_some(&mut self, batch: &Batch, fault: Error) -> Option<Error> {
        match self.awaited_by(batch.ticket) {
            Some(awaited) => {
                awaited.refusal.get_or_insert(fault);
                None
            }
            None => Some(fault),
        }
    }

    /// It was carried out, or refused for good. Returns the refusal if no caller waits to be told.
    pub(super) fn settle(&mut self, batch: &Batch, outcome: Result<()>) -> Option<Error> {
        self.failures = 0;
        match outcome {
            Err(fault) if batch.is_part => self.refuse_some(batch, fault),
            _ if batch.is_part => None,
            outcome => self.tell(batch.ticket, outcome),
        }
    }

    /// Nothing that waits can be committed any more. Returns the refusal if no caller waits to be told of it.
    pub(super) fn give_up(&mut self, fault: &Error) -> Option<Error> {
        let is_nothing = self.waiting.is_empty() && self.waiting_ticket == 0;
        self.waiting.clear();
        let ticket = std::mem::take(&mut self.waiting_ticket);
        match is_nothing {
            true => None,
            false => self.tell(ticket, Err(fault.clone())),
        }
    }

    /// Whoever waits for this commit, or for one before it.
    fn awaited_by(&mut self, ticket: u64) -> Option<&mut Awaited> {
        let is_waiting =
            |awaited: &&mut Awaited| awaited.ticket <= ticket && awaited.outcome.is_none();
        self.awaited.as_mut().filter(is_waiting)
    }

    fn tell(&mut self, ticket: u64, outcome: Result<()>) -> Option<Error> {
        match self.awaited_by(ticket) {
            Some(awaited) => {
                let refusal = awaited.refusal.take();
                awaited.outcome = Some(refusal.map_or(outcome, Err));
                None
            }
            None => outcome.err(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(partition: i32, offset: i64) -> (NamedPartition, Offset) {
        (NamedPartition::new("t", partition), Offset(offset))
    }

    #[test]
    fn one_at_a_time_and_what_is_sent_again_never_replaces_what_came_later() {
        let mut commits = Commits::default();
        let first = commits.ask([at(0, 5), at(1, 5)]);
        commits.wait_for(first);
        assert_eq!(commits.start().offsets, [at(0, 5), at(1, 5)]);
        commits.ask([at(0, 9)]);
        assert!(!commits.may_send(Now::default()), "one is under way");
        let lost = commits.end().unwrap();
        commits.again(lost);
        assert_eq!(commits.start().offsets, [at(0, 9), at(1, 5)]);
        assert!(!commits.has_outcome());
        let batch = commits.end().unwrap();
        assert!(commits.settle(&batch, Ok(())).is_none());
        assert!(matches!(commits.take_outcome(), Some(Ok(()))));
        assert!(commits.is_idle() && commits.take_outcome().is_none());
    }

    #[test]
    fn a_refusal_goes_to_whoever_waits_and_else_to_everybody() {
        let mut commits = Commits::default();
        commits.ask([at(0, 1)]);
        assert!(commits.give_up(&Error::Closed).is_some(), "nobody waits");
        assert!(commits.give_up(&Error::Closed).is_none(), "nothing waits");
        let ticket = commits.ask([at(0, 1)]);
        commits.wait_for(ticket);
        assert!(commits.give_up(&Error::Closed).is_none());
        assert!(matches!(commits.take_outcome(), Some(Err(Error::Closed))));
    }

    #[test]
    fn nothing_to_commit_is_committed_at_once() {
        let mut commits = Commits::default();
        let ticket = commits.ask([]);
        commits.wait_for(ticket);
        assert!(matches!(commits.take_outcome(), Some(Ok(()))));
    }

    #[test]
    fn what_one_request_cannot_hold_comes_with_the_next() {
        let mut commits = Commits::default();
        let count = ENTRIES_MAX as i32 + 1;
        let ticket = commits.ask((0..count).map(|partition| at(partition, 1)));
        commits.wait_for(ticket);
        assert_eq!(commits.start().offsets.len(), ENTRIES_MAX);
        let batch = commits.end().unwrap();
        commits.settle(&batch, Ok(()));
        assert!(!commits.has_outcome(), "a part is not the whole");
        assert_eq!(commits.start().offsets.len(), 1);
        let batch = commits.end().unwrap();
        commits.settle(&batch, Ok(()));
        assert!(commits.has_outcome());
    }

    #[test]
    fn a_part_that_is_refused_is_told_though_the_rest_is_stored() {
        let mut commits = Commits::default();
        let count = ENTRIES_MAX as i32 + 1;
        let all = || (0..count).map(|partition| at(partition, 1));
        for is_awaited in [true, false] {
            let ticket = commits.ask(all());
            if is_awaited {
                commits.wait_for(ticket);
            }
            commits.start();
            let batch = commits.end().unwrap();
            let told = commits.settle(&batch, Err(Error::Closed));
            assert_eq!(told.is_some(), !is_awaited, "once, to the one or the other");
            commits.start();
            let batch = commits.end().unwrap();
            assert!(commits.settle(&batch, Ok(())).is_none());
            match commits.take_outcome() {
                None => assert!(!is_awaited),
                Some(outcome) => assert!(is_awaited && outcome.is_err()),
            }
        }
    }

    #[test]
    fn what_becomes_of_a_commit_that_was_waited_for_in_vain_is_told_as_if_nobody_had() {
        let mut commits = Commits::default();
        let ticket = commits.ask([at(0, 1)]);
        commits.wait_for(ticket);
        commits.start();
        commits.stop_waiting();
        let batch = commits.end().unwrap();
        assert!(commits.settle(&batch, Err(Error::Closed)).is_some());
        assert!(!commits.has_outcome());
    }

    #[test]
    fn partitions_that_are_refused_do_not_keep_the_others_waiting() {
        let mut commits = Commits::default();
        let ticket = commits.ask([at(0, 1), at(1, 1)]);
        commits.wait_for(ticket);
        commits.start();
        let mut batch = commits.end().unwrap();
        assert!(commits.refuse_some(&batch, Error::Closed).is_none());
        batch.offsets.remove(0);
        commits.again(batch);
        assert_eq!(commits.start().offsets, [at(1, 1)]);
        assert!(!commits.has_outcome(), "the rest is under way");
        let batch = commits.end().unwrap();
        assert!(commits.settle(&batch, Ok(())).is_none());
        assert!(matches!(commits.take_outcome(), Some(Err(Error::Closed))));
    }
}
