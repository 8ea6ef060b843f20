//! How many entries of unanswered requests one core may hold, and for whom.
//!
//! A request is bounded in entries, a connection in requests; both together would still let a few connections fill the
//! memory with fetches that wait. So a connection that has many entries unanswered is read no further
//! ([`Account`](super::account::Account)), and a core that holds all it may refuses fetches and lookups. The last part
//! of its room is kept for connections that hold few: however much some clients ask at once, another client's fetch
//! is served.
//!
//! Owns: how many entries are held. Not here: the entries themselves, which the driver keeps. Appends count, but are
//! never refused here: their bytes have a budget of their own. Those of questions to groups are counted as entries that cost
//! as much.

/// Entries that a connection may have unanswered before it is read no further: those of two of the largest requests.
pub const ENTRIES_PER_CONNECTION_PAUSE: usize = 20_000;
/// A connection that holds no more than these may use the part that is kept.
pub const ENTRIES_FEW: usize = 100;
/// What an entry costs while it is unanswered, bytes: itself, its place in logic, and its part of a read.
const ENTRY_BYTES: u64 = 256;
/// The part of the sockets' memory that entries may take.
const SOCKETS_SHARE: u64 = 4;
/// The room of a core with little memory: what two connections may hold.
const ENTRIES_MAX_LEAST: usize = 2 * ENTRIES_PER_CONNECTION_PAUSE;

/// The entries that cost as much as so many bytes: what a question carries counts with it.
pub fn entries_worth(bytes: u64) -> usize {
    usize::try_from(bytes / ENTRY_BYTES).unwrap_or(usize::MAX)
}

/// The entries of one core that are unanswered.
#[derive(Clone, Copy, Debug)]
pub struct EntryRoom {
    entries_max: usize,
    held: usize,
}

/// A core holds as many entries as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{held} entries of fetches and lookups are unanswered on this core, and there is no room for {wanted} more; try again"
)]
pub struct NoEntryRoom {
    /// Entries that are unanswered.
    pub held: usize,
    /// Entries of the request.
    pub wanted: usize,
}

impl EntryRoom {
    /// Room within the memory that a core has for its sockets.
    pub fn new(sockets_bytes: u64) -> Self {
        let affordable = sockets_bytes / SOCKETS_SHARE / ENTRY_BYTES;
        let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
        Self {
            entries_max: affordable.max(ENTRIES_MAX_LEAST),
            held: 0,
        }
    }

    /// The most that may be unanswered.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Whether a request of `wanted` entries is taken from a connection that holds `held` already.
    ///
    /// # Errors
    ///
    /// [`NoEntryRoom`].
    pub fn admit(&self, held: usize, wanted: usize) -> Result<(), NoEntryRoom> {
        let room = match held + wanted <= ENTRIES_FEW {
            true => self.entries_max,
            false => self.entries_max / 4 * 3,
        };
        if self.held + wanted > room {
            let held = self.held;
            return Err(NoEntryRoom { held, wanted });
        }
        Ok(())
    }

    /// A request of so many entries was taken in.
    pub fn taken(&mut self, entries: usize) {
        self.held += entries;
    }

    /// It is answered.
    ///
    /// # Panics
    ///
    /// If more is given back than was taken.
    pub fn given_back(&mut self, entries: usize) {
        let left = self.held.checked_sub(entries);
        self.held = left.expect("a request is answered once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_connections_leave_room_for_those_that_hold_few() {
        let mut room = EntryRoom::new(0);
        let refused = loop {
            match room.admit(0, 10_000) {
                Ok(()) => room.taken(10_000),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.held, ENTRIES_MAX_LEAST / 4 * 3);
        assert!(room.admit(1, ENTRIES_FEW).is_err());
        for _ in 0..ENTRIES_MAX_LEAST / 4 / ENTRIES_FEW {
            assert_eq!(room.admit(0, ENTRIES_FEW), Ok(()));
            room.taken(ENTRIES_FEW);
        }
        assert!(room.admit(0, 1).is_err(), "the room has an end");
        room.given_back(10_000 + ENTRIES_FEW);
        assert_eq!(room.admit(0, ENTRIES_FEW), Ok(()));
    }

    #[test]
    fn the_room_grows_with_the_memory_for_sockets() {
        let room = EntryRoom::new(1 << 30);
        assert_eq!(room.entries_max(), 1 << 20);
    }

    #[test]
    #[should_panic(expected = "answered once")]
    fn an_answer_too_many_is_our_fault_and_told() {
        EntryRoom::new(0).given_back(1);
    }
}
