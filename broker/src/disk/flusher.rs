//! Puts everything that was written to the data folder's file system on the medium, at once and for all cores.
//!
//! One thread goes round after round: `syncfs`, which brings out what the file system still keeps of finished direct
//! writes, then `fdatasync` of one file. The second is there for the device's cache: `syncfs` on XFS ended without
//! emptying it in 6 of 40 tries after overwrites, while `fdatasync` emptied it every time (counted by the device's own
//! counter of flushes). That this device's counter moves is tried at the start, or there is no flusher.
//!
//! Invariant: what asks is answered by a round that began after it had asked.
//!
//! Not here: when a round is worth its cost (`tackboard_logic::log::sync_plan`).

use std::{
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use tackboard_logic::shard::interface::StorageFault;

use super::fault_of;
#[cfg(feature = "inject-faults")]
use super::inject;

/// `fdatasync`s of the trial at the start, each of which must move the device's counter of flushes.
const TRIALS: u64 = 3;

/// Where in `/sys/block/DEVICE/stat` the finished flushes are counted (Linux `Documentation/block/stat.rst`).
const FLUSHES_FIELD: usize = 15;

type Outcome = Result<(), StorageFault>;

/// Reaches the flusher's thread, which ends when the last of these is dropped.
#[derive(Clone)]
pub struct Flusher {
    tickets: flume::Sender<flume::Sender<Outcome>>,
}

/// One core's way to the flusher.
pub struct CoreFlusher {
    flusher: Flusher,
    answer: (flume::Sender<Outcome>, flume::Receiver<Outcome>),
}

impl Flusher {
    /// Starts the thread for the file system that holds `logs`, of whose files `file` is one. `cores` may ask.
    ///
    /// # Errors
    /// Why there can be none, in words: the device's cache can't be shown to be emptied, or the thread did not start.
    pub fn start(logs: &Path, file: &Path, cores: usize) -> Result<Flusher, String> {
        let said = |path: &Path, error: &io::Error| format!("{}: {error}", path.display());
        let folder = File::open(logs).map_err(|error| said(logs, &error))?;
        let flushed = File::open(file).map_err(|error| said(file, &error))?;
        prove(&folder, &flushed)?;
        Self::spawn(folder, flushed, cores)
            .map_err(|error| format!("its thread did not start: {error}"))
    }

    fn spawn(folder: File, flushed: File, cores: usize) -> io::Result<Flusher> {
        let (tickets, asked) = flume::bounded::<flume::Sender<Outcome>>(cores);
        let go_round = move || {
            while let Ok(first) = asked.recv() {
                let waiting: Vec<_> = std::iter::once(first).chain(asked.try_iter()).collect();
                let outcome = round(&folder, &flushed).map_err(|error| fault_of(&error));
                for answer in waiting {
                    // A core that has ended asks no more.
                    let _ = answer.try_send(outcome);
                }
            }
        };
        std::thread::Builder::new()
            .name("flusher".to_owned())
            .spawn(go_round)?;
        Ok(Flusher { tickets })
    }

    /// For one core.
    pub fn for_core(&self) -> CoreFlusher {
        CoreFlusher {
            flusher: self.clone(),
            answer: flume::bounded(1),
        }
    }
}

impl CoreFlusher {
    /// Waits until everything that was written before the call is on the medium. One call at a time; to be made from a
    /// task that lives as long as its executor.
    ///
    /// # Errors
    /// What the kernel said. Of no write before the call is it known then whether it reached the medium.
    pub async fn flush(&mut self) -> Outcome {
        const GONE: StorageFault = StorageFault::Io {
            os_error: libc::EIO,
        };
        #[cfg(feature = "inject-faults")]
        inject::suffer(inject::due(
            inject::Operation::Sync,
            inject::FILE_SYSTEM.as_ref(),
            0,
        ))
        .await?;
        let (answer, answered) = &self.answer;
        let asked = self.flusher.tickets.send_async(answer.clone()).await;
        asked.map_err(|_| GONE)?;
        answered.recv_async().await.unwrap_or(Err(GONE))
    }
}

fn round(folder: &File, flushed: &File) -> io::Result<()> {
    // SAFETY: a system call on a descriptor that is open; it touches no memory of this process.
    if unsafe { libc::syncfs(folder.as_raw_fd()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    flushed.sync_data()
}

/// Whether `fdatasync` of `file` empties the cache of the device below `folder`.
fn prove(folder: &File, file: &File) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let device = folder.metadata().map_err(said)?.dev();
    if file.metadata().map_err(said)?.dev() != device {
        return Err("the logs lie on another file system than the data folder".to_owned());
    }
    let (major, minor) = (libc::major(device), libc::minor(device));
    let block = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let Ok(block) = fs::canonicalize(&block) else {
        return Err("the file system lies on no block device of its own".to_owned());
    };
    // A partition's flushes are counted with its disk.
    let disk = match block.parent() {
        Some(disk) if block.join("partition").exists() => disk,
        _ => &block,
    };
    let cache = fs::read_to_string(disk.join("queue/write_cache")).map_err(said)?;
    if cache.trim() == "write through" {
        return Ok(());
    }
    let flushes = || {
        let stat = fs::read_to_string(disk.join("stat")).ok()?;
        stat.split_ascii_whitespace()
            .nth(FLUSHES_FIELD)?
            .parse::<u64>()
            .ok()
    };
    for _ in 0..TRIALS {
        let before = flushes();
        file.sync_data().map_err(said)?;
        if before.is_none() || flushes() <= before {
            return Err("the device does not count that its cache is emptied".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_is_answered_and_nobody_waits_for_a_thread_that_has_gone() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let open = |path: &Path| File::open(path).unwrap();
        // Without proof of the device, which is not what is tested here.
        let flusher = Flusher::spawn(open(folder.path()), open(&file), 2).unwrap();
        let mut cores = [flusher.for_core(), flusher.for_core()];
        for core in &mut cores {
            assert_eq!(futures_lite::future::block_on(core.flush()), Ok(()));
        }
        let (tickets, asked) = flume::bounded(1);
        drop(asked);
        let mut orphan = Flusher { tickets }.for_core();
        assert!(futures_lite::future::block_on(orphan.flush()).is_err());
    }

    #[test]
    fn a_file_system_without_a_device_of_its_own_has_no_flusher() {
        let folder = Path::new("/proc/self");
        let file = Path::new("/proc/self/status");
        let Err(why) = Flusher::start(folder, file, 1) else {
            panic!("nothing there reaches a medium");
        };
        assert!(why.contains("no block device"), "{why}");
    }
}
