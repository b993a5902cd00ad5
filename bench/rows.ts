/** The rows of the table: each measures two sides in turns within one run, and gives both numbers. */

import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import type { Load, Loaded } from "./load.ts"
import { median, mega } from "./numbers.ts"
import { cpuMicros, memory, result } from "./process.ts"
import { largeRequest, members, requestFor, type Shape } from "./requests.ts"
import type { Gateway, Side, Stage, StoreKind } from "./stage.ts"
import { streamChunks } from "./upstream.ts"

/** Two numbers of one run, or why there are none. */
export interface Measured {
  readonly unit: string
  readonly gateway?: number
  /** What it is held against, by name: the first is the one that the goal speaks of. */
  readonly others?: Readonly<Record<string, number>>
  /** `ratio`: gateway / other; `difference`: gateway - other; `alone`: the number itself. */
  readonly compare: "ratio" | "difference" | "alone"
  readonly note?: string
}

export interface Row {
  readonly name: string
  readonly what: string
  readonly reach: number
  readonly best: number
  measure(stage: Stage, options: RowOptions): Promise<Measured>
}

export interface RowOptions {
  /** Of each turn of each side. */
  readonly seconds: number
  readonly peers: boolean
}

/** Turns of each side, one after the other: what disturbs the machine disturbs all, and many short ones all alike. */
const turns = 9
/** That memory is measured of; what V8's threads keep differs between them. */
const processes = 3

/** Until V8 has compiled what is hot: the first requests of a process cost more than twice the later ones. */
const warmSeconds = 6
/** A slow machine needs more than one such time for so many answers, or text events of streams. */
const warm = { answers: 20_000, timesMost: 4 }

/** Each load begins with the keys after those of the load before: no member comes near its limit. */
let nextMember = 0

interface Wish {
  readonly shape: Shape
  readonly connections: number
  readonly seconds: number
  readonly chat?: true
}

const send = async (side: Side, { shape, connections, seconds, chat }: Wish): Promise<Loaded> => {
  const load: Load = {
    port: side.port,
    path: chat === true ? side.chatPath : side.path,
    shape,
    connections,
    seconds,
    ...(side.guarded ? { firstMember: nextMember } : {}),
    ...(side.fields === undefined ? {} : { fields: side.fields }),
  }
  const loaded = await result<Loaded>(join(import.meta.dirname, "load.ts"), load)
  nextMember = (nextMember + loaded.answers + loaded.failed) % members
  return loaded
}

/** @throws Error when not every answer was good: a bench of refusals says nothing */
const good = async (side: Side, wish: Wish): Promise<Loaded> => {
  const loaded = await send(side, wish)
  if (loaded.failed > 0) throw new Error(`${side.name}: ${loaded.failed} answers failed: ${loaded.failure}`)
  return loaded
}

const warmUp = async (side: Side, wish: Wish): Promise<void> => {
  const each = wish.shape === "stream" ? streamChunks : 1
  let answers = 0
  for (let times = 0; times < warm.timesMost && answers < warm.answers; times += 1)
    answers += each * (await good(side, { ...wish, seconds: warmSeconds })).answers
}

/** CPU of the process for each answer, or for each text event, in microseconds. */
const cpuOf = async (side: Side, wish: Wish): Promise<number> => {
  const before = cpuMicros(side.pid)
  const { answers } = await good(side, wish)
  const perAnswer = (cpuMicros(side.pid) - before) / answers
  return wish.shape === "stream" ? perAnswer / streamChunks : perAnswer
}

/** The same of all sides, in turns; the median of each. */
const inTurns = async (
  sides: readonly Side[],
  measure: (side: Side) => Promise<number>,
): Promise<Readonly<Record<string, number>>> => {
  const taken = sides.map(side => ({ side, numbers: [] as number[] }))
  for (let turn = 0; turn < turns; turn += 1) {
    for (const { side, numbers } of taken) numbers.push(await measure(side))
  }
  return Object.fromEntries(taken.map(({ side, numbers }) => [side.name, median(numbers)]))
}

const peersOf = async (stage: Stage, { peers }: RowOptions): Promise<readonly Side[]> => {
  const all = [await stage.nginx(), peers ? await stage.portkey() : undefined]
  return all.filter(side => side !== undefined)
}

const compared = (unit: string, compare: Measured["compare"], all: Readonly<Record<string, number>>): Measured => {
  const { gateway, ...others } = all
  return { unit, compare, others, ...(gateway === undefined ? {} : { gateway }) }
}

const cpuRow = async (stage: Stage, kind: StoreKind, wish: Wish, options: RowOptions): Promise<Measured> => {
  const peers = kind === "sqlite" && wish.chat === undefined ? await peersOf(stage, options) : []
  const gateway = await stage.gateway(kind)
  if (wish.chat === true && !(await offers(gateway))) return notOffered
  const sides = [gateway, await stage.bare(), ...peers]
  for (const side of sides) await warmUp(side, wish)
  return compared("us", "ratio", await inTurns(sides, side => cpuOf(side, wish)))
}

const notOffered: Measured = { unit: "us", compare: "ratio", note: "not offered" }

const offers = async (gateway: Gateway): Promise<boolean> =>
  (await send(gateway, { shape: "first", connections: 1, seconds: 0.01, chat: true })).failed === 0

const latencyRow = async (stage: Stage, kind: StoreKind, shape: Shape, seconds: number): Promise<Measured> => {
  const sides = [await stage.gateway(kind), await stage.direct(), await stage.bare()]
  const wish = { shape, connections: 1, seconds }
  for (const side of sides) await warmUp(side, { ...wish, connections: 64 })
  const times = await inTurns(sides, async side => {
    const { wholeMs, firstMs } = await good(side, wish)
    return shape === "first" ? firstMs : wholeMs
  })
  return compared("ms", "difference", times)
}

/** A connection that has sent its request and seen the first byte of a body. */
const openOne = async (gateway: Gateway, request: Buffer): Promise<Socket> => {
  const socket = connect(gateway.port, "127.0.0.1")
  socket.write(request)
  let seen = ""
  while (!/\r\n\r\n./s.test(seen)) seen += String((await once(socket, "data"))[0])
  if (!seen.startsWith("HTTP/1.1 200")) throw new Error(`the gateway answered ${seen.slice(0, 200)}`)
  return socket
}

const openStreams = 1_000

/** The median of a number of a process of its own. */
const ofFresh = async (
  stage: Stage,
  unit: string,
  times: number,
  measure: (gateway: Gateway) => Promise<number>,
): Promise<Measured> => {
  const numbers: number[] = []
  for (let time = 0; time < times; time += 1) {
    const gateway = await stage.freshGateway()
    try {
      numbers.push(await measure(gateway))
    } finally {
      await gateway.stop()
    }
  }
  return { unit, compare: "alone", gateway: median(numbers) }
}

const openStreamsOf = async (gateway: Gateway): Promise<number> => {
  const open: Socket[] = []
  try {
    for (let at = 0; at < openStreams; at += 50) {
      const batch = Array.from({ length: 50 }, (_, n) => openOne(gateway, requestFor("open", gateway.path, at + n)))
      open.push(...(await Promise.all(batch)))
    }
    await setTimeout(1_000) // until what opening cost is collected
    return mega(memory(gateway.pid).now)
  } finally {
    for (const socket of open) socket.destroy()
  }
}

const largeBodies = 8
const largeBytes = 18 * 1024 ** 2

const largeBodiesOf = async (gateway: Gateway): Promise<number> => {
  const sockets: Socket[] = []
  try {
    for (let member = 0; member < 200; member += 1) {
      sockets.push(await openOne(gateway, requestFor("whole", gateway.path, member))) // loaded and warm
      sockets.pop()?.destroy()
    }
    const before = memory(gateway.pid).now
    const requests = Array.from({ length: largeBodies }, (_, at) => largeRequest(gateway.path, 1000 + at, largeBytes))
    sockets.push(...(await Promise.all(requests.map(request => openOne(gateway, request)))))
    return mega(memory(gateway.pid).peak - before)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

const many = 64

export const rows: readonly Row[] = [
  {
    name: "relay",
    what: "native relay, 64 connections, CPU per request",
    reach: 2,
    best: 1.5,
    measure: (stage, options) =>
      cpuRow(stage, "sqlite", { shape: "whole", connections: many, seconds: options.seconds }, options),
  },
  {
    name: "relay-redis",
    what: "the same on Redis",
    reach: 3,
    best: 2.3,
    measure: (stage, options) =>
      cpuRow(stage, "redis", { shape: "whole", connections: many, seconds: options.seconds }, options),
  },
  {
    name: "stream",
    what: "SSE relay with metering, CPU per chunk",
    reach: 1.3,
    best: 1.15,
    measure: (stage, options) =>
      cpuRow(stage, "sqlite", { shape: "stream", connections: many, seconds: options.seconds }, options),
  },
  {
    name: "translated",
    what: "translated stream, CPU per chunk",
    reach: 2,
    best: 1.6,
    measure: (stage, options) =>
      cpuRow(stage, "sqlite", { shape: "stream", connections: many, seconds: options.seconds, chat: true }, options),
  },
  {
    name: "latency",
    what: "added latency at one connection, p50",
    reach: 0.25,
    best: 0.15,
    measure: (stage, { seconds }) => latencyRow(stage, "sqlite", "whole", seconds),
  },
  {
    name: "latency-redis",
    what: "the same on Redis",
    reach: 0.5,
    best: 0.35,
    measure: (stage, { seconds }) => latencyRow(stage, "redis", "whole", seconds),
  },
  {
    name: "first-token",
    what: "added time to the first token, p50",
    reach: 1,
    best: 0.4,
    measure: (stage, { seconds }) => latencyRow(stage, "sqlite", "first", seconds),
  },
  {
    name: "open-streams",
    what: "1,000 open streams: resident memory",
    reach: 200,
    best: 150,
    measure: stage => ofFresh(stage, "MB", processes, openStreamsOf),
  },
  {
    name: "large-bodies",
    what: "8 bodies of 18 MB at once: growth of resident memory",
    reach: 200,
    best: 160,
    measure: stage => ofFresh(stage, "MB", processes, largeBodiesOf),
  },
  {
    name: "start",
    what: "start to ready",
    reach: 1000,
    best: 500,
    measure: stage => ofFresh(stage, "ms", turns, async gateway => gateway.readyMs),
  },
]
