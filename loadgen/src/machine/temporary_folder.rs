//! A folder on a real disk that is gone when the run is over, however it ends.
//!
//! The folder holds a file that this process keeps locked. The system drops the lock when the process ends, even if it is
//! killed, so a folder whose lock can be taken belongs to nobody: the next run removes it.
//!
//! Invariant: a folder under its final name is locked by its owner or has none. It is made and locked under another name
//! and then renamed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::file_system::FileSystem;

const PREFIX: &str = "tackboard-loadgen.";
const UNFINISHED_PREFIX: &str = ".tackboard-loadgen.";
const LOCK_NAME: &str = "lock";

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    file_system: FileSystem,
    _lock: File,
}

impl TemporaryFolder {
    /// Makes the folder: in `parent` if one is given, else in the first place that is on a real disk and can be written.
    /// Removes what killed runs left there.
    pub fn create(parent: Option<&Path>) -> Result<Self> {
        let candidates = match parent {
            Some(parent) => vec![parent.to_owned()],
            None => candidates(),
        };
        let mut refusals = Vec::new();
        for parent in &candidates {
            match Self::create_in(parent) {
                Ok(folder) => return Ok(folder),
                Err(error) => refusals.push(format!("  {}: {error:#}", parent.display())),
            }
        }
        bail!(
            "found no folder on a real disk for the broker's data; name one with --data DIR\n{}",
            refusals.join("\n")
        )
    }

    fn create_in(parent: &Path) -> Result<Self> {
        let parent = parent.canonicalize()?;
        let file_system = FileSystem::of(&parent)?;
        if file_system.in_memory {
            bail!(
                "is in memory ({}), nothing there reaches a disk",
                file_system.name
            );
        }
        remove_leftovers(&parent);
        let mut random = [0; 6];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let name = random
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        let unfinished = parent.join(format!("{UNFINISHED_PREFIX}{name}"));
        fs::create_dir(&unfinished)?;
        let finished = lock(&unfinished).and_then(|lock| {
            let path = parent.join(format!("{PREFIX}{name}"));
            fs::rename(&unfinished, &path)?;
            Ok((
                path,
                lock.ok_or_else(|| io::Error::other("somebody else locked it"))?,
            ))
        });
        match finished {
            Ok((path, lock)) => Ok(Self {
                path,
                file_system,
                _lock: lock,
            }),
            Err(error) => {
                let _ = fs::remove_dir_all(&unfinished);
                Err(error).context("can't be locked")
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is on, and how much room there was when it was made.
    pub fn file_system(&self) -> &FileSystem {
        &self.file_system
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!(
                "warning  {} could not be removed: {error}",
                self.path.display()
            );
        }
    }
}

/// Places to try, best first. The build folder of a checkout and `/var/tmp` are on disks by custom, `/tmp` often is not.
fn candidates() -> Vec<PathBuf> {
    let from_environment = std::env::var_os("TMPDIR").map(PathBuf::from);
    let build_folder = std::env::current_exe().ok().and_then(|executable| {
        executable
            .ancestors()
            .find(|folder| folder.join("CACHEDIR.TAG").is_file())
            .map(Path::to_owned)
    });
    let fixed = ["/var/tmp", "/tmp", "."].map(PathBuf::from);
    from_environment
        .into_iter()
        .chain(build_folder)
        .chain(fixed)
        .collect()
}

/// Removes folders of runs that ended without cleaning up. What can't be removed stays; the run goes on.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        if is_ours && matches!(lock(&entry.path()), Ok(Some(_))) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a folder; nothing if somebody else holds it.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(LOCK_NAME))?;
    // SAFETY: the descriptor belongs to the file, which outlives the call.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(Some(file));
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parent on whatever the build folder is on.
    fn parent() -> tempfile::TempDir {
        tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
    }

    #[test]
    fn it_is_gone_afterwards() {
        let parent = parent();
        let folder = TemporaryFolder::create(Some(parent.path())).unwrap();
        fs::write(folder.path().join("data"), b"x").unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn leftovers_of_a_killed_run_go_and_those_of_a_living_one_stay() {
        let parent = parent();
        let living = TemporaryFolder::create(Some(parent.path())).unwrap();
        // A killed run leaves its folder with a lock file that nobody holds.
        let killed = parent.path().join("tackboard-loadgen.0123");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(LOCK_NAME), b"").unwrap();
        let stranger = parent.path().join("somebody-else");
        fs::create_dir(&stranger).unwrap();
        let own = TemporaryFolder::create(Some(parent.path())).unwrap();
        assert!(!killed.exists());
        assert!(living.path().exists() && own.path().exists() && stranger.exists());
    }

    #[test]
    fn memory_is_refused_and_the_way_out_named() {
        if !FileSystem::of(Path::new("/dev/shm")).is_ok_and(|file_system| file_system.in_memory) {
            return;
        }
        let error = TemporaryFolder::create(Some(Path::new("/dev/shm")))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("--data DIR") && error.contains("in memory (tmpfs)"),
            "{error}"
        );
    }
}
