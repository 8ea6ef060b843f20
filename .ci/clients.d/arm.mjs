// What arms in JavaScript share: the order they get, events, and when to leave.

import { readFileSync, writeSync } from 'node:fs'

export const SESSION_TIMEOUT_MS = 6_000
export const HEARTBEAT_MS = 500
// Events that are read before they are committed.
export const BATCH = 500

export const asked = JSON.parse(process.argv[2])

const unpack = text => (text === null ? null : Buffer.from(text, 'base64'))
const pack = data => (data === null || data === undefined ? null : Buffer.from(data).toString('base64'))

// A pipe takes what it has room for.
export function say(what) {
  let line = Buffer.from(JSON.stringify(what) + '\n')
  while (line.length) {
    try {
      line = line.subarray(writeSync(1, line))
    } catch (fault) {
      if (fault.code !== 'EAGAIN') throw fault
    }
  }
}

export function sayEvent(partition, offset, timestamp, key, value, headers) {
  const named = headers.map(([name, data]) => [name, pack(data)])
  say({ p: partition, o: Number(offset), t: Number(timestamp), k: pack(key), v: pack(value), h: named })
}

export function events() {
  const lines = readFileSync(asked.file, 'utf8').split('\n').filter(Boolean)
  return lines.map(line => {
    const { p, t, k, v, h } = JSON.parse(line)
    return { partition: p, timestamp: t, key: unpack(k), value: unpack(v), headers: h.map(([name, data]) => [name, unpack(data)]) }
  })
}

// Parts of a list, each of at most so many.
export function* parts(list, most) {
  for (let at = 0; at < list.length; at += most) yield list.slice(at, at + most)
}

export function endOfInput() {
  return new Promise(resolve => {
    process.stdin.on('end', resolve)
    process.stdin.resume()
  })
}

export async function run(verbs, steps) {
  const admin = async () => {
    const table = await steps()
    for (const step of asked.steps) {
      try {
        say(await table[step.do](step))
      } catch (fault) {
        say({ error: `${fault}: ${(fault.errors ?? []).join(', ')}` })
      }
    }
    await table.close()
  }
  await { ...verbs, admin }[asked.verb]()
  process.exit(0)
}
