//! Retention takes what is old or too much, whole segments from the front, and nothing at or above the high watermark.
//! What somebody asked to go is another matter.

use tackboard_logic::shard::interface::{LogConfig, RetentionClock};

use crate::disk::{Disk, FileName, FolderName};
use crate::model::{Partition, Placed};

/// Time that may lie between deciding and being seen, and between a batch and the wall clock that the log noted for it.
const SLACK_MS: i64 = 2_000;

/// The log start moves to `log_start`: what is below must be due.
pub(super) fn log_start_moves(partition: &Partition, log_start: i64, wall_ms: i64) {
    let gone = partition
        .sequence
        .iter()
        .take_while(|placed| placed.base < log_start)
        .filter(|placed| placed.next().min(log_start) > partition.start_asked);
    for placed in gone {
        // At least what was left when its segment went; younger ones may have gone for their age since.
        let bytes_left = partition.bytes_ever - placed.bytes_before - placed.bytes.len() as u64;
        let mut configs = partition.former_configs.iter().chain([&partition.config]);
        let is_due = |config: &LogConfig| due(config, placed, bytes_left, wall_ms);
        assert!(
            configs.any(is_due),
            "partition {}: retention took offset {}, appended at {} ms, at {wall_ms} ms, the log begins at {log_start} with {bytes_left} bytes behind it: {:?}",
            partition.number,
            placed.base,
            placed.appended_ms,
            partition.config
        );
    }
}

fn due(config: &LogConfig, placed: &Placed, bytes_left: u64, wall_ms: i64) -> bool {
    // Whether the budget asked for it is looked at when it goes.
    if config.yields_to_budget {
        return true;
    }
    if config
        .retention_bytes
        .is_some_and(|bytes| bytes_left >= bytes)
    {
        return true;
    }
    let age_ms = match config.retention_clock {
        RetentionClock::Append => wall_ms - placed.appended_ms,
        RetentionClock::Record => {
            let newest = placed.batch.timestamps.iter().copied().max().unwrap_or(0);
            wall_ms - newest.min(placed.appended_ms)
        }
    };
    config
        .retention_ms
        .is_some_and(|retention_ms| age_ms + SLACK_MS >= retention_ms)
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
