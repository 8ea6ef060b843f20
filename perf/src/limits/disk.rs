//! What the disk gives: aligned direct reads and writes, and rounds of writing and syncing many files.

use std::{
    cell::{Cell, RefCell},
    io,
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use glommio::io::{DmaFile, OpenOptions};
use serde::Serialize;

use super::executor;
use crate::figure::{Figure, Latencies, Percentiles};

/// The file that single reads and writes go to. Larger than what a device's own cache absorbs at once, small enough to
/// be written in a second.
const FILE_BYTES: u64 = 256 << 20;
/// How the file is first written, and how a file of a sync round begins.
const FILL_BYTES: usize = 1 << 20;
/// Each write of a sync round: one block.
const BLOCK: usize = 4096;
/// Blocks of each file of a sync round, written over and over.
const BLOCKS_OF_ROUND: u64 = 16;
/// Files that are synced at the same time in one round.
const SYNCS_IN_FLIGHT: usize = 64;

/// What is done to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Direct writes over a file that was written before.
    Write,
    /// The same, each write on the medium when it completes.
    WriteDsync,
    /// Direct reads.
    Read,
}

impl Operation {
    /// As the table has it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::WriteDsync => "write O_DSYNC",
            Operation::Read => "read",
        }
    }
}

/// One row: an operation, its size, how many at the same time.
#[derive(Clone, Debug, Serialize)]
pub struct DiskLimit {
    /// What was done.
    pub operation: Operation,
    /// Bytes each.
    pub block_bytes: usize,
    /// How many in flight.
    pub depth: usize,
    /// Over the rounds.
    pub bytes_per_second: Figure,
    /// Of the single operation, all rounds together.
    pub latency: Percentiles,
}

/// How a round makes many files durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPlan {
    /// Each write carries its own proof.
    Dsync,
    /// Plain writes, then an fdatasync for each file.
    Fdatasync,
}

impl SyncPlan {
    /// As the table has it.
    pub fn name(self) -> &'static str {
        match self {
            SyncPlan::Dsync => "O_DSYNC writes",
            SyncPlan::Fdatasync => "writes, then fdatasync each",
        }
    }
}

/// One row: one block into each of so many files, all durable at the end.
#[derive(Clone, Debug, Serialize)]
pub struct SyncLimit {
    /// How it was made durable.
    pub plan: SyncPlan,
    /// How many files a round touches.
    pub files: usize,
    /// Rounds that were measured.
    pub count: u64,
    /// Of a round, from its first write to its last proof.
    pub latency: Percentiles,
    /// Every one, for the picture.
    #[serde(skip)]
    pub all: Latencies,
}

/// What one round of single operations brought.
struct RoundResult {
    bytes: u64,
    elapsed: Duration,
    latencies: Latencies,
}

/// What one row is to measure.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// What to do.
    pub operation: Operation,
    /// Bytes each.
    pub block_bytes: usize,
    /// How many in flight.
    pub depth: usize,
    /// How often to measure it.
    pub rounds: usize,
    /// How long a round lasts.
    pub each: Duration,
}

/// How files are read side by side.
#[derive(Clone, Copy, Debug)]
pub struct ReadFiles {
    /// Of each file, from its start.
    pub bytes: u64,
    /// Bytes of a read.
    pub block_bytes: usize,
    /// Reads in flight in each file.
    pub depth: usize,
    /// How long.
    pub lasting: Duration,
}

/// Measures one row from the CPU.
///
/// # Errors
/// What the kernel said.
pub fn single(cpu: usize, folder: &Path, single: Single) -> io::Result<DiskLimit> {
    let path = folder.join("limits.data");
    executor::run(cpu, move |_core| async move {
        prepare(&path).await?;
        let mut all = Latencies::new();
        let mut rates = Vec::with_capacity(single.rounds);
        for _ in 0..single.rounds {
            let result = one_round(&path, single).await?;
            rates.push(result.bytes as f64 / result.elapsed.as_secs_f64());
            all.add(&result.latencies);
        }
        let bytes_per_second = Figure::of(rates)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no round to measure"))?;
        Ok(DiskLimit {
            operation: single.operation,
            block_bytes: single.block_bytes,
            depth: single.depth,
            bytes_per_second,
            latency: all.percentiles(),
        })
    })?
}

/// Writes the whole file once: a write to blocks that never held anything costs the file system more, and that is not
/// the limit that is asked for.
async fn prepare(path: &Path) -> io::Result<()> {
    let file = open(path, 0).await?;
    if file.file_size().await? < FILE_BYTES {
        for at in (0..FILE_BYTES).step_by(FILL_BYTES) {
            write(&file, FILL_BYTES, at).await?;
        }
        file.fdatasync().await?;
    }
    file.close().await?;
    Ok(())
}

async fn one_round(path: &Path, single: Single) -> io::Result<RoundResult> {
    let Single {
        operation,
        block_bytes,
        depth,
        each,
        ..
    } = single;
    let flags = match operation {
        Operation::WriteDsync => libc::O_DSYNC,
        _ => 0,
    };
    let file = Rc::new(open(path, flags).await?);
    let latencies = Rc::new(RefCell::new(Latencies::new()));
    let (next, bytes) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let started = Instant::now();
    let tasks: Vec<_> = (0..depth)
        .map(|_| {
            let (file, latencies) = (file.clone(), latencies.clone());
            let (next, bytes) = (next.clone(), bytes.clone());
            glommio::spawn_local(async move {
                while started.elapsed() < each {
                    let at = next.get();
                    next.set((at + block_bytes as u64) % FILE_BYTES);
                    let begun = Instant::now();
                    match operation {
                        Operation::Read => read(&file, block_bytes, at).await?,
                        _ => write(&file, block_bytes, at).await?,
                    }
                    latencies.borrow_mut().record(begun.elapsed());
                    bytes.set(bytes.get() + block_bytes as u64);
                }
                io::Result::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    let elapsed = started.elapsed();
    close(file).await?;
    Ok(RoundResult {
        bytes: bytes.get(),
        elapsed,
        latencies: Rc::into_inner(latencies)
            .expect("the tasks have ended")
            .into_inner(),
    })
}

/// Measures rounds of one block into each of `files` files from the CPU, for about `lasting`.
///
/// # Errors
/// What the kernel said.
pub fn sync_rounds(
    cpu: usize,
    folder: &Path,
    plan: SyncPlan,
    files: usize,
    lasting: Duration,
) -> io::Result<SyncLimit> {
    let folder = folder.join("rounds");
    std::fs::create_dir_all(&folder)?;
    executor::run(cpu, move |_core| async move {
        let opened = open_many(&folder, plan, files).await?;
        let mut latencies = Latencies::new();
        let mut count = 0;
        // The first round is warm-up.
        sync_round(&opened, plan, 0).await?;
        let started = Instant::now();
        loop {
            count += 1;
            let begun = Instant::now();
            sync_round(&opened, plan, count).await?;
            latencies.record(begun.elapsed());
            if started.elapsed() >= lasting {
                break;
            }
        }
        for file in opened {
            close(file).await?;
        }
        Ok(SyncLimit {
            plan,
            files,
            count,
            latency: latencies.percentiles(),
            all: latencies,
        })
    })?
}

/// Bytes per second of direct reads from the CPU over the first `bytes` of each of these files, all at the same time, over
/// and over.
///
/// # Errors
/// What the kernel said.
pub fn read_files(cpu: usize, files: Vec<PathBuf>, read: ReadFiles) -> io::Result<f64> {
    executor::run(cpu, move |_core| async move {
        let done = Rc::new(Cell::new(0u64));
        let started = Instant::now();
        let mut tasks = Vec::new();
        for path in &files {
            let file = OpenOptions::new().read(true).dma_open(path).await?;
            let blocks = read.bytes.min(file.file_size().await?) / read.block_bytes as u64;
            let (file, next) = (Rc::new(file), Rc::new(Cell::new(0u64)));
            for _ in 0..read.depth {
                let (file, next, done) = (file.clone(), next.clone(), done.clone());
                tasks.push(glommio::spawn_local(async move {
                    while blocks > 0 && started.elapsed() < read.lasting {
                        let block = next.get();
                        next.set((block + 1) % blocks);
                        let at = block * read.block_bytes as u64;
                        self::read(&file, read.block_bytes, at).await?;
                        done.set(done.get() + read.block_bytes as u64);
                    }
                    // The last of the tasks to end closes it.
                    match Rc::try_unwrap(file) {
                        Ok(file) => file.close().await.map_err(io::Error::from),
                        Err(_) => Ok(()),
                    }
                }));
            }
        }
        for task in tasks {
            task.await?;
        }
        Ok(done.get() as f64 / started.elapsed().as_secs_f64())
    })?
}

async fn open_many(folder: &Path, plan: SyncPlan, files: usize) -> io::Result<Vec<Rc<DmaFile>>> {
    let flags = match plan {
        SyncPlan::Dsync => libc::O_DSYNC,
        SyncPlan::Fdatasync => 0,
    };
    let mut opened = Vec::with_capacity(files);
    for index in 0..files {
        let file = open(&file_of(folder, index), flags).await?;
        if file.file_size().await? == 0 {
            for block in 0..BLOCKS_OF_ROUND {
                write(&file, BLOCK, block * BLOCK as u64).await?;
            }
        }
        opened.push(Rc::new(file));
    }
    Ok(opened)
}

fn file_of(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index:04}"))
}

/// One block into each file, then the proof for each, at most [`SYNCS_IN_FLIGHT`] at the same time.
async fn sync_round(files: &[Rc<DmaFile>], plan: SyncPlan, round: u64) -> io::Result<()> {
    let at = round % BLOCKS_OF_ROUND * BLOCK as u64;
    for some in files.chunks(SYNCS_IN_FLIGHT) {
        let tasks: Vec<_> = some
            .iter()
            .cloned()
            .map(|file| {
                glommio::spawn_local(async move {
                    write(&file, BLOCK, at).await?;
                    match plan {
                        SyncPlan::Dsync => Ok(()),
                        SyncPlan::Fdatasync => file.fdatasync().await.map_err(io::Error::from),
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await?;
        }
    }
    Ok(())
}

async fn open(path: &Path, flags: i32) -> io::Result<DmaFile> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .custom_flags(flags)
        .dma_open(path)
        .await?;
    Ok(file)
}

async fn write(file: &DmaFile, bytes: usize, at: u64) -> io::Result<()> {
    let mut buffer = file.alloc_dma_buffer(bytes);
    // Not zeros, which a device may store as nothing at all.
    buffer.as_bytes_mut().fill(0x5a);
    let written = file.write_at(buffer, at).await?;
    match written == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

async fn read(file: &DmaFile, bytes: usize, at: u64) -> io::Result<()> {
    let got = file.read_at_aligned(at, bytes).await?;
    match got.len() == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn close(file: Rc<DmaFile>) -> io::Result<()> {
    let file = Rc::into_inner(file).expect("the tasks that used it have ended");
    file.close().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_sync_rounds_has_a_round_however_short_its_time() {
        // Beside the test's binary, which is on a disk: direct I/O does not work on every /tmp.
        let binary = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(binary.parent().unwrap()).unwrap();
        let cpu = tackboard_runtime::allowed_cpus()[0];
        for plan in [SyncPlan::Dsync, SyncPlan::Fdatasync] {
            let row = sync_rounds(cpu, folder.path(), plan, 3, Duration::ZERO).unwrap();
            assert_eq!((row.files, row.count), (3, 1));
        }
    }
}
