//! What of the history a core holds in memory: stretches that are being read, are on their way to readers, or are kept
//! for the next one.
//!
//! Readers of the same stretch share one read of it. Who reads on where it ended finds the next stretches read before it
//! asks, as many as its window says, which doubles each time. Read-ahead yields: to reads that somebody waits for, to
//! writes, and to what other readers are about to need.
//!
//! Owns: which stretches there are, who uses them, the budget. The driver owns the bytes and does the reads: it gives
//! every buffer that it is told of in `gone` back, and nothing before.
//!
//! Not here: where stretches begin and end ([`crate::log::stretch`]); the tail cache, whose memory is another.
//!
//! Invariants:
//! 1. What is held, with all that is being read, is within the budget.
//! 2. A stretch that was forgotten (its log cut or deleted, its read failed, its bytes damaged) is never found again; its
//!    bytes count until its last user has let go.
//! 3. Only what nobody uses and no read is filling goes to make room.

use std::collections::{BTreeMap, BTreeSet};

use tackboard_schema::{LeaderEpoch, Offset};

use super::interface::{LogId, SegmentBase};
use crate::log::position::StreamByte;
use crate::log::stretch::{STRETCH_BYTES, Stretch};

/// Stretches that are read ahead of one reader.
pub const READ_AHEAD_STRETCHES_MAX: u32 = 8;

/// Reads in flight that somebody waits for; more wait their turn.
pub const READS_IN_FLIGHT_MAX: usize = 16;

/// The same while there are producers: a write waits for what the disk was given before it, and a stretch is a thousand
/// times as long as a small write.
pub const READS_BESIDE_PRODUCERS_MAX: usize = 2;

/// Of the [`READS_IN_FLIGHT_MAX`] turns, how many a read takes that somebody waits for: while there are producers, so
/// many that only few reads are in flight.
pub fn turns_of_read(is_appended_to: bool) -> usize {
    match is_appended_to {
        true => READS_IN_FLIGHT_MAX / READS_BESIDE_PRODUCERS_MAX,
        false => 1,
    }
}

/// Reads in flight that nobody waits for yet.
pub const READ_AHEAD_IN_FLIGHT_MAX: usize = 4;

/// Nothing is read ahead while so many reads are in flight that somebody waits for.
pub const READS_BEFORE_READ_AHEAD_MAX: usize = 8;

/// History waits for producers until they have been silent for so long, in microseconds: longer than the pauses of any
/// that a person would call busy.
pub const APPENDS_LINGER_US: u64 = 100_000;

/// Read-ahead may fill the budget, with what is in use, up to this fraction of it.
const READ_AHEAD_SHARE: (u64, u64) = (1, 2);

/// Readers whose place is remembered; the one heard of longest ago is forgotten first.
pub const READERS_MAX: usize = 64;

/// Who wants less than this part of a stretch, one in so many of its bytes, holds far more than it sends.
const SMALL_PART: u64 = 4;

/// Such readers fill the budget up to this fraction of it. Beyond it they read alone what they want, or a fetch of little
/// from each of very many logs would find no room.
const SMALL_SHARE: (u64, u64) = (1, 2);

/// A reader of which so many events heard nothing keeps nothing for itself any more. Every reader that goes on is heard of
/// some five times in a round, and there are no more than [`READERS_MAX`].
const READER_SILENT_AFTER: u64 = 1024;

/// Kept stretches that are looked at for one that every reader has passed.
const LOOKED_AT_MAX: usize = 64;

/// Something held, named by logic; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldId(pub u64);

/// A reader whose place is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderId(u64);

/// How somebody gets a stretch, of which it is a user now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It is held.
    Held(HeldId),
    /// It is being read already.
    Joined(HeldId),
    /// It is to be read now.
    Read(HeldId),
    /// There is no room for it. There may be for the bytes that are wanted alone.
    NoRoom,
}

/// What was decided about reading ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// It is to be read now; nobody is its user.
    Read(HeldId),
    /// It is held or being read.
    There,
    /// Not now.
    No,
}

/// What a core did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColdStats {
    /// Stretches found in memory.
    pub hits: u64,
    /// Stretches that were being read already.
    pub joined: u64,
    /// Bytes read ahead.
    pub ahead_bytes: u64,
    /// Of these, bytes that went unused.
    pub wasted_bytes: u64,
}

#[derive(Debug)]
struct Held {
    /// What it is found by; `None`: it is not found.
    stretch: Option<Stretch>,
    bytes: u64,
    users: u32,
    is_read: bool,
    /// Read ahead, and not asked for so far.
    ahead: bool,
    /// Counts as a read in flight that was ahead of its reader.
    started_ahead: bool,
    /// When it was last asked for.
    used: u64,
}

/// A fraction of the budget.
fn share(budget: u64, (part, whole): (u64, u64)) -> u64 {
    budget / whole * part
}

/// No stretch of a log is less.
fn least_of(log: LogId) -> Stretch {
    Stretch {
        log,
        leader_epoch: LeaderEpoch(i32::MIN),
        start: StreamByte(0),
        length: 0,
        segment: SegmentBase(Offset(i64::MIN)),
        file_at: 0,
    }
}

impl Held {
    /// Whether it is there for whoever may come.
    fn is_kept(&self) -> bool {
        self.is_read && self.users == 0
    }

    fn ahead_bytes(&self) -> u64 {
        if self.ahead { self.bytes } else { 0 }
    }
}

/// Where somebody reads on.
#[derive(Debug)]
struct Reader {
    id: ReaderId,
    log: LogId,
    leader_epoch: LeaderEpoch,
    next_offset: Offset,
    at: StreamByte,
    window: u32,
    used: u64,
}

/// The history in one core's memory.
#[derive(Debug)]
pub struct ColdReads {
    budget: u64,
    held_bytes: u64,
    kept_bytes: u64,
    /// Of these, bytes that were read ahead and not asked for so far.
    ahead_bytes: u64,
    reads_in_flight: usize,
    ahead_in_flight: usize,
    held: BTreeMap<HeldId, Held>,
    found: BTreeMap<Stretch, HeldId>,
    /// What is kept, by when it was last asked for.
    kept: BTreeSet<(u64, HeldId)>,
    readers: Vec<Reader>,
    /// Counts everything that is named or asked for.
    clock: u64,
    stats: ColdStats,
}

impl ColdReads {
    /// Nothing held, within `budget` bytes.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            held_bytes: 0,
            kept_bytes: 0,
            ahead_bytes: 0,
            reads_in_flight: 0,
            ahead_in_flight: 0,
            held: BTreeMap::new(),
            found: BTreeMap::new(),
            kept: BTreeSet::new(),
            readers: Vec::new(),
            clock: 0,
            stats: ColdStats::default(),
        }
    }

    /// Whether reads have not landed yet, somebody waiting for them or not.
    pub fn is_reading(&self) -> bool {
        self.reads_in_flight + self.ahead_in_flight > 0
    }

    // ---- reads that somebody waits for ----------------------------------------------------------------------------

    /// Somebody asks for a stretch to send about `wanted` bytes of it and of those behind it, and uses it until
    /// [`Self::released`].
    pub fn demand(&mut self, stretch: Stretch, wanted: u32, gone: &mut Vec<HeldId>) -> Demand {
        let bytes = stretch.block_bytes();
        let found = self.found.get(&stretch).copied();
        let is_in_use = found.is_some_and(|id| !self.held[&id].is_kept());
        let is_small = u64::from(wanted) * SMALL_PART < bytes;
        if !is_in_use && is_small && self.bytes_in_use() + bytes > share(self.budget, SMALL_SHARE) {
            return Demand::NoRoom;
        }
        match found {
            Some(id) => self.share(id),
            None if self.make_room(bytes, gone) => {
                Demand::Read(self.hold(Some(stretch), bytes, false))
            }
            None => Demand::NoRoom,
        }
    }

    /// Somebody asks for bytes that nobody shares, and uses them until [`Self::released`]; `None`: there is no room.
    pub fn demand_alone(&mut self, bytes: u64, gone: &mut Vec<HeldId>) -> Option<HeldId> {
        self.make_room(bytes, gone)
            .then(|| self.hold(None, bytes, false))
    }

    fn share(&mut self, id: HeldId) -> Demand {
        self.clock += 1;
        if self.held[&id].is_kept() {
            self.stop_keeping(id);
        }
        let held = self.held.get_mut(&id).expect("what is found is held");
        held.users += 1;
        held.used = self.clock;
        held.ahead = false;
        if held.is_read {
            self.stats.hits += 1;
            Demand::Held(id)
        } else {
            self.stats.joined += 1;
            Demand::Joined(id)
        }
    }

    /// A read is over; what came of it is there for its users. What failed is kept for nobody else.
    pub fn landed(&mut self, id: HeldId, is_good: bool, gone: &mut Vec<HeldId>) {
        let held = self.held.get_mut(&id).expect("a read lands once");
        assert!(!held.is_read, "a read lands once");
        held.is_read = true;
        match held.started_ahead {
            true => self.ahead_in_flight -= 1,
            false => self.reads_in_flight -= 1,
        }
        if !is_good {
            self.hide(id);
        }
        self.settle(id, gone);
    }

    /// A user is done.
    pub fn released(&mut self, id: HeldId, gone: &mut Vec<HeldId>) {
        let held = self.held.get_mut(&id).expect("what is used is held");
        held.users = held.users.checked_sub(1).expect("a user is done once");
        self.settle(id, gone);
    }

    /// Its bytes turned out damaged: they are not shared any more, but read again.
    pub fn spoiled(&mut self, id: HeldId) {
        assert!(self.held[&id].users > 0, "only users look at the bytes");
        self.hide(id);
    }

    // ---- reading ahead --------------------------------------------------------------------------------------------

    /// A read from `from` on was answered up to `next_offset`, which lies at `at`. Says whose place that is, and how many
    /// stretches behind it are to be read ahead.
    pub fn passed(
        &mut self,
        (log, leader_epoch): (LogId, LeaderEpoch),
        from: Offset,
        next_offset: Offset,
        at: StreamByte,
    ) -> (ReaderId, u32) {
        self.clock += 1;
        let known = self.readers.iter_mut().find(|reader| {
            (reader.log, reader.leader_epoch, reader.next_offset) == (log, leader_epoch, from)
        });
        if let Some(reader) = known {
            reader.next_offset = next_offset;
            reader.at = at;
            reader.window = (reader.window * 2).clamp(1, READ_AHEAD_STRETCHES_MAX);
            reader.used = self.clock;
            return (reader.id, reader.window);
        }
        if self.readers.len() >= READERS_MAX {
            let readers = self.readers.iter().enumerate();
            let oldest = readers.min_by_key(|(_, reader)| reader.used);
            let (oldest, _) = oldest.expect("there are some");
            self.readers.swap_remove(oldest);
        }
        let id = ReaderId(self.clock);
        self.readers.push(Reader {
            id,
            log,
            leader_epoch,
            next_offset,
            at,
            window: 0,
            used: self.clock,
        });
        (id, 0)
    }

    /// Whether a stretch that `reader` will come to is read now. `is_busy`: the disk has better to do.
    pub fn read_ahead(
        &mut self,
        reader: ReaderId,
        stretch: Stretch,
        is_busy: bool,
        gone: &mut Vec<HeldId>,
    ) -> Ahead {
        if self.found.contains_key(&stretch) {
            return Ahead::There;
        }
        if is_busy
            || self.ahead_in_flight >= READ_AHEAD_IN_FLIGHT_MAX
            || self.reads_in_flight >= READS_BEFORE_READ_AHEAD_MAX
        {
            return Ahead::No;
        }
        let bytes = stretch.block_bytes();
        if !self.make_room_ahead(bytes, gone) {
            let reader = self.readers.iter_mut().find(|known| known.id == reader);
            if let Some(reader) = reader {
                reader.window /= 2;
            }
            return Ahead::No;
        }
        self.stats.ahead_bytes += bytes;
        Ahead::Read(self.hold(Some(stretch), bytes, true))
    }

    fn make_room_ahead(&mut self, bytes: u64, gone: &mut Vec<HeldId>) -> bool {
        let wanted = self.bytes_in_use() + self.ahead_bytes + bytes;
        if wanted > share(self.budget, READ_AHEAD_SHARE) {
            return false;
        }
        while self.held_bytes + bytes > self.budget {
            let Some(id) = self.passed_by_all() else {
                return false;
            };
            self.evict(id, gone);
        }
        true
    }

    // ---- what goes ------------------------------------------------------------------------------------------------

    /// A log is cut or deleted, or with `segment` one of its segments: nothing of it is found any more.
    pub fn forget(&mut self, log: LogId, segment: Option<SegmentBase>, gone: &mut Vec<HeldId>) {
        let of_log = (self.found.range(least_of(log)..)).take_while(|(it, _)| it.log == log);
        let found = of_log.filter(|(it, _)| segment.is_none_or(|segment| it.segment == segment));
        let ids: Vec<HeldId> = found.map(|(_, id)| *id).collect();
        for id in ids {
            if self.held[&id].is_kept() {
                self.evict(id, gone);
            } else {
                self.hide(id);
            }
        }
        if segment.is_none() {
            self.readers.retain(|reader| reader.log != log);
        }
    }

    /// Makes room for a read that somebody waits for, if what is in use leaves any.
    fn make_room(&mut self, bytes: u64, gone: &mut Vec<HeldId>) -> bool {
        if self.bytes_in_use() + bytes > self.budget {
            return false;
        }
        while self.held_bytes + bytes > self.budget {
            let oldest = || self.kept.first().map(|(_, id)| *id);
            let id = self.passed_by_all().or_else(oldest);
            self.evict(id.expect("what is not in use is kept"), gone);
        }
        true
    }

    /// Of what was asked for longest ago, something that no reader is behind.
    fn passed_by_all(&self) -> Option<HeldId> {
        let oldest = self.kept.iter().take(LOOKED_AT_MAX);
        let mut oldest = oldest.map(|(_, id)| *id);
        oldest.find(|id| {
            let stretch = self.held[id].stretch.expect("what is kept is found");
            let mut readers = self.readers.iter();
            !readers.any(|reader| reader.awaits(&stretch, self.clock))
        })
    }

    fn evict(&mut self, id: HeldId, gone: &mut Vec<HeldId>) {
        self.stop_keeping(id);
        self.hide(id);
        self.let_go(id, gone);
    }

    // ---- bookkeeping ----------------------------------------------------------------------------------------------

    fn hold(&mut self, stretch: Option<Stretch>, bytes: u64, ahead: bool) -> HeldId {
        self.clock += 1;
        let id = HeldId(self.clock);
        self.held_bytes += bytes;
        match ahead {
            true => self.ahead_in_flight += 1,
            false => self.reads_in_flight += 1,
        }
        if let Some(stretch) = stretch {
            self.found.insert(stretch, id);
        }
        self.held.insert(
            id,
            Held {
                stretch,
                bytes,
                users: u32::from(!ahead),
                is_read: false,
                ahead,
                started_ahead: ahead,
                used: self.clock,
            },
        );
        id
    }

    /// Keeps what nobody uses any more, or lets it go when nobody would find it.
    fn settle(&mut self, id: HeldId, gone: &mut Vec<HeldId>) {
        let held = &self.held[&id];
        if !held.is_kept() {
            return;
        }
        if held.stretch.is_none() {
            return self.let_go(id, gone);
        }
        self.kept.insert((held.used, id));
        self.kept_bytes += held.bytes;
        self.ahead_bytes += held.ahead_bytes();
    }

    fn stop_keeping(&mut self, id: HeldId) {
        let held = &self.held[&id];
        self.kept.remove(&(held.used, id));
        self.kept_bytes -= held.bytes;
        self.ahead_bytes -= held.ahead_bytes();
    }

    /// From here on it is not found.
    fn hide(&mut self, id: HeldId) {
        let held = self.held.get_mut(&id).expect("it is held");
        if let Some(stretch) = held.stretch.take() {
            self.found.remove(&stretch);
        }
    }

    fn let_go(&mut self, id: HeldId, gone: &mut Vec<HeldId>) {
        let held = self.held.remove(&id).expect("it goes once");
        self.held_bytes -= held.bytes;
        self.stats.wasted_bytes += held.ahead_bytes();
        gone.push(id);
    }

    /// Bytes that cannot go: being read, or used.
    pub fn bytes_in_use(&self) -> u64 {
        self.held_bytes - self.kept_bytes
    }

    /// Bytes that are kept for whoever may come.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// What was done so far.
    pub fn stats(&self) -> ColdStats {
        self.stats
    }
}

impl Reader {
    /// Whether it will soon come to the stretch.
    fn awaits(&self, stretch: &Stretch, clock: u64) -> bool {
        let soon = 2 * u64::from(READ_AHEAD_STRETCHES_MAX) * STRETCH_BYTES;
        clock - self.used < READER_SILENT_AFTER
            && (self.log, self.leader_epoch) == (stretch.log, stretch.leader_epoch)
            && self.at < stretch.end()
            && stretch.start < self.at.plus(soon)
    }
}

#[cfg(test)]
#[path = "cold_test.rs"]
mod tests;
