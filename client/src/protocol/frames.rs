//! Frames off a stream of bytes, each as one shared buffer of its own.
//!
//! Owns: the bytes that were read and are not a whole frame yet.
//! Not here: the reading itself; a transport fills [`FrameReader::space`] and says how much it got.
//!
//! Invariants:
//! 1. A frame longer than the reader's bound is never read, nor is memory taken for it.
//! 2. Each frame is held by a buffer of exactly its size, so a consumer that keeps one keeps nothing else alive.
//!
//! Many small frames are read at once into one buffer and copied out; a frame that is larger than that buffer is read
//! straight into its own.

use bytes::Bytes;
use tackboard_schema::CorrelationId;
use tackboard_schema::frame::{FrameError, Kind, PREFIX_LENGTH, Parsed, Prefix, parse};
use tackboard_schema::kafka::{LENGTH_PREFIX_BYTES, response_correlation_id};

use crate::config::Protocol;

/// Bytes that one read may take in; frames up to this size are read together.
pub const READ_BYTES: usize = 256 << 10;

/// A whole frame.
#[derive(Clone, Debug)]
pub enum InFrame {
    /// Of our own protocol.
    Native(NativeFrame),
    /// Of Kafka's.
    Kafka(KafkaFrame),
}

impl InFrame {
    /// Which request it answers, unless it is one itself.
    pub(crate) fn answers(&self) -> Option<CorrelationId> {
        match self {
            Self::Native(frame) => {
                (frame.prefix.kind == Kind::Response).then_some(frame.prefix.correlation_id)
            }
            Self::Kafka(frame) => Some(frame.correlation_id),
        }
    }
}

/// A whole frame of Kafka's protocol.
#[derive(Clone, Debug)]
pub struct KafkaFrame {
    /// Which request it answers.
    pub(crate) correlation_id: CorrelationId,
    bytes: Bytes,
}

impl KafkaFrame {
    /// What stands behind the length.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// A whole frame of our own protocol.
#[derive(Clone, Debug)]
pub struct NativeFrame {
    /// Lengths, correlation id, API.
    pub prefix: Prefix,
    bytes: Bytes,
    body_at: usize,
}

/// Why bytes are no frames: the connection must end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FrameFault {
    /// Not a frame of our own protocol.
    #[error(transparent)]
    Native(#[from] FrameError),
    /// A length that no frame of Kafka's has.
    #[error("a frame of {length} bytes where 4 to {max} are taken")]
    Kafka {
        /// What the broker said.
        length: i32,
        /// The most that is taken.
        max: u32,
    },
    /// A frame of Kafka's that answers no request.
    #[error("an answer to request {0}")]
    CorrelationId(i32),
}

/// What stands at the start of some bytes.
enum Cut {
    /// A frame of so many bytes, and where in it is what.
    Whole(usize, Layout),
    /// The start of one: so many bytes are needed to say more.
    NeedMore(usize),
}

enum Layout {
    Native { prefix: Prefix, body_at: usize },
    Kafka { correlation_id: CorrelationId },
}

impl Layout {
    /// The frame that these bytes are.
    fn of(self, bytes: Bytes) -> InFrame {
        match self {
            Self::Native { prefix, body_at } => InFrame::Native(NativeFrame {
                prefix,
                bytes,
                body_at,
            }),
            Self::Kafka { correlation_id } => InFrame::Kafka(KafkaFrame {
                correlation_id,
                bytes: bytes.slice(LENGTH_PREFIX_BYTES..),
            }),
        }
    }
}

fn cut(protocol: Protocol, bytes: &[u8], frame_bytes_max: u32) -> Result<Cut, FrameFault> {
    match protocol {
        Protocol::Native => match parse(bytes, frame_bytes_max)? {
            Parsed::Frame(frame, length) => {
                let (prefix, body_at) = (frame.prefix, length - frame.body.len());
                Ok(Cut::Whole(length, Layout::Native { prefix, body_at }))
            }
            Parsed::NeedMore(length) => Ok(Cut::NeedMore(length)),
        },
        Protocol::Kafka => cut_kafka(bytes, frame_bytes_max),
    }
}

fn cut_kafka(bytes: &[u8], frame_bytes_max: u32) -> Result<Cut, FrameFault> {
    let Some((length, after)) = bytes.split_first_chunk::<LENGTH_PREFIX_BYTES>() else {
        return Ok(Cut::NeedMore(LENGTH_PREFIX_BYTES));
    };
    let length = i32::from_be_bytes(*length);
    let fits = u32::try_from(length).is_ok_and(|length| (4..=frame_bytes_max).contains(&length));
    if !fits {
        let max = frame_bytes_max;
        return Err(FrameFault::Kafka { length, max });
    }
    let (length, total) = (length as usize, LENGTH_PREFIX_BYTES + length as usize);
    let Some(frame) = after.get(..length) else {
        return Ok(Cut::NeedMore(total));
    };
    // A frame of four bytes or more has one.
    let id = response_correlation_id(frame).unwrap_or(-1);
    let known = u64::try_from(id).map_err(|_| FrameFault::CorrelationId(id))?;
    let correlation_id = CorrelationId(known);
    Ok(Cut::Whole(total, Layout::Kafka { correlation_id }))
}

impl NativeFrame {
    /// The FlatBuffer.
    pub fn head(&self) -> &[u8] {
        &self.bytes[PREFIX_LENGTH..PREFIX_LENGTH + self.prefix.head_length as usize]
    }

    /// The body with the zeros that follow it; shares the frame's buffer.
    pub fn body(&self) -> Bytes {
        self.bytes.slice(self.body_at..)
    }
}

/// Splits what was read into frames.
#[derive(Debug)]
pub struct FrameReader {
    protocol: Protocol,
    frame_bytes_max: u32,
    buffer: Box<[u8]>,
    /// What is in `buffer` and not consumed yet: `start..end`.
    start: usize,
    end: usize,
    /// A frame too large for `buffer`, and how much of it is there.
    large: Option<(Vec<u8>, usize)>,
}

impl FrameReader {
    /// A reader that takes frames of this protocol, of at most `frame_bytes_max` bytes.
    pub fn new(protocol: Protocol, frame_bytes_max: u32) -> Self {
        Self {
            protocol,
            frame_bytes_max,
            buffer: vec![0; READ_BYTES].into(),
            start: 0,
            end: 0,
            large: None,
        }
    }

    /// Where the next read goes; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.large {
            Some((bytes, filled)) => &mut bytes[*filled..],
            None => {
                if self.start > 0 {
                    self.buffer.copy_within(self.start..self.end, 0);
                    self.end -= self.start;
                    self.start = 0;
                }
                &mut self.buffer[self.end..]
            }
        }
    }

    /// `count` bytes were read into [`space`](Self::space).
    pub fn filled(&mut self, count: usize) {
        match &mut self.large {
            Some((bytes, filled)) => {
                assert!(
                    count <= bytes.len() - *filled,
                    "more was read than there was space for"
                );
                *filled += count;
            }
            None => {
                assert!(
                    count <= self.buffer.len() - self.end,
                    "more was read than there was space for"
                );
                self.end += count;
            }
        }
    }

    /// The next whole frame, if there is one. An error means that framing is lost: the connection must end.
    ///
    /// Call until it returns `None` before reading again: only then is there space.
    pub fn next_frame(&mut self) -> Result<Option<InFrame>, FrameFault> {
        if let Some((bytes, filled)) = &mut self.large {
            if *filled < bytes.len() {
                return Ok(None);
            }
            let bytes = Bytes::from(std::mem::take(bytes));
            self.large = None;
            return Ok(match cut(self.protocol, &bytes, self.frame_bytes_max)? {
                Cut::Whole(_, layout) => Some(layout.of(bytes)),
                Cut::NeedMore(_) => None,
            });
        }
        let unread = &self.buffer[self.start..self.end];
        match cut(self.protocol, unread, self.frame_bytes_max)? {
            Cut::Whole(length, layout) => {
                let bytes = Bytes::copy_from_slice(&unread[..length]);
                self.start += length;
                Ok(Some(layout.of(bytes)))
            }
            Cut::NeedMore(length) if length > self.buffer.len() => {
                // From the allocator's zeroed pages: memory is used only as far as bytes arrive.
                let mut large = vec![0; length];
                large[..unread.len()].copy_from_slice(unread);
                self.large = Some((large, unread.len()));
                (self.start, self.end) = (0, 0);
                Ok(None)
            }
            Cut::NeedMore(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::frame::{ApiKey, encode_head, padding};

    fn frame(id: u64, body_length: usize) -> Vec<u8> {
        let mut out = Vec::new();
        encode_head(
            &mut out,
            Kind::Response,
            ApiKey::Fetch,
            CorrelationId(id),
            b"a head",
            body_length,
        );
        out.resize(out.len() + body_length, id as u8);
        out.extend_from_slice(padding(body_length));
        out
    }

    fn kafka_frame(id: i32, length: usize) -> Vec<u8> {
        let mut out = (length as i32 + 4).to_be_bytes().to_vec();
        out.extend(id.to_be_bytes());
        out.resize(out.len() + length, id as u8);
        out
    }

    /// Bytes as they come off a socket, at most so many at once.
    fn read(
        reader: &mut FrameReader,
        stream: &[u8],
        piece_length: usize,
        mut take: impl FnMut(InFrame),
    ) {
        let mut rest = stream;
        while !rest.is_empty() {
            let space = reader.space();
            assert!(!space.is_empty());
            let count = space.len().min(piece_length).min(rest.len());
            space[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            reader.filled(count);
            while let Some(frame) = reader.next_frame().unwrap() {
                take(frame);
            }
        }
    }

    #[test]
    fn frames_of_any_size_in_pieces_of_any_size() {
        let lengths = [
            0,
            5,
            70_000,
            READ_BYTES - 100,
            READ_BYTES + 1,
            3,
            900_000,
            8,
            0,
            READ_BYTES,
        ];
        let stream: Vec<u8> = lengths
            .iter()
            .enumerate()
            .flat_map(|(id, length)| frame(id as u64, *length))
            .collect();
        for piece_length in [1000, 4096, 65_537, READ_BYTES, usize::MAX] {
            let mut reader = FrameReader::new(Protocol::Native, 1 << 20);
            let mut found = 0;
            read(&mut reader, &stream, piece_length, |frame| {
                let InFrame::Native(frame) = frame else {
                    panic!("a frame of Kafka's");
                };
                assert_eq!(frame.prefix.correlation_id, CorrelationId(found as u64));
                assert_eq!(frame.head(), b"a head");
                let body = frame.body();
                let mut bytes = body[..lengths[found]].iter();
                assert!(bytes.all(|byte| *byte == found as u8));
                assert_eq!(body.len(), lengths[found].next_multiple_of(8));
                found += 1;
            });
            assert_eq!(found, lengths.len());
        }
    }

    #[test]
    fn a_frame_beyond_the_bound_takes_no_memory() {
        let mut reader = FrameReader::new(Protocol::Native, 1 << 10);
        let bytes = frame(1, 2000);
        reader.space()[..24].copy_from_slice(&bytes[..24]);
        reader.filled(24);
        assert!(reader.next_frame().is_err());
    }
    #[test]
    fn frames_of_kafka_of_any_size_in_pieces_of_any_size() {
        let lengths = [0, 5, READ_BYTES - 8, READ_BYTES + 1, 3, 900_000, READ_BYTES];
        let ids = 0..lengths.len();
        let frames = ids.flat_map(|id| kafka_frame(id as i32, lengths[id]));
        let stream: Vec<u8> = frames.collect();
        for piece_length in [1000, 65_537, usize::MAX] {
            let mut reader = FrameReader::new(Protocol::Kafka, 1 << 20);
            let mut found = 0;
            read(&mut reader, &stream, piece_length, |frame| {
                assert_eq!(frame.answers(), Some(CorrelationId(found as u64)));
                let InFrame::Kafka(frame) = frame else {
                    panic!("a frame of ours");
                };
                assert_eq!(frame.bytes, kafka_frame(found as i32, lengths[found])[4..]);
                found += 1;
            });
            assert_eq!(found, lengths.len());
        }
    }

    #[test]
    fn lengths_and_ids_that_no_broker_of_kafka_sends_end_the_connection() {
        let max: i32 = 1 << 10;
        let begin = |length: i32, id: i32| [length.to_be_bytes(), id.to_be_bytes()].concat();
        for bytes in [
            begin(3, 0),
            begin(0, 0),
            begin(-1, 0),
            begin(i32::MIN, 0),
            begin(max + 1, 0),
            begin(i32::MAX, 0),
            begin(4, -1),
        ] {
            let mut reader = FrameReader::new(Protocol::Kafka, max as u32);
            reader.space()[..8].copy_from_slice(&bytes);
            reader.filled(8);
            assert!(reader.next_frame().is_err(), "{bytes:?}");
        }
    }
}
