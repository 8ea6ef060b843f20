//! Reads messages off a frame, within bounds.

use bytes::Bytes;

use super::{Form, Value, Width, error::in_field};
use crate::DecodeError;

/// Elements that the arrays of one request may have together.
pub const REQUEST_ELEMENTS_MAX: usize = 1 << 18;

/// Elements that the arrays of one response may have together.
pub const RESPONSE_ELEMENTS_MAX: usize = 1 << 22;

/// The most bytes of a varint of 32 bits.
const VARINT_BYTES_MAX: usize = 5;

/// A position in a frame.
///
/// What is read is a slice of the frame. Nothing is allocated but arrays, and those only after their count was held
/// against the bytes that are left and against a bound on the elements of the whole message. Messages nest as deep as
/// their definitions do.
#[derive(Debug)]
pub struct Reader {
    frame: Bytes,
    position: usize,
    /// Where what is being read ends: the frame, or a tagged field.
    end: usize,
    form: Form,
    elements_left: usize,
}

impl Reader {
    pub(in crate::kafka) fn new(frame: Bytes, form: Form, elements_max: usize) -> Self {
        Self {
            end: frame.len(),
            frame,
            position: 0,
            form,
            elements_left: elements_max,
        }
    }

    /// What follows is in another form.
    pub(in crate::kafka) fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    pub(in crate::kafka) fn form(&self) -> Form {
        self.form
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// Refuses bytes that nothing has read.
    pub(in crate::kafka) fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            _ => Err(self.left_over()),
        }
    }

    fn left_over(&self) -> DecodeError {
        DecodeError::invalid("bytes that belong to no field", self.position)
            .with_detail(format_args!("{} bytes", self.remaining()))
    }

    /// Reads a field; a fault names it.
    #[inline]
    pub(in crate::kafka) fn field<T: Value>(&mut self, name: &str) -> Result<T, DecodeError> {
        T::read(self).map_err(|fault| in_field(fault, name))
    }

    #[inline]
    fn advance(&mut self, length: usize) -> Result<usize, DecodeError> {
        if length > self.remaining() {
            return Err(self.truncated(length));
        }
        let begin = self.position;
        self.position += length;
        Ok(begin)
    }

    #[cold]
    fn truncated(&self, wanted: usize) -> DecodeError {
        DecodeError::truncated("a message ends early", self.position).with_detail(format_args!(
            ": {wanted} bytes wanted, {} left",
            self.remaining()
        ))
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let begin = self.advance(N)?;
        let mut array = [0; N];
        array.copy_from_slice(&self.frame[begin..begin + N]);
        Ok(array)
    }

    /// A slice of the frame.
    pub(super) fn slice(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        let begin = self.advance(length)?;
        Ok(self.frame.slice(begin..begin + length))
    }

    /// Makes sure that an array can have so many elements of at least `bytes_min` bytes.
    pub(super) fn claim(&mut self, count: usize, bytes_min: usize) -> Result<(), DecodeError> {
        let left = self.remaining();
        if count > left / bytes_min.max(1) {
            let what = "an array has more elements than there are bytes for";
            return Err(DecodeError::truncated(what, self.position)
                .with_detail(format_args!(": {count} elements, {left} bytes left")));
        }
        match self.elements_left.checked_sub(count) {
            Some(elements_left) => {
                self.elements_left = elements_left;
                Ok(())
            }
            None => {
                let what = "the arrays of a message have too many elements";
                Err(
                    DecodeError::too_large(what, self.position).with_detail(format_args!(
                        ": {count} more, {} allowed",
                        self.elements_left
                    )),
                )
            }
        }
    }

    /// A length; `None` stands for null.
    pub(super) fn length(&mut self, width: Width) -> Result<Option<usize>, DecodeError> {
        let at_byte = self.position;
        let length = match (self.form.flexible, width) {
            (true, _) => i64::from(self.varint()?) - 1,
            (false, Width::Short) => i64::from(i16::read(self)?),
            (false, Width::Long) => i64::from(i32::read(self)?),
        };
        match length {
            -1 => Ok(None),
            0.. => Ok(Some(length as usize)),
            _ => Err(DecodeError::invalid("a length is negative", at_byte)
                .with_detail(format_args!(": {length}"))),
        }
    }

    /// Seven bits a byte, the lowest first.
    fn varint(&mut self) -> Result<u32, DecodeError> {
        let at_byte = self.position;
        let mut number = 0_u64;
        for index in 0..VARINT_BYTES_MAX {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return u32::try_from(number).map_err(|_| too_long(at_byte));
            }
        }
        Err(too_long(at_byte))
    }

    /// Passes over tagged fields.
    pub(in crate::kafka) fn skip_tags(&mut self) -> Result<(), DecodeError> {
        self.tags(|_, _| Ok(false))
    }

    /// Reads tagged fields. `read` says whether it knows the tag; if so it has read the field, the whole of it.
    pub(in crate::kafka) fn tags(
        &mut self,
        mut read: impl FnMut(u32, &mut Reader) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.form.flexible {
            return Ok(());
        }
        let outer_end = self.end;
        // Every round takes two bytes, or fails.
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let length = self.varint()? as usize;
            if length > self.remaining() {
                return Err(in_field(self.truncated(length), &format!("tag {tag}")));
            }
            self.end = self.position + length;
            let known = read(tag, self)?;
            if known && self.position != self.end {
                return Err(self.left_over());
            }
            self.position = self.end;
            self.end = outer_end;
        }
        Ok(())
    }
}

fn too_long(at_byte: usize) -> DecodeError {
    DecodeError::invalid("a varint has more than 32 bits", at_byte)
}
