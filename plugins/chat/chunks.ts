/** Chunks of vendors that speak the hub's own wire: they pass as bytes, without what only the gateway asked for. */

import { type Api, faultCodes, GatewayError, type StreamEvent } from "../../core/index.ts"
import type { ReasoningLog } from "./reasoning.ts"

const done = Buffer.from("[DONE]")
const usageKey = Buffer.from('"usage"')
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
  /** `[DONE]` came, or so many reasons to finish as there are choices. */
  #done = false
  #ends = 0

  constructor(options: ChunkOptions) {
    this.#options = options
  }

  /** @throws GatewayError the vendor's fault, when the stream tells one */
  push({ type, data }: StreamEvent): Buffer | "" {
    if (data.equals(done)) {
      this.#done = true
      return ""
    }
    if (type === "error" || data.includes(errorKey)) this.#check({ type, data })
    this.#ends += endsIn(data)
    this.#options.log?.chunk(data)
    if (!this.#options.includeUsage && isOnlyUsage(data)) return ""
    this.#model ??= modelBytes(data, this.#options.model)
    return eventOf(this.#model === undefined ? data : renamed(data, this.#model))
  }

  /** @throws GatewayError `upstream_unavailable` (502): the stream ended, the answer did not */
  end(): string {
    if (this.#done || this.#ends >= this.#options.choices) return doneEvent
    throw new GatewayError("upstream_unavailable", "The model's vendor ended the answer too early.")
  }

  /** Some vendors write the error beside choices and usage, or an empty one in every chunk: the adapter knows. */
  #check({ type, data }: { readonly type: string | undefined; readonly data: Buffer }): void {
    const sign = this.#options.api.sign(type === undefined ? { data } : { type, data })
    const fault = sign.sign === "fault" ? sign.fault : undefined
    if (fault === undefined && type !== "error") return
    const isClients = fault?.kind === "invalid" || fault?.kind === "content_policy"
    const text = isClients ? fault.message : "The model's vendor failed while it was answering."
    throw new GatewayError(fault === undefined ? "upstream_unavailable" : faultCodes[fault.kind], text)
  }
}

/** How many choices end in this chunk. Compatible vendors may leave out `[DONE]`, never the reason. */
const endsIn = (data: Buffer): number => {
  let ends = 0
  for (let at = data.indexOf(finishKey); at !== -1; at = data.indexOf(finishKey, at + 1)) {
    if (/^\s*:\s*"/.test(data.toString("latin1", at + finishKey.length, at + finishKey.length + 16))) ends += 1
  }
  return ends
}

const onlyUsageFields: ReadonlySet<string> = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "service_tier",
  "system_fingerprint",
  "obfuscation",
])

/** A chunk without choices whose only news is the usage. Text chunks are told by one search for `"usage"`. */
export const isOnlyUsage = (data: Buffer): boolean => {
  if (!data.includes(usageKey) || !/"choices"\s*:\s*\[\s*\]/.test(data.toString("latin1"))) return false
  try {
    const chunk = JSON.parse(data.toString()) as Readonly<Record<string, unknown>>
    const isEmpty = Array.isArray(chunk.choices) && chunk.choices.length === 0
    const others = Object.keys(chunk).filter(name => !onlyUsageFields.has(name) && chunk[name] !== null)
    return isEmpty && others.length === 0
  } catch {
    return false
  }
}

/** The vendor's `"model":"..."` as it stands in every chunk of one stream, and what the client reads in its place. */
interface ModelBytes {
  readonly theirs: Buffer
  readonly ours: Buffer
}

/**
 * A quote inside a JSON string is escaped, so these bytes can only be a key and its value. In a chunk that says no
 * model nothing is learnt.
 */
const modelBytes = (data: Buffer, model: string): ModelBytes | undefined => {
  const found = /"model"\s*:\s*"(?:[^"\\]|\\.)*"/.exec(data.toString("latin1"))?.[0]
  if (found === undefined) return undefined
  return { theirs: Buffer.from(found, "latin1"), ours: Buffer.from(`"model":${JSON.stringify(model)}`) }
}

const renamed = (data: Buffer, { theirs, ours }: ModelBytes): Buffer => {
  const at = data.indexOf(theirs)
  if (at === -1) return data
  return Buffer.concat([data.subarray(0, at), ours, data.subarray(at + theirs.length)])
}

/** JSON may hold line feeds between its values; in an event each line needs its own `data:`. */
const eventOf = (data: Buffer): Buffer =>
  data.includes(lineFeed)
    ? Buffer.from(`data: ${data.toString().replaceAll("\n", "\ndata: ")}\n\n`)
    : Buffer.concat([before, data, after])
