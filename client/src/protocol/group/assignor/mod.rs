//! Who reads which partition: what the leader of a group works out for everybody.
//!
//! Pure functions of the members and the sizes of topics. Names and results are those of Kafka's assignors, where the
//! result is defined by more than being balanced (range, round-robin): a leader of either kind of client gives the
//! same shares.
//!
//! Invariants of all of them, held by the tests:
//! 1. every partition of a topic that somebody wants is given to exactly one member that wants it;
//! 2. nobody is given what they don't want, or what doesn't exist.

mod cooperative_sticky;
mod range;
mod round_robin;

#[cfg(test)]
mod assignor_test;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tackboard_schema::PartitionIndex;

pub(crate) use cooperative_sticky::withhold_claimed;

/// A partition, by the name of its topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedPartition {
    /// The topic.
    pub topic: Arc<str>,
    /// Its partition.
    pub partition: PartitionIndex,
}

impl NamedPartition {
    /// The partition of this number.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition: PartitionIndex(partition),
        }
    }
}

impl std::fmt::Display for NamedPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// How partitions are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assignor {
    /// Each topic by itself, in runs of neighbouring partitions; equal partitions of topics of one size go to one
    /// member.
    Range,
    /// All partitions in turn.
    RoundRobin,
    /// Balanced, and everybody keeps as much as balance allows. A member gives up only what goes to another, and reads
    /// on meanwhile (KIP-429).
    CooperativeSticky,
}

impl Assignor {
    /// The name that members agree on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
            Self::CooperativeSticky => "cooperative-sticky",
        }
    }

    /// The assignor of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Range, Self::RoundRobin, Self::CooperativeSticky]
            .into_iter()
            .find(|assignor| assignor.name() == name)
    }

    /// Whether members may read on while they join again.
    pub(crate) fn is_cooperative(self) -> bool {
        self == Self::CooperativeSticky
    }

    /// Shares the partitions of all topics out that `members` want. A topic that is not in `sizes` doesn't exist.
    pub fn assign(self, members: &[Candidate], sizes: &Sizes) -> Shares {
        match self {
            Self::Range => range::assign(members, sizes),
            Self::RoundRobin => round_robin::assign(members, sizes),
            Self::CooperativeSticky => cooperative_sticky::assign(members, sizes),
        }
    }
}

/// How many partitions each topic has.
pub type Sizes = BTreeMap<Arc<str>, usize>;

/// What each member gets; everybody is in it.
pub type Shares = BTreeMap<Arc<str>, BTreeSet<NamedPartition>>;

/// A member, as assignors see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub member_id: Arc<str>,
    /// Its static name.
    pub instance: Option<Arc<str>>,
    /// What it wants to read.
    pub topics: BTreeSet<Arc<str>>,
    /// What it says that it has.
    pub owned: BTreeSet<NamedPartition>,
    /// As of which generation it has that; -1: not told.
    pub generation: i32,
}

/// Places in `members`, in Kafka's order: static members by their names, then the others by their ids.
fn in_order(members: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|index| {
        let member = &members[*index];
        match &member.instance {
            Some(instance) => (false, instance.clone()),
            None => (true, member.member_id.clone()),
        }
    });
    order
}

/// A share without anything for everybody.
fn no_shares(members: &[Candidate]) -> Shares {
    let nothing = |member: &Candidate| (member.member_id.clone(), BTreeSet::new());
    members.iter().map(nothing).collect()
}

fn give(shares: &mut Shares, member: &Candidate, topic: &Arc<str>, partition: usize) {
    let share = shares.entry(member.member_id.clone()).or_default();
    share.insert(NamedPartition {
        topic: topic.clone(),
        partition: index(partition),
    });
}

/// The number of a partition. Sizes come from a list in memory, so they are far below the bound.
fn index(partition: usize) -> PartitionIndex {
    PartitionIndex(i32::try_from(partition).unwrap_or(i32::MAX))
}
