//! Reads integers and slices off the front of a byte slice, and cannot panic.
//!
//! Every read names the field it wants, so that the error of a short slice says which one was missing.

use crate::DecodeError;

/// A position in a byte slice that only moves forward.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

macro_rules! read_integer {
    ($name:ident, $type:ty, $from:ident) => {
        pub(crate) fn $name(&mut self, what: &'static str) -> Result<$type, DecodeError> {
            Ok(<$type>::$from(self.array(what)?))
        }
    };
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    #[inline]
    pub(crate) fn slice(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let slice = rest.get(..length).ok_or_else(|| {
            DecodeError::truncated(what, self.position)
                .with_detail(format_args!("{length} bytes wanted, {} left", rest.len()))
        })?;
        self.position += length;
        Ok(slice)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let slice = self.slice(N, what)?;
        let mut array = [0; N];
        array.copy_from_slice(slice);
        Ok(array)
    }

    read_integer!(u8, u8, from_le_bytes);
    read_integer!(u16_le, u16, from_le_bytes);
    read_integer!(u32_le, u32, from_le_bytes);
    read_integer!(u64_le, u64, from_le_bytes);
    read_integer!(i16_le, i16, from_le_bytes);
    read_integer!(i32_le, i32, from_le_bytes);
    read_integer!(i64_le, i64, from_le_bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_slices_name_field_and_byte() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 9]);
        assert_eq!(cursor.u32_le("first").unwrap(), 1);
        let error = cursor.u16_le("second").unwrap_err();
        assert_eq!((error.what, error.at_byte), ("second", 4));
        assert_eq!(
            error.to_string(),
            "second at byte 4 (2 bytes wanted, 1 left)"
        );
        assert_eq!(cursor.remaining(), 1);
    }
}
