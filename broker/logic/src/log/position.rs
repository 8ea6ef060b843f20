//! How far a log has come.
//!
//! A log is one stream of bytes; its segments are consecutive pieces of it. A [`Position`] is a boundary between two
//! batches, known both as an offset and as a place in the stream, so positions compare across segments.

use tackboard_schema::Offset;

/// A place in a log's stream of bytes. Only differences mean anything: where the count starts is chosen anew at
/// each open, and each segment knows the place at which it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamByte(pub u64);

impl StreamByte {
    /// The place `bytes` further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }

    /// Bytes from `earlier` to here.
    ///
    /// # Panics
    ///
    /// If `earlier` lies behind.
    pub fn since(self, earlier: Self) -> u64 {
        assert!(earlier <= self, "{earlier:?} lies behind {self:?}");
        self.0 - earlier.0
    }
}

/// A boundary between two batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Offset of the batch that follows.
    pub offset: Offset,
    /// Where it begins in the stream.
    pub at: StreamByte,
}

/// What was appended and what of it is written. What is durable stands in [`super::sync_plan::LogSync`], which alone
/// may move it.
///
/// Invariant: `written <= written_byte <= appended`, and none of them moves back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    appended: Position,
    written: Position,
    written_byte: StreamByte,
}

impl Positions {
    /// A log that was recovered up to `end`: everything there is written.
    pub fn recovered(end: Position) -> Self {
        Self {
            appended: end,
            written: end,
            written_byte: end.at,
        }
    }

    /// End of what has an offset.
    pub fn appended(&self) -> Position {
        self.appended
    }

    /// End of the last batch that is wholly written.
    pub fn written(&self) -> Position {
        self.written
    }

    /// End of what is written, perhaps in the middle of a batch.
    pub fn written_byte(&self) -> StreamByte {
        self.written_byte
    }

    /// A batch was placed.
    ///
    /// # Panics
    ///
    /// If it would not end behind the last one.
    pub fn append(&mut self, end: Position) {
        assert!(end.offset > self.appended.offset && end.at > self.appended.at);
        self.appended = end;
    }

    /// The contiguous prefix of completed writes grew to `byte`; `end` is the last batch that ends in it.
    ///
    /// # Panics
    ///
    /// If that lies before what was written or behind what was appended.
    pub fn write(&mut self, end: Position, byte: StreamByte) {
        assert!(self.written <= end && self.written_byte <= byte);
        assert!(end.at <= byte && byte <= self.appended.at);
        self.written = end;
        self.written_byte = byte;
    }
}
