//! A produce request as a whole: its batches are answered one by one, its entries and the request once.
//!
//! Not here: what becomes of a batch ([`Log`](crate::log::Log)), and when it is answered ([`acks`](super::acks)).

use tackboard_schema::{Acks, Offset, TimestampMs};

/// The acks that count for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveAcks {
    /// What the request asks for, else the default of the topic or the broker.
    pub asked: Acks,
    /// The same, raised to the floor that holds whatever a request says.
    pub level: Acks,
}

impl EffectiveAcks {
    /// `default` and `floor` are the topic's, or the broker's for a topic that is not known.
    pub fn new(asked: Option<Acks>, default: Acks, floor: Acks) -> Self {
        let asked = asked.unwrap_or(default);
        Self {
            asked,
            level: asked.at_least(floor),
        }
    }

    /// Whether the producer waits for an answer. If not it gets none, not even when the entry is refused.
    pub fn is_answered(self) -> bool {
        // A level that nobody can ask for is refused aloud.
        self.asked != Acks::Count(0) || self.level != Acks::Count(0)
    }
}

/// What became of the batches of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the entry's first record.
    pub base_offset: Offset,
    /// Set when the topic stamps the time of append.
    pub log_append_time: Option<TimestampMs>,
    /// First offset of the partition.
    pub log_start_offset: Offset,
}

/// The outcome of an entry, one more of whose batches was appended or refused. The entry keeps its first offset, and its
/// first failure: what was appended beside a batch that failed stays, and its producer repeats the entry.
pub fn merge<F>(
    known: Option<Result<Appended, F>>,
    batch: Result<Appended, F>,
) -> Result<Appended, F> {
    match (known, batch) {
        (None, batch) => batch,
        (Some(Err(first)), _) => Err(first),
        (Some(Ok(_)), Err(failure)) => Err(failure),
        // Batches are answered in order of offset, except a repeated one, which may be answered at once.
        (Some(Ok(first)), Ok(later)) => Ok(Appended {
            base_offset: first.base_offset.min(later.base_offset),
            ..first
        }),
    }
}

/// Whether the client is answered at all: if any of its entries is ([`EffectiveAcks::is_answered`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Respond(bool);

impl Respond {
    /// A batch, or a part of the request that another core served, is answered or not.
    pub fn note(&mut self, respond: bool) {
        self.0 |= respond;
    }

    /// Whether an answer is sent.
    pub fn is_due(self) -> bool {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_is_answered_unless_the_level_that_counts_is_0() {
        const NONE: Acks = Acks::Count(0);
        const LEADER: Acks = Acks::Count(1);
        for (asked, default, floor, level) in [
            (Some(NONE), LEADER, NONE, NONE),
            (None, NONE, NONE, NONE),
            (Some(NONE), LEADER, LEADER, LEADER),
            (None, NONE, Acks::All, Acks::All),
            (Some(LEADER), NONE, NONE, LEADER),
            (Some(Acks::All), NONE, LEADER, Acks::All),
        ] {
            let acks = EffectiveAcks::new(asked, default, floor);
            assert_eq!(acks.level, level);
            assert_eq!(acks.is_answered(), level != NONE);
        }
    }

    fn appended(base_offset: i64) -> Appended {
        Appended {
            base_offset: Offset(base_offset),
            log_append_time: None,
            log_start_offset: Offset(0),
        }
    }

    fn outcome(batches: &[Result<i64, &'static str>]) -> Result<i64, &'static str> {
        let batches = batches.iter().map(|batch| batch.map(appended));
        let merged = batches.fold(None, |known, batch| Some(merge(known, batch)));
        merged
            .expect("one batch at least")
            .map(|entry| entry.base_offset.0)
    }

    #[test]
    fn an_entry_has_the_offset_of_its_first_record_in_whatever_order_its_batches_are_answered() {
        assert_eq!(outcome(&[Ok(7)]), Ok(7));
        assert_eq!(outcome(&[Ok(7), Ok(9), Ok(12)]), Ok(7));
        assert_eq!(outcome(&[Ok(9), Ok(7)]), Ok(7));
    }

    #[test]
    fn an_entry_has_its_first_failure() {
        assert_eq!(outcome(&[Ok(7), Err("gap"), Ok(9)]), Err("gap"));
        assert_eq!(outcome(&[Err("full"), Err("gap")]), Err("full"));
    }

    #[test]
    fn one_batch_that_is_answered_is_enough() {
        let mut respond = Respond::default();
        assert!(!respond.is_due());
        respond.note(false);
        assert!(!respond.is_due());
        respond.note(true);
        respond.note(false);
        assert!(respond.is_due());
    }
}
