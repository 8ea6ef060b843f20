//! Cutting the end off an open log, as a replica does that differs from its leader (S8, R8).
//!
//! ```text
//! Locating ──▶ Flushing ──▶ Settling ──▶ Recording ──▶ Reopening ──▶ Confirming ──▶ open again
//! ```
//!
//! 1. From the first step on nothing is appended, nothing is served, and whoever waits for what will be gone is told so.
//! 2. The place of the cut is found: among the batches in memory, at the start of a segment, or on disk.
//! 3. What lies below it is made durable: it stays. What is in flight is awaited, and nothing is started any more.
//! 4. The ledger says on the medium where the log ends. Until then a crash leaves the log as it was; from then on every
//!    recovery cuts there.
//! 5. [`recovery`](super::recovery) does it: files go or are cut and synced, the producers are rebuilt from what is left.
//!    The log begins anew with what was found, as it does at a start: no byte, position or name of before is left.
//! 6. The ledger says that it is done, and the log takes appends again only when that is on the medium: an earlier one
//!    would be cut away by the next recovery.
//!
//! An offset within a batch takes the whole batch: the log then ends at its base offset. Kafka cuts its file there, too,
//! but counts on from the offset asked for; here offsets have no gaps.
//!
//! Not here: to which offset. That is for replication, which compares epochs.

use tackboard_schema::storage::ledger::LedgerRecord;
use tackboard_schema::{ErrorCode, LeaderEpoch, Offset};

use super::boundary::{BoundarySearch, LOCATE_READ_BYTES};
use super::index::relative;
use super::position::Position;
use super::recovery::{RecoveredLog, RestartClass};
use super::{Log, LogState};
use crate::ledger::writer::RecordNumber;
use crate::shard::context::Context;
use crate::shard::interface::{
    Effect, OpenLog, Refusal, RefusalDetail, Reopen, SegmentBase, StorageFault, Ticket, Truncate,
    Truncated,
};

/// A truncation under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncation {
    /// Whom to tell; nobody where a start finishes what the last process began.
    ticket: Option<Ticket>,
    /// The epoch in which the log goes on.
    leader_epoch: LeaderEpoch,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The batch that holds the offset is looked for on disk.
    Locating(BoundarySearch),
    /// What lies below the cut becomes durable.
    Flushing(Cut),
    /// What is in flight is awaited.
    Settling(Cut),
    /// The ledger is told where the log ends.
    Recording(Cut, RecordNumber),
    /// The driver cuts the files and recovers the log.
    Reopening(Cut),
    /// The ledger is told that it is done.
    Confirming(RecordNumber),
}

/// Where the log is to end.
#[derive(Clone, Copy, Debug)]
struct Cut {
    end: Position,
    segment: SegmentBase,
    file_at: u64,
}

impl Log {
    /// Begins a truncation, or does it at once where there is nothing to cut. Those whose fetches are parked are told by
    /// the caller.
    pub(crate) fn begin_truncation(
        &mut self,
        truncate: &Truncate,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        self.admit_truncation(truncate, cx)?;
        let Truncate {
            offset,
            leader_epoch,
            ..
        } = *truncate;
        if offset == self.positions.appended().offset {
            // What epochs begin at or behind the end is forgotten all the same (R12).
            self.leader_epoch = leader_epoch;
            self.begin_epoch(cx);
            cx.out.push(Effect::AnswerTruncate {
                log: self.id,
                ticket: truncate.ticket,
                outcome: Ok(Truncated {
                    log_end_offset: offset,
                }),
            });
            return Ok(());
        }
        let phase = match self.locate_cut(truncate) {
            Ok(cut) => {
                self.admit_cut(cut.end.offset)?;
                Phase::Flushing(cut)
            }
            Err(search) => Phase::Locating(search),
        };
        let above = Refusal {
            code: ErrorCode::NotLeaderOrFollower,
            detail: RefusalDetail::Truncating,
        };
        for queue in [&mut self.written_waiters, &mut self.durable_waiters] {
            queue.refuse_beyond(offset, |waiter| cx.refuse(waiter.ticket, true, above));
        }
        // The log begins anew, and with it whoever waits.
        self.refuse_advances(above, cx);
        self.truncation = Some(Truncation {
            ticket: Some(truncate.ticket),
            leader_epoch,
            phase,
        });
        match phase {
            Phase::Locating(search) => self.read_for_cut(search, cx),
            _ => self.want_below_cut(offset, cx),
        }
        Ok(())
    }

    fn admit_truncation(&self, truncate: &Truncate, cx: &Context<'_>) -> Result<(), Refusal> {
        let refuse = |code, detail| Err(Refusal { code, detail });
        self.admit_change()?;
        if cx.admission.shutting_down {
            return refuse(ErrorCode::ShuttingDown, RefusalDetail::ShuttingDown);
        }
        if self.is_truncating() {
            return refuse(ErrorCode::NotLeaderOrFollower, RefusalDetail::Truncating);
        }
        if truncate.leader_epoch <= self.leader_epoch {
            let detail = RefusalDetail::StaleLeaderEpoch {
                current: self.leader_epoch,
                got: truncate.leader_epoch,
            };
            return refuse(ErrorCode::FencedLeaderEpoch, detail);
        }
        let (offset, end) = (truncate.offset, self.positions.appended().offset);
        if offset < self.log_start || offset > end {
            let detail = RefusalDetail::CutOutOfRange {
                offset,
                log_start_offset: self.log_start,
                log_end_offset: end,
            };
            return refuse(ErrorCode::OffsetOutOfRange, detail);
        }
        let high_watermark = self.high_watermark.offset;
        if offset < high_watermark && !truncate.below_high_watermark {
            let detail = RefusalDetail::CutBelowHighWatermark {
                offset,
                high_watermark,
            };
            return refuse(ErrorCode::InvalidRequest, detail);
        }
        let within_damage = self
            .damaged
            .iter()
            .any(|range| range.from < offset && offset < range.to);
        if within_damage || self.segments.holding(offset).is_none() {
            return refuse(ErrorCode::KafkaStorageError, RefusalDetail::NoBoundary);
        }
        Ok(())
    }

    /// A log may begin within a batch. That batch is not cut away: the log would end before its start.
    fn admit_cut(&self, boundary: Offset) -> Result<(), Refusal> {
        let log_start_offset = self.log_start;
        if boundary >= log_start_offset {
            return Ok(());
        }
        Err(Refusal {
            code: ErrorCode::OffsetOutOfRange,
            detail: RefusalDetail::CutBelowStart {
                boundary,
                log_start_offset,
            },
        })
    }

    /// Where the cut lies, if that can be told without a read.
    fn locate_cut(&self, truncate: &Truncate) -> Result<Cut, BoundarySearch> {
        let offset = truncate.offset;
        let index = self
            .segments
            .holding(offset)
            .expect("the offset was found to lie in a segment");
        let segment = self.segments.get(index).expect("it was just found");
        let at_start = Position {
            offset: segment.base.0,
            at: segment.start,
        };
        let in_memory = self
            .recent
            .first()
            .filter(|first| first.offset <= offset)
            .and_then(|_| self.recent.holding(offset));
        let known = (segment.base.0 == offset).then_some(at_start).or(in_memory);
        match known {
            Some(end) => Ok(Cut {
                end,
                segment: segment.base,
                file_at: segment.bytes_to(end.at),
            }),
            None => {
                let hit = relative(segment.base.0, offset)
                    .map(|offset| segment.index.find_offset(offset));
                let file_at = hit.map_or(0, |hit| u64::from(hit.file_at));
                Err(BoundarySearch::new(segment.base, offset, file_at))
            }
        }
    }

    fn read_for_cut(&mut self, search: BoundarySearch, cx: &mut Context<'_>) {
        self.truncation_io = true;
        cx.start(Effect::ReadSegment {
            log: self.id,
            segment: search.segment,
            file_at: search.file_at,
            length: LOCATE_READ_BYTES,
        });
    }

    /// Bytes of a segment arrived.
    pub(crate) fn segment_read(
        &mut self,
        result: Result<&[u8], StorageFault>,
        cx: &mut Context<'_>,
    ) {
        self.truncation_io = false;
        let Some(truncation) = &mut self.truncation else {
            return;
        };
        let Phase::Locating(search) = &mut truncation.phase else {
            return;
        };
        let bytes = match result {
            Ok(bytes) => bytes,
            Err(fault) => return self.give_up_truncation(RefusalDetail::CutFailed(fault), cx),
        };
        match search.feed(bytes) {
            Ok(None) => {
                let search = *search;
                self.read_for_cut(search, cx);
            }
            Ok(Some(found)) if found.offset < self.log_start => {
                let detail = RefusalDetail::CutBelowStart {
                    boundary: found.offset,
                    log_start_offset: self.log_start,
                };
                self.give_up_truncation(detail, cx);
            }
            Ok(Some(found)) => {
                let segment = self.segments.find(search.segment);
                let segment = segment.expect("nothing goes while the log is cut");
                let end = Position {
                    offset: found.offset,
                    at: segment.start.plus(found.file_at),
                };
                truncation.phase = Phase::Flushing(Cut {
                    end,
                    segment: segment.base,
                    file_at: found.file_at,
                });
                self.want_below_cut(found.offset, cx);
            }
            Err(_) => self.give_up_truncation(RefusalDetail::NoBoundary, cx),
        }
    }

    fn want_below_cut(&mut self, offset: Offset, cx: &mut Context<'_>) {
        self.sync.want(offset);
        cx.plan.refresh(self.id, &mut self.sync);
        self.issue_due(cx);
    }

    /// Nothing was cut, and the log goes on as it is.
    pub(super) fn give_up_truncation(&mut self, detail: RefusalDetail, cx: &mut Context<'_>) {
        let code = match detail {
            RefusalDetail::Deleted => ErrorCode::UnknownTopicOrPartition,
            RefusalDetail::CutBelowStart { .. } => ErrorCode::OffsetOutOfRange,
            _ => ErrorCode::KafkaStorageError,
        };
        if let Some(Truncation {
            ticket: Some(ticket),
            ..
        }) = self.truncation.take()
        {
            cx.out.push(Effect::AnswerTruncate {
                log: self.id,
                ticket,
                outcome: Err(Refusal { code, detail }),
            });
        }
    }

    /// Whether a truncation is under way: nothing is appended and nothing is served.
    pub(crate) fn is_truncating(&self) -> bool {
        self.truncation.is_some()
    }

    /// Whether a truncation waits for the ledger.
    pub(super) fn truncation_awaits_ledger(&self) -> bool {
        let phase = self.truncation.map(|truncation| truncation.phase);
        matches!(phase, Some(Phase::Recording(..) | Phase::Confirming(_)))
    }

    /// Whether a storage fault now still finds the log as it was before the truncation.
    pub(super) fn is_cut(&self) -> bool {
        let phase = self.truncation.map(|truncation| truncation.phase);
        matches!(
            phase,
            Some(Phase::Recording(..) | Phase::Reopening(_) | Phase::Confirming(_))
        )
    }

    /// Goes as far as it can.
    pub(super) fn advance_truncation(&mut self, cx: &mut Context<'_>) {
        while let Some(phase) = self.next_phase(cx) {
            match &mut self.truncation {
                Some(truncation) => truncation.phase = phase,
                None => return,
            }
        }
    }

    /// Leaves the phase if it is over: does what begins the next one, and names it.
    fn next_phase(&mut self, cx: &mut Context<'_>) -> Option<Phase> {
        let truncation = self.truncation?;
        match truncation.phase {
            Phase::Flushing(cut) if self.sync.durable().offset >= cut.end.offset => {
                self.state = LogState::Truncating;
                Some(Phase::Settling(cut))
            }
            Phase::Flushing(_) if self.waits_for_space && !self.has_writes_flying() => {
                let detail = RefusalDetail::CutFailed(StorageFault::NoSpace);
                self.give_up_truncation(detail, cx);
                None
            }
            Phase::Settling(cut) if !self.has_io_in_flight() => {
                Some(Phase::Recording(cut, self.record_cut(cut, cx)))
            }
            Phase::Recording(cut, record) if record <= cx.ledger.durable() => {
                self.start_reopening(cx);
                Some(Phase::Reopening(cut))
            }
            Phase::Confirming(record) if record <= cx.ledger.durable() => {
                self.end_truncation(truncation, cx);
                None
            }
            _ => None,
        }
    }

    fn record_cut(&mut self, cut: Cut, cx: &mut Context<'_>) -> RecordNumber {
        // Nothing above the cut is to be recorded as durable behind this record, which that would end.
        self.ledger_durable = self.sync.durable();
        *cx.ledger_urgent = true;
        cx.ledger.record(LedgerRecord::Truncate {
            partition: self.partition,
            next_offset: cut.end.offset,
            segment_base: cut.segment.0,
            position: cut.file_at,
        })
    }

    fn start_reopening(&mut self, cx: &mut Context<'_>) {
        self.truncation_io = true;
        let ledger = cx.ledger.log(&self.partition).cloned().unwrap_or_default();
        cx.start(Effect::Reopen(Box::new(Reopen {
            log: self.id,
            topic_partition: self.partition,
            config: self.config.clone(),
            // What a crash would leave is what is recovered, so one way through it is enough.
            restart: RestartClass::ProcessCrash,
            ledger,
        })));
    }

    /// The files are cut and the log was recovered, or not.
    pub(crate) fn reopened(
        &mut self,
        result: Result<RecoveredLog, StorageFault>,
        cx: &mut Context<'_>,
    ) {
        self.truncation_io = false;
        // Its topic may have been deleted meanwhile.
        let Some(truncation) = self.truncation else {
            return;
        };
        let Phase::Reopening(cut) = truncation.phase else {
            return;
        };
        match result {
            Ok(recovered) => self.begin_anew(recovered, truncation, cx),
            Err(fault) => {
                // Nobody may read what the next recovery cuts away.
                self.high_watermark = self.high_watermark.min(cut.end);
                self.give_up_truncation(RefusalDetail::CutUnfinished(fault), cx);
                self.enter_fence(fault, cut.end.offset, cx);
            }
        }
    }

    /// Everything of before is given back; what was recovered takes its place, under the same name.
    fn begin_anew(
        &mut self,
        recovered: RecoveredLog,
        truncation: Truncation,
        cx: &mut Context<'_>,
    ) {
        assert!(
            self.waiting_appends() == 0 && self.parked.is_empty(),
            "whoever waits was answered before the cut"
        );
        self.give_back(cx);
        let open = OpenLog {
            log: self.id,
            topic_partition: self.partition,
            config: self.config.clone(),
            leader_epoch: truncation.leader_epoch,
            recovered,
        };
        let before = std::mem::replace(self, Self::open(open, cx));
        self.in_turn = before.in_turn;
        self.checkpoint_queued = before.checkpoint_queued;
        self.ledger_queued = before.ledger_queued;
        self.draining = before.draining;
        if let Some(confirming) = &mut self.truncation {
            confirming.ticket = truncation.ticket;
        }
    }

    /// The log opens, and the ledger spoke of a cut until `record`: see the last step above.
    pub(super) fn confirm_cut(&mut self, record: RecordNumber) {
        self.state = LogState::Truncating;
        self.truncation = Some(Truncation {
            ticket: None,
            leader_epoch: self.leader_epoch,
            phase: Phase::Confirming(record),
        });
    }

    fn end_truncation(&mut self, truncation: Truncation, cx: &mut Context<'_>) {
        self.truncation = None;
        self.state = LogState::Open;
        if let Some(ticket) = truncation.ticket {
            cx.out.push(Effect::AnswerTruncate {
                log: self.id,
                ticket,
                outcome: Ok(Truncated {
                    log_end_offset: self.positions.appended().offset,
                }),
            });
        }
        if self.draining {
            self.begin_drain(cx);
        }
    }
}
