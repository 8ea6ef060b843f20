//! A broker in a few hundred lines: keeps logs in memory, follows Kafka's rules for sequences, answers frames.
//!
//! What the clients' tests run against: purely (the simulation) or behind sockets (`server`).

#![allow(dead_code, reason = "each test uses a part")]

pub mod groups;
mod kafka;
pub mod network;
pub mod server;

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;
use groups::Groups;
use tackboard_client::protocol::{ConnectionId, InFrame};
use tackboard_schema::ErrorCode;
use tackboard_schema::frame::{ApiKey, Kind, encode_head, padding};
use tackboard_schema::native::{self, FetchResultHead, HeadBuilder, ProduceResultHead, read_head};
use tackboard_schema::record_batch::{BatchIterator, BatchView, check_batch, stamp};
use tackboard_schema::{
    LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs,
};

/// Batches that a broker remembers per producer and partition.
const WINDOW: usize = 5;

/// What a broker does with a batch before its rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing out of the ordinary.
    None,
    /// Refuses it, and does not append it.
    Refuse(ErrorCode),
    /// Appends it, and answers with this code all the same.
    AppendAndSay(ErrorCode),
}

/// Decides about a batch for a partition of a topic.
pub type FaultRule = Box<dyn FnMut(&str, i32, &BatchView<'_>) -> Fault + Send>;

/// One batch in the log.
#[derive(Clone, Debug)]
pub struct Stored {
    pub bytes: Vec<u8>,
    pub base_offset: Offset,
    pub next_offset: Offset,
    pub timestamp_max: TimestampMs,
}

impl Stored {
    /// Offset, timestamp and value of each record.
    fn records(&self) -> Vec<(Offset, TimestampMs, Vec<u8>)> {
        let mut buffer = Vec::new();
        let batch = BatchView::first(&self.bytes).unwrap();
        let records = batch.records_decompressed(&mut buffer, 1 << 26).unwrap();
        let records = records.map(Result::unwrap);
        records
            .map(|record| {
                (
                    record.offset,
                    record.timestamp,
                    record.value.unwrap().to_vec(),
                )
            })
            .collect()
    }
}

#[derive(Debug, Default)]
struct ProducerState {
    epoch: ProducerEpoch,
    /// (first sequence, last sequence, offset of the first), oldest first.
    window: VecDeque<(i32, i32, Offset)>,
}

#[derive(Debug, Default)]
pub struct Partition {
    pub batches: Vec<Stored>,
    producers: HashMap<ProducerId, ProducerState>,
}

/// A broker with one core.
pub struct Broker {
    pub host: String,
    pub port: u16,
    pub core_port: u16,
    pub topics: BTreeMap<String, Vec<Partition>>,
    next_producer_id: i64,
    /// Asked before every append.
    pub fault: FaultRule,
    heads: HeadBuilder,
    /// The coordinator of groups, where a test has one. Its answers come later, by [`Groups::take_answers`].
    pub groups: Option<Groups>,
    /// Who asks: one of several clients, and its connection.
    pub caller: (usize, ConnectionId),
}

impl Partition {
    pub fn next_offset(&self) -> Offset {
        self.batches
            .last()
            .map_or(Offset(0), |batch| batch.next_offset)
    }

    /// Every value, in the order of the log, with its offset.
    pub fn values(&self) -> Vec<(Offset, Vec<u8>)> {
        let records = self.batches.iter().flat_map(Stored::records);
        records.map(|(offset, _, value)| (offset, value)).collect()
    }

    /// Kafka's rules; the offset, or the code.
    pub fn append(&mut self, batch: &BatchView<'_>) -> Result<Offset, ErrorCode> {
        let header = *batch.header();
        let base_offset = self.next_offset();
        if header.is_idempotent() {
            let last_sequence = header.last_sequence();
            if let Some(state) = self.producers.get(&header.producer_id) {
                if header.producer_epoch < state.epoch {
                    return Err(ErrorCode::InvalidProducerEpoch);
                }
                let is_it = |entry: &&(i32, i32, Offset)| {
                    entry.0 == header.base_sequence && entry.1 == last_sequence
                };
                if let Some((.., offset)) = state.window.iter().find(is_it) {
                    return Ok(*offset);
                }
                let last = state.window.back().map_or(-1, |entry| entry.1);
                let expected = if last == i32::MAX { 0 } else { last + 1 };
                if header.base_sequence != expected {
                    // Also of a batch that has left the window: the broker cannot tell it from a gap.
                    return Err(ErrorCode::OutOfOrderSequenceNumber);
                }
            }
            // An id that is not known may begin anywhere.
            let state = self.producers.entry(header.producer_id).or_default();
            state.epoch = header.producer_epoch;
            state
                .window
                .push_back((header.base_sequence, last_sequence, base_offset));
            if state.window.len() > WINDOW {
                state.window.pop_front();
            }
        }
        let mut bytes = batch.bytes().to_vec();
        stamp(&mut bytes, base_offset, LeaderEpoch(0));
        let next_offset = base_offset.plus(i64::from(header.record_count));
        self.batches.push(Stored {
            bytes,
            base_offset,
            next_offset,
            timestamp_max: header.max_timestamp,
        });
        Ok(base_offset)
    }

    /// The batches from the one that holds `offset` on.
    fn read(&self, offset: Offset, bytes_max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for batch in self
            .batches
            .iter()
            .filter(|batch| batch.next_offset > offset)
        {
            if !bytes.is_empty() && bytes.len() + batch.bytes.len() > bytes_max {
                break;
            }
            bytes.extend_from_slice(&batch.bytes);
        }
        bytes
    }

    fn offset_at(&self, timestamp: i64) -> Option<(Offset, TimestampMs)> {
        match timestamp {
            -1 => Some((self.next_offset(), TimestampMs(-1))),
            -2 => Some((Offset(0), TimestampMs(-1))),
            _ => {
                let may_hold = |batch: &&Stored| batch.timestamp_max.0 >= timestamp;
                let mut records = self
                    .batches
                    .iter()
                    .filter(may_hold)
                    .flat_map(Stored::records);
                let found = records.find(|record| record.1.0 >= timestamp)?;
                Some((found.0, found.1))
            }
        }
    }
}

/// What an answer needs of its request.
pub struct Answer {
    pub frame: Vec<u8>,
    /// A fetch found nothing, and would rather wait.
    pub is_empty_fetch: bool,
}

impl Broker {
    pub fn new(topics: &[(&str, usize)]) -> Self {
        let topics = topics.iter().map(|(name, partitions)| {
            (
                (*name).to_string(),
                (0..*partitions).map(|_| Partition::default()).collect(),
            )
        });
        Self {
            host: "broker".into(),
            port: 7400,
            core_port: 7401,
            topics: topics.collect(),
            next_producer_id: 1000,
            fault: Box::new(|_, _, _| Fault::None),
            heads: HeadBuilder::new(),
            groups: None,
            caller: (0, ConnectionId(0)),
        }
    }

    /// The answer to a request; `None` where none is asked for.
    pub fn answer(&mut self, request: &InFrame) -> Option<Answer> {
        let mut body = Vec::new();
        let mut is_empty_fetch = false;
        let request = match request {
            InFrame::Native(request) => request,
            InFrame::Kafka(request) => return self.answer_kafka(request),
        };
        let api = ApiKey::from_key(request.prefix.api_key).expect("our client knows the APIs");
        let head = match api {
            ApiKey::Hello => self.hello(),
            ApiKey::Metadata => self.metadata(request.head()),
            ApiKey::CreateTopic => self.create_topic(request.head()),
            ApiKey::DeleteTopic => self.delete_topic(request.head()),
            ApiKey::InitProducer => self.init_producer(),
            ApiKey::Produce => self.produce(request.head(), &request.body())?,
            ApiKey::Fetch => {
                let (head, found) = self.fetch(request.head());
                is_empty_fetch = found.is_empty();
                body = found;
                head
            }
            ApiKey::ListOffsets => self.list_offsets(request.head()),
            ApiKey::FindCoordinator
            | ApiKey::JoinGroup
            | ApiKey::SyncGroup
            | ApiKey::Heartbeat
            | ApiKey::LeaveGroup
            | ApiKey::OffsetCommit
            | ApiKey::OffsetFetch
                if self.groups.is_some() =>
            {
                let address = (self.host.clone(), self.core_port);
                let groups = self.groups.as_mut()?;
                groups.ask(self.caller, request, address);
                return None;
            }
            _ => self
                .heads
                .error_response(ErrorCode::UnsupportedVersion, "not part of this broker")
                .to_vec(),
        };
        let mut frame = Vec::new();
        encode_head(
            &mut frame,
            Kind::Response,
            api,
            request.prefix.correlation_id,
            &head,
            body.len(),
        );
        frame.extend_from_slice(&body);
        frame.extend_from_slice(padding(body.len()));
        Some(Answer {
            frame,
            is_empty_fetch,
        })
    }

    fn hello(&mut self) -> Vec<u8> {
        let head = self.heads.build(|builder| {
            let broker_version = Some(builder.create_string("test"));
            let args = native::HelloResponseArgs {
                version: 1,
                broker_id: 1,
                core_count: 1,
                broker_version,
                frame_bytes_max: 16 << 20,
                batch_bytes_max: 1 << 20,
                requests_in_flight_max: 256,
                request_bytes_in_flight_max: 8 << 20,
                ..Default::default()
            };
            native::HelloResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn metadata(&mut self, head: &[u8]) -> Vec<u8> {
        let request = read_head::<native::MetadataRequest<'_>>(head).unwrap();
        let names: Vec<String> = match request.topics() {
            Some(names) => names.iter().map(Into::into).collect(),
            None => self.topics.keys().cloned().collect(),
        };
        let (host, port, core_port) = (self.host.clone(), self.port, self.core_port);
        let topics = &self.topics;
        let head = self.heads.build(|builder| {
            let host = builder.create_string(&host);
            let (core_hosts, core_ports) = (
                builder.create_vector(&[host]),
                builder.create_vector(&[core_port]),
            );
            let broker = native::BrokerArgs {
                broker_id: 1,
                host: Some(host),
                port,
                core_hosts: Some(core_hosts),
                core_ports: Some(core_ports),
            };
            let broker = native::Broker::create(builder, &broker);
            let brokers = Some(builder.create_vector(&[broker]));
            let topics = names.iter().map(|name| {
                let partitions = topics.get(name);
                let error_code = if partitions.is_some() {
                    0
                } else {
                    ErrorCode::UnknownTopicOrPartition.code()
                };
                let count = partitions.map_or(0, Vec::len) as i32;
                let partitions: Vec<_> = (0..count)
                    .map(|partition| {
                        let args = native::PartitionMetadataArgs {
                            partition,
                            leader: 1,
                            core_port,
                            ..Default::default()
                        };
                        native::PartitionMetadata::create(builder, &args)
                    })
                    .collect();
                let args = native::TopicMetadataArgs {
                    error_code,
                    name: Some(builder.create_string(name)),
                    partitions: Some(builder.create_vector(&partitions)),
                    acks: -1,
                    durability: native::Durability::Fsync,
                    ..Default::default()
                };
                native::TopicMetadata::create(builder, &args)
            });
            let topics: Vec<_> = topics.collect();
            let topics = Some(builder.create_vector(&topics));
            let args = native::MetadataResponseArgs {
                brokers,
                topics,
                ..Default::default()
            };
            native::MetadataResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn create_topic(&mut self, head: &[u8]) -> Vec<u8> {
        let request = read_head::<native::CreateTopicRequest<'_>>(head).unwrap();
        let count = request.partitions().max(1);
        let error_code = match self.topics.contains_key(request.name()) {
            true => ErrorCode::TopicAlreadyExists,
            false => ErrorCode::None,
        };
        if error_code == ErrorCode::None {
            let partitions = (0..count).map(|_| Partition::default()).collect();
            self.topics.insert(request.name().into(), partitions);
        }
        let head = self.heads.build(|builder| {
            let args = native::CreateTopicResponseArgs {
                error_code: error_code.code(),
                partitions: count,
                replication_factor: 1,
                ..Default::default()
            };
            native::CreateTopicResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn delete_topic(&mut self, head: &[u8]) -> Vec<u8> {
        let request = read_head::<native::DeleteTopicRequest<'_>>(head).unwrap();
        let error_code = match self.topics.remove(request.name()) {
            Some(_) => ErrorCode::None,
            None => ErrorCode::UnknownTopicOrPartition,
        };
        let head = self.heads.build(|builder| {
            let args = native::DeleteTopicResponseArgs {
                error_code: error_code.code(),
                message: None,
            };
            native::DeleteTopicResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn init_producer(&mut self) -> Vec<u8> {
        self.next_producer_id += 1;
        let producer_id = self.next_producer_id;
        let head = self.heads.build(|builder| {
            let args = native::InitProducerResponseArgs {
                producer_id,
                producer_epoch: 0,
                ..Default::default()
            };
            native::InitProducerResponse::create(builder, &args)
        });
        head.to_vec()
    }

    fn produce(&mut self, head: &[u8], body: &Bytes) -> Option<Vec<u8>> {
        let request = read_head::<native::ProduceRequest<'_>>(head).unwrap();
        let (mut results, mut at) = (Vec::new(), 0);
        for entry in request.entries() {
            let batch = &body[at..at + entry.byte_length() as usize];
            at += batch.len();
            let checked = check_batch(batch, 1 << 20).expect("our client makes batches that pass");
            assert_eq!(checked.bytes().len(), batch.len(), "one batch per entry");
            let outcome = self.append(entry.topic(), entry.partition(), &checked.view());
            results.push((entry.topic(), entry.partition(), outcome));
        }
        if (request.acks_level(), request.acks_count()) == (native::AcksLevel::Count, 0) {
            return None;
        }
        let results: Vec<_> = results
            .iter()
            .map(|(topic, partition, outcome)| ProduceResultHead {
                error_code: outcome.err().unwrap_or(ErrorCode::None),
                message: None,
                topic,
                partition: PartitionIndex(*partition),
                base_offset: outcome.unwrap_or(Offset(-1)),
                log_append_time: TimestampMs(-1),
                log_start_offset: Offset(-1),
            })
            .collect();
        Some(self.heads.produce_response(&results).to_vec())
    }

    fn append(
        &mut self,
        topic: &str,
        partition: i32,
        batch: &BatchView<'_>,
    ) -> Result<Offset, ErrorCode> {
        let fault = (self.fault)(topic, partition, batch);
        let found = self
            .topics
            .get_mut(topic)
            .and_then(|partitions| partitions.get_mut(partition as usize));
        let partition = found.ok_or(ErrorCode::UnknownTopicOrPartition)?;
        match fault {
            Fault::None => partition.append(batch),
            Fault::Refuse(code) => Err(code),
            Fault::AppendAndSay(code) => partition.append(batch).and(Err(code)),
        }
    }

    fn fetch(&mut self, head: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let request = read_head::<native::FetchRequest<'_>>(head).unwrap();
        let (mut results, mut body) = (Vec::new(), Vec::new());
        for entry in request.entries() {
            let partition = self
                .topics
                .get(entry.topic())
                .and_then(|topic| topic.get(entry.partition() as usize));
            let end = partition.map_or(Offset(-1), Partition::next_offset);
            let (error_code, found) = match partition {
                None => (ErrorCode::UnknownTopicOrPartition, Vec::new()),
                Some(_) if entry.fetch_offset() > end.0 || entry.fetch_offset() < 0 => {
                    (ErrorCode::OffsetOutOfRange, Vec::new())
                }
                Some(partition) => (
                    ErrorCode::None,
                    partition.read(Offset(entry.fetch_offset()), entry.bytes_max() as usize),
                ),
            };
            results.push(FetchResultHead {
                error_code,
                message: None,
                topic: entry.topic(),
                partition: PartitionIndex(entry.partition()),
                high_watermark: end,
                log_start_offset: Offset(0),
                byte_length: found.len() as u32,
            });
            body.extend(found);
        }
        let has_error = results
            .iter()
            .any(|result| result.error_code != ErrorCode::None);
        if has_error && body.is_empty() {
            // An error is news, not to be waited with.
            return (self.heads.fetch_response(&results).to_vec(), body);
        }
        (self.heads.fetch_response(&results).to_vec(), body)
    }

    fn list_offsets(&mut self, head: &[u8]) -> Vec<u8> {
        let request = read_head::<native::ListOffsetsRequest<'_>>(head).unwrap();
        let topics = &self.topics;
        let head = self.heads.build(|builder| {
            let results = request.entries().iter().map(|entry| {
                let partition = topics
                    .get(entry.topic())
                    .and_then(|topic| topic.get(entry.partition() as usize));
                let found =
                    partition.and_then(|partition| partition.offset_at(entry.timestamp_ms()));
                let args = native::ListOffsetsResultArgs {
                    error_code: partition
                        .map_or(ErrorCode::UnknownTopicOrPartition, |_| ErrorCode::None)
                        .code(),
                    message: None,
                    topic: Some(builder.create_string(entry.topic())),
                    partition: entry.partition(),
                    offset: found.map_or(-1, |found| found.0.0),
                    timestamp_ms: found.map_or(-1, |found| found.1.0),
                };
                native::ListOffsetsResult::create(builder, &args)
            });
            let results: Vec<_> = results.collect();
            let results = Some(builder.create_vector(&results));
            native::ListOffsetsResponse::create(
                builder,
                &native::ListOffsetsResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        });
        head.to_vec()
    }
}

/// The batches of a slice, for tests that look at them.
pub fn batches(bytes: &[u8]) -> Vec<BatchView<'_>> {
    BatchIterator::new(bytes).map(Result::unwrap).collect()
}
