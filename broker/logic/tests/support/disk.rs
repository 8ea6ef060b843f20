//! A disk in memory that forgets what was not synced.

use std::collections::BTreeMap;

use tackboard_logic::log::recovery::SegmentFile;
use tackboard_logic::shard::interface::SegmentBase;
use tackboard_schema::Offset;

/// The unit that a crash keeps or loses as a whole.
pub const SECTOR: usize = 512;

/// One file: what a reader sees, and what a crash leaves for certain.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub seen: Vec<u8>,
    pub kept: Vec<u8>,
}

impl File {
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        let at = at as usize;
        let end = at + bytes.len();
        if self.seen.len() < end {
            self.seen.resize(end, 0);
        }
        self.seen[at..end].copy_from_slice(bytes);
    }

    /// Keeps one range, as a write with O_DSYNC does.
    pub fn keep_range(&mut self, at: u64, length: usize) {
        let (at, end) = (at as usize, at as usize + length);
        if self.kept.len() < end {
            self.kept.resize(end, 0);
        }
        self.kept[at..end].copy_from_slice(&self.seen[at..end]);
    }

    pub fn sync(&mut self) {
        self.kept.clone_from(&self.seen);
    }

    pub fn truncate(&mut self, size: u64) {
        self.seen.resize(size as usize, 0);
    }

    /// Each sector that was not synced is kept or lost as `keep` says.
    pub fn crash(&mut self, mut keep: impl FnMut() -> bool) {
        let length = self.seen.len().max(self.kept.len());
        self.seen.resize(length, 0);
        self.kept.resize(length, 0);
        for (seen, kept) in self
            .seen
            .chunks_mut(SECTOR)
            .zip(self.kept.chunks_mut(SECTOR))
        {
            if seen != kept {
                let winner = if keep() { seen.to_vec() } else { kept.to_vec() };
                seen.copy_from_slice(&winner);
                kept.copy_from_slice(&winner);
            }
        }
    }
}

/// One segment's files.
#[derive(Clone, Debug, Default)]
pub struct SegmentFiles {
    pub log: File,
    pub index: Option<Vec<u8>>,
    pub producers: Option<Vec<u8>>,
    pub checkpoint: Option<Vec<u8>>,
}

/// The folder of one log.
pub type Folder = BTreeMap<i64, SegmentFiles>;

pub fn listing(folder: &Folder) -> Vec<SegmentFile> {
    let file = |(base, files): (&i64, &SegmentFiles)| SegmentFile {
        base: SegmentBase(Offset(*base)),
        size: files.log.seen.len() as u64,
        has_index: files.index.is_some(),
        has_producers: files.producers.is_some(),
        has_checkpoint: files.checkpoint.is_some(),
    };
    folder.iter().map(file).collect()
}
