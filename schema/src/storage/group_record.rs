//! Records of the internal topic `__consumer_offsets`: what groups have committed, and who is in them.
//!
//! Kafka's own layouts, so that its tools read the topic: keys of version 1 (an offset) and 2 (a group), values of
//! version 3. Big-endian. A record without a value takes back what an earlier one of the same key said. Source:
//! the message schemas `OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey` and `GroupMetadataValue` of Kafka.

use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::{LeaderEpoch, Offset, TimestampMs};

const OFFSET_KEY_VERSION: i16 = 1;
const GROUP_KEY_VERSION: i16 = 2;
/// Kafka's earlier layout of the same key.
const OFFSET_KEY_VERSION_OLD: i16 = 0;
const VALUE_VERSION: i16 = 3;
/// The shortest member, in bytes: four lengths, two time-outs and two more lengths.
const MEMBER_LENGTH_MIN: usize = 2 + 2 + 2 + 2 + 4 + 4 + 4 + 4;

/// What a record is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupKey {
    /// The offset that a group committed for a partition.
    Offset {
        /// The group.
        group: String,
        /// Name of the topic.
        topic: String,
        /// Its partition.
        partition: i32,
    },
    /// A group's members.
    Group {
        /// The group.
        group: String,
    },
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: Offset,
    /// Leader epoch of the record before it, as the consumer knew it; -1: it named none.
    pub leader_epoch: LeaderEpoch,
    /// Whatever the consumer wants to be told again.
    pub metadata: String,
    /// The broker's wall clock at the commit.
    pub committed_at: TimestampMs,
}

/// A group as of one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMetadata {
    /// `consumer` for consumers; empty for a group that never had members.
    pub protocol_type: String,
    /// Rises with each rebalance.
    pub generation: i32,
    /// The assignor that the members agreed on.
    pub protocol: Option<String>,
    /// The member that assigned.
    pub leader: Option<String>,
    /// When the group took on its state, by the broker's wall clock; -1: not known.
    pub state_since: i64,
    /// All of them.
    pub members: Vec<GroupMember>,
}

/// A member with what it was assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMember {
    /// Given by the coordinator.
    pub member_id: String,
    /// Name of a static member.
    pub group_instance_id: Option<String>,
    /// As the client calls itself.
    pub client_id: String,
    /// The address that it came from.
    pub client_host: String,
    /// How long a rebalance waits for it, in milliseconds.
    pub rebalance_timeout_ms: i32,
    /// After so long without a heartbeat it is out, in milliseconds.
    pub session_timeout_ms: i32,
    /// What it told the chosen protocol.
    pub subscription: Vec<u8>,
    /// What it was assigned.
    pub assignment: Vec<u8>,
}

impl GroupKey {
    /// The key's bytes.
    ///
    /// # Panics
    /// If a name is longer than 32,767 bytes: none that reaches a broker is.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Offset {
                group,
                topic,
                partition,
            } => {
                put_i16(&mut out, OFFSET_KEY_VERSION);
                put_string(&mut out, group);
                put_string(&mut out, topic);
                put_i32(&mut out, *partition);
            }
            Self::Group { group } => {
                put_i16(&mut out, GROUP_KEY_VERSION);
                put_string(&mut out, group);
            }
        }
        out
    }

    /// Reads a key; `None`: of a version that says something else, to be passed over.
    ///
    /// # Errors
    /// Bytes that end too soon or go on, or names that are no UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut reader = Reader { bytes, at: 0 };
        let key = match reader.i16("key version")? {
            OFFSET_KEY_VERSION_OLD | OFFSET_KEY_VERSION => Self::Offset {
                group: reader.string("group")?,
                topic: reader.string("topic")?,
                partition: reader.i32("partition")?,
            },
            GROUP_KEY_VERSION => Self::Group {
                group: reader.string("group")?,
            },
            _ => return Ok(None),
        };
        reader.end("key")?;
        Ok(Some(key))
    }
}

impl CommittedOffset {
    /// The value's bytes.
    ///
    /// # Panics
    /// If the metadata is longer than 32,767 bytes; commits allow less.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_i16(&mut out, VALUE_VERSION);
        put_i64(&mut out, self.offset.0);
        put_i32(&mut out, self.leader_epoch.0);
        put_string(&mut out, &self.metadata);
        put_i64(&mut out, self.committed_at.0);
        out
    }

    /// Reads a value.
    ///
    /// # Errors
    /// A version that is not 3, bytes that end too soon or go on, or metadata that is no UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader { bytes, at: 0 };
        reader.version()?;
        let value = Self {
            offset: Offset(reader.i64("offset")?),
            leader_epoch: LeaderEpoch(reader.i32("leader epoch")?),
            metadata: reader.string("metadata")?,
            committed_at: TimestampMs(reader.i64("commit timestamp")?),
        };
        reader.end("committed offset")?;
        Ok(value)
    }
}

impl GroupMetadata {
    /// The value's bytes.
    ///
    /// # Panics
    /// If a name is longer than 32,767 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_i16(&mut out, VALUE_VERSION);
        put_string(&mut out, &self.protocol_type);
        put_i32(&mut out, self.generation);
        put_nullable(&mut out, self.protocol.as_deref());
        put_nullable(&mut out, self.leader.as_deref());
        put_i64(&mut out, self.state_since);
        put_i32(&mut out, self.members.len() as i32);
        for member in &self.members {
            put_string(&mut out, &member.member_id);
            put_nullable(&mut out, member.group_instance_id.as_deref());
            put_string(&mut out, &member.client_id);
            put_string(&mut out, &member.client_host);
            put_i32(&mut out, member.rebalance_timeout_ms);
            put_i32(&mut out, member.session_timeout_ms);
            put_bytes(&mut out, &member.subscription);
            put_bytes(&mut out, &member.assignment);
        }
        out
    }

    /// Reads a value.
    ///
    /// # Errors
    /// A version that is not 3, bytes that end too soon or go on, more members than there are bytes for, or names that
    /// are no UTF-8.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader { bytes, at: 0 };
        reader.version()?;
        let mut group = Self {
            protocol_type: reader.string("protocol type")?,
            generation: reader.i32("generation")?,
            protocol: reader.nullable("protocol")?,
            leader: reader.nullable("leader")?,
            state_since: reader.i64("state timestamp")?,
            members: Vec::new(),
        };
        let count = reader.count("members", MEMBER_LENGTH_MIN)?;
        group.members.reserve(count);
        for _ in 0..count {
            group.members.push(GroupMember {
                member_id: reader.string("member id")?,
                group_instance_id: reader.nullable("group instance id")?,
                client_id: reader.string("client id")?,
                client_host: reader.string("client host")?,
                rebalance_timeout_ms: reader.i32("rebalance timeout")?,
                session_timeout_ms: reader.i32("session timeout")?,
                subscription: reader.byte_string("subscription")?,
                assignment: reader.byte_string("assignment")?,
            });
        }
        reader.end("group metadata")?;
        Ok(group)
    }
}

fn put_i16(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put_i16(out, i16::try_from(text.len()).expect("a name fits"));
    out.extend_from_slice(text.as_bytes());
}

fn put_nullable(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => put_string(out, text),
        None => put_i16(out, -1),
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_i32(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}

/// Big-endian fields off the front of a slice.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn slice(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.at..];
        let slice = rest.get(..length).ok_or_else(|| {
            DecodeError::new(DecodeErrorKind::Truncated, what, self.at)
                .with_detail(format_args!("{length} bytes wanted, {} left", rest.len()))
        })?;
        self.at += length;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(N, what)?);
        Ok(array)
    }

    fn i16(&mut self, what: &'static str) -> Result<i16, DecodeError> {
        self.array(what).map(i16::from_be_bytes)
    }

    fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.array(what).map(i32::from_be_bytes)
    }

    fn i64(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.array(what).map(i64::from_be_bytes)
    }

    fn invalid(&self, what: &'static str) -> DecodeError {
        DecodeError::new(DecodeErrorKind::Invalid, what, self.at)
    }

    fn version(&mut self) -> Result<(), DecodeError> {
        let version = self.i16("value version")?;
        if version == VALUE_VERSION {
            Ok(())
        } else {
            let wrong = DecodeError::new(DecodeErrorKind::Invalid, "value version", 0);
            Err(wrong.with_detail(format_args!("{version}, not {VALUE_VERSION}")))
        }
    }

    fn nullable(&mut self, what: &'static str) -> Result<Option<String>, DecodeError> {
        let length = self.i16(what)?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| self.invalid(what))?;
        let bytes = self.slice(length, what)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.invalid(what))?;
        Ok(Some(text.to_owned()))
    }

    fn string(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let text = self.nullable(what)?;
        text.ok_or_else(|| self.invalid(what))
    }

    fn byte_string(&mut self, what: &'static str) -> Result<Vec<u8>, DecodeError> {
        let length = self.i32(what)?;
        let length = usize::try_from(length).map_err(|_| self.invalid(what))?;
        self.slice(length, what).map(<[u8]>::to_vec)
    }

    /// How many elements follow, each of at least `length_min` bytes.
    fn count(&mut self, what: &'static str, length_min: usize) -> Result<usize, DecodeError> {
        let count = self.i32(what)?;
        let count = usize::try_from(count).map_err(|_| self.invalid(what))?;
        if count > (self.bytes.len() - self.at) / length_min {
            let more = DecodeError::new(DecodeErrorKind::Truncated, what, self.at);
            return Err(more.with_detail(format_args!("{count} elements announced")));
        }
        Ok(count)
    }

    fn end(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.invalid(what).with_detail("bytes after its end"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> GroupMetadata {
        GroupMetadata {
            protocol_type: "consumer".to_owned(),
            generation: 3,
            protocol: Some("range".to_owned()),
            leader: None,
            state_since: 7,
            members: vec![GroupMember {
                member_id: "m".to_owned(),
                group_instance_id: Some("i".to_owned()),
                client_id: "c".to_owned(),
                client_host: "/127.0.0.1".to_owned(),
                rebalance_timeout_ms: 300_000,
                session_timeout_ms: 45_000,
                subscription: vec![0, 1],
                assignment: vec![],
            }],
        }
    }

    #[test]
    fn an_offset_has_kafkas_bytes() {
        let key = GroupKey::Offset {
            group: "g".to_owned(),
            topic: "tt".to_owned(),
            partition: 5,
        };
        assert_eq!(key.encode(), b"\0\x01\0\x01g\0\x02tt\0\0\0\x05");
        let value = CommittedOffset {
            offset: Offset(258),
            leader_epoch: LeaderEpoch(-1),
            metadata: "x".to_owned(),
            committed_at: TimestampMs(1),
        };
        let bytes = b"\0\x03\0\0\0\0\0\0\x01\x02\xff\xff\xff\xff\0\x01x\0\0\0\0\0\0\0\x01";
        assert_eq!(value.encode(), bytes);
        assert_eq!(GroupKey::decode(&key.encode()), Ok(Some(key)));
        assert_eq!(CommittedOffset::decode(bytes), Ok(value));
    }

    #[test]
    fn a_group_reads_as_it_was_written_and_no_part_of_it_does() {
        let key = GroupKey::Group {
            group: "g".to_owned(),
        };
        assert_eq!(GroupKey::decode(&key.encode()), Ok(Some(key)));
        let bytes = group().encode();
        assert_eq!(GroupMetadata::decode(&bytes), Ok(group()));
        for length in 0..bytes.len() {
            assert!(GroupMetadata::decode(&bytes[..length]).is_err(), "{length}");
        }
        let longer = [bytes, vec![0]].concat();
        assert!(GroupMetadata::decode(&longer).is_err());
    }

    #[test]
    fn keys_of_later_versions_are_passed_over_and_huge_counts_refused() {
        assert_eq!(GroupKey::decode(b"\0\x03\0\0"), Ok(None));
        let mut bytes = GroupMetadata::default().encode();
        let count_at = bytes.len() - 4;
        bytes[count_at..].copy_from_slice(&i32::MAX.to_be_bytes());
        let error = GroupMetadata::decode(&bytes).unwrap_err();
        assert_eq!(error.what, "members");
    }
}
