/** Meters chat completions (and the legacy completions) of OpenAI and of the vendors that speak its wire. */

import type { EventSign, StreamEvent, Usage, UsageReader, UsageReport } from "../../../core/index.ts"
import { isEmpty, Surprises } from "../common/counts.ts"
import { isDone, type JsonObject, list, parse, record, text, textBytes } from "../common/json.ts"
import { eventFault, tellsError } from "./faults.ts"
import { tierOf, tokensOf } from "./usage.ts"

export class ChatMeter implements UsageReader {
  readonly #surprises = new Surprises()
  #usage: Usage | undefined
  #outputBytes = 0
  #serviceTier: string | undefined

  whole(body: Buffer): void {
    this.#read(body)
  }

  event(event: StreamEvent): void {
    if (!isDone(event.data)) this.#read(event.data)
  }

  report(): UsageReport {
    return {
      outputBytes: this.#outputBytes,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...(this.#serviceTier === undefined ? {} : { serviceTier: this.#serviceTier }),
    }
  }

  get surprises(): readonly string[] {
    return this.#surprises.all
  }

  #read(data: Buffer): void {
    const parsed = parse(data)
    if (parsed === undefined) this.#surprises.note("bad_json")
    const chunk = record(parsed)
    this.#outputBytes += saidBytes(chunk)
    this.#serviceTier = tierOf(chunk.service_tier) ?? this.#serviceTier
    // Groq wraps its usage a second time; nearly every other chunk has none.
    const usage = chunk.usage ?? record(chunk.x_groq).usage
    if (usage !== undefined && usage !== null) this.#take(tokensOf(usage, this.#surprises))
  }

  /** Cumulative in some streams, repeated with more detail in others: the last one wins, unless it tells nothing. */
  #take(usage: Usage | undefined): void {
    if (usage !== undefined && !(isEmpty(usage) && this.#usage !== undefined)) this.#usage = usage
  }
}

/** UTF-8 bytes of all that an answer, or a chunk of one, says. */
export const saidBytes = ({ choices }: JsonObject): number =>
  list(choices).reduce<number>((bytes, choice) => bytes + choiceBytes(record(choice)), 0)

/** A stream's `delta` comes before a `message`: Perplexity sends both, the second one cumulative. */
const choiceBytes = (choice: JsonObject): number =>
  messageBytes(record(choice.delta ?? choice.message)) + textBytes(choice.text)

const messageBytes = (message: JsonObject): number => {
  let bytes = textBytes(message.content)
  if (message.refusal) bytes += textBytes(message.refusal)
  const reasoning = message.reasoning_content ?? message.reasoning
  if (reasoning) bytes += textBytes(reasoning)
  for (const call of list(message.tool_calls)) bytes += toolBytes(record(call))
  if (message.function_call) bytes += textBytes(record(message.function_call).arguments)
  if (message.audio) bytes += textBytes(record(message.audio).transcript)
  return bytes
}

const toolBytes = (call: JsonObject): number =>
  textBytes(record(call.function).arguments) + textBytes(record(call.custom).input)

/** The role alone, an empty first text, prompt filter results (Azure): nothing yet. */
export const chatSign = (event: StreamEvent): EventSign => {
  const parsed = isDone(event.data) ? undefined : parse(event.data)
  const chunk = record(Array.isArray(parsed) ? parsed[0] : parsed)
  if (tellsError(chunk)) return { sign: "fault", fault: eventFault(chunk) }
  if (chunk !== parsed) return { sign: "content" }
  const isContent = list(chunk.choices).some(choice => hasContent(record(choice)))
  return { sign: isContent || (chunk.usage !== undefined && chunk.usage !== null) ? "content" : "neutral" }
}

const hasContent = (choice: JsonObject): boolean =>
  choiceBytes(choice) > 0 ||
  text(choice.finish_reason) !== undefined ||
  list(record(choice.delta).tool_calls).length > 0 ||
  record(choice.delta).audio !== undefined
