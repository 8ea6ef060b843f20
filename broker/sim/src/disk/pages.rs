//! The contents of a file: blocks that were never written read as zeros and take no memory.

use super::{BLOCK_BYTES, SECTOR_BYTES};

const PAGE_BYTES: usize = BLOCK_BYTES as usize;

type Page = [u8; PAGE_BYTES];

#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    pages: Vec<Option<Box<Page>>>,
    /// For each page a bit for each sector that was written: what it holds may be zeros all the same.
    written: Vec<u8>,
    size: u64,
}

impl Pages {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes in blocks that hold something.
    pub(super) fn filled_bytes(&self) -> u64 {
        self.pages.iter().flatten().count() as u64 * BLOCK_BYTES
    }

    /// Cuts or extends. What follows when it grows again is zero.
    pub(super) fn resize(&mut self, size: u64) {
        self.size = size;
        let pages = size.div_ceil(BLOCK_BYTES) as usize;
        if self.pages.len() > pages {
            self.pages.truncate(pages);
        }
        self.written.truncate(pages);
        let kept = (size % BLOCK_BYTES) as usize;
        if kept != 0
            && let Some(Some(last)) = self.pages.get_mut(pages - 1)
        {
            last[kept..].fill(0);
            if let Some(bits) = self.written.get_mut(pages - 1) {
                *bits &= sectors(0, kept);
            }
        }
    }

    /// Writes, extending the file if need be.
    pub(super) fn write(&mut self, at: u64, mut bytes: &[u8]) {
        self.size = self.size.max(at + bytes.len() as u64);
        let mut index = (at / BLOCK_BYTES) as usize;
        let mut within = (at % BLOCK_BYTES) as usize;
        while !bytes.is_empty() {
            let length = bytes.len().min(PAGE_BYTES - within);
            let (now, rest) = bytes.split_at(length);
            self.page(index)[within..within + length].copy_from_slice(now);
            if self.written.len() <= index {
                self.written.resize(index + 1, 0);
            }
            self.written[index] |= sectors(within, length);
            (index, within, bytes) = (index + 1, 0, rest);
        }
    }

    /// The bytes from `at`, fewer than `length` at the end of the file.
    pub(super) fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let end = self.size.min(at + length as u64);
        let mut bytes = Vec::with_capacity(end.saturating_sub(at) as usize);
        let mut position = at;
        while position < end {
            let within = (position % BLOCK_BYTES) as usize;
            let length = (PAGE_BYTES - within).min((end - position) as usize);
            match self.pages.get((position / BLOCK_BYTES) as usize) {
                Some(Some(page)) => bytes.extend_from_slice(&page[within..within + length]),
                _ => bytes.resize(bytes.len() + length, 0),
            }
            position += length as u64;
        }
        bytes
    }

    /// Whether the sector that begins at `at` was never written.
    pub(super) fn is_fresh(&self, at: u64) -> bool {
        let bits = self.written.get((at / BLOCK_BYTES) as usize);
        let within = (at % BLOCK_BYTES) as usize;
        bits.is_none_or(|bits| bits & sectors(within, SECTOR_BYTES) == 0)
    }

    /// Whether `bytes` lie at `at`, which must not cross a block.
    pub(super) fn holds(&self, at: u64, bytes: &[u8]) -> bool {
        let within = (at % BLOCK_BYTES) as usize;
        match self.pages.get((at / BLOCK_BYTES) as usize) {
            Some(Some(page)) => &page[within..within + bytes.len()] == bytes,
            _ => bytes.iter().all(|byte| *byte == 0),
        }
    }

    pub(super) fn flip_bit(&mut self, at: u64, bit: u8) {
        let index = (at / BLOCK_BYTES) as usize;
        self.page(index)[(at % BLOCK_BYTES) as usize] ^= 1 << bit;
    }

    fn page(&mut self, index: usize) -> &mut Page {
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, || None);
        }
        self.pages[index].get_or_insert_with(|| Box::new([0; PAGE_BYTES]))
    }
}

/// A bit for each sector of a page that holds some of `length` bytes from `within`.
fn sectors(within: usize, length: usize) -> u8 {
    let (from, to) = (
        within / SECTOR_BYTES,
        (within + length).div_ceil(SECTOR_BYTES),
    );
    (from..to).fold(0, |bits, sector| bits | 1 << sector)
}
