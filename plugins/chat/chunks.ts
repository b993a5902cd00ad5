/** Chunks of vendors that speak the hub's own wire: they pass as bytes, without what only the gateway asked for. */

import {
  type Api,
  endedEarly,
  failedMidway,
  faultCodes,
  GatewayError,
  inputBuckets,
  isBlank,
  isDone,
  type JsonObject,
  outputBuckets,
  record,
  type StreamEvent,
  tokensIn,
  type Usage,
} from "../../core/index.ts"
import type { ReasoningLog } from "./reasoning.ts"

const usageKey = Buffer.from('"usage"')
const modelKey = Buffer.from('"model"')
const finishKey = Buffer.from('"finish_reason"')
const errorKey = Buffer.from('"error"')
const before = Buffer.from("data: ")
const after = Buffer.from("\n\n")
const lineFeed = 0x0a
export const doneEvent = "data: [DONE]\n\n"

export interface ChunkOptions {
  readonly api: Pick<Api, "sign">
  /** The catalog's name: what the client reads. */
  readonly model: string
  readonly includeUsage: boolean
  /** So many answers were asked for (`n`). */
  readonly choices: number
  readonly log?: Pick<ReasoningLog, "chunk"> | undefined
}

/** The bytes that go to the client for each event of the vendor's stream. */
export class ByteChunks {
  readonly #options: ChunkOptions
  #model: ModelBytes | undefined
  /** What all chunks have in common, of the first; for the chunk of usage that the vendor may not send. */
  #head: JsonObject | undefined
  #toldUsage = false
  /** `[DONE]` came, or so many reasons to finish as there are choices. */
  #done = false
  #ends = 0

  constructor(options: ChunkOptions) {
    this.#options = options
  }

  /** @throws GatewayError the vendor's fault, when the stream tells one */
  push({ type, data }: StreamEvent): Buffer | "" {
    if (isDone(data)) this.#done = true
    if (isDone(data) || (type !== "error" && isBlank(data))) return ""
    if (type === "error" || data.includes(errorKey)) this.#check({ type, data })
    this.#ends += endsIn(data)
    this.#options.log?.chunk(data)
    if (this.#options.includeUsage) this.#readUsage(data)
    const shown = this.#options.includeUsage ? data : withoutUsage(data)
    return shown === "" ? "" : eventOf(this.#renamed(shown))
  }

  /** The name stands in the same bytes in nearly every chunk; where it does not, it is looked for again. */
  #renamed(data: Buffer): Buffer {
    const known = this.#model && renamed(data, this.#model)
    if (known !== undefined) return known
    const model = modelBytes(data, this.#options.model)
    if (model === undefined) return data
    if (!model.isEmpty) this.#model = model
    return renamed(data, model) ?? data
  }

  #readUsage(data: Buffer): void {
    this.#toldUsage ||= tellsUsage(data)
    if (this.#head !== undefined) return
    const { id, created } = chunkIn(data)
    this.#head = { id, object: "chat.completion.chunk", created }
  }

  /** With the chunk of usage of a vendor that told none; without it where it is not wanted, or told. */
  counted(usage: Usage): string {
    if (!this.#options.includeUsage || this.#toldUsage) return doneEvent
    return jsonEvent({ ...this.#head, model: this.#options.model, ...usageOf(usage) }) + doneEvent
  }

  /** @throws GatewayError `upstream_unavailable` (502): the stream ended, the answer did not */
  end(): string {
    if (this.#done || this.#ends >= this.#options.choices) return doneEvent
    throw endedEarly()
  }

  /** Some vendors write the error beside choices and usage, or an empty one in every chunk: the adapter knows. */
  #check({ type, data }: { readonly type: string | undefined; readonly data: Buffer }): void {
    const sign = this.#options.api.sign(type === undefined ? { data } : { type, data })
    const fault = sign.sign === "fault" ? sign.fault : undefined
    if (fault === undefined && type !== "error") return
    if (fault === undefined) throw failedMidway()
    const isClients = fault.kind === "invalid" || fault.kind === "content_policy"
    throw isClients ? new GatewayError(faultCodes[fault.kind], fault.message) : failedMidway(faultCodes[fault.kind])
  }
}

/** How many choices end in this chunk. Compatible vendors may leave out `[DONE]`, never the reason. */
const endsIn = (data: Buffer): number => {
  let ends = 0
  for (let at = data.indexOf(finishKey); at !== -1; at = data.indexOf(finishKey, at + 1)) {
    if (/^\s*:\s*"[^"]/.test(data.toString("latin1", at + finishKey.length, at + finishKey.length + 16))) ends += 1
  }
  return ends
}

/** What stands in every chunk, and is no news beside the usage. */
const commonFields: ReadonlySet<string> = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "service_tier",
  "system_fingerprint",
  "obfuscation",
])

/**
 * What a client reads that did not ask for usage: of a chunk without choices all but the usage, and nothing when that was
 * its only news. Text chunks are told by one search for `"usage"`.
 */
export const withoutUsage = (data: Buffer): Buffer | "" => {
  if (!data.includes(usageKey) || !/"choices"\s*:\s*\[\s*\]/.test(data.toString("latin1"))) return data
  const { usage, ...chunk } = chunkIn(data)
  if (usage === undefined || !Array.isArray(chunk.choices) || chunk.choices.length > 0) return data
  const hasNews = Object.keys(chunk).some(name => !commonFields.has(name) && chunk[name] !== null)
  return hasNews ? Buffer.from(JSON.stringify(chunk)) : ""
}

/** Chunks without usage leave the key out, or say null. */
const tellsUsage = (data: Buffer): boolean =>
  data.includes(usageKey) && /"usage"\s*:\s*\{/.test(data.toString("latin1"))

/** What a chunk of usage has of its own. */
export const usageOf = (usage: Usage): JsonObject => {
  const [prompt_tokens, completion_tokens] = [tokensIn(usage, inputBuckets), tokensIn(usage, outputBuckets)]
  return { choices: [], usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } }
}

export const jsonEvent = (chunk: JsonObject): string => `data: ${JSON.stringify(chunk)}\n\n`

const chunkIn = (data: Buffer): JsonObject => {
  try {
    return record(JSON.parse(data.toString()))
  } catch {
    return {}
  }
}

/** The vendor's `"model":"..."` as it stands in a chunk, and what the client reads in its place. */
interface ModelBytes {
  readonly theirs: Buffer
  readonly ours: Buffer
  /** Some first chunks name no model: the name is still to come. */
  readonly isEmpty: boolean
}

/**
 * A quote inside a JSON string is escaped, so these bytes can only be a key and its value. In a chunk that says no
 * model nothing is learnt.
 */
const modelBytes = (data: Buffer, model: string): ModelBytes | undefined => {
  if (!data.includes(modelKey)) return undefined
  const [found, name] = /"model"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(data.toString("latin1")) ?? []
  if (found === undefined) return undefined
  const ours = Buffer.from(`"model":${JSON.stringify(model)}`)
  return { theirs: Buffer.from(found, "latin1"), ours, isEmpty: name === "" }
}

/** `undefined` when the vendor's bytes are not there. */
const renamed = (data: Buffer, { theirs, ours }: ModelBytes): Buffer | undefined => {
  const at = data.indexOf(theirs)
  if (at === -1) return undefined
  return Buffer.concat([data.subarray(0, at), ours, data.subarray(at + theirs.length)])
}

/** JSON may hold line feeds between its values; in an event each line needs its own `data:`. */
const eventOf = (data: Buffer): Buffer =>
  data.includes(lineFeed)
    ? Buffer.from(`data: ${data.toString().replaceAll("\n", "\ndata: ")}\n\n`)
    : Buffer.concat([before, data, after])
