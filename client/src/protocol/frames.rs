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
use tackboard_schema::frame::{FrameError, PREFIX_LENGTH, Parsed, Prefix, parse};

/// Bytes that one read may take in; frames up to this size are read together.
pub const READ_BYTES: usize = 256 << 10;

/// A whole frame.
#[derive(Clone, Debug)]
pub struct InFrame {
    /// Lengths, correlation id, API.
    pub prefix: Prefix,
    bytes: Bytes,
    body_at: usize,
}

impl InFrame {
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
    frame_bytes_max: u32,
    buffer: Box<[u8]>,
    /// What is in `buffer` and not consumed yet: `start..end`.
    start: usize,
    end: usize,
    /// A frame too large for `buffer`, and how much of it is there.
    large: Option<(Vec<u8>, usize)>,
}

impl FrameReader {
    /// A reader that takes frames of at most `frame_bytes_max` bytes.
    pub fn new(frame_bytes_max: u32) -> Self {
        Self {
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
    pub fn next_frame(&mut self) -> Result<Option<InFrame>, FrameError> {
        if let Some((bytes, filled)) = &mut self.large {
            if *filled < bytes.len() {
                return Ok(None);
            }
            let bytes = Bytes::from(std::mem::take(bytes));
            self.large = None;
            return Ok(in_frame(bytes, self.frame_bytes_max)?.map(|(frame, _)| frame));
        }
        let unread = &self.buffer[self.start..self.end];
        match parse(unread, self.frame_bytes_max)? {
            Parsed::Frame(frame, length) => {
                let body_at = length - frame.body.len();
                let prefix = frame.prefix;
                let bytes = Bytes::copy_from_slice(&unread[..length]);
                self.start += length;
                Ok(Some(InFrame {
                    prefix,
                    bytes,
                    body_at,
                }))
            }
            Parsed::NeedMore(length) if length > self.buffer.len() => {
                // From the allocator's zeroed pages: memory is used only as far as bytes arrive.
                let mut large = vec![0; length];
                large[..unread.len()].copy_from_slice(unread);
                self.large = Some((large, unread.len()));
                (self.start, self.end) = (0, 0);
                Ok(None)
            }
            Parsed::NeedMore(_) => Ok(None),
        }
    }
}

fn in_frame(bytes: Bytes, frame_bytes_max: u32) -> Result<Option<(InFrame, usize)>, FrameError> {
    match parse(&bytes, frame_bytes_max)? {
        Parsed::Frame(frame, length) => {
            let (prefix, body_at) = (frame.prefix, length - frame.body.len());
            Ok(Some((
                InFrame {
                    prefix,
                    bytes,
                    body_at,
                },
                length,
            )))
        }
        Parsed::NeedMore(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::CorrelationId;
    use tackboard_schema::frame::{ApiKey, Kind, encode_head, padding};

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
            let mut reader = FrameReader::new(1 << 20);
            let (mut rest, mut found) = (&stream[..], 0);
            while !rest.is_empty() {
                let space = reader.space();
                assert!(!space.is_empty());
                let count = space.len().min(piece_length).min(rest.len());
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                reader.filled(count);
                while let Some(frame) = reader.next_frame().unwrap() {
                    assert_eq!(frame.prefix.correlation_id, CorrelationId(found as u64));
                    assert_eq!(frame.head(), b"a head");
                    let body = frame.body();
                    assert!(
                        body[..lengths[found]]
                            .iter()
                            .all(|byte| *byte == found as u8)
                    );
                    assert_eq!(body.len(), lengths[found].next_multiple_of(8));
                    found += 1;
                }
            }
            assert_eq!(found, lengths.len());
        }
    }

    #[test]
    fn a_frame_beyond_the_bound_takes_no_memory() {
        let mut reader = FrameReader::new(1 << 10);
        let bytes = frame(1, 2000);
        reader.space()[..24].copy_from_slice(&bytes[..24]);
        reader.filled(24);
        assert!(reader.next_frame().is_err());
    }
}
