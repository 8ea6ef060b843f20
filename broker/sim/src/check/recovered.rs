//! What recovery brings back is the beginning of what was placed, and at least what was promised.

use tackboard_logic::log::recovery::{RecoveredLog, RestartClass};

use super::acknowledged::locate;
use super::retention;
use crate::disk::Disk;
use crate::model::Partition;

/// A log was recovered after an end of that class. Takes its word for what is left; returns how many batches are lost.
pub fn recovered(
    partition: &mut Partition,
    class: RestartClass,
    recovered: &RecoveredLog,
    latest_ms: i64,
    disk: &mut Disk,
) -> usize {
    let number = partition.number;
    let (start, end) = (recovered.log_start_offset.0, recovered.log_end_offset.0);
    let promised = match std::mem::take(&mut partition.lost_power) {
        false => partition.survives_kill,
        true => partition.survives_power_loss,
    };
    // A truncation under way may have come to its end, or to nothing.
    let cut = partition.cutting.take().map(|cutting| cutting.at);
    let promised = if cut == Some(end) { end } else { promised };
    let rotten = partition.sequence.iter().any(|placed| placed.rotten);
    assert!(
        rotten || recovered.damaged.is_empty(),
        "partition {number}: damage is reported where nothing rotted: {recovered:?}"
    );
    assert!(
        end >= promised,
        "partition {number}: everything below {promised} was promised to survive {class:?}, recovered: {recovered:?}"
    );
    assert!(
        end <= partition.end && partition.is_boundary(end),
        "partition {number}: the recovered end {end} isn't the end of a batch, or beyond {}",
        partition.end
    );
    let first = partition.first();
    assert!(
        start >= first.min(end),
        "partition {number}: recovered from {start}, but files below {first} are deleted"
    );
    if !rotten {
        retention::log_start_moves(partition, start, latest_ms);
    }
    assert!(
        start >= partition.start_promised,
        "partition {number}: records below {} were deleted, recovered: {recovered:?}",
        partition.start_promised
    );
    let lost = partition.lose_from(end);
    assert!(
        class != RestartClass::Clean || lost == 0,
        "partition {number}: {lost} batches are lost after a clean end"
    );
    // The ledger has the start, so recovery removed the files below.
    let kept_from = kept_from(recovered);
    partition.forget_below(kept_from);
    partition.note_known_from(kept_from);
    contents(partition, start, disk);
    partition.high_watermark = start;
    partition.log_start = start;
    partition.seen_at.clear();
    lost
}

/// Where the files begin. The log's start may lie within the first of them, behind records that were deleted.
pub(super) fn kept_from(recovered: &RecoveredLog) -> i64 {
    let first = recovered.segments.first();
    first.map_or(recovered.log_start_offset.0, |first| first.base.0.0)
}

/// All that is left lies in its files and outlives a power loss, since it may be read at once (S4).
pub(super) fn contents(partition: &mut Partition, start: i64, disk: &mut Disk) {
    let number = partition.number;
    for index in partition.index_from(start)..partition.sequence.len() {
        let placed = &partition.sequence[index];
        if placed.rotten {
            continue;
        }
        let Some((file, at)) = locate(partition, index, disk) else {
            panic!(
                "partition {number}: after recovery no segment holds offset {}",
                placed.base
            );
        };
        assert!(
            file.borrow().holds_after_power_loss(at, &placed.bytes),
            "partition {number}: after recovery a power loss would undo the batch at offset {}",
            placed.base
        );
        partition.sequence[index].seen_durable = true;
    }
}
