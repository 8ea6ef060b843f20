//! Records that were deleted on request don't come back, and none go that nobody asked to go.

use tackboard_logic::shard::interface::{Refusal, RefusalDetail};
use tackboard_schema::ErrorCode;

use crate::model::Partition;

/// Somebody is told that the log begins at `log_start`.
pub fn records_deleted(partition: &mut Partition, asked: Option<i64>, log_start: i64) {
    assert!(
        asked.is_none_or(|asked| asked <= log_start) && log_start <= partition.end,
        "partition {}: {asked:?} was asked for, the log begins at {log_start} and ends at {}",
        partition.number,
        partition.end
    );
    partition.start_promised = partition.start_promised.max(log_start);
}

/// A deletion was refused.
pub fn deletion_refused(partition: &Partition, refusal: &Refusal, faults_injected: bool) {
    let allowed = match refusal.detail {
        RefusalDetail::StartOutOfRange {
            offset,
            high_watermark,
        } => offset.0 < 0 || offset > high_watermark,
        RefusalDetail::Truncating => partition.was_cut,
        RefusalDetail::ShuttingDown => refusal.code == ErrorCode::ShuttingDown,
        RefusalDetail::Deleted | RefusalDetail::UnknownLog => partition.deleted,
        RefusalDetail::Fenced(_) | RefusalDetail::OutcomeUnknown(_) => faults_injected,
        _ => false,
    };
    assert!(
        allowed,
        "partition {}: a deletion is refused: {refusal:?}",
        partition.number
    );
}
