//! What a decoder says about bytes that it refuses.

use std::fmt;

use crate::ErrorCode;

/// Why bytes were refused, as far as the one who answers needs to tell cases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// The bytes end before the structure does.
    Truncated,
    /// A checksum does not match, or lengths contradict each other.
    Corrupt,
    /// Intact, but a rule of the format is broken.
    Invalid,
    /// A bound that the caller gave is exceeded.
    TooLarge,
    /// A compression codec that is not known.
    UnknownCompression,
}

/// Bytes from outside that could not be read: what was wrong, and at which byte of the slice given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DecodeError {
    /// The part of the format that was being read, and the rule it breaks.
    pub what: &'static str,
    /// Where that part begins, counted from the start of the slice that was given to the decoder.
    pub at_byte: usize,
    /// Which kind of fault it is.
    pub kind: DecodeErrorKind,
    /// Values that help to find the cause (found, expected), when there are any.
    pub detail: Option<Box<str>>,
}

impl DecodeError {
    /// An error without further detail.
    pub fn new(kind: DecodeErrorKind, what: &'static str, at_byte: usize) -> Self {
        Self {
            what,
            at_byte,
            kind,
            detail: None,
        }
    }

    /// The same error with values that help to find the cause.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string().into_boxed_str());
        self
    }

    /// The same error seen from a slice that begins `bytes` earlier.
    #[must_use]
    pub fn shifted(mut self, bytes: usize) -> Self {
        self.at_byte = self.at_byte.saturating_add(bytes);
        self
    }

    /// The code with which a broker refuses a record batch that has this fault.
    pub fn error_code(&self) -> ErrorCode {
        match self.kind {
            DecodeErrorKind::Truncated | DecodeErrorKind::Corrupt => ErrorCode::CorruptMessage,
            DecodeErrorKind::Invalid => ErrorCode::InvalidRecord,
            DecodeErrorKind::TooLarge => ErrorCode::MessageTooLarge,
            DecodeErrorKind::UnknownCompression => ErrorCode::UnsupportedCompressionType,
        }
    }

    pub(crate) fn truncated(what: &'static str, at_byte: usize) -> Self {
        Self::new(DecodeErrorKind::Truncated, what, at_byte)
    }

    pub(crate) fn corrupt(what: &'static str, at_byte: usize) -> Self {
        Self::new(DecodeErrorKind::Corrupt, what, at_byte)
    }

    pub(crate) fn invalid(what: &'static str, at_byte: usize) -> Self {
        Self::new(DecodeErrorKind::Invalid, what, at_byte)
    }

    pub(crate) fn too_large(what: &'static str, at_byte: usize) -> Self {
        Self::new(DecodeErrorKind::TooLarge, what, at_byte)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at_byte)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
