//! What all files have in common: letters, version, checksum, and the three states of reading.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 8 bytes | letters that name the kind of file |
//! | 8 | u32 | version of the format |
//! | 12 | u32 | CRC-32C of everything that the structure covers except these four bytes |

use crate::{DecodeError, cursor::Cursor};

/// The unit of direct I/O that the formats are laid out for.
pub const BLOCK_LENGTH: usize = 4096;

/// Length of letters, version and checksum.
pub(super) const ENVELOPE_LENGTH: usize = 16;

const CRC_AT: usize = 12;

/// What is found where a structure should be. Only `Empty` means that it was never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored<T> {
    /// No file, an empty file, or zeros only.
    Empty,
    /// Intact.
    Present(T),
    /// Something is there, but it cannot be read: damage, or a newer version's writing. Never to be taken
    /// for a fresh start.
    Unreadable(DecodeError),
}

impl<T> Stored<T> {
    /// Reads `bytes` with `decode`, unless they were never written.
    pub(super) fn read(
        bytes: Option<&[u8]>,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Self {
        let bytes = bytes.unwrap_or_default();
        if bytes.iter().all(|byte| *byte == 0) {
            return Stored::Empty;
        }
        match decode(bytes) {
            Ok(value) => Stored::Present(value),
            Err(error) => Stored::Unreadable(error),
        }
    }
}

/// Writes letters, version and checksum over the first 16 bytes of `covered`.
pub(super) fn seal(covered: &mut [u8], letters: &[u8; 8], version: u32) {
    covered[..8].copy_from_slice(letters);
    covered[8..CRC_AT].copy_from_slice(&version.to_le_bytes());
    let crc = checksum(covered);
    covered[CRC_AT..ENVELOPE_LENGTH].copy_from_slice(&crc.to_le_bytes());
}

/// Checks letters, version and checksum of `covered`; the cursor that is returned stands behind them.
pub(super) fn open<'a>(
    covered: &'a [u8],
    letters: &[u8; 8],
    version: u32,
) -> Result<Cursor<'a>, DecodeError> {
    let mut cursor = Cursor::new(covered);
    let found = cursor.array::<8>("letters of a file")?;
    if found != *letters {
        let error = DecodeError::corrupt("letters of a file", 0);
        let (found, letters) = (found.escape_ascii(), letters.escape_ascii());
        return Err(error.with_detail(format_args!("\"{found}\" found, \"{letters}\" expected")));
    }
    let found = cursor.u32_le("version of a file")?;
    if found != version {
        let error = DecodeError::invalid("version of a file is not one that this program reads", 8);
        return Err(error.with_detail(format_args!("{found} found, {version} expected")));
    }
    let found = cursor.u32_le("checksum of a file")?;
    let computed = checksum(covered);
    if found != computed {
        let error = DecodeError::corrupt("checksum of a file does not match", CRC_AT);
        return Err(error.with_detail(format_args!(
            "{found:#010x} found, {computed:#010x} computed"
        )));
    }
    Ok(cursor)
}

fn checksum(covered: &[u8]) -> u32 {
    crc32c::crc32c_append(
        crc32c::crc32c(&covered[..CRC_AT]),
        &covered[ENVELOPE_LENGTH..],
    )
}
