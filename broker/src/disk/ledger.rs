//! A core's ledger files: two copies, written in turn, each write followed by a sync.

use std::{path::Path, rc::Rc};

use glommio::io::{DmaFile, OpenOptions};
use tackboard_logic::shard::interface::{LedgerFile, StorageFault};

use super::{fault, segments::sync_folder};

/// The two open copies of one core's ledger.
pub struct LedgerFiles {
    a: Rc<DmaFile>,
    b: Rc<DmaFile>,
}

impl LedgerFiles {
    /// Creates both copies, empty, and syncs their folder.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn create(a: &Path, b: &Path) -> Result<LedgerFiles, StorageFault> {
        let files = LedgerFiles {
            a: Rc::new(create(a).await?),
            b: Rc::new(create(b).await?),
        };
        sync_folder(a.parent().unwrap_or(Path::new("."))).await?;
        Ok(files)
    }

    /// Writes whole blocks at `at`, cuts what lies behind them if asked, and syncs.
    ///
    /// # Errors
    /// What the kernel said; `Short` when it took less.
    pub async fn write(
        &self,
        which: LedgerFile,
        at: u64,
        bytes: &[u8],
        cut: bool,
    ) -> Result<(), StorageFault> {
        let file = match which {
            LedgerFile::A => &self.a,
            LedgerFile::B => &self.b,
        };
        let mut buffer = file.alloc_dma_buffer(bytes.len());
        buffer.as_bytes_mut().copy_from_slice(bytes);
        let got = file
            .write_at(buffer, at)
            .await
            .map_err(|error| fault(&error))?;
        if got != bytes.len() {
            return Err(StorageFault::Short {
                wanted: bytes.len() as u32,
                got: got as u32,
            });
        }
        if cut {
            file.truncate(at + bytes.len() as u64)
                .await
                .map_err(|error| fault(&error))?;
        }
        file.fdatasync().await.map_err(|error| fault(&error))
    }
}

async fn create(path: &Path) -> Result<DmaFile, StorageFault> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .dma_open(path)
        .await
        .map_err(|error| fault(&error))
}
