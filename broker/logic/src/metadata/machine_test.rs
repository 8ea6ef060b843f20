//! Commands in, outcomes and images out.

use tackboard_schema::{
    BrokerId, CoreId, ErrorCode, PartitionIndex, ProducerId, TimestampMs, TopicId,
};

use super::*;

pub(super) fn register(broker: i32, incarnation: u8, cores: u16) -> Command {
    let endpoint = |port| Endpoint {
        host: "host".to_owned(),
        port,
    };
    Command::RegisterBroker(RegisterBroker {
        broker: BrokerId(broker),
        incarnation: IncarnationId([incarnation; 16]),
        any_core: endpoint(7400),
        cores: (0..cores).map(|core| endpoint(7401 + core)).collect(),
        partitions_per_core_max: 1_000,
    })
}

pub(super) fn create(name: &str, id: u8, partitions: i32) -> Command {
    Command::CreateTopic(topic(name, id, partitions))
}

fn topic(name: &str, id: u8, partitions: i32) -> CreateTopic {
    CreateTopic {
        name: name.to_owned(),
        topic_id: TopicId([id; 16]),
        partitions,
        replication_factor: 1,
        configs: Vec::new(),
        at: TimestampMs(1_700_000_000_000),
    }
}

fn delete(name: &str) -> Command {
    Command::DeleteTopic {
        name: name.to_owned(),
    }
}

/// A machine that applied these, all accepted.
pub(super) fn machine(commands: impl IntoIterator<Item = Command>) -> Machine {
    let mut machine = Machine::new(ClusterId([7; 16]));
    for command in commands {
        apply(&mut machine, command).unwrap();
    }
    machine
}

fn apply(machine: &mut Machine, command: Command) -> Result<Outcome, MetadataRefusal> {
    let version = machine.image().version + 1;
    machine.apply(version, command)
}

fn refusal(machine: &mut Machine, command: Command) -> (ErrorCode, String) {
    let before = machine.clone();
    let refusal = apply(machine, command).unwrap_err();
    let mut after = machine.clone();
    std::sync::Arc::make_mut(&mut after.image).version -= 1;
    assert_eq!(after, before, "a refusal changes nothing but the version");
    (refusal.code, refusal.message)
}

fn epochs(machine: &Machine, name: &str) -> Vec<i32> {
    let image = machine.image();
    let partitions = &image.topic(name).unwrap().partitions;
    partitions
        .iter()
        .map(|partition| partition.leader_epoch.0)
        .collect()
}

fn cores(machine: &Machine, name: &str) -> Vec<u16> {
    let image = machine.image();
    let broker = &image.brokers[&BrokerId(1)];
    let partitions = &image.topic(name).unwrap().partitions;
    partitions
        .iter()
        .map(|partition| broker.core_of(partition).0)
        .collect()
}

#[test]
fn a_topic_is_found_by_name_and_by_id() {
    let machine = machine([register(1, 1, 2), create("flights", 9, 6)]);
    let image = machine.image();
    assert_eq!(image.version, 2);
    let topic = image.topic("flights").unwrap();
    assert_eq!(Some(topic), image.topic_by_id(TopicId([9; 16])));
    assert_eq!(topic.partitions.len(), 6);
    assert_eq!(image.led_by(BrokerId(1)).count(), 6);
    let last = tackboard_schema::TopicPartition {
        topic: topic.id,
        partition: PartitionIndex(5),
    };
    assert_eq!(image.partition(last), topic.partitions.last());
    let beyond = tackboard_schema::TopicPartition {
        partition: PartitionIndex(6),
        ..last
    };
    assert_eq!(image.partition(beyond), None);
}

#[test]
fn every_process_start_bumps_the_epochs_of_what_it_led() {
    let mut machine = machine([register(1, 1, 2), create("t", 9, 2)]);
    assert_eq!(epochs(&machine, "t"), [0, 0]);
    let outcome = apply(&mut machine, register(1, 2, 2)).unwrap();
    let expected = Outcome::BrokerRegistered {
        broker_epoch: 3,
        partitions_led: 2,
    };
    assert_eq!(outcome, expected);
    assert_eq!(epochs(&machine, "t"), [1, 1]);
    // The same process asks again since the answer was lost.
    assert_eq!(apply(&mut machine, register(1, 2, 2)).unwrap(), expected);
    assert_eq!(epochs(&machine, "t"), [1, 1]);
}

#[test]
fn partitions_spread_over_the_cores_and_over_another_number_of_cores() {
    let mut machine = machine([register(1, 1, 2), create("a", 1, 3), create("b", 2, 3)]);
    assert_eq!(
        (cores(&machine, "a"), cores(&machine, "b")),
        (vec![0, 1, 0], vec![1, 0, 1])
    );
    apply(&mut machine, register(1, 2, 3)).unwrap();
    assert_eq!(
        (cores(&machine, "a"), cores(&machine, "b")),
        (vec![0, 1, 2], vec![0, 1, 2])
    );
}

#[test]
fn what_was_deleted_makes_room_on_its_core() {
    let mut machine = machine([
        register(1, 1, 2),
        create("even", 1, 1),
        create("odd", 2, 1),
        create("even-too", 3, 1),
        delete("odd"),
        create("next", 4, 2),
    ]);
    assert_eq!(cores(&machine, "next"), [1, 1], "core 0 has two already");
    apply(&mut machine, create("last", 5, 1)).unwrap();
    let image = machine.image();
    let partition = &image.topic("last").unwrap().partitions[0];
    assert_ne!(image.brokers[&BrokerId(1)].core_of(partition), CoreId(2));
}

#[test]
fn replicas_go_to_the_least_loaded_brokers() {
    let mut wide = topic("wide", 1, 6);
    wide.replication_factor = 2;
    let machine = machine([
        register(1, 1, 2),
        register(2, 2, 2),
        register(3, 3, 4),
        Command::CreateTopic(wide),
    ]);
    let image = machine.image();
    for id in 1..=3 {
        let broker = BrokerId(id);
        let partitions = &image.topic("wide").unwrap().partitions;
        let held = partitions
            .iter()
            .filter(|partition| partition.replicas.contains(&broker));
        assert_eq!(held.count(), 4, "{broker:?}");
        assert_eq!(image.led_by(broker).count(), 2, "{broker:?}");
    }
}

#[test]
fn names_that_are_taken_or_not_allowed() {
    let mut machine = machine([register(1, 1, 1), create("a.b_c", 1, 1)]);
    let mut refuse = |name| refusal(&mut machine, create(name, 2, 1)).0;
    assert_eq!(refuse("a.b_c"), ErrorCode::TopicAlreadyExists);
    assert_eq!(refuse("a_b.c"), ErrorCode::InvalidTopicException);
    assert_eq!(refuse("a_b_c"), ErrorCode::InvalidTopicException);
    for name in ["", ".", "..", "a b", "ä"] {
        assert_eq!(refuse(name), ErrorCode::InvalidTopicException, "{name}");
    }
    let (_, message) = refusal(&mut machine, create("a.b.c", 2, 1));
    assert!(
        message.contains("'a.b.c' collides with the existing topic 'a.b_c'"),
        "{message}"
    );
}

#[test]
fn counts_out_of_bounds() {
    let mut machine = machine([register(1, 1, 2)]);
    for partitions in [i32::MIN, -1, 0, PARTITIONS_MAX + 1] {
        let (code, _) = refusal(&mut machine, create("t", 1, partitions));
        assert_eq!(code, ErrorCode::InvalidPartitions, "{partitions}");
    }
    let (code, message) = refusal(&mut machine, create("t", 1, 2_001));
    assert_eq!(code, ErrorCode::PolicyViolation);
    assert!(
        message.contains("all cores together take 2000"),
        "{message}"
    );
    for replication_factor in [i16::MIN, -1, 0, 2] {
        let create = CreateTopic {
            replication_factor,
            ..topic("t", 1, 1)
        };
        let (code, _) = refusal(&mut machine, Command::CreateTopic(create));
        assert_eq!(
            code,
            ErrorCode::InvalidReplicationFactor,
            "{replication_factor}"
        );
    }
}

#[test]
fn settings_are_checked_when_the_topic_is_created() {
    let mut machine = machine([register(1, 1, 2)]);
    let mut refuse = |key: &str, value: &str| {
        let create = CreateTopic {
            configs: vec![(key.to_owned(), value.to_owned())],
            ..topic("t", 1, 1)
        };
        refusal(&mut machine, Command::CreateTopic(create))
    };
    let (code, message) = refuse("retention.ms", "soon");
    assert_eq!(code, ErrorCode::InvalidConfig);
    assert!(message.contains("'retention.ms' = 'soon'"), "{message}");
    let (code, message) = refuse("acks.min", "2");
    assert_eq!(code, ErrorCode::InvalidConfig);
    assert!(
        message.contains("at most the replication factor, 1"),
        "{message}"
    );
}

fn grow(name: &str, count: i32) -> Command {
    Command::CreatePartitions {
        name: name.to_owned(),
        count,
    }
}

fn alter(name: &str, resets_others: bool, changes: &[(&str, Option<&str>)]) -> Command {
    let change = |(key, value): &(&str, Option<&str>)| {
        let change = value.map_or(ConfigChange::Reset, |value| {
            ConfigChange::Set(value.to_owned())
        });
        ((*key).to_owned(), change)
    };
    Command::AlterTopic(AlterTopic {
        name: name.to_owned(),
        resets_others,
        changes: changes.iter().map(change).collect(),
    })
}

#[test]
fn a_topic_grows_and_what_it_had_stays_where_it_was() {
    let mut machine = machine([
        register(1, 1, 2),
        create("t", 9, 2),
        register(1, 2, 2),
        create("u", 8, 1),
    ]);
    let before = machine.image();
    let outcome = apply(&mut machine, grow("t", 5)).expect("accepted");
    let expected = Outcome::PartitionsCreated {
        topic_id: TopicId([9; 16]),
        partitions: 5,
    };
    assert_eq!(outcome, expected);
    let image = machine.image();
    let (old, new) = (before.topic("t").unwrap(), image.topic("t").unwrap());
    assert_eq!(new.partitions[..2], old.partitions[..]);
    assert_eq!(image.topic_by_id(TopicId([9; 16])), Some(new));
    assert_eq!(epochs(&machine, "t"), [1, 1, 0, 0, 0]);
    // Three on each core, the one of the other topic included.
    let core_0 = cores(&machine, "t")
        .iter()
        .chain(&cores(&machine, "u"))
        .filter(|core| **core == 0)
        .count();
    assert_eq!(core_0, 3);
}

#[test]
fn a_topic_does_not_shrink_nor_grow_out_of_bounds() {
    let mut machine = machine([register(1, 1, 2), create("t", 9, 2)]);
    for count in [2, 1, 0, -1, PARTITIONS_MAX + 1, i32::MAX] {
        let (code, message) = refusal(&mut machine, grow("t", count));
        assert_eq!(code, ErrorCode::InvalidPartitions);
        assert!(message.contains("has 2 partitions"), "{message}");
    }
    let (code, message) = refusal(&mut machine, grow("t", 2_001));
    assert_eq!(code, ErrorCode::PolicyViolation, "{message}");
    let (code, _) = refusal(&mut machine, grow("u", 3));
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn settings_change_all_together_or_not_at_all() {
    let mut machine = machine([register(1, 1, 2), create("t", 9, 2)]);
    let set = alter(
        "t",
        false,
        &[("segment.ms", Some("5000")), ("retention.ms", Some("7"))],
    );
    let outcome = Outcome::TopicAltered {
        topic_id: TopicId([9; 16]),
    };
    assert_eq!(apply(&mut machine, set), Ok(outcome));
    let held = |machine: &Machine| machine.image().topic("t").unwrap().configs.clone();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let both = [pair("retention.ms", "7"), pair("segment.ms", "5000")];
    assert_eq!(held(&machine), both);

    let half = alter(
        "t",
        false,
        &[("segment.ms", None), ("retention.ms", Some("0"))],
    );
    let (code, _) = refusal(&mut machine, half);
    assert_eq!(code, ErrorCode::InvalidConfig);
    let more_than_there_are = alter("t", false, &[("min.insync.replicas", Some("2"))]);
    let (code, message) = refusal(&mut machine, more_than_there_are);
    assert_eq!(code, ErrorCode::InvalidConfig);
    assert!(
        message.contains("min.insync.replicas = 2: at most the replication factor, 1,"),
        "{message}"
    );
    let (code, _) = refusal(&mut machine, alter("u", false, &[]));
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition);

    apply(&mut machine, alter("t", true, &[("acks.min", Some("1"))])).expect("accepted");
    assert_eq!(held(&machine), [pair("acks.min", "1")]);
    let config = machine.image().topic("t").unwrap().config.clone();
    assert_eq!(
        (config.acks_min, config.retention),
        (Some(tackboard_schema::Acks::Count(1)), None)
    );
}

#[test]
fn a_core_that_is_full_takes_no_more_though_others_have_room() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut machine = machine([register(1, 1, 2)]);
    for (id, name) in (1..).zip(names) {
        apply(&mut machine, create(name, id, 1)).expect("there is room");
    }
    // Those of the second core.
    for name in ["b", "d", "f"] {
        apply(&mut machine, delete(name)).expect("it is there");
    }
    let Command::RegisterBroker(mut fewer) = register(1, 2, 2) else {
        unreachable!("a registration")
    };
    fewer.partitions_per_core_max = 2;
    apply(&mut machine, Command::RegisterBroker(fewer)).expect("accepted");
    let (code, message) = refusal(&mut machine, create("g", 9, 1));
    assert_eq!(code, ErrorCode::PolicyViolation);
    let told = "would put 3 on one core of broker 1, which takes 2";
    assert!(message.contains(told), "{message}");
}

#[test]
fn a_trial_answers_as_the_machine_would_and_changes_nothing() {
    let mut machine = machine([register(1, 1, 2), create("t", 9, 2)]);
    let before = machine.clone();
    for command in [
        create("t", 8, 1),
        create("v", 8, 3),
        grow("t", 4),
        alter("t", false, &[("no", None)]),
    ] {
        let mut trial = Machine::on_trial(machine.image());
        assert_eq!(
            apply(&mut trial, command.clone()),
            apply(&mut machine.clone(), command)
        );
    }
    assert_eq!(machine, before);
    // One trial takes several, each on top of those before it.
    let mut trial = Machine::on_trial(machine.image());
    apply(&mut trial, create("v", 8, 1)).expect("accepted");
    assert_eq!(
        refusal(&mut trial, create("v", 7, 1)).0,
        ErrorCode::TopicAlreadyExists
    );
    apply(&mut machine, create("v", 8, 1)).expect("untouched");
}

#[test]
fn deleted_topics_leave_a_tombstone() {
    let mut machine = machine([register(1, 1, 1), create("t", 1, 2), delete("t")]);
    let image = machine.image();
    assert_eq!(image.topic("t"), None);
    assert_eq!(image.topic_by_id(TopicId([1; 16])), None);
    assert_eq!(image.tombstone(TopicId([1; 16])).unwrap().partitions, 2);
    assert_eq!(
        refusal(&mut machine, delete("t")).0,
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(
        refusal(&mut machine, create("t", 1, 1)).0,
        ErrorCode::InvalidRequest
    );
    apply(&mut machine, create("t", 2, 1)).unwrap();
}

#[test]
fn producer_ids_come_in_blocks_that_never_overlap() {
    let mut machine = machine([register(1, 1, 1), register(2, 2, 1)]);
    let mut first = |broker| {
        let broker = BrokerId(broker);
        match apply(&mut machine, Command::AllocateProducerIds { broker }).unwrap() {
            Outcome::ProducerIds {
                first,
                count: 1_000,
            } => first,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        [first(1), first(2), first(1)],
        [0, 1_000, 2_000].map(ProducerId)
    );
    let unknown = Command::AllocateProducerIds {
        broker: BrokerId(3),
    };
    assert_eq!(refusal(&mut machine, unknown).0, ErrorCode::InvalidRequest);
}

#[test]
fn registrations_out_of_bounds() {
    let mut machine = machine([]);
    assert_eq!(
        refusal(&mut machine, register(-1, 1, 1)).0,
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        refusal(&mut machine, register(1, 1, 0)).0,
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        refusal(&mut machine, register(1, 1, 1_025)).0,
        ErrorCode::InvalidRequest
    );
    let Command::RegisterBroker(mut nowhere) = register(1, 1, 1) else {
        unreachable!()
    };
    nowhere.any_core.host.clear();
    assert_eq!(
        refusal(&mut machine, Command::RegisterBroker(nowhere)).0,
        ErrorCode::InvalidRequest
    );
}

#[test]
fn an_image_that_is_held_does_not_change() {
    let mut machine = machine([register(1, 1, 1), create("t", 1, 1)]);
    let held = machine.image();
    apply(&mut machine, register(1, 2, 1)).unwrap();
    apply(&mut machine, delete("t")).unwrap();
    assert_eq!(held.topic("t").unwrap().partitions[0].leader_epoch.0, 0);
    assert_eq!(held.version, 2);
}

#[test]
fn a_topic_is_gone_though_another_one_bears_its_name() {
    let mut machine = machine([
        register(1, 1, 2),
        create("stays", 1, 1),
        create("anew", 2, 1),
        create("goes", 3, 1),
    ]);
    let earlier = machine.image();
    for command in [delete("anew"), delete("goes"), create("anew", 4, 1)] {
        apply(&mut machine, command).unwrap();
    }
    let image = machine.image();
    let gone = image.gone_since(&earlier).map(|topic| &*topic.name);
    assert_eq!(gone.collect::<Vec<_>>(), ["anew", "goes"]);
    let names = ["anew", "goes", "never", "stays"].map(std::sync::Arc::from);
    let made_at = image.topic("anew").unwrap().created_at;
    let orphaned = image.orphaned(names);
    let orphaned = orphaned.iter().map(|(name, until)| (&**name, *until));
    assert_eq!(
        orphaned.collect::<Vec<_>>(),
        [("anew", Some(made_at)), ("goes", None), ("never", None)]
    );
}

#[test]
fn commits_are_for_partitions_that_are_there() {
    let machine = machine([register(1, 1, 2), create("t", 1, 2)]);
    let image = machine.image();
    let admits = |topic, partition, known_in| image.admits_commits(topic, partition, known_in);
    assert_eq!(admits("t", 1, image.version), Ok(()));
    let newer = Err(ErrorCode::CoordinatorLoadInProgress);
    assert_eq!(
        admits("t", 1, image.version + 1),
        newer,
        "another topic may bear the name"
    );
    for (topic, partition) in [("t", 2), ("t", -1), ("gone", 0)] {
        let gone = Err(ErrorCode::UnknownTopicOrPartition);
        assert_eq!(admits(topic, partition, image.version), gone);
        let too_new = Err(ErrorCode::CoordinatorLoadInProgress);
        assert_eq!(admits(topic, partition, image.version + 1), too_new);
    }
}
