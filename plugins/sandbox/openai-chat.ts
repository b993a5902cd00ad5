/** `POST /v1/chat/completions`. */

import type { JsonObject } from "../../core/index.ts"
import { type Answer, answerTo, type Prompt, piecesOf, slicesOf } from "./answer.ts"
import { guardVerdict, isGuardModel } from "./guard-model.ts"
import { isSet, record, records, text, textOf, texts } from "./json.ts"
import {
  alwaysReasons,
  conversationOf,
  invalid,
  isOwnModel,
  openai,
  refusesEffortWithTools,
  toolChoiceOf,
} from "./openai.ts"
import { dataEvent } from "./sse.ts"
import { inputTokens } from "./tokens.ts"
import { type Ask, limitOf, modelOf, type Wire } from "./wire.ts"

export const openaiChat: Wire = {
  method: "POST",
  path: /\/chat\/completions$/,
  manner: openai,
  answer(ask) {
    const { body } = ask
    const call = read(ask)
    return body.stream === true ? { stream: chunks(call), type: "text/event-stream" } : { whole: completion(call) }
  },
}

/** Everything that both forms of the answer are written from. */
interface ChatCall {
  readonly ask: Ask
  readonly model: string
  readonly id: string
  readonly answer: Answer
  readonly choices: number
  readonly callId: string
  readonly usage: JsonObject
}

const read = (ask: Ask): ChatCall => {
  const { body } = ask
  const model = modelOf(body.model)
  check(model, body)
  const prompt = promptOf(model, body)
  const isGuard = isGuardModel(model)
  const answer = answerTo(isGuard ? { ...prompt, question: `Say ${guardVerdict(prompt.question)}` } : prompt)
  const choices = Math.min(limitOf(body.n ?? 1, "n"), 8)
  const id = ask.id("chatcmpl-")
  return { ask, model, id, answer, choices, callId: ask.id("call_"), usage: usageOf(body, answer, choices) }
}

const check = (model: string, body: JsonObject): void => {
  if (records(body.messages).length === 0) throw invalid("messages: expected at least one message", "messages")
  if (isSet(body.stream_options) && body.stream !== true) {
    throw invalid("stream_options is only allowed when stream is enabled", "stream_options")
  }
  if (alwaysReasons(model)) checkReasoning(body)
  if (refusesEffortWithTools(model) && hasFunctions(body) && isSet(body.reasoning_effort)) {
    if (body.reasoning_effort !== "none") {
      throw invalid(`${model} takes no function tools together with reasoning_effort here`, "reasoning_effort")
    }
  }
  const unknown = isOwnModel(model) ? Object.keys(body).find(key => foreign.has(key)) : undefined
  if (unknown !== undefined) throw invalid(`Unknown parameter: '${unknown}'.`, unknown, "unknown_parameter")
}

/** Fields of other vendors and of gateways, which this vendor refuses. */
const foreign: ReadonlySet<string> = new Set(["thinking_budget", "thinking_level", "thinking", "top_k", "max_output"])

const checkReasoning = (body: JsonObject): void => {
  if (isSet(body.max_tokens)) {
    throw invalid("max_tokens is not supported: use max_completion_tokens", "max_tokens", "unsupported_parameter")
  }
  if (isSet(body.temperature) && body.temperature !== 1) {
    throw invalid("temperature: only the default (1) is supported", "temperature", "unsupported_value")
  }
}

const hasFunctions = (body: JsonObject): boolean => records(body.tools).some(tool => tool.type === "function")

const promptOf = (model: string, body: JsonObject): Prompt => ({
  ...conversationOf(body.messages, message => (message.role === "tool" ? textOf(message.content) : undefined)),
  tools: records(body.tools).flatMap(({ function: tool }) => {
    const { name, parameters } = record(tool)
    return typeof name === "string" ? [{ name, parameters: record(parameters) }] : []
  }),
  toolChoice: toolChoiceOf(body.tool_choice),
  format: formatOf(record(body.response_format)),
  maxTokens: limitOf(body.max_completion_tokens ?? body.max_tokens, "max_completion_tokens"),
  stop: texts(body.stop),
  thinks: body.reasoning_effort !== "none" && (isSet(body.reasoning_effort) || alwaysReasons(model)),
})

const formatOf = (format: JsonObject): JsonObject | undefined => {
  if (format.type === "json_schema") return record(record(format.json_schema).schema)
  return format.type === "json_object" ? { properties: { answer: { type: "string" } } } : undefined
}

/** Prompt tokens include cached ones, completion tokens the thoughts; each of `n` answers is billed. */
const usageOf = (body: JsonObject, answer: Answer, choices: number): JsonObject => {
  const prompt = inputTokens([body.messages, body.tools])
  const completion = answer.outputTokens * choices
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: answer.thoughtTokens * choices,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

const finish = ({ answer }: ChatCall): string =>
  answer.end === "call" ? "tool_calls" : answer.end === "length" ? "length" : "stop"

/** OpenAI keeps the thoughts of its models to itself; the hosts that borrowed the protocol show them. */
const shownThought = ({ model, answer }: ChatCall): string => (isOwnModel(model) ? "" : answer.thought)

const head = ({ ask, id, model }: ChatCall, object: string): JsonObject => ({
  id,
  object,
  created: ask.now,
  model,
  service_tier: text(ask.body.service_tier)?.replace("auto", "default") ?? "default",
  system_fingerprint: "fp_sandbox",
})

const completion = (call: ChatCall): JsonObject => ({
  ...head(call, "chat.completion"),
  choices: Array.from({ length: call.choices }, (_, index) => ({
    index,
    message: messageOf(call, index),
    logprobs: null,
    finish_reason: finish(call),
  })),
  usage: call.usage,
})

const messageOf = (call: ChatCall, index: number): JsonObject => {
  const { answer } = call
  const thought = shownThought(call)
  return {
    role: "assistant",
    content: answer.call === undefined ? answer.text : null,
    ...(thought === "" ? {} : { reasoning_content: thought }),
    ...(answer.call === undefined ? {} : { tool_calls: [toolCall(call, index)] }),
    refusal: null,
    annotations: [],
  }
}

const toolCall = ({ answer, callId }: ChatCall, choice: number): JsonObject => ({
  id: choice === 0 ? callId : `${callId}${choice}`,
  type: "function",
  function: { name: answer.call?.name, arguments: JSON.stringify(answer.call?.arguments) },
})

/** First the role, then text or a call in pieces, the finish, the usage when asked for, and the end mark. */
function* chunks(call: ChatCall): Generator<string> {
  const options = record(call.ask.body.stream_options)
  const includeUsage = options.include_usage === true
  const padded = isOwnModel(call.model) && options.include_obfuscation !== false
  const base = head(call, "chat.completion.chunk")
  const write = (choices: readonly JsonObject[], usage: JsonObject | null): string =>
    dataEvent({
      ...base,
      choices,
      ...(includeUsage ? { usage } : {}),
      ...(padded ? { obfuscation: call.ask.id("").slice(0, 2 + (choices.length % 8)) } : {}),
    })
  for (let index = 0; index < call.choices; index += 1) {
    for (const delta of deltas(call, index)) yield write([{ index, delta, logprobs: null, finish_reason: null }], null)
    yield write([{ index, delta: {}, logprobs: null, finish_reason: finish(call) }], null)
  }
  if (includeUsage) yield write([], call.usage)
  yield "data: [DONE]\n\n"
}

function* deltas(call: ChatCall, choice: number): Generator<JsonObject> {
  const { answer } = call
  yield { role: "assistant", content: answer.call === undefined ? "" : null, refusal: null }
  for (const piece of piecesOf(shownThought(call))) yield { reasoning_content: piece }
  if (answer.call !== undefined) {
    const whole = toolCall(call, choice)
    yield { tool_calls: [{ index: 0, ...whole, function: { name: answer.call.name, arguments: "" } }] }
    for (const piece of slicesOf(JSON.stringify(answer.call.arguments), 8)) {
      yield { tool_calls: [{ index: 0, function: { arguments: piece } }] }
    }
  }
  for (const piece of piecesOf(answer.text)) yield { content: piece }
}
