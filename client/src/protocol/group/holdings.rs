//! The partitions that a member has by the last assignment, and how far each has come.

use std::collections::{BTreeMap, BTreeSet};

use tackboard_schema::Offset;

use super::assignor::NamedPartition;
use crate::consumed::Start;

/// A partition that is ours.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// The caller knows of it.
    pub(super) is_announced: bool,
    /// Where to begin, once that is known.
    pub(super) start: Option<Start>,
    /// It is being read.
    pub(super) is_read: bool,
    /// No offset is committed for it, and the caller wants to be asked: it waits for a seek.
    pub(super) awaits_seek: bool,
    /// The caller has come back after it was handed out.
    pub(super) done: Option<Offset>,
    pub(super) committed: Option<Offset>,
}

#[derive(Debug, Default)]
pub(super) struct Holdings(pub(super) BTreeMap<NamedPartition, Holding>);

impl Holdings {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the caller knows to be ours.
    pub(super) fn announced(&self) -> BTreeSet<NamedPartition> {
        let announced = self.0.iter().filter(|(_, holding)| holding.is_announced);
        announced.map(|(partition, _)| partition.clone()).collect()
    }

    /// Those of which it is not known yet where to begin.
    pub(super) fn without_start(&self) -> impl Iterator<Item = &NamedPartition> {
        let unknown = |holding: &Holding| holding.start.is_none() && !holding.awaits_seek;
        let unknown = self.0.iter().filter(move |(_, holding)| unknown(holding));
        unknown.map(|(partition, _)| partition)
    }

    /// What is done and not committed.
    pub(super) fn uncommitted(&self) -> impl Iterator<Item = (&NamedPartition, Offset)> {
        self.0.iter().filter_map(|(partition, holding)| {
            let done = holding.done?;
            (holding.committed != Some(done)).then_some((partition, done))
        })
    }

    /// Takes in an assignment: what is given up by it, and what is new.
    pub(super) fn difference(
        &self,
        assigned: &BTreeSet<NamedPartition>,
    ) -> (Vec<NamedPartition>, Vec<NamedPartition>) {
        let given_up = self.0.keys().filter(|held| !assigned.contains(held));
        let new = assigned.iter().filter(|one| !self.0.contains_key(one));
        (given_up.cloned().collect(), new.cloned().collect())
    }
}
