//! What one connection has in flight: the requests it was not answered, their bytes and entries, and what waits to be sent
//! to it.
//!
//! Decides whether the connection's next request is read. A client that asks faster than it is answered, or that leaves
//! its answers in the socket, is slowed down by its own requests staying unread; nothing is refused for it.
//!
//! Not here: the frames themselves and who is woken; the driver does both.

/// The most of each that a connection may have in flight.
#[derive(Clone, Copy, Debug)]
pub struct AccountLimits {
    /// Requests that were read and whose answers were not sent.
    pub requests_in_flight_max: u32,
    /// Bytes of their bodies. The request that exceeds it is still taken: a frame is never cut.
    pub request_bytes_in_flight_max: u64,
    /// Entries of its requests that are unanswered, above which no more are read.
    pub entries_pause: usize,
    /// Bytes waiting to be sent above which its requests are left unread.
    pub outbox_bytes_pause: usize,
    /// The same for the memory that these bytes pin.
    pub pinned_bytes_pause: usize,
}

/// An answer that waits to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// Its bytes.
    pub bytes: usize,
    /// Whole buffers that lie in memory because some of these bytes do.
    pub pinned_bytes: usize,
}

impl std::iter::Sum for Outgoing {
    fn sum<I: Iterator<Item = Self>>(answers: I) -> Self {
        answers.fold(Self::default(), |all, one| Self {
            bytes: all.bytes + one.bytes,
            pinned_bytes: all.pinned_bytes + one.pinned_bytes,
        })
    }
}

/// What one request holds until it is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of its body.
    pub body_bytes: u64,
    /// Its entries.
    pub entries: usize,
}

/// One connection's account.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    limits: AccountLimits,
    requests: u32,
    held: Held,
    outbox: Outgoing,
    fetch_calls: usize,
}

impl Account {
    /// Nothing in flight.
    pub fn new(limits: AccountLimits) -> Self {
        Self {
            limits,
            requests: 0,
            held: Held::default(),
            outbox: Outgoing::default(),
            fetch_calls: 0,
        }
    }

    /// Whether the next request may be read.
    pub fn has_room(&self) -> bool {
        self.requests < self.limits.requests_in_flight_max
            && self.held.body_bytes < self.limits.request_bytes_in_flight_max
            && self.held.entries < self.limits.entries_pause
            && !self.is_congested()
    }

    /// Whether the client leaves so much unread that nothing more is held for it.
    pub fn is_congested(&self) -> bool {
        self.outbox.bytes >= self.limits.outbox_bytes_pause
            || self.outbox.pinned_bytes >= self.limits.pinned_bytes_pause
    }

    /// Requests that were read and whose answers were not sent.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Bytes of bodies of requests whose answers are not known.
    pub fn request_bytes(&self) -> u64 {
        self.held.body_bytes
    }

    /// Calls to other cores that its fetches hold.
    pub fn fetch_calls(&self) -> usize {
        self.fetch_calls
    }

    /// Entries of requests that are unanswered.
    pub fn entries(&self) -> usize {
        self.held.entries
    }

    /// A request was read.
    pub fn request_read(&mut self, held: Held) {
        self.requests += 1;
        self.held.body_bytes += held.body_bytes;
        self.held.entries += held.entries;
    }

    /// The answer to a request is known: its body is in the log or refused.
    ///
    /// # Panics
    ///
    /// As all that gives back: if more is given back than was taken.
    pub fn released(&mut self, held: Held) {
        let body_bytes = self.held.body_bytes.checked_sub(held.body_bytes);
        let entries = self.held.entries.checked_sub(held.entries);
        self.held = Held {
            body_bytes: body_bytes.expect("a body is given back once"),
            entries: entries.expect("entries are given back once"),
        };
    }

    /// Requests were answered and the answers sent, or they get none.
    pub fn requests_done(&mut self, count: u32) {
        let left = self.requests.checked_sub(count);
        self.requests = left.expect("a request is answered once");
    }

    /// An answer waits to be sent.
    pub fn queued(&mut self, answer: Outgoing) {
        self.outbox.bytes += answer.bytes;
        self.outbox.pinned_bytes += answer.pinned_bytes;
    }

    /// So much was sent, and with it the answers to so many requests.
    pub fn sent(&mut self, sent: Outgoing, answers: u32) {
        let bytes = self.outbox.bytes.checked_sub(sent.bytes);
        let pinned_bytes = self.outbox.pinned_bytes.checked_sub(sent.pinned_bytes);
        self.outbox = Outgoing {
            bytes: bytes.expect("what was queued is sent once"),
            pinned_bytes: pinned_bytes.expect("what was pinned is let go once"),
        };
        self.requests_done(answers);
    }

    /// A fetch of this connection asked another core.
    pub fn fetch_call_made(&mut self) {
        self.fetch_calls += 1;
    }

    /// That core has answered.
    pub fn fetch_call_answered(&mut self) {
        let left = self.fetch_calls.checked_sub(1);
        self.fetch_calls = left.expect("a call is answered once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account::new(AccountLimits {
            requests_in_flight_max: 3,
            request_bytes_in_flight_max: 100,
            entries_pause: 10,
            outbox_bytes_pause: 50,
            pinned_bytes_pause: 400,
        })
    }

    fn answer(bytes: usize) -> Outgoing {
        Outgoing {
            bytes,
            pinned_bytes: 0,
        }
    }

    fn body(body_bytes: u64) -> Held {
        Held {
            body_bytes,
            entries: 1,
        }
    }

    #[test]
    fn requests_count_until_their_answers_are_sent() {
        let mut account = account();
        for _ in 0..3 {
            assert!(account.has_room());
            account.request_read(Held::default());
        }
        assert!(!account.has_room());
        account.queued(answer(20));
        assert!(!account.has_room(), "an answer in the outbox is not sent");
        account.sent(answer(20), 1);
        assert!(account.has_room());
        account.requests_done(2);
        assert_eq!(account.requests(), 0);
    }

    #[test]
    fn the_body_that_goes_over_is_taken_and_the_next_one_waits() {
        let mut account = account();
        account.request_read(body(99));
        assert!(account.has_room());
        account.request_read(body(1_000));
        assert!(!account.has_room());
        account.released(body(1_000));
        assert!(account.has_room(), "the request itself is still unanswered");
        assert_eq!(account.requests(), 2);
    }

    #[test]
    fn many_entries_wait_for_their_answers_before_more_are_read() {
        let mut account = account();
        let entries = |entries| Held {
            body_bytes: 0,
            entries,
        };
        account.request_read(entries(9));
        assert!(account.has_room());
        account.request_read(entries(90));
        assert!(!account.has_room(), "a request is never taken in half");
        account.released(entries(90));
        assert!(account.has_room());
        assert_eq!(account.entries(), 9);
    }

    #[test]
    fn a_client_that_does_not_read_its_answers_is_not_read_either() {
        let mut account = account();
        account.request_read(Held::default());
        account.queued(answer(50));
        assert!(account.is_congested() && !account.has_room());
        account.sent(answer(1), 0);
        assert!(!account.is_congested() && account.has_room());
    }

    #[test]
    fn small_answers_that_pin_large_buffers_count_by_what_they_pin() {
        let mut account = account();
        let tiny = Outgoing {
            bytes: 1,
            pinned_bytes: 256,
        };
        account.queued(tiny);
        assert!(!account.is_congested());
        account.queued(tiny);
        assert!(account.is_congested() && !account.has_room());
        account.sent(tiny, 0);
        assert!(!account.is_congested());
    }

    #[test]
    #[should_panic(expected = "answered once")]
    fn an_answer_too_many_is_our_fault_and_told() {
        account().sent(answer(0), 1);
    }
}
