//! A broker inside this process: what `serve`, the load generator and tests start.
//!
//! Order: lock the folder → read superblock and ledgers → bind every port (before, where the folder is new) → clear the
//! clean flag on the medium → start the control thread (it registers this process, which bumps the epochs of what it
//! leads) → start the cores, which recover their logs → serve. Stopping goes the other way and ends with the clean flag.
//!
//! Installs no signal handler and no log subscriber, and never ends the process.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    sync::{Arc, atomic::AtomicUsize},
    time::{Duration, Instant},
};

use tackboard_logic::{
    ledger::LedgerStart,
    log::recovery::RestartClass,
    metadata::{ClusterId, Endpoint, Image},
    shard::interface::LedgerFile,
};
use tackboard_runtime::{
    CoreHandle, CoreSettings, InboxReceiver, InboxSender, Observer, Watchdog, inbox, net, spawn,
};
use tackboard_schema::CoreId;

use crate::{
    bridge::{CoreSender, Metrics, PartitionFault, ToControl, ToCore, Undelivered},
    check::{StorageVerdict, direct_io_remedy, judge_storage},
    config::{Config, DirectIo},
    control::{self, ControlConfig, ControlError, ControlHandle, StorageLabels},
    data_folder::{Folder, FolderError},
    disk::file::Access,
    shard::{
        request::PeerMessage,
        run::{self, PEER_INBOX_MAX, Ready, Recovered, Seed},
    },
};

/// Messages that the control thread may leave with a core.
pub const CONTROL_INBOX_MAX: usize = 4096;

/// How long a port that is in use is tried again, and how often.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// Why a broker did not start. Nothing of it runs any more.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder can't be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The data folder's file system can't be used as it is configured.
    #[error("data folder {path}: {what}; {remedy}")]
    Storage {
        /// The folder.
        path: String,
        /// What is wrong with it.
        what: String,
        /// What mends it.
        remedy: String,
    },
    /// A port can't be had.
    #[error("{listener} {address}: {source}{hint}")]
    Bind {
        /// Setting that names the address.
        listener: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
        /// What to do about it.
        hint: &'static str,
    },
    /// The metadata can't be used.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A core did not come up.
    #[error("{0}")]
    Core(String),
}

/// A running broker. Dropping it without [`Handle::shutdown`] drains it too, within the configured deadline.
pub struct Handle {
    config: Arc<Config>,
    folder: Folder,
    storage: StorageVerdict,
    metrics: Metrics,
    control: Option<ControlHandle>,
    cores: Vec<CoreHandle<bool>>,
    watchdog: Option<Watchdog>,
    native: SocketAddr,
    core_addresses: Vec<SocketAddr>,
    /// What recovery did.
    pub recovered: Recovered,
    /// Partitions that are not served as they should be.
    pub faults: Vec<PartitionFault>,
    /// The metadata at the start.
    pub image: Arc<Image>,
}

/// What a broker has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrokerStats {
    /// Records appended.
    pub records: u64,
    /// Bytes of record batches appended.
    pub bytes: u64,
    /// Writes to log segments.
    pub writes: u64,
    /// Times data was forced to the medium.
    pub syncs: u64,
    /// CPU time of the cores' threads.
    pub cpu: Duration,
}

struct Sockets {
    native: (OwnedFd, SocketAddr),
    cores: Vec<(OwnedFd, SocketAddr)>,
    http: Option<TcpListener>,
}

impl Sockets {
    /// Of the native listener, and of each core's own.
    fn addresses(&self) -> (SocketAddr, Vec<SocketAddr>) {
        let cores = self.cores.iter().map(|(_, address)| *address);
        (self.native.1, cores.collect())
    }
}

/// Starts a broker and waits until it serves.
///
/// # Errors
/// See [`StartError`].
pub fn start(config: Config) -> Result<Handle, StartError> {
    let config = Arc::new(config);
    let storage = storage(&config)?;
    let (mut folder, sockets) = reserve_all(&config)?;
    folder.begin_run()?;
    let metrics = Metrics::new(config.cores.len());
    let watchdog = Watchdog::start();
    let core_count = config.cores.len();

    let (to_control, control_inbox) = flume::bounded(CONTROL_INBOX_MAX);
    let (control_senders, control_receivers): (Vec<_>, Vec<_>) =
        (0..core_count).map(|_| inbox(CONTROL_INBOX_MAX)).unzip();
    let (native, core_addresses) = sockets.addresses();
    let control = control::start(ControlConfig {
        broker: config.broker_id,
        cluster_id: ClusterId(folder.cluster_id()),
        was_clean: folder.restart == RestartClass::Clean,
        data_dir: config.data_dir.clone(),
        any_core: any_core_endpoint(&config, native),
        core_endpoints: core_endpoints(&config, &core_addresses),
        partitions_per_core_max: config.partitions_max_per_core,
        cores: control_senders.into_iter().map(core_sender).collect(),
        inbox: control_inbox,
        http: sockets.http,
        metrics: metrics.clone(),
        refresh_metrics: mirror_kicks(watchdog.observer()),
        reserve_bytes: config.reserve_bytes,
        memory_bytes: config.memory.total_bytes,
        storage: labels(&storage),
    })?;
    for skipped in &control.recovery.snapshots_skipped {
        tracing::warn!(%skipped, "a metadata snapshot could not be read; the one before it and the log were used");
    }
    let image = control.first_image.clone();
    folder.discard_tombstoned(&image)?;
    let started = StartedCores::start(StartCores {
        config: &config,
        folder: &folder,
        access: access(&storage),
        metrics: &metrics,
        watchdog: &watchdog,
        image: &image,
        native: sockets.native,
        cores: sockets.cores,
        control_receivers,
        to_control,
    });
    let mut handle = Handle {
        config,
        folder,
        storage,
        metrics,
        control: Some(control),
        cores: Vec::new(),
        watchdog: Some(watchdog),
        native,
        core_addresses,
        recovered: Recovered::default(),
        faults: Vec::new(),
        image,
    };
    // From here on whatever fails ends what runs: the handle is dropped.
    handle.serve(started?)?;
    Ok(handle)
}

/// What the data folder lies on. What is weaker than direct I/O must have been allowed.
fn storage(config: &Config) -> Result<StorageVerdict, StartError> {
    let refuse = |what, remedy| StartError::Storage {
        path: config.data_dir.display().to_string(),
        what,
        remedy,
    };
    let verdict = judge_storage(&config.data_dir)
        .map_err(|unusable| refuse(unusable.text, unusable.remedy))?;
    match (verdict.reason(), config.direct_io) {
        (Some(reason), DirectIo::Require) => {
            let what = format!("{reason}, and storage.direct_io = \"require\"");
            Err(refuse(what, direct_io_remedy()))
        }
        _ => Ok(verdict),
    }
}

/// The folder and every port. A folder that exists is locked first, so that a second broker on it is refused by the
/// folder's name; one that must be made is made once all ports are ours, so that a start without them leaves nothing
/// behind.
fn reserve_all(config: &Config) -> Result<(Folder, Sockets), StartError> {
    let open = || Folder::open(&config.data_dir, config.broker_id);
    if config.data_dir.exists() {
        let folder = open()?;
        Ok((folder, bind(config)?))
    } else {
        let sockets = bind(config)?;
        Ok((open()?, sockets))
    }
}

fn access(storage: &StorageVerdict) -> Access {
    match storage.refused {
        None => Access::Direct,
        Some(_) => Access::Buffered,
    }
}

/// Shows what the watchdog counts beside what the cores count.
fn mirror_kicks(observer: Observer) -> control::RefreshMetrics {
    control::RefreshMetrics(Box::new(move |metrics| {
        for (core, progress) in metrics.cores().iter().zip(observer.cores()) {
            let known = core.watchdog.kicks.get();
            core.watchdog
                .kicks
                .add(progress.kicks().saturating_sub(known));
            core.watchdog.stuck_seconds.set(progress.stuck_seconds());
        }
    }))
}

/// Where clients reach the listener that any core serves.
fn any_core_endpoint(config: &Config, bound: SocketAddr) -> Endpoint {
    match &config.native_advertised {
        Some((host, port)) => Endpoint {
            host: host.clone(),
            port: *port,
        },
        None => Endpoint {
            host: bound.ip().to_string(),
            port: bound.port(),
        },
    }
}

/// Where clients reach each core's own listener.
fn core_endpoints(config: &Config, bound: &[SocketAddr]) -> Vec<Endpoint> {
    let host = config.native_core_advertised_host.as_ref();
    bound
        .iter()
        .map(|address| Endpoint {
            host: host.map_or_else(|| address.ip().to_string(), String::clone),
            port: address.port(),
        })
        .collect()
}

/// The storage as metrics name it.
fn labels(storage: &StorageVerdict) -> StorageLabels {
    StorageLabels {
        io: match access(storage) {
            Access::Direct => "direct",
            Access::Buffered => "buffered",
        },
        file_system: storage.file_system,
    }
}

fn core_sender(sender: InboxSender<ToCore>) -> CoreSender {
    CoreSender::new(move |message| {
        sender.send(message).map_err(|undelivered| Undelivered {
            message: undelivered.0,
            closed: sender.is_closed(),
        })
    })
}

/// Reserves an address; one that is in use is tried again for [`IN_USE_PATIENCE`]. A broker that was killed holds its
/// ports a little longer than its process lasts: until the kernel has torn its rings down.
fn reserve(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let begun = Instant::now();
    loop {
        match net::reserve(address) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && begun.elapsed() < IN_USE_PATIENCE =>
            {
                std::thread::sleep(IN_USE_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn bind(config: &Config) -> Result<Sockets, StartError> {
    let refuse = |listener, address| {
        move |source: io::Error| StartError::Bind {
            listener,
            address,
            hint: match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "; another process listens there: stop it, or set another port"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "; no interface of this machine has that address"
                }
                io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
                _ => "",
            },
            source,
        }
    };
    let native = reserve(config.native_bind).map_err(refuse("native.bind", config.native_bind))?;
    let mut cores = Vec::new();
    for index in 0..config.cores.len() as u16 {
        let mut address = config.native_core_bind;
        if address.port() != 0 {
            address.set_port(address.port().saturating_add(index));
        }
        cores.push(reserve(address).map_err(refuse("native.core_bind", address))?);
    }
    let http = (config.http_bind)
        .map(|address| {
            let listener = TcpListener::bind(address).map_err(refuse("http.bind", address))?;
            listener
                .set_nonblocking(true)
                .map_err(refuse("http.bind", address))?;
            Ok::<_, StartError>(listener)
        })
        .transpose()?;
    Ok(Sockets {
        native,
        cores,
        http,
    })
}

struct StartCores<'a> {
    config: &'a Arc<Config>,
    folder: &'a Folder,
    access: Access,
    metrics: &'a Metrics,
    watchdog: &'a Watchdog,
    image: &'a Arc<Image>,
    native: (OwnedFd, SocketAddr),
    cores: Vec<(OwnedFd, SocketAddr)>,
    control_receivers: Vec<InboxReceiver<ToCore>>,
    to_control: flume::Sender<ToControl>,
}

struct StartedCores {
    handles: Vec<CoreHandle<bool>>,
    reports: Vec<Ready>,
    go: flume::Sender<()>,
}

impl StartedCores {
    fn start(with: StartCores<'_>) -> Result<StartedCores, StartError> {
        let core_count = with.config.cores.len();
        let (peer_senders, peer_receivers): (Vec<_>, Vec<_>) = (0..core_count)
            .map(|_| inbox::<PeerMessage>(PEER_INBOX_MAX * core_count))
            .unzip();
        let (ready, reports) = std::sync::mpsc::channel();
        let (go, wait_for_go) = flume::bounded(core_count);
        let drained = Arc::new(AtomicUsize::new(0));
        let ledger = Arc::new(with.folder.ledger.clone());
        let (mut any_socket, any_address) = (Some(with.native.0), with.native.1);
        let mut handles = Vec::new();
        let parts = (with.cores.into_iter())
            .zip(with.control_receivers)
            .zip(peer_receivers);
        for (index, (((own, _), from_control), from_peers)) in parts.enumerate() {
            let core = CoreId(index as u16);
            let peers = (peer_senders.iter().enumerate())
                .map(|(peer, sender)| (peer != index).then(|| sender.clone()))
                .collect();
            let seed = Seed {
                core,
                config: with.config.clone(),
                paths: with.folder.paths.clone(),
                access: with.access,
                directory_id: with.folder.directory_id(),
                metrics: with.metrics.clone(),
                image: with.image.clone(),
                restart: with.folder.restart,
                ledger: ledger.clone(),
                ledger_start: ledger_start(with.folder, with.config, with.image, core),
                any_core: (any_address, any_socket.take()),
                own,
                from_control,
                from_peers,
                peers,
                control: with.to_control.clone(),
                ready: ready.clone(),
                go: wait_for_go.clone(),
                drained: drained.clone(),
            };
            let settings = CoreSettings::pinned(with.config.cores[index], format!("core-{index}"));
            let handle = spawn(settings, with.watchdog, move |core| run::run(core, seed));
            handles.push(handle.map_err(|error| StartError::Core(error.to_string()))?);
        }
        drop(ready);
        let mut got = Vec::new();
        while got.len() < core_count {
            match reports.recv() {
                Ok(report) => got.push(report),
                // A core whose executor could not start says why when it is joined; the others wait for `go`.
                Err(_) => {
                    drop(go);
                    return Err(StartError::Core(first_failure(handles)));
                }
            }
        }
        Ok(StartedCores {
            handles,
            reports: got,
            go,
        })
    }
}

/// Joins all cores, and tells why the first of those failed that did.
fn first_failure(handles: Vec<CoreHandle<bool>>) -> String {
    let joined: Vec<_> = handles.into_iter().map(CoreHandle::join).collect();
    let failed = joined.into_iter().find_map(Result::err);
    failed.map_or_else(
        || "a core ended before it served".to_owned(),
        |error| error.to_string(),
    )
}

/// The part of the old ledgers that a core's new one begins with.
fn ledger_start(folder: &Folder, config: &Config, image: &Image, core: CoreId) -> LedgerStart {
    let broker = image.brokers.get(&config.broker_id);
    let mine = |partition: &tackboard_schema::TopicPartition| {
        let found = image.partition(*partition);
        found
            .zip(broker)
            .is_some_and(|(found, broker)| broker.core_of(found) == core)
    };
    LedgerStart {
        generation: folder.generation(),
        // Every run has files of its own, so there is none that counts yet.
        file: LedgerFile::A,
        logs: (folder.ledger.logs.iter())
            .filter(|(partition, _)| mine(partition))
            .map(|(partition, log)| (*partition, log.clone()))
            .collect(),
    }
}

impl Handle {
    /// The native listener that any core answers.
    pub fn native_address(&self) -> SocketAddr {
        self.native
    }

    /// Each core's own listener.
    pub fn core_addresses(&self) -> &[SocketAddr] {
        &self.core_addresses
    }

    /// The admin HTTP server.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.control
            .as_ref()
            .and_then(|control| control.http_address)
    }

    /// Takes the cores in, notes what each of them recovered, and lets them serve.
    fn serve(&mut self, started: StartedCores) -> Result<(), StartError> {
        self.cores = started.handles;
        for ready in started.reports {
            let (recovered, faults) = ready.outcome.map_err(StartError::Core)?;
            self.recovered.add(&recovered);
            self.faults.extend(faults);
        }
        self.folder.recovered()?;
        for _ in &self.cores {
            let _ = started.go.send(());
        }
        let control = self.control.as_ref().expect("there until shutdown");
        control.wait_ready().map_err(StartError::Core)?;
        Ok(())
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What its data folder lies on.
    pub fn storage(&self) -> &StorageVerdict {
        &self.storage
    }

    /// How the last run on its folder ended.
    pub fn restart(&self) -> tackboard_logic::log::recovery::RestartClass {
        self.folder.restart
    }

    /// What the control thread reports; for whoever watches the broker.
    pub fn events(&self) -> flume::Receiver<control::ControlEvent> {
        let control = self.control.as_ref().expect("there until shutdown");
        control.events()
    }

    /// What it has done so far.
    pub fn stats(&self) -> BrokerStats {
        BrokerStats {
            records: self.metrics.sum(|core| core.produce_records.get()),
            bytes: self.metrics.sum(|core| core.produce_bytes.get()),
            writes: self.metrics.sum(|core| core.disk_writes.get()),
            syncs: self.metrics.sum(|core| core.disk_syncs.get()),
            cpu: self
                .cores
                .iter()
                .filter_map(|core| core.cpu_time().ok())
                .sum(),
        }
    }

    /// Stops accepting, answers what was asked, writes and syncs everything, and ends all threads. True if all of that
    /// was done before the configured deadline.
    pub fn shutdown(mut self) -> bool {
        self.stop()
    }

    fn stop(&mut self) -> bool {
        let Some(control) = self.control.take() else {
            return false;
        };
        let report = control.shutdown(Instant::now() + self.config.shutdown_deadline);
        let all_drained = (report.as_ref()).is_some_and(|report| report.not_drained.is_empty());
        let mut clean = report.is_some_and(|report| report.clean);
        if all_drained {
            for core in self.cores.drain(..) {
                clean &= core.join().is_ok_and(|drained| drained);
            }
        } else {
            self.folder.lock_for_good();
        }
        self.watchdog.take();
        if clean {
            clean = match self.folder.end_run_clean() {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(%error, "the end of the run could not be recorded; the next start checks every log");
                    false
                }
            };
        }
        clean
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}
