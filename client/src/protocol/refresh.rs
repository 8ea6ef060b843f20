//! When metadata is asked for: on demand, at the latest after a while, and not more often than makes sense.
//!
//! Requests are numbered, so that one who was told "look again" can tell whether an answer is news: only that to a
//! request which was sent after the event says what came of it.

use std::time::Duration;

use super::backoff::Backoff;
use super::random::Random;
use super::time::Now;

#[derive(Debug)]
pub(crate) struct Refresh {
    backoff: Backoff,
    age_max: Duration,
    is_wanted: bool,
    not_before: Now,
    /// Failures in a row.
    failures: u32,
    serial_sent: u64,
    /// Number of the last answer; 0 before the first.
    serial_done: u64,
    is_in_flight: bool,
    done_at: Now,
}

impl Refresh {
    /// Nothing is known yet, so the first request is due at once.
    pub(crate) fn new(backoff: Backoff, age_max: Duration) -> Self {
        Self {
            backoff,
            age_max,
            is_wanted: true,
            not_before: Now::default(),
            failures: 0,
            serial_sent: 0,
            serial_done: 0,
            is_in_flight: false,
            done_at: Now::default(),
        }
    }

    /// Somebody needs news; returns the number of the request whose answer will be some.
    pub(crate) fn want(&mut self) -> u64 {
        self.is_wanted = true;
        self.serial_sent + 1
    }

    /// The same, and it is something new that is asked, so no pause is due unless brokers fail.
    pub(crate) fn want_at_once(&mut self) {
        self.is_wanted = true;
        if self.failures == 0 {
            self.not_before = Now::default();
        }
    }

    /// Whether this request, or a later one, was answered.
    pub(crate) fn is_done(&self, serial: u64) -> bool {
        self.serial_done >= serial
    }

    /// Whether an answer has ever arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        self.serial_done > 0
    }

    /// When to ask next; `None` while an answer is awaited.
    pub(crate) fn due_at(&self) -> Option<Now> {
        match (self.is_in_flight, self.is_wanted) {
            (true, _) => None,
            (false, true) => Some(self.not_before),
            (false, false) => Some(self.done_at.after(self.age_max)),
        }
    }

    /// A request is sent; returns its number.
    pub(crate) fn sent(&mut self) -> u64 {
        self.serial_sent += 1;
        self.is_wanted = false;
        self.is_in_flight = true;
        self.serial_sent
    }

    pub(crate) fn arrived(&mut self, serial: u64, now: Now) {
        self.is_in_flight = false;
        self.serial_done = serial;
        self.failures = 0;
        self.done_at = now;
        // Whoever wants news again right away (a partition without a leader) gets it after a pause.
        self.not_before = now.after(self.backoff.first);
    }

    pub(crate) fn failed(&mut self, now: Now, random: &mut Random) {
        self.is_in_flight = false;
        self.is_wanted = true;
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.after(self.backoff.pause(self.failures, random));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_news_only_to_those_who_asked_before_it_was_sent() {
        let at = |ms| Now(Duration::from_millis(ms));
        let backoff = Backoff {
            first: Duration::from_millis(10),
            max: Duration::from_secs(1),
        };
        let mut refresh = Refresh::new(backoff, Duration::from_secs(60));
        assert_eq!(refresh.due_at(), Some(at(0)));
        let first = refresh.sent();
        let late = refresh.want();
        assert_eq!(refresh.due_at(), None, "one at a time");
        refresh.arrived(first, at(5));
        assert!(refresh.is_done(first) && !refresh.is_done(late));
        assert_eq!(refresh.due_at(), Some(at(15)), "after a pause");
        assert_eq!(refresh.sent(), late);
        refresh.arrived(late, at(20));
        assert_eq!(refresh.due_at(), Some(at(60_020)), "when it has grown old");
    }
}
