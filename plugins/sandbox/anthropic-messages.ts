/** `POST /v1/messages` and `POST /v1/messages/count_tokens`. */

import type { JsonObject } from "../../core/index.ts"
import { type Answer, answerTo, type Prompt, piecesOf, slicesOf } from "./answer.ts"
import { anthropic } from "./anthropic.ts"
import { cacheCounts } from "./anthropic-cache.ts"
import { record, records, textOf, texts } from "./json.ts"
import { namedEvent } from "./sse.ts"
import { inputTokens } from "./tokens.ts"
import { type Ask, limitOf, modelOf, Refusal, type Wire } from "./wire.ts"

export const anthropicMessages: Wire = {
  method: "POST",
  path: /\/messages$/,
  manner: anthropic,
  answer(ask) {
    const made = read(ask)
    return ask.body.stream === true ? { stream: events(made), type: "text/event-stream" } : { whole: message(made) }
  },
}

export const anthropicCount: Wire = {
  method: "POST",
  path: /\/messages\/count_tokens$/,
  manner: anthropic,
  answer({ headers, body }) {
    check(headers["anthropic-version"], body)
    return { whole: { input_tokens: inputOf(body) } }
  },
}

interface Made {
  readonly id: string
  readonly model: string
  readonly answer: Answer
  readonly blocks: readonly Block[]
  readonly usage: JsonObject
}

/** A content block: whole, as it begins in a stream, and the deltas between. */
interface Block {
  readonly whole: JsonObject
  readonly begun: JsonObject
  readonly deltas: readonly JsonObject[]
}

const invalid = (message: string): Refusal => new Refusal("invalid", message)

/** The version that takes no sampling parameters, whatever their values are. */
const withoutSampling = "2026-10-21"

const check = (version: unknown, body: JsonObject): string => {
  if (typeof version !== "string") throw invalid("anthropic-version: header is required")
  const model = body.model
  if (typeof model === "string" && model.includes("does-not-exist")) throw new Refusal("not_found", `model: ${model}`)
  if (records(body.messages).length === 0) throw invalid("messages: at least one message is required")
  const sampling = ["temperature", "top_p", "top_k"].find(name => Object.hasOwn(body, name))
  if (version >= withoutSampling && sampling !== undefined) throw invalid(`${sampling}: Extra inputs are not permitted`)
  return modelOf(model)
}

const read = (ask: Ask): Made => {
  const { headers, body } = ask
  const model = check(headers["anthropic-version"], body)
  const answer = answerTo(promptOf(body))
  const usage = usageOf(ask, answer)
  return { id: ask.id("msg_01"), model, answer, blocks: blocksOf(ask, answer), usage }
}

const thinkingBudgetMin = 1024

const promptOf = (body: JsonObject): Prompt => {
  if (body.max_tokens === undefined) throw invalid("max_tokens: Field required")
  const thinking = record(body.thinking)
  const maxTokens = body.max_tokens === 0 ? 0 : limitOf(body.max_tokens, "max_tokens")
  if (thinking.type === "enabled") checkBudget(thinking.budget_tokens, maxTokens)
  return {
    ...conversationOf(body),
    tools: records(body.tools).flatMap(({ name, input_schema }) =>
      typeof name === "string" && input_schema !== undefined ? [{ name, parameters: record(input_schema) }] : [],
    ),
    toolChoice: toolChoiceOf(record(body.tool_choice)),
    format: record(record(body.output_config).format).type === "json_schema" ? formatOf(body) : undefined,
    maxTokens,
    stop: texts(body.stop_sequences),
    thinks: thinking.type === "enabled" || thinking.type === "adaptive",
  }
}

const checkBudget = (budget: unknown, maxTokens: number): void => {
  if (!Number.isInteger(budget)) throw invalid("thinking.budget_tokens: Input should be a valid integer")
  if ((budget as number) < thinkingBudgetMin) throw invalid("thinking.budget_tokens: at least 1024")
  if ((budget as number) >= maxTokens) throw invalid("max_tokens must be greater than thinking.budget_tokens")
}

const speeds: readonly unknown[] = ["standard", "fast"]

/** The speed that was asked for, told back in the usage; nothing when none was. */
const speedOf = ({ speed }: JsonObject): JsonObject => {
  if (speed === undefined || speed === null) return {}
  if (!speeds.includes(speed)) throw invalid("speed: Input should be 'standard' or 'fast'")
  return { speed }
}

const formatOf = (body: JsonObject): JsonObject => record(record(record(body.output_config).format).schema)

const toolChoiceOf = ({ type, name }: JsonObject): Prompt["toolChoice"] => {
  if (type === "none") return "none"
  return type === "tool" && typeof name === "string" ? { name } : "free"
}

/** Tool results stand in a user message, before its text. */
const conversationOf = ({ messages }: JsonObject): Pick<Prompt, "question" | "toolResult"> => {
  const users = records(messages).filter(one => one.role === "user")
  const result = records(users.at(-1)?.content).find(block => block.type === "tool_result")
  const question = users.map(user => textOf(user.content)).findLast(said => said !== "") ?? ""
  return { question, toolResult: result === undefined ? undefined : textOf(result.content) }
}

const inputOf = ({ system, messages, tools }: JsonObject): number => inputTokens([system, messages, tools])

/** Input tokens leave out what the cache holds; output tokens include the thoughts. */
const usageOf = (ask: Ask, answer: Answer): JsonObject => {
  const cache = cacheCounts(ask)
  return {
    input_tokens: Math.max(0, inputOf(ask.body) - cache.read - cache.written5m - cache.written1h),
    cache_creation_input_tokens: cache.written5m + cache.written1h,
    cache_read_input_tokens: cache.read,
    cache_creation: { ephemeral_5m_input_tokens: cache.written5m, ephemeral_1h_input_tokens: cache.written1h },
    output_tokens: answer.outputTokens,
    ...(answer.thought === "" ? {} : { output_tokens_details: { thinking_tokens: answer.thoughtTokens } }),
    service_tier: "standard",
    ...speedOf(ask.body),
  }
}

const blocksOf = (ask: Ask, answer: Answer): readonly Block[] => {
  const thinking = answer.thought === "" ? [] : [thinkingBlock(ask, answer.thought)]
  if (answer.call !== undefined) return [...thinking, toolBlock(ask, answer.call)]
  return answer.text === "" ? thinking : [...thinking, textBlock(answer.text)]
}

const thinkingBlock = (ask: Ask, thought: string): Block => {
  const signature = Buffer.from(ask.id("sandbox-signature-")).toString("base64")
  const shown = record(ask.body.thinking).display === "omitted" ? "" : thought
  const thoughts = piecesOf(shown).map(piece => ({ type: "thinking_delta", thinking: piece }))
  return {
    whole: { type: "thinking", thinking: shown, signature },
    begun: { type: "thinking", thinking: "", signature: "" },
    deltas: [...thoughts, { type: "signature_delta", signature }],
  }
}

/** Without arguments there is still one delta, an empty one. */
const toolBlock = (ask: Ask, { name, arguments: input }: NonNullable<Answer["call"]>): Block => {
  const whole = { type: "tool_use", id: ask.id("toolu_01"), name, input }
  const written = Object.keys(input).length === 0 ? "" : JSON.stringify(input)
  return {
    whole,
    begun: { ...whole, input: {} },
    deltas: ["", ...slicesOf(written, 8)].map(piece => ({ type: "input_json_delta", partial_json: piece })),
  }
}

const textBlock = (said: string): Block => ({
  whole: { type: "text", text: said },
  begun: { type: "text", text: "" },
  deltas: piecesOf(said).map(piece => ({ type: "text_delta", text: piece })),
})

const stopReasons = { done: "end_turn", stopped: "stop_sequence", length: "max_tokens", call: "tool_use" } as const

const message = ({ id, model, answer, blocks, usage }: Made): JsonObject => ({
  id,
  type: "message",
  role: "assistant",
  model,
  content: blocks.map(block => block.whole),
  stop_reason: stopReasons[answer.end],
  stop_sequence: answer.stoppedBy ?? null,
  usage,
})

function* events(made: Made): Generator<string> {
  const begun = { ...message(made), content: [], stop_reason: null, stop_sequence: null }
  yield namedEvent({ type: "message_start", message: { ...begun, usage: { ...made.usage, output_tokens: 1 } } })
  for (const [index, block] of made.blocks.entries()) {
    yield namedEvent({ type: "content_block_start", index, content_block: block.begun })
    if (index === 0) yield namedEvent({ type: "ping" })
    for (const delta of block.deltas) yield namedEvent({ type: "content_block_delta", index, delta })
    yield namedEvent({ type: "content_block_stop", index })
  }
  const delta = { stop_reason: stopReasons[made.answer.end], stop_sequence: made.answer.stoppedBy ?? null }
  yield namedEvent({ type: "message_delta", delta, usage: cumulative(made.usage) })
  yield namedEvent({ type: "message_stop" })
}

/** The last event repeats the counts, without their details. */
const cumulative = ({
  cache_creation: _details,
  service_tier: _tier,
  speed: _speed,
  ...counts
}: JsonObject): JsonObject => counts
