//! Integers of variable length: 7 bits a byte, least significant first, zigzag for the sign.

use crate::DecodeError;

/// The longest encoding of 32 bits.
pub const VARINT_LENGTH_MAX: usize = 5;

/// The longest encoding of 64 bits.
pub const VARLONG_LENGTH_MAX: usize = 10;

/// Reads a 64-bit number at the start of `bytes`: the number, and how many bytes it took.
#[inline]
pub fn read_varlong(bytes: &[u8], what: &'static str) -> Result<(i64, usize), DecodeError> {
    let mut value: u64 = 0;
    for (index, byte) in bytes.iter().take(VARLONG_LENGTH_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == VARLONG_LENGTH_MAX - 1 && bits > 1 {
            break;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((unzigzag(value), index + 1));
        }
    }
    Err(fault(bytes, VARLONG_LENGTH_MAX, what))
}

/// Reads a 32-bit number at the start of `bytes`: the number, and how many bytes it took.
#[inline]
pub fn read_varint(bytes: &[u8], what: &'static str) -> Result<(i32, usize), DecodeError> {
    if let [first, ..] = bytes
        && first & 0x80 == 0
    {
        return Ok((unzigzag(u64::from(*first)) as i32, 1));
    }
    let (value, length) = read_varlong(bytes, what)?;
    match i32::try_from(value) {
        Ok(value) if length <= VARINT_LENGTH_MAX => Ok((value, length)),
        _ => {
            Err(DecodeError::invalid(what, 0)
                .with_detail("number of variable length exceeds 32 bits"))
        }
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

#[cold]
fn fault(bytes: &[u8], length_max: usize, what: &'static str) -> DecodeError {
    if bytes.len() < length_max {
        DecodeError::truncated(what, 0).with_detail("number of variable length is cut short")
    } else {
        DecodeError::invalid(what, 0).with_detail("number of variable length exceeds 64 bits")
    }
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
            prop_assert_eq!(read_varlong(&bytes[..length], "n"), Ok((value, length)));
            prop_assert!(read_varlong(&bytes[..length - 1], "n").is_err());
            let small = value as i32;
            let length = write_varlong(&mut bytes, i64::from(small));
            prop_assert!(length <= VARINT_LENGTH_MAX);
            prop_assert_eq!(read_varint(&bytes[..length], "n"), Ok((small, length)));
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
            assert_eq!(read_varlong(bytes, "n"), Ok((value, bytes.len())));
        }
        assert!(read_varlong(&[0xff; 20], "n").is_err(), "never ends");
        assert!(
            read_varlong(
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
                "n"
            )
            .is_err(),
            "65 bits"
        );
        assert!(
            read_varint(&[0xff, 0xff, 0xff, 0xff, 0x1f], "n").is_err(),
            "33 bits"
        );
        assert!(
            read_varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0], "n").is_err(),
            "six bytes"
        );
        assert!(read_varint(&[], "n").is_err());
    }
}
