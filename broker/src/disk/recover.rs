//! Brings one log back: lists its files, does what logic's recovery asks, hands back what it found.

use std::{
    io,
    path::{Path, PathBuf},
    rc::Rc,
};

use tackboard_logic::{
    ledger::LedgerLog,
    log::recovery::{
        RecoveredLog, Recovery, RecoveryStep, RestartClass, SegmentFile as Listed, Sidecar,
    },
    shard::interface::{LogConfig, SegmentBase, StorageFault},
};
use tackboard_schema::TopicPartition;

use super::{
    fault_of,
    file::Access,
    paths::{SegmentPart, parse_segment_name, segment_path},
    segments::{LogFiles, SegmentFile, sync_folder},
};

/// Largest index or producer snapshot that is read, bytes.
pub const SIDECAR_BYTES_MAX: u64 = 64 << 20;

/// What may be beside a segment's `.log` file.
const SIDECARS: [SegmentPart; 3] = [
    SegmentPart::Index,
    SegmentPart::Producers,
    SegmentPart::Checkpoint,
];

/// What the ledger and the superblock say about a log before it is looked at.
pub struct Known<'a> {
    /// How the last process ended.
    pub restart: RestartClass,
    /// What the ledgers prove.
    pub ledger: Option<&'a LedgerLog>,
}

/// Why a log could not be recovered, and over which file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct RecoveryFault {
    /// What was read or changed.
    pub path: PathBuf,
    /// What came of it.
    pub why: StorageFault,
}

/// Recovers the log in `folder`, which is created if it is not there.
///
/// # Errors
/// What the kernel said, or what recovery could not do without.
pub async fn recover(
    folder: PathBuf,
    partition: TopicPartition,
    known: Known<'_>,
    config: &LogConfig,
    access: Access,
) -> Result<(LogFiles, Box<RecoveredLog>), RecoveryFault> {
    let listed = list_on_pool(folder.clone()).await;
    let listed = listed.map_err(|why| RecoveryFault {
        path: folder.clone(),
        why,
    })?;
    let newest = listed.last().map(|segment| segment.base);
    let mut recovery = Recovery::new(partition, known.restart, known.ledger, listed, config);
    let mut files = LogFiles::new(folder, access);
    let mut touched = files.folder().to_owned();
    loop {
        let step = recovery.next();
        if let Some((segment, part)) = file_of(&step) {
            touched = segment_path(files.folder(), segment.0, part);
        }
        match step {
            RecoveryStep::ReadIndex { segment } => {
                let bytes = read_sidecar(files.folder(), segment, SegmentPart::Index).await;
                recovery.provide(bytes.as_deref().map_err(|fault| *fault));
            }
            RecoveryStep::ReadProducers { segment } => {
                let bytes = read_sidecar(files.folder(), segment, SegmentPart::Producers).await;
                recovery.provide(bytes.as_deref().map_err(|fault| *fault));
            }
            RecoveryStep::ReadCheckpoint { segment } => {
                let bytes = read_sidecar(files.folder(), segment, SegmentPart::Checkpoint).await;
                recovery.provide(bytes.as_deref().map_err(|fault| *fault));
            }
            RecoveryStep::Read {
                segment,
                file_at,
                length,
            } => {
                let read = match opened(&mut files, segment, newest).await {
                    Ok(file) => file.read(file_at, length as usize).await,
                    Err(fault) => Err(fault),
                };
                recovery.provide(read.as_deref().map_err(|fault| *fault));
            }
            RecoveryStep::Truncate { segment, size } => {
                let done = match active(&mut files, segment).await {
                    Ok(file) => file.truncate(size).await,
                    Err(fault) => Err(fault),
                };
                recovery.done(done);
            }
            RecoveryStep::Remove { segment } => {
                files.forget(segment);
                let folder = files.folder().to_owned();
                recovery.done(remove_segment(folder, segment).await);
            }
            RecoveryStep::SetAside { segment } => {
                files.forget(segment);
                let folder = files.folder().to_owned();
                recovery.done(set_aside(folder, segment).await);
            }
            RecoveryStep::RemoveSidecar { segment, sidecar } => {
                let path = segment_path(files.folder(), segment.0, part_of(sidecar));
                recovery.done(unlink_on_pool(vec![path]).await);
            }
            RecoveryStep::CreateSegment {
                segment,
                preallocate,
            } => {
                let created =
                    SegmentFile::create(files.folder(), segment, preallocate, access).await;
                recovery.done(created.map(|file| files.keep(segment, Rc::new(file))));
            }
            RecoveryStep::Sync { segment } => {
                let done = match opened(&mut files, segment, newest).await {
                    Ok(file) => file.sync().await,
                    Err(fault) => Err(fault),
                };
                let folder = files.folder().to_owned();
                recovery.done(match done {
                    Ok(()) => sync_folder(&folder).await,
                    Err(fault) => Err(fault),
                });
            }
            RecoveryStep::Done(recovered) => {
                // The newest segment is appended to from here on, whatever recovery had to look at.
                if let Some(newest) = recovered.segments.last() {
                    let opened = active(&mut files, newest.base).await;
                    opened.map_err(|why| RecoveryFault {
                        path: segment_path(files.folder(), newest.base.0, SegmentPart::Log),
                        why,
                    })?;
                }
                return Ok((files, recovered));
            }
            RecoveryStep::Failed(why) => return Err(RecoveryFault { path: touched, why }),
        }
    }
}

/// The file that a step reads or changes; `None`: it is the end.
fn file_of(step: &RecoveryStep) -> Option<(SegmentBase, SegmentPart)> {
    Some(match step {
        RecoveryStep::ReadIndex { segment } => (*segment, SegmentPart::Index),
        RecoveryStep::ReadProducers { segment } => (*segment, SegmentPart::Producers),
        RecoveryStep::ReadCheckpoint { segment } => (*segment, SegmentPart::Checkpoint),
        RecoveryStep::RemoveSidecar { segment, sidecar } => (*segment, part_of(*sidecar)),
        RecoveryStep::Read { segment, .. }
        | RecoveryStep::Truncate { segment, .. }
        | RecoveryStep::Remove { segment }
        | RecoveryStep::SetAside { segment }
        | RecoveryStep::CreateSegment { segment, .. }
        | RecoveryStep::Sync { segment } => (*segment, SegmentPart::Log),
        RecoveryStep::Done(_) | RecoveryStep::Failed(_) => return None,
    })
}

fn part_of(sidecar: Sidecar) -> SegmentPart {
    match sidecar {
        Sidecar::Index => SegmentPart::Index,
        Sidecar::Producers => SegmentPart::Producers,
        Sidecar::Checkpoint => SegmentPart::Checkpoint,
    }
}

/// The segment, opened for appending when it is the newest.
async fn opened(
    files: &mut LogFiles,
    segment: SegmentBase,
    newest: Option<SegmentBase>,
) -> Result<Rc<SegmentFile>, StorageFault> {
    if newest == Some(segment) {
        return active(files, segment).await;
    }
    if let Some(file) = files.get(segment) {
        return Ok(file);
    }
    let file = SegmentFile::open_sealed(files.folder(), segment, files.access()).await?;
    file.forget_cached().await;
    let file = Rc::new(file);
    files.keep(segment, file.clone());
    Ok(file)
}

/// The segment, opened for appending.
async fn active(
    files: &mut LogFiles,
    segment: SegmentBase,
) -> Result<Rc<SegmentFile>, StorageFault> {
    if let Some(file) = files.get(segment).filter(|file| file.is_active()) {
        return Ok(file);
    }
    let file = SegmentFile::open_active(files.folder(), segment, files.access()).await?;
    file.forget_cached().await;
    let file = Rc::new(file);
    files.keep(segment, file.clone());
    Ok(file)
}

async fn list_on_pool(folder: PathBuf) -> Result<Vec<Listed>, StorageFault> {
    glommio::executor()
        .spawn_blocking(move || list(&folder))
        .await
        .map_err(|error| fault_of(&error))
}

/// The segments in a folder, by base offset. Creates the folder, with its entry on the medium, if it is not there.
fn list(folder: &Path) -> io::Result<Vec<Listed>> {
    if !folder.exists() {
        std::fs::create_dir(folder)?;
    }
    let mut found: std::collections::BTreeMap<i64, Listed> = Default::default();
    let mut sidecars = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        match name.to_str().and_then(parse_segment_name) {
            Some((base, SegmentPart::Log)) => {
                let listed = Listed {
                    base: SegmentBase(base),
                    size: entry.metadata()?.len(),
                    has_index: false,
                    has_producers: false,
                    has_checkpoint: false,
                };
                found.insert(base.0, listed);
            }
            Some((base, part)) => sidecars.push((base, part)),
            None if name.to_string_lossy().ends_with(".tmp") => std::fs::remove_file(entry.path())?,
            None => {
                tracing::warn!(path = %entry.path().display(), "not a file of a log; left alone")
            }
        }
    }
    if found.is_empty() {
        // New, or its entry was never synced: nothing in it may count before it is.
        std::fs::File::open(folder.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    }
    for (base, part) in sidecars {
        match (found.get_mut(&base.0), part) {
            (Some(listed), SegmentPart::Index) => listed.has_index = true,
            (Some(listed), SegmentPart::Producers) => listed.has_producers = true,
            (Some(listed), SegmentPart::Checkpoint) => listed.has_checkpoint = true,
            // Its segment is gone. Should the name be used again, it would speak of other batches.
            (None, SegmentPart::Checkpoint) => {
                std::fs::remove_file(segment_path(folder, base, part))?;
            }
            (_, SegmentPart::Log) | (None, _) => {}
        }
    }
    Ok(found.into_values().collect())
}

async fn read_sidecar(
    folder: &Path,
    segment: SegmentBase,
    part: SegmentPart,
) -> Result<Vec<u8>, StorageFault> {
    let path = segment_path(folder, segment.0, part);
    glommio::executor()
        .spawn_blocking(move || {
            let length = std::fs::metadata(&path)?.len();
            if length > SIDECAR_BYTES_MAX {
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
            std::fs::read(&path)
        })
        .await
        .map_err(|error| fault_of(&error))
}

/// Names that are tried for a file that is set aside.
const ASIDE_NAMES_MAX: u32 = 100;

/// Gives a segment's files names that no segment has, and syncs the folder.
async fn set_aside(folder: PathBuf, segment: SegmentBase) -> Result<(), StorageFault> {
    let target = folder.clone();
    glommio::executor()
        .spawn_blocking(move || {
            for part in SIDECARS.into_iter().chain([SegmentPart::Log]) {
                let path = segment_path(&target, segment.0, part);
                if path.exists() {
                    std::fs::rename(&path, aside(&path)?)?;
                }
            }
            Ok(())
        })
        .await
        .map_err(|error: io::Error| fault_of(&error))?;
    sync_folder(&folder).await
}

/// `<name>.aside`, or the first of `<name>.aside-1`, … that is free: nothing is overwritten.
fn aside(path: &Path) -> io::Result<PathBuf> {
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(".aside");
        if number > 0 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = (0..ASIDE_NAMES_MAX).map(named).find(|path| !path.exists());
    free.ok_or_else(|| io::ErrorKind::AlreadyExists.into())
}

/// Removes a segment's files and syncs the folder. A file that is not there is as good as removed.
///
/// What is beside the `.log` file is gone for good before that goes: should the name be used again, as behind a cut, it
/// would speak of what is gone.
///
/// # Errors
/// What the kernel said.
pub async fn remove_segment(folder: PathBuf, segment: SegmentBase) -> Result<(), StorageFault> {
    let path = |part| segment_path(&folder, segment.0, part);
    unlink_on_pool(SIDECARS.map(path).into()).await?;
    sync_folder(&folder).await?;
    unlink_on_pool(vec![path(SegmentPart::Log)]).await?;
    sync_folder(&folder).await
}

async fn unlink_on_pool(paths: Vec<PathBuf>) -> Result<(), StorageFault> {
    let unlink = move || {
        for path in paths {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    };
    (glommio::executor().spawn_blocking(unlink).await).map_err(|error| fault_of(&error))
}
