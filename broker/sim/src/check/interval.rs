//! A log that is synced in the background loses no more than its interval to a power loss, as long as the disk does its work.

use tackboard_schema::Durability;

use crate::model::Partition;

/// Time that a tick, a write and a sync may take on top of the interval.
const SLACK_US: u64 = 300_000;

/// Takes note of the high watermark, once a turn.
pub fn note_high_watermark(partition: &mut Partition, now_us: u64) {
    if partition.config.durability != Durability::Interval {
        return;
    }
    let high_watermark = partition.high_watermark;
    let seen_at = &mut partition.seen_at;
    if seen_at
        .back()
        .is_none_or(|(_, seen)| *seen < high_watermark)
    {
        seen_at.push_back((now_us, high_watermark));
    }
}

/// The process stood still for so long, ending now: it could sync nothing meanwhile.
pub fn forgive_standstill(partition: &mut Partition, for_us: u64) {
    for (seen_us, _) in &mut partition.seen_at {
        *seen_us += for_us;
    }
}

/// The power is about to fail: what was seen long enough ago must be kept.
pub fn promise_what_is_old(partition: &mut Partition, now_us: u64) {
    let window_us = partition.config.durability_interval_us + SLACK_US;
    let old = partition
        .seen_at
        .iter()
        .take_while(|(seen_us, _)| seen_us + window_us <= now_us);
    if let Some((_, high_watermark)) = old.last() {
        partition.survives_power_loss = partition.survives_power_loss.max(*high_watermark);
    }
}
