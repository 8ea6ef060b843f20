//! The machine itself: one command in, one outcome or refusal out.

use std::sync::Arc;

use tackboard_schema::{
    Acks, BrokerId, ErrorCode, LeaderEpoch, ProducerId, TopicId, validate_topic_name,
};

use super::assignment::Assignment;
use super::command::{
    AlterTopic, Command, CreateTopic, Endpoint, MetadataRefusal, Outcome, PRODUCER_IDS_PER_BLOCK,
    RegisterBroker,
};
use super::image::{Broker, ClusterId, Image, Partition, TOMBSTONES_MAX, Tombstone, Topic};
use super::topic_settings::{TopicConfig, change_topic_config, parse_topic_config};

/// A topic has at most this many partitions.
pub const PARTITIONS_MAX: i32 = 10_000;

/// A broker has at most this many cores.
pub const CORES_MAX: usize = 1_024;

const HOST_BYTES_MAX: usize = 255;

type Applied = Result<Outcome, MetadataRefusal>;

/// The metadata and what decides about it. Two machines that applied the same commands are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub(super) image: Arc<Image>,
    /// Everything below was given out.
    pub(super) next_producer_id: i64,
    pub(super) next_shard_key: u32,
}

impl Machine {
    /// The machine of a cluster that has seen no command yet.
    pub fn new(cluster_id: ClusterId) -> Self {
        Self {
            image: Arc::new(Image::empty(cluster_id)),
            next_producer_id: 0,
            next_shard_key: 0,
        }
    }

    /// A machine on which commands can be tried: what it answers is what the real one would, were `image` still its state.
    /// Where it puts partitions, and the ids that it gives out, mean nothing.
    pub fn on_trial(image: Arc<Image>) -> Self {
        Self {
            image,
            next_producer_id: 0,
            next_shard_key: 0,
        }
    }

    /// The state after the last command.
    pub fn image(&self) -> Arc<Image> {
        self.image.clone()
    }

    /// Applies one committed command. `version` is its position in the metadata log.
    ///
    /// A refusal is an answer, not a fault: the command stays in the log, and only the version moves on.
    ///
    /// # Panics
    /// If `version` isn't above the last one applied: the log was replayed out of order.
    pub fn apply(&mut self, version: u64, command: Command) -> Applied {
        assert!(
            version > self.image.version,
            "command {version} follows command {}",
            self.image.version
        );
        let applied = match command {
            Command::RegisterBroker(register) => self.register_broker(version, register),
            Command::CreateTopic(create) => self.create_topic(create),
            Command::DeleteTopic { name } => self.delete_topic(version, &name),
            Command::DeleteTopicById { topic_id } => self.delete_topic_by_id(version, topic_id),
            Command::CreatePartitions { name, count } => self.create_partitions(&name, count),
            Command::AlterTopic(alter) => self.alter_topic(&alter),
            Command::AllocateProducerIds { broker } => self.allocate_producer_ids(broker),
        };
        Arc::make_mut(&mut self.image).version = version;
        applied
    }

    fn register_broker(&mut self, version: u64, register: RegisterBroker) -> Applied {
        check_registration(&register)?;
        let known = self.image.brokers.get(&register.broker);
        let same_process = known.filter(|broker| broker.incarnation == register.incarnation);
        let epoch = same_process.map_or(version, |broker| broker.epoch);
        let partitions_led = if same_process.is_some() {
            self.image.led_by(register.broker).count() as u32
        } else {
            self.bump_leader_epochs(register.broker)?
        };
        let broker = Broker {
            id: register.broker,
            incarnation: register.incarnation,
            epoch,
            any_core: register.any_core,
            cores: register.cores,
            partitions_per_core_max: register.partitions_per_core_max,
        };
        let image = Arc::make_mut(&mut self.image);
        image.brokers.insert(broker.id, Arc::new(broker));
        Ok(Outcome::BrokerRegistered {
            broker_epoch: epoch,
            partitions_led,
        })
    }

    /// Without this a process that restarts quickly could write other events under the offsets and the epoch of those
    /// that its predecessor had not yet made durable.
    fn bump_leader_epochs(&mut self, leader: BrokerId) -> Result<u32, MetadataRefusal> {
        let used_up = |(_, _, led): (_, _, &Partition)| led.leader_epoch.0 == i32::MAX;
        if self.image.led_by(leader).any(used_up) {
            return Err(MetadataRefusal::new(
                ErrorCode::UnknownServerError,
                format!("broker {leader} leads a partition whose leader epochs are used up"),
            ));
        }
        let image = Arc::make_mut(&mut self.image);
        let mut bumped = 0;
        let topics: Vec<Arc<Topic>> = image.topics().cloned().collect();
        for mut topic in topics {
            let led = |partition: &&mut Partition| partition.leader == leader;
            let partitions = &mut Arc::make_mut(&mut topic).partitions;
            for partition in partitions.iter_mut().filter(led) {
                partition.leader_epoch = LeaderEpoch(partition.leader_epoch.0 + 1);
                bumped += 1;
            }
            image.insert_topic(topic);
        }
        Ok(bumped)
    }

    fn create_topic(&mut self, create: CreateTopic) -> Applied {
        self.check_topic_name(&create.name)?;
        self.check_topic_id(create.topic_id)?;
        self.check_counts(&create)?;
        let config = check_configs(&create.configs, create.replication_factor)?;
        let factor = create.replication_factor as usize;
        let mut assignment = Assignment::new(&self.image, self.next_shard_key);
        self.check_sum(&assignment, create.partitions as usize * factor)?;
        let partitions = (0..create.partitions)
            .map(|_| assignment.place(factor))
            .collect();
        self.check_room(&assignment, create.partitions)?;
        let mut configs = create.configs;
        configs.sort_unstable();
        self.next_shard_key = assignment.next_shard_key();
        Arc::make_mut(&mut self.image).insert_topic(Arc::new(Topic {
            id: create.topic_id,
            name: create.name.into(),
            created_at: create.at,
            configs,
            config,
            partitions,
        }));
        Ok(Outcome::TopicCreated {
            topic_id: create.topic_id,
            partitions: create.partitions,
        })
    }

    fn check_topic_name(&self, name: &str) -> Result<(), MetadataRefusal> {
        if let Err(why) = validate_topic_name(name) {
            return Err(MetadataRefusal::new(ErrorCode::InvalidTopicException, why));
        }
        if self.image.topic(name).is_some() {
            return Err(MetadataRefusal::new(
                ErrorCode::TopicAlreadyExists,
                format!("topic '{name}' already exists"),
            ));
        }
        // Names of metrics turn '.' into '_', so two topics may not differ in nothing else.
        let collides = |topic: &&Arc<Topic>| {
            let folded = |byte: u8| if byte == b'.' { b'_' } else { byte };
            topic.name.bytes().map(folded).eq(name.bytes().map(folded))
        };
        match self.image.topics().find(collides) {
            None => Ok(()),
            Some(other) => Err(MetadataRefusal::new(
                ErrorCode::InvalidTopicException,
                format!(
                    "topic '{name}' collides with the existing topic '{}': names must differ in more than '.' and '_'",
                    other.name
                ),
            )),
        }
    }

    fn check_topic_id(&self, id: TopicId) -> Result<(), MetadataRefusal> {
        let used = self.image.topic_by_id(id).is_some() || self.image.tombstone(id).is_some();
        if used || id.0 == [0; 16] {
            return Err(MetadataRefusal::new(
                ErrorCode::InvalidRequest,
                format!("topic id {id} was used before or is zero: propose again with a new one"),
            ));
        }
        Ok(())
    }

    fn check_counts(&self, create: &CreateTopic) -> Result<(), MetadataRefusal> {
        if !(1..=PARTITIONS_MAX).contains(&create.partitions) {
            return Err(MetadataRefusal::new(
                ErrorCode::InvalidPartitions,
                format!(
                    "{} partitions: 1 to {PARTITIONS_MAX} are allowed",
                    create.partitions
                ),
            ));
        }
        let brokers = self.image.brokers.len();
        let factor = usize::try_from(create.replication_factor).unwrap_or(0);
        if factor == 0 || factor > brokers {
            return Err(MetadataRefusal::new(
                ErrorCode::InvalidReplicationFactor,
                format!(
                    "replication factor {}: at least 1 and at most the number of brokers, {brokers}, is allowed",
                    create.replication_factor
                ),
            ));
        }
        Ok(())
    }

    /// Refuses what all cores together can't take, before any of it is placed.
    fn check_sum(&self, assignment: &Assignment, more: usize) -> Result<(), MetadataRefusal> {
        let room =
            |broker: &Arc<Broker>| broker.cores.len() * broker.partitions_per_core_max as usize;
        let room: usize = self.image.brokers.values().map(room).sum();
        let held = assignment.replicas();
        if held + more > room {
            return Err(MetadataRefusal::new(
                ErrorCode::PolicyViolation,
                format!(
                    "{more} more partitions, each replica counted, beside {held} that there are; all cores together take {room}"
                ),
            ));
        }
        Ok(())
    }

    fn check_room(&self, assignment: &Assignment, partitions: i32) -> Result<(), MetadataRefusal> {
        for (id, fullest) in assignment.fullest_cores() {
            let allowed = self.image.brokers[&id].partitions_per_core_max;
            if fullest > allowed {
                return Err(MetadataRefusal::new(
                    ErrorCode::PolicyViolation,
                    format!(
                        "{partitions} partitions would put {fullest} on one core of broker {id}, which takes {allowed}"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The topic that a change is about.
    fn topic_to_change(&self, name: &str) -> Result<Arc<Topic>, MetadataRefusal> {
        let found = self.image.topic(name).cloned();
        found.ok_or_else(|| unknown_topic(name))
    }

    fn create_partitions(&mut self, name: &str, count: i32) -> Applied {
        let mut topic = self.topic_to_change(name)?;
        let held = topic.partitions.len() as i32;
        if count <= held || count > PARTITIONS_MAX {
            return Err(MetadataRefusal::new(
                ErrorCode::InvalidPartitions,
                format!(
                    "topic '{name}' has {held} partitions: more than that, and up to {PARTITIONS_MAX}, are allowed, not {count}"
                ),
            ));
        }
        let replication_factor = replication_factor(&topic) as usize;
        let mut assignment = Assignment::new(&self.image, self.next_shard_key);
        self.check_sum(&assignment, (count - held) as usize * replication_factor)?;
        let more = (held..count).map(|_| assignment.place(replication_factor));
        Arc::make_mut(&mut topic).partitions.extend(more);
        self.check_room(&assignment, count)?;
        self.next_shard_key = assignment.next_shard_key();
        let topic_id = topic.id;
        Arc::make_mut(&mut self.image).insert_topic(topic);
        Ok(Outcome::PartitionsCreated {
            topic_id,
            partitions: count,
        })
    }

    fn alter_topic(&mut self, alter: &AlterTopic) -> Applied {
        let mut topic = self.topic_to_change(&alter.name)?;
        let configs = change_topic_config(&topic.configs, alter.resets_others, &alter.changes)
            .map_err(|faults| MetadataRefusal::new(ErrorCode::InvalidConfig, faults.to_string()))?;
        let config = check_configs(&configs, replication_factor(&topic))?;
        let topic_id = topic.id;
        let altered = Arc::make_mut(&mut topic);
        altered.configs = configs;
        altered.config = config;
        Arc::make_mut(&mut self.image).insert_topic(topic);
        Ok(Outcome::TopicAltered { topic_id })
    }

    fn delete_topic_by_id(&mut self, version: u64, topic_id: TopicId) -> Applied {
        match self
            .image
            .topic_by_id(topic_id)
            .map(|topic| topic.name.clone())
        {
            Some(name) => self.delete_topic(version, &name),
            None => Err(MetadataRefusal::new(
                ErrorCode::UnknownTopicId,
                format!("there is no topic with id {topic_id:?}"),
            )),
        }
    }

    fn delete_topic(&mut self, version: u64, name: &str) -> Applied {
        let image = Arc::make_mut(&mut self.image);
        let Some(topic) = image.topics_by_name.remove(name) else {
            return Err(unknown_topic(name));
        };
        image.topics_by_id.remove(&topic.id);
        if image.tombstones.len() >= TOMBSTONES_MAX {
            let oldest = image
                .tombstones
                .iter()
                .min_by_key(|(_, tombstone)| tombstone.version);
            let oldest = oldest.map(|(id, _)| *id);
            oldest.and_then(|id| image.tombstones.remove(&id));
        }
        let partitions = topic.partitions.len() as i32;
        let tombstone = Tombstone {
            name: topic.name.clone(),
            partitions,
            version,
        };
        image.tombstones.insert(topic.id, tombstone);
        Ok(Outcome::TopicDeleted {
            topic_id: topic.id,
            partitions,
        })
    }

    fn allocate_producer_ids(&mut self, broker: BrokerId) -> Applied {
        if !self.image.brokers.contains_key(&broker) {
            return Err(MetadataRefusal::new(
                ErrorCode::InvalidRequest,
                format!("broker {broker} is not registered"),
            ));
        }
        let first = self.next_producer_id;
        let Some(next) = first.checked_add(PRODUCER_IDS_PER_BLOCK) else {
            return Err(MetadataRefusal::new(
                ErrorCode::UnknownServerError,
                "all producer ids were given out",
            ));
        };
        self.next_producer_id = next;
        Ok(Outcome::ProducerIds {
            first: ProducerId(first),
            count: PRODUCER_IDS_PER_BLOCK,
        })
    }
}

fn check_registration(register: &RegisterBroker) -> Result<(), MetadataRefusal> {
    let refuse = |message| Err(MetadataRefusal::new(ErrorCode::InvalidRequest, message));
    if register.broker.0 < 0 {
        return refuse(format!(
            "broker id {}: 0 or above is allowed",
            register.broker
        ));
    }
    if !(1..=CORES_MAX).contains(&register.cores.len()) {
        let cores = register.cores.len();
        return refuse(format!("{cores} cores: 1 to {CORES_MAX} are allowed"));
    }
    let endpoints = register.cores.iter().chain([&register.any_core]);
    for Endpoint { host, port } in endpoints {
        if !(1..=HOST_BYTES_MAX).contains(&host.len()) || *port == 0 {
            return refuse(format!(
                "endpoint '{}' port {port}: a host of 1 to {HOST_BYTES_MAX} bytes and a port above 0 are allowed",
                host.escape_debug()
            ));
        }
    }
    if register.partitions_per_core_max == 0 {
        return refuse("0 partitions per core: at least 1 is allowed".to_owned());
    }
    Ok(())
}

fn unknown_topic(name: &str) -> MetadataRefusal {
    MetadataRefusal::new(
        ErrorCode::UnknownTopicOrPartition,
        format!("there is no topic '{}'", name.escape_debug()),
    )
}

/// How many copies the partitions of a topic have. All have as many, and there is one at least.
fn replication_factor(topic: &Topic) -> i16 {
    topic.partitions[0].replicas.len() as i16
}

/// The settings of a topic, each checked alone and against the replication factor.
fn check_configs(
    configs: &[(String, String)],
    replication_factor: i16,
) -> Result<TopicConfig, MetadataRefusal> {
    let invalid = |message| MetadataRefusal::new(ErrorCode::InvalidConfig, message);
    let pairs = configs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let config = parse_topic_config(pairs).map_err(|faults| invalid(faults.to_string()))?;
    let count = |acks: Option<Acks>| match acks {
        Some(Acks::Count(count)) => Some(count),
        Some(Acks::All) | None => None,
    };
    for (key, count, or) in [
        ("acks.default", count(config.acks), ", or 'all'"),
        ("acks.min", count(config.acks_min), ", or 'all'"),
        ("min.insync.replicas", config.min_insync_replicas, ""),
    ] {
        if let Some(count) = count.filter(|count| *count > replication_factor) {
            return Err(invalid(format!(
                "{key} = {count}: at most the replication factor, {replication_factor}{or}, is allowed"
            )));
        }
    }
    Ok(config)
}
