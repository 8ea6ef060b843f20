//! The start of a broker, step by step.

use std::{net::SocketAddr, sync::Arc};

use tackboard_logic::metadata::{ClusterId, Endpoint};
use tackboard_runtime::{InboxSender, Observer, Watchdog, inbox};

use super::{
    Handle, StartError,
    cores::{StartCores, StartedCores},
    sockets::{Sockets, bind},
};
use crate::{
    bridge::{CONTROL_INBOX_MAX, CoreSender, Metrics, ToCore, Undelivered},
    check::{StorageVerdict, direct_io_remedy, judge_storage},
    config::{Config, DirectIo, SyncFs},
    control::{self, ControlConfig, Metadata, StorageLabels},
    data_folder::Folder,
    disk::{file::Access, flusher::Flusher},
    shard::run::Recovered,
};

/// Starts a broker and waits until it serves.
///
/// # Errors
/// See [`StartError`].
pub fn start(config: Config) -> Result<Handle, StartError> {
    start_then(config, || {})
}

/// The same; when it serves, and before `/readyz` says so, `ready` is called.
///
/// # Errors
/// See [`StartError`].
pub fn start_then(config: Config, ready: impl FnOnce()) -> Result<Handle, StartError> {
    let config = Arc::new(config);
    let storage = storage(&config)?;
    let (mut folder, sockets) = reserve_all(&config)?;
    let metadata = begin_run(&config, &mut folder)?;
    let metrics = Metrics::new(config.cores.len());
    let watchdog = Watchdog::start();
    let core_count = config.cores.len();

    let (to_control, control_inbox) = flume::bounded(CONTROL_INBOX_MAX);
    let (control_senders, control_receivers): (Vec<_>, Vec<_>) =
        (0..core_count).map(|_| inbox(CONTROL_INBOX_MAX)).unzip();
    let native = sockets.native.1;
    let kafka = sockets.kafka.as_ref().map(|(_, address)| *address);
    let core_addresses: Vec<_> = sockets.cores.iter().map(|(_, address)| *address).collect();
    let control = ControlConfig {
        cluster_id: ClusterId(folder.cluster_id()),
        cores: control_senders.into_iter().map(core_sender).collect(),
        inbox: control_inbox,
        http: sockets.http,
        metrics: metrics.clone(),
        refresh_metrics: mirror_kicks(watchdog.observer()),
        storage: labels(&storage),
        any_core: advertised(config.native_advertised.as_ref(), native),
        core_endpoints: core_endpoints(&config, &core_addresses),
        broker: config.broker_id,
        data_dir: config.data_dir.clone(),
        partitions_per_core_max: config.partitions_max_per_core,
        reserve_bytes: config.reserve_bytes,
        memory_bytes: config.memory.total_bytes,
        log_budget_bytes: config.log_budget_bytes.unwrap_or(0),
    };
    let control = control::start(control, metadata)?;
    for skipped in &control.recovery.snapshots_skipped {
        tracing::warn!(%skipped, "a metadata snapshot could not be read; the one before it and the log were used");
    }
    let image = control.first_image.clone();
    let strangers = folder.discard_tombstoned(&image)?;
    if strangers.count > 0 {
        tracing::error!(
            folder = %folder.paths.logs().display(),
            count = strangers.count,
            first = strangers.names.join(", "),
            "what lies among the logs and belongs to no topic is left alone and not served; if it was served before, metadata is missing"
        );
    }
    let started = StartedCores::start(StartCores {
        config: &config,
        folder: &folder,
        access: access(&storage),
        flusher: flusher(&config, &folder),
        metrics: &metrics,
        watchdog: &watchdog,
        image: &image,
        native: sockets.native,
        kafka: sockets.kafka.map(|kafka| {
            let endpoint = advertised(config.kafka_advertised.as_ref(), kafka.1);
            (kafka, endpoint)
        }),
        cores: sockets.cores,
        control_receivers,
        to_control,
    });
    // From here on whatever fails, the handle ends what runs.
    let handle = Handle {
        config,
        folder,
        storage,
        metrics,
        control: Some(control),
        cores: Vec::new(),
        watchdog: Some(watchdog),
        native,
        kafka,
        core_addresses,
        recovered: Recovered::default(),
        faults: Vec::new(),
        strangers,
        image,
    };
    let handle = serve(handle, started?)?;
    ready();
    let control = handle.control.as_ref().expect("there until shutdown");
    control.announce_ready();
    Ok(handle)
}

/// Lets cores that have recovered accept connections, once all have, and waits until the control thread says so.
fn serve(mut handle: Handle, started: StartedCores) -> Result<Handle, StartError> {
    handle.cores = started.handles;
    for ready in started.reports {
        let (recovered, faults) = ready.outcome.map_err(StartError::Core)?;
        handle.recovered.add(&recovered);
        handle.faults.extend(faults);
    }
    handle.folder.recovered(handle.cores.len())?;
    for _ in &handle.cores {
        let _ = started.go.send(());
    }
    let control = handle.control.as_ref().expect("there until shutdown");
    control.wait_ready().map_err(StartError::Core)?;
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
    let open = || Folder::open(&config.data_dir, config.broker_id, config.missing_ledger);
    if config.data_dir.exists() {
        let folder = open()?;
        Ok((folder, bind(config)?))
    } else {
        let sockets = bind(config)?;
        Ok((open()?, sockets))
    }
}

/// What syncs the whole file system, where the configuration wants it and the device shows that it obeys.
fn flusher(config: &Config, folder: &Folder) -> Option<Flusher> {
    if config.syncfs == SyncFs::Never {
        return None;
    }
    let paths = &folder.paths;
    match Flusher::start(&paths.logs(), &paths.lock(), config.cores.len()) {
        Ok(flusher) => Some(flusher),
        Err(why) => {
            tracing::info!(why, "logs are synced one by one, however many are dirty");
            None
        }
    }
}

/// Opens the metadata and puts on the medium that a run has begun. A start that is refused leaves the folder as the last
/// run did: were it not called clean any more, the next start would take damaged metadata for a torn end and cut it off.
/// The first thing in a new folder is its superblock, to which the metadata belongs.
fn begin_run(config: &Config, folder: &mut Folder) -> Result<Metadata, StartError> {
    if folder.is_new {
        folder.begin_run()?;
    }
    let cluster_id = ClusterId(folder.cluster_id());
    let metadata = Metadata::open(&config.data_dir, cluster_id, folder.was_clean)?;
    if !folder.is_new {
        folder.begin_run()?;
    }
    Ok(metadata)
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

fn labels(storage: &StorageVerdict) -> StorageLabels {
    StorageLabels {
        io: match access(storage) {
            Access::Direct => "direct",
            Access::Buffered => "buffered",
        },
        file_system: storage.file_system,
    }
}

/// Where clients reach each core.
fn core_endpoints(config: &Config, bound: &[SocketAddr]) -> Vec<Endpoint> {
    let host = config.native_core_advertised_host.as_ref();
    (bound.iter())
        .map(|address| Endpoint {
            host: host.map_or_else(|| address.ip().to_string(), Clone::clone),
            port: address.port(),
        })
        .collect()
}

fn advertised(configured: Option<&(String, u16)>, bound: SocketAddr) -> Endpoint {
    match configured {
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

fn core_sender(sender: InboxSender<ToCore>) -> CoreSender {
    CoreSender::new(move |message| {
        sender.send(message).map_err(|undelivered| Undelivered {
            message: undelivered.0,
            closed: sender.is_closed(),
        })
    })
}
