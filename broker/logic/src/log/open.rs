//! From what recovery found to a log that serves.

use std::collections::{BTreeSet, VecDeque};

use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{Offset, TimestampMs};

use super::chunk::Chunks;
use super::position::{Position, Positions, StreamByte};
use super::recent::RecentBatches;
use super::recovery::RecoveredSegment;
use super::segment::{Seal, Segment, Segments};
use super::sync_plan::{LogSync, Reach};
use super::{Log, LogState};
use crate::ledger::note_epoch;
use crate::ledger::writer::RecordNumber;
use crate::request::acks::AckQueue;
use crate::shard::context::Context;
use crate::shard::interface::{BLOCK_BYTES, Effect, OpenLog};

impl Log {
    /// Opens a log. Everything recovery found is written and durable (S4), so it is all visible.
    pub(crate) fn open(open: OpenLog, cx: &mut Context<'_>) -> Self {
        let recovered = open.recovered;
        let segments = Segments::new(segments(&recovered.segments, cx.now.wall));
        let active = segments.active();
        let size = recovered
            .segments
            .last()
            .map_or(0, |segment| segment.size_bytes);
        let end = Position {
            offset: recovered.log_end_offset,
            at: active.start.plus(size),
        };
        let mut log = Self {
            id: open.log,
            partition: open.topic_partition,
            config: open.config,
            leader_epoch: open.leader_epoch,
            state: LogState::Open,
            log_start: recovered.log_start_offset,
            high_watermark: end,
            positions: Positions::recovered(end),
            sync: LogSync::recovered(end),
            last_append: segments.iter().filter_map(|s| s.last_append).max(),
            segments,
            doomed: VecDeque::new(),
            chunks: Chunks::new(),
            recent: RecentBatches::default(),
            writes: VecDeque::new(),
            issued: Reach { byte: end.at, end },
            waits_for_space: false,
            segment_work: 0,
            checkpoint: None,
            checkpoint_queued: false,
            truncation: None,
            truncation_io: false,
            producers: recovered.producers,
            epochs: recovered.epochs,
            damaged: recovered.damaged,
            written_waiters: AckQueue::default(),
            durable_waiters: AckQueue::default(),
            advances: VecDeque::new(),
            start_record: RecordNumber::default(),
            parked: BTreeSet::new(),
            interval_until: end.offset,
            // Recorded at once, below.
            ledger_durable: Position::default(),
            ledger_queued: false,
            in_turn: false,
            draining: false,
        };
        if let Some(base) = recovered.lingering {
            log.linger(base);
        }
        log.producers.open(cx.now);
        log.keep_tail(&recovered.tail, cx);
        let was_cut = cx
            .ledger
            .log(&log.partition)
            .is_some_and(|known| known.truncate.is_some());
        let record = log.begin_epoch(cx);
        if was_cut {
            log.confirm_cut(record);
        }
        *cx.index_bytes += log.index_bytes() as i64;
        log
    }

    /// Memory of all sparse indexes, in bytes.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.index.memory_bytes())
            .sum()
    }

    /// Puts the partial last block into a chunk of its own, so that the next append can begin with it.
    fn keep_tail(&mut self, tail: &[u8], cx: &mut Context<'_>) {
        let end = self.positions.appended();
        let size = self.segments.active().bytes_to(end.at);
        assert_eq!(
            tail.len() as u64,
            size % u64::from(BLOCK_BYTES),
            "recovery hands over the tail block"
        );
        if tail.is_empty() {
            return;
        }
        let length = tail.len() as u32;
        let chunk = cx.memory.allocate_pinned(BLOCK_BYTES, cx.out);
        cx.out.push(Effect::Fill {
            chunk,
            at: 0,
            bytes: tail.into(),
        });
        self.push_pinned(chunk, length, cx);
    }

    /// Begins the epoch in which this broker leads the log, and records what the ledger does not say yet.
    pub(super) fn begin_epoch(&mut self, cx: &mut Context<'_>) -> RecordNumber {
        note_epoch(
            &mut self.epochs,
            self.leader_epoch,
            self.positions.appended().offset,
        );
        let known = cx.ledger.log(&self.partition);
        let known_epoch = known
            .and_then(|log| log.epochs.last())
            .map(|(epoch, _)| *epoch);
        let known_start = known.map_or(Offset(0), |log| log.log_start_offset);
        for (epoch, start_offset) in &self.epochs {
            if known_epoch.is_none_or(|known| known < *epoch) {
                cx.ledger.record(LedgerRecord::EpochStart {
                    partition: self.partition,
                    epoch: *epoch,
                    start_offset: *start_offset,
                });
            }
        }
        if known_start < self.log_start {
            self.record_log_start(cx);
        }
        *cx.ledger_urgent = true;
        self.record_durable(cx)
    }
}

/// The stream begins at the first recovered segment's first byte.
fn segments(recovered: &[RecoveredSegment], wall: TimestampMs) -> VecDeque<Segment> {
    let mut start = StreamByte(0);
    let count = recovered.len();
    let each = recovered.iter().enumerate().map(|(index, found)| {
        let at = Position {
            offset: found.base.0,
            at: start,
        };
        start = start.plus(found.size_bytes);
        let is_active = index + 1 == count;
        let mut segment = Segment::new(at, found.file_bytes);
        segment.created = true;
        segment.index = found.index.clone();
        segment.max_timestamp = found.max_timestamp;
        if found.size_bytes > 0 {
            // What no record tells counts as appended now, so that nothing expires too early.
            segment.first_append = found.first_append.or(Some(wall));
            segment.last_append = found.last_append.or(Some(wall));
        }
        segment.checkpoint_bytes = found.checkpoint_bytes;
        segment.producers = found.producers.clone();
        if is_active {
            segment.indexed = found.indexed;
        } else {
            segment.end = Some(Position {
                offset: found.next_offset,
                at: start,
            });
            segment.seal = if found.indexed {
                Seal::Sealed
            } else {
                Seal::Open
            };
        }
        segment
    });
    each.collect()
}
