/**
 * A storm of broken connections on both sides at once: clients and vendors that reset, half-close, stop early and send
 * chunks that are none. What the gateway says to each is tested elsewhere; here it has to come out of it whole.
 */

import { connect, createServer, type Server, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"
import { chunked, streamHead } from "../fixtures/vendor.ts"
import { between, pick } from "./random.ts"
import { wires } from "./traffic.ts"

type Random = () => number

// ---- the vendors' side ----

const usage = { input_tokens: 10, output_tokens: 20 }
const whole = JSON.stringify({ type: "message", id: "msg_1", role: "assistant", content: [], usage })
const start = `event: message_start\ndata: ${JSON.stringify({ type: "message_start", message: { ...JSON.parse(whole) } })}\n\n`
const wholeHead = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${whole.length}\r\n\r\n`

/** How a vendor ends the one request that a connection brings. */
const endings: readonly { readonly name: string; readonly weight: number; run(socket: Socket): void }[] = [
  { name: "answers", weight: 14, run: socket => void socket.write(wholeHead + whole) },
  { name: "resets at once", weight: 1, run: socket => void socket.resetAndDestroy() },
  { name: "ends at once", weight: 1, run: socket => void socket.end() },
  { name: "ends in its head", weight: 1, run: socket => void socket.end("HTTP/1.1 200 OK\r\ncontent-le") },
  { name: "ends in its body", weight: 1, run: socket => void socket.end(wholeHead + whole.slice(0, 40)) },
  { name: "resets in its body", weight: 1, run: socket => void resetAfter(socket, wholeHead + whole.slice(0, 40)) },
  { name: "resets in a stream", weight: 1, run: socket => void resetAfter(socket, streamHead + chunked(start)) },
  { name: "ends in a stream", weight: 1, run: socket => void socket.end(streamHead + chunked(start)) },
  { name: "sends no chunk", weight: 1, run: socket => void socket.end(`${streamHead + chunked(start)}zz\r\nwhat`) },
  { name: "sends too much", weight: 1, run: socket => void socket.end(`${wholeHead + whole}HTTP/1.1 200 OK\r\n\r\n`) },
  { name: "sends no head", weight: 1, run: socket => void socket.end("\0\0\0 what\r\n\r\n") },
]

const resetAfter = (socket: Socket, bytes: string): void => {
  socket.write(bytes, () => socket.resetAndDestroy())
}

export interface StormVendor {
  readonly origin: string
  close(): Promise<void>
}

export const startStormVendor = async (random: Random): Promise<StormVendor> => {
  const sockets = new Set<Socket>()
  const server: Server = createServer({ allowHalfOpen: true }, socket => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
    socket.on("end", () => socket.end())
    socket.on("data", data => {
      // A request may come in several pieces; its head begins it.
      if (data.toString("latin1", 0, 5) === "POST ") pick(endings, random).run(socket)
    })
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as { port: number }
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

// ---- the clients' side ----

interface Sent {
  readonly head: string
  readonly body: string
}

const half = ({ body }: Sent): string => body.slice(0, body.length >> 1)

/** How a client ends the one request that it makes; it waits for the gateway's end of the connection then. */
const manners: readonly { readonly name: string; readonly weight: number; run(socket: Socket, sent: Sent): void }[] = [
  { name: "asks well", weight: 4, run: (socket, { head, body }) => void socket.write(head + body) },
  { name: "half-closes", weight: 2, run: (socket, { head, body }) => void socket.end(head + body) },
  { name: "resets in its head", weight: 1, run: (socket, { head }) => resetAfter(socket, head.slice(0, 60)) },
  { name: "ends in its head", weight: 1, run: (socket, { head }) => void socket.end(head.slice(0, 60)) },
  { name: "resets in its body", weight: 1, run: (socket, sent) => resetAfter(socket, sent.head + half(sent)) },
  { name: "ends in its body", weight: 1, run: (socket, sent) => void socket.end(sent.head + half(sent)) },
  { name: "resets after its body", weight: 2, run: (socket, { head, body }) => resetAfter(socket, head + body) },
  {
    name: "sends no chunk",
    weight: 1,
    run: (socket, { head }) =>
      void socket.write(`${head.replace(/content-length: \d+/, "transfer-encoding: chunked")}zz\r\n`),
  },
  { name: "pipelines", weight: 1, run: (socket, { head, body }) => void socket.write((head + body).repeat(3)) },
]

const requestOf = (random: Random, host: string, key: string): Sent => {
  const stream = random() < 0.5
  const body = JSON.stringify(wires.messages.body(`Count to ${between(1, 1e6, random)}`, stream))
  const head = [
    `POST /v1/gateway${wires.messages.path()} HTTP/1.1`,
    `host: ${host}`,
    "user-agent: storm",
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ]
  return { head: `${head.join("\r\n")}\r\n\r\n`, body }
}

export interface StormOptions {
  readonly random: Random
  readonly requests: number
  readonly atOnce: number
  /** How long a client waits for the end of its connection; whoever is left then is a leak. */
  readonly patienceMs: number
}

/** How many connections the gateway left open, of those that their clients had not ended. */
export const storm = async (url: string, key: string, options: StormOptions): Promise<{ readonly left: number }> => {
  const { random, requests, atOnce, patienceMs } = options
  const { hostname, port, host } = new URL(url)
  let begun = 0
  let left = 0
  const one = async (): Promise<void> => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    socket.on("error", () => {}).on("end", () => socket.end())
    socket.resume()
    const closed = new Promise<true>(resolve => socket.on("close", () => resolve(true)))
    pick(manners, random).run(socket, requestOf(random, host, key))
    const patience = new AbortController()
    const ended = await Promise.race([
      closed,
      setTimeout(patienceMs, false, { signal: patience.signal }).catch(() => true),
    ])
    patience.abort()
    if (!ended) left += 1
    socket.destroy()
  }
  const client = async (): Promise<void> => {
    while (begun++ < requests) await one()
  }
  await Promise.all(Array.from({ length: atOnce }, client))
  return { left }
}
