//! How many questions one core may have put to the others, and for whom.
//!
//! A connection may ask any core for any partition; what belongs elsewhere becomes a *call* to its owner. Inboxes are
//! sized for every call that is allowed here, so a core never waits for room in another one's.
//!
//! Owns: how many calls are unanswered, and how many of them are fetches. Not here: the calls themselves, which the
//! driver keeps, and what each connection holds of them ([`Account`](super::account::Account)).
//!
//! An append is answered by the disk, a fetch by whoever produces next: a call of a fetch may stay for as long as the
//! client likes. So fetches have a bound of their own, each connection has one within it, and the last part of it is
//! kept for connections that hold none: however many parked fetches some clients leave at the wrong core, another
//! client's fetch is served. What waits for other members of a group counts as a fetch.

/// Calls to other cores that may be unanswered at a time; beyond it appends are left in their sockets.
pub const CALLS_MAX: usize = 8192;
/// Of these, calls of fetches; beyond it a fetch is refused.
pub const FETCH_CALLS_MAX: usize = CALLS_MAX / 2;
/// Of these, calls kept for connections that hold none.
pub const FETCH_CALLS_RESERVED: usize = FETCH_CALLS_MAX / 4;
/// Calls of fetches that one connection may hold; its first fetch is served however many cores it asks.
pub const FETCH_CALLS_PER_CONNECTION_MAX: usize = 64;

/// Why no call is made for a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchRefusal {
    /// The connection has its share.
    #[error(
        "this connection has {held} fetches waiting at cores that it is not connected to, of at most \
         {FETCH_CALLS_PER_CONNECTION_MAX}; connect to the core that owns the partition, or wait for an answer"
    )]
    Connection {
        /// Calls it holds.
        held: usize,
    },
    /// All connections of the core together have theirs.
    #[error(
        "{held} fetches that came to this core wait at the cores that own their partitions, and there is room for no \
         more; connect to the core that owns the partition, or try again"
    )]
    Core {
        /// Calls they hold.
        held: usize,
    },
}

/// The calls of one core that are unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    unanswered: usize,
    fetches: usize,
}

impl Calls {
    /// Whether another call may be made, and so whether appends are read from their sockets.
    pub fn has_room(&self) -> bool {
        self.unanswered < CALLS_MAX
    }

    /// Whether a fetch may ask `cores` other cores for a connection that holds `held` calls of fetches.
    ///
    /// # Errors
    ///
    /// [`FetchRefusal`]: the share that is used up.
    pub fn admit_fetch(&self, held: usize, cores: usize) -> Result<(), FetchRefusal> {
        if held > 0 && held + cores > FETCH_CALLS_PER_CONNECTION_MAX {
            return Err(FetchRefusal::Connection { held });
        }
        let room = match held {
            0 => FETCH_CALLS_MAX,
            _ => FETCH_CALLS_MAX - FETCH_CALLS_RESERVED,
        };
        if self.fetches + cores > room || self.unanswered + cores > CALLS_MAX {
            let held = self.fetches;
            return Err(FetchRefusal::Core { held });
        }
        Ok(())
    }

    /// A call was made.
    pub fn made(&mut self, is_fetch: bool) {
        self.unanswered += 1;
        self.fetches += usize::from(is_fetch);
    }

    /// A call was answered.
    ///
    /// # Panics
    ///
    /// If more calls are answered than were made.
    pub fn answered(&mut self, is_fetch: bool) {
        assert!(self.unanswered > 0, "a call is answered once");
        self.unanswered -= 1;
        self.fetches -= usize::from(is_fetch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parks fetches over one other core for a connection until it is refused; how many, and why.
    fn park(calls: &mut Calls) -> (usize, FetchRefusal) {
        let mut held = 0;
        loop {
            match calls.admit_fetch(held, 1) {
                Ok(()) => calls.made(true),
                Err(refusal) => return (held, refusal),
            }
            held += 1;
        }
    }

    #[test]
    fn one_connection_takes_its_share_and_no_more() {
        let mut calls = Calls::default();
        let (held, refusal) = park(&mut calls);
        assert_eq!(held, FETCH_CALLS_PER_CONNECTION_MAX);
        assert_eq!(refusal, FetchRefusal::Connection { held });
        calls.answered(true);
        assert_eq!(calls.admit_fetch(held - 1, 1), Ok(()));
    }

    #[test]
    fn many_greedy_connections_leave_room_for_one_that_holds_none() {
        let mut calls = Calls::default();
        let greedy = (FETCH_CALLS_MAX - FETCH_CALLS_RESERVED) / FETCH_CALLS_PER_CONNECTION_MAX;
        for _ in 0..greedy {
            assert_eq!(park(&mut calls).0, FETCH_CALLS_PER_CONNECTION_MAX);
        }
        for _ in 0..FETCH_CALLS_RESERVED {
            let (held, refusal) = park(&mut calls);
            assert_eq!(held, 1, "{refusal}");
        }
        let held = FETCH_CALLS_MAX;
        assert_eq!(calls.admit_fetch(0, 1), Err(FetchRefusal::Core { held }));
        assert!(calls.has_room(), "appends go on");
    }

    #[test]
    fn the_first_fetch_of_a_connection_may_ask_every_core() {
        let calls = Calls::default();
        let cores = FETCH_CALLS_PER_CONNECTION_MAX + 1;
        assert_eq!(calls.admit_fetch(0, cores), Ok(()));
        let held = 1;
        let refusal = FetchRefusal::Connection { held };
        assert_eq!(calls.admit_fetch(held, cores - 1), Err(refusal));
    }

    #[test]
    fn fetches_take_no_credit_that_appends_have_used() {
        let mut calls = Calls::default();
        for _ in 0..CALLS_MAX {
            assert!(calls.has_room());
            calls.made(false);
        }
        assert!(!calls.has_room());
        assert!(calls.admit_fetch(0, 1).is_err());
        calls.answered(false);
        assert_eq!(calls.admit_fetch(0, 1), Ok(()));
    }
}
