//! How many connections a core takes, in all and from one address.
//!
//! Decides who is let in, and how often the log tells of those who are not: a client that connects in a loop must not fill
//! it.
//!
//! Not here: sockets. What an address is, the driver says.

use std::collections::BTreeMap;

/// Refusals are told at most so often, in microseconds.
pub const REFUSALS_TOLD_EVERY_US: u64 = 10_000_000;

/// Which bound a connection met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionBound {
    /// That of the core.
    All,
    /// That of its address.
    PerAddress,
}

/// A connection is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRefusal {
    /// Why.
    pub bound: ConnectionBound,
    /// It is time to tell: so many were refused since the last time, this one included.
    pub tell: Option<u64>,
}

/// The connections of one core.
#[derive(Clone, Debug)]
pub struct ConnectionRoom<A> {
    max: u32,
    per_address_max: Option<u32>,
    open: u32,
    /// Of each address that has any.
    by_address: BTreeMap<A, u32>,
    untold: u64,
    told_us: Option<u64>,
}

impl<A: Copy + Ord> ConnectionRoom<A> {
    /// Room for `max` connections, and for so many from one address.
    pub fn new(max: u32, per_address_max: Option<u32>) -> Self {
        Self {
            max,
            per_address_max,
            open: 0,
            by_address: BTreeMap::new(),
            untold: 0,
            told_us: None,
        }
    }

    /// Connections that are open.
    pub fn open(&self) -> u32 {
        self.open
    }

    /// Takes in a connection from `address`.
    ///
    /// # Errors
    /// It is to be closed at once.
    pub fn admit(&mut self, address: A, now_us: u64) -> Result<(), ConnectionRefusal> {
        let from_there = self.by_address.get(&address).copied().unwrap_or(0);
        let bound = if self.open >= self.max {
            ConnectionBound::All
        } else if self.per_address_max.is_some_and(|max| from_there >= max) {
            ConnectionBound::PerAddress
        } else {
            self.open += 1;
            self.by_address.insert(address, from_there + 1);
            return Ok(());
        };
        self.untold += 1;
        let is_time = |told| now_us >= REFUSALS_TOLD_EVERY_US.saturating_add(told);
        let tell = (self.told_us.is_none_or(is_time)).then(|| {
            self.told_us = Some(now_us);
            std::mem::take(&mut self.untold)
        });
        Err(ConnectionRefusal { bound, tell })
    }

    /// One that was let in has ended.
    ///
    /// # Panics
    ///
    /// If more end than were let in.
    pub fn ended(&mut self, address: A) {
        let from_there = self.by_address.get_mut(&address);
        let from_there = from_there.expect("it was let in");
        *from_there -= 1;
        if *from_there == 0 {
            self.by_address.remove(&address);
        }
        self.open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(result: Result<(), ConnectionRefusal>) -> Option<ConnectionBound> {
        result.err().map(|refusal| refusal.bound)
    }

    #[test]
    fn an_address_at_its_bound_leaves_room_for_others() {
        let mut room = ConnectionRoom::new(4, Some(2));
        assert_eq!(room.admit('a', 0), Ok(()));
        assert_eq!(room.admit('a', 0), Ok(()));
        let refused = bound(room.admit('a', 0));
        assert_eq!(refused, Some(ConnectionBound::PerAddress));
        assert_eq!(room.admit('b', 0), Ok(()));
        assert_eq!(room.admit('c', 0), Ok(()));
        assert_eq!(bound(room.admit('d', 0)), Some(ConnectionBound::All));
        room.ended('a');
        assert_eq!(room.admit('a', 0), Ok(()));
        assert_eq!(room.open(), 4);
    }

    #[test]
    fn without_a_bound_one_address_may_have_them_all() {
        let mut room = ConnectionRoom::new(3, None);
        assert!((0..3).all(|_| room.admit('a', 0).is_ok()));
        assert_eq!(bound(room.admit('a', 0)), Some(ConnectionBound::All));
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let mut room = ConnectionRoom::new(1, Some(1));
        for address in 0..1000 {
            assert_eq!(room.admit(address, 0), Ok(()));
            room.ended(address);
        }
        assert!(room.by_address.is_empty());
        assert_eq!(room.open(), 0);
    }

    #[test]
    fn refusals_are_told_now_and_then_with_their_number() {
        let mut room = ConnectionRoom::new(0, None);
        let mut tell = |now_us| room.admit((), now_us).unwrap_err().tell;
        assert_eq!(tell(5), Some(1));
        assert_eq!(tell(6), None);
        assert_eq!(tell(REFUSALS_TOLD_EVERY_US), None);
        assert_eq!(tell(REFUSALS_TOLD_EVERY_US + 5), Some(3));
        assert_eq!(tell(REFUSALS_TOLD_EVERY_US + 6), None);
    }
}
