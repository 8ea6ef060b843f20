//! One block of a ledger: complete in itself, 4096 bytes.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | u32 | CRC-32C of bytes 4..4096 |
//! | 4 | u16 | length of the records in bytes |
//! | 6 | u16 | how many records there are |
//! | 8 | u64 | generation, as in the header |
//! | 16 | u64 | sequence: 0 for the block behind the header, then one more each |
//! | 24 | u64 | how many blocks of this ledger were known to be on the medium when this one was written |
//! | 32 | … | records, then zeros |

use super::record::LedgerRecord;
use crate::DecodeError;
use crate::cursor::Cursor;
use crate::storage::BLOCK_LENGTH;

const HEADER_LENGTH: usize = 32;

/// How many bytes of records a block holds.
pub const BLOCK_PAYLOAD_LENGTH_MAX: usize = BLOCK_LENGTH - HEADER_LENGTH;

/// Fills one block.
#[derive(Clone, Debug)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    record_count: u16,
}

impl Default for BlockBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockBuilder {
    /// An empty block.
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(BLOCK_LENGTH + super::RECORD_LENGTH_MAX);
        bytes.resize(HEADER_LENGTH, 0);
        Self {
            bytes,
            record_count: 0,
        }
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Adds a record. `false`: there is no room for it; the block is to be finished and the next one begun.
    #[must_use]
    pub fn push(&mut self, record: &LedgerRecord) -> bool {
        let length = self.bytes.len();
        record.encode(&mut self.bytes);
        let fits = self.bytes.len() <= BLOCK_LENGTH;
        if fits {
            self.record_count += 1;
        } else {
            self.bytes.truncate(length);
        }
        fits
    }

    /// Writes the finished block to `out` and empties the builder.
    ///
    /// `sequence` is the block's place behind the header; `blocks_durable` is how many blocks of this ledger
    /// the last successful sync covered.
    pub fn finish_into(
        &mut self,
        generation: u64,
        sequence: u64,
        blocks_durable: u64,
        out: &mut [u8; BLOCK_LENGTH],
    ) {
        assert!(
            blocks_durable <= sequence,
            "a block cannot be durable before it is written"
        );
        let payload_length = (self.bytes.len() - HEADER_LENGTH) as u16;
        self.bytes.resize(BLOCK_LENGTH, 0);
        out.copy_from_slice(&self.bytes);
        out[4..6].copy_from_slice(&payload_length.to_le_bytes());
        out[6..8].copy_from_slice(&self.record_count.to_le_bytes());
        out[8..16].copy_from_slice(&generation.to_le_bytes());
        out[16..24].copy_from_slice(&sequence.to_le_bytes());
        out[24..32].copy_from_slice(&blocks_durable.to_le_bytes());
        let crc = crc32c::crc32c(&out[4..]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        self.bytes.truncate(HEADER_LENGTH);
        self.record_count = 0;
    }
}

/// A block whose checksum, generation and place are right and whose records can all be read.
#[derive(Clone, Debug)]
pub struct LedgerBlock<'a> {
    payload: &'a [u8],
    blocks_durable: u64,
}

impl<'a> LedgerBlock<'a> {
    /// Reads the block that stands at place `sequence` of a ledger of this generation.
    pub fn read(bytes: &'a [u8], generation: u64, sequence: u64) -> Result<Self, DecodeError> {
        let Some(bytes) = bytes.get(..BLOCK_LENGTH) else {
            let error = DecodeError::truncated("ledger block", 0);
            return Err(error.with_detail(format_args!(
                "{BLOCK_LENGTH} bytes wanted, {} left",
                bytes.len()
            )));
        };
        let mut cursor = Cursor::new(bytes);
        let found = cursor.u32_le("checksum of a ledger block")?;
        let computed = crc32c::crc32c(&bytes[4..]);
        if found != computed {
            let error = DecodeError::corrupt("checksum of a ledger block does not match", 0);
            return Err(error.with_detail(format_args!(
                "{found:#010x} found, {computed:#010x} computed"
            )));
        }
        let payload_length = usize::from(cursor.u16_le("length of a ledger block")?);
        let record_count = cursor.u16_le("record count of a ledger block")?;
        expect(
            cursor.u64_le("generation of a ledger block")?,
            generation,
            "generation of a ledger block",
            8,
        )?;
        expect(
            cursor.u64_le("sequence of a ledger block")?,
            sequence,
            "sequence of a ledger block",
            16,
        )?;
        let blocks_durable = cursor.u64_le("durable blocks of a ledger block")?;
        if blocks_durable > sequence {
            let error = DecodeError::invalid("ledger block calls itself durable", 24);
            return Err(error.with_detail(format_args!(
                "{blocks_durable} blocks durable at {sequence}"
            )));
        }
        let payload = cursor.slice(payload_length, "records of a ledger block")?;
        let block = Self {
            payload,
            blocks_durable,
        };
        block.check_records(record_count)?;
        Ok(block)
    }

    /// How many blocks of this ledger were known to be on the medium when this one was written.
    pub fn blocks_durable(&self) -> u64 {
        self.blocks_durable
    }

    /// The records' bytes.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The records, in the order in which they were written.
    pub fn records(&self) -> impl Iterator<Item = LedgerRecord> + use<'a> {
        let mut cursor = Cursor::new(self.payload);
        // `read` has been over all of them, so none can fail.
        std::iter::from_fn(move || {
            (!cursor.is_empty())
                .then(|| LedgerRecord::read(&mut cursor).ok())
                .flatten()
        })
    }

    fn check_records(&self, record_count: u16) -> Result<(), DecodeError> {
        let mut cursor = Cursor::new(self.payload);
        let mut found = 0;
        while !cursor.is_empty() {
            LedgerRecord::read(&mut cursor).map_err(|error| error.shifted(HEADER_LENGTH))?;
            found += 1;
        }
        expect(
            found,
            u64::from(record_count),
            "record count of a ledger block",
            6,
        )
    }
}

fn expect(
    found: u64,
    expected: u64,
    what: &'static str,
    at_byte: usize,
) -> Result<(), DecodeError> {
    if found == expected {
        return Ok(());
    }
    Err(DecodeError::invalid(what, at_byte)
        .with_detail(format_args!("{found} found, {expected} expected")))
}
