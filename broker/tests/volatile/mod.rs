//! A file system in memory that loses its power: what was not synced is kept, lost or torn, by a seed.
//!
//! It stands for a disk with a volatile write cache under a file system that journals its own changes:
//! - Bytes are durable after fsync or fdatasync of their file, or when a write through O_DSYNC is answered. Until then a
//!   power cut keeps the old or the new content of each 512-byte sector, in any mixture.
//! - A file's size is durable with its bytes. A file that was cut short and not synced may come back as it was.
//! - Names (create, rename, remove) are durable after fsync of their folder. Until then a power cut keeps the changes up
//!   to some point in their order, over all folders. A sync of the file itself does not make its name durable: that
//!   is more than POSIX promises, and less than most file systems do.
//!
//! Only what the broker uses is there. The state lives behind one lock: a test's disk need not be fast.

mod files;
mod state;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use fuser::{BackgroundSession, Config, MountOption};
use state::State;

/// A mounted disk. Unmounted with the value.
pub struct VolatileDisk {
    state: Arc<Mutex<State>>,
    mount: PathBuf,
    session: Option<BackgroundSession>,
}

/// Numbers from a seed (xorshift64*): the same seed, the same power cuts.
pub struct Dice(u64);

impl Dice {
    /// From a seed; any will do.
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    /// A number from 1 on, below 2 to the power of `bits`: small ones as often as large ones.
    pub fn of_any_size(&mut self, bits: u64) -> u64 {
        let magnitude = 1 << self.below(bits);
        magnitude + self.below(magnitude)
    }

    /// True once in `bound`.
    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

impl VolatileDisk {
    /// Mounts an empty disk at `mount`, an empty folder.
    ///
    /// # Errors
    /// Why this machine or user can't.
    pub fn mount(mount: &Path) -> Result<Self, String> {
        let state = Arc::new(Mutex::new(State::new()));
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("tackboard-volatile".to_owned()),
            MountOption::NoAtime,
        ];
        let session = fuser::spawn_mount(files::Files::new(state.clone()), mount, &config)
            .map_err(|error| format!("FUSE can't be mounted, which takes root: {error}"))?;
        Ok(VolatileDisk {
            state,
            mount: mount.to_owned(),
            session: Some(session),
        })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no operation panics")
    }

    /// The power goes after so many more changes: from then on nothing succeeds and nothing changes.
    pub fn power_off_after(&self, changes: u64) {
        self.state().power_off_after(changes);
    }

    /// The power goes now.
    pub fn power_off(&self) {
        self.state().power_off_after(0);
    }

    /// Whether the power has gone.
    pub fn is_off(&self) -> bool {
        self.state().is_off()
    }

    /// Decides what the cut has left, and turns the power on. No process may have a file open.
    pub fn power_on(&self, dice: &mut Dice) {
        self.state().power_on(dice);
    }
}

impl Drop for VolatileDisk {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}
