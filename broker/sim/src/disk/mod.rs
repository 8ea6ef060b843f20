//! A disk that keeps exactly what it promised, and of the rest whatever hurts most.
//!
//! Files have sectors of [`SECTOR_BYTES`] and a volatile cache. A write is in the cache once it completes; it is on the
//! medium once it was proven, by itself (O_DSYNC) or by a sync that began after it completed. Directory entries are proven
//! by syncing the folder. A power loss keeps what is proven and any subset of the sectors and entries that aren't; a fresh
//! sector may even end up as garbage.
//!
//! Not here: time, latency, injected errors ([`crate::process`] decides those).

mod file;
mod folder;
mod pages;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub use file::{Bytes, File};
pub use folder::{FileName, Folder};

use crate::coverage::Coverage;
use crate::rng::Rng;

/// What the device writes as one unit.
pub const SECTOR_BYTES: usize = 512;

/// What direct I/O reads and writes as one unit.
pub const BLOCK_BYTES: u64 = 4_096;

/// A file that may be open while it is unlinked.
pub type OpenFile = Rc<RefCell<File>>;

/// Names a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderName {
    /// The ledgers of all cores.
    Ledger,
    /// The segments of one log, by the number of its partition in this run.
    Log(u32),
}

/// All files of one broker.
#[derive(Debug)]
pub struct Disk {
    folders: BTreeMap<FolderName, Folder>,
    capacity_bytes: u64,
}

impl Disk {
    /// An empty disk of that size.
    pub fn new(capacity_bytes: u64) -> Self {
        Self {
            folders: BTreeMap::new(),
            capacity_bytes,
        }
    }

    /// The folder of that name, made if it isn't there. Its own entry is taken to be synced.
    pub fn folder(&mut self, name: FolderName) -> &mut Folder {
        self.folders.entry(name).or_default()
    }

    /// The file, if it is there.
    pub fn file(&self, folder: FolderName, name: FileName) -> Option<OpenFile> {
        self.folders.get(&folder)?.file(name)
    }

    /// Forgets a folder and all in it.
    pub fn remove_folder(&mut self, name: FolderName) {
        self.folders.remove(&name);
    }

    /// Bytes that no file takes up.
    pub fn free_bytes(&self) -> u64 {
        let used: u64 = self.folders.values().map(Folder::allocated_bytes).sum();
        self.capacity_bytes.saturating_sub(used)
    }

    /// Its size.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Grows or shrinks the disk, never below what is used.
    pub fn set_capacity(&mut self, capacity_bytes: u64) {
        self.capacity_bytes = capacity_bytes;
    }

    /// The power fails: what isn't proven may be gone, in any mixture.
    pub fn lose_power(&mut self, rng: &mut Rng, coverage: &mut Coverage) {
        for folder in self.folders.values_mut() {
            folder.lose_power(rng, coverage);
        }
    }
}
