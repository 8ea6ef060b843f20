//! A batch is refused only for a reason that is there.

use tackboard_logic::shard::interface::Refusal;
use tackboard_schema::ErrorCode;

use crate::model::{Batch, Expected, Partition};

/// An append was refused, or its outcome is unknown.
pub fn refusal(
    partition: &Partition,
    batch: &Batch,
    refusal: &Refusal,
    expected: Option<&[Expected]>,
    faults_injected: bool,
) {
    let number = partition.number;
    let is_due = |outcome| expected.is_some_and(|expected| expected.contains(&outcome));
    let allowed = match refusal.code {
        ErrorCode::OutOfOrderSequenceNumber | ErrorCode::DuplicateSequenceNumber => {
            is_due(Expected::OutOfOrder)
        }
        ErrorCode::InvalidProducerEpoch => is_due(Expected::StaleEpoch),
        ErrorCode::MessageTooLarge => batch.bytes.len() as u64 > partition.batch_bytes_max(),
        ErrorCode::UnknownTopicOrPartition => partition.deleted,
        ErrorCode::NotLeaderOrFollower => partition.was_cut,
        ErrorCode::KafkaStorageError => faults_injected,
        ErrorCode::StorageFull
        | ErrorCode::StorageFullAfterAppend
        | ErrorCode::OverBudget
        | ErrorCode::ShuttingDown
        | ErrorCode::RequestTimedOut => true,
        _ => false,
    };
    assert!(
        allowed,
        "partition {number}: batch {:?} of {} bytes is refused: {refusal:?}, but {expected:?} was due",
        batch.stamp,
        batch.bytes.len()
    );
}
