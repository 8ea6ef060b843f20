//! Ends of logs are cut off, as replication will ask for: below what consumers saw, too.

use tackboard_logic::log::recovery::{Recovery, RecoveryStep};
use tackboard_logic::shard::interface::{
    Input, LogId, Refusal, RefusalDetail, Reopen, StorageFault, Ticket, Truncate, Truncated,
};
use tackboard_schema::{LeaderEpoch, Offset};

use super::boot::change;
use super::io::{Action, Completion};
use super::producing::Waiting;
use super::{World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::{FileName, FolderName};
use crate::model::Cutting;

/// What was asked for.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    partition: u32,
    offset: i64,
    leader_epoch: i32,
    below_high_watermark: bool,
}

/// The files of a log are being cut and recovered.
#[derive(Debug)]
pub(super) struct Reopening {
    log: LogId,
    number: u32,
    recovery: Recovery,
    /// The step under way is a read.
    reads: bool,
}

impl World {
    /// Somebody wants the end of some log gone.
    pub(super) fn cut_a_log(&mut self) {
        let Some(number) = self.pick_partition() else {
            return;
        };
        let Some((core, log)) = self.serving(number) else {
            return;
        };
        let below_high_watermark = self.rng.one_in(4);
        let partition = &self.partitions[number as usize];
        let least = match below_high_watermark {
            true => partition.log_start,
            // What was seen last; it may have moved.
            false => partition.high_watermark,
        };
        let span = (partition.end - least).max(0) as u64;
        // Mostly the last few batches.
        let span = if self.rng.one_in(4) {
            span
        } else {
            span.min(20)
        };
        let offset = self.partition(number).end - self.rng.below(span + 1) as i64;
        let cut = Cut {
            partition: number,
            offset,
            leader_epoch: self.partition(number).grant_epoch(),
            below_high_watermark,
        };
        let ticket = self.next_ticket();
        self.waiting.insert(ticket, Waiting::Truncate(cut));
        let truncate = Truncate {
            log,
            ticket: Ticket(ticket),
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(cut.leader_epoch),
            below_high_watermark,
        };
        self.post(core, Input::Truncate(truncate));
    }

    /// An input is about to be given that begins a cut, or tells of one.
    pub(super) fn note_cut(&mut self, core: usize, input: &Input) {
        match input {
            Input::Truncate(truncate) => {
                let Some(number) = self.host(core).partitions.get(&truncate.log).copied() else {
                    return;
                };
                self.look_at(core, truncate.log);
                let partition = self.partition(number);
                if partition.cutting.is_none() {
                    let at = partition.cut_at(truncate.offset.0);
                    let ticket = truncate.ticket.0;
                    partition.cutting = Some(Cutting { ticket, at });
                    partition.was_cut = true;
                }
            }
            Input::Reopened {
                log,
                result: Ok(recovered),
            } => {
                let number = self.host(core).partitions[log];
                if self.partition(number).deleted {
                    return;
                }
                self.take_damage(number, recovered);
                let partition = &mut self.partitions[number as usize];
                let promised = partition.survives_kill;
                check::cut(partition, recovered, &mut self.disk);
                if promised > partition.end {
                    self.see(Seen::AcknowledgedCut);
                }
            }
            _ => {}
        }
    }

    /// What became of a cut.
    pub(super) fn truncated(&mut self, ticket: u64, outcome: Result<Truncated, Refusal>) {
        let Some(Waiting::Truncate(cut)) = self.waiting.remove(&ticket) else {
            panic!("{ticket} is no truncation, or was answered before");
        };
        let faulty = self.faults_were_injected();
        let partition = &mut self.partitions[cut.partition as usize];
        let under_way = partition.cutting.filter(|cutting| cutting.ticket == ticket);
        match outcome {
            Ok(truncated) => {
                assert!(under_way.is_some(), "one truncation at a time");
                assert_eq!(
                    truncated.log_end_offset.0, partition.end,
                    "a log that was cut ends there"
                );
                partition.leader_epoch = cut.leader_epoch;
                partition.cutting = None;
                self.see(Seen::Truncated);
            }
            Err(refusal) => {
                check::cut_refused(
                    partition,
                    cut.offset,
                    cut.below_high_watermark,
                    &refusal,
                    faulty,
                );
                match (refusal.detail, under_way) {
                    // The next recovery makes it good.
                    (RefusalDetail::CutUnfinished(_), Some(cutting)) => {
                        partition.high_watermark = partition.high_watermark.min(cutting.at);
                    }
                    // It may be in the middle of it.
                    (RefusalDetail::Deleted, _) => {}
                    (_, Some(_)) => partition.cutting = None,
                    _ => {}
                }
                self.see(Seen::TruncationRefused);
            }
        }
    }

    /// The driver's part: recovers the log from its files.
    pub(super) fn start_reopening(&mut self, core: usize, reopen: Reopen) {
        let number = self.host(core).partitions[&reopen.log];
        let files = self.segment_files(FolderName::Log(number));
        let recovery = Recovery::new(
            reopen.topic_partition,
            reopen.restart,
            Some(&reopen.ledger),
            files,
            &reopen.config,
        );
        let reopening = Reopening {
            log: reopen.log,
            number,
            recovery,
            reads: false,
        };
        self.next_reopening_step(core, Box::new(reopening));
    }

    /// A step of a recovery is over.
    pub(super) fn go_on_reopening(
        &mut self,
        core: usize,
        mut reopening: Box<Reopening>,
        result: Result<Vec<u8>, StorageFault>,
    ) {
        if reopening.reads {
            let bytes = result.as_deref().map_err(|fault| *fault);
            reopening.recovery.provide(bytes);
        } else {
            reopening.recovery.done(result.map(|_| ()));
        }
        self.next_reopening_step(core, reopening);
    }

    fn next_reopening_step(&mut self, core: usize, mut reopening: Box<Reopening>) {
        let log = reopening.log;
        let folder = FolderName::Log(reopening.number);
        let step = reopening.recovery.next();
        trace!(self, "partition {} is cut: {step:?}", reopening.number);
        let script = match step {
            RecoveryStep::Done(recovered) => {
                let result = Ok(recovered);
                return self.post(core, Input::Reopened { log, result });
            }
            RecoveryStep::Failed(fault) => {
                let result = Err(fault);
                return self.post(core, Input::Reopened { log, result });
            }
            RecoveryStep::ReadIndex { segment } => {
                self.read_whole_file(folder, FileName::Index(segment.0.0))
            }
            RecoveryStep::ReadProducers { segment } => {
                self.read_whole_file(folder, FileName::Producers(segment.0.0))
            }
            RecoveryStep::ReadCheckpoint { segment } => {
                self.read_whole_file(folder, FileName::Checkpoint(segment.0.0))
            }
            RecoveryStep::Read {
                segment,
                file_at,
                length,
            } => {
                let file = self.disk.file(folder, FileName::Log(segment.0.0));
                vec![Action::Read {
                    file: file.expect("recovery reads what was listed"),
                    at: file_at,
                    length: length as usize,
                }]
            }
            other => change(folder, other),
        };
        reopening.reads = matches!(script.as_slice(), [Action::Read { .. }]);
        self.start(core, script, Completion::Reopening(reopening));
    }

    fn read_whole_file(&mut self, folder: FolderName, name: FileName) -> Vec<Action> {
        let file = self.disk.file(folder, name);
        let file = file.expect("a file that was listed is there");
        let length = file.borrow().size() as usize;
        vec![Action::Read {
            file,
            at: 0,
            length,
        }]
    }
}
