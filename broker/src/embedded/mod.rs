//! A broker inside this process: what `serve`, the load generator and tests start.
//!
//! Order: lock the folder → read superblock and ledgers → bind every port (before, where the folder is new) → clear the
//! clean flag on the medium → start the control thread (it registers this process, which bumps the epochs of what it
//! leads) → start the cores, which recover their logs → serve. Stopping goes the other way and ends with the clean flag.
//!
//! Installs no signal handler and no log subscriber, and never ends the process.

mod cores;
mod sockets;
mod start;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tackboard_logic::metadata::Image;
use tackboard_runtime::{CoreHandle, Watchdog};

pub use self::start::{start, start_then};
use crate::{
    bridge::{Metrics, PartitionFault},
    check::StorageVerdict,
    config::Config,
    control::{self, ControlError, ControlHandle, RecoverySummary},
    data_folder::{Folder, FolderError, Strangers},
    shard::run::Recovered,
};

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
    kafka: Option<SocketAddr>,
    core_addresses: Vec<SocketAddr>,
    /// What recovery did.
    pub recovered: Recovered,
    /// Partitions that are not served as they should be.
    pub faults: Vec<PartitionFault>,
    /// What lies among the logs and belongs to none.
    pub strangers: Strangers,
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

impl Handle {
    /// The native listener that any core answers.
    pub fn native_address(&self) -> SocketAddr {
        self.native
    }

    /// The listener for clients of Kafka.
    pub fn kafka_address(&self) -> Option<SocketAddr> {
        self.kafka
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

    /// What recovery of the metadata log did.
    pub fn metadata_recovery(&self) -> &RecoverySummary {
        let control = self.control.as_ref().expect("there until shutdown");
        &control.recovery
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
