/** Simulators of the vendors, spoken to over a loopback port with the vendors' own protocols. */

import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { isObject, type JsonObject } from "../../core/index.ts"
import { anthropicCount, anthropicMessages } from "./anthropic-messages.ts"
import { deliver, type Fault, faults } from "./delivery.ts"
import { exaAnswer, exaContents, exaSearch } from "./exa.ts"
import { googleBatchEmbed, googleEmbed } from "./google-embeddings.ts"
import { googleCount, googleGenerate, googleStream } from "./google-generate.ts"
import { openai } from "./openai.ts"
import { openaiChat } from "./openai-chat.ts"
import { openaiEmbeddings } from "./openai-embeddings.ts"
import { openaiModerations } from "./openai-moderations.ts"
import { openaiResponses } from "./openai-responses.ts"
import { cohereRerank, hostedRerank, jinaRerank, voyageRerank } from "./rerank.ts"
import { cohereEmbed, jinaEmbeddings, voyageEmbeddings } from "./text-embeddings.ts"
import { type Ask, type Manner, Refusal, type Wire } from "./wire.ts"

/** A new wire is one file and one line here. */
const wires: readonly Wire[] = [
  openaiChat,
  openaiResponses,
  cohereEmbed,
  voyageEmbeddings,
  jinaEmbeddings,
  openaiEmbeddings,
  openaiModerations,
  cohereRerank,
  voyageRerank,
  jinaRerank,
  hostedRerank,
  exaSearch,
  exaContents,
  exaAnswer,
  anthropicMessages,
  anthropicCount,
  googleGenerate,
  googleStream,
  googleCount,
  googleEmbed,
  googleBatchEmbed,
]

export interface SandboxOptions {
  /** The same seed gives the same ids, in the order of the requests. */
  readonly seed?: number
  /** Between the chunks of a stream; 15 ms reads like a model that is fast. */
  readonly pauseMs?: number
}

export interface Sandbox {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  /** Ends every connection, the stalled ones too. */
  close(): Promise<void>
}

/**
 * Starts the simulators on a free loopback port.
 *
 * A key that begins with `invalid` is refused, a model whose name contains `does-not-exist` is unknown. The request
 * header `x-sandbox-fault` asks for a fault: `429`, `500`, `refuse`, `die`, `stall`, `drip`.
 */
export const startSandbox = async ({ seed = 1, pauseMs = 15 }: SandboxOptions = {}): Promise<Sandbox> => {
  const state = newState(seed)
  const server = createServer((request, response) => {
    serve(request, response, { ...state, pauseMs }).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", resolve)
  })
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface State {
  readonly id: (prefix: string) => string
  readonly seen: (text: string) => boolean
}

/** Prompts remembered for the cache counts; the oldest is forgotten. */
const promptsMax = 10_000

const newState = (seed: number): State => {
  let made = 0
  const prompts = new Set<string>()
  return {
    id(prefix) {
      made += 1
      const letters = createHash("sha256").update(`${seed}:${made}`).digest("base64").replace(/[+/=]/g, "0")
      return prefix + letters.slice(0, 24)
    },
    seen(text) {
      const digest = createHash("sha256").update(text).digest("base64")
      if (prompts.has(digest)) return true
      if (prompts.size >= promptsMax) prompts.delete(prompts.values().next().value!)
      prompts.add(digest)
      return false
    },
  }
}

interface Service extends State {
  readonly pauseMs: number
}

const serve = async (request: IncomingMessage, response: ServerResponse, service: Service): Promise<void> => {
  const fault = faults.find(name => name === request.headers["x-sandbox-fault"])
  if (fault === "refuse") {
    request.socket.destroy()
    return
  }
  const bytes = await bodyOf(request)
  if (fault === "stall") return // until the other side gives up, or the sandbox closes
  const url = new URL(request.url ?? "/", "http://sandbox")
  const wire = wireOf(request.method, url.pathname, bytes)
  const manner = wire?.manner ?? openai
  const requestId = service.id("req_")
  const fields = manner.fields(requestId)
  const { pauseMs } = service
  try {
    const reply = answer(wire, { request, url, bytes, fault, service })
    await deliver(response, { status: 200, fields, reply, pauseMs, fault })
  } catch (error) {
    if (!(error instanceof Refusal) || response.headersSent) throw error
    const { status, body } = manner.error(error, requestId)
    const wait = error.kind === "rate_limited" ? { "retry-after": "1" } : {}
    await deliver(response, {
      status,
      fields: { ...fields, ...wait },
      reply: { whole: body },
      pauseMs,
      fault: undefined,
    })
  }
}

/** The first that fits; a wire without models of its own takes what is left. */
const wireOf = (method: string | undefined, path: string, bytes: Buffer): Wire | undefined => {
  const fitting = wires.filter(one => one.method === method && one.path.test(path))
  if (fitting.length < 2) return fitting[0]
  const name = modelIn(bytes)
  return fitting.find(one => one.model === undefined || one.model.test(name))
}

const modelIn = (bytes: Buffer): string => {
  try {
    return String(parse(bytes).model)
  } catch {
    return "" // refused later, in the manner of the wire that is left
  }
}

interface Incoming {
  readonly request: IncomingMessage
  readonly url: URL
  readonly bytes: Buffer
  readonly fault: Fault | undefined
  readonly service: Service
}

/** @throws Refusal in the order in which vendors look: the path, the key, limits and health, the body */
const answer = (
  wire: Wire | undefined,
  { request, url, bytes, fault, service }: Incoming,
): ReturnType<Wire["answer"]> => {
  if (wire === undefined) throw new Refusal("not_found", `Unknown request URL: ${request.method} ${url.pathname}`)
  authenticate(wire.manner, request, url)
  if (fault === "429") throw new Refusal("rate_limited", "The sandbox was asked for a rate limit; retry in a second")
  if (fault === "500") throw new Refusal("server", "The sandbox was asked for an internal error")
  const ask: Ask = {
    path: wire.path.exec(url.pathname)?.groups ?? {},
    query: url.searchParams,
    headers: request.headers,
    body: parse(bytes),
    now: Math.floor(Date.now() / 1000),
    id: service.id,
    seen: service.seen,
  }
  return wire.answer(ask)
}

const authenticate = (manner: Manner, request: IncomingMessage, url: URL): void => {
  const key = manner.key(request.headers, url.searchParams)
  if (key === undefined || key.startsWith("invalid")) {
    throw new Refusal("unauthenticated", key === undefined ? "No API key was given" : "The API key is not valid")
  }
}

const parse = (bytes: Buffer): JsonObject => {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"))
    if (isObject(value)) return value
  } catch {
    // answered below, as a body that is JSON but no object is
  }
  throw new Refusal("bad_json", "The body of the request is not a JSON object")
}

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
