//! What tools ask of Kafka's door, from a socket: topics that grow and change, their settings, the cluster, ends of epochs.

mod support;
#[path = "support/kafka.rs"]
mod wire;

use support::{broker, folder, metadata_bytes};
use tackboard_schema::{ErrorCode, kafka::*};
use wire::{Client, batch, fetch, offsets};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const OF_TOPIC: i8 = 1;
const OF_BROKER: i8 = 4;
const OF_DEFAULT: i8 = 5;

/// The first version and the last one that clients are told of.
fn ends<R: Request>() -> [i16; 2] {
    let advertised = R::API.row().advertised;
    [R::API.row().served.min, advertised.max]
}

fn describe(resource_type: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsRequest {
    let own = |keys: &[&str]| keys.iter().map(|key| Str::from(*key)).collect();
    DescribeConfigsRequest {
        resources: vec![DescribeConfigsRequestResource {
            resource_type,
            resource_name: name.into(),
            configuration_keys: keys.map(own),
        }],
        include_synonyms: true,
        include_documentation: true,
    }
}

/// Value and source of one setting of a topic.
fn setting(client: &mut Client, topic: &str, key: &str) -> (String, i8) {
    let mut answer = client.ask(4, &describe(TOPIC, topic, Some(&[key])));
    let result = answer.results.remove(0);
    assert_eq!(result.error_code, 0, "{:?}", result.error_message);
    let [config] = &result.configs[..] else {
        panic!("{key} is one setting: {:?}", result.configs);
    };
    let value = config.value.as_ref().expect("no value is a secret");
    (value.to_string(), config.config_source)
}

fn grow(name: &str, count: i32, validate_only: bool) -> CreatePartitionsRequest {
    CreatePartitionsRequest {
        topics: vec![CreatePartitionsRequestTopic {
            name: name.into(),
            count,
            assignments: None,
        }],
        timeout_ms: 10_000,
        validate_only,
    }
}

/// Operation, setting and value.
type Operation<'a> = (i8, &'a str, Option<&'a str>);

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn change(topic: &str, operations: &[Operation<'_>]) -> IncrementalAlterConfigsRequest {
    let config = |(operation, name, value): &Operation<'_>| IncrementalAlterConfigsRequestConfig {
        name: (*name).into(),
        config_operation: *operation,
        value: value.map(Str::from),
    };
    IncrementalAlterConfigsRequest {
        resources: vec![IncrementalAlterConfigsRequestResource {
            resource_type: TOPIC,
            resource_name: topic.into(),
            configs: operations.iter().map(config).collect(),
        }],
        validate_only: false,
    }
}

fn changed(client: &mut Client, operations: &[Operation<'_>]) -> i16 {
    let mut answer = client.ask(1, &change("t", operations));
    answer.responses.remove(0).error_code
}

#[test]
fn a_topic_that_has_grown_is_produced_to_and_fetched_from_at_once() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&running);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(client.produce("t", 0, batch(&["a"])).base_offset, 0);
    let mut count = 1;
    for version in ends::<CreatePartitionsRequest>() {
        let asked = client.ask(version, &grow("t", count + 2, true));
        assert_eq!(asked.results[0].error_code, 0);
        count += 2;
        let answer = client.ask(version, &grow("t", count, false));
        let told = &answer.results[0];
        assert_eq!((told.error_code, told.name.as_str()), (0, "t"));
        for partition in count - 2..count {
            let told = client.produce("t", partition, batch(&["b"]));
            assert_eq!((told.error_code, told.base_offset), (0, 0), "{partition}");
            let answer = client.ask(12, &fetch("t", &[partition], 0, 0));
            assert_eq!(offsets(&answer.responses[0].partitions[0]), [0]);
        }
        let beyond = client.produce("t", count, batch(&["c"]));
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        assert_eq!(beyond.error_code, unknown, "only tried");
    }
    for (name, count, code) in [
        ("t", count, ErrorCode::InvalidPartitions),
        ("t", 1, ErrorCode::InvalidPartitions),
        ("t", 10_001, ErrorCode::InvalidPartitions),
        ("u", 5, ErrorCode::UnknownTopicOrPartition),
    ] {
        for validate_only in [true, false] {
            let answer = client.ask(3, &grow(name, count, validate_only));
            assert_eq!(answer.results[0].error_code, code.code(), "{name} {count}");
        }
    }
    assert!(running.shutdown());

    // After a restart, on another number of cores.
    let running = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&running);
    let partitions: Vec<i32> = (0..count).collect();
    let answer = client.ask(12, &fetch("t", &partitions, 0, 0));
    for partition in &answer.responses[0].partitions {
        assert_eq!(offsets(partition), [0], "{}", partition.partition_index);
    }
    assert!(running.shutdown());
}

#[test]
fn what_is_tried_on_a_full_disk_is_refused_as_what_is_made_is() {
    let data = folder();
    let running = broker(data.path(), "[0]", &[]);
    assert_eq!(Client::of(&running).create("t", 1), 0);
    assert!(running.shutdown());
    // More than any disk has.
    let running = broker(data.path(), "[0]", &["storage.reserve_bytes=64 TiB"]);
    let mut client = Client::of(&running);
    let told = [true, false].map(|validate_only| {
        let create = CreateTopicsRequest {
            topics: vec![CreateTopicsRequestTopic {
                name: "u".into(),
                num_partitions: 1,
                replication_factor: -1,
                ..Default::default()
            }],
            validate_only,
            ..Default::default()
        };
        let created = client.ask(7, &create).topics.remove(0);
        let grown = client
            .ask(3, &grow("t", 2, validate_only))
            .results
            .remove(0);
        assert_eq!(created.error_message, grown.error_message);
        (created.error_code, grown.error_code, grown.error_message)
    });
    let [tried, made] = told;
    assert!(made.0 != 0 && made.1 != 0, "{made:?}");
    assert_eq!(tried, made);
    assert!(running.shutdown());
}

#[test]
fn one_request_tries_so_many_partitions_and_no_more() {
    let data = folder();
    let roomy = &["storage.partitions_per_core_max=100000"];
    let running = broker(data.path(), "[0]", roomy);
    let mut client = Client::of(&running);
    let topic = |name: &str| CreateTopicsRequestTopic {
        name: name.into(),
        num_partitions: 6_000,
        replication_factor: -1,
        ..Default::default()
    };
    let create = CreateTopicsRequest {
        topics: ["a", "b"].map(topic).to_vec(),
        validate_only: true,
        ..Default::default()
    };
    let told = client.ask(7, &create).topics;
    let codes: Vec<_> = told.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::PolicyViolation.code()]);
    assert!(running.shutdown());
}

#[test]
fn names_that_no_topic_can_have_are_refused_in_few_words_and_written_nowhere() {
    let data = folder();
    let running = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&running);
    assert_eq!(client.create("t", 1), 0);
    // The longest that every version can name; each character takes five where it is quoted.
    let name = "\u{1}".repeat(i16::MAX as usize);
    let invalid = ErrorCode::InvalidTopicException.code();
    let before = metadata_bytes(data.path());
    for version in ends::<CreatePartitionsRequest>() {
        let told = &client.ask(version, &grow(&name, 2, false)).results[0];
        assert_eq!(told.error_code, invalid, "{version}");
    }
    for version in ends::<IncrementalAlterConfigsRequest>() {
        let request = change(&name, &[(SET, "retention.ms", Some("1"))]);
        let told = &client.ask(version, &request).responses[0];
        assert_eq!(told.error_code, invalid, "{version}");
    }
    for version in ends::<AlterConfigsRequest>() {
        let request = AlterConfigsRequest {
            resources: vec![AlterConfigsRequestResource {
                resource_type: TOPIC,
                resource_name: name.as_str().into(),
                configs: Vec::new(),
            }],
            ..Default::default()
        };
        let told = &client.ask(version, &request).responses[0];
        assert_eq!(told.error_code, invalid, "{version}");
    }
    for version in ends::<DeleteTopicsRequest>() {
        let request = DeleteTopicsRequest {
            topic_names: vec![name.as_str().into()],
            topics: vec![DeleteTopicsRequestTopic {
                name: Some(name.as_str().into()),
                ..Default::default()
            }],
            ..Default::default()
        };
        let told = &client.ask(version, &request).responses[0];
        assert_eq!(told.error_code, invalid, "{version}");
    }
    assert_eq!(client.create(&name, 1), invalid);
    assert_eq!(metadata_bytes(data.path()), before);
    // Settings that there are not, under such names.
    for version in ends::<IncrementalAlterConfigsRequest>() {
        let settings =
            ["a", "b", "c", "d", "e", "f", "g", "h"].map(|end| name[1..].to_owned() + end);
        let settings: Vec<_> = settings
            .iter()
            .map(|key| (SET, key.as_str(), Some("1")))
            .collect();
        let told = &client.ask(version, &change("t", &settings)).responses[0];
        assert_eq!(
            told.error_code,
            ErrorCode::InvalidConfig.code(),
            "{version}"
        );
    }
    assert!(running.shutdown());
}

#[test]
fn a_topic_that_a_request_names_twice_is_refused_and_left_as_it_is() {
    let data = folder();
    let running = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&running);
    let refused = ErrorCode::InvalidRequest.code();
    for validate_only in [true, false] {
        let topic = |name: &str, partitions| CreateTopicsRequestTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: -1,
            ..Default::default()
        };
        let create = CreateTopicsRequest {
            topics: vec![topic("a", 1), topic("b", 1), topic("a", 2)],
            validate_only,
            ..Default::default()
        };
        let told = client.ask(7, &create).topics;
        let codes = told.iter().map(|topic| topic.error_code);
        assert_eq!(codes.collect::<Vec<_>>(), [refused, 0, refused]);
    }
    assert_eq!(client.create("a", 1), 0, "it was not made");
    let mut twice = grow("a", 2, false);
    twice.topics.extend(grow("a", 3, false).topics);
    let told = client.ask(3, &twice).results;
    let codes = told.iter().map(|topic| topic.error_code);
    assert_eq!(codes.collect::<Vec<_>>(), [refused, refused]);
    assert!(running.shutdown());
}

#[test]
fn an_assignment_of_replicas_may_only_say_what_holds_anyway() {
    let data = folder();
    let broker = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&broker);
    let wrong = ErrorCode::InvalidReplicaAssignment.code();
    let invalid = ErrorCode::InvalidRequest.code();

    // Index and replicas of each partition.
    let create = |name: &str, count, assigned: &[(i32, &[i32])]| CreateTopicsRequest {
        topics: vec![CreateTopicsRequestTopic {
            name: name.into(),
            num_partitions: count,
            replication_factor: -1,
            assignments: assigned
                .iter()
                .map(|(index, brokers)| CreateTopicsRequestAssignment {
                    partition_index: *index,
                    broker_ids: brokers.to_vec(),
                })
                .collect(),
            ..Default::default()
        }],
        ..Default::default()
    };
    for (count, assigned, code) in [
        (2, &[(0, &[1][..]), (1, &[1])][..], invalid),
        (-1, &[(0, &[1]), (1, &[2])], wrong),
        (-1, &[(0, &[1]), (1, &[])], wrong),
        (-1, &[(0, &[1]), (1, &[1, 2])], wrong),
        (-1, &[(0, &[1]), (2, &[1])], wrong),
        (-1, &[(0, &[1]), (0, &[1])], wrong),
        (-1, &[(1, &[1]), (0, &[1])], 0),
    ] {
        let told = client
            .ask(7, &create("t", count, assigned))
            .topics
            .remove(0);
        assert_eq!(told.error_code, code, "{count} {assigned:?}");
        assert_eq!(told.num_partitions, if code == 0 { 2 } else { -1 });
    }

    for (count, brokers, code) in [
        (4, &[2, 1][..], wrong),
        (4, &[1], wrong),
        (4, &[1, 1, 1], wrong),
        (4, &[1, 1], 0),
    ] {
        let mut request = grow("t", count, false);
        let assigned = |broker: &i32| CreatePartitionsRequestAssignment {
            broker_ids: vec![*broker],
        };
        request.topics[0].assignments = Some(brokers.iter().map(assigned).collect());
        let told = client.ask(3, &request).results.remove(0);
        assert_eq!(told.error_code, code, "{count} {brokers:?}");
    }
    let mut unknown = grow("u", 2, false);
    unknown.topics[0].assignments = Some(vec![CreatePartitionsRequestAssignment {
        broker_ids: vec![1],
    }]);
    let code = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(client.ask(3, &unknown).results[0].error_code, code);
    assert!(broker.shutdown());
}

#[test]
fn all_settings_of_a_topic_are_told_with_what_would_hold_without_them() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &["log.retention.ms=1 d"]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(
        changed(&mut client, &[(SET, "retention.ms", Some("5000"))]),
        0
    );
    let mut names = Vec::new();
    for version in ends::<DescribeConfigsRequest>() {
        let answer = client.ask(version, &describe(TOPIC, "t", None));
        let configs = &answer.results[0].configs;
        names = configs
            .iter()
            .map(|config| config.name.to_string())
            .collect();
        for config in configs {
            assert!(!config.read_only && !config.is_sensitive, "{}", config.name);
            let said = (config.documentation.as_ref()).is_some_and(|text| !text.is_empty());
            assert_eq!(said, version >= 3, "{}", config.name);
            let first = &config.synonyms[0];
            let told = (&config.value, config.config_source);
            assert_eq!((&first.value, first.source), told, "{}", config.name);
        }
        let retention = configs.iter().find(|config| config.name == "retention.ms");
        let told = |synonym: &DescribeConfigsResponseSynonym| {
            let value = synonym.value.as_ref().map(Str::to_string);
            (
                synonym.name.to_string(),
                value.unwrap_or_default(),
                synonym.source,
            )
        };
        let synonym = |name: &str, value: &str, source| (name.to_owned(), value.to_owned(), source);
        assert_eq!(
            retention
                .expect("a setting")
                .synonyms
                .iter()
                .map(told)
                .collect::<Vec<_>>(),
            [
                synonym("retention.ms", "5000", OF_TOPIC),
                synonym("log.retention.ms", "86400000", OF_BROKER),
                synonym("log.retention.ms", "604800000", OF_DEFAULT),
            ]
        );
    }
    for name in [
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.type",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
        "tackboard.acks.default",
        "tackboard.acks.min",
        "tackboard.durability",
        "tackboard.retention.clock",
    ] {
        assert!(
            names.iter().any(|known| known == name),
            "{name} in {names:?}"
        );
    }
    let default = |value: &str| (value.to_owned(), OF_DEFAULT);
    assert_eq!(setting(&mut client, "t", "retention.bytes"), default("-1"));
    assert_eq!(
        setting(&mut client, "t", "cleanup.policy"),
        default("delete")
    );
    assert_eq!(
        setting(&mut client, "t", "tackboard.durability"),
        default("fsync")
    );
    // A fourteenth of what the broker was started with.
    assert_eq!(setting(&mut client, "t", "segment.ms").0, "6171428");

    let unknown = client.ask(4, &describe(TOPIC, "u", None));
    let code = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(unknown.results[0].error_code, code);
    let of_a_group = client.ask(4, &describe(32, "g", None));
    let code = ErrorCode::InvalidRequest.code();
    assert_eq!(of_a_group.results[0].error_code, code);
    assert!(broker.shutdown());
}

#[test]
fn settings_of_the_broker_are_told_and_not_changed() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &["log.retention.ms=1 d"]);
    let mut client = Client::of(&broker);
    for version in ends::<DescribeConfigsRequest>() {
        let answer = client.ask(version, &describe(BROKER, "1", None));
        let configs = &answer.results[0].configs;
        let find = |name: &str| {
            let config = configs.iter().find(|config| config.name == name);
            let config = config.unwrap_or_else(|| panic!("{name} is told"));
            assert!(config.read_only);
            let value = config.value.as_ref().map(Str::to_string);
            (value.expect("a value"), config.config_source)
        };
        assert_eq!(find("log.retention.ms"), ("86400000".into(), OF_BROKER));
        assert_eq!(find("num.partitions"), ("1".into(), OF_DEFAULT));
        assert_eq!(
            find("auto.create.topics.enable"),
            ("true".into(), OF_DEFAULT)
        );
        assert_eq!(find("memory.total"), ("268435456".into(), OF_BROKER));
        let listener = format!(
            "PLAINTEXT://{}",
            broker.kafka_address().expect("the door is open")
        );
        assert_eq!(find("advertised.listeners"), (listener, OF_BROKER));
    }
    let other = client.ask(4, &describe(BROKER, "2", None));
    let invalid = ErrorCode::InvalidRequest.code();
    assert_eq!(other.results[0].error_code, invalid);
    // What all brokers were told while they run: nothing.
    let answer = client.ask(4, &describe(BROKER, "", None));
    assert_eq!(
        (
            answer.results[0].error_code,
            answer.results[0].configs.len()
        ),
        (0, 0)
    );

    let mut request = change("1", &[(SET, "log.retention.ms", Some("1"))]);
    request.resources[0].resource_type = BROKER;
    assert_eq!(client.ask(1, &request).responses[0].error_code, invalid);
    assert!(broker.shutdown());
}

#[test]
fn settings_change_one_by_one_and_hold_at_once_and_after_a_restart() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&running);
    assert_eq!(client.create("t", 2), 0);
    let large = "x".repeat(2_000);
    for version in ends::<IncrementalAlterConfigsRequest>() {
        let set = change("t", &[(SET, "max.message.bytes", Some("1500"))]);
        assert_eq!(client.ask(version, &set).responses[0].error_code, 0);
        for partition in 0..2 {
            let told = client.produce("t", partition, batch(&[&large]));
            assert_eq!(told.error_code, ErrorCode::MessageTooLarge.code());
        }
        let reset = change("t", &[(DELETE, "max.message.bytes", None)]);
        assert_eq!(client.ask(version, &reset).responses[0].error_code, 0);
        for partition in 0..2 {
            assert_eq!(
                client.produce("t", partition, batch(&[&large])).error_code,
                0
            );
        }
    }
    let both: [Operation<'_>; 2] = [
        (SET, "tackboard.durability", Some("interval")),
        (SET, "retention.ms", Some("-1")),
    ];
    assert_eq!(changed(&mut client, &both), 0);
    // A setting with one value takes it in any way.
    assert_eq!(
        changed(&mut client, &[(APPEND, "cleanup.policy", Some("delete"))]),
        0
    );
    let invalid = ErrorCode::InvalidConfig.code();
    for wrong in [
        (SET, "retention.ms", Some("soon")),
        (SET, "no.such.setting", Some("1")),
        (DELETE, "no.such.setting", None),
        (APPEND, "cleanup.policy", Some("compact")),
        (SUBTRACT, "cleanup.policy", Some("delete")),
        (APPEND, "retention.ms", Some("1")),
        (SET, "min.insync.replicas", Some("2")),
    ] {
        // With one that is right, which is not made either.
        let both = [(SET, "segment.ms", Some("5000")), wrong];
        assert_eq!(changed(&mut client, &both), invalid, "{wrong:?}");
    }
    let malformed = ErrorCode::InvalidRequest.code();
    assert_eq!(
        changed(&mut client, &[(SET, "retention.ms", None)]),
        malformed
    );
    assert_eq!(
        changed(&mut client, &[(9, "retention.ms", Some("1"))]),
        malformed
    );
    let mut tried = change("t", &[(SET, "retention.ms", Some("7"))]);
    tried.validate_only = true;
    assert_eq!(client.ask(1, &tried).responses[0].error_code, 0);
    let mut tried = change("t", &[(SET, "retention.ms", Some("soon"))]);
    tried.validate_only = true;
    assert_eq!(client.ask(1, &tried).responses[0].error_code, invalid);

    let holds = |client: &mut Client| {
        let own = |value: &str| (value.to_owned(), OF_TOPIC);
        assert_eq!(
            setting(client, "t", "tackboard.durability"),
            own("interval")
        );
        assert_eq!(setting(client, "t", "retention.ms"), own("-1"));
        assert_eq!(setting(client, "t", "segment.ms").1, OF_DEFAULT);
    };
    holds(&mut client);
    assert!(running.shutdown());
    let running = broker(data.path(), "[0]", &[]);
    holds(&mut Client::of(&running));
    assert!(running.shutdown());
}

#[test]
fn the_older_way_to_change_settings_resets_what_it_does_not_name() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    let alter = |name: &str, value: Option<&str>, validate_only| AlterConfigsRequest {
        resources: vec![AlterConfigsRequestResource {
            resource_type: TOPIC,
            resource_name: "t".into(),
            configs: vec![AlterConfigsRequestConfig {
                name: name.into(),
                value: value.map(Str::from),
            }],
        }],
        validate_only,
    };
    for version in ends::<AlterConfigsRequest>() {
        let code = |client: &mut Client, request: AlterConfigsRequest| {
            client.ask(version, &request).responses[0].error_code
        };
        assert_eq!(
            code(&mut client, alter("segment.ms", Some("5000"), false)),
            0
        );
        assert_eq!(
            code(&mut client, alter("retention.ms", Some("7000"), false)),
            0
        );
        let own = |value: &str| (value.to_owned(), OF_TOPIC);
        assert_eq!(setting(&mut client, "t", "retention.ms"), own("7000"));
        assert_eq!(setting(&mut client, "t", "segment.ms").1, OF_DEFAULT);
        assert_eq!(
            code(&mut client, alter("retention.ms", Some("8000"), true)),
            0
        );
        let wrong = code(&mut client, alter("retention.ms", Some("soon"), true));
        assert_eq!(wrong, ErrorCode::InvalidConfig.code());
        let none = code(&mut client, alter("retention.ms", None, false));
        assert_eq!(none, ErrorCode::InvalidRequest.code());
        assert_eq!(setting(&mut client, "t", "retention.ms"), own("7000"));
    }
    assert!(broker.shutdown());
}

#[test]
fn a_topic_is_created_with_kafkas_settings_and_told_as_it_is() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &["num.partitions=3"]);
    let mut client = Client::of(&broker);
    let create = |name: &str, config: (&str, &str), validate_only| CreateTopicsRequest {
        topics: vec![CreateTopicsRequestTopic {
            name: name.into(),
            num_partitions: -1,
            replication_factor: -1,
            configs: vec![CreateTopicsRequestConfig {
                name: config.0.into(),
                value: Some(config.1.into()),
            }],
            ..Default::default()
        }],
        validate_only,
        ..Default::default()
    };
    for (index, version) in ends::<CreateTopicsRequest>().into_iter().enumerate() {
        let name = format!("t{index}");
        let config = ("tackboard.durability", "written");
        for validate_only in [true, false] {
            let mut answer = client.ask(version, &create(&name, config, validate_only));
            let told = answer.topics.remove(0);
            assert_eq!(told.error_code, 0, "{:?}", told.error_message);
            if version < 5 {
                continue;
            }
            assert_eq!((told.num_partitions, told.replication_factor), (3, 1));
            let configs = told.configs.expect("they are told");
            let durability = configs
                .iter()
                .find(|config| config.name == "tackboard.durability");
            let durability = durability.expect("a setting");
            let value = durability.value.as_ref().map(Str::to_string);
            assert_eq!(
                (value.as_deref(), durability.config_source),
                (Some("written"), OF_TOPIC)
            );
            assert!(configs.len() > 10);
        }
        assert_eq!(
            setting(&mut client, &name, "tackboard.durability").0,
            "written"
        );
    }
    for validate_only in [true, false] {
        let compacted = create("u", ("cleanup.policy", "compact"), validate_only);
        let told = client.ask(7, &compacted).topics.remove(0);
        assert_eq!(told.error_code, ErrorCode::InvalidConfig.code());
        assert_eq!((told.num_partitions, told.replication_factor), (-1, -1));
        let taken = create("t0", ("cleanup.policy", "delete"), validate_only);
        let told = client.ask(7, &taken).topics.remove(0);
        assert_eq!(told.error_code, ErrorCode::TopicAlreadyExists.code());
    }
    assert!(broker.shutdown());
}

#[test]
fn the_cluster_is_told_as_metadata_tells_it() {
    let data = folder();
    let broker = broker(
        data.path(),
        "[0]",
        &["kafka.advertised=broker-1.example:9092"],
    );
    let mut client = Client::of(&broker);
    let metadata = client.ask(12, &MetadataRequest::default());
    for version in ends::<DescribeClusterRequest>() {
        let request = DescribeClusterRequest::default();
        let answer = client.ask(version, &request);
        assert_eq!(answer.error_code, 0);
        assert_eq!(Some(answer.cluster_id), metadata.cluster_id);
        assert_eq!(answer.controller_id, metadata.controller_id);
        let [told] = &answer.brokers[..] else {
            panic!("one broker: {:?}", answer.brokers);
        };
        let endpoint = (told.broker_id, told.host.as_str(), told.port);
        assert_eq!(endpoint, (1, "broker-1.example", 9092));
        assert_eq!(
            answer.cluster_authorized_operations,
            i32::MIN,
            "not asked for"
        );
    }
    let operations = DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        ..Default::default()
    };
    assert!(client.ask(1, &operations).cluster_authorized_operations > 0);
    let controllers = DescribeClusterRequest {
        endpoint_type: 2,
        ..Default::default()
    };
    let refused = ErrorCode::InvalidRequest.code();
    assert_eq!(client.ask(1, &controllers).error_code, refused);
    assert!(broker.shutdown());
}

#[test]
fn an_epoch_ends_where_the_next_start_of_the_broker_began() {
    let data = folder();
    let mut epochs = Vec::new();
    for _ in 0..3 {
        let running = broker(data.path(), "[0, 1]", &[]);
        let mut client = Client::of(&running);
        client.create("t", 2);
        let by_name = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic {
                name: Some("t".into()),
                ..Default::default()
            }]),
            ..Default::default()
        };
        let metadata = client.ask(12, &by_name);
        epochs.push(metadata.topics[0].partitions[0].leader_epoch);
        for partition in 0..2 {
            assert_eq!(
                client
                    .produce("t", partition, batch(&["a", "b"]))
                    .error_code,
                0
            );
        }
        assert!(running.shutdown());
    }
    let broker = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&broker);
    let now = epochs[2] + 1;
    let mut ends_of = |version, current_leader_epoch, leader_epoch| {
        let partition = |partition| OffsetForLeaderEpochRequestPartition {
            partition,
            current_leader_epoch,
            leader_epoch,
        };
        let request = OffsetForLeaderEpochRequest {
            topics: vec![OffsetForLeaderEpochRequestTopic {
                topic: "t".into(),
                partitions: vec![partition(0), partition(1), partition(2)],
            }],
            ..Default::default()
        };
        let answer = client.ask(version, &request);
        let told = |told: &OffsetForLeaderEpochResponsePartition| {
            (told.error_code, told.leader_epoch, told.end_offset)
        };
        let told: Vec<_> = answer.topics[0].partitions.iter().map(told).collect();
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        assert_eq!(told[2], (unknown, -1, -1), "there is no third partition");
        assert_eq!(told[0], told[1], "on either core");
        told[0]
    };
    for version in ends::<OffsetForLeaderEpochRequest>() {
        for (index, epoch) in (0..).zip(&epochs) {
            assert_eq!(ends_of(version, -1, *epoch), (0, *epoch, 2 * index + 2));
        }
        assert_eq!(ends_of(version, now, now), (0, now, 6));
        assert_eq!(ends_of(version, -1, now + 1), (0, -1, -1));
    }
    let fenced = ErrorCode::FencedLeaderEpoch.code();
    assert_eq!(ends_of(4, now - 1, epochs[0]), (fenced, -1, -1));
    let newer = ErrorCode::UnknownLeaderEpoch.code();
    assert_eq!(ends_of(4, now + 1, epochs[0]), (newer, -1, -1));
    assert!(broker.shutdown());
}

#[test]
fn deleted_records_are_gone_at_once_and_after_a_restart() {
    let data = folder();
    let running = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&running);
    assert_eq!(client.create("t", 3), 0);
    for partition in 0..3 {
        for _ in 0..4 {
            client.produce("t", partition, batch(&["a", "b"]));
        }
    }
    let mut delete = |version, offsets: &[(i32, i64)]| {
        let partition = |(partition_index, offset): &(i32, i64)| DeleteRecordsRequestPartition {
            partition_index: *partition_index,
            offset: *offset,
        };
        let request = DeleteRecordsRequest {
            topics: vec![DeleteRecordsRequestTopic {
                name: "t".into(),
                partitions: offsets.iter().map(partition).collect(),
            }],
            timeout_ms: 10_000,
        };
        let answer = client.ask(version, &request);
        let told = |told: &DeleteRecordsResponsePartition| (told.error_code, told.low_watermark);
        answer.topics[0]
            .partitions
            .iter()
            .map(told)
            .collect::<Vec<_>>()
    };
    // In the midst of a batch, on either core; what is gone is gone.
    assert_eq!(
        delete(0, &[(0, 3), (1, 3), (2, 0)]),
        [(0, 3), (0, 3), (0, 0)]
    );
    assert_eq!(
        delete(2, &[(0, 2), (1, 4), (2, -1)]),
        [(0, 3), (0, 4), (0, 8)]
    );
    let out = ErrorCode::OffsetOutOfRange.code();
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    let refused = delete(2, &[(0, 9), (1, -2), (3, 0)]);
    assert_eq!(refused, [(out, -1), (out, -1), (unknown, -1)]);

    let holds = |client: &mut Client| {
        let answer = client.ask(12, &fetch("t", &[0, 1, 2], 8, 0));
        let starts = answer.responses[0].partitions.iter();
        let starts: Vec<_> = starts.map(|told| told.log_start_offset).collect();
        assert_eq!(starts, [3, 4, 8]);
        let answer = client.ask(12, &fetch("t", &[0, 1, 2], 3, 0));
        let [first, second, third] = &answer.responses[0].partitions[..] else {
            panic!("three partitions");
        };
        assert_eq!(
            offsets(first),
            [2, 4, 6],
            "with the batch that it begins within"
        );
        assert_eq!((second.error_code, third.error_code), (out, out));
    };
    holds(&mut client);
    assert!(running.shutdown());
    let running = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&running);
    holds(&mut client);
    assert_eq!(client.produce("t", 2, batch(&["c"])).base_offset, 8);
    assert!(running.shutdown());
}

#[test]
fn a_request_that_asks_for_very_much_is_bounded() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    // One topic very often is told once.
    let mut request = describe(TOPIC, "t", None);
    request.resources = vec![request.resources[0].clone(); 10_000];
    assert_eq!(client.ask(4, &request).results.len(), 1);
    // More is tried than one request may.
    let topics = (0..200).map(|index| CreateTopicsRequestTopic {
        name: format!("t{index}").as_str().into(),
        num_partitions: 1,
        replication_factor: -1,
        ..Default::default()
    });
    let request = CreateTopicsRequest {
        topics: topics.collect(),
        validate_only: true,
        ..Default::default()
    };
    let answer = client.ask(7, &request);
    let codes: Vec<_> = answer.topics.iter().map(|told| told.error_code).collect();
    assert_eq!(codes[..100], [0; 100]);
    let too_many = ErrorCode::PolicyViolation.code();
    assert_eq!(codes[100..], [too_many; 100]);
    // Settings without end.
    let settings = vec![(SET, "retention.ms", Some("1")); 10_001];
    client.send(1, &change("t", &settings));
    assert!(client.is_ended());
    assert!(broker.shutdown());
}
