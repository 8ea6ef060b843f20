//! What is done to all groups in turn, some at a time: forgetting what has expired, and writing the topic anew.
//!
//! The topic is not compacted. When it has grown enough, each group's newest records are appended once more; then
//! everything that lies before the first of these is old, and the log may begin there.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tackboard_schema::TimestampMs;

use super::interface::{Effect, GroupState, NamedPartition, Record, StoreId};
use super::state::{Group, Held, offset_bytes};
use super::subscription::Reads;
use super::{Coordinator, Purpose};
use crate::shard::interface::Now;

/// Groups that are looked at in one tick.
const GROUPS_PER_TICK: usize = 100;

/// Bytes of records that are written anew in one tick, about: one append must not take all memory there is for appends,
/// nor all time.
const REWRITE_BYTES_PER_TICK: usize = 1 << 20;

/// How far a pass over all groups has come.
#[derive(Clone, Debug)]
enum Pass {
    Rests,
    /// Groups after this one are to come.
    After(Arc<str>),
    /// So are offsets of this one, from that partition on.
    Within(Arc<str>, NamedPartition),
    Begins,
}

/// A topic that is gone: what belongs to it of what was committed under its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    /// The last append before that.
    pub last: StoreId,
    /// When another one got the name, if that lay before these appends.
    pub until: Option<TimestampMs>,
}

impl Gone {
    fn has(&self, held: &Held) -> bool {
        let of_successor = |until: TimestampMs| held.value.committed_at >= until;
        held.store <= self.last && !self.until.is_some_and(of_successor)
    }
}

/// Both passes.
#[derive(Debug)]
pub(super) struct Sweep {
    expiry: Pass,
    /// When the next one begins, by the wall clock.
    next_expiry: TimestampMs,
    /// Topics that are gone. The pass that is under way has not met all of them, or has found that something is left:
    /// one more begins, until one finds nothing.
    gone: BTreeMap<Arc<str>, Gone>,
    /// Those that the pass under way began with.
    going: BTreeMap<Arc<str>, Gone>,
    rewrite: Pass,
    /// All groups have had their turn: the last append that has to end before the rewriting has.
    rewrite_until: Option<StoreId>,
    /// One of them failed: what is old is still needed.
    rewrite_failed: bool,
    /// A rewriting is complete; the driver has not taken note yet.
    is_rewritten: bool,
}

impl Sweep {
    pub(super) fn new(now: TimestampMs, interval_ms: i64) -> Self {
        Self {
            expiry: Pass::Rests,
            next_expiry: TimestampMs(now.0.saturating_add(interval_ms)),
            gone: BTreeMap::new(),
            going: BTreeMap::new(),
            rewrite: Pass::Rests,
            rewrite_until: None,
            rewrite_failed: false,
            is_rewritten: false,
        }
    }

    /// Whether an offset was committed for a topic that is gone, though no pass has met it yet.
    pub(super) fn is_of_gone(&self, partition: &NamedPartition, held: &Held) -> bool {
        let gone = [&self.gone, &self.going];
        let mut gone = gone
            .iter()
            .filter_map(|topics| topics.get(&partition.topic));
        gone.any(|gone| gone.has(held))
    }

    pub(super) fn topic_deleted(&mut self, topic: Arc<str>, gone: Gone) {
        self.gone.insert(topic, gone);
    }
}

impl Coordinator {
    /// Begins to append everything that lives once more. The driver remembers where its topic ended; when
    /// [`Coordinator::take_rewritten`] is true, the log may begin there.
    pub fn begin_rewrite(&mut self) {
        if matches!(self.sweep.rewrite, Pass::Rests) && self.sweep.rewrite_until.is_none() {
            self.sweep.rewrite = Pass::Begins;
            self.sweep.rewrite_failed = false;
        }
    }

    /// Whether the rewriting has not ended, well or not.
    pub fn is_rewriting(&self) -> bool {
        !matches!(self.sweep.rewrite, Pass::Rests) || self.sweep.rewrite_until.is_some()
    }

    /// Whether the rewriting has ended well since this was last asked.
    pub fn take_rewritten(&mut self) -> bool {
        std::mem::take(&mut self.sweep.is_rewritten)
    }

    pub(super) fn sweep(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.sweep_expired(now, out);
        self.sweep_rewrite(now, out);
    }

    fn some_groups(&self, pass: &Pass) -> Option<Vec<Arc<str>>> {
        let from = match pass {
            Pass::Rests => return None,
            Pass::Begins => Bound::Unbounded,
            Pass::After(id) => Bound::Excluded(id.clone()),
            Pass::Within(id, _) => Bound::Included(id.clone()),
        };
        let ids = self
            .groups
            .range((from, Bound::Unbounded))
            .map(|(id, _)| id.clone());
        Some(ids.take(GROUPS_PER_TICK).collect())
    }

    fn sweep_expired(&mut self, now: Now, out: &mut Vec<Effect>) {
        let rests = matches!(self.sweep.expiry, Pass::Rests);
        if rests && (now.wall >= self.sweep.next_expiry || !self.sweep.gone.is_empty()) {
            let interval_ms = self.settings.offsets_retention_check_ms;
            self.sweep.next_expiry = TimestampMs(now.wall.0.saturating_add(interval_ms));
            self.sweep.expiry = Pass::Begins;
            self.sweep.going = std::mem::take(&mut self.sweep.gone);
        }
        let Some(ids) = self.some_groups(&self.sweep.expiry) else {
            return;
        };
        for id in &ids {
            self.expire(now, id, out);
        }
        self.sweep.expiry = after(&ids);
        if matches!(self.sweep.expiry, Pass::Rests) {
            self.sweep.going.clear();
        }
    }

    fn expire(&mut self, now: Now, id: &Arc<str>, out: &mut Vec<Effect>) {
        let Some(group) = self.groups.get(id) else {
            return;
        };
        for (topic, gone) in left_of(group, &self.sweep.going) {
            self.sweep.gone.entry(topic).or_insert(gone);
        }
        if group.state == GroupState::Dead {
            return;
        }
        let expired = expired(
            group,
            now.wall,
            self.settings.offsets_retention_ms,
            &self.sweep.going,
        );
        let is_over = group.state == GroupState::Empty
            && group.promised.is_empty()
            && group.underway.is_empty()
            && expired.len() == group.offsets.len();
        if is_over {
            self.bury(now, id, None, out);
        } else if !expired.is_empty() {
            self.forget(now, id, &expired, None, out);
        }
    }

    fn sweep_rewrite(&mut self, now: Now, out: &mut Vec<Effect>) {
        let Some(ids) = self.some_groups(&self.sweep.rewrite) else {
            return;
        };
        let mut from = match &self.sweep.rewrite {
            Pass::Within(id, partition) => Some((id.clone(), partition.clone())),
            _ => None,
        };
        let mut room = REWRITE_BYTES_PER_TICK;
        self.sweep.rewrite = after(&ids);
        for id in &ids {
            // The group may have gone since.
            let from = from.take_if(|(group, _)| group == id);
            let written = self.with_group(now, id, out, |group, cx| {
                let (records, next) =
                    living(group, from.map(|(_, partition)| partition), &mut room);
                let store = (!records.is_empty()).then(|| cx.store(records));
                (store, next)
            });
            let (store, next) = written.unwrap_or_default();
            if let Some(store) = store {
                self.stores.insert(store, Purpose::Rewrite);
            }
            if let Some(next) = next {
                self.sweep.rewrite = Pass::Within(id.clone(), next);
                break;
            }
            if room == 0 {
                self.sweep.rewrite = Pass::After(id.clone());
                break;
            }
        }
        if matches!(self.sweep.rewrite, Pass::Rests) {
            self.sweep.rewrite_until = Some(StoreId(self.last_store));
            self.end_rewrite();
        }
    }

    /// What was to be forgotten stays, and a rewriting that is under way may have left it out; or a part of it could not be
    /// stored. The rest of it would be for nothing.
    pub(super) fn give_up_rewrite(&mut self) {
        self.sweep.rewrite_failed = true;
        if !matches!(self.sweep.rewrite, Pass::Rests) {
            self.sweep.rewrite = Pass::Rests;
            self.sweep.rewrite_until = Some(StoreId(self.last_store));
        }
    }

    /// The rewriting has ended if everything has that was appended before it had met all groups: a deletion among them
    /// that failed would be of something that it left out.
    pub(super) fn end_rewrite(&mut self) {
        let oldest = self.stores.keys().next();
        let has_ended = (self.sweep.rewrite_until)
            .is_some_and(|until| oldest.is_none_or(|store| *store > until));
        if has_ended {
            self.sweep.rewrite_until = None;
            self.sweep.is_rewritten |= !self.sweep.rewrite_failed;
        }
    }
}

fn after(ids: &[Arc<str>]) -> Pass {
    match ids.last() {
        Some(last) if ids.len() == GROUPS_PER_TICK => Pass::After(last.clone()),
        _ => Pass::Rests,
    }
}

/// A group's newest records, from a partition on or all of them, until there is no more room; and where to go on. A commit
/// that is on its way counts: its own record lies before this one, and when an append fails that had begun, what became of
/// it is open anyway.
fn living(
    group: &Group,
    from: Option<NamedPartition>,
    room: &mut usize,
) -> (Vec<Record>, Option<NamedPartition>) {
    let mut records = Vec::new();
    if group.state == GroupState::Dead {
        return (records, None);
    }
    if from.is_none()
        && let Some(value) = group.recorded.clone()
    {
        *room = room.saturating_sub(group.recorded_bytes);
        records.push(Record::Group {
            group: group.id.clone(),
            value: Some(value),
        });
    }
    for (partition, value) in group.newest_offsets(from.as_ref()) {
        // One at least, or there would be no end.
        if *room == 0 && !records.is_empty() {
            return (records, Some(partition.clone()));
        }
        *room = room.saturating_sub(offset_bytes(&group.id, partition, value));
        records.push(Record::Offset {
            group: group.id.clone(),
            partition: partition.clone(),
            value: Some(value.clone()),
        });
    }
    (records, None)
}

/// The topics of these of which the group still has something. An offset that goes counts until it has gone: its removal
/// may fail, as may the commit after it.
fn left_of(group: &Group, going: &BTreeMap<Arc<str>, Gone>) -> Vec<(Arc<str>, Gone)> {
    if going.is_empty() {
        return Vec::new();
    }
    let offsets = group.offsets.iter().chain(&group.underway);
    let left = offsets.filter_map(|(partition, held)| {
        let gone = going.get(&partition.topic)?;
        gone.has(held).then(|| (partition.topic.clone(), *gone))
    });
    left.collect()
}

/// Offsets of topics that are gone, and those that nobody has moved for too long and nobody reads: of a group without
/// members once it has been empty for so long; of one that assigns partitions to itself, since their commit; of one
/// that is at work, those of topics that no member reads.
fn expired(
    group: &Group,
    now: TimestampMs,
    retention_ms: i64,
    gone: &BTreeMap<Arc<str>, Gone>,
) -> Vec<NamedPartition> {
    let old = |since: TimestampMs| now.0.saturating_sub(since.0) >= retention_ms;
    let is_idle = match (group.state, &group.protocol_type) {
        (GroupState::Empty, Some(_)) => old(group.state_since),
        (GroupState::Empty, None) => true,
        (GroupState::Stable, _) => group.is_of_consumers(),
        _ => false,
    };
    let settled = group.offsets.iter().filter(|(partition, held)| {
        let is_going = |store: &StoreId| held.store <= *store;
        !group.underway.contains_key(partition)
            && !group.removing.get(partition).is_some_and(is_going)
    });
    let read = (group.state == GroupState::Stable).then(|| Reads::of(group));
    let expired = settled.filter(|(partition, held)| {
        let has_gone = gone
            .get(&partition.topic)
            .is_some_and(|gone| gone.has(held));
        let is_read = || {
            read.as_ref()
                .is_some_and(|read| read.contains(&partition.topic))
        };
        has_gone || (is_idle && old(held.value.committed_at) && !is_read())
    });
    expired.map(|(partition, _)| partition.clone()).collect()
}
