//! Oldest records are deleted because somebody asks for it, mostly in the midst of a segment and often of a batch.

use tackboard_logic::shard::interface::{AdvanceLogStart, Input, Refusal, Ticket};
use tackboard_schema::Offset;

use super::World;
use super::producing::Waiting;
use crate::check;
use crate::coverage::Event as Seen;

/// What was asked for.
#[derive(Clone, Copy)]
pub(super) struct Deletion {
    partition: u32,
    /// `None`: everything that is visible.
    offset: Option<i64>,
}

impl World {
    /// Somebody wants the oldest records of some log gone.
    pub(super) fn delete_records(&mut self) {
        let Some(number) = self.pick_partition() else {
            return;
        };
        let Some((core, log)) = self.serving(number) else {
            return;
        };
        let partition = &self.partitions[number as usize];
        // What was seen last; both may have moved.
        let (start, high_watermark) = (partition.log_start, partition.high_watermark);
        let span = (high_watermark - start).max(0) as u64;
        let offset = match self.rng.below(8) {
            0 => None,
            1 => Some(start - 1),
            2 => Some(high_watermark + 1),
            _ => Some(start + self.rng.below(span + 1) as i64),
        };
        let deletion = Deletion {
            partition: number,
            offset,
        };
        let ticket = self.next_ticket();
        self.waiting
            .insert(ticket, Waiting::DeleteRecords(deletion));
        let advance = AdvanceLogStart {
            log,
            ticket: Ticket(ticket),
            offset: offset.map(Offset),
        };
        self.post(core, Input::AdvanceLogStart(advance));
    }

    /// An input is about to be given that may move a log's start.
    pub(super) fn note_deletion(&mut self, core: usize, input: &Input) {
        let Input::AdvanceLogStart(advance) = input else {
            return;
        };
        let host = self.host(core);
        let Some(number) = host.partitions.get(&advance.log).copied() else {
            return;
        };
        let Some(described) = host.shard.describe(advance.log) else {
            return;
        };
        let high_watermark = described.high_watermark.0;
        let offset = advance.offset.map_or(high_watermark, |offset| offset.0);
        if offset <= high_watermark {
            let partition = self.partition(number);
            partition.start_asked = partition.start_asked.max(offset);
        }
    }

    /// What became of a deletion.
    pub(super) fn records_deleted(&mut self, ticket: u64, outcome: Result<Offset, Refusal>) {
        let deletion = match self.waiting.remove(&ticket) {
            Some(Waiting::DeleteRecords(deletion)) => deletion,
            Some(Waiting::Rewritten { number }) => return self.group_log_advanced(number, outcome),
            _ => panic!("{ticket} is no deletion, or was answered before"),
        };
        let faulty = self.faults_were_injected();
        let partition = &mut self.partitions[deletion.partition as usize];
        match outcome {
            Ok(log_start) => {
                check::records_deleted(partition, deletion.offset, log_start.0);
                self.see(Seen::RecordsDeleted);
            }
            Err(refusal) => check::deletion_refused(partition, &refusal, faulty),
        }
    }
}
