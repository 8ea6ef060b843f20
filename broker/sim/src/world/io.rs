//! I/O in flight: each effect that takes time becomes a script of actions, carried out one after the other.
//!
//! An action is drawn its fate when it starts: how long it takes and whether it fails. A crash may come between any two, or
//! leave one half done.

use std::collections::VecDeque;

use tackboard_logic::shard::interface::{
    Effect, Input, LedgerFile, LogId, SegmentBase, StorageFault, SyncId, SyncScope, WriteId,
};

use tackboard_schema::Durability;

use super::consuming::ReadFor;
use super::history::Turn;
use super::truncating::Reopening;
use super::{Event, World, trace};
use crate::check;
use crate::coverage::Event as Seen;
use crate::disk::{BLOCK_BYTES, Bytes, FileName, FolderName, OpenFile};
use crate::rng::Rng;

const EIO: i32 = 5;

/// Something the operating system does as one.
#[derive(Debug)]
pub(super) enum Action {
    /// Write; with `proven` the completion says that it is on the medium.
    Write {
        file: OpenFile,
        at: u64,
        bytes: Bytes,
        proven: bool,
    },
    /// Extend the file, if there is room.
    Extend {
        folder: FolderName,
        name: FileName,
        size: u64,
    },
    /// `ftruncate`.
    Cut {
        folder: FolderName,
        name: FileName,
        size: u64,
    },
    /// `fdatasync`; `covered` is set when it starts.
    Sync {
        folder: FolderName,
        name: FileName,
        covered: u64,
    },
    /// An empty file.
    Create { folder: FolderName, name: FileName },
    /// The whole contents of a file that was just created.
    Contents {
        folder: FolderName,
        name: FileName,
        bytes: Bytes,
    },
    /// Rename within a folder.
    Rename {
        folder: FolderName,
        from: FileName,
        to: FileName,
    },
    /// Unlink.
    Unlink { folder: FolderName, name: FileName },
    /// Sync the folder; `covered` is set when it starts.
    SyncFolder { folder: FolderName, covered: u64 },
    /// Read.
    Read {
        file: OpenFile,
        at: u64,
        length: usize,
    },
}

/// Whom to tell.
#[derive(Debug)]
pub(super) enum Completion {
    Written(LogId, WriteId),
    Synced(LogId, SyncId),
    Preallocated(LogId, SegmentBase, u64),
    Created(LogId, SegmentBase),
    Sealed(LogId, SegmentBase),
    Checkpointed(LogId, SegmentBase),
    Deleted(LogId, SegmentBase),
    SegmentRead(LogId),
    Reopening(Box<Reopening>),
    LedgerWritten(u64),
    Read(ReadFor),
    /// The same, which took a turn.
    History(Turn, ReadFor),
}

/// A script that is being carried out.
#[derive(Debug)]
pub(super) struct Operation {
    core: usize,
    /// The front is under way.
    script: VecDeque<Action>,
    completion: Completion,
    /// What becomes of the action under way.
    fate: Result<(), StorageFault>,
    /// What it has read so far.
    bytes: Vec<u8>,
}

impl Operation {
    /// Whether a shutdown must await it: reads are nobody's any more, and unlinking is done again by the next start.
    pub(super) fn must_be_awaited(&self) -> bool {
        !matches!(
            self.completion,
            Completion::Read(_) | Completion::History(..) | Completion::Deleted(..)
        )
    }

    pub(super) fn is_of_ledger(&self) -> bool {
        matches!(self.completion, Completion::LedgerWritten(_))
    }
}

impl World {
    /// Starts what an effect asks for.
    pub(super) fn start_io(&mut self, core: usize, effect: Effect) {
        let (script, completion) = match effect {
            Effect::Write {
                log,
                segment,
                write,
                chunk,
                at,
                length,
                file_at,
                synced,
            } => {
                assert!(at.is_multiple_of(4_096) && length.is_multiple_of(4_096) && length > 0);
                assert!(file_at.is_multiple_of(4_096), "direct I/O is aligned");
                let buffer = self.host(core).chunk(chunk).frozen_buffer();
                let bytes = Bytes::slice(buffer, at as usize..(at + length) as usize);
                let file = self.segment(core, log, segment);
                file.borrow_mut().begin_write(file_at, u64::from(length));
                let action = Action::Write {
                    file,
                    at: file_at,
                    bytes,
                    proven: synced,
                };
                (vec![action], Completion::Written(log, write))
            }
            // Each rider of a sync of the file system meets a fate of its own here: the file system may say EIO for one
            // file and not for another, and all of them failing at once teaches nothing more.
            Effect::Sync {
                log,
                segment,
                sync,
                scope,
            } => {
                if scope == SyncScope::FileSystem {
                    self.see(Seen::SyncOfFileSystem);
                }
                let number = self.host(core).partitions[&log];
                if self.partition(number).config.durability == Durability::Fsync {
                    self.see(Seen::SyncOfFsyncLog);
                }
                let (folder, name) = self.segment_name(core, log, segment);
                let action = Action::Sync {
                    folder,
                    name,
                    covered: 0,
                };
                (vec![action], Completion::Synced(log, sync))
            }
            Effect::Preallocate { log, segment, size } => {
                let (folder, name) = self.segment_name(core, log, segment);
                let action = Action::Extend { folder, name, size };
                (vec![action], Completion::Preallocated(log, segment, size))
            }
            Effect::CreateSegment {
                log,
                segment,
                preallocate,
            } => {
                self.see(Seen::Roll);
                let (folder, name) = self.segment_name(core, log, segment);
                let script = create_segment(folder, name, preallocate);
                (script, Completion::Created(log, segment))
            }
            Effect::SealSegment {
                log,
                segment,
                size,
                index,
                producers,
            } => {
                let (folder, _) = self.segment_name(core, log, segment);
                let script = seal_segment(folder, segment.0.0, size, index, producers);
                (script, Completion::Sealed(log, segment))
            }
            Effect::WriteCheckpoint {
                log,
                segment,
                bytes,
            } => {
                let (folder, _) = self.segment_name(core, log, segment);
                let script = write_checkpoint(folder, segment.0.0, bytes);
                (script, Completion::Checkpointed(log, segment))
            }
            Effect::DeleteSegment { log, segment } => {
                let (folder, _) = self.segment_name(core, log, segment);
                self.check_deletion(core, log, segment);
                (
                    delete_segment(folder, segment.0.0),
                    Completion::Deleted(log, segment),
                )
            }
            Effect::ReadSegment {
                log,
                segment,
                file_at,
                length,
            } => {
                let action = Action::Read {
                    file: self.segment(core, log, segment),
                    at: file_at,
                    length: length as usize,
                };
                (vec![action], Completion::SegmentRead(log))
            }
            Effect::WriteLedger {
                sequence,
                file,
                at,
                bytes,
                cut_to,
            } => {
                let script = self.write_ledger(core, file, at, bytes, cut_to);
                (script, Completion::LedgerWritten(sequence))
            }
            other => unreachable!("{other:?} takes no time"),
        };
        self.start(core, script, completion);
    }

    pub(super) fn start(&mut self, core: usize, script: Vec<Action>, completion: Completion) {
        let process = self.process_mut();
        let id = process.next_operation;
        process.next_operation += 1;
        let operation = Operation {
            core,
            script: script.into(),
            completion,
            fate: Ok(()),
            bytes: Vec::new(),
        };
        process.operations.insert(id, operation);
        self.begin_action(id);
    }

    fn begin_action(&mut self, id: u64) {
        let mut operation = self
            .process_mut()
            .operations
            .remove(&id)
            .expect("it was just put there");
        let of_ledger = matches!(operation.completion, Completion::LedgerWritten(_));
        let action = operation.script.front_mut().expect("a script isn't empty");
        self.begin(action);
        let (fate, latency_us) = self.draw_fate(action, of_ledger);
        operation.fate = fate;
        self.process_mut().operations.insert(id, operation);
        if let Some(latency_us) = latency_us {
            let incarnation = self.incarnation;
            self.schedule(
                latency_us,
                Event::Io {
                    incarnation,
                    operation: id,
                },
            );
        }
    }

    /// What is decided at the moment an action starts.
    fn begin(&mut self, action: &mut Action) {
        match action {
            Action::Sync {
                folder,
                name,
                covered,
            } => {
                let file = self
                    .disk
                    .file(*folder, *name)
                    .expect("what is synced is there");
                *covered = file.borrow().begin_sync();
            }
            Action::SyncFolder { folder, covered } => {
                *covered = self.disk.folder(*folder).begin_sync()
            }
            _ => {}
        }
    }

    /// How an action will end, and after how long; never, if `None`.
    fn draw_fate(
        &mut self,
        action: &Action,
        of_ledger: bool,
    ) -> (Result<(), StorageFault>, Option<u64>) {
        let base = match action {
            Action::Write { .. } => self.rng.between(20, 400),
            Action::Sync { .. } | Action::SyncFolder { .. } => self.rng.between(100, 2_000),
            _ => self.rng.between(10, 300),
        };
        let faults = self.options.faults;
        if !self.chaos || (of_ledger && !faults.in_ledger) {
            return (Ok(()), Some(base));
        }
        let fate = self.draw_error(action, of_ledger);
        let may_stick = matches!(action, Action::Write { .. } | Action::Sync { .. });
        let latency = if may_stick && self.rng.one_in(faults.stuck) {
            self.see(Seen::StuckIo);
            self.rng
                .coin()
                .then(|| self.rng.between(29_000_000, 70_000_000))
        } else if self.rng.one_in(faults.slow) {
            self.see(Seen::SlowIo);
            Some(base + self.rng.below(1_000_000))
        } else {
            Some(base)
        };
        (fate, latency)
    }

    fn draw_error(&mut self, action: &Action, of_ledger: bool) -> Result<(), StorageFault> {
        let faults = self.options.faults;
        let rare = if of_ledger { 10 } else { 1 };
        let (chance, seen) = match action {
            Action::Write { bytes, .. } => {
                if bytes.len() > 4_096 && self.rng.one_in(faults.write_short * rare) {
                    self.see(Seen::WriteShort);
                    let wanted = bytes.len() as u32;
                    let got = self.rng.below(u64::from(wanted) / 512) as u32 * 512;
                    return Err(StorageFault::Short { wanted, got });
                }
                (faults.write_error, Seen::WriteError)
            }
            Action::Sync { .. } | Action::SyncFolder { .. } => (faults.sync_error, Seen::SyncError),
            Action::Read { .. } => (faults.read_error, Seen::ReadError),
            // Metadata operations fail like writes do, but there are fewer of them.
            _ => (faults.write_error, Seen::WriteError),
        };
        if self.rng.one_in(chance * rare) {
            self.see(seen);
            return Err(StorageFault::Io { os_error: EIO });
        }
        Ok(())
    }

    /// The action under way is over; on with the script, or tell.
    pub(super) fn io_step(&mut self, id: u64) {
        let Some(mut operation) = self.process_mut().operations.remove(&id) else {
            return;
        };
        let action = operation
            .script
            .pop_front()
            .expect("an action is under way");
        let (result, bytes) = self.finish(action, operation.fate);
        operation.bytes.extend_from_slice(&bytes);
        if result.is_ok() && !operation.script.is_empty() {
            self.process_mut().operations.insert(id, operation);
            self.begin_action(id);
            return;
        }
        self.complete(
            operation.core,
            operation.completion,
            result,
            operation.bytes,
        );
    }

    fn complete(
        &mut self,
        core: usize,
        completion: Completion,
        result: Result<(), StorageFault>,
        bytes: Vec<u8>,
    ) {
        let input = match completion {
            Completion::Written(log, write) => Input::Written { log, write, result },
            Completion::Synced(log, sync) => Input::Synced { log, sync, result },
            Completion::Preallocated(log, segment, size) => Input::Preallocated {
                log,
                segment,
                size,
                result,
            },
            Completion::Created(log, segment) => Input::SegmentCreated {
                log,
                segment,
                result,
            },
            Completion::Sealed(log, segment) => {
                self.see(Seen::Sealed);
                Input::SegmentSealed {
                    log,
                    segment,
                    result,
                }
            }
            Completion::Checkpointed(log, segment) => {
                if result.is_ok() {
                    self.see(Seen::CheckpointWritten);
                }
                Input::CheckpointWritten { log, segment }
            }
            Completion::Deleted(log, segment) => Input::SegmentDeleted { log, segment },
            Completion::SegmentRead(log) => Input::SegmentRead {
                log,
                result: result.map(|()| bytes.into_boxed_slice()),
            },
            Completion::Reopening(reopening) => {
                return self.go_on_reopening(core, reopening, result.map(|()| bytes));
            }
            Completion::LedgerWritten(sequence) => Input::LedgerWritten { sequence, result },
            Completion::Read(read_for) => {
                self.read_arrived(core, read_for, result.map(|()| bytes));
                return;
            }
            Completion::History(turn, read_for) => {
                self.end_turn_of_read(core, turn);
                self.read_arrived(core, read_for, result.map(|()| bytes));
                return;
            }
        };
        self.post(core, input);
    }

    /// Does what an action does, as far as its fate lets it.
    pub(super) fn finish(
        &mut self,
        action: Action,
        fate: Result<(), StorageFault>,
    ) -> (Result<(), StorageFault>, Vec<u8>) {
        let result = match (action, fate) {
            (
                Action::Write {
                    file,
                    at,
                    bytes,
                    proven,
                },
                fate,
            ) => self.finish_write(&file, at, bytes, proven, fate),
            (
                Action::Sync {
                    folder,
                    name,
                    covered,
                },
                fate,
            ) => {
                self.finish_sync(folder, name, covered, fate);
                fate
            }
            (Action::Read { file, at, length }, Ok(())) => {
                return (Ok(()), file.borrow().read(at, length));
            }
            (_, Err(fault)) => Err(fault),
            (Action::Extend { folder, name, size }, Ok(())) => self.extend(folder, name, size),
            (Action::Cut { folder, name, size }, Ok(())) => {
                let file = self.disk.file(folder, name).expect("what is cut is there");
                file.borrow_mut().resize(size);
                Ok(())
            }
            (Action::Create { folder, name }, Ok(())) => {
                self.disk.folder(folder).create(name);
                Ok(())
            }
            (
                Action::Contents {
                    folder,
                    name,
                    bytes,
                },
                Ok(()),
            ) => {
                let file = self.disk.file(folder, name).expect("it was just created");
                self.write_if_it_fits(&file, 0, bytes, false)
            }
            (Action::Rename { folder, from, to }, Ok(())) => {
                self.disk.folder(folder).rename(from, to);
                Ok(())
            }
            (Action::Unlink { folder, name }, Ok(())) => {
                self.disk.folder(folder).unlink(name);
                Ok(())
            }
            (Action::SyncFolder { folder, covered }, Ok(())) => {
                self.disk.folder(folder).complete_sync(covered);
                Ok(())
            }
        };
        (result, Vec::new())
    }

    fn finish_write(
        &mut self,
        file: &OpenFile,
        at: u64,
        bytes: Bytes,
        proven: bool,
        fate: Result<(), StorageFault>,
    ) -> Result<(), StorageFault> {
        file.borrow_mut().end_write(at, bytes.len() as u64);
        if let Err(fault) = fate {
            file.borrow_mut().write_partly(at, &bytes, &mut self.rng);
            return Err(fault);
        }
        self.write_if_it_fits(file, at, bytes, proven)
    }

    fn write_if_it_fits(
        &mut self,
        file: &OpenFile,
        at: u64,
        bytes: Bytes,
        proven: bool,
    ) -> Result<(), StorageFault> {
        let end = at + bytes.len() as u64;
        let more = end.saturating_sub(file.borrow().size());
        let free_bytes = self.disk.free_bytes();
        if more > free_bytes && !file.borrow().has_reserve() {
            // What there was room for may have landed, in whole blocks.
            let room = (file.borrow().size() + free_bytes).saturating_sub(at) / BLOCK_BYTES;
            let landed = self.rng.below(room + 1) * BLOCK_BYTES;
            if landed > 0 {
                let part = bytes.beginning(landed as usize);
                file.borrow_mut().write(at, part, false);
            }
            self.meet_full_disk();
            return Err(StorageFault::NoSpace);
        }
        file.borrow_mut().write(at, bytes, proven);
        Ok(())
    }

    /// Who sees that the disk is full may stop the broker.
    fn meet_full_disk(&mut self) {
        self.see(Seen::NoSpace);
        if self.chaos && self.rng.one_in(self.options.stop_when_full) {
            self.shut_down();
        }
    }

    fn finish_sync(
        &mut self,
        folder: FolderName,
        name: FileName,
        covered: u64,
        fate: Result<(), StorageFault>,
    ) {
        // Deletion may have overtaken a sync that nobody waits for any more.
        let Some(file) = self.disk.file(folder, name) else {
            return;
        };
        match fate {
            Ok(()) => file.borrow_mut().complete_sync(covered),
            Err(_) => file.borrow_mut().fail_sync(covered, &mut self.rng),
        }
    }

    fn extend(
        &mut self,
        folder: FolderName,
        name: FileName,
        size: u64,
    ) -> Result<(), StorageFault> {
        let file = self
            .disk
            .file(folder, name)
            .expect("what is extended is there");
        let now = file.borrow().size();
        if size.saturating_sub(now) > self.disk.free_bytes() {
            self.meet_full_disk();
            return Err(StorageFault::NoSpace);
        }
        file.borrow_mut().resize(size.max(now));
        Ok(())
    }

    /// The process dies while these are under way: each action may be done, half done or not done.
    pub(super) fn land_operations(&mut self) {
        for (_, mut operation) in std::mem::take(&mut self.process_mut().operations) {
            let Some(action) = operation.script.pop_front() else {
                continue;
            };
            self.land(action);
        }
    }

    /// Leaves an action half done.
    pub(super) fn land(&mut self, action: Action) {
        trace!(self, "dies during {action:?}");
        match action {
            Action::Write {
                file, at, bytes, ..
            } => {
                let mut file = file.borrow_mut();
                file.end_write(at, bytes.len() as u64);
                file.write_partly(at, &bytes, &mut self.rng);
            }
            Action::Contents {
                folder,
                name,
                bytes,
            } => {
                if let Some(file) = self.disk.file(folder, name) {
                    file.borrow_mut().write_partly(0, &bytes, &mut self.rng);
                }
            }
            Action::Read { .. } => {}
            other => {
                if self.rng.coin() {
                    let _ = self.finish(other, Ok(()));
                }
            }
        }
    }

    /// Retention wants a segment gone: what it holds is no longer part of the truth.
    fn check_deletion(&mut self, core: usize, log: LogId, segment: SegmentBase) {
        let number = self.host(core).partitions[&log];
        let description = self.host(core).shard.describe(log);
        let partition = &mut self.partitions[number as usize];
        let end = check::deletion(partition, segment.0.0, &mut self.disk);
        if let Some(description) = description {
            let (high_watermark, log_start) =
                (description.high_watermark.0, description.log_start_offset.0);
            assert!(
                end <= high_watermark && end <= log_start,
                "segment {segment:?} ends at {end}: {description:?}"
            );
            check::watermarks(
                partition,
                high_watermark,
                log_start,
                self.clock.wall_latest_ms(),
            );
        }
        self.coverage.hit(Seen::SegmentDeleted);
        self.partitions[number as usize].forget_below(end);
    }

    fn segment_name(
        &mut self,
        core: usize,
        log: LogId,
        segment: SegmentBase,
    ) -> (FolderName, FileName) {
        let number = self.host(core).partitions.get(&log).copied();
        let number = number.unwrap_or_else(|| panic!("effect for {log:?}, which isn't open"));
        (FolderName::Log(number), FileName::Log(segment.0.0))
    }

    fn segment(&mut self, core: usize, log: LogId, segment: SegmentBase) -> OpenFile {
        let (folder, name) = self.segment_name(core, log, segment);
        let file = self.disk.file(folder, name);
        file.unwrap_or_else(|| panic!("write to {name:?}, which isn't there"))
    }

    /// The script of a ledger write.
    pub(super) fn write_ledger(
        &mut self,
        core: usize,
        file: LedgerFile,
        at: u64,
        bytes: Box<[u8]>,
        cut_to: Option<u64>,
    ) -> Vec<Action> {
        self.see(Seen::LedgerWrite);
        assert!(at.is_multiple_of(4_096) && bytes.len().is_multiple_of(4_096));
        let folder = FolderName::Ledger;
        let name = FileName::Ledger {
            generation: self.process_mut().generation,
            core: core as u16,
            second: file == LedgerFile::B,
        };
        let end = at + bytes.len() as u64;
        let file = self
            .disk
            .file(folder, name)
            .expect("a ledger's files are made at the start");
        file.borrow_mut().begin_write(at, bytes.len() as u64);
        let length = file.borrow().size().max(end);
        let bytes = Bytes::whole(bytes.into_vec());
        let mut script = vec![Action::Write {
            file,
            at,
            bytes,
            proven: false,
        }];
        if let Some(size) = cut_to {
            self.see(Seen::LedgerSwitched);
            assert!(size >= end, "what was just written is not cut");
            if length > size {
                script.push(Action::Cut { folder, name, size });
            }
        }
        script.push(Action::Sync {
            folder,
            name,
            covered: 0,
        });
        script
    }

    /// Carries out an action at once, as coming up does.
    pub(super) fn act(&mut self, mut action: Action) -> (Result<(), StorageFault>, Vec<u8>) {
        self.begin(&mut action);
        let fate = if self.chaos {
            self.draw_error(&action, true)
        } else {
            Ok(())
        };
        self.finish(action, fate)
    }
}

pub(super) fn create_segment(folder: FolderName, name: FileName, preallocate: u64) -> Vec<Action> {
    let mut script = vec![Action::Create { folder, name }];
    if preallocate > 0 {
        script.push(Action::Extend {
            folder,
            name,
            size: preallocate,
        });
    }
    script.push(Action::SyncFolder { folder, covered: 0 });
    script
}

fn seal_segment(
    folder: FolderName,
    base: i64,
    size: u64,
    index: Box<[u8]>,
    producers: Box<[u8]>,
) -> Vec<Action> {
    let mut script = Vec::with_capacity(12);
    let files = [
        (FileName::IndexTemporary(base), FileName::Index(base), index),
        (
            FileName::ProducersTemporary(base),
            FileName::Producers(base),
            producers,
        ),
    ];
    for (temporary, name, bytes) in files {
        let bytes = Bytes::whole(bytes.into_vec());
        script.push(Action::Create {
            folder,
            name: temporary,
        });
        script.push(Action::Contents {
            folder,
            name: temporary,
            bytes,
        });
        script.push(Action::Sync {
            folder,
            name: temporary,
            covered: 0,
        });
        script.push(Action::Rename {
            folder,
            from: temporary,
            to: name,
        });
    }
    let name = FileName::Checkpoint(base);
    script.push(Action::Unlink { folder, name });
    let name = FileName::Log(base);
    script.push(Action::Cut { folder, name, size });
    script.push(Action::Sync {
        folder,
        name,
        covered: 0,
    });
    script.push(Action::SyncFolder { folder, covered: 0 });
    script
}

fn write_checkpoint(folder: FolderName, base: i64, bytes: Box<[u8]>) -> Vec<Action> {
    let temporary = FileName::CheckpointTemporary(base);
    vec![
        Action::Create {
            folder,
            name: temporary,
        },
        Action::Contents {
            folder,
            name: temporary,
            bytes: Bytes::whole(bytes.into_vec()),
        },
        Action::Rename {
            folder,
            from: temporary,
            to: FileName::Checkpoint(base),
        },
    ]
}

fn delete_segment(folder: FolderName, base: i64) -> Vec<Action> {
    let names = [
        FileName::Checkpoint(base),
        FileName::Log(base),
        FileName::Index(base),
        FileName::Producers(base),
    ];
    names.map(|name| Action::Unlink { folder, name }).into()
}

/// A delay as a person at the console would take to notice something.
pub(super) fn reaction_us(rng: &mut Rng) -> u64 {
    rng.between(1_000, 1_000_000)
}
