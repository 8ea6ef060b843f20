//! Writes messages.

use super::{EncodeError, Form, Gap, Value, Width, values::Counted};

/// The bytes of a frame that are being written, and the gaps between them.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Where the frame begins.
    begin: usize,
    form: Form,
    gaps: Vec<Gap>,
}

impl<'a> Writer<'a> {
    /// Writes behind what `out` has, where a frame begins.
    pub(in crate::kafka) fn new(out: &'a mut Vec<u8>, form: Form) -> Self {
        Self {
            begin: out.len(),
            out,
            form,
            gaps: Vec::new(),
        }
    }

    /// What follows is in another form.
    pub(in crate::kafka) fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    pub(in crate::kafka) fn form(&self) -> Form {
        self.form
    }

    /// Writes the length of everything but itself over the first four bytes, and gives the gaps.
    pub(in crate::kafka) fn finish(self) -> Result<Vec<Gap>, EncodeError> {
        let missing: usize = self.gaps.iter().map(|gap| gap.length as usize).sum();
        let prefix = &mut self.out[self.begin..];
        let length = i32::try_from(prefix.len() - 4 + missing)
            .map_err(|_| EncodeError::new("a frame of more than 2 GiB"))?;
        prefix[..4].copy_from_slice(&length.to_be_bytes());
        Ok(self.gaps)
    }

    /// Writes a field; a fault names it.
    #[inline]
    pub(in crate::kafka) fn field<T: Value>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), EncodeError> {
        value.write(self).map_err(|fault| fault.in_field(name))
    }

    /// Writes a field that may be null only if `allowed`; otherwise an empty value stands for null.
    pub(in crate::kafka) fn nullable<T: Counted>(
        &mut self,
        name: &str,
        value: &Option<T>,
        allowed: bool,
    ) -> Result<(), EncodeError> {
        match value {
            None if !allowed => self.field(name, &T::default()),
            _ => self.field(name, value),
        }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Leaves bytes out.
    pub(super) fn gap(&mut self, length: u32) {
        if length > 0 {
            let at_byte = self.out.len() - self.begin;
            self.gaps.push(Gap { at_byte, length });
        }
    }

    pub(super) fn length(&mut self, length: usize, width: Width) -> Result<(), EncodeError> {
        let too_long = || EncodeError::new("longer than its length can say");
        match (self.form.flexible, width) {
            (true, _) => {
                let length = i32::try_from(length).map_err(|_| too_long())?;
                self.varint(length as u32 + 1);
            }
            (false, Width::Short) => {
                let length = i16::try_from(length).map_err(|_| too_long())?;
                self.put(&length.to_be_bytes());
            }
            (false, Width::Long) => {
                let length = i32::try_from(length).map_err(|_| too_long())?;
                self.put(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    pub(super) fn null(&mut self, width: Width) {
        match (self.form.flexible, width) {
            (true, _) => self.varint(0),
            (false, Width::Short) => self.put(&(-1_i16).to_be_bytes()),
            (false, Width::Long) => self.put(&(-1_i32).to_be_bytes()),
        }
    }

    fn varint(&mut self, number: u32) {
        put_varint(self.out, number);
    }

    /// Ends a structure without tagged fields.
    pub(in crate::kafka) fn no_tags(&mut self) {
        self.tag_count(&[]);
    }

    /// Begins the tagged fields of a structure: as many as are `true`.
    pub(in crate::kafka) fn tag_count(&mut self, present: &[bool]) {
        if self.form.flexible {
            let count = present.iter().filter(|present| **present).count();
            self.varint(count as u32);
        }
    }

    /// Writes a tagged field, which has no records in it.
    pub(in crate::kafka) fn tagged<T: Value>(
        &mut self,
        tag: u32,
        name: &str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.varint(tag);
        let begin = self.out.len();
        self.field(name, value)?;
        let length = u32::try_from(self.out.len() - begin)
            .map_err(|_| EncodeError::new("longer than its length can say").in_field(name))?;
        let mut prefix = Vec::new();
        put_varint(&mut prefix, length);
        self.out.splice(begin..begin, prefix);
        Ok(())
    }
}

/// Seven bits a byte, the lowest first.
fn put_varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
