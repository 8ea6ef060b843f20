//! Answers: completed requests to frames.

use tackboard_logic::{
    request::{lookup::ListedOffset, produce::Appended},
    shard::interface::LogDescription,
};
use tackboard_schema::{
    CorrelationId, ErrorCode, Offset, TimestampMs,
    frame::{self, ApiKey, Kind},
    native::{self as head, FetchResultHead, HeadBuilder, ProduceResultHead},
};

use super::connection::{Connection, OutFrame};
use crate::shard::request::{Entry, Failure, Fetched};

/// Queues an answer without a body.
pub fn send_head(connection: &Connection, api: ApiKey, correlation_id: CorrelationId, head: &[u8]) {
    connection.send_head(|out| {
        frame::encode_head(out, Kind::Response, api, correlation_id, head, 0);
    });
}

/// Answers a request that could not be read as its own API.
pub fn error(
    heads: &mut HeadBuilder,
    connection: &Connection,
    correlation_id: CorrelationId,
    failure: &Failure,
) {
    let head = heads.error_response(failure.code, &failure.message);
    send_head(connection, ApiKey::Error, correlation_id, head);
}

fn split<T>(entry: &Entry<T>) -> (Option<&T>, ErrorCode, Option<&str>) {
    match &entry.outcome {
        Some(Ok(value)) => (Some(value), ErrorCode::None, None),
        Some(Err(failure)) => (None, failure.code, Some(&failure.message)),
        None => (
            None,
            ErrorCode::UnknownServerError,
            Some("the entry was never answered"),
        ),
    }
}

/// Answers a produce request.
pub fn produce(
    heads: &mut HeadBuilder,
    connection: &Connection,
    correlation_id: CorrelationId,
    entries: &[Entry<Appended>],
) {
    let result = |entry| {
        let entry: &Entry<Appended> = entry;
        let (appended, error_code, message) = split(entry);
        ProduceResultHead {
            error_code,
            message,
            topic: &entry.topic,
            partition: entry.partition,
            base_offset: appended.map_or(Offset(-1), |appended| appended.base_offset),
            log_append_time: appended
                .and_then(|appended| appended.log_append_time)
                .unwrap_or(TimestampMs(-1)),
            log_start_offset: appended.map_or(Offset(-1), |appended| appended.log_start_offset),
        }
    };
    if let [only] = entries {
        let head = heads.produce_response(&[result(only)]);
        return send_head(connection, ApiKey::Produce, correlation_id, head);
    }
    let results: Vec<_> = entries.iter().map(result).collect();
    let head = heads.produce_response(&results);
    send_head(connection, ApiKey::Produce, correlation_id, head);
}

/// Answers a fetch; the batches go out from where they lie.
pub fn fetch(
    heads: &mut HeadBuilder,
    connection: &Connection,
    correlation_id: CorrelationId,
    entries: Vec<Entry<Fetched>>,
) {
    let result = |entry| {
        let entry: &Entry<Fetched> = entry;
        let (fetched, error_code, message) = split(entry);
        let (log_start_offset, high_watermark) = match &entry.outcome {
            Some(Ok(fetched)) => (fetched.log_start_offset, fetched.high_watermark),
            Some(Err(Failure { log: Some(log), .. })) => (log.log_start_offset, log.high_watermark),
            _ => (Offset(-1), Offset(-1)),
        };
        FetchResultHead {
            error_code,
            message,
            topic: &entry.topic,
            partition: entry.partition,
            high_watermark,
            log_start_offset,
            byte_length: fetched.map_or(0, |fetched| fetched.byte_length() as u32),
        }
    };
    let results: Vec<_> = entries.iter().map(result).collect();
    let body_length = results
        .iter()
        .map(|result| result.byte_length as usize)
        .sum();
    let head = heads.fetch_response(&results);
    let mut frame = OutFrame {
        answers: 1,
        padding: frame::padding(body_length),
        ..OutFrame::default()
    };
    frame::encode_head(
        &mut frame.head,
        Kind::Response,
        ApiKey::Fetch,
        correlation_id,
        head,
        body_length,
    );
    frame.body = (entries.into_iter())
        .filter_map(|entry| entry.outcome?.ok())
        .flat_map(|fetched| fetched.pieces)
        .collect();
    frame.length = frame.head.len() + body_length + frame.padding.len();
    connection.send(frame);
}

/// Answers a look-up of offsets.
pub fn list_offsets(
    heads: &mut HeadBuilder,
    connection: &Connection,
    correlation_id: CorrelationId,
    entries: &[Entry<ListedOffset>],
) {
    let head = heads.build(|builder| {
        let results: Vec<_> = (entries.iter())
            .map(|entry| {
                let (listed, error_code, message) = split(entry);
                let args = head::ListOffsetsResultArgs {
                    error_code: error_code.code(),
                    message: message.map(|message| builder.create_string(message)),
                    topic: Some(builder.create_shared_string(&entry.topic)),
                    partition: entry.partition.0,
                    offset: listed.map_or(-1, |listed| listed.offset.0),
                    timestamp_ms: listed.map_or(-1, |listed| listed.timestamp.0),
                };
                head::ListOffsetsResult::create(builder, &args)
            })
            .collect();
        let args = head::ListOffsetsResponseArgs {
            results: Some(builder.create_vector(&results)),
            ..Default::default()
        };
        head::ListOffsetsResponse::create(builder, &args)
    });
    send_head(connection, ApiKey::ListOffsets, correlation_id, head);
}

/// What a description says of a topic beside its partitions.
pub struct TopicHeading<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its id.
    pub id: [u8; 16],
    /// Copies of each partition.
    pub replication_factor: i16,
    /// Effective settings: key, value, whether the topic itself sets it.
    pub configs: &'a [(String, String, bool)],
    /// Leader, leader epoch and core of each partition.
    pub leaders: &'a [(i32, i32, u16)],
}

/// Answers a description of a topic.
pub fn describe(
    heads: &mut HeadBuilder,
    connection: &Connection,
    correlation_id: CorrelationId,
    topic: &TopicHeading<'_>,
    entries: &[Entry<LogDescription>],
) {
    let head = heads.build(|builder| {
        let partitions: Vec<_> = (entries.iter().zip(topic.leaders))
            .map(|(entry, (leader, leader_epoch, core))| {
                let (log, error_code, message) = split(entry);
                let args = head::PartitionDescriptionArgs {
                    partition: entry.partition.0,
                    error_code: error_code.code(),
                    message: message.map(|message| builder.create_string(message)),
                    leader: *leader,
                    leader_epoch: *leader_epoch,
                    core: *core,
                    log_start_offset: log.map_or(-1, |log| log.log_start_offset.0),
                    high_watermark: log.map_or(-1, |log| log.high_watermark.0),
                    log_end_offset: log.map_or(-1, |log| log.log_end_offset.0),
                    size_bytes: log.map_or(0, |log| log.size_bytes),
                    segment_count: log.map_or(0, |log| log.segment_count),
                    last_append_ms: log.and_then(|log| log.last_append).map_or(-1, |at| at.0),
                };
                head::PartitionDescription::create(builder, &args)
            })
            .collect();
        let configs: Vec<_> = (topic.configs.iter())
            .map(|(key, value, from_topic)| {
                let args = head::ConfigEntryArgs {
                    key: Some(builder.create_string(key)),
                    value: Some(builder.create_string(value)),
                    from_topic: *from_topic,
                };
                head::ConfigEntry::create(builder, &args)
            })
            .collect();
        let id = head::Uuid::new(&topic.id);
        let args = head::DescribeTopicResponseArgs {
            name: Some(builder.create_string(topic.name)),
            topic_id: Some(&id),
            replication_factor: topic.replication_factor,
            configs: Some(builder.create_vector(&configs)),
            partitions: Some(builder.create_vector(&partitions)),
            ..Default::default()
        };
        head::DescribeTopicResponse::create(builder, &args)
    });
    send_head(connection, ApiKey::DescribeTopic, correlation_id, head);
}
