//! What is acknowledged, or may be read, is on disk as well as its durability promises.

use tackboard_logic::shard::interface::Produced;
use tackboard_schema::Durability;

use crate::disk::{Disk, FileName, FolderName, OpenFile};
use crate::model::{Batch, Expected, Partition};

/// The answer to an append names the batch's own place.
pub fn answer(
    partition: &Partition,
    batch: &Batch,
    produced: Produced,
    expected: Option<&[Expected]>,
) {
    let number = partition.number;
    let base = produced.base_offset.0;
    if let Some(expected) = expected.filter(|_| produced.duplicate) {
        assert!(
            expected.contains(&Expected::Duplicate(base)),
            "partition {number}: batch {:?} counts as a duplicate of {base}, but {expected:?} was due",
            batch.stamp
        );
    }
    if base < partition.first() {
        assert!(
            produced.duplicate,
            "partition {number}: a new batch is below the log's start"
        );
        return;
    }
    let Some(placed) = partition.holding(base) else {
        panic!(
            "partition {number}: batch {} is acknowledged at {base}, where nothing is",
            batch.id
        );
    };
    assert_eq!(
        (placed.batch.id, placed.base),
        (batch.id, base),
        "partition {number}: an answer names another batch"
    );
}

/// The batch at `base` is acknowledged at `durability`: from now on it must survive.
pub fn acknowledged(partition: &mut Partition, base: i64, durability: Durability, disk: &mut Disk) {
    // A duplicate of what retention has deleted in the meantime.
    if partition.holding(base).is_none() {
        return;
    }
    let next = partition.holding(base).map_or(base, |placed| placed.next());
    if durability == Durability::Fsync {
        survives_power_loss(partition, next, disk);
        partition.survives_power_loss = partition.survives_power_loss.max(next);
    } else {
        is_written(partition, base, disk);
    }
    partition.survives_kill = partition.survives_kill.max(next);
}

/// Everything below the high watermark may be read, so it must be kept as the topic's durability promises.
pub fn high_watermark_is_kept(partition: &mut Partition, disk: &mut Disk) {
    let high_watermark = partition.high_watermark;
    if partition.config.durability == Durability::Fsync {
        survives_power_loss(partition, high_watermark, disk);
    } else if high_watermark > 0 {
        is_written(partition, high_watermark - 1, disk);
    }
}

/// Asserts of everything below `end` that no power loss can undo it. What was seen to be so once is not looked at again.
pub(super) fn survives_power_loss(partition: &mut Partition, end: i64, disk: &mut Disk) {
    let mut index = partition.index_from(end - 1);
    index = index.min(partition.sequence.len().saturating_sub(1));
    loop {
        let Some(placed) = partition.sequence.get(index) else {
            return;
        };
        if placed.base >= end {
            if index == 0 {
                return;
            }
            index -= 1;
            continue;
        }
        if placed.seen_durable {
            return;
        }
        assert_durable(partition, index, disk);
        partition.sequence[index].seen_durable = true;
        if index == 0 {
            return;
        }
        index -= 1;
    }
}

fn assert_durable(partition: &Partition, index: usize, disk: &mut Disk) {
    let (number, placed) = (partition.number, &partition.sequence[index]);
    let Some((file, at)) = locate(partition, index, disk) else {
        panic!(
            "partition {number}: no segment holds offset {}",
            placed.base
        );
    };
    assert!(
        file.borrow().holds_after_power_loss(at, &placed.bytes),
        "partition {number}: a power loss now would undo the batch at offset {}, which counts as durable",
        placed.base
    );
    let folder = disk.folder(FolderName::Log(number));
    let segment = segment_of(folder.names(), placed.base);
    let proven = segment.is_some_and(|base| folder.is_proven(FileName::Log(base)));
    assert!(
        proven,
        "partition {number}: a power loss now would undo the entry of the segment of {}",
        placed.base
    );
}

fn is_written(partition: &Partition, offset: i64, disk: &mut Disk) {
    let number = partition.number;
    if offset < partition.first() {
        return;
    }
    let index = partition.index_from(offset);
    let Some(placed) = partition.sequence.get(index) else {
        return;
    };
    let Some((file, at)) = locate(partition, index, disk) else {
        panic!("partition {number}: no segment holds offset {offset}");
    };
    assert!(
        placed.rotten || file.borrow().holds(at, &placed.bytes),
        "partition {number}: the batch at offset {} counts as written and isn't in its file",
        placed.base
    );
}

/// The file that a batch is in and where.
pub fn locate(partition: &Partition, index: usize, disk: &mut Disk) -> Option<(OpenFile, u64)> {
    let placed = partition.sequence.get(index)?;
    let folder = disk.folder(FolderName::Log(partition.number));
    let base = segment_of(folder.names(), placed.base)?;
    let first = &partition.sequence[partition.index_from(base)];
    assert_eq!(
        first.base, base,
        "partition {}: a segment begins with a batch",
        partition.number
    );
    Some((
        folder.file(FileName::Log(base))?,
        placed.bytes_before - first.bytes_before,
    ))
}

/// The base of the segment that holds `offset`.
fn segment_of(names: impl Iterator<Item = FileName>, offset: i64) -> Option<i64> {
    let bases = names.filter_map(|name| match name {
        FileName::Log(base) if base <= offset => Some(base),
        _ => None,
    });
    bases.max()
}
