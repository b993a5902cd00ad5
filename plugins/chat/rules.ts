/**
 * What a model takes of a chat request: checked before the call where the answer is known, so that it costs nothing.
 * @see specification 4.2
 */

import { askedThinking, type ChatRequest, isSet, list, type Model, record, refuse } from "../../core/index.ts"

const stopsMax = 4

/** "Gemini-class", in the words of the specification. */
const thinkingFamily = "google"

/**
 * The request as this model takes it: `thinking_level` and `thinking_budget` become `reasoning_effort` for models of the
 * family that the specification offers them for, and pass unchanged for all others.
 *
 * @param mapsEfforts every vendor that may be asked is told the nearest effort that the model offers
 * @throws GatewayError `invalid_request` (400), with the field at fault as `param`
 */
export const applyRules = (request: ChatRequest, model: Model, mapsEfforts = false): ChatRequest => {
  checkUnseen(request)
  checkTools(request)
  checkStops(request)
  checkTemperature(request, model)
  checkRefused(request, model)
  const mapped = model.family === thinkingFamily ? withEffort(request) : request
  if (!mapsEfforts) checkEffort(mapped, model)
  return mapped
}

const effort = "reasoning_effort"

/** Vendors' ways to be asked for the answer later, or to search first: what they bill for it, no answer tells. */
const unseen = ["deferred", "enable_search", "search_parameters"]

const checkUnseen = (request: ChatRequest): void => {
  const field = unseen.find(name => isSet(request[name]) && request[name] !== false)
  if (field === undefined) return
  const wish = request[field] === true ? `${field}: true` : field
  throw refuse(field, `${wish} is not supported: its usage cannot be seen`)
}

/** Those that the client runs. What a vendor runs itself it bills beside the tokens, and this wire has no count of it. */
const clientTools: ReadonlySet<unknown> = new Set(["function", "custom"])

const checkTools = ({ tools }: ChatRequest): void => {
  for (const [at, tool] of list(tools).entries()) {
    const { type } = record(tool)
    if (!isSet(type) || clientTools.has(type)) continue
    throw refuse(`tools[${at}].type`, `The tool '${String(type)}' is not supported: its usage cannot be seen`)
  }
}

const checkStops = ({ stop }: ChatRequest): void => {
  if (Array.isArray(stop) && stop.length > stopsMax) {
    throw refuse("stop", `'stop' takes at most ${stopsMax} sequences, ${stop.length} were sent`)
  }
}

const checkTemperature = ({ temperature }: ChatRequest, { name, rules }: Model): void => {
  if (!isSet(temperature)) return
  if (typeof temperature !== "number" || !(temperature >= 0 && temperature <= 2)) {
    throw refuse("temperature", "'temperature' must be a number from 0 to 2")
  }
  if (rules.temperature !== undefined && !rules.temperature.includes(temperature)) {
    throw refuse("temperature", `Model '${name}' takes no 'temperature' other than ${rules.temperature.join(", ")}`)
  }
}

const checkRefused = (request: ChatRequest, { name, rules }: Model): void => {
  for (const field of rules.refuse ?? []) {
    if (!isRefused(field, request[field])) continue
    const what = field === "tool_choice" ? "a forced 'tool_choice'" : `'${field}'`
    throw refuse(field, `Model '${name}' does not take ${what}`)
  }
}

/** Models that refuse a choice of tools refuse to be forced; `auto` and `none` are what they do anyway. */
const isRefused = (field: string, value: unknown): boolean =>
  isSet(value) && !(field === "tool_choice" && (value === "auto" || value === "none"))

const checkEffort = (request: ChatRequest, { name, rules }: Model): void => {
  const value = request[effort]
  if (!isSet(value) || rules.efforts === undefined || rules.efforts.includes(String(value))) return
  throw refuse(effort, `Model '${name}' takes no '${effort}' other than ${rules.efforts.join(", ")}`)
}

/** The level wins over the budget, and either over an effort that stands beside it. */
const withEffort = (request: ChatRequest): ChatRequest => {
  const wanted = askedThinking(request)
  const rest = omit(request, ["thinking_level", "thinking_budget"])
  return wanted === undefined ? rest : { ...rest, [effort]: wanted.effort }
}

const omit = (request: ChatRequest, names: readonly string[]): ChatRequest => {
  if (!names.some(name => name in request)) return request
  const { model, messages, ...rest } = request
  return { model, messages, ...Object.fromEntries(Object.entries(rest).filter(([name]) => !names.includes(name))) }
}
