//! Appends that wait for their acks condition.
//!
//! On one broker, whatever the level, the condition is that one position reaches the batch's next offset: what is
//! written or what is durable, by the durability that counts for the request. With replicas a third queue joins,
//! released by the high watermark, and the positions of followers are counted here.
//!
//! Order: by offset, so that the answers to one producer's batches leave in the order of the batches. A retry (T2)
//! waits at the place of the batch it repeats.

use std::collections::VecDeque;

use tackboard_schema::Offset;

use crate::shard::interface::Ticket;

/// One append that nobody has been answered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckWaiter {
    /// Whom to answer.
    pub ticket: Ticket,
    /// Offset of the batch's first record.
    pub base_offset: Offset,
    /// What the position must reach.
    pub next_offset: Offset,
    /// When to give up.
    pub deadline_us: u64,
    /// It is a retry of a batch that is in the log.
    pub duplicate: bool,
}

/// The waiters for one position of one log, in order of what they wait for.
#[derive(Clone, Debug, Default)]
pub struct AckQueue {
    queue: VecDeque<AckWaiter>,
}

impl AckQueue {
    /// Adds a waiter.
    pub fn insert(&mut self, waiter: AckWaiter) {
        let in_order = self
            .queue
            .back()
            .is_none_or(|last| last.next_offset <= waiter.next_offset);
        if in_order {
            self.queue.push_back(waiter);
        } else {
            let place = self
                .queue
                .partition_point(|other| other.next_offset <= waiter.next_offset);
            self.queue.insert(place, waiter);
        }
    }

    /// The next waiter whose condition `reached` fulfils.
    pub fn release(&mut self, reached: Offset) -> Option<AckWaiter> {
        if self.queue.front()?.next_offset > reached {
            return None;
        }
        self.queue.pop_front()
    }

    /// Takes out every waiter whose time is up.
    pub fn expire(&mut self, now_us: u64, mut expired: impl FnMut(AckWaiter)) {
        self.queue.retain(|waiter| {
            let keep = waiter.deadline_us > now_us;
            if !keep {
                expired(*waiter);
            }
            keep
        });
    }

    /// Takes out, in order, every waiter whose condition `reached` does not fulfil.
    pub fn refuse_beyond(&mut self, reached: Offset, mut refused: impl FnMut(AckWaiter)) {
        let place = self
            .queue
            .partition_point(|waiter| waiter.next_offset <= reached);
        self.queue.drain(place..).for_each(&mut refused);
    }

    /// Takes out the next waiter, whatever it waits for.
    pub fn pop(&mut self) -> Option<AckWaiter> {
        self.queue.pop_front()
    }

    /// The earliest time at which a waiter gives up.
    pub fn next_deadline_us(&self) -> Option<u64> {
        self.queue.iter().map(|waiter| waiter.deadline_us).min()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// What the first one waits for.
    pub fn first_next_offset(&self) -> Option<Offset> {
        self.queue.front().map(|waiter| waiter.next_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(ticket: u64, next_offset: i64, deadline_us: u64) -> AckWaiter {
        AckWaiter {
            ticket: Ticket(ticket),
            base_offset: Offset(next_offset - 1),
            next_offset: Offset(next_offset),
            deadline_us,
            duplicate: false,
        }
    }

    fn released(queue: &mut AckQueue, reached: i64) -> Vec<u64> {
        std::iter::from_fn(|| queue.release(Offset(reached)))
            .map(|waiter| waiter.ticket.0)
            .collect()
    }

    #[test]
    fn waiters_leave_in_order_of_offset_and_a_retry_behind_its_original() {
        let mut queue = AckQueue::default();
        queue.insert(waiter(1, 10, 5));
        queue.insert(waiter(2, 20, 5));
        queue.insert(waiter(3, 10, 5));
        assert_eq!(queue.first_next_offset(), Some(Offset(10)));
        assert_eq!(released(&mut queue, 9), []);
        assert_eq!(released(&mut queue, 19), [1, 3]);
        assert_eq!(released(&mut queue, 20), [2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn those_that_wait_for_more_than_there_is_leave_in_order() {
        let mut queue = AckQueue::default();
        for offset in [10, 20, 30] {
            queue.insert(waiter(offset as u64, offset, 50));
        }
        let mut refused = Vec::new();
        queue.refuse_beyond(Offset(10), |waiter| refused.push(waiter.ticket.0));
        assert_eq!(refused, [20, 30]);
        assert_eq!(released(&mut queue, 10), [10]);
    }

    #[test]
    fn those_whose_time_is_up_leave_from_anywhere() {
        let mut queue = AckQueue::default();
        queue.insert(waiter(1, 10, 50));
        queue.insert(waiter(2, 20, 5));
        queue.insert(waiter(3, 30, 70));
        let mut expired = Vec::new();
        queue.expire(50, |waiter| expired.push(waiter.ticket.0));
        assert_eq!(expired, [1, 2]);
        assert_eq!((queue.len(), queue.next_deadline_us()), (1, Some(70)));
    }
}
