//! A core's ledger files: two copies, written in turn, each write followed by a sync.

use std::{path::Path, rc::Rc};

use glommio::{allocate_dma_buffer, io::OpenOptions};
use tackboard_logic::{
    ledger::LEDGER_RESERVED_BYTES,
    shard::interface::{LedgerFile, StorageFault},
};

use super::{
    file::{Access, DataFile},
    segments::sync_folder,
};

/// The two open copies of one core's ledger.
pub struct LedgerFiles {
    a: DataFile,
    b: DataFile,
}

impl LedgerFiles {
    /// Creates both copies, reserves the space that each of them keeps, and syncs their folder. Where no space can be
    /// reserved that is said, and they grow by being written.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn create(a: &Path, b: &Path, access: Access) -> Result<LedgerFiles, StorageFault> {
        let files = LedgerFiles {
            a: create(a, access).await?,
            b: create(b, access).await?,
        };
        sync_folder(a.parent().unwrap_or(Path::new("."))).await?;
        Ok(files)
    }

    /// Writes whole blocks at `at`, cuts the file to `cut_to` if it is longer, and syncs.
    ///
    /// # Errors
    /// What the kernel said; `Short` when it took less.
    pub async fn write(
        &self,
        which: LedgerFile,
        at: u64,
        bytes: &[u8],
        cut_to: Option<u64>,
    ) -> Result<(), StorageFault> {
        let file = match which {
            LedgerFile::A => &self.a,
            LedgerFile::B => &self.b,
        };
        let mut buffer = allocate_dma_buffer(bytes.len());
        buffer.as_bytes_mut().copy_from_slice(bytes);
        file.write(Rc::new(buffer), at).await?;
        if let Some(size) = cut_to
            && file.size().await? > size
        {
            file.truncate(size).await?;
        }
        file.sync().await
    }
}

async fn create(path: &Path, access: Access) -> Result<DataFile, StorageFault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options.mode(0o640);
    let file = DataFile::open(path, &options, access).await?;
    if let Err(fault) = file.preallocate(LEDGER_RESERVED_BYTES).await {
        // What it got of the space is given back.
        file.truncate(0).await?;
        tracing::warn!(
            path = %path.display(), %fault,
            "no space was reserved for the ledger: a disk that fills up stops this core"
        );
    }
    Ok(file)
}
