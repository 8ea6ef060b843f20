//! Requests that change the metadata or only read it: answered from the image, or through the control thread.

use std::{rc::Rc, sync::Arc};

use tackboard_logic::{
    metadata::{
        AlterTopic, Command, ConfigChange, CreateTopic, Image, Machine, MetadataRefusal, Outcome,
        Standing, Topic,
    },
    request::{
        account::Held,
        producer_ids::{Given, WAITING_MAX},
    },
    shard::interface::LogDescription,
};
use tackboard_schema::{
    CorrelationId, ErrorCode, PartitionIndex, ProducerId, TopicId,
    frame::ApiKey,
    native::{self as head, durability_to_head},
};

use super::{
    groups::{OFFSETS_TOPIC, is_internal},
    placed::Placed,
    request::{Entry, Failure},
    state::{ProposalTarget, State},
    topics::{log_config, topic_settings},
};
use crate::{
    bridge::ProposalResult,
    kafka,
    native::{
        answer::{self, TopicHeading, send_head},
        connection::Connection,
    },
};

/// What a client asked of a topic.
pub enum TopicChange {
    /// Create it, or only say whether that would work.
    Create {
        /// Partitions asked for.
        partitions: i32,
        /// Copies asked for.
        replication_factor: i16,
    },
    /// Delete it.
    Delete,
    /// Give it more partitions.
    Grow,
    /// Change its settings.
    Alter,
}

/// Changes that one request may try: each is worked out at once, on the core.
pub const TRIALS_MAX: usize = 100;

/// Partitions that these may have together: each is placed.
pub const TRIAL_PARTITIONS_MAX: usize = 10_000;

/// A copy of the metadata on which one request's topics are tried before they are proposed.
pub struct Trial {
    /// `None` until there is a topic to try: most requests name topics that are there.
    machine: Option<Machine>,
    /// Topics that may still be tried.
    left: usize,
}

impl Trial {
    fn apply(&mut self, image: &Arc<Image>, command: Command) -> Result<(), MetadataRefusal> {
        let begin = || Machine::on_trial(image.clone());
        let machine = self.machine.get_or_insert_with(begin);
        let version = machine.image().version + 1;
        machine.apply(version, command).map(drop)
    }
}

impl State {
    // ---- metadata -------------------------------------------------------------------------------------------------

    /// Answers with the brokers and these topics, or all of them.
    pub fn answer_metadata(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        names: Option<Vec<&str>>,
    ) {
        connection.take_in(Held::default());
        let image = self.topics.image().clone();
        let listed: Vec<(String, Option<Arc<Topic>>)> = match names {
            None => (image.topics())
                .map(|topic| (topic.name.to_string(), Some(topic.clone())))
                .collect(),
            Some(names) => (names.into_iter())
                .map(|name| (name.to_owned(), image.topic(name).cloned()))
                .collect(),
        };
        let config = self.config.clone();
        let answer = self.heads.build(|builder| {
            let brokers: Vec<_> = image
                .brokers
                .values()
                .map(|broker| broker_head(builder, broker))
                .collect();
            let topics: Vec<_> = (listed.iter())
                .map(|(name, topic)| match topic {
                    Some(topic) => {
                        let levels = log_config(&config, &topic.config);
                        topic_head(builder, &image, topic, &levels)
                    }
                    None => missing_topic_head(builder, name),
                })
                .collect();
            let args = head::MetadataResponseArgs {
                brokers: Some(builder.create_vector(&brokers)),
                topics: Some(builder.create_vector(&topics)),
                ..Default::default()
            };
            head::MetadataResponse::create(builder, &args)
        });
        send_head(connection, ApiKey::Metadata, correlation_id, answer);
    }

    /// Starts describing a topic.
    pub fn describe_topic(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        name: &str,
    ) {
        let Some(topic) = self.topics.topic(name).cloned() else {
            connection.take_in(Held::default());
            return self.answer_missing_topic(connection, correlation_id, name);
        };
        let mut placed = Placed::with_capacity(topic.partitions.len());
        for index in 0..topic.partitions.len() as i32 {
            let partition = PartitionIndex(index);
            let place = self.topics.place(&topic, partition);
            placed.add(topic.name.clone(), partition, place, ());
        }
        self.describe(connection, correlation_id, placed);
    }

    /// Answers a description whose partitions are all known.
    pub(super) fn answer_description(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        entries: &[Entry<LogDescription>],
    ) {
        let name = entries.first().map_or("", |entry| &*entry.topic);
        let image = self.topics.image().clone();
        let Some(topic) = image.topic(name) else {
            // Deleted while it was being described.
            return self.answer_missing_topic(connection, correlation_id, name);
        };
        let leaders: Vec<_> = (topic.partitions.iter())
            .map(|partition| {
                let broker = image.brokers.get(&partition.leader);
                let core = broker.map_or(0, |broker| broker.core_of(partition).0);
                (partition.leader.0, partition.leader_epoch.0, core)
            })
            .collect();
        let configs: Vec<_> = (topic_settings(&self.config, topic).into_iter())
            .map(|held| {
                let value = held.value().to_owned();
                (held.setting.name.to_owned(), value, held.own.is_some())
            })
            .collect();
        let heading = TopicHeading {
            name,
            id: topic.id.0,
            replication_factor: topic
                .partitions
                .first()
                .map_or(1, |first| first.replicas.len() as i16),
            configs: &configs,
            leaders: &leaders,
        };
        answer::describe(
            &mut self.heads,
            connection,
            correlation_id,
            &heading,
            entries,
        );
    }

    /// Answers a description of a topic that is not there.
    fn answer_missing_topic(
        &mut self,
        connection: &Connection,
        correlation_id: CorrelationId,
        name: &str,
    ) {
        let failure = unknown_topic(name);
        self.metrics().requests_refused.increment();
        let answer = self.heads.build(|builder| {
            let args = head::DescribeTopicResponseArgs {
                error_code: failure.code.code(),
                message: Some(builder.create_string(&failure.message)),
                ..Default::default()
            };
            head::DescribeTopicResponse::create(builder, &args)
        });
        send_head(connection, ApiKey::DescribeTopic, correlation_id, answer);
    }

    // ---- changes --------------------------------------------------------------------------------------------------

    /// Proposes a topic.
    pub fn create_topic(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        name: &str,
        (partitions, replication_factor): (i32, i16),
        configs: Vec<(String, String)>,
    ) {
        connection.take_in(Held::default());
        let (command, (partitions, replication_factor)) =
            self.topic_to_create(name, (partitions, replication_factor), configs);
        let change = TopicChange::Create {
            partitions,
            replication_factor,
        };
        let target = ProposalTarget::Topic(connection.clone(), correlation_id, change);
        self.propose_asked(target, command);
    }

    /// The command that creates a topic, and how many partitions and replicas it will have. -1 stands for the broker's
    /// own numbers.
    pub fn topic_to_create(
        &self,
        name: &str,
        (partitions, replication_factor): (i32, i16),
        configs: Vec<(String, String)>,
    ) -> (Command, (i32, i16)) {
        let partitions = match partitions {
            -1 => self.config.default_partitions,
            asked => asked,
        };
        let replication_factor = match replication_factor {
            -1 => self.config.default_replication_factor,
            asked => asked,
        };
        let command = Command::CreateTopic(CreateTopic {
            name: name.to_owned(),
            topic_id: TopicId(crate::random::random_id()),
            partitions,
            replication_factor,
            configs,
            at: self.now.wall,
        });
        (command, (partitions, replication_factor))
    }

    /// Whether a change may be proposed, or tried, for somebody: it spares the topic of the groups, and there is room on
    /// the disk for the partitions that it brings.
    ///
    /// # Errors
    /// Why not.
    pub fn admit_change(&self, command: &Command) -> Result<(), MetadataRefusal> {
        self.spare_groups(command)?;
        self.admit_partitions(command)
    }

    /// Whether there is room for the partitions that a change brings: else they could not be opened.
    fn admit_partitions(&self, command: &Command) -> Result<(), MetadataRefusal> {
        let partitions = self.partitions_brought(command);
        let full = |message| MetadataRefusal {
            code: ErrorCode::StorageFull,
            message,
        };
        if partitions == 0 {
            return Ok(());
        }
        if self.machine.is_short_of_space() {
            return Err(full(format!(
                "the data folder's file system is full, or has less space than storage.reserve_bytes = {}",
                self.config.reserve_bytes
            )));
        }
        let admitted = self.file_room.admit(partitions);
        admitted.map_err(|short| full(short.to_string()))
    }

    /// How many partitions there are more, should the change be made.
    fn partitions_brought(&self, command: &Command) -> u64 {
        let brought = match command {
            Command::CreateTopic(topic) => i64::from(topic.partitions),
            Command::CreatePartitions { name, count } => {
                let topic = self.topics.topic(name);
                let present = topic.map_or(0, |topic| topic.partitions.len() as i64);
                i64::from(*count) - present
            }
            _ => 0,
        };
        // What makes no sense is refused by who knows all of them.
        u64::try_from(brought).unwrap_or(0)
    }

    fn propose_admitted(&mut self, target: ProposalTarget, command: Command) {
        self.file_room.promise(self.partitions_brought(&command));
        self.propose(target, command);
    }

    /// Proposes a change of the broker's own, if there is room for it.
    fn propose_own(&mut self, target: ProposalTarget, command: Command) {
        match self.admit_partitions(&command) {
            Ok(()) => self.propose_admitted(target, command),
            Err(refusal) => self.refuse_proposal(target, refusal),
        }
    }

    /// Proposes a change that somebody asks for, if it is admitted.
    fn propose_asked(&mut self, target: ProposalTarget, command: Command) {
        match self.admit_change(&command) {
            Ok(()) => self.propose_admitted(target, command),
            Err(refusal) => self.refuse_proposal(target, refusal),
        }
    }

    /// Proposes one change of a request of a client of Kafka.
    pub fn change_for_kafka(
        &mut self,
        connection: &Rc<Connection>,
        number: CorrelationId,
        index: usize,
        command: Command,
    ) {
        let target = ProposalTarget::KafkaChange {
            connection: connection.clone(),
            number,
            index,
        };
        self.propose_asked(target, command);
    }

    /// What the topics are tried on that a request expects to appear.
    pub fn begin_trial(&self) -> Trial {
        let partitions = self.config.default_partitions.max(1) as usize;
        Trial {
            machine: None,
            left: (TRIAL_PARTITIONS_MAX / partitions).clamp(1, TRIALS_MAX),
        }
    }

    /// Proposes a topic that a client of Kafka has asked for and that is not there, unless it is known, or found out in the
    /// `trial`, that it can't be created. What the client is told: to ask again soon, or why that is of no use.
    pub fn create_topic_unasked(&mut self, trial: &mut Trial, name: &str) -> ErrorCode {
        if is_internal(name) {
            let available = self.offsets_topic();
            return available
                .err()
                .map_or(ErrorCode::None, |_| ErrorCode::LeaderNotAvailable);
        }
        let version = self.topics.image().version;
        match self.unasked.standing(name, version) {
            Standing::New if trial.left > 0 => trial.left -= 1,
            Standing::New | Standing::Creating => return ErrorCode::LeaderNotAvailable,
            Standing::Refused(code) => return code,
        }
        let (command, _) = self.topic_to_create(name, (-1, -1), Vec::new());
        let admitted = self.admit_change(&command);
        if let Err(refusal) =
            admitted.and_then(|()| trial.apply(self.topics.image(), command.clone()))
        {
            self.unasked_topic_refused(name, &refusal);
            return refusal.code;
        }
        self.unasked.proposed(name);
        self.propose_admitted(ProposalTarget::UnaskedTopic(name.to_owned()), command);
        ErrorCode::LeaderNotAvailable
    }

    /// What passes by itself is no more than told to the client. Anything else its operator has to mend, and clients only
    /// ask again: that is said once a name.
    fn unasked_topic_refused(&mut self, topic: &str, refusal: &MetadataRefusal) {
        let MetadataRefusal { code, message } = refusal;
        let version = self.topics.image().version;
        if !code.retriable() && self.unasked.refused(topic, *code, version) {
            tracing::warn!(topic, %code, message, "a topic that clients ask for can't be created");
        }
    }

    fn unasked_topic_decided(&mut self, topic: &str, result: ProposalResult) {
        self.unasked.decided(topic);
        match result {
            // Another core was first.
            Ok(_)
            | Err(MetadataRefusal {
                code: ErrorCode::TopicAlreadyExists,
                ..
            }) => {}
            Err(refusal) => self.unasked_topic_refused(topic, &refusal),
        }
    }

    /// Proposes the topic of the groups.
    pub(super) fn create_offsets_topic(&mut self) {
        // As it is, for whoever looks: the broker holds to it in any case.
        let kept = [
            ("retention.ms", "-1"),
            ("retention.bytes", "-1"),
            ("tackboard.retention.budget", "exempt"),
            ("durability", "fsync"),
        ];
        let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let size = (self.config.groups.offsets_partitions, 1);
        let (command, _) = self.topic_to_create(OFFSETS_TOPIC, size, kept.to_vec());
        self.propose_own(ProposalTarget::OffsetsTopic, command);
    }

    /// Whether the leader epoch that a client of Kafka believes in (-1: it names none) is that of the partition.
    ///
    /// # Errors
    /// `FENCED_LEADER_EPOCH` if it is older, `UNKNOWN_LEADER_EPOCH` if it is newer.
    pub fn check_epoch(
        &self,
        topic: &str,
        partition: PartitionIndex,
        epoch: i32,
    ) -> Result<(), Failure> {
        let topic = self.topics.topic(topic);
        let index = usize::try_from(partition.0).ok();
        let known = index.and_then(|index| topic?.partitions.get(index));
        match known.map(|known| known.leader_epoch.0) {
            Some(known) if epoch >= 0 && epoch < known => {
                Err(Failure::plain(ErrorCode::FencedLeaderEpoch))
            }
            Some(known) if epoch > known => Err(Failure::plain(ErrorCode::UnknownLeaderEpoch)),
            _ => Ok(()),
        }
    }

    /// Proposes the end of a topic.
    pub fn delete_topic(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        name: &str,
    ) {
        connection.take_in(Held::default());
        let target = ProposalTarget::Topic(connection.clone(), correlation_id, TopicChange::Delete);
        let command = Command::DeleteTopic {
            name: name.to_owned(),
        };
        self.propose_asked(target, command);
    }

    /// Proposes more partitions of a topic.
    pub fn create_partitions(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        name: &str,
        count: i32,
    ) {
        connection.take_in(Held::default());
        let target = ProposalTarget::Topic(connection.clone(), correlation_id, TopicChange::Grow);
        let command = Command::CreatePartitions {
            name: name.to_owned(),
            count,
        };
        self.propose_asked(target, command);
    }

    /// Proposes other settings of a topic.
    pub fn alter_topic(
        &mut self,
        connection: &Rc<Connection>,
        correlation_id: CorrelationId,
        name: &str,
        changes: Vec<(String, ConfigChange)>,
    ) {
        connection.take_in(Held::default());
        let target = ProposalTarget::Topic(connection.clone(), correlation_id, TopicChange::Alter);
        let command = Command::AlterTopic(AlterTopic {
            name: name.to_owned(),
            resets_others: false,
            changes,
        });
        self.propose_asked(target, command);
    }

    /// Gives a client a producer id, from this core's block or from the next one.
    pub fn init_producer(&mut self, connection: &Rc<Connection>, correlation_id: CorrelationId) {
        connection.take_in(Held::default());
        match self
            .producer_ids
            .wanted((connection.clone(), correlation_id))
        {
            Given::Id(id, _) => self.answer_producer(connection, correlation_id, Ok(id)),
            Given::Waits { ask: true } => self.next_producer_ids(),
            Given::Waits { ask: false } => {}
            Given::Refused(_) => {
                let message = format!("{WAITING_MAX} clients of this core wait for a producer id");
                let failure = Failure::new(ErrorCode::OverBudget, message);
                self.answer_producer(connection, correlation_id, Err(failure));
            }
        }
    }

    fn next_producer_ids(&mut self) {
        let broker = self.config.broker_id;
        self.propose_own(
            ProposalTarget::ProducerIds,
            Command::AllocateProducerIds { broker },
        );
    }

    fn answer_producer(
        &mut self,
        connection: &Connection,
        correlation_id: CorrelationId,
        outcome: Result<ProducerId, Failure>,
    ) {
        if let Some(answers) = connection.kafka() {
            return kafka::init_producer_id::answer(answers, connection, correlation_id, outcome);
        }
        let answer = self.heads.build(|builder| {
            let message =
                (outcome.as_ref().err()).map(|failure| builder.create_string(&failure.message));
            let args = head::InitProducerResponseArgs {
                error_code: outcome
                    .as_ref()
                    .err()
                    .map_or(0, |failure| failure.code.code()),
                message,
                producer_id: outcome.as_ref().map_or(-1, |id| id.0),
                producer_epoch: if outcome.is_ok() { 0 } else { -1 },
            };
            head::InitProducerResponse::create(builder, &args)
        });
        send_head(connection, ApiKey::InitProducer, correlation_id, answer);
    }

    /// The control thread has decided.
    pub(super) fn proposal_done(&mut self, call: super::slab::Key, result: ProposalResult) {
        let Some(target) = self.proposals.remove(call) else {
            return;
        };
        self.progress.work_done();
        match target {
            ProposalTarget::ProducerIds => self.producer_ids_arrived(result),
            ProposalTarget::KafkaChange {
                connection,
                number,
                index,
            } => kafka::changes::decided(self, &connection, number, index, result),
            ProposalTarget::OffsetsTopic => {
                self.offsets_topic_decided();
                match result {
                    // Another core was first.
                    Ok(_)
                    | Err(MetadataRefusal {
                        code: ErrorCode::TopicAlreadyExists,
                        ..
                    }) => {}
                    Err(MetadataRefusal { code, message }) => {
                        tracing::warn!(%code, message, "the topic of consumer groups could not be created");
                    }
                }
            }
            ProposalTarget::UnaskedTopic(topic) => self.unasked_topic_decided(&topic, result),
            ProposalTarget::Topic(connection, correlation_id, change) => {
                self.answer_topic_change(&connection, correlation_id, &change, result);
            }
        }
    }

    fn producer_ids_arrived(&mut self, result: ProposalResult) {
        match result {
            Ok(decided) => {
                if let Outcome::ProducerIds { first, count } = decided.outcome {
                    self.producer_ids.arrived(first, count);
                }
                while let Some((id, (connection, correlation_id))) = self.producer_ids.serve() {
                    self.answer_producer(&connection, correlation_id, Ok(id));
                }
                if self.producer_ids.is_short() {
                    self.next_producer_ids();
                }
            }
            Err(refusal) => {
                for (connection, correlation_id) in self.producer_ids.refuse() {
                    let failure = Failure::new(refusal.code, refusal.message.clone());
                    self.answer_producer(&connection, correlation_id, Err(failure));
                }
            }
        }
    }

    fn answer_topic_change(
        &mut self,
        connection: &Connection,
        correlation_id: CorrelationId,
        change: &TopicChange,
        result: ProposalResult,
    ) {
        if result.is_err() {
            self.metrics().requests_refused.increment();
        }
        let code = result
            .as_ref()
            .err()
            .map_or(0, |refusal| refusal.code.code());
        let text = result
            .as_ref()
            .err()
            .map(|refusal| refusal.message.as_str());
        match change {
            TopicChange::Delete => {
                let answer = self.heads.build(|builder| {
                    let message = text.map(|text| builder.create_string(text));
                    let args = head::DeleteTopicResponseArgs {
                        error_code: code,
                        message,
                    };
                    head::DeleteTopicResponse::create(builder, &args)
                });
                send_head(connection, ApiKey::DeleteTopic, correlation_id, answer);
            }
            TopicChange::Grow => {
                let answer = self.heads.build(|builder| {
                    let message = text.map(|text| builder.create_string(text));
                    let args = head::CreatePartitionsResponseArgs {
                        error_code: code,
                        message,
                    };
                    head::CreatePartitionsResponse::create(builder, &args)
                });
                send_head(connection, ApiKey::CreatePartitions, correlation_id, answer);
            }
            TopicChange::Alter => {
                let answer = self.heads.build(|builder| {
                    let message = text.map(|text| builder.create_string(text));
                    let args = head::AlterTopicResponseArgs {
                        error_code: code,
                        message,
                    };
                    head::AlterTopicResponse::create(builder, &args)
                });
                send_head(connection, ApiKey::AlterTopic, correlation_id, answer);
            }
            TopicChange::Create {
                partitions,
                replication_factor,
            } => {
                let created = match result.as_ref().map(|decided| &decided.outcome) {
                    Ok(Outcome::TopicCreated { topic_id, .. }) => {
                        Some(head::Uuid::new(&topic_id.0))
                    }
                    _ => None,
                };
                let answer = self.heads.build(|builder| {
                    let message = text.map(|text| builder.create_string(text));
                    let args = head::CreateTopicResponseArgs {
                        error_code: code,
                        message,
                        topic_id: created.as_ref(),
                        partitions: *partitions,
                        replication_factor: *replication_factor,
                    };
                    head::CreateTopicResponse::create(builder, &args)
                });
                send_head(connection, ApiKey::CreateTopic, correlation_id, answer);
            }
        }
    }
}

fn unknown_topic(name: &str) -> Failure {
    let message = format!("there is no topic {name}");
    Failure::new(ErrorCode::UnknownTopicOrPartition, message)
}

type Builder = flatbuffers::FlatBufferBuilder<'static>;

fn broker_head(
    builder: &mut Builder,
    broker: &tackboard_logic::metadata::Broker,
) -> flatbuffers::WIPOffset<head::Broker<'static>> {
    let hosts: Vec<_> = (broker.cores.iter())
        .map(|core| builder.create_shared_string(&core.host))
        .collect();
    let ports: Vec<u16> = broker.cores.iter().map(|core| core.port).collect();
    let args = head::BrokerArgs {
        broker_id: broker.id.0,
        host: Some(builder.create_string(&broker.any_core.host)),
        port: broker.any_core.port,
        core_hosts: Some(builder.create_vector(&hosts)),
        core_ports: Some(builder.create_vector(&ports)),
    };
    head::Broker::create(builder, &args)
}

fn topic_head(
    builder: &mut Builder,
    image: &tackboard_logic::metadata::Image,
    topic: &Topic,
    levels: &tackboard_logic::shard::interface::LogConfig,
) -> flatbuffers::WIPOffset<head::TopicMetadata<'static>> {
    let partitions: Vec<_> = (0..)
        .zip(&topic.partitions)
        .map(|(index, partition)| {
            let broker = image.brokers.get(&partition.leader);
            let core = broker.map_or(0, |broker| broker.core_of(partition).0);
            let port = broker.and_then(|broker| broker.cores.get(usize::from(core)));
            let ids =
                |ids: &[tackboard_schema::BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
            let replicas = ids(&partition.replicas);
            let in_sync = ids(&partition.isr);
            let args = head::PartitionMetadataArgs {
                partition: index,
                error_code: 0,
                leader: partition.leader.0,
                leader_epoch: partition.leader_epoch.0,
                core,
                core_port: port.map_or(0, |endpoint| endpoint.port),
                replicas: Some(builder.create_vector(&replicas)),
                in_sync_replicas: Some(builder.create_vector(&in_sync)),
            };
            head::PartitionMetadata::create(builder, &args)
        })
        .collect();
    let id = head::Uuid::new(&topic.id.0);
    let args = head::TopicMetadataArgs {
        name: Some(builder.create_string(&topic.name)),
        topic_id: Some(&id),
        partitions: Some(builder.create_vector(&partitions)),
        // The floor holds for requests that name no level, too.
        acks: levels.acks_default.at_least(levels.acks_min).as_i16(),
        durability: durability_to_head(Some(levels.durability)),
        ..Default::default()
    };
    head::TopicMetadata::create(builder, &args)
}

fn missing_topic_head(
    builder: &mut Builder,
    name: &str,
) -> flatbuffers::WIPOffset<head::TopicMetadata<'static>> {
    let failure = unknown_topic(name);
    let args = head::TopicMetadataArgs {
        error_code: failure.code.code(),
        message: Some(builder.create_string(&failure.message)),
        name: Some(builder.create_string(name)),
        ..Default::default()
    };
    head::TopicMetadata::create(builder, &args)
}
