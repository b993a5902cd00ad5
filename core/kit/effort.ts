/** How much a model shall think: efforts of chat, and what stands for them elsewhere (specification 4.2). */

import type { ChatRequest, Fault } from "../adapter.ts"
import type { Rules } from "../offer.ts"
import { isSet, refuse } from "./read.ts"

/** From least to most. */
export const efforts: readonly string[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]

/** What a model offers whose catalog entry does not say. */
const defaultEfforts: readonly string[] = ["low", "medium", "high"]

/** The effort itself, else the next larger one that is offered, else the largest; of `none` the least. Never `none`. */
export const nearestEffort = (wanted: string, offered: readonly string[] = defaultEfforts): string | undefined => {
  const known = efforts.filter(effort => effort !== "none" && offered.includes(effort))
  return known.find(effort => efforts.indexOf(effort) >= efforts.indexOf(wanted)) ?? known.at(-1)
}

/** The most thinking tokens that still are this effort; above the last one it is `high`. */
const steps: readonly (readonly [most: number, effort: string])[] = [
  [2_048, "low"],
  [16_384, "medium"],
]

export const effortOfTokens = (tokens: number): string => steps.find(([most]) => tokens <= most)?.[1] ?? "high"

const effortByLevel: ReadonlyMap<unknown, string> = new Map([
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
])

export interface AskedEffort {
  readonly effort: string
  /** The field that said so. */
  readonly field: string
}

/**
 * What `thinking_level` or `thinking_budget` ask for: the level wins. `undefined`: it is left to the model.
 *
 * @throws GatewayError `invalid_request` (400) for a value that is neither
 */
export const askedThinking = ({ thinking_level: level, thinking_budget: budget }: ChatRequest) => {
  if (isSet(level)) return { effort: effortOfLevel(level), field: "thinking_level" }
  const effort = isSet(budget) ? effortOfBudget(budget) : undefined
  return effort === undefined ? undefined : ({ effort, field: "thinking_budget" } satisfies AskedEffort)
}

const effortOfLevel = (level: unknown): string => {
  const effort = effortByLevel.get(level)
  if (effort !== undefined) return effort
  throw refuse("thinking_level", `'thinking_level' must be one of ${[...effortByLevel.keys()].join(", ")}`)
}

/** 0 and -1 leave it to the model. */
const effortOfBudget = (budget: unknown): string | undefined => {
  if (budget === 0 || budget === -1) return undefined
  if (typeof budget === "number" && Number.isInteger(budget) && budget > 0) return effortOfTokens(budget)
  throw refuse("thinking_budget", "'thinking_budget' must be a whole number of tokens, 0 or -1 for the model's default")
}

const field = "reasoning_effort"

/**
 * Some models refuse effort together with tools. What to retry with then: the value that the catalog names (some models
 * think by default and must be told not to), else no effort. `undefined` when that was not the reason, or when nothing
 * would change.
 */
export const withoutEffort = (
  request: ChatRequest,
  { effort_with_tools: instead = "drop" }: Rules,
  fault: Pick<Fault, "message" | "param">,
): ChatRequest | undefined => {
  const hasTools = Array.isArray(request.tools) && request.tools.length > 0
  if (!hasTools || (fault.param !== field && !fault.message.includes(field))) return undefined
  const { [field]: effort, ...rest } = request
  if (instead !== "drop") return effort === instead ? undefined : { ...request, [field]: instead }
  return effort === undefined || effort === null ? undefined : (rest as ChatRequest)
}
