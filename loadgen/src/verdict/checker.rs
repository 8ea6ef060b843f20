//! Checks every event that a consumer reads, as it comes.
//!
//! Owns a [`ReadLog`] per producer and partition and the faults found while reading. What was *not* read is for
//! [`super::judge`] to say, when the run is over.

use std::sync::Arc;

use ahash::AHashMap;

use super::faults::{Fault, Faults, NamedFault};
use super::read::{Arrival, ReadLog};
use crate::workload::event::{Corruption, Stamp};
use crate::workload::input::Input;
use crate::workload::keys::key_bytes;

/// What the events of a run look like to whoever reads them.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The run whose events these are.
    pub run: u32,
    /// How many producers there are.
    pub producers: u32,
    /// Whether events of other runs are passed over without complaint: the topic is not ours alone.
    pub others_allowed: bool,
    /// What was sent.
    pub content: Content,
    /// How many partitions the topic has.
    pub partitions: i32,
}

/// What was sent.
#[derive(Clone, Debug)]
pub enum Content {
    /// Numbered events with padding; keys below this number.
    Synthetic {
        /// How many keys there are, 0 for none.
        keys: u32,
    },
    /// Lines of an input.
    Replay(Arc<Input>),
}

/// One event as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: Option<&'a [u8]>,
    /// The value of the record header with the stamp, if there is one.
    pub stamp_header: Option<&'a [u8]>,
}

/// The check of one partition.
#[derive(Debug)]
pub struct PartitionChecker {
    partition: i32,
    expected: Expected,
    /// The partition that a key belongs to.
    partition_of_key: fn(&[u8], i32) -> i32,
    /// By producer.
    logs: Vec<ReadLog>,
    faults: Faults,
    next_offset: Option<i64>,
    /// Line of the last event of each key, for a replay.
    last_line_of_key: AHashMap<u32, u32>,
    /// The first keys of a synthetic run are known to belong here or not: 0 unknown, 1 here, 2 elsewhere.
    key_home: Vec<u8>,
}

/// Home of synthetic keys is remembered for this many keys.
const KEY_HOMES_MAX: u32 = 1 << 16;

impl PartitionChecker {
    /// A checker of one partition that has read nothing yet.
    pub fn new(
        partition: i32,
        expected: Expected,
        partition_of_key: fn(&[u8], i32) -> i32,
    ) -> Self {
        let key_count = match &expected.content {
            Content::Synthetic { keys } => (*keys).min(KEY_HOMES_MAX),
            Content::Replay(_) => 0,
        };
        Self {
            partition,
            partition_of_key,
            logs: vec![ReadLog::default(); expected.producers as usize],
            faults: Faults::default(),
            next_offset: None,
            last_line_of_key: AHashMap::new(),
            key_home: vec![0; key_count as usize],
            expected,
        }
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// What was read of each producer's events.
    pub fn logs(&self) -> &[ReadLog] {
        &self.logs
    }

    /// Faults found while reading.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Notes a batch whose bytes are not what a batch must be.
    pub fn unreadable(&mut self, offset: i64, why: &str) {
        self.fault(Fault::Unreadable(why.to_owned()), offset, None);
        self.next_offset = None;
    }

    /// Checks one event. Returns its stamp if it is an event of this run.
    #[inline]
    pub fn check(&mut self, seen: Seen<'_>) -> Option<Stamp> {
        if let Some(expected) = self.next_offset.replace(seen.offset + 1)
            && expected != seen.offset
        {
            self.fault(Fault::OffsetGap { expected }, seen.offset, None);
        }
        let stamp = match self.identify(&seen) {
            Ok(Some(stamp)) => stamp,
            Ok(None) => return None,
            Err(corruption) => {
                self.fault(Fault::Corrupted(corruption), seen.offset, None);
                return None;
            }
        };
        match self.logs[usize::from(stamp.producer)].arrive(stamp.sequence, seen.offset) {
            Arrival::Next | Arrival::Ahead { .. } => self.check_key_order(&stamp, seen.offset),
            Arrival::Late { after } => {
                self.fault(
                    Fault::OutOfOrder { after: after - 1 },
                    seen.offset,
                    Some(&stamp),
                );
            }
            Arrival::Again => self.fault(Fault::Duplicated, seen.offset, Some(&stamp)),
        }
        Some(stamp)
    }

    /// Reads the stamp and compares every byte of the event. Nothing for an event of another run, where those are
    /// allowed.
    #[inline]
    fn identify(&mut self, seen: &Seen<'_>) -> Result<Option<Stamp>, Corruption> {
        let value = seen.value.ok_or(Corruption::NoStamp)?;
        let stamp = match &self.expected.content {
            Content::Synthetic { .. } => Stamp::check_event(value),
            Content::Replay(_) => Stamp::decode(seen.stamp_header.unwrap_or_default()),
        };
        let stamp = match stamp {
            Ok(stamp) if stamp.run == self.expected.run => stamp,
            _ if self.expected.others_allowed => return Ok(None),
            Ok(_) => {
                self.fault(Fault::Foreign, seen.offset, None);
                return Ok(None);
            }
            Err(corruption) => return Err(corruption),
        };
        if u32::from(stamp.producer) >= self.expected.producers {
            return Err(Corruption::Subject);
        }
        match &self.expected.content {
            Content::Synthetic { keys } => {
                let keys = *keys;
                self.check_synthetic_key(seen.key, stamp.subject, keys)?;
            }
            Content::Replay(input) => check_replayed(input, seen, value, &stamp, self)?,
        }
        Ok(Some(stamp))
    }

    #[inline]
    fn check_synthetic_key(
        &mut self,
        key: Option<&[u8]>,
        subject: u32,
        keys: u32,
    ) -> Result<(), Corruption> {
        let Some(number) = subject.checked_sub(1) else {
            return if key.is_none() {
                Ok(())
            } else {
                Err(Corruption::Key)
            };
        };
        if number >= keys {
            return Err(Corruption::Subject);
        }
        let expected = key_bytes(number);
        if key != Some(&expected[..]) {
            return Err(Corruption::Key);
        }
        let here = match self.key_home.get_mut(number as usize) {
            None => (self.partition_of_key)(&expected, self.expected.partitions) == self.partition,
            Some(home) => {
                if *home == 0 {
                    let of_key = (self.partition_of_key)(&expected, self.expected.partitions);
                    *home = if of_key == self.partition { 1 } else { 2 };
                }
                *home == 1
            }
        };
        if here {
            Ok(())
        } else {
            Err(Corruption::Partition)
        }
    }

    /// A replayed event must come after all earlier lines with its key.
    fn check_key_order(&mut self, stamp: &Stamp, offset: i64) {
        let Content::Replay(input) = &self.expected.content else {
            return;
        };
        let Some(key) = input.key_number(stamp.subject) else {
            return;
        };
        let last = self.last_line_of_key.entry(key).or_insert(stamp.subject);
        let after = *last;
        *last = stamp.subject.max(after);
        if stamp.subject < after {
            self.fault(
                Fault::KeyOutOfOrder {
                    line: stamp.subject,
                    after,
                },
                offset,
                Some(stamp),
            );
        }
    }

    #[cold]
    fn fault(&mut self, fault: Fault, offset: i64, stamp: Option<&Stamp>) {
        self.faults.add(NamedFault {
            fault,
            partition: self.partition,
            offset: Some(offset),
            producer: stamp.map(|stamp| stamp.producer),
            sequence: stamp.map(|stamp| stamp.sequence),
        });
    }
}

/// Compares value and key of a replayed event with its line.
fn check_replayed(
    input: &Input,
    seen: &Seen<'_>,
    value: &[u8],
    stamp: &Stamp,
    checker: &PartitionChecker,
) -> Result<(), Corruption> {
    let sent = input.value(stamp.subject).ok_or(Corruption::Subject)?;
    if value.len() != sent.len() {
        return Err(Corruption::Length(value.len()));
    }
    if value != sent {
        return Err(Corruption::Value(
            value.iter().zip(sent).take_while(|(a, b)| a == b).count(),
        ));
    }
    let key = input.key(stamp.subject);
    if seen.key != key {
        return Err(Corruption::Key);
    }
    match key {
        Some(key)
            if (checker.partition_of_key)(key, checker.expected.partitions)
                != checker.partition =>
        {
            Err(Corruption::Partition)
        }
        _ => Ok(()),
    }
}
