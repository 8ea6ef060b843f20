//! What a consumer gets is what was placed at these offsets, whole and in order, below the high watermark, and stays.

use tackboard_logic::shard::interface::FetchAnswer;
use tackboard_schema::record_batch::{BatchIterator, check_stored_batch};
use tackboard_schema::{Durability, ErrorCode};

use super::acknowledged::survives_power_loss;
use crate::disk::Disk;
use crate::model::Partition;

/// Bytes were served from `offset`. Returns where to go on.
pub fn served(
    partition: &mut Partition,
    offset: i64,
    high_watermark: i64,
    bytes_max: u32,
    bytes: &[u8],
    disk: &mut Disk,
) -> i64 {
    let number = partition.number;
    let mut rest = bytes;
    let mut next = offset;
    while !rest.is_empty() {
        let batch = match check_stored_batch(rest, u32::MAX) {
            Ok(batch) => batch,
            Err(error) => {
                panic!("partition {number}: bad bytes are served at offset {next}: {error}")
            }
        };
        let header = batch.header();
        let first = rest.len() == bytes.len();
        let in_place = if first {
            header.base_offset.0 <= offset
        } else {
            header.base_offset.0 == next
        };
        assert!(
            in_place,
            "partition {number}: {} is served where {next} follows",
            header.base_offset
        );
        assert!(
            header.next_offset().0 > next,
            "partition {number}: {next} was asked for, {header:?} came"
        );
        compare(partition, header.base_offset.0, batch.bytes());
        next = header.next_offset().0;
        rest = &rest[batch.bytes().len()..];
        let excess = bytes.len() - rest.len() > bytes_max as usize;
        assert!(
            first || !excess,
            "partition {number}: {} bytes for {bytes_max}",
            bytes.len()
        );
    }
    assert!(
        next > offset,
        "partition {number}: nothing is served where something is"
    );
    assert!(
        next <= high_watermark,
        "partition {number}: {next} is above the high watermark {high_watermark}"
    );
    debug_assert!(BatchIterator::new(bytes).count() > 0);
    keep_what_was_read(partition, next, disk);
    next
}

fn compare(partition: &Partition, base: i64, bytes: &[u8]) {
    let number = partition.number;
    // A read that was under way when retention took the segment.
    if base < partition.first() {
        return;
    }
    let Some(placed) = partition.holding(base) else {
        panic!("partition {number}: offset {base} is served, where nothing is");
    };
    assert_eq!(
        placed.base, base,
        "partition {number}: a batch is served at another offset"
    );
    assert!(
        placed.bytes.as_slice() == bytes,
        "partition {number}: another batch is served at offset {base}"
    );
}

/// What was read once must not be gone later, within the durability of the topic.
fn keep_what_was_read(partition: &mut Partition, next: i64, disk: &mut Disk) {
    if partition.config.durability == Durability::Fsync {
        survives_power_loss(partition, next, disk);
        partition.survives_power_loss = partition.survives_power_loss.max(next);
    }
    partition.survives_kill = partition.survives_kill.max(next);
}

/// An offset was refused.
pub fn out_of_range(partition: &Partition, offset: i64, answer: &FetchAnswer) {
    let (start, high_watermark) = (answer.log_start_offset.0, answer.high_watermark.0);
    assert!(
        offset < start || offset > high_watermark,
        "partition {}: offset {offset} is refused, log start {start}, high watermark {high_watermark}",
        partition.number
    );
}

/// A fetch was refused for another reason.
pub fn fetch_error(partition: &Partition, code: ErrorCode, faults_injected: bool) {
    let allowed = match code {
        ErrorCode::UnknownTopicOrPartition => partition.deleted,
        ErrorCode::NotLeaderOrFollower => partition.was_cut,
        ErrorCode::KafkaStorageError | ErrorCode::CorruptMessage => faults_injected,
        ErrorCode::ShuttingDown => true,
        _ => false,
    };
    assert!(
        allowed,
        "partition {}: a fetch is refused with {code}",
        partition.number
    );
}
