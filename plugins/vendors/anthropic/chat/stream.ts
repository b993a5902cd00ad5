/** The stream of the Messages wire as chunks of a chat completion: a state machine over its events. */

import {
  type ChatAnswer,
  type ChatContext,
  type ChatStream,
  endedEarly,
  type StreamEvent,
  unreadable,
} from "../../../../core/index.ts"
import { headOf, madeCallId } from "../../common/answers.ts"
import { faultError } from "../../common/faults.ts"
import { type JsonObject, parseExact, record, text } from "../../common/json.ts"
import { eventFault } from "../faults.ts"
import { merge } from "../usage.ts"
import { chatUsage, type FinishReason, finishReason, refusalOf, toolName } from "./answer.ts"
import type { ChatMemo } from "./memo.ts"
import { ThinkingLog } from "./thinking-log.ts"

/** A block that is open, by what its deltas become. */
type Open =
  | { readonly as: "text" | "thinking" | "nothing" }
  | { readonly as: "call"; readonly index: number; readonly input: JsonObject; started: boolean }
  | { readonly as: "answer"; readonly input: JsonObject; started: boolean }

const events: ReadonlySet<string> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "error",
])

const none: readonly ChatAnswer[] = []

export class MessagesStream implements ChatStream {
  readonly #context: ChatContext
  readonly #memo: ChatMemo
  readonly #thinking: ThinkingLog
  readonly #head: ReturnType<typeof headOf>
  readonly #open = new Map<unknown, Open>()
  #started = false
  #finished = false
  #calls = 0
  #usage: JsonObject = {}
  #stop: JsonObject = {}

  constructor(context: ChatContext, memo: ChatMemo) {
    this.#context = context
    this.#memo = memo
    this.#thinking = new ThinkingLog(context)
    this.#head = headOf(context, "chat.completion.chunk")
  }

  push({ type, data }: StreamEvent): readonly ChatAnswer[] {
    if (type !== undefined && !events.has(type)) return none
    const parsed = parseExact(data, ["input"])
    // Passing over an event that is torn would pass off an answer with a hole as whole.
    if (parsed === undefined && type !== undefined) throw unreadable()
    const event = record(parsed)
    switch (type ?? event.type) {
      case "message_start":
        return this.#start(record(event.message))
      case "content_block_start":
        return this.#openBlock(event.index, record(event.content_block))
      case "content_block_delta":
        return this.#delta(event.index, record(event.delta))
      case "content_block_stop":
        return this.#closeBlock(event.index)
      case "message_delta":
        this.#usage = merge(this.#usage, record(event.usage))
        this.#stop = merge(this.#stop, record(event.delta))
        return none
      case "message_stop":
        return this.#finish()
      case "error":
        throw faultError(eventFault(event))
      default:
        return none
    }
  }

  /** @throws GatewayError `upstream_unavailable` (502): an answer without its end is not passed off as whole */
  end(): readonly ChatAnswer[] {
    if (!this.#finished) throw endedEarly()
    return none
  }

  /** Some proxies send it twice: the answer begins once, the counts are the later ones. */
  #start(message: JsonObject): readonly ChatAnswer[] {
    this.#usage = merge(this.#usage, record(message.usage))
    if (this.#started) return none
    this.#started = true
    return [this.#chunk({ role: "assistant", content: "" })]
  }

  #openBlock(index: unknown, block: JsonObject): readonly ChatAnswer[] {
    this.#thinking.block(index, block)
    if (block.type === "tool_use") return this.#openTool(index, block)
    const as = block.type === "text" || block.type === "thinking" ? block.type : "nothing"
    this.#open.set(index, { as })
    if (as === "text") return this.#content(block.text)
    return as === "thinking" ? this.#reasoning(block.thinking) : none
  }

  #openTool(at: unknown, { id, name, input }: JsonObject): readonly ChatAnswer[] {
    const initial = record(input)
    if (name === this.#memo.answerTool) {
      this.#open.set(at, { as: "answer", input: initial, started: false })
      return none
    }
    const index = this.#calls++ // counts calls, not blocks: text and thinking have block indexes of their own
    this.#open.set(at, { as: "call", index, input: initial, started: false })
    const callId = text(id) ?? madeCallId(this.#context, index)
    this.#thinking.call(callId)
    const told = { name: toolName(name, this.#memo.names), arguments: "" }
    return [this.#chunk({ tool_calls: [{ index, id: callId, type: "function", function: told }] })]
  }

  #delta(index: unknown, delta: JsonObject): readonly ChatAnswer[] {
    switch (delta.type) {
      case "text_delta":
        return this.#content(delta.text)
      case "thinking_delta":
        this.#thinking.delta(index, delta)
        return this.#reasoning(delta.thinking)
      case "signature_delta":
        this.#thinking.delta(index, delta)
        return none
      case "input_json_delta":
        return this.#input(this.#open.get(index), delta.partial_json)
      default:
        return none
    }
  }

  #content(value: unknown): readonly ChatAnswer[] {
    const content = text(value)
    return content === undefined ? none : [this.#chunk({ content })]
  }

  #reasoning(value: unknown): readonly ChatAnswer[] {
    const reasoning = text(value)
    return reasoning === undefined ? none : [this.#chunk({ reasoning_content: reasoning })]
  }

  /** A fragment of a tool's input; the input of the vendor's own tools is no business of the client. */
  #input(open: Open | undefined, value: unknown): readonly ChatAnswer[] {
    const fragment = text(value)
    if (fragment === undefined || (open?.as !== "call" && open?.as !== "answer")) return none
    open.started = true
    if (open.as === "answer") return [this.#chunk({ content: fragment })]
    return [this.#chunk({ tool_calls: [{ index: open.index, function: { arguments: fragment } }] })]
  }

  /** A tool without arguments has no fragment of input: clients want a JSON object all the same. */
  #closeBlock(index: unknown): readonly ChatAnswer[] {
    const open = this.#open.get(index)
    this.#open.delete(index)
    if ((open?.as !== "call" && open?.as !== "answer") || open.started) return none
    return this.#input(open, JSON.stringify(open.input))
  }

  #finish(): readonly ChatAnswer[] {
    if (this.#finished) return none
    this.#finished = true
    const { stop_reason: reason, stop_details: details } = this.#stop
    const refusal = refusalOf(reason, record(details))
    return [
      // Some hosts close no block: a call without input still needs its empty object.
      ...[...this.#open.keys()].flatMap(index => this.#closeBlock(index)),
      ...(refusal === null ? [] : [this.#chunk({ refusal })]),
      this.#chunk({}, finishReason(reason, this.#calls > 0)),
      ...(this.#context.includeUsage ? [{ ...this.#head, choices: [], usage: chatUsage(this.#usage) }] : []),
    ]
  }

  #chunk(delta: JsonObject, finish: FinishReason | null = null): ChatAnswer {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
    return this.#context.includeUsage ? { ...this.#head, choices, usage: null } : { ...this.#head, choices }
  }
}
