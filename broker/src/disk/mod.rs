//! Disk I/O of one core: aligned buffers, segment files, the ledger file, the recovery scan.
//!
//! Carries out what `tackboard_logic` decided and reports how it went. Not here: what to write, when to sync, what a
//! failure means.
//!
//! Invariants:
//! 1. A buffer that the kernel may be reading is never mutated: only a frozen chunk is written.
//! 2. Padding is zeroed before it is written, so old memory never reaches the disk.
//! 3. No operation is abandoned half way: each is awaited to its end by a task of its own.

pub mod chunks;
pub mod file;
pub mod flusher;
#[cfg(feature = "inject-faults")]
pub mod inject;
pub mod ledger;
pub mod paths;
pub mod recover;
pub mod segments;

use glommio::GlommioError;
use tackboard_logic::shard::interface::StorageFault;

/// Size and alignment of every write and of every direct read, bytes.
pub const BLOCK: u64 = 4096;

/// The variable by which tests ask for storage faults. A build that can't make them refuses to start while it is set.
pub const FAULTS_VARIABLE: &str = "TACKBOARD_INJECT_FAULTS";

/// What the kernel said, in logic's terms.
pub fn fault<T>(error: &GlommioError<T>) -> StorageFault {
    let os_error = match error {
        GlommioError::IoError(source) => source.raw_os_error(),
        GlommioError::EnhancedIoError { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match os_error {
        Some(libc::ENOSPC | libc::EDQUOT) => StorageFault::NoSpace,
        code => StorageFault::Io {
            os_error: code.unwrap_or(libc::EIO),
        },
    }
}

/// The same for a call of the standard library.
pub fn fault_of(error: &std::io::Error) -> StorageFault {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => StorageFault::NoSpace,
        code => StorageFault::Io {
            os_error: code.unwrap_or(libc::EIO),
        },
    }
}

/// What ordinary processes may still take of a file system.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// Bytes.
    pub bytes: u64,
    /// Inodes, of which each file and folder takes one.
    pub files: u64,
}

/// What is free of the file system that holds `path`. One that counts no blocks at all, as ramfs, or no inodes, as
/// btrfs, says nothing about them, and is taken to have enough.
///
/// # Errors
/// What the kernel said.
pub fn free_space(path: &std::path::Path) -> std::io::Result<Free> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with NUL, and the structure is plain data that the call fills.
    unsafe {
        let mut filled: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut filled) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let counted = |total, free| if total == 0 { u64::MAX } else { free };
        let bytes = filled.f_bavail.saturating_mul(filled.f_frsize);
        Ok(Free {
            bytes: counted(filled.f_blocks, bytes),
            files: counted(filled.f_files, filled.f_favail),
        })
    }
}
