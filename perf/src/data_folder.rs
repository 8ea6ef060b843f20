//! A folder for the data of a run, gone when the run is over, fails or is interrupted.

use std::{
    fs,
    mem::MaybeUninit,
    path::Path,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anyhow::{Context, Result};

use crate::machine::kill_descendants;

/// Exit code of an interrupted run, as shells expect it.
const EXIT_INTERRUPTED: i32 = 130;
/// How often the removal of an interrupted run's folder is tried: this process may still add a file to it.
const REMOVALS_MAX: u32 = 100;

/// Set when a signal has come: what fails from then on fails because of it.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A temporary folder, removed with the value.
pub struct DataFolder(tempfile::TempDir);

impl DataFolder {
    /// Makes it in `parent`. From here on SIGINT and SIGTERM end this process with all that it has started, and remove
    /// the folder. Call before any other thread starts: threads inherit that the signals are blocked.
    ///
    /// # Errors
    /// When `parent` can't be written.
    pub fn create(parent: &Path) -> Result<Self> {
        let signals = block_signals()?;
        let folder = tempfile::Builder::new()
            .prefix("tackboard-perf.")
            .tempdir_in(parent)
            .with_context(|| format!("--data {} can't be written", parent.display()))?;
        let path = folder.path().to_owned();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || end_on_signal(&signals, &path))?;
        Ok(DataFolder(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // The thread that waits for signals ends the process, with its own exit code.
        while INTERRUPTED.load(Ordering::SeqCst) {
            thread::park();
        }
    }
}

fn block_signals() -> std::io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is emptied before it is used, and the signals exist.
    let (blocked, set) = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        (blocked, set.assume_init())
    };
    match blocked {
        0 => Ok(set),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

fn end_on_signal(signals: &libc::sigset_t, folder: &Path) {
    let mut signal = 0;
    // SAFETY: the set is initialised and the call writes one number.
    if unsafe { libc::sigwait(signals, &raw mut signal) } != 0 {
        return;
    }
    INTERRUPTED.store(true, Ordering::SeqCst);
    kill_descendants(std::process::id());
    for _ in 0..REMOVALS_MAX {
        let _ = fs::remove_dir_all(folder);
        if !folder.exists() {
            break;
        }
    }
    std::process::exit(EXIT_INTERRUPTED);
}
