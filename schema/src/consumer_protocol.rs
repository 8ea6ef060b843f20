//! What the members of a consumer group tell each other through the coordinator: subscriptions and assignments.
//!
//! Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, so that clients of both protocols can be
//! members of one group. Big-endian; a version, then the fields of that version; fields of later versions follow and
//! are passed over.
//!
//! | version | of a subscription | of an assignment |
//! |---|---|---|
//! | 0 | topics, user data | partitions, user data |
//! | 1 (KIP-429) | and the partitions that the member owns | as before |
//! | 2 (KIP-792) | and the generation in which it got them | as before |
//! | 3 (KIP-881) | and its rack | as before |
//!
//! Written is version 2 of a subscription and version 1 of an assignment; read is any. The rack and the user data of a
//! subscription are kept by nobody here: the assignors don't look at them.

use std::collections::BTreeMap;

use crate::cursor::Cursor;
use crate::{DecodeError, PartitionIndex};

const SUBSCRIPTION_VERSION: i16 = 2;
const ASSIGNMENT_VERSION: i16 = 1;

/// Partitions by the name of their topic; each once, in order.
pub type Partitions = BTreeMap<String, Vec<PartitionIndex>>;

/// What a member wants, and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Names of topics.
    pub topics: Vec<String>,
    /// What it was assigned and has not given up.
    pub owned: Partitions,
    /// The generation of that assignment; -1: none, or not told.
    pub generation: i32,
}

/// What a member is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Its part.
    pub partitions: Partitions,
}

impl Default for Subscription {
    fn default() -> Self {
        Self {
            topics: Vec::new(),
            owned: Partitions::new(),
            generation: -1,
        }
    }
}

impl Subscription {
    /// The bytes.
    ///
    /// # Panics
    /// If a name is longer than 32,767 bytes: none of a topic is.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&SUBSCRIPTION_VERSION.to_be_bytes());
        put_count(&mut out, self.topics.len());
        for topic in &self.topics {
            put_string(&mut out, topic);
        }
        put_no_bytes(&mut out);
        put_partitions(&mut out, &self.owned);
        out.extend_from_slice(&self.generation.to_be_bytes());
        out
    }

    /// Reads a subscription.
    ///
    /// # Errors
    /// Bytes that end too soon, lengths below zero, names that are no UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let version = version(&mut cursor)?;
        // A name takes two bytes at least.
        let count = count(&mut cursor, 2, "topics of a subscription")?;
        let mut topics = Vec::with_capacity(count);
        for _ in 0..count {
            topics.push(string(&mut cursor, "topic of a subscription")?.to_owned());
        }
        pass_bytes(&mut cursor, "user data of a subscription")?;
        let mut read = Self {
            topics,
            ..Self::default()
        };
        if version >= 1 {
            read.owned = partitions(&mut cursor, "owned partitions of a subscription")?;
        }
        if version >= 2 {
            read.generation = i32::from_be_bytes(cursor.array("generation of a subscription")?);
        }
        Ok(read)
    }
}

impl Assignment {
    /// The bytes.
    ///
    /// # Panics
    /// As [`Subscription::encode`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&ASSIGNMENT_VERSION.to_be_bytes());
        put_partitions(&mut out, &self.partitions);
        put_no_bytes(&mut out);
        out
    }

    /// Reads an assignment. No bytes at all are one without partitions: that is what a member gets whom the leader left
    /// out.
    ///
    /// # Errors
    /// As [`Subscription::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut cursor = Cursor::new(bytes);
        version(&mut cursor)?;
        let partitions = partitions(&mut cursor, "partitions of an assignment")?;
        pass_bytes(&mut cursor, "user data of an assignment")?;
        Ok(Self { partitions })
    }
}

fn version(cursor: &mut Cursor<'_>) -> Result<i16, DecodeError> {
    let what = "version of what a member of a group tells";
    let version = i16::from_be_bytes(cursor.array(what)?);
    match version {
        0.. => Ok(version),
        _ => Err(DecodeError::invalid(what, 0).with_detail(format_args!("found {version}"))),
    }
}

/// The number of elements of an array, each of which takes `element_length_min` bytes of what follows.
fn count(
    cursor: &mut Cursor<'_>,
    element_length_min: usize,
    what: &'static str,
) -> Result<usize, DecodeError> {
    let at = cursor.position();
    let claimed = i32::from_be_bytes(cursor.array(what)?);
    let fits = |count: &usize| *count <= cursor.remaining() / element_length_min;
    usize::try_from(claimed).ok().filter(fits).ok_or_else(|| {
        DecodeError::invalid(what, at).with_detail(format_args!(
            "{claimed} of them in {} bytes",
            cursor.remaining()
        ))
    })
}

fn string<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Result<&'a str, DecodeError> {
    let at = cursor.position();
    let length = i16::from_be_bytes(cursor.array(what)?);
    let length = usize::try_from(length)
        .map_err(|_| DecodeError::invalid(what, at).with_detail("a length below 0"))?;
    let bytes = cursor.slice(length, what)?;
    std::str::from_utf8(bytes).map_err(|fault| DecodeError::invalid(what, at).with_detail(fault))
}

/// Bytes that nobody looks at, or none.
fn pass_bytes(cursor: &mut Cursor<'_>, what: &'static str) -> Result<(), DecodeError> {
    let at = cursor.position();
    match i32::from_be_bytes(cursor.array(what)?) {
        -1 => Ok(()),
        length => {
            let length = usize::try_from(length)
                .map_err(|_| DecodeError::invalid(what, at).with_detail("a length below 0"))?;
            cursor.slice(length, what).map(|_| ())
        }
    }
}

fn partitions(cursor: &mut Cursor<'_>, what: &'static str) -> Result<Partitions, DecodeError> {
    let mut read = Partitions::new();
    // A name and a count take six bytes at least.
    for _ in 0..count(cursor, 6, what)? {
        let topic = string(cursor, what)?.to_owned();
        let count = count(cursor, 4, what)?;
        let indices = read.entry(topic).or_default();
        indices.reserve(count);
        for _ in 0..count {
            indices.push(PartitionIndex(i32::from_be_bytes(cursor.array(what)?)));
        }
    }
    for indices in read.values_mut() {
        indices.sort_unstable();
        indices.dedup();
    }
    Ok(read)
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = i32::try_from(count).expect("memory holds fewer elements than that");
    out.extend_from_slice(&count.to_be_bytes());
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    let length = i16::try_from(text.len()).expect("names of topics are short");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_no_bytes(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i32).to_be_bytes());
}

fn put_partitions(out: &mut Vec<u8>, partitions: &Partitions) {
    put_count(out, partitions.len());
    for (topic, indices) in partitions {
        put_string(out, topic);
        put_count(out, indices.len());
        for index in indices {
            out.extend_from_slice(&index.0.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned() -> Partitions {
        Partitions::from([("a".to_owned(), vec![PartitionIndex(0), PartitionIndex(2)])])
    }

    #[test]
    fn bytes_are_read_back_and_no_part_of_them_is_taken_for_the_whole() {
        let subscription = Subscription {
            topics: vec!["a".to_owned(), "bc".to_owned()],
            owned: owned(),
            generation: 7,
        };
        let bytes = subscription.encode();
        assert_eq!(Subscription::decode(&bytes), Ok(subscription));
        for length in 0..bytes.len() {
            assert!(Subscription::decode(&bytes[..length]).is_err(), "{length}");
        }
        let assignment = Assignment {
            partitions: owned(),
        };
        let bytes = assignment.encode();
        assert_eq!(Assignment::decode(&bytes), Ok(assignment));
        for length in 1..bytes.len() {
            assert!(Assignment::decode(&bytes[..length]).is_err(), "{length}");
        }
        assert_eq!(Assignment::decode(&[]), Ok(Assignment::default()));
    }

    #[test]
    fn counts_that_cannot_be_true_take_no_memory() {
        for claimed in [i32::MAX, 1_000, -1, i32::MIN] {
            let mut bytes = vec![0, 1];
            bytes.extend_from_slice(&claimed.to_be_bytes());
            bytes.extend_from_slice(&[0; 12]);
            assert!(Subscription::decode(&bytes).is_err(), "{claimed}");
            assert!(Assignment::decode(&bytes).is_err(), "{claimed}");
        }
    }

    #[test]
    fn partitions_that_are_named_twice_are_read_once() {
        let bytes = b"\0\x01\0\0\0\x02\0\x01a\0\0\0\x02\0\0\0\x02\0\0\0\0\0\x01a\0\0\0\x01\0\0\0\0\xff\xff\xff\xff";
        assert_eq!(Assignment::decode(bytes).unwrap().partitions, owned());
    }
}
