//! Taking a batch: admission, offsets, a place in a chunk.
//!
//! S9: between assigning an offset and placing the bytes nothing is awaited; both happen here, in one step.

use tackboard_schema::record_batch::BatchHeader;
use tackboard_schema::{Acks, Durability, ErrorCode, Offset};

use super::Log;
use super::chunk::Chunk;
use super::position::Position;
use super::producers::Sequencing;
use super::progress::UNWRITTEN;
use crate::request::acks::AckWaiter;
use crate::request::produce::EffectiveAcks;
use crate::shard::context::Context;
use crate::shard::interface::{
    Append, BLOCK_BYTES, Effect, PayloadId, Produced, Refusal, RefusalDetail,
};

/// The greatest number of replicas that acks may ask for.
const ACKS_MAX: i16 = 1000;

/// What an append is answered after.
#[derive(Clone, Copy, Debug)]
struct Condition {
    respond: bool,
    durability: Durability,
}

impl Log {
    /// Appends a batch, or refuses it. True: the log has something to write.
    pub(crate) fn append(&mut self, append: &Append, cx: &mut Context<'_>) -> bool {
        let acks = EffectiveAcks::new(append.acks, self.config.acks_default, self.config.acks_min);
        let respond = acks.is_answered();
        let durability = append.durability.map_or(self.config.durability, |asked| {
            asked.max(self.config.durability)
        });
        let condition = Condition {
            respond,
            durability,
        };
        match self.admit(append, acks, cx) {
            Ok(Sequencing::Next) => {
                let base = self.place(&append.header, append.payload, cx);
                self.want(durability, cx);
                self.answer_when_due(
                    append,
                    base,
                    self.positions.appended().offset,
                    condition,
                    false,
                    cx,
                );
                true
            }
            Ok(Sequencing::Duplicate {
                base_offset,
                next_offset,
            }) => {
                cx.stats.duplicate_batches += 1;
                cx.out.push(Effect::Discard {
                    payload: append.payload,
                });
                self.answer_when_due(append, base_offset, next_offset, condition, true, cx);
                false
            }
            Err(refusal) => {
                cx.stats.refused_appends += 1;
                cx.out.push(Effect::Discard {
                    payload: append.payload,
                });
                cx.refuse(append.ticket, respond, refusal);
                false
            }
        }
    }

    /// Everything that can stand in the way of an append, cheapest first; nothing is changed.
    fn admit(
        &self,
        append: &Append,
        acks: EffectiveAcks,
        cx: &Context<'_>,
    ) -> Result<Sequencing, Refusal> {
        let refuse = |code, detail| Err(Refusal { code, detail });
        self.admit_change()?;
        if self.is_truncating() {
            // Who asks again finds the leader, which may be this broker once the log is cut.
            return refuse(ErrorCode::NotLeaderOrFollower, RefusalDetail::Truncating);
        }
        if cx.admission.shutting_down {
            return refuse(ErrorCode::ShuttingDown, RefusalDetail::ShuttingDown);
        }
        // What was asked for must make sense, and so must what the floor makes of it.
        for acks in [acks.asked, acks.level] {
            self.admit_acks(acks)?;
        }
        self.admit_batch(&append.header)?;
        let sequencing = self.producers.check(&append.header)?;
        if let Sequencing::Duplicate { .. } = sequencing {
            return Ok(sequencing);
        }
        if let Some((free_bytes, reserve_bytes)) = cx.admission.full {
            let detail = RefusalDetail::StorageFull {
                free_bytes,
                reserve_bytes,
            };
            return refuse(ErrorCode::StorageFull, detail);
        }
        let free_bytes = cx.admission.free_after_appends(cx.stats);
        if free_bytes < cx.admission.free_bytes && free_bytes < cx.admission.refused_below() {
            let reserve_bytes = cx.admission.reserve_bytes;
            let detail = RefusalDetail::StorageFull {
                free_bytes,
                reserve_bytes,
            };
            return refuse(ErrorCode::StorageFull, detail);
        }
        if self.waits_for_space {
            return refuse(ErrorCode::StorageFull, RefusalDetail::WritesWaitForSpace);
        }
        if let Some((held_bytes, bytes_max)) = cx.memory.over_hard_cap() {
            let detail = RefusalDetail::OverBudget {
                held_bytes,
                bytes_max,
            };
            return refuse(ErrorCode::OverBudget, detail);
        }
        Ok(sequencing)
    }

    fn admit_acks(&self, acks: Acks) -> Result<(), Refusal> {
        let Acks::Count(count) = acks else {
            return Ok(());
        };
        if !(0..=ACKS_MAX).contains(&count) {
            let detail = RefusalDetail::InvalidAcks { acks: count };
            return Err(Refusal {
                code: ErrorCode::InvalidRequiredAcks,
                detail,
            });
        }
        // On one broker the leader is the only replica in sync.
        if count > self.config.replicas {
            let replicas = self.config.replicas;
            let detail = RefusalDetail::NotEnoughReplicas {
                replicas,
                acks: count,
            };
            return Err(Refusal {
                code: ErrorCode::NotEnoughReplicas,
                detail,
            });
        }
        Ok(())
    }

    fn admit_batch(&self, header: &BatchHeader) -> Result<(), Refusal> {
        let bytes = header.total_length() as u64;
        let bytes_max = u64::from(self.config.batch_bytes_max).min(self.config.segment_bytes);
        if bytes > bytes_max {
            let detail = RefusalDetail::BatchTooLarge { bytes, bytes_max };
            return Err(Refusal {
                code: ErrorCode::MessageTooLarge,
                detail,
            });
        }
        if header.last_offset_delta < 0 || header.record_count < 1 {
            let what = "it has no record, or ends before it begins";
            let detail = RefusalDetail::InvalidBatch { what };
            return Err(Refusal {
                code: ErrorCode::InvalidRecord,
                detail,
            });
        }
        let records = i64::from(header.last_offset_delta) + 1;
        if self
            .positions
            .appended()
            .offset
            .0
            .checked_add(records)
            .is_none()
        {
            let detail = RefusalDetail::OffsetsExhausted;
            return Err(Refusal {
                code: ErrorCode::InvalidRecord,
                detail,
            });
        }
        Ok(())
    }

    /// Assigns offsets and a place; returns the base offset.
    fn place(&mut self, header: &BatchHeader, payload: PayloadId, cx: &mut Context<'_>) -> Offset {
        let length = header.total_length() as u32;
        let records = i64::from(header.last_offset_delta) + 1;
        self.roll_if_due(u64::from(length), records, cx);
        self.make_room(length, cx);

        let start = self.positions.appended();
        let end = Position {
            offset: start.offset.plus(records),
            at: start.at.plus(u64::from(length)),
        };
        let leader_epoch = self.leader_epoch;
        let chunk = self.chunks.last_mut().expect("room was made in a chunk");
        let at = chunk.filled;
        debug_assert_eq!(chunk.origin.plus(u64::from(at)), start.at);
        chunk.filled += length;
        chunk.batch_count += 1;
        cx.out.push(Effect::Place {
            payload,
            chunk: chunk.id,
            at,
            base_offset: start.offset,
            leader_epoch,
        });

        self.recent.push(start);
        self.note_in_segment(start, header, cx);
        self.producers.note(header, start.offset, cx.now);
        self.last_append = Some(cx.now.wall);
        self.positions.append(end);
        cx.stats.appended_batches += 1;
        cx.stats.appended_records += records as u64;
        cx.stats.appended_bytes += u64::from(length);
        start.offset
    }

    fn note_in_segment(&mut self, start: Position, header: &BatchHeader, cx: &mut Context<'_>) {
        let interval = self.config.index_interval_bytes;
        let active = self.segments.active_mut();
        let before = active.index.memory_bytes();
        active.note_batch(start, header.max_timestamp, cx.now.wall, interval);
        *cx.index_bytes += active.index.memory_bytes() as i64 - before as i64;
    }

    /// Makes sure that the last chunk is open, belongs to the active segment and has room for `length` bytes.
    fn make_room(&mut self, length: u32, cx: &mut Context<'_>) {
        let segment = self.segments.active().base;
        let has_room = self.chunks.last().is_some_and(|chunk| {
            !chunk.frozen && chunk.segment == segment && chunk.capacity - chunk.filled >= length
        });
        if has_room {
            return;
        }
        self.freeze_last(true, cx);
        let start = self.positions.appended();
        let file_at = self.segments.active().bytes_to(start.at);
        let tail = self.chunks.last().filter(|chunk| chunk.segment == segment);
        let (from, from_at, tail_length) = match tail {
            Some(chunk) => (Some(chunk.id), chunk.whole(), chunk.filled - chunk.whole()),
            None => (None, 0, 0),
        };
        let capacity = self
            .chunks
            .capacity_for(tail_length + length, cx.memory.is_tight());
        let to = cx.memory.allocate(capacity, cx.out);
        if let Some(from) = from
            && tail_length > 0
        {
            cx.out.push(Effect::CopyTail {
                from,
                from_at,
                length: tail_length,
                to,
            });
        }
        let file_at = file_at - u64::from(tail_length);
        debug_assert_eq!(file_at % u64::from(BLOCK_BYTES), 0);
        self.chunks.push(Chunk {
            id: to,
            segment,
            origin: self.segments.active().start.plus(file_at),
            file_at,
            capacity,
            own_at: tail_length,
            filled: tail_length,
            issued: 0,
            frozen: false,
            first_batch: self.recent.next_sequence(),
            batch_count: 0,
            pinned: false,
            trimmed: false,
        });
        if let Some(pinned) = self.chunks.take_pinned_before_last() {
            cx.memory.release_pinned(&pinned, cx.out);
        }
    }

    /// Freezes the last chunk, if it is open. `full`: because no more fits, not because it is to be written.
    pub(super) fn freeze_last(&mut self, full: bool, cx: &mut Context<'_>) {
        let Some(chunk) = self.chunks.last_mut().filter(|chunk| !chunk.frozen) else {
            return;
        };
        chunk.frozen = true;
        let (id, filled, capacity) = (chunk.id, chunk.filled, chunk.capacity);
        cx.out.push(Effect::Freeze {
            chunk: id,
            length: filled,
        });
        if full {
            self.chunks.learn_full(capacity);
        } else {
            self.chunks.learn_written(filled, capacity);
        }
    }

    /// Says to the sync plan how durable what was just appended shall become.
    fn want(&mut self, durability: Durability, cx: &mut Context<'_>) {
        let end = self.positions.appended().offset;
        match durability {
            Durability::Written => {}
            Durability::Interval => self.interval_until = end,
            Durability::Fsync => {
                self.sync.want(end);
                cx.plan.refresh(self.id, &mut self.sync);
            }
        }
    }

    /// Answers an append at once if its condition holds, else lets it wait.
    fn answer_when_due(
        &mut self,
        append: &Append,
        base_offset: Offset,
        next_offset: Offset,
        condition: Condition,
        duplicate: bool,
        cx: &mut Context<'_>,
    ) {
        let durable = condition.durability == Durability::Fsync;
        let reached = if durable {
            self.sync.durable()
        } else {
            self.positions.written()
        };
        if !condition.respond || next_offset <= reached.offset {
            let produced = self.produced(base_offset, duplicate);
            cx.out.push(Effect::AnswerProduce {
                ticket: append.ticket,
                respond: condition.respond,
                outcome: Ok(produced),
            });
            return;
        }
        if self.waits_for_space && next_offset > self.positions.written().offset {
            cx.refuse(append.ticket, true, UNWRITTEN);
            return;
        }
        if duplicate && durable {
            // The batch may have been appended under a weaker durability than its retry asks for.
            self.sync.want(next_offset);
            cx.plan.refresh(self.id, &mut self.sync);
        }
        cx.give_up_at(append.deadline_us);
        let waiter = AckWaiter {
            ticket: append.ticket,
            base_offset,
            next_offset,
            deadline_us: append.deadline_us,
            duplicate,
        };
        match durable {
            true => self.durable_waiters.insert(waiter),
            false => self.written_waiters.insert(waiter),
        }
    }

    pub(super) fn produced(&self, base_offset: Offset, duplicate: bool) -> Produced {
        Produced {
            base_offset,
            log_append_time: None,
            log_start_offset: self.log_start,
            duplicate,
        }
    }
}
