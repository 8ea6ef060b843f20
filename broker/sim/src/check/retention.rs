//! Retention takes what is old or too much, whole segments from the front, and nothing at or above the high watermark.

use tackboard_logic::shard::interface::RetentionClock;

use crate::disk::{Disk, FileName, FolderName};
use crate::model::Partition;

/// Time that may lie between deciding and being seen, and between a batch and the wall clock that the log noted for it.
const SLACK_MS: i64 = 2_000;

/// The log start moves to `log_start`: what is below must be due.
pub(super) fn log_start_moves(partition: &Partition, log_start: i64, wall_ms: i64) {
    let gone = partition
        .sequence
        .iter()
        .take_while(|placed| placed.base < log_start);
    let bytes_left = partition.sequence.back().map_or(0, |last| {
        let first = partition.holding(log_start).unwrap_or(last);
        partition.bytes_ever - first.bytes_before
    });
    let config = &partition.config;
    if config
        .retention_bytes
        .is_some_and(|bytes| bytes_left >= bytes)
    {
        return;
    }
    for placed in gone {
        let age_ms = match config.retention_clock {
            RetentionClock::Append => wall_ms - placed.appended_ms,
            RetentionClock::Record => {
                let newest = placed.batch.timestamps.iter().copied().max().unwrap_or(0);
                wall_ms - newest.min(placed.appended_ms)
            }
        };
        let due = config
            .retention_ms
            .is_some_and(|retention_ms| age_ms + SLACK_MS >= retention_ms);
        assert!(
            due,
            "partition {}: retention took offset {} at the age of {age_ms} ms with {bytes_left} bytes left: {config:?}",
            partition.number, placed.base
        );
    }
}

/// The segment at `base` is about to be deleted. Returns the offset below which files are gone then.
pub fn deletion(partition: &Partition, base: i64, disk: &mut Disk) -> i64 {
    let number = partition.number;
    let bases = disk
        .folder(FolderName::Log(number))
        .names()
        .filter_map(|name| match name {
            FileName::Log(other) if other > base => Some(other),
            _ => None,
        });
    let Some(end) = bases.min() else {
        panic!("partition {number}: the active segment {base} is deleted");
    };
    assert!(
        partition.high_watermark == 0 || end <= partition.end,
        "partition {number}: segment {base} is deleted, which ends at {end}"
    );
    end
}
