//! A read finds damage where a bit rotted, and nowhere else.

use tackboard_logic::log::Damage;
use tackboard_logic::shard::interface::DiskRead;

use crate::model::{Partition, Placed};

/// A read was refused for damage. Returns an offset behind it.
pub fn damage(partition: &Partition, read: &DiskRead, damage: &Damage) -> i64 {
    let number = partition.number;
    // A batch before the one asked for may have rotted in its header, which is all that is looked at in passing.
    let mut rotten = partition.sequence.iter().filter(|placed| placed.rotten);
    let behind = |placed: &&Placed| placed.next() > read.fetch_offset.0;
    let rotten = rotten.clone().find(behind).or_else(|| rotten.next());
    let Some(rotten) = rotten else {
        panic!("partition {number}: {damage:?} is found where nothing rotted: {read:?}");
    };
    rotten.next().max(read.fetch_offset.0 + 1)
}
