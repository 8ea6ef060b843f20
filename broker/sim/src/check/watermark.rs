//! Within one process neither the high watermark nor the log start moves back, and log start ≤ high watermark ≤ end.

use super::retention;
use crate::model::Partition;

/// Both were reported.
pub fn watermarks(partition: &mut Partition, high_watermark: i64, log_start: i64, wall_ms: i64) {
    let number = partition.number;
    assert!(
        log_start <= high_watermark && high_watermark <= partition.end,
        "partition {number}: log start {log_start}, high watermark {high_watermark}, end {}",
        partition.end
    );
    assert!(
        high_watermark >= partition.high_watermark,
        "partition {number}: the high watermark falls from {} to {high_watermark}",
        partition.high_watermark
    );
    assert!(
        log_start >= partition.log_start,
        "partition {number}: the log start falls from {} to {log_start}",
        partition.log_start
    );
    retention::log_start_moves(partition, log_start, wall_ms);
    partition.high_watermark = high_watermark;
    partition.log_start = log_start;
}

/// The end was reported.
pub fn log_end(partition: &Partition, log_end: i64) {
    assert_eq!(
        log_end, partition.end,
        "partition {}: the end is where the last batch was placed",
        partition.number
    );
}
