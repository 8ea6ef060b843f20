//! The budget of all logs together: while they exceed it, or the disk is short of space, the oldest segments go.
//!
//! A core knows what its own logs take, and what those of the others took a moment ago. Of what is too much it gives the
//! share that it holds of all that can be given, from its own oldest segment on, whichever log that is in. Every core
//! reckons so with about the same numbers: together they give what is too much, and nobody is asked.
//!
//! Not here: how segments go (`log/retention.rs`), the settings of a single log.
//!
//! Without a budget nothing here has an effect. With one, space that is short on the disk counts as budget exceeded, so
//! that appends need not be refused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tackboard_schema::TimestampMs;

use super::Shard;
use super::interface::{Effects, LogId, LogSpace, Now};
use super::queries::SPACE_BYTES_MIN;
use crate::log::Log;

/// Most segments that go at one look; there is a look a second.
pub const BUDGET_DROPS_MAX: usize = 1024;

/// Free space is kept for so many times of what came since the last look.
const LOOKS_AHEAD: u64 = 2;

/// It is this part of the budget at most.
const AHEAD_MAX_DIVISOR: u64 = 4;

/// And at least this one, or as much as the reserve if that is less: a load may begin at any time.
const AHEAD_MIN_DIVISOR: u64 = 16;

/// Of `excess` the share of one who holds `own` of `all`, rounded up.
fn share(excess: u64, own: u64, all: u64) -> u64 {
    if own == 0 {
        return 0;
    }
    let share = (u128::from(excess) * u128::from(own)).div_ceil(u128::from(all.max(own)));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl Shard {
    /// What the logs of this core take.
    pub fn log_space(&self) -> LogSpace {
        let spaces = self.logs().map(|log| {
            let bytes = log.size_bytes();
            let yielding_bytes = if log.yields() { bytes } else { 0 };
            LogSpace {
                bytes,
                yielding_bytes,
            }
        });
        spaces.sum()
    }

    /// Gives this core's share of what is too much. Once for each measurement, since what goes shows in the next one only.
    ///
    /// `taken` is what this core took of the disk since the last measurement.
    pub(super) fn keep_budget(
        &mut self,
        now: Now,
        others: LogSpace,
        taken: u64,
        out: &mut Effects,
    ) {
        let Some(budget_bytes) = self.config.log_budget_bytes else {
            return;
        };
        // A core that stops begins nothing that is not needed to stop.
        if self.admission.shutting_down {
            return;
        }
        let own = self.log_space();
        let all: LogSpace = [own, others].into_iter().sum();
        let over = all.bytes.saturating_sub(budget_bytes);
        let excess = over.max(self.space_missing(budget_bytes, taken));
        let wanted = share(excess, own.yielding_bytes, all.yielding_bytes);
        let given = self.give_oldest(wanted, now, out);
        self.end_oldest(wanted.saturating_sub(given), now, out);
    }

    /// Bytes that are to become free so that nobody is refused before the next look.
    fn space_missing(&self, budget_bytes: u64, taken: u64) -> u64 {
        let reserve = self.config.reserve_bytes.max(SPACE_BYTES_MIN);
        let ahead = taken
            .saturating_mul(self.config.cores)
            .saturating_mul(LOOKS_AHEAD)
            .max(reserve.min(budget_bytes / AHEAD_MIN_DIVISOR))
            .min(budget_bytes / AHEAD_MAX_DIVISOR);
        // Appends that were refused are taken again an eighth above the reserve.
        let wanted = reserve.saturating_add(reserve / 8).saturating_add(ahead);
        let going: u64 = self.logs().map(Log::doomed_bytes).sum();
        wanted.saturating_sub(self.admission.free_bytes.saturating_add(going))
    }

    /// Has the oldest segments of all logs go until they are `wanted` bytes; how many that were.
    fn give_oldest(&mut self, wanted: u64, now: Now, out: &mut Effects) -> u64 {
        if wanted == 0 {
            return 0;
        }
        let of = |log: &Log, index: usize| {
            let (last_append, bytes) = log.yielding(index)?;
            Some(Reverse((last_append, log.id.slot, index, bytes)))
        };
        let yielding = || self.logs().filter(|log| log.yields());
        let mut oldest: BinaryHeap<_> = yielding().filter_map(|log| of(log, 0)).collect();
        let mut counts: Vec<(LogId, usize)> = yielding().map(|log| (log.id, 0)).collect();
        counts.sort_unstable_by_key(|(id, _)| id.slot);
        let mut given = 0;
        for _ in 0..BUDGET_DROPS_MAX {
            if given >= wanted {
                break;
            }
            let Some(Reverse((_, slot, index, bytes))) = oldest.pop() else {
                break;
            };
            given += bytes;
            let place = counts.binary_search_by_key(&slot, |(id, _)| id.slot);
            let (id, count) = &mut counts[place.expect("it is among those that yield")];
            *count += 1;
            oldest.extend(self.log(*id).and_then(|log| of(log, index + 1)));
        }
        for (id, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            self.with_log(now, out, id, |log, cx| log.give(count, cx));
            self.settle(now, id, out);
        }
        self.stats.budget_dropped_bytes += given;
        given
    }

    /// Where nothing else is left, ends active segments, the oldest first, so that they can go at the next look.
    fn end_oldest(&mut self, wanted: u64, now: Now, out: &mut Effects) {
        if wanted == 0 {
            return;
        }
        let yielding = self.logs().filter(|log| log.yields());
        let mut active: Vec<(Option<TimestampMs>, u64, LogId)> = yielding
            .filter_map(|log| {
                let (first_append, bytes) = log.endable()?;
                Some((first_append, bytes, log.id))
            })
            .collect();
        active.sort_unstable_by_key(|(first_append, _, id)| (*first_append, id.slot));
        let mut ended = 0;
        for (_, bytes, id) in active {
            if ended >= wanted {
                break;
            }
            ended += bytes;
            self.with_log(now, out, id, |log, cx| log.end_active(cx));
            self.settle(now, id, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_what_is_too_much() {
        assert_eq!(share(0, 5, 10), 0);
        assert_eq!(share(100, 0, 10), 0);
        assert_eq!(share(100, 10, 10), 100);
        // What is told of the others may be old; more than all is not asked of one.
        assert_eq!(share(100, 10, 3), 100);
        assert_eq!(share(10, 1, 3), 4);
        assert_eq!(share(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        for own in 0..=7 {
            assert!(share(1000, own, 7) + share(1000, 7 - own, 7) >= 1000);
        }
    }
}
