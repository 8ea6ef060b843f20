//! A folder: its entries as seen now, and as a power loss leaves them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{File, OpenFile};
use crate::coverage::{Coverage, Event};
use crate::rng::Rng;

/// Names a file in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    /// The records of the segment with this base offset.
    Log(i64),
    /// Its index.
    Index(i64),
    /// Its producer snapshot.
    Producers(i64),
    /// Its checkpoint.
    Checkpoint(i64),
    /// The index before it is renamed.
    IndexTemporary(i64),
    /// The producer snapshot before it is renamed.
    ProducersTemporary(i64),
    /// The checkpoint before it is renamed.
    CheckpointTemporary(i64),
    /// One of a core's two ledger files. Every start of the process writes new ones.
    Ledger {
        /// Greater at each start.
        generation: u64,
        /// The core.
        core: u16,
        /// `b` instead of `a`.
        second: bool,
    },
}

/// One entry was set or removed, and no sync of the folder has covered it yet.
#[derive(Debug)]
struct Change {
    sequence: u64,
    name: FileName,
    file: Option<OpenFile>,
}

/// A folder whose entries are proven by syncing it.
#[derive(Debug, Default)]
pub struct Folder {
    current: BTreeMap<FileName, OpenFile>,
    durable: BTreeMap<FileName, OpenFile>,
    history: Vec<Change>,
    sequence: u64,
}

impl Folder {
    /// The file of that name.
    pub fn file(&self, name: FileName) -> Option<OpenFile> {
        self.current.get(&name).cloned()
    }

    /// Every name, in order.
    pub fn names(&self) -> impl Iterator<Item = FileName> {
        self.current.keys().copied()
    }

    /// Whether the entry outlives a power loss.
    pub fn is_proven(&self, name: FileName) -> bool {
        let changing = self.history.iter().any(|change| change.name == name);
        self.durable.contains_key(&name) && !changing
    }

    /// Space that its files take up.
    pub fn allocated_bytes(&self) -> u64 {
        self.current
            .values()
            .map(|file| file.borrow().allocated_bytes())
            .sum()
    }

    /// An empty file under that name, in place of one that may be there.
    pub fn create(&mut self, name: FileName) -> OpenFile {
        let file = match name {
            FileName::Ledger { .. } => File::with_reserve(),
            _ => File::default(),
        };
        let file = Rc::new(RefCell::new(file));
        self.set(name, Some(file.clone()));
        file
    }

    /// Removes the entry; who has the file open keeps it.
    pub fn unlink(&mut self, name: FileName) {
        if self.current.contains_key(&name) {
            self.set(name, None);
        }
    }

    /// Moves an entry over another. Until the folder is synced, a power loss may show the file under both names or none.
    pub fn rename(&mut self, from: FileName, to: FileName) {
        if let Some(file) = self.file(from) {
            self.set(to, Some(file));
            self.set(from, None);
        }
    }

    /// What a sync that begins now will cover.
    pub fn begin_sync(&self) -> u64 {
        self.sequence
    }

    /// A sync that covers everything up to `covered` succeeded.
    pub fn complete_sync(&mut self, covered: u64) {
        let proven = self
            .history
            .partition_point(|change| change.sequence <= covered);
        for change in self.history.drain(..proven) {
            place(&mut self.durable, change.name, change.file);
        }
    }

    /// The power fails: of the changes to each name, the first so many survive.
    pub fn lose_power(&mut self, rng: &mut Rng, coverage: &mut Coverage) {
        let mut stopped: Vec<FileName> = Vec::new();
        for change in std::mem::take(&mut self.history) {
            if stopped.contains(&change.name) || rng.coin() {
                coverage.hit(Event::EntryLost);
                stopped.push(change.name);
            } else {
                place(&mut self.durable, change.name, change.file);
            }
        }
        self.current = self.durable.clone();
        for file in self.current.values() {
            file.borrow_mut().lose_power(rng, coverage);
        }
    }

    /// The process died: nothing is in flight any more.
    pub fn forget_in_flight(&mut self) {
        for file in self.current.values() {
            file.borrow_mut().forget_in_flight();
        }
    }

    fn set(&mut self, name: FileName, file: Option<OpenFile>) {
        place(&mut self.current, name, file.clone());
        self.sequence += 1;
        self.history.push(Change {
            sequence: self.sequence,
            name,
            file,
        });
    }
}

fn place(entries: &mut BTreeMap<FileName, OpenFile>, name: FileName, file: Option<OpenFile>) {
    match file {
        Some(file) => entries.insert(name, file),
        None => entries.remove(&name),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_certain_only_after_a_sync_of_the_folder() {
        let (synced, unsynced) = (FileName::Log(0), FileName::Log(9));
        let mut kept = 0;
        for seed in 0..100 {
            let mut folder = Folder::default();
            folder.create(synced);
            let covered = folder.begin_sync();
            folder.create(unsynced);
            folder.complete_sync(covered);
            assert!(folder.is_proven(synced) && !folder.is_proven(unsynced));
            folder.lose_power(&mut Rng::new(seed), &mut Coverage::default());
            assert!(folder.file(synced).is_some());
            kept += u32::from(folder.file(unsynced).is_some());
        }
        assert!((20..80).contains(&kept), "{kept}");
    }
}
