//! Where new partitions begin, and how far they have come: asked of and told to the coordinator.

use super::machine::{GroupEvent, GroupMachine};
use super::{AskKind, ENTRIES_MAX};
use crate::protocol::time::Now;
use crate::protocol::wire::groups::GroupQuestion;

impl GroupMachine {
    /// Asks what is committed for new partitions, and reads those of which it is known.
    pub(super) fn find_starts(&mut self, now: Now) {
        // The caller may yet seek in what it is just being told of.
        let is_being_told = |event: &GroupEvent| matches!(event, GroupEvent::Assigned(_));
        let may_start = !self.events.iter().any(|(_, event)| is_being_told(event));
        for (partition, holding) in &mut self.holdings.0 {
            if !may_start {
                break;
            }
            if let (true, false, Some(start)) =
                (holding.is_announced, holding.is_read, holding.start)
            {
                holding.is_read = true;
                self.consumer
                    .assign_also(partition.topic.clone(), partition.partition, start);
            }
        }
        let unknown: Vec<_> = (self.holdings.without_start())
            .take(ENTRIES_MAX)
            .cloned()
            .collect();
        if unknown.is_empty() || self.seat.offsets_asked.is_some() || self.seat.generation < 0 {
            return;
        }
        if self.seat.offsets_blocked_until > now {
            return self.wake(self.seat.offsets_blocked_until);
        }
        let Some(connection) = self.coordinator(now) else {
            return;
        };
        let group = self.config.group.clone();
        let question = GroupQuestion::Offsets {
            group: &group,
            partitions: Some(&unknown),
        };
        self.send(connection, AskKind::Offsets, question, now);
        self.seat.offsets_asked = Some(unknown);
    }

    /// Sends what is to be committed.
    pub(super) fn send_commits(&mut self, now: Now) {
        if !self.seat.is_member() {
            return;
        }
        if let Some(interval) = self.config.auto_commit {
            if self.seat.auto_commit_at <= now {
                self.seat.auto_commit_at = now.after(interval);
                let done: Vec<_> = (self.holdings.uncommitted())
                    .map(|(partition, offset)| (partition.clone(), offset))
                    .collect();
                (done.into_iter())
                    .for_each(|(partition, offset)| self.commits.add(partition, offset));
            }
            self.wake(self.seat.auto_commit_at);
        }
        if !self.commits.may_send(now) {
            if self.commits.blocked_until > now {
                self.wake(self.commits.blocked_until);
            }
            return;
        }
        let Some(connection) = self.coordinator(now) else {
            return;
        };
        let offsets = self.commits.start().offsets.clone();
        let name = self.identity();
        let question = GroupQuestion::Commit {
            who: name.who(),
            offsets: &offsets,
        };
        self.send(connection, AskKind::Commit, question, now);
    }
}
