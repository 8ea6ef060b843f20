// @platformatic/kafka. 1.35 is the newest that runs on Node 20.

import { readFileSync } from 'node:fs'
import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { asked, BATCH, endOfInput, events, HEARTBEAT_MS, parts, run, say, sayEvent, SESSION_TIMEOUT_MS } from './arm.mjs'

const BASE = { clientId: 'arm', bootstrapBrokers: [asked.bootstrap] }
// Kafka's numbers, which this client takes as they are.
const TOPIC_RESOURCE = 2
const SET = 0

// Headers are a map; with buffers for names, one may come twice.
const packed = headers => new Map(headers.map(([name, data]) => [Buffer.from(name), data]))
const unpacked = headers => [...headers].map(([name, data]) => [name.toString(), data])

async function sendAll(producer, topic, list) {
  for (const some of parts(list, BATCH)) {
    const messages = some.map(({ partition, timestamp, key, value, headers }) => ({
      topic, partition, timestamp: BigInt(timestamp), key, value, headers: packed(headers),
    }))
    await producer.send({ messages, acks: -1 })
  }
}

async function produce() {
  const producer = new Producer({ ...BASE, compression: asked.codec, idempotent: asked.idempotent })
  const list = events()
  await sendAll(producer, asked.topic, list)
  await producer.close()
  say({ produced: list.length })
}

// Reads as a member of the group until it has read enough, or is to leave; how many it read.
async function runMember(group, enough, each, told = () => {}) {
  const consumer = new Consumer({
    ...BASE, groupId: group, sessionTimeout: SESSION_TIMEOUT_MS, heartbeatInterval: HEARTBEAT_MS, maxWaitTime: 200, autocommit: false,
  })
  consumer.on('consumer:group:join', () => {
    told((consumer.assignments ?? []).filter(one => one.topic === asked.topic).flatMap(one => one.partitions))
  })
  consumer.on('consumer:group:rebalance', () => told([]))
  const stream = await consumer.consume({ topics: [asked.topic], mode: 'committed', fallbackMode: 'earliest' })
  if (!enough) endOfInput().then(() => stream.close())
  let [count, read] = [0, []]
  for await (const message of stream) {
    read.push(message)
    count += 1
    if (read.length < BATCH && count !== enough && stream.readableLength) continue
    await each(read)
    const ends = new Map(read.map(one => [one.partition, one.offset + 1n]))
    const offsets = [...ends].map(([partition, offset]) => ({ topic: asked.topic, partition, offset, leaderEpoch: -1 }))
    // Where a rebalance came between, whoever gets the partition reads it again.
    await consumer.commit({ offsets }).catch(fault => console.error(fault))
    read = []
    if (count === enough) break
  }
  await consumer.close(true)
  return count
}

const sayMessages = read => {
  for (const one of read) sayEvent(one.partition, one.offset, one.timestamp, one.key, one.value, unpacked(one.headers))
}

// It reads only as a member of a group.
async function consume() {
  await runMember(`read-${asked.topic}-${process.pid}`, asked.count, sayMessages)
}

async function member() {
  await runMember(asked.group, asked.count, sayMessages, assigned => say({ assigned }))
  say({ left: true })
}

async function copy() {
  const producer = new Producer({ ...BASE, idempotent: true })
  const count = await runMember(asked.group, asked.count, read => {
    return sendAll(producer, asked.to, read.map(one => ({
      partition: one.partition, timestamp: one.timestamp, key: one.key, value: one.value, headers: unpacked(one.headers),
    })))
  })
  await producer.close()
  say({ copied: count })
}

async function offsets() {
  const admin = new Admin(BASE)
  const at = async timestamp => {
    const partitions = Array.from({ length: asked.partitions }, (_, partitionIndex) => ({ partitionIndex, timestamp }))
    const [found] = await admin.listOffsets({ topics: [{ name: asked.topic, partitions }] })
    return Object.fromEntries(found.partitions.map(one => [one.partitionIndex, Number(one.offset)]))
  }
  const found = []
  for (const timestamp of asked.timestamps) found.push(await at(BigInt(timestamp)))
  say({ earliest: await at(-2n), latest: await at(-1n), at: found })
  await admin.close()
}

async function steps() {
  const admin = new Admin(BASE)
  const resource = topic => ({ resourceType: TOPIC_RESOURCE, resourceName: topic })
  return {
    close: () => admin.close(),
    cluster: async () => {
      const { id, brokers, controllerId } = await admin.metadata({ topics: [] })
      return { cluster: id, controller: controllerId, brokers: [...brokers.values()].map(({ host, port }) => [host, port]) }
    },
    create: async ({ topic, partitions, configs }) => {
      const entries = Object.entries(configs).map(([name, value]) => ({ name, value }))
      await admin.createTopics({ topics: [topic], partitions, replicas: 1, configs: entries })
      return {}
    },
    topics: async () => ({ topics: await admin.listTopics() }),
    describe: async ({ topic }) => {
      const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true })
      return { partitions: topics.get(topic).partitionsCount }
    },
    configs: async ({ topic }) => {
      const [found] = await admin.describeConfigs({ resources: [resource(topic)] })
      return { configs: Object.fromEntries(found.configs.map(one => [one.name, one.value])) }
    },
    alter: async ({ topic, configs }) => {
      const entries = Object.entries(configs).map(([name, value]) => ({ name, value, configOperation: SET }))
      await admin.incrementalAlterConfigs({ resources: [{ ...resource(topic), configs: entries }] })
      return {}
    },
    partitions: async ({ topic, count }) => {
      await admin.createPartitions({ topics: [{ name: topic, count }] })
      return {}
    },
    delete_records: async ({ topic, partition, before }) => {
      await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset: BigInt(before) }] }] })
      return {}
    },
    delete: async ({ topic }) => {
      await admin.deleteTopics({ topics: [topic] })
      return {}
    },
    groups: async () => ({ groups: [...(await admin.listGroups()).keys()] }),
    group: async ({ group }) => {
      const found = (await admin.describeGroups({ groups: [group] })).get(group)
      const name = found.state.toLowerCase()
      return { state: name[0].toUpperCase() + name.slice(1), members: found.members.size }
    },
    committed: async ({ group, topic }) => {
      const [found] = await admin.listConsumerGroupOffsets({ groups: [group] })
      const rows = found.topics.find(one => one.name === topic).partitions
      return { committed: Object.fromEntries(rows.map(one => [one.partitionIndex, Number(one.committedOffset)])) }
    },
    delete_group: async ({ group }) => {
      await admin.deleteGroups({ groups: [group] })
      return {}
    },
  }
}

const version = () => {
  const file = new URL('./node_modules/@platformatic/kafka/package.json', import.meta.url)
  say({ version: JSON.parse(readFileSync(file)).version })
}

await run({ version, produce, consume, member, copy, offsets }, steps)
