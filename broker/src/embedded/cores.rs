//! The threads of the cores: what each is started with, and their reports.

use std::{
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::{Arc, atomic::AtomicUsize},
};

use tackboard_logic::{
    ledger::LedgerStart,
    metadata::{Endpoint, Image},
    shard::interface::LedgerFile,
};
use tackboard_runtime::{CoreHandle, CoreSettings, InboxReceiver, Watchdog, inbox, spawn};
use tackboard_schema::{CoreId, TopicPartition};

use super::StartError;
use crate::{
    bridge::{Metrics, ToControl, ToCore},
    config::Config,
    data_folder::Folder,
    disk::{file::Access, flusher::Flusher},
    shard::{
        request::PeerMessage,
        run::{self, PEER_INBOX_MAX, Ready, Seed},
    },
};

/// What the cores are started with.
pub(super) struct StartCores<'a> {
    pub config: &'a Arc<Config>,
    pub folder: &'a Folder,
    pub access: Access,
    pub flusher: Option<Flusher>,
    pub metrics: &'a Metrics,
    pub watchdog: &'a Watchdog,
    pub image: &'a Arc<Image>,
    pub native: (OwnedFd, SocketAddr),
    pub kafka: Option<((OwnedFd, SocketAddr), Endpoint)>,
    pub cores: Vec<(OwnedFd, SocketAddr)>,
    pub control_receivers: Vec<InboxReceiver<ToCore>>,
    pub to_control: flume::Sender<ToControl>,
}

/// Cores that have recovered and wait for [`StartedCores::go`] before they accept anything.
pub(super) struct StartedCores {
    pub handles: Vec<CoreHandle<bool>>,
    pub reports: Vec<Ready>,
    pub go: flume::Sender<()>,
}

impl StartedCores {
    /// Starts every core and waits until each has reported.
    ///
    /// # Errors
    /// The first core whose thread or executor did not start. The others have ended.
    pub fn start(with: StartCores<'_>) -> Result<StartedCores, StartError> {
        let core_count = with.config.cores.len();
        let (ready, reports) = std::sync::mpsc::channel();
        let (go, wait_for_go) = flume::bounded(core_count);
        let mut handles = Vec::new();
        let (config, watchdog) = (with.config, with.watchdog);
        for (cpu, seed) in config.cores.iter().zip(seeds(with, &ready, &wait_for_go)) {
            let settings = CoreSettings {
                spin: config.core_spin,
                ..CoreSettings::pinned(*cpu, format!("core-{}", seed.core))
            };
            let handle = spawn(settings, watchdog, move |core| run::run(core, seed));
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

/// What each core begins with, in core order.
fn seeds(
    with: StartCores<'_>,
    ready: &std::sync::mpsc::Sender<Ready>,
    go: &flume::Receiver<()>,
) -> Vec<Seed> {
    let core_count = with.config.cores.len();
    let (peer_senders, peer_receivers): (Vec<_>, Vec<_>) = (0..core_count)
        .map(|_| inbox::<PeerMessage>(PEER_INBOX_MAX * core_count))
        .unzip();
    let drained = Arc::new(AtomicUsize::new(0));
    let ledger = Arc::new(with.folder.ledger.clone());
    let (mut any_socket, any_address) = (Some(with.native.0), with.native.1);
    let mut kafka_socket = None;
    let kafka = with.kafka.map(|((socket, address), endpoint)| {
        kafka_socket = Some(socket);
        (address, endpoint)
    });
    let parts = (with.cores.into_iter())
        .zip(with.control_receivers)
        .zip(peer_receivers);
    let seed = |(index, (((own, _), from_control), from_peers)): (usize, _)| {
        let core = CoreId(index as u16);
        let peers = (peer_senders.iter().enumerate())
            .map(|(peer, sender)| (peer != index).then(|| sender.clone()))
            .collect();
        Seed {
            core,
            config: with.config.clone(),
            paths: with.folder.paths.clone(),
            access: with.access,
            flusher: with.flusher.clone(),
            directory_id: with.folder.directory_id(),
            metrics: with.metrics.clone(),
            image: with.image.clone(),
            restart: with.folder.restart,
            ledger: ledger.clone(),
            ledger_start: ledger_start(with.folder, with.config, with.image, core),
            any_core: (any_address, any_socket.take()),
            kafka: (kafka.as_ref())
                .map(|(address, endpoint)| ((*address, kafka_socket.take()), endpoint.clone())),
            own,
            from_control,
            from_peers,
            own_inbox: peer_senders[index].clone(),
            peers,
            control: with.to_control.clone(),
            ready: ready.clone(),
            go: go.clone(),
            drained: drained.clone(),
        }
    };
    parts.enumerate().map(seed).collect()
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
    let mine = |partition: &TopicPartition| {
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
