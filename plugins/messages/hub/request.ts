/** A Messages request for a model of another wire, as a chat request: the hub of all translations. */

import {
  type ChatRequest,
  GatewayError,
  isObject,
  isSet,
  type JsonObject,
  list,
  type Model,
  type Rules,
  record,
  refuse,
  text,
} from "../../../core/index.ts"
import { chatMessages } from "./conversation.ts"
import { effortOf } from "./effort.ts"
import { isStrict } from "./strict.ts"
import { chatTools } from "./tools.ts"
import { checkValues } from "./values.ts"

/** Translated below. */
const taken: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "stop_sequences",
  "stream",
  "temperature",
  "top_p",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "metadata",
])

/** Hints to the family's own vendor about caching, speed, place and long conversations. */
const hints: ReadonlySet<string> = new Set([
  "top_k",
  "cache_control",
  "service_tier",
  "speed",
  "inference_geo",
  "diagnostics",
  "context_management",
])

/** Chat takes no more, and some models none; the others are looked for in the answer. */
const stopsMax = ({ refuse: refused = [] }: Rules): number => (refused.includes("stop") ? 0 : 4)
const userMax = 64

/**
 * @param request the body of a Messages call; its model and its types are checked
 * @throws GatewayError `invalid_request` (400) naming the field that chat cannot express, `validation_failed` (422)
 */
export const chatRequest = (request: JsonObject, model: Model): ChatRequest => {
  check(request, model)
  const messages = chatMessages(request, model.rules)
  if (messages.length === 0) throw refuse("messages", "'messages' hold nothing that could be answered")
  const stops = stopsOf(request).slice(0, stopsMax(model.rules))
  const reasoning_effort = effortOf(request, model)
  const user = text(record(request.metadata).user_id)?.slice(0, userMax)
  const fields = {
    max_tokens: limitOf(request, model),
    stop: stops.length === 0 ? undefined : stops,
    ...samplingOf(request, model, reasoning_effort),
    ...chatTools(request),
    reasoning_effort,
    response_format: formatOf(request),
    user,
    // Usage is billed, and told with the stream's last event.
    ...(request.stream === true ? { stream: true, stream_options: { include_usage: true } } : {}),
  }
  return {
    model: model.name,
    messages,
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => isSet(value))),
  }
}

const stopsOf = (request: JsonObject): readonly string[] =>
  list(request.stop_sequences).flatMap(stop => text(stop) ?? [])

/** The stop sequences that the chat request could not hold. */
export const stopsBeyond = (request: JsonObject, { rules }: Pick<Model, "rules">): readonly string[] =>
  stopsOf(request).slice(stopsMax(rules))

const check = (request: JsonObject, { name }: Model): void => {
  checkValues(request)
  const unknown = Object.keys(request).find(field => isSet(request[field]) && !taken.has(field) && !hints.has(field))
  if (unknown === undefined) return
  const reason = unknown === "thread" ? { reason: "thread_unsupported_request" } : {}
  throw new GatewayError("invalid_request", `Model '${name}' does not take '${unknown}'`, { param: unknown, ...reason })
}

/** Clients of this family cannot know what a model of another one refuses: it is left out, as the model's default. */
const samplingOf = ({ temperature, top_p }: JsonObject, { rules }: Model, effort = "default"): JsonObject => {
  if (rules.sampling_efforts?.includes(effort) === false) return {}
  const isOwn = (field: string): boolean => rules.refuse?.includes(field) !== true
  const isAllowed = rules.temperature?.includes(temperature as number) ?? true
  return {
    temperature: isAllowed && isOwn("temperature") ? temperature : undefined,
    top_p: isOwn("top_p") ? top_p : undefined,
  }
}

/** Clients of this wire ask for more than other models can give. */
const limitOf = ({ max_tokens }: JsonObject, { maxOutput = Number.POSITIVE_INFINITY }: Model): number =>
  Math.min(max_tokens as number, maxOutput)

const formatOf = ({ output_config }: JsonObject): JsonObject | undefined => {
  const { format } = record(output_config)
  if (!isSet(format)) return undefined
  const { type, schema } = record(format)
  if (type !== "json_schema" || !isObject(schema))
    throw refuse("output_config.format", "The format of the answer must be a json_schema with a schema")
  return { type: "json_schema", json_schema: { name: "answer", schema, strict: isStrict(schema) } }
}
