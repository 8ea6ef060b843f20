//! The leader's duty: to share partitions out among all members of its generation.

use std::collections::BTreeSet;
use std::sync::Arc;

use tackboard_schema::consumer_protocol::{Assignment, Partitions, Subscription as Told};

use super::assignor::{Assignor, Candidate, NamedPartition, Shares, withhold_claimed};
use super::machine::GroupMachine;
use super::membership::Phase;
use crate::error::Error;
use crate::protocol::time::Now;
use crate::protocol::wire::groups::JoinedMember;

impl GroupMachine {
    /// The leader's duty.
    pub(super) fn assign(&mut self, now: Now) {
        let Phase::Assigning { joined, .. } =
            std::mem::replace(&mut self.seat.phase, Phase::Seeking)
        else {
            return;
        };
        let Some(assignor) = Assignor::from_name(&joined.protocol) else {
            let what = format!("the assignor {}, which was not offered", joined.protocol);
            let address = self.seat.coordinator.clone().unwrap_or_default();
            return self.refused_for_good(
                Error::Protocol {
                    address,
                    what: what.into(),
                },
                now,
            );
        };
        let members: Vec<Candidate> = joined.members.iter().map(candidate).collect();
        let topics: BTreeSet<Arc<str>> = (members.iter())
            .flat_map(|member| member.topics.iter().cloned())
            .collect();
        let sizes = self.known_sizes(&topics);
        let mut shares = assignor.assign(&members, &sizes);
        if assignor.is_cooperative() {
            withhold_claimed(&members, &mut shares);
        }
        self.seat.led = Some((topics, sizes));
        let assignments = assignments(&shares);
        self.sync(&joined.protocol, &assignments, now);
    }
}

/// A member as it described itself. One whose subscription can't be read gets nothing.
pub(super) fn candidate(member: &JoinedMember) -> Candidate {
    let told = Told::decode(&member.subscription).unwrap_or_else(|fault| {
        tracing::warn!(member = &*member.member_id, %fault, "a subscription that can't be read");
        Told::default()
    });
    let owned = told.owned.into_iter().flat_map(|(topic, indices)| {
        let topic: Arc<str> = topic.into();
        indices.into_iter().map(move |partition| NamedPartition {
            topic: topic.clone(),
            partition,
        })
    });
    Candidate {
        member_id: member.member_id.clone(),
        instance: member.instance.clone(),
        topics: told.topics.into_iter().map(Into::into).collect(),
        owned: owned.collect(),
        generation: told.generation,
    }
}

fn assignments(shares: &Shares) -> Vec<(Arc<str>, Vec<u8>)> {
    let assignment = |(member_id, share): (&Arc<str>, &BTreeSet<NamedPartition>)| {
        let partitions = by_topic(share);
        (member_id.clone(), Assignment { partitions }.encode())
    };
    shares.iter().map(assignment).collect()
}

pub(super) fn by_topic(partitions: &BTreeSet<NamedPartition>) -> Partitions {
    let mut by_topic = Partitions::new();
    for NamedPartition { topic, partition } in partitions {
        let indices = by_topic.entry(topic.to_string()).or_default();
        indices.push(*partition);
    }
    by_topic
}
