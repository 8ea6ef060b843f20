//! I/O that a step of logic asked for: each runs in a task of its own and comes back as an input.

use std::{cell::RefCell, rc::Rc};

use glommio::io::{DmaBuffer, ReadResult};
use tackboard_logic::{
    log::{find_record, recovery::RecoveredLog, stretch::block_bytes, trim_read},
    request::lookup::{ListedOffset, Lookup, LookupStep, Unreadable},
    shard::interface::{
        DiskRead, Effect, Input, LedgerFile, LogId, Reopen, SegmentBase, StorageFault, SyncId,
        SyncScope, WriteId,
    },
};
use tackboard_schema::{ErrorCode, LeaderEpoch};

use super::{
    Shard,
    request::{Failure, Fetched, LogBounds, Piece},
    slab::Key,
};
use crate::disk::{
    fault_of,
    paths::SegmentPart,
    recover::{Known, recover, remove_segment},
    segments::{LogFiles, SegmentFile, remove_sidecar, sync_folder, write_sidecar},
};

/// How long a removal waits before it looks again whether a segment is still being opened.
const OPENING_PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
/// Requests of a core that read segments at once; more wait their turn.
pub const READS_IN_FLIGHT_MAX: usize = 16;

/// One operation to start.
pub enum Launch {
    /// Write a frozen chunk.
    Write {
        log: LogId,
        segment: SegmentBase,
        write: WriteId,
        bytes: Rc<DmaBuffer>,
        file_at: u64,
        synced: bool,
    },
    /// Any other effect on a log's files, as logic gave it.
    Storage(Effect),
    /// Read batches for a fetch.
    Read {
        request: Key,
        entry: u32,
        log: LogId,
        read: DiskRead,
        fetched: Fetched,
    },
    /// Find the first records at or after a time, for entries of one request.
    LookUps {
        request: Key,
        lookups: Vec<(u32, Lookup)>,
    },
    /// Move a deleted log to the trash.
    Trash {
        log: LogId,
        files: Rc<RefCell<LogFiles>>,
    },
}

/// One write of the ledger; they run one after another.
pub struct LedgerWrite {
    pub sequence: u64,
    pub file: LedgerFile,
    pub at: u64,
    pub bytes: Box<[u8]>,
    pub cut_to: Option<u64>,
}

/// A log whose writes a sync of the file system is to prove.
pub struct Rider {
    pub log: LogId,
    pub segment: SegmentBase,
    pub sync: SyncId,
}

/// The log, or the segment, was removed.
const GONE: StorageFault = StorageFault::Io {
    os_error: libc::ENOENT,
};

/// What was tried with a log's files, for the report of its failure.
struct Attempt {
    what: &'static str,
    segment: Option<SegmentBase>,
    /// From which byte of the segment on.
    at: Option<u64>,
}

impl Attempt {
    /// With all files of the log.
    const RECOVER: Attempt = Attempt {
        what: "recover",
        segment: None,
        at: None,
    };

    fn of(what: &'static str, segment: SegmentBase) -> Self {
        Attempt {
            what,
            segment: Some(segment),
            at: None,
        }
    }

    fn at(what: &'static str, segment: SegmentBase, at: u64) -> Self {
        Attempt {
            at: Some(at),
            ..Self::of(what, segment)
        }
    }
}

/// Waits until nothing of a log is being opened.
async fn no_opens(files: &RefCell<LogFiles>) {
    while files.borrow().is_opening() {
        glommio::timer::sleep(OPENING_PAUSE).await;
    }
}

impl Shard {
    /// Starts one operation.
    pub(super) fn launch(self: &Rc<Self>, launch: Launch) {
        let shard = self.clone();
        match launch {
            Launch::Storage(Effect::WriteLedger {
                sequence,
                file,
                at,
                bytes,
                cut_to,
            }) => self.queue_ledger(LedgerWrite {
                sequence,
                file,
                at,
                bytes,
                cut_to,
            }),
            Launch::Storage(Effect::Sync {
                log,
                segment,
                sync,
                scope: SyncScope::FileSystem,
            }) => self.queue_rider(Rider { log, segment, sync }),
            Launch::Read {
                request,
                entry,
                log,
                read,
                fetched,
            } => self.spawn_net_detached(async move {
                let outcome = shard.read_batches(request, log, &read, fetched).await;
                shard.enter(|state| {
                    state.entry_fetched(request, entry, outcome);
                    state.outcome_arrived(request);
                });
            }),
            // One after the other: a request of thousands waits for a turn as often as one of a single entry.
            Launch::LookUps { request, lookups } => self.spawn_net_detached(async move {
                for (entry, lookup) in lookups {
                    let outcome = shard.look_up(request, lookup).await;
                    shard.enter(|state| {
                        state.entry_listed(request, entry, outcome);
                        state.outcome_arrived(request);
                    });
                }
            }),
            Launch::Trash { log, files } => {
                self.history.forget(log, None);
                self.spawn_flush(async move {
                    files.borrow_mut().doom(None);
                    no_opens(&files).await;
                    let folder = files.borrow().folder().to_owned();
                    shard.move_to_trash(folder).await;
                });
            }
            storage => self.spawn_flush(async move {
                if let Some(input) = shard.store(storage).await {
                    shard.enter(|state| state.step(input, &[]));
                }
            }),
        }
    }

    async fn store(&self, launch: Launch) -> Option<Input> {
        match launch {
            Launch::Write {
                log,
                segment,
                write,
                bytes,
                file_at,
                synced,
            } => {
                let written = self.write(log, segment, bytes, (file_at, synced)).await;
                let attempt = Attempt::at("write", segment, file_at);
                Some(Input::Written {
                    log,
                    write,
                    result: self.note(log, attempt, written),
                })
            }
            Launch::Storage(Effect::Sync {
                log, segment, sync, ..
            }) => {
                self.metrics().disk_syncs.increment();
                let result = match self.segment(log, segment).await {
                    Ok(file) => file.sync().await,
                    Err(fault) => Err(fault),
                };
                Some(Input::Synced {
                    log,
                    sync,
                    result: self.note(log, Attempt::of("sync", segment), result),
                })
            }
            Launch::Storage(Effect::Preallocate { log, segment, size }) => {
                let result = match self.segment_to_write(log, segment).await {
                    Ok(file) => file.preallocate(size).await,
                    Err(fault) => Err(fault),
                };
                Some(Input::Preallocated {
                    log,
                    segment,
                    size,
                    result,
                })
            }
            Launch::Storage(effect) => self.change_segments(effect).await,
            _ => unreachable!("launched elsewhere"),
        }
    }

    /// Carries out what is done with a segment as a whole, or with all of a log's.
    async fn change_segments(&self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::CreateSegment {
                log,
                segment,
                preallocate,
            } => {
                let result = self.create(log, segment, preallocate).await;
                Some(Input::SegmentCreated {
                    log,
                    segment,
                    result: self.note(log, Attempt::of("create", segment), result),
                })
            }
            Effect::SealSegment {
                log,
                segment,
                size,
                index,
                producers,
            } => {
                let result = self.seal(log, segment, size, [index, producers]).await;
                Some(Input::SegmentSealed {
                    log,
                    segment,
                    result: self.note(log, Attempt::of("seal", segment), result),
                })
            }
            Effect::WriteCheckpoint {
                log,
                segment,
                bytes,
            } => {
                self.write_checkpoint(log, segment, bytes).await;
                Some(Input::CheckpointWritten { log, segment })
            }
            Effect::DeleteSegment { log, segment } => {
                self.delete(log, segment).await;
                Some(Input::SegmentDeleted { log, segment })
            }
            Effect::ReadSegment {
                log,
                segment,
                file_at,
                length,
            } => {
                let read = self.read_all(log, segment, file_at, length).await;
                let attempt = Attempt::at("read", segment, file_at);
                Some(Input::SegmentRead {
                    log,
                    result: self.note(log, attempt, read.map(|bytes| Box::from(&*bytes))),
                })
            }
            Effect::Reopen(reopen) => {
                let result = self.reopen(&reopen).await;
                Some(Input::Reopened {
                    log: reopen.log,
                    result: self.note(reopen.log, Attempt::RECOVER, result),
                })
            }
            _ => unreachable!("launched elsewhere"),
        }
    }

    /// What came of a rider's sync.
    pub(super) fn ridden(&self, rider: Rider, result: Result<(), StorageFault>) -> Input {
        let Rider { log, segment, sync } = rider;
        Input::Synced {
            log,
            sync,
            result: self.note(log, Attempt::of("sync", segment), result),
        }
    }

    async fn write(
        &self,
        log: LogId,
        segment: SegmentBase,
        bytes: Rc<DmaBuffer>,
        (file_at, synced): (u64, bool),
    ) -> Result<(), StorageFault> {
        let metrics = self.metrics();
        metrics.disk_writes.increment();
        metrics.disk_write_bytes.add(bytes.len() as u64);
        if synced {
            metrics.disk_syncs.increment();
        }
        let file = self.segment_to_write(log, segment).await?;
        file.write(bytes, file_at, synced).await
    }

    async fn create(
        &self,
        log: LogId,
        segment: SegmentBase,
        preallocate: u64,
    ) -> Result<(), StorageFault> {
        let files = self.files(log).ok_or(GONE)?;
        let folder = files.borrow().folder().to_owned();
        let file = SegmentFile::create(&folder, segment, preallocate, self.access).await?;
        files.borrow_mut().keep(segment, Rc::new(file));
        Ok(())
    }

    /// Closes a log's files, recovers it, and opens what is left. Reads for requests that still hold a file go on in
    /// it; what they bring is not used.
    async fn reopen(&self, reopen: &Reopen) -> Result<Box<RecoveredLog>, StorageFault> {
        let files = self.files(reopen.log).ok_or(GONE)?;
        self.history.forget(reopen.log, None);
        files.borrow_mut().doom(None);
        no_opens(&files).await;
        let folder = files.borrow().folder().to_owned();
        let known = Known {
            restart: reopen.restart,
            ledger: Some(&reopen.ledger),
        };
        let recovery = recover(
            folder.clone(),
            reopen.topic_partition,
            known,
            &reopen.config,
            self.access,
        );
        let (left, result) = match recovery.await {
            Ok((files, recovered)) => {
                self.report_unserved(reopen.topic_partition, None, &recovered);
                (files, Ok(recovered))
            }
            // What lies below the cut is still read.
            Err(fault) => {
                tracing::error!(partition = %reopen.topic_partition, %fault, "the log could not be recovered behind a cut");
                (LogFiles::new(folder, self.access), Err(fault.why))
            }
        };
        // Whoever waits for these files finds the new ones in their place.
        *files.borrow_mut() = left;
        result
    }

    /// Writes what stands beside a segment that takes no more batches, index and producers, and cuts it to its size.
    async fn seal(
        &self,
        log: LogId,
        segment: SegmentBase,
        size: u64,
        [index, producers]: [Box<[u8]>; 2],
    ) -> Result<(), StorageFault> {
        let files = self.files(log).ok_or(GONE)?;
        let folder = files.borrow().folder().to_owned();
        let file = self.segment_to_write(log, segment).await?;
        let target = folder.clone();
        glommio::executor()
            .spawn_blocking(move || {
                write_sidecar(&target, segment, SegmentPart::Index, &index)?;
                write_sidecar(&target, segment, SegmentPart::Producers, &producers)?;
                remove_sidecar(&target, segment, SegmentPart::Checkpoint)
            })
            .await
            .map_err(|error| fault_of(&error))?;
        file.cut(size).await?;
        sync_folder(&folder).await?;
        // From here on it is read only: the descriptors for appending go.
        files.borrow_mut().forget(segment);
        Ok(())
    }

    /// Without it the next start after a crash reads more.
    async fn write_checkpoint(&self, log: LogId, segment: SegmentBase, bytes: Box<[u8]>) {
        let Some(files) = self.files(log) else {
            return;
        };
        let folder = files.borrow().folder().to_owned();
        let written = glommio::executor()
            .spawn_blocking(move || {
                write_sidecar(&folder, segment, SegmentPart::Checkpoint, &bytes)
            })
            .await;
        if let Err(error) = written {
            let state = self.state.borrow();
            let partition = state.opened(log).map(|opened| opened.partition.to_string());
            tracing::debug!(partition, %error, segment = segment.0.0, "a checkpoint could not be written");
        }
    }

    async fn delete(&self, log: LogId, segment: SegmentBase) {
        let Some(files) = self.files(log) else {
            return;
        };
        self.history.forget(log, Some(segment));
        files.borrow_mut().doom(Some(segment));
        no_opens(&files).await;
        let folder = files.borrow().folder().to_owned();
        if let Err(fault) = remove_segment(folder, segment).await {
            let state = self.state.borrow();
            let partition = state.opened(log).map(|opened| opened.partition.to_string());
            tracing::warn!(partition, %fault, segment = segment.0.0, "a deleted segment's files could not be removed");
        }
        files.borrow_mut().removed(segment);
    }

    /// Counts and logs a fault of the device; a full disk or a log that has gone is none.
    fn note<T>(
        &self,
        log: LogId,
        attempt: Attempt,
        result: Result<T, StorageFault>,
    ) -> Result<T, StorageFault> {
        if let Err(fault) = &result
            && !matches!(fault, StorageFault::NoSpace)
            && *fault != GONE
        {
            self.metrics().disk_errors.increment();
            let state = self.state.borrow();
            let partition = state.opened(log).map(|opened| opened.partition.to_string());
            let Attempt { what, segment, at } = attempt;
            let segment = segment.map(|segment| segment.0.0);
            tracing::error!(partition, what, segment, at, %fault, "a storage operation failed");
        }
        result
    }

    fn files(&self, log: LogId) -> Option<Rc<RefCell<LogFiles>>> {
        let state = self.state.borrow();
        state.opened(log).map(|opened| opened.files.clone())
    }

    /// A segment of an open log, opened for reading if it is not open.
    async fn segment(
        &self,
        log: LogId,
        segment: SegmentBase,
    ) -> Result<Rc<SegmentFile>, StorageFault> {
        let files = self.files(log).ok_or(GONE)?;
        let known = files.borrow().get(segment);
        if let Some(file) = known {
            return Ok(file);
        }
        files.borrow_mut().open_begins(segment)?;
        let folder = files.borrow().folder().to_owned();
        let opened = SegmentFile::open_sealed(&folder, segment, self.access).await;
        files.borrow_mut().open_ended();
        let file = Rc::new(opened?);
        files.borrow_mut().keep(segment, file.clone());
        Ok(file)
    }

    /// A segment of an open log, opened for writing if it is not, as after a restart between its roll and its seal.
    async fn segment_to_write(
        &self,
        log: LogId,
        segment: SegmentBase,
    ) -> Result<Rc<SegmentFile>, StorageFault> {
        let files = self.files(log).ok_or(GONE)?;
        let known = files.borrow().get(segment).filter(|file| file.is_active());
        if let Some(file) = known {
            return Ok(file);
        }
        files.borrow_mut().open_begins(segment)?;
        let folder = files.borrow().folder().to_owned();
        let opened = SegmentFile::open_active(&folder, segment, self.access).await;
        files.borrow_mut().open_ended();
        let file = Rc::new(opened?);
        files.borrow_mut().keep(segment, file.clone());
        Ok(file)
    }

    // ---- reading --------------------------------------------------------------------------------------------------

    async fn read_batches(
        self: &Rc<Self>,
        request: Key,
        log: LogId,
        read: &DiskRead,
        mut fetched: Fetched,
    ) -> Result<Fetched, Failure> {
        let _turn = self.reads.take(1).await;
        if !self.state.borrow_mut().is_wanted(request) {
            return Ok(fetched);
        }
        match self.read_shared(log, read).await {
            Some(pieces) => fetched.pieces = pieces,
            None => fetched.pieces.extend(self.read_alone(log, read).await?),
        }
        Ok(fetched)
    }

    /// Reads exactly what `read` names, for this request alone.
    async fn read_alone(&self, log: LogId, read: &DiskRead) -> Result<Option<Piece>, Failure> {
        // What is read is held until the whole request is answered and sent. To wait for room here could wait for the
        // request itself, so one that finds none is refused and tried again by its client.
        let Some(hold) = self
            .history
            .demand_alone(block_bytes(read.file_at, read.length))
        else {
            let message = "reads of history hold all the memory they may; try again";
            return Err(Failure::new(ErrorCode::OverBudget, message));
        };
        let read_bytes = self.read_all(log, read.segment, read.file_at, read.length);
        let read_bytes = read_bytes.await;
        self.history.landed(hold.id(), read_bytes.clone());
        if self.was_cut_since(log, read.leader_epoch) {
            return Err(Failure::plain(ErrorCode::NotLeaderOrFollower));
        }
        let bytes = match read_bytes {
            Ok(bytes) => bytes,
            Err(fault) => return Err(self.not_fetched(log, read, fault)),
        };
        self.metrics().disk_read_bytes.add(bytes.len() as u64);
        let range =
            trim_read(&bytes, read).map_err(|damage| self.damaged(log, &damage.to_string()))?;
        if range.is_empty() {
            return Ok(None);
        }
        let slice = ReadResult::slice(&bytes, range.start, range.len());
        let slice = slice.expect("logic trims within the bytes it was given");
        Ok(Some(Piece::Read(slice, hold)))
    }

    /// What to answer when the bytes of a fetch could not be read.
    fn not_fetched(&self, log: LogId, read: &DiskRead, fault: StorageFault) -> Failure {
        let why = Unreadable::why(&self.state.borrow().machine, log, read.fetch_offset, fault);
        match why {
            Unreadable::Deleted => Failure::plain(ErrorCode::UnknownTopicOrPartition),
            Unreadable::Retired {
                log_start_offset,
                high_watermark,
            } => Failure::out_of_range(LogBounds {
                log_start_offset,
                high_watermark,
            }),
            Unreadable::Fault(fault) => self.unreadable(log, read.segment, read.file_at, fault),
        }
    }

    pub(super) fn was_cut_since(&self, log: LogId, leader_epoch: LeaderEpoch) -> bool {
        let state = self.state.borrow();
        state.machine.was_cut_since(log, leader_epoch)
    }

    /// Reads a range of a segment.
    pub(super) async fn read_all(
        &self,
        log: LogId,
        segment: SegmentBase,
        at: u64,
        length: u32,
    ) -> Result<ReadResult, StorageFault> {
        let file = self.segment(log, segment).await?;
        file.read(at, length as usize).await
    }

    fn unreadable(
        &self,
        log: LogId,
        segment: SegmentBase,
        at: u64,
        fault: StorageFault,
    ) -> Failure {
        let state = self.state.borrow();
        let partition = state.opened(log).map(|opened| opened.partition.to_string());
        tracing::error!(partition, %fault, segment = segment.0.0, at, "a segment could not be read");
        let segment = segment.0;
        let message = format!("segment {segment} could not be read at byte {at}: {fault}");
        Failure::new(ErrorCode::KafkaStorageError, message)
    }

    fn damaged(&self, log: LogId, what: &str) -> Failure {
        let state = self.state.borrow();
        let partition = state.opened(log).map(|opened| opened.partition.to_string());
        tracing::error!(
            partition,
            what,
            "a segment holds damaged bytes; they are not served"
        );
        Failure::new(
            ErrorCode::CorruptMessage,
            format!("the log is damaged there and is not served: {what}"),
        )
    }

    /// Looks in one stretch of a segment after another; each has a turn of its own, so that a long search does not
    /// keep fetches waiting.
    async fn look_up(&self, request: Key, mut lookup: Lookup) -> Result<ListedOffset, Failure> {
        loop {
            let _turn = self.reads.take(1).await;
            if !self.state.borrow_mut().is_awaited(request) {
                return Err(Failure::plain(ErrorCode::NetworkException));
            }
            let Lookup {
                log,
                timestamp,
                scan,
            } = lookup;
            let read = self.read_all(log, scan.segment, scan.file_at, scan.length);
            let read = read.await;
            if self.was_cut_since(log, scan.leader_epoch) {
                return Err(Failure::plain(ErrorCode::NotLeaderOrFollower));
            }
            let step = match read {
                Ok(bytes) => {
                    self.metrics().disk_read_bytes.add(bytes.len() as u64);
                    let search = find_record(&bytes, &scan, timestamp)
                        .map_err(|damage| self.damaged(log, &damage.to_string()))?;
                    lookup.searched(&self.state.borrow().machine, search)
                }
                Err(fault) => lookup.unreadable(&self.state.borrow().machine, fault),
            };
            match step {
                LookupStep::Read(next) => lookup = next,
                LookupStep::Listed(listed) => return Ok(listed),
                LookupStep::Deleted => {
                    return Err(Failure::plain(ErrorCode::UnknownTopicOrPartition));
                }
                LookupStep::Truncating => {
                    return Err(Failure::plain(ErrorCode::NotLeaderOrFollower));
                }
                LookupStep::Fault(fault) => {
                    return Err(self.unreadable(log, scan.segment, scan.file_at, fault));
                }
            }
        }
    }
}
