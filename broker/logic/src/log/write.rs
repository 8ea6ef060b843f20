//! What is written when.
//!
//! - Nothing in flight: everything pending goes out, the partial tail block padded with zeros.
//! - Others in flight: whole blocks only, and only when [`BACKLOG_WRITE_BYTES_MIN`] of them are pending; the tail
//!   waits, since the next append will change its block.
//! - A segment that was rolled does not grow any more, so its tail goes out like whole blocks.
//! - Never two writes in flight over one block: the next write of a block waits for the one before.
//!
//! Whether there is more to write is decided by what was *issued*, never by what was completed.
//!
//! Writes may complete in any order; `written` follows their contiguous prefix.

use super::chunk::{block_ceil, block_floor};
use super::limits::{
    BACKLOG_WRITE_BYTES_MIN, IO_TIMEOUT_US, WRITE_BYTES_MAX, WRITES_IN_FLIGHT_MAX,
};
use super::position::StreamByte;
use super::segment::Seal;
use super::sync_plan::Reach;
use super::{Log, LogState};
use crate::shard::context::Context;
use crate::shard::interface::{BLOCK_BYTES, Effect, SegmentBase, StorageFault, WriteId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteState {
    Flying,
    Done,
    Failed,
}

/// A write that is in flight, or has completed behind one that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteInFlight {
    id: WriteId,
    segment: SegmentBase,
    /// Where the bytes before it end.
    from: StreamByte,
    reach: Reach,
    synced: bool,
    /// It ends within a block, which the next write covers again.
    is_partial: bool,
    /// Blocks of its file, for the invariant that no two writes in flight share one.
    blocks: (u64, u64),
    started_us: u64,
    state: WriteState,
}

impl WriteInFlight {
    pub(crate) fn is_flying(&self) -> bool {
        self.state == WriteState::Flying
    }

    pub(super) fn shares_block_with(&self, other: &Self) -> bool {
        let apart = self.blocks.1 <= other.blocks.0 || other.blocks.1 <= self.blocks.0;
        self.segment == other.segment && !apart
    }

    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    pub(super) fn from(&self) -> StreamByte {
        self.from
    }
}

impl Log {
    /// Issues the writes that are due.
    pub(crate) fn issue_due(&mut self, cx: &mut Context<'_>) {
        if self.state != LogState::Open || self.waits_for_space {
            return;
        }
        let flush = self.writes.is_empty();
        if !flush && self.chunks.pending_whole_bytes() < BACKLOG_WRITE_BYTES_MIN {
            return;
        }
        let before = self.issued.byte;
        while self.writes.len() < WRITES_IN_FLIGHT_MAX {
            let Some(index) = self.chunks.first_pending() else {
                break;
            };
            let Some((from, to)) = self.issuable(index, flush) else {
                break;
            };
            self.issue(index, from, to, cx);
        }
        if self.issued.byte > before && !self.draining {
            self.preallocate_if_due(cx);
        }
    }

    /// The bytes of a chunk that may be written now: from a block boundary to where its bytes, or whole blocks, end.
    fn issuable(&self, index: usize, flush: bool) -> Option<(u32, u32)> {
        let chunk = &self.chunks.list()[index];
        let segment = self.segments.find(chunk.segment)?;
        // A seal cuts the file to its length: nothing may be written behind it meanwhile.
        if !segment.created || segment.seal == Seal::Sealing {
            return None;
        }
        let overlaps =
            |w: &WriteInFlight| w.is_partial && w.is_flying() && w.segment == chunk.segment;
        if self.writes.back().is_some_and(overlaps) {
            return None;
        }
        let may_grow = self.chunks.is_last(index) && segment.end.is_none();
        let to = if may_grow && !flush {
            chunk.whole()
        } else {
            self.chunks.issuable_end(index)
        };
        let from = block_floor(chunk.issued);
        let too_early = may_grow
            && !flush
            && !chunk.frozen
            && u64::from(to.saturating_sub(from)) < BACKLOG_WRITE_BYTES_MIN;
        let to = to.min(from + WRITE_BYTES_MAX);
        (to > chunk.issued && !too_early).then_some((from, to))
    }

    fn issue(&mut self, index: usize, from: u32, to: u32, cx: &mut Context<'_>) {
        if self.chunks.is_last(index) {
            self.freeze_last(false, cx);
        }
        let synced =
            self.sync.is_wanted_behind(self.issued.end) && cx.plan.writes_prove_themselves();
        let chunk = self.chunks.get_mut(index);
        chunk.issued = to;
        let chunk = *chunk;
        let byte = chunk.origin.plus(u64::from(to));
        let appended = self.positions.appended();
        let end = self.recent.boundary_at_or_before(byte, appended);
        let reach = Reach {
            byte,
            end: end.map_or(self.issued.end, |end| end.max(self.issued.end)),
        };
        let length = block_ceil(to) - from;
        let file_at = chunk.file_at + u64::from(from);
        let write = cx.next_write();
        self.writes.push_back(WriteInFlight {
            id: write,
            segment: chunk.segment,
            from: self.issued.byte,
            reach,
            synced,
            is_partial: !to.is_multiple_of(BLOCK_BYTES),
            blocks: (file_at, file_at + u64::from(length)),
            started_us: cx.now.monotonic_us,
            state: WriteState::Flying,
        });
        self.issued = reach;
        cx.give_up_at(cx.now.monotonic_us.saturating_add(IO_TIMEOUT_US));
        cx.stats.writes += 1;
        cx.stats.written_bytes += u64::from(length);
        cx.stats.synced_writes += u64::from(synced);
        cx.start(Effect::Write {
            log: self.id,
            segment: chunk.segment,
            write,
            chunk: chunk.id,
            at: from,
            length,
            file_at,
            synced,
        });
    }

    /// A write completed. Writes that are not known any more are ignored.
    pub(crate) fn written(
        &mut self,
        write: WriteId,
        result: Result<(), StorageFault>,
        cx: &mut Context<'_>,
    ) {
        let Some(flight) = self.writes.iter_mut().find(|flight| flight.id == write) else {
            return;
        };
        flight.state = if result.is_ok() {
            WriteState::Done
        } else {
            WriteState::Failed
        };
        match result {
            Ok(()) => {}
            Err(StorageFault::NoSpace) => self.waits_for_space = true,
            Err(fault) => self.fence(fault, cx),
        }
        self.advance_written();
        if self.waits_for_space && !self.has_writes_flying() {
            self.rewind_writes();
        }
    }

    /// Moves `written` over the contiguous prefix of completed writes.
    fn advance_written(&mut self) {
        while let Some(flight) = self.writes.front() {
            match flight.state {
                WriteState::Flying => return,
                WriteState::Failed if !self.is_over() => return,
                // Behind a fault nothing moves any more; the entries are only awaited (S3).
                _ if self.is_over() => {}
                _ => {
                    let before = self.positions.written_byte();
                    debug_assert_eq!(before, flight.from);
                    self.positions.write(flight.reach.end, flight.reach.byte);
                    self.sync.note_write(before, flight.reach, flight.synced);
                }
            }
            self.writes.pop_front();
        }
    }

    /// Fenced, deleted or to be cut: positions do not move any more.
    pub(super) fn is_over(&self) -> bool {
        self.state != LogState::Open
    }

    /// The disk was full: everything behind the written prefix is to be issued again, once there is space.
    fn rewind_writes(&mut self) {
        self.writes.clear();
        let written = Reach {
            byte: self.positions.written_byte(),
            end: self.positions.written(),
        };
        self.issued = written;
        self.chunks.rewind(written.byte);
    }

    /// There is space again.
    /// True: the log had waited for it.
    pub(crate) fn resume_writes(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.waits_for_space || self.has_writes_flying() || self.is_over() {
            return false;
        }
        self.waits_for_space = false;
        self.create_segments(cx);
        self.issue_due(cx);
        true
    }

    /// Whether any write has not completed.
    pub(super) fn has_writes_flying(&self) -> bool {
        self.writes.iter().any(WriteInFlight::is_flying)
    }

    /// When the oldest write in flight was started.
    pub(super) fn oldest_write_us(&self) -> Option<u64> {
        let flying = self.writes.iter().filter(|flight| flight.is_flying());
        flying.map(|flight| flight.started_us).min()
    }

    /// The writes in flight or out of order, for the invariants.
    pub(super) fn writes(&self) -> impl Iterator<Item = &WriteInFlight> + '_ {
        self.writes.iter()
    }
}
