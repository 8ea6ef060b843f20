//! What a group has committed and who was told so stays; nobody reads what another member of the same generation reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tackboard_logic::group::Coordinator;
use tackboard_logic::group::interface::{GroupState, Joined, NamedPartition, Record, StoreId};
use tackboard_schema::record_batch::BatchIterator;
use tackboard_schema::storage::group_record::{CommittedOffset, GroupKey, GroupMetadata};

use crate::model::{GroupTruth, OffsetTruth, Partition, Recorded};

/// Who is told something of a generation: a static member by its name, another by its id.
pub fn owner<'a>(member_id: &'a str, instance: Option<&'a str>) -> &'a str {
    instance.unwrap_or(member_id)
}

/// What a coordinator says of a partition is the newest commit that somebody was told of, or a later one; nothing, only
/// if there is none or it was to be forgotten. Whoever asks now would know it.
pub fn shown(group: &str, partition: &NamedPartition, truth: &mut OffsetTruth, shown: Option<i64>) {
    let name = format!("{group}, {}-{}", partition.topic, partition.partition);
    let Some(number) = shown else {
        assert!(
            truth.may_be_absent() || truth.of_deleted_topic,
            "{name}: what was committed has vanished: {truth:?}"
        );
        return;
    };
    assert!(
        !truth.of_deleted_topic,
        "{name}: commit {number} is shown, and the topic was deleted"
    );
    assert!(
        number > truth.gone,
        "{name}: commit {number} is shown, which was forgotten: {truth:?}"
    );
    assert!(
        truth.kept.is_none_or(|kept| kept <= number),
        "{name}: the committed offset goes back to {number}: {truth:?}"
    );
    assert!(
        truth
            .commits
            .get(&number)
            .is_some_and(|commit| commit.stored),
        "{name}: commit {number} is shown, and the topic does not hold it: {truth:?}"
    );
    truth.keep(number);
}

/// A commit is acknowledged: it was stored (G1).
pub fn commit_acknowledged(
    group: &str,
    partition: &NamedPartition,
    truth: &mut OffsetTruth,
    number: i64,
) {
    // One that is older than what was seen since, or was forgotten since.
    let is_over = number <= truth.gone || truth.kept.is_some_and(|kept| number < kept);
    assert!(
        is_over
            || truth
                .commits
                .get(&number)
                .is_some_and(|commit| commit.stored),
        "{group}, {}-{}: commit {number} is acknowledged before it is stored: {truth:?}",
        partition.topic,
        partition.partition
    );
    if !is_over {
        truth.keep(number);
    }
}

/// A commit came in, and is being stored: only a member of the present generation may move a group that has members (G2).
pub fn commit_taken(group: &str, may_commit: bool) {
    assert!(
        may_commit,
        "{group}: a commit of somebody who is no member of the present generation is taken"
    );
}

/// A commit is written anew: the newest that is known, or one that is on its way.
pub fn written_anew(group: &str, partition: &NamedPartition, truth: &OffsetTruth, number: i64) {
    assert!(
        truth.commits.contains_key(&number),
        "{group}, {}-{}: commit {number} is written anew: {truth:?}",
        partition.topic,
        partition.partition
    );
}

/// Nobody asked for an offset to be forgotten, and it is: it must be old enough, and nobody may read the topic.
pub fn expired(
    group: &str,
    partition: &NamedPartition,
    truth: &OffsetTruth,
    (wall_ms, retention_ms): (i64, i64),
    state: Option<GroupState>,
    is_read: bool,
) {
    let Some(kept) = truth.kept.filter(|_| !truth.of_deleted_topic) else {
        return;
    };
    if truth.may_be_absent() {
        return;
    }
    let at_ms = truth
        .commits
        .get(&kept)
        .map_or(i64::MIN, |commit| commit.at_ms);
    let is_old = wall_ms.saturating_sub(at_ms) >= retention_ms;
    let is_idle = match state {
        Some(GroupState::Empty) => true,
        Some(GroupState::Stable) => !is_read,
        _ => false,
    };
    assert!(
        is_old && is_idle,
        "{group}, {}-{}: commit {kept} of {at_ms} ms is forgotten at {wall_ms} ms, the group is {state:?}, its members read the topic: {is_read}",
        partition.topic,
        partition.partition
    );
}

/// A member was told its place in a generation. A static one that came back is told the place that it had once that is
/// stored, which may be over by then: the next that it asks is refused.
pub fn joined(group: &str, truth: &mut GroupTruth, joined: &Joined, is_static: bool) {
    if is_static && joined.generation < truth.joined {
        return;
    }
    assert!(
        joined.generation >= truth.joined && joined.generation >= truth.synced.number,
        "{group}: generation {} follows {} and {}",
        joined.generation,
        truth.joined,
        truth.synced.number
    );
    truth.joined = joined.generation;
}

/// A member was told its part: the one that is stored, and nobody else's.
pub fn synced(
    group: &str,
    truth: &mut GroupTruth,
    generation: i32,
    owner: &str,
    assignment: (&[u8], &[NamedPartition]),
) {
    let recorded = truth.recorded.as_ref().map(|(_, recorded)| recorded);
    let stored = recorded.filter(|recorded| recorded.generation == generation);
    let stored = stored.and_then(|recorded| recorded.assignments.get(owner));
    assert!(
        stored.is_some_and(|stored| stored == assignment.0),
        "{group}: {owner} is told {:?} in generation {generation}, stored is {recorded:?}",
        assignment.1
    );
    if generation > truth.synced.number {
        truth.synced.number = generation;
        truth.synced.owners.clear();
    }
    assert_eq!(
        generation, truth.synced.number,
        "{group}: {owner} is told its part in a generation that is over"
    );
    for partition in assignment.1 {
        let owners = &mut truth.synced.owners;
        let other = owners.insert(partition.clone(), owner.to_owned());
        assert!(
            other.as_deref().is_none_or(|other| other == owner),
            "{group}: {owner} and {other:?} both read {partition:?} in generation {generation}"
        );
    }
}

/// What the internal topic says, record by record, written down a second time.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    offsets: BTreeMap<(String, NamedPartition), CommittedOffset>,
    groups: BTreeMap<String, GroupMetadata>,
}

impl Told {
    fn by(partition: &Partition, from: i64) -> Self {
        let mut told = Self::default();
        let batches = partition.sequence.iter();
        for placed in batches.filter(|placed| placed.base >= from) {
            for batch in BatchIterator::new(&placed.bytes) {
                let batch = batch.expect("it was built here");
                for record in batch.records() {
                    let record = record.expect("it was built here");
                    told.take(record.key.unwrap_or_default(), record.value);
                }
            }
        }
        told
    }

    fn take(&mut self, key: &[u8], value: Option<&[u8]>) {
        let key = GroupKey::decode(key).expect("a coordinator's record");
        match key.expect("a coordinator's record") {
            GroupKey::Offset {
                group,
                topic,
                partition,
            } => {
                let topic = Arc::from(topic);
                let key = (group, NamedPartition { topic, partition });
                match value {
                    Some(value) => {
                        let value = CommittedOffset::decode(value).expect("a commit");
                        self.offsets.insert(key, value);
                    }
                    None => drop(self.offsets.remove(&key)),
                }
            }
            GroupKey::Group { group } => match value {
                Some(value) => {
                    let value = GroupMetadata::decode(value).expect("a group");
                    self.groups.insert(group, value);
                }
                None => drop(self.groups.remove(&group)),
            },
        }
    }
}

/// What a coordinator has read back is what its partition says from `log_start` on, no more and no less. `groups` is
/// everybody it may know. Returns what it says of members.
pub fn loaded<'a>(
    partition: &Partition,
    log_start: i64,
    coordinator: &Coordinator,
    groups: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Recorded> {
    let number = partition.number;
    let told = Told::by(partition, log_start);
    let mut offsets = BTreeMap::new();
    for group in groups {
        let known = coordinator.committed_offsets(group);
        let known = known.map(|(key, value)| ((group.clone(), key.clone()), value.clone()));
        offsets.extend(known);
        let view = coordinator.describe(group);
        let told = told.groups.get(group);
        let generation = view.as_ref().map_or(0, |view| view.generation);
        assert_eq!(
            generation,
            told.map_or(0, |told| told.generation),
            "partition {number}: the generation of {group}, read back"
        );
        let members = view.iter().flat_map(|view| &view.members);
        let members: BTreeMap<_, _> = members
            .map(|member| (&*member.member_id, &*member.assignment))
            .collect();
        let told = told.iter().flat_map(|told| &told.members);
        let told: BTreeMap<_, _> = told
            .map(|member| (&*member.member_id, &*member.assignment))
            .collect();
        assert_eq!(
            members, told,
            "partition {number}: the members of {group}, read back"
        );
    }
    assert_eq!(
        offsets, told.offsets,
        "partition {number}: what was committed, read back"
    );
    let listed = coordinator.list().count();
    let names = told.offsets.keys().map(|(group, _)| group);
    let mut names: Vec<_> = names.chain(told.groups.keys()).collect();
    names.sort();
    names.dedup();
    assert_eq!(listed, names.len(), "partition {number}: groups, read back");
    let groups = told.groups.iter();
    groups
        .map(|(group, metadata)| (group.clone(), Recorded::of(metadata)))
        .collect()
}

/// What becomes of the truth about a group's offsets when its coordinator has read everything back: what it shows is all
/// there is, and nothing is on its way any more.
pub fn settle(truth: &mut OffsetTruth, shown: Option<i64>) {
    truth.removals.clear();
    truth.doubtful = 0;
    let newest = truth.newest();
    match shown {
        Some(number) => truth.commits.retain(|other, _| *other == number),
        None => truth.lose(newest),
    }
}

/// What an append says of groups, the newest of each.
pub fn recorded(records: &[Record]) -> Vec<(String, Option<Recorded>)> {
    let groups = records.iter().filter_map(|record| match record {
        Record::Group { group, value } => {
            Some((group.to_string(), value.as_ref().map(Recorded::of)))
        }
        Record::Offset { .. } => None,
    });
    groups.collect()
}

/// A record of a group is stored.
pub fn note_recorded(truth: &mut GroupTruth, store: StoreId, recorded: Option<Recorded>) {
    let is_newer = (truth.recorded.as_ref()).is_none_or(|(before, _)| *before <= store);
    if is_newer {
        truth.recorded = recorded.map(|recorded| (store, recorded));
    }
}
