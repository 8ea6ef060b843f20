// kafkajs.

import { createRequire } from 'node:module'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import { asked, BATCH, endOfInput, events, HEARTBEAT_MS, parts, run, say, sayEvent, SESSION_TIMEOUT_MS } from './arm.mjs'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs
CompressionCodecs[CompressionTypes.Snappy] = snappy
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }

const kafka = new Kafka({ brokers: [asked.bootstrap], logLevel: logLevel.WARN })

// A name that comes twice has a list of values.
function packed(headers) {
  const found = {}
  for (const [name, value] of headers) {
    found[name] = name in found ? [found[name], value].flat() : value
  }
  return found
}

function unpacked(headers) {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => [value].flat().map(one => [name, one]))
}

async function sendAll(producer, topic, list, compression) {
  for (const some of parts(list, BATCH)) {
    const messages = some.map(one => ({ ...one, timestamp: String(one.timestamp), headers: packed(one.headers) }))
    await producer.send({ topic, messages, acks: -1, compression })
  }
}

async function connected(client) {
  await client.connect()
  return client
}

async function produce() {
  const producer = await connected(kafka.producer({ idempotent: asked.idempotent, maxInFlightRequests: 1 }))
  const list = events()
  await sendAll(producer, asked.topic, list, CODECS[asked.codec])
  await producer.disconnect()
  say({ produced: list.length })
}

// Reads as a member of the group until it has read enough, or is to leave; how many it read.
async function runMember(group, enough, each, told = () => {}) {
  const consumer = kafka.consumer({
    groupId: group, sessionTimeout: SESSION_TIMEOUT_MS, heartbeatInterval: HEARTBEAT_MS, maxWaitTimeInMs: 200,
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => told(payload.memberAssignment[asked.topic] ?? []))
  consumer.on(consumer.events.REBALANCING, () => told([]))
  await consumer.connect()
  await consumer.subscribe({ topic: asked.topic, fromBeginning: true })
  let count = 0
  let done
  const finished = new Promise(resolve => { done = resolve })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset }) => {
      const read = batch.messages.slice(0, (enough ?? Infinity) - count)
      if (!read.length) return
      await each(batch.partition, read)
      count += read.length
      const last = read.at(-1).offset
      resolveOffset(last)
      await consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset: String(BigInt(last) + 1n) }])
      if (count === enough) done()
    },
  })
  if (!enough) endOfInput().then(done)
  await finished
  await consumer.disconnect()
  return count
}

const sayMessages = (partition, read) => {
  for (const one of read) sayEvent(partition, one.offset, one.timestamp, one.key, one.value, unpacked(one.headers))
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
  const producer = await connected(kafka.producer({ idempotent: true, maxInFlightRequests: 1 }))
  const count = await runMember(asked.group, asked.count, async (partition, read) => {
    const list = read.map(one => ({ ...one, partition, headers: unpacked(one.headers) }))
    await sendAll(producer, asked.to, list, CompressionTypes.None)
  })
  await producer.disconnect()
  say({ copied: count })
}

async function offsets() {
  const admin = await connected(kafka.admin())
  const by = (rows, field) => Object.fromEntries(rows.map(row => [row.partition, Number(row[field])]))
  const bounds = await admin.fetchTopicOffsets(asked.topic)
  const at = []
  for (const timestamp of asked.timestamps) at.push(by(await admin.fetchTopicOffsetsByTimestamp(asked.topic, timestamp), 'offset'))
  say({ earliest: by(bounds, 'low'), latest: by(bounds, 'high'), at })
  await admin.disconnect()
}

async function steps() {
  const admin = await connected(kafka.admin())
  const resource = topic => ({ type: ConfigResourceTypes.TOPIC, name: topic })
  const entries = configs => Object.entries(configs).map(([name, value]) => ({ name, value }))
  return {
    close: () => admin.disconnect(),
    cluster: async () => {
      const { brokers, controller, clusterId } = await admin.describeCluster()
      return { cluster: clusterId, controller, brokers: brokers.map(({ host, port }) => [host, port]) }
    },
    create: async ({ topic, partitions, configs }) => {
      await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries: entries(configs) }] })
      return {}
    },
    topics: async () => ({ topics: await admin.listTopics() }),
    describe: async ({ topic }) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return { partitions: topics[0].partitions.length }
    },
    configs: async ({ topic }) => {
      const { resources } = await admin.describeConfigs({ resources: [resource(topic)], includeSynonyms: true })
      return { configs: Object.fromEntries(resources[0].configEntries.map(one => [one.configName, one.configValue])) }
    },
    alter: async ({ topic, configs }) => {
      await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource(topic), configEntries: entries(configs) }] })
      return {}
    },
    partitions: async ({ topic, count }) => {
      await admin.createPartitions({ topicPartitions: [{ topic, count }] })
      return {}
    },
    delete_records: async ({ topic, partition, before }) => {
      // It knows no topic before it was asked for something else of it.
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
      return {}
    },
    delete: async ({ topic }) => {
      await admin.deleteTopics({ topics: [topic] })
      return {}
    },
    groups: async () => ({ groups: (await admin.listGroups()).groups.map(one => one.groupId) }),
    group: async ({ group }) => {
      const { groups } = await admin.describeGroups([group])
      return { state: groups[0].state, members: groups[0].members.length }
    },
    committed: async ({ group, topic }) => {
      const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
      return { committed: Object.fromEntries(found.partitions.map(one => [one.partition, Number(one.offset)])) }
    },
    delete_group: async ({ group }) => {
      await admin.deleteGroups([group])
      return {}
    },
  }
}

const version = () => say({ version: createRequire(import.meta.url)('kafkajs/package.json').version })

await run({ version, produce, consume, member, copy, offsets }, steps)
