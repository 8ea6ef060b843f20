//! Whether the file system has inodes left for the files of new partitions.
//!
//! A file system that was made with few of them can have much space and take no more files. A topic is refused then, and
//! is not half there. What was measured may be a moment old, and other cores create topics too: hence
//! [`FILES_SPARE`]. A partition that finds no inode all the same is opened later.

/// Files of one partition: its folder, its segment and the next one, and what is written beside a segment.
pub const FILES_PER_PARTITION: u64 = 6;

/// Files that stay for what is there already: segments, indexes, ledgers.
pub const FILES_SPARE: u64 = 64;

/// How many files there may be.
#[derive(Clone, Copy, Debug)]
pub struct FileRoom {
    free: u64,
    /// For partitions that are on their way since then.
    promised: u64,
}

/// There are too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the data folder's file system has {free} inodes left, and {needed} are needed: delete topics or other files there, or use a file system with more inodes"
)]
pub struct FilesShort {
    /// Files that can be created.
    pub free: u64,
    /// Those that it takes, with the spare ones.
    pub needed: u64,
}

impl Default for FileRoom {
    /// Until it is measured there are enough.
    fn default() -> Self {
        Self {
            free: u64::MAX,
            promised: 0,
        }
    }
}

impl FileRoom {
    /// So many files can be created now.
    pub fn measured(&mut self, free: u64) {
        *self = Self { free, promised: 0 };
    }

    /// Whether there are files for so many partitions.
    ///
    /// # Errors
    /// There are too few inodes for them.
    pub fn admit(&self, partitions: u64) -> Result<(), FilesShort> {
        let files = partitions.saturating_mul(FILES_PER_PARTITION);
        let needed = files.saturating_add(FILES_SPARE);
        let free = self.free.saturating_sub(self.promised);
        if free < needed {
            return Err(FilesShort { free, needed });
        }
        Ok(())
    }

    /// So many partitions are on their way.
    pub fn promise(&mut self, partitions: u64) {
        let files = partitions.saturating_mul(FILES_PER_PARTITION);
        self.promised = self.promised.saturating_add(files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_let_through_while_there_are_files_for_them() {
        let mut room = FileRoom::default();
        assert_eq!(room.admit(10_000), Ok(()));
        room.measured(FILES_SPARE + 3 * FILES_PER_PARTITION);
        assert_eq!(room.admit(2), Ok(()));
        assert_eq!(room.admit(3), Ok(()));
        room.promise(2);
        let short = FilesShort {
            free: FILES_SPARE + FILES_PER_PARTITION,
            needed: FILES_SPARE + 2 * FILES_PER_PARTITION,
        };
        assert_eq!(room.admit(2), Err(short));
        assert_eq!(room.admit(1), Ok(()));
        // Those of before are counted now.
        room.measured(FILES_SPARE + FILES_PER_PARTITION);
        assert_eq!(room.admit(1), Ok(()));
        assert!(room.admit(u64::MAX).is_err());
    }
}
