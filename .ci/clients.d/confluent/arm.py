"""confluent-kafka: librdkafka from Python."""

import sys

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from arm import HEARTBEAT_MS, PATIENCE_S, SESSION_TIMEOUT_MS, end_of_input, events, order, say, say_event, steps
import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka import TopicCollection, TopicPartition, libversion
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

asked = order()
BASE = {"bootstrap.servers": asked["bootstrap"]}
POLL_S = 0.2
# Events that are read before they are committed.
BATCH = 500


def producer(**more):
    return Producer({**BASE, "linger.ms": 5, **{name.replace("_", "."): value for name, value in more.items()}})


def send(to, topic, partition, timestamp, key, value, headers, told):
    while True:
        try:
            to.produce(topic, value, key, partition, on_delivery=told, timestamp=timestamp, headers=headers)
            return
        except BufferError:
            to.poll(POLL_S)


def produce():
    faults, count = [], 0
    to = producer(compression_type=asked["codec"], enable_idempotence=asked["idempotent"])
    for partition, timestamp, key, value, headers in events(asked["file"]):
        send(to, asked["topic"], partition, timestamp, key, value, headers, lambda fault, _: fault and faults.append(fault))
        count += 1
    left = to.flush(PATIENCE_S)
    if left or faults:
        sys.exit(f"{left} events without an answer, {len(faults)} refused: {faults[:1]}")
    say(produced=count)


def say_message(one):
    say_event(one.partition(), one.offset(), one.timestamp()[1], one.key(), one.value(), one.headers())


def consume():
    consumer = Consumer({**BASE, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(asked["topic"], p, OFFSET_BEGINNING) for p in range(asked["partitions"])])
    left = asked["count"]
    while left:
        one = consumer.poll(PATIENCE_S)
        if one is None or one.error():
            sys.exit(f"{left} events are missing: {one and one.error()}")
        say_message(one)
        left -= 1
    consumer.close()


def offsets():
    consumer = Consumer({**BASE, "group.id": "none"})
    topic, partitions = asked["topic"], range(asked["partitions"])
    bounds = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=PATIENCE_S) for p in partitions}

    def at(timestamp):
        found = consumer.offsets_for_times([TopicPartition(topic, p, timestamp) for p in partitions], PATIENCE_S)
        return {one.partition: one.offset for one in found}

    say(
        earliest={p: low for p, (low, _) in bounds.items()}, latest={p: high for p, (_, high) in bounds.items()},
        at=[at(timestamp) for timestamp in asked["timestamps"]],
    )


def run_member(each):
    """Reads as a member of the group until it has read enough, or is to leave; how many it read."""
    consumer = Consumer({
        **BASE, "group.id": asked["group"], "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": HEARTBEAT_MS,
        "partition.assignment.strategy": "range",
    })
    told = lambda partitions: say(assigned=[one.partition for one in partitions])
    consumer.subscribe([asked["topic"]], on_assign=lambda _, found: told(found), on_revoke=lambda *_: told([]))
    ended, count, enough = end_of_input(), 0, asked.get("count")
    while not ended.is_set() and count != enough:
        read = consumer.consume(min(BATCH, enough - count) if enough else BATCH, POLL_S)
        if not read:
            continue
        if faults := [one.error() for one in read if one.error()]:
            sys.exit(str(faults))
        each(read)
        count += len(read)
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as fault:  # a rebalance came between: whoever gets the partition reads it again
            print(fault, file=sys.stderr)
    consumer.close()
    return count


def member():
    run_member(lambda read: [say_message(one) for one in read])
    say(left=True)


def copy():
    to = producer(enable_idempotence=True)

    def each(read):
        faults = []
        for one in read:
            send(
                to, asked["to"], one.partition(), one.timestamp()[1], one.key(), one.value(), one.headers(),
                lambda fault, _: faults.append(fault),
            )
        to.flush(PATIENCE_S)
        if faults != [None] * len(read):
            sys.exit(f"not copied: {[fault for fault in faults if fault][:1]}")

    say(copied=run_member(each))


client = AdminClient(BASE) if asked["verb"] == "admin" else None


def done(futures):
    (future,) = futures.values()
    return future.result(PATIENCE_S)


def cluster(_):
    found = client.describe_cluster(request_timeout=PATIENCE_S).result()
    brokers = [[node.host, node.port] for node in found.nodes]
    return {"cluster": found.cluster_id, "controller": found.controller.id, "brokers": brokers}


def create(step):
    done(client.create_topics([NewTopic(step["topic"], step["partitions"], 1, config=step["configs"])]))
    return {}


def topics(_):
    return {"topics": list(client.list_topics(timeout=PATIENCE_S).topics)}


def describe(step):
    return {"partitions": len(done(client.describe_topics(TopicCollection([step["topic"]]))).partitions)}


def configs(step):
    found = done(client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, step["topic"])]))
    return {"configs": {name: entry.value for name, entry in found.items()}}


def alter(step):
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in step["configs"].items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, step["topic"], incremental_configs=entries)
    done(client.incremental_alter_configs([resource]))
    return {}


def partitions(step):
    done(client.create_partitions([NewPartitions(step["topic"], step["count"])]))
    return {}


def delete_records(step):
    done(client.delete_records([TopicPartition(step["topic"], step["partition"], step["before"])]))
    return {}


def delete(step):
    done(client.delete_topics([step["topic"]]))
    return {}


def groups(_):
    found = client.list_consumer_groups(request_timeout=PATIENCE_S).result()
    return {"groups": [one.group_id for one in found.valid]}


def group(step):
    found = done(client.describe_consumer_groups([step["group"]]))
    return {"state": found.state.name.capitalize(), "members": len(found.members)}


def committed(step):
    found = done(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(step["group"])]))
    return {"committed": {one.partition: one.offset for one in found.topic_partitions if one.topic == step["topic"]}}


def delete_group(step):
    done(client.delete_consumer_groups([step["group"]]))
    return {}


STEPS = {
    step.__name__: step
    for step in [
        cluster, create, topics, describe, configs, alter, partitions, delete_records, delete, groups, group, committed,
        delete_group,
    ]
}
VERBS = {
    "version": lambda: say(version=f"{confluent_kafka.__version__} (librdkafka {libversion()[0]})"), "produce": produce,
    "consume": consume, "offsets": offsets, "member": member, "copy": copy, "admin": lambda: steps(asked, STEPS),
}
VERBS[asked["verb"]]()
