//! The budget of all logs together: while they exceed it, or the disk is short of space, the oldest segments go.
//!
//! A core knows what its own logs take, and what those of the others took a moment ago. Of what is too much it gives the
//! share that it holds of all that can be given, from its own oldest segment on, whichever log that is in. Every core
//! reckons so with about the same numbers: together they give what is too much, and nobody is asked.
//!
//! Not here: how segments go (`log/retention.rs`), the settings of a single log.
//!
//! Without a budget nothing here has an effect. With one, space that is short on the disk counts as budget exceeded, so
//! that appends need not be refused:
//!
//! ```text
//! free space   ▏ refused ▏ producers wait         ▏ taken, while segments go   ▏ taken
//!              0    1 MiB                room_bytes                     + ahead
//! ```
//!
//! Segments go early enough, so that nobody waits while load keeps its pace (`ahead`). Where it is faster than that,
//! connections of producers are not read until segments have gone ([`Admission::awaits_room`]); what was under way by
//! then may use the reserve. Nobody waits in vain: if nothing more can go, appends are refused as without a budget.
//!
//! The active segment of a log can't go, so active ones are kept to a part of the budget.
//!
//! [`Admission::awaits_room`]: super::context::Admission::awaits_room

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Shard;
use super::interface::{Effects, LogId, LogSpace, Now};
use super::queries::SPACE_BYTES_MIN;
use crate::log::Log;
use crate::log::limits::{BUDGET_ROLL_BYTES_MIN, BUDGET_SEGMENT_BYTES_MIN};
use crate::log::retention::Endable;

/// Most segments that go at one look; there is a look a second, and more while producers wait.
pub const BUDGET_DROPS_MAX: usize = 1024;

/// Most active segments that are ended at one look: each costs a file and a sync or two.
pub const BUDGET_ENDS_MAX: usize = 64;

/// Free space is kept for so many times of what came in the last second.
const SECONDS_AHEAD: u64 = 2;

/// How long it is counted what comes, in microseconds.
const PACE_US: u64 = 1_000_000;

/// It is this part of the budget at most.
const AHEAD_MAX_DIVISOR: u64 = 4;

/// And at least this one, or as much as the reserve if that is less: a load may begin at any time.
const AHEAD_MIN_DIVISOR: u64 = 16;

/// Below this part of the budget in free space producers wait, or below the reserve if that is more.
const ROOM_DIVISOR: u64 = 16;

/// But of a large budget no larger part than this: it is for what is under way when producers are stopped.
const ROOM_BYTES_MAX: u64 = 64 << 20;

/// The active segments of all cores together are this part of the budget at most.
const ACTIVE_DIVISOR: u64 = 4;

/// And one of them is this part of what its core may have.
const SEGMENTS_PER_CORE: u64 = 2;

/// Producers wait for so long while nothing goes, in microseconds; then they are refused.
pub const ROOM_PATIENCE_US: u64 = 3_000_000;

/// How room is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// Since when it is counted what this core takes of the disk.
    pace_since_us: u64,
    /// What it had taken by then.
    pace_from: Taken,
    /// Free bytes that the last full second asks for.
    ahead: u64,
    /// Segments were to go at the last look.
    pub is_missing: bool,
    /// What all logs had then.
    all_bytes: u64,
    /// Producers are not made to wait for longer.
    patience_until_us: Option<u64>,
}

/// What a core takes of the disk: what it appends, and what it reserves for that.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    appended: u64,
    reserved: u64,
}

/// Free space below which producers wait.
pub(super) fn room_bytes(budget_bytes: u64, reserve_bytes: u64) -> u64 {
    let part = (budget_bytes / ROOM_DIVISOR).min(ROOM_BYTES_MAX);
    part.max(reserve_bytes).max(SPACE_BYTES_MIN)
}

/// What the active segments of one core may have together.
fn active_bytes_max(budget_bytes: u64, cores: u64) -> u64 {
    budget_bytes / ACTIVE_DIVISOR / cores.max(1)
}

/// What a single one may have.
pub(super) fn segment_bytes_max(budget_bytes: u64, cores: u64) -> u64 {
    let part = active_bytes_max(budget_bytes, cores) / SEGMENTS_PER_CORE;
    part.max(BUDGET_SEGMENT_BYTES_MIN)
}

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
    pub(super) fn keep_budget(&mut self, now: Now, others: LogSpace, out: &mut Effects) {
        let Some(budget_bytes) = self.config.log_budget_bytes else {
            return;
        };
        // A core that stops begins nothing that is not needed to stop.
        if self.admission.shutting_down {
            self.admission.makes_room = false;
            return;
        }
        self.count_pace(now);
        let own = self.log_space();
        let all: LogSpace = [own, others].into_iter().sum();
        let over = all.bytes.saturating_sub(budget_bytes);
        let going: u64 = self.logs().map(Log::going_bytes).sum();
        let missing = self.space_missing(budget_bytes, going);
        let excess = over.max(missing);
        let wanted = share(excess, own.yielding_bytes, all.yielding_bytes);
        let given = self.give_oldest(wanted, now, out);
        let ended = self.end_oldest(wanted.saturating_sub(given), now, out);
        self.bound_active(budget_bytes, now, out);
        self.room.is_missing = missing > 0;
        let moves = given + ended + going > 0 || all.bytes < self.room.all_bytes;
        self.room.all_bytes = all.bytes;
        self.admission.makes_room = self.makes_room(now, moves, all.yielding_bytes);
    }

    /// Whether producers may be made to wait for room. Only while something goes or may still go: the disk can be full
    /// of what is not the broker's, or not to be given.
    fn makes_room(&mut self, now: Now, moves: bool, yielding_bytes: u64) -> bool {
        if self.admission.free_bytes >= self.admission.room_bytes {
            self.room.patience_until_us = None;
            return yielding_bytes > 0;
        }
        let begins = self.room.patience_until_us.is_none() && yielding_bytes > 0;
        if moves || begins {
            self.room.patience_until_us = Some(now.monotonic_us.saturating_add(ROOM_PATIENCE_US));
        }
        (self.room.patience_until_us).is_some_and(|until| now.monotonic_us < until)
    }

    /// Counts what is taken of the disk, a second at a time: looks may be much closer together.
    fn count_pace(&mut self, now: Now) {
        let room = &mut self.room;
        let past = now.monotonic_us.saturating_sub(room.pace_since_us);
        if past < PACE_US {
            return;
        }
        let appended = self.stats.appended_bytes - room.pace_from.appended;
        let reserved = self.stats.reserved_bytes - room.pace_from.reserved;
        // Appends go to what was reserved.
        let taken = appended.max(reserved);
        room.ahead = (taken.saturating_mul(SECONDS_AHEAD)).saturating_mul(self.config.cores);
        room.pace_since_us = now.monotonic_us;
        room.pace_from = Taken {
            appended: self.stats.appended_bytes,
            reserved: self.stats.reserved_bytes,
        };
    }

    /// Bytes that are to become free so that nobody waits before the next look, beside what is `going` already.
    fn space_missing(&self, budget_bytes: u64, going: u64) -> u64 {
        let room = self.admission.room_bytes;
        let least = room.min(budget_bytes / AHEAD_MIN_DIVISOR);
        let ahead = (self.room.ahead.max(least)).min(budget_bytes / AHEAD_MAX_DIVISOR);
        // Appends that were refused are taken again an eighth above the reserve.
        let wanted = room.saturating_add(room / 8).saturating_add(ahead);
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

    /// Where nothing else is left, ends active segments, the oldest first, so that they can go at the next look. How many
    /// bytes that were.
    fn end_oldest(&mut self, wanted: u64, now: Now, out: &mut Effects) -> u64 {
        if wanted == 0 {
            return 0;
        }
        let mut active: Vec<_> = self.endable().collect();
        active.sort_unstable_by_key(|(id, active)| (active.first_append, id.slot));
        let active = active.into_iter();
        let active = active.map(|(id, active)| (id, active.bytes + active.lingering_bytes));
        self.end_active(active, wanted, now, out)
    }

    /// Ends active segments, the largest first, while all of them together have more than their part of the budget.
    fn bound_active(&mut self, budget_bytes: u64, now: Now, out: &mut Effects) {
        let active = self.endable().map(|(id, active)| (id, active.bytes));
        let mut active: Vec<_> = active
            .filter(|(_, bytes)| *bytes >= BUDGET_ROLL_BYTES_MIN)
            .collect();
        let bytes: u64 = active.iter().map(|(_, bytes)| bytes).sum();
        let excess = bytes.saturating_sub(active_bytes_max(budget_bytes, self.config.cores));
        active.sort_unstable_by_key(|(id, bytes)| (Reverse(*bytes), id.slot));
        self.end_active(active.into_iter(), excess, now, out);
    }

    /// Active segments that may be ended.
    fn endable(&self) -> impl Iterator<Item = (LogId, Endable)> + '_ {
        let yielding = self.logs().filter(|log| log.yields());
        yielding.filter_map(|log| Some((log.id, log.endable()?)))
    }

    fn end_active(
        &mut self,
        active: impl Iterator<Item = (LogId, u64)>,
        wanted: u64,
        now: Now,
        out: &mut Effects,
    ) -> u64 {
        let mut ended = 0;
        for (id, bytes) in active.take(BUDGET_ENDS_MAX) {
            if ended >= wanted {
                break;
            }
            ended += bytes;
            self.with_log(now, out, id, |log, cx| log.end_active(cx));
            self.settle(now, id, out);
        }
        ended
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
