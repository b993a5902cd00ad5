/** A chat request as a request of the Messages wire. */

import { createHash } from "node:crypto"
import { type ChatContext, type ChatRequest, isObject, type SpokeRequest } from "../../../../core/index.ts"
import { checkFields } from "../../common/chat-fields.ts"
import { list, record, text } from "../../common/json.ts"
import { fields } from "./fields.ts"
import { type Format, formatOf } from "./format.ts"
import type { ChatMemo } from "./memo.ts"
import { conversationOf, messagesOf, openLoop, systemOf } from "./messages.ts"
import { ToolNames } from "./names.ts"
import type { Block } from "./parts.ts"
import { limitOf, samplingOf, stopsOf } from "./sampling.ts"
import { type ThinkingPlan, thinkingPlan } from "./thinking.ts"
import { toolPlan } from "./tools.ts"
import type { Turn } from "./turns.ts"

/** @throws GatewayError `invalid_request` (400) naming the field that this wire or this model cannot express */
export const messagesRequest = (request: ChatRequest, context: ChatContext): SpokeRequest => {
  checkFields(request, fields)
  const { model, rules, target } = context
  const names = new ToolNames(namesIn(request))
  const format = formatOf(request, context)
  const { system, turns } = conversationOf(request.messages, names, context)
  const { forced, answerTool, ...tools } = toolPlan(request, { names, format, model, called: calledIn(turns) })
  const limit = limitOf(request, model)
  const loop = openLoop(turns)
  const loopWithout = loop !== undefined && turns[loop]?.thinking.length === 0
  const thinking = thinkingPlan(request, context, { limit, forced, loopWithout })
  // Models with budgets think only when they are told to; others may have thought by themselves.
  const thinkingFrom = thinking.on || rules.effort_budgets === undefined ? loop : undefined
  const body = {
    model: target.model,
    max_tokens: limit,
    system: systemOf([...system, ...instruction(format)]),
    messages: messagesOf(turns, thinkingFrom),
    ...tools,
    ...samplingOf(request, rules, thinking.on),
    stop_sequences: stopsOf(request),
    thinking: thinking.thinking,
    output_config: outputConfig(format, thinking),
    metadata: metadata(request),
    cache_control: isObject(request.cache_control) ? request.cache_control : undefined,
    stream: request.stream === true ? true : undefined,
  }
  const memo: ChatMemo = { names: names.originals, ...(answerTool === undefined ? {} : { answerTool }) }
  return { path: "/v1/messages", body: withoutGaps(body), memo }
}

const withoutGaps = (body: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))

/** Every name of a function that the request speaks of. */
const namesIn = ({ tools, messages }: ChatRequest): readonly string[] => {
  const calls = messages.flatMap(({ tool_calls, function_call }) => [
    ...list(tool_calls).map(call => record(call).function),
    function_call,
  ])
  return [...list(tools).map(tool => record(tool).function), ...calls].flatMap(told => text(record(told).name) ?? [])
}

const calledIn = (turns: readonly Turn[]): ReadonlySet<string> =>
  new Set(turns.flatMap(({ calls }) => calls.map(({ name }) => String(name))))

const instruction = (format: Format): readonly Block[] =>
  format.by === "instruction" ? [{ type: "text", text: format.text }] : []

const outputConfig = (format: Format, { effort }: ThinkingPlan): Block | undefined => {
  const config = {
    ...(effort === undefined ? {} : { effort }),
    ...(format.by === "output_config" ? { format: { type: "json_schema", schema: format.schema } } : {}),
  }
  return Object.keys(config).length === 0 ? undefined : config
}

const opaqueId = /^[A-Za-z0-9._:|/-]{1,256}$/

/** The vendor wants no personal data here: what is not plainly an id is sent as its digest. */
const metadata = ({ safety_identifier, user }: ChatRequest): Block | undefined => {
  const id = text(safety_identifier) ?? text(user)
  if (id === undefined) return undefined
  return { user_id: opaqueId.test(id) ? id : createHash("sha256").update(id).digest("hex") }
}
