//! From the files on disk to serving shards, as the broker's driver does it. A crash may come between any two steps.

use std::collections::BTreeMap;

use tackboard_logic::ledger::{self, LedgerFiles, LedgerImage, LedgerLog, LedgerStart};
use tackboard_logic::log::recovery::{
    RecoveredLog, Recovery, RecoveryStep, RestartClass, SegmentFile, Sidecar,
};
use tackboard_logic::shard::Shard;
use tackboard_logic::shard::interface::{
    Effect, Effects, Input, LedgerFile, LogId, OpenLog, SegmentBase, StorageFault,
};
use tackboard_schema::{LeaderEpoch, Offset, TopicPartition};

use super::io::{Action, create_segment, reaction_us};
use super::process::{Host, Process};
use super::{Event, World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::{FileName, FolderName};

/// A log of many segments takes many steps to recover; no world is so bad that it never gets through them.
const DEATHS_IN_A_ROW_MAX: u32 = 8;

/// Coming up was cut short: the process is gone, or gave up.
pub(super) struct Interrupted;

impl World {
    /// Starts a process. If that is cut short, another is started later.
    pub(super) fn boot(&mut self) {
        if self.process.is_some() {
            return;
        }
        self.incarnation += 1;
        let class = self.last_exit;
        trace!(self, "boot after {class:?}");
        if self.come_up(class).is_err() {
            trace!(self, "boot was cut short");
            self.process = None;
            self.forget_in_flight();
            let delay = reaction_us(&mut self.rng);
            self.schedule(delay, Event::Boot);
            return;
        }
        self.deaths_in_a_row = 0;
        self.last_exit = RestartClass::ProcessCrash;
        self.see(Seen::Boot);
        self.start_timers();
    }

    fn come_up(&mut self, class: RestartClass) -> Result<(), Interrupted> {
        self.sweep_deleted();
        let (image, old_ledgers) = self.read_ledgers()?;
        self.draw_cores();
        let live: Vec<u32> = self.live_partitions().collect();
        for number in &live {
            let partition = self.partition(*number);
            partition.leader_epoch = partition.grant_epoch();
        }
        self.start_shards(&image)?;
        let generation = self.process_mut().generation;
        let is_old = |name: &FileName| !matches!(name, FileName::Ledger { generation: new, .. } if *new == generation);
        for name in old_ledgers.into_iter().filter(is_old) {
            self.act_or_die(Action::Unlink {
                folder: FolderName::Ledger,
                name,
            })?;
        }
        self.act_or_die(Action::SyncFolder {
            folder: FolderName::Ledger,
            covered: 0,
        })?;
        for number in live {
            let ledger = image.logs.get(&self.partition(number).id).cloned();
            self.open_log(number, class, ledger.as_ref())?;
        }
        Ok(())
    }

    fn draw_cores(&mut self) {
        if self.rng.one_in(4) {
            let cores = self.rng.between(1, self.options.cores_max);
            if cores != self.options.cores {
                self.see(Seen::CoresChanged);
            }
            self.options.cores = cores;
        }
    }

    /// What all ledgers say, and the files they are in.
    pub(super) fn read_ledgers(&mut self) -> Result<(LedgerImage, Vec<FileName>), Interrupted> {
        let names: Vec<FileName> = self.disk.folder(FolderName::Ledger).names().collect();
        let mut ledgers: BTreeMap<(u64, u16), [Vec<u8>; 2]> = BTreeMap::new();
        for name in &names {
            let FileName::Ledger {
                generation,
                core,
                second,
            } = *name
            else {
                continue;
            };
            let bytes = self
                .read_whole(FolderName::Ledger, *name)
                .map_err(|_| Interrupted)?;
            ledgers.entry((generation, core)).or_default()[usize::from(second)] = bytes;
        }
        let files: Vec<LedgerFiles<'_>> = ledgers
            .values()
            .map(|[a, b]| LedgerFiles { a, b })
            .collect();
        match ledger::replay(&files) {
            Ok(image) => Ok((image, names)),
            Err(fault) => panic!("ledgers that only crashes touched can't be read: {fault}"),
        }
    }

    fn start_shards(&mut self, image: &LedgerImage) -> Result<(), Interrupted> {
        let generation = image.generation + 1;
        let cores = self.options.cores;
        let mut hosts = Vec::new();
        for core in 0..cores {
            let owned = |id: &TopicPartition| {
                let mut partitions = self.partitions.iter();
                partitions.any(|it| it.id == *id && !it.deleted && it.shard_key % cores == core)
            };
            let mut start = LedgerStart::from_image(image, usize::MAX, owned);
            // The files of this start are new, so it doesn't matter which is the first.
            start.file = LedgerFile::A;
            assert_eq!(start.generation, generation);
            let mut effects = Effects::new();
            let config = self.options.shard(core as u16, u64::from(self.incarnation));
            let shard = Shard::new(config, start, &mut effects);
            hosts.push(Host::new(shard, effects));
        }
        self.process = Some(Process {
            hosts,
            open: BTreeMap::new(),
            out_of_service: Default::default(),
            coordinators: BTreeMap::new(),
            operations: BTreeMap::new(),
            next_operation: 0,
            generation,
            shutting_down: false,
            drained: 0,
            drained_clean: true,
            aborted: None,
        });
        (0..cores as usize).try_for_each(|core| {
            self.create_ledger(generation, core)?;
            self.finish_ledger_writes(core)
        })
    }

    /// Both files of a core's ledger, empty.
    fn create_ledger(&mut self, generation: u64, core: usize) -> Result<(), Interrupted> {
        let folder = FolderName::Ledger;
        for second in [false, true] {
            let core = core as u16;
            let name = FileName::Ledger {
                generation,
                core,
                second,
            };
            self.act_or_die(Action::Create { folder, name })?;
        }
        self.act_or_die(Action::SyncFolder { folder, covered: 0 })
    }

    /// Carries out the ledger writes that a shard asked for, at once and to the end.
    fn finish_ledger_writes(&mut self, core: usize) -> Result<(), Interrupted> {
        loop {
            let host = self.host(core);
            let effects = &mut host.effects.list;
            let Some(index) = effects
                .iter()
                .position(|effect| matches!(effect, Effect::WriteLedger { .. }))
            else {
                assert!(
                    host.shard.ledger_started(),
                    "a ledger counts once its first writes are done"
                );
                return Ok(());
            };
            let Effect::WriteLedger {
                sequence,
                file,
                at,
                bytes,
                cut_to,
            } = effects.remove(index)
            else {
                unreachable!("that is what was looked for");
            };
            for action in self.write_ledger(core, file, at, bytes, cut_to) {
                self.act_or_die(action)?;
            }
            let result = Ok(());
            let now = self.clock.now();
            let host = self.host(core);
            host.shard.step(
                now,
                Input::LedgerWritten { sequence, result },
                &mut host.effects,
            );
            host.shard.check_invariants();
            self.steps += 1;
        }
    }

    /// Recovers a log and opens it. One that can't be read stays closed.
    fn open_log(
        &mut self,
        number: u32,
        class: RestartClass,
        ledger: Option<&LedgerLog>,
    ) -> Result<(), Interrupted> {
        let core = (self.partition(number).shard_key % self.options.cores) as usize;
        let recovered = match self.recover(number, class, ledger)? {
            Ok(recovered) => recovered,
            Err(fault) => {
                trace!(self, "partition {number} can't be recovered: {fault}");
                self.process_mut().out_of_service.insert(number);
                return Ok(());
            }
        };
        trace!(self, "partition {number} recovered: {recovered:?}");
        self.take_recovered(number, class, &recovered);
        let log = self.host(core).shard.reserve_log();
        self.open(number, core, log, recovered);
        Ok(())
    }

    fn open(&mut self, number: u32, core: usize, log: LogId, recovered: RecoveredLog) {
        let partition = self.partition(number);
        let open = OpenLog {
            log,
            topic_partition: partition.id,
            config: partition.config.clone(),
            leader_epoch: LeaderEpoch(partition.leader_epoch),
            recovered,
        };
        self.host(core).partitions.insert(log, number);
        self.process_mut().open.insert(number, (core, log));
        self.give(core, Input::Open(Box::new(open)));
        if self.partition(number).internal {
            self.begin_load(number);
        }
    }

    fn take_recovered(&mut self, number: u32, class: RestartClass, recovered: &RecoveredLog) {
        if recovered.torn_tail_at.is_some() {
            self.see(Seen::TornTail);
        }
        let mut segments = recovered.segments.iter();
        if segments.any(|segment| segment.checkpoint_bytes > 0) {
            self.see(Seen::CheckpointTaken);
        }
        self.take_damage(number, recovered);
        let partition = &mut self.partitions[number as usize];
        let cut = partition.cutting.filter(|cut| cut.at < partition.end);
        if cut.is_some_and(|cut| cut.at == recovered.log_end_offset.0) {
            self.coverage.hit(Seen::TruncationRecovered);
        }
        let lost = check::recovered(
            partition,
            class,
            recovered,
            self.clock.wall_latest_ms(),
            &mut self.disk,
        );
        if lost > 0 {
            self.see(Seen::LegitimateLoss);
        }
    }

    pub(super) fn take_damage(&mut self, number: u32, recovered: &RecoveredLog) {
        for range in &recovered.damaged {
            self.see(Seen::DamageReported);
            let range = (range.from.0, range.to.0);
            let partition = self.partition(number);
            partition.damaged.push(range);
            // Whose batches lay there may be beyond telling; then nobody is remembered.
            partition.note_known_from(range.1);
        }
    }

    fn recover(
        &mut self,
        number: u32,
        class: RestartClass,
        ledger: Option<&LedgerLog>,
    ) -> Result<Result<RecoveredLog, StorageFault>, Interrupted> {
        let folder = FolderName::Log(number);
        let files = self.segment_files(folder);
        let partition = self.partition(number);
        let mut recovery = Recovery::new(
            partition.id,
            class,
            ledger,
            files,
            &partition.config.clone(),
        );
        for _ in 0..1_000_000 {
            let step = recovery.next();
            trace!(self, "recovery of partition {number}: {step:?}");
            match step {
                RecoveryStep::Done(recovered) => return Ok(Ok(*recovered)),
                RecoveryStep::Failed(fault) => return Ok(Err(fault)),
                RecoveryStep::ReadIndex { segment } => {
                    self.die_sometimes()?;
                    let bytes = self.read_whole(folder, FileName::Index(segment.0.0));
                    recovery.provide(bytes.as_deref().map_err(|fault| *fault));
                }
                RecoveryStep::ReadProducers { segment } => {
                    self.die_sometimes()?;
                    let bytes = self.read_whole(folder, FileName::Producers(segment.0.0));
                    recovery.provide(bytes.as_deref().map_err(|fault| *fault));
                }
                RecoveryStep::ReadCheckpoint { segment } => {
                    self.die_sometimes()?;
                    let bytes = self.read_whole(folder, FileName::Checkpoint(segment.0.0));
                    recovery.provide(bytes.as_deref().map_err(|fault| *fault));
                }
                RecoveryStep::Read {
                    segment,
                    file_at,
                    length,
                } => {
                    self.die_sometimes()?;
                    let bytes = self.read_part(folder, segment, file_at, length as usize);
                    recovery.provide(bytes.as_deref().map_err(|fault| *fault));
                }
                other => {
                    let sidecar = match &other {
                        RecoveryStep::RemoveSidecar { sidecar, .. } => Some(*sidecar),
                        _ => None,
                    };
                    if sidecar == Some(Sidecar::Checkpoint) {
                        self.see(Seen::CheckpointRejected);
                    }
                    let result = self.act_all(change(folder, other))?;
                    recovery.done(result);
                }
            }
        }
        panic!("recovery of partition {number} doesn't end");
    }

    pub(super) fn segment_files(&mut self, folder: FolderName) -> Vec<SegmentFile> {
        let names: Vec<FileName> = self.disk.folder(folder).names().collect();
        let logs = names.iter().filter_map(|name| match name {
            FileName::Log(base) => Some(*base),
            _ => None,
        });
        let describe = |base: i64| SegmentFile {
            base: SegmentBase(Offset(base)),
            size: self
                .disk
                .file(folder, FileName::Log(base))
                .map_or(0, |file| file.borrow().size()),
            has_index: names.contains(&FileName::Index(base)),
            has_producers: names.contains(&FileName::Producers(base)),
            has_checkpoint: names.contains(&FileName::Checkpoint(base)),
        };
        logs.map(describe).collect()
    }

    fn read_whole(&mut self, folder: FolderName, name: FileName) -> Result<Vec<u8>, StorageFault> {
        let file = self
            .disk
            .file(folder, name)
            .expect("a file that was listed is there");
        let length = file.borrow().size() as usize;
        let (result, bytes) = self.act(Action::Read {
            file,
            at: 0,
            length,
        });
        result.map(|()| bytes)
    }

    fn read_part(
        &mut self,
        folder: FolderName,
        segment: SegmentBase,
        at: u64,
        length: usize,
    ) -> Result<Vec<u8>, StorageFault> {
        assert!(
            at.is_multiple_of(4_096) && length.is_multiple_of(4_096),
            "direct I/O is aligned"
        );
        let file = self.disk.file(folder, FileName::Log(segment.0.0));
        let file = file.expect("recovery reads what was listed");
        let (result, bytes) = self.act(Action::Read { file, at, length });
        result.map(|()| bytes)
    }

    /// Carries out actions until one fails.
    fn act_all(&mut self, actions: Vec<Action>) -> Result<Result<(), StorageFault>, Interrupted> {
        for action in actions {
            self.die_sometimes()?;
            let (result, _) = self.act(action);
            if result.is_err() {
                return Ok(result);
            }
        }
        Ok(Ok(()))
    }

    /// Carries out an action without which there is no coming up.
    fn act_or_die(&mut self, action: Action) -> Result<(), Interrupted> {
        self.die_sometimes()?;
        self.act(action).0.map_err(|_| Interrupted)
    }

    fn die_sometimes(&mut self) -> Result<(), Interrupted> {
        let spared = self.deaths_in_a_row >= DEATHS_IN_A_ROW_MAX;
        if !self.chaos || spared || !self.rng.one_in(self.options.crash_during_boot * 10) {
            return Ok(());
        }
        self.deaths_in_a_row += 1;
        self.see(Seen::CrashDuringBoot);
        if self.rng.coin() {
            self.lose_power_of_disk();
        }
        Err(Interrupted)
    }

    fn start_timers(&mut self) {
        let incarnation = self.incarnation;
        for core in 0..self.process_mut().hosts.len() {
            self.schedule_tick(core);
            self.schedule(0, Event::FreeSpace { incarnation, core });
            self.carry_out_all(core, None);
        }
    }

    /// A topic is created while the process runs.
    pub(super) fn open_new_log(&mut self, number: u32) {
        let deaths = std::mem::take(&mut self.options.crash_during_boot);
        let opened = self.open_log(number, RestartClass::Clean, None);
        self.options.crash_during_boot = deaths;
        assert!(opened.is_ok(), "nothing dies here");
    }
}

/// The actions of a recovery step that changes something.
pub(super) fn change(folder: FolderName, step: RecoveryStep) -> Vec<Action> {
    match step {
        RecoveryStep::Truncate { segment, size } => {
            vec![Action::Cut {
                folder,
                name: FileName::Log(segment.0.0),
                size,
            }]
        }
        RecoveryStep::Remove { segment } => {
            let base = segment.0.0;
            let unlink = |name| Action::Unlink { folder, name };
            vec![
                unlink(FileName::Index(base)),
                unlink(FileName::Producers(base)),
                unlink(FileName::Checkpoint(base)),
                Action::SyncFolder { folder, covered: 0 },
                unlink(FileName::Log(base)),
            ]
        }
        RecoveryStep::RemoveSidecar { segment, sidecar } => {
            let name = match sidecar {
                Sidecar::Index => FileName::Index(segment.0.0),
                Sidecar::Producers => FileName::Producers(segment.0.0),
                Sidecar::Checkpoint => FileName::Checkpoint(segment.0.0),
            };
            vec![Action::Unlink { folder, name }]
        }
        RecoveryStep::CreateSegment {
            segment,
            preallocate,
        } => create_segment(folder, FileName::Log(segment.0.0), preallocate),
        RecoveryStep::Sync { segment } => {
            let name = FileName::Log(segment.0.0);
            vec![
                Action::Sync {
                    folder,
                    name,
                    covered: 0,
                },
                Action::SyncFolder { folder, covered: 0 },
            ]
        }
        other => unreachable!("{other:?} changes nothing"),
    }
}
