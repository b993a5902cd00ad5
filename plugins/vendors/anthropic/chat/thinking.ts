/** How much the model thinks: by a budget of tokens on models with `effort_budgets`, by its own measure on others. */

import {
  type ChatContext,
  type ChatRequest,
  efforts,
  isObject,
  isSet,
  type JsonObject,
  nearestEffort,
  refuse,
} from "../../../../core/index.ts"

export interface ThinkingPlan {
  readonly thinking?: JsonObject
  readonly effort?: string
  /** The model is told to think: the vendor then ties its other settings. */
  readonly on: boolean
}

export interface ThinkingLimits {
  /** Tokens of the whole answer, thinking included. */
  readonly limit: number
  /** The model must call a tool, which this vendor does not let it think about when it thinks by a budget. */
  readonly forced: boolean
  /** The open tool loop began without thinking, or its thinking is not known any more. */
  readonly loopWithout: boolean
}

const off: ThinkingPlan = { on: false }

/** The vendor's least budget. */
const budgetMin = 1_024

/** @throws GatewayError (400) for an effort that means nothing to this model */
export const thinkingPlan = (request: ChatRequest, context: ThinkingContext, limits: ThinkingLimits): ThinkingPlan => {
  const { model, rules } = context
  const { thinking, reasoning_effort: effort } = request
  if (isSet(thinking))
    return asSent(thinking, effortFor(effort, rules.effort_budgets === undefined ? rules.efforts : []))
  if (!isSet(effort)) return off
  if (!model.capabilities.includes("reasoning")) {
    throw refuse("reasoning_effort", `Model '${model.name}' does not take 'reasoning_effort'`)
  }
  if (rules.effort_budgets !== undefined) return byBudget(effort, rules.effort_budgets, limits)
  return adaptive(effort, rules.efforts)
}

type ThinkingContext = Pick<ChatContext, "model" | "rules">

/** The vendor's own words, from clients that know them. */
const asSent = (thinking: unknown, effort: string | undefined): ThinkingPlan => {
  if (!isObject(thinking)) throw refuse("thinking", '\'thinking\' must be an object such as {"type": "adaptive"}')
  return { thinking, on: thinking.type !== "disabled", ...(effort === undefined ? {} : { effort }) }
}

const byBudget = (
  effort: unknown,
  budgets: Readonly<Record<string, number>>,
  { limit, forced, loopWithout }: ThinkingLimits,
): ThinkingPlan => {
  const name = effort === "none" ? undefined : effortFor(effort, Object.keys(budgets))
  if (name === undefined || forced || loopWithout) return off
  // The client's limit is a promise about cost: the budget gives way, and thinking where nothing is left for it.
  const budget = Math.min(budgets[name] ?? 0, limit - 1)
  return budget < budgetMin ? off : { thinking: { type: "enabled", budget_tokens: budget }, on: true }
}

/** `summarized`: some models otherwise return their thoughts, and text between tool calls, as empty blocks. */
const adaptive = (effort: unknown, offered?: readonly string[]): ThinkingPlan => {
  if (effort === "none") {
    if (offered?.includes("none")) return { thinking: { type: "disabled" }, on: false }
    // Models that think in any case think least; others do not think unless they are told to.
    return { effort: nearestEffort("none", offered) ?? "low", on: false }
  }
  const name = effortFor(effort, offered) ?? "high"
  return { thinking: { type: "adaptive", display: "summarized" }, effort: name, on: true }
}

/** What stands for the effort among those that are offered; `undefined` for none. */
const effortFor = (effort: unknown, offered?: readonly string[]): string | undefined => {
  if (!isSet(effort) || effort === "none") return undefined
  if (efforts.includes(String(effort))) return nearestEffort(String(effort), offered)
  throw refuse("reasoning_effort", `'reasoning_effort' must be one of ${efforts.join(", ")}`)
}
