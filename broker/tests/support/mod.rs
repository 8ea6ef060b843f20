//! What the tests of the whole broker share: a broker on ports of its own, and a client that speaks bare frames.

#![allow(dead_code, reason = "each test uses a part")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use tackboard_broker::{
    config::{Sources, load},
    embedded::{Handle, start},
};
use tackboard_schema::{
    Acks, CorrelationId, Offset, PartitionIndex, TimestampMs,
    frame::{self, ApiKey, Kind, Parsed},
    native::{
        CreateTopicRequest, CreateTopicRequestArgs, CreateTopicResponse, DeleteTopicRequest,
        DeleteTopicRequestArgs, DeleteTopicResponse, DescribeTopicRequest,
        DescribeTopicRequestArgs, DescribeTopicResponse, FetchEntryHead, FetchRequestHead,
        FetchResponse, HeadBuilder, ListOffsetsEntry, ListOffsetsEntryArgs, ListOffsetsRequest,
        ListOffsetsRequestArgs, ListOffsetsResponse, ProduceEntryHead, ProduceRequestHead,
        ProduceResponse, read_head,
    },
    record_batch::{BatchBuilder, BatchIterator, BatchView, Compression, ProducerStamp},
};

/// No answer takes longer in a test that works.
pub const PATIENCE: Duration = Duration::from_secs(20);
const FRAME_BYTES_MAX: u32 = 32 << 20;

/// A folder on a real disk, gone with the value.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder for the test")
}

/// Starts a broker in `data` on ports that the system picks, on the given cores.
pub fn broker(data: &Path, cores: &str, more: &[&str]) -> Handle {
    let mut sets: Vec<String> = [
        "native.bind=127.0.0.1:0",
        "native.core_bind=127.0.0.1:0",
        "kafka.bind=127.0.0.1:0",
        "http.bind=127.0.0.1:0",
        "memory.total=256 MiB",
    ]
    .map(String::from)
    .to_vec();
    sets.push(format!("cores={cores}"));
    sets.extend(more.iter().map(|set| (*set).to_owned()));
    let sources = Sources {
        data_dir: Some(data.to_owned()),
        sets,
        ..Sources::default()
    };
    let config = load(&sources).unwrap_or_else(|faults| panic!("{faults}"));
    start(config).unwrap_or_else(|error| panic!("{error}"))
}

/// Bytes of the metadata log.
pub fn metadata_bytes(data: &Path) -> u64 {
    let files = std::fs::read_dir(data.join("meta")).expect("a folder");
    let length = |file: std::fs::DirEntry| file.metadata().expect("a file").len();
    files.map(|file| length(file.expect("a name"))).sum()
}

/// Looks again and again until it is so.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What the broker says at `/metrics`.
pub fn metrics(handle: &Handle) -> String {
    let address = handle.http_address().expect("its door is open");
    let mut stream = TcpStream::connect(address).expect("listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: tackboard\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answers");
    answer
}

/// A connection that speaks bare frames.
pub struct Raw {
    stream: TcpStream,
    buffer: Vec<u8>,
    next_id: u64,
    heads: HeadBuilder,
}

/// A frame as it arrived.
pub struct Answer {
    /// Which request it answers.
    pub id: u64,
    /// Its API.
    pub api: u16,
    /// Its head.
    pub head: Vec<u8>,
    /// Its body, padding included.
    pub body: Vec<u8>,
}

impl Raw {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Raw {
        Self::over(TcpStream::connect(address).expect("the broker listens"))
    }

    /// Over a socket that is connected.
    pub fn over(stream: TcpStream) -> Raw {
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a time-out can be set");
        Raw {
            stream,
            buffer: Vec::new(),
            next_id: 1,
            heads: HeadBuilder::new(),
        }
    }

    /// The socket, for misuse.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a request without waiting for its answer.
    pub fn send(&mut self, api: ApiKey, head: &[u8], body: &[u8]) -> u64 {
        self.try_send(api, head, body).expect("the broker reads")
    }

    /// The same to a broker that may have gone.
    pub fn try_send(&mut self, api: ApiKey, head: &[u8], body: &[u8]) -> std::io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let mut bytes = Vec::new();
        frame::encode_head(
            &mut bytes,
            Kind::Request,
            api,
            CorrelationId(id),
            head,
            body.len(),
        );
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(frame::padding(body.len()));
        self.stream.write_all(&bytes)?;
        Ok(id)
    }

    /// The next answer, whichever it is; `None` when the broker hung up.
    pub fn receive(&mut self) -> Option<Answer> {
        loop {
            match frame::parse(&self.buffer, FRAME_BYTES_MAX).expect("the broker keeps framing") {
                Parsed::Frame(frame, length) => {
                    let answer = Answer {
                        id: frame.prefix.correlation_id.0,
                        api: frame.prefix.api_key,
                        head: frame.head.to_vec(),
                        body: frame.body.to_vec(),
                    };
                    self.buffer.drain(..length);
                    return Some(answer);
                }
                Parsed::NeedMore(_) => {
                    let mut chunk = vec![0; 1 << 16];
                    match self.stream.read(&mut chunk) {
                        Ok(0) => return None,
                        Ok(got) => self.buffer.extend_from_slice(&chunk[..got]),
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                            return None;
                        }
                        Err(error) => panic!("no answer: {error}"),
                    }
                }
            }
        }
    }

    fn ask(&mut self, api: ApiKey, head: &[u8], body: &[u8]) -> Answer {
        let id = self.send(api, head, body);
        let answer = self.receive().expect("an answer");
        assert_eq!(answer.id, id);
        answer
    }

    /// Creates a topic; returns the error code.
    pub fn create_topic(&mut self, name: &str, partitions: i32) -> i16 {
        let mut heads = std::mem::take(&mut self.heads);
        let head = heads.build(|builder| {
            let args = CreateTopicRequestArgs {
                name: Some(builder.create_string(name)),
                partitions,
                ..Default::default()
            };
            CreateTopicRequest::create(builder, &args)
        });
        let answer = self.ask(ApiKey::CreateTopic, head, &[]);
        self.heads = heads;
        read_head::<CreateTopicResponse<'_>>(&answer.head)
            .expect("its head")
            .error_code()
    }

    /// Deletes a topic; returns the error code.
    pub fn delete_topic(&mut self, name: &str) -> i16 {
        let mut heads = std::mem::take(&mut self.heads);
        let head = heads.build(|builder| {
            let name = Some(builder.create_string(name));
            DeleteTopicRequest::create(builder, &DeleteTopicRequestArgs { name })
        });
        let answer = self.ask(ApiKey::DeleteTopic, head, &[]);
        self.heads = heads;
        read_head::<DeleteTopicResponse<'_>>(&answer.head)
            .expect("its head")
            .error_code()
    }

    /// Describes a topic; returns its error code and those of its partitions.
    pub fn describe_topic(&mut self, name: &str) -> Vec<i16> {
        let mut heads = std::mem::take(&mut self.heads);
        let head = heads.build(|builder| {
            let name = Some(builder.create_string(name));
            DescribeTopicRequest::create(builder, &DescribeTopicRequestArgs { name })
        });
        let answer = self.ask(ApiKey::DescribeTopic, head, &[]);
        self.heads = heads;
        assert_eq!(answer.api, ApiKey::DescribeTopic.key());
        let head = read_head::<DescribeTopicResponse<'_>>(&answer.head).expect("its head");
        let partitions = head.partitions().into_iter().flatten();
        std::iter::once(head.error_code())
            .chain(partitions.map(|partition| partition.error_code()))
            .collect()
    }

    /// Sends a produce request.
    pub fn send_produce(&mut self, topic: &str, partition: i32, batch: &[u8]) -> u64 {
        self.send_produce_with(None, topic, partition, batch)
    }

    /// Sends a produce request to a broker that may have gone.
    pub fn try_send_produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: &[u8],
    ) -> std::io::Result<u64> {
        self.try_send_produce_with(None, topic, partition, batch)
    }

    /// Sends a produce request that asks for these acks.
    pub fn send_produce_with(
        &mut self,
        acks: Option<Acks>,
        topic: &str,
        partition: i32,
        batch: &[u8],
    ) -> u64 {
        let sent = self.try_send_produce_with(acks, topic, partition, batch);
        sent.expect("the broker reads")
    }

    fn try_send_produce_with(
        &mut self,
        acks: Option<Acks>,
        topic: &str,
        partition: i32,
        batch: &[u8],
    ) -> std::io::Result<u64> {
        let mut heads = std::mem::take(&mut self.heads);
        let request = ProduceRequestHead {
            acks,
            durability: None,
            timeout_ms: 10_000,
        };
        let entry = ProduceEntryHead {
            topic,
            partition: PartitionIndex(partition),
            byte_length: batch.len() as u32,
        };
        let id = self.try_send(
            ApiKey::Produce,
            heads.produce_request(&request, &[entry]),
            batch,
        );
        self.heads = heads;
        id
    }

    /// Appends a batch; its first offset, or the error code and message.
    pub fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: &[u8],
    ) -> Result<i64, (i16, String)> {
        let id = self.send_produce(topic, partition, batch);
        let answer = self.receive().expect("an answer");
        assert_eq!(answer.id, id);
        produced(&answer)
    }

    /// Sends a fetch.
    pub fn send_fetch(&mut self, wait_ms: u32, entries: &[(&str, i32, i64)]) -> u64 {
        let mut heads = std::mem::take(&mut self.heads);
        let request = FetchRequestHead {
            wait_ms_max: wait_ms,
            bytes_min: 1,
            bytes_max: 8 << 20,
        };
        let entries: Vec<_> = (entries.iter())
            .map(|(topic, partition, offset)| FetchEntryHead {
                topic,
                partition: PartitionIndex(*partition),
                fetch_offset: Offset(*offset),
                bytes_max: 1 << 20,
            })
            .collect();
        let id = self.send(ApiKey::Fetch, heads.fetch_request(&request, &entries), &[]);
        self.heads = heads;
        id
    }

    /// Fetches from one partition: the values of the records from `offset` on, or the error code.
    pub fn fetch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> Result<Vec<(i64, Vec<u8>)>, i16> {
        self.send_fetch(200, &[(topic, partition, offset)]);
        let answer = self.receive().expect("an answer");
        let mut results = fetched(&answer);
        let records = results.remove(0)?;
        Ok(records
            .into_iter()
            .filter(|(at, _)| *at >= offset)
            .collect())
    }

    /// Looks an offset up: the offset and its timestamp.
    pub fn list_offset(&mut self, topic: &str, partition: i32, timestamp_ms: i64) -> (i64, i64) {
        let listed = self.list_offsets(&[(topic, partition, timestamp_ms)]);
        listed[0].unwrap_or_else(|code| panic!("refused with {code}"))
    }

    /// Looks offsets up: the offset and its timestamp, or the error code, of each.
    pub fn list_offsets(&mut self, entries: &[(&str, i32, i64)]) -> Vec<Result<(i64, i64), i16>> {
        let mut heads = std::mem::take(&mut self.heads);
        let head = heads.build(|builder| {
            let entries: Vec<_> = (entries.iter())
                .map(|(topic, partition, timestamp_ms)| {
                    let args = ListOffsetsEntryArgs {
                        topic: Some(builder.create_string(topic)),
                        partition: *partition,
                        timestamp_ms: *timestamp_ms,
                    };
                    ListOffsetsEntry::create(builder, &args)
                })
                .collect();
            let args = ListOffsetsRequestArgs {
                entries: Some(builder.create_vector(&entries)),
            };
            ListOffsetsRequest::create(builder, &args)
        });
        let answer = self.ask(ApiKey::ListOffsets, head, &[]);
        self.heads = heads;
        let head = read_head::<ListOffsetsResponse<'_>>(&answer.head).expect("its head");
        (head.results().expect("results").iter())
            .map(|result| match result.error_code() {
                0 => Ok((result.offset(), result.timestamp_ms())),
                code => Err(code),
            })
            .collect()
    }
}

/// The outcome of the only entry of a produce answer.
pub fn produced(answer: &Answer) -> Result<i64, (i16, String)> {
    let head = read_head::<ProduceResponse<'_>>(&answer.head).expect("its head");
    let result = head.results().expect("results").get(0);
    match result.error_code() {
        0 => Ok(result.base_offset()),
        code => Err((code, result.message().unwrap_or_default().to_owned())),
    }
}

type Fetched = Result<Vec<(i64, Vec<u8>)>, i16>;

/// Offsets and values of each entry of a fetch answer, checksums checked.
pub fn fetched(answer: &Answer) -> Vec<Fetched> {
    let head = read_head::<FetchResponse<'_>>(&answer.head).expect("its head");
    let mut rest = &answer.body[..];
    let entry = |result: tackboard_schema::native::FetchResult<'_>| {
        let (bytes, after) = rest.split_at(result.byte_length() as usize);
        rest = after;
        if result.error_code() != 0 {
            return Err(result.error_code());
        }
        let mut records = Vec::new();
        for batch in BatchIterator::new(bytes) {
            let view: BatchView<'_> = batch.expect("whole batches");
            view.verify_crc().expect("the checksum holds");
            for record in view.records() {
                let record = record.expect("a record");
                records.push((record.offset.0, record.value.unwrap_or_default().to_vec()));
            }
        }
        Ok(records)
    };
    head.results().expect("results").iter().map(entry).collect()
}

/// A batch with these values, all at one timestamp.
pub fn batch(timestamp_ms: i64, values: &[&[u8]]) -> Vec<u8> {
    stamped_batch(timestamp_ms, values, None)
}

/// The same, of an idempotent producer.
pub fn stamped_batch(
    timestamp_ms: i64,
    values: &[&[u8]],
    producer: Option<ProducerStamp>,
) -> Vec<u8> {
    let at = TimestampMs(timestamp_ms);
    let mut builder = BatchBuilder::new(at);
    for value in values {
        builder
            .append(at, None, Some(value), &[])
            .expect("room in the batch");
    }
    builder.finish(producer, Compression::None)
}
