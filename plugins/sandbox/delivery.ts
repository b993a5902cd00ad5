/** How an answer leaves the sandbox: whole or event by event, in good order or with a fault. */

import type { ServerResponse } from "node:http"
import { setImmediate, setTimeout } from "node:timers/promises"
import type { Reply } from "./wire.ts"

/** What a client may wish for by the header `x-sandbox-fault`. */
export const faults = ["429", "500", "refuse", "die", "stall", "drip"] as const
export type Fault = (typeof faults)[number]

export interface Delivery {
  readonly status: number
  readonly fields: Readonly<Record<string, string>>
  readonly reply: Reply
  /** Between the chunks of a stream. */
  readonly pauseMs: number
  readonly fault: Fault | undefined
}

/** Small enough to cut words, characters and the lines of events. */
const dripBytes = 7

/** Resolves when the last byte is handed over, or when the client is gone. */
export const deliver = async (response: ServerResponse, delivery: Delivery): Promise<void> => {
  const { status, fields, reply, pauseMs, fault } = delivery
  const whole = "whole" in reply ? Buffer.from(JSON.stringify(reply.whole)) : undefined
  const length = whole === undefined ? {} : { "content-length": String(whole.length) }
  response.writeHead(status, { "content-type": typeOf(reply), ...fields, ...length })
  const chunks = "whole" in reply ? [whole!] : bytesOf(reply.stream)
  const parts = fault === "die" ? firstHalf([...chunks]) : fault === "drip" ? slices(chunks) : chunks
  let first = true
  for (const part of parts) {
    if (!first) await pause(pauseMs)
    first = false
    if (response.destroyed) return
    await write(response, part)
  }
  if (fault === "die") response.destroy()
  else response.end()
}

/** Each wait is at least one turn of the event loop, so that chunks are not glued together. */
const pause = (ms: number): Promise<void> => (ms > 0 ? setTimeout(ms) : setImmediate())

const typeOf = (reply: Reply): string => {
  if ("whole" in reply) return "application/json"
  return reply.type === "text/event-stream" ? "text/event-stream; charset=utf-8" : "application/json; charset=UTF-8"
}

/** Settles when the bytes are out of this process: what was written before a fault arrives before it. */
const write = (response: ServerResponse, bytes: Uint8Array): Promise<void> =>
  new Promise(resolve => {
    const done = (): void => {
      response.off("close", done)
      resolve()
    }
    response.once("close", done)
    response.write(bytes, done)
  })

function* bytesOf(texts: Iterable<string>): Generator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

function* slices(chunks: Iterable<Buffer>): Generator<Buffer> {
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += dripBytes) yield chunk.subarray(at, at + dripBytes)
  }
}

/** Half of the chunks, the last of them cut in two. */
const firstHalf = (chunks: readonly Buffer[]): readonly Buffer[] => {
  const half = chunks.slice(0, Math.ceil(chunks.length / 2))
  const last = half.pop()
  return last === undefined ? [] : [...half, last.subarray(0, Math.ceil(last.length / 2))]
}
