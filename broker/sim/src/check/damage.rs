//! A read finds damage where a bit rotted, and nowhere else.

use tackboard_logic::log::Damage;
use tackboard_logic::shard::interface::DiskRead;

use crate::model::Partition;

/// A read was refused for damage. Returns an offset behind it.
pub fn damage(partition: &Partition, read: &DiskRead, damage: &Damage) -> i64 {
    let number = partition.number;
    let from = partition.index_from(read.fetch_offset.0);
    let rotten = partition
        .sequence
        .iter()
        .skip(from.saturating_sub(64))
        .find(|placed| placed.rotten);
    let Some(rotten) = rotten else {
        panic!("partition {number}: {damage:?} is found where nothing rotted: {read:?}");
    };
    rotten.next()
}
