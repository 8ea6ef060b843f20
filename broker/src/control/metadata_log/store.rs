//! The open metadata log: append, sync, apply; snapshot when it has grown.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tackboard_logic::metadata::{
    ClusterId, Command, Image, Machine, MetadataRefusal, encode_command, encode_snapshot,
};
use tackboard_schema::ErrorCode;

use crate::bridge::{Decided, ProposalResult};

use super::format;
use super::recovery::{MetadataLogError, Recovered, RecoverySummary, Tip, numbered, recover};

/// When a snapshot is due.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this many commands in one log.
    pub records: u64,
    /// After this many bytes in one log.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            records: 5_000,
            bytes: 16 << 20,
        }
    }
}

/// Space that is reserved behind the log's end, and how little of it may be left: on a full disk topics can still be
/// deleted, which makes space.
const RESERVED_BYTES: u64 = 256 << 10;
const RESERVED_BYTES_MIN: u64 = RESERVED_BYTES / 2;

/// Snapshots, and with them the logs from the oldest on, that are kept.
const SNAPSHOTS_KEPT: usize = 2;

/// The metadata and the log that keeps it.
#[derive(Debug)]
pub struct MetadataLog {
    folder: PathBuf,
    limits: Limits,
    machine: Machine,
    tip: Tip,
    /// Set by a failed sync or truncation: the medium's state is unknown, nothing is written any more.
    failed: Option<String>,
}

impl MetadataLog {
    /// Opens `<data_dir>/meta`, or starts it if the data folder holds no partition yet.
    pub fn open(
        data_dir: &Path,
        cluster_id: ClusterId,
        limits: Limits,
    ) -> Result<(Self, RecoverySummary), MetadataLogError> {
        Self::open_after(data_dir, cluster_id, limits, false)
    }

    /// The same, told whether the last run ended cleanly: then nothing can be torn, and what looks so is damage.
    ///
    /// # Errors
    /// As [`MetadataLog::open`].
    pub fn open_after(
        data_dir: &Path,
        cluster_id: ClusterId,
        limits: Limits,
        was_clean: bool,
    ) -> Result<(Self, RecoverySummary), MetadataLogError> {
        let folder = data_dir.join("meta");
        io_result("create", &folder, fs::create_dir_all(&folder))?;
        io_result("sync", data_dir, sync_folder(data_dir))?;
        let Recovered {
            machine,
            tip,
            summary,
        } = match recover(&folder, cluster_id, was_clean)? {
            Some(recovered) => recovered,
            None if has_partitions(data_dir) => {
                return Err(MetadataLogError::Missing { path: folder });
            }
            None => Recovered {
                machine: Machine::new(cluster_id),
                tip: create_log(&folder, cluster_id, 0)?,
                summary: RecoverySummary::default(),
            },
        };
        let mut log = Self {
            folder,
            limits,
            machine,
            tip,
            failed: None,
        };
        log.reserve_ahead();
        Ok((log, summary))
    }

    /// The state after the last command.
    pub fn image(&self) -> Arc<Image> {
        self.machine.image()
    }

    /// Why nothing can be written any more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Makes `commands` durable with one sync, then applies them in order. One answer for each.
    pub fn propose(&mut self, commands: Vec<Command>) -> Vec<ProposalResult> {
        if let Some(reason) = &self.failed {
            return commands
                .iter()
                .map(|_| Err(storage_failed(reason)))
                .collect();
        }
        let (accepted, answers) = self.encode(commands);
        let Encoded { commands, bytes } = accepted;
        if let Err(refusal) = self.append(&bytes) {
            return answers
                .into_iter()
                .map(|answer| answer.and(Err(refusal.clone())))
                .collect();
        }
        self.tip.records += commands.len() as u64;
        let mut commands = commands.into_iter();
        let answers = answers
            .into_iter()
            .map(|answer| {
                answer.and_then(|()| {
                    let (version, command) = commands.next().expect("one command for each");
                    let outcome = self.machine.apply(version, command)?;
                    Ok(Decided { version, outcome })
                })
            })
            .collect();
        self.snapshot_if_due();
        answers
    }

    /// Versions and bytes of the commands; a command that is too long is refused here.
    fn encode(&self, commands: Vec<Command>) -> (Encoded, Vec<Result<(), MetadataRefusal>>) {
        let mut encoded = Encoded {
            commands: Vec::with_capacity(commands.len()),
            bytes: Vec::new(),
        };
        let mut version = self.machine.image().version;
        let mut payload = Vec::new();
        let answers = commands
            .into_iter()
            .map(|command| {
                payload.clear();
                encode_command(&command, &mut payload).map_err(|error| MetadataRefusal {
                    code: ErrorCode::InvalidRequest,
                    message: format!("the request is too long: {error}"),
                })?;
                version += 1;
                format::write_record(&mut encoded.bytes, version, self.tip.end, &payload);
                encoded.commands.push((version, command));
                Ok(())
            })
            .collect();
        (encoded, answers)
    }

    /// Writes and syncs. A full disk leaves the log as it was; any other failure ends it.
    fn append(&mut self, bytes: &[u8]) -> Result<(), MetadataRefusal> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Err(error) = (&self.tip.file).write_all(bytes) {
            let undone = self.tip.file.set_len(self.tip.end);
            self.tip.reserved_to = self.tip.end;
            if is_full(&error) && undone.is_ok() {
                return Err(MetadataRefusal {
                    code: ErrorCode::StorageFull,
                    message: format!("no space for metadata in {}", self.folder.display()),
                });
            }
            return Err(self.fail("written", &error));
        }
        if let Err(error) = self.tip.file.sync_data() {
            return Err(self.fail("synced", &error));
        }
        self.tip.end += bytes.len() as u64;
        self.reserve_ahead();
        Ok(())
    }

    /// Keeps blocks allocated behind the end, which does not move. Where that can't be had the log goes on without.
    fn reserve_ahead(&mut self) {
        if self.tip.reserved_to >= self.tip.end + RESERVED_BYTES_MIN {
            return;
        }
        let reserved_to = self.tip.end + RESERVED_BYTES;
        // SAFETY: a system call on a file that is open; it touches no memory of this process.
        let reserved = unsafe {
            libc::fallocate(
                self.tip.file.as_raw_fd(),
                libc::FALLOC_FL_KEEP_SIZE,
                self.tip.end as libc::off_t,
                RESERVED_BYTES as libc::off_t,
            )
        };
        if reserved == 0 {
            self.tip.reserved_to = reserved_to;
        }
    }

    fn fail(&mut self, what: &str, error: &io::Error) -> MetadataRefusal {
        let reason = format!("{} could not be {what}: {error}", self.tip.path.display());
        tracing::error!(%reason, "metadata log failed; no change is taken until a restart");
        let refusal = storage_failed(&reason);
        self.failed = Some(reason);
        refusal
    }

    /// A snapshot that cannot be written is no failure: the log goes on growing, and the next command
    /// tries again.
    fn snapshot_if_due(&mut self) {
        let due = self.tip.records >= self.limits.records || self.tip.end >= self.limits.bytes;
        if !due {
            return;
        }
        if let Err(error) = self.snapshot() {
            tracing::warn!(%error, "no metadata snapshot was written; it is tried again");
        }
    }

    fn snapshot(&mut self) -> Result<(), MetadataLogError> {
        let image = self.machine.image();
        let mut payload = Vec::new();
        encode_snapshot(&self.machine, &mut payload);
        let mut bytes = Vec::with_capacity(payload.len() + format::SNAPSHOT_HEADER_LENGTH);
        format::write_snapshot(&mut bytes, image.version, &payload);
        create_file(
            &self.folder,
            &format!("snapshot-{:020}", image.version),
            &bytes,
        )?;
        self.tip = create_log(&self.folder, image.cluster_id, image.version)?;
        self.reserve_ahead();
        self.delete_old()
    }

    /// Deletes snapshots beyond those kept, and logs whose commands all stand in the oldest kept.
    fn delete_old(&self) -> Result<(), MetadataLogError> {
        let snapshots = numbered(&self.folder, "snapshot-")?;
        if snapshots.len() < SNAPSHOTS_KEPT {
            return Ok(());
        }
        let (old, kept) = snapshots.split_at(snapshots.len() - SNAPSHOTS_KEPT);
        let oldest_kept = kept[0].0;
        let logs = numbered(&self.folder, "log-")?;
        let needed_from = logs
            .iter()
            .rposition(|(base, _)| *base <= oldest_kept)
            .unwrap_or(0);
        for (_, path) in old.iter().chain(&logs[..needed_from]) {
            io_result("delete", path, fs::remove_file(path))?;
        }
        Ok(())
    }
}

/// Commands with their versions, and the records to append for them.
struct Encoded {
    commands: Vec<(u64, Command)>,
    bytes: Vec<u8>,
}

fn storage_failed(reason: &str) -> MetadataRefusal {
    MetadataRefusal {
        code: ErrorCode::KafkaStorageError,
        message: format!("the metadata log failed and takes no change until a restart: {reason}"),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn has_partitions(data_dir: &Path) -> bool {
    fs::read_dir(data_dir.join("p")).is_ok_and(|mut entries| entries.next().is_some())
}

fn create_log(folder: &Path, cluster_id: ClusterId, base: u64) -> Result<Tip, MetadataLogError> {
    let mut header = Vec::with_capacity(format::LOG_HEADER_LENGTH);
    format::write_log_header(&mut header, cluster_id, base);
    let path = create_file(folder, &format!("log-{base:020}"), &header)?;
    let file = io_result("open", &path, File::options().append(true).open(&path))?;
    Ok(Tip {
        file,
        path,
        end: header.len() as u64,
        records: 0,
        reserved_to: header.len() as u64,
    })
}

/// Writes a file under a temporary name, syncs it, names it, syncs the folder.
fn create_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, MetadataLogError> {
    let path = folder.join(name);
    let unfinished = folder.join(format!("{name}.tmp"));
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_folder(folder)
    };
    io_result("create", &path, write())?;
    Ok(path)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn io_result<T>(
    action: &'static str,
    path: &Path,
    result: io::Result<T>,
) -> Result<T, MetadataLogError> {
    result.map_err(|source| MetadataLogError::Io {
        action,
        path: path.to_owned(),
        source,
    })
}
