//! The bytes of the whole state, from which the metadata log can go on.
//!
//! Everything is in the order of its key, so equal states are equal bytes. A reader takes nothing on trust: whatever the
//! machine would never have made is refused, since a state that contradicts itself would be given to every core.
//! `docs/storage-format.md` describes the bytes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tackboard_schema::{
    BrokerId, DecodeError, DecodeErrorKind, LeaderEpoch, TimestampMs, TopicId, validate_topic_name,
};

use super::codec::{Reader, Writer};
use super::command::IncarnationId;
use super::image::{Broker, ClusterId, Image, Partition, TOMBSTONES_MAX, Tombstone, Topic};
use super::machine::{CORES_MAX, Machine, PARTITIONS_MAX};
use super::topic_settings::parse_topic_config;

/// The format of snapshots. A reader refuses what it doesn't know.
const SNAPSHOT_VERSION: u16 = 1;

const BROKERS_MAX: usize = 10_000;
const TOPICS_MAX: usize = 10_000_000;

/// Appends the bytes of a state.
pub fn encode_snapshot(machine: &Machine, out: &mut Vec<u8>) {
    let image = &*machine.image;
    let mut writer = Writer { out, fault: None };
    writer.u16(SNAPSHOT_VERSION);
    writer.bytes(&image.cluster_id.0);
    writer.u64(image.version);
    writer.i64(machine.next_producer_id);
    writer.u32(machine.next_shard_key);
    writer.count("brokers", image.brokers.len(), BROKERS_MAX);
    for broker in image.brokers.values() {
        write_broker(broker, &mut writer);
    }
    writer.count("topics", image.topics_by_id.len(), TOPICS_MAX);
    for topic in image.topics_by_id.values() {
        write_topic(topic, &mut writer);
    }
    writer.count("tombstones", image.tombstones.len(), TOMBSTONES_MAX);
    for (id, tombstone) in &image.tombstones {
        writer.bytes(&id.0);
        writer.text("topic name", &tombstone.name);
        writer.i32(tombstone.partitions);
        writer.u64(tombstone.version);
    }
    // The machine's own rules keep every list and text within these bounds.
    assert_eq!(writer.fault, None, "metadata has outgrown its snapshot");
}

/// Reads a state that takes up all of `bytes`.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Machine, DecodeError> {
    let mut reader = Reader::new(bytes);
    if reader.u16("version of a metadata snapshot")? != SNAPSHOT_VERSION {
        return Err(reader.fault(
            DecodeErrorKind::Invalid,
            "unknown version of a metadata snapshot",
        ));
    }
    let mut image = Image::empty(ClusterId(reader.array("cluster id")?));
    image.version = reader.u64("metadata version")?;
    let next_producer_id = reader.i64("next producer id")?;
    let next_shard_key = reader.u32("next shard key")?;
    check(&reader, next_producer_id >= 0, "next producer id")?;
    for _ in 0..reader.count("brokers", BROKERS_MAX)? {
        let broker = read_broker(&mut reader, &image)?;
        image.brokers.insert(broker.id, Arc::new(broker));
    }
    let mut folded_names = BTreeSet::new();
    for _ in 0..reader.count("topics", TOPICS_MAX)? {
        let topic = read_topic(&mut reader, &image)?;
        let is_new = folded_names.insert(topic.name.replace('.', "_"));
        check(&reader, is_new, "topic name that collides with another")?;
        image.insert_topic(Arc::new(topic));
    }
    for _ in 0..reader.count("tombstones", TOMBSTONES_MAX)? {
        let (id, tombstone) = read_tombstone(&mut reader, &image)?;
        image.tombstones.insert(id, tombstone);
    }
    reader.finish("bytes after a metadata snapshot")?;
    Ok(Machine {
        image: Arc::new(image),
        next_producer_id,
        next_shard_key,
    })
}

fn check(reader: &Reader<'_>, holds: bool, what: &'static str) -> Result<(), DecodeError> {
    if holds {
        Ok(())
    } else {
        Err(reader.fault(DecodeErrorKind::Invalid, what))
    }
}

fn write_broker(broker: &Broker, writer: &mut Writer<'_>) {
    writer.i32(broker.id.0);
    writer.bytes(&broker.incarnation.0);
    writer.u64(broker.epoch);
    writer.endpoint(&broker.any_core);
    writer.count("cores", broker.cores.len(), CORES_MAX);
    for core in &broker.cores {
        writer.endpoint(core);
    }
    writer.u32(broker.partitions_per_core_max);
}

fn read_broker(reader: &mut Reader<'_>, image: &Image) -> Result<Broker, DecodeError> {
    let id = BrokerId(reader.i32("broker id")?);
    let ascending = image
        .brokers
        .last_key_value()
        .is_none_or(|(last, _)| *last < id);
    check(reader, ascending && id.0 >= 0, "broker id")?;
    let incarnation = IncarnationId(reader.array("incarnation id")?);
    let epoch = reader.u64("broker epoch")?;
    check(reader, epoch <= image.version, "broker epoch")?;
    let any_core = reader.endpoint()?;
    let cores = reader.count("cores", CORES_MAX)?;
    check(reader, cores > 0, "cores")?;
    let cores = (0..cores)
        .map(|_| reader.endpoint())
        .collect::<Result<_, _>>()?;
    Ok(Broker {
        id,
        incarnation,
        epoch,
        any_core,
        cores,
        partitions_per_core_max: reader.u32("partitions per core")?,
    })
}

fn write_topic(topic: &Topic, writer: &mut Writer<'_>) {
    writer.bytes(&topic.id.0);
    writer.text("topic name", &topic.name);
    writer.i64(topic.created_at.0);
    writer.configs(&topic.configs);
    writer.count(
        "partitions",
        topic.partitions.len(),
        PARTITIONS_MAX as usize,
    );
    for partition in &topic.partitions {
        writer.i32(partition.leader.0);
        writer.i32(partition.leader_epoch.0);
        writer.u32(partition.shard_key);
        for brokers in [&partition.replicas, &partition.isr] {
            writer.count("replicas", brokers.len(), BROKERS_MAX);
            for broker in brokers {
                writer.i32(broker.0);
            }
        }
    }
}

fn read_topic(reader: &mut Reader<'_>, image: &Image) -> Result<Topic, DecodeError> {
    let id = TopicId(reader.array("topic id")?);
    let ascending = image
        .topics_by_id
        .last_key_value()
        .is_none_or(|(last, _)| *last < id);
    check(reader, ascending && id.0 != [0; 16], "topic id")?;
    let name = reader.text("topic name")?;
    check(reader, validate_topic_name(&name).is_ok(), "topic name")?;
    let created_at = TimestampMs(reader.i64("time of creation")?);
    let configs = reader.configs()?;
    check(reader, configs.is_sorted(), "order of topic settings")?;
    let pairs = configs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let Ok(config) = parse_topic_config(pairs) else {
        return Err(reader.fault(DecodeErrorKind::Invalid, "topic settings"));
    };
    let partitions = reader.count("partitions", PARTITIONS_MAX as usize)?;
    check(reader, partitions > 0, "partitions")?;
    Ok(Topic {
        id,
        name: name.into(),
        created_at,
        configs,
        config,
        partitions: (0..partitions)
            .map(|_| read_partition(reader, image))
            .collect::<Result<_, _>>()?,
    })
}

fn read_partition(reader: &mut Reader<'_>, image: &Image) -> Result<Partition, DecodeError> {
    let leader = BrokerId(reader.i32("leader")?);
    let leader_epoch = LeaderEpoch(reader.i32("leader epoch")?);
    check(reader, leader_epoch.0 >= 0, "leader epoch")?;
    let shard_key = reader.u32("shard key")?;
    let mut replicas = Vec::new();
    for _ in 0..reader.count("replicas", BROKERS_MAX)? {
        let replica = BrokerId(reader.i32("replica")?);
        let is_new = image.brokers.contains_key(&replica) && !replicas.contains(&replica);
        check(reader, is_new, "replica")?;
        replicas.push(replica);
    }
    let mut isr = Vec::new();
    for _ in 0..reader.count("in-sync replicas", replicas.len())? {
        let replica = BrokerId(reader.i32("in-sync replica")?);
        let is_new = replicas.contains(&replica) && !isr.contains(&replica);
        check(reader, is_new, "in-sync replica")?;
        isr.push(replica);
    }
    check(reader, isr.contains(&leader), "leader")?;
    Ok(Partition {
        leader,
        leader_epoch,
        shard_key,
        replicas,
        isr,
    })
}

fn read_tombstone(
    reader: &mut Reader<'_>,
    image: &Image,
) -> Result<(TopicId, Tombstone), DecodeError> {
    let id = TopicId(reader.array("topic id of a tombstone")?);
    let ascending = image
        .tombstones
        .last_key_value()
        .is_none_or(|(last, _)| *last < id);
    let deleted = image.topic_by_id(id).is_none();
    check(reader, ascending && deleted, "topic id of a tombstone")?;
    let name = reader.text("topic name of a tombstone")?;
    check(
        reader,
        validate_topic_name(&name).is_ok(),
        "topic name of a tombstone",
    )?;
    let partitions = reader.i32("partitions of a tombstone")?;
    check(
        reader,
        (1..=PARTITIONS_MAX).contains(&partitions),
        "partitions of a tombstone",
    )?;
    let version = reader.u64("version of a tombstone")?;
    check(reader, version <= image.version, "version of a tombstone")?;
    let tombstone = Tombstone {
        name: name.into(),
        partitions,
        version,
    };
    Ok((id, tombstone))
}
