//! Walks over contiguous batches by their lengths.

use super::{BatchHeader, BatchView};
use crate::DecodeError;

/// The batches in a byte slice, one after the other, without a look at their checksums.
///
/// It stops before a batch that is not whole, as a fetch answer or a read of a log may end in the middle of
/// one, and after the first error.
#[derive(Clone, Debug)]
pub struct BatchIterator<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl<'a> BatchIterator<'a> {
    /// Begins at the start of `bytes`, which is the start of a batch.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            failed: false,
        }
    }

    /// Where the next batch begins: the end of what was walked over, counted from the start of the slice.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for BatchIterator<'a> {
    type Item = Result<BatchView<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let rest = self.bytes.get(self.position..)?;
        rest.first_chunk::<{ super::HEADER_LENGTH }>()?;
        match BatchHeader::read(rest) {
            Ok(header) => {
                let batch = rest.get(..header.total_length())?;
                self.position += batch.len();
                Some(Ok(BatchView::from_parts(header, batch)))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error.shifted(self.position)))
            }
        }
    }
}
