"""kafka-python."""

import sys

sys.path.insert(0, __file__.rsplit("/", 2)[0])
import kafka
from arm import HEARTBEAT_MS, PATIENCE_S, SESSION_TIMEOUT_MS, end_of_input, events, order, say, say_event, steps
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import CommitFailedError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

asked = order()
BASE = {"bootstrap_servers": asked["bootstrap"]}
POLL_MS = 200
# Events that are read before they are committed.
BATCH = 500


def producer(codec="none", idempotent=True):
    return KafkaProducer(
        **BASE, acks="all", compression_type=None if codec == "none" else codec, enable_idempotence=idempotent, linger_ms=5,
    )


def produce():
    to = producer(asked["codec"], asked["idempotent"])
    sent = [
        to.send(asked["topic"], value, key, headers, partition, timestamp)
        for partition, timestamp, key, value, headers in events(asked["file"])
    ]
    to.flush(PATIENCE_S)
    for future in sent:
        future.get(PATIENCE_S)
    say(produced=len(sent))


def say_record(one):
    say_event(one.partition, one.offset, one.timestamp, one.key, one.value, one.headers)


def polled(consumer, most):
    return [one for records in consumer.poll(POLL_MS, max_records=most).values() for one in records]


def consume():
    consumer = KafkaConsumer(**BASE, group_id=None, max_partition_fetch_bytes=1 << 20)
    consumer.assign([TopicPartition(asked["topic"], p) for p in range(asked["partitions"])])
    consumer.seek_to_beginning()
    left = asked["count"]
    while left:
        for one in polled(consumer, left):
            say_record(one)
            left -= 1
    consumer.close()


def offsets():
    consumer = KafkaConsumer(**BASE, group_id=None)
    all_of = [TopicPartition(asked["topic"], p) for p in range(asked["partitions"])]

    def at(timestamp):
        found = consumer.offsets_for_times({one: timestamp for one in all_of})
        return {one.partition: place.offset if place else -1 for one, place in found.items()}

    say(
        earliest={one.partition: offset for one, offset in consumer.beginning_offsets(all_of).items()},
        latest={one.partition: offset for one, offset in consumer.end_offsets(all_of).items()},
        at=[at(timestamp) for timestamp in asked["timestamps"]],
    )


class Told(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        say(assigned=[])

    def on_partitions_assigned(self, assigned):
        say(assigned=[one.partition for one in assigned])


def run_member(each):
    consumer = KafkaConsumer(
        **BASE, group_id=asked["group"], auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS, heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([asked["topic"]], listener=Told())
    ended, count, enough = end_of_input(), 0, asked.get("count")
    while not ended.is_set() and count != enough:
        read = polled(consumer, min(BATCH, enough - count) if enough else BATCH)
        if not read:
            continue
        each(read)
        count += len(read)
        ends = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in read}
        try:
            consumer.commit({one: OffsetAndMetadata(offset, "", -1) for one, offset in ends.items()})
        except (CommitFailedError, RebalanceInProgressError) as fault:  # whoever gets the partition reads it again
            print(fault, file=sys.stderr)
    consumer.close()
    return count


def member():
    run_member(lambda read: [say_record(one) for one in read])
    say(left=True)


def copy():
    to = producer()

    def each(read):
        sent = [to.send(asked["to"], one.value, one.key, one.headers, one.partition, one.timestamp) for one in read]
        to.flush(PATIENCE_S)
        for future in sent:
            future.get(PATIENCE_S)

    say(copied=run_member(each))


client = KafkaAdminClient(**BASE) if asked["verb"] == "admin" else None


def cluster(_):
    found = client.describe_cluster()
    brokers = [[one["host"], one["port"]] for one in found["brokers"]]
    return {"cluster": found["cluster_id"], "controller": found["controller_id"], "brokers": brokers}


def create(step):
    client.create_topics([NewTopic(step["topic"], step["partitions"], 1, topic_configs=step["configs"])])
    return {}


def topics(_):
    return {"topics": client.list_topics()}


def describe(step):
    (found,) = client.describe_topics([step["topic"]])
    return {"partitions": len(found["partitions"])}


def resource(step, **more):
    return ConfigResource(ConfigResourceType.TOPIC, step["topic"], **more)


def configs(step):
    found = client.describe_configs([resource(step)], config_filter="all")["topic"][step["topic"]]
    return {"configs": {name: entry["value"] for name, entry in found.items()}}


def alter(step):
    client.alter_configs([resource(step, configs=step["configs"])])
    return {}


def partitions(step):
    client.create_partitions({step["topic"]: NewPartitions(step["count"])})
    return {}


def delete_records(step):
    client.delete_records({TopicPartition(step["topic"], step["partition"]): step["before"]})
    return {}


def delete(step):
    client.delete_topics([step["topic"]])
    return {}


def groups(_):
    return {"groups": [one["group_id"] for one in client.list_groups()]}


def group(step):
    found = client.describe_groups([step["group"]])
    print(found, file=sys.stderr)
    found = found[step["group"]]
    return {"state": found["group_state"], "members": len(found["members"])}


def committed(step):
    found = client.list_group_offsets([step["group"]])
    print(found, file=sys.stderr)
    found = found[step["group"]]
    return {"committed": {one.partition: place.offset for one, place in found.items() if one.topic == step["topic"]}}


def delete_group(step):
    client.delete_groups([step["group"]])
    return {}


STEPS = {
    step.__name__: step
    for step in [
        cluster, create, topics, describe, configs, alter, partitions, delete_records, delete, groups, group, committed,
        delete_group,
    ]
}
VERBS = {
    "version": lambda: say(version=kafka.__version__), "produce": produce, "consume": consume, "offsets": offsets,
    "member": member, "copy": copy, "admin": lambda: steps(asked, STEPS),
}
VERBS[asked["verb"]]()
