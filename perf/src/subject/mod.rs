//! The servers that are compared: how each is started, with what durability, and spoken to.

mod acknowledged;
mod kafka;
mod lines;
mod native;
mod nats;
mod process;
mod rabbitmq;
mod redis;
pub mod reference;
mod tackboard;

use std::{path::Path, path::PathBuf};

use anyhow::Result;
use serde::Serialize;
use tackboard_schema::Durability;

use crate::{
    drive::Lane,
    workload::{Pace, Workload},
};
use kafka::Flush;
use process::ServerProcess;
use redis::AppendFsync;
use reference::Duty;
use tackboard::Door;

/// A server under comparison, with the durability it is run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A server of a few lines that does the least: what the driver and the machine can do at best.
    Reference(Duty),
    /// Our broker.
    Tackboard(#[serde(serialize_with = "durability_name")] Durability),
    /// The same, spoken to in Kafka's protocol.
    TackboardKafka(#[serde(serialize_with = "durability_name")] Durability),
    /// Apache Kafka.
    Kafka(Flush),
    /// Redis streams.
    Redis(AppendFsync),
    /// NATS JetStream.
    Nats,
    /// RabbitMQ streams.
    RabbitMq,
}

fn durability_name<S: serde::Serializer>(
    durability: &Durability,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(durability)
}

/// Where the parts that `run` needs are, and what the servers may use.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The broker's binary.
    pub tackboard: PathBuf,
    /// The folder with Kafka's archives, if it takes part.
    pub kafka: Option<PathBuf>,
    /// CPUs of the servers; `None` leaves all to them.
    pub server_cpus: Option<Vec<usize>>,
    /// CPUs of the drivers; `None` leaves all to them.
    pub driver_cpus: Option<Vec<usize>>,
}

/// A server that runs, in a folder that goes with it.
pub struct Running {
    process: ServerProcess,
    address: std::net::SocketAddr,
    subject: Subject,
}

/// The servers that need nothing but this project, the one that ratios refer to first.
pub const OURS: [Subject; 5] = [
    BUFFERED_WRITE,
    Subject::Reference(Duty::Crc),
    Subject::Reference(Duty::Null),
    Subject::Tackboard(Durability::Written),
    Subject::Tackboard(Durability::Fsync),
];

/// Our broker through its door for clients of Kafka.
pub const DOORS: [Subject; 2] = [
    Subject::TackboardKafka(Durability::Written),
    Subject::TackboardKafka(Durability::Fsync),
];

/// Other brokers. They are compared with the one of ours whose answers mean the same.
pub const PEERS: [Subject; 6] = [
    Subject::Kafka(Flush::Never),
    Subject::Kafka(Flush::EveryBatch),
    Subject::Redis(AppendFsync::EverySecond),
    REDIS_ALWAYS,
    Subject::Nats,
    Subject::RabbitMq,
];

/// What our broker's `written` is held against.
pub const BUFFERED_WRITE: Subject = Subject::Reference(Duty::Write);
/// What our broker's `fsync` is held against.
pub const REDIS_ALWAYS: Subject = Subject::Redis(AppendFsync::Always);

impl Subject {
    /// The durability of ours at which an answer means the same as this other broker's.
    pub fn comparable(self) -> Option<Durability> {
        match self {
            Subject::Kafka(Flush::EveryBatch) | Subject::Redis(AppendFsync::Always) => {
                Some(Durability::Fsync)
            }
            Subject::Kafka(Flush::Never)
            | Subject::Redis(AppendFsync::EverySecond)
            | Subject::Nats
            | Subject::RabbitMq => Some(Durability::Written),
            Subject::Reference(_) | Subject::Tackboard(_) | Subject::TackboardKafka(_) => None,
        }
    }

    /// Whether it is Apache Kafka, however it is run.
    pub fn is_kafka(self) -> bool {
        matches!(self, Subject::Kafka(_))
    }

    /// What tables call it.
    pub fn name(self) -> String {
        match self {
            Subject::Reference(duty) => format!("reference, {}", duty.text()),
            Subject::Tackboard(durability) => format!("Tackboard, {durability}"),
            Subject::TackboardKafka(durability) => format!("Tackboard, Kafka door, {durability}"),
            Subject::Kafka(Flush::Never) => "Kafka, page cache".to_owned(),
            Subject::Kafka(Flush::EveryBatch) => "Kafka, flush.messages=1".to_owned(),
            Subject::Redis(fsync) => format!("Redis, appendfsync {}", fsync.text()),
            Subject::Nats => "NATS JetStream, page cache".to_owned(),
            Subject::RabbitMq => "RabbitMQ streams, page cache".to_owned(),
        }
    }

    /// Whether a workload of this pace can be run against it: reading back is spoken here in the native protocol alone.
    pub fn takes(self, pace: Pace) -> bool {
        match self {
            Subject::Reference(_) | Subject::Tackboard(_) => true,
            Subject::TackboardKafka(_)
            | Subject::Kafka(_)
            | Subject::Redis(_)
            | Subject::Nats
            | Subject::RabbitMq => !matches!(pace, Pace::Read { .. }),
        }
    }

    /// Starts it, with its data under `folder`.
    ///
    /// # Errors
    /// When it does not come up; what it printed is in the error.
    pub fn start(self, setup: &Setup, folder: &Path) -> Result<Running> {
        let (process, address) = match self {
            Subject::Reference(duty) => reference::start(duty, setup, folder)?,
            Subject::Tackboard(_) => tackboard::start(setup, folder, Door::Native)?,
            Subject::TackboardKafka(_) => tackboard::start(setup, folder, Door::Kafka)?,
            Subject::Kafka(_) => kafka::start(setup, folder)?,
            Subject::Redis(fsync) => redis::start(fsync, setup, folder)?,
            Subject::Nats => nats::start(setup, folder)?,
            Subject::RabbitMq => rabbitmq::start(setup, folder)?,
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
            Subject::TackboardKafka(durability) => {
                tackboard::kafka_lanes(self.address, durability, workload)
            }
            Subject::Kafka(flush) => kafka::lanes(self.address, flush.setting(), workload),
            Subject::Redis(_) => redis::lanes(self.address, workload),
            Subject::Nats => nats::lanes(self.address, workload),
            Subject::RabbitMq => rabbitmq::lanes(self.address, workload),
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
