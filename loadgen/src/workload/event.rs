//! The bytes of a numbered event, and the check that they came back unchanged.
//!
//! Every event carries a stamp of 32 bytes that names it exactly: which run, which producer, its place in that producer's
//! sequence to one partition, when it was due, and what it is about. A synthetic event is a stamp followed by padding
//! whose every byte follows from the stamp; a replayed event keeps its own bytes untouched and carries the stamp in a
//! record header. So verification is a comparison of all bytes, not of a checksum, and needs no list of what was sent.
//!
//! Layout of a stamp, little-endian:
//!
//! | at | what |
//! | --- | --- |
//! | 0 | u32 run, drawn at random for each stage |
//! | 4 | u32 length of the whole value |
//! | 8 | u64 producer (upper 16 bits), sequence to this partition (lower 48) |
//! | 16 | u64 time at which the event was due, ns of the machine's monotonic clock |
//! | 24 | u32 subject: key number plus one or zero without a key; for a replayed event its line number |
//! | 28 | u32 seal over bytes 0 to 28 |

use std::sync::LazyLock;

/// Length of a stamp, and so of the smallest synthetic event.
pub const STAMP_BYTES: usize = 32;

/// Smallest value of a synthetic event.
pub const VALUE_BYTES_MIN: u32 = STAMP_BYTES as u32;

/// Largest value of a synthetic event: it must fit a record batch of the broker's default limit with room to spare.
pub const VALUE_BYTES_MAX: u32 = 1_000_000;

/// Most producers of a run: their number has 16 bits in a stamp.
pub const PRODUCER_COUNT_MAX: u32 = 1 << 16;

/// The record header that carries the stamp of a replayed event.
pub const STAMP_HEADER: &str = "lg";

/// Padding starts at one of this many places of the pattern: few enough to stay in the nearest cache.
const PADDING_STARTS: u64 = 4096;

/// The same random bytes in every process, so that a reader needs nothing but the event.
static PATTERN: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let mut rng = super::rng::Rng::new(0x7461_636b_626f_6172, 0);
    let length = PADDING_STARTS as usize + VALUE_BYTES_MAX as usize;
    (0..length.div_ceil(8))
        .flat_map(|_| rng.next_u64().to_le_bytes())
        .collect()
});

/// What an event says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The run it belongs to.
    pub run: u32,
    /// Length of its value in bytes.
    pub length: u32,
    /// Number of the producer that sent it.
    pub producer: u16,
    /// Its place in what that producer sent to this partition, from zero without gaps.
    pub sequence: u64,
    /// When it was due, ns of the machine's monotonic clock.
    pub due_ns: u64,
    /// Key number plus one (zero: no key), or the line number of a replayed event.
    pub subject: u32,
}

/// How an event differs from what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// There is no stamp, or it is cut off.
    NoStamp,
    /// The stamp contradicts its own checksum.
    Stamp,
    /// The value is this long instead of what the stamp says.
    Length(usize),
    /// The value differs from what was sent at this byte.
    Value(usize),
    /// The key is not the one that was sent.
    Key,
    /// The key belongs to another partition.
    Partition,
    /// The stamp names a producer, line or key that never was.
    Subject,
}

impl std::fmt::Display for Corruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoStamp => write!(f, "carries no stamp"),
            Self::Stamp => write!(f, "has a damaged stamp"),
            Self::Length(bytes) => write!(f, "is {bytes} bytes long, which is not what was sent"),
            Self::Value(at) => write!(f, "differs from what was sent at byte {at}"),
            Self::Key => write!(f, "has another key than was sent"),
            Self::Partition => write!(f, "has a key that belongs to another partition"),
            Self::Subject => write!(f, "names a producer, line or key that never was"),
        }
    }
}

impl Stamp {
    /// The stamp's bytes.
    pub fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[0..4].copy_from_slice(&self.run.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        let place = u64::from(self.producer) << 48 | self.sequence & 0xffff_ffff_ffff;
        bytes[8..16].copy_from_slice(&place.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.due_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.subject.to_le_bytes());
        let seal = seal(&bytes);
        bytes[28..].copy_from_slice(&seal.to_le_bytes());
        bytes
    }

    /// Reads the stamp at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corruption> {
        let Some(bytes) = bytes.first_chunk::<STAMP_BYTES>() else {
            return Err(Corruption::NoStamp);
        };
        if seal(bytes) != u32_at(bytes, 28) {
            return Err(Corruption::Stamp);
        }
        let place = u64_at(bytes, 8);
        Ok(Self {
            run: u32_at(bytes, 0),
            length: u32_at(bytes, 4),
            producer: (place >> 48) as u16,
            sequence: place & 0xffff_ffff_ffff,
            due_ns: u64_at(bytes, 16),
            subject: u32_at(bytes, 24),
        })
    }

    /// Writes the whole synthetic event into the front of `scratch`, which must hold `length` bytes, and returns it.
    pub fn write_event<'a>(&self, scratch: &'a mut [u8]) -> &'a [u8] {
        let event = &mut scratch[..self.length as usize];
        event[..STAMP_BYTES].copy_from_slice(&self.encode());
        let padding_bytes = event.len() - STAMP_BYTES;
        event[STAMP_BYTES..].copy_from_slice(self.padding(padding_bytes));
        event
    }

    /// Reads a synthetic event and compares every byte of it with what was sent.
    pub fn check_event(value: &[u8]) -> Result<Self, Corruption> {
        let stamp = Self::decode(value)?;
        if stamp.length as usize != value.len() {
            return Err(Corruption::Length(value.len()));
        }
        let padding = &value[STAMP_BYTES..];
        let expected = stamp.padding(padding.len());
        if padding != expected {
            let same = padding
                .iter()
                .zip(expected)
                .take_while(|(a, b)| a == b)
                .count();
            return Err(Corruption::Value(STAMP_BYTES + same));
        }
        Ok(stamp)
    }

    fn padding(&self, length: usize) -> &'static [u8] {
        let start =
            (self.sequence.wrapping_mul(61) + u64::from(self.producer) * 97) % PADDING_STARTS;
        &PATTERN[start as usize..start as usize + length]
    }
}

/// Tells a damaged stamp from a whole one. Not a CRC: over so few bytes two multiplications cost a fraction of it, and the
/// record batch has a CRC of its own.
#[inline]
fn seal(bytes: &[u8; STAMP_BYTES]) -> u32 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let first = fold(
        u64_at(bytes, 0) ^ 0xa076_1d64_78bd_642f,
        u64_at(bytes, 8) ^ 0xe703_7ed1_a0b4_28db,
    );
    let second = fold(
        u64_at(bytes, 16) ^ 0x8ebc_6af0_9c88_c6e3,
        u64::from(u32_at(bytes, 24)) ^ 0x5899_65cc_7537_4cc3,
    );
    let seal = first ^ second.rotate_left(32);
    (seal ^ seal >> 32) as u32
}

fn u32_at(bytes: &[u8; STAMP_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; STAMP_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | (u64::from(u32_at(bytes, at + 4)) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(length: u32) -> Stamp {
        Stamp {
            run: 0xabcd,
            length,
            producer: 513,
            sequence: 0x1234_5678_9abc,
            due_ns: u64::MAX - 5,
            subject: 77,
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut scratch = vec![0; VALUE_BYTES_MAX as usize];
        for length in [VALUE_BYTES_MIN, 33, 100, 4096, VALUE_BYTES_MAX] {
            let event = stamp(length).write_event(&mut scratch);
            assert_eq!(event.len(), length as usize);
            assert_eq!(Stamp::check_event(event), Ok(stamp(length)));
        }
    }

    #[test]
    fn every_single_changed_byte_is_found() {
        let mut scratch = vec![0; 100];
        stamp(100).write_event(&mut scratch);
        for at in 0..100 {
            let mut damaged = scratch.clone();
            damaged[at] ^= 0x40;
            let found = Stamp::check_event(&damaged).unwrap_err();
            let expected = if at < STAMP_BYTES {
                Corruption::Stamp
            } else {
                Corruption::Value(at)
            };
            assert_eq!(found, expected, "byte {at}");
        }
    }

    #[test]
    fn cut_and_grown_events_are_found() {
        let mut scratch = vec![0; 101];
        stamp(100).write_event(&mut scratch);
        assert_eq!(
            Stamp::check_event(&scratch[..99]),
            Err(Corruption::Length(99))
        );
        assert_eq!(
            Stamp::check_event(&scratch[..101]),
            Err(Corruption::Length(101))
        );
        assert_eq!(Stamp::check_event(&scratch[..31]), Err(Corruption::NoStamp));
        assert_eq!(Stamp::check_event(b""), Err(Corruption::NoStamp));
    }

    #[test]
    fn neighbours_differ_in_their_padding() {
        let mut a = vec![0; 100];
        let mut b = vec![0; 100];
        stamp(100).write_event(&mut a);
        Stamp {
            sequence: stamp(100).sequence + 1,
            ..stamp(100)
        }
        .write_event(&mut b);
        assert_ne!(a[STAMP_BYTES..], b[STAMP_BYTES..]);
    }
}
