//! Record batches inside a message, which are never copied on the way out of a log.

use bytes::Bytes;

/// Record batches: bytes, or the place for them.
#[derive(Clone, PartialEq, Eq)]
pub enum Records {
    /// The bytes. As they were read they are a slice of the frame; written, they are copied into it.
    Here(Bytes),
    /// So many bytes that whoever sends the frame has elsewhere. Only their length is written, and a [`Gap`] says
    /// where they belong.
    Elsewhere(u32),
}

impl Records {
    /// How many bytes.
    pub fn length(&self) -> usize {
        match self {
            Records::Here(bytes) => bytes.len(),
            Records::Elsewhere(length) => *length as usize,
        }
    }

    /// The bytes, unless they are elsewhere.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Records::Here(bytes) => Some(bytes),
            Records::Elsewhere(_) => None,
        }
    }
}

/// No bytes, which is what stands in an answer without records.
impl Default for Records {
    fn default() -> Self {
        Records::Here(Bytes::new())
    }
}

/// As their bytes.
impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Records::Here(bytes) => bytes.fmt(f),
            Records::Elsewhere(length) => write!(f, "Elsewhere({length})"),
        }
    }
}

/// A place in an encoded frame where bytes are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The byte before which they belong, counted from the first of the frame's length prefix.
    pub at_byte: usize,
    /// How many.
    pub length: u32,
}

/// A piece of a frame with gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes of the frame.
    Frame(&'a [u8]),
    /// The bytes of the gap with this index. Gaps are in the order of the message; records of no bytes have none.
    Records(usize),
}

/// The parts of a frame in the order in which they are sent. `frame` are the bytes that were written for it.
pub fn parts<'a>(frame: &'a [u8], gaps: &'a [Gap]) -> impl Iterator<Item = Part<'a>> {
    let begins = std::iter::once(0).chain(gaps.iter().map(|gap| gap.at_byte));
    let ends = gaps.iter().map(|gap| gap.at_byte).chain([frame.len()]);
    begins
        .zip(ends)
        .enumerate()
        .flat_map(|(index, (begin, end))| {
            let records = (index > 0).then(|| Part::Records(index - 1));
            let bytes = (begin < end).then(|| Part::Frame(&frame[begin..end]));
            records.into_iter().chain(bytes)
        })
}
