//! The broker under test: one inside this process, or one somewhere else.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tackboard_broker::check::{self, Finding, Level};
use tackboard_broker::config::{self, Config, Sources};
use tackboard_broker::embedded::{self, BrokerStats, Handle};
use tackboard_client::Protocol;

use crate::machine::temporary_folder::TemporaryFolder;

/// Where the events go.
pub enum Broker {
    /// Inside this process, on ports that the system picked, with its data in a folder that goes away. The broker comes
    /// first so that it is dropped before its folder.
    Embedded(Box<Handle>, TemporaryFolder),
    /// Somewhere else.
    Remote(Vec<String>),
}

impl Broker {
    /// Starts one inside this process, with a port for this protocol.
    pub fn embed(
        protocol: Protocol,
        parent: Option<&Path>,
        cpus: Option<&[usize]>,
    ) -> Result<Self> {
        let folder = TemporaryFolder::create(parent)?;
        let mut sets = vec![
            "native.bind=127.0.0.1:0".to_owned(),
            "native.core_bind=127.0.0.1:0".to_owned(),
            match protocol {
                Protocol::Native => "kafka.bind=off".to_owned(),
                Protocol::Kafka => "kafka.bind=127.0.0.1:0".to_owned(),
            },
            "http.bind=off".to_owned(),
        ];
        if let Some(cpus) = cpus {
            sets.push(format!("cores={cpus:?}"));
        }
        let data_dir = Some(folder.path().join("data"));
        let config = config::load(&Sources {
            file: None,
            data_dir,
            sets,
        })
        .context("settings of the embedded broker")?;
        refuse_faults(&config)?;
        let handle = embedded::start(config).context("the embedded broker did not start")?;
        Ok(Self::Embedded(Box::new(handle), folder))
    }

    /// Addresses to connect to.
    pub fn addresses(&self) -> Vec<String> {
        match self {
            Self::Embedded(handle, _) => vec![address(handle).to_string()],
            Self::Remote(addresses) => addresses.clone(),
        }
    }

    /// One line about it.
    pub fn description(&self) -> String {
        match self {
            Self::Embedded(handle, _) => {
                let cores = handle
                    .config()
                    .cores
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>();
                let cores = match &cores[..] {
                    [one] => format!("core {one}"),
                    [first @ .., last] => format!("cores {} and {last}", first.join(", ")),
                    [] => "no cores".into(),
                };
                format!(
                    "embedded broker on {}, {cores}, data in a temporary folder (removed at exit)",
                    address(handle)
                )
            }
            Self::Remote(addresses) => format!("broker {}", addresses.join(", ")),
        }
    }

    /// What its data lies on, if it is ours.
    pub fn storage(&self) -> Option<String> {
        match self {
            Self::Embedded(handle, folder) => {
                let how = match handle.storage().refused {
                    None => "direct I/O",
                    Some(_) => "buffered I/O",
                };
                Some(format!("{} {how}", folder.file_system().name))
            }
            Self::Remote(_) => None,
        }
    }

    /// Bytes that may be written: a quarter of what was free, if it is ours.
    pub fn bytes_max(&self) -> Option<u64> {
        match self {
            Self::Embedded(_, folder) => Some(folder.file_system().free_bytes / 4),
            Self::Remote(_) => None,
        }
    }

    /// What it has done so far, if it is ours.
    pub fn stats(&self) -> Option<BrokerStats> {
        match self {
            Self::Embedded(handle, _) => Some(handle.stats()),
            Self::Remote(_) => None,
        }
    }

    /// Ends it, if it is ours, and removes its data. False if it did not end as it should.
    pub fn stop(self) -> bool {
        match self {
            Self::Embedded(handle, folder) => {
                let clean = handle.shutdown();
                drop(folder);
                clean
            }
            Self::Remote(_) => true,
        }
    }
}

/// The port for the protocol that it was embedded for: it has none for Kafka's unless that is it.
fn address(handle: &Handle) -> SocketAddr {
    handle
        .kafka_address()
        .unwrap_or_else(|| handle.native_address())
}

/// Names what this machine lacks, and what mends it, before anything fails because of it.
fn refuse_faults(config: &Config) -> Result<()> {
    let findings = check::run(config);
    let faults = findings
        .iter()
        .filter(|finding| finding.level == Level::Fault)
        .map(told)
        .collect::<Vec<_>>();
    if !faults.is_empty() {
        bail!("this machine can't run the broker:\n{}", faults.join("\n"));
    }
    Ok(())
}

fn told(finding: &Finding) -> String {
    let remedy = finding
        .remedy
        .as_ref()
        .map(|remedy| format!("\n    {remedy}"))
        .unwrap_or_default();
    format!("  {}: {}{remedy}", finding.name, finding.text)
}
