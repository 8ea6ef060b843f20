//! The data folder of this broker: its lock, its superblock, and what the ledgers in it prove.
//!
//! Owns: which process may use the folder, how the last one ended, the number of this run. Not here: the logs themselves
//! (`disk`, `shard`), the metadata log (`control`), the order in which a broker starts (`embedded`).
//!
//! Invariants:
//! 1. A superblock that cannot be read is never taken for a fresh folder, nor a folder with logs and without one.
//! 2. The clean flag is gone from the medium before anything is appended, and set after everything was synced.
//! 3. Old ledgers are removed only when those of this run are on the medium.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::Path,
};

use tackboard_logic::{
    ledger::{LedgerFiles, LedgerImage, replay},
    log::recovery::RestartClass,
    metadata::Image,
};
use tackboard_schema::{
    BrokerId, TopicPartition,
    storage::{
        Stored,
        superblock::{FILE_NAMES, Superblock, read},
    },
};

use crate::{config::MissingLedger, disk::paths::DataPaths, random::random_id};

/// Largest ledger file that is read, bytes.
pub const LEDGER_BYTES_MAX: u64 = 1 << 30;

/// Entries that belong to no log and are named when they are reported.
pub const STRANGERS_NAMED_MAX: usize = 10;

/// Why the data folder can't be used. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system refused.
    #[error("data folder: cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another broker uses it.
    #[error(
        "data folder {path} is in use by another broker (process {holder}); \
         stop that one, or give this one a folder of its own with --data DIR"
    )]
    InUse {
        /// The folder.
        path: String,
        /// Process id from the lock file.
        holder: String,
    },
    /// It has the files of a broker, but not what names it.
    #[error(
        "data folder {path}: {what}; restore the file from a copy, or use another folder with --data DIR"
    )]
    Unreadable {
        /// The folder.
        path: String,
        /// Which file, and what is wrong.
        what: String,
    },
    /// Nothing tells how far logs in it were durable.
    #[error(
        "data folder {path}: {what}, and with it the proof of how far its logs were durable: damage cannot be told from a torn end; \
         restore the file from a copy, or, after copying the folder, accept what can be read with --set storage.missing_ledger=scan"
    )]
    Unproven {
        /// The folder.
        path: String,
        /// Which ledger, and what is wrong with it.
        what: String,
    },
    /// It belongs to another broker.
    #[error(
        "data folder {path} belongs to broker {owner}, this one is configured as broker.id = {configured}"
    )]
    OtherBroker {
        /// The folder.
        path: String,
        /// Whose it is.
        owner: BrokerId,
        /// Who asks.
        configured: BrokerId,
    },
}

/// A data folder that this process has locked and whose last state is known.
pub struct Folder {
    /// Where things lie.
    pub paths: DataPaths,
    /// Held as long as any thread of this broker may write.
    lock: Option<File>,
    /// As it now stands on the medium.
    superblock: Superblock,
    /// Of the machine as it runs now.
    boot_id: [u8; 16],
    /// How the last process ended, or that its ledgers are lost and scanning was allowed.
    pub restart: RestartClass,
    /// The last process stopped in order.
    pub was_clean: bool,
    /// No run has begun on it yet.
    pub is_new: bool,
    /// What its ledgers prove.
    pub ledger: LedgerImage,
    old_ledgers: Vec<std::path::PathBuf>,
}

/// What lies among the logs without belonging to one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// How many entries.
    pub count: u64,
    /// Names of the first [`STRANGERS_NAMED_MAX`] that were met.
    pub names: Vec<String>,
}

impl Strangers {
    fn add(&mut self, name: String) {
        self.count += 1;
        if self.names.len() < STRANGERS_NAMED_MAX {
            self.names.push(name);
        }
    }
}

fn fault<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FolderError + 'a {
    move |source| FolderError::Io {
        action,
        path: path.display().to_string(),
        source,
    }
}

impl Folder {
    /// Locks the folder, creating it if need be, and reads what the last process left.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub fn open(
        root: &Path,
        broker: BrokerId,
        missing_ledger: MissingLedger,
    ) -> Result<Folder, FolderError> {
        std::fs::create_dir_all(root).map_err(fault("create", root))?;
        // glommio opens by directory descriptor and has none for the current one.
        let root = &std::path::absolute(root).map_err(fault("find", root))?;
        let paths = DataPaths::new(root);
        let lock = lock(&paths)?;
        for folder in [paths.ledgers(), paths.logs(), paths.trash()] {
            std::fs::create_dir_all(&folder).map_err(fault("create", &folder))?;
        }
        let stored = read_superblock(&paths)?;
        let is_new = stored.is_none();
        let boot_id = boot_id();
        let (superblock, restart) = match stored {
            Some(last) if last.broker_id != broker => {
                return Err(FolderError::OtherBroker {
                    path: root.display().to_string(),
                    owner: last.broker_id,
                    configured: broker,
                });
            }
            Some(last) => {
                let restart = match (last.is_clean, last.boot_id == boot_id) {
                    (true, _) => RestartClass::Clean,
                    (false, true) => RestartClass::ProcessCrash,
                    (false, false) => RestartClass::HostCrash,
                };
                (last, restart)
            }
            None => (fresh(&paths, broker, boot_id)?, RestartClass::Clean),
        };
        let was_clean = restart == RestartClass::Clean;
        let Ledgers {
            image: ledger,
            files: old_ledgers,
            lost,
        } = read_ledgers(&paths, &superblock)?;
        let restart = match (lost.is_empty(), missing_ledger) {
            (true, _) => restart,
            (false, MissingLedger::Refuse) => {
                return Err(FolderError::Unproven {
                    path: root.display().to_string(),
                    what: lost.join("; "),
                });
            }
            (false, MissingLedger::Scan) => {
                for what in &lost {
                    tracing::error!(
                        what,
                        "storage.missing_ledger = \"scan\": what holds of the logs is kept, how far they were durable is not known"
                    );
                }
                RestartClass::DirReplaced
            }
        };
        Ok(Folder {
            paths,
            lock: Some(lock),
            superblock,
            boot_id,
            restart,
            was_clean,
            is_new,
            ledger,
            old_ledgers,
        })
    }

    /// The cluster that the broker belongs to.
    pub fn cluster_id(&self) -> [u8; 16] {
        self.superblock.cluster_id
    }

    /// Keeps the folder locked until the process ends: a thread that could not be stopped may still write to it.
    pub fn lock_for_good(&mut self) {
        std::mem::forget(self.lock.take());
    }

    /// Moves the logs of deleted topics out of the way that a crash, or a stop, had left in place. Returns what is among the
    /// logs and belongs to none that the metadata knows; that is left alone.
    ///
    /// # Errors
    /// What the system said.
    pub fn discard_tombstoned(&self, image: &Image) -> Result<Strangers, FolderError> {
        let logs = self.paths.logs();
        let mut strangers = Strangers::default();
        for entry in std::fs::read_dir(&logs).map_err(fault("list", &logs))? {
            let path = entry.map_err(fault("list", &logs))?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let partition = name.parse::<TopicPartition>();
            match partition {
                Ok(partition) if image.tombstone(partition.topic).is_some() => {
                    std::fs::rename(&path, self.paths.trash().join(&name))
                        .map_err(fault("discard", &path))?;
                }
                Ok(partition) if image.partition(partition).is_some() => {}
                _ => strangers.add(name),
            }
        }
        // Thousands of folders take their time, and nobody waits for them.
        let trash = self.paths.trash();
        std::thread::spawn(move || empty(&trash));
        Ok(strangers)
    }

    /// Tells this folder from every other.
    pub fn directory_id(&self) -> [u8; 16] {
        self.superblock.directory_id
    }

    /// Numbers this run, once it has begun: greater than that of every ledger that was read.
    pub fn generation(&self) -> u64 {
        self.superblock.broker_epoch
    }

    /// Puts on the medium that a run has begun: from here on the folder is not clean.
    ///
    /// The boot id of the last run stays until recovery is done: a start that is killed on the way must find again that
    /// the machine had crashed.
    ///
    /// # Errors
    /// What the system said.
    pub fn begin_run(&mut self) -> Result<(), FolderError> {
        self.superblock.broker_epoch = self.superblock.broker_epoch.max(self.ledger.generation) + 1;
        self.write_superblock(false)
    }

    /// Puts on the medium that every log was recovered in this boot of the machine and that the ledgers of this run, one
    /// a core, are there and count; removes those of earlier runs.
    ///
    /// # Errors
    /// What the system said.
    pub fn recovered(&mut self, cores: usize) -> Result<(), FolderError> {
        self.superblock.boot_id = self.boot_id;
        self.superblock.ledger_epoch = self.superblock.broker_epoch;
        self.superblock.ledger_count = cores as u16;
        self.write_superblock(false)?;
        for path in self.old_ledgers.drain(..) {
            std::fs::remove_file(&path).map_err(fault("remove", &path))?;
        }
        Ok(())
    }

    /// Puts on the medium that everything was synced.
    ///
    /// # Errors
    /// What the system said.
    pub fn end_run_clean(&mut self) -> Result<(), FolderError> {
        self.write_superblock(true)
    }

    fn write_superblock(&mut self, is_clean: bool) -> Result<(), FolderError> {
        self.superblock.sequence += 1;
        self.superblock.is_clean = is_clean;
        let path = self.paths.root().join(FILE_NAMES[self.superblock.copy()]);
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            file.write_all(&self.superblock.encode())?;
            file.sync_all()?;
            File::open(self.paths.root())?.sync_all()
        };
        write().map_err(fault("write", &path))
    }
}

fn lock(paths: &DataPaths) -> Result<File, FolderError> {
    let path = paths.lock();
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let mut file = open.map_err(fault("open", &path))?;
    match file.try_lock() {
        Ok(()) => {
            let id = std::process::id().to_string();
            let write = file.set_len(0).and_then(|()| file.write_all(id.as_bytes()));
            write.map_err(fault("write", &path))?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = (&mut file).take(32).read_to_string(&mut holder);
            Err(FolderError::InUse {
                path: paths.root().display().to_string(),
                holder: holder.trim().to_owned(),
            })
        }
        Err(TryLockError::Error(source)) => Err(fault("lock", &path)(source)),
    }
}

fn read_superblock(paths: &DataPaths) -> Result<Option<Superblock>, FolderError> {
    let read_copy = |name: &str| {
        let path = paths.root().join(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault("read", &path)(error)),
        }
    };
    let copies = [read_copy(FILE_NAMES[0])?, read_copy(FILE_NAMES[1])?];
    match read([copies[0].as_deref(), copies[1].as_deref()]) {
        Stored::Present(superblock) => Ok(Some(superblock)),
        Stored::Empty => Ok(None),
        Stored::Unreadable(error) => Err(FolderError::Unreadable {
            path: paths.root().display().to_string(),
            what: format!("the superblock cannot be read: {error}"),
        }),
    }
}

/// The superblock of a folder that was never used. One with logs in it was used, whatever else it lacks.
fn fresh(
    paths: &DataPaths,
    broker: BrokerId,
    boot_id: [u8; 16],
) -> Result<Superblock, FolderError> {
    let logs = paths.logs();
    let mut entries = std::fs::read_dir(&logs).map_err(fault("list", &logs))?;
    if entries.next().is_some() {
        return Err(FolderError::Unreadable {
            path: paths.root().display().to_string(),
            what: "it holds logs but no superblock".to_owned(),
        });
    }
    Ok(Superblock {
        sequence: 0,
        cluster_id: random_id(),
        directory_id: random_id(),
        boot_id,
        broker_id: broker,
        is_clean: true,
        broker_epoch: 0,
        ledger_epoch: 0,
        ledger_count: 0,
    })
}

/// What is in the folder of ledgers.
struct Ledgers {
    image: LedgerImage,
    files: Vec<std::path::PathBuf>,
    /// What should be there and cannot be used, for people.
    lost: Vec<String>,
}

/// Reads all ledgers, whichever runs they are of. Those that count by the superblock must be there.
fn read_ledgers(paths: &DataPaths, superblock: &Superblock) -> Result<Ledgers, FolderError> {
    let (mut pairs, files) = read_ledger_files(paths)?;
    let mut lost = Vec::new();
    let image = loop {
        let read: Vec<LedgerFiles<'_>> = (pairs.values())
            .map(|[a, b]| LedgerFiles { a, b })
            .collect();
        match replay(&read) {
            Ok(image) => break image,
            Err(error) => {
                let name = pairs.keys().nth(error.ledger).cloned().unwrap_or_default();
                lost.push(format!("ledger {name} cannot be read: {}", error.error));
                pairs.remove(&name);
            }
        }
    };
    let counts = |name: &String| {
        let place = pairs.keys().position(|known| known == name);
        place.is_some_and(|place| image.current[place].is_some())
    };
    let expected = (0..usize::from(superblock.ledger_count))
        .map(|core| DataPaths::ledger_name(superblock.ledger_epoch, core));
    for name in expected {
        if !counts(&name) && !lost.iter().any(|what| what.contains(&name)) {
            lost.push(format!("ledger {name} is missing"));
        }
    }
    Ok(Ledgers { image, files, lost })
}

/// By name without the copy's letter, the bytes of both copies.
type LedgerPairs = std::collections::BTreeMap<String, [Vec<u8>; 2]>;

fn read_ledger_files(
    paths: &DataPaths,
) -> Result<(LedgerPairs, Vec<std::path::PathBuf>), FolderError> {
    let folder = paths.ledgers();
    let mut pairs = LedgerPairs::new();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(fault("list", &folder))? {
        let path = entry.map_err(fault("list", &folder))?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (stem, copy) = match name.rsplit_once('.') {
            Some((stem, "a")) => (stem, 0),
            Some((stem, "b")) => (stem, 1),
            _ => continue,
        };
        let length = std::fs::metadata(&path)
            .map_err(fault("read", &path))?
            .len();
        if length > LEDGER_BYTES_MAX {
            return Err(FolderError::Unreadable {
                path: paths.root().display().to_string(),
                what: format!(
                    "ledger {name} has {length} bytes; at most {LEDGER_BYTES_MAX} are read"
                ),
            });
        }
        pairs.entry(stem.to_owned()).or_default()[copy] =
            std::fs::read(&path).map_err(fault("read", &path))?;
        files.push(path);
    }
    Ok((pairs, files))
}

/// Removes what an earlier run left in the trash. A failure costs space, nothing else.
fn empty(trash: &Path) {
    let Ok(entries) = std::fs::read_dir(trash) else {
        return;
    };
    for entry in entries.flatten() {
        if let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "the trash could not be emptied");
        }
    }
}

/// The kernel's id of this boot; tells a crash of the process from one of the machine. Random when there is none,
/// so that a crash is then taken for one of the machine.
fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map_or_else(|_| random_id(), u128::to_be_bytes)
}
