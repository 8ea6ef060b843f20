//! From a configuration to a running control thread, and the handle on it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tackboard_logic::metadata::{
    ClusterId, Command, Endpoint, Image, IncarnationId, MetadataRefusal, RegisterBroker,
};
use tackboard_schema::{BrokerId, CoreId};

use crate::bridge::{CoreSender, Metrics, PartitionFault, ToControl};

use super::http;
use super::metadata_log::{Limits, MetadataLog, MetadataLogError, RecoverySummary};
use super::metrics::BrokerNumbers;
use super::quorum::LocalQuorum;
use super::service::{Channels, Request, Service};
use super::status::Status;

/// Everything that the control thread is told.
#[derive(Debug)]
pub struct ControlConfig {
    /// This broker.
    pub broker: BrokerId,
    /// From the superblock; drawn at random at the first start.
    pub cluster_id: ClusterId,
    /// The data folder, locked by the caller. The metadata goes to `meta/` in it.
    pub data_dir: PathBuf,
    /// What clients are told of the native listener on any core.
    pub any_core: Endpoint,
    /// What clients are told of each core's own listener.
    pub core_endpoints: Vec<Endpoint>,
    /// Partitions that one core may own.
    pub partitions_per_core_max: u32,
    /// One for each core, in order.
    pub cores: Vec<CoreSender>,
    /// What the cores send.
    pub inbox: flume::Receiver<ToControl>,
    /// Bound by the caller, so that a conflict is reported before anything starts. None: no HTTP.
    pub http: Option<TcpListener>,
    /// The cores' counters.
    pub metrics: Metrics,
    /// Called before metrics are shown, to mirror what is counted elsewhere into them.
    pub refresh_metrics: RefreshMetrics,
    /// `storage.reserve_bytes`, shown beside the free space.
    pub reserve_bytes: u64,
    /// `memory.total`, shown.
    pub memory_bytes: u64,
    /// `log.budget.bytes`, shown beside what the logs take; 0 without a bound.
    pub log_budget_bytes: u64,
    /// How the data folder is written, shown.
    pub storage: StorageLabels,
}

/// How the files of the data folder are read and written.
#[derive(Clone, Copy, Debug)]
pub struct StorageLabels {
    /// `direct` or `buffered`.
    pub io: &'static str,
    /// Its file system.
    pub file_system: &'static str,
}

/// Mirrors numbers that others count (the watchdog, the allocator) into the metrics.
pub struct RefreshMetrics(pub Box<dyn Fn(&Metrics) + Send + Sync>);

impl std::fmt::Debug for RefreshMetrics {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RefreshMetrics")
    }
}

/// Events that wait for whoever started the broker. More are dropped: nobody reads them, and the first tell it all.
pub const EVENTS_MAX: usize = 16;

/// What the control thread has to say to whoever started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// Every core has opened its partitions; the broker serves.
    Ready {
        /// Partitions that are not served as they should be.
        faults: Vec<PartitionFault>,
    },
    /// No topic can be created or deleted until a restart; records flow on.
    MetadataFailed {
        /// What happened.
        reason: String,
    },
    /// A core cannot go on; the process must end.
    Fatal {
        /// Which, and what happened.
        reason: String,
    },
}

/// How a shutdown went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    /// All cores wrote and synced everything: the superblock may be marked clean.
    pub clean: bool,
    /// Cores that had not finished at the deadline.
    pub not_drained: Vec<CoreId>,
}

/// Why the control thread could not start.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The metadata cannot be used.
    #[error(transparent)]
    Metadata(#[from] MetadataLogError),
    /// The broker's own registration was refused.
    #[error("this broker cannot register: {0}")]
    Registration(MetadataRefusal),
    /// The system refused something else.
    #[error("control thread: cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// A running control thread. Dropping it ends the thread, without a drain, and waits for the end.
#[derive(Debug)]
pub struct ControlHandle {
    /// The metadata after this broker registered; the cores get it too.
    pub first_image: Arc<Image>,
    /// What opening the metadata log had to do.
    pub recovery: RecoverySummary,
    /// Where HTTP listens.
    pub http_address: Option<SocketAddr>,
    events: flume::Receiver<ControlEvent>,
    /// None once the thread was asked to end.
    requests: Option<flume::Sender<Request>>,
    status: Arc<Status>,
    thread: Option<thread::JoinHandle<()>>,
}

/// The control thread reports at the deadline at the latest; this much later it has died.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

/// The metadata of a data folder, opened.
pub struct Metadata {
    log: MetadataLog,
    recovery: RecoverySummary,
}

impl Metadata {
    /// Opens it, or starts it in a new folder. After a clean stop nothing can be torn, and what looks so is damage.
    ///
    /// # Errors
    /// What is wrong with it; nothing was changed.
    pub fn open(
        data_dir: &Path,
        cluster_id: ClusterId,
        was_clean: bool,
    ) -> Result<Metadata, ControlError> {
        let limits = Limits::default();
        let (log, recovery) = MetadataLog::open_after(data_dir, cluster_id, limits, was_clean)?;
        Ok(Metadata { log, recovery })
    }
}

/// Registers this process (which bumps the epochs of what it leads), starts the
/// thread and publishes the first image to the cores.
///
/// # Errors
/// Before the thread runs; nothing then runs, and the metadata is as it was or holds the registration.
pub fn start(config: ControlConfig, metadata: Metadata) -> Result<ControlHandle, ControlError> {
    let fail = |action| move |source| ControlError::Io { action, source };
    let Metadata { mut log, recovery } = metadata;
    register(&mut log, &config)?;
    let first_image = log.image();
    let http_address = config
        .http
        .as_ref()
        .map(TcpListener::local_addr)
        .transpose();
    let http_address = http_address.map_err(fail("read the HTTP listener's address"))?;
    // One shutdown is asked for.
    let (requests, requests_receiver) = flume::bounded(1);
    let (events_sender, events) = flume::bounded(EVENTS_MAX);
    let channels = Channels {
        cores: config.cores,
        inbox: config.inbox,
        requests: requests_receiver,
        events: events_sender,
    };
    let status = Arc::new(Status::default());
    let numbers = BrokerNumbers {
        metrics: config.metrics,
        refresh: config.refresh_metrics,
        status: status.clone(),
        started: Instant::now(),
        data_dir: config.data_dir,
        reserve_bytes: config.reserve_bytes,
        memory_bytes: config.memory_bytes,
        log_budget_bytes: config.log_budget_bytes,
        storage: config.storage,
        cluster_id: config.cluster_id,
        broker: config.broker,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(fail("start its runtime"))?;
    let service = Service::new(LocalQuorum::new(log), channels, status.clone());
    let listener = config.http;
    let thread = thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                if let Some(listener) = listener {
                    tokio::spawn(http::serve(listener, numbers));
                }
                service.run().await;
            });
            // Handlers in flight do not hold up the end.
            runtime.shutdown_timeout(Duration::ZERO);
        })
        .map_err(fail("start its thread"))?;
    Ok(ControlHandle {
        first_image,
        recovery,
        http_address,
        events,
        requests: Some(requests),
        status,
        thread: Some(thread),
    })
}

fn register(log: &mut MetadataLog, config: &ControlConfig) -> Result<(), ControlError> {
    let mut incarnation = [0; 16];
    getrandom::fill(&mut incarnation).map_err(|error| ControlError::Io {
        action: "draw random numbers",
        source: io::Error::other(error),
    })?;
    let command = Command::RegisterBroker(RegisterBroker {
        broker: config.broker,
        incarnation: IncarnationId(incarnation),
        any_core: config.any_core.clone(),
        cores: config.core_endpoints.clone(),
        partitions_per_core_max: config.partitions_per_core_max,
    });
    let answer = log
        .propose(vec![command])
        .pop()
        .expect("one answer for one command");
    answer.map(drop).map_err(ControlError::Registration)
}

impl ControlHandle {
    /// What the control thread reports, in order. Waits for the next event; None when the thread ended.
    pub fn next_event(&self) -> Option<ControlEvent> {
        self.events.recv().ok()
    }

    /// A second receiver of nothing: the same channel, for whoever waits on another thread. Each event
    /// goes to one of the waiting.
    pub fn events(&self) -> flume::Receiver<ControlEvent> {
        self.events.clone()
    }

    /// Says to the outside that the broker is ready. Whoever started it does so last: from then on a signal may come.
    pub fn announce_ready(&self) {
        self.status.set_ready();
    }

    /// Waits until every core serves.
    ///
    /// # Errors
    /// The reason when a core reports that it cannot go on, or the thread has ended.
    pub fn wait_ready(&self) -> Result<Vec<PartitionFault>, String> {
        loop {
            match self.next_event() {
                Some(ControlEvent::Ready { faults }) => return Ok(faults),
                Some(ControlEvent::Fatal { reason }) => return Err(reason),
                Some(ControlEvent::MetadataFailed { .. }) => {}
                None => return Err("the control thread has ended".to_owned()),
            }
        }
    }

    /// Tells the cores to finish, waits for them until the deadline, and ends the thread. `None` when the thread does not
    /// answer: nothing is then known of any core.
    pub fn shutdown(self, deadline: Instant) -> Option<ShutdownReport> {
        let (answer, report) = flume::bounded(1);
        if let Some(requests) = &self.requests {
            // If the thread has ended, nothing comes, and the wait below ends by its deadline.
            let _ = requests.send(Request::Shutdown { deadline, answer });
        }
        report.recv_deadline(deadline + REPORT_PATIENCE).ok()
    }
}

impl Drop for ControlHandle {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, that was printed where it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "start_test.rs"]
mod tests;
