//! Our broker as a server under comparison.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::{Context, Result};
use tackboard_client::{Admin, ClientConfig, NewTopic};
use tackboard_schema::Durability;

use super::{Setup, kafka, native, process::ServerProcess};
use crate::{drive::Lane, workload::Workload};

/// The same on every machine: a tail cache of some 700 MiB, so that what is read hot and what cold does not hang on the
/// host's memory.
pub const MEMORY_TOTAL_BYTES: u64 = 2 << 30;

/// Which of its ports is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// That of its own protocol.
    Native,
    /// That for clients of Kafka.
    Kafka,
}

/// Starts it with its defaults but for its memory, on ports that the system picks, and says where this door is.
///
/// # Errors
/// When it does not come up.
pub fn start(setup: &Setup, folder: &Path, door: Door) -> Result<(ServerProcess, SocketAddr)> {
    let mut command = Command::new(&setup.tackboard);
    command.arg("serve").arg("--data").arg(folder.join("data"));
    let (kafka, told) = match door {
        Door::Native => ("kafka.bind=off", "native "),
        Door::Kafka => ("kafka.bind=127.0.0.1:0", "kafka "),
    };
    for setting in [
        "native.bind=127.0.0.1:0",
        "native.core_bind=127.0.0.1:0",
        kafka,
        "http.bind=off",
        "logging.level=warn",
    ] {
        command.args(["--set", setting]);
    }
    let memory = format!("memory.total={MEMORY_TOTAL_BYTES}");
    command.args(["--set", &memory]);
    if let Some(cpus) = &setup.server_cpus {
        let cores: Vec<String> = cpus.iter().map(usize::to_string).collect();
        command
            .arg("--set")
            .arg(format!("cores=[{}]", cores.join(",")));
    }
    let mut address = None;
    ServerProcess::start(command, setup.server_cpus.as_deref(), move |line| {
        if let Some(rest) = line.strip_prefix(told) {
            address = rest.split_whitespace().next()?.parse().ok();
        }
        line.starts_with("ready in").then_some(address)?
    })
}

/// A topic with a partition for each connection, and each connection to the core that owns its partition.
///
/// # Errors
/// When the broker refuses or a partition has no leader.
pub fn lanes(
    address: SocketAddr,
    durability: Durability,
    workload: &Workload,
) -> Result<Vec<Lane>> {
    let mut admin = Admin::connect(&[address.to_string()], ClientConfig::default())?;
    let topic = NewTopic::new(native::TOPIC)
        .partitions(workload.connections as i32)
        .config("durability", durability.to_string());
    admin.create_topic(&topic)?;
    let cluster = admin.describe_cluster(Some(&[native::TOPIC]))?;
    let topic = cluster
        .topics
        .first()
        .context("the topic was just created")?;
    let mut lanes = Vec::with_capacity(workload.connections);
    for partition in &topic.partitions {
        let broker = cluster
            .brokers
            .iter()
            .find(|broker| Some(broker.broker_id) == partition.leader)
            .context("a partition without a leader")?;
        let owner = broker.core_addresses.get(usize::from(partition.core.0));
        let owner = owner
            .cloned()
            .flatten()
            .unwrap_or_else(|| broker.address.clone());
        lanes.push(native::lane(owner.parse()?, partition.partition, workload)?);
    }
    Ok(lanes)
}

/// The same through the door for clients of Kafka, who are served by whichever core takes their connection.
///
/// # Errors
/// When the broker refuses.
pub fn kafka_lanes(
    address: SocketAddr,
    durability: Durability,
    workload: &Workload,
) -> Result<Vec<Lane>> {
    let setting = ("tackboard.durability", durability.to_string());
    kafka::lanes(address, Some(setting), workload)
}
