//! Handing out producer ids from a core's block, and asking for the next block in time.
//!
//! Owns: what is left of the block, and who waits. Not here: the proposal that brings a block; its id is spent when it
//! is committed, so a block that a crash loses is never handed out again, by anybody.
//!
//! At most one block is asked for at a time, however many wait.

use std::collections::VecDeque;
use std::ops::Range;

use tackboard_schema::ProducerId;

/// Clients that may wait for a block.
pub const WAITING_MAX: usize = 4096;

/// What a client gets now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given<W> {
    /// An id.
    Id(ProducerId, W),
    /// Nothing yet: it waits. `ask`: a block is to be asked for.
    Waits {
        /// False while one is on its way.
        ask: bool,
    },
    /// Nothing: [`WAITING_MAX`] clients wait already.
    Refused(W),
}

/// The producer ids of one core. `W` is whom an id is owed to.
#[derive(Debug)]
pub struct ProducerIds<W> {
    block: Range<i64>,
    waiting: VecDeque<W>,
}

impl<W> Default for ProducerIds<W> {
    fn default() -> Self {
        Self {
            block: 0..0,
            waiting: VecDeque::new(),
        }
    }
}

impl<W> ProducerIds<W> {
    /// Gives a client an id or lets it wait for one.
    pub fn wanted(&mut self, client: W) -> Given<W> {
        // Whoever waits was there before.
        if self.waiting.is_empty()
            && let Some(id) = self.block.next()
        {
            return Given::Id(ProducerId(id), client);
        }
        if self.waiting.len() >= WAITING_MAX {
            return Given::Refused(client);
        }
        let ask = self.waiting.is_empty();
        self.waiting.push_back(client);
        Given::Waits { ask }
    }

    /// A block of `count` ids from `first` on has come.
    pub fn arrived(&mut self, first: ProducerId, count: i64) {
        self.block = first.0..first.0.saturating_add(count);
    }

    /// The next client that waited, with its id; `None` when all have theirs, or the block is spent.
    pub fn serve(&mut self) -> Option<(ProducerId, W)> {
        if self.waiting.is_empty() {
            return None;
        }
        let id = self.block.next()?;
        let client = self.waiting.pop_front()?;
        Some((ProducerId(id), client))
    }

    /// Whether another block is to be asked for: somebody still waits.
    pub fn is_short(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// No block has come: everybody who waits for it is told.
    pub fn refuse(&mut self) -> impl Iterator<Item = W> + use<W> {
        std::mem::take(&mut self.waiting).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(ids: &mut ProducerIds<char>) -> Vec<(i64, char)> {
        std::iter::from_fn(|| ids.serve())
            .map(|(id, client)| (id.0, client))
            .collect()
    }

    #[test]
    fn a_block_is_asked_for_once_and_serves_those_who_wait_in_their_order() {
        let mut ids = ProducerIds::default();
        assert_eq!(ids.wanted('a'), Given::Waits { ask: true });
        assert_eq!(ids.wanted('b'), Given::Waits { ask: false });
        assert_eq!(ids.wanted('c'), Given::Waits { ask: false });
        ids.arrived(ProducerId(1_000), 2);
        assert_eq!(served(&mut ids), [(1_000, 'a'), (1_001, 'b')]);
        assert!(ids.is_short(), "the next block is asked for");
        assert_eq!(
            ids.wanted('d'),
            Given::Waits { ask: false },
            "it is on its way"
        );
        ids.arrived(ProducerId(2_000), 3);
        assert_eq!(served(&mut ids), [(2_000, 'c'), (2_001, 'd')]);
        assert!(!ids.is_short());
        assert_eq!(ids.wanted('e'), Given::Id(ProducerId(2_002), 'e'));
        assert_eq!(ids.wanted('f'), Given::Waits { ask: true });
    }

    #[test]
    fn a_refusal_is_told_to_all_and_the_next_client_asks_again() {
        let mut ids = ProducerIds::default();
        ids.wanted('a');
        ids.wanted('b');
        assert_eq!(ids.refuse().collect::<Vec<_>>(), ['a', 'b']);
        assert_eq!(ids.wanted('c'), Given::Waits { ask: true });
    }

    #[test]
    fn no_more_wait_than_may() {
        let mut ids = ProducerIds::default();
        for _ in 0..WAITING_MAX {
            assert!(matches!(ids.wanted('a'), Given::Waits { .. }));
        }
        assert_eq!(ids.wanted('b'), Given::Refused('b'));
    }
}
