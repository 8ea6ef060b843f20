//! Which partition is where: the image as this core uses it.

use std::sync::Arc;

use ahash::AHashMap;
use tackboard_logic::{
    metadata::{
        Image, Limit, RetentionBudget, RetentionClock as TopicClock, TOPIC_SETTINGS, Topic,
        TopicConfig, TopicSetting,
    },
    request::produce::EffectiveAcks,
    shard::interface::{LogConfig, LogId, RetentionClock, StorageFault},
};
use tackboard_schema::{Acks, BrokerId, CoreId, ErrorCode, PartitionIndex, TopicPartition};

use super::{
    groups::{internal_log_config, is_internal},
    request::Failure,
};
use crate::config::Config;

/// Where an entry of a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By this core's logic.
    Here(LogId),
    /// By another core of this broker.
    There(CoreId, TopicPartition),
}

/// The metadata that this core acts on, and the logs that it has open.
pub struct Topics {
    broker: BrokerId,
    core: CoreId,
    image: Arc<Image>,
    open: AHashMap<TopicPartition, LogId>,
    /// Those of this core that could not be opened.
    failed: AHashMap<TopicPartition, StorageFault>,
    by_name: AHashMap<Arc<str>, Arc<Topic>>,
}

impl Topics {
    /// Nothing open yet.
    pub fn new(broker: BrokerId, core: CoreId, image: Arc<Image>) -> Self {
        let mut topics = Topics {
            broker,
            core,
            image: image.clone(),
            open: AHashMap::new(),
            failed: AHashMap::new(),
            by_name: AHashMap::new(),
        };
        topics.replace(image);
        topics
    }

    /// The image in force.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Puts a newer image in force.
    pub fn replace(&mut self, image: Arc<Image>) {
        let named = |topic: &Arc<Topic>| (topic.name.clone(), topic.clone());
        self.by_name = image.topics().map(named).collect();
        self.failed
            .retain(|partition, _| image.partition(*partition).is_some());
        self.image = image;
    }

    /// A topic by name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// A log of this core was opened.
    pub fn opened(&mut self, partition: TopicPartition, log: LogId) {
        self.failed.remove(&partition);
        self.open.insert(partition, log);
    }

    /// A log of this core could not be opened. Whether that is news.
    pub fn failed(&mut self, partition: TopicPartition, why: StorageFault) -> bool {
        self.failed.insert(partition, why) != Some(why)
    }

    /// Whether any log could not be opened only because the disk took no more: it is tried again.
    pub fn await_space(&self) -> bool {
        self.failed
            .values()
            .any(|why| *why == StorageFault::NoSpace)
    }

    /// A partition was deleted: its log takes no more requests.
    pub fn deleted(&mut self, partition: TopicPartition) {
        self.open.remove(&partition);
    }

    /// An open log of this core.
    pub fn log(&self, partition: TopicPartition) -> Option<LogId> {
        self.open.get(&partition).copied()
    }

    /// The open log of a partition that this core owns by its own image or by another core's, which may be newer or
    /// older.
    ///
    /// # Errors
    /// As Kafka answers for a partition that a broker does not serve: `UNKNOWN_TOPIC_OR_PARTITION` if it is in no
    /// topic that this core knows, `KAFKA_STORAGE_ERROR` if its log could not be opened, and
    /// `NOT_LEADER_OR_FOLLOWER` while it is not opened yet.
    pub fn served(&self, partition: TopicPartition) -> Result<LogId, Failure> {
        if let Some(log) = self.log(partition) {
            return Ok(log);
        }
        let Some(topic) = self.image.topic_by_id(partition.topic) else {
            return Err(Failure::plain(ErrorCode::UnknownTopicOrPartition));
        };
        let (code, what) = match self.failed.get(&partition) {
            Some(StorageFault::NoSpace) => (
                ErrorCode::KafkaStorageError,
                "could not be opened: the disk is full, or has no inodes left; it is opened when there is room",
            ),
            Some(_) => (
                ErrorCode::KafkaStorageError,
                "could not be opened; the broker's log says why",
            ),
            None => (
                ErrorCode::NotLeaderOrFollower,
                "is not opened yet; try again",
            ),
        };
        let (name, index) = (&topic.name, partition.partition);
        let message = format!("partition {index} of topic {name} {what}");
        Err(Failure::new(code, message))
    }

    /// All open logs of this core.
    pub fn logs(&self) -> impl Iterator<Item = (TopicPartition, LogId)> {
        self.open.iter().map(|(partition, log)| (*partition, *log))
    }

    /// Where `partition` of `topic` is served.
    ///
    /// # Errors
    /// An unknown partition, one that another broker leads, and all of [`Topics::served`].
    pub fn place(&self, topic: &Topic, partition: PartitionIndex) -> Result<Place, Failure> {
        let unknown = || {
            let message = format!(
                "topic {} has no partition {partition}; it has partitions 0 to {}",
                topic.name,
                topic.partitions.len() - 1
            );
            Failure::new(ErrorCode::UnknownTopicOrPartition, message)
        };
        let index = usize::try_from(partition.0).map_err(|_| unknown())?;
        let found = topic.partitions.get(index).ok_or_else(unknown)?;
        let broker = (self.image.brokers.get(&self.broker)).filter(|_| found.leader == self.broker);
        let broker = broker.ok_or_else(|| Failure::plain(ErrorCode::NotLeaderOrFollower))?;
        let name = TopicPartition {
            topic: topic.id,
            partition,
        };
        let core = broker.core_of(found);
        if core != self.core {
            return Ok(Place::There(core, name));
        }
        self.served(name).map(Place::Here)
    }

    /// The partitions that this core must have open, with their topics and leader epochs.
    pub fn owned(&self) -> Vec<(TopicPartition, Arc<Topic>, tackboard_schema::LeaderEpoch)> {
        let Some(broker) = self.image.brokers.get(&self.broker) else {
            return Vec::new();
        };
        (self.image.led_by(self.broker))
            .filter(|(_, _, partition)| broker.core_of(partition) == self.core)
            .map(|(topic, index, partition)| {
                let name = TopicPartition {
                    topic: topic.id,
                    partition: index,
                };
                (name, topic.clone(), partition.leader_epoch)
            })
            .collect()
    }
}

/// What governs the logs of a topic.
pub fn topic_log_config(config: &Config, topic: &Topic) -> LogConfig {
    let own = log_config(config, &topic.config);
    match is_internal(&topic.name) {
        true => internal_log_config(own),
        false => own,
    }
}

/// A topic's settings over the broker's.
pub fn log_config(config: &Config, topic: &TopicConfig) -> LogConfig {
    let limit = |own: Option<Limit<u64>>, inherited: Option<u64>| match own {
        None => inherited,
        Some(Limit::Unlimited) => None,
        Some(Limit::At(value)) => Some(value),
    };
    let retention = match topic.retention {
        None => config.retention,
        Some(Limit::Unlimited) => None,
        Some(Limit::At(age)) => Some(age),
    };
    let milliseconds =
        |age: std::time::Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    LogConfig {
        acks_default: topic.acks.unwrap_or(config.acks_default),
        // The floor holds whatever a topic says.
        acks_min: config
            .acks_min
            .at_least(topic.acks_min.unwrap_or(config.acks_min)),
        replicas: 1,
        durability: topic.durability.unwrap_or(config.durability_default),
        durability_interval_us: config.durability_interval.as_micros() as u64,
        durability_interval_bytes: config.durability_interval_bytes,
        segment_bytes: topic.segment_bytes.unwrap_or(config.segment_bytes),
        segment_age_ms: milliseconds(topic.segment_age.unwrap_or(config.segment_age)),
        index_interval_bytes: config.index_interval_bytes,
        retention_ms: retention.map(milliseconds),
        retention_bytes: limit(topic.retention_bytes, config.retention_bytes),
        retention_clock: match topic.retention_clock {
            None | Some(TopicClock::Append) => RetentionClock::Append,
            Some(TopicClock::Record) => RetentionClock::Record,
        },
        yields_to_budget: topic.retention_budget != Some(RetentionBudget::Exempt),
        batch_bytes_max: topic.batch_bytes_max.unwrap_or(config.batch_bytes_max),
    }
}

/// One setting of a topic.
pub struct TopicValue<'a> {
    /// Which.
    pub setting: &'static TopicSetting,
    /// What the topic sets.
    pub own: Option<&'a str>,
    /// What holds if it sets nothing.
    pub inherited: String,
}

impl TopicValue<'_> {
    /// What holds.
    pub fn value(&self) -> &str {
        self.own.unwrap_or(&self.inherited)
    }
}

/// Every setting of a topic, in the order of the table.
pub fn topic_settings<'a>(config: &Config, topic: &'a Topic) -> Vec<TopicValue<'a>> {
    let levels = log_config(config, &TopicConfig::default());
    let or_unlimited = |value: Option<String>| value.unwrap_or_else(|| "-1".to_owned());
    let inherited = |setting: &TopicSetting| match setting.name {
        "acks.default" => levels.acks_default.to_string(),
        "acks.min" => levels.acks_min.to_string(),
        "durability" => levels.durability.to_string(),
        "max.message.bytes" => levels.batch_bytes_max.to_string(),
        "min.insync.replicas" => config.min_insync_replicas.to_string(),
        "retention.bytes" => or_unlimited(levels.retention_bytes.map(|bytes| bytes.to_string())),
        "retention.ms" => or_unlimited(levels.retention_ms.map(|ms| ms.to_string())),
        "segment.bytes" => levels.segment_bytes.to_string(),
        "segment.ms" => levels.segment_age_ms.to_string(),
        _ => setting.default_from.to_owned(),
    };
    let own = |setting: &TopicSetting| {
        let found = topic.configs.iter().find(|(key, _)| key == setting.name);
        found.map(|(_, value)| value.as_str())
    };
    let value = |setting| TopicValue {
        setting,
        own: own(setting),
        inherited: inherited(setting),
    };
    TOPIC_SETTINGS.iter().map(value).collect()
}

/// The acks that count for an entry of `topic`; `None`: the broker has no such topic.
pub fn effective_acks(
    config: &Config,
    topic: Option<&Topic>,
    asked: Option<Acks>,
) -> EffectiveAcks {
    let (default, floor) = match topic {
        Some(topic) => {
            let levels = log_config(config, &topic.config);
            (levels.acks_default, levels.acks_min)
        }
        None => (config.acks_default, config.acks_min),
    };
    EffectiveAcks::new(asked, default, floor)
}

#[cfg(test)]
mod tests {
    use tackboard_logic::metadata::{
        ClusterId, Command, CreateTopic, Endpoint, IncarnationId, Machine, RegisterBroker,
    };
    use tackboard_schema::{TimestampMs, TopicId};

    use super::*;

    const BROKER: BrokerId = BrokerId(1);
    const PARTITION: TopicPartition = TopicPartition {
        topic: TopicId([5; 16]),
        partition: PartitionIndex(0),
    };

    fn apply(machine: &mut Machine, command: Command) -> Arc<Image> {
        let version = machine.image().version + 1;
        machine.apply(version, command).expect("accepted");
        machine.image()
    }

    fn register() -> Command {
        let endpoint = Endpoint {
            host: "host".into(),
            port: 7400,
        };
        Command::RegisterBroker(RegisterBroker {
            broker: BROKER,
            incarnation: IncarnationId([1; 16]),
            any_core: endpoint.clone(),
            cores: vec![endpoint],
            partitions_per_core_max: 10,
        })
    }

    fn create() -> Command {
        Command::CreateTopic(CreateTopic {
            name: "t".into(),
            topic_id: PARTITION.topic,
            partitions: 1,
            replication_factor: 1,
            configs: Vec::new(),
            at: TimestampMs(0),
        })
    }

    fn refused(topics: &Topics) -> ErrorCode {
        topics.served(PARTITION).expect_err("not served").code
    }

    #[test]
    fn a_partition_that_is_not_served_is_told_of_as_kafka_does() {
        let mut machine = Machine::new(ClusterId([7; 16]));
        let image = apply(&mut machine, register());
        let mut topics = Topics::new(BROKER, CoreId(0), image);
        assert_eq!(refused(&topics), ErrorCode::UnknownTopicOrPartition);

        topics.replace(apply(&mut machine, create()));
        assert_eq!(refused(&topics), ErrorCode::NotLeaderOrFollower);
        assert!(topics.failed(PARTITION, StorageFault::Io { os_error: 5 }));
        assert!(!topics.failed(PARTITION, StorageFault::Io { os_error: 5 }));
        assert!(!topics.await_space(), "nobody waits for what does not come");
        assert!(topics.failed(PARTITION, StorageFault::NoSpace));
        assert!(topics.await_space());
        assert_eq!(refused(&topics), ErrorCode::KafkaStorageError);
        // A later image tries again.
        let log = LogId {
            slot: 3,
            generation: 1,
        };
        topics.opened(PARTITION, log);
        assert_eq!(topics.served(PARTITION).expect("open"), log);

        // From the deletion on, though what was in flight is still awaited.
        let delete = Command::DeleteTopic { name: "t".into() };
        topics.replace(apply(&mut machine, delete));
        topics.deleted(PARTITION);
        assert_eq!(refused(&topics), ErrorCode::UnknownTopicOrPartition);
    }
}
