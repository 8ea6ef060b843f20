//! Offsets are dense, no two batches share one, and an idempotent producer's batches come once and in their order.

use tackboard_schema::{LeaderEpoch, Offset};

use crate::model::{Batch, Expected, Partition};

/// After half a day of silence, by a clock that jumps, a producer may be forgotten or not.
const PRODUCER_MAY_EXPIRE_MS: u64 = 12 * 3_600_000;

/// A batch is about to be put at the end of a log.
pub fn placement(
    partition: &Partition,
    batch: &Batch,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    expected: Option<&[Expected]>,
) {
    let number = partition.number;
    assert_eq!(
        base_offset.0, partition.end,
        "partition {number}: offsets are dense"
    );
    assert_eq!(
        leader_epoch.0, partition.leader_epoch,
        "partition {number}: batches carry the leader's epoch"
    );
    let Some(expected) = expected else {
        panic!("partition {number}: a batch is placed in a later step than the one that took it");
    };
    assert!(
        expected.contains(&Expected::Append),
        "partition {number}: batch {:?} is placed at {base_offset}, but {expected:?} was due",
        batch.stamp
    );
}

/// Whether the producer was silent for so long that the log may have forgotten it.
pub fn producer_may_be_forgotten(partition: &Partition, batch: &Batch, wall_ms: i64) -> bool {
    let known = batch
        .stamp
        .and_then(|stamp| partition.producers.get(&stamp.id));
    known.is_some_and(|known| wall_ms.abs_diff(known.last_append_ms) >= PRODUCER_MAY_EXPIRE_MS)
}
