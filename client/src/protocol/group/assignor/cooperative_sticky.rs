//! Balanced, and as much as can be stays where it is.
//!
//! Everybody first keeps what they have, as far as they still want it and nobody else has it by a later generation. What
//! nobody has goes to whoever has least. Then, while somebody has at least two more than another who could take one of
//! them, one moves. Each move makes the loads more even, so there is an end; and it goes from one of the fullest, so no
//! partition moves twice among members that all want the same.
//!
//! Members give up what goes to others only when they learn of it. So the leader withholds in a first round what somebody
//! else still has ([`withhold_claimed`]); whoever had it gives it up and joins again, and the second round hands it over.
//! Source: KIP-429; KIP-792 for generations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Candidate, NamedPartition, Shares, Sizes, in_order, index};

pub(super) fn assign(members: &[Candidate], sizes: &Sizes) -> Shares {
    let mut table = Table::new(members, sizes);
    let claims = claims(members);
    for (partition, claimants) in &claims {
        // Two that have it by the same generation have both lost their way: neither keeps it.
        if let [only] = claimants[..]
            && members[only].topics.contains(&partition.topic)
            && table.exists(partition)
        {
            table.give(only, partition.clone());
        }
    }
    table.give_rest(sizes);
    table.balance(&claims);
    table.into_shares()
}

/// Takes out of the shares what another member still has. Nobody reads it until that one has given it up.
pub(crate) fn withhold_claimed(members: &[Candidate], shares: &mut Shares) {
    let claims = claims(members);
    for (member_id, share) in shares {
        share.retain(|partition| {
            let claimants = claims.get(partition).map_or(&[][..], Vec::as_slice);
            claimants
                .iter()
                .all(|claimant| members[*claimant].member_id == *member_id)
        });
    }
}

/// Who has each partition: those that say so by the latest generation.
fn claims(members: &[Candidate]) -> BTreeMap<NamedPartition, Vec<usize>> {
    let mut claims: BTreeMap<NamedPartition, Vec<usize>> = BTreeMap::new();
    for (place, member) in members.iter().enumerate() {
        for partition in &member.owned {
            let claimants = claims.entry(partition.clone()).or_default();
            let latest = claimants
                .first()
                .map_or(i32::MIN, |other: &usize| members[*other].generation);
            if member.generation > latest {
                claimants.clear();
            }
            if member.generation >= latest {
                claimants.push(place);
            }
        }
    }
    claims
}

/// Who has how much while it is shared out.
struct Table<'a> {
    members: &'a [Candidate],
    /// Kafka's order, so that everybody who works it out comes to the same.
    rank: Vec<usize>,
    /// What each member holds, by topic.
    held: Vec<BTreeMap<Arc<str>, BTreeSet<NamedPartition>>>,
    load: Vec<usize>,
    /// All members, those that hold most first: (load, rank, member).
    fullest: BTreeSet<(Reverse<usize>, usize, usize)>,
    /// Of each topic, those that want it: (load, rank, member).
    wanting: BTreeMap<Arc<str>, BTreeSet<(usize, usize, usize)>>,
    sizes: &'a Sizes,
    given: BTreeSet<NamedPartition>,
}

impl<'a> Table<'a> {
    fn new(members: &'a [Candidate], sizes: &'a Sizes) -> Self {
        let mut rank = vec![0; members.len()];
        for (place, member) in in_order(members).into_iter().enumerate() {
            rank[member] = place;
        }
        let mut wanting: BTreeMap<Arc<str>, BTreeSet<_>> = BTreeMap::new();
        for (place, member) in members.iter().enumerate() {
            for topic in member
                .topics
                .iter()
                .filter(|topic| sizes.contains_key(*topic))
            {
                let those = wanting.entry(topic.clone()).or_default();
                those.insert((0, rank[place], place));
            }
        }
        let places = rank.iter().enumerate();
        let fullest = places.map(|(member, rank)| (Reverse(0), *rank, member));
        Self {
            members,
            fullest: fullest.collect(),
            rank,
            held: vec![BTreeMap::new(); members.len()],
            load: vec![0; members.len()],
            wanting,
            sizes,
            given: BTreeSet::new(),
        }
    }

    fn exists(&self, partition: &NamedPartition) -> bool {
        let size = self.sizes.get(&partition.topic).copied().unwrap_or(0);
        usize::try_from(partition.partition.0).is_ok_and(|index| index < size)
    }

    fn set_load(&mut self, member: usize, load: usize) {
        let was = std::mem::replace(&mut self.load[member], load);
        let rank = self.rank[member];
        self.fullest.remove(&(Reverse(was), rank, member));
        self.fullest.insert((Reverse(load), rank, member));
        for topic in &self.members[member].topics {
            if let Some(those) = self.wanting.get_mut(topic) {
                those.remove(&(was, self.rank[member], member));
                those.insert((load, self.rank[member], member));
            }
        }
    }

    fn give(&mut self, member: usize, partition: NamedPartition) {
        self.given.insert(partition.clone());
        let held = self.held[member]
            .entry(partition.topic.clone())
            .or_default();
        held.insert(partition);
        self.set_load(member, self.load[member] + 1);
    }

    fn take(&mut self, member: usize, partition: &NamedPartition) {
        if let Some(held) = self.held[member].get_mut(&partition.topic) {
            held.remove(partition);
            if held.is_empty() {
                self.held[member].remove(&partition.topic);
            }
        }
        self.set_load(member, self.load[member] - 1);
    }

    /// Whoever wants the topic and has least.
    fn least(&self, topic: &str) -> Option<usize> {
        let (_, _, member) = self.wanting.get(topic)?.first()?;
        Some(*member)
    }

    /// What nobody has; what few want comes first, while there is still a choice.
    fn give_rest(&mut self, sizes: &Sizes) {
        let mut topics: Vec<(&Arc<str>, usize)> =
            sizes.iter().map(|(topic, size)| (topic, *size)).collect();
        topics.sort_by_key(|(topic, _)| self.wanting.get(*topic).map_or(0, BTreeSet::len));
        for (topic, size) in topics {
            for partition in 0..size {
                let partition = NamedPartition {
                    topic: topic.clone(),
                    partition: index(partition),
                };
                if let Some(member) = self.least(topic)
                    && !self.given.contains(&partition)
                {
                    self.give(member, partition);
                }
            }
        }
    }

    fn balance(&mut self, claims: &BTreeMap<NamedPartition, Vec<usize>>) {
        loop {
            let found = self
                .fullest
                .iter()
                .find_map(|(_, _, from)| Some((*from, self.better(*from)?)));
            let Some((from, (topic, to))) = found else {
                return;
            };
            let held = &self.held[from][&topic];
            // Rather one that it did not have before.
            let is_new = |partition: &&NamedPartition| {
                claims
                    .get(*partition)
                    .is_none_or(|claimants| !claimants.contains(&from))
            };
            let moved = held.iter().rev().find(is_new).or(held.last()).cloned();
            let Some(moved) = moved else {
                return;
            };
            self.take(from, &moved);
            self.give(to, moved);
        }
    }

    /// A topic of which this member should pass one on, and to whom: somebody with at least two less.
    fn better(&self, from: usize) -> Option<(Arc<str>, usize)> {
        let topics = self.held[from].keys();
        let (load, topic, to) = topics
            .filter_map(|topic| {
                let to = self.least(topic)?;
                Some((self.load[to], topic, to))
            })
            .min()?;
        (load + 2 <= self.load[from]).then(|| (topic.clone(), to))
    }

    fn into_shares(self) -> Shares {
        let shares = self.held.into_iter().zip(self.members);
        let all = |held: BTreeMap<Arc<str>, BTreeSet<NamedPartition>>| {
            held.into_values().flatten().collect()
        };
        shares
            .map(|(held, member)| (member.member_id.clone(), all(held)))
            .collect()
    }
}
