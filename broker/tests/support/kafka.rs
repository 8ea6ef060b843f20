//! A client of Kafka that speaks bare messages.

#![allow(dead_code, reason = "each test uses a part")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use bytes::Bytes;
use tackboard_broker::embedded::Handle;
use tackboard_schema::{
    TimestampMs,
    kafka::*,
    record_batch::{BatchBuilder, BatchHeader, Compression, check_batch},
};

/// No answer takes longer in a test that works.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client that speaks bare messages.
pub struct Client {
    pub stream: TcpStream,
    next_id: i32,
}

impl Client {
    pub fn of(broker: &Handle) -> Self {
        Self::at(broker.kafka_address().expect("the door is open"))
    }

    pub fn at(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("listens"))
    }

    /// Over a socket that is connected.
    pub fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self { stream, next_id: 1 }
    }

    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next_id;
        self.next_id += 1;
        let mut frame = Vec::new();
        encode_request(&mut frame, version, id, Some(&"test".into()), request).expect("fits");
        self.stream.write_all(&frame).expect("is read");
        id
    }

    pub fn frame(&mut self) -> Option<Bytes> {
        let mut length = [0; LENGTH_PREFIX_BYTES];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).ok()?;
        Some(Bytes::from(frame))
    }

    pub fn receive<R: Request>(&mut self, version: i16, id: i32) -> R::Response {
        let frame = self.frame().expect("an answer");
        assert_eq!(response_correlation_id(&frame), Ok(id));
        decode_response(frame, version).expect("in its own words")
    }

    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request);
        self.receive::<R>(version, id)
    }

    /// The same of a broker that may be gone: `None` when it is.
    pub fn try_ask<R: Request>(&mut self, version: i16, request: &R) -> Option<R::Response> {
        let mut frame = Vec::new();
        let id = self.next_id;
        self.next_id += 1;
        encode_request(&mut frame, version, id, Some(&"test".into()), request).expect("fits");
        self.stream.write_all(&frame).ok()?;
        let frame = self.frame()?;
        assert_eq!(response_correlation_id(&frame), Ok(id));
        Some(decode_response(frame, version).expect("in its own words"))
    }

    pub fn create(&mut self, name: &str, partitions: i32) -> i16 {
        let topic = CreateTopicsRequestTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: -1,
            ..Default::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![topic],
            ..Default::default()
        };
        self.ask(7, &request).topics[0].error_code
    }

    pub fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: Vec<u8>,
    ) -> ProduceResponsePartition {
        let mut answer = self.ask(11, &produce(topic, partition, batch, -1));
        answer.responses.remove(0).partition_responses.remove(0)
    }

    /// The door has closed the connection.
    pub fn is_ended(&mut self) -> bool {
        self.frame().is_none()
    }
}

pub fn batch(values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(TimestampMs(1_000));
    for value in values {
        builder
            .append(TimestampMs(1_000), None, Some(value.as_bytes()), &[])
            .expect("fits");
    }
    builder.finish(None, Compression::None)
}

pub fn produce(topic: &str, partition: i32, batch: Vec<u8>, acks: i16) -> ProduceRequest {
    let partition = ProduceRequestPartition {
        index: partition,
        records: Some(Records::Here(batch.into())),
    };
    ProduceRequest {
        acks,
        timeout_ms: 10_000,
        topic_data: vec![ProduceRequestTopic {
            name: topic.into(),
            partition_data: vec![partition],
        }],
        ..Default::default()
    }
}

pub fn fetch(topic: &str, partitions: &[i32], offset: i64, max_wait_ms: i32) -> FetchRequest {
    let partition = |partition: &i32| FetchRequestPartition {
        partition: *partition,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        topics: vec![FetchRequestTopic {
            topic: topic.into(),
            partitions: partitions.iter().map(partition).collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Offsets of the batches of an answer.
pub fn offsets(partition: &FetchResponsePartition) -> Vec<i64> {
    let Some(Records::Here(records)) = &partition.records else {
        panic!("records are never null");
    };
    let mut rest = &records[..];
    let mut offsets = Vec::new();
    while !rest.is_empty() {
        let header = BatchHeader::read(rest).expect("a batch");
        check_batch(rest, 1 << 20).expect("whole, and its checksum right");
        offsets.push(header.base_offset.0);
        rest = &rest[header.total_length()..];
    }
    offsets
}
