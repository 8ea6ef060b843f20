//! Readers of history stay out of the way of producers (decision 0013).

/// Reads of history in flight at most.
const READS_MAX: usize = 16;

/// Of these, reads that were asked for while there were producers.
const READS_BESIDE_PRODUCERS_MAX: usize = 2;

/// So long after the last batch there are still producers.
const PRODUCERS_LINGER_US: u64 = 100_000;

/// A read of history begins; of those that are in flight then, it is told how long before they were asked for their core had
/// last placed a batch.
pub fn history(in_flight: impl Iterator<Item = Option<u64>>) {
    let (mut all, mut beside) = (0, 0);
    for appended_ago_us in in_flight {
        all += 1;
        beside += usize::from(appended_ago_us.is_some_and(|ago_us| ago_us <= PRODUCERS_LINGER_US));
    }
    assert!(
        all <= READS_MAX && beside <= READS_BESIDE_PRODUCERS_MAX,
        "{all} reads of history are in flight, {beside} of them asked for beside producers"
    );
}
