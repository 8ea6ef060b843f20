//! What a coordinator's answers change.

use std::collections::BTreeMap;

use tackboard_schema::ErrorCode;
use tackboard_schema::consumer_protocol::Assignment;

use super::assignor::NamedPartition;
use super::commits::Batch;
use super::machine::{GroupEvent, GroupMachine};
use super::membership::Phase;
use super::{AskKind, GroupAsk};
use crate::config::OffsetReset;
use crate::consumed::Start;
use crate::error::Error;
use crate::protocol::frames::InFrame;
use crate::protocol::messages::Context;
use crate::protocol::time::Now;
use crate::protocol::wire::groups::{self, CommittedOffset, JoinAnswer};

/// What a refusal means to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The same again, after a pause.
    Again,
    /// The same again, at a coordinator that has yet to be found.
    Elsewhere,
    /// The group rebalances.
    Rebalance,
    /// The group has gone on without the member; whether it may come back under its id.
    Out { keeps_id: bool },
    /// It won't pass by itself.
    Final,
}

fn verdict(fault: &Error) -> Verdict {
    let Error::Refused(refusal) = fault else {
        return Verdict::Final;
    };
    match refusal.code {
        ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => Verdict::Elsewhere,
        ErrorCode::RebalanceInProgress => Verdict::Rebalance,
        ErrorCode::IllegalGeneration => Verdict::Out { keeps_id: true },
        ErrorCode::UnknownMemberId => Verdict::Out { keeps_id: false },
        code if code.retriable() => Verdict::Again,
        _ => Verdict::Final,
    }
}

/// The same of the offset of one partition. A coordinator that may not know of a topic yet says so otherwise: one that
/// doesn't exist won't come to.
fn verdict_of_offset(fault: &Error) -> Verdict {
    match fault {
        Error::Refused(refusal) if refusal.code == ErrorCode::UnknownTopicOrPartition => {
            Verdict::Final
        }
        _ => verdict(fault),
    }
}

impl GroupMachine {
    pub(super) fn take_outcomes(&mut self, now: Now) {
        for (ask, answer) in std::mem::take(&mut self.consumer.group_outcomes) {
            self.take_outcome(ask, answer, now);
        }
    }

    fn take_outcome(&mut self, ask: GroupAsk, answer: Option<(Context, InFrame)>, now: Now) {
        let is_current = ask.attempt == self.seat.attempt;
        match ask.kind {
            AskKind::Find => self.found(answer, now),
            AskKind::Commit => self.committed_or_not(answer, is_current, now),
            AskKind::Offsets => self.starts_found(answer, is_current, now),
            _ if !is_current => {}
            AskKind::Join => self.join_answered(answer, now),
            AskKind::Sync => self.sync_answered(answer, now),
            AskKind::Heartbeat => self.heartbeat_answered(answer, now),
            // Whatever it was: the member is gone.
            AskKind::Leave => self.seat.phase = Phase::Outside,
        }
    }

    /// Nothing is asked of the coordinator for a while.
    fn pause(&mut self, now: Now) {
        self.seat.failures = self.seat.failures.saturating_add(1);
        let pause = self.backoff().pause(self.seat.failures, &mut self.random);
        self.seat.blocked_until = now.after(pause);
    }

    /// A refusal that stays what it is; it is asked again at the slowest pace, and told each time.
    pub(super) fn refused_for_good(&mut self, fault: Error, now: Now) {
        self.fault = Some(fault);
        self.lose();
        self.seat.seek();
        self.seat.blocked_until = now.after(self.backoff().max);
    }

    fn found(&mut self, answer: Option<(Context, InFrame)>, now: Now) {
        self.seat.is_finding = false;
        let found = answer.map(|(context, frame)| groups::read_find_coordinator(&context, &frame));
        match found {
            Some(Ok(address)) => self.seat.coordinator = Some(address),
            None => self.pause(now),
            Some(Err(fault)) => {
                self.pause(now);
                let is_final = verdict(&fault) == Verdict::Final;
                self.consumer.cluster.set_fault(fault.clone());
                if is_final {
                    self.fault = Some(fault);
                    self.seat.blocked_until = now.after(self.backoff().max);
                }
            }
        }
    }

    fn join_answered(&mut self, answer: Option<(Context, InFrame)>, now: Now) {
        let read = answer.map(|(context, frame)| {
            let joined = groups::read_join(&context, &frame)?;
            match &joined {
                JoinAnswer::Joined(joined)
                    if joined.generation < 0 || joined.member_id.is_empty() =>
                {
                    Err(context.fault("no generation, or no member id"))
                }
                _ => Ok(joined),
            }
        });
        match read {
            Some(Ok(JoinAnswer::Joined(joined))) => self.joined(joined, now),
            Some(Ok(JoinAnswer::TakeId(member_id))) => {
                self.seat.member_id = member_id;
                self.seat.seek();
            }
            Some(Err(fault)) => self.not_in(fault, now),
            None => {
                // Until just now it may have been waiting for the others.
                self.seat.heard_at = now;
                self.unheard(now);
            }
        }
    }

    fn sync_answered(&mut self, answer: Option<(Context, InFrame)>, now: Now) {
        let read = answer.map(|(context, frame)| {
            let told = groups::read_sync(&context, &frame)?;
            Assignment::decode(&told).map_err(|fault| context.fault(fault))
        });
        match read {
            Some(Ok(assignment)) => self.synced(assignment, now),
            Some(Err(fault)) => self.not_in(fault, now),
            None => self.unheard(now),
        }
    }

    /// The connection ended before the answer: whether the coordinator knows of the member will show.
    fn unheard(&mut self, now: Now) {
        self.pause(now);
        self.seat.coordinator = None;
        self.seat.seek();
    }

    /// A join or a sync was refused.
    fn not_in(&mut self, fault: Error, now: Now) {
        tracing::debug!(group = self.config.group, %fault, "not in the group");
        self.consumer.cluster.set_fault(fault.clone());
        match verdict(&fault) {
            Verdict::Rebalance => self.seat.seek(),
            Verdict::Again => {
                self.pause(now);
                self.seat.seek();
            }
            Verdict::Elsewhere => self.unheard(now),
            Verdict::Out { keeps_id } => self.put_out(keeps_id, now),
            Verdict::Final => self.refused_for_good(fault, now),
        }
    }

    fn put_out(&mut self, keeps_id: bool, now: Now) {
        if !keeps_id {
            self.seat.member_id.clear();
        }
        self.lose();
        self.seat.seek();
        self.pause(now);
    }

    fn heartbeat_answered(&mut self, answer: Option<(Context, InFrame)>, now: Now) {
        self.seat.is_heartbeat_asked = false;
        let read = answer.map(|(context, frame)| groups::read_heartbeat(&context, &frame));
        let Some(read) = read else {
            self.seat.coordinator = None;
            return;
        };
        let Err(fault) = read else {
            self.seat.heard_at = now;
            return;
        };
        match verdict(&fault) {
            Verdict::Again => {}
            Verdict::Elsewhere => self.seat.coordinator = None,
            Verdict::Rebalance => {
                self.seat.heard_at = now;
                // One that waits for its share hears of it there.
                self.seat.must_rejoin |= self.seat.is_member();
            }
            Verdict::Out { keeps_id } => self.put_out(keeps_id, now),
            Verdict::Final => self.refused_for_good(fault.clone(), now),
        }
        self.consumer.cluster.set_fault(fault);
    }

    fn committed_or_not(&mut self, answer: Option<(Context, InFrame)>, is_current: bool, now: Now) {
        let Some(mut batch) = self.commits.end() else {
            return;
        };
        let read = answer.map(|(context, frame)| groups::read_commit(&context, &frame));
        let fault = match read {
            Some(Ok(refused)) => match self.take_settled(&mut batch, refused, is_current) {
                None => {
                    self.commits.settle(&batch, Ok(()));
                    return;
                }
                fault => fault,
            },
            Some(Err(fault)) => Some(fault),
            None => None,
        };
        let verdict = fault.as_ref().map_or(Verdict::Elsewhere, verdict);
        if verdict == Verdict::Elsewhere {
            self.seat.coordinator = None;
        }
        let may_pass = matches!(verdict, Verdict::Again | Verdict::Elsewhere);
        if may_pass && is_current {
            self.commits.again(batch);
            self.commits.failures = self.commits.failures.saturating_add(1);
            let pause = self
                .backoff()
                .pause(self.commits.failures, &mut self.random);
            self.commits.blocked_until = now.after(pause);
            return;
        }
        // In another generation it isn't sent again: the partitions may be others' by now.
        let fault = fault
            .filter(|_| !may_pass)
            .unwrap_or_else(|| self.not_a_member());
        if let Some(refused) = self.commits.settle(&batch, Err(fault)) {
            self.tell(GroupEvent::CommitFailed(refused));
        }
        match verdict {
            Verdict::Rebalance => self.seat.must_rejoin |= self.seat.is_member(),
            Verdict::Out { keeps_id } if is_current => self.put_out(keeps_id, now),
            _ => {}
        }
    }

    /// Takes out of the batch what is stored and what is refused for good. Returns why the rest was refused, if there is
    /// a rest.
    fn take_settled(
        &mut self,
        batch: &mut Batch,
        mut refused: BTreeMap<NamedPartition, Error>,
        is_current: bool,
    ) -> Option<Error> {
        let (mut final_refusal, mut rest_refusal) = (None, None);
        for (partition, offset) in std::mem::take(&mut batch.offsets) {
            match refused.remove(&partition) {
                None => {
                    // What is held since is another holding of it.
                    if let (true, Some(holding)) = (is_current, self.holdings.0.get_mut(&partition))
                    {
                        holding.committed = Some(offset);
                    }
                }
                Some(fault) if verdict_of_offset(&fault) == Verdict::Final => {
                    final_refusal.get_or_insert(fault);
                }
                Some(fault) => {
                    rest_refusal.get_or_insert(fault);
                    batch.offsets.push((partition, offset));
                }
            }
        }
        let told = final_refusal.and_then(|fault| self.commits.refuse_some(batch, fault));
        if let Some(refused) = told {
            self.tell(GroupEvent::CommitFailed(refused));
        }
        rest_refusal
    }

    /// What is committed for new partitions. Asked in an earlier generation it says nothing: others may have read on.
    fn starts_found(&mut self, answer: Option<(Context, InFrame)>, is_current: bool, now: Now) {
        let asked = self.seat.take_offsets_asked();
        if !is_current {
            return;
        }
        let read = answer.map(|(context, frame)| {
            let found = groups::read_fetch(&context, &frame)?;
            let is_told = |found: &[CommittedOffset], partition: &NamedPartition| {
                found.iter().any(|found| found.partition == *partition)
            };
            match asked.iter().find(|partition| !is_told(&found, partition)) {
                Some(missing) => Err(context.fault(format_args!("nothing about {missing}"))),
                None => Ok(found),
            }
        });
        let fault = match read {
            Some(Ok(found)) => {
                self.seat.failures = 0;
                let found = found
                    .into_iter()
                    .filter(|found| asked.contains(&found.partition));
                return found.for_each(|found| self.start_at(found));
            }
            Some(Err(fault)) => Some(fault),
            None => None,
        };
        match fault.as_ref().map_or(Verdict::Elsewhere, verdict) {
            Verdict::Elsewhere => self.seat.coordinator = None,
            Verdict::Final => self.fault.clone_from(&fault),
            Verdict::Again | Verdict::Rebalance | Verdict::Out { .. } => {}
        }
        self.pause(now);
        self.seat.hold_offsets_off(self.seat.blocked_until);
    }

    fn start_at(&mut self, found: CommittedOffset) {
        let Some(holding) = self.holdings.0.get_mut(&found.partition) else {
            return;
        };
        // A seek of the caller's counts more.
        if holding.start.is_some() {
            return;
        }
        holding.committed = found.offset;
        holding.start = match (found.offset, self.config.consumer.offset_reset) {
            (Some(offset), _) => Some(Start::Offset(offset)),
            (None, OffsetReset::Earliest) => Some(Start::Earliest),
            (None, OffsetReset::Latest) => Some(Start::Latest),
            (None, OffsetReset::Fail) => {
                holding.awaits_seek = true;
                self.fault = Some(Error::NothingCommitted {
                    group: self.config.group.as_str().into(),
                    topic: found.partition.topic,
                    partition: found.partition.partition,
                });
                None
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_by_what_a_member_does_about_them() {
        let refused = |code| {
            let context = Context::new(tackboard_schema::frame::ApiKey::Heartbeat, &"a:1".into());
            verdict(&Error::Refused(context.refusal(None, code, None)))
        };
        assert_eq!(
            refused(ErrorCode::CoordinatorLoadInProgress),
            Verdict::Again
        );
        assert_eq!(refused(ErrorCode::ShuttingDown), Verdict::Again);
        assert_eq!(refused(ErrorCode::NotCoordinator), Verdict::Elsewhere);
        assert_eq!(refused(ErrorCode::RebalanceInProgress), Verdict::Rebalance);
        let out = |keeps_id| Verdict::Out { keeps_id };
        assert_eq!(refused(ErrorCode::IllegalGeneration), out(true));
        assert_eq!(refused(ErrorCode::UnknownMemberId), out(false));
        assert_eq!(refused(ErrorCode::FencedInstanceId), Verdict::Final);
        assert_eq!(verdict(&Error::Closed), Verdict::Final);
    }
}
