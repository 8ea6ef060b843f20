//! What must hold of a batch before the broker takes it, or believes its own disk.

use super::header::at;
use super::{BatchHeader, BatchView, HEADER_LENGTH};
use crate::DecodeError;

/// The fewest bytes a record takes: its length, attributes, two deltas, a null key, a null value, no headers.
const RECORD_LENGTH_MIN: usize = 7;

/// A batch that has passed [`check_batch`] or [`check_stored_batch`]; there is no other way to one.
#[derive(Clone, Copy, Debug)]
pub struct CheckedBatch<'a> {
    view: BatchView<'a>,
}

impl<'a> CheckedBatch<'a> {
    /// The batch's header.
    pub fn header(&self) -> &BatchHeader {
        self.view.header()
    }

    /// The batch's bytes, all of them and no more.
    pub fn bytes(&self) -> &'a [u8] {
        self.view.bytes()
    }

    /// For reading its records.
    pub fn view(&self) -> BatchView<'a> {
        self.view
    }
}

/// Checks the first batch in `bytes` as a broker does before it appends it.
///
/// Demanded: whole, at most `batch_bytes_max` bytes long, magic 2, checksum right, a known codec, at least
/// one record and as many as the last offset delta says, no bit that only brokers set, and sequence numbers
/// if there is a producer id. Records are not walked, compressed or not: nothing on the way of a produce
/// looks into them. Base offset and leader epoch are the broker's to set, so what they say is ignored.
pub fn check_batch(bytes: &[u8], batch_bytes_max: u32) -> Result<CheckedBatch<'_>, DecodeError> {
    let batch = check_stored_batch(bytes, batch_bytes_max)?;
    let header = batch.header();
    check_attributes(header)?;
    check_producer(header)?;
    check_counts(header)?;
    Ok(batch)
}

/// Checks the first batch in `bytes` as far as it protects itself: whole, at most `batch_bytes_max` bytes
/// long, magic 2, checksum right, an end that does not lie before its beginning.
///
/// This is what a scan of a log demands: markers, and batches that compaction has thinned out, pass.
pub fn check_stored_batch(
    bytes: &[u8],
    batch_bytes_max: u32,
) -> Result<CheckedBatch<'_>, DecodeError> {
    let header = BatchHeader::read(bytes)?;
    let length = header.total_length();
    if length > batch_bytes_max as usize {
        let error = DecodeError::too_large("record batch is larger than allowed", at::BATCH_LENGTH);
        return Err(error.with_detail(format_args!("{length} bytes, {batch_bytes_max} allowed")));
    }
    let Some(batch) = bytes.get(..length) else {
        let error = DecodeError::truncated("record batch", at::BATCH_LENGTH);
        return Err(error.with_detail(format_args!("{length} bytes wanted, {} left", bytes.len())));
    };
    let view = BatchView::from_parts(header, batch);
    view.verify_crc()?;
    if header.last_offset_delta < 0 || header.record_count < 0 {
        let error = DecodeError::invalid(
            "last offset delta or record count is negative",
            at::LAST_OFFSET_DELTA,
        );
        let detail = format_args!(
            "last offset delta {}, record count {}",
            header.last_offset_delta, header.record_count
        );
        return Err(error.with_detail(detail));
    }
    Ok(CheckedBatch { view })
}

fn check_attributes(header: &BatchHeader) -> Result<(), DecodeError> {
    let attributes = header.attributes;
    header.compression()?;
    let forbidden = [
        (
            attributes.is_control(),
            "control batches come from brokers only",
        ),
        (
            attributes.is_log_append_time(),
            "the bit for append time is for brokers to set",
        ),
        (
            attributes.has_delete_horizon(),
            "the bit for a delete horizon is for brokers to set",
        ),
        (attributes.is_transactional(), "transactions are not served"),
        (
            attributes.unknown_bits() != 0,
            "a bit of the attributes is not known",
        ),
    ];
    match forbidden.iter().find(|(found, _)| *found) {
        Some((_, what)) => {
            let error = DecodeError::invalid(what, at::ATTRIBUTES);
            Err(error.with_detail(format_args!("attributes {:#06x}", attributes.0)))
        }
        None => Ok(()),
    }
}

fn check_producer(header: &BatchHeader) -> Result<(), DecodeError> {
    if header.is_idempotent() && (header.base_sequence < 0 || header.producer_epoch.0 < 0) {
        let error = DecodeError::invalid(
            "a producer id needs a producer epoch and a base sequence",
            at::PRODUCER_ID,
        );
        let (epoch, sequence) = (header.producer_epoch, header.base_sequence);
        return Err(error.with_detail(format_args!(
            "producer epoch {epoch}, base sequence {sequence}"
        )));
    }
    Ok(())
}

fn check_counts(header: &BatchHeader) -> Result<(), DecodeError> {
    let counted = i64::from(header.last_offset_delta) + 1;
    if header.record_count < 1 || i64::from(header.record_count) != counted {
        let error = DecodeError::invalid(
            "record count disagrees with the last offset delta",
            at::RECORD_COUNT,
        );
        let detail = format_args!(
            "record count {}, last offset delta {}",
            header.record_count, header.last_offset_delta
        );
        return Err(error.with_detail(detail));
    }
    let records_length = header.total_length() - HEADER_LENGTH;
    let is_plain = header.attributes.compression_id() == 0;
    if is_plain && (header.record_count as usize).saturating_mul(RECORD_LENGTH_MIN) > records_length
    {
        let error =
            DecodeError::invalid("more records than the batch has room for", at::RECORD_COUNT);
        return Err(error.with_detail(format_args!(
            "{} in {records_length} bytes",
            header.record_count
        )));
    }
    Ok(())
}
