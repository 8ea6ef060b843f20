//! The same broker spoken to in Kafka's protocol.

use tackboard_client::protocol::KafkaFrame;
use tackboard_schema::kafka::{
    ApiKey, ApiVersionsRequest, FetchRequest, FetchResponse, FetchResponsePartition,
    FetchResponseTopic, InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest,
    ListOffsetsResponse, ListOffsetsResponsePartition, ListOffsetsResponseTopic, MetadataRequest,
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    ProduceRequest, ProduceResponse, ProduceResponsePartition, ProduceResponseTopic, Records,
    RequestFrame, Response, api_versions, encode_response,
};
use tackboard_schema::record_batch::check_batch;
use tackboard_schema::{ErrorCode, Offset, TopicId};

use super::{Answer, Broker, Partition};

/// As brokers tell our own codes to clients of Kafka.
fn told(code: ErrorCode) -> i16 {
    let told = match code {
        ErrorCode::StorageFull => ErrorCode::KafkaStorageError,
        ErrorCode::StorageFullAfterAppend => ErrorCode::NotEnoughReplicasAfterAppend,
        ErrorCode::OverBudget => ErrorCode::RequestTimedOut,
        other => other,
    };
    assert!(told.code() < 1000, "{told} is not one of Kafka's");
    told.code()
}

impl Broker {
    /// The answer to a request; `None` where none is asked for.
    pub(super) fn answer_kafka(&mut self, frame: &KafkaFrame) -> Option<Answer> {
        let request = RequestFrame::open(frame.bytes().clone()).expect("it is served");
        let (version, id) = (request.version, request.correlation_id);
        let mut is_empty_fetch = false;
        let frame = match request.api {
            ApiKey::ApiVersions => {
                let _: ApiVersionsRequest = request.body().unwrap();
                encoded(version, id, &api_versions())
            }
            ApiKey::Metadata => {
                let answer = self.kafka_metadata(request.body().unwrap());
                encoded(version, id, &answer)
            }
            ApiKey::InitProducerId => {
                let asked: InitProducerIdRequest = request.body().unwrap();
                assert_eq!(asked.transactional_id, None);
                self.next_producer_id += 1;
                let answer = InitProducerIdResponse {
                    producer_id: self.next_producer_id,
                    ..InitProducerIdResponse::default()
                };
                encoded(version, id, &answer)
            }
            ApiKey::Produce => {
                let answer = self.kafka_produce(request.body().unwrap())?;
                encoded(version, id, &answer)
            }
            ApiKey::Fetch => {
                let answer = self.kafka_fetch(&request.body().unwrap());
                let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
                let lengths = partitions.filter_map(|partition| partition.records.as_ref());
                is_empty_fetch = lengths.map(Records::length).sum::<usize>() == 0;
                encoded(version, id, &answer)
            }
            ApiKey::ListOffsets => {
                let answer = self.kafka_list_offsets(request.body().unwrap());
                encoded(version, id, &answer)
            }
            other => panic!("{other} is not part of this broker"),
        };
        Some(Answer {
            frame,
            is_empty_fetch,
        })
    }

    fn kafka_metadata(&self, request: MetadataRequest) -> MetadataResponse {
        assert!(!request.allow_auto_topic_creation);
        let partition = |partition_index| MetadataResponsePartition {
            partition_index,
            leader_id: 1,
            replica_nodes: vec![1],
            isr_nodes: vec![1],
            ..MetadataResponsePartition::default()
        };
        let names = request.topics.expect("our client names topics");
        let names = names.into_iter().filter_map(|topic| topic.name);
        let topics = names.map(|name| {
            let found = self.topics.get(&*name);
            let missing = ErrorCode::UnknownTopicOrPartition;
            MetadataResponseTopic {
                error_code: found.map_or(missing, |_| ErrorCode::None).code(),
                name: Some(name),
                topic_id: TopicId([1; 16]),
                partitions: (0..found.map_or(0, Vec::len) as i32)
                    .map(partition)
                    .collect(),
                ..MetadataResponseTopic::default()
            }
        });
        MetadataResponse {
            brokers: vec![MetadataResponseBroker {
                node_id: 1,
                host: self.host.as_str().into(),
                port: self.port.into(),
                ..MetadataResponseBroker::default()
            }],
            topics: topics.collect(),
            ..MetadataResponse::default()
        }
    }

    fn kafka_produce(&mut self, request: ProduceRequest) -> Option<ProduceResponse> {
        let mut responses = Vec::new();
        for topic in request.topic_data {
            let mut answered = Vec::new();
            for partition in topic.partition_data {
                let records = partition.records.expect("our client sends a batch");
                let batch = records.bytes().expect("as they were read").clone();
                let checked = check_batch(&batch, 1 << 20).expect("a batch that passes");
                assert_eq!(
                    checked.bytes().len(),
                    batch.len(),
                    "one batch per partition"
                );
                let outcome = self.append(&topic.name, partition.index, &checked.view());
                answered.push(ProduceResponsePartition {
                    index: partition.index,
                    error_code: told(outcome.err().unwrap_or(ErrorCode::None)),
                    base_offset: outcome.unwrap_or(Offset(-1)).0,
                    ..ProduceResponsePartition::default()
                });
            }
            responses.push(ProduceResponseTopic {
                name: topic.name,
                partition_responses: answered,
            });
        }
        (request.acks != 0).then(|| ProduceResponse {
            responses,
            ..ProduceResponse::default()
        })
    }

    fn partition_at(&self, topic: &str, partition: i32) -> Option<&Partition> {
        self.topics.get(topic)?.get(partition as usize)
    }

    fn kafka_fetch(&self, request: &FetchRequest) -> FetchResponse {
        let topics = request.topics.iter().map(|topic| FetchResponseTopic {
            topic: topic.topic.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|asked| {
                    let found = self.partition_at(&topic.topic, asked.partition);
                    let end = found.map_or(-1, |partition| partition.next_offset().0);
                    let bytes_max = asked.partition_max_bytes as usize;
                    let (code, records) = match found {
                        None => (ErrorCode::UnknownTopicOrPartition, Vec::new()),
                        Some(_) if !(0..=end).contains(&asked.fetch_offset) => {
                            (ErrorCode::OffsetOutOfRange, Vec::new())
                        }
                        Some(partition) => (
                            ErrorCode::None,
                            cut(partition, Offset(asked.fetch_offset), bytes_max),
                        ),
                    };
                    FetchResponsePartition {
                        partition_index: asked.partition,
                        error_code: code.code(),
                        high_watermark: end,
                        log_start_offset: 0,
                        records: Some(Records::Here(records.into())),
                        ..FetchResponsePartition::default()
                    }
                })
                .collect(),
            ..FetchResponseTopic::default()
        });
        FetchResponse {
            responses: topics.collect(),
            ..FetchResponse::default()
        }
    }

    fn kafka_list_offsets(&self, request: ListOffsetsRequest) -> ListOffsetsResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|asked| {
                let found = self.partition_at(&topic.name, asked.partition_index);
                let missing = ErrorCode::UnknownTopicOrPartition;
                let offset = found.and_then(|partition| partition.offset_at(asked.timestamp));
                ListOffsetsResponsePartition {
                    partition_index: asked.partition_index,
                    error_code: found.map_or(missing, |_| ErrorCode::None).code(),
                    offset: offset.map_or(-1, |found| found.0.0),
                    timestamp: offset.map_or(-1, |found| found.1.0),
                    ..ListOffsetsResponsePartition::default()
                }
            });
            ListOffsetsResponseTopic {
                partitions: partitions.collect(),
                name: topic.name,
            }
        });
        ListOffsetsResponse {
            topics: topics.collect(),
            ..ListOffsetsResponse::default()
        }
    }
}

/// What a log has from an offset on, ended by its bytes and not with a batch, unless it is the first.
fn cut(partition: &Partition, offset: Offset, bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let batches = partition.batches.iter();
    for batch in batches.filter(|batch| batch.next_offset > offset) {
        if bytes.len() >= bytes_max {
            break;
        }
        let room = bytes_max - bytes.len();
        let taken = match bytes.is_empty() {
            true => batch.bytes.len(),
            false => batch.bytes.len().min(room),
        };
        bytes.extend_from_slice(&batch.bytes[..taken]);
    }
    bytes
}

fn encoded(version: i16, id: i32, response: &impl Response) -> Vec<u8> {
    let mut frame = Vec::new();
    let gaps = encode_response(&mut frame, version, id, response).expect("it can be written");
    assert!(
        gaps.is_empty(),
        "records are written, not sent from elsewhere"
    );
    frame
}
