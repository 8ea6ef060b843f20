//! Subscriptions and assignments are Kafka's: held against the crate `kafka-protocol`, in both directions.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::consumer_protocol_assignment::{
    ConsumerProtocolAssignment, TopicPartition as AssignedTopic,
};
use kafka_protocol::messages::consumer_protocol_subscription::{
    ConsumerProtocolSubscription, TopicPartition as OwnedTopic,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use tackboard_schema::PartitionIndex;
use tackboard_schema::consumer_protocol::{Assignment, Partitions, Subscription};

/// Versions that Kafka has.
const VERSIONS: std::ops::RangeInclusive<i16> = 0..=3;

fn owned() -> Partitions {
    Partitions::from([
        (
            "flights".to_owned(),
            vec![PartitionIndex(0), PartitionIndex(5)],
        ),
        ("weather".to_owned(), vec![PartitionIndex(2)]),
    ])
}

fn name(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn theirs() -> ConsumerProtocolSubscription {
    let owned = owned().into_iter().map(|(topic, partitions)| {
        OwnedTopic::default()
            .with_topic(name(&topic).into())
            .with_partitions(partitions.iter().map(|index| index.0).collect())
    });
    ConsumerProtocolSubscription::default()
        .with_topics(vec![name("flights"), name("weather")])
        .with_user_data(Some(Bytes::from_static(b"anything")))
        .with_owned_partitions(owned.collect())
        .with_generation_id(9)
        .with_rack_id(Some(name("rack")))
}

/// With its version in front, as it is sent.
fn versioned(version: i16, message: &impl Encodable) -> Vec<u8> {
    let mut bytes = BytesMut::from(&version.to_be_bytes()[..]);
    message.encode(&mut bytes, version).unwrap();
    bytes.to_vec()
}

#[test]
fn what_kafka_clients_write_is_read() {
    for version in VERSIONS {
        let mut message = theirs();
        let mut wanted = Subscription {
            topics: vec!["flights".to_owned(), "weather".to_owned()],
            ..Subscription::default()
        };
        match version {
            0 => message.owned_partitions.clear(),
            _ => wanted.owned = owned(),
        }
        match version {
            0 | 1 => message.generation_id = -1,
            _ => wanted.generation = 9,
        }
        if version < 3 {
            message.rack_id = None;
        }
        let bytes = versioned(version, &message);
        assert_eq!(Subscription::decode(&bytes), Ok(wanted), "{version}");

        let topics = owned().into_iter().map(|(topic, partitions)| {
            AssignedTopic::default()
                .with_topic(name(&topic).into())
                .with_partitions(partitions.iter().map(|index| index.0).collect())
        });
        let message = ConsumerProtocolAssignment::default()
            .with_assigned_partitions(topics.collect())
            .with_user_data(Some(Bytes::from_static(b"anything")));
        let bytes = versioned(version, &message);
        let partitions = owned();
        let wanted = Assignment { partitions };
        assert_eq!(Assignment::decode(&bytes), Ok(wanted), "{version}");
    }
}

#[test]
fn what_we_write_is_read_by_kafka_clients() {
    let subscription = Subscription {
        topics: vec!["flights".to_owned(), "weather".to_owned()],
        owned: owned(),
        generation: 9,
    };
    let mut bytes = Bytes::from(subscription.encode());
    let version = i16::from_be_bytes(*bytes.first_chunk().unwrap());
    let mut rest = bytes.split_off(2);
    let read = ConsumerProtocolSubscription::decode(&mut rest, version).unwrap();
    assert!(rest.is_empty());
    let wanted = theirs().with_user_data(None).with_rack_id(None);
    assert_eq!((version, read), (2, wanted));

    let partitions = owned();
    let mut bytes = Bytes::from(Assignment { partitions }.encode());
    let version = i16::from_be_bytes(*bytes.first_chunk().unwrap());
    let mut rest = bytes.split_off(2);
    let read = ConsumerProtocolAssignment::decode(&mut rest, version).unwrap();
    assert!(rest.is_empty() && read.user_data.is_none());
    let topics = read.assigned_partitions.iter();
    let read: Partitions = topics
        .map(|topic| {
            let indices = topic.partitions.iter().copied().map(PartitionIndex);
            (topic.topic.to_string(), indices.collect())
        })
        .collect();
    assert_eq!((version, read), (1, owned()));
}

/// Bytes on the wire, so that a change of the layout is seen even where both sides change together.
#[test]
fn the_layout_stays() {
    let subscription = Subscription {
        topics: vec!["t".to_owned()],
        owned: Partitions::from([("t".to_owned(), vec![PartitionIndex(3)])]),
        generation: 4,
    };
    assert_eq!(
        subscription.encode(),
        b"\0\x02\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\x03\0\0\0\x04"
    );
}
