//! A look-up by time finds the first record at or after that time, or says that there is none.

use tackboard_logic::shard::interface::LogDescription;

use crate::model::Partition;

/// `found` is the offset and timestamp that the broker came up with.
pub fn time_lookup(
    partition: &Partition,
    timestamp: i64,
    found: Option<(i64, i64)>,
    description: &LogDescription,
) {
    let visible = description.log_start_offset.0..description.high_watermark.0;
    let records = partition.sequence.iter().flat_map(|placed| {
        let timestamps = placed.batch.timestamps.iter().copied();
        (placed.base..).zip(timestamps)
    });
    let mut candidates =
        records.filter(|(offset, at)| visible.contains(offset) && *at >= timestamp);
    let expected = candidates.next();
    let rotten = partition.sequence.iter().any(|placed| placed.rotten);
    assert!(
        found == expected || rotten,
        "partition {}: the first record at or after {timestamp} is {expected:?}, found was {found:?} in {description:?}",
        partition.number
    );
}
