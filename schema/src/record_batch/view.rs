//! One batch's bytes, with its header read.

use super::header::at;
use super::{BatchHeader, Compression, HEADER_LENGTH, RecordIterator, compression};
use crate::DecodeError;

/// Exactly one batch: its header, and its bytes as they are.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// The first batch in `bytes`. Its checksum is not looked at.
    pub fn first(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = BatchHeader::read(bytes)?;
        let length = header.total_length();
        match bytes.get(..length) {
            Some(batch) => Ok(Self {
                header,
                bytes: batch,
            }),
            None => {
                let error = DecodeError::truncated("record batch", at::BATCH_LENGTH);
                Err(error.with_detail(format_args!("{length} bytes wanted, {} left", bytes.len())))
            }
        }
    }

    pub(super) fn from_parts(header: BatchHeader, bytes: &'a [u8]) -> Self {
        debug_assert_eq!(header.total_length(), bytes.len());
        Self { header, bytes }
    }

    /// The batch's header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The batch's bytes, all of them and no more.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What follows the header: records, or one compressed block of them.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..]
    }

    /// Computes the checksum and compares it with the header's.
    pub fn verify_crc(&self) -> Result<(), DecodeError> {
        let computed = crc32c::crc32c(&self.bytes[at::ATTRIBUTES..]);
        if computed == self.header.crc {
            return Ok(());
        }
        let error = DecodeError::corrupt("checksum of a record batch does not match", at::CRC);
        Err(error.with_detail(format_args!(
            "{:#010x} found, {computed:#010x} computed",
            self.header.crc
        )))
    }

    /// The records of a batch that is not compressed; a compressed one yields a single error.
    pub fn records(&self) -> RecordIterator<'a> {
        match self.header.compression() {
            Ok(Compression::None) => {
                RecordIterator::new(&self.header, self.payload(), HEADER_LENGTH)
            }
            Ok(_) => {
                let what = "records of a compressed batch are read after decompression";
                RecordIterator::failed(DecodeError::invalid(what, at::ATTRIBUTES))
            }
            Err(error) => RecordIterator::failed(error),
        }
    }

    /// The records, whatever the codec.
    ///
    /// A compressed block is decompressed into `buffer`, which is cleared first and grows to at most
    /// `bytes_max`; a block that would be larger is refused. Errors count bytes from the start of the batch
    /// if it is not compressed, else from the start of the decompressed records.
    pub fn records_decompressed<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<RecordIterator<'b>, DecodeError>
    where
        'a: 'b,
    {
        let codec = self.header.compression()?;
        if codec == Compression::None {
            return Ok(RecordIterator::new(
                &self.header,
                self.payload(),
                HEADER_LENGTH,
            ));
        }
        buffer.clear();
        compression::decompress(codec, self.payload(), bytes_max, buffer)
            .map_err(|error| error.shifted(HEADER_LENGTH))?;
        Ok(RecordIterator::new(&self.header, buffer, 0))
    }
}
