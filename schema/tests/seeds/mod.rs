//! The seeds of the corpora: a few honest structures of every kind.

mod groups;
mod kafka;

use std::path::PathBuf;

use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tackboard_schema::frame::{ApiKey, Kind, encode_head, padding};
use tackboard_schema::native::{self, HeadBuilder};
use tackboard_schema::record_batch::{BatchBuilder, Compression, HEADER_LENGTH};
use tackboard_schema::storage::index::{self, IndexEntry, NO_TIMESTAMP, SegmentSummary};
use tackboard_schema::storage::ledger::{BlockBuilder, LedgerHeader, LedgerRecord};
use tackboard_schema::storage::producer_snapshot::{ProducerEntry, ProducerSnapshot, WindowBatch};
use tackboard_schema::storage::{BLOCK_LENGTH, superblock::Superblock};
use tackboard_schema::{
    BrokerId, CoreId, CorrelationId, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch,
    ProducerId, TimestampMs, TopicId, TopicPartition,
};

/// Writes all seeds into the folders that `folder` names.
pub fn write(folder: &dyn Fn(&str) -> PathBuf) {
    let put = |target: &str, seed: &str, bytes: &[u8]| {
        let folder = folder(target);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(seed), bytes).unwrap();
    };
    let heads = heads();
    for (index, head) in heads.iter().enumerate() {
        put(
            "head",
            &format!("seed-{index:02}"),
            &[&[index as u8], &head[..]].concat(),
        );
    }
    put(
        "frame",
        "seed-hello",
        &frame(Kind::Request, ApiKey::Hello, &heads[1], &[]),
    );
    put(
        "frame",
        "seed-produce",
        &frame(
            Kind::Request,
            ApiKey::Produce,
            &heads[13],
            &batch(Compression::None),
        ),
    );
    let two = [
        frame(Kind::Response, ApiKey::Fetch, &heads[16], b"odd"),
        frame(Kind::Response, ApiKey::Error, &heads[0], &[]),
    ];
    put("frame", "seed-two", &two.concat());
    for codec in Compression::ALL {
        let batch = batch(codec);
        put("batch", &format!("seed-{codec}"), &batch);
        let payload = &batch[HEADER_LENGTH..];
        put(
            "records",
            &format!("seed-{codec}"),
            &[&[2, codec.id()], payload].concat(),
        );
        put(
            "compression",
            &format!("seed-{codec}"),
            &[&[codec.id()], payload].concat(),
        );
    }
    put(
        "batch",
        "seed-two",
        &[batch(Compression::None), batch(Compression::Lz4)].concat(),
    );
    put(
        "superblock",
        "seed",
        &[superblock(4).encode(), superblock(5).encode()].concat(),
    );
    put("ledger", "seed", &ledger());
    put("index", "seed", &index());
    for (name, bytes) in groups::told_by_members() {
        put("consumer_protocol", name, &bytes);
    }
    put("producer_snapshot", "seed", &producer_snapshot(100));
    put("checkpoint", "seed", &checkpoint());
    for (name, bytes) in kafka::seeds() {
        put("kafka", &name, &bytes);
    }
}

fn partition() -> TopicPartition {
    TopicPartition {
        topic: TopicId(*b"sixteen bytes id"),
        partition: PartitionIndex(3),
    }
}

fn frame(kind: Kind, api_key: ApiKey, head: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_head(&mut out, kind, api_key, CorrelationId(42), head, body.len());
    out.extend_from_slice(body);
    out.extend_from_slice(padding(body.len()));
    out
}

fn batch(codec: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(TimestampMs(1_700_000_000_000));
    let value = b"a value that repeats, a value that repeats, a value that repeats".repeat(4);
    builder
        .append(
            TimestampMs(1_700_000_000_000),
            Some(b"key"),
            Some(&value),
            &[("name", Some(b"x")), ("", None)],
        )
        .unwrap();
    builder
        .append(TimestampMs(1_700_000_000_900), None, Some(b""), &[])
        .unwrap();
    builder
        .append(TimestampMs(1_699_999_999_000), Some(b""), None, &[])
        .unwrap();
    builder.finish(Some((ProducerId(7), ProducerEpoch(0), 5)), codec)
}

fn superblock(sequence: u64) -> Superblock {
    Superblock {
        sequence,
        cluster_id: [1; 16],
        directory_id: [2; 16],
        boot_id: [3; 16],
        broker_id: BrokerId(1),
        is_clean: sequence % 2 == 1,
        broker_epoch: 9,
        ledger_epoch: 8,
        ledger_count: 4,
    }
}

fn ledger() -> Vec<u8> {
    let partition = partition();
    let (segment_base, position, next_offset) = (Offset(100), 8192, Offset(180));
    let (first_append, last_append, max_timestamp) =
        (TimestampMs(5), TimestampMs(6), TimestampMs(7));
    let records = [
        LedgerRecord::Durable {
            partition,
            next_offset,
            segment_base,
            position,
            last_append,
        },
        LedgerRecord::LogStart {
            partition,
            offset: Offset(50),
        },
        LedgerRecord::HighWatermark {
            partition,
            offset: next_offset,
        },
        LedgerRecord::EpochStart {
            partition,
            epoch: LeaderEpoch(2),
            start_offset: segment_base,
        },
        LedgerRecord::Truncate {
            partition,
            next_offset,
            segment_base,
            position,
        },
        LedgerRecord::Fenced {
            partition,
            durable_offset: next_offset,
        },
        LedgerRecord::SegmentOpened {
            partition,
            base_offset: segment_base,
            first_append,
        },
        LedgerRecord::SegmentSealed {
            partition,
            base_offset: Offset(50),
            next_offset: segment_base,
            size_bytes: 5000,
            max_timestamp,
            first_append,
            last_append,
        },
        LedgerRecord::Removed { partition },
    ];
    let generation = 6;
    let header = LedgerHeader {
        generation,
        broker_epoch: 9,
        directory_id: [2; 16],
        core: CoreId(1),
    };
    let mut file = header.encode().to_vec();
    for sequence in 0..2 {
        let mut builder = BlockBuilder::new();
        assert!(records.iter().all(|record| builder.push(record)));
        let mut block = [0; BLOCK_LENGTH];
        builder.finish_into(generation, sequence, sequence, &mut block);
        file.extend_from_slice(&block);
    }
    file
}

fn index() -> Vec<u8> {
    let summary = SegmentSummary {
        partition: partition(),
        base_offset: Offset(100),
        next_offset: Offset(900),
        size_bytes: 90_000,
        max_timestamp: TimestampMs(77),
        first_append: TimestampMs(5),
        last_append: TimestampMs(6),
    };
    let entry = |offset, position, max_timestamp_before| IndexEntry {
        offset: Offset(offset),
        position,
        max_timestamp_before,
    };
    let entries = [
        entry(100, 0, NO_TIMESTAMP),
        entry(300, 33_000, TimestampMs(70)),
        entry(700, 70_000, TimestampMs(77)),
    ];
    index::encode(&summary, &entries).unwrap()
}

fn checkpoint() -> Vec<u8> {
    [index(), producer_snapshot(900)].concat()
}

fn producer_snapshot(next_offset: i64) -> Vec<u8> {
    let window = |first_sequence| WindowBatch {
        first_sequence,
        last_sequence: first_sequence.wrapping_add(4) & i32::MAX,
        base_offset: Offset(60),
    };
    let producer = |id, batches: &[WindowBatch]| {
        ProducerEntry::new(ProducerId(id), ProducerEpoch(1), TimestampMs(8), batches)
    };
    let producers = vec![
        producer(7, &[window(0), window(5)]),
        producer(9, &[window(i32::MAX - 2)]),
    ];
    ProducerSnapshot {
        partition: partition(),
        next_offset: Offset(next_offset),
        producers,
    }
    .encode()
}

/// One head of every table, in the order in which the target `head` lists them.
fn heads() -> Vec<Vec<u8>> {
    let mut heads = requests_and_responses_about_topics();
    heads.extend(requests_and_responses_about_records());
    heads.extend(groups::heads());
    heads
}

type Builder = FlatBufferBuilder<'static>;

fn made<T>(make: impl FnOnce(&mut Builder) -> WIPOffset<T>) -> Vec<u8> {
    HeadBuilder::new().build(make).to_vec()
}

fn requests_and_responses_about_topics() -> Vec<Vec<u8>> {
    vec![
        made(|b| {
            let message = Some(b.create_string("not known"));
            native::ErrorResponse::create(
                b,
                &native::ErrorResponseArgs {
                    error_code: 35,
                    message,
                },
            )
        }),
        made(|b| {
            let client_id = Some(b.create_string("client"));
            native::HelloRequest::create(
                b,
                &native::HelloRequestArgs {
                    client_id,
                    ..Default::default()
                },
            )
        }),
        made(|b| {
            let cluster_id = Some(b.create_string("cluster"));
            let args = native::HelloResponseArgs {
                version: 1,
                cluster_id,
                core_count: 2,
                ..Default::default()
            };
            native::HelloResponse::create(b, &args)
        }),
        made(|b| {
            let name = b.create_string("flights");
            let topics = Some(b.create_vector(&[name]));
            native::MetadataRequest::create(b, &native::MetadataRequestArgs { topics })
        }),
        made(metadata_response),
        made(|b| {
            let (key, value) = (
                Some(b.create_string("retention.ms")),
                Some(b.create_string("1000")),
            );
            let config = native::KeyValue::create(b, &native::KeyValueArgs { key, value });
            let (name, configs) = (
                Some(b.create_string("flights")),
                Some(b.create_vector(&[config])),
            );
            let args = native::CreateTopicRequestArgs {
                name,
                configs,
                partitions: 6,
                ..Default::default()
            };
            native::CreateTopicRequest::create(b, &args)
        }),
        made(|b| {
            let topic_id = native::Uuid::new(&[9; 16]);
            let args = native::CreateTopicResponseArgs {
                topic_id: Some(&topic_id),
                ..Default::default()
            };
            native::CreateTopicResponse::create(b, &args)
        }),
        made(|b| {
            let name = Some(b.create_string("flights"));
            native::DeleteTopicRequest::create(b, &native::DeleteTopicRequestArgs { name })
        }),
        made(|b| native::DeleteTopicResponse::create(b, &Default::default())),
        made(|b| {
            let name = Some(b.create_string("flights"));
            native::DescribeTopicRequest::create(b, &native::DescribeTopicRequestArgs { name })
        }),
        made(|b| {
            let args = native::PartitionDescriptionArgs {
                high_watermark: 7,
                ..Default::default()
            };
            let partition = native::PartitionDescription::create(b, &args);
            let partitions = Some(b.create_vector(&[partition]));
            let args = native::DescribeTopicResponseArgs {
                partitions,
                ..Default::default()
            };
            native::DescribeTopicResponse::create(b, &args)
        }),
        made(|b| native::InitProducerRequest::create(b, &native::InitProducerRequestArgs {})),
        made(|b| {
            let args = native::InitProducerResponseArgs {
                producer_id: 1000,
                ..Default::default()
            };
            native::InitProducerResponse::create(b, &args)
        }),
    ]
}

fn metadata_response(b: &mut Builder) -> WIPOffset<native::MetadataResponse<'static>> {
    let host = b.create_string("127.0.0.1");
    let (core_hosts, core_ports) = (
        Some(b.create_vector(&[host])),
        Some(b.create_vector(&[7401_u16])),
    );
    let args = native::BrokerArgs {
        host: Some(host),
        port: 7400,
        core_hosts,
        core_ports,
        broker_id: 1,
    };
    let broker = native::Broker::create(b, &args);
    let replicas = Some(b.create_vector(&[1]));
    let args = native::PartitionMetadataArgs {
        replicas,
        in_sync_replicas: replicas,
        core_port: 7401,
        ..Default::default()
    };
    let partition = native::PartitionMetadata::create(b, &args);
    let (name, partitions) = (
        Some(b.create_string("flights")),
        Some(b.create_vector(&[partition])),
    );
    let topic = native::TopicMetadata::create(
        b,
        &native::TopicMetadataArgs {
            name,
            partitions,
            ..Default::default()
        },
    );
    let (brokers, topics) = (
        Some(b.create_vector(&[broker])),
        Some(b.create_vector(&[topic])),
    );
    native::MetadataResponse::create(
        b,
        &native::MetadataResponseArgs {
            brokers,
            topics,
            ..Default::default()
        },
    )
}

fn requests_and_responses_about_records() -> Vec<Vec<u8>> {
    vec![
        made(|b| {
            let topic = Some(b.create_string("flights"));
            let entry = native::ProduceEntry::create(
                b,
                &native::ProduceEntryArgs {
                    topic,
                    partition: 1,
                    byte_length: 400,
                },
            );
            let entries = Some(b.create_vector(&[entry]));
            native::ProduceRequest::create(
                b,
                &native::ProduceRequestArgs {
                    entries,
                    ..Default::default()
                },
            )
        }),
        made(|b| {
            let topic = Some(b.create_string("flights"));
            let result = native::ProduceResult::create(
                b,
                &native::ProduceResultArgs {
                    topic,
                    ..Default::default()
                },
            );
            let results = Some(b.create_vector(&[result]));
            native::ProduceResponse::create(
                b,
                &native::ProduceResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        }),
        made(|b| {
            let topic = Some(b.create_string("flights"));
            let entry = native::FetchEntry::create(
                b,
                &native::FetchEntryArgs {
                    topic,
                    ..Default::default()
                },
            );
            let entries = Some(b.create_vector(&[entry]));
            native::FetchRequest::create(
                b,
                &native::FetchRequestArgs {
                    entries,
                    ..Default::default()
                },
            )
        }),
        made(|b| {
            let topic = Some(b.create_string("flights"));
            let result = native::FetchResult::create(
                b,
                &native::FetchResultArgs {
                    topic,
                    byte_length: 3,
                    ..Default::default()
                },
            );
            let results = Some(b.create_vector(&[result]));
            native::FetchResponse::create(
                b,
                &native::FetchResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        }),
        made(|b| {
            let topic = Some(b.create_string("flights"));
            let args = native::ListOffsetsEntryArgs {
                topic,
                timestamp_ms: -2,
                ..Default::default()
            };
            let entry = native::ListOffsetsEntry::create(b, &args);
            let entries = Some(b.create_vector(&[entry]));
            native::ListOffsetsRequest::create(b, &native::ListOffsetsRequestArgs { entries })
        }),
        made(|b| {
            let topic = Some(b.create_string("flights"));
            let result = native::ListOffsetsResult::create(
                b,
                &native::ListOffsetsResultArgs {
                    topic,
                    ..Default::default()
                },
            );
            let results = Some(b.create_vector(&[result]));
            native::ListOffsetsResponse::create(
                b,
                &native::ListOffsetsResponseArgs {
                    results,
                    ..Default::default()
                },
            )
        }),
    ]
}
