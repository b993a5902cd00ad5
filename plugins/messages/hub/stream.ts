/** Chunks of a chat completion as events of the Messages wire: a state machine over the chunks. */

import {
  type ChatAnswer,
  endedEarly,
  failedMidway,
  isObject,
  isSet,
  type JsonObject,
  list,
  record,
  text,
} from "../../../core/index.ts"
import { bytesOf, messageUsage, reasoningOf, stopReason, stopSequence, usageOf, wordsOf } from "./answer.ts"
import { type Block, BlockQueue, type MessageEvent } from "./blocks.ts"
import { ToolCalls } from "./calls.ts"
import { Stops } from "./stops.ts"
import type { AnswerHead } from "./whole.ts"

/** Clients drop events without their name in a line of its own. */
const written = (events: readonly MessageEvent[]): string =>
  events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")

export class MessageEvents {
  readonly #head: AnswerHead
  readonly #blocks = new BlockQueue()
  readonly #calls = new ToolCalls()
  readonly #stops: Stops
  #started = false
  #finish: string | undefined
  #refused = false
  #usage: JsonObject = {}
  #outputBytes = 0

  constructor(head: AnswerHead) {
    this.#head = head
    this.#stops = new Stops(head.stops)
  }

  /** @throws GatewayError `upstream_unavailable` (502) when the chunk tells an error */
  push(chunk: ChatAnswer): string {
    if (isSet(chunk.error)) throw failedMidway()
    // Some vendors count twice, and know the cache only the second time.
    if (isObject(chunk.usage)) this.#usage = chunk.usage
    const choice = record(list(chunk.choices)[0])
    const delta = record(choice.delta)
    this.#outputBytes += bytesOf(delta)
    this.#read(delta)
    this.#finish = text(choice.finish_reason) ?? this.#finish
    return written([...this.#start(), ...this.#blocks.take()])
  }

  /** @throws GatewayError `upstream_unavailable` (502): an answer that was cut is not passed off as whole */
  end(): string {
    if (this.#finish === undefined) throw endedEarly()
    this.#say(this.#stops.flush())
    const { matched } = this.#stops
    const seen = { matched, hasCalls: this.#calls.count > 0, hasRefusal: this.#refused }
    const stop_reason = stopReason(this.#finish, seen)
    const usage = usageOf(this.#usage, this.#head.estimatedInput, this.#outputBytes)
    return written([
      ...this.#start(),
      ...this.#blocks.end(),
      {
        type: "message_delta",
        delta: { stop_reason, stop_sequence: stop_reason === stopSequence ? matched : null },
        usage,
      },
      { type: "message_stop" },
    ])
  }

  #start(): readonly MessageEvent[] {
    if (this.#started) return []
    this.#started = true
    const { id, model, estimatedInput } = this.#head
    const usage = messageUsage({ prompt_tokens: estimatedInput })
    const head = { id, type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null }
    return [{ type: "message_start", message: { ...head, usage } }]
  }

  /** One chunk may hold thoughts, text and calls: in this order. */
  #read(delta: JsonObject): void {
    if (this.#stops.matched !== undefined) return
    const reasoning = reasoningOf(delta)
    if (reasoning !== undefined) this.#blocks.add("thinking", reasoning)
    const refusal = text(delta.refusal)
    if (refusal !== undefined) this.#refused = true
    this.#say(this.#stops.push(wordsOf(delta.content) ?? "") + (refusal ?? ""))
    const calls = this.#stops.matched === undefined ? list(delta.tool_calls) : []
    if (calls.length > 0) this.#say(this.#stops.flush())
    for (const call of calls) this.#calls.read(record(call), this.#begin)
  }

  #say(words: string): void {
    if (words !== "") this.#blocks.add("text", words)
  }

  readonly #begin = (count: number): Block => {
    const block = this.#blocks.begin("tool_use")
    block.id = `toolu_${this.#head.id}_${count}`
    return block
  }
}
