/** The hub's answers as the messages family writes them: whole, or event by event. */

import { type ChatAnswer, GatewayError, isObject, type JsonObject } from "../../core/index.ts"

export interface AnswerHead {
  readonly id: string
  readonly model: string
  /** Told at the start of a stream, before any vendor counted. */
  readonly estimatedInput: number
}

const reasons: Readonly<Record<string, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  function_call: "tool_use",
  content_filter: "refusal",
}

/** A turn with calls ends in them, whatever the vendor said: clients answer calls by this word alone. */
const stopReason = (finish: unknown, hasCalls: boolean): string =>
  hasCalls ? "tool_use" : (reasons[String(finish)] ?? "end_turn")

/** The hub's prompt tokens include the cached ones, this family's do not. */
const usageOf = (usage: unknown) => {
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = isObject(usage) ? usage : {}
  const details = isObject(prompt_tokens_details) ? prompt_tokens_details : {}
  const read = count(details.cached_tokens)
  const written = count(details.cache_write_tokens)
  return {
    input_tokens: Math.max(0, count(prompt_tokens) - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: count(completion_tokens),
  }
}

const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0)
const filled = (value: unknown): value is string => typeof value === "string" && value !== ""
const listOf = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

const cutOff = (): GatewayError =>
  new GatewayError("upstream_unavailable", "The model's vendor ended the answer too early.")

// ---- whole ----

/** @throws GatewayError `upstream_unavailable` (502): an answer without a choice */
export const wholeMessage = (answer: ChatAnswer, { id, model }: Omit<AnswerHead, "estimatedInput">): JsonObject => {
  const choice = listOf(answer.choices)[0]
  if (!isObject(choice?.message)) throw cutOff()
  const { content, reasoning_content, refusal, tool_calls } = choice.message
  const calls = listOf(tool_calls)
  const text = filled(content) ? content : refusal
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [
      ...(filled(reasoning_content) ? [{ type: "thinking", thinking: reasoning_content, signature: "" }] : []),
      ...(filled(text) ? [{ type: "text", text }] : []),
      ...calls.map(toolUse),
    ],
    stop_reason: stopReason(choice.finish_reason, calls.length > 0),
    stop_sequence: null,
    usage: usageOf(answer.usage),
  }
}

const toolUse = (call: JsonObject): JsonObject => {
  const { name, arguments: text } = isObject(call.function) ? call.function : {}
  return { type: "tool_use", id: call.id, name, input: inputOf(text) }
}

/** Models may write broken arguments: they are handed over as they are rather than lost. */
const inputOf = (text: unknown): JsonObject => {
  if (!filled(text)) return {}
  try {
    const input: unknown = JSON.parse(text)
    return isObject(input) ? input : { _raw: text }
  } catch {
    return { _raw: text }
  }
}

// ---- stream ----

interface Tool {
  id: string
  name: string
  arguments: string
}

const written = (event: JsonObject): string => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`

/**
 * One block is open at a time, with indexes from 0. The first tool streams as it comes; whatever else comes from then on
 * waits for the end, because vendors may interleave it and a closed block takes nothing more.
 */
export class MessageEvents {
  readonly #head: AnswerHead
  #started = false
  #index = -1
  #open: "text" | "thinking" | "tool" | undefined
  readonly #tools = new Map<number, Tool>()
  #live: number | undefined
  /** Text and thoughts that came after the first tool began. */
  readonly #late: (readonly [kind: "text" | "thinking", delta: JsonObject])[] = []
  #finish: unknown
  #usage: unknown

  constructor(head: AnswerHead) {
    this.#head = head
  }

  push(chunk: ChatAnswer): string {
    if (isObject(chunk.usage)) this.#usage = chunk.usage // the last one wins
    const choice = listOf(chunk.choices)[0]
    if (choice === undefined) return this.#start()
    if (filled(choice.finish_reason)) this.#finish = choice.finish_reason
    const { content, refusal, reasoning_content, tool_calls } = isObject(choice.delta) ? choice.delta : {}
    const text = filled(content) ? content : refusal
    return [
      this.#start(),
      filled(reasoning_content) ? this.#delta("thinking", { type: "thinking_delta", thinking: reasoning_content }) : "",
      filled(text) ? this.#delta("text", { type: "text_delta", text }) : "",
      ...listOf(tool_calls).map(call => this.#tool(call)),
    ].join("")
  }

  /** @throws GatewayError `upstream_unavailable` (502): no reason to have finished came */
  end(): string {
    if (this.#finish === undefined) throw cutOff()
    const waiting = [...this.#tools].filter(([index]) => index !== this.#live).sort(([a], [b]) => a - b)
    const closed = this.#close()
    const late = this.#late.map(([kind, delta]) => this.#delta(kind, delta)).join("")
    const rest = waiting.map(([index, tool]) => this.#openTool(index, tool) + this.#json(tool.arguments)).join("")
    const delta = { stop_reason: stopReason(this.#finish, this.#tools.size > 0), stop_sequence: null }
    return (
      closed +
      late +
      rest +
      this.#close() +
      written({ type: "message_delta", delta, usage: usageOf(this.#usage) }) +
      written({ type: "message_stop" })
    )
  }

  #start(): string {
    if (this.#started) return ""
    this.#started = true
    const { id, model, estimatedInput } = this.#head
    const usage = { ...usageOf(undefined), input_tokens: estimatedInput }
    const message = {
      id,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    }
    return written({ type: "message_start", message })
  }

  #delta(kind: "text" | "thinking", delta: JsonObject): string {
    if (this.#open === "tool") {
      this.#late.push([kind, delta])
      return ""
    }
    const empty = kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" }
    const opened = this.#open === kind ? "" : this.#openBlock(kind, empty)
    return opened + written({ type: "content_block_delta", index: this.#index, delta })
  }

  #tool(call: JsonObject): string {
    const index = typeof call.index === "number" ? call.index : 0
    const { name, arguments: text } = isObject(call.function) ? call.function : {}
    const tool = this.#tools.get(index) ?? { id: "", name: "", arguments: "" }
    this.#tools.set(index, tool)
    if (filled(call.id)) tool.id = call.id
    if (filled(name) && name !== tool.name) tool.name += name // split over chunks, or repeated in each
    const fragment = filled(text) ? text : ""
    if (this.#live === index) return this.#json(fragment)
    tool.arguments += fragment
    if (this.#live !== undefined || tool.name === "" || fragment === "") return ""
    this.#live = index
    return this.#openTool(index, tool) + this.#json(tool.arguments)
  }

  #openTool(index: number, { id, name }: Tool): string {
    return this.#openBlock("tool", { type: "tool_use", id: id || `${this.#head.id}_${index}`, name, input: {} })
  }

  #json(partial_json: string): string {
    if (partial_json === "") return ""
    return written({
      type: "content_block_delta",
      index: this.#index,
      delta: { type: "input_json_delta", partial_json },
    })
  }

  #openBlock(kind: "text" | "thinking" | "tool", content_block: JsonObject): string {
    const closed = this.#close()
    this.#open = kind
    this.#index += 1
    return closed + written({ type: "content_block_start", index: this.#index, content_block })
  }

  #close(): string {
    if (this.#open === undefined) return ""
    this.#open = undefined
    return written({ type: "content_block_stop", index: this.#index })
  }
}
