//! What one connection has in flight: the requests it was not answered, their bytes, and what waits to be sent to it.
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
    /// Bytes waiting to be sent above which its requests are left unread.
    pub outbox_bytes_pause: usize,
}

/// One connection's account.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    limits: AccountLimits,
    requests: u32,
    request_bytes: u64,
    outbox_bytes: usize,
    fetch_calls: usize,
}

impl Account {
    /// Nothing in flight.
    pub fn new(limits: AccountLimits) -> Self {
        Self {
            limits,
            requests: 0,
            request_bytes: 0,
            outbox_bytes: 0,
            fetch_calls: 0,
        }
    }

    /// Whether the next request may be read.
    pub fn has_room(&self) -> bool {
        self.requests < self.limits.requests_in_flight_max
            && self.request_bytes < self.limits.request_bytes_in_flight_max
            && !self.is_congested()
    }

    /// Whether the client leaves so much unread that nothing more is held for it.
    pub fn is_congested(&self) -> bool {
        self.outbox_bytes >= self.limits.outbox_bytes_pause
    }

    /// Requests that were read and whose answers were not sent.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Calls to other cores that its fetches hold.
    pub fn fetch_calls(&self) -> usize {
        self.fetch_calls
    }

    /// A request with a body of `bytes` was read.
    pub fn request_read(&mut self, bytes: u64) {
        self.requests += 1;
        self.request_bytes += bytes;
    }

    /// The body of a request is in the log or refused.
    ///
    /// # Panics
    ///
    /// As all that gives back: if more is given back than was taken.
    pub fn body_released(&mut self, bytes: u64) {
        let left = self.request_bytes.checked_sub(bytes);
        self.request_bytes = left.expect("a body is given back once");
    }

    /// Requests were answered and the answers sent, or they get none.
    pub fn requests_done(&mut self, count: u32) {
        let left = self.requests.checked_sub(count);
        self.requests = left.expect("a request is answered once");
    }

    /// An answer of `bytes` waits to be sent.
    pub fn queued(&mut self, bytes: usize) {
        self.outbox_bytes += bytes;
    }

    /// So much was sent, and with it the answers to so many requests.
    pub fn sent(&mut self, bytes: usize, answers: u32) {
        let left = self.outbox_bytes.checked_sub(bytes);
        self.outbox_bytes = left.expect("what was queued is sent once");
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
            outbox_bytes_pause: 50,
        })
    }

    #[test]
    fn requests_count_until_their_answers_are_sent() {
        let mut account = account();
        for _ in 0..3 {
            assert!(account.has_room());
            account.request_read(0);
        }
        assert!(!account.has_room());
        account.queued(20);
        assert!(!account.has_room(), "an answer in the outbox is not sent");
        account.sent(20, 1);
        assert!(account.has_room());
        account.requests_done(2);
        assert_eq!(account.requests(), 0);
    }

    #[test]
    fn the_body_that_goes_over_is_taken_and_the_next_one_waits() {
        let mut account = account();
        account.request_read(99);
        assert!(account.has_room());
        account.request_read(1_000);
        assert!(!account.has_room());
        account.body_released(1_000);
        assert!(account.has_room(), "the request itself is still unanswered");
        assert_eq!(account.requests(), 2);
    }

    #[test]
    fn a_client_that_does_not_read_its_answers_is_not_read_either() {
        let mut account = account();
        account.request_read(0);
        account.queued(50);
        assert!(account.is_congested() && !account.has_room());
        account.sent(1, 0);
        assert!(!account.is_congested() && account.has_room());
    }

    #[test]
    #[should_panic(expected = "answered once")]
    fn an_answer_too_many_is_our_fault_and_told() {
        account().sent(0, 1);
    }
}
