//! Reads answers in Kafka's format.

use std::sync::Arc;

use bytes::Bytes;
use tackboard_schema::kafka::{
    ApiVersionsResponse, FetchResponse, InitProducerIdResponse, ListOffsetsResponse,
    MetadataResponse, MetadataResponsePartition, MetadataResponseTopic, ProduceResponse, Records,
    Response, Str, Versions, decode_response,
};
#[cfg(feature = "blocking")]
use tackboard_schema::kafka::{CreateTopicsResponse, DeleteTopicsResponse};
use tackboard_schema::{
    Acks, BrokerId, CoreId, Durability, ErrorCode, LeaderEpoch, Offset, PartitionIndex,
    ProducerEpoch, ProducerId, TimestampMs,
};

use super::codes::error_code;
#[cfg(feature = "blocking")]
use crate::admin::CreatedTopic;
use crate::admin::{
    BrokerDescription, ClusterDescription, ListedOffset, PartitionSummary, TopicSummary,
};
use crate::error::{Error, Result};
use crate::protocol::frames::KafkaFrame;
use crate::protocol::messages::Context;
use crate::protocol::wire::{FetchResult, ListOffsetsResult, ProduceResult, address, are_dense};

impl Context {
    /// The answer.
    fn decode<R: Response>(&self, frame: &KafkaFrame) -> Result<R> {
        decode_response(frame.bytes().clone(), self.version).map_err(|fault| self.fault(fault))
    }

    /// `Ok` for code 0, else the refusal, in the broker's words or else in ours.
    fn check_kafka(&self, code: i16, message: Option<&str>) -> Result<()> {
        match error_code(code) {
            (ErrorCode::None, _) => Ok(()),
            (code, words) => {
                let refusal = self.refusal(None, code, message.or(words.as_deref()));
                Err(Error::Refused(refusal))
            }
        }
    }
}

/// The versions that the broker speaks, by API.
pub(super) fn read_api_versions(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<Vec<(i16, Versions)>> {
    let answer: ApiVersionsResponse = context.decode(frame)?;
    context.check_kafka(answer.error_code, None)?;
    let offered = answer.api_keys.iter().map(|row| {
        let (min, max) = (row.min_version, row.max_version);
        (row.api_key, Versions { min, max })
    });
    Ok(offered.collect())
}

pub(in crate::protocol::wire) fn read_metadata(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<ClusterDescription> {
    let answer: MetadataResponse = context.decode(frame)?;
    let brokers = answer.brokers.iter().map(|broker| {
        let port = u16::try_from(broker.port);
        let port = port.map_err(|_| context.fault(format_args!("port {}", broker.port)))?;
        Ok(BrokerDescription {
            broker_id: BrokerId(broker.node_id),
            address: address(&broker.host, port),
            core_addresses: Vec::new(),
        })
    });
    let brokers = brokers.collect::<Result<_>>()?;
    let topics = answer.topics.iter();
    let mut topics = topics
        .map(|topic| topic_summary(context, topic))
        .collect::<Result<Vec<_>>>()?;
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(ClusterDescription { brokers, topics })
}

fn topic_summary(context: &Context, topic: &MetadataResponseTopic) -> Result<TopicSummary> {
    let Some(name) = topic.name.as_deref() else {
        return Err(context.fault("a topic without a name"));
    };
    let mut partitions: Vec<_> = topic.partitions.iter().map(partition_summary).collect();
    partitions.sort_by_key(|partition| partition.partition);
    if !are_dense(&partitions) {
        return Err(context.fault(format_args!(
            "partitions of {name} that are not numbered from 0"
        )));
    }
    Ok(TopicSummary {
        name: name.into(),
        error: some_error(topic.error_code),
        topic_id: topic.topic_id,
        // Of its settings the protocol tells nothing here; these ask for the most.
        acks: Acks::All,
        durability: Durability::Fsync,
        partitions,
    })
}

fn partition_summary(partition: &MetadataResponsePartition) -> PartitionSummary {
    let brokers = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect();
    PartitionSummary {
        partition: PartitionIndex(partition.partition_index),
        error: some_error(partition.error_code),
        leader: (partition.leader_id >= 0).then_some(BrokerId(partition.leader_id)),
        leader_epoch: LeaderEpoch(partition.leader_epoch),
        core: CoreId(0),
        replicas: brokers(&partition.replica_nodes),
        in_sync_replicas: brokers(&partition.isr_nodes),
    }
}

fn some_error(code: i16) -> Option<ErrorCode> {
    (code != 0).then(|| error_code(code).0)
}

pub(in crate::protocol::wire) fn read_init_producer(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<(ProducerId, ProducerEpoch)> {
    let answer: InitProducerIdResponse = context.decode(frame)?;
    context.check_kafka(answer.error_code, None)?;
    let (id, epoch) = (answer.producer_id, answer.producer_epoch);
    if id < 0 || epoch < 0 {
        return Err(context.fault(format_args!("producer id {id} and epoch {epoch}")));
    }
    Ok((ProducerId(id), ProducerEpoch(epoch)))
}

pub(in crate::protocol::wire) fn read_list_offsets(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<Vec<ListOffsetsResult>> {
    let answer: ListOffsetsResponse = context.decode(frame)?;
    let mut results = Vec::new();
    for topic in &answer.topics {
        let name: Arc<str> = (&*topic.name).into();
        for found in &topic.partitions {
            let partition = PartitionIndex(found.partition_index);
            let listed = match error_code(found.error_code) {
                (ErrorCode::None, _) => Ok(ListedOffset {
                    topic: name.clone(),
                    partition,
                    offset: (found.offset >= 0).then_some(Offset(found.offset)),
                    timestamp: (found.timestamp >= 0).then_some(TimestampMs(found.timestamp)),
                }),
                (code, words) => {
                    let context = context.clone().topic(&name);
                    let refusal = context.refusal(Some(partition), code, words.as_deref());
                    Err(Error::Refused(refusal))
                }
            };
            results.push((name.clone(), partition, listed));
        }
    }
    Ok(results)
}

/// The answer to a produce request, partition by partition.
#[derive(Debug)]
pub(crate) struct Produced {
    results: Vec<ProducedPartition>,
}

#[derive(Debug)]
struct ProducedPartition {
    topic: Str,
    partition: i32,
    code: ErrorCode,
    message: Option<Str>,
    base_offset: i64,
}

pub(in crate::protocol::wire) fn read_produced(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<Produced> {
    let answer: ProduceResponse = context.decode(frame)?;
    let mut results = Vec::new();
    for topic in answer.responses {
        for result in topic.partition_responses {
            let (code, words) = error_code(result.error_code);
            results.push(ProducedPartition {
                topic: topic.name.clone(),
                partition: result.index,
                code,
                message: result.error_message.or(words.map(Str::from)),
                base_offset: result.base_offset,
            });
        }
    }
    Ok(Produced { results })
}

impl Produced {
    /// What it says of one batch. Answers are in the order of the request, which is that of the entries where they are
    /// all of one topic; nothing depends on it.
    pub(in crate::protocol::wire) fn result(
        &self,
        index: usize,
        topic: &str,
        partition: PartitionIndex,
    ) -> Option<ProduceResult<'_>> {
        let is_it =
            |result: &&ProducedPartition| result.partition == partition.0 && result.topic == *topic;
        let in_order = self.results.get(index).filter(is_it);
        let result = in_order.or_else(|| self.results.iter().find(is_it))?;
        Some(ProduceResult {
            code: result.code,
            message: result.message.as_deref(),
            base_offset: result.base_offset,
        })
    }
}

pub(in crate::protocol::wire) fn read_fetched(
    context: &Context,
    frame: &KafkaFrame,
    mut take: impl FnMut(usize, FetchResult<'_>),
) -> Result<()> {
    let answer: FetchResponse = context.decode(frame)?;
    context.check_kafka(answer.error_code, None)?;
    let mut index = 0;
    for topic in &answer.responses {
        for result in &topic.partitions {
            let (code, words) = error_code(result.error_code);
            let records = result.records.as_ref().and_then(Records::bytes);
            let result = FetchResult {
                topic: &topic.topic,
                partition: PartitionIndex(result.partition_index),
                code,
                message: words.as_deref(),
                high_watermark: Offset(result.high_watermark),
                log_start_offset: Offset(result.log_start_offset),
                batches: records.map(whole_batches).unwrap_or_default(),
            };
            take(index, result);
            index += 1;
        }
    }
    Ok(())
}

/// Bytes of a batch's base offset and length, which the length does not count.
const BATCH_OVERHEAD_BYTES: usize = 12;

/// The batches that are there to their ends: brokers cut the log by bytes, wherever that falls. A length that can't be
/// is left for the check of the batch to refuse.
fn whole_batches(records: &Bytes) -> Bytes {
    let mut at = 0;
    while let Some(length) = records.get(at + 8..at + BATCH_OVERHEAD_BYTES) {
        let length = length.try_into().map(i32::from_be_bytes).unwrap_or(0);
        let Ok(length @ 1..) = usize::try_from(length) else {
            return records.clone();
        };
        if records.len() - at - BATCH_OVERHEAD_BYTES < length {
            break;
        }
        at += BATCH_OVERHEAD_BYTES + length;
    }
    records.slice(..at)
}

#[cfg(feature = "blocking")]
pub(in crate::protocol::wire) fn read_create_topic(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<CreatedTopic> {
    let answer: CreateTopicsResponse = context.decode(frame)?;
    let [topic] = &answer.topics[..] else {
        return Err(context.fault(format_args!("{} topics", answer.topics.len())));
    };
    context.check_kafka(topic.error_code, topic.error_message.as_deref())?;
    Ok(CreatedTopic {
        topic_id: topic.topic_id,
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
    })
}

#[cfg(feature = "blocking")]
pub(in crate::protocol::wire) fn read_delete_topic(
    context: &Context,
    frame: &KafkaFrame,
) -> Result<()> {
    let answer: DeleteTopicsResponse = context.decode(frame)?;
    let [topic] = &answer.responses[..] else {
        return Err(context.fault(format_args!("{} topics", answer.responses.len())));
    };
    context.check_kafka(topic.error_code, topic.error_message.as_deref())
}
