//! One file: what a read sees, what a power loss leaves, and the changes in between.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::pages::Pages;
use super::{BLOCK_BYTES, SECTOR_BYTES};
use crate::coverage::{Coverage, Event};
use crate::rng::Rng;

/// Part of a buffer that nobody changes any more.
#[derive(Clone, Debug)]
pub struct Bytes {
    buffer: Rc<Vec<u8>>,
    range: Range<usize>,
}

impl Bytes {
    /// `range` of `buffer`.
    ///
    /// # Panics
    /// If the range is outside.
    pub fn slice(buffer: Rc<Vec<u8>>, range: Range<usize>) -> Self {
        assert!(
            range.end <= buffer.len(),
            "write of {range:?} from {} bytes",
            buffer.len()
        );
        Self { buffer, range }
    }

    /// All of `bytes`.
    pub fn whole(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self::slice(Rc::new(bytes), range)
    }

    /// The first `length` of these.
    pub fn beginning(&self, length: usize) -> Self {
        let start = self.range.start;
        Self::slice(self.buffer.clone(), start..start + length)
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

/// How far a change can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A power loss may undo it; a sync that begins from now on proves it.
    Cached,
    /// A sync of it failed, so it was marked clean: a later sync says nothing about it.
    Forsaken,
    /// It survives.
    Proven,
}

#[derive(Clone, Debug)]
enum ChangeKind {
    Write { at: u64, bytes: Bytes },
    Resize { size: u64 },
}

#[derive(Clone, Debug)]
struct Change {
    sequence: u64,
    standing: Standing,
    kind: ChangeKind,
}

/// How a power loss treats what isn't proven in one file.
#[derive(Clone, Copy)]
enum Loss {
    Nothing,
    Everything,
    AnySector,
}

/// A file with a volatile cache.
#[derive(Debug, Default)]
pub struct File {
    current: Pages,
    durable: Pages,
    /// In the order of completion. The front is never proven: that would have been moved to `durable`.
    history: VecDeque<Change>,
    sequence: u64,
    /// Blocks that a write in flight covers.
    in_flight: Vec<Range<u64>>,
    /// A full disk takes its writes all the same, out of space that was set aside.
    has_reserve: bool,
}

impl File {
    /// A file for which space was set aside.
    pub fn with_reserve() -> Self {
        Self {
            has_reserve: true,
            ..Self::default()
        }
    }

    /// Whether a full disk takes its writes.
    pub fn has_reserve(&self) -> bool {
        self.has_reserve
    }

    /// Its length as seen now.
    pub fn size(&self) -> u64 {
        self.current.size()
    }

    /// Space that it takes up.
    pub fn allocated_bytes(&self) -> u64 {
        self.current.size().max(self.durable.filled_bytes())
    }

    /// Bytes from `at` as seen now, fewer than `length` at the end of the file.
    pub fn read(&self, at: u64, length: usize) -> Vec<u8> {
        self.current.read(at, length)
    }

    /// A write was started.
    ///
    /// # Panics
    /// If another one in flight covers one of its blocks: the order in which they land would decide what is kept.
    pub fn begin_write(&mut self, at: u64, length: u64) {
        let blocks = at / BLOCK_BYTES..(at + length).div_ceil(BLOCK_BYTES);
        let shared = self
            .in_flight
            .iter()
            .find(|other| other.start < blocks.end && blocks.start < other.end);
        assert_eq!(
            shared, None,
            "two writes in flight share a block: {blocks:?} and"
        );
        self.in_flight.push(blocks);
    }

    /// The write that was started there is no longer in flight.
    pub fn end_write(&mut self, at: u64, length: u64) {
        let blocks = at / BLOCK_BYTES..(at + length).div_ceil(BLOCK_BYTES);
        let index = self.in_flight.iter().position(|other| *other == blocks);
        self.in_flight
            .swap_remove(index.expect("the write was started"));
    }

    /// The bytes reach the cache, or with `proven` the medium.
    pub fn write(&mut self, at: u64, bytes: Bytes, proven: bool) {
        self.current.write(at, &bytes);
        self.change(ChangeKind::Write { at, bytes }, proven);
    }

    /// Cuts or extends the file.
    pub fn resize(&mut self, size: u64) {
        if size != self.current.size() {
            self.current.resize(size);
            self.change(ChangeKind::Resize { size }, false);
        }
    }

    /// What a sync that begins now will cover.
    pub fn begin_sync(&self) -> u64 {
        self.sequence
    }

    /// A sync that covers everything up to `covered` succeeded.
    pub fn complete_sync(&mut self, covered: u64) {
        for change in self
            .history
            .iter_mut()
            .take_while(|change| change.sequence <= covered)
        {
            if change.standing == Standing::Cached {
                change.standing = Standing::Proven;
            }
        }
        self.settle_proven();
    }

    /// A sync that covers everything up to `covered` failed. What it covered may be forsaken from now on.
    pub fn fail_sync(&mut self, covered: u64, rng: &mut Rng) {
        for change in self
            .history
            .iter_mut()
            .take_while(|change| change.sequence <= covered)
        {
            if change.standing == Standing::Cached && rng.coin() {
                change.standing = Standing::Forsaken;
            }
        }
    }

    /// Some sectors of a write land that nobody will hear of.
    pub fn write_partly(&mut self, at: u64, bytes: &Bytes, rng: &mut Rng) {
        let sectors = bytes.len() / SECTOR_BYTES;
        let (from, to) = match rng.below(3) {
            0 => return,
            1 => (0, sectors),
            _ => {
                let from = rng.below(sectors as u64 + 1) as usize;
                (from, rng.between(from as u64, sectors as u64) as usize)
            }
        };
        if from < to {
            let range =
                bytes.range.start + from * SECTOR_BYTES..bytes.range.start + to * SECTOR_BYTES;
            let part = Bytes::slice(bytes.buffer.clone(), range);
            self.write(at + (from * SECTOR_BYTES) as u64, part, false);
        }
    }

    /// Whether `bytes` lie at `at` now.
    pub fn holds(&self, at: u64, bytes: &[u8]) -> bool {
        in_sectors(at, bytes).all(|(at, part)| self.current.holds(at, part))
    }

    /// Whether `bytes` lie at `at` after a power loss, whatever it takes.
    pub fn holds_after_power_loss(&self, at: u64, bytes: &[u8]) -> bool {
        in_sectors(at, bytes).all(|(at, part)| self.sector_survives(at, part))
    }

    fn sector_survives(&self, at: u64, part: &[u8]) -> bool {
        let end = at + part.len() as u64;
        let mut survives = self.durable.size() >= end && self.durable.holds(at, part);
        for change in &self.history {
            let same = match &change.kind {
                ChangeKind::Write { at: start, bytes } => {
                    if *start >= end || start + bytes.len() as u64 <= at {
                        continue;
                    }
                    // Writes are whole sectors, so a part of one lies within.
                    let within = (at - start) as usize;
                    bytes[within..within + part.len()] == *part
                }
                ChangeKind::Resize { size } if *size >= end => continue,
                ChangeKind::Resize { .. } => false,
            };
            survives = if change.standing == Standing::Proven {
                same
            } else {
                survives && same
            };
        }
        survives
    }

    /// The power fails. What a read sees from now on is what survived.
    pub fn lose_power(&mut self, rng: &mut Rng, coverage: &mut Coverage) {
        self.in_flight.clear();
        if self.history.is_empty() {
            // Both views are the same.
            return;
        }
        let loss = match rng.below(4) {
            0 => Loss::Nothing,
            1 => Loss::Everything,
            _ => Loss::AnySector,
        };
        for change in std::mem::take(&mut self.history) {
            match loss {
                Loss::Nothing => self.apply(change.kind),
                _ if change.standing == Standing::Proven => self.apply(change.kind),
                Loss::Everything => coverage.hit(Event::WriteLost),
                Loss::AnySector => self.apply_partly(change.kind, rng, coverage),
            }
        }
        self.current = self.durable.clone();
    }

    /// The process died: nothing is in flight any more, and the cache keeps what it has. The next process reads past the
    /// page cache, so what it sees is what the device holds, and a sync from then on proves it.
    pub fn forget_in_flight(&mut self) {
        self.in_flight.clear();
        for change in &mut self.history {
            if change.standing == Standing::Forsaken {
                change.standing = Standing::Cached;
            }
        }
    }

    /// A bit rots on the medium.
    pub fn flip_bit(&mut self, at: u64, bit: u8) {
        self.current.flip_bit(at, bit);
        self.durable.flip_bit(at, bit);
    }

    fn change(&mut self, kind: ChangeKind, proven: bool) {
        self.sequence += 1;
        if proven && self.history.is_empty() {
            self.apply(kind);
            return;
        }
        self.history.push_back(Change {
            sequence: self.sequence,
            standing: if proven {
                Standing::Proven
            } else {
                Standing::Cached
            },
            kind,
        });
    }

    fn settle_proven(&mut self) {
        while self
            .history
            .front()
            .is_some_and(|change| change.standing == Standing::Proven)
        {
            if let Some(change) = self.history.pop_front() {
                self.apply(change.kind);
            }
        }
    }

    fn apply(&mut self, kind: ChangeKind) {
        match kind {
            ChangeKind::Write { at, bytes } => self.durable.write(at, &bytes),
            ChangeKind::Resize { size } => self.durable.resize(size),
        }
    }

    fn apply_partly(&mut self, kind: ChangeKind, rng: &mut Rng, coverage: &mut Coverage) {
        let (at, bytes) = match kind {
            ChangeKind::Write { at, bytes } => (at, bytes),
            ChangeKind::Resize { size } => {
                if rng.coin() {
                    self.durable.resize(size);
                }
                return;
            }
        };
        let mut landed = 0;
        for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
            let at = at + (index * SECTOR_BYTES) as u64;
            if rng.one_in(64) && self.durable.is_fresh(at) {
                let garbage: Vec<u8> = sector.iter().map(|_| rng.next_u64() as u8).collect();
                self.durable.write(at, &garbage);
                coverage.hit(Event::SectorCorrupted);
            } else if rng.coin() {
                self.durable.write(at, sector);
                landed += 1;
            }
        }
        if landed != 0 && landed * SECTOR_BYTES != bytes.len() {
            coverage.hit(Event::WriteTorn);
        }
    }
}

/// `bytes` at `at`, cut at sector boundaries.
fn in_sectors(at: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let sector = SECTOR_BYTES as u64;
    let first = ((sector - at % sector) as usize).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    let rest_at = at + first as u64;
    let following = rest.chunks(SECTOR_BYTES).enumerate();
    let following =
        following.map(move |(index, part)| (rest_at + (index * SECTOR_BYTES) as u64, part));
    std::iter::once((at, head)).chain(following)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(byte: u8, length: usize) -> Bytes {
        Bytes::whole(vec![byte; length])
    }

    fn after_power_loss(make: impl Fn(&mut File)) -> Vec<Vec<u8>> {
        let outcome = |seed| {
            let mut file = File::default();
            make(&mut file);
            file.lose_power(&mut Rng::new(seed), &mut Coverage::default());
            file.read(0, 8_192)
        };
        (0..200).map(outcome).collect()
    }

    #[test]
    fn what_a_sync_covered_survives_and_nothing_else_is_certain() {
        let outcomes = after_power_loss(|file| {
            file.write(0, filled(1, 1_024), false);
            let covered = file.begin_sync();
            file.write(1_024, filled(2, 1_024), false);
            file.complete_sync(covered);
        });
        assert!(outcomes.iter().all(|bytes| bytes[..1_024] == [1; 1_024]));
        let second = |bytes: &Vec<u8>| bytes.get(1_024..2_048) == Some(&[2; 1_024]);
        assert!(outcomes.iter().any(second) && !outcomes.iter().all(second));
    }

    #[test]
    fn a_failed_sync_makes_no_later_one_prove_what_it_covered() {
        let outcomes = after_power_loss(|file| {
            file.write(0, filled(1, 512), false);
            let covered = file.begin_sync();
            file.fail_sync(covered, &mut Rng::new(2));
            file.fail_sync(covered, &mut Rng::new(3));
            let covered = file.begin_sync();
            file.complete_sync(covered);
        });
        assert!(
            outcomes
                .iter()
                .any(|bytes| bytes.get(..512) != Some(&[1; 512]))
        );
    }

    #[test]
    fn the_question_of_survival_is_answered_as_power_losses_do() {
        let make = |file: &mut File| {
            file.write(0, filled(1, 1_024), true);
            file.write(0, filled(1, 512), false);
            file.write(512, filled(2, 512), false);
            file.write(1_024, filled(3, 512), false);
            file.write(1_024, filled(3, 512), true);
        };
        let mut file = File::default();
        make(&mut file);
        let survives = [(0, 1), (512, 1), (512, 2), (1_024, 3)].map(|(at, byte)| {
            let claimed = file.holds_after_power_loss(at, &[byte; 512]);
            let range = at as usize..at as usize + 512;
            let found = after_power_loss(make)
                .iter()
                .all(|bytes| bytes.get(range.clone()) == Some(&[byte; 512]));
            assert_eq!(claimed, found, "{byte} at {at}");
            claimed
        });
        assert_eq!(survives, [true, false, false, true]);
    }

    #[test]
    fn what_was_cut_off_reads_as_zeros() {
        let mut file = File::default();
        file.write(0, filled(1, 4_096), true);
        file.resize(100);
        file.resize(4_096);
        assert_eq!(file.read(90, 20), [[1; 10], [0; 10]].concat());
    }

    #[test]
    #[should_panic(expected = "share a block")]
    fn writes_in_flight_may_not_share_a_block() {
        let mut file = File::default();
        file.begin_write(0, 8_192);
        file.begin_write(4_096, 4_096);
    }
}
