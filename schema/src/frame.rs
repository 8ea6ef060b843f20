//! The frame of the native protocol: a 24-byte prefix, a FlatBuffer head, a body of raw bytes.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | u32 | total length of the frame, a multiple of 8 |
//! | 4 | u32 | length of the head, without its padding |
//! | 8 | u64 | correlation id |
//! | 16 | u8 | version |
//! | 17 | u8 | kind: 0 request, 1 response |
//! | 18 | u16 | API key |
//! | 20 | u32 | CRC-32C of bytes 0..20 and the head |
//!
//! All integers are little-endian. The head begins at byte 24 and is padded with zeros to a multiple of 8;
//! the body follows and is padded in the same way, so that head and body are aligned to 8 wherever the frame
//! is. The head states the body's exact length; a record batch in it carries its own checksum.
//!
//! Not here: what the heads say ([`crate::native`]), and reading from sockets.

use crate::{CorrelationId, cursor::Cursor};

/// Length of the prefix; the head begins here.
pub const PREFIX_LENGTH: usize = 24;

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u8 = 1;

/// Everything in a frame begins at a multiple of this many bytes.
pub const ALIGNMENT: usize = 8;

const CRC_AT: usize = 20;
const ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// From client to broker.
    Request = 0,
    /// From broker to client.
    Response = 1,
}

/// Which table a frame's head is, together with [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum ApiKey {
    /// Response only: the request could not be read as its own API.
    Error = 0,
    /// Versions and limits.
    Hello = 1,
    /// Brokers, topics, partitions and the cores that own them.
    Metadata = 2,
    /// Creates a topic.
    CreateTopic = 3,
    /// Deletes a topic.
    DeleteTopic = 4,
    /// Settings and positions of one topic.
    DescribeTopic = 5,
    /// A producer id for an idempotent producer.
    InitProducer = 6,
    /// Appends record batches.
    Produce = 7,
    /// Reads record batches.
    Fetch = 8,
    /// Offsets by position or by timestamp.
    ListOffsets = 9,
    /// The core that coordinates a group.
    FindCoordinator = 10,
    /// Becomes, or stays, a member of a group.
    JoinGroup = 11,
    /// The leader's assignment, or a member's part of it.
    SyncGroup = 12,
    /// A member lives.
    Heartbeat = 13,
    /// Members leave a group.
    LeaveGroup = 14,
    /// Stores how far a group has come.
    OffsetCommit = 15,
    /// How far a group has come.
    OffsetFetch = 16,
    /// All groups.
    ListGroups = 17,
    /// Members of groups and their parts.
    DescribeGroups = 18,
    /// Forgets groups that have no members.
    DeleteGroups = 19,
    /// Forgets what a group committed for some partitions.
    DeleteOffsets = 20,
    /// Gives a topic more partitions.
    CreatePartitions = 21,
    /// Changes settings of a topic.
    AlterTopic = 22,
}

impl ApiKey {
    /// Every API, in the order of its key.
    pub const ALL: [ApiKey; 23] = [
        ApiKey::Error,
        ApiKey::Hello,
        ApiKey::Metadata,
        ApiKey::CreateTopic,
        ApiKey::DeleteTopic,
        ApiKey::DescribeTopic,
        ApiKey::InitProducer,
        ApiKey::Produce,
        ApiKey::Fetch,
        ApiKey::ListOffsets,
        ApiKey::FindCoordinator,
        ApiKey::JoinGroup,
        ApiKey::SyncGroup,
        ApiKey::Heartbeat,
        ApiKey::LeaveGroup,
        ApiKey::OffsetCommit,
        ApiKey::OffsetFetch,
        ApiKey::ListGroups,
        ApiKey::DescribeGroups,
        ApiKey::DeleteGroups,
        ApiKey::DeleteOffsets,
        ApiKey::CreatePartitions,
        ApiKey::AlterTopic,
    ];

    /// The API with this key, if there is one.
    pub fn from_key(key: u16) -> Option<Self> {
        Self::ALL.get(usize::from(key)).copied()
    }

    /// Its number on the wire.
    pub fn key(self) -> u16 {
        self as u16
    }
}

/// The first 24 bytes of a frame, checked as far as they can be without the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Length of the whole frame in bytes.
    pub total_length: u32,
    /// Length of the head in bytes, without its padding.
    pub head_length: u32,
    /// Ties the response to its request.
    pub correlation_id: CorrelationId,
    /// Version of the protocol; a reader answers one it does not serve, it does not hang up.
    pub version: u8,
    /// Request or response.
    pub kind: Kind,
    /// The API; may be one that this crate does not know.
    pub api_key: u16,
    /// CRC-32C of bytes 0..20 and the head.
    pub crc: u32,
}

impl Prefix {
    /// Reads the prefix at the start of `bytes`, if all of it is there, and checks that its lengths can be
    /// true. An error means that framing is lost.
    pub fn read(bytes: &[u8], frame_bytes_max: u32) -> Result<Option<Self>, FrameError> {
        let Some(bytes) = bytes.get(..PREFIX_LENGTH) else {
            return Ok(None);
        };
        let prefix = Self::decode(bytes).ok_or(FrameError::Kind { kind: bytes[17] })?;
        prefix.check_lengths(frame_bytes_max)?;
        Ok(Some(prefix))
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        Some(Self {
            total_length: cursor.u32_le("total length").ok()?,
            head_length: cursor.u32_le("head length").ok()?,
            correlation_id: CorrelationId(cursor.u64_le("correlation id").ok()?),
            version: cursor.u8("version").ok()?,
            kind: match cursor.u8("kind").ok()? {
                0 => Kind::Request,
                1 => Kind::Response,
                _ => return None,
            },
            api_key: cursor.u16_le("API key").ok()?,
            crc: cursor.u32_le("crc").ok()?,
        })
    }

    fn check_lengths(&self, frame_bytes_max: u32) -> Result<(), FrameError> {
        let (total, head) = (self.total_length, self.head_length);
        if total > frame_bytes_max {
            return Err(FrameError::TooLong {
                total_length: total,
                frame_bytes_max,
            });
        }
        let shortest = PREFIX_LENGTH as u64 + (u64::from(head)).next_multiple_of(ALIGNMENT as u64);
        if u64::from(total) < shortest || !total.is_multiple_of(ALIGNMENT as u32) {
            return Err(FrameError::Lengths {
                total_length: total,
                head_length: head,
            });
        }
        Ok(())
    }

    /// Where the body begins, counted from the start of the frame.
    pub fn body_at(&self) -> usize {
        PREFIX_LENGTH + (self.head_length as usize).next_multiple_of(ALIGNMENT)
    }
}

/// One whole frame, borrowed from the bytes it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its prefix.
    pub prefix: Prefix,
    /// The FlatBuffer, covered by the checksum, not yet verified as a FlatBuffer.
    pub head: &'a [u8],
    /// The body with up to 7 bytes of padding after it; the head states its exact length.
    pub body: &'a [u8],
}

/// What [`parse`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A frame, and how many bytes it took.
    Frame(Frame<'a>, usize),
    /// Nothing yet: so many bytes are needed, counted from the start of the slice.
    NeedMore(usize),
}

/// Framing is lost: there is no way to tell where the next frame begins, so the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than the receiver takes.
    #[error("frame of {total_length} bytes is longer than the {frame_bytes_max} allowed")]
    TooLong {
        /// As the prefix has it.
        total_length: u32,
        /// The receiver's bound.
        frame_bytes_max: u32,
    },
    /// Not a multiple of 8, or too short for prefix and head.
    #[error(
        "frame of {total_length} bytes with a head of {head_length}: the total is a multiple of 8 and holds \
         the prefix and the padded head"
    )]
    Lengths {
        /// As the prefix has it.
        total_length: u32,
        /// As the prefix has it.
        head_length: u32,
    },
    /// Neither request nor response.
    #[error("frame of kind {kind}: 0 is a request, 1 a response")]
    Kind {
        /// As the prefix has it.
        kind: u8,
    },
    /// Prefix or head were changed on the way.
    #[error("checksum of the frame's prefix and head is {found:#010x}, computed {computed:#010x}")]
    Crc {
        /// As the prefix has it.
        found: u32,
        /// Over the bytes as they arrived.
        computed: u32,
    },
}

/// The next whole frame at the start of `bytes`, or how many bytes it needs.
///
/// `frame_bytes_max` bounds the total length before anything is read or kept for it.
pub fn parse(bytes: &[u8], frame_bytes_max: u32) -> Result<Parsed<'_>, FrameError> {
    let Some(prefix) = Prefix::read(bytes, frame_bytes_max)? else {
        return Ok(Parsed::NeedMore(PREFIX_LENGTH));
    };
    let total_length = prefix.total_length as usize;
    let Some(frame) = bytes.get(..total_length) else {
        return Ok(Parsed::NeedMore(total_length));
    };
    // `check_lengths` holds prefix and padded head within the total, so neither slice can be out of range.
    let head = &frame[PREFIX_LENGTH..PREFIX_LENGTH + prefix.head_length as usize];
    let computed = checksum(&frame[..CRC_AT], head);
    if computed != prefix.crc {
        return Err(FrameError::Crc {
            found: prefix.crc,
            computed,
        });
    }
    let body = &frame[prefix.body_at()..];
    Ok(Parsed::Frame(Frame { prefix, head, body }, total_length))
}

/// Appends prefix, head and the head's padding to `out`.
///
/// The body of exactly `body_length` bytes and then [`padding`]`(body_length)` are sent after it, from
/// wherever they lie.
///
/// # Panics
///
/// If the frame would be longer than a `u32` can say; senders keep to the receiver's bound, far below.
pub fn encode_head(
    out: &mut Vec<u8>,
    kind: Kind,
    api_key: ApiKey,
    correlation_id: CorrelationId,
    head: &[u8],
    body_length: usize,
) {
    let total_length = frame_length(head.len(), body_length);
    let total_length = u32::try_from(total_length).expect("a frame is shorter than 4 GiB");
    let start = out.len();
    out.reserve(PREFIX_LENGTH + head.len() + ALIGNMENT);
    out.extend_from_slice(&total_length.to_le_bytes());
    out.extend_from_slice(&(head.len() as u32).to_le_bytes());
    out.extend_from_slice(&correlation_id.0.to_le_bytes());
    out.extend_from_slice(&[PROTOCOL_VERSION, kind as u8]);
    out.extend_from_slice(&api_key.key().to_le_bytes());
    let crc = checksum(&out[start..], head);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(head);
    out.extend_from_slice(padding(head.len()));
}

/// Length of a whole frame with this head and body, all padding included.
pub fn frame_length(head_length: usize, body_length: usize) -> usize {
    PREFIX_LENGTH
        + head_length.next_multiple_of(ALIGNMENT)
        + body_length.next_multiple_of(ALIGNMENT)
}

/// The zeros that bring `length` bytes to a multiple of 8.
pub fn padding(length: usize) -> &'static [u8] {
    &ZEROS[..length.next_multiple_of(ALIGNMENT) - length]
}

fn checksum(prefix: &[u8], head: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(prefix), head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME_BYTES_MAX: u32 = 1 << 20;

    fn frame(head: &[u8], body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_head(
            &mut out,
            Kind::Request,
            ApiKey::Produce,
            CorrelationId(7),
            head,
            body.len(),
        );
        out.extend_from_slice(body);
        out.extend_from_slice(padding(body.len()));
        out
    }

    #[test]
    fn reads_what_it_writes_at_every_length() {
        for head_length in 0..20 {
            for body_length in 0..20 {
                let (head, body) = (vec![3; head_length], vec![5; body_length]);
                let mut bytes = frame(&head, &body);
                assert_eq!(bytes.len(), frame_length(head_length, body_length));
                bytes.extend_from_slice(b"the next frame");
                let Parsed::Frame(found, consumed) = parse(&bytes, FRAME_BYTES_MAX).unwrap() else {
                    panic!("a whole frame is there");
                };
                assert_eq!(consumed, bytes.len() - 14);
                assert_eq!(found.head, head);
                assert_eq!(found.body.len(), body_length.next_multiple_of(8));
                assert_eq!(&found.body[..body_length], body);
                assert_eq!(found.prefix.correlation_id, CorrelationId(7));
                assert_eq!(
                    (found.prefix.kind, found.prefix.api_key),
                    (Kind::Request, ApiKey::Produce.key())
                );
            }
        }
    }

    #[test]
    fn every_cut_asks_for_more() {
        let bytes = frame(b"twelve bytes", b"body");
        for cut in 0..bytes.len() {
            let wanted = if cut < PREFIX_LENGTH {
                PREFIX_LENGTH
            } else {
                bytes.len()
            };
            assert_eq!(
                parse(&bytes[..cut], FRAME_BYTES_MAX),
                Ok(Parsed::NeedMore(wanted)),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn every_flipped_bit_of_prefix_and_head_loses_framing() {
        let bytes = frame(b"sixteen bytes ok", b"body");
        for bit in 0..(PREFIX_LENGTH + 16) * 8 {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            match parse(&broken, FRAME_BYTES_MAX) {
                Err(_) => {}
                // A longer total asks for the rest first; the checksum tells then.
                Ok(Parsed::NeedMore(length)) => assert!(bit < 32 && length > bytes.len()),
                Ok(Parsed::Frame(..)) => panic!("bit {bit} went unnoticed"),
            }
        }
    }

    #[test]
    fn lengths_that_cannot_be_true_are_refused_from_the_prefix_alone() {
        let mut prefix = frame(&[0; 16], &[])[..PREFIX_LENGTH].to_vec();
        for (total, head) in [
            (0, 0),
            (16, 0),
            (24, 1),
            (32, 9),
            (41, 16),
            (40, u32::MAX),
            (24, u32::MAX - 6),
        ] {
            prefix[0..4].copy_from_slice(&u32::to_le_bytes(total));
            prefix[4..8].copy_from_slice(&u32::to_le_bytes(head));
            let error = parse(&prefix, FRAME_BYTES_MAX).unwrap_err();
            assert_eq!(
                error,
                FrameError::Lengths {
                    total_length: total,
                    head_length: head
                }
            );
        }
        prefix[0..4].copy_from_slice(&(FRAME_BYTES_MAX + 8).to_le_bytes());
        assert!(matches!(
            parse(&prefix, FRAME_BYTES_MAX),
            Err(FrameError::TooLong { .. })
        ));
    }

    #[test]
    fn api_keys_are_found_by_number() {
        for api in ApiKey::ALL {
            assert_eq!(ApiKey::from_key(api.key()), Some(api));
        }
        assert_eq!(ApiKey::from_key(23), None);
    }
}
