//! Integers of variable length: 7 bits a byte, least significant first, zigzag for the sign.

use crate::DecodeError;

/// The longest encoding of 32 bits.
pub const VARINT_LENGTH_MAX: usize = 5;

/// The longest encoding of 64 bits.
pub const VARLONG_LENGTH_MAX: usize = 10;

/// Reads a 64-bit number at the start of `bytes`: the number, and how many bytes it took. `None`: it is cut
/// short or longer than 64 bits; see [`fault`].
#[inline]
pub fn read_varlong(bytes: &[u8]) -> Option<(i64, usize)> {
    match bytes {
        [first, ..] if first & 0x80 == 0 => Some((unzigzag(u64::from(*first)), 1)),
        _ => read_longer(bytes),
    }
}

/// Reads a 32-bit number at the start of `bytes`: the number, and how many bytes it took. `None`: it is cut
/// short or longer than 32 bits; see [`fault`].
#[inline]
pub fn read_varint(bytes: &[u8]) -> Option<(i32, usize)> {
    let (value, length) = read_varlong(bytes)?;
    let value = i32::try_from(value).ok()?;
    (length <= VARINT_LENGTH_MAX).then_some((value, length))
}

fn read_longer(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value: u64 = 0;
    for (index, byte) in bytes.iter().take(VARLONG_LENGTH_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == VARLONG_LENGTH_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Some((unzigzag(value), index + 1));
        }
    }
    None
}

/// Why a number of at most `length_max` bytes could not be read at the start of `bytes`.
#[cold]
pub fn fault(bytes: &[u8], length_max: usize, what: &'static str, at_byte: usize) -> DecodeError {
    let ends = bytes.iter().take(length_max).any(|byte| byte & 0x80 == 0);
    if !ends && bytes.len() < length_max {
        DecodeError::truncated(what, at_byte).with_detail("number of variable length is cut short")
    } else {
        DecodeError::invalid(what, at_byte).with_detail("number of variable length is too long")
    }
}

/// Writes a number at the start of `out`; returns how many bytes it took.
///
/// # Panics
///
/// If `out` is shorter than the number's encoding.
#[inline]
pub fn write_varlong(out: &mut [u8], value: i64) -> usize {
    let mut rest = zigzag(value);
    if rest < 0x80 {
        out[0] = rest as u8;
        return 1;
    }
    let mut length = 0;
    while rest >= 0x80 {
        out[length] = rest as u8 | 0x80;
        rest >>= 7;
        length += 1;
    }
    out[length] = rest as u8;
    length + 1
}

/// How many bytes a number's encoding takes.
#[inline]
pub fn varlong_length(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_as_written(value: i64) {
            let mut bytes = [0; VARLONG_LENGTH_MAX];
            let length = write_varlong(&mut bytes, value);
            prop_assert_eq!(length, varlong_length(value));
            prop_assert_eq!(read_varlong(&bytes[..length]), Some((value, length)));
            prop_assert!(read_varlong(&bytes[..length - 1]).is_none());
            let small = value as i32;
            let length = write_varlong(&mut bytes, i64::from(small));
            prop_assert!(length <= VARINT_LENGTH_MAX);
            prop_assert_eq!(read_varint(&bytes[..length]), Some((small, length)));
        }
    }

    #[test]
    fn known_encodings_and_limits() {
        let cases: [(i64, &[u8]); 7] = [
            (0, &[0]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7e]),
            (64, &[0x80, 1]),
            (-65, &[0x81, 1]),
            (
                i64::MIN,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            ),
        ];
        for (value, bytes) in cases {
            assert_eq!(read_varlong(bytes), Some((value, bytes.len())));
        }
        assert!(read_varlong(&[0xff; 20]).is_none(), "never ends");
        assert!(
            read_varlong(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).is_none(),
            "65 bits"
        );
        assert!(
            read_varint(&[0xff, 0xff, 0xff, 0xff, 0x1f]).is_none(),
            "33 bits"
        );
        assert!(
            read_varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).is_none(),
            "six bytes"
        );
        assert!(read_varint(&[]).is_none());
    }
}
