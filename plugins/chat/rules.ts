/**
 * What a model takes of a chat request: checked before the call where the answer is known, so that it costs nothing.
 * @see specification 4.2
 */

import { type ChatRequest, GatewayError, type Model } from "../../core/index.ts"

const mostStops = 4

/** "Gemini-class", in the words of the specification. */
const thinkingFamily = "google"

/**
 * The request as this model takes it: `thinking_level` and `thinking_budget` become `reasoning_effort` for models of the
 * family that the specification offers them for, and pass unchanged for all others.
 *
 * @throws GatewayError `invalid_request` (400), with the field at fault as `param`
 */
export const applyRules = (request: ChatRequest, model: Model): ChatRequest => {
  checkStops(request)
  checkTemperature(request, model)
  checkRefused(request, model)
  const mapped = model.family === thinkingFamily ? withEffort(request) : request
  checkEffort(mapped, model)
  return mapped
}

const effort = "reasoning_effort"

/** A field of value null counts as absent. */
const isSet = (value: unknown): boolean => value !== undefined && value !== null

const refuse = (param: string, message: string) => new GatewayError("invalid_request", message, { param })

const checkStops = ({ stop }: ChatRequest): void => {
  if (Array.isArray(stop) && stop.length > mostStops) {
    throw refuse("stop", `'stop' takes at most ${mostStops} sequences, ${stop.length} were sent`)
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

const effortByLevel: ReadonlyMap<unknown, string> = new Map([
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
])

/** The most thinking tokens that still are this effort; above the last one it is `high`. */
const budgetSteps: readonly (readonly [most: number, effort: string])[] = [
  [2_048, "low"],
  [16_384, "medium"],
  [Number.POSITIVE_INFINITY, "high"],
]

/** The level wins over the budget, and either over an effort that stands beside it. */
const withEffort = (request: ChatRequest): ChatRequest => {
  const { thinking_level: level, thinking_budget: budget } = request
  const wanted = isSet(level) ? levelEffort(level) : isSet(budget) ? budgetEffort(budget) : undefined
  const rest = omit(request, ["thinking_level", "thinking_budget"])
  return wanted === undefined ? rest : { ...rest, [effort]: wanted }
}

const levelEffort = (level: unknown): string => {
  const wanted = effortByLevel.get(level)
  if (wanted !== undefined) return wanted
  throw refuse("thinking_level", `'thinking_level' must be one of ${[...effortByLevel.keys()].join(", ")}`)
}

/** 0 and -1 leave it to the model. */
const budgetEffort = (budget: unknown): string | undefined => {
  if (budget === 0 || budget === -1) return undefined
  if (!Number.isInteger(budget) || (budget as number) < 0) {
    throw refuse(
      "thinking_budget",
      "'thinking_budget' must be a whole number of tokens, 0 or -1 for the model's default",
    )
  }
  return budgetSteps.find(([most]) => (budget as number) <= most)?.[1]
}

const omit = (request: ChatRequest, names: readonly string[]): ChatRequest => {
  if (!names.some(name => name in request)) return request
  const { model, messages, ...rest } = request
  return { model, messages, ...Object.fromEntries(Object.entries(rest).filter(([name]) => !names.includes(name))) }
}
