//! Kafka's protocol as a driver speaks it, and Apache Kafka: produce requests of version 7, one partition a connection.

use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use super::{
    Setup,
    process::{ServerProcess, free_port},
};
use crate::{
    drive::{Answers, Lane, Replies},
    workload::{Workload, record_batch},
};

const TOPIC: &str = "perf";
const PRODUCE: i16 = 0;
const PRODUCE_VERSION: i16 = 7;
const CREATE_TOPICS: i16 = 19;
const CREATE_TOPICS_VERSION: i16 = 4;
/// How long Kafka may take for a request, in milliseconds.
const TIMEOUT_MS: i32 = 30_000;
/// How long new partitions may take to get their leaders.
const LEADER_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longest answer that is believed.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Any id of a cluster will do: 16 bytes in base64.
const CLUSTER_ID: &str = "dGFja2JvYXJkLXBlcmYtMQ";

/// When Kafka syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// When the kernel likes: an answer comes from the page cache.
    Never,
    /// Before it answers (`flush.messages=1`).
    EveryBatch,
}

/// Starts a broker that is its own controller.
///
/// # Errors
/// When its archives are not there or it does not come up.
pub fn start(setup: &Setup, folder: &Path) -> Result<(ServerProcess, SocketAddr)> {
    let classes = setup
        .kafka
        .as_deref()
        .context("name the folder with Kafka's archives with --kafka DIR")?;
    let (address, controller) = (free_port()?, free_port()?);
    let settings = folder.join("server.properties");
    let mut file = std::fs::File::create(&settings)?;
    write!(
        file,
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@{controller}\n\
         listeners=PLAINTEXT://{address},CONTROLLER://{controller}\ncontroller.listener.names=CONTROLLER\n\
         log.dirs={}\nauto.create.topics.enable=false\noffsets.topic.replication.factor=1\n",
        folder.join("logs").display()
    )?;
    let class_path = format!("{}/*", classes.display());
    let formatted = Command::new("java")
        .args(["-cp", &class_path, "kafka.tools.StorageTool", "format"])
        .args(["-t", CLUSTER_ID, "-c"])
        .arg(&settings)
        .output()
        .context("java can't be started")?;
    ensure!(
        formatted.status.success(),
        "Kafka's storage could not be formatted: {}",
        String::from_utf8_lossy(&formatted.stderr)
    );
    let mut command = Command::new("java");
    // The heap and collector of Kafka's own start script; its log goes to a file through its default set-up.
    command
        .args([
            "-Xmx1G",
            "-Xms1G",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-cp",
            &class_path,
        ])
        .arg("kafka.Kafka")
        .arg(&settings);
    let silent = ServerProcess::start_silent(command, setup.server_cpus.as_deref(), address)?;
    Ok((silent, address))
}

impl Flush {
    /// The setting of a topic that has it so.
    pub fn setting(self) -> Option<TopicSetting> {
        match self {
            Flush::Never => None,
            Flush::EveryBatch => Some(("flush.messages", "1".into())),
        }
    }
}

/// Key and value.
pub type TopicSetting = (&'static str, String);

/// A topic with this setting, and with a partition for each connection.
///
/// # Errors
/// When the broker refuses.
pub fn lanes(
    address: SocketAddr,
    setting: Option<TopicSetting>,
    workload: &Workload,
) -> Result<Vec<Lane>> {
    create_topic(address, setting, workload.connections)?;
    let batch = record_batch(workload);
    await_leaders(address, &batch, workload.connections)?;
    (0..workload.connections)
        .map(|index| {
            let stream = TcpStream::connect(address).context("no connection to Kafka")?;
            Ok(Lane {
                stream,
                request: produce_request(index as i32, &batch),
                replies: Box::new(ProduceResponses),
                reading: None,
            })
        })
        .collect()
}

fn create_topic(
    address: SocketAddr,
    setting: Option<TopicSetting>,
    partitions: usize,
) -> Result<()> {
    let mut body = Vec::new();
    body.extend_from_slice(&1i32.to_be_bytes());
    string(&mut body, TOPIC);
    body.extend_from_slice(&(partitions as i32).to_be_bytes());
    body.extend_from_slice(&1i16.to_be_bytes());
    body.extend_from_slice(&0i32.to_be_bytes());
    body.extend_from_slice(&i32::from(setting.is_some()).to_be_bytes());
    if let Some((key, value)) = setting {
        string(&mut body, key);
        string(&mut body, &value);
    }
    body.extend_from_slice(&TIMEOUT_MS.to_be_bytes());
    body.push(0);
    let mut stream = TcpStream::connect(address).context("no connection to Kafka")?;
    stream.write_all(&request(CREATE_TOPICS, CREATE_TOPICS_VERSION, &body))?;
    Answers::new(Box::new(CreateTopicsResponse)).next(&mut stream)?;
    Ok(())
}

/// A topic is created before its partitions lead; until then they refuse.
fn await_leaders(address: SocketAddr, batch: &[u8], partitions: usize) -> Result<()> {
    let deadline = Instant::now() + LEADER_WAIT_MAX;
    for partition in 0..partitions as i32 {
        loop {
            let mut stream = TcpStream::connect(address).context("no connection to Kafka")?;
            stream.write_all(&produce_request(partition, batch))?;
            match Answers::new(Box::new(ProduceResponses)).next(&mut stream) {
                Ok(_) => break,
                Err(refusal) if Instant::now() > deadline => return Err(refusal),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
    Ok(())
}

fn produce_request(partition: i32, batch: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    // No transaction; acks of all.
    body.extend_from_slice(&(-1i16).to_be_bytes());
    body.extend_from_slice(&(-1i16).to_be_bytes());
    body.extend_from_slice(&TIMEOUT_MS.to_be_bytes());
    body.extend_from_slice(&1i32.to_be_bytes());
    string(&mut body, TOPIC);
    body.extend_from_slice(&1i32.to_be_bytes());
    body.extend_from_slice(&partition.to_be_bytes());
    body.extend_from_slice(&(batch.len() as i32).to_be_bytes());
    body.extend_from_slice(batch);
    request(PRODUCE, PRODUCE_VERSION, &body)
}

/// Length, header of version 1 (key, version, correlation id, client id), body.
fn request(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&1i32.to_be_bytes());
    string(&mut bytes, "perf");
    bytes.extend_from_slice(body);
    let length = (bytes.len() - 4) as i32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The whole answer at the start of `bytes`, without its length.
fn answer(bytes: &[u8]) -> Result<Option<&[u8]>> {
    let Some(length) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
    Ok(bytes.get(4..4 + length))
}

/// The 16-bit number `at` bytes into an answer.
fn i16_at(answer: &[u8], at: usize) -> Result<i16> {
    let bytes = answer.get(at..at + 2).context("an answer is cut short")?;
    Ok(i16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Correlation id, one topic by name, one partition: index, error code, offsets.
struct ProduceResponses;

impl Replies for ProduceResponses {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)> {
        const ERROR_CODE_AT: usize = 4 + 4 + (2 + TOPIC.len()) + 4 + 4;
        let (mut used, mut count) = (0, 0);
        while let Some(answer) = answer(&bytes[used..])? {
            let code = i16_at(answer, ERROR_CODE_AT)?;
            if code != 0 {
                bail!("Kafka refused with error code {code}");
            }
            used += 4 + answer.len();
            count += 1;
        }
        Ok((used, count))
    }
}

/// Correlation id, throttle time, one topic: name, error code, message.
struct CreateTopicsResponse;

impl Replies for CreateTopicsResponse {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, u64)> {
        const ERROR_CODE_AT: usize = 4 + 4 + 4 + (2 + TOPIC.len());
        let Some(answer) = answer(bytes)? else {
            return Ok((0, 0));
        };
        let code = i16_at(answer, ERROR_CODE_AT)?;
        ensure!(
            code == 0,
            "Kafka did not create the topic: error code {code}"
        );
        Ok((4 + answer.len(), 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_and_error_codes_seen() {
        let response = |code: i16| {
            let mut body = 1i32.to_be_bytes().to_vec();
            body.extend_from_slice(&1i32.to_be_bytes());
            string(&mut body, TOPIC);
            body.extend_from_slice(&1i32.to_be_bytes());
            body.extend_from_slice(&0i32.to_be_bytes());
            body.extend_from_slice(&code.to_be_bytes());
            body.extend_from_slice(&[0; 28]);
            let mut bytes = (body.len() as i32).to_be_bytes().to_vec();
            bytes.extend_from_slice(&body);
            bytes
        };
        let two = response(0).repeat(2);
        assert_eq!(ProduceResponses.take(&two).unwrap(), (two.len(), 2));
        assert_eq!(
            ProduceResponses.take(&two[..two.len() - 1]).unwrap(),
            (two.len() / 2, 1)
        );
        assert!(ProduceResponses.take(&response(3)).is_err());
        assert!(ProduceResponses.take(&i32::MAX.to_be_bytes()).is_err());
    }
}
