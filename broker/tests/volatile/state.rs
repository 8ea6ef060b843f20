//! What the disk holds, what of it is durable, and what a power cut leaves.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    sync::Arc,
};

use super::Dice;

/// The root folder's number, as FUSE has it.
pub const ROOT: u64 = 1;
/// Bytes are kept in blocks of this many, and torn in sectors.
pub const BLOCK: u64 = 4096;
const SECTOR: usize = 512;

type Block = Arc<[u8; BLOCK as usize]>;

/// Files and folders, numbered.
pub struct State {
    nodes: BTreeMap<u64, Node>,
    next: u64,
    /// Changes of names that are not durable, in their order. Those of one entry happen together.
    journal: Vec<Vec<NameChange>>,
    changes_left: Option<u64>,
}

/// A file or a folder.
pub enum Node {
    /// Bytes.
    File(File),
    /// Names and the numbers of what they name.
    Folder(BTreeMap<OsString, u64>),
}

/// A file: what a reader sees, and what would be left without power.
#[derive(Default)]
pub struct File {
    size: u64,
    blocks: BTreeMap<u64, Block>,
    durable_size: u64,
    durable_blocks: BTreeMap<u64, Block>,
    /// Blocks that differ from what is durable.
    dirty: BTreeSet<u64>,
    /// The least size since the last sync, when it was cut below what is durable.
    cut_to: Option<u64>,
}

/// A name that came, went, or changed what it names.
struct NameChange {
    folder: u64,
    name: OsString,
    before: Option<u64>,
}

impl State {
    /// An empty root folder, which is durable.
    pub fn new() -> Self {
        State {
            nodes: BTreeMap::from([(ROOT, Node::Folder(BTreeMap::new()))]),
            next: ROOT + 1,
            journal: Vec::new(),
            changes_left: None,
        }
    }

    pub fn power_off_after(&mut self, changes: u64) {
        self.changes_left = Some(changes);
    }

    pub fn is_off(&self) -> bool {
        self.changes_left == Some(0)
    }

    /// Counts a change that is about to happen. `false` when there is no power for it.
    pub fn may_change(&mut self) -> bool {
        match &mut self.changes_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                *left > 0
            }
        }
    }

    pub fn node(&self, number: u64) -> Option<&Node> {
        self.nodes.get(&number)
    }

    pub fn file(&mut self, number: u64) -> Option<&mut File> {
        match self.nodes.get_mut(&number) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    pub fn folder(&self, number: u64) -> Option<&BTreeMap<OsString, u64>> {
        match self.nodes.get(&number) {
            Some(Node::Folder(names)) => Some(names),
            _ => None,
        }
    }

    pub fn lookup(&self, folder: u64, name: &OsStr) -> Option<u64> {
        self.folder(folder)?.get(name).copied()
    }

    /// A new file or folder under a name that is free; its number.
    pub fn create(&mut self, folder: u64, name: &OsStr, node: Node) -> u64 {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, node);
        let change = self.rename_one(folder, name, Some(number));
        self.journal.push(vec![change]);
        number
    }

    /// Takes a name away; what it named stays until the next power cut.
    pub fn remove(&mut self, folder: u64, name: &OsStr) {
        let change = self.rename_one(folder, name, None);
        self.journal.push(vec![change]);
    }

    /// Moves a name, over another if there is one.
    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let number = self.lookup(from.0, from.1);
        let gone = self.rename_one(from.0, from.1, None);
        let come = self.rename_one(to.0, to.1, number);
        self.journal.push(vec![gone, come]);
    }

    fn rename_one(&mut self, folder: u64, name: &OsStr, after: Option<u64>) -> NameChange {
        let before = self.set_name(folder, name.to_owned(), after);
        NameChange {
            folder,
            name: name.to_owned(),
            before,
        }
    }

    fn set_name(&mut self, folder: u64, name: OsString, after: Option<u64>) -> Option<u64> {
        let Some(Node::Folder(names)) = self.nodes.get_mut(&folder) else {
            panic!("{folder} is no folder");
        };
        match after {
            Some(number) => names.insert(name, number),
            None => names.remove(&name),
        }
    }

    /// Makes the names in a folder durable, and with them all that was changed before: a journal has one order.
    pub fn sync_folder(&mut self, folder: u64) {
        let touches = |changes: &Vec<NameChange>| changes.iter().any(|one| one.folder == folder);
        if let Some(last) = self.journal.iter().rposition(touches) {
            self.journal.drain(..=last);
        }
    }

    /// What the cut has left: names up to some point of their order, for each file the old or the new of what was not
    /// synced.
    pub fn power_on(&mut self, dice: &mut Dice) {
        let kept = dice.below(self.journal.len() as u64 + 1) as usize;
        for change in self
            .journal
            .split_off(kept)
            .into_iter()
            .rev()
            .flat_map(|group| group.into_iter().rev())
        {
            self.set_name(change.folder, change.name, change.before);
        }
        self.journal.clear();
        let mut reachable = BTreeSet::from([ROOT]);
        let mut at = vec![ROOT];
        while let Some(number) = at.pop() {
            for child in self.folder(number).into_iter().flat_map(BTreeMap::values) {
                reachable.insert(*child);
                at.push(*child);
            }
        }
        self.nodes.retain(|number, _| reachable.contains(number));
        self.renumber();
        for node in self.nodes.values_mut() {
            if let Node::File(file) = node {
                file.power_cut(dice);
            }
        }
        self.changes_left = None;
    }

    /// Gives everything but the root a new number. The kernel remembers numbers, and a folder that is back under a name
    /// that it had before would be one that moved behind the kernel's back.
    fn renumber(&mut self) {
        let old = std::mem::take(&mut self.nodes);
        let fresh = old.keys().map(|number| match *number {
            ROOT => (ROOT, ROOT),
            number => {
                self.next += 1;
                (number, self.next - 1)
            }
        });
        let fresh: BTreeMap<u64, u64> = fresh.collect();
        let renumbered = old.into_iter().map(|(number, mut node)| {
            if let Node::Folder(names) = &mut node {
                names.values_mut().for_each(|child| *child = fresh[child]);
            }
            (fresh[&number], node)
        });
        self.nodes = renumbered.collect();
    }
}

impl File {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes from `at`, fewer at the end of the file.
    pub fn read(&self, at: u64, length: u64) -> Vec<u8> {
        let end = (at + length).min(self.size).max(at);
        let mut bytes = vec![0; (end - at) as usize];
        for (index, block) in self.blocks.range(at / BLOCK..end.div_ceil(BLOCK)) {
            let block_at = index * BLOCK;
            let (from, to) = (block_at.max(at), (block_at + BLOCK).min(end));
            bytes[(from - at) as usize..(to - at) as usize]
                .copy_from_slice(&block[(from - block_at) as usize..(to - block_at) as usize]);
        }
        bytes
    }

    /// Bytes at `at`; `durable` when the answer promises that.
    pub fn write(&mut self, at: u64, bytes: &[u8], durable: bool) {
        let end = at + bytes.len() as u64;
        for index in at / BLOCK..end.div_ceil(BLOCK) {
            let block_at = index * BLOCK;
            let (from, to) = (block_at.max(at), (block_at + BLOCK).min(end));
            let block = self.blocks.entry(index).or_insert_with(empty_block);
            Arc::make_mut(block)[(from - block_at) as usize..(to - block_at) as usize]
                .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
            self.dirty.insert(index);
            if durable {
                self.sync_block(index);
            }
        }
        self.size = self.size.max(end);
        if durable {
            // The size comes with the bytes that need it.
            self.durable_size = self.durable_size.max(end);
        }
    }

    /// Cuts or extends the file; what is added reads as zeros.
    pub fn set_size(&mut self, size: u64) {
        if size < self.size {
            let gone: Vec<u64> = self
                .blocks
                .range(size.div_ceil(BLOCK)..)
                .map(|(index, _)| *index)
                .collect();
            for index in gone {
                self.blocks.remove(&index);
                self.dirty.insert(index);
            }
            let keep = (size % BLOCK) as usize;
            let last = size / BLOCK;
            if keep > 0
                && let Some(block) = self.blocks.get_mut(&last)
            {
                Arc::make_mut(block)[keep..].fill(0);
                self.dirty.insert(last);
            }
            if size < self.durable_size {
                self.cut_to = Some(self.cut_to.map_or(size, |least| least.min(size)));
            }
        }
        self.size = size;
    }

    /// Extends the file to `end` at least.
    pub fn reserve(&mut self, end: u64) {
        self.size = self.size.max(end);
    }

    /// Puts all of it on the medium.
    pub fn sync(&mut self) {
        for index in std::mem::take(&mut self.dirty) {
            self.sync_block(index);
        }
        self.durable_size = self.size;
        self.cut_to = None;
    }

    fn sync_block(&mut self, index: u64) {
        match self.blocks.get(&index) {
            Some(block) => self.durable_blocks.insert(index, block.clone()),
            None => self.durable_blocks.remove(&index),
        };
        self.dirty.remove(&index);
    }

    fn power_cut(&mut self, dice: &mut Dice) {
        if let Some(cut_to) = self.cut_to
            && dice.one_in(2)
        {
            // The cut itself was lost: behind it lies what lay there before.
            let behind: Vec<u64> = self.dirty.range(cut_to / BLOCK..).copied().collect();
            for index in behind {
                match self.durable_blocks.get(&index) {
                    Some(block) => self.blocks.insert(index, block.clone()),
                    None => self.blocks.remove(&index),
                };
                self.dirty.remove(&index);
            }
            self.size = self.durable_size;
        } else if self.size > self.durable_size && dice.one_in(2) {
            self.size = self.durable_size;
        }
        // Whole files kept or lost are as likely as a mixture, and harder to think of.
        let keeps = dice.below(4);
        for index in std::mem::take(&mut self.dirty) {
            let old = self
                .durable_blocks
                .get(&index)
                .cloned()
                .unwrap_or_else(empty_block);
            let block = self.blocks.entry(index).or_insert_with(empty_block);
            let sectors = Arc::make_mut(block)
                .chunks_exact_mut(SECTOR)
                .zip(old.chunks_exact(SECTOR));
            for (new, old) in sectors {
                let keep = match keeps {
                    0 => false,
                    1 => true,
                    _ => dice.one_in(2),
                };
                if !keep {
                    new.copy_from_slice(old);
                }
            }
        }
        // Nothing lies behind the end.
        let size = self.size;
        self.size = u64::MAX;
        self.set_size(size);
        self.dirty.clear();
        self.cut_to = None;
        self.durable_size = size;
        self.durable_blocks = self.blocks.clone();
    }
}

fn empty_block() -> Block {
    Arc::new([0; BLOCK as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_cuts(prepare: impl Fn(&mut File)) -> BTreeSet<Vec<u8>> {
        (0..200)
            .map(|seed| {
                let mut file = File::default();
                prepare(&mut file);
                file.power_cut(&mut Dice::new(seed));
                file.read(0, 1 << 20)
            })
            .collect()
    }

    #[test]
    fn what_was_synced_stays() {
        let synced = after_cuts(|file| {
            file.write(0, b"one", false);
            file.sync();
        });
        let through = after_cuts(|file| file.write(0, b"one", true));
        assert_eq!(synced, BTreeSet::from([b"one".to_vec()]));
        assert_eq!(through, synced);
    }

    #[test]
    fn what_was_not_synced_is_lost_kept_or_torn() {
        let left = after_cuts(|file| {
            file.write(0, &[1; 1024], true);
            file.write(0, &[2; 1024], false);
        });
        let torn = |first, second| [[first; 512], [second; 512]].concat();
        let all = [torn(1, 1), torn(1, 2), torn(2, 1), torn(2, 2)];
        assert_eq!(left, BTreeSet::from(all));
    }

    #[test]
    fn a_cut_that_was_not_synced_may_be_undone_as_a_whole() {
        let left = after_cuts(|file| {
            file.write(0, &[1; 600], true);
            file.set_size(100);
        });
        assert_eq!(left, BTreeSet::from([vec![1; 100], vec![1; 600]]));
    }

    #[test]
    fn names_are_kept_up_to_a_point_of_their_order() {
        let file = |content: &[u8]| {
            let mut file = File::default();
            file.write(0, content, true);
            Node::File(file)
        };
        let mut left = BTreeSet::new();
        for seed in 0..200 {
            let mut state = State::new();
            state.create(ROOT, OsStr::new("a"), file(b"first"));
            state.sync_folder(ROOT);
            state.create(ROOT, OsStr::new("b"), file(b"second"));
            state.rename((ROOT, OsStr::new("b")), (ROOT, OsStr::new("a")));
            state.power_on(&mut Dice::new(seed));
            let names = state.folder(ROOT).unwrap().clone().into_iter();
            let held: Vec<_> = names
                .map(|(name, number)| (name, state.file(number).unwrap().read(0, 10)))
                .collect();
            left.insert(held);
        }
        let holds = |name: &str, content: &[u8]| (OsString::from(name), content.to_vec());
        let all = [
            vec![holds("a", b"first")],
            vec![holds("a", b"first"), holds("b", b"second")],
            vec![holds("a", b"second")],
        ];
        assert_eq!(left, BTreeSet::from(all));
    }
}
