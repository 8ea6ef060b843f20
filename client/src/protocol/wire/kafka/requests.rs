//! Writes requests in Kafka's format.
//!
//! Entries of one topic stand together there, whatever the order they were given in; batches are not copied: the frame
//! is cut where they belong.

use std::collections::VecDeque;

use bytes::Bytes;
use tackboard_schema::kafka::{
    ApiVersionsRequest, FetchRequest, FetchRequestPartition, FetchRequestTopic,
    InitProducerIdRequest, ListOffsetsRequest, ListOffsetsRequestPartition,
    ListOffsetsRequestTopic, MetadataRequest, MetadataRequestTopic, Part, ProduceRequest,
    ProduceRequestPartition, ProduceRequestTopic, Records, Request, Str, encode_request, parts,
};
#[cfg(feature = "blocking")]
use tackboard_schema::kafka::{
    CreateTopicsRequest, CreateTopicsRequestConfig, CreateTopicsRequestTopic, DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
};
use tackboard_schema::native::{
    FetchEntryHead, FetchRequestHead, ProduceEntryHead, ProduceRequestHead,
};
use tackboard_schema::{Acks, ErrorCode, PartitionIndex};

#[cfg(feature = "blocking")]
use crate::admin::NewTopic;
use crate::admin::OffsetQuery;
use crate::protocol::wire::{Question, Unaskable};

/// How long a broker may take to create or delete a topic.
#[cfg(feature = "blocking")]
const TOPIC_TIMEOUT_MS: i32 = 30_000;

/// What every request begins with.
pub(super) struct To<'a> {
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    pub(super) client_id: &'a Str,
}

/// Writes a request behind what `out` has; after a fault `out` is untouched.
pub(super) fn write(
    out: &mut VecDeque<Bytes>,
    to: &To<'_>,
    question: &Question<'_>,
) -> Result<(), Unaskable> {
    match question {
        Question::Hello { .. } => to.encode(out, &ApiVersionsRequest::default()),
        Question::Metadata { topics } => to.encode(out, &metadata(*topics)),
        Question::InitProducer => to.encode(out, &init_producer_id()),
        Question::Produce {
            request,
            entries,
            body,
        } => {
            let (request, order) = produce(request, entries)?;
            to.encode_with(out, &request, |index| body[order[index]].clone())
        }
        Question::Fetch { request, entries } => to.encode(out, &fetch(request, entries)),
        Question::ListOffsets { entries } => to.encode(out, &list_offsets(entries)),
        #[cfg(feature = "blocking")]
        Question::CreateTopic(topic) => to.encode(out, &create_topics(topic)),
        #[cfg(feature = "blocking")]
        Question::DeleteTopic(name) => to.encode(out, &delete_topics(name)),
        // Refused where its API is looked for.
        Question::Group(_) => Ok(()),
        #[cfg(feature = "blocking")]
        Question::CreatePartitions(..) | Question::AlterTopic(..) | Question::DescribeTopic(_) => {
            Ok(())
        }
    }
}

impl To<'_> {
    fn encode(&self, out: &mut VecDeque<Bytes>, request: &impl Request) -> Result<(), Unaskable> {
        self.encode_with(out, request, |_| Bytes::new())
    }

    /// `records` gives the bytes of each gap.
    fn encode_with(
        &self,
        out: &mut VecDeque<Bytes>,
        request: &impl Request,
        records: impl Fn(usize) -> Bytes,
    ) -> Result<(), Unaskable> {
        let mut frame = Vec::new();
        let gaps = encode_request(
            &mut frame,
            self.version,
            self.correlation_id,
            Some(self.client_id),
            request,
        )
        .map_err(|fault| Unaskable {
            code: ErrorCode::InvalidRequest,
            message: fault.to_string(),
        })?;
        let frame = Bytes::from(frame);
        out.extend(parts(&frame, &gaps).map(|part| match part {
            Part::Frame(bytes) => frame.slice_ref(bytes),
            Part::Records(index) => records(index),
        }));
        Ok(())
    }
}

/// Puts entries of one topic together; topics and the entries of each stay in their order.
fn by_topic<'a, E: 'a>(
    entries: impl Iterator<Item = (&'a str, E)>,
) -> impl Iterator<Item = (Str, Vec<E>)> {
    let mut topics: Vec<(&str, Vec<E>)> = Vec::new();
    for (name, entry) in entries {
        // Neighbours mostly are of one topic.
        match topics.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, entries)) => entries.push(entry),
            None => topics.push((name, vec![entry])),
        }
    }
    topics
        .into_iter()
        .map(|(name, entries)| (name.into(), entries))
}

fn metadata(topics: Option<&[&str]>) -> MetadataRequest {
    let topic = |name: &&str| MetadataRequestTopic {
        name: Some((*name).into()),
        ..MetadataRequestTopic::default()
    };
    MetadataRequest {
        topics: topics.map(|names| names.iter().map(topic).collect()),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    }
}

fn init_producer_id() -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: None,
        // Without a transaction it has no meaning, but must be one.
        transaction_timeout_ms: i32::MAX,
        ..InitProducerIdRequest::default()
    }
}

/// The request, and which entry stands at each place.
fn produce(
    request: &ProduceRequestHead,
    entries: &[ProduceEntryHead<'_>],
) -> Result<(ProduceRequest, Vec<usize>), Unaskable> {
    // A durability can't be asked for here; settings that do are refused.
    let acks = match request.acks {
        Some(Acks::All) => -1,
        Some(Acks::Count(count)) => count,
        None => {
            return Err(Unaskable {
                code: ErrorCode::InvalidRequiredAcks,
                message: "Kafka's protocol always asks for acks".into(),
            });
        }
    };
    let mut order = Vec::with_capacity(entries.len());
    let named = entries.iter().enumerate();
    let named = named.map(|(index, entry)| (entry.topic, (index, entry)));
    let topic_data = by_topic(named).map(|(name, entries)| ProduceRequestTopic {
        name,
        partition_data: entries
            .into_iter()
            .map(|(index, entry)| {
                order.push(index);
                ProduceRequestPartition {
                    index: entry.partition.0,
                    records: Some(Records::Elsewhere(entry.byte_length)),
                }
            })
            .collect(),
    });
    let topic_data = topic_data.collect();
    let request = ProduceRequest {
        transactional_id: None,
        acks,
        timeout_ms: bounded(request.timeout_ms),
        topic_data,
    };
    Ok((request, order))
}

fn fetch(request: &FetchRequestHead, entries: &[FetchEntryHead<'_>]) -> FetchRequest {
    let named = entries.iter().map(|entry| (entry.topic, entry));
    let topics = by_topic(named).map(|(topic, entries)| FetchRequestTopic {
        topic,
        partitions: entries
            .into_iter()
            .map(|entry| FetchRequestPartition {
                partition: entry.partition.0,
                fetch_offset: entry.fetch_offset.0,
                partition_max_bytes: bounded(entry.bytes_max),
                ..FetchRequestPartition::default()
            })
            .collect(),
        ..FetchRequestTopic::default()
    });
    FetchRequest {
        max_wait_ms: bounded(request.wait_ms_max),
        min_bytes: bounded(request.bytes_min),
        max_bytes: bounded(request.bytes_max),
        topics: topics.collect(),
        ..FetchRequest::default()
    }
}

fn list_offsets(entries: &[(&str, PartitionIndex, OffsetQuery)]) -> ListOffsetsRequest {
    let named = entries.iter();
    let named = named.map(|(topic, partition, query)| (*topic, (*partition, *query)));
    let topics = by_topic(named).map(|(name, entries)| ListOffsetsRequestTopic {
        name,
        partitions: entries
            .into_iter()
            .map(|(partition, query)| ListOffsetsRequestPartition {
                partition_index: partition.0,
                timestamp: query.number(),
                ..ListOffsetsRequestPartition::default()
            })
            .collect(),
    });
    ListOffsetsRequest {
        replica_id: -1,
        topics: topics.collect(),
        ..ListOffsetsRequest::default()
    }
}

#[cfg(feature = "blocking")]
fn create_topics(topic: &NewTopic) -> CreateTopicsRequest {
    let configs = topic.configs.iter();
    let configs = configs.map(|(name, value)| CreateTopicsRequestConfig {
        name: name.as_str().into(),
        value: Some(value.as_str().into()),
    });
    let topic = CreateTopicsRequestTopic {
        name: topic.name.as_str().into(),
        num_partitions: topic.partitions.unwrap_or(-1),
        replication_factor: topic.replication_factor.unwrap_or(-1),
        configs: configs.collect(),
        ..CreateTopicsRequestTopic::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        timeout_ms: TOPIC_TIMEOUT_MS,
        validate_only: false,
    }
}

#[cfg(feature = "blocking")]
fn delete_topics(name: &str) -> DeleteTopicsRequest {
    let topic = DeleteTopicsRequestTopic {
        name: Some(name.into()),
        ..DeleteTopicsRequestTopic::default()
    };
    // Which of the two is written is the version's to say.
    DeleteTopicsRequest {
        topics: vec![topic],
        topic_names: vec![name.into()],
        timeout_ms: TOPIC_TIMEOUT_MS,
    }
}

/// Kafka's numbers are signed.
fn bounded(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tackboard_schema::kafka::RequestFrame;

    #[test]
    fn batches_are_slices_and_stand_with_their_partitions() {
        let bodies: Vec<Bytes> = ["one", "second", "3"]
            .map(|text| text.as_bytes().into())
            .into();
        let topics = ["a", "b", "a"];
        let entries: Vec<_> = (0..3)
            .map(|index| ProduceEntryHead {
                topic: topics[index],
                partition: PartitionIndex(index as i32),
                byte_length: bodies[index].len() as u32,
            })
            .collect();
        let request = ProduceRequestHead {
            acks: Some(Acks::All),
            durability: None,
            timeout_ms: 250,
        };
        let question = Question::Produce {
            request: &request,
            entries: &entries,
            body: &bodies,
        };
        let client_id = "test".into();
        for version in [3, 9, 11] {
            let to = To {
                version,
                correlation_id: 7,
                client_id: &client_id,
            };
            let mut out = VecDeque::new();
            write(&mut out, &to, &question).unwrap();
            for body in &bodies {
                let is_it = |piece: &Bytes| piece.as_ptr() == body.as_ptr();
                assert!(out.iter().any(is_it), "{body:?} was copied");
            }
            let frame: Vec<u8> = out.into_iter().flatten().collect();
            assert_eq!(frame[..4], (frame.len() as i32 - 4).to_be_bytes());
            let frame = RequestFrame::open(Bytes::from(frame).slice(4..)).unwrap();
            assert_eq!((frame.version, frame.correlation_id), (version, 7));
            let read: ProduceRequest = frame.body().unwrap();
            assert_eq!((read.acks, read.timeout_ms), (-1, 250));
            let found: Vec<_> = read
                .topic_data
                .iter()
                .flat_map(|topic| topic.partition_data.iter().map(|part| (&*topic.name, part)))
                .map(|(name, part)| (name, part.index, part.records.clone().unwrap()))
                .collect();
            let expected = [0, 2, 1].map(|index| {
                let records = Records::Here(bodies[index].clone());
                (topics[index], index as i32, records)
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let name = "x".repeat(40_000);
        let client_id = "test".into();
        let to = To {
            version: 4,
            correlation_id: 1,
            client_id: &client_id,
        };
        let mut out = VecDeque::new();
        let names = [&*name];
        let question = Question::Metadata {
            topics: Some(&names),
        };
        let refused = write(&mut out, &to, &question).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest);
        assert!(out.is_empty());
    }
}
