/** How much the model thinks: by a budget of tokens on models with `effort_budgets`, by a level on later ones. Never both. */

import type { ChatContext, ChatRequest, JsonObject } from "../../../../core/index.ts"
import type { Abilities } from "./abilities.ts"
import { isSet, refuse } from "./refuse.ts"

/** `thinkingConfig`, or nothing where it is left to the model. */
export const thinkingOf = (
  request: ChatRequest,
  { model, rules }: Pick<ChatContext, "model" | "rules">,
  { thinks }: Abilities,
): JsonObject | undefined => {
  const asked = askedBy(request)
  if (asked === undefined) return undefined
  if (!thinks) throw refuse(asked.field, `Model '${model.name}' does not take '${asked.field}'`)
  const { effort_budgets: budgets, efforts } = rules
  // Thoughts are shown only where thinking was asked for; they cost the same unseen.
  const includeThoughts = asked.effort !== "none"
  if (budgets === undefined) return { thinkingLevel: levelFor(asked.effort, efforts), includeThoughts }
  const budget = budgetFor(asked.effort, budgets)
  if (budget === undefined) throw refuse(asked.field, `Model '${model.name}' always thinks; its least effort is low`)
  return { thinkingBudget: budget, includeThoughts }
}

interface Asked {
  readonly effort: string
  /** The field that said so. */
  readonly field: string
}

const efforts: ReadonlySet<unknown> = new Set(["none", "minimal", "low", "medium", "high", "xhigh", "max"])

/** The level wins over the budget, and either over an effort beside it (specification 4.2). */
const askedBy = ({ thinking_level, thinking_budget, reasoning_effort }: ChatRequest): Asked | undefined => {
  if (isSet(thinking_level)) return { effort: effortOfLevel(thinking_level), field: "thinking_level" }
  const effort = isSet(thinking_budget) ? effortOfBudget(thinking_budget) : undefined
  if (effort !== undefined) return { effort, field: "thinking_budget" }
  if (!isSet(reasoning_effort)) return undefined
  if (efforts.has(reasoning_effort)) return { effort: String(reasoning_effort), field: "reasoning_effort" }
  throw refuse("reasoning_effort", `'reasoning_effort' must be one of ${[...efforts].join(", ")}`)
}

const levels: ReadonlySet<unknown> = new Set(["minimal", "low", "medium", "high"])

const effortOfLevel = (level: unknown): string => {
  if (levels.has(level)) return level === "minimal" ? "low" : String(level)
  throw refuse("thinking_level", `'thinking_level' must be one of ${[...levels].join(", ")}`)
}

/** 0 and -1 leave it to the model. */
const effortOfBudget = (budget: unknown): string | undefined => {
  if (budget === 0 || budget === -1) return undefined
  if (!Number.isInteger(budget) || (budget as number) < 0) {
    throw refuse("thinking_budget", "'thinking_budget' must be a number of tokens, or 0 or -1 for the model's default")
  }
  if ((budget as number) <= 2_048) return "low"
  return (budget as number) <= 16_384 ? "medium" : "high"
}

/** What stands in for an effort that has no budget of its own. */
const nearest: Readonly<Record<string, string>> = { minimal: "low", xhigh: "high", max: "high" }

const budgetFor = (effort: string, budgets: Readonly<Record<string, number>>): number | undefined =>
  [effort, nearest[effort] ?? effort].filter(name => Object.hasOwn(budgets, name)).map(name => budgets[name])[0]

/** For each effort, the levels that may stand for it, the best first; not every model has `minimal` and `medium`. */
const wanted: Readonly<Record<string, readonly string[]>> = {
  none: ["minimal", "low"],
  minimal: ["minimal", "low"],
  low: ["low"],
  medium: ["medium", "high"],
  high: ["high"],
  xhigh: ["high"],
  max: ["high"],
}
const usual: readonly string[] = ["low", "medium", "high"]

const levelFor = (effort: string, offered: readonly string[] = usual): string => {
  const names = wanted[effort] ?? usual
  return (names.find(name => offered.includes(name)) ?? names.at(-1) ?? "high").toUpperCase()
}
