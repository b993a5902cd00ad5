/** What clients do to a gateway, wire by wire: whole answers, streams, clients that leave, large bodies, mistakes. */

import { setTimeout } from "node:timers/promises"
import { between, pick } from "./random.ts"

export interface Client {
  /** Ends in the base path. */
  readonly url: string
  readonly key: string
}

/** What a client saw of a call. */
export interface Seen {
  readonly kind: string
  /** 0: the connection ended without an answer. */
  readonly status: number
  /** The call's id, if its head came. */
  readonly id?: string
  /** Told by `x-credits-charged`: durable from then on. */
  readonly micros?: number
  readonly text: string
  /** The body came to its end in good order. */
  readonly whole: boolean
}

interface Ask {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Leaves after so many bytes of the answer's body; 0 with the head. */
  readonly leaveAfter?: number
  /** Leaves after so long, whatever has come. */
  readonly leaveAfterMs?: number
}

const microsOf = (answer: Response): number | undefined => {
  const credits = answer.headers.get("x-credits-charged")
  return credits === null ? undefined : Math.round(Number(credits) * 1_000_000)
}

/** Never rejects: a connection that ends early is one of the things to be seen. */
export const ask = async (client: Client, kind: string, request: Ask): Promise<Seen> => {
  const stop = new AbortController()
  const { path, body, headers = {}, leaveAfter = Number.POSITIVE_INFINITY, leaveAfterMs } = request
  const timer = leaveAfterMs === undefined ? undefined : globalThis.setTimeout(() => stop.abort(), leaveAfterMs)
  let seen: Seen = { kind, status: 0, text: "", whole: false }
  try {
    const answer = await fetch(client.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${client.key}`, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      signal: stop.signal,
    })
    const id = answer.headers.get("x-request-id")
    const micros = microsOf(answer)
    seen = { ...seen, status: answer.status, ...(id !== null && { id }), ...(micros !== undefined && { micros }) }
    return { ...seen, text: await textOf(answer, leaveAfter, stop), whole: true }
  } catch {
    return seen
  } finally {
    clearTimeout(timer)
  }
}

const textOf = async (answer: Response, leaveAfter: number, stop: AbortController): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  let bytes = 0
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length
    text += decoder.decode(chunk, { stream: true })
    if (bytes >= leaveAfter) stop.abort()
  }
  return text
}

const countTo = (most: number): string => `Count to ${most}`

interface Wire {
  readonly path: (streamed: boolean) => string
  readonly body: (prompt: string, streamed: boolean) => object
}

const maxTokens = 400

export const wires = {
  chat: {
    path: () => "/chat/completions/",
    body: (content, stream) => ({ model: "gpt", stream, max_tokens: maxTokens, messages: [{ role: "user", content }] }),
  },
  responses: {
    path: () => "/responses/",
    body: (input, stream) => ({ model: "gpt", stream, max_output_tokens: maxTokens, input }),
  },
  messages: {
    path: () => "/vendor-a/v1/messages/",
    body: (content, stream) => ({
      model: "claude",
      stream,
      max_tokens: maxTokens,
      messages: [{ role: "user", content }],
    }),
  },
  generate: {
    path: streamed =>
      streamed
        ? "/vendor-b/v1beta/models/gemini:streamGenerateContent/?alt=sse"
        : "/vendor-b/v1beta/models/gemini:generateContent/",
    body: text => ({
      contents: [{ role: "user", parts: [{ text }] }],
      generationConfig: { maxOutputTokens: maxTokens },
    }),
  },
} satisfies Record<string, Wire>

const table: readonly Wire[] = Object.values(wires)

type Random = () => number

const anyWire = (random: Random): Wire => table[between(0, table.length - 1, random)] as Wire

const large = "data:image/png;base64,"

/** How often each thing happens, and what it is. */
const mix: readonly {
  readonly kind: string
  readonly weight: number
  readonly make: (random: Random) => Ask
}[] = [
  {
    kind: "whole",
    weight: 30,
    make: random => {
      const wire = anyWire(random)
      return { path: wire.path(false), body: wire.body(countTo(between(1, 60, random)), false) }
    },
  },
  {
    kind: "stream",
    weight: 30,
    make: random => {
      const wire = anyWire(random)
      return { path: wire.path(true), body: wire.body(countTo(between(1, 40, random)), true) }
    },
  },
  {
    kind: "left-stream",
    weight: 10,
    make: random => {
      const wire = anyWire(random)
      const leaveAfter = between(0, 2_000, random)
      return { path: wire.path(true), body: wire.body(countTo(60), true), leaveAfter }
    },
  },
  {
    kind: "left-whole",
    weight: 5,
    make: random => {
      const wire = anyWire(random)
      return { path: wire.path(false), body: wire.body(countTo(9), false), leaveAfterMs: between(0, 20, random) }
    },
  },
  {
    kind: "large",
    weight: 2,
    make: random => {
      const content = large + "A".repeat(between(100_000, 3_000_000, random))
      return { path: wires.chat.path(), body: wires.chat.body(content, false) }
    },
  },
  {
    kind: "looked",
    weight: 15,
    make: random => {
      const paths = ["/models/", "/credits/", "/usage/", "/vendor-a/v1/models/", "/vendor-b/v1beta/models/"]
      return { path: paths[between(0, paths.length - 1, random)] as string }
    },
  },
  {
    kind: "mistaken",
    weight: 8,
    make: random => {
      const { path, body } = anyWire(random)
      const mistakes: readonly Ask[] = [
        { path: path(false), body: "{" },
        { path: path(false), body: [] },
        { path: path(false), body: body("hi", false), headers: { authorization: "Bearer tg_nobody" } },
        { path: `/nowhere/${Math.floor(random() * 1e6)}/` },
        { path: wires.chat.path(), body: { model: `m${Math.floor(random() * 1e6)}`, messages: [] } },
      ]
      return mistakes[between(0, mistakes.length - 1, random)] as Ask
    },
  },
]

/** One thing out of the mix. */
export const anything = (client: Client, random: Random): Promise<Seen> => {
  const { kind, make } = pick(mix, random)
  return ask(client, kind, make(random))
}

/** Starts calls in a steady beat until `stop` is aborted, never more than `most` at once; resolves when all ended. */
export const keepCalling = async (
  client: Client,
  { random, perSecond, most, stop }: { random: Random; perSecond: number; most: number; stop: AbortSignal },
  onSeen: (seen: Seen) => void,
): Promise<void> => {
  const open = new Set<Promise<void>>()
  let next = performance.now()
  while (!stop.aborted) {
    if (open.size < most) {
      const one = anything(client, random).then(seen => {
        open.delete(one)
        onSeen(seen)
      })
      open.add(one)
    }
    next += 1_000 / perSecond
    await setTimeout(Math.max(0, next - performance.now()))
  }
  await Promise.all(open)
}
