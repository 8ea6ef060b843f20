//! Fetches that wait for more bytes: parked until enough are visible, their time is up, or they are hurried or
//! dropped. Never polled: a log whose high watermark moves tells those that wait on it by how much.
//!
//! Bounded by the requests in flight, which the driver bounds per connection, and by their entries over all connections
//! ([`entries`](super::entries)).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::shard::interface::{FetchEntry, Ticket};

/// A parked fetch; the generation tells a slot's users apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParkedId {
    slot: u32,
    generation: u32,
}

/// What a fetch asks for.
#[derive(Clone, Debug)]
pub struct ParkedFetch {
    /// Whom to answer.
    pub ticket: Ticket,
    /// What to read.
    pub entries: Vec<FetchEntry>,
    /// Answer when so many bytes are visible.
    pub bytes_min: u32,
    /// Most bytes over all entries.
    pub bytes_max: u32,
    /// When to answer with what there is.
    pub deadline_us: u64,
    /// Bytes known to be visible, as far as `bytes_min` counts them.
    pub bytes_visible: u64,
}

/// All parked fetches of one core.
#[derive(Debug, Default)]
pub struct ParkedFetches {
    slots: Vec<(u32, Option<ParkedFetch>)>,
    free: Vec<u32>,
    by_ticket: BTreeMap<Ticket, ParkedId>,
    deadlines: BinaryHeap<Reverse<(u64, ParkedId)>>,
}

/// Deadlines of fetches that were answered before are swept when they outnumber the others by this factor.
const STALE_DEADLINES_FACTOR: usize = 2;

impl ParkedFetches {
    /// Parks a fetch.
    pub fn park(&mut self, fetch: ParkedFetch) -> ParkedId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let generation = self.slots[slot as usize].0;
        let id = ParkedId { slot, generation };
        self.by_ticket.insert(fetch.ticket, id);
        self.deadlines.push(Reverse((fetch.deadline_us, id)));
        self.slots[slot as usize].1 = Some(fetch);
        self.sweep_deadlines();
        id
    }

    /// The parked fetch of a ticket.
    pub fn find(&self, ticket: Ticket) -> Option<ParkedId> {
        self.by_ticket.get(&ticket).copied()
    }

    /// `bytes` more are visible to a fetch. True: it has enough now.
    pub fn note_visible(&mut self, id: ParkedId, bytes: u64) -> bool {
        let Some(fetch) = self.get_mut(id) else {
            return false;
        };
        fetch.bytes_visible = fetch.bytes_visible.saturating_add(bytes);
        fetch.bytes_visible >= u64::from(fetch.bytes_min)
    }

    /// Takes a fetch out.
    pub fn take(&mut self, id: ParkedId) -> Option<ParkedFetch> {
        let (generation, fetch) = self.slots.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let fetch = fetch.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        self.by_ticket.remove(&fetch.ticket);
        Some(fetch)
    }

    /// Some fetch, if there is any.
    pub fn any(&self) -> Option<ParkedId> {
        self.by_ticket.values().next().copied()
    }

    /// A fetch whose time is up.
    pub fn next_expired(&mut self, now_us: u64) -> Option<ParkedId> {
        while let Some(Reverse((deadline_us, id))) = self.deadlines.peek().copied() {
            if self.is_live(id) && deadline_us > now_us {
                return None;
            }
            self.deadlines.pop();
            if self.is_live(id) {
                return Some(id);
            }
        }
        None
    }

    /// The earliest time at which a fetch is to be answered with what there is.
    pub fn next_deadline_us(&self) -> Option<u64> {
        self.deadlines
            .peek()
            .map(|Reverse((deadline_us, _))| *deadline_us)
    }

    /// How many are parked.
    pub fn len(&self) -> usize {
        self.by_ticket.len()
    }

    /// Whether none is parked.
    pub fn is_empty(&self) -> bool {
        self.by_ticket.is_empty()
    }

    /// Whether this fetch is still parked.
    pub fn is_live(&self, id: ParkedId) -> bool {
        let slot = self.slots.get(id.slot as usize);
        slot.is_some_and(|(generation, fetch)| *generation == id.generation && fetch.is_some())
    }

    fn get_mut(&mut self, id: ParkedId) -> Option<&mut ParkedFetch> {
        let (generation, fetch) = self.slots.get_mut(id.slot as usize)?;
        if *generation == id.generation {
            fetch.as_mut()
        } else {
            None
        }
    }

    fn sweep_deadlines(&mut self) {
        if self.deadlines.len() > 64 + self.len() * STALE_DEADLINES_FACTOR {
            let mut deadlines = std::mem::take(&mut self.deadlines).into_vec();
            deadlines.retain(|Reverse((_, id))| self.is_live(*id));
            self.deadlines = deadlines.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(ticket: u64, bytes_min: u32, deadline_us: u64) -> ParkedFetch {
        ParkedFetch {
            ticket: Ticket(ticket),
            entries: Vec::new(),
            bytes_min,
            bytes_max: 1000,
            deadline_us,
            bytes_visible: 0,
        }
    }

    #[test]
    fn enough_bytes_are_counted_over_several_moves() {
        let mut parked = ParkedFetches::default();
        let id = parked.park(fetch(1, 100, 5));
        assert!(!parked.note_visible(id, 60));
        assert!(parked.note_visible(id, 40));
        assert_eq!(parked.take(id).unwrap().ticket, Ticket(1));
        assert!(!parked.note_visible(id, 1000), "it is gone");
        assert!(parked.take(id).is_none());
    }

    #[test]
    fn a_slot_used_again_is_another_fetch() {
        let mut parked = ParkedFetches::default();
        let first = parked.park(fetch(1, 1, 5));
        parked.take(first);
        let second = parked.park(fetch(2, 1, 9));
        assert_ne!(first, second);
        assert!(!parked.is_live(first) && parked.is_live(second));
        assert_eq!(
            parked.next_expired(8),
            None,
            "the first one's deadline is nobody's"
        );
        assert_eq!(parked.next_expired(9), Some(second));
    }

    #[test]
    fn deadlines_of_answered_fetches_do_not_pile_up() {
        let mut parked = ParkedFetches::default();
        for ticket in 0..10_000 {
            let id = parked.park(fetch(ticket, 1, u64::MAX));
            parked.take(id);
        }
        assert!(parked.deadlines.len() < 100);
        assert!(parked.is_empty());
    }
}
