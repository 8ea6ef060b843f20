//! Which file system a folder is on, and how much room it has.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the system says about the file system of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its usual name, or its magic number.
    pub name: String,
    /// Whether it lives in memory, so that nothing written to it ever reaches a disk.
    pub in_memory: bool,
    /// Bytes that this user may still write.
    pub free_bytes: u64,
}

/// Magic numbers of `statfs(2)`, and whether the file system lives in memory.
const KNOWN: &[(i64, &str, bool)] = &[
    (0xef53, "ext4", false),
    (0x5846_5342, "xfs", false),
    (0x9123_683e, "btrfs", false),
    (0x2fc1_2fc1, "zfs", false),
    (0xf2f5_2010, "f2fs", false),
    (0x794c_7630, "overlayfs", false),
    (0x6969, "nfs", false),
    (0x0102_1994, "tmpfs", true),
    (0x8584_58f6, "ramfs", true),
];

impl FileSystem {
    /// Asks the system about the file system that `folder` is on.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let path = CString::new(folder.as_os_str().as_bytes())?;
        let mut stat = MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the path ends in a zero byte and the call fills the structure or fails.
        if unsafe { libc::statfs(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it filled the structure.
        let stat = unsafe { stat.assume_init() };
        let magic = stat.f_type;
        let known = KNOWN.iter().find(|(number, ..)| *number == magic);
        Ok(Self {
            name: known.map_or_else(
                || format!("file system {magic:#x}"),
                |(_, name, _)| (*name).to_owned(),
            ),
            in_memory: known.is_some_and(|(.., in_memory)| *in_memory),
            free_bytes: stat.f_bavail * stat.f_bsize as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_a_file_system_and_nothing_has_none() {
        assert!(!FileSystem::of(Path::new("/")).unwrap().name.is_empty());
        assert!(FileSystem::of(Path::new("/does/not/exist")).is_err());
    }

    #[test]
    fn shared_memory_is_in_memory() {
        if let Ok(file_system) = FileSystem::of(Path::new("/dev/shm")) {
            assert!(file_system.in_memory || file_system.name != "tmpfs");
        }
    }
}
