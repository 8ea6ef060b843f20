//! Heads of the requests that create, delete and describe topics.

use tackboard_schema::native::{self, HeadBuilder};
use tackboard_schema::{BrokerId, CoreId, LeaderEpoch, Offset, PartitionIndex, TimestampMs};

use super::native::{some_error, topic_id};
use crate::admin::{CreatedTopic, NewTopic, PartitionDescription, TopicDescription, TopicSetting};
use crate::error::Result;
use crate::protocol::frames::NativeFrame;
use crate::protocol::messages::Context;

/// Asks for a topic to be created.
pub(super) fn create_topic_request<'b>(builder: &'b mut HeadBuilder, topic: &NewTopic) -> &'b [u8] {
    builder.build(|builder| {
        let configs = topic.configs.iter().map(|(key, value)| {
            let (key, value) = (
                Some(builder.create_string(key)),
                Some(builder.create_string(value)),
            );
            native::KeyValue::create(builder, &native::KeyValueArgs { key, value })
        });
        let configs: Vec<_> = configs.collect();
        let args = native::CreateTopicRequestArgs {
            name: Some(builder.create_string(&topic.name)),
            partitions: topic.partitions.unwrap_or(-1),
            replication_factor: topic.replication_factor.unwrap_or(-1),
            configs: Some(builder.create_vector(&configs)),
        };
        native::CreateTopicRequest::create(builder, &args)
    })
}

/// Reads the answer to [`create_topic_request`].
pub(super) fn read_create_topic(context: &Context, frame: &NativeFrame) -> Result<CreatedTopic> {
    let created = context.read::<native::CreateTopicResponse<'_>>(frame)?;
    context.check(created.error_code(), created.message())?;
    Ok(CreatedTopic {
        topic_id: topic_id(created.topic_id()),
        partitions: created.partitions(),
        replication_factor: created.replication_factor(),
    })
}

/// Asks for a topic to be deleted.
pub(super) fn delete_topic_request<'b>(builder: &'b mut HeadBuilder, name: &str) -> &'b [u8] {
    builder.build(|builder| {
        let name = Some(builder.create_string(name));
        native::DeleteTopicRequest::create(builder, &native::DeleteTopicRequestArgs { name })
    })
}

/// Reads the answer to [`delete_topic_request`].
pub(super) fn read_delete_topic(context: &Context, frame: &NativeFrame) -> Result<()> {
    let deleted = context.read::<native::DeleteTopicResponse<'_>>(frame)?;
    context.check(deleted.error_code(), deleted.message())
}

/// Asks for more partitions of a topic.
pub(super) fn create_partitions_request<'b>(
    builder: &'b mut HeadBuilder,
    name: &str,
    count: i32,
) -> &'b [u8] {
    builder.build(|builder| {
        let name = Some(builder.create_string(name));
        let args = native::CreatePartitionsRequestArgs { name, count };
        native::CreatePartitionsRequest::create(builder, &args)
    })
}

/// Reads the answer to [`create_partitions_request`].
pub(super) fn read_create_partitions(context: &Context, frame: &NativeFrame) -> Result<()> {
    let created = context.read::<native::CreatePartitionsResponse<'_>>(frame)?;
    context.check(created.error_code(), created.message())
}

/// Asks for other settings of a topic: key and value, or none for the broker's.
pub(super) fn alter_topic_request<'b>(
    builder: &'b mut HeadBuilder,
    name: &str,
    changes: &[(String, Option<String>)],
) -> &'b [u8] {
    builder.build(|builder| {
        let changes = changes.iter().map(|(key, value)| {
            let args = native::SettingChangeArgs {
                key: Some(builder.create_string(key)),
                value: (value.as_ref()).map(|value| builder.create_string(value)),
            };
            native::SettingChange::create(builder, &args)
        });
        let changes: Vec<_> = changes.collect();
        let args = native::AlterTopicRequestArgs {
            name: Some(builder.create_string(name)),
            changes: Some(builder.create_vector(&changes)),
        };
        native::AlterTopicRequest::create(builder, &args)
    })
}

/// Reads the answer to [`alter_topic_request`].
pub(super) fn read_alter_topic(context: &Context, frame: &NativeFrame) -> Result<()> {
    let altered = context.read::<native::AlterTopicResponse<'_>>(frame)?;
    context.check(altered.error_code(), altered.message())
}

/// Asks for a topic's settings and positions.
pub(super) fn describe_topic_request<'b>(builder: &'b mut HeadBuilder, name: &str) -> &'b [u8] {
    builder.build(|builder| {
        let name = Some(builder.create_string(name));
        native::DescribeTopicRequest::create(builder, &native::DescribeTopicRequestArgs { name })
    })
}

/// Reads the answer to [`describe_topic_request`].
pub(super) fn read_describe_topic(
    context: &Context,
    frame: &NativeFrame,
) -> Result<TopicDescription> {
    let topic = context.read::<native::DescribeTopicResponse<'_>>(frame)?;
    context.check(topic.error_code(), topic.message())?;
    let configs = topic
        .configs()
        .unwrap_or_default()
        .iter()
        .map(|config| TopicSetting {
            key: config.key().into(),
            value: config.value().into(),
            from_topic: config.from_topic(),
        });
    let mut partitions: Vec<_> = topic
        .partitions()
        .unwrap_or_default()
        .iter()
        .map(partition_description)
        .collect();
    partitions.sort_by_key(|partition| partition.partition);
    Ok(TopicDescription {
        name: topic.name().unwrap_or_default().into(),
        topic_id: topic_id(topic.topic_id()),
        replication_factor: topic.replication_factor(),
        configs: configs.collect(),
        partitions,
    })
}

fn partition_description(partition: native::PartitionDescription<'_>) -> PartitionDescription {
    let error = some_error(partition.error_code());
    let last_append = TimestampMs(partition.last_append_ms());
    PartitionDescription {
        partition: PartitionIndex(partition.partition()),
        error: error.map(|code| (code, partition.message().unwrap_or_default().into())),
        leader: (partition.leader() >= 0).then(|| BrokerId(partition.leader())),
        leader_epoch: LeaderEpoch(partition.leader_epoch()),
        core: CoreId(partition.core()),
        log_start_offset: Offset(partition.log_start_offset()),
        high_watermark: Offset(partition.high_watermark()),
        log_end_offset: Offset(partition.log_end_offset()),
        size_bytes: partition.size_bytes(),
        segment_count: partition.segment_count(),
        last_append: (last_append.0 >= 0).then_some(last_append),
    }
}
