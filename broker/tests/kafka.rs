//! Kafka's door, from a socket: every request in its own words, answers in the order of the requests.

mod support;
#[path = "support/kafka.rs"]
mod wire;

use std::io::Write as _;

use support::{broker, folder, metadata_bytes};
use tackboard_schema::{
    ErrorCode, TimestampMs, TopicId,
    kafka::*,
    record_batch::{BatchBuilder, Compression},
};
use wire::{Client, batch, fetch, offsets, produce};

fn all_topics() -> MetadataRequest {
    MetadataRequest {
        topics: None,
        ..Default::default()
    }
}

#[test]
fn what_is_produced_is_fetched_in_every_version_that_is_served() {
    let data = folder();
    let broker = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 4), 0);
    assert_eq!(client.create("t", 4), ErrorCode::TopicAlreadyExists.code());
    for (index, version) in ApiKey::Produce.row().served.iter().enumerate() {
        for partition in 0..4 {
            let request = produce("t", partition, batch(&["a", "b"]), -1);
            let answer = client.ask(version, &request);
            let told = &answer.responses[0].partition_responses[0];
            assert_eq!(
                (told.error_code, told.base_offset),
                (0, 2 * index as i64),
                "{version}"
            );
        }
    }
    let batches = ApiKey::Produce.row().served.iter().count() as i64;
    let topics = client.ask(12, &all_topics()).topics;
    let topic_id = topics[0].topic_id;
    for version in ApiKey::Fetch.row().advertised.iter() {
        let mut request = fetch("t", &[0, 1, 2, 3], 2, 0);
        request.topics[0].topic_id = topic_id;
        let answer = client.ask(version, &request);
        // Up to version 12 by name, from 13 on by id.
        let found = &answer.responses[0];
        let expected = match version {
            ..=12 => ("t", TopicId::default()),
            13.. => ("", topic_id),
        };
        assert_eq!((&*found.topic, found.topic_id), expected);
        assert_eq!(answer.responses[0].partitions.len(), 4);
        for partition in &answer.responses[0].partitions {
            assert_eq!(partition.error_code, 0);
            assert_eq!(partition.high_watermark, 2 * batches);
            let wanted: Vec<_> = (1..batches).map(|index| 2 * index).collect();
            assert_eq!(offsets(partition), wanted, "version {version}");
        }
    }
    assert!(broker.shutdown());
}

#[test]
fn a_topic_id_that_nobody_has_is_told_and_hinders_no_other_topic() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    assert_eq!(client.produce("t", 0, batch(&["a"])).error_code, 0);
    let topics = client.ask(12, &all_topics()).topics;
    let (gone, there) = (TopicId([7; 16]), topics[0].topic_id);
    let mut request = fetch("t", &[0], 0, 0);
    request.topics.push(request.topics[0].clone());
    (request.topics[0].topic_id, request.topics[1].topic_id) = (gone, there);
    let answer = client.ask(13, &request);
    let told: Vec<_> = (answer.responses.iter())
        .map(|topic| (topic.topic_id, topic.partitions[0].error_code))
        .collect();
    assert_eq!(told, [(gone, ErrorCode::UnknownTopicId.code()), (there, 0)]);
    assert_eq!(offsets(&answer.responses[1].partitions[0]), [0]);
    assert!(broker.shutdown());
}

#[test]
fn answers_keep_the_order_of_requests_though_the_first_one_waits_longest() {
    let data = folder();
    let broker = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 2), 0);
    let waits = client.send(12, &fetch("t", &[0, 1], 0, 400));
    let all_topics = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let second = client.send(12, &all_topics);
    let third = client.send(11, &produce("t", 1, batch(&["a"]), -1));
    // The produce that comes last ends the wait of the first.
    let fetched = client.receive::<FetchRequest>(12, waits);
    let metadata = client.receive::<MetadataRequest>(12, second);
    assert_eq!(metadata.topics.len(), 1);
    let produced = client.receive::<ProduceRequest>(11, third);
    assert_eq!(produced.responses[0].partition_responses[0].error_code, 0);
    let partitions = &fetched.responses[0].partitions;
    assert_eq!(
        (offsets(&partitions[0]), offsets(&partitions[1])),
        (vec![], vec![0])
    );
    assert!(broker.shutdown());
}

#[test]
fn who_waits_for_no_answer_gets_none_and_loses_the_connection_when_it_fails() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    client.send(11, &produce("t", 0, batch(&["a"]), 0));
    let id = client.send(3, &ApiVersionsRequest::default());
    client.receive::<ApiVersionsRequest>(3, id);
    let answer = client.ask(12, &fetch("t", &[0], 0, 1_000));
    assert_eq!(offsets(&answer.responses[0].partitions[0]), [0]);
    client.send(11, &produce("t", 7, batch(&["a"]), 0));
    assert!(client.is_ended());
    assert!(broker.shutdown());
}

#[test]
fn a_floor_of_acks_holds_for_clients_that_wait_for_none() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &["acks.min=1"]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    client.send(11, &produce("t", 0, batch(&["a"]), 0));
    // Still no answer: the next one is that of the next request.
    let id = client.send(3, &ApiVersionsRequest::default());
    client.receive::<ApiVersionsRequest>(3, id);
    assert!(broker.shutdown());
}

#[test]
fn bad_batches_are_refused_by_partition_with_kafkas_codes() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    let good = batch(&["a"]);
    let mut torn = good.clone();
    torn[65] ^= 1;
    let twice = [good.clone(), good.clone()].concat();
    let mut old = good.clone();
    old[16] = 1;
    for (records, code) in [
        (torn, ErrorCode::CorruptMessage),
        (good[..30].to_vec(), ErrorCode::CorruptMessage),
        (twice, ErrorCode::InvalidRecord),
        (old, ErrorCode::InvalidRecord),
        (Vec::new(), ErrorCode::InvalidRequest),
    ] {
        let told = client.produce("t", 0, records);
        assert_eq!(told.error_code, code.code(), "{:?}", told.error_message);
        assert_eq!(told.base_offset, -1);
    }
    assert_eq!(client.produce("t", 0, good).base_offset, 0);
    let answer = client.ask(11, &produce("t", 0, batch(&["a"]), 2));
    let told = &answer.responses[0].partition_responses[0];
    assert_eq!(told.error_code, ErrorCode::InvalidRequiredAcks.code());
    assert!(broker.shutdown());
}

/// Asks for one topic, which may be created or not.
fn ask_for(client: &mut Client, name: &str, may_create: bool) -> MetadataResponseTopic {
    let topic = MetadataRequestTopic {
        name: Some(name.into()),
        ..Default::default()
    };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        allow_auto_topic_creation: may_create,
        ..Default::default()
    };
    client.ask(12, &request).topics.remove(0)
}

#[test]
fn topics_appear_when_they_are_asked_for_unless_that_is_off() {
    let data = folder();
    let running = broker(data.path(), "[0]", &["num.partitions=3"]);
    let mut client = Client::of(&running);
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    assert_eq!(ask_for(&mut client, "t", false).error_code, unknown);
    assert_eq!(
        ask_for(&mut client, "t", true).error_code,
        ErrorCode::LeaderNotAvailable.code()
    );
    support::eventually("the topic is there", || {
        ask_for(&mut client, "t", false).partitions.len() == 3
    });
    let invalid = ErrorCode::InvalidTopicException.code();
    for may_create in [true, false] {
        let told = ask_for(&mut client, "no/name", may_create);
        assert_eq!(told.error_code, invalid);
    }
    assert!(running.shutdown());

    let running = broker(data.path(), "[0]", &["auto.create.topics.enable=false"]);
    let mut client = Client::of(&running);
    assert_eq!(ask_for(&mut client, "u", true).error_code, unknown);
    let known = ask_for(&mut client, "t", true);
    assert_eq!((known.error_code, known.partitions.len()), (0, 3));
    let by_id = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            topic_id: known.topic_id,
            name: None,
        }]),
        ..Default::default()
    };
    assert_eq!(client.ask(12, &by_id).topics[0].name.as_deref(), Some("t"));
    let delete = DeleteTopicsRequest {
        topics: vec![DeleteTopicsRequestTopic {
            topic_id: known.topic_id,
            name: None,
        }],
        ..Default::default()
    };
    assert_eq!(client.ask(6, &delete).responses[0].error_code, 0);
    let gone = ErrorCode::UnknownTopicId.code();
    assert_eq!(client.ask(6, &delete).responses[0].error_code, gone);
    assert!(running.shutdown());
}

#[test]
fn asking_for_a_topic_that_cannot_be_created_writes_nothing() {
    let data = folder();
    let running = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&running);
    assert_eq!(client.create("one.topic", 1), 0);
    // A change that is refused, too, is a command in the log.
    let refused = ErrorCode::TopicAlreadyExists.code();
    let mut grown = |polls: usize| {
        let before = metadata_bytes(data.path());
        for _ in 0..polls {
            let told = ask_for(&mut client, "one_topic", true);
            assert_eq!(told.error_code, ErrorCode::InvalidTopicException.code());
        }
        // Answered behind whatever was proposed before it.
        assert_eq!(client.create("one.topic", 1), refused);
        metadata_bytes(data.path()) - before
    };
    assert_eq!(grown(10), grown(0));
    assert!(running.shutdown());
}

#[test]
fn offsets_are_found_by_place_and_by_time() {
    let data = folder();
    let broker = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 2), 0);
    for partition in 0..2 {
        client.produce("t", partition, batch(&["a", "b", "c"]));
    }
    let mut list = |version: i16, timestamp: i64, epoch: i32| {
        let partition = |index| ListOffsetsRequestPartition {
            partition_index: index,
            timestamp,
            current_leader_epoch: epoch,
        };
        let request = ListOffsetsRequest {
            topics: vec![ListOffsetsRequestTopic {
                name: "t".into(),
                partitions: vec![partition(0), partition(1)],
            }],
            ..Default::default()
        };
        let answer = client.ask(version, &request);
        let told = |told: &ListOffsetsResponsePartition| (told.error_code, told.offset);
        answer.topics[0]
            .partitions
            .iter()
            .map(told)
            .collect::<Vec<_>>()
    };
    for version in ApiKey::ListOffsets.row().advertised.iter() {
        assert_eq!(list(version, -1, -1), [(0, 3); 2]);
        assert_eq!(list(version, -2, -1), [(0, 0); 2]);
        assert_eq!(list(version, 1_000, -1), [(0, 0); 2]);
        assert_eq!(list(version, 1_001, -1), [(0, -1); 2]);
    }
    let newer = ErrorCode::UnknownLeaderEpoch.code();
    assert_eq!(list(6, -1, 1_000), [(newer, -1); 2]);
    assert!(broker.shutdown());
}

#[test]
fn a_client_of_the_future_is_told_what_is_spoken_here() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    // ApiVersions 99, whatever it may look like.
    client
        .stream
        .write_all(b"\0\0\0\x0c\0\x12\0\x63\0\0\0\x07\0\0\0\0")
        .expect("is read");
    let answer = client.receive::<ApiVersionsRequest>(0, 7);
    assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion.code());
    let answer = client.ask(3, &ApiVersionsRequest::default());
    let keys: Vec<_> = answer.api_keys.iter().map(|api| api.api_key).collect();
    assert_eq!(
        keys,
        [
            0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 33, 37, 42,
            44, 47, 60
        ],
        "what has no handler is not advertised"
    );
    let produce = answer
        .api_keys
        .iter()
        .find(|api| api.api_key == 0)
        .expect("there");
    assert_eq!((produce.min_version, produce.max_version), (0, 11));
    assert!(broker.shutdown());
}

#[test]
fn all_topics_are_named_to_a_librdkafka_that_sends_three_bytes_too_many() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("orders", 1), 0);
    // What librdkafka 2.16 sends for "all topics": where the array is null, the four bytes of an older form.
    client
        .stream
        .write_all(b"\0\0\0\x19\0\x03\0\x0c\0\0\0\x63\0\x07rdkafka\0\0\0\0\0\x01\0\0")
        .expect("is read");
    let answer = client.receive::<MetadataRequest>(12, 0x63);
    assert_eq!(answer.topics.len(), 1);
    assert!(broker.shutdown());
}

#[test]
fn what_is_no_request_ends_its_connection_and_nothing_else() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut bystander = Client::of(&broker);
    assert_eq!(bystander.create("t", 1), 0);
    let hostile: [&[u8]; 6] = [
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x02\0\0",
        // Produce 0, which is advertised and not served.
        b"\0\0\0\x0a\0\0\0\0\0\0\0\x01\xff\xff",
        // Metadata 1 for two billion topics.
        b"\0\0\0\x0e\0\x03\0\x01\0\0\0\x01\xff\xff\x7f\xff\xff\xff",
    ];
    for bytes in hostile {
        let mut client = Client::of(&broker);
        client.stream.write_all(bytes).expect("is read");
        assert!(client.is_ended(), "{bytes:?}");
    }
    assert_eq!(bystander.produce("t", 0, batch(&["a"])).error_code, 0);
    assert!(broker.shutdown());
}

#[test]
fn an_idempotent_batch_that_is_sent_again_keeps_its_offset() {
    let data = folder();
    let broker = broker(data.path(), "[0, 1]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    let no_transactions = InitProducerIdRequest {
        transactional_id: None,
        ..Default::default()
    };
    let given = client.ask(4, &no_transactions);
    assert_eq!((given.error_code, given.producer_epoch), (0, 0));
    let numbered = |sequence| {
        let mut builder = BatchBuilder::new(TimestampMs(0));
        builder
            .append(TimestampMs(0), None, Some(b"v"), &[])
            .expect("fits");
        let id = tackboard_schema::ProducerId(given.producer_id);
        let epoch = tackboard_schema::ProducerEpoch(0);
        builder.finish(Some((id, epoch, sequence)), Compression::None)
    };
    for (sequence, outcome) in [(0, (0, 0)), (1, (0, 1)), (0, (0, 0)), (1, (0, 1))] {
        let told = client.produce("t", 0, numbered(sequence));
        assert_eq!((told.error_code, told.base_offset), outcome);
    }
    let gap = client.produce("t", 0, numbered(9));
    assert_eq!(gap.error_code, ErrorCode::OutOfOrderSequenceNumber.code());
    assert!(broker.shutdown());
}

#[test]
fn a_request_that_names_very_much_costs_no_more_than_its_bytes() {
    let data = folder();
    let broker = broker(data.path(), "[0]", &[]);
    let mut client = Client::of(&broker);
    assert_eq!(client.create("t", 1), 0);
    // A name that no topic has, for very many partitions: it is told once a topic.
    let name = "n".repeat(1 << 20);
    let partitions: Vec<i32> = (0..10_000).collect();
    let answer = client.ask(12, &fetch(&name, &partitions, 0, 0));
    let told = &answer.responses[0];
    assert_eq!((told.partitions.len(), told.topic.len()), (10_000, 1 << 20));
    let invalid = ErrorCode::InvalidTopicException.code();
    assert!(
        told.partitions
            .iter()
            .all(|partition| partition.error_code == invalid)
    );
    // One topic many times.
    let topic = MetadataRequestTopic {
        name: Some("t".into()),
        ..Default::default()
    };
    let request = MetadataRequest {
        topics: Some(vec![topic; 10_000]),
        ..Default::default()
    };
    assert_eq!(client.ask(12, &request).topics.len(), 1);
    // More than a request may name.
    let partitions: Vec<i32> = (0..10_001).collect();
    client.send(12, &fetch("t", &partitions, 0, 0));
    assert!(client.is_ended());
    assert!(broker.shutdown());
}
