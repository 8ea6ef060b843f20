//! What one log remembers of its idempotent producers, by Kafka's rules.
//!
//! A producer numbers its records; the log remembers, per producer id, the epoch and the last five batches. A batch
//! that is among them is a retry and gets its first offset again (T2); one that does not follow on the last is
//! refused. The state is a function of the log: recovery rebuilds it from a snapshot and the batches behind it (T1).
//!
//! Rules:
//! - A producer that is not remembered may start at any sequence: expired and never seen cannot be told apart.
//! - An older epoch than the one remembered is refused, a newer one starts at sequence 0.
//! - Sequences wrap from 2³¹−1 to 0.
//!
//! Bounded: [`PRODUCERS_PER_LOG_MAX`] producers; whoever was silent for longest is forgotten first, after
//! [`PRODUCER_EXPIRY_US`] in any case. Silence is measured by the monotonic clock from the last append or from the
//! open: a wall clock that jumps must not make a retry look new.

use std::collections::BTreeMap;

use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::storage::producer_snapshot::{ProducerEntry, WindowBatch};
use tackboard_schema::{ErrorCode, Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::limits::{PRODUCER_EXPIRY_US, PRODUCER_WINDOW_BATCHES, PRODUCERS_PER_LOG_MAX};
use crate::shard::interface::{Now, Refusal, RefusalDetail};

/// No slot.
const NONE: u32 = u32::MAX;

/// What a batch is to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencing {
    /// It follows; append it.
    Next,
    /// It is in the log already.
    Duplicate {
        /// Where its first record is.
        base_offset: Offset,
        /// The offset after its last record.
        next_offset: Offset,
    },
}

#[derive(Clone, Copy, Debug)]
struct Producer {
    id: ProducerId,
    epoch: ProducerEpoch,
    /// Oldest first.
    window: [WindowBatch; PRODUCER_WINDOW_BATCHES],
    window_length: u8,
    /// For the snapshot.
    last_append: TimestampMs,
    /// When it was heard of last in this process.
    seen_us: u64,
    /// Neighbours in order of last append.
    older: u32,
    newer: u32,
}

/// The producers of one log.
#[derive(Clone, Debug)]
pub struct ProducerTable {
    by_id: BTreeMap<ProducerId, u32>,
    slots: Vec<Producer>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Default for ProducerTable {
    fn default() -> Self {
        Self::new()
    }
}

impl ProducerTable {
    /// Nobody.
    pub fn new() -> Self {
        Self {
            by_id: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// From a snapshot's entries.
    pub fn from_entries(mut entries: Vec<ProducerEntry>) -> Self {
        entries.sort_by_key(|entry| entry.last_append);
        let mut table = Self::new();
        for entry in &entries {
            let slot = table.insert(entry.producer_id, entry.producer_epoch);
            let producer = &mut table.slots[slot as usize];
            let batches = entry.batches();
            producer.window[..batches.len()].copy_from_slice(batches);
            producer.window_length = batches.len() as u8;
            producer.last_append = entry.last_append;
        }
        table
    }

    /// For a snapshot: in rising order of producer id.
    pub fn entries(&self) -> Vec<ProducerEntry> {
        let slots = self.by_id.values().map(|slot| &self.slots[*slot as usize]);
        let entry = |p: &Producer| ProducerEntry::new(p.id, p.epoch, p.last_append, p.batches());
        slots.map(entry).collect()
    }

    /// How many producers are remembered.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether nobody is remembered.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Whether anything is remembered of a producer.
    pub fn knows(&self, id: ProducerId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// What a batch is to the log. Batches of producers that are not idempotent always follow.
    pub fn check(&self, header: &BatchHeader) -> Result<Sequencing, Refusal> {
        if !header.is_idempotent() {
            return Ok(Sequencing::Next);
        }
        match self.by_id.get(&header.producer_id) {
            Some(slot) => self.slots[*slot as usize].check(header),
            None => Ok(Sequencing::Next),
        }
    }

    /// A batch was appended (or replayed) at `base_offset`; it passed [`Self::check`].
    pub fn note(&mut self, header: &BatchHeader, base_offset: Offset, now: Now) {
        if !header.is_idempotent() {
            return;
        }
        let slot = match self.by_id.get(&header.producer_id) {
            Some(slot) => *slot,
            None => self.insert(header.producer_id, header.producer_epoch),
        };
        self.slots[slot as usize].note(header, base_offset, now);
        if self.newest != slot {
            self.unlink(slot);
            self.link_newest(slot);
        }
    }

    /// The log opens: silence is counted from now. Replayed batches do not tell when they were appended.
    pub fn open(&mut self, now: Now) {
        for producer in &mut self.slots {
            producer.seen_us = now.monotonic_us;
            if producer.last_append.0 == i64::MIN {
                producer.last_append = now.wall;
            }
        }
    }

    /// Forgets who was silent for too long.
    pub fn expire(&mut self, now_us: u64) {
        while self.oldest != NONE {
            let producer = &self.slots[self.oldest as usize];
            if now_us.saturating_sub(producer.seen_us) < PRODUCER_EXPIRY_US {
                return;
            }
            self.forget_oldest();
        }
    }

    fn insert(&mut self, id: ProducerId, epoch: ProducerEpoch) -> u32 {
        if self.by_id.len() >= PRODUCERS_PER_LOG_MAX {
            self.forget_oldest();
        }
        let producer = Producer {
            id,
            epoch,
            window: [WindowBatch::default(); PRODUCER_WINDOW_BATCHES],
            window_length: 0,
            last_append: TimestampMs(i64::MIN),
            seen_us: 0,
            older: NONE,
            newer: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = producer;
                slot
            }
            None => {
                self.slots.push(producer);
                (self.slots.len() - 1) as u32
            }
        };
        self.by_id.insert(id, slot);
        self.link_newest(slot);
        slot
    }

    fn forget_oldest(&mut self) {
        let slot = self.oldest;
        self.unlink(slot);
        self.by_id.remove(&self.slots[slot as usize].id);
        self.free.push(slot);
    }

    fn unlink(&mut self, slot: u32) {
        let Producer { older, newer, .. } = self.slots[slot as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.slots[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let older = self.newest;
        match older {
            NONE => self.oldest = slot,
            _ => self.slots[older as usize].newer = slot,
        }
        let producer = &mut self.slots[slot as usize];
        (producer.older, producer.newer) = (older, NONE);
        self.newest = slot;
    }
}

impl Producer {
    fn batches(&self) -> &[WindowBatch] {
        &self.window[..usize::from(self.window_length)]
    }

    fn check(&self, header: &BatchHeader) -> Result<Sequencing, Refusal> {
        if header.producer_epoch < self.epoch {
            let detail = RefusalDetail::StaleProducerEpoch {
                producer_id: self.id,
                current: self.epoch,
                got: header.producer_epoch,
            };
            let code = ErrorCode::InvalidProducerEpoch;
            return Err(Refusal { code, detail });
        }
        let mut expected = 0;
        if header.producer_epoch == self.epoch {
            if let Some(sequencing) = self.find(header) {
                return Ok(sequencing);
            }
            let last = self.batches().last();
            expected = last.map_or(0, |last| next_sequence(last.last_sequence));
        }
        if header.base_sequence == expected {
            return Ok(Sequencing::Next);
        }
        let detail = RefusalDetail::OutOfOrderSequence {
            producer_id: self.id,
            expected,
            got: header.base_sequence,
        };
        let code = ErrorCode::OutOfOrderSequenceNumber;
        Err(Refusal { code, detail })
    }

    fn find(&self, header: &BatchHeader) -> Option<Sequencing> {
        let (first, last) = (header.base_sequence, header.last_sequence());
        let batch = self
            .batches()
            .iter()
            .find(|batch| batch.first_sequence == first && batch.last_sequence == last)?;
        Some(Sequencing::Duplicate {
            base_offset: batch.base_offset,
            next_offset: batch
                .base_offset
                .plus(i64::from(header.last_offset_delta) + 1),
        })
    }

    fn note(&mut self, header: &BatchHeader, base_offset: Offset, now: Now) {
        if header.producer_epoch != self.epoch {
            self.epoch = header.producer_epoch;
            self.window_length = 0;
        }
        if usize::from(self.window_length) == PRODUCER_WINDOW_BATCHES {
            self.window.rotate_left(1);
            self.window_length -= 1;
        }
        self.window[usize::from(self.window_length)] = WindowBatch {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset,
        };
        self.window_length += 1;
        self.last_append = now.wall;
        self.seen_us = now.monotonic_us;
    }
}

/// The sequence after `last`.
fn next_sequence(last: i32) -> i32 {
    last.checked_add(1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tackboard_schema::LeaderEpoch;
    use tackboard_schema::record_batch::Attributes;

    use super::*;

    fn header(id: i64, epoch: i16, sequence: i32, records: i32) -> BatchHeader {
        BatchHeader {
            base_offset: Offset(0),
            batch_length: 100,
            partition_leader_epoch: LeaderEpoch(0),
            crc: 0,
            attributes: Attributes(0),
            last_offset_delta: records - 1,
            base_timestamp: TimestampMs(0),
            max_timestamp: TimestampMs(0),
            producer_id: ProducerId(id),
            producer_epoch: ProducerEpoch(epoch),
            base_sequence: sequence,
            record_count: records,
        }
    }

    fn append(table: &mut ProducerTable, header: BatchHeader, at: i64, time: u64) {
        let (monotonic_us, wall) = (time, TimestampMs(time as i64));
        assert_eq!(table.check(&header), Ok(Sequencing::Next));
        table.note(&header, Offset(at), Now { monotonic_us, wall });
    }

    fn refusal(table: &ProducerTable, header: BatchHeader) -> ErrorCode {
        table.check(&header).unwrap_err().code
    }

    #[test]
    fn sequences_wrap() {
        let mut table = ProducerTable::new();
        append(&mut table, header(1, 0, i32::MAX - 1, 4), 0, 0);
        append(&mut table, header(1, 0, 2, 1), 4, 0);
        let retry = table.check(&header(1, 0, i32::MAX - 1, 4)).unwrap();
        assert_eq!(
            retry,
            Sequencing::Duplicate {
                base_offset: Offset(0),
                next_offset: Offset(4)
            }
        );
        append(&mut table, header(2, 0, i32::MAX, 1), 5, 0);
        append(&mut table, header(2, 0, 0, 1), 6, 0);
    }

    #[test]
    fn the_window_holds_five_batches() {
        let mut table = ProducerTable::new();
        for batch in 0..6 {
            append(
                &mut table,
                header(1, 0, batch * 10, 10),
                i64::from(batch) * 10,
                0,
            );
        }
        assert_eq!(
            refusal(&table, header(1, 0, 0, 10)),
            ErrorCode::OutOfOrderSequenceNumber
        );
        for batch in 1..6 {
            let base_offset = Offset(i64::from(batch) * 10);
            let next_offset = base_offset.plus(10);
            let expected = Ok(Sequencing::Duplicate {
                base_offset,
                next_offset,
            });
            assert_eq!(table.check(&header(1, 0, batch * 10, 10)), expected);
        }
        // The same first sequence with another length is no retry.
        assert_eq!(
            refusal(&table, header(1, 0, 50, 9)),
            ErrorCode::OutOfOrderSequenceNumber
        );
    }

    #[test]
    fn a_new_epoch_starts_at_zero_and_ends_the_old_one() {
        let mut table = ProducerTable::new();
        append(&mut table, header(1, 3, 100, 1), 0, 0);
        assert_eq!(
            refusal(&table, header(1, 4, 101, 1)),
            ErrorCode::OutOfOrderSequenceNumber
        );
        append(&mut table, header(1, 4, 0, 1), 1, 0);
        assert_eq!(
            refusal(&table, header(1, 3, 101, 1)),
            ErrorCode::InvalidProducerEpoch
        );
        append(&mut table, header(1, 4, 1, 1), 2, 0);
    }

    #[test]
    fn whoever_was_silent_for_longest_is_forgotten_first() {
        let mut table = ProducerTable::new();
        for id in 0..PRODUCERS_PER_LOG_MAX as i64 {
            append(&mut table, header(id, 0, 0, 1), id, id as u64);
        }
        append(&mut table, header(0, 0, 1, 1), 0, 20_000);
        append(&mut table, header(-7 + i64::MAX, 0, 5, 1), 0, 20_001);
        assert_eq!(table.len(), PRODUCERS_PER_LOG_MAX);
        assert_eq!(
            table.check(&header(1, 0, 77, 1)),
            Ok(Sequencing::Next),
            "1 was forgotten"
        );
        assert!(table.check(&header(0, 0, 77, 1)).is_err(), "0 was not");
        table.expire(PRODUCER_EXPIRY_US + 10_000);
        assert_eq!(table.len(), 2);
        table.expire(PRODUCER_EXPIRY_US + 20_001);
        assert!(table.is_empty());
    }

    #[test]
    fn a_snapshot_gives_the_same_answers() {
        let mut table = ProducerTable::new();
        for id in [5, 3, 9] {
            for batch in 0..7 {
                append(
                    &mut table,
                    header(id, 2, batch, 1),
                    i64::from(batch),
                    id as u64,
                );
            }
        }
        let again = ProducerTable::from_entries(table.entries());
        assert_eq!(again.entries(), table.entries());
        assert_eq!(again.check(&header(3, 2, 7, 1)), Ok(Sequencing::Next));
        assert_eq!(
            refusal(&again, header(3, 2, 9, 1)),
            ErrorCode::OutOfOrderSequenceNumber
        );
        assert!(matches!(
            again.check(&header(9, 2, 6, 1)),
            Ok(Sequencing::Duplicate { .. })
        ));
    }
}
