//! One open file of the data folder: past the page cache, or through it where the file system takes no direct I/O.
//!
//! Direct I/O is what the broker is made for. The other way is the fallback of `storage.direct_io = "prefer"`, chosen once
//! for the whole folder at the start, and said there. It keeps the meaning of every durability level: O_DSYNC and
//! fdatasync wait for the medium on either road. What it loses is the tail's single copy, and that a read after a
//! failed sync shows what is on the medium rather than in memory.

use std::{
    os::fd::{AsRawFd as _, RawFd},
    path::Path,
    rc::Rc,
};

use glommio::{
    GlommioError, allocate_dma_buffer,
    io::{BufferedFile, DmaBuffer, DmaFile, OpenOptions, ReadResult},
};
use tackboard_logic::shard::interface::StorageFault;

#[cfg(feature = "inject-faults")]
use super::inject::{self, Effect, Operation};
use super::{BLOCK, fault};

/// How the files of a data folder are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// With O_DIRECT.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// An open file. Positions and lengths of writes are whole blocks, whichever road they take.
pub enum DataFile {
    /// With O_DIRECT.
    Direct(DmaFile),
    /// Through the page cache.
    Buffered(BufferedFile),
}

/// Runs one method that both kinds of file have.
macro_rules! either {
    ($file:expr, $name:ident($($argument:expr),*)) => {
        match $file {
            DataFile::Direct(file) => file.$name($($argument),*).await,
            DataFile::Buffered(file) => file.$name($($argument),*).await,
        }
        .map_err(|error| fault(&error))
    };
}

impl DataFile {
    /// Opens `path` as `options` say.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn open(
        path: &Path,
        options: &OpenOptions,
        access: Access,
    ) -> Result<DataFile, StorageFault> {
        let opened: Result<_, GlommioError<()>> = match access {
            Access::Direct => options.dma_open(path).await.map(DataFile::Direct),
            Access::Buffered => options.buffered_open(path).await.map(DataFile::Buffered),
        };
        opened.map_err(|error| fault(&error))
    }

    /// Writes all of `bytes` at `at`.
    ///
    /// A write that ends early says that something stood in its way, but not what: the rest is asked for again, and the
    /// kernel answers with the reason, or takes it. Each round writes at least one block, so there are no more rounds
    /// than blocks.
    ///
    /// # Errors
    /// What the kernel said; `Short` when it took nothing, or ended within a block.
    pub async fn write(&self, bytes: Rc<DmaBuffer>, at: u64) -> Result<(), StorageFault> {
        let wanted = bytes.len();
        let mut done = 0;
        let mut rest = bytes;
        loop {
            let got = self.write_once(rest.clone(), at + done as u64).await?;
            let begun = done;
            done += got;
            if done == wanted {
                return Ok(());
            }
            // Blocks that are there are not written again: a partial one would be a second write over it.
            if got == 0 || !(done as u64).is_multiple_of(BLOCK) {
                return Err(StorageFault::Short {
                    wanted: wanted as u32,
                    got: done as u32,
                });
            }
            let mut remaining = allocate_dma_buffer(wanted - done);
            (remaining.as_bytes_mut()).copy_from_slice(&rest.as_bytes()[done - begun..]);
            rest = Rc::new(remaining);
        }
    }

    /// One call of the kernel; how many bytes it took.
    async fn write_once(&self, bytes: Rc<DmaBuffer>, at: u64) -> Result<usize, StorageFault> {
        #[cfg(feature = "inject-faults")]
        let (bytes, taken) = self.shortened(bytes).await?;
        let got = match self {
            DataFile::Direct(file) => file.write_rc_at(bytes, at).await,
            // The kernel reads the bytes while this task waits, so they are its own copy.
            DataFile::Buffered(file) => file.write_at(bytes.as_bytes().to_vec(), at).await,
        };
        let got = got.map_err(|error| fault(&error))?;
        #[cfg(feature = "inject-faults")]
        if self.is_synced_by_writing() {
            inject::suffer(self.injected(Operation::Sync, 0)).await?;
        }
        #[cfg(feature = "inject-faults")]
        let got = taken.unwrap_or(got);
        Ok(got)
    }

    /// Reads `length` bytes at any position; fewer at the end of the file.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn read(&self, at: u64, length: usize) -> Result<ReadResult, StorageFault> {
        #[cfg(feature = "inject-faults")]
        inject::suffer(self.injected(Operation::Read, 0)).await?;
        match self {
            DataFile::Direct(file) => {
                let from = at / BLOCK * BLOCK;
                let skip = (at - from) as usize;
                let whole = (skip + length).next_multiple_of(BLOCK as usize);
                let read = file.read_at_aligned(from, whole).await;
                let read = read.map_err(|error| fault(&error))?;
                let there = read.len().saturating_sub(skip).min(length);
                Ok(ReadResult::slice(&read, skip, there).unwrap_or_default())
            }
            DataFile::Buffered(file) => {
                let read = file.read_at(at, length).await;
                read.map_err(|error| fault(&error))
            }
        }
    }

    /// Puts what was written on the medium.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn sync(&self) -> Result<(), StorageFault> {
        #[cfg(feature = "inject-faults")]
        inject::suffer(self.injected(Operation::Sync, 0)).await?;
        either!(self, fdatasync())
    }

    /// Reserves space up to `size` bytes and lets the file end there.
    ///
    /// # Errors
    /// What the kernel said; part of the space may have been taken.
    pub async fn preallocate(&self, size: u64) -> Result<(), StorageFault> {
        either!(self, pre_allocate(size, false))
    }

    /// Cuts the file, or lets it grow.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn truncate(&self, size: u64) -> Result<(), StorageFault> {
        either!(self, truncate(size))
    }

    /// Bytes in the file, reserved ones included.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn size(&self) -> Result<u64, StorageFault> {
        either!(self, file_size())
    }

    /// Lets what follows be read from the medium, as far as memory agrees with it. Needed before recovery through the
    /// page cache: after a failed sync the kernel calls pages clean that never reached the medium. Pages that a killed
    /// process left dirty stay, and are synced by recovery.
    pub async fn forget_cached(&self) {
        if let DataFile::Buffered(file) = self {
            let descriptor: RawFd = file.as_raw_fd();
            // The file stays open until this has returned.
            let dropped = move || {
                // SAFETY: a system call about pages; it touches no memory of this process.
                unsafe { libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED) };
            };
            glommio::executor().spawn_blocking(dropped).await;
        }
    }
}

#[cfg(feature = "inject-faults")]
impl DataFile {
    fn injected(&self, operation: Operation, length: usize) -> Option<Effect> {
        let path = match self {
            DataFile::Direct(file) => file.path(),
            DataFile::Buffered(file) => file.path(),
        };
        inject::due(operation, &path?, length)
    }

    /// What goes to the kernel, and when a rule cuts the write short how many bytes of it are said to be taken: within a
    /// block, or none, it still writes whole blocks.
    async fn shortened(
        &self,
        bytes: Rc<DmaBuffer>,
    ) -> Result<(Rc<DmaBuffer>, Option<usize>), StorageFault> {
        let met = self.injected(Operation::Write, bytes.len());
        let Some(taken) = inject::suffer(met).await? else {
            return Ok((bytes, None));
        };
        let block = BLOCK as usize;
        let mut first = allocate_dma_buffer(taken.next_multiple_of(block).max(block));
        let length = first.len();
        (first.as_bytes_mut()).copy_from_slice(&bytes.as_bytes()[..length]);
        Ok((Rc::new(first), Some(taken)))
    }

    fn is_synced_by_writing(&self) -> bool {
        let descriptor = match self {
            DataFile::Direct(file) => file.as_raw_fd(),
            DataFile::Buffered(file) => file.as_raw_fd(),
        };
        // SAFETY: a system call about a descriptor that is open as long as `self`.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        flags & libc::O_DSYNC != 0
    }
}
