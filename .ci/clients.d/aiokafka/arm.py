"""aiokafka."""

import asyncio
import sys

sys.path.insert(0, __file__.rsplit("/", 2)[0])
import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import CommitFailedError, IllegalOperation, RebalanceInProgressError, for_code
from arm import HEARTBEAT_MS, SESSION_TIMEOUT_MS, end_of_input, events, order, say, say_event

asked = order()
BASE = {"bootstrap_servers": asked["bootstrap"]}
POLL_MS = 200
# Events that are read before they are committed.
BATCH = 500


async def send_all(to, topic, some):
    # Each send waits for room in a batch; what it returns waits for the answer.
    sent = [
        await to.send(topic, value, key, partition, timestamp, headers) for partition, timestamp, key, value, headers in some
    ]
    await to.flush()
    for future in sent:
        await future
    return len(sent)


async def produce():
    codec = None if asked["codec"] == "none" else asked["codec"]
    async with AIOKafkaProducer(
        **BASE, acks="all", compression_type=codec, enable_idempotence=asked["idempotent"], linger_ms=5
    ) as to:
        say(produced=await send_all(to, asked["topic"], events(asked["file"])))


def say_record(one):
    say_event(one.partition, one.offset, one.timestamp, one.key, one.value, one.headers)


async def polled(consumer, most):
    return [one for rows in (await consumer.getmany(timeout_ms=POLL_MS, max_records=most)).values() for one in rows]


async def consume():
    consumer = AIOKafkaConsumer(**BASE, group_id=None)
    consumer.assign([TopicPartition(asked["topic"], p) for p in range(asked["partitions"])])
    async with consumer:
        await consumer.seek_to_beginning()
        left = asked["count"]
        while left:
            for one in await polled(consumer, left):
                say_record(one)
                left -= 1


async def offsets():
    async with AIOKafkaConsumer(**BASE, group_id=None) as consumer:
        all_of = [TopicPartition(asked["topic"], p) for p in range(asked["partitions"])]

        async def at(timestamp):
            found = await consumer.offsets_for_times({one: timestamp for one in all_of})
            return {one.partition: place.offset if place else -1 for one, place in found.items()}

        say(
            earliest={one.partition: offset for one, offset in (await consumer.beginning_offsets(all_of)).items()},
            latest={one.partition: offset for one, offset in (await consumer.end_offsets(all_of)).items()},
            at=[await at(timestamp) for timestamp in asked["timestamps"]],
        )


class Told(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        say(assigned=[])

    def on_partitions_assigned(self, assigned):
        say(assigned=[one.partition for one in assigned])


async def run_member(each):
    consumer = AIOKafkaConsumer(
        **BASE, group_id=asked["group"], auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS, heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([asked["topic"]], listener=Told())
    ended, count, enough = end_of_input(), 0, asked.get("count")
    async with consumer:
        while not ended.is_set() and count != enough:
            read = await polled(consumer, min(BATCH, enough - count) if enough else BATCH)
            if not read:
                continue
            await each(read)
            count += len(read)
            try:
                await consumer.commit({TopicPartition(one.topic, one.partition): one.offset + 1 for one in read})
            except (CommitFailedError, IllegalOperation, RebalanceInProgressError) as fault:
                # A rebalance came between: whoever gets the partition reads it again.
                print(repr(fault), file=sys.stderr)
    return count


async def member():
    async def each(read):
        for one in read:
            say_record(one)

    await run_member(each)
    say(left=True)


async def copy():
    async with AIOKafkaProducer(**BASE, acks="all", enable_idempotence=True) as to:

        async def each(read):
            await send_all(to, asked["to"], [(one.partition, one.timestamp, one.key, one.value, one.headers) for one in read])

        say(copied=await run_member(each))


def checked(code):
    if code:
        raise for_code(code)


async def cluster(client, _):
    found = await client.describe_cluster()
    brokers = [[one["host"], one["port"]] for one in found["brokers"]]
    return {"cluster": found["cluster_id"], "controller": found["controller_id"], "brokers": brokers}


async def create(client, step):
    topic = NewTopic(step["topic"], step["partitions"], 1, topic_configs=step["configs"])
    for _, code, *_ in (await client.create_topics([topic])).topic_errors:
        checked(code)
    return {}


async def topics(client, _):
    return {"topics": await client.list_topics()}


async def describe(client, step):
    (found,) = await client.describe_topics([step["topic"]])
    return {"partitions": len(found["partitions"])}


async def configs(client, step):
    (answer,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, step["topic"])])
    ((code, _, _, _, entries),) = answer.resources
    checked(code)
    return {"configs": {name: value for name, value, *_ in entries}}


async def alter(client, step):
    (answer,) = await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, step["topic"], configs=step["configs"])])
    for code, *_ in answer.resources:
        checked(code)
    return {}


async def partitions(client, step):
    for _, code, *_ in (await client.create_partitions({step["topic"]: NewPartitions(step["count"])})).topic_errors:
        checked(code)
    return {}


async def delete_records(client, step):
    await client.delete_records({TopicPartition(step["topic"], step["partition"]): RecordsToDelete(step["before"])})
    return {}


async def delete(client, step):
    for _, code, *_ in (await client.delete_topics([step["topic"]])).topic_error_codes:
        checked(code)
    return {}


async def groups(client, _):
    return {"groups": [name for name, *_ in await client.list_consumer_groups()]}


async def group(client, step):
    ((code, _, state, _, _, members, *_),) = (await client.describe_consumer_groups([step["group"]]))[0].groups
    checked(code)
    return {"state": state, "members": len(members)}


async def committed(client, step):
    found = await client.list_consumer_group_offsets(step["group"])
    return {"committed": {one.partition: place.offset for one, place in found.items() if one.topic == step["topic"]}}


async def admin():
    table = {
        step.__name__: step
        for step in [
            cluster, create, topics, describe, configs, alter, partitions, delete_records, delete, groups, group, committed,
        ]
    }
    client = AIOKafkaAdminClient(**BASE)
    await client.start()
    try:
        for step in asked["steps"]:
            try:
                say(**await table[step["do"]](client, step))
            except Exception as fault:  # whatever it throws
                say(error=f"{type(fault).__name__}: {fault}")
    finally:
        await client.close()


async def version():
    say(version=aiokafka.__version__)


VERBS = {
    "version": version, "produce": produce, "consume": consume, "offsets": offsets, "member": member, "copy": copy,
    "admin": admin,
}
asyncio.run(VERBS[asked["verb"]]())
