//! The types that messages are made of.

use bytes::Bytes;

use super::{EncodeError, Reader, Records, Str, Writer, error::in_element};
use crate::{DecodeError, TopicId, kafka::ApiRow};

/// How wide a length is where lengths are not compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Two bytes.
    Short,
    /// Four bytes.
    Long,
}

impl Width {
    fn bytes_min(self, form: Form) -> usize {
        match (form.flexible, self) {
            (true, _) => 1,
            (false, Width::Short) => 2,
            (false, Width::Long) => 4,
        }
    }
}

/// In which form a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The version of its API.
    pub version: i16,
    /// Whether lengths are compact and structures have tagged fields.
    pub flexible: bool,
}

impl Form {
    /// That of an API's messages.
    pub(in crate::kafka) fn of(api: &ApiRow, version: i16) -> Self {
        Self {
            version,
            flexible: api.is_flexible(version),
        }
    }

    /// The fewest bytes that the tagged fields of a structure take.
    pub(in crate::kafka) fn tags_bytes_min(self) -> usize {
        usize::from(self.flexible)
    }
}

/// A type that stands in messages.
pub trait Value: Sized {
    /// The fewest bytes that a value takes: what makes a claimed count credible.
    fn bytes_min(form: Form) -> usize;

    /// Reads a value.
    fn read(from: &mut Reader) -> Result<Self, DecodeError>;

    /// Writes a value.
    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError>;
}

/// A type with a length before it, which can also say that there is no value.
pub trait Counted: Value + Default {
    /// How wide the length is.
    const WIDTH: Width;

    /// Reads what comes behind the length.
    fn read_counted(from: &mut Reader, length: usize) -> Result<Self, DecodeError>;

    /// Reads a value where null is not allowed.
    fn read_present(from: &mut Reader) -> Result<Self, DecodeError> {
        let at_byte = from.position();
        match from.length(Self::WIDTH)? {
            Some(length) => Self::read_counted(from, length),
            None => Err(DecodeError::invalid(
                "null where there must be a value",
                at_byte,
            )),
        }
    }
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn bytes_min(_: Form) -> usize {
                size_of::<$type>()
            }

            #[inline]
            fn read(from: &mut Reader) -> Result<Self, DecodeError> {
                Ok(<$type>::from_be_bytes(from.array()?))
            }

            #[inline]
            fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
                to.put(&self.to_be_bytes());
                Ok(())
            }
        })*
    };
}

integers!(i8 i16 i32 i64);

/// Any byte but 0 is true.
impl Value for bool {
    fn bytes_min(_: Form) -> usize {
        1
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        Ok(i8::read(from)? != 0)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        i8::from(*self).write(to)
    }
}

impl Value for TopicId {
    fn bytes_min(_: Form) -> usize {
        16
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        from.array().map(TopicId)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.put(&self.0);
        Ok(())
    }
}

impl Value for Str {
    fn bytes_min(form: Form) -> usize {
        Self::WIDTH.bytes_min(form)
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        Self::read_present(from)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.length(self.len(), Self::WIDTH)?;
        to.put(self.as_bytes());
        Ok(())
    }
}

impl Counted for Str {
    const WIDTH: Width = Width::Short;

    fn read_counted(from: &mut Reader, length: usize) -> Result<Self, DecodeError> {
        let at_byte = from.position();
        Str::from_utf8(from.slice(length)?, at_byte)
    }
}

impl Value for Bytes {
    fn bytes_min(form: Form) -> usize {
        Self::WIDTH.bytes_min(form)
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        Self::read_present(from)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.length(self.len(), Self::WIDTH)?;
        to.put(self);
        Ok(())
    }
}

impl Counted for Bytes {
    const WIDTH: Width = Width::Long;

    fn read_counted(from: &mut Reader, length: usize) -> Result<Self, DecodeError> {
        from.slice(length)
    }
}

impl Value for Records {
    fn bytes_min(form: Form) -> usize {
        Self::WIDTH.bytes_min(form)
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        Self::read_present(from)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.length(self.length(), Self::WIDTH)?;
        match self {
            Records::Here(bytes) => to.put(bytes),
            Records::Elsewhere(length) => to.gap(*length),
        }
        Ok(())
    }
}

impl Counted for Records {
    const WIDTH: Width = Width::Long;

    fn read_counted(from: &mut Reader, length: usize) -> Result<Self, DecodeError> {
        from.slice(length).map(Records::Here)
    }
}

impl<T: Value> Value for Vec<T> {
    fn bytes_min(form: Form) -> usize {
        Self::WIDTH.bytes_min(form)
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        Self::read_present(from)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.length(self.len(), Self::WIDTH)?;
        for (index, element) in self.iter().enumerate() {
            (element.write(to)).map_err(|fault| fault.in_element(index))?;
        }
        Ok(())
    }
}

impl<T: Value> Counted for Vec<T> {
    const WIDTH: Width = Width::Long;

    fn read_counted(from: &mut Reader, length: usize) -> Result<Self, DecodeError> {
        from.claim(length, T::bytes_min(from.form()))?;
        let mut elements = Vec::with_capacity(length);
        for index in 0..length {
            elements.push(T::read(from).map_err(|fault| in_element(fault, index))?);
        }
        Ok(elements)
    }
}

impl<T: Counted> Value for Option<T> {
    fn bytes_min(form: Form) -> usize {
        T::bytes_min(form)
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        match from.length(T::WIDTH)? {
            Some(length) => T::read_counted(from, length).map(Some),
            None => Ok(None),
        }
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Some(value) => value.write(to),
            None => {
                to.null(T::WIDTH);
                Ok(())
            }
        }
    }
}
