/** Meters the Messages API: usage comes with the first event and, corrected, with one of the last. */

import type { EventSign, StreamEvent, Usage, UsageReader, UsageReport } from "../../../core/index.ts"
import { Surprises } from "../common/counts.ts"
import { type JsonObject, list, parse, record, text, textBytes } from "../common/json.ts"
import { eventFault } from "./faults.ts"
import { merge, tokensOf } from "./usage.ts"

/** The other events say nothing of what was used. */
const metered: ReadonlySet<string> = new Set(["message_start", "message_delta", "content_block_delta"])

export class MessagesMeter implements UsageReader {
  readonly #surprises = new Surprises()
  /** Judged once, at the end, when the last event has corrected the first. */
  #reported: JsonObject = {}
  /** The first event's counts are those before the answer. */
  #provisional = false
  #outputBytes = 0
  /** What `#judged` came to. */
  #usage: Usage | undefined
  #judged: JsonObject | undefined

  whole(body: Buffer): void {
    const message = record(this.#parse(body))
    this.#reported = record(message.usage)
    for (const block of list(message.content)) this.#outputBytes += blockBytes(record(block))
  }

  event({ type, data }: StreamEvent): void {
    if (type !== undefined && !metered.has(type)) return
    const plain = type === "content_block_delta" ? plainBytes(data) : undefined
    if (plain === undefined) this.#read(type, data)
    else this.#outputBytes += plain
  }

  #read(type: string | undefined, data: Buffer): void {
    const event = record(this.#parse(data))
    const kind = type ?? text(event.type)
    if (kind === "content_block_delta") this.#outputBytes += deltaBytes(record(event.delta))
    else if (kind === "message_start") this.#merge(record(event.message).usage, true)
    else if (kind === "message_delta") this.#merge(event.usage, false)
  }

  report(): UsageReport {
    const usage = this.#tokens()
    const serviceTier = tierOf(this.#reported)
    return {
      outputBytes: this.#outputBytes,
      ...(this.#provisional ? { provisional: true } : {}),
      ...(usage === undefined ? {} : { usage }),
      ...(serviceTier === undefined ? {} : { serviceTier }),
    }
  }

  get surprises(): readonly string[] {
    this.#tokens()
    return this.#surprises.all
  }

  #merge(usage: unknown, provisional: boolean): void {
    this.#reported = merge(this.#reported, record(usage))
    this.#provisional = provisional
  }

  #tokens(): Usage | undefined {
    if (this.#judged !== this.#reported) {
      this.#usage = tokensOf(this.#reported, this.#surprises)
      this.#judged = this.#reported
    }
    return this.#usage
  }

  #parse(data: Buffer): unknown {
    const parsed = parse(data)
    if (parsed === undefined) this.#surprises.note("bad_json")
    return parsed
  }
}

/** Fast answers, and those made in one country, are dearer whatever else the tier is called. */
const tierOf = ({ speed, inference_geo, service_tier }: JsonObject): string | undefined => {
  if (speed === "fast") return speed
  return inference_geo === "us" ? inference_geo : text(service_tier)
}

const textField = Buffer.from('"delta":{"type":"text_delta","text":"')
const quote = 0x22
const backslash = 0x5c
const brace = 0x7d

/**
 * The text of a delta as nearly all are: the last field, and nothing in it escaped. Its bytes are counted where they
 * lie, for a parse would cost as much as the rest of the reading. `undefined` for every other delta.
 */
const plainBytes = (data: Buffer): number | undefined => {
  const at = data.indexOf(textField)
  if (at === -1) return undefined
  const begin = at + textField.length
  const end = data.length - 3
  const isLast = data.indexOf(quote, begin) === end && data[end + 1] === brace && data[end + 2] === brace
  return isLast && data.indexOf(backslash, begin) === -1 ? end - begin : undefined
}

const deltaBytes = (delta: JsonObject): number =>
  textBytes(delta.text) + textBytes(delta.partial_json) + textBytes(delta.thinking) + textBytes(delta.content)

const blockBytes = (block: JsonObject): number =>
  textBytes(block.text) +
  textBytes(block.thinking) +
  (block.input === undefined ? 0 : textBytes(JSON.stringify(block.input)))

/** A block's start holds no text yet; the blocks that come whole are followed by their stop, which counts. */
const beforeContent: ReadonlySet<string> = new Set(["message_start", "content_block_start", "ping"])

export const messagesSign = (event: StreamEvent): EventSign => {
  if (event.type !== undefined && beforeContent.has(event.type)) return { sign: "neutral" }
  if (event.type !== undefined && event.type !== "error") return { sign: "content" }
  const parsed = record(parse(event.data))
  const type = event.type ?? text(parsed.type) ?? ""
  if (type === "error") return { sign: "fault", fault: eventFault(parsed) }
  return { sign: beforeContent.has(type) ? "neutral" : "content" }
}
