/** Meters the Responses API. Usage comes once, in the event that ends the stream. */

import type { EventSign, StreamEvent, Usage, UsageReader, UsageReport } from "../../../core/index.ts"
import { compact, count, plus, Surprises } from "../common/counts.ts"
import { isDone, type JsonObject, list, parse, record, text, textBytes } from "../common/json.ts"
import { eventFault } from "./faults.ts"
import { tierOf, tokensOf } from "./usage.ts"

/** Events with the whole response object in them; `in_progress` repeats what `created` said. */
const withResponse: ReadonlySet<string> = new Set([
  "response.created",
  "response.queued",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
])

/** Where a `done` event repeats the text of its deltas; some hosts send it without any. */
const doneFields: Readonly<Record<string, string>> = {
  "response.output_text.done": "text",
  "response.refusal.done": "refusal",
  "response.function_call_arguments.done": "arguments",
  "response.mcp_call_arguments.done": "arguments",
  "response.custom_tool_call_input.done": "input",
  "response.reasoning_text.done": "text",
  "response.reasoning_summary_text.done": "text",
  "response.code_interpreter_call_code.done": "code",
}

/** Deltas of base64, not of text. */
const soundDelta = "response.audio.delta"

export class ResponsesMeter implements UsageReader {
  readonly #surprises = new Surprises()
  #usage: Usage | undefined
  #serviceTier: string | undefined
  #id: string | undefined
  /** The same output, told up to three times: by its deltas, by its `done` events, by the final object. */
  #deltaBytes = 0
  #doneBytes = 0
  #finalBytes = 0

  whole(body: Buffer): void {
    const parsed = parse(body)
    if (parsed === undefined) this.#surprises.note("bad_json")
    this.#readResponse(record(parsed))
  }

  event({ type, data }: StreamEvent): void {
    if (type !== undefined && !isOfInterest(type)) return
    const parsed = parse(data)
    if (parsed === undefined && !isDone(data)) this.#surprises.note("bad_json")
    const event = record(parsed)
    this.#readEvent(type ?? text(event.type) ?? "", event)
  }

  report(): UsageReport {
    return {
      outputBytes: Math.max(this.#deltaBytes, this.#doneBytes, this.#finalBytes),
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...(this.#serviceTier === undefined ? {} : { serviceTier: this.#serviceTier }),
      ...(this.#id === undefined ? {} : { id: this.#id }),
    }
  }

  get surprises(): readonly string[] {
    return this.#surprises.all
  }

  #readEvent(type: string, event: JsonObject): void {
    const doneField = doneFields[type]
    if (withResponse.has(type)) this.#readResponse(record(event.response))
    else if (doneField !== undefined) this.#doneBytes += textBytes(event[doneField])
    else if (type.endsWith(".delta") && type !== soundDelta) this.#deltaBytes += textBytes(event.delta)
  }

  #readResponse(response: JsonObject): void {
    this.#id = text(response.id) ?? this.#id
    this.#serviceTier = tierOf(response.service_tier) ?? this.#serviceTier
    this.#finalBytes = list(response.output).reduce<number>((bytes, item) => bytes + itemBytes(record(item)), 0)
    const tokens = tokensOf(response.usage, this.#surprises)
    if (tokens !== undefined) this.#usage = plus(tokens, toolsOf(response, this.#surprises))
  }
}

const isOfInterest = (type: string): boolean =>
  type.endsWith(".delta") || withResponse.has(type) || Object.hasOwn(doneFields, type)

const itemBytes = (item: JsonObject): number =>
  textBytes(item.content) +
  textBytes(item.summary) +
  textBytes(item.arguments) +
  (item.type === "custom_tool_call" ? textBytes(item.input) : 0) +
  textBytes(item.code)

/** Built-in tools are billed beside the token counts: searches by number, generated images by tokens. */
const toolsOf = (response: JsonObject, surprises: Surprises): Usage => {
  const images = record(record(response.tool_usage).image_gen)
  return compact({
    web_search: searchesOf(response, surprises),
    input: count(images.input_tokens, surprises) ?? 0,
    image_output: count(images.output_tokens, surprises) ?? 0,
  })
}

/** The vendor's own number (xAI has one under another name), else the searches among the items: opening a page is none. */
const searchesOf = (response: JsonObject, surprises: Surprises): number => {
  const told = count(record(record(response.tool_usage).web_search).num_requests, surprises)
  if (told !== undefined) return told
  const calls = record(record(response.usage).server_side_tool_usage_details)
  const web = count(calls.web_search_calls, surprises)
  if (web !== undefined) return web + (count(calls.x_search_calls, surprises) ?? 0)
  return list(response.output).map(record).filter(isSearch).length
}

const isSearch = (item: JsonObject): boolean => item.type === "web_search_call" && record(item.action).type === "search"

/** A refused call says `created` and `in_progress` before its `error`, and opened items hold nothing yet. */
const beforeContent: ReadonlySet<string> = new Set([
  "response.created",
  "response.queued",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.reasoning_summary_part.added",
  "keepalive",
])

export const responsesSign = (event: StreamEvent): EventSign => {
  if (event.type !== undefined && beforeContent.has(event.type)) return { sign: "neutral" }
  const parsed = record(parse(event.data))
  const type = event.type ?? text(parsed.type) ?? ""
  if (beforeContent.has(type)) return { sign: "neutral" }
  const failed = type === "error" || type === "response.failed" || (type === "" && parsed.error !== undefined)
  return failed ? { sign: "fault", fault: eventFault(parsed) } : { sign: "content" }
}
