//! Reference servers: a blocking thread a connection that reads produce frames, does one small duty, and answers.
//!
//! They are what a driver can reach at most on a machine, and what a broker's own work is measured against.

use std::{
    fs::File,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tackboard_schema::{
    ErrorCode, Offset, PartitionIndex, TimestampMs,
    frame::{self, ApiKey, Kind, Parsed},
    native::{self, FetchResultHead, HeadBuilder, ProduceResultHead, read_head},
    record_batch::{BatchView, check_batch},
};

use super::{
    Setup,
    native::{FETCH_BYTES, FRAME_BYTES_MAX, TOPIC, write_frame},
    process::ServerProcess,
};

/// What one read takes.
const READ_BYTES: usize = 256 << 10;

/// What a reference does with a batch before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// Nothing.
    Null,
    /// Checks its checksum.
    Crc,
    /// Checks its checksum and writes it to a file through the page cache, a call a batch.
    Write,
}

impl Duty {
    /// What tables say.
    pub fn text(self) -> &'static str {
        match self {
            Duty::Null => "answers only",
            Duty::Crc => "CRC",
            Duty::Write => "CRC + buffered write",
        }
    }

    fn argument(self) -> &'static str {
        match self {
            Duty::Null => "null",
            Duty::Crc => "crc",
            Duty::Write => "write",
        }
    }
}

/// How a reference is started.
#[derive(clap::Args)]
pub struct ReferenceArguments {
    /// What it does with a batch.
    #[arg(long, value_enum)]
    duty: Duty,
    /// Where it writes.
    #[arg(long)]
    data: PathBuf,
}

/// Starts this program as a reference server.
///
/// # Errors
/// When it does not come up.
pub fn start(duty: Duty, setup: &Setup, folder: &Path) -> Result<(ServerProcess, SocketAddr)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["reference", "--duty", duty.argument(), "--data"])
        .arg(folder);
    ServerProcess::start(command, setup.server_cpus.as_deref(), |line| {
        line.strip_prefix("listening ")?.parse().ok()
    })
}

/// Serves until it is killed.
///
/// # Errors
/// When it can't listen.
pub fn serve(arguments: &ReferenceArguments) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("listening {}", listener.local_addr()?);
    for (index, stream) in listener.incoming().enumerate() {
        let (stream, duty) = (stream?, arguments.duty);
        let path = arguments.data.join(format!("{index}.log"));
        thread::spawn(move || {
            if let Err(error) = serve_connection(stream, duty, &path) {
                eprintln!("reference: {error:#}");
            }
        });
    }
    Ok(())
}

fn serve_connection(mut stream: TcpStream, duty: Duty, path: &Path) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut file = match duty {
        Duty::Write => Some(File::create(path)?),
        _ => None,
    };
    let mut buffer = vec![0; READ_BYTES];
    let (mut filled, produced) = (0, produce_answer());
    let mut answers = Vec::new();
    // What every fetch is answered with, from memory: the first batch again and again.
    let mut log = None;
    loop {
        let mut used = 0;
        answers.clear();
        loop {
            match frame::parse(&buffer[used..filled], FRAME_BYTES_MAX)? {
                Parsed::Frame(frame, length) => {
                    if frame.prefix.api_key == ApiKey::Fetch.key() {
                        stream.write_all(log.as_deref().context("nothing was written yet")?)?;
                    } else {
                        if log.is_none() {
                            log = Some(fetch_answer(BatchView::first(frame.body)?.bytes()));
                        }
                        take(&frame, duty, file.as_mut())?;
                        answers.extend_from_slice(&produced);
                    }
                    used += length;
                }
                Parsed::NeedMore(wanted) => {
                    buffer.resize(buffer.len().max(wanted), 0);
                    break;
                }
            }
        }
        stream.write_all(&answers)?;
        buffer.copy_within(used..filled, 0);
        filled -= used;
        match stream.read(&mut buffer[filled..])? {
            0 => return Ok(()),
            got => filled += got,
        }
    }
}

fn take(frame: &frame::Frame<'_>, duty: Duty, file: Option<&mut File>) -> Result<()> {
    if duty == Duty::Null {
        return Ok(());
    }
    let head = read_head::<native::ProduceRequest<'_>>(frame.head)?;
    let entries = head.entries();
    ensure!(entries.len() == 1, "a reference takes one batch a request");
    let length = entries.get(0).byte_length() as usize;
    let body = frame.body.get(..length).context("a batch is cut short")?;
    let batch = check_batch(body, FRAME_BYTES_MAX)?;
    if let Some(file) = file {
        file.write_all(batch.bytes())?;
    }
    Ok(())
}

/// An answer of about [`FETCH_BYTES`] made of one batch.
fn fetch_answer(batch: &[u8]) -> Vec<u8> {
    let batches = batch.repeat((FETCH_BYTES as usize / batch.len()).max(1));
    let mut heads = HeadBuilder::new();
    let head = heads.fetch_response(&[FetchResultHead {
        error_code: ErrorCode::None,
        message: None,
        topic: TOPIC,
        partition: PartitionIndex(0),
        high_watermark: Offset(0),
        log_start_offset: Offset(0),
        byte_length: batches.len() as u32,
    }]);
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Kind::Response, ApiKey::Fetch, head, &batches);
    bytes
}

/// The answer to every produce request: drivers send one batch at a time to one partition, and don't look at offsets.
fn produce_answer() -> Vec<u8> {
    let mut heads = HeadBuilder::new();
    let head = heads.produce_response(&[ProduceResultHead {
        error_code: ErrorCode::None,
        message: None,
        topic: TOPIC,
        partition: PartitionIndex(0),
        base_offset: Offset(0),
        log_append_time: TimestampMs(-1),
        log_start_offset: Offset(0),
    }]);
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Kind::Response, ApiKey::Produce, head, &[]);
    bytes
}
