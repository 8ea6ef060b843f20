//! A log that is cut ends at the cut: all that was below is there and durable, and nothing above was acknowledged since
//! it began.

use tackboard_logic::log::recovery::RecoveredLog;
use tackboard_logic::shard::interface::{Refusal, RefusalDetail};
use tackboard_schema::ErrorCode;

use super::recovered::{contents, kept_from};
use crate::disk::Disk;
use crate::model::Partition;

/// The files were cut. Returns how many batches went.
pub fn cut(partition: &mut Partition, recovered: &RecoveredLog, disk: &mut Disk) -> usize {
    let number = partition.number;
    let cutting = partition
        .cutting
        .unwrap_or_else(|| panic!("partition {number} is cut, which nobody asked for"));
    let (start, end) = (recovered.log_start_offset.0, recovered.log_end_offset.0);
    assert_eq!(
        end, cutting.at,
        "partition {number}: a log is cut where its batch begins: {recovered:?}"
    );
    let rotten = partition.sequence.iter().any(|placed| placed.rotten);
    assert!(
        rotten || (start == partition.log_start && recovered.damaged.is_empty()),
        "partition {number} begins at {}, behind a cut it is {recovered:?}",
        partition.log_start
    );
    assert!(
        recovered.torn_tail_at.is_none(),
        "partition {number}: what is cut off is no torn tail: {recovered:?}"
    );
    let gone = partition.cut(end);
    let kept_from = kept_from(recovered);
    partition.forget_below(kept_from);
    partition.note_known_from(kept_from);
    contents(partition, start, disk);
    gone
}

/// A batch is acknowledged while its log may be cut.
pub fn not_cut_off(partition: &Partition, base: i64) {
    let cut = partition.cutting.map(|cutting| cutting.at);
    assert!(
        cut.is_none_or(|at| base < at),
        "partition {}: the batch at {base} is acknowledged, and the log is being cut at {cut:?}",
        partition.number
    );
}

/// A cut at `offset` was refused.
pub fn cut_refused(
    partition: &Partition,
    offset: i64,
    below_high_watermark: bool,
    refusal: &Refusal,
    faults_injected: bool,
) {
    let allowed = match refusal.detail {
        RefusalDetail::CutBelowHighWatermark { high_watermark, .. } => {
            !below_high_watermark && offset < high_watermark.0
        }
        RefusalDetail::CutOutOfRange {
            log_start_offset,
            log_end_offset,
            ..
        } => offset < log_start_offset.0 || offset > log_end_offset.0,
        RefusalDetail::CutBelowStart {
            log_start_offset, ..
        } => partition.cut_at(offset) < log_start_offset.0,
        RefusalDetail::Truncating => partition.was_cut,
        RefusalDetail::NoBoundary => partition.sequence.iter().any(|placed| placed.rotten),
        RefusalDetail::ShuttingDown => refusal.code == ErrorCode::ShuttingDown,
        RefusalDetail::Deleted | RefusalDetail::UnknownLog => partition.deleted,
        RefusalDetail::Fenced(_)
        | RefusalDetail::CutFailed(_)
        | RefusalDetail::CutUnfinished(_) => faults_injected,
        _ => false,
    };
    assert!(
        allowed,
        "partition {}: a cut at {offset} is refused: {refusal:?}",
        partition.number
    );
}
