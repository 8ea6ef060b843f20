//! `tackboard topic`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tackboard_client::{
    Admin, ClientConfig, NewTopic, PartitionDescription, TopicDescription, TopicSummary,
};

use crate::config::quantity::{
    approximate_size, parse_duration, parse_size, separated, show_duration,
};

use super::arguments::{
    AlterArguments, ClientArguments, CreateArguments, ListArguments, NamedTopicArguments,
    TopicArguments, TopicCommand,
};
use super::failure::Failure;
use super::output::{Columns, ago, counted, print, print_json, rfc3339};

pub(super) fn run(arguments: TopicArguments) -> Result<(), Failure> {
    match arguments.command {
        TopicCommand::Create(arguments) => create(&arguments),
        TopicCommand::List(arguments) => list(&arguments),
        TopicCommand::Describe(arguments) => describe(&arguments),
        TopicCommand::Alter(arguments) => alter(&arguments),
        TopicCommand::Delete(arguments) => delete(&arguments),
    }
}

fn connect(arguments: &ClientArguments) -> Result<Admin, Failure> {
    Ok(Admin::connect(&arguments.broker, client_config())?)
}

/// What the broker's log shows of us.
pub(super) fn client_config() -> ClientConfig {
    ClientConfig {
        client_id: "tackboard-cli".to_owned(),
        ..ClientConfig::default()
    }
}

fn create(arguments: &CreateArguments) -> Result<(), Failure> {
    let mut topic = NewTopic::new(&arguments.topic);
    topic.partitions = arguments.partitions;
    topic.replication_factor = arguments.replication_factor;
    topic.configs = arguments
        .config
        .iter()
        .map(|(key, value)| (key.clone(), plain_number(key, value)))
        .collect();
    let created = connect(&arguments.client)?.create_topic(&topic)?;
    if arguments.client.json {
        return print_json(&json!({
            "topic": arguments.topic,
            "topic_id": created.topic_id.to_string(),
            "partitions": created.partitions,
            "replication_factor": created.replication_factor,
        }));
    }
    let partitions = counted(created.partitions.unsigned_abs().into(), "partition");
    print(&format!(
        "created {}   {partitions}   replication {}\n",
        arguments.topic, created.replication_factor
    ))
}

/// Topic settings are plain numbers of milliseconds and bytes, as in Kafka; people may write units.
fn plain_number(key: &str, value: &str) -> String {
    let number = if key.ends_with(".ms") {
        parse_duration(value).map(|duration| duration.as_millis().to_string())
    } else if key.ends_with("bytes") {
        parse_size(value).map(|bytes| bytes.to_string())
    } else {
        None
    };
    // What has no unit of ours goes to the broker as it is, which says what it thinks of it.
    number.unwrap_or_else(|| value.to_owned())
}

fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let topics = connect(&arguments.client)?.list_topics()?;
    if arguments.client.json {
        let topics: Vec<Value> = topics.iter().map(summary_json).collect();
        return print_json(&json!({ "topics": topics }));
    }
    if topics.is_empty() {
        return print("no topics; create one: tackboard topic create NAME --partitions N\n");
    }
    let mut columns = Columns::new(&[
        "topic",
        ">partitions",
        ">replication",
        ">acks",
        "durability",
    ]);
    for topic in &topics {
        columns.row(&[
            topic.name.to_string(),
            separated(topic.partitions.len() as u64),
            replication(topic).to_string(),
            topic.acks.to_string(),
            topic.durability.to_string(),
        ]);
    }
    print(&columns.text(""))
}

fn replication(topic: &TopicSummary) -> usize {
    topic
        .partitions
        .iter()
        .map(|partition| partition.replicas.len())
        .max()
        .unwrap_or(0)
}

fn summary_json(topic: &TopicSummary) -> Value {
    json!({
        "topic": &*topic.name,
        "topic_id": topic.topic_id.to_string(),
        "partitions": topic.partitions.len(),
        "replication_factor": replication(topic),
        "acks": topic.acks.to_string(),
        "durability": topic.durability.to_string(),
        "error": topic.error.map(|code| code.name()),
    })
}

/// Settings first: should the partitions be refused, all that was asked for besides has happened.
fn alter(arguments: &AlterArguments) -> Result<(), Failure> {
    let (topic, mut admin) = (&arguments.topic, connect(&arguments.client)?);
    let set =
        (arguments.config.iter()).map(|(key, value)| (key.clone(), Some(plain_number(key, value))));
    let reset = arguments.reset.iter().map(|key| (key.clone(), None));
    let changes: Vec<_> = set.chain(reset).collect();
    if !changes.is_empty() {
        admin.alter_topic(topic, &changes)?;
    }
    if let Some(count) = arguments.partitions {
        admin.create_partitions(topic, count)?;
    }
    let described = admin.describe_topic(topic)?;
    if arguments.client.json {
        return print_json(&description_json(&described, None));
    }
    let partitions = counted(described.partitions.len() as u64, "partition");
    let mut text = format!("altered {topic}   {partitions}\n");
    for setting in described.configs.iter() {
        if changes.iter().any(|(key, _)| *key == setting.key) {
            let whose = match setting.from_topic {
                true => "",
                false => "   (the broker's)",
            };
            text += &format!("  {} = {}{whose}\n", setting.key, setting.value);
        }
    }
    print(&text)
}

fn delete(arguments: &NamedTopicArguments) -> Result<(), Failure> {
    connect(&arguments.client)?.delete_topic(&arguments.topic)?;
    if arguments.client.json {
        return print_json(&json!({ "topic": arguments.topic, "deleted": true }));
    }
    print(&format!("deleted {}\n", arguments.topic))
}

fn describe(arguments: &NamedTopicArguments) -> Result<(), Failure> {
    let mut admin = connect(&arguments.client)?;
    let description = admin.describe_topic(&arguments.topic)?;
    let cluster = admin.describe_cluster(Some(&[&arguments.topic]))?;
    let summary = cluster.topics.into_iter().next();
    if arguments.client.json {
        return print_json(&description_json(&description, summary.as_ref()));
    }
    print(&description_text(&description, summary.as_ref()))
}

fn events(partition: &PartitionDescription) -> u64 {
    let count = partition
        .high_watermark
        .0
        .saturating_sub(partition.log_start_offset.0);
    u64::try_from(count).unwrap_or(0)
}

fn in_sync(summary: Option<&TopicSummary>) -> BTreeMap<i32, Vec<i32>> {
    let partitions = summary.map_or(&[][..], |summary| &summary.partitions);
    partitions
        .iter()
        .map(|partition| {
            let brokers = partition
                .in_sync_replicas
                .iter()
                .map(|broker| broker.0)
                .collect();
            (partition.partition.0, brokers)
        })
        .collect()
}

fn description_text(topic: &TopicDescription, summary: Option<&TopicSummary>) -> String {
    let mut facts = vec![
        topic.name.to_string(),
        counted(topic.partitions.len() as u64, "partition"),
        format!("replication {}", topic.replication_factor),
    ];
    facts.extend(retention(topic).map(|retention| format!("retention {retention}")));
    facts.push(counted(topic.partitions.iter().map(events).sum(), "event"));
    facts.push(approximate_size(
        topic
            .partitions
            .iter()
            .map(|partition| partition.size_bytes)
            .sum(),
    ));
    if let Some(summary) = summary {
        facts.push(format!("acks {}", summary.acks));
        facts.push(summary.durability.to_string());
    }
    let in_sync = in_sync(summary);
    let mut columns = Columns::new(&[
        ">partition",
        ">leader",
        ">core",
        "in sync",
        ">start",
        ">end",
        ">size",
        "last write",
    ]);
    for partition in &topic.partitions {
        let index = partition.partition.0;
        columns.row(&[
            index.to_string(),
            partition
                .leader
                .map_or_else(|| "none".to_owned(), |leader| leader.to_string()),
            partition.core.to_string(),
            in_sync.get(&index).map_or_else(String::new, |brokers| {
                brokers
                    .iter()
                    .map(i32::to_string)
                    .collect::<Vec<_>>()
                    .join(" ")
            }),
            separated(u64::try_from(partition.log_start_offset.0).unwrap_or(0)),
            separated(u64::try_from(partition.high_watermark.0).unwrap_or(0)),
            approximate_size(partition.size_bytes),
            partition
                .last_append
                .map_or_else(|| "never".to_owned(), ago),
        ]);
    }
    let mut text = format!("{}\n{}", facts.join("   "), columns.text("  "));
    for partition in &topic.partitions {
        if let Some((code, message)) = &partition.error {
            text += &format!(
                "warning  partition {}: {message} ({})\n",
                partition.partition,
                code.name()
            );
        }
    }
    for setting in topic.configs.iter().filter(|setting| setting.from_topic) {
        text += &format!("set on the topic: {} = {}\n", setting.key, setting.value);
    }
    text
}

/// `7 d`, as people say it; the setting is in milliseconds, -1 for no limit.
fn retention(topic: &TopicDescription) -> Option<String> {
    let setting = topic
        .configs
        .iter()
        .find(|setting| setting.key == "retention.ms")?;
    match parse_duration(&setting.value) {
        Some(duration) => Some(show_duration(duration)),
        None => Some("without end".to_owned()),
    }
}

fn description_json(topic: &TopicDescription, summary: Option<&TopicSummary>) -> Value {
    let in_sync = in_sync(summary);
    let partitions: Vec<Value> = topic
        .partitions
        .iter()
        .map(|partition| {
            json!({
                "partition": partition.partition.0,
                "leader": partition.leader.map(|leader| leader.0),
                "leader_epoch": partition.leader_epoch.0,
                "core": partition.core.0,
                "in_sync": in_sync.get(&partition.partition.0),
                "log_start_offset": partition.log_start_offset.0,
                "high_watermark": partition.high_watermark.0,
                "log_end_offset": partition.log_end_offset.0,
                "size_bytes": partition.size_bytes,
                "segments": partition.segment_count,
                "last_append": partition.last_append.map(rfc3339),
                "error": partition.error.as_ref().map(|(code, message)| json!({
                    "code": code.name(), "message": message,
                })),
            })
        })
        .collect();
    let configs: serde_json::Map<String, Value> = topic
        .configs
        .iter()
        .map(|setting| {
            let value = json!({ "value": setting.value, "from_topic": setting.from_topic });
            (setting.key.clone(), value)
        })
        .collect();
    json!({
        "topic": &*topic.name,
        "topic_id": topic.topic_id.to_string(),
        "replication_factor": topic.replication_factor,
        "events": topic.partitions.iter().map(events).sum::<u64>(),
        "size_bytes": topic.partitions.iter().map(|partition| partition.size_bytes).sum::<u64>(),
        "acks": summary.map(|summary| summary.acks.to_string()),
        "durability": summary.map(|summary| summary.durability.to_string()),
        "configs": configs,
        "partitions": partitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_settings_may_have_units() {
        assert_eq!(plain_number("retention.ms", "7 d"), "604800000");
        assert_eq!(plain_number("retention.ms", "1000"), "1000");
        assert_eq!(plain_number("retention.ms", "-1"), "-1");
        assert_eq!(plain_number("segment.bytes", "16 MiB"), "16777216");
        assert_eq!(plain_number("max.message.bytes", "1 MiB"), "1048576");
        assert_eq!(plain_number("acks.min", "all"), "all");
    }
}
