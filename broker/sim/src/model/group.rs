//! The truth about one consumer group: what was committed, who was told so, and who was told to read what.
//!
//! Every commit of a run has a number of its own, which grows, and commits that number as its offset. So an offset says
//! which commit it is of.

use std::collections::BTreeMap;
use std::sync::Arc;

use tackboard_logic::group::interface::{NamedPartition, StoreId};
use tackboard_schema::storage::group_record::GroupMetadata;

/// A commit that may be what a group has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The wall clock when it came in.
    pub at_ms: i64,
    /// The topic was said to hold it.
    pub stored: bool,
}

/// What a group has committed for one partition.
#[derive(Clone, Debug, Default)]
pub struct OffsetTruth {
    /// Commits that may be shown, by their number.
    pub commits: BTreeMap<i64, Commit>,
    /// The newest commit that somebody was told of, or has seen: nothing older is shown again.
    pub kept: Option<i64>,
    /// All up to here are gone for good.
    pub gone: i64,
    /// Removals that are on their way to the topic, and up to which commit they reach.
    pub removals: BTreeMap<StoreId, i64>,
    /// Removals up to here may or may not be on the topic.
    pub doubtful: i64,
    /// The topic it is of was deleted.
    pub of_deleted_topic: bool,
}

impl OffsetTruth {
    /// Whether nothing may be shown.
    pub fn may_be_absent(&self) -> bool {
        let removed = self.removals.values().copied().max().unwrap_or(0);
        self.kept
            .is_none_or(|kept| kept <= removed.max(self.doubtful))
    }

    /// A commit came in.
    pub fn take(&mut self, number: i64, at_ms: i64) {
        let stored = false;
        self.commits.insert(number, Commit { at_ms, stored });
    }

    /// Somebody was told of a commit: none that is older counts any more.
    pub fn keep(&mut self, number: i64) {
        if self.kept.is_none_or(|kept| kept < number) {
            self.kept = Some(number);
            self.commits = self.commits.split_off(&number);
        }
    }

    /// Everything up to this commit is gone for good.
    pub fn lose(&mut self, number: i64) {
        self.gone = self.gone.max(number);
        self.kept = self.kept.filter(|kept| *kept > number);
        self.commits = self.commits.split_off(&(number + 1));
    }

    /// The newest commit that came in.
    pub fn newest(&self) -> i64 {
        let newest = self.commits.last_key_value();
        newest.map_or(0, |(number, _)| *number).max(self.gone)
    }
}

/// Who reads what in one generation, by the name that a static member has, or the id of another.
#[derive(Clone, Debug, Default)]
pub struct Generation {
    /// Its number.
    pub number: i32,
    /// Owners of partitions, as they were told.
    pub owners: BTreeMap<NamedPartition, String>,
}

/// What a record of a group says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The generation.
    pub generation: i32,
    /// What was assigned, by owner.
    pub assignments: BTreeMap<String, Vec<u8>>,
}

impl Recorded {
    /// Of what is stored.
    pub fn of(metadata: &GroupMetadata) -> Self {
        let assignments = metadata.members.iter().map(|member| {
            let name = member.group_instance_id.as_ref();
            let owner = name.unwrap_or(&member.member_id);
            (owner.clone(), member.assignment.clone())
        });
        Self {
            generation: metadata.generation,
            assignments: assignments.collect(),
        }
    }
}

/// One group.
#[derive(Clone, Debug, Default)]
pub struct GroupTruth {
    /// What it has committed.
    pub offsets: BTreeMap<NamedPartition, OffsetTruth>,
    /// The newest generation whose members were told their parts.
    pub synced: Generation,
    /// The newest that members were told to be in, by the process that runs.
    pub joined: i32,
    /// The newest record of it that is stored, and by which append.
    pub recorded: Option<(StoreId, Recorded)>,
}

impl GroupTruth {
    /// It was forgotten as a whole, and may begin anew.
    pub fn begin_anew(&mut self) {
        self.synced = Generation::default();
        self.joined = 0;
        self.recorded = None;
    }

    /// The process is gone: what it had not stored may be there or not, and what it stores no more ends nowhere.
    pub fn forget_process(&mut self) {
        self.joined = 0;
        for truth in self.offsets.values_mut() {
            let reached = std::mem::take(&mut truth.removals).into_values().max();
            truth.doubtful = truth.doubtful.max(reached.unwrap_or(0));
        }
    }
}

/// A topic that groups read. Its name is used once.
#[derive(Clone, Debug)]
pub struct GroupTopic {
    /// Its name.
    pub name: Arc<str>,
    /// How many partitions it has.
    pub partitions: i32,
}
