//! Whether the data folder takes direct I/O: by the type of its file system, then by trying.
//!
//! What is judged is the file system under the folder, with an aligned write as the broker makes them. A file system that
//! lives in memory counts as refusing, whatever it takes: its files are gone with the machine.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::config::host::{existing_ancestor, file_system_space};
use crate::config::quantity::approximate_size;

use super::Finding;

/// Length, position and address of the trial write are multiples of this, as all writes of the broker.
const BLOCK_BYTES: usize = 4096;

/// What to make of the file system under the data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageVerdict {
    /// Its name, e.g. `ext4`.
    pub file_system: &'static str,
    /// Why direct I/O is not used there; `None`: it is. Whether to go on without is for `storage.direct_io` to say.
    pub refused: Option<Refused>,
}

/// Why the broker does not use direct I/O on a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Files there live in memory.
    InMemory,
    /// The kernel refused an aligned write past the page cache, with these words.
    ByFileSystem(String),
}

impl StorageVerdict {
    /// The reason against direct I/O in words; `None` where it is used.
    pub fn reason(&self) -> Option<String> {
        let name = self.file_system;
        Some(match self.refused.as_ref()? {
            Refused::InMemory => {
                format!("{name} lives in memory: nothing there survives a restart of the machine")
            }
            Refused::ByFileSystem(error) => format!("direct I/O refused by {name}: {error}"),
        })
    }
}

/// Why no file can be made for the data folder at all, which is another matter than direct I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// What was found; names the folder.
    pub text: String,
    /// What mends it.
    pub remedy: String,
}

/// Judges the folder, or the nearest one above it that exists.
///
/// # Errors
/// [`Unusable`].
pub fn judge(data_dir: &Path) -> Result<StorageVerdict, Unusable> {
    let unusable = |what: &str, path: &Path, error: &io::Error| Unusable {
        text: format!("{what} {}: {error}", path.display()),
        remedy: remedy(error.kind(), data_dir, path == data_dir),
    };
    let data_dir = &std::path::absolute(data_dir)
        .map_err(|error| unusable("cannot find", data_dir, &error))?;
    let folder = data_dir.ancestors().find(|path| path.exists());
    let folder = folder.unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        return Err(Unusable {
            text: format!("{} is a file, not a folder", folder.display()),
            remedy: ANOTHER.to_owned(),
        });
    }
    let kind = file_system(folder).map_err(|error| unusable("cannot look at", folder, &error))?;
    let refused = match try_write(folder, libc::O_DIRECT) {
        _ if kind.memory_backed => Some(Refused::InMemory),
        Ok(()) => None,
        Err(Trial::Refused(error)) => Some(Refused::ByFileSystem(error.to_string())),
        Err(Trial::Failed(error)) => {
            return Err(unusable("cannot write in", folder, &error));
        }
    };
    if refused.is_some() {
        // The fallback must be possible: some file systems take no writes at all.
        try_write(folder, 0).map_err(|trial| {
            let (Trial::Refused(error) | Trial::Failed(error)) = trial;
            unusable("cannot write in", folder, &error)
        })?;
    }
    Ok(StorageVerdict {
        file_system: kind.name,
        refused,
    })
}

const ANOTHER: &str = "use another folder: --data DIR";

fn remedy(kind: io::ErrorKind, data_dir: &Path, exists: bool) -> String {
    let folder = data_dir.display();
    match kind {
        io::ErrorKind::PermissionDenied if exists => {
            format!("give it to this user: sudo chown -R \"$(id -un)\" {folder}; or {ANOTHER}")
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "make it for this user: sudo install -d -o \"$(id -un)\" {folder}; or {ANOTHER}"
            )
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("it is mounted read-only: mount it for writing, or {ANOTHER}")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("free space there, or {ANOTHER}")
        }
        _ => ANOTHER.to_owned(),
    }
}

/// Free space against the reserve.
pub(super) fn space(config: &Config) -> Finding {
    const NAME: &str = "free space";
    let folder = existing_ancestor(&config.data_dir).unwrap_or_else(|| PathBuf::from("/"));
    let reserve = config.reserve_bytes;
    match file_system_space(&folder) {
        Ok(space) if space.free_bytes < reserve => Finding::warn(
            NAME,
            format!(
                "{}, less than the reserve of {}: produce requests will be refused",
                approximate_size(space.free_bytes),
                approximate_size(reserve)
            ),
            "free space, use a larger disk (--data DIR), or lower storage.reserve_bytes",
        ),
        Ok(space) => Finding::ok(
            NAME,
            format!(
                "{} (reserve {})",
                approximate_size(space.free_bytes),
                approximate_size(reserve)
            ),
        ),
        Err(error) => Finding::warn(
            NAME,
            format!("cannot be told for {}: {error}", folder.display()),
            "see whether the disk is mounted: df",
        ),
    }
}

struct FileSystem {
    name: &'static str,
    memory_backed: bool,
}

/// Numbers of `statfs(2)`.
const FILE_SYSTEMS: &[(i64, &str, bool)] = &[
    (0xEF53, "ext4", false),
    (0x5846_5342, "XFS", false),
    (0x9123_683E, "btrfs", false),
    (0xF2F5_2010, "F2FS", false),
    (0x2FC1_2FC1, "ZFS", false),
    (0xCA45_1A4E, "bcachefs", false),
    (0x794C_7630, "overlayfs", false),
    (0x6573_5546, "FUSE", false),
    (0x6969, "NFS", false),
    (0x0102_1997, "9p", false),
    (0xFF53_4D42, "CIFS", false),
    (0x0102_1994, "tmpfs", true),
    (0x8584_58F6, "ramfs", true),
    (0x9584_58F6, "hugetlbfs", true),
];

fn file_system(folder: &Path) -> io::Result<FileSystem> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: a statfs is plain numbers, for which all zeros is a valid value.
    let mut stat: libc::statfs = unsafe { mem::zeroed() };
    // SAFETY: both pointers are valid during the call, the path ends with a zero byte.
    if unsafe { libc::statfs(path.as_ptr(), &mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The kernel's numbers have 32 bits; some platforms extend their sign.
    let number = i64::from(stat.f_type as u32);
    let known = FILE_SYSTEMS.iter().find(|(kind, ..)| *kind == number);
    let (_, name, memory_backed) = known
        .copied()
        .unwrap_or((0, "an unknown file system", false));
    Ok(FileSystem {
        name,
        memory_backed,
    })
}

/// Why a trial write did not succeed.
enum Trial {
    /// Direct I/O is what the file system does not take.
    Refused(io::Error),
    /// Something else: no permission, no space.
    Failed(io::Error),
}

/// Writes one aligned block and reads it back, with these flags. The file is gone afterwards.
fn try_write(folder: &Path, flags: i32) -> Result<(), Trial> {
    let path = folder.join(format!(".tackboard-check-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    // Made without direct I/O first, so that a missing permission is told apart.
    drop(options.open(&path).map_err(Trial::Failed)?);
    let opened = options.custom_flags(flags).open(&path);
    let result = opened
        .map_err(classify)
        .and_then(|file| write_and_read(&file));
    let deleted = fs::remove_file(&path).map_err(Trial::Failed);
    result.and(deleted)
}

/// What file systems say that take no direct I/O.
fn classify(error: io::Error) -> Trial {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::EOPNOTSUPP) => Trial::Refused(error),
        _ => Trial::Failed(error),
    }
}

fn write_and_read(file: &File) -> Result<(), Trial> {
    let mut block = AlignedBlock::new();
    block.bytes().fill(0x7A);
    file.write_all_at(block.bytes(), 0).map_err(classify)?;
    block.bytes().fill(0);
    file.read_exact_at(block.bytes(), 0).map_err(classify)?;
    let same = block.bytes().iter().all(|byte| *byte == 0x7A);
    if same {
        Ok(())
    } else {
        Err(Trial::Failed(io::Error::other(
            "what was written reads back differently",
        )))
    }
}

/// One block at an address that direct I/O accepts.
struct AlignedBlock(*mut u8);

impl AlignedBlock {
    const LAYOUT: Layout = match Layout::from_size_align(BLOCK_BYTES, BLOCK_BYTES) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };

    fn new() -> Self {
        // SAFETY: the layout's size is not zero.
        let pointer = unsafe { alloc_zeroed(Self::LAYOUT) };
        if pointer.is_null() {
            std::alloc::handle_alloc_error(Self::LAYOUT);
        }
        Self(pointer)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block has BLOCK_BYTES initialised bytes, owned by self and borrowed with it.
        unsafe { std::slice::from_raw_parts_mut(self.0, BLOCK_BYTES) }
    }
}

impl Drop for AlignedBlock {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout, freed once.
        unsafe { dealloc(self.0, Self::LAYOUT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_through_a_file_is_no_folder() {
        let file = tempfile::NamedTempFile::new().expect("file");
        for path in [file.path().to_owned(), file.path().join("below")] {
            let unusable = judge(&path).expect_err("no folder");
            assert!(unusable.text.ends_with("is a file, not a folder"));
            assert!(unusable.text.contains(&*file.path().to_string_lossy()));
        }
    }

    #[test]
    fn the_remedy_fits_the_fault() {
        let remedy = |kind, exists| remedy(kind, Path::new("/srv/data"), exists);
        let denied = io::ErrorKind::PermissionDenied;
        assert!(remedy(denied, true).contains("chown -R \"$(id -un)\" /srv/data;"));
        assert!(remedy(denied, false).contains("install -d -o \"$(id -un)\" /srv/data;"));
        assert!(remedy(io::ErrorKind::ReadOnlyFilesystem, true).contains("read-only"));
        assert!(remedy(io::ErrorKind::StorageFull, true).contains("free space"));
        assert_eq!(remedy(io::ErrorKind::NotFound, false), ANOTHER);
    }
}
