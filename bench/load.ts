/**
 * The client of the bench: raw sockets with keep-alive, each sending its next request when the last answer is whole.
 * `node bench/load.ts '<Load as JSON>'` prints a `Loaded` as JSON.
 */

import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { median } from "./numbers.ts"
import { requestFor, type Shape } from "./requests.ts"

export interface Load {
  readonly port: number
  readonly path: string
  readonly shape: Shape
  readonly connections: number
  /** No request starts later; a started one is awaited. */
  readonly seconds: number
  /** The member whose key the first request uses, the next request uses the next. Absent: no key of the gateway. */
  readonly firstMember?: number
  /** More header fields, each with its line end. */
  readonly fields?: string
}

export interface Loaded {
  /** Of status 200, and of another one. */
  readonly answers: number
  readonly failed: number
  /** Medians: to the last byte, and to the first byte of the body. */
  readonly wholeMs: number
  readonly firstMs: number
  readonly seconds: number
  /** The head of the first answer that failed. */
  readonly failure?: string
}

/** One answer, as far as it is read. */
interface Reading {
  readonly startedAt: number
  head: string
  status: number
  /** Of the body: bytes still to come; NaN for chunked coding. */
  left: number
  tail: string
  firstMs: number
}

const read = (reading: Reading, data: Buffer): boolean => {
  const body = reading.status === 0 ? readHead(reading, data) : data
  if (body.length > 0 && reading.firstMs < 0) reading.firstMs = performance.now() - reading.startedAt
  if (reading.status === 0) return false
  if (!Number.isNaN(reading.left)) {
    reading.left -= body.length
    return reading.left <= 0
  }
  reading.tail = (reading.tail + body.toString("latin1", Math.max(0, body.length - 7))).slice(-7)
  return reading.tail.endsWith("\r\n0\r\n\r\n")
}

/** What follows the head; nothing while the head is not whole. */
const readHead = (reading: Reading, data: Buffer): Buffer => {
  reading.head += data.toString("latin1")
  const end = reading.head.indexOf("\r\n\r\n")
  if (end < 0) return Buffer.alloc(0)
  reading.status = Number(reading.head.slice(9, 12))
  reading.left = Number(/\r\ncontent-length: *(\d+)/i.exec(reading.head.slice(0, end))?.[1])
  return data.subarray(data.length - (reading.head.length - end - 4))
}

const exchange = (socket: Socket, request: Buffer): Promise<Reading & { wholeMs: number }> =>
  new Promise((resolve, reject) => {
    const startedAt = performance.now()
    const reading: Reading = { startedAt, head: "", status: 0, left: Number.NaN, tail: "", firstMs: -1 }
    const cut = (): void => reject(new Error("a connection ended within an answer"))
    const take = (data: Buffer): void => {
      if (!read(reading, data)) return
      socket.off("data", take).off("close", cut)
      resolve({ ...reading, wholeMs: performance.now() - startedAt })
    }
    socket.on("data", take).once("close", cut)
    socket.write(request)
  })

const run = async (load: Load): Promise<Loaded> => {
  const { port, path, shape, connections, seconds, firstMember, fields } = load
  const wholes: number[] = []
  const firsts: number[] = []
  const failures: string[] = []
  let sent = 0
  const startedAt = performance.now()
  const client = async (): Promise<void> => {
    const socket = connect(port, "127.0.0.1").setNoDelay(true)
    await once(socket, "connect")
    while (performance.now() - startedAt < seconds * 1000) {
      const request = requestFor(shape, path, firstMember === undefined ? undefined : firstMember + sent, fields)
      sent += 1
      const { status, head, wholeMs, firstMs } = await exchange(socket, request)
      if (status !== 200) failures.push(head)
      else {
        wholes.push(wholeMs)
        firsts.push(firstMs)
      }
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: connections }, client))
  return {
    answers: wholes.length,
    failed: failures.length,
    wholeMs: median(wholes),
    firstMs: median(firsts),
    seconds: (performance.now() - startedAt) / 1000,
    ...(failures[0] === undefined ? {} : { failure: failures[0].slice(0, 600) }),
  }
}

if (import.meta.main) console.log(JSON.stringify(await run(JSON.parse(process.argv[2]!) as Load)))
