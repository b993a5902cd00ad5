/** `POST /v1/responses`. */

import type { JsonObject } from "../../core/index.ts"
import { type Answer, answerTo, type Prompt, piecesOf, slicesOf } from "./answer.ts"
import { isSet, record, records, text, textOf } from "./json.ts"
import { alwaysReasons, conversationOf, invalid, openai, toolChoiceOf } from "./openai.ts"
import { namedEvent } from "./sse.ts"
import { inputTokens } from "./tokens.ts"
import { type Ask, limitOf, modelOf, type Wire } from "./wire.ts"

export const openaiResponses: Wire = {
  method: "POST",
  path: /\/responses$/,
  manner: openai,
  answer(ask) {
    const made = read(ask)
    return ask.body.stream === true
      ? { stream: numbered(events(made)), type: "text/event-stream" }
      : { whole: response(made, "done") }
  },
}

interface Made {
  readonly ask: Ask
  readonly model: string
  readonly id: string
  readonly answer: Answer
  readonly items: readonly Item[]
  readonly usage: JsonObject
}

/** One entry of `output`: how it begins, what is streamed, how it ends. */
interface Item {
  readonly begun: JsonObject
  readonly done: JsonObject
  readonly between: (place: JsonObject) => Iterable<Event>
}

type Event = JsonObject & { readonly type: string }

const read = (ask: Ask): Made => {
  const model = modelOf(ask.body.model)
  const answer = answerTo(promptOf(model, ask.body))
  const made = { ask, model, id: ask.id("resp_"), answer, usage: usageOf(ask.body, answer) }
  return { ...made, items: itemsOf(made) }
}

const outputMin = 16

const promptOf = (model: string, body: JsonObject): Prompt => {
  const { input } = body
  if (typeof input !== "string" && !Array.isArray(input)) throw invalid("input: expected a text or items", "input")
  const maxTokens = limitOf(body.max_output_tokens, "max_output_tokens")
  if (maxTokens < outputMin)
    throw invalid("max_output_tokens: at least 16", "max_output_tokens", "integer_below_min_value")
  const effort = record(body.reasoning).effort
  const talk = typeof input === "string" ? [{ role: "user", content: input }] : input
  return {
    ...conversationOf(talk, item => (item.type === "function_call_output" ? textOf(item.output) : undefined)),
    tools: records(body.tools).flatMap(({ type, name, parameters }) =>
      type === "function" && typeof name === "string" ? [{ name, parameters: record(parameters) }] : [],
    ),
    toolChoice: toolChoiceOf(body.tool_choice),
    format: formatOf(record(record(body.text).format)),
    maxTokens,
    stop: [],
    thinks: effort !== "none" && (isSet(effort) || alwaysReasons(model)),
  }
}

const formatOf = (format: JsonObject): JsonObject | undefined => {
  if (format.type === "json_schema") return record(format.schema)
  return format.type === "json_object" ? { properties: { answer: { type: "string" } } } : undefined
}

const usageOf = (body: JsonObject, answer: Answer): JsonObject => {
  const input = inputTokens([body.instructions, body.input, body.tools])
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: answer.outputTokens,
    output_tokens_details: { reasoning_tokens: answer.thoughtTokens },
    total_tokens: input + answer.outputTokens,
  }
}

type State = "begun" | "done"

const response = ({ ask, model, id, answer, items, usage }: Made, state: State): JsonObject => {
  const { body } = ask
  const cut = answer.end === "length"
  return {
    id,
    object: "response",
    created_at: ask.now,
    status: state === "begun" ? "in_progress" : cut ? "incomplete" : "completed",
    background: false,
    error: null,
    incomplete_details: state === "done" && cut ? { reason: "max_output_tokens" } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model,
    output: state === "begun" ? [] : items.map(item => item.done),
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: record(body.reasoning).effort ?? null, summary: record(body.reasoning).summary ?? null },
    service_tier: text(body.service_tier)?.replace("auto", "default") ?? "default",
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? "disabled",
    usage: state === "begun" ? null : usage,
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  }
}

const itemsOf = (made: Omit<Made, "items">): readonly Item[] => [
  ...(made.answer.thought === "" ? [] : [reasoningItem(made)]),
  made.answer.call === undefined ? messageItem(made) : callItem(made, made.answer.call),
]

const reasoningItem = ({ ask, answer }: Omit<Made, "items">): Item => {
  const { summary } = record(ask.body.reasoning)
  const id = ask.id("rs_")
  const encrypted = Array.isArray(ask.body.include) && ask.body.include.includes("reasoning.encrypted_content")
  const base = { id, type: "reasoning", ...(encrypted ? { encrypted_content: ask.id("gAAAAAB") } : {}) }
  const part = { type: "summary_text", text: answer.thought }
  return {
    begun: { ...base, summary: [] },
    done: { ...base, summary: isSet(summary) ? [part] : [] },
    *between(place) {
      if (!isSet(summary)) return
      const at = { ...place, item_id: id, summary_index: 0 }
      yield { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } }
      for (const delta of piecesOf(answer.thought))
        yield { type: "response.reasoning_summary_text.delta", ...at, delta }
      yield { type: "response.reasoning_summary_text.done", ...at, text: answer.thought }
      yield { type: "response.reasoning_summary_part.done", ...at, part }
    },
  }
}

const messageItem = ({ ask, answer }: Omit<Made, "items">): Item => {
  const id = ask.id("msg_")
  const base = { id, type: "message", role: "assistant" }
  const part = { type: "output_text", annotations: [], logprobs: [], text: answer.text }
  return {
    begun: { ...base, status: "in_progress", content: [] },
    done: { ...base, status: answer.end === "length" ? "incomplete" : "completed", content: [part] },
    *between(place) {
      const at = { ...place, item_id: id, content_index: 0 }
      yield { type: "response.content_part.added", ...at, part: { ...part, text: "" } }
      for (const delta of piecesOf(answer.text))
        yield { type: "response.output_text.delta", ...at, delta, logprobs: [] }
      yield { type: "response.output_text.done", ...at, text: answer.text, logprobs: [] }
      yield { type: "response.content_part.done", ...at, part }
    },
  }
}

const callItem = ({ ask }: Omit<Made, "items">, call: NonNullable<Answer["call"]>): Item => {
  const id = ask.id("fc_")
  const whole = JSON.stringify(call.arguments)
  const base = { id, type: "function_call", call_id: ask.id("call_"), name: call.name }
  return {
    begun: { ...base, status: "in_progress", arguments: "" },
    done: { ...base, status: "completed", arguments: whole },
    *between(place) {
      const at = { ...place, item_id: id }
      for (const delta of slicesOf(whole, 8)) yield { type: "response.function_call_arguments.delta", ...at, delta }
      yield { type: "response.function_call_arguments.done", ...at, arguments: whole }
    },
  }
}

function* events(made: Made): Generator<Event> {
  yield { type: "response.created", response: response(made, "begun") }
  yield { type: "response.in_progress", response: response(made, "begun") }
  for (const [at, item] of made.items.entries()) {
    const place = { output_index: at }
    yield { type: "response.output_item.added", ...place, item: item.begun }
    yield* item.between(place)
    yield { type: "response.output_item.done", ...place, item: item.done }
  }
  const end = made.answer.end === "length" ? "response.incomplete" : "response.completed"
  yield { type: end, response: response(made, "done") }
}

/** No end mark: the last event is one of completed and incomplete. */
function* numbered(all: Iterable<Event>): Generator<string> {
  let sequence_number = 0
  for (const event of all) {
    yield namedEvent({ ...event, sequence_number })
    sequence_number += 1
  }
}
