//! The servers that are compared: how each is started, with what durability, and spoken to.

mod native;
mod process;
pub mod reference;
mod tackboard;

use std::{path::Path, path::PathBuf};

use anyhow::Result;
use serde::Serialize;
use tackboard_schema::Durability;

use crate::drive::{Lane, Workload};
pub use native::events_that_fit as native_events_that_fit;
use process::ServerProcess;
use reference::Duty;

/// A server under comparison, with the durability it is run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A server of a few lines that does the least: what the driver and the machine can do at best.
    Reference(Duty),
    /// Our broker.
    Tackboard(#[serde(serialize_with = "durability_name")] Durability),
}

fn durability_name<S: serde::Serializer>(
    durability: &Durability,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tackboard::durability_text(*durability))
}

/// Where the parts that `run` needs are, and what the servers may use.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The broker's binary.
    pub tackboard: PathBuf,
    /// CPUs of the servers; `None` leaves all to them.
    pub server_cpus: Option<Vec<usize>>,
}

/// A server that runs, in a folder that goes with it.
pub struct Running {
    process: ServerProcess,
    address: std::net::SocketAddr,
    subject: Subject,
}

impl Subject {
    /// What tables call it.
    pub fn name(self) -> String {
        match self {
            Subject::Reference(duty) => format!("reference, {}", duty.text()),
            Subject::Tackboard(durability) => {
                format!("Tackboard, {}", tackboard::durability_text(durability))
            }
        }
    }

    /// Starts it, with its data under `folder`.
    ///
    /// # Errors
    /// When it does not come up; what it printed is in the error.
    pub fn start(self, ground: &Ground, folder: &Path) -> Result<Running> {
        let (process, address) = match self {
            Subject::Reference(duty) => reference::start(duty, ground, folder)?,
            Subject::Tackboard(_) => tackboard::start(ground, folder)?,
        };
        Ok(Running {
            process,
            address,
            subject: self,
        })
    }
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Makes a log for each connection of the workload and connects to each.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn lanes(&self, workload: &Workload) -> Result<Vec<Lane>> {
        match self.subject {
            Subject::Reference(_) => native::reference_lanes(self.address, workload),
            Subject::Tackboard(durability) => tackboard::lanes(self.address, durability, workload),
        }
    }

    /// Ends it and waits until it has gone.
    ///
    /// # Errors
    /// When it can't be ended.
    pub fn stop(self) -> Result<()> {
        self.process.stop()
    }
}
