//! The files of one partition's log.
//!
//! Each active segment is open twice: plainly, and with O_DSYNC, so that logic can ask for a write whose completion
//! proves that it is on the medium. Sealed segments are opened when they are read and kept open while space lasts.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write as _},
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use glommio::{
    allocate_dma_buffer,
    io::{Directory, DmaBuffer, OpenOptions, ReadResult},
};
use tackboard_logic::shard::interface::{SegmentBase, StorageFault};

use super::{
    BLOCK, fault,
    file::{Access, DataFile},
    paths::{SegmentPart, segment_path},
};

/// Sealed segments of one log that are kept open for reading.
pub const SEALED_OPEN_MAX: usize = 4;

/// One open segment.
pub struct SegmentFile {
    plain: DataFile,
    synced: Option<DataFile>,
    /// The greatest end of a write that was started.
    write_end_max: Cell<u64>,
    /// Set while the file is cut back after a failed reservation: no write may extend it meanwhile.
    cutting: Cell<bool>,
}

/// What is being removed.
#[derive(Default)]
struct Doomed {
    segments: BTreeSet<i64>,
    all: bool,
}

/// How long a write waits before it looks again whether the file is being cut.
const CUTTING_PAUSE: Duration = Duration::from_millis(1);

/// The open segments of one log. Shared by the tasks that use them; all on one core.
pub struct LogFiles {
    folder: PathBuf,
    access: Access,
    open: BTreeMap<i64, Rc<SegmentFile>>,
    /// Opens under way: nothing is removed or moved meanwhile, since glommio looks at the path once more after it has
    /// the descriptor, and panics when it has gone.
    opening: u32,
    doomed: Doomed,
}

impl LogFiles {
    /// The log in `folder`, nothing open yet.
    pub fn new(folder: PathBuf, access: Access) -> Self {
        LogFiles {
            folder,
            access,
            open: BTreeMap::new(),
            opening: 0,
            doomed: Doomed::default(),
        }
    }

    /// Announces the opening of a segment; [`LogFiles::open_ended`] follows.
    ///
    /// # Errors
    /// ENOENT when the segment is being removed.
    pub fn open_begins(&mut self, segment: SegmentBase) -> Result<(), StorageFault> {
        if self.doomed.all || self.doomed.segments.contains(&segment.0.0) {
            return Err(StorageFault::Io {
                os_error: libc::ENOENT,
            });
        }
        self.opening += 1;
        Ok(())
    }

    /// The counterpart of [`LogFiles::open_begins`].
    pub fn open_ended(&mut self) {
        self.opening -= 1;
    }

    /// From here on the segment, or with `None` any of them, is not opened any more.
    pub fn doom(&mut self, segment: Option<SegmentBase>) {
        match segment {
            Some(segment) => {
                self.forget(segment);
                self.doomed.segments.insert(segment.0.0);
            }
            None => {
                self.open.clear();
                self.doomed.all = true;
            }
        }
    }

    /// The doomed segment's files have gone; its name may be used again.
    pub fn removed(&mut self, segment: SegmentBase) {
        self.doomed.segments.remove(&segment.0.0);
    }

    /// Whether any segment is being opened.
    pub fn is_opening(&self) -> bool {
        self.opening > 0
    }

    /// Where the log lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How its files are opened.
    pub fn access(&self) -> Access {
        self.access
    }

    /// An open segment.
    pub fn get(&self, segment: SegmentBase) -> Option<Rc<SegmentFile>> {
        self.open.get(&segment.0.0).cloned()
    }

    /// Keeps a segment open. Of those that only serve reads the oldest is let go when there are too many; tasks that
    /// still use it keep its descriptor until they are done.
    pub fn keep(&mut self, segment: SegmentBase, file: Rc<SegmentFile>) {
        self.open.insert(segment.0.0, file);
        let read_only =
            |(base, file): (&i64, &Rc<SegmentFile>)| (file.synced.is_none()).then_some(*base);
        let sealed: Vec<i64> = self.open.iter().filter_map(read_only).collect();
        if sealed.len() > SEALED_OPEN_MAX {
            let victim = sealed.into_iter().find(|base| *base != segment.0.0);
            victim.map(|base| self.open.remove(&base));
        }
    }

    /// Lets a segment go.
    pub fn forget(&mut self, segment: SegmentBase) {
        self.open.remove(&segment.0.0);
    }

    /// Lets all go, for deletion and shutdown.
    pub fn take_all(&mut self) -> Vec<Rc<SegmentFile>> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}

impl SegmentFile {
    /// Opens a segment for appending.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn open_active(
        folder: &Path,
        segment: SegmentBase,
        access: Access,
    ) -> Result<SegmentFile, StorageFault> {
        let path = segment_path(folder, segment.0, SegmentPart::Log);
        Ok(SegmentFile {
            plain: open(&path, false, 0, access).await?,
            synced: Some(open(&path, false, libc::O_DSYNC, access).await?),
            write_end_max: Cell::new(0),
            cutting: Cell::new(false),
        })
    }

    /// Whether it was opened for appending.
    pub fn is_active(&self) -> bool {
        self.synced.is_some()
    }

    /// Opens a sealed segment for reading.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn open_sealed(
        folder: &Path,
        segment: SegmentBase,
        access: Access,
    ) -> Result<SegmentFile, StorageFault> {
        let path = segment_path(folder, segment.0, SegmentPart::Log);
        let mut options = OpenOptions::new();
        options.read(true);
        Ok(SegmentFile {
            plain: DataFile::open(&path, &options, access).await?,
            synced: None,
            write_end_max: Cell::new(0),
            cutting: Cell::new(false),
        })
    }

    /// Creates a segment, reserves `size` bytes for it and syncs the folder, so that its entry survives a power loss
    /// before any byte in it counts.
    ///
    /// A file that cannot be reserved in full is cut back, or it would keep the space that was left.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn create(
        folder: &Path,
        segment: SegmentBase,
        size: u64,
        access: Access,
    ) -> Result<SegmentFile, StorageFault> {
        let path = segment_path(folder, segment.0, SegmentPart::Log);
        let plain = open(&path, true, 0, access).await?;
        if size > 0 && plain.preallocate(size).await.is_err() {
            plain.truncate(0).await?;
        }
        plain.sync().await?;
        sync_folder(folder).await?;
        Ok(SegmentFile {
            plain,
            synced: Some(open(&path, false, libc::O_DSYNC, access).await?),
            write_end_max: Cell::new(0),
            cutting: Cell::new(false),
        })
    }

    /// Writes a whole frozen chunk at a block boundary.
    ///
    /// # Errors
    /// What the kernel said; `Short` when it took less.
    pub async fn write(
        &self,
        bytes: Rc<DmaBuffer>,
        at: u64,
        synced: bool,
    ) -> Result<(), StorageFault> {
        while self.cutting.get() {
            glommio::timer::sleep(CUTTING_PAUSE).await;
        }
        let end = at + bytes.len() as u64;
        self.write_end_max.set(self.write_end_max.get().max(end));
        let file = match (&self.synced, synced) {
            (Some(file), true) => file,
            _ => &self.plain,
        };
        file.write(bytes, at).await
    }

    /// Puts what was written on the medium.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn sync(&self) -> Result<(), StorageFault> {
        self.plain.sync().await
    }

    /// Extends the file to `size` bytes, size included. A reservation that fails half way keeps what it got, so the file is
    /// cut back then, but never below a write that was started.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn preallocate(&self, size: u64) -> Result<(), StorageFault> {
        let before = self.size().await?;
        let done = self.plain.preallocate(size).await;
        if done.is_err() && self.write_end_max.get() <= before {
            self.cutting.set(true);
            let cut = self.plain.truncate(before).await;
            self.cutting.set(false);
            cut?;
        }
        done
    }

    /// Bytes in the file, reserved ones included.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn size(&self) -> Result<u64, StorageFault> {
        self.plain.size().await
    }

    /// Cuts the file to `size` bytes and syncs it. When it will be appended to again the rest of the last block is
    /// overwritten with zeros, so that old bytes never parse as valid.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn truncate(&self, size: u64) -> Result<(), StorageFault> {
        // ftruncate zeroes the cached remainder of the last block, but direct I/O goes past the cache: growing the file
        // to the block's end and rewriting that block makes the medium hold zeros too.
        self.plain.truncate(size).await?;
        let block_at = size / BLOCK * BLOCK;
        let keep = (size - block_at) as usize;
        if keep > 0 {
            let old = self.plain.read(block_at, BLOCK as usize).await?;
            let mut block = allocate_dma_buffer(BLOCK as usize);
            block.as_bytes_mut().fill(0);
            let kept = old.get(..keep).ok_or(StorageFault::Short {
                wanted: keep as u32,
                got: old.len() as u32,
            })?;
            block.as_bytes_mut()[..keep].copy_from_slice(kept);
            self.write(Rc::new(block), block_at, false).await?;
            self.plain.truncate(size).await?;
        }
        self.sync().await
    }

    /// Cuts a sealed segment to `size` bytes and syncs it.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn cut(&self, size: u64) -> Result<(), StorageFault> {
        self.plain.truncate(size).await?;
        self.sync().await
    }

    /// Reads `length` bytes at any position; fewer at the end of the file.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn read(&self, at: u64, length: usize) -> Result<ReadResult, StorageFault> {
        self.plain.read(at, length).await
    }

    /// See [`DataFile::forget_cached`].
    pub async fn forget_cached(&self) {
        self.plain.forget_cached().await;
    }
}

async fn open(
    path: &Path,
    create: bool,
    flags: i32,
    access: Access,
) -> Result<DataFile, StorageFault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create);
    options.custom_flags(flags).mode(0o640);
    DataFile::open(path, &options, access).await
}

/// Puts a folder's entries on the medium.
///
/// # Errors
/// What the kernel said.
pub async fn sync_folder(folder: &Path) -> Result<(), StorageFault> {
    let directory = Directory::open(folder)
        .await
        .map_err(|error| fault(&error))?;
    let synced = directory.sync().await.map_err(|error| fault(&error));
    directory.close().await.map_err(|error| fault(&error))?;
    synced
}

/// Removes a small file beside a segment, if it is there. To run on a blocking thread.
///
/// # Errors
/// What the kernel said.
pub fn remove_sidecar(folder: &Path, segment: SegmentBase, part: SegmentPart) -> io::Result<()> {
    match std::fs::remove_file(segment_path(folder, segment.0, part)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a small file beside a segment: under a temporary name, synced, renamed. A checkpoint is not synced: it may be
/// lost, and what is left of it is noticed. To run on a blocking thread.
///
/// # Errors
/// What the kernel said. The temporary file is gone then: it would keep space that a full disk has not.
pub fn write_sidecar(
    folder: &Path,
    segment: SegmentBase,
    part: SegmentPart,
    bytes: &[u8],
) -> io::Result<()> {
    let path = segment_path(folder, segment.0, part);
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        if part != SegmentPart::Checkpoint {
            file.sync_all()?;
        }
        std::fs::rename(&temporary, &path)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}
