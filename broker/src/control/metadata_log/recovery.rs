//! From the folder to the state: which files count, and what to do about each damage.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tackboard_logic::metadata::{ClusterId, Machine, decode_command, decode_snapshot};

use super::format::{self, Tail};

/// Why the metadata cannot be used. Each names the file.
#[derive(Debug, thiserror::Error)]
pub enum MetadataLogError {
    /// The file system failed.
    #[error("metadata: cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes are not what was written.
    #[error("metadata: {path} {what}; restore the folder meta/ from a copy, nothing was changed")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        what: String,
    },
    /// Partitions exist, but no metadata that describes them.
    #[error(
        "metadata: {path} is empty although the data folder holds partitions; restore it from a copy, nothing was changed"
    )]
    Missing {
        /// The folder.
        path: PathBuf,
    },
}

/// What opening the log had to do, for the start-up lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverySummary {
    /// Commands replayed from logs.
    pub commands_replayed: u64,
    /// Bytes of an unfinished write that were cut off.
    pub torn_bytes: u64,
    /// Snapshots that could not be read; an older one and its log replaced them.
    pub snapshots_skipped: Vec<String>,
}

/// What the folder held.
#[derive(Debug)]
pub(super) struct Recovered {
    /// The state after the last command.
    pub(super) machine: Machine,
    pub(super) tip: Tip,
    pub(super) summary: RecoverySummary,
}

/// The newest log, to go on with, and the sizes that decide when the next snapshot is due.
#[derive(Debug)]
pub(super) struct Tip {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) end: u64,
    pub(super) records: u64,
    /// Up to where the file has blocks, as far as is known.
    pub(super) reserved_to: u64,
}

/// A log larger than this was not written by us.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads everything, deletes what is unfinished, cuts off what is torn; after a clean stop nothing is, so that is
/// damage. None: the folder is empty.
pub(super) fn recover(
    folder: &Path,
    cluster_id: ClusterId,
    was_clean: bool,
) -> Result<Option<Recovered>, MetadataLogError> {
    delete_unfinished(folder)?;
    let snapshots = numbered(folder, "snapshot-")?;
    let logs = numbered(folder, "log-")?;
    if snapshots.is_empty() && logs.is_empty() {
        return Ok(None);
    }
    let (mut machine, snapshots_skipped) = newest_snapshot(&snapshots, cluster_id)?;
    let from_version = machine.image().version;
    // Logs that a newer one supersedes as a start are not read: their commands are in the snapshot.
    let first = logs
        .iter()
        .rposition(|(base, _)| *base <= from_version)
        .ok_or_else(|| {
            let (_, path) = logs
                .first()
                .or(snapshots.first())
                .expect("one of them is not empty");
            damaged(
                path,
                format!("does not reach back to command {}", from_version + 1),
            )
        })?;
    let mut torn_bytes = 0;
    let mut tip = None;
    for (index, (base, path)) in logs.iter().enumerate().skip(first) {
        let is_newest = index + 1 == logs.len();
        let bytes = read(path)?;
        let header = format::read_log_header(&bytes).map_err(|what| damaged(path, what))?;
        check_header(path, header, *base, cluster_id)?;
        let scan = format::scan(&bytes, *base);
        match scan.tail {
            Tail::Clean => {}
            Tail::Torn if is_newest && was_clean => {
                return Err(damaged(
                    path,
                    format!("is cut short at byte {}, after a clean stop", scan.end),
                ));
            }
            Tail::Torn if is_newest => torn_bytes = (bytes.len() - scan.end) as u64,
            Tail::Torn => {
                return Err(damaged(
                    path,
                    format!("ends at byte {} amid a record", scan.end),
                ));
            }
            Tail::Damaged(why) => {
                return Err(damaged(
                    path,
                    format!("is damaged at byte {}: {why}", scan.end),
                ));
            }
        }
        if machine.image().version < *base {
            return Err(damaged(path, "does not continue the file before it"));
        }
        for record in &scan.records {
            replay(&mut machine, record, &bytes, path)?;
        }
        if is_newest {
            tip = Some(settle(
                path,
                scan.end as u64,
                scan.records.len() as u64,
                torn_bytes,
            )?);
        }
    }
    let tip = tip.expect("the loop visits the newest log");
    let commands_replayed = machine.image().version - from_version;
    let summary = RecoverySummary {
        commands_replayed,
        torn_bytes,
        snapshots_skipped,
    };
    Ok(Some(Recovered {
        machine,
        tip,
        summary,
    }))
}

fn replay(
    machine: &mut Machine,
    record: &format::Record,
    bytes: &[u8],
    path: &Path,
) -> Result<(), MetadataLogError> {
    let applied = machine.image().version;
    if record.version <= applied {
        return Ok(());
    }
    if record.version != applied + 1 {
        let what = format!(
            "goes on at command {}, {} was expected",
            record.version,
            applied + 1
        );
        return Err(damaged(path, what));
    }
    let command = decode_command(&bytes[record.payload.clone()]).map_err(|error| {
        damaged(
            path,
            format!(
                "holds a command {} that cannot be read: {error}",
                record.version
            ),
        )
    })?;
    // A refusal is part of history: it was answered so when the command was new.
    let _ = machine.apply(record.version, command);
    Ok(())
}

/// Opens the newest log for appending, after cutting off a torn tail. Synced in any case: what was just
/// read may have been in the page cache only, and is about to be built upon.
fn settle(path: &Path, end: u64, records: u64, torn_bytes: u64) -> Result<Tip, MetadataLogError> {
    let fail = |action| {
        move |source| MetadataLogError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    };
    let file = File::options()
        .append(true)
        .open(path)
        .map_err(fail("open"))?;
    if torn_bytes > 0 {
        file.set_len(end).map_err(fail("truncate"))?;
    }
    file.sync_all().map_err(fail("sync"))?;
    Ok(Tip {
        file,
        path: path.to_owned(),
        end,
        records,
        reserved_to: end,
    })
}

fn check_header(
    path: &Path,
    header: format::LogHeader,
    base: u64,
    cluster_id: ClusterId,
) -> Result<(), MetadataLogError> {
    if header.base_version != base {
        return Err(damaged(
            path,
            format!("has base version {} in its header", header.base_version),
        ));
    }
    if header.cluster_id != cluster_id {
        let what = format!(
            "belongs to cluster {}, the data folder to cluster {cluster_id}",
            header.cluster_id
        );
        return Err(damaged(path, what));
    }
    Ok(())
}

/// The state of the newest readable snapshot, or the empty state if there is none to be read.
fn newest_snapshot(
    snapshots: &[(u64, PathBuf)],
    cluster_id: ClusterId,
) -> Result<(Machine, Vec<String>), MetadataLogError> {
    let mut skipped = Vec::new();
    for (version, path) in snapshots.iter().rev() {
        match load_snapshot(path, *version, cluster_id)? {
            Ok(machine) => return Ok((machine, skipped)),
            Err(what) => skipped.push(format!("{} {what}", path.display())),
        }
    }
    Ok((Machine::new(cluster_id), skipped))
}

fn load_snapshot(
    path: &Path,
    version: u64,
    cluster_id: ClusterId,
) -> Result<Result<Machine, String>, MetadataLogError> {
    let bytes = read(path)?;
    let machine = match format::read_snapshot(&bytes) {
        Ok((found, _)) if found != version => Err(format!("has version {found} in its header")),
        Ok((_, payload)) => {
            decode_snapshot(payload).map_err(|error| format!("cannot be read: {error}"))
        }
        Err(what) => Err(what.to_owned()),
    };
    Ok(machine.and_then(|machine| {
        let image = machine.image();
        if image.version == version && image.cluster_id == cluster_id {
            Ok(machine)
        } else {
            Err("holds another version or cluster than its header says".to_owned())
        }
    }))
}

/// Files called `<prefix><20 digits>`, by number. Other files are left alone.
pub(super) fn numbered(
    folder: &Path,
    prefix: &str,
) -> Result<Vec<(u64, PathBuf)>, MetadataLogError> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let digits = name
            .strip_prefix(prefix)
            .filter(|digits| digits.len() == 20);
        if let Some(Ok(number)) = digits.map(str::parse) {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn delete_unfinished(folder: &Path) -> Result<(), MetadataLogError> {
    for path in entries(folder)? {
        if path.extension().is_some_and(|extension| extension == "tmp") {
            fs::remove_file(&path).map_err(|source| MetadataLogError::Io {
                action: "delete",
                path,
                source,
            })?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, MetadataLogError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    };
    list().map_err(|source| MetadataLogError::Io {
        action: "list",
        path: folder.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, MetadataLogError> {
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|source| MetadataLogError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(damaged(path, "is larger than any that was written"));
    }
    Ok(bytes)
}

fn damaged(path: &Path, what: impl Into<String>) -> MetadataLogError {
    MetadataLogError::Damaged {
        path: path.to_owned(),
        what: what.into(),
    }
}
