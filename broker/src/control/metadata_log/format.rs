//! The bytes of a metadata log and of a metadata snapshot.
//!
//! All numbers are little-endian. A log is a header of [`LOG_HEADER_LENGTH`] bytes and records behind each
//! other:
//!
//! | log header | bytes |  | record | bytes |
//! |---|---|---|---|---|
//! | `TACKMLOG` | 0..8 | | `TMRC` | 0..4 |
//! | format, 1 | u16 at 8 | | payload length | u32 at 4 |
//! | zeros | 10..16 | | version | u64 at 8 |
//! | cluster id | 16..32 | | durable end | u64 at 16 |
//! | base version | u64 at 32 | | zeros | 24..28 |
//! | zeros | 40..60 | | CRC-32C of 0..28 and the payload | u32 at 28 |
//! | CRC-32C of 0..60 | u32 at 60 | | payload, then zeros up to a multiple of 8 | 32.. |
//!
//! A snapshot is a header of [`SNAPSHOT_HEADER_LENGTH`] bytes and the payload:
//!
//! | snapshot header | bytes |
//! |---|---|
//! | `TACKMSNP` | 0..8 |
//! | format, 1 | u16 at 8 |
//! | zeros | 10..16 |
//! | version | u64 at 16 |
//! | payload length | u64 at 24 |
//! | zeros | 32..56 |
//! | CRC-32C of the payload | u32 at 56 |
//! | CRC-32C of 0..60 | u32 at 60 |
//!
//! *Durable end* is the position up to which the log had been synced before the record was written.
//! A valid record whose durable end lies behind a damaged place proves that the place had been whole:
//! it was not torn by a crash but damaged later, and must not be cut off.

use std::ops::Range;

use tackboard_logic::metadata::{COMMAND_BYTES_MAX, ClusterId};

pub(crate) const LOG_HEADER_LENGTH: usize = 64;
pub(crate) const SNAPSHOT_HEADER_LENGTH: usize = 64;
pub(crate) const RECORD_HEADER_LENGTH: usize = 32;

const LOG_MAGIC: &[u8; 8] = b"TACKMLOG";
const SNAPSHOT_MAGIC: &[u8; 8] = b"TACKMSNP";
const RECORD_MAGIC: &[u8; 4] = b"TMRC";
const FORMAT: u16 = 1;
const ALIGNMENT: usize = 8;

/// Looking for proof behind a damaged place reads at most this many bytes, however the bytes are made up.
const PROOF_WORK_MAX: usize = 256 << 20;

/// Appends the header of a log.
pub(crate) fn write_log_header(out: &mut Vec<u8>, cluster_id: ClusterId, base_version: u64) {
    let start = out.len();
    out.extend_from_slice(LOG_MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    out.extend_from_slice(&cluster_id.0);
    out.extend_from_slice(&base_version.to_le_bytes());
    out.extend_from_slice(&[0; 20]);
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
}

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub(crate) cluster_id: ClusterId,
    pub(crate) base_version: u64,
}

/// Reads the header of a log; the error says what is wrong with it.
pub(crate) fn read_log_header(bytes: &[u8]) -> Result<LogHeader, &'static str> {
    let header = bytes
        .first_chunk::<LOG_HEADER_LENGTH>()
        .ok_or("is shorter than its header")?;
    check_header(header, LOG_MAGIC)?;
    Ok(LogHeader {
        cluster_id: ClusterId(array(header, 16)),
        base_version: u64_at(header, 32),
    })
}

/// Appends the header of a snapshot and the snapshot itself.
pub(crate) fn write_snapshot(out: &mut Vec<u8>, version: u64, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(SNAPSHOT_MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(&[0; 24]);
    out.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
}

/// Reads a snapshot: its version and its payload.
pub(crate) fn read_snapshot(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let (header, payload) = bytes
        .split_first_chunk::<SNAPSHOT_HEADER_LENGTH>()
        .ok_or("is shorter than its header")?;
    check_header(header, SNAPSHOT_MAGIC)?;
    if u64_at(header, 24) != payload.len() as u64 {
        return Err("has another length than its header says");
    }
    if u32_at(header, 56) != crc32c::crc32c(payload) {
        return Err("does not match its checksum");
    }
    Ok((u64_at(header, 16), payload))
}

/// Appends a record. `durable_end` is the position in the file that was synced last.
pub(crate) fn write_record(out: &mut Vec<u8>, version: u64, durable_end: u64, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(RECORD_MAGIC);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&durable_end.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out[start..]), payload);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

/// A record in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) version: u64,
    /// Where its payload stands in the bytes that were scanned.
    pub(crate) payload: Range<usize>,
}

/// What a scan of a log found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Whole records, versions without a gap.
    pub(crate) records: Vec<Record>,
    /// Where the last of them ends.
    pub(crate) end: usize,
    pub(crate) tail: Tail,
}

/// What stands behind the last whole record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing.
    Clean,
    /// The rest of a write that a crash cut short.
    Torn,
    /// Bytes that had been whole. The text says how that is known.
    Damaged(&'static str),
}

/// Reads the records behind the header. Lengths are checked before they are believed.
pub(crate) fn scan(bytes: &[u8], base_version: u64) -> Scan {
    let mut records = Vec::new();
    let mut at = LOG_HEADER_LENGTH;
    let mut version = base_version;
    while at < bytes.len() {
        let Some(record) = read_record(bytes, at) else {
            return Scan {
                records,
                end: at,
                tail: judge_tail(bytes, at),
            };
        };
        if Some(record.version) != version.checked_add(1) || record.durable_end > at as u64 {
            let tail = Tail::Damaged("a valid record does not follow the one before it");
            return Scan {
                records,
                end: at,
                tail,
            };
        }
        version = record.version;
        at = record.end;
        records.push(Record {
            version,
            payload: record.payload,
        });
    }
    Scan {
        records,
        end: at,
        tail: Tail::Clean,
    }
}

/// Whether something behind a damaged place proves that the place had been synced.
fn judge_tail(bytes: &[u8], damaged_at: usize) -> Tail {
    let mut work = 0;
    for at in (damaged_at..bytes.len()).step_by(ALIGNMENT) {
        if !bytes[at..].starts_with(RECORD_MAGIC) {
            continue;
        }
        let claimed = bytes
            .get(at + 4..at + 8)
            .map_or(0, |length| u32_at(length, 0) as usize);
        work += claimed.min(COMMAND_BYTES_MAX) + RECORD_HEADER_LENGTH;
        if work > PROOF_WORK_MAX {
            return Tail::Damaged("too much behind it looks like records");
        }
        if read_record(bytes, at).is_some_and(|record| record.durable_end > damaged_at as u64) {
            return Tail::Damaged("a later record was written after it had been synced");
        }
    }
    Tail::Torn
}

struct ReadRecord {
    version: u64,
    durable_end: u64,
    payload: Range<usize>,
    end: usize,
}

fn read_record(bytes: &[u8], at: usize) -> Option<ReadRecord> {
    let header: &[u8; RECORD_HEADER_LENGTH] = bytes.get(at..)?.first_chunk()?;
    let length = u32_at(header, 4) as usize;
    if !header.starts_with(RECORD_MAGIC) || length > COMMAND_BYTES_MAX || u32_at(header, 24) != 0 {
        return None;
    }
    let payload = at + RECORD_HEADER_LENGTH..at + RECORD_HEADER_LENGTH + length;
    let end = payload.end.next_multiple_of(ALIGNMENT);
    let padding = bytes.get(payload.end..end)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..28]), bytes.get(payload.clone())?);
    if crc != u32_at(header, 28) || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    Some(ReadRecord {
        version: u64_at(header, 8),
        durable_end: u64_at(header, 16),
        payload,
        end,
    })
}

fn check_header(header: &[u8; 64], magic: &[u8; 8]) -> Result<(), &'static str> {
    if !header.starts_with(magic) {
        return Err("does not begin as such a file does");
    }
    if u32_at(header, 60) != crc32c::crc32c(&header[..60]) {
        return Err("has a header that does not match its checksum");
    }
    if u16::from_le_bytes(array(header, 8)) != FORMAT {
        return Err("has a format that this version does not know");
    }
    Ok(())
}

/// `N` bytes at a place that the caller knows to exist.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..]
        .first_chunk()
        .expect("fields lie within their header")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log_of(batches: &[&[&[u8]]]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        write_log_header(&mut bytes, ClusterId([7; 16]), 10);
        let mut version = 10;
        let mut ends = vec![bytes.len()];
        for batch in batches {
            let durable_end = bytes.len() as u64;
            for payload in *batch {
                version += 1;
                write_record(&mut bytes, version, durable_end, payload);
                ends.push(bytes.len());
            }
        }
        (bytes, ends)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (bytes, _) = log_of(&[&[b"one"], &[b"", b"three"]]);
        let header = read_log_header(&bytes).expect("valid");
        assert_eq!(
            (header.cluster_id, header.base_version),
            (ClusterId([7; 16]), 10)
        );
        let scan = scan(&bytes, 10);
        assert_eq!(scan.tail, Tail::Clean);
        let payloads: Vec<_> = scan
            .records
            .iter()
            .map(|record| &bytes[record.payload.clone()])
            .collect();
        assert_eq!(payloads, [&b"one"[..], b"", b"three"]);
        assert_eq!(scan.records[2].version, 13);
    }

    #[test]
    fn a_log_cut_at_any_byte_keeps_its_whole_records_and_is_torn() {
        let (bytes, ends) = log_of(&[&[b"one"], &[b"two and more", b"three"], &[b"four"]]);
        for cut in LOG_HEADER_LENGTH..bytes.len() {
            let scan = scan(&bytes[..cut], 10);
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(scan.records.len(), whole, "cut at {cut}");
            let expected = if ends.contains(&cut) {
                Tail::Clean
            } else {
                Tail::Torn
            };
            assert_eq!(scan.tail, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_byte_is_torn_in_the_last_batch_and_damage_before_it() {
        let (bytes, ends) = log_of(&[&[b"one"], &[b"two"], &[b"three", b"four"]]);
        let last_batch_start = ends[2];
        for at in LOG_HEADER_LENGTH..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            let scan = scan(&damaged, 10);
            assert!(scan.end <= at, "byte {at}");
            let is_damage = matches!(scan.tail, Tail::Damaged(_));
            assert_eq!(
                is_damage,
                at < last_batch_start,
                "byte {at}: {:?}",
                scan.tail
            );
        }
    }

    #[test]
    fn snapshots_refuse_any_changed_byte_and_any_cut() {
        let mut bytes = Vec::new();
        write_snapshot(&mut bytes, 42, b"the whole state");
        assert_eq!(read_snapshot(&bytes), Ok((42, &b"the whole state"[..])));
        for at in 0..bytes.len() {
            assert!(read_snapshot(&bytes[..at]).is_err(), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(read_snapshot(&damaged).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_scanned_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let _ = read_log_header(&bytes);
            let _ = read_snapshot(&bytes);
            let _ = scan(&bytes, 0);
        }

        #[test]
        fn records_with_wild_fields_are_scanned_without_a_panic(
            length in any::<u32>(), version in any::<u64>(), durable_end in any::<u64>(), cut in 0usize..128,
        ) {
            let mut bytes = Vec::new();
            write_log_header(&mut bytes, ClusterId([0; 16]), 0);
            write_record(&mut bytes, version, durable_end, b"payload");
            bytes[LOG_HEADER_LENGTH + 4..LOG_HEADER_LENGTH + 8].copy_from_slice(&length.to_le_bytes());
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = scan(&bytes, u64::MAX);
            let _ = scan(&bytes, 0);
        }
    }
}
