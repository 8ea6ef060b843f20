//! Answers that leave a connection in the order of its requests, whenever each of them is known.
//!
//! Kafka's clients match answers to requests by their order. Not here: the bound on requests in flight
//! ([`account`](super::account)), which bounds these too.

use std::collections::VecDeque;

/// The requests of one connection that are not answered, each with what is needed to answer it.
#[derive(Debug)]
pub struct InOrder<Q, A> {
    /// The number of the oldest one.
    first: u64,
    requests: VecDeque<(Q, Option<A>)>,
}

impl<Q, A> Default for InOrder<Q, A> {
    fn default() -> Self {
        Self {
            first: 0,
            requests: VecDeque::new(),
        }
    }
}

impl<Q, A> InOrder<Q, A> {
    /// Takes the next request in; its number.
    pub fn ask(&mut self, question: Q) -> u64 {
        self.requests.push_back((question, None));
        self.first + self.requests.len() as u64 - 1
    }

    fn find(&mut self, number: u64) -> Option<&mut (Q, Option<A>)> {
        let index = number.checked_sub(self.first)?;
        self.requests.get_mut(usize::try_from(index).ok()?)
    }

    /// What was asked under this number, unless it has been answered.
    pub fn question(&mut self, number: u64) -> Option<&mut Q> {
        match self.find(number)? {
            (question, None) => Some(question),
            (_, Some(_)) => None,
        }
    }

    /// The answer is known. It waits until all before it are; the first one counts.
    pub fn answer(&mut self, number: u64, answer: A) {
        if let Some((_, waits)) = self.find(number) {
            waits.get_or_insert(answer);
        }
    }

    /// The next answer whose turn it is.
    pub fn next_due(&mut self) -> Option<A> {
        let (_, answer) = self.requests.front_mut()?;
        let answer = answer.take()?;
        self.requests.pop_front();
        self.first += 1;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_in_the_order_of_the_questions() {
        let mut answers = InOrder::default();
        let numbers = ["a", "b", "c"].map(|question| answers.ask(question));
        answers.answer(numbers[1], 2);
        assert_eq!(answers.next_due(), None);
        assert_eq!(answers.question(numbers[1]), None);
        assert_eq!(answers.question(numbers[0]), Some(&mut "a"));
        answers.answer(numbers[0], 1);
        answers.answer(numbers[0], 9);
        assert_eq!(
            (answers.next_due(), answers.next_due(), answers.next_due()),
            (Some(1), Some(2), None)
        );
        answers.answer(numbers[0], 9);
        answers.answer(numbers[2], 3);
        assert_eq!((answers.next_due(), answers.next_due()), (Some(3), None));
        let number = answers.ask("d");
        assert_eq!(answers.question(number), Some(&mut "d"));
    }
}
